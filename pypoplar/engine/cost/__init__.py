"""Engines that price programs without running them."""
