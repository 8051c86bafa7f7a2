"""Texts that every file and stream takes."""

from __future__ import annotations


def escaped(text: str) -> str:
    r"""The text with each lone surrogate spelled out, ``\udc80``: names and paths may have them, and no encoding does."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
