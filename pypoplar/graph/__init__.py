"""Graphs: tensors as views of variables, tile mappings, vertices and their edges."""
