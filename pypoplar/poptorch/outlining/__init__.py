"""Runs of operations that repeat in a model: each is lowered once, as a function that is called with copies of its arguments."""
