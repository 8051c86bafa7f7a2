"""A thread that fetches what an iterator gives ahead of who takes it.

A thread, not a process as PopTorch has it: it needs no shared memory, of which containers have little, no data set that can be
pickled, and cannot be left behind when a program fails. The device's work and that of PyTorch's functions goes on beside it, for
they hold no lock of Python's; a data set whose own code takes long is loaded by processes, with ``num_workers``.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch

_running: weakref.WeakSet[Prefetch] = weakref.WeakSet()


class Prefetch:
    """One pass over an iterator, with up to `size` elements ahead.

    The first one is fetched at once by the caller's thread: there an iterator draws its random order, so that a seed decides it.
    """

    def __init__(self, elements: Iterator[Any], size: int) -> None:
        self._elements: Iterator[Any] | None = elements
        self._size = size
        self._ready: deque[Any] = deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._end: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._with_gradients = torch.is_grad_enabled()  # which each thread decides for itself
        try:
            self._ready.append(next(elements))
        except StopIteration:
            self._end = StopIteration()
            self._elements = None
            return
        _running.add(self)
        self._thread = threading.Thread(target=self._load, name="poptorch data", daemon=True)
        self._thread.start()

    def _load(self) -> None:
        end: BaseException = StopIteration()
        try:
            with torch.set_grad_enabled(self._with_gradients):
                while self._wait_for_room():
                    assert self._elements is not None
                    element = next(self._elements)
                    with self._changed:
                        self._ready.append(element)
                        self._changed.notify()
        except StopIteration:
            pass  # another one is raised, without the frames that hold what was iterated over
        except BaseException as problem:  # which is for who takes the elements
            end = problem
        with self._changed:
            self._end = end
            self._changed.notify()

    def _wait_for_room(self) -> bool:
        """Wait until an element has been taken, if too many are ready; False if no more are wanted."""
        with self._changed:
            while len(self._ready) >= self._size and not self._stopped:
                self._changed.wait()
            return not self._stopped

    def take(self) -> Any:
        """The next element; `StopIteration` after the last, or the error that the iterator has raised."""
        with self._changed:
            while not self._ready and self._end is None:
                self._changed.wait()
            if self._ready:
                self._changed.notify()
                return self._ready.popleft()
            end, self._end = self._end, StopIteration()
        self.stop()
        assert end is not None
        raise end

    def stop(self) -> None:
        """End the thread, after the element that it is fetching, and let go of the iterator."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._elements = None
        _running.discard(self)


@atexit.register
def _stop_all() -> None:
    """No thread works while Python ends; PyTorch's and multiprocessing's own endings come after this."""
    for each in list(_running):
        each.stop()
