"""When variables live: which hold values from run to run, and from where to where in the programs the others are needed.

A variable is *always live* if it is a constant, has an initial value or a host handle, or if some program may read an element of it
before that program has written it: then the value is one of an earlier run, or what was there when the engine was loaded. Every
other variable lives, in each program and function, from the first position that touches or needs it to the last; a life that goes
over the back edge of a loop covers the loop, one that goes over a call covers the function that is called.

This is data flow over atoms (see `atoms`), exact but for what lives between the first and the last position of a block. An Output
counts as written where its vertex surely writes all of it (see `full_writes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import numpy as np
from attrs import define, field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import ragged, sums_between
from pypoplar.compiler.check.connected_regions import Regions
from pypoplar.compiler.control.operation_tree import Block, Choice, Invoke, Line, Loop, OperationTree
from pypoplar.compiler.control.stackless import Calls, answer
from pypoplar.compiler.control.usage import Usage
from pypoplar.compiler.liveness.atoms import KINDS, READ, WRITE, Atoms, find_atoms
from pypoplar.compiler.liveness.control_flow import PositionRange, pieces
from pypoplar.compiler.liveness.full_writes import ITSELF, NEVER, defined_fields, written_in_full
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.tensor import Tensor


@frozen(eq=False)
class Liveness:
    """The lives of the variables in positions of the operation tree; ranges are half-open, sorted by variable and begin."""

    always: Bools  # [variables]: used and always live
    first: Int64s  # [variables + 1]: a variable's ranges, none where it is always live or unused
    begin: Int64s
    end: Int64s

    def shared(self) -> Bools:
        """bool [variables]: those that live only at times."""
        lasting: Bools = np.diff(self.first) > 0
        return lasting


def find_liveness(
    graph: FrozenGraph, workers: int, tree: OperationTree, usage: Usage, regions: Regions, handles: list[Tensor], used: Bools
) -> Liveness:
    """The lives of the `used` variables (bool per variable). `regions` are those of all compute sets that are executed.

    `workers` are those of a tile, which share the elements of MultiVertices.
    """
    fixed = _fixed_variables(graph, handles) | ~used
    if fixed.all():
        nothing = np.zeros(0, np.int64)
        return Liveness(used, np.zeros(len(used) + 1, np.int64), nothing, nothing)
    atoms = find_atoms(graph, tree.accesses, regions, full_edges(graph, workers, regions), fixed)
    variable, begin, end = AtomFlow(tree, atoms, len(used)).ranges(reversed(usage.functions))
    kept = ~fixed[variable]
    always = used & fixed
    seen = np.zeros(len(used), bool)
    seen[variable] = True
    exposed = used & ~seen
    always |= exposed
    order = np.lexsort((begin[kept], variable[kept]))  # blocks are not visited in the order of their positions
    variable, begin, end = (column[kept][order] for column in (variable, begin, end))
    return Liveness(always, np.searchsorted(variable, np.arange(len(used) + 1)), begin, end)


def full_edges(graph: FrozenGraph, workers: int, regions: Regions) -> Bools:
    """bool: the edges of `regions` to which a vertex surely writes all elements."""
    edges, edge = graph.edges, regions.edge
    bounds = defined_fields(graph.codelets, workers)
    if np.isin(bounds, (NEVER, ITSELF)).all():
        whole: Bools = bounds[regions.entry] == ITSELF
        return whole
    length = sums_between(edges.first_run, edges.run_count)[edge]
    first = regions.fields.first[graph.vertices.codelet[regions.vertex]]
    return written_in_full(bounds, regions.entry, regions.vertex, edges.row[edge], length, first, workers)


def _fixed_variables(graph: FrozenGraph, handles: list[Tensor]) -> Bools:
    """bool [variables]: those that hold something before and after every run."""
    variables = graph.variables
    fixed = np.zeros(len(variables.names), bool)
    fixed[list(variables.constants)] = True
    for runs in [*(runs for runs, _ in variables.initial), *(tensor.runs() for tensor in handles)]:
        fixed[np.searchsorted(variables.first, runs.start[runs.count > 0], side="right") - 1] = True
    return fixed


@frozen(eq=False)
class Summary:
    """What a piece of program does to atoms: bool [atoms] each."""

    use: Bools  # may be read before they are written
    define: Bools  # are written whatever happens


@define(eq=False)
class AtomFlow:
    """Data flow over the blocks of some programs."""

    tree: OperationTree
    atoms: Atoms
    variables: int
    first: Int64s = field(init=False)  # [positions + 1]: a position's events, reads before writes
    atom: Int64s = field(init=False)  # [events]
    kind: Int64s = field(init=False)  # [events]
    _summaries: dict[int, Summary] = field(factory=dict)  # by id of a line
    _leaving: dict[int, Bools] = field(factory=dict)  # function -> [atoms]: live when it returns
    _low: Int64s = field(init=False)
    _high: Int64s = field(init=False)

    def __attrs_post_init__(self) -> None:
        position = np.fromiter(self.tree.access_at.keys(), np.int64, len(self.tree.access_at))
        access = np.fromiter(self.tree.access_at.values(), np.int64, len(self.tree.access_at))
        order = np.argsort(position)
        lists = (access[order][:, None] * KINDS + np.arange(KINDS)).ravel()
        count = self.atoms.first[lists + 1] - self.atoms.first[lists]
        self.atom = self.atoms.atom[ragged(self.atoms.first[lists], count)]
        self.kind = np.repeat(np.tile(np.arange(KINDS), len(order)), count)
        events = np.zeros(self.tree.positions + 1, np.int64)
        events[position[order] + 1] = count.reshape(-1, KINDS).sum(1)
        self.first = np.cumsum(events)

    def ranges(self, functions: Iterable[int]) -> tuple[Int64s, Int64s, Int64s]:
        """Variable, begin and end of every range of the variables that live only at times.

        Each of the `functions` comes after those that call it.
        """
        ranges = []
        always = np.zeros(self.variables, bool)
        for block in [*self.tree.programs(), *(self.tree.blocks["function", number] for number in functions)]:
            self._low, self._high = np.full(self.variables, self.tree.positions), np.full(self.variables, -1)
            kind, number = block.name
            live = np.zeros(len(self.atoms.variable), bool) if kind == "program" else self._leaving[number]
            self._touch_events(block)
            self._touch(live, block.end - 1)
            live = answer(self._before(block.line, live))
            self._touch(live, block.begin)
            if kind == "program":
                always[self.atoms.variable[live]] = True
            variable = np.flatnonzero(self._high >= 0)
            ranges.append((variable, self._low[variable], self._high[variable] + 1))
        variable, begin, end = (np.concatenate([np.zeros(0, np.int64), *column]) for column in zip(*ranges, strict=True))
        kept = ~always[variable]
        return variable[kept], begin[kept], end[kept]

    # What is touched where

    def _touch_events(self, block: Block) -> None:
        begin, end = int(self.first[block.begin]), int(self.first[block.end])
        variable = self.atoms.variable[self.atom[begin:end]]
        position = np.repeat(np.arange(block.begin, block.end), np.diff(self.first[block.begin : block.end + 1]))
        np.minimum.at(self._low, variable, position)
        np.maximum.at(self._high, variable, position)

    def _touch(self, live: Bools, begin: int, end: int | None = None) -> None:
        """The variables of live atoms live at a position, or from `begin` to `end`."""
        variable = self.atoms.variable[live]
        self._low[variable] = np.minimum(self._low[variable], begin)
        self._high[variable] = np.maximum(self._high[variable], begin if end is None else end - 1)

    # Backwards through the program

    def _before(self, line: Line, live: Bools) -> Calls[Bools]:
        """What is live before a line, where `live` is live after it."""
        live = live.copy()
        for piece in reversed(pieces(line)):
            match piece:
                case PositionRange():
                    use, define = self._of_run(piece)
                    live[define] = False
                    live[use] = True
                case Loop():
                    live = yield self._before_loop(piece, live)
                case Choice():
                    live = yield self._before_choice(piece, live)
                case Invoke():
                    live = yield self._before_call(piece, live)
                case _:
                    assert_never(piece)
        return live

    def _before_loop(self, loop: Loop, live: Bools) -> Calls[Bools]:
        head, body = (yield self.summary(loop.head)), (yield self.summary(loop.body))
        before: Bools = head.use | ((live | body.use) & ~head.define)
        self._touch(before, loop.position, loop.end)
        yield self._before(loop.body, before)
        yield self._before(loop.head, live | body.use | (before & ~body.define))
        return before

    def _before_choice(self, choice: Choice, live: Bools) -> Calls[Bools]:
        before = np.zeros(len(live), bool) if choice.always else live.copy()
        for part in choice.parts:
            before |= yield self._before(part, live)
        return before

    def _before_call(self, call: Invoke, live: Bools) -> Calls[Bools]:
        leaving = self._leaving.setdefault(call.function.number, np.zeros(len(live), bool))
        leaving |= live
        function = yield self.summary(self.tree.function(call.function).line)
        before: Bools = function.use | (live & ~function.define)
        self._touch(before | live, call.position)
        return before

    # Summaries

    def _of_run(self, run: PositionRange) -> tuple[Int64s, Int64s]:
        """The atoms that a run reads first, and those that it writes."""
        events = slice(int(self.first[run.begin]), int(self.first[run.end]))
        atom, kind = self.atom[events], self.kind[events]
        changing = kind <= WRITE
        if not changing.all():
            atom, kind = atom[changing], kind[changing]
        if len(atom) == 0:
            return atom, atom
        touched, first = np.unique(atom, return_index=True)
        return touched[kind[first] == READ], atom[kind == WRITE]

    def summary(self, line: Line) -> Calls[Summary]:
        """What a line does to atoms."""
        known = self._summaries.get(id(line))
        if known is None:
            known = self._summaries[id(line)] = yield self._summarised(line)
        return known

    def _summarised(self, line: Line) -> Calls[Summary]:
        use, defined = np.zeros(len(self.atoms.variable), bool), np.zeros(len(self.atoms.variable), bool)
        for piece in pieces(line):
            match piece:
                case PositionRange():
                    reads, writes = self._of_run(piece)
                    use[reads[~defined[reads]]] = True
                    defined[writes] = True
                    continue
                case Loop():
                    head, body = (yield self.summary(piece.head)), (yield self.summary(piece.body))
                    part = Summary(head.use | (body.use & ~head.define), head.define)
                case Choice():
                    part = yield self._summary_of_choice(piece)
                case Invoke():
                    part = yield self.summary(self.tree.function(piece.function).line)
                case _:
                    assert_never(piece)
            use |= part.use & ~defined
            defined |= part.define
        return Summary(use, defined)

    def _summary_of_choice(self, choice: Choice) -> Calls[Summary]:
        use = np.zeros(len(self.atoms.variable), bool)
        define = np.full(len(self.atoms.variable), choice.always and bool(choice.parts))
        for part in choice.parts:
            summary = yield self.summary(part)
            use |= summary.use
            define &= summary.define
        return Summary(use, define)
