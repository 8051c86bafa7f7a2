"""Norms as layers of networks have them, on those of poplin."""
