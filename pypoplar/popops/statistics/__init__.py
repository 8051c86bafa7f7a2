"""Statistics of the elements of tensors."""
