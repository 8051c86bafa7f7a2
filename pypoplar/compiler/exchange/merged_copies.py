"""Which copies are one step: successive ones that do not depend on each other, as their elements lie in the tiles' memories.

Two copies depend on each other if one of them reads or writes a byte that the other writes. Memory is laid out before, so that
merging costs none. A run of copies (see `copy_runs`) is cut where a copy depends on one of the step that it would join. Stream
copies share a sync with the host if each has a stream of its own, and all together are not larger than the option
`opt.maxCopyMergeSize` allows. Copies of remote buffers are steps of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.arrays.interval_algebra import LARGEST_KEY, keys, overlay, subtract, touched_strands, union
from pypoplar.arrays.interval_conflicts import KeyAccesses, nearest_conflicts
from pypoplar.compiler.control.copy_runs import CopyKind, CopyRun, PlacedCopy, copy_kind, copy_runs
from pypoplar.compiler.control.operation_tree import NO_POSITION, OperationTree
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.compiler.exchange_plan import Homes
from pypoplar.graph.host_links import DataStream
from pypoplar.graph.tensor import Tensor
from pypoplar.options import EngineOptions
from pypoplar.program.copying import Copy

MOST_ELEMENTS = 1 << 20  # of the runs that are looked at together, and of the copies that are laid out together


@frozen(eq=False)
class MergedCopies:
    """Copies that are one step, in program order: a single one, or several that do not depend on each other."""

    kind: CopyKind
    copies: tuple[PlacedCopy, ...]

    @staticmethod
    def alone(copy: Copy) -> MergedCopies:
        """A copy that stands nowhere: what a rule from outside makes."""
        kind = copy_kind(copy)
        assert kind is not None
        return MergedCopies(kind, (PlacedCopy(copy, NO_POSITION),))

    def elements(self) -> int:
        """How many elements the copies have together."""
        return sum(_tensor(placed.copy).numElements() for placed in self.copies)


def merge_copies(tree: OperationTree, homes: Homes, options: EngineOptions) -> list[MergedCopies]:
    """The steps of all copies of some programs, by position."""
    steps: list[MergedCopies] = []
    runs: list[CopyRun] = []
    for run in copy_runs(tree):
        if options.merge_copies and len(run.copies) > 1 and run.kind is not CopyKind.REMOTE:
            runs.append(run)
        else:
            steps += [MergedCopies(run.kind, (placed,)) for placed in run.copies]
    places = _Places.of(homes)
    sizes = [sum(_tensor(placed.copy).numElements() for placed in run.copies) for run in runs]
    for portion in _portions(sizes, places.most):
        together = runs[portion]
        for run, latest in zip(together, _latest_conflicts(places, together), strict=True):
            steps += _cut(run, latest, options)
    return sorted(steps, key=lambda step: step.copies[0].position)


def _cut(run: CopyRun, latest: Sequence[int], options: EngineOptions) -> Iterator[MergedCopies]:
    """The steps of a run, each as long as it may be. `latest` is the last copy before each on which it depends, or less than 0."""
    begin = size = 0
    streams: set[str] = set()
    between_tensors = run.kind is CopyKind.TENSORS
    for number, placed in enumerate(run.copies):
        if between_tensors:  # which nothing but dependence cuts
            if latest[number] >= begin < number:
                yield MergedCopies(run.kind, run.copies[begin:number])
                begin = number
            continue
        stream, tensor = _stream_of(placed.copy), _tensor(placed.copy)
        bytes = tensor.numElements() * tensor.elementType().size
        alone = stream is not None and (stream in streams or size + bytes > options.merged_stream_bytes)
        if number > begin and (alone or latest[number] >= begin):
            yield MergedCopies(run.kind, run.copies[begin:number])
            begin, size, streams = number, 0, set()
        size += bytes
        if stream is not None:
            streams.add(stream)
    yield MergedCopies(run.kind, run.copies[begin:])


# Dependence


@frozen(eq=False)
class _Places:
    """Numbers for the bytes of all tiles, the tiles' memories one after the other."""

    homes: Homes
    span: int  # of a tile's memory, which touches no other

    @staticmethod
    def of(homes: Homes) -> _Places:
        return _Places(homes, int(homes.tile_bytes.max(initial=0)) + 1)

    @property
    def all(self) -> int:
        """How many there are."""
        return len(self.homes.tile_bytes) * self.span

    @property
    def most(self) -> int:
        """How many copies' places can be told apart by 64-bit numbers."""
        return LARGEST_KEY // self.all - 1

    def touched(self, ends: Sequence[object], *, exactly: bool) -> tuple[Int64s, Int64s]:
        """The bytes of copies' ends, as a sorted disjoint list: those of the k-th are shifted by k times all places.

        If not `exactly`, what lies between the elements of a stride counts, too, which takes no look at each of them.
        """
        numbers, views = [], []
        for number, end in enumerate(ends):
            if isinstance(end, Tensor):
                numbers.append(number)
                views.append(end)
        if not views:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        runs = ViewRuns.of(views)
        owner, start, count, step = np.array(numbers)[runs.view], runs.start, runs.count, runs.step
        if not exactly:
            last = start + (count - 1) * step
            start, count, step = np.minimum(start, last), np.where(count > 0, np.abs(last - start) + 1, 0), np.ones_like(step)
        strands = touched_strands(owner, start, count, step)
        elements = int(self.homes.end.max(initial=0)) + 1  # one more, so that the elements of two copies do not touch
        begin = keys(strands.owner, strands.begin, elements)
        begin, end = union(begin, begin + strands.length)
        owner, element = np.divmod(begin, elements)
        parts = overlay(element, element + (end - begin), self.homes.begin, self.homes.end)
        home, size = parts.right, parts.end - parts.begin
        offset = self.homes.offset[home] + (parts.begin - self.homes.begin[home]) * self.homes.width[home]
        place = keys(owner[parts.left] * len(self.homes.tile_bytes) + self.homes.tile[home], offset, self.span)
        return union(place, place + size * self.homes.width[home])


def _latest_conflicts(places: _Places, runs: Sequence[CopyRun]) -> list[list[int]]:
    """For each copy of each run the last one before it with which it makes a pair of `nearest_conflicts`, or -1.

    These are enough to cut runs by: where a copy depends on one of its step, the first such copy makes a pair within the step.
    Runs in which nothing meets even by the bounds of strides, as most are, are not looked at element by element.
    """
    latest = _conflicts(places, runs, exactly=False)
    doubtful = [number for number, conflicts in enumerate(latest) if max(conflicts) >= 0]
    for number, conflicts in zip(doubtful, _conflicts(places, [runs[number] for number in doubtful], exactly=True), strict=True):
        latest[number] = conflicts
    return latest


def _conflicts(places: _Places, runs: Sequence[CopyRun], *, exactly: bool) -> list[list[int]]:
    copies = [placed.copy for run in runs for placed in run.copies]
    if not copies:
        return []
    first = offsets([len(run.copies) for run in runs])
    run_of = np.repeat(np.arange(len(runs)), np.diff(first))
    parts = []
    for portion in _portions([_tensor(copy).numElements() for copy in copies], places.most):
        group = copies[portion]
        writes = places.touched([copy.destination for copy in group], exactly=exactly)
        reads = subtract(*places.touched([copy.source for copy in group], exactly=exactly), *writes)
        for (begin, end), written in ((writes, True), (reads, False)):
            owner, place = np.divmod(begin, places.all)
            owner += portion.start
            place += run_of[owner] * places.all
            parts.append((owner, place, place + (end - begin), np.full(len(owner), written)))
    earlier, later = nearest_conflicts(KeyAccesses(*map(np.concatenate, zip(*parts, strict=True))))
    latest = np.full(len(copies), -1)
    np.maximum.at(latest, later, earlier)
    latest -= np.where(latest >= 0, first[run_of], 0)
    return [conflicts.tolist() for conflicts in np.split(latest, first[1:-1])]


def _portions(elements: Sequence[int], most: int) -> Iterator[slice]:
    """Cuts a list of things with so many elements each into portions of at most MOST_ELEMENTS, and of `most` things."""
    begin = total = 0
    for number, count in enumerate(elements):
        if number > begin and (total + count > MOST_ELEMENTS or number - begin >= most):
            yield slice(begin, number)
            begin, total = number, 0
        total += count
    if begin < len(elements):
        yield slice(begin, len(elements))


# Copies


def _tensor(copy: Copy) -> Tensor:
    """What a copy writes on the device, or reads if it writes to the host."""
    tensor = copy.destination if isinstance(copy.destination, Tensor) else copy.source
    assert isinstance(tensor, Tensor)
    return tensor


def _stream_of(copy: Copy) -> str | None:
    """The stream of a stream copy."""
    return next((end.handle() for end in (copy.source, copy.destination) if isinstance(end, DataStream)), None)
