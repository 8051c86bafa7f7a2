"""Which examples laws have: how many, where it is another number than the usual one, and the same in every process."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

USUAL, FEWEST = 100, 3


def examples(count: int) -> Callable[[Any], Any]:
    """Draw so many examples of a law; in proportion where a profile has more or fewer, but not below the fewest."""
    return settings(max_examples=max(count * settings().max_examples // USUAL, min(count, FEWEST)))


def draw_no_constants_of_the_code() -> None:
    """Let examples depend on nothing but the law.

    Hypothesis mixes constants from the source of what has been imported by then into what it draws. So a law would have other
    examples alone than among all tests, and others in each worker that shares them.
    """
    assert hasattr(providers, "_get_local_constants")
    providers._get_local_constants = Constants
