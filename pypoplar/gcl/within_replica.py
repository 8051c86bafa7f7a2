"""Collectives over the IPUs of one replica: row i of a tensor lies on IPU i, and goes round a ring of IPUs in fragments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

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
    """A call over the IPUs of a replica: one row for each, in fragments that go from IPU to IPU."""

    call: Collective
    ipus: int
    bounds: tuple[int, ...]  # where the fragments of a row begin, and where the last ends

    @staticmethod
    def of(call: Collective, elements: int) -> _IpuRing:
        ipus = call.graph.getTarget().getNumIPUs()
        return _IpuRing(call, ipus, tuple(elements * part // ipus for part in range(ipus + 1)))

    def on(self, ipu: int) -> Graph:
        """The virtual graph of an IPU's tiles."""
        tiles = self.call.graph.getTarget().getTilesPerIPU()
        return self.call.graph.createVirtualGraph(ipu * tiles, (ipu + 1) * tiles)

    def fragment(self, row: Tensor, number: int) -> Tensor:
        return row[self.bounds[number] : self.bounds[number + 1]]

    def variable(self, ipu: int, like: Tensor, name: str) -> Tensor:
        """A new variable on an IPU."""
        made = self.call.graph.addVariable(like.elementType(), like.shape(), f"{self.call.debug}/{name}{ipu}")
        mapTensorLinearly(self.on(ipu), made)
        return made

    def order(self) -> tuple[int, ...]:
        """The IPUs in the order in which fragments go."""
        order = ring_order(self.ipus)
        return order[::-1] if self.call.method == "anticlockwise_ring" else order

    def place(self) -> dict[int, int]:
        return {ipu: place for place, ipu in enumerate(self.order())}

    def scatter(self, rows: Tensor, op: CollectiveOperator) -> list[Tensor]:
        """By IPU the fragment of its number of all rows together."""
        order, place = self.order(), self.place()
        if op is CollectiveOperator.LOCAL or self.ipus == 1:
            return [self._copied(self.fragment(rows[ipu], ipu), ipu, "own") for ipu in range(self.ipus)]
        numbers = {ipu: order[place[ipu] - 1] for ipu in order}  # of the fragments that they send first
        moved = {ipu: self._copied(self.fragment(rows[ipu], numbers[ipu]), ipu, "own") for ipu in order}
        for step in range(1, self.ipus):
            sources, numbers = moved, {ipu: order[place[ipu] - 1 - step] for ipu in order}
            before = {ipu: order[place[ipu] - 1] for ipu in order}
            moved = {ipu: self.variable(ipu, sources[before[ipu]], f"step{step}/") for ipu in order}
            self._copy(concat([sources[before[ipu]] for ipu in order]), concat([moved[ipu] for ipu in order]), "toNext")
            own = concat([self.fragment(rows[ipu], numbers[ipu]) for ipu in order])
            ROWS[op].combine(
                self.call.graph, concat([moved[ipu] for ipu in order]), own, self.call.prog, f"{self.call.debug}/{op.name}"
            )
        return [moved[ipu] for ipu in range(self.ipus)]

    def gather(self, parts: list[Tensor]) -> Tensor:
        """[IPUs, elements]: all parts one behind the other, for each IPU."""
        order, place = self.order(), self.place()
        whole = concat(parts)
        result = concat([self.variable(ipu, whole, "gathered").expand([0]) for ipu in range(self.ipus)])
        self._copy(concat(parts), concat([self.fragment_of(result[ipu], parts, ipu) for ipu in range(self.ipus)]), "own")
        for step in range(1, self.ipus):
            numbers = {ipu: order[place[ipu] - step] for ipu in order}  # of the parts that come
            before = {ipu: order[place[ipu] - 1] for ipu in order}
            source = concat([self.fragment_of(result[before[ipu]], parts, numbers[ipu]) for ipu in order])
            target = concat([self.fragment_of(result[ipu], parts, numbers[ipu]) for ipu in order])
            self._copy(source, target, "toNext")
        return result

    @staticmethod
    def fragment_of(row: Tensor, parts: list[Tensor], number: int) -> Tensor:
        """Where a part lies in a row of all of them."""
        begin = sum(part.numElements() for part in parts[:number])
        return row[begin : begin + parts[number].numElements()]

    def _copied(self, source: Tensor, ipu: int, name: str) -> Tensor:
        made = self.variable(ipu, source, name)
        self._copy(source, made, name)
        return made

    def _copy(self, source: Tensor, target: Tensor, name: str) -> None:
        if source.numElements():
            self.call.prog.add(Copy(source, target, f"{self.call.debug}/{name}"))


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
    mapping = call.graph.getTileMapping(part) if part.numElements() else []
    others = sorted({tile // tiles for tile, intervals in enumerate(mapping) if intervals} - {ipu})
    if others:
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
    ring = _IpuRing.of(call, rows.dim(1))
    if op is CollectiveOperator.SQUARE_ADD and rows.numElements():
        rows = popops.square(call.graph, rows, call.prog, f"{call.debug}/square")
    parts = ring.scatter(rows, op)
    if op is CollectiveOperator.MEAN and rows.numElements():
        popops.mulInPlace(call.graph, concat(parts), 1.0 / ring.ipus, call.prog, f"{call.debug}/mean")
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
    return _IpuRing.of(call, 0).gather([part.flatten() for part in parts])


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
    return _IpuRing.of(call, 0).gather(_scattered(call, toReduce, op))
