"""Worker cycles of poplin's vertices, by the formulas of PopLibs' PerformanceEstimation; the planner uses the same ones."""

from __future__ import annotations

from itertools import product

from attrs import frozen

from pypoplar.codelet.operations.matrix_unit import MULTIPLY_ACCUMULATE
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


def block_product_cycles(target: Target, rows: Count, depth: Count, columns: Count, type: ElementType) -> Count:
    """A worker's part of a block product, as ConvPartial1x1Out: the outputs are zeroed in the first of the input groups only.

    `rows` and `columns` are the worker's; the supervisor's loading of the weights is included.
    """
    price = MULTIPLY_ACCUMULATE.price(target.architecture, type.code)
    cycles: Count = price.slots(rows, depth, columns, zeroes=True)
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
        depth, columns = int(vertex.value("depth")), int(vertex.value("columns"))
        rows = ceiling(ceiling(vertex.fieldSize("out"), columns), int(vertex.value("rowGroups")))
        return int(block_product_cycles(target, rows, depth, min(columns, int(vertex.value("columnShare"))), self.type))


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
