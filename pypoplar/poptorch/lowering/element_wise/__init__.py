"""The entries of operations on elements: arithmetic, functions, relations."""
