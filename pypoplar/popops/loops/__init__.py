"""Loops that count, and buffers that go round."""
