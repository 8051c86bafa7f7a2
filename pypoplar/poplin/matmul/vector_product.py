"""Products of a matrix and a column vector, computed where the matrix lives."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from attrs import frozen

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.matmul_cycles import dot_products_cycles, reduce_add_cycles, sum_cycles
from pypoplar.poplin.partial_sums import add_partials
from pypoplar.popops.reduction.reduce_plan import sync_cycles
from pypoplar.poputil.cost_conventions import MESSAGE
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.target import Target
from pypoplar.types import FLOAT, ElementType

COPY_SLOTS = 35  # of a vertex that copies on its tile, beside the bytes
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


def plan_vector_product(graph: Graph, a: Tensor, b: Tensor, result: ElementType) -> VectorPlan | None:
    """The cheaper of two plans: whole rows, each on the tile that has most of it; or every piece where it is, and then sums.

    None if the rows of `a` lie in so many pieces that neither is any good.
    """
    pieces = _pieces(graph, a)
    if pieces is None:
        return None
    target, type, columns = graph.getTarget(), a.elementType(), a.dim(1)
    vector = _held(graph, b)
    cuts = [_whole_rows(pieces, columns)]
    cuts += [_cut(pieces, target.getNumWorkerContexts() * parts) for parts in (1, 2, 3)]
    plans = [VectorPlan(tuple(cut), _cycles(target, type, result, cut, pieces, vector)) for cut in cuts]
    return min(plans, key=lambda plan: plan.cycles)


def vector_product(
    graph: Graph, a: Tensor, b: Tensor, result: ElementType, plan: VectorPlan, prog: Sequence, debug: str | None
) -> Tensor:
    """A new tensor [rows, 1] with the product of `a` [rows, depth] and `b` [depth, 1], as `plan` says; `prog` is extended.

    A row in one piece is done in one step if the result is FLOAT. Other rows have partial products, which a second step adds up.
    """
    if result is not FLOAT and len({piece.row for piece in plan.pieces}) == len(plan.pieces):
        sums = vector_product(graph, a, b, FLOAT, plan, prog, debug)
        return add_partials(graph, sums.expand([0]), result, prog, below(debug, "reduce"))
    out = graph.addVariable(result, [a.dim(0), 1], below(debug, "out"))
    by_row: dict[int, list[Piece]] = defaultdict(list)
    for piece in plan.pieces:
        by_row[piece.row].append(piece)
    products: dict[Piece, Tensor] = {}  # where the product of each piece goes
    summed: dict[int, list[tuple[Tensor, Tensor]]] = defaultdict(list)  # by tile: partial products and the element they make
    for row, parts in by_row.items():
        home = _home(parts)
        graph.setTileMapping(out[row], home)
        partial = out[row]
        if len(parts) > 1 or result is not FLOAT:
            partial = graph.addVariable(FLOAT, [len(parts)], below(debug, "partials"))
            summed[home].append((partial, out[row]))
        for place, part in enumerate(parts):
            products[part] = partial.slice(place, place + 1)
            graph.setTileMapping(products[part], part.tile)
    cs = graph.addComputeSet(below(debug, "matMul"))
    _add_dot_products(graph, cs, a, b.flatten(), products)
    prog.add(Execute(cs))
    if summed:
        prog.add(Execute(_add_up(graph, summed, result, below(debug, "reduce"))))
    return out


def _add_dot_products(graph: Graph, cs: ComputeSet, a: Tensor, vector: Tensor, products: dict[Piece, Tensor]) -> None:
    """Vertices for all pieces. Where a tile has more than workers, a vertex takes several pieces of the same columns."""
    vertexType = templateVertex("poplin::DotProducts", a.elementType())
    for own, size in _shared_by_workers(graph.getTarget(), list(products)):
        for first in range(0, len(own), size):
            part = own[first : first + size]
            begin, end = part[0].begin, part[0].end
            fields = {
                "a": [a[number.row].slice(begin, end) for number in part],
                "b": vector.slice(begin, end),
                "out": concat([products[number] for number in part]),
            }
            graph.setTileMapping(graph.addVertex(cs, vertexType, fields), part[0].tile)


def _shared_by_workers(target: Target, pieces: list[Piece]) -> Iterator[tuple[list[Piece], int]]:
    """The pieces of each tile and range of columns, and how many of them a vertex takes."""
    together: dict[tuple[int, int, int], list[Piece]] = defaultdict(list)
    for piece in pieces:
        together[piece.tile, piece.begin, piece.end].append(piece)
    load = Counter(piece.tile for piece in pieces)
    for (tile, _, _), own in together.items():
        yield own, ceiling(load[tile], target.getNumWorkerContexts())


def _home(parts: list[Piece]) -> int:
    """The tile that has most of a row."""
    held: Counter[int] = Counter()
    for part in parts:
        held[part.tile] += part.size
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
    regions = graph.mapped_pieces(a)
    if (len(regions[0]) + a.runs().stretches()) * SHORTEST > 2 * rows * columns + 2 * SHORTEST * rows:
        return None
    pieces = []
    for begin, end, tile in zip(*(column.tolist() for column in regions), strict=True):
        while begin < end:
            row, left = divmod(begin, columns)
            right = min(columns, left + end - begin)
            pieces.append(Piece(row, left, right, tile))
            begin += right - left
    return pieces


def _whole_rows(pieces: list[Piece], columns: int) -> list[Piece]:
    held: dict[int, Counter[int]] = defaultdict(Counter)
    for piece in pieces:
        held[piece.row][piece.tile] += piece.size
    return [Piece(row, 0, columns, tiles.most_common(1)[0][0]) for row, tiles in held.items()]


def _cut(pieces: list[Piece], wanted: int) -> list[Piece]:
    """The pieces cut further, so that a tile has about `wanted` of them, none of them short."""
    load: Counter[int] = Counter()
    for piece in pieces:
        load[piece.tile] += piece.size
    cut = []
    for piece in pieces:
        size = max(SHORTEST, -(-load[piece.tile] // wanted))
        parts = max(1, round(piece.size / size))
        bounds = [piece.begin + piece.size * part // parts // 2 * 2 for part in range(parts)] + [piece.end]
        cut += [Piece(piece.row, begin, end, piece.tile) for begin, end in pairwise(bounds)]
    return cut


def _cycles(
    target: Target,
    type: ElementType,
    result: ElementType,
    pieces: list[Piece],
    held: list[Piece],
    vector: dict[int, list[Interval]],
) -> int:
    """The cycles of a plan: the busiest tile's exchange and dot products, and the sums of rows that are cut, or are no FLOATs."""
    received: Counter[int] = Counter()
    resident: dict[tuple[int, int], int] = defaultdict(int)
    for piece in held:
        resident[piece.tile, piece.row] += piece.size
    needed: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for piece in pieces:
        received[piece.tile] += max(0, piece.size - resident[piece.tile, piece.row])
        needed[piece.tile].add((piece.begin, piece.end))
    for tile, ranges in needed.items():
        received[tile] += _beyond(ranges, vector.get(tile, []))
    workers, rate = target.getNumWorkerContexts(), target.getExchangeBytesPerCycle()
    sent = max((interval.size() for intervals in vector.values() for interval in intervals), default=0)
    arriving = max(received.values())
    moved = ceiling(max(arriving, sent) * type.size, rate) if arriving else 0
    vertices: dict[int, list[int]] = defaultdict(list)
    shares = list(_shared_by_workers(target, pieces))
    for own, size in shares:
        for first in range(0, len(own), size):
            vertices[own[0].tile].append(dot_products_cycles(len(own[first : first + size]), own[0].size, type))
    return (
        sync_cycles(target)
        + moved
        + max(_rounds(own, workers) for own in vertices.values())
        + _sum_cycles(target, result, pieces, shares)
    )


def _sum_cycles(target: Target, result: ElementType, pieces: list[Piece], shares: list[tuple[list[Piece], int]]) -> int:
    """Cycles in which the products of pieces become results."""
    rows: dict[int, list[Piece]] = defaultdict(list)
    for piece in pieces:
        rows[piece.row].append(piece)
    workers = target.getNumWorkerContexts()
    if len(rows) == len(pieces):
        most = max(Counter(piece.tile for piece in pieces).values())
        return 0 if result is FLOAT else sync_cycles(target) + workers * int(reduce_add_cycles(most, 1, FLOAT, result))
    sums: dict[int, list[int]] = defaultdict(list)
    ports: Counter[tuple[int, bool]] = Counter()
    for parts in rows.values():
        if len(parts) == 1 and result is FLOAT:
            continue
        home = _home(parts)
        sums[home].append(sum_cycles(len(parts)))
        for part in parts:
            if part.tile != home:
                ports[home, True] += 1
                ports[part.tile, False] += 1
    compute = 0
    for cycles in sums.values():
        size = ceiling(len(cycles), workers if result is FLOAT else 1)
        compute = max(compute, workers * max(sum(cycles[first : first + size]) for first in range(0, len(cycles), size)))
    gathered: Counter[int] = Counter()  # sums of pieces that a vertex has together lie apart
    for own, each in shares:
        gathered[own[0].tile] += len(own) - (len(own) % each == 1) if each > 1 and len(own) > 1 else 0
    most = max(gathered.values())
    copies = COPY_SLOTS * workers + most if most else 0
    return sync_cycles(target) + MESSAGE * max(ports.values(), default=0) + compute + copies


def _held(graph: Graph, vector: Tensor) -> dict[int, list[Interval]]:
    """What each tile has of a vector."""
    return {tile: list(intervals) for tile, intervals in enumerate(graph.getTileMapping(vector.flatten())) if intervals}


def _beyond(ranges: set[tuple[int, int]], held: list[Interval]) -> int:
    """Elements of the union of some ranges that are not in the intervals."""
    total = last = 0
    for begin, end in sorted(ranges):
        low = max(begin, last)
        if low < end:
            total += end - low - sum(max(0, min(end, part.end()) - max(low, part.begin())) for part in held)
            last = end
    return total


def _rounds(cycles: list[int], workers: int) -> int:
    """Tile cycles of vertices that go to the next free worker, in order."""
    busy = [0] * workers
    for cycle in cycles:
        busy[busy.index(min(busy))] += cycle
    return workers * max(busy)
