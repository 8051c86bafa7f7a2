"""Slices of tensors at offsets that are known when the program runs, and updates of such slices."""
