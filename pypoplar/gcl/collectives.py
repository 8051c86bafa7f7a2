"""Collectives across replicas: reductions, gathers, all-to-all and broadcast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise
from typing import overload

from attrs import frozen

from pypoplar import popops
from pypoplar.errors import PoplarTypeError
from pypoplar.gcl.collective_operator import ROWS, CollectiveOperator, check_operator
from pypoplar.gcl.comm_group import CommGroup, replica_groups
from pypoplar.gcl.methods import IN_PARTS, METHODS, automatic_method
from pypoplar.gcl.ring import Groups, Ring
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poputil.arguments import check_call, check_operands, check_writeable
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, CrossReplicaCopy, Repeat, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import ElementType

Options = Mapping[str, object] | None


@frozen(eq=False)
class Collective:
    """A collective: its name in messages, where it is added, which replicas take part, and by which method."""

    name: str
    graph: Graph
    prog: Sequence
    groups: Groups
    debug: str
    method: str

    @staticmethod
    def of(
        function: str, graph: Graph, prog: Sequence, group: CommGroup | None, debugContext: str | None, options: Options
    ) -> Collective:
        """The call of a function, with its arguments checked but for tensors."""
        name = f"gcl.{function}"
        check_call(name, graph, prog, debugContext)
        known: dict[str, Kind] = {
            "method": METHODS,
            "syncful.allToAll": bool,
            "syncful.useForwardingToSupportStridedGroups": bool,
        }
        method = str(read_options(name, options, known).get("method", "auto"))
        return Collective(name, graph, prog, replica_groups(name, graph, group), below(debugContext, function), method)

    @property
    def ranks(self) -> int:
        """How many replicas each group has."""
        return len(self.groups[0])

    def ring(self, *, clockwise: bool = True) -> Ring:
        """The ring of each group; more than one has a name of its own."""
        return Ring(self.graph, self.groups, self.prog, self.debug, clockwise)

    def method_for(self, type: ElementType, elements: int, *, gathers: bool = False) -> str:
        """The method for so many elements of all ranks."""
        if self.method != "auto":
            return self.method
        target = self.graph.getTarget()
        return automatic_method(self.ranks, target.getNumIPUs(), elements * target.getTypeSize(type), gathers=gathers)

    def column_bounds(self, method: str, columns: int) -> list[int]:
        """Where the columns that each ring of a method moves begin, and where the last ones end."""
        parts = max(min(IN_PARTS.get(method, 1), columns), 1)
        return [columns * part // parts for part in range(parts + 1)]

    def rings(self, method: str, columns: int) -> list[tuple[Ring, slice]]:
        """The rings of a method, each with the columns that it moves."""
        bounds = self.column_bounds(method, columns)
        if len(bounds) == 2:
            return [(self.ring(clockwise=method != "anticlockwise_ring"), slice(0, columns))]
        parts = enumerate(pairwise(bounds))
        return [(self.ring(clockwise=part % 2 == 0), slice(begin, end)) for part, (begin, end) in parts]

    def reduced(self, fragments: Tensor, op: CollectiveOperator) -> Tensor:
        """[1, elements]: of `fragments` [ranks, elements] that of the replica's rank, of all replicas of the group together."""
        method = self.method_for(fragments.elementType(), fragments.numElements())
        if method != "meet_in_middle_ring" or self.ranks == 1 or op is CollectiveOperator.LOCAL:
            rings = self.rings(method, fragments.dim(1))
            return concat([ring.reduce_scatter(fragments[:, columns], op) for ring, columns in rings], 1)
        far, near = self.ranks // 2, (self.ranks - 1) // 2
        result = self.ring().reduce_scatter(fragments, op, far)
        if near:
            other = self.ring(clockwise=False).reduce_scatter(fragments, op, near, with_own=False)
            ROWS[op].combine(self.graph, result, other, self.prog, f"{self.debug}/{op.name}")
        return result

    def gather(self, own: Tensor, gathered: Tensor) -> None:
        """Put what each replica has, [1, elements], into `gathered` [ranks, elements]; `own` is another's then."""
        method = self.method_for(gathered.elementType(), gathered.numElements(), gathers=True)
        if method != "meet_in_middle_ring":
            for ring, columns in self.rings(method, own.dim(1)):
                ring.all_gather(own[:, columns], gathered[:, columns])
            return
        other = self.graph.clone(own, f"{self.debug}/other")
        self.prog.add(Copy(own, other, f"{self.debug}/other"))
        self.ring().all_gather(own, gathered, self.ranks // 2)
        if self.ranks > 2:
            self.ring(clockwise=False).all_gather(other, gathered, (self.ranks - 1) // 2)

    def padded(self, flat: Tensor) -> Tensor:
        """A new variable [ranks, elements] with the elements of `flat` and zeros behind them."""
        size = -(-flat.numElements() // self.ranks)
        fragments = self.ring_memory(flat.elementType(), size, "fragments")
        surplus = fragments.numElements() - flat.numElements()
        source = flat
        if surplus:
            zeros = self.graph.addConstant(flat.elementType(), [surplus], 0, f"{self.debug}/padding")
            self.graph.setTileMapping(zeros, 0)
            source = concat([flat, zeros])
        self.prog.add(Copy(source, fragments.flatten(), f"{self.debug}/rearrange"))
        return fragments

    def ring_memory(self, type: ElementType, size: int, name: str) -> Tensor:
        """A new variable of so many elements for each rank."""
        return popops.createSliceableTensor(self.graph, type, [self.ranks, size], [0], [1], debugContext=f"{self.debug}/{name}")

    def check_destination(self, destination: Tensor, type: ElementType, shape: Iterable[int]) -> None:
        """Claim that a tensor takes a result."""
        check_operands(self.name, self.graph, destination=destination)
        check_writeable(self.name, destination)
        wanted = tuple(shape)
        if (destination.elementType(), tuple(destination.shape())) != (type, wanted):
            raise PoplibsError(f"{self.name}: the destination is {type!r} {list(wanted)}, got {destination!r}")


# Reductions


def _reduce_scatter(call: Collective, flat: Tensor, op: CollectiveOperator) -> Tensor:
    """[elements]: the fragment of the replica's rank, of what all replicas of the group have together."""
    fragments = call.padded(flat)
    if op is CollectiveOperator.SQUARE_ADD:
        popops.squareInPlace(call.graph, fragments, call.prog, f"{call.debug}/square")
    reduced = call.reduced(fragments, op)
    _finish(call, reduced, op)
    return reduced.flatten()


def _finish(call: Collective, reduced: Tensor, op: CollectiveOperator) -> None:
    if op is CollectiveOperator.MEAN:
        popops.mulInPlace(call.graph, reduced, 1.0 / call.ranks, call.prog, f"{call.debug}/mean")


def _all_reduce(call: Collective, flat: Tensor, op: CollectiveOperator, destination: Tensor) -> None:
    """Write what all replicas of the group have together to `destination`, which may be `flat`."""
    if flat.numElements() == 0:
        return
    if op is CollectiveOperator.LOCAL:
        call.prog.add(Copy(flat, destination, call.debug))
    elif call.method == "broadcast":
        target, (own,) = call.graph.reorderToSimplify(destination, [flat])
        _reduce_locally(call, own, op, target)
    else:
        flat, destination = _in_memory_order(call, flat, destination)
        reduced = _reduce_scatter(call, flat, op).expand([0])
        gathered = call.ring_memory(flat.elementType(), reduced.dim(1), "gathered")
        call.gather(reduced, gathered)
        call.prog.add(Copy(gathered.flatten()[: flat.numElements()], destination, f"{call.debug}/rearrange"))


def _in_memory_order(call: Collective, flat: Tensor, destination: Tensor) -> tuple[Tensor, Tensor]:
    """Both with elements that rings treat alike in the order in which the destination has them in memory.

    So what lies together there is rearranged as one piece, and not each element by itself. No element changes its fragment or
    its ring, which say in which order it is added up.
    """
    elements = flat.numElements()
    size = -(-elements // call.ranks)
    columns = call.column_bounds(call.method_for(flat.elementType(), call.ranks * size), size)[:-1]
    begins = [rank * size + column for rank in range(call.ranks) for column in columns]
    bounds = [*(begin for begin in begins if begin < elements), elements]
    parts = ([tensor.slice(begin, end) for tensor in (destination, flat)] for begin, end in pairwise(bounds))
    ordered = [call.graph.reorderToSimplify(target, [own]) for target, own in parts]
    return concat([own for _, (own,) in ordered]), concat([target for target, _ in ordered])


def _reduce_locally(call: Collective, flat: Tensor, op: CollectiveOperator, destination: Tensor) -> None:
    """The same where each replica gets all that the others have: they all reduce in the order of ranks."""
    gathered = _gather(call, flat)
    if op is CollectiveOperator.SQUARE_ADD:
        popops.squareInPlace(call.graph, gathered, call.prog, f"{call.debug}/square")
    for row in gathered[1:]:
        ROWS[op].combine(call.graph, gathered[0], row, call.prog, f"{call.debug}/{op.name}")
    _finish(call, gathered[0], op)
    call.prog.add(Copy(gathered[0], destination, f"{call.debug}/rearrange"))


def _gather(call: Collective, flat: Tensor) -> Tensor:
    """[ranks, elements]: what each replica of the group has."""
    gathered = call.ring_memory(flat.elementType(), flat.numElements(), "gathered")
    own = call.graph.clone(gathered[0], f"{call.debug}/own").expand([0])
    call.prog.add(Copy(flat, own.flatten(), f"{call.debug}/rearrange"))
    call.gather(own, gathered)
    return gathered


def _listed(call: Collective, data: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if not isinstance(data, Tensor | Iterable):
        raise PoplarTypeError(f"{call.name} takes a tensor, or a list of them, got {data!r}")
    tensors = [data] if isinstance(data, Tensor) else list(data)
    check_operands(call.name, call.graph, *tensors)
    return tensors


def _check_apart(call: Collective, written: list[Tensor]) -> None:
    """Claim that no two tensors of a list, all of one type, are written to one element."""
    if len(written) < 2 or concat([tensor.flatten() for tensor in written]).isParallelWriteable():
        return
    for one, other in combinations(written, 2):
        if not concat([one.flatten(), other.flatten()]).isParallelWriteable():
            raise PoplibsError(f"{call.name}: {one!r} and {other!r} cannot both be written: they share elements")


def _reduce_lists(call: Collective, data: list[Tensor], destinations: list[Tensor], op: CollectiveOperator) -> None:
    """Reduce tensors, those of one type together."""
    check_operator(call.name, op, *(tensor.elementType() for tensor in data))
    by_type: dict[ElementType, list[int]] = {}
    for number, tensor in enumerate(data):
        by_type.setdefault(tensor.elementType(), []).append(number)
    for numbers in by_type.values():
        _check_apart(call, [destinations[number] for number in numbers])
    for numbers in by_type.values():
        flat, target = (concat([tensors[number].flatten() for number in numbers]) for tensors in (data, destinations))
        _all_reduce(call, flat, op, target)


@overload
def allReduceCrossReplica(
    graph: Graph,
    data: Tensor,
    op: CollectiveOperator,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor: ...
@overload
def allReduceCrossReplica(
    graph: Graph,
    data: list[Tensor] | tuple[Tensor, ...],
    op: CollectiveOperator,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> list[Tensor]: ...
@public
def allReduceCrossReplica(
    graph: Graph,
    data: Tensor | list[Tensor] | tuple[Tensor, ...],
    op: CollectiveOperator,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor | list[Tensor]:
    """What the replicas of a group have together, the same bits on each; `prog` is extended.

    The order of sums is that of the ring in which fragments go round, or of ranks with the method "broadcast".

    Parameters
    ----------
    data:
        A tensor, or a list of tensors of any types, which are reduced together.
    op:
        How values are combined.
    group:
        Which replicas do it together; all without one.
    options:
        ``method``: "auto", one of the next by ranks and bytes, with PopLibs' thresholds; "clockwise_ring"; "anticlockwise_ring";
        "bidirectional_ring_pair", where halves go round in both directions; "meet_in_middle_ring", where each fragment comes from
        both sides, from half of the ring each; "quad_directional_ring", where quarters go round, every other one against the clock;
        or "broadcast", where each replica gets all values and reduces them itself. ``syncful...`` changes nothing.

    Returns
    -------
    Tensor | list[Tensor]
        New tensors like those of `data`; a list if `data` is one.

    Raises
    ------
    PoplibsError
        If the operator has no such type.
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    InvalidTileMapping
        If an element has no tile.

    Examples
    --------
    >>> from pypoplar import FLOAT, Engine, Graph, IPUModel, gcl
    >>> from pypoplar.program import Sequence
    >>> model = IPUModel("tiny")
    >>> model.numIPUs = 4
    >>> device = model.createDevice()
    >>> graph = Graph(device, 4)
    >>> gcl.addCodelets(graph)
    >>> x, prog = graph.addVariable(FLOAT, [2], "x"), Sequence()
    >>> graph.setTileMapping(x, 0)
    >>> graph.createHostWrite("x", graph.getNonReplicatedTensor(x))
    >>> total = gcl.allReduceCrossReplica(graph, x, gcl.CollectiveOperator.ADD, prog)
    >>> graph.createHostRead("total", total)
    >>> engine = Engine(graph, prog)
    >>> engine.load(device)
    >>> engine.writeTensor("x", [[1, 2], [3, 4], [5, 6], [7, 8]])
    >>> engine.run()
    >>> engine.readTensor("total").tolist()
    [[16.0, 20.0], [16.0, 20.0], [16.0, 20.0], [16.0, 20.0]]
    """
    call = Collective.of("allReduceCrossReplica", graph, prog, group, debugContext, options)
    tensors = _listed(call, data)
    results = [graph.clone(tensor, f"{call.debug}/result") for tensor in tensors]
    _reduce_lists(call, tensors, results, op)
    return results[0] if isinstance(data, Tensor) else results


@public
def allReduceInPlaceCrossReplica(
    graph: Graph,
    data: Tensor | Iterable[Tensor],
    op: CollectiveOperator,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """`allReduceCrossReplica` into the tensors that it reduces; `prog` is extended.

    Parameters
    ----------
    data:
        A tensor, or a list of tensors of any types, which are written.
    op:
        How values are combined.
    group:
        Which replicas do it together; all without one.
    options:
        As `allReduceCrossReplica` has them.

    Raises
    ------
    PoplibsError
        If the operator has no such type, or a tensor holds a constant or an element twice.
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    """
    call = Collective.of("allReduceInPlaceCrossReplica", graph, prog, group, debugContext, options)
    tensors = _listed(call, data)
    for tensor in tensors:
        check_writeable(call.name, tensor)
    _reduce_lists(call, tensors, tensors, op)


@public
def allReduceToDestinationCrossReplica(
    graph: Graph,
    data: Tensor | Iterable[Tensor],
    destination: Tensor | Iterable[Tensor],
    op: CollectiveOperator,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """`allReduceCrossReplica` into tensors that are there; `prog` is extended.

    Parameters
    ----------
    data:
        A tensor, or a list of tensors of any types.
    destination:
        As many tensors, of the same types and shapes.
    op:
        How values are combined.
    group:
        Which replicas do it together; all without one.
    options:
        As `allReduceCrossReplica` has them.

    Raises
    ------
    PoplibsError
        If the operator has no such type, or a destination does not fit or cannot be written.
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    """
    call = Collective.of("allReduceToDestinationCrossReplica", graph, prog, group, debugContext, options)
    tensors, destinations = _listed(call, data), _listed(call, destination)
    if len(tensors) != len(destinations):
        raise PoplibsError(f"{call.name}: {len(tensors)} tensors have {len(destinations)} destinations")
    for tensor, target in zip(tensors, destinations, strict=True):
        call.check_destination(target, tensor.elementType(), tensor.shape())
    _reduce_lists(call, tensors, destinations, op)


@public
def reduceScatterCrossReplica(
    graph: Graph,
    data: Tensor,
    op: CollectiveOperator,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """A fragment for each replica of what those of a group have together; `prog` is extended.

    Parameters
    ----------
    data:
        A tensor of any shape, which is flattened.
    op:
        How values are combined; LOCAL takes the fragment of the replica's own tensor.
    group:
        Which replicas do it together; all without one.
    options:
        As `allReduceCrossReplica` has them; with "broadcast", as "clockwise_ring".

    Returns
    -------
    Tensor
        A new tensor of rank 1: of N elements and n replicas it has ceil(N / n), the last padded with zeros.

    Raises
    ------
    PoplibsError
        If the operator has no such type.
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    """
    call = Collective.of("reduceScatterCrossReplica", graph, prog, group, debugContext, options)
    (tensor,) = _listed(call, [data])
    check_operator(call.name, op, tensor.elementType())
    if tensor.numElements() == 0:
        return graph.addVariable(tensor.elementType(), [0], f"{call.debug}/result")
    return _reduce_scatter(call, tensor.flatten(), op)


@public
def reduceScatterToDestinationCrossReplica(
    graph: Graph,
    data: Tensor,
    destination: Tensor,
    op: CollectiveOperator,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """`reduceScatterCrossReplica` into a tensor that is there; `prog` is extended.

    Parameters
    ----------
    data:
        A tensor of any shape, which is flattened.
    destination:
        Of rank 1, with ceil(N / n) elements of the same type.
    op:
        How values are combined.
    group:
        Which replicas do it together; all without one.
    options:
        As `allReduceCrossReplica` has them.

    Raises
    ------
    PoplibsError
        If the operator has no such type, or the destination does not fit or cannot be written.
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    """
    call = Collective.of("reduceScatterToDestinationCrossReplica", graph, prog, group, debugContext, options)
    (tensor,) = _listed(call, [data])
    check_operator(call.name, op, tensor.elementType())
    call.check_destination(destination, tensor.elementType(), [-(-tensor.numElements() // call.ranks)])
    if tensor.numElements():
        prog.add(Copy(_reduce_scatter(call, tensor.flatten(), op), destination, f"{call.debug}/rearrange"))


# What moves without being combined


@public
def allGatherCrossReplica(
    graph: Graph,
    data: Tensor,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """What each replica of a group has, for all of them; `prog` is extended.

    Parameters
    ----------
    data:
        A tensor of any shape.
    group:
        Which replicas do it together; all without one.
    options:
        As `allReduceCrossReplica` has them; with "broadcast", as "clockwise_ring".

    Returns
    -------
    Tensor
        A new tensor with one dimension more, the first: the rank in the group.

    Raises
    ------
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    InvalidTileMapping
        If an element has no tile.
    """
    call = Collective.of("allGatherCrossReplica", graph, prog, group, debugContext, options)
    (tensor,) = _listed(call, [data])
    shape = (call.ranks, *tensor.shape())
    if tensor.numElements() == 0:
        return graph.addVariable(tensor.elementType(), shape, f"{call.debug}/result")
    return _gather(call, tensor.flatten()).reshape(shape)


@public
def allGatherToDestinationCrossReplica(
    graph: Graph,
    data: Tensor,
    destination: Tensor,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> None:
    """`allGatherCrossReplica` into a tensor that is there; `prog` is extended.

    Parameters
    ----------
    data:
        A tensor of any shape.
    destination:
        Of the same type, with one dimension more, the first: the rank in the group.
    group:
        Which replicas do it together; all without one.
    options:
        As `allReduceCrossReplica` has them.

    Raises
    ------
    PoplibsError
        If the destination does not fit or cannot be written.
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    """
    call = Collective.of("allGatherToDestinationCrossReplica", graph, prog, group, debugContext, options)
    (tensor,) = _listed(call, [data])
    call.check_destination(destination, tensor.elementType(), (call.ranks, *tensor.shape()))
    if tensor.numElements():
        prog.add(Copy(_gather(call, tensor.flatten()), destination, f"{call.debug}/rearrange"))


@public
def allToAllCrossReplica(
    graph: Graph,
    data: Tensor,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """Row r of each replica for the replica of rank r of its group; `prog` is extended.

    Parameters
    ----------
    data:
        A tensor with a row for each rank.
    group:
        Which replicas do it together; all without one.
    options:
        As `allReduceCrossReplica` has them; the method changes nothing.

    Returns
    -------
    Tensor
        A new tensor of the same shape: row s has come from the replica of rank s.

    Raises
    ------
    PoplibsError
        If the tensor has not as many rows as a group replicas.
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    """
    call = Collective.of("allToAllCrossReplica", graph, prog, group, debugContext, options)
    (tensor,) = _listed(call, [data])
    if tensor.rank() == 0 or tensor.dim(0) != call.ranks:
        raise PoplibsError(f"{call.name} takes a row for each of {call.ranks} replicas, got {tensor!r}")
    size = tensor.numElements() // call.ranks
    if size == 0:
        return graph.clone(tensor, f"{call.debug}/result")
    given, taken = (call.ring_memory(tensor.elementType(), size, name) for name in ("given", "taken"))
    prog.add(Copy(tensor, given, f"{call.debug}/rearrange"))
    call.ring().all_to_all(given, taken)
    return taken.reshape(tensor.shape())


@public
def broadcastCrossReplica(
    graph: Graph,
    data: Tensor,
    prog: Sequence,
    group: CommGroup | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """What the first replica of a group has, for all of them; `prog` is extended.

    Parameters
    ----------
    data:
        A tensor of any shape.
    group:
        Which replicas do it together; all without one.
    options:
        As `allReduceCrossReplica` has them; the method changes nothing.

    Returns
    -------
    Tensor
        A new tensor like `data`.

    Raises
    ------
    InvalidOption
        If groups do not divide the replicas, or for an unknown option.
    InvalidTileMapping
        If an element has no tile.
    """
    call = Collective.of("broadcastCrossReplica", graph, prog, group, debugContext, options)
    (tensor,) = _listed(call, [data])
    result = graph.clone(tensor, f"{call.debug}/result")
    if call.ranks == 1 or tensor.numElements() == 0:
        prog.add(Copy(tensor, result, f"{call.debug}/own"))
        return result
    pair = popops.createSliceableTensor(
        graph, tensor.elementType(), [2, tensor.numElements()], [0], [1], debugContext=f"{call.debug}/pair"
    )
    moved, ring = graph.clone(pair[:1], f"{call.debug}/moved"), call.ring()
    for own in (pair[0], moved):
        prog.add(Copy(tensor.flatten(), own.flatten(), f"{call.debug}/own"))
    follows = ring.number([int(rank > 0) for rank in range(call.ranks)], "follows")  # whether it takes what has come, or its own
    step = Sequence([CrossReplicaCopy(moved, pair[1:], ring.to_next(), f"{call.debug}/toNext")])
    taken = popops.dynamicSlice(graph, pair, follows, [0], [1], step, f"{call.debug}/take")
    step.add(Copy(taken, moved, f"{call.debug}/take"))
    prog.add(Repeat(call.ranks - 1, step, call.debug))
    prog.add(Copy(moved.flatten(), result.flatten(), f"{call.debug}/rearrange"))
    return result
