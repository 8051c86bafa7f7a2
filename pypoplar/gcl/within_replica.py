"""Collectives over the IPUs of one replica: row i of a tensor lies on IPU i, and goes round a ring of IPUs in fragments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise

import numpy as np
from attrs import field, frozen

from pypoplar import popops
from pypoplar.errors import PoplarTypeError
from pypoplar.gcl.collective_operator import ROWS, CollectiveOperator, check_operator
from pypoplar.gcl.collectives import Collective, Options
from pypoplar.gcl.ring import ring_order
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poputil.arguments import check_operands
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public


@public
@frozen(eq=False)
class Chunk:
    """A part of a result that lies on one IPU.

    Parameters
    ----------
    tensor:
        Of rank 1.
    index:
        Which part of the result it is: the number of its IPU.
    offset:
        Of several parts on one IPU the number among them; always 0 here.
    """

    tensor: Tensor
    index: int
    offset: int = 0


def _listed(chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    return tuple(chunks)


@public
@frozen(eq=False)
class Chunks:
    """The parts of a result over the IPUs of a replica, as `reduceScatterWithinReplica` has them.

    Parameters
    ----------
    chunks:
        One for each IPU, in their order: chunk i lies on IPU i. They may have different numbers of elements.
    originalInput:
        What was reduced, if that is known.
    """

    chunks: tuple[Chunk, ...] = field(converter=_listed)
    originalInput: Tensor | None = None


@frozen(eq=False)
class _IpuRing:
    """A call over the IPUs of a replica, whose parts go from IPU to IPU."""

    call: Collective
    order: tuple[int, ...]  # of the IPUs, as parts go

    @staticmethod
    def of(call: Collective) -> _IpuRing:
        order = ring_order(call.graph.getTarget().getNumIPUs())
        return _IpuRing(call, order[::-1] if call.method == "anticlockwise_ring" else order)

    def before(self, turns: int) -> dict[int, int]:
        """For each IPU the one that stands so many turns before it in the ring."""
        return {ipu: self.order[place - turns] for place, ipu in enumerate(self.order)}

    def scatter(self, rows: Tensor, op: CollectiveOperator) -> list[Tensor]:
        """By IPU the fragment of its number of all rows together."""
        ipus, elements = rows.shape()
        bounds = [elements * part // ipus for part in range(ipus + 1)]
        if op is CollectiveOperator.LOCAL or ipus == 1:
            return [self._copied(_part(rows[ipu], bounds, ipu), ipu) for ipu in range(ipus)]
        source = self.before(1)
        moved = {ipu: self._copied(_part(rows[ipu], bounds, number), ipu) for ipu, number in source.items()}
        for turn in range(1, ipus):
            coming, numbers = moved, self.before(turn + 1)
            moved = {ipu: self._variable(ipu, coming[source[ipu]], f"step{turn}/") for ipu in self.order}
            received = concat([moved[ipu] for ipu in self.order])
            self._copy(concat([coming[source[ipu]] for ipu in self.order]), received, "toNext")
            own = concat([_part(rows[ipu], bounds, numbers[ipu]) for ipu in self.order])
            ROWS[op].combine(self.call.graph, received, own, self.call.prog, f"{self.call.debug}/{op.name}")
        return [moved[ipu] for ipu in range(ipus)]

    def gather(self, parts: list[Tensor]) -> Tensor:
        """[IPUs, elements]: all parts one behind the other, for each IPU."""
        ipus, whole = range(len(parts)), concat(parts)
        bounds = [0, *accumulate(part.numElements() for part in parts)]
        result = concat([self._variable(ipu, whole, "gathered").expand([0]) for ipu in ipus])
        self._copy(whole, concat([_part(result[ipu], bounds, ipu) for ipu in ipus]), "own")
        source = self.before(1)
        for turn in range(1, len(parts)):
            numbers = self.before(turn)
            sent = concat([_part(result[source[ipu]], bounds, numbers[ipu]) for ipu in self.order])
            self._copy(sent, concat([_part(result[ipu], bounds, numbers[ipu]) for ipu in self.order]), "toNext")
        return result

    def _variable(self, ipu: int, like: Tensor, name: str) -> Tensor:
        """A new variable on an IPU."""
        graph, tiles = self.call.graph, self.call.graph.getTarget().getTilesPerIPU()
        made = graph.addVariable(like.elementType(), like.shape(), f"{self.call.debug}/{name}{ipu}")
        mapTensorLinearly(graph.createVirtualGraph(ipu * tiles, (ipu + 1) * tiles), made)
        return made

    def _copied(self, source: Tensor, ipu: int) -> Tensor:
        made = self._variable(ipu, source, "own")
        self._copy(source, made, "own")
        return made

    def _copy(self, source: Tensor, target: Tensor, name: str) -> None:
        if source.numElements():
            self.call.prog.add(Copy(source, target, f"{self.call.debug}/{name}"))


def _part(row: Tensor, bounds: list[int], number: int) -> Tensor:
    """One of the parts of a row, which begin and end at bounds."""
    return row[bounds[number] : bounds[number + 1]]


def _rows(call: Collective, data: Tensor) -> Tensor:
    """The tensor, if it has a row for each IPU, and each row lies there; `PoplibsError` else."""
    check_operands(call.name, call.graph, data)
    ipus, tiles = call.graph.getTarget().getNumIPUs(), call.graph.getTarget().getTilesPerIPU()
    if data.rank() != 2 or data.dim(0) != ipus:
        raise PoplibsError(f"{call.name} takes a row for each of {ipus} IPUs, [{ipus}, elements], got {data!r}")
    for row in range(ipus):
        _check_place(call, data[row], row, f"row {row}", tiles)
    return data


def _check_place(call: Collective, part: Tensor, ipu: int, what: str, tiles: int) -> None:
    """`PoplibsError` for what lies on another IPU."""
    others = np.setdiff1d(call.graph.mapped_pieces(part)[2] // tiles, [ipu])
    if len(others):
        raise PoplibsError(f"{call.name}: {what} has to lie on IPU {ipu}, and lies on IPU {others[0]}, too: {part!r}")


@public
def reduceScatterWithinReplica(
    graph: Graph,
    toReduce: Tensor,
    op: CollectiveOperator,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Chunks:
    """What the rows of the IPUs of a replica have together, each IPU a part of it; `prog` is extended.

    Parameters
    ----------
    toReduce:
        A row for each IPU, [IPUs, elements]; row i lies on IPU i.
    op:
        How rows are combined; with LOCAL an IPU takes its part of its own row.
    options:
        As `allReduceCrossReplica` has them: fragments go round one ring of IPUs, the other way with "anticlockwise_ring".

    Returns
    -------
    Chunks
        Chunk i lies on IPU i, with elements N i / n to N (i + 1) / n, rounded down, of N on n IPUs.

    Raises
    ------
    PoplibsError
        If the operator has no such type, there is not a row for each IPU, or a row lies elsewhere.
    InvalidOption
        For an unknown option.
    """
    call = Collective.of("reduceScatterWithinReplica", graph, prog, None, debugContext, options)
    parts = _scattered(call, toReduce, op)
    return Chunks(tuple(Chunk(part, ipu) for ipu, part in enumerate(parts)), toReduce)


def _scattered(call: Collective, data: Tensor, op: CollectiveOperator) -> list[Tensor]:
    rows = _rows(call, data)
    check_operator(call.name, op, rows.elementType())
    if op is CollectiveOperator.SQUARE_ADD and rows.numElements():
        rows = popops.square(call.graph, rows, call.prog, f"{call.debug}/square")
    parts = _IpuRing.of(call).scatter(rows, op)
    if op is CollectiveOperator.MEAN and rows.numElements():
        popops.mulInPlace(call.graph, concat(parts), 1.0 / rows.dim(0), call.prog, f"{call.debug}/mean")
    return parts


@public
def allGatherWithinReplica(
    graph: Graph,
    toGather: Chunks,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """All parts of a result, for each IPU of a replica; `prog` is extended.

    Parameters
    ----------
    toGather:
        A chunk for each IPU, of one type: chunk i lies on IPU i.
    options:
        As `reduceScatterWithinReplica` has them.

    Returns
    -------
    Tensor
        [IPUs, elements]: row i lies on IPU i and has the chunks one behind the other, in the order of their `index`.

    Raises
    ------
    PoplarTypeError
        If it is no `Chunks`.
    PoplibsError
        If there is not a chunk for each IPU, one lies elsewhere, or they differ in type.
    InvalidOption
        For an unknown option.
    """
    call = Collective.of("allGatherWithinReplica", graph, prog, None, debugContext, options)
    if not isinstance(toGather, Chunks):
        raise PoplarTypeError(f"{call.name} takes Chunks, as reduceScatterWithinReplica gives them, got {toGather!r}")
    chunks = sorted(toGather.chunks, key=lambda chunk: chunk.index)
    ipus, tiles = graph.getTarget().getNumIPUs(), graph.getTarget().getTilesPerIPU()
    if [chunk.index for chunk in chunks] != list(range(ipus)):
        raise PoplibsError(f"{call.name} takes a chunk for each of {ipus} IPUs, got those of {[one.index for one in chunks]}")
    parts = [chunk.tensor for chunk in chunks]
    check_operands(call.name, graph, *parts)
    for one, other in pairwise(parts):
        if one.elementType() != other.elementType():
            raise PoplibsError(f"{call.name}: chunks are of one type, got {one!r} and {other!r}")
    for ipu, part in enumerate(parts):
        _check_place(call, part, ipu, f"chunk {ipu}", tiles)
    return _IpuRing.of(call).gather([part.flatten() for part in parts])


@public
def allReduceWithinReplica(
    graph: Graph,
    toReduce: Tensor,
    op: CollectiveOperator,
    prog: Sequence,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """What the rows of the IPUs of a replica have together, the same bits for each IPU; `prog` is extended.

    Parameters
    ----------
    toReduce:
        A row for each IPU, [IPUs, elements]; row i lies on IPU i.
    op:
        How rows are combined; with LOCAL each IPU has its own row.
    options:
        As `reduceScatterWithinReplica` has them.

    Returns
    -------
    Tensor
        A new tensor of the same shape, whose rows are alike; row i lies on IPU i.

    Raises
    ------
    PoplibsError
        If the operator has no such type, there is not a row for each IPU, or a row lies elsewhere.
    InvalidOption
        For an unknown option.
    """
    call = Collective.of("allReduceWithinReplica", graph, prog, None, debugContext, options)
    if op is CollectiveOperator.LOCAL:
        rows = _rows(call, toReduce)
        result = graph.clone(rows, f"{call.debug}/result")
        prog.add(Copy(rows, result, call.debug))
        return result
    return _IpuRing.of(call).gather(_scattered(call, toReduce, op))
