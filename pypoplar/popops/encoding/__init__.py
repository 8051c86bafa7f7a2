"""Ranges of integers, and indices as one-hot vectors."""
