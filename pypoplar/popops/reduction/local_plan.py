"""What tiles do with what they hold before anything is exchanged: reduce it wholly, or into a part for each worker."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import opens
from pypoplar.popops.reduction.reduce_cycles import ReduceKind, pieces_cycles, vertex_worker_cycles
from pypoplar.popops.reduction.reduce_plan import WORD, ReducePlan, Results, Spread, plan_stages, sync_cycles
from pypoplar.popops.reduction.tile_holdings import TileHoldings
from pypoplar.popops.reduction.work_split import WorkerPieces, output_share, worker_pieces
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import ElementType

FEW_OUTPUTS = 48  # of a tile, up to which workers may share each
FEW = 16  # places of an output on a tile up to which they may go to other tiles as they are


@frozen
class ReduceTypes:
    """The types in which vertices combine, in which partial results go from tile to tile, and those of several workers."""

    in_vertex: ElementType
    inter_tile: ElementType
    wide: ElementType


@frozen(eq=False)
class LocalPlan:
    """The vertices of the tiles that hold something, and the plan of what comes after them, None if nothing does.

    Unless it `reduces`, there are none. Without `pieces` every tile reduces its holdings wholly, and `complete` ones are results.
    """

    reduces: bool
    complete: Bools  # which of the holdings
    pieces: WorkerPieces | None
    type: ElementType  # of partial results
    cycles: int  # of these vertices
    after: ReducePlan | None

    @property
    def all_cycles(self) -> int:
        return self.cycles + (self.after.cycles if self.after else 0)


def plan_local(
    target: Target, operation: str, holdings: TileHoldings, places: int, types: ReduceTypes, results: Results
) -> LocalPlan:
    """The cheapest of these ways, with what follows each. An output has so many `places` in all."""
    plans = []
    most = int(holdings.places.max())
    if most > 1 or places == 1:
        plans.append(_whole(target, operation, holdings, places, types, results))
    if most > 1 and _outputs_of_tile(holdings) <= FEW_OUTPUTS:
        plans.append(_split(target, operation, holdings, types, results))
    side_by_side = bool(((holdings.inner == holdings.outputs) | (holdings.places == 1)).all())
    if places > 1 and most <= FEW and side_by_side:
        plans.append(_untouched(target, operation, holdings, places, types, results))
    return min(plans, key=lambda plan: plan.all_cycles)


def _outputs_of_tile(holdings: TileHoldings) -> int:
    """The most outputs of a tile, those side by side as one."""
    return _most(holdings.tile, holdings.outputs // holdings.inner * holdings.rows.count)


def _most(tile: Int64s, numbers: Int64s) -> int:
    """The largest sum of the numbers of a tile. Entries are in the order of tiles."""
    return int(np.add.reduceat(numbers, np.flatnonzero(opens(tile))).max())


def _untouched(
    target: Target, operation: str, holdings: TileHoldings, places: int, types: ReduceTypes, results: Results
) -> LocalPlan:
    """Everything is taken to other tiles as it is."""
    adjacent, width = int(holdings.places.max()), int(holdings.outputs.max())
    spread = Spread(places, int(holdings.end.max()), adjacent, width, holdings.rows.type)
    after = plan_stages(target, operation, spread, (types.inter_tile, types.wide), results)
    return LocalPlan(False, np.zeros(len(holdings), bool), None, spread.type, 0, after)


def _whole(target: Target, operation: str, holdings: TileHoldings, places: int, types: ReduceTypes, results: Results) -> LocalPlan:
    complete = _complete(holdings, places, results.type)
    open_ = holdings.of(np.flatnonzero(~complete))
    alone = bool(opens(open_.tile).all())
    between = types.inter_tile if alone else types.wide
    kinds = [
        ReduceKind(operation, holdings.rows.type, result, update)
        for result, update in ((between, False), (results.type, results.update))
    ]
    columns = np.column_stack((complete, holdings.outputs, holdings.inner, holdings.places, holdings.rows.count))
    forms, form = np.unique(columns, axis=0, return_inverse=True)  # most holdings are alike
    cycles = np.array([_whole_cycles(target, kinds[own], *holding) for own, *holding in forms.tolist()], np.int64)
    after = None
    if len(open_):
        after = _after(target, operation, _spread(open_.output, open_.outputs, 1, between), types, results)
    return LocalPlan(True, complete, None, between, _tile_cycles(target, holdings.tile, cycles[form.reshape(-1)]), after)


def _whole_cycles(target: Target, kind: ReduceKind, outputs: int, inner: int, places: int, rows: int) -> int:
    """Of the busiest worker of a vertex that reduces a holding wholly."""
    share = min(output_share(target, outputs, inner, kind.result), outputs)
    return vertex_worker_cycles(kind, share, inner, ceiling(places, rows), rows)


def _complete(holdings: TileHoldings, places: int, result: ElementType) -> Bools:
    """Which holdings have all of their outputs; where results are smaller than a word, only one of a tile."""
    complete: Bools = holdings.places == places
    if result.size < WORD:
        complete &= np.bincount(holdings.tile, complete)[holdings.tile] == 1
    return complete


def _split(target: Target, operation: str, holdings: TileHoldings, types: ReduceTypes, results: Results) -> LocalPlan:
    pieces = worker_pieces(target, holdings)
    kind = ReduceKind(operation, pieces.rows.type, types.wide)
    cycles = np.empty(len(pieces.tile), np.int64)
    for alike in pieces.alike:
        cycles[alike] = _piece_cycles(kind, pieces, int(alike[0]))
    parts = pieces.results
    adjacent = int(np.where(pieces.outputs > 0, pieces.count, 1).max())
    after = _after(target, operation, _spread(parts.output, parts.width, adjacent, types.wide), types, results)
    none = np.zeros(len(holdings), bool)
    return LocalPlan(True, none, pieces, types.wide, _tile_cycles(target, pieces.tile, cycles), after)


def _piece_cycles(kind: ReduceKind, pieces: WorkerPieces, vertex: int) -> int:
    """Of the busiest worker of one of the vertices."""
    rows = pieces.rows
    sizes = tuple(rows.size[rows.first[vertex] : rows.first[vertex + 1]].tolist())
    share, outputs = int(pieces.share[vertex]), int(pieces.outputs[vertex])
    if not outputs:
        return pieces_cycles(kind, sizes, share)
    regions = ceiling(share * len(sizes), sum(sizes) // outputs)
    return vertex_worker_cycles(kind, outputs, int(pieces.inner[vertex]), ceiling(share, regions), regions)


def _after(target: Target, operation: str, spread: Spread, types: ReduceTypes, results: Results) -> ReducePlan:
    operation = "ADD" if operation == "SQUARE_ADD" else operation
    return plan_stages(target, operation, spread, (types.inter_tile, types.wide), results)


def _tile_cycles(target: Target, tile: Int64s, worker: Int64s) -> int:
    """Of the tile whose vertices take longest, by the cycles of the busiest worker of each."""
    return sync_cycles(target) + target.getNumWorkerContexts() * _most(tile, worker)


def _spread(begin: Int64s, count: Int64s, adjacent: int, type: ElementType) -> Spread:
    """How partial results lie that are there for runs of outputs, first and count."""
    bounds, place = np.unique(np.concatenate((begin, begin + count)), return_inverse=True)
    depth = np.zeros(len(bounds), np.int64)
    np.add.at(depth, place, np.repeat([1, -1], len(begin)))
    depth = np.cumsum(depth)[:-1]
    outputs = int(np.diff(bounds)[depth > 0].sum())
    return Spread(int(depth.max()), outputs, min(adjacent, int(depth.max())), int(count.max()), type)
