"""The entries of operations that bring elements into other places: joins, paddings, scans, indices, order."""
