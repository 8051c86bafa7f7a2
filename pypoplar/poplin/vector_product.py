"""Products of a matrix and a column vector, computed where the matrix lives."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.poplin.block_plan import superstep_cycles
from pypoplar.poplin.cycle_estimators import dot_product_cycles, sum_cycles
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.target import Target
from pypoplar.types import FLOAT, ElementType

SHORTEST = 16  # elements of a dot product that is worth a vertex


@frozen
class Piece:
    """A part of a row of the matrix, multiplied by one vertex."""

    row: int
    begin: int
    end: int
    tile: int

    @property
    def size(self) -> int:
        return self.end - self.begin


@frozen
class VectorPlan:
    """The pieces of all rows, row by row, and the estimated cycles."""

    pieces: tuple[Piece, ...]
    cycles: int


def plan_vector_product(graph: Graph, a: Tensor) -> VectorPlan | None:
    """The cheaper of two plans: whole rows, each on the tile that has most of it; or every piece where it is, and then sums.

    None if the rows of `a` lie in so many pieces that neither is any good.
    """
    found = _pieces(graph, a)
    if found is None:
        return None
    target, type, columns = graph.getTarget(), a.elementType(), a.dim(1)
    whole = _whole_rows(found, columns)
    plans = [_plan(target, type, whole, found)]
    for parts in (1, 2, 3):
        plans.append(_plan(target, type, _cut(found, target.getNumWorkerContexts() * parts), found))
    return min(plans, key=lambda one: one.cycles)


def vector_product(
    graph: Graph, a: Tensor, b: Tensor, result: ElementType, plan: VectorPlan, prog: Sequence, debug: str | None
) -> Tensor:
    """A new tensor [rows, 1] with the product of `a` [rows, depth] and `b` [depth, 1], as `plan` says; `prog` is extended.

    A row in one piece is done in one step if the result is FLOAT. Other rows have partial products, which a second step adds up.
    """
    vector = b.flatten()
    out = graph.addVariable(result, [a.dim(0), 1], below(debug, "out"))
    pieces: dict[int, list[Piece]] = defaultdict(list)
    for one in plan.pieces:
        pieces[one.row].append(one)
    cs = graph.addComputeSet(below(debug, "matMul"))
    vertexType = templateVertex("poplin::DotProduct", a.elementType())
    summed: dict[int, list[tuple[Tensor, Tensor]]] = defaultdict(list)  # by tile: partial products and the element they make
    for row, parts in pieces.items():
        home = _home(parts)
        graph.setTileMapping(out[row], home)
        products = out[row]
        if len(parts) > 1 or result is not FLOAT:
            products = graph.addVariable(FLOAT, [len(parts)], below(debug, "partials"))
            summed[home].append((products, out[row]))
        for place, one in enumerate(parts):
            fields = {"a": a[row].slice(one.begin, one.end), "b": vector.slice(one.begin, one.end), "out": products[place]}
            graph.setTileMapping(graph.addVertex(cs, vertexType, fields), one.tile)
            graph.setTileMapping(products[place], one.tile)
    prog.add(Execute(cs))
    if summed:
        prog.add(Execute(_add_up(graph, summed, result, below(debug, "reduce"))))
    return out


def _home(parts: list[Piece]) -> int:
    """The tile that has most of a row."""
    held: Counter[int] = Counter()
    for one in parts:
        held[one.tile] += one.size
    return held.most_common(1)[0][0]


def _add_up(graph: Graph, summed: dict[int, list[tuple[Tensor, Tensor]]], result: ElementType, debug: str) -> ComputeSet:
    """The compute set that adds up partial products. Neighbouring halves may share a word: one worker of a tile takes them all."""
    cs = graph.addComputeSet(debug)
    workers = graph.getTarget().getNumWorkerContexts() if result is FLOAT else 1
    for tile, sums in summed.items():
        size = ceiling(len(sums), workers)
        for first in range(0, len(sums), size):
            own = sums[first : first + size]
            fields = {"partials": [products for products, _ in own], "out": concat([element for _, element in own])}
            graph.setTileMapping(graph.addVertex(cs, templateVertex("poplin::SumPartials", result), fields), tile)
    return cs


def _pieces(graph: Graph, a: Tensor) -> list[Piece] | None:
    """The rows of `a` cut where they change tile or memory; None where pieces are short."""
    rows, columns = a.shape()
    contiguous = len(a.getContiguousRegions())
    mapping = graph.getTileMapping(a)
    regions = [(begin, end, tile) for tile, held in enumerate(mapping) for begin, end in held]
    if (len(regions) + contiguous) * SHORTEST > 2 * rows * columns + 2 * SHORTEST * rows:
        return None
    made = []
    for begin, end, tile in sorted(regions):
        while begin < end:
            row, left = divmod(begin, columns)
            right = min(columns, left + end - begin)
            made.append(Piece(row, left, right, tile))
            begin += right - left
    return made


def _whole_rows(pieces: list[Piece], columns: int) -> list[Piece]:
    held: dict[int, Counter[int]] = defaultdict(Counter)
    for one in pieces:
        held[one.row][one.tile] += one.size
    return [Piece(row, 0, columns, tiles.most_common(1)[0][0]) for row, tiles in held.items()]


def _cut(pieces: list[Piece], wanted: int) -> list[Piece]:
    """The pieces cut further, so that a tile has about `wanted` of them, none of them short."""
    load: Counter[int] = Counter()
    for one in pieces:
        load[one.tile] += one.size
    made = []
    for one in pieces:
        size = max(SHORTEST, -(-load[one.tile] // wanted))
        parts = max(1, round(one.size / size))
        bounds = [one.begin + one.size * part // parts // 2 * 2 for part in range(parts)] + [one.end]
        made += [Piece(one.row, begin, end, one.tile) for begin, end in pairwise(bounds)]
    return made


def _plan(target: Target, type: ElementType, pieces: list[Piece], held: list[Piece]) -> VectorPlan:
    """The cycles of a plan: the busiest tile's exchange and dot products, and the sums of rows that are cut."""
    here: dict[tuple[int, int], int] = defaultdict(int)
    for one in held:
        here[one.tile, one.row] += one.size
    received: Counter[int] = Counter()
    lengths: dict[int, list[int]] = defaultdict(list)
    parts: Counter[int] = Counter()
    columns = max(one.end for one in pieces)
    for one in pieces:
        received[one.tile] += max(0, one.size - here[one.tile, one.row])
        lengths[one.tile].append(one.size)
        parts[one.row] += 1
    for tile, sizes in lengths.items():
        received[tile] += min(columns, sum(sizes))
    workers, rate = target.getNumWorkerContexts(), target.getExchangeBytesPerCycle()
    exchange = ceiling(max(received.values()) * type.size, rate)
    compute = max(_rounds([dot_product_cycles(one, type) for one in sizes], workers) for sizes in lengths.values())
    cycles = superstep_cycles(target) + exchange + compute
    most = max(parts.values())
    if most > 1:
        cycles += superstep_cycles(target) + ceiling(most * FLOAT.size, rate) + workers * sum_cycles(most)
    return VectorPlan(tuple(pieces), cycles)


def _rounds(cycles: list[int], workers: int) -> int:
    """Tile cycles of vertices that go to the next free worker, in order."""
    busy = [0] * workers
    for one in cycles:
        busy[busy.index(min(busy))] += one
    return workers * max(busy)
