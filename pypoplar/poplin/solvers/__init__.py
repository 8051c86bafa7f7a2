"""Systems of linear equations with triangular matrices, factorisations, and grids of coordinates."""
