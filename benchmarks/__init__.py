"""How fast pypoplar is: ``python -m benchmarks`` prints every figure beside its target."""
