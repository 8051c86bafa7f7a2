"""From a joint graph to calls of the libraries: one table, with an entry for each operation."""
