"""How many examples a law has that needs another number than the hundred of the others."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings

USUAL, FEWEST = 100, 3


def examples(count: int) -> Callable[[Any], Any]:
    """Draw so many examples of a law; in proportion where a profile has more or fewer, but not below the fewest."""
    return settings(max_examples=max(count * settings().max_examples // USUAL, min(count, FEWEST)))
