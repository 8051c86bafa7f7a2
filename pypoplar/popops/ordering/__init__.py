"""The largest and smallest elements of rows, and sorting."""
