"""What a codelet costs on a target: prices of scalar code, and the code that the vendor's compiler makes of it."""
