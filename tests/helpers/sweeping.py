"""Sweeps in both forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch

from pypoplar.host_code import sweep
from pypoplar.host_code.sweep import Sweep, SweepCode


@cache
def machine_code(one: Sweep) -> SweepCode:
    """The machine code of a sweep, from the cache if it is there."""
    with patch.multiple(sweep, FEWEST_ROWS=0, LOOKED_FOR=0, COMPILED=0):
        code = one.code(0)
    assert code is not None
    return code


def both(one: Sweep) -> tuple[Callable[..., int], Callable[..., int]]:
    """A sweep as the plain Python that it is, and its machine code."""
    return one, machine_code(one)


@contextmanager
def swept_at_once(*used: Sweep) -> Iterator[None]:
    """What is done here with long lists is done by machine code, that of `used` among it."""
    with patch.multiple(sweep, LOOKED_FOR=0, COMPILED=0):
        yield
    assert all(one._code is not None for one in used)
