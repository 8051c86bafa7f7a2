"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 execution``, ``2,000 executions``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
