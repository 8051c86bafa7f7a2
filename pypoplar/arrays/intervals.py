"""Half-open intervals, as users give and get them; `pypoplar.arrays.interval_algebra` has sets of intervals as arrays."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, SupportsIndex

from attrs import frozen

from pypoplar.braces import ordered
from pypoplar.errors import PoplarIndexError, PoplarTypeError
from pypoplar.tracebacks import swift

_set = object.__setattr__


@frozen(order=True, init=False)
class Interval:
    """The elements ``begin <= i < end``; ``begin()``, ``end()``, ``lower()``, ``upper()`` and ``size()`` are calls, as in Poplar.

    Unpacks into its bounds: ``begin, end = interval``.

    Parameters
    ----------
    begin:
        The first element, at least 0.
    end:
        The element behind the last.

    Raises
    ------
    PoplarIndexError
        Unless ``0 <= begin <= end``.
    PoplarTypeError
        If a bound is no whole number.
    """

    _begin: int
    _end: int

    @swift
    def __init__(self, begin: SupportsIndex, end: SupportsIndex) -> None:
        try:
            low, high = (begin, end) if begin.__class__ is end.__class__ is int else (operator.index(begin), operator.index(end))
        except TypeError:
            raise PoplarTypeError(f"an Interval has whole numbers as bounds, got {begin!r} and {end!r}") from None
        if not 0 <= low <= high:
            raise PoplarIndexError(f"an Interval needs 0 <= begin <= end, got [{low}:{high})")
        _set(self, "_begin", low)
        _set(self, "_end", high)

    def begin(self) -> int:
        """The number of the first element that is in the interval."""
        return self._begin

    def end(self) -> int:
        """The number of the element that follows the interval's last one."""
        return self._end

    def lower(self) -> int:
        """The first element, as `begin` gives it; Poplar has both names."""
        return self._begin

    def upper(self) -> int:
        """The element behind the last, as `end` gives it; Poplar has both names."""
        return self._end

    def size(self) -> int:
        """The number of elements in the interval: `end` less `begin`."""
        return self._end - self._begin

    def __iter__(self) -> Iterator[int]:
        return iter((self._begin, self._end))

    def __repr__(self) -> str:
        return f"Interval({self._begin}, {self._end})"


def bounds_of(interval: Any, what: str) -> tuple[int, int]:
    """Begin and end of an `Interval` or of a pair of numbers; `PoplarTypeError` for anything else, about `what` it is."""
    try:
        begin, end = ordered(interval, what, "(0, 4)")
        return operator.index(begin), operator.index(end)
    except (TypeError, ValueError) as problem:
        if isinstance(problem, PoplarTypeError):
            raise
        raise PoplarTypeError(f"{what} is an Interval or a pair (begin, end), got {interval!r}; write (0, 4)") from None


@frozen
class VariableInterval:
    """A contiguous piece of a variable, given by `Tensor.getVarRegions`.

    Attributes
    ----------
    variable:
        The variable's debug name.
    interval:
        Elements of the variable, in its row-major order.
    """

    variable: str
    interval: Interval
