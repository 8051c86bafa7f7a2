"""Integers of the graph: how large they can be, and those that take 64 bits."""
