"""Worker cycles and flops of the vertices of products, by the formulas of PopLibs' PerformanceEstimation.

The planner calls the same functions as the codelets' estimators.
"""

from __future__ import annotations

from pypoplar.codelet.operations.matrix_unit import MULTIPLY_ACCUMULATE
from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poputil.cost_conventions import MULTIPLY_ADD, sum_flops
from pypoplar.poputil.cycles import Count, by_type, ceiling, share_of_worker
from pypoplar.target import Target
from pypoplar.types import HALF, ElementType

ENTRY = 12  # entering and leaving a vertex
WORKERS = 6


def dot_products_cycles(rows: int, length: int, type: ElementType) -> int:
    """getDenseDotProductCycles for each row: two floats or four halves in a cycle, three cycles for what is left over."""
    rounds, rest = divmod(length, by_type(type, 2, 4))
    return ENTRY + rows * (by_type(type, 7, 6) + rounds + (3 if rest else 0))


def block_product_cycles(target: Target, rows: Count, depth: Count, columns: Count, type: ElementType) -> Count:
    """A worker's part of a block product, as ConvPartial1x1Out: the outputs are zeroed in the first of the input groups only.

    `rows` and `columns` are the worker's; the supervisor's loading of the weights is included.
    """
    price = MULTIPLY_ACCUMULATE.price(target.architecture, type.code)
    cycles: Count = price.slots(rows, depth, columns, zeroes=True)
    return cycles


def outer_product_cycles(elements: int, type: ElementType) -> int:
    """getOuterProductCycleEstimate of a worker's elements."""
    vectors = ceiling(elements, by_type(type, 2, 4))
    return 42 + vectors - 3 if vectors >= 3 else 48


def sum_cycles(partials: int) -> int:
    """A reduction with a single output."""
    return 17 + 2 * (partials // 4) + partials % 4


def reduce_add_cycles(outputs: Count, partials: Count, type: ElementType, result: ElementType) -> Count:
    """getReduceCycleEstimate of FLOAT or HALF partials; `outputs` are the tile's, of which six workers take whole vectors.

    What is left over makes smaller vectors; where they keep not all workers busy, they are a shorter loop.
    """
    vector, extra = by_type(type, 4, 8), by_type(type, 13, 11)
    left = outputs % vector
    vectors = outputs // vector + left % 2 + left // 2 % 2 + left // 4
    rounds, beyond = vectors // WORKERS, vectors % WORKERS > 0
    uneven = beyond & (left > 0)
    loop = 3 * partials + by_type(type, 7, 9) - (result is HALF)
    cycles: Count = 32 + loop * (rounds + (beyond & (left == 0))) + uneven * (2 * partials + extra)
    return cycles


def block_product_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of blocks of several groups, one after the other."""
    type = _type_of(vertex, "a")
    groups, depth, columns = (int(vertex.value(name)) for name in ("groups", "depth", "columns"))
    rows = vertex.fieldSize("out") // (groups * int(vertex.value("stride")))
    share = min(columns, int(vertex.value("columnShare")))
    each = block_product_cycles(vertex.target, ceiling(rows, int(vertex.value("rowGroups"))), depth, share, type)
    return VertexPerfEstimate(groups * int(each), MULTIPLY_ADD * groups * rows * depth * columns)


def dot_products_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a row of `a` for each element of `out`."""
    rows, length = vertex.fieldSize("out"), vertex.fieldSize("b")
    return VertexPerfEstimate(dot_products_cycles(rows, length, _type_of(vertex, "b")), MULTIPLY_ADD * rows * length)


def outer_product_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of a number times a piece of a row."""
    elements = vertex.fieldSize("out")
    cycles = outer_product_cycles(share_of_worker(elements, vertex.target), _type_of(vertex, "b"))
    return VertexPerfEstimate(cycles, elements)


def sum_partials_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of rows of partial products, a sum each."""
    rows = vertex.getFieldInfo("partials")
    sizes = [rows.getSizeAtIndex(row) for row in range(rows.size())]
    return VertexPerfEstimate(sum(map(sum_cycles, sizes)), sum(map(sum_flops, sizes)))


def reduce_add_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of the sum of rows."""
    outputs, partials = vertex.fieldSize("out"), vertex.fieldSize("partials")
    cycles = int(reduce_add_cycles(outputs, partials, _type_of(vertex, "partials"), _type_of(vertex, "out")))
    return VertexPerfEstimate(cycles, outputs * sum_flops(partials))


def _type_of(vertex: VertexIntrospector, field: str) -> ElementType:
    return vertex.getFieldInfo(field).elementType()
