"""Which plan of lookups and updates takes the fewest cycles, by the formulas of the codelets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from attrs import frozen

from pypoplar.popops.slicing.slice_cycles import (
    expected_in_range,
    multi_slice_cycles,
    select_part_cycles,
    update_op_cycles,
)
from pypoplar.popops.slicing.slice_options import SliceOptions
from pypoplar.popops.slicing.slice_plan import PlannedTable, SlicePartition
from pypoplar.popops.slicing.sliceable_layout import ATOM
from pypoplar.poputil.cycles import ceiling, share_of_worker
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.types import ElementType

PIECE = 3  # cycles that a piece of an exchange takes at least
INDEX = 4  # bytes
VECTOR = 8  # bytes that are copied at once
STEPS = 3  # whose syncs may take longer than the model knows


def widths(size: int) -> list[int]:
    """The sizes of the largest part into which so many can be split, from all to one."""
    return sorted(
        {ceiling(size, parts) for parts in range(1, int(size**0.5) + 1)} | set(range(1, int(size**0.5) + 2)), reverse=True
    )


@frozen
class SliceCost:
    """What a partition costs: cycles of a lookup and of an update, and bytes on a tile while they run."""

    lookup: int
    update: int
    memory: int


@frozen
class SliceModel:
    """What lookups and updates of a table cost on a target."""

    target: Target
    type: ElementType
    table: PlannedTable
    options: SliceOptions

    @property
    def sync(self) -> int:
        """Cycles between two steps."""
        return int(self.target.getMaxIPUSyncDelay())

    def exchange(self, bytes: int, pieces: int) -> int:
        """Cycles in which a tile receives so much."""
        return self.sync + max(ceiling(bytes, self.target.getExchangeBytesPerCycle()), PIECE * pieces) if bytes else self.sync

    def cost(self, split: SlicePartition) -> SliceCost:
        """What a partition costs."""
        table, workers = self.table, self.target.getNumWorkerContexts()
        lookups = max(table.lookups, 1)
        results = ceiling(ceiling(ceiling(lookups, split.lookupSerialSplit), split.lookupParallelSplit), split.slicedDimSplit)
        searched = min(results * split.slicedDimSplit, lookups)
        groups, entries = ceiling(table.groups, split.groupSplit), ceiling(table.entries, split.slicedDimSplit)
        grains = ceiling(ceiling(table.outputSize, split.unslicedGrainSize), split.unslicedDimSplit)
        width = min(grains * split.unslicedGrainSize, table.outputSize)
        size, parts = self.type.size, ceiling(table.entries, entries)
        passes = ceiling(lookups, results * split.slicedDimSplit * split.lookupParallelSplit)
        indices = groups * searched * INDEX
        moved = groups * entries * width * size if split.lookupParallelSplit > 1 else 0
        lookup = self.exchange(indices + moved, split.lookupParallelSplit if moved else 1)
        share = share_of_worker(searched, self.target)
        in_range = expected_in_range(share, entries, table.entries, table.uniform)
        divided = searched == 1 and width * size % ATOM == 0
        lookup += workers * groups * multi_slice_cycles(self.target, self.type, width, share, in_range, divided=divided)
        memory = indices + moved
        if parts > 1:
            gathered = groups * parts * results * width * size
            lookup += self.exchange(gathered + groups * results * INDEX, groups * parts)
            lookup += workers * groups * select_part_cycles(self.target, self.type, width, share_of_worker(results, self.target))
            memory += gathered + groups * searched * width * size
        update, brought = self._update(groups, entries, _widths_of_tiles(table.outputSize, width), searched, parts)
        if not table.forSlice:
            return SliceCost(0, update * passes, brought)
        return SliceCost(lookup * passes, update * passes, max(memory, brought))

    def held(self, split: SlicePartition) -> int:
        """Bytes of the table that a tile has."""
        table = self.table
        groups, entries = ceiling(table.groups, split.groupSplit), ceiling(table.entries, split.slicedDimSplit)
        grains = ceiling(ceiling(table.outputSize, split.unslicedGrainSize), split.unslicedDimSplit)
        return ceiling(groups * entries * grains * split.unslicedGrainSize * self.type.size, split.lookupParallelSplit)

    def _update(self, groups: int, entries: int, widths: Sequence[int], rows: int, parts: int) -> tuple[int, int]:
        """Cycles of an update by so many rows, of which tiles have `widths`, and bytes that a tile holds for it."""
        if self.table.operation is None:
            return 0, 0
        wide = self.type if self.table.operation != "add" else self.options.partials or self.type
        slowest = max(self._update_of_worker(wide, entries, width, rows) for width in widths)
        brought = groups * rows * (INDEX + widths[0] * wide.size)
        pieces = groups * (parts + 1)
        return self.exchange(brought, pieces) + self.target.getNumWorkerContexts() * groups * slowest, brought

    def _update_of_worker(self, wide: ElementType, entries: int, width: int, rows: int) -> int:
        """Cycles of the busiest worker of a tile."""
        table, operation = self.table, self.table.operation
        atom = next(count for count in (1, 2, 4) if count * width * wide.size % ATOM == 0)
        share = ceiling(share_of_worker(entries, self.target), atom) * atom
        in_range = expected_in_range(rows, share, table.entries, table.uniform)
        if operation == "none":
            return multi_slice_cycles(self.target, wide, width, rows, in_range, update=True)
        return update_op_cycles(wide, width, rows, in_range, scaled=operation == "add", in_order=table.sorted)


@lru_cache(256)
def cheapest_partition(target: Target, type: ElementType, table: PlannedTable, options: SliceOptions) -> SlicePartition:
    """The partition that takes the fewest cycles of those that fit in memory; if none does, the one that takes least of it.

    It takes no more for a lookup, and no more for an update, than a table without a plan does.
    A lookup and its gradient ask the same.
    """
    model = SliceModel(target, type, table, options)
    search = PartitionSearch(model, unplanned_partition(target, table))
    serial = options.constraints.get("lookupSerialSplit", 1)
    best = search.best_of(serial)
    while best is not None and best[0][0] > 0 and "lookupSerialSplit" not in options.constraints and serial < table.lookups:
        serial = min(2 * serial, table.lookups)
        best = min(filter(None, (best, search.best_of(serial))), key=lambda pair: pair[0])
    if best is not None:
        return best[1]
    splits = list(_partitions(target, type, table, options, serial))
    if not splits:
        constraints = ", ".join(f"{name} {split}" for name, split in options.constraints.items())
        raise PoplibsError(
            f"popops.embedding.plan: no plan for {table} on {target.getNumTiles()} tiles meets the constraints {constraints}"
        )
    return min(splits, key=model.held)  # a table that no machine of this size holds


@frozen
class PartitionSearch:
    """The search among partitions with one number of passes; those whose table does not fit on the tiles are left out."""

    model: SliceModel
    unplanned: SlicePartition

    def best_of(self, serial: int) -> tuple[tuple[float, ...], SlicePartition] | None:
        """The best partition, after what it is judged by: bytes too many, whether it is dearer than no plan, cycles, tiles."""
        model = self.model
        target, table, options = model.target, model.table, model.options
        plain = model.cost(self.unplanned) if table.groups == 1 and not options.constraints else None
        best: tuple[tuple[float, ...], SlicePartition] | None = None
        for split in _partitions(target, model.type, table, options, serial):
            held = model.held(split)
            if held > target.getBytesPerTile():
                continue
            cost = model.cost(split)
            crowded = max(cost.memory - target.getBytesPerTile() * options.memory, cost.memory + held - target.getBytesPerTile(), 0)
            dearer = plain is not None and split != self.unplanned and self._is_dearer(cost, plain)
            key = (crowded, float(dearer), cost.update + cost.lookup, _tiles(split))
            if best is None or key < best[0]:
                best = key, split
        return best

    def _is_dearer(self, cost: SliceCost, plain: SliceCost) -> bool:
        """Whether a lookup or an update may take more cycles than without a plan; syncs may take longer than the model knows."""
        target = self.model.target
        slack = STEPS * (target.getMaxIPUSyncDelay() - target.getMinIPUSyncDelay())
        pairs = ((cost.lookup, plain.lookup), (cost.update, plain.update))
        return any(cycles + slack > without for cycles, without in pairs if without)


def unplanned_partition(target: Target, table: PlannedTable) -> SlicePartition:
    """The partition of a table that `createSliceableTensor` makes without a plan."""
    width = ceiling(table.outputSize, target.getNumTiles())
    return SlicePartition(1, 1, 1, 1, ceiling(table.outputSize, width), width)


def _widths_of_tiles(size: int, width: int) -> tuple[int, ...]:
    """The widths into which a size is cut: that of most parts, and that of the last one."""
    return (width, size % width) if size % width else (width,)


def _tiles(split: SlicePartition) -> int:
    return split.groupSplit * split.lookupParallelSplit * split.slicedDimSplit * split.unslicedDimSplit


def _partitions(
    target: Target, type: ElementType, table: PlannedTable, options: SliceOptions, serial: int
) -> Iterator[SlicePartition]:
    """All partitions in which every part has something, and that meet the constraints."""
    fixed = options.constraints

    def splits(name: str, size: int) -> list[int]:
        return [fixed[name]] if name in fixed else sorted({ceiling(size, width) for width in widths(size)})

    tiles, lookups = target.getNumTiles(), max(table.lookups, 1)
    grains = {min(table.outputSize, max(VECTOR // type.size, 1)), min(table.outputSize, ceiling(table.outputSize, tiles))}
    parallel = splits("lookupParallelSplit", ceiling(lookups, serial)) if table.operation is None else [1]
    apart = table.outputSize * type.size % ATOM != 0
    groups = [table.groups] if apart and table.groups <= tiles else splits("groupSplit", table.groups)
    for grain in [fixed["unslicedGrainSize"]] if "unslicedGrainSize" in fixed else sorted(grains):
        units = splits("unslicedDimSplit", ceiling(table.outputSize, grain))
        for group in groups:
            for unit in units:
                for entry in splits("slicedDimSplit", table.entries):
                    if group * unit * entry > tiles:
                        break
                    for lookup in parallel:
                        if group * unit * entry * lookup > tiles:
                            break
                        yield SlicePartition(group, serial, lookup, entry, unit, grain)
