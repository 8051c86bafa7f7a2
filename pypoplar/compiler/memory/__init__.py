"""What lies where in the memory of each tile."""
