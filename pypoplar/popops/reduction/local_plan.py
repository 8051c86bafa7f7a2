"""What tiles do with what they hold before anything is exchanged: reduce it wholly, or into a part for each worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.popops.reduction.reduce_cycles import ReduceKind, pieces_cycles, vertex_worker_cycles
from pypoplar.popops.reduction.reduce_plan import WORD, ReducePlan, Results, Spread, plan_stages, sync_cycles
from pypoplar.popops.reduction.tile_holdings import Holding
from pypoplar.popops.reduction.work_split import PiecesOfResults, WorkerPieces, output_share, worker_pieces
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
    complete: frozenset[int]  # numbers of holdings
    pieces: tuple[WorkerPieces, ...] | None
    type: ElementType  # of partial results
    cycles: int  # of these vertices
    after: ReducePlan | None

    @property
    def all_cycles(self) -> int:
        return self.cycles + (self.after.cycles if self.after else 0)


def plan_local(
    target: Target, operation: str, holdings: Sequence[Holding], places: int, types: ReduceTypes, results: Results
) -> LocalPlan:
    """The cheapest of these ways, with what follows each. An output has so many `places` in all."""
    plans = []
    most = max(holding.places for holding in holdings)
    if most > 1 or places == 1:
        plans.append(_whole(target, operation, holdings, places, types, results))
    if most > 1 and _outputs_of_tile(holdings) <= FEW_OUTPUTS:
        plans.append(_split(target, operation, holdings, types, results))
    side_by_side = all(holding.inner == holding.outputs or holding.places == 1 for holding in holdings)
    if places > 1 and most <= FEW and side_by_side:
        plans.append(_untouched(target, operation, holdings, places, types, results))
    return min(plans, key=lambda plan: plan.all_cycles)


def _outputs_of_tile(holdings: Sequence[Holding]) -> int:
    """The most outputs of a tile, those side by side as one."""
    outputs: Counter[int] = Counter()
    for holding in holdings:
        outputs[holding.tile] += holding.outputs // holding.inner * len(holding.rows)
    return max(outputs.values())


def _untouched(
    target: Target, operation: str, holdings: Sequence[Holding], places: int, types: ReduceTypes, results: Results
) -> LocalPlan:
    """Everything is taken to other tiles as it is."""
    outputs = max(holding.end for holding in holdings)
    adjacent, width = max(holding.places for holding in holdings), max(holding.outputs for holding in holdings)
    spread = Spread(places, outputs, adjacent, width, holdings[0].rows[0].type)
    after = plan_stages(target, operation, spread, (types.inter_tile, types.wide), results)
    return LocalPlan(False, frozenset(), None, spread.type, 0, after)


def _whole(
    target: Target, operation: str, holdings: Sequence[Holding], places: int, types: ReduceTypes, results: Results
) -> LocalPlan:
    complete = frozenset(_complete(holdings, places, results.type))
    open_ = [holding for number, holding in enumerate(holdings) if number not in complete]
    alone = len({holding.tile for holding in open_}) == len(open_)
    between = types.inter_tile if alone else types.wide
    kinds = [
        ReduceKind(operation, holdings[0].rows[0].type, result, update)
        for result, update in ((between, False), (results.type, results.update))
    ]
    cycles: Counter[int] = Counter()
    known: dict[tuple[object, ...], int] = {}  # most holdings are alike
    for number, holding in enumerate(holdings):
        form = (number in complete, holding.outputs, holding.inner, holding.places, len(holding.rows))
        if form not in known:
            known[form] = _whole_cycles(target, kinds[form[0]], holding)
        cycles[holding.tile] += known[form]
    after = None
    if open_:
        output, width = np.array([(holding.output, holding.outputs) for holding in open_], np.int64).T
        spread = _spread(output, width, 1, between)
        after = _after(target, operation, spread, types, results)
    return LocalPlan(True, complete, None, between, _tile_cycles(target, cycles), after)


def _whole_cycles(target: Target, kind: ReduceKind, holding: Holding) -> int:
    """Of the busiest worker of a vertex that reduces a holding wholly."""
    rows = len(holding.rows)
    share = min(output_share(target, holding.outputs, holding.inner, kind.result), holding.outputs)
    return vertex_worker_cycles(kind, share, holding.inner, ceiling(holding.places, rows), rows)


def _complete(holdings: Sequence[Holding], places: int, result: ElementType) -> list[int]:
    """Holdings with all of their outputs; where results are smaller than a word, only one of a tile."""
    complete = [number for number, holding in enumerate(holdings) if holding.places == places]
    of_tile = Counter(holdings[number].tile for number in complete)
    return [number for number in complete if result.size >= WORD or of_tile[holdings[number].tile] == 1]


def _split(target: Target, operation: str, holdings: Sequence[Holding], types: ReduceTypes, results: Results) -> LocalPlan:
    pieces = tuple(worker_pieces(target, holdings))
    cycles: Counter[int] = Counter()
    kind = ReduceKind(operation, pieces[0].rows[0].type, types.wide)
    for piece in pieces:
        sizes = tuple(row.size for row in piece.rows)
        if piece.outputs is None:
            cycles[piece.tile] += pieces_cycles(kind, sizes, piece.share)
        else:
            places = sum(sizes) // piece.outputs
            regions = ceiling(piece.share * len(sizes), places)
            partials = ceiling(piece.share, regions)
            cycles[piece.tile] += vertex_worker_cycles(kind, piece.outputs, piece.inner, partials, regions)
    parts = PiecesOfResults.of(pieces)
    adjacent = max(len(piece.first_outputs) if piece.outputs else 1 for piece in pieces)
    spread = _spread(parts.output, parts.width, adjacent, types.wide)
    after = _after(target, operation, spread, types, results)
    return LocalPlan(True, frozenset(), pieces, types.wide, _tile_cycles(target, cycles), after)


def _after(target: Target, operation: str, spread: Spread, types: ReduceTypes, results: Results) -> ReducePlan:
    operation = "ADD" if operation == "SQUARE_ADD" else operation
    return plan_stages(target, operation, spread, (types.inter_tile, types.wide), results)


def _tile_cycles(target: Target, worker: Counter[int]) -> int:
    return sync_cycles(target) + target.getNumWorkerContexts() * max(worker.values())


def _spread(begin: Int64s, count: Int64s, adjacent: int, type: ElementType) -> Spread:
    """How partial results lie that are there for runs of outputs, first and count."""
    bounds, place = np.unique(np.concatenate((begin, begin + count)), return_inverse=True)
    depth = np.zeros(len(bounds), np.int64)
    np.add.at(depth, place, np.repeat([1, -1], len(begin)))
    depth = np.cumsum(depth)[:-1]
    outputs = int(np.diff(bounds)[depth > 0].sum())
    return Spread(int(depth.max()), outputs, min(adjacent, int(depth.max())), int(count.max()), type)
