"""The engine in plain Python: the specification."""
