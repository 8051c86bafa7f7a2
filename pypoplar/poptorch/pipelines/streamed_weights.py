"""Weights that are in streaming memory between phases: rows of remote buffers, and the copies that bring and take them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from attrs import frozen
from torch import fx

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.engine.engine import Engine
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import RemoteBuffer
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch.pipelines.phase_walk import PhasedGraph, PhaseKey, PhaseTurn
from pypoplar.program import Copy, Sequence
from pypoplar.types import ElementType

LARGEST_ROW = 128 * 10**6  # bytes of a remote buffer's row


@frozen
class StreamedRow:
    """A row of a remote buffer: whole parameters, by name, one behind the other, each with its shape."""

    handle: str
    dtype: str  # NumPy's name of it
    parameters: tuple[tuple[str, tuple[int, ...]], ...]
    also: tuple[tuple[str, str], ...] = ()  # other names of tied parameters, each with the one that is in the row

    @property
    def names(self) -> list[str]:
        """All names of the parameters."""
        return [name for name, _ in (*self.parameters, *self.also)]

    def write(self, engine: Engine, arrays: Mapping[str, AnyArray], replicas: int) -> None:
        """Give all replicas the parameters' values."""
        whole = np.concatenate([arrays[name].reshape(-1) for name, _ in self.parameters])
        for replica in range(replicas):
            engine.copyToRemoteBuffer(whole, self.handle, 0, replica)

    def read(self, engine: Engine) -> dict[str, AnyArray]:
        """The parameters' values, of several replicas on the first."""
        parts = np.split(self.whole(engine, 0), np.cumsum(self._sizes)[:-1])
        values = {name: part.reshape(shape) for (name, shape), part in zip(self.parameters, parts, strict=True)}
        return values | {other: values[name] for other, name in self.also}

    def whole(self, engine: Engine, replica: int) -> AnyArray:
        """The values of a replica, one behind the other."""
        whole = np.empty(sum(self._sizes), self.dtype)
        engine.copyFromRemoteBuffer(self.handle, whole, 0, replica)
        return whole

    @property
    def _sizes(self) -> list[int]:
        return [prod(shape) for _, shape in self.parameters]


@frozen(eq=False)
class _Home:
    """A row with its buffer, the parameters' tensors as one, and the turns of phases that read some of them."""

    row: StreamedRow
    buffer: RemoteBuffer
    whole: Tensor
    turns: set[PhaseTurn]


class StreamedWeights:
    """The parameters of a model in phases that are in streaming memory. Those that the same phases of one IPU read lie together."""

    def __init__(self, lowered: PhasedGraph, least: int) -> None:
        """For a graph that has been lowered; parameters of fewer elements than `least` stay on tiles."""
        users, nodes = lowered.users(), {one.name: one.node for one in lowered.joint.inputs}
        together: dict[tuple[int, ElementType, frozenset[PhaseKey]], list[str]] = {}
        names_of: dict[fx.Node, list[str]] = {}  # tied parameters are of one node
        for name in users:
            names_of.setdefault(nodes[name], []).append(name)
        for name, *_ in names_of.values():
            readers = users[name]
            variable = lowered.variables[nodes[name]]
            if readers and least <= prod(variable.shape) and prod(variable.shape) * variable.type.size <= LARGEST_ROW:
                lowered.tensor(nodes[name])  # which has an IPU then
                key = (variable.ipu, variable.type, frozenset(turn.phase for turn in readers))
                together.setdefault(key, []).append(name)
        self._homes: dict[str, _Home] = {}
        self._of: dict[str, str] = {}  # the handle by parameter
        for (_, type, _), names in together.items():
            tensors = {name: lowered.tensor(nodes[name]) for name in names}
            for parameters in _in_rows(tensors):
                turns = set[PhaseTurn]().union(*(users[name] for name, _ in parameters))
                also = tuple((other, name) for name, _ in parameters for other in names_of[nodes[name]][1:])
                row = StreamedRow(f"weights/{len(self._homes)}", type.dtype.name, parameters, also)
                self._add(lowered.graph, row, tensors, turns)

    def _add(self, graph: Graph, row: StreamedRow, tensors: Mapping[str, Tensor], turns: set[PhaseTurn]) -> None:
        whole = concat([tensors[name].flatten() for name, _ in row.parameters])
        buffer = graph.addRemoteBuffer(row.handle, whole.elementType(), whole.numElements())
        self._homes[row.handle] = _Home(row, buffer, whole, turns)
        self._of.update(dict.fromkeys(row.names, row.handle))

    @property
    def rows(self) -> tuple[StreamedRow, ...]:
        """All rows."""
        return tuple(home.row for home in self._homes.values())

    def home(self, parameter: str) -> str:
        """The handle of the row that has a parameter; empty for one that stays on tiles."""
        return self._of.get(parameter, "")

    def brought_for(self, turn: PhaseTurn) -> Sequence:
        """Bring what a turn of a phase reads."""
        name = f"phase{turn.phase.number}/weights/bring"
        return Sequence([Copy(home.buffer, home.whole, name=name) for home in self._homes.values() if turn in home.turns])

    def brought(self, handle: str) -> Sequence:
        """Bring a row for its update."""
        home = self._homes[handle]
        return Sequence([Copy(home.buffer, home.whole, name="optimizer/update/weights/bring")])

    def taken(self, handle: str) -> Sequence:
        """Take a row back."""
        home = self._homes[handle]
        return Sequence([Copy(home.whole, home.buffer, name="optimizer/update/weights/take")])


def _in_rows(tensors: Mapping[str, Tensor]) -> list[tuple[tuple[str, tuple[int, ...]], ...]]:
    """Parameters with their shapes, as many in a row as it takes."""
    rows: list[list[tuple[str, tuple[int, ...]]]] = [[]]
    filled = 0
    for name, tensor in tensors.items():
        size = tensor.numElements() * tensor.elementType().size
        if rows[-1] and filled + size > LARGEST_ROW:
            rows.append([])
            filled = 0
        rows[-1].append((name, tuple(tensor.shape())))
        filled += size
    return [tuple(row) for row in rows]
