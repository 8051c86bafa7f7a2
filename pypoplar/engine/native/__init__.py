"""The engine as native code."""
