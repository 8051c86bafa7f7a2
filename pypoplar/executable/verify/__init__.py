"""Checks of executables that come from files, before an engine may use their numbers."""
