"""What has been freed: kept for the next table while a graph is built and compiled, given back to the system behind that.

The C library gives a table of more than 128 kB back as soon as it is freed, and the next one costs a page fault for each 4 kB
again, which was up to half of the time of a large copy's plan. Later it keeps a gigabyte.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from attrs import define, field

LARGE = 1 << 20  # rows of a table from which on it is worth a few milliseconds
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # what mallopt(3) calls M_MMAP_THRESHOLD and M_TRIM_THRESHOLD
IN_THE_HEAP = 1 << 25  # bytes of a table; most that the C library takes
KEPT = 1 << 28  # bytes free at the heap's end
MMAP_MAX = -4  # what it calls M_MMAP_MAX: how many tables lie outside of the heap
ALL_KEPT = {MMAP_MAX: 0, TRIM_THRESHOLD: -1}  # tables of any size lie in the heap, which does not become smaller
AS_BEFORE = {MMAP_MAX: 1 << 16, TRIM_THRESHOLD: KEPT}


@cache
def keep_freed() -> bool:
    """Let the C library keep what is freed, once a process; whether it was done. What the user's variables say to it stays."""
    mallopt = _mallopt()
    return mallopt is not None and bool(mallopt(MMAP_THRESHOLD, IN_THE_HEAP)) and bool(mallopt(TRIM_THRESHOLD, KEPT))


def _mallopt() -> Callable[..., int] | None:
    told = any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", "")
    return None if told else _of_c_library("mallopt")


@define
class _Keepers:
    """How many keep all that is freed at the moment."""

    count: int = 0
    lock: Lock = field(factory=Lock)


_keepers = _Keepers()


@contextmanager
def keeping_all() -> Iterator[None]:
    """Keep tables of any size that are freed meanwhile, and give all of it back at the end.

    What predicts a network makes and frees tables of gigabytes one after the other. The system fills each page of them with zeros
    anew, which takes as long as many a pass over the table.
    """
    _keep(1)
    try:
        yield
    finally:
        if _keep(-1) == 0:
            give_back(LARGE)


def _keep(more: int) -> int:
    """Count one that keeps or lets go; how many are left."""
    with _keepers.lock:
        before, _keepers.count = _keepers.count, _keepers.count + more
        if (before == 0) != (_keepers.count == 0) and (mallopt := _mallopt()) is not None:
            keep_freed()
            for number, value in (ALL_KEPT if _keepers.count else AS_BEFORE).items():
                mallopt(number, value)
        return _keepers.count


def give_back(rows: int) -> bool:
    """Give back what is free if a table of so many rows was there; whether it was done. Other C libraries keep nothing or all."""
    trim = _of_c_library("malloc_trim") if rows >= LARGE else None
    if trim is None:
        return False
    trim(0)
    return True


@cache
def _of_c_library(name: str) -> Callable[..., int] | None:
    """A function of the C library of this process; None where it has none of that name, or has no name itself."""
    return None if sys.platform == "win32" else getattr(ctypes.CDLL(None), name, None)
