"""Worker cycles and flops of the vertices of reductions: the forms of PopLibs' reduction/CycleEstimationFunctions.

The planner calls the same functions as the codelets' estimators.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from attrs import frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poputil.cycles import Count, ceiling
from pypoplar.types import BY_SPELLING, FLOAT, HALF, LONGLONG, ElementType

LANES: dict[ElementType, int] = {HALF: 8, FLOAT: 4}  # of the accumulators
LOGARITHM_LANES: dict[ElementType, int] = {HALF: 4, FLOAT: 2}
LONGLONG_CYCLES = {"ADD": 5, "MUL": 20}  # as device code prices them: no published form has this type
FLOPS = {"ADD": 1, "MUL": 1, "MIN": 1, "MAX": 1, "LOGICAL_AND": 0, "LOGICAL_OR": 0, "SQUARE_ADD": 2, "LOG_ADD": 6}
# Of halves, by type and operation of the result: without and with update.
STRIDED_STORE: dict[tuple[ElementType, str], tuple[int, int]] = {
    (HALF, "ADD"): (7, 9), (HALF, "MAX"): (7, 10), (HALF, "MIN"): (7, 10), (HALF, "LOG_ADD"): (7, 22),
    (FLOAT, "ADD"): (6, 11), (FLOAT, "MAX"): (7, 10), (FLOAT, "MIN"): (7, 10), (FLOAT, "LOG_ADD"): (7, 56),
}  # fmt: skip
DATA_PATH = 8  # bytes of a load


@frozen
class ReduceKind:
    """What a vertex reduces: the operation, the type of the partials, the type of the result, whether it updates."""

    operation: str
    type: ElementType
    result: ElementType
    update: bool = False

    @property
    def lanes(self) -> int:
        """Elements that the operation takes at once: the accumulators' for sums and the like, those of logarithms in C++ one."""
        return 1 if self.operation == "LOG_ADD" else LANES.get(self.type, 1)

    @property
    def strided_lanes(self) -> int:
        return self.lanes if self.operation != "LOG_ADD" else LOGARITHM_LANES.get(self.type, 1)

    @property
    def operation_cycles(self) -> int:
        if self.result is LONGLONG:
            return LONGLONG_CYCLES[self.operation]
        return 20 if self.operation == "LOG_ADD" else 1

    @property
    def strided_operation_cycles(self) -> int:
        if self.result is LONGLONG:
            return LONGLONG_CYCLES[self.operation]
        return 1 if self.operation != "LOG_ADD" else 13 if self.type is HALF else 23

    @property
    def loaded(self) -> int:
        """Elements of a load."""
        return max(DATA_PATH // self.type.size, 1)


def chosen(condition: Count | bool, first: Count, second: Count) -> Count:
    """`first` where the condition holds, else `second`: of numbers, or of many at once."""
    value: Count = second + condition * (first - second)
    return value


def single_output_cycles(kind: ReduceKind, partials: Count) -> Count:
    """getCyclesEstimateForSingleInput: one output of partials that lie side by side."""
    at_once = min(kind.lanes, kind.loaded)
    loads = max(kind.lanes // at_once, 1)
    vector = at_once * loads
    loop: Count = max(loads, kind.operation_cycles) * partials // vector + partials % vector
    return loop + 3 + 6 + 5 + 3 + (0 if kind.result is FLOAT else 5)


def contiguous_cycles(kind: ReduceKind, outputs: Count, partials: Count) -> Count:
    """getCycleEstimateReduceAllRegionsContinuous: outputs whose partials lie side by side, output by output."""
    at_once = min(kind.lanes, kind.loaded)
    cycles: Count = (
        kind.operation_cycles * outputs * (partials // at_once) + 2 * (partials & 1) + 12 * outputs + 10 + kind.update + 7
    )
    return cycles


def strided_cycles(kind: ReduceKind, outputs: Count, stride: Count, partials: Count, regions: int = 1) -> Count:
    """getCyclesEstimateForStridedReduce: outputs side by side, `stride` from row to row of partials; such regions in turn."""
    at_once = np.gcd(min(kind.strided_lanes, kind.loaded), stride)
    outer = 3 + _strided_store_cycles(kind) + regions * (3 + kind.strided_operation_cycles * (partials - 1))
    cycles: Count = 3 + 2 + 6 + 5 + outer * -(-outputs // at_once)
    return cycles


def _strided_store_cycles(kind: ReduceKind) -> int:
    """Ending the inner loop and storing."""
    if kind.type is HALF:
        plain, update = STRIDED_STORE.get((kind.result, kind.operation), STRIDED_STORE[kind.result, "ADD"])
        return 1 + (update if kind.update else plain)
    logarithms = kind.operation == "LOG_ADD"
    stored = ((13 if logarithms else 4) if kind.result is HALF else 27 if logarithms else 5) if kind.update else 2
    return (3 if kind.operation == "ADD" else 2) + stored


def worker_cycles(kind: ReduceKind, outputs: Count, inner: Count, partials: Count, regions: int = 1) -> Count:
    """What a worker takes for its outputs, each with so many partials in each of the regions."""
    single, several = single_output_cycles(kind, partials), contiguous_cycles(kind, outputs, partials)
    single, several = single + (regions - 1) * (single - 3), several + (regions - 1) * (several - 17)
    return chosen(inner > 1, strided_cycles(kind, outputs, inner, partials, regions), chosen(outputs == 1, single, several))


@lru_cache(1 << 14)
def vertex_worker_cycles(kind: ReduceKind, outputs: int, inner: int, partials: int, regions: int = 1) -> int:
    """`worker_cycles` of one vertex; there are many alike."""
    return int(worker_cycles(kind, outputs, inner, partials, regions))


@lru_cache(1 << 14)
def pieces_cycles(kind: ReduceKind, sizes: tuple[int, ...], share: int) -> int:
    """What the busiest worker takes for pieces of these sizes, of which each has `share`."""
    shares = (sizes[begin : begin + share] for begin in range(0, len(sizes), share))
    return max(sum(single_output_cycles(kind, size) for size in own) for own in shares)


def flops_of(kind: ReduceKind, outputs: int, elements: int) -> int:
    """Floating-point operations of a vertex: those of each element but the first of an output."""
    if not kind.type.is_floating:
        return 0
    return FLOPS[kind.operation] * max(elements + (outputs if kind.update else 0) - outputs, 0)


def _kind(vertex: VertexIntrospector, update: bool = False) -> ReduceKind:
    operation, type, _, result = vertex.templateArguments()
    return ReduceKind(str(operation), _type(type), _type(result), update)


def _type(argument: ElementType | str) -> ElementType:
    return argument if isinstance(argument, ElementType) else BY_SPELLING[argument]


def _elements(vertex: VertexIntrospector) -> list[int]:
    rows = vertex.getFieldInfo("partials")
    return [rows.getSizeAtIndex(row) for row in range(rows.size())]


def reduce_estimate(vertex: VertexIntrospector, update: bool = False) -> VertexPerfEstimate:
    """Of a vertex that reduces wholly; a worker has `share` outputs."""
    kind = _kind(vertex, update)
    outputs, inner, rows = vertex.fieldSize("out"), int(vertex.value("inner")), _elements(vertex)
    share = min(int(vertex.value("share")), outputs)
    places = ceiling(sum(rows), outputs * len(rows))
    cycles = vertex_worker_cycles(kind, share, inner, places, len(rows))
    return VertexPerfEstimate(cycles, flops_of(kind, outputs, sum(rows)))


def reduce_in_parts_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a vertex whose workers have `share` places of all outputs each."""
    kind, rows = _kind(vertex), _elements(vertex)
    outputs, inner = int(vertex.value("outputs")), int(vertex.value("inner"))
    places = sum(rows) // outputs
    share = min(int(vertex.value("share")), places)
    regions = ceiling(share * len(rows), places)
    parts = vertex.fieldSize("out") // outputs
    cycles = vertex_worker_cycles(kind, outputs, inner, ceiling(share, regions), regions)
    return VertexPerfEstimate(cycles, flops_of(kind, parts * outputs, sum(rows)))


def pieces_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a vertex that reduces pieces, `share` of them a worker: of the busiest."""
    kind, rows, share = _kind(vertex), _elements(vertex), int(vertex.value("share"))
    return VertexPerfEstimate(pieces_cycles(kind, tuple(rows), share), flops_of(kind, len(rows), sum(rows)))
