"""The binary interface between generated code, compiler, driver, verifier and interpreter: numbers and layouts, nothing else."""
