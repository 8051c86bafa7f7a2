"""What has been freed, given back to the system: the C library keeps it for later, a gigabyte after a large graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

LARGE = 1 << 20  # rows of a table from which on it is worth a few milliseconds


def give_back(rows: int) -> bool:
    """Give back what is free if a table of so many rows was there; whether it was done. Other C libraries keep nothing or all."""
    trim = _malloc_trim() if rows >= LARGE else None
    if trim is None:
        return False
    trim(0)
    return True


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    library = ctypes.CDLL(None)
    return library.malloc_trim if hasattr(library, "malloc_trim") else None
