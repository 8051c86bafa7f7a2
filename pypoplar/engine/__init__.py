"""Runs executables: simulated memory, streams, the native driver and the interpreter."""
