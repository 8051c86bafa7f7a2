"""C++ files as trees: libclang, types, and what a part of a function changes."""
