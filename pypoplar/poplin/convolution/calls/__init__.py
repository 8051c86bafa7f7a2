"""The calls of convolutions, which write any of them as plain ones."""
