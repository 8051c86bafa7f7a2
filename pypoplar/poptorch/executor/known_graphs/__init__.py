"""What a captured graph comes to, kept by the exported program that it was made of: a second start needs no more of it."""
