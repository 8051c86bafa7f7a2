"""Codelets as code of a processor: what makes it, and where it is kept."""
