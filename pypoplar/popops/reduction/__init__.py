"""Reductions: sums, products, extremes of some dimensions of a tensor, planned over tiles."""
