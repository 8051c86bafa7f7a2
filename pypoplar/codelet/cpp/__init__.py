"""Codelets in C++: parsed by libclang against headers of ours, and written as the Python that the translator takes."""
