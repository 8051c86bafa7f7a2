"""Operations on the elements of tensors: named functions, trees, casts, fills, scaled sums."""
