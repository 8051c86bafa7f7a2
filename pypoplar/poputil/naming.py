"""Debug names of what a library call adds, below the name that the user gave the call."""

from __future__ import annotations


def below(debugContext: str | None, *parts: str) -> str:
    """``below("dW", "reduce")`` is ``"dW/reduce"``; without a name of the user's, the parts alone."""
    return "/".join(part for part in (debugContext or "", *parts) if part)
