"""What the replicas of a graph do together: exchange tensors, and agree on what decides where they go."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from pypoplar.braces import ordered
from pypoplar.errors import ControlProgramError, PoplarTypeError
from pypoplar.graph.operands import check_copy, check_one_element
from pypoplar.graph.tensor import Tensor
from pypoplar.program.base import Nothing, Program
from pypoplar.tracebacks import public

MOST_NAMED = 5  # replicas in a message


@public
class CrossReplicaCopy(Program):
    """Send a tensor of each replica to another replica, which receives it in its own.

    All replicas have to come to it, and wait for the one that comes last. It moves what is there before anything is received, so
    that one tensor may be sent and received.

    Parameters
    ----------
    source:
        What each replica sends.
    destination:
        Where each replica receives: a tensor with as many elements of the same type.
    replicaMap:
        For each replica of the graph that to which it sends: ``{0: 1, 1: 2, 2: 0}``. Each receives from exactly one, none from
        itself.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If element types or graphs differ, or the map is none of whole numbers.
    TensorShapeError
        If the numbers of elements differ.
    TensorWriteError
        If the destination holds a constant or an element twice, or an element at another position than the source.
    ControlProgramError
        If the map does not say of each replica where it sends, or not of each from where it receives, or one sends to itself.

    Examples
    --------
    >>> from pypoplar import UNSIGNED_INT, Engine, Graph, IPUModel
    >>> from pypoplar.program import CrossReplicaCopy
    >>> model = IPUModel("tiny")
    >>> model.numIPUs = 3
    >>> device = model.createDevice()
    >>> graph = Graph(device, 3)
    >>> index = graph.addReplicationIndexConstant()
    >>> left = graph.addVariable(UNSIGNED_INT, [])
    >>> for tensor in (index, left):
    ...     graph.setTileMapping(tensor, 0)
    >>> graph.createHostRead("left", left)
    >>> engine = Engine(graph, CrossReplicaCopy(index, left, {0: 1, 1: 2, 2: 0}))
    >>> engine.loadAndRun(device)
    >>> engine.readTensor("left").tolist()
    [2, 0, 1]
    """

    def __init__(self, source: Tensor, destination: Tensor, replicaMap: Mapping[int, int], name: str = "") -> None:
        super().__init__(name)
        check_copy(source, destination)
        self.source = source
        self.destination = destination
        self.receivers = _receivers(replicaMap, source.graph.replicas().count)

    def reads(self) -> tuple[Tensor, ...]:
        return (self.source,)

    def writes(self) -> tuple[Tensor, ...]:
        return (self.destination,)

    def contains(self) -> Nothing:
        return Nothing()

    def detail(self) -> str:
        return f"{self.source.getDebugStr()} to other replicas"


@public
class AssumeEqualAcrossReplicas(Program):
    """Claim that a value is the same on all replicas, so that a branch on it goes the same way everywhere.

    Every replica has to come to it. It costs nothing; a run in which the values differ ends with an `ApplicationRuntimeError` that
    names the replicas and their values.

    Parameters
    ----------
    tensor:
        BOOL or an integer type, of one element.
    name:
        Its debug name.

    Raises
    ------
    PoplarTypeError
        If the tensor is of another type.
    TensorShapeError
        If it has another number of elements.
    """

    def __init__(self, tensor: Tensor, name: str = "") -> None:
        super().__init__(name)
        self.tensor = check_one_element(tensor, "the tensor of AssumeEqualAcrossReplicas", None)

    def reads(self) -> tuple[Tensor, ...]:
        return (self.tensor,)

    def writes(self) -> tuple[Tensor, ...]:
        return ()

    def contains(self) -> Nothing:
        return Nothing()

    def detail(self) -> str:
        return self.tensor.getDebugStr()


def _receivers(replica_map: Any, count: int) -> tuple[int, ...]:
    """For each replica the one to which it sends."""
    if not isinstance(ordered(replica_map, "a replica map", "{0: 1, 1: 0}"), Mapping):
        raise PoplarTypeError(
            f"a replica map is a dict from each replica to its receiver, got {replica_map!r}; write {{0: 1, 1: 0}}"
        )
    try:
        if any(isinstance(replica, bool) for pair in replica_map.items() for replica in pair):
            raise TypeError
        given = {operator.index(sender): operator.index(receiver) for sender, receiver in replica_map.items()}
    except TypeError:
        raise PoplarTypeError(f"a replica map has numbers of replicas, got {replica_map!r}") from None
    every = set(range(count))
    for what, named in (("senders", list(given)), ("receivers", list(given.values()))):
        if sorted(named) != sorted(every):
            expected = f"a replica map of {count} replicas has each of 0 to {count - 1} once among its {what}"
            raise ControlProgramError(f"{expected}; {_amiss(named, every)}")
    for sender, receiver in given.items():
        if sender == receiver:
            raise ControlProgramError(f"a replica map: replica {sender} sends to itself")
    return tuple(given[sender] for sender in range(count))


def _amiss(named: list[int], every: set[int]) -> str:
    """What is wrong with the replicas on one side of a map."""
    twice = sorted({number for number in named if named.count(number) > 1})
    kinds = (("unknown", sorted(set(named) - every)), ("missing", sorted(every - set(named))), ("several times", twice))
    return "; ".join(f"{what}: {_listed(numbers)}" for what, numbers in kinds if numbers)


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:MOST_NAMED])) + ", ..." * (len(numbers) > MOST_NAMED)
