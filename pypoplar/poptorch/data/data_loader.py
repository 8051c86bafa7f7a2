"""`DataLoader`: PyTorch's, with batches as large as a run of the device takes."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import torch
from attrs import frozen

from pypoplar.errors import ApplicationRuntimeError, InvalidOption, MissingFeature, PoplarTypeError
from pypoplar.poptorch.data.asynchronous_accessor import AsynchronousDataAccessor
from pypoplar.poptorch.data.instance_rows import InstanceRows, InstanceSampler, ProcessPart, ProcessSampler, RowShare, SharedShuffle
from pypoplar.poptorch.data.rebatching import combined
from pypoplar.poptorch.enums import DataLoaderMode
from pypoplar.poptorch.options import Options
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.options.replica_groups import ReplicaGroups
from pypoplar.poptorch.user_log import say_once
from pypoplar.spelling import nearest_or_all
from pypoplar.tracebacks import public

ASYNC_OPTIONS = ("buffer_size", "miss_sleep_time_in_ms", "load_indefinitely", "early_preload", "sharing_strategy")
CALL = "poptorch.DataLoader"


@frozen
class BatchPlan:
    """How many samples make a batch: `batch_size` times `factor`.

    That is the device's iterations times accumulated micro-batches times replicas, of which groups count as one.
    With a sampler of the user's, `joins` of its batches are put together. `rebatched` says that the thread that fetches ahead
    makes the batches, out of those of `loaded` samples. All are None where the data set gives whole batches.
    """

    batch_size: int | None
    factor: int | None
    loaded: int | None
    joins: int | None
    rebatched: bool
    drop_last: bool

    @property
    def samples(self) -> int | None:
        """Samples of a batch; None where the data set gives whole batches."""
        return None if self.batch_size is None or self.factor is None else self.batch_size * self.factor


@public
class DataLoader(torch.utils.data.DataLoader):
    """A `torch.utils.data.DataLoader` whose batches are what one run of a model with these options takes.

    That is `batch_size` samples times the options' ``deviceIterations``, ``Training.gradientAccumulation`` and
    ``replicationFactor``, where replicas of a group of ``inputReplicaGrouping`` count as one. `terminate`, or the end of a ``with``
    block, ends threads and processes, and so does the end of Python.

    Parameters
    ----------
    options:
        Those of the model. They cannot be changed from then on; their clones can.
    dataset:
        A data set of PyTorch's, with indices or without.
    batch_size:
        Samples of a micro-batch; None: each element of the data set is a batch of a run.
    shuffle:
        Whether samples come in random order.
    num_workers:
        Processes that load samples; 0: this one does.
    drop_last:
        Leave out a smaller batch at the end, which a compiled model cannot take.
    persistent_workers:
        Whether processes go on from one iteration to the next; they do if there are any.
    auto_distributed_partitioning:
        Under `poprun` each instance loads the rows of its replicas: of every batch of all replicas those that they would take in
        one process. False is refused there.
    mode:
        `DataLoaderMode.Async` fetches batches ahead, as `AsynchronousDataAccessor` does. `DataLoaderMode.AsyncRebatched` does so
        too, and puts batches together itself: so the remainders of several processes over an iterable data set are not lost. But
        for those, the samples and their order are the same in all modes.
    async_options:
        Arguments of the `AsynchronousDataAccessor`, but for ``rebatched_size``.
    rebatched_worker_size:
        Samples that a process puts together in `DataLoaderMode.AsyncRebatched`; None: as many as a batch has.
    batch_sampler:
        Gives the indices of batches, of which so many are put together, in the place of `batch_size` and `shuffle`.
    kwargs:
        Other arguments of PyTorch's class.

    Raises
    ------
    PoplarTypeError
        For arguments of other types.
    InvalidOption
        For numbers below their least, unknown `async_options`, and arguments that exclude each other.
    MissingFeature
        For options of a model that is spread over processes.
    """

    def __init__(  # noqa: PLR0913 (PopTorch's arguments)
        self,
        options: Options,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        num_workers: int = 0,
        drop_last: bool = True,
        persistent_workers: bool | None = None,
        auto_distributed_partitioning: bool = True,
        mode: DataLoaderMode = DataLoaderMode.Sync,
        async_options: Mapping[str, Any] | None = None,
        rebatched_worker_size: int | None = None,
        batch_sampler: Any = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(options, Options):
            raise PoplarTypeError(f"{CALL}: the first argument is poptorch.Options(), got {options!r}")
        checks.flag(f"{CALL}: drop_last", drop_last)
        checks.flag(f"{CALL}: auto_distributed_partitioning", auto_distributed_partitioning)
        workers = checks.whole_number(f"{CALL}: num_workers", num_workers)
        checks.member(f"{CALL}: mode", mode, DataLoaderMode)
        ahead = _async_options(async_options)
        if batch_sampler is not None:
            batch_size = _sampled_size(batch_sampler, batch_size, shuffle)
        if batch_size is not None:
            batch_size = checks.whole_number(f"{CALL}: batch_size", batch_size, 1)
        if mode is DataLoaderMode.Sync and async_options:
            say_once(f"{CALL}: async_options change nothing in DataLoaderMode.Sync; take DataLoaderMode.Async")
        options._freeze()
        if options.Distributed.numProcesses > 1 and not auto_distributed_partitioning:
            raise MissingFeature(f"{CALL}: instances share a data set by rows; auto_distributed_partitioning=False is missing")
        plan = _plan(options, batch_size, drop_last, mode, rebatched_worker_size, batch_sampler is not None)
        if rebatched_worker_size is not None and not plan.rebatched:
            say_once(f"{CALL}: rebatched_worker_size changes nothing here; take DataLoaderMode.AsyncRebatched")
        _tell_of_data_set(dataset, plan, workers, batch_sampler, kwargs)
        self._accessor: AsynchronousDataAccessor | None = None
        self._options, self._plan = options, plan
        self._latest: Any = None
        self.rebatched_drop_last = drop_last
        if options.Distributed.numProcesses > 1:
            dataset, batch_sampler, shuffle = _own_rows(options, plan, dataset, batch_sampler, bool(shuffle), kwargs)
        super().__init__(
            dataset,
            batch_size=1 if batch_sampler is not None else plan.loaded,
            shuffle=shuffle if batch_sampler is not None else bool(shuffle),
            batch_sampler=batch_sampler,
            num_workers=workers,
            drop_last=drop_last and not plan.rebatched and batch_sampler is None and batch_size is not None,
            persistent_workers=workers > 0 if persistent_workers is None else persistent_workers,
            **kwargs,
        )
        if mode is not DataLoaderMode.Sync:
            size = plan.samples if plan.rebatched else None
            self._accessor = AsynchronousDataAccessor(_Batches(self), **ahead, rebatched_size=size)

    @property
    def combinedBatchSize(self) -> int | None:
        """How many samples a batch has; None if `batch_size` is None, and each element of the data set is a batch."""
        return self._plan.samples

    @property
    def options(self) -> Options:
        """The `Options` that it was made with, which cannot change any more."""
        return self._options

    def __len__(self) -> int:
        """The number of batches."""
        if self._plan.rebatched:
            number = len(self.dataset if isinstance(self.dataset, torch.utils.data.IterableDataset) else self.sampler)
            return _count(number, self._plan.samples or 1, self._plan.drop_last)
        if self._plan.joins is not None:
            return _count(super().__len__(), self._plan.joins, self._plan.drop_last)
        return int(super().__len__())

    def __iter__(self) -> Iterator[Any]:
        return self._batches() if self._accessor is None else iter(self._accessor)

    def _batches(self) -> Iterator[Any]:
        """Batches as PyTorch's processes, or this one, load them."""
        batches: Iterator[Any] = super().__iter__()
        self._latest = weakref.ref(batches)
        return batches if self._plan.joins in (None, 1) else combined(batches, self._plan.joins or 1, self._plan.drop_last)

    def terminate(self) -> None:
        """End the thread that fetches ahead, and the processes that load. What fetched ahead cannot be iterated over again."""
        if self._accessor is not None:
            self._accessor.terminate()
        latest = self._latest and self._latest()
        if hasattr(latest, "_shutdown_workers"):
            latest._shutdown_workers()
        self._iterator = None  # where PyTorch keeps its processes from one iteration to the next

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.terminate()


class _Batches:
    """The batches of a loader, for its accessor: neither keeps the other alive."""

    counts_rebatched = True
    """Its length is that of what the accessor makes of it."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = weakref.ref(loader)
        self.rebatched_drop_last = loader.rebatched_drop_last

    def __iter__(self) -> Iterator[Any]:
        return self._there()._batches()

    def __len__(self) -> int:
        return len(self._there())

    def _there(self) -> DataLoader:
        loader = self._loader()
        if loader is None:
            raise ApplicationRuntimeError(f"{CALL}: it is gone, and cannot be iterated over again")
        return loader


def _plan(
    options: Options, batch_size: int | None, drop_last: bool, mode: DataLoaderMode, worker_size: int | None, sampled: bool
) -> BatchPlan:
    """How batches are put together."""
    if batch_size is None:
        if mode is DataLoaderMode.AsyncRebatched:
            raise InvalidOption(f"{CALL}: DataLoaderMode.AsyncRebatched makes batches, and takes a batch_size")
        return BatchPlan(None, None, None, None, rebatched=False, drop_last=drop_last)
    groups = ReplicaGroups.of_options(options).count
    factor = options.device_iterations * options.Training.gradient_accumulation * groups
    whole = batch_size * factor
    again = mode is DataLoaderMode.AsyncRebatched or (mode is DataLoaderMode.Async and not drop_last)
    loaded = whole
    if worker_size is not None:
        loaded = checks.whole_number(f"{CALL}: rebatched_worker_size", worker_size, 1, whole)
    rebatched = again and whole > 1 and not sampled
    return BatchPlan(
        batch_size, factor, loaded if rebatched else whole, factor if sampled else None, rebatched=rebatched, drop_last=drop_last
    )


def _own_rows(
    options: Options, plan: BatchPlan, dataset: Any, batch_sampler: Any, shuffle: bool, others: dict[str, Any]
) -> tuple[Any, Any, bool | None]:
    """The data set, batch sampler and shuffling with which an instance loads its rows alone; `others` get its sampler."""
    if plan.batch_size is None or plan.factor is None:
        raise MissingFeature(f"{CALL}: instances of poprun share batches of a batch_size; pypoplar does not share whole ones yet")
    own, processes = options.replication_factor, options.Distributed.numProcesses
    if options.Distributed.numbered_by_program and not isinstance(dataset, torch.utils.data.IterableDataset):
        part = ProcessPart(options.Distributed.processId, processes, plan.factor * (1 if batch_sampler else plan.batch_size))
        if batch_sampler is not None:
            return dataset, ProcessSampler(batch_sampler, part, plan.drop_last), None
        given = others.pop("sampler", None)
        order = SharedShuffle(dataset, others.get("generator")) if given is None and shuffle else given
        others["sampler"] = ProcessSampler(range(len(dataset)) if order is None else order, part, plan.drop_last)
        return dataset, None, False
    replicas, first = own * processes, options.Distributed.processId * own
    if batch_sampler is not None:
        share = RowShare(1, replicas, first, own, plan.factor * processes, plan.drop_last)
        return dataset, InstanceSampler(batch_sampler, share), None
    share = RowShare(plan.batch_size, replicas, first, own, plan.batch_size * plan.factor * processes, plan.drop_last)
    if isinstance(dataset, torch.utils.data.IterableDataset):
        return InstanceRows(dataset, share), None, False
    source = others.pop("sampler", None)
    if source is None and shuffle:
        source = SharedShuffle(dataset, others.get("generator"))
    others["sampler"] = InstanceSampler(range(len(dataset)) if source is None else source, share)
    return dataset, None, False


def _sampled_size(sampler: Any, batch_size: int | None, shuffle: bool | None) -> int | None:
    """The samples in a batch of the user's sampler, as far as it says."""
    if batch_size != 1 or shuffle:
        raise InvalidOption(f"{CALL}: batch_sampler decides on batches; leave out batch_size and shuffle")
    if not isinstance(sampler, Iterable):
        raise PoplarTypeError(f"{CALL}: batch_sampler gives lists of indices, got {sampler!r}")
    return getattr(sampler, "batch_size", 1)


def _async_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise PoplarTypeError(f"{CALL}: async_options is a dict, got {given!r}")
    for name in given or {}:
        if name == "rebatched_size":
            raise InvalidOption(f"{CALL}: async_options has no rebatched_size; DataLoaderMode.AsyncRebatched sets it")
        if name not in ASYNC_OPTIONS:
            raise InvalidOption(f"{CALL}: async_options has no {name!r}{nearest_or_all(name, ASYNC_OPTIONS)}")
    return dict(given or {})


def _tell_of_data_set(dataset: Any, plan: BatchPlan, workers: int, sampler: Any, others: Mapping[str, Any]) -> None:
    """Say what PyTorch does without a word: samples that come several times, or in no batch that a model can take."""
    if isinstance(dataset, torch.utils.data.IterableDataset):
        if workers > 1 and "worker_init_fn" not in others:
            say_once(
                f"{CALL}: num_workers={workers} without a worker_init_fn: each process gives all samples of an IterableDataset, "
                "unless that asks torch.utils.data.get_worker_info() which are its own"
            )
        return
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise PoplarTypeError(f"{CALL}: the second argument is a data set of PyTorch's, got {dataset!r}")
    if plan.samples is None or others.get("sampler") is not None:
        return
    if plan.joins is None:
        number, size, what = len(dataset), plan.samples, "samples"
    elif hasattr(sampler, "__len__"):
        number, size, what = len(sampler), plan.joins, "batches of the batch_sampler"
    else:
        return
    if number < size and plan.drop_last:
        say_once(f"{CALL}: there is no batch: {number} {what} are fewer than the {size} that a run takes")
    elif number % size and not plan.drop_last:
        say_once(
            f"{CALL}: with drop_last=False the last batch has {number % size} of {size} {what}, and a compiled model takes batches "
            "of one size"
        )


def _count(number: int, size: int, drop_last: bool) -> int:
    """How often `size` goes into `number`, with a remainder or without."""
    return number // size if drop_last else -(-number // size)
