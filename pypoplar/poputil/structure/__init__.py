"""How the dimensions of a tensor are put together: factors, groups, partitions."""
