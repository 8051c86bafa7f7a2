"""B-spline kernels of graph networks."""
