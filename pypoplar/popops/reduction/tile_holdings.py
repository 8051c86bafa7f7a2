"""What each tile holds of what is reduced: for which outputs, in which order of memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import fields, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct, offsets, opens, ragged
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat_slices
from pypoplar.popops.reduction.held_rows import HeldRows
from pypoplar.poputil.placement.tiles_of_elements import mapped_pieces

SHORT_PIECE = 8  # elements on average, below which it is looked for an order in which pieces of memory are longer


@frozen(eq=False)
class TileHoldings:
    """What tiles hold: entry i is what ``tile[i]`` has of `outputs[i]` outputs from `output[i]` on, `places[i]` elements of each.

    Its rows have shape [a, r, inner[i]], r being the row's own. Entries are in the order of tiles, and of outputs on a tile.
    """

    rows: HeldRows
    tile: Int64s
    output: Int64s
    outputs: Int64s
    inner: Int64s
    places: Int64s

    def __len__(self) -> int:
        return len(self.tile)

    @property
    def end(self) -> Int64s:
        """Behind the last output of each."""
        return self.output + self.outputs

    def of(self, entries: Int64s) -> TileHoldings:
        """Some of them."""
        columns = (self.tile, self.output, self.outputs, self.inner, self.places)
        return TileHoldings(self.rows.of(entries), *(column[entries] for column in columns))

    def and_those_of(self, other: TileHoldings) -> TileHoldings:
        """Both."""
        names = ("tile", "output", "outputs", "inner", "places")
        columns = (np.append(getattr(self, name), getattr(other, name)) for name in names)
        return TileHoldings(self.rows.and_those_of(other.rows), *columns)


@frozen(eq=False)
class HeldPieces:
    """Pieces of a flattened tensor in the order of the tiles and their memory.

    A piece has one element for each of `width` outputs that follow each other, or, where that is 1, `places` elements of one.
    It begins at `begin` in the tensor, and at `place` in the vector of all pieces in this order.
    """

    tile: Int64s
    begin: Int64s
    place: Int64s
    output: Int64s
    width: Int64s
    places: Int64s

    def chosen(self, which: Int64s | Bools | slice) -> HeldPieces:
        return HeldPieces(*(getattr(self, column.name)[which] for column in fields(HeldPieces)))


def holdings_of(graph: Graph, tensor: Tensor, dims: Sequence[int]) -> TileHoldings:
    """What the tiles hold of a tensor whose dimensions `dims` are reduced; it has elements."""
    tensor, dims = _in_long_pieces(graph, tensor, dims)
    pieces = _pieces(graph, tensor, dims)
    first = np.flatnonzero(opens(pieces.tile, pieces.output, pieces.width))
    last = np.append(first[1:], len(pieces.tile))
    places = np.add.reduceat(pieces.places, first)
    # Blocks of as many places of the next outputs, side by side, are one holding.
    tile, output, width = pieces.tile[first], pieces.output[first], pieces.width[first]
    chained = np.zeros(len(first), bool)
    chained[1:] = ~opens(tile, width, places)[1:] & (output[1:] == output[:-1] + width[:-1])
    head = np.flatnonzero(~chained)
    end = np.append(head[1:], len(first)) - 1
    blocks = _HeldBlocks(tile[head], output[head], output[end] + width[end], width[head], places[head], first[head], last[end])
    held = concat_slices(tensor.flatten(), pieces.begin, pieces.begin + pieces.width * pieces.places)
    holdings = _holdings(held, pieces, blocks)
    return holdings.of(np.lexsort((holdings.output, holdings.tile)))


def _in_long_pieces(graph: Graph, tensor: Tensor, dims: Sequence[int]) -> tuple[Tensor, Sequence[int]]:
    """The tensor, or with the reduced dimensions before or behind the others if it is in fewer pieces of memory then; and these.

    Outputs are numbered by the other dimensions alone, so where there are none, the order is that of memory. A transposed matrix
    would be looked at element by element.
    """
    if _pieces_of_memory(tensor) * SHORT_PIECE < tensor.numElements():
        return tensor, dims
    kept = [dimension for dimension in range(tensor.rank()) if dimension not in dims]
    if not kept:
        return graph.reorderToSimplify(tensor.flatten())[0], (0,)
    before = tensor.dimShuffle([*dims, *kept]), range(len(dims))
    behind = tensor.dimShuffle([*kept, *dims]), range(len(kept), tensor.rank())
    return min(((tensor, dims), before, behind), key=lambda view: _pieces_of_memory(view[0]))


def _pieces_of_memory(tensor: Tensor) -> int:
    return tensor.flatten().runs().stretches()


@frozen(eq=False)
class _HeldBlocks:
    tile: Int64s
    output: Int64s
    end: Int64s
    width: Int64s
    places: Int64s
    first: Int64s  # of its pieces
    last: Int64s


def _pieces(graph: Graph, tensor: Tensor, dims: Sequence[int]) -> HeldPieces:
    flat, elements = tensor.flatten(), tensor.numElements()
    sizes, steps = _output_steps(tensor.shape(), dims)
    side_by_side = steps[-1] == 1
    inner = sizes[-1] if steps[-1] in (0, 1) else 1
    runs = flat.runs()
    run_first = offsets(runs.count)
    low, _, owner = mapped_pieces(graph, flat)
    begin = distinct(np.concatenate((np.arange(0, elements, inner), run_first[:-1], low)))
    length = np.diff(np.append(begin, elements))
    run = np.searchsorted(run_first, begin, "right") - 1
    memory = runs.start[run] + (begin - run_first[run]) * runs.step[run]
    tile = owner[np.searchsorted(low, begin, "right") - 1]
    output, rest = np.zeros(len(begin), np.int64), begin
    for size, step in zip(reversed(sizes), reversed(steps), strict=True):
        output, rest = output + rest % size * step, rest // size
    one = np.ones(len(begin), np.int64)
    order = np.lexsort((memory, tile))
    places = offsets(length[order])[:-1]
    wide, deep = (length, one) if side_by_side else (one, length)
    return HeldPieces(tile[order], begin[order], places, output[order], wide[order], deep[order])


def _output_steps(shape: Sequence[int], dims: Sequence[int]) -> tuple[list[int], list[int]]:
    """Sizes of dimensions, alike ones together, and by how many outputs a step along each goes on: 0 along a reduced one."""
    sizes: list[int] = []
    steps: list[int] = []
    outputs = 1
    for dimension in reversed(range(len(shape))):
        size = shape[dimension]
        step = 0 if dimension in dims else outputs
        if size == 1:
            continue
        if sizes and (steps[0] == step == 0 or (step and steps[0] and step == sizes[0] * steps[0])):
            sizes[0] *= size
        else:
            sizes.insert(0, size)
            steps.insert(0, step)
        outputs *= size if step else 1
    return (sizes, steps) if sizes else ([1], [0])


def _holdings(held: Tensor, pieces: HeldPieces, blocks: _HeldBlocks) -> TileHoldings:
    """The holdings of all blocks: one of each, or those of blocks of a tile whose outputs overlap. `held` has all pieces."""
    order = np.lexsort((blocks.output, blocks.tile))
    span = int(blocks.end.max()) + 1
    reach = np.maximum.accumulate(blocks.tile[order] * span + blocks.end[order])
    begins = np.ones(len(order), bool)
    begins[1:] = blocks.tile[order][1:] * span + blocks.output[order][1:] >= reach[:-1]
    head, cluster = order[begins], np.cumsum(begins) - 1
    differs = np.zeros(len(head), bool)  # of a cluster that is cut where the outputs of its blocks begin or end
    for column in (blocks.output, blocks.end, blocks.width):
        differs[cluster[column[order] != column[head][cluster]]] = True
    last = blocks.last - 1
    low, high = pieces.place[blocks.first], pieces.place[last] + pieces.width[last] * pieces.places[last]
    member = order[np.lexsort((order, cluster))]
    whole = member[~differs[cluster]]  # clusters lie one after the other in both orders
    even = head[~differs]
    count = np.bincount(cluster, minlength=len(head))[~differs]
    first = offsets(count)
    places = np.add.reduceat(blocks.places[whole], first[:-1]) if len(whole) else blocks.places[whole]
    rows = HeldRows(held, first, low[whole], high[whole])
    outputs = blocks.end[even] - blocks.output[even]
    holdings = TileHoldings(rows, blocks.tile[even], blocks.output[even], outputs, blocks.width[even], places)
    if not differs.any():
        return holdings
    uneven = differs[cluster]
    return holdings.and_those_of(_cut_to_fit(held, pieces, blocks, member[uneven], cluster[uneven]))


def _cut_to_fit(held: Tensor, pieces: HeldPieces, blocks: _HeldBlocks, block: Int64s, cluster: Int64s) -> TileHoldings:
    """The holdings of clusters of blocks that overlap, with rows that are cut where the outputs of others begin or end."""
    count = blocks.last[block] - blocks.first[block]
    inside = pieces.chosen(ragged(blocks.first[block], count))
    span = int((inside.output + inside.width).max()) + 1
    low = np.repeat(cluster, count) * span + inside.output
    bounds = distinct(np.concatenate((low, low + inside.width)))
    first = np.searchsorted(bounds, low)
    met = np.searchsorted(bounds, low + inside.width) - first
    piece, part = np.repeat(np.arange(len(low)), met), ragged(first, met)
    order = np.argsort(part, kind="stable")
    piece, part = piece[order], part[order]
    size = bounds[part + 1] - bounds[part]
    begin = inside.place[piece] + bounds[part] - low[piece]
    head = np.flatnonzero(opens(part))
    rows = HeldRows(held, np.append(head, len(part)), begin, begin + size * inside.places[piece])
    places = np.add.reduceat(inside.places[piece], head)
    return TileHoldings(rows, inside.tile[piece[head]], bounds[part[head]] % span, size[head], size[head], places)
