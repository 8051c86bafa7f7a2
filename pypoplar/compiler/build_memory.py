"""What the passes of the compiler hold, for messages where the memory of this machine runs short."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import ref

import attrs
import numpy as np

from pypoplar.errors import PoplarMemoryError
from pypoplar.graph.graph import Graph
from pypoplar.host_memory import Holdings, TableSize, shortage


class BuildMemory:
    """What has been made by now of a graph, without keeping it; it is measured only where a message tells of it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._made: dict[str, list[ref[Any]]] = {}

    def made(self, name: str, *results: Any) -> None:
        """Note what a pass made, frozen attrs classes of arrays, and look at the memory."""
        self._made.setdefault(name, []).extend(map(ref, results))
        self._graph.look_at_memory(self.holdings)

    def shortage(self, error: MemoryError) -> PoplarMemoryError:
        """The error to raise for one of Python's or NumPy's."""
        return shortage(error, self.holdings)

    def holdings(self) -> Holdings:
        """The tables of the graph and what passes have made that is still there."""
        own = self._graph.holdings()
        made = (_size(name, [result for each in results if (result := each()) is not None]) for name, results in self._made.items())
        return Holdings((*own.tables, *made), own.modules)


def _size(name: str, results: list[Any]) -> TableSize:
    """The arrays of some results; rows are those of the longest array of each."""
    rows = size = 0
    for result in results:
        arrays = list(_arrays(result))
        rows += max(map(len, arrays), default=0)
        size += sum(array.nbytes for array in arrays)
    return TableSize(name, rows, size)


def _arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays of a class, and of those that are its fields."""
    if isinstance(value, np.ndarray):
        if value.ndim:
            yield value
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            yield from _arrays(getattr(value, field.name))
