"""Walks through a joint graph: of the whole, of bodies of loops and choices, and of functions."""
