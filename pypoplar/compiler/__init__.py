"""From a graph and its programs to an executable: one module per pass."""
