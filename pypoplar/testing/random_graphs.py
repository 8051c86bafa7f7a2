"""Small random programs whose result NumPy computes to the bit.

A program works on float variables ``f0, f1, ...`` and int variables ``i0, i1, ...`` of one length. Each step reads and writes whole
variables; its vertices divide the elements among them at `cuts` and sit on `tiles`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.testing import sample_codelets as codelets
from pypoplar.testing.view_chains import View

if TYPE_CHECKING:
    from pypoplar.program import Program

Arrays = dict[str, AnyArray]


@frozen
class Share:
    """How vertices divide elements: vertex k has ``[cuts[k], cuts[k + 1])`` and sits on ``tiles[k]``."""

    cuts: tuple[int, ...]
    tiles: tuple[int, ...]

    def pieces(self) -> list[tuple[int, int, int]]:
        """Begin, end and tile of each piece."""
        return [(begin, end, tile) for (begin, end), tile in zip(pairwise(self.cuts), self.tiles, strict=True)]


@frozen
class Compute:
    """A compute set of vertices of one codelet of `pypoplar.testing.sample_codelets`; `operands` maps fields to variables."""

    codelet: str
    operands: tuple[tuple[str, str], ...]
    share: Share
    state: tuple[tuple[str, float], ...] = ()
    rows: int = 1

    def build(self, graph: Any, tensors: Mapping[str, Any], name: str) -> Program:
        """The program that executes it in a graph, on these tensors."""
        from pypoplar.program import Execute

        compute_set = graph.addComputeSet(name)
        for begin, end, tile in self.share.pieces():
            edges = {field: tensors[variable].slice(begin, end) for field, variable in self.operands}
            if self.codelet == "SumRows":
                edges["rows"] = [edges["rows"].slice(*row) for row in self._rows(begin, end)]
                edges["target"] = edges["target"].slice(0, len(edges["rows"]))
            vertex = graph.addVertex(compute_set, getattr(codelets, self.codelet), {**edges, **dict(self.state)})
            graph.setTileMapping(vertex, tile)
        return Execute(compute_set)

    def _rows(self, begin: int, end: int) -> list[tuple[int, int]]:
        cuts = [number * (end - begin) // self.rows for number in range(self.rows + 1)]
        return [(low, high) for low, high in pairwise(cuts) if high > low]

    def apply(self, arrays: Arrays) -> None:
        """Do to arrays what the program does to tensors."""
        operand = {field: arrays[variable] for field, variable in self.operands}
        state = dict(self.state)
        source = operand.get("source", operand.get("rows"))
        for begin, end, _ in self.share.pieces():
            piece = slice(begin, end)
            if self.codelet == "Shift":
                operand["value"][piece] += np.int32(state["by"])
                continue
            target = operand["target"]
            if self.codelet == "Add":
                target[piece] = operand["left"][piece] + operand["right"][piece]
                continue
            assert source is not None
            if self.codelet == "Scale":
                target[piece] = np.float32(state["factor"]) * source[piece]
            elif self.codelet == "Reverse":
                target[piece] = source[piece][::-1]
            elif self.codelet == "Rectify":
                target[piece] = np.where(source[piece] > 0, source[piece], np.float32(0))
            else:
                for number, (low, high) in enumerate(self._rows(begin, end)):
                    total = np.float32(0)
                    for value in source[begin + low : begin + high]:
                        total = total + value
                    target[begin + number] = total


@frozen
class Move:
    """A Copy between views of two variables."""

    source: str
    target: str
    source_view: View
    target_view: View

    def build(self, graph: Any, tensors: Mapping[str, Any], name: str) -> Program:
        """The copy between the two views of tensors."""
        from pypoplar.program import Copy

        return Copy(self.source_view.of(tensors[self.source]), self.target_view.of(tensors[self.target]))

    def apply(self, arrays: Arrays) -> None:
        """Do to arrays what the copy does to tensors."""
        moved = self.source_view.of_array(arrays[self.source]).copy()
        self.target_view.of_array(arrays[self.target])[...] = moved


@frozen
class RepeatedSteps:
    """A Repeat of steps."""

    count: int
    steps: tuple[Compute | Move | RepeatedSteps, ...]

    def build(self, graph: Any, tensors: Mapping[str, Any], name: str) -> Program:
        """The loop of the steps' programs."""
        from pypoplar.program import Repeat, Sequence

        body = [step.build(graph, tensors, f"{name}.{number}") for number, step in enumerate(self.steps)]
        return Repeat(self.count, Sequence(body))

    def apply(self, arrays: Arrays) -> None:
        """Do the steps to arrays, as often as the loop does."""
        for _ in range(self.count):
            for step in self.steps:
                step.apply(arrays)


@frozen(eq=False)
class SmallGraph:
    """A program with its inputs: ``run(graph.build, graph.inputs(), mapping=graph.mapping)`` must leave `expected`."""

    values: Mapping[str, AnyArray]
    mapping: Mapping[str, Any]
    steps: tuple[Compute | Move | RepeatedSteps, ...]

    def inputs(self) -> Arrays:
        """The arrays that go in, by variable."""
        return {name: array.copy() for name, array in self.values.items()}

    def build(self, graph: Any, **tensors: Any) -> Program:
        """The program on variables of these names, types and lengths."""
        from pypoplar.program import Sequence

        return Sequence([step.build(graph, tensors, f"step {number}") for number, step in enumerate(self.steps)])

    def expected(self) -> Arrays:
        """What the program leaves, computed by NumPy."""
        arrays = self.inputs()
        with np.errstate(all="ignore"):
            for step in self.steps:
                step.apply(arrays)
        return arrays
