"""Python's search for cycles of objects that nobody needs any more: left for later where much is made that stays.

It begins anew with each quarter more objects, and looks at all of them, those of PyTorch's modules too: a fifth of what importing
them takes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def searched_later() -> Iterator[None]:
    """Search for none meanwhile, unless nobody is to search for any before and behind it either.

    Threads that do this at the same time search again when the first of them has ended.
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()


@contextmanager
def made_to_stay() -> Iterator[None]:
    """The same, and what is made meanwhile counts as old: it is not looked at by itself behind it, only with all else.

    What somebody has frozen stays so, and what is made is looked at then.
    """
    searched = gc.isenabled()
    with searched_later():
        yield
        if searched and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
