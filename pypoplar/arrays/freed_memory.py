"""What has been freed: kept for the next table while a graph is built and compiled, given back to the system behind that.

The C library gives a table of more than 128 kB back as soon as it is freed, and the next one costs a page fault for each 4 kB
again, which was up to half of the time of a large copy's plan. Later it keeps a gigabyte.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache

LARGE = 1 << 20  # rows of a table from which on it is worth a few milliseconds
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # what mallopt(3) calls M_MMAP_THRESHOLD and M_TRIM_THRESHOLD
IN_THE_HEAP = 1 << 25  # bytes of a table; most that the C library takes
KEPT = 1 << 28  # bytes free at the heap's end


@cache
def keep_freed() -> bool:
    """Let the C library keep what is freed, once a process; whether it was done. What the user's variables say to it stays."""
    told = any(name.startswith("MALLOC_") for name in os.environ) or "malloc" in os.environ.get("GLIBC_TUNABLES", "")
    mallopt = None if told else _of_c_library("mallopt")
    return mallopt is not None and bool(mallopt(MMAP_THRESHOLD, IN_THE_HEAP)) and bool(mallopt(TRIM_THRESHOLD, KEPT))


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
