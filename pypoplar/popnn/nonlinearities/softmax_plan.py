"""Which way a softmax takes: a worker for each row, or operations on elements and reductions where the elements lie.

Both are priced by the formulas of the vertices, the syncs, and the bytes and pieces of the busiest tile.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.nonlinearities.nonlinearity_cycles import softmax_slots
from pypoplar.popnn.row_vertices import RowGroups
from pypoplar.popops.elements.element_cycles import SUPERVISOR, UNARY_START
from pypoplar.popops.elements.loop_cycles import loop_round
from pypoplar.popops.reduction.local_plan import ReduceTypes, plan_local
from pypoplar.popops.reduction.reduce_plan import MESSAGE, Results, sync_cycles
from pypoplar.popops.reduction.tile_holdings import holdings_of
from pypoplar.poputil.cycles import ceiling, share_of_worker
from pypoplar.poputil.placement.tiles_of_elements import TileRegions, mapped_pieces
from pypoplar.types import FLOAT, HALF

SHORT = 24  # elements of a row up to which nobody else can be quicker: the syncs alone take longer


@frozen
class SoftmaxSteps:
    """What spreading takes: reductions, and operations on elements."""

    reductions: tuple[str, ...]
    operations: tuple[str, ...]


def rows_are_cheaper(graph: Graph, rows: Tensor, out: Tensor, groups: RowGroups, steps: SoftmaxSteps) -> bool:
    """Whether a worker for each row takes no more cycles than spreading."""
    if rows.dim(1) <= SHORT and int(groups.sizes.max()) == 1:
        return True
    return _rows_cycles(graph, out, groups, "MAX" in steps.reductions) <= _spread_cycles(graph, rows, out, steps)


def _rows_cycles(graph: Graph, out: Tensor, groups: RowGroups, stable: bool) -> int:
    """A compute set, and the exchange that gathers rows on their tiles and takes the results back."""
    target, count = graph.getTarget(), out.dim(1)
    workers = target.getNumWorkerContexts()
    slots = int(groups.sizes.max()) * softmax_slots(out.elementType(), count, stable)
    of_tile = np.bincount(groups.tile, groups.sizes)
    moved = int(of_tile.max()) * count * out.elementType().size
    begin, end, tile = mapped_pieces(graph, out)
    own = np.zeros(target.getNumTiles(), np.int64)
    np.add.at(own, tile, end - begin)
    holds = own[groups.tile].min() >= of_tile[groups.tile].max() * count
    exchanged = 0 if holds else 2 * (moved // target.getExchangeBytesPerCycle() + MESSAGE) + sync_cycles(target)
    return sync_cycles(target) + workers * slots + exchanged


def _spread_cycles(graph: Graph, rows: Tensor, out: Tensor, steps: SoftmaxSteps) -> int:
    """Reductions by their plans; operations with the sums of rows that each tile gathers, for each of its elements."""
    target, type = graph.getTarget(), out.elementType()
    most = TileRegions.of(graph, out).most()
    holdings = holdings_of(graph, out, [1])
    cycles = 0
    for operation in steps.reductions:
        result = type if operation == "MAX" else FLOAT
        types = ReduceTypes(FLOAT, result, FLOAT)
        cycles += plan_local(target, operation, holdings, out.dim(1), types, Results(result)).all_cycles
    share = share_of_worker(most, target)
    workers = target.getNumWorkerContexts()
    code = (FLOAT if type is HALF else type).code
    for operation in steps.operations:
        cycles += workers * loop_round(operation, code, "plain").of(share)
    gathered = ceiling(most * FLOAT.size, target.getExchangeBytesPerCycle())
    return cycles + len(steps.reductions) * (2 * sync_cycles(target) + gathered + workers * (SUPERVISOR + UNARY_START))
