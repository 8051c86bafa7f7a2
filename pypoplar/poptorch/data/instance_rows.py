"""The rows of a data set that an instance takes where a model's replicas are spread over processes.

Of each batch of all replicas an instance has the rows of its own, in their order: a step sees what one process with all replicas
would see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from attrs import frozen

from pypoplar.engine.processes.instance_peers import from_first_instance


@frozen
class RowShare:
    """Which positions of a sequence of rows are of an instance: `size` rows for each replica, replica after replica."""

    size: int
    replicas: int  # of all instances
    first: int
    own: int  # replicas of this instance, from `first` on
    whole: int  # rows of a batch of all replicas
    drop_last: bool

    def positions(self, count: int | None) -> Iterator[tuple[int, bool]]:
        """Each position with whether it is of this instance, up to the last whole batch where the rest is dropped."""
        position = 0
        end = None if count is None else count - count % self.whole if self.drop_last else count
        while end is None or position < end:
            yield position, self.first <= position // self.size % self.replicas < self.first + self.own
            position += 1

    def count(self, rows: int) -> int:
        """How many of so many rows are of this instance."""
        if self.drop_last:
            return rows // self.whole * (self.whole // self.replicas * self.own)
        return sum(own for _, own in self.positions(rows))


class InstanceSampler(torch.utils.data.Sampler[Any]):
    """Indices, or batches of indices, that are of this instance."""

    def __init__(self, source: Any, share: RowShare) -> None:
        self.source, self.share = source, share

    def __iter__(self) -> Iterator[Any]:
        count = len(self.source) if hasattr(self.source, "__len__") else None
        for (_, own), index in zip(self.share.positions(count), self.source, strict=False):
            if own:
                yield index

    def __len__(self) -> int:
        return self.share.count(len(self.source))


@frozen
class ProcessPart:
    """Which part of a data set is that of a process that a program numbers: one stretch, as in PopTorch."""

    process: int
    processes: int
    whole: int  # what one of its batches takes

    def bounds(self, count: int, drop_last: bool) -> tuple[int, int]:
        """Of so many rows the first, and the one behind the last; whole batches alone, or the last process has the rest."""
        size = self.whole * (count // (self.whole * self.processes)) if drop_last else count // self.processes
        end = count if not drop_last and self.process == self.processes - 1 else (self.process + 1) * size
        return self.process * size, end


class ProcessSampler(torch.utils.data.Sampler[Any]):
    """Indices, or batches of indices, of the part of a process."""

    def __init__(self, source: Any, part: ProcessPart, drop_last: bool) -> None:
        self.source, self.part, self.drop_last = source, part, drop_last

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self.source), *self.part.bounds(len(self.source), self.drop_last))

    def __len__(self) -> int:
        begin, end = self.part.bounds(len(self.source), self.drop_last)
        return end - begin


class SharedShuffle(torch.utils.data.Sampler[int]):
    """All indices in a random order, which is that of the first instance."""

    def __init__(self, dataset: Any, generator: Any) -> None:
        self.dataset, self.generator = dataset, generator

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:  # as PyTorch's sampler draws it, so that the order is that of one process
            seed = int(torch.empty((), dtype=torch.int64).random_().item())
            generator = torch.Generator()
            generator.manual_seed(from_first_instance(seed, "the order of a DataLoader's samples"))
        return iter(torch.randperm(len(self.dataset), generator=generator).tolist())

    def __len__(self) -> int:
        return len(self.dataset)


class InstanceRows(torch.utils.data.IterableDataset[Any]):
    """The samples of a data set without indices that are of this instance."""

    def __init__(self, source: Iterable[Any], share: RowShare) -> None:
        self.source, self.share = source, share

    def __iter__(self) -> Iterator[Any]:
        for (_, own), row in zip(self.share.positions(None), self.source, strict=False):
            if own:
                yield row

    def __len__(self) -> int:
        return self.share.count(len(self.source))  # type: ignore[arg-type]
