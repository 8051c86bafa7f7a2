"""Worker cycles of poplin's vertices, by the formulas of PopLibs' PerformanceEstimation; the planner uses the same ones."""

from __future__ import annotations

from itertools import product

from attrs import frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.poputil.cycles import Count, Estimator, by_type, ceiling, share_of_worker
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF, ElementType

ENTRY = 12  # entering and leaving a vertex


def dot_products_cycles(rows: int, length: int, type: ElementType) -> int:
    """getDenseDotProductCycles for each row: two floats or four halves in a cycle, three cycles for what is left over."""
    rounds, rest = divmod(length, by_type(type, 2, 4))
    return ENTRY + rows * (by_type(type, 7, 6) + rounds + (3 if rest else 0))


def block_product_cycles(rows: Count, depth: Count, columns: Count, type: ElementType) -> Count:
    """A worker's part of a block product, as ConvPartial1x1Out with the convolution units.

    `rows` and `columns` are the worker's. Weights of 8 x 16 floats, or 16 x 16 halves, are loaded at a time; a row of
    inputs then takes 16 or 4 cycles, 8 or 4 of which begin with the fourth row.
    """
    groups = ceiling(depth, by_type(type, 8, 16)) * ceiling(columns, 16)
    later: Count = abs(rows - 3) + (rows - 3)  # twice the rows beyond the third
    cycles: Count = groups * (24 + 8 * rows + 4 * later) + 34 if type is FLOAT else groups * (29 + 2 * later) + 18
    cycles = cycles + ENTRY - (rows < 2) * by_type(type, 0, 5)
    return cycles


def sum_cycles(partials: int) -> int:
    """A reduction with a single output."""
    return 17 + 2 * (partials // 4) + partials % 4


def reduce_add_cycles(outputs: Count, partials: Count) -> Count:
    """getReduceCycleEstimate; `outputs` are the tile's, of which six workers take four at a time, or the last few alone."""
    cycles: Count = 32 + (3 * partials + 7) * ceiling(outputs, 24) - (outputs < 4) * (partials - 6)
    return cycles


@frozen
class DotProductsCycles:
    type: ElementType

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        return dot_products_cycles(vertex.fieldSize("out"), vertex.fieldSize("b"), self.type)


@frozen
class OuterProductCycles:
    """getOuterProductCycleEstimate."""

    type: ElementType

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        vectors = ceiling(share_of_worker(vertex.fieldSize("out"), target), by_type(self.type, 2, 4))
        return 42 + vectors - 3 if vectors >= 3 else 48


@frozen
class BlockProductCycles:
    type: ElementType

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        rows = ceiling(vertex.fieldSize("out"), int(vertex.value("rowGroups")))
        columns = min(vertex.getFieldInfo("out").getSizeAtIndex(0), int(vertex.value("columnShare")))
        return int(block_product_cycles(rows, vertex.fieldSize("b"), columns, self.type))


def sum_partials(vertex: VertexIntrospector, target: Target) -> int:
    rows = vertex.getFieldInfo("partials")
    return sum(sum_cycles(rows.getSizeAtIndex(row)) for row in range(rows.size()))


def reduce_add(vertex: VertexIntrospector, target: Target) -> int:
    return reduce_add_cycles(vertex.fieldSize("out"), vertex.fieldSize("partials"))


ESTIMATORS: dict[str, Estimator] = {}
for _type, _result in product((FLOAT, HALF), repeat=2):
    ESTIMATORS[templateVertex("poplin::OuterProduct", _type, _result)] = OuterProductCycles(_type)
for _type in (FLOAT, HALF):
    ESTIMATORS[templateVertex("poplin::DotProducts", _type)] = DotProductsCycles(_type)
    ESTIMATORS[templateVertex("poplin::BlockProduct", _type)] = BlockProductCycles(_type)
    ESTIMATORS[templateVertex("poplin::SumPartials", _type)] = sum_partials
    ESTIMATORS[templateVertex("poplin::ReduceAdd", _type)] = reduce_add
