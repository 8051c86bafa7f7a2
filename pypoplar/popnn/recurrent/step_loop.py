"""The loop over the steps of a sequence: one body, whatever the number of steps."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popnn.recurrent.rnn_params import RnnParams
from pypoplar.popops.elements.element_functions import addInPlace
from pypoplar.popops.elements.map_call import MapCall
from pypoplar.popops.elements.map_functions import map
from pypoplar.popops.expr import Cast, Const, Expr, Lt, Max, Min, _1, _2
from pypoplar.popops.loops.counted_loops import countedForLoop
from pypoplar.popops.reduction.reduce_call import reduce
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.popops.slicing.dynamic_vertices import add_dynamic_vertices, columns_along
from pypoplar.poputil.naming import below
from pypoplar.program import Copy, Execute, Program, Repeat, Sequence
from pypoplar.types import INT, UNSIGNED_INT

DOWN = 2**32 - 1  # added to an UNSIGNED_INT it counts down


@define(eq=False)
class StepLoop:
    """Steps 0 to ``count - 1``, or those that a tensor says, in order or in reverse; `index` [1] is that of the step that runs.

    `limit` [1] is how many steps run, None where that is `count`; `lengths` how many of each sample, None where that is the same.
    Where it is known how many there are, what takes rows and what puts them also counts: what takes them copies the index, what
    puts them reads the copy, and makes it the next index.
    """

    graph: Graph
    count: int
    reverse: bool
    debug: str
    index: Tensor
    limit: Tensor | None
    lengths: Tensor | None
    copy: Tensor | None = None
    counted: bool = False

    @staticmethod
    def of(graph: Graph, params: RnnParams, reverse: bool, prog: Sequence, debug: str) -> StepLoop:
        """The loop over the steps of a layer; `prog` is extended by what finds out how many there are."""
        index = graph.addVariable(UNSIGNED_INT, [1], below(debug, "step"))
        graph.setTileMapping(index, 0)
        given, limit = params.varTimeSteps, None
        if given is not None:
            given = _integers(graph, given, params.maxTimeSteps, prog, below(debug, "steps"))
            most = reduce(graph, given, [0], ReduceParams(Operation.MAX), prog, below(debug, "mostSteps"))
            bounded = Cast(Max(Min(_1, params.maxTimeSteps), 0), UNSIGNED_INT)
            limit = map(graph, bounded, [most.reshape([1])], prog, below(debug, "limit"))
        lengths = given if params.batchVariableTimeSteps() else None
        return StepLoop(graph, params.maxTimeSteps, reverse, debug, index, limit, lengths)

    def run(self, body: Program, prog: Sequence) -> None:
        """Extend `prog` by the loop of a body, which reads `index`."""
        debug = below(self.debug, "loop")
        if self.limit is not None:
            self._run_to_limit(body, prog, debug)
            return
        turn = Sequence([body])
        if not self.counted:
            addInPlace(self.graph, self.index, self.constant(self._step), turn, below(debug, "count"))
        prog.add(Copy(self.constant(self.count - 1 if self.reverse else 0), self.index))
        prog.add(Repeat(self.count, turn, debug))

    def _run_to_limit(self, body: Program, prog: Sequence, debug: str) -> None:
        assert self.limit is not None
        if not self.reverse:
            prog.add(countedForLoop(self.graph, self.index, 0, self.limit, 1, body, debug))
            return
        turn = Sequence()
        addInPlace(self.graph, self.index, self.constant(DOWN), turn, below(debug, "count"))
        turn.add(body)
        prog.add(Copy(self.limit, self.index))
        prog.add(countedForLoop(self.graph, 0, self.limit, 1, turn, debug))

    @property
    def _step(self) -> int:
        return DOWN if self.reverse else 1

    def lasting(self, prog: Sequence) -> Tensor | None:
        """For each sample whether its steps last: BOOLs [batch, 1]; None where all last equally long."""
        if self.lengths is None:
            return None
        lasts = Lt(Cast(_1, INT), Cast(_2, INT))
        return map(self.graph, lasts, [self.index, self.lengths], prog, below(self.debug, "lasting")).expand([1])

    def take(self, sequences: Iterable[Tensor], prog: Sequence) -> list[Tensor]:
        """Of each sequence, as rows, the row of the step: new tensors, filled in one compute set."""
        debug = below(self.debug, "take")
        cs, parts = self.graph.addComputeSet(debug), []
        for rows in sequences:
            part = self.graph.clone(rows.slice(0, 1), debug)
            base, sub = columns_along(self.graph, rows, 0, part)
            add_dynamic_vertices(self.graph, cs, "popops::DynamicSlice", self.index, base, sub, False)
            parts.append(part)
        if parts:
            prog.add(Execute(cs))
        if parts and self.limit is None and self.copy is None:
            self.copy = self.graph.clone(self.index, below(debug, "copy"))
            self._assign(cs, self.copy, _1, self.index)
        return parts

    def put(self, sequences: Iterable[tuple[Tensor, Tensor]], prog: Sequence) -> None:
        """Make rows those of the step in their sequences, in one compute set; a row lies as those of its sequence do."""
        cs = self.graph.addComputeSet(below(self.debug, "put"))
        place = self.index if self.copy is None or self.counted else self.copy
        for rows, part in sequences:
            base, sub = columns_along(self.graph, rows, 0, part)
            add_dynamic_vertices(self.graph, cs, "popops::DynamicUpdateSlice", place, base, sub, False)
        if place is self.copy:
            self.counted = True
            self._assign(cs, self.index, _1 + Const(self._step, UNSIGNED_INT), place)
        prog.add(Execute(cs))

    def _assign(self, cs: ComputeSet, out: Tensor, tree: Expr, tensor: Tensor) -> None:
        """A vertex for a new value of a counter, in a compute set that there is."""
        debug = below(self.debug, "count")
        MapCall.of(debug, self.graph, [tree], [tensor], Sequence(), debug).into_set(cs, out)

    def constant(self, value: int) -> Tensor:
        """A number [1] for the counter, beside it."""
        constant = self.graph.addConstant(UNSIGNED_INT, [1], value, below(self.debug, str(value)))
        self.graph.setTileMapping(constant, 0)
        return constant


def _integers(graph: Graph, given: Tensor, most: int, prog: Sequence, debug: str) -> Tensor:
    """Numbers of steps as INTs; those that no INT can hold are more than there are."""
    if given.elementType() is INT:
        return given
    return map(graph, Cast(Min(_1, Const(most, UNSIGNED_INT)), INT), [given], prog, debug)
