"""The steps of a top-k as views, variables and vertices.

Keys and values are matrices of ``[elements, rows]``: what is compared in a step lies in rows of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.graph.views import concat
from pypoplar.popops.ordering.topk_plan import NetworkStep, RowDivision
from pypoplar.poputil.placement.tiles_of_elements import place_parts

FIELDS = {"keys": ("lower", "upper", "first", "second"), "values": ("lowerValues", "upperValues", "firstValues", "secondValues")}


def paired(t: Tensor, step: NetworkStep) -> tuple[Tensor, Tensor]:
    """The elements that are compared, as two matrices ``[pairs, rows]``: those that come before, and those behind."""
    distance, rows = step.distance, t.dim(1)
    whole = step.elements // (2 * distance)
    blocks = t.slice(0, whole * 2 * distance).reshape([whole, 2, distance, rows])
    behind = blocks[:, 1].reverse(1) if step.mirrored else blocks[:, 1]
    lower, upper = [blocks[:, 0].reshape([whole * distance, rows])], [behind.reshape([whole * distance, rows])]
    base, rest = whole * 2 * distance, step.elements % (2 * distance)
    if rest > distance:
        first = base + (2 * distance - rest if step.mirrored else 0)
        lower.append(t.slice(first, first + rest - distance))
        last = t.slice(base + distance, base + rest)
        upper.append(last.reverse(0) if step.mirrored else last)
    return concat(lower, 0), concat(upper, 0)


def unpaired(t: Tensor, step: NetworkStep, lower: Tensor, upper: Tensor) -> Tensor:
    """`t` with other elements in the places of those that `paired` gave; without the second halves if they are given up."""
    distance, rows = step.distance, t.dim(1)
    whole = step.elements // (2 * distance)
    blocks = lower.slice(0, whole * distance).reshape([whole, distance, rows])
    if not step.halves:
        behind = upper.slice(0, whole * distance).reshape([whole, distance, rows])
        blocks = concat([blocks, behind.reverse(1) if step.mirrored else behind], 1)
    base, rest = whole * 2 * distance, step.elements % (2 * distance)
    last = t.slice(base, base + rest)
    if rest > distance:
        before, behind = lower.slice(whole * distance, lower.dim(0)), upper.slice(whole * distance, upper.dim(0))
        alone = 2 * distance - rest
        if step.mirrored:
            last = concat([last.slice(0, alone), before, behind.reverse(0)], 0)
        else:
            last = concat([before, last.slice(rest - distance, distance), behind], 0)
    if step.halves:
        last = last.slice(0, min(rest, distance))
    return concat([blocks.reshape([blocks.dim(0) * blocks.dim(1), rows]), last], 0)


@frozen(eq=False)
class Lane:
    """Tiles that have as many pairs each: of the groups of `rows` rows from row `begin` to `end`, the pairs from `first` on."""

    begin: int
    end: int
    rows: int
    first: int
    each: int  # pairs of a tile
    tiles: Int64s

    def of(self, matrix: Tensor) -> Tensor:
        """The pairs of a matrix ``[pairs, rows]`` that the tiles have: a row for each tile."""
        groups = (self.end - self.begin) // self.rows
        several = matrix.slice(self.begin, self.end, 1).reshape([matrix.dim(0), groups, self.rows])
        flat = several.dimShuffle([1, 0, 2]).reshape([groups, matrix.dim(0) * self.rows])
        last = self.first + self.each * (len(self.tiles) // groups)
        return flat.slice(self.first, last, 1).reshape([len(self.tiles), self.each])


def lanes(division: RowDivision, pairs: int, rows: int) -> Iterator[list[Lane]]:
    """How a matrix ``[pairs, rows]`` is divided, group by group of rows; at most two groups, of two lanes each."""
    whole = rows // division.rows
    tile = 0
    for begin, count, size in ((0, whole, division.rows), (whole * division.rows, 1, rows % division.rows)):
        if count == 0 or size == 0:
            continue
        each = division.pairs_of_tile(pairs, size)
        full, rest = divmod(pairs * size, each)
        first = tile + np.arange(count) * division.parts
        end = begin + count * size
        group = [Lane(begin, end, size, 0, each, np.add.outer(first, np.arange(full)).reshape(-1))]
        if rest:
            group.append(Lane(begin, end, size, full * each, rest, first + full))
        yield group
        tile += count * division.parts


def tiles_of_pairs(division: RowDivision, pairs: int, rows: int) -> Int64s:
    """The tile of each pair of a matrix ``[pairs, rows]``."""
    tiles = np.zeros((pairs, rows), np.int64)
    for group in lanes(division, pairs, rows):
        begin, end, size = group[0].begin, group[0].end, group[0].rows
        own = np.concatenate([np.repeat(lane.tiles, lane.each).reshape((end - begin) // size, -1) for lane in group], 1)
        tiles[:, begin:end] = own.reshape(-1, pairs, size).swapaxes(0, 1).reshape(pairs, -1)
    return tiles


def add_step(
    graph: Graph,
    computeSet: ComputeSet,
    vertexType: str,
    step: NetworkStep,
    division: RowDivision,
    operands: Mapping[str, Tensor],
    betterFirst: bool,
    name: str,
) -> dict[str, Tensor]:
    """Add the vertices of a step; gives keys (and values) after it. The vertices put the larger key first, or last."""
    pairs = {operand: paired(t, step) for operand, t in operands.items()}
    count, rows = next(iter(pairs.values()))[0].shape()
    parts: dict[str, list[list[list[Tensor]]]] = {operand: [[], []] for operand in operands}
    for group in lanes(division, count, rows):
        results: dict[str, list[list[Tensor]]] = {operand: [[], []] for operand in operands}
        for lane in group:
            edges: dict[str, Tensor] = {}
            for operand, (lower, upper) in pairs.items():
                variable = graph.addVariable(lower.elementType(), [len(lane.tiles), 2, lane.each], f"{name}/{operand}")
                place_parts(graph, variable, lane.tiles)
                ends = (variable[:, 0], variable[:, 1]) if betterFirst else (variable[:, 1], variable[:, 0])
                edges |= zip(FIELDS[operand], (lane.of(lower), lane.of(upper), *ends), strict=True)
                results[operand][0].append(variable[:, 0])
                results[operand][1].append(variable[:, 1])
            graph.add_vertices(computeSet, vertexType, edges, lane.tiles)
        for operand, (firsts, seconds) in results.items():
            for place, several in enumerate((firsts, seconds)):
                parts[operand][place].append([_joined(several, group, count)])
    return {
        operand: unpaired(t, step, *(concat([part[0] for part in parts[operand][place]], 1) for place in (0, 1)))
        for operand, t in operands.items()
    }


def _joined(several: list[Tensor], group: list[Lane], pairs: int) -> Tensor:
    """What the lanes of a group have, as the rows of a matrix again."""
    rows = group[0].rows
    groups = (group[0].end - group[0].begin) // rows
    flat = concat([t.reshape([groups, t.numElements() // groups]) for t in several], 1)
    return flat.reshape([groups, pairs, rows]).dimShuffle([1, 0, 2]).reshape([pairs, groups * rows])
