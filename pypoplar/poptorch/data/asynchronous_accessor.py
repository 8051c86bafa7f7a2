"""`AsynchronousDataAccessor`: a data set, or what else can be iterated, fetched ahead by a thread."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Self

from pypoplar.errors import ApplicationRuntimeError, InvalidOption, PoplarTypeError
from pypoplar.poptorch.data.prefetching import Prefetch
from pypoplar.poptorch.data.rebatching import rebatched
from pypoplar.poptorch.enums import SharingStrategy
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.user_log import say_once
from pypoplar.tracebacks import public

SLEEP = 0.1


@public
class AsynchronousDataAccessor:
    """Iterates over a data set whose next elements are fetched ahead, while the device works on the last one.

    An element is the caller's to keep. An error in the data set is raised where its element is asked for. Every iteration begins
    when it is asked for, so that the order of shuffled elements depends on the seed alone, as it does without prefetching.

    Parameters
    ----------
    dataset:
        A data set of PyTorch's, a `DataLoader` in `DataLoaderMode.Sync`, or anything else that can be iterated.
    buffer_size:
        The number of elements ahead, at least 1.
    miss_sleep_time_in_ms, load_indefinitely:
        Are about a process that is not there, and change nothing.
    early_preload:
        Begin the first iteration at once.
    sharing_strategy:
        Changes nothing: elements are fetched by a thread.
    rebatched_size:
        Make of the data set's batches, of any sizes, batches of so many samples; a smaller one at the end is left out. None: as
        they are.

    Raises
    ------
    PoplarTypeError
        For what cannot be iterated.
    InvalidOption
        For a `DataLoader` that fetches ahead by itself, and for sizes below their least.
    """

    def __init__(
        self,
        dataset: Iterable[Any],
        buffer_size: int = 3,
        miss_sleep_time_in_ms: float = SLEEP,
        load_indefinitely: bool = True,
        early_preload: bool = False,
        sharing_strategy: SharingStrategy = SharingStrategy.ForkServer,
        rebatched_size: int | None = None,
    ) -> None:
        call = type(self).__name__
        self._finalizer: Any = None
        self._prefetch: Prefetch | None = None
        self._size = checks.whole_number(f"{call}: buffer_size", buffer_size, 1)
        checks.flag(f"{call}: load_indefinitely", load_indefinitely)
        preload = checks.flag(f"{call}: early_preload", early_preload)
        if checks.finite(f"{call}: miss_sleep_time_in_ms", miss_sleep_time_in_ms) < 0:
            raise InvalidOption(f"{call}: miss_sleep_time_in_ms is at least 0, got {miss_sleep_time_in_ms!r}")
        if checks.member(f"{call}: sharing_strategy", sharing_strategy, SharingStrategy) is not SharingStrategy.ForkServer:
            say_once(f"{call}: sharing_strategy changes nothing: elements are fetched by a thread")
        if miss_sleep_time_in_ms != SLEEP:
            say_once(f"{call}: miss_sleep_time_in_ms changes nothing: the thread that fetches elements is woken")
        self.rebatched_size = None if rebatched_size is None else checks.whole_number(f"{call}: rebatched_size", rebatched_size, 2)
        if getattr(dataset, "_accessor", None) is not None:
            raise InvalidOption(f"{call}: the DataLoader fetches ahead by itself; make it with poptorch.DataLoaderMode.Sync")
        self._dataset = dataset
        self._elements()  # what cannot be iterated is told now
        self._terminated = False
        self._fresh = preload
        if preload:
            self._begin()

    def _elements(self) -> Iterable[Any]:
        """What is iterated over: a data set by its indices if it has no order of its own."""
        dataset: Any = self._dataset
        if hasattr(dataset, "__iter__"):
            return dataset
        if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
            return (dataset[index] for index in range(len(dataset)))
        raise PoplarTypeError(f"AsynchronousDataAccessor takes a data set or what else can be iterated, got {dataset!r}")

    def _begin(self) -> None:
        self._end()
        elements: Iterator[Any] = iter(self._elements())
        if self.rebatched_size is not None:
            elements = rebatched(elements, self.rebatched_size, getattr(self._dataset, "rebatched_drop_last", True))
        self._prefetch = prefetch = Prefetch(elements, self._size)
        self._finalizer = weakref.finalize(self, prefetch.stop)
        self._finalizer.atexit = False  # that is earlier: see prefetching

    def _end(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._prefetch = None

    def terminate(self) -> None:
        """Stop fetching, for good: the thread has ended when this returns."""
        self._terminated = True
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.terminate()

    def __len__(self) -> int:
        """The number of elements, of which a data set must say how many it has."""
        dataset: Any = self._dataset
        if self.rebatched_size is None or getattr(dataset, "counts_rebatched", False):
            return len(dataset)
        samples = len(dataset) * (getattr(dataset, "batch_size", 1) or 1)
        whole = getattr(dataset, "rebatched_drop_last", True)
        return samples // self.rebatched_size if whole else math.ceil(samples / self.rebatched_size)

    def __iter__(self) -> Iterator[Any]:
        """Begin anew; an iteration that is in the middle cannot go on."""
        if self._terminated:
            raise ApplicationRuntimeError("AsynchronousDataAccessor: it was terminated, and cannot be iterated over again")
        if not self._fresh:
            self._begin()
        self._fresh = False
        return _Iteration(self)

    def __next__(self) -> Any:
        """The next element of the iteration that was begun last."""
        if self._prefetch is None:
            raise StopIteration
        return self._prefetch.take()


class _Iteration:
    """One iteration over an accessor, which lives as long as that."""

    def __init__(self, accessor: AsynchronousDataAccessor) -> None:
        self._accessor = accessor
        self._prefetch = accessor._prefetch

    def __iter__(self) -> Self:
        return self

    def __len__(self) -> int:
        return len(self._accessor)

    def __next__(self) -> Any:
        if self._prefetch is None or self._prefetch is not self._accessor._prefetch:
            why = "it was terminated" if self._accessor._terminated else "another iteration was begun"
            raise ApplicationRuntimeError(f"AsynchronousDataAccessor: {why} in the middle of this iteration")
        return self._prefetch.take()
