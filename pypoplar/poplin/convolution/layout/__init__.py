"""How the operands of a convolution lie in memory, and copies of those that lie badly."""
