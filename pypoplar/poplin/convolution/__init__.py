"""Convolutions: parameters, plans, calls."""
