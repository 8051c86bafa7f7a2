"""Functions of the user's: whether they can be called as they will be, and how they are declared if not."""

import functools

import pytest

from pypoplar.signatures import misfit


def pair(left: int, right: int = 3) -> int:
    return left + right


class Takes:
    def __call__(self, left):
        return left

    def nothing(self):
        return None


@pytest.mark.parametrize(
    ("function", "count"),
    [(pair, 1), (pair, 2), (Takes(), 1), (Takes().nothing, 0), (print, 7), (int, 2), (functools.partial(pair, 1), 1), (min, 5)],
)
def test_what_can_be_called_is_no_misfit(function, count):
    assert misfit(function, *["argument"] * count) == ""


@pytest.mark.parametrize(
    ("function", "count", "declared"),
    [
        (pair, 3, f"pair(left, right=3), {__file__}:{pair.__code__.co_firstlineno}"),
        (Takes().nothing, 1, f"nothing(), {__file__}:{Takes.nothing.__code__.co_firstlineno}"),
        (Takes(), 2, "Takes(left)"),
        (functools.partial(pair, 1, 2), 1, "partial()"),
        (functools.lru_cache(pair), 0, f"pair(left, right=3), {__file__}:{pair.__code__.co_firstlineno}"),
        (3, 1, "int"),
        (None, 1, "NoneType"),
    ],
)
def test_a_misfit_is_shown_as_it_is_declared(function, count, declared):
    assert misfit(function, *["argument"] * count) == declared
