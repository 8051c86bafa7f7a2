"""Executables: what a compiled program is, its file, and the checks of files."""
