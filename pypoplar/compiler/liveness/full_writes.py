"""Which outputs a vertex surely writes in full, so that their old elements need not be kept for it.

An element of an Output that the vertex leaves alone keeps its value. So an Output counts as written only where that can be shown:
a scalar to which every way through the codelet stores, a vector or the rows of a list over which a loop goes from end to end and
stores in every round. The loop's bound may be the length of another field; whether that is long enough is known vertex by vertex.
Where it cannot be shown a codelet may promise it, by the class keyword ``writes_all``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

import numpy as np
from attrs import define, evolve, field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s, Integers
from pypoplar.arrays.groups import distinct
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.kept_analyses import kept
from pypoplar.codelet.ir.typed import (
    Apply,
    ApplyToVectors,
    Block,
    Break,
    Breakpoint,
    Check,
    Continue,
    DebugPrint,
    For,
    IfElse,
    Leave,
    Length,
    Literal,
    Load,
    Local,
    Member,
    Once,
    Operand,
    Price,
    Return,
    Row,
    Scratch,
    Slice,
    SpanList,
    Special,
    Store,
    TypedCodelet,
    ViewAs,
    While,
    WorkerShare,
)
from pypoplar.codelet.ir.walk import assigned, walk

# What has to be as long as an output for it to be written in full; else the number of the field that has to be.
NEVER, ITSELF, WORKERS = -1, -2, -3


@frozen
class Definition:
    """Every way stores to a field by an index that goes from 0 to the length of `bound`, as far as the loops `within` get."""

    bound: str  # a field's name, "" for scalars and rows, `WORKER` for the number of workers
    within: frozenset[str] = frozenset()  # variables of the loops around it that the index needs
    division: str = ""  # where each worker takes its share only, which it is: workers agree on what is whose


Definitions = dict[str, Definition]
WORKER = "<worker>"  # no field's name


@frozen
class Walk:
    """What takes all indices of a span or list."""

    over: str  # the span or list, `WORKER` for all workers' numbers, "" for none
    loop: str = ""  # the variable of the loop that does so
    shared: str = ""  # how the workers divide the indices; "" where every worker takes all

    @property
    def division(self) -> str:
        """What the workers divide, and how; "" where every worker takes all."""
        return self.shared and f"{self.over} {self.shared}"


IN_TURN = "in turn"  # the workers take an index each in turn
NO_WALK = Walk("")


def defined_fields(codelets: Sequence[Codelet], workers: int) -> Int64s:
    """int64, in the order of `FieldTable`: what decides whether the field is written in full; see `NEVER`."""
    decides: list[int] = []
    for codelet in codelets:
        numbers = {described.name: number for number, described in enumerate(codelet.typed.fields)}
        number_of = {"": ITSELF, WORKER: WORKERS} | numbers
        stored = surely_stored_fields(codelet.typed, workers)
        for name in numbers:
            bound = name if name in codelet.typed.writes_all else stored.get(name)
            decides.append(NEVER if bound is None else ITSELF if bound == name else number_of[bound])
    return np.array(decides, np.int64)


@kept
def surely_stored_fields(codelet: TypedCodelet, workers: int) -> Mapping[str, str]:
    """The fields that every way through a codelet stores to, up to the length of which field: see `Definition.bound`."""
    forms = {described.name: described.form for described in codelet.fields}
    search = _CodeletSearch(forms, workers)
    if codelet.worker is not None:
        search.walks[codelet.worker.name] = Walk(WORKER, shared=IN_TURN)
    definitions, _ = search.stored(codelet.body)
    return MappingProxyType({name: definition.bound for name, definition in definitions.items() if not definition.within})


@define(eq=False)
class _CodeletSearch:
    """A walk through the body of a codelet, in order, with what is known of its locals and spans."""

    forms: Mapping[str, str]
    workers: int
    lengths: dict[str, str] = field(factory=dict)  # locals that are the length of a span or list
    walks: dict[str, Walk] = field(factory=dict)  # locals that take all indices of a span or list
    rows: dict[str, Walk] = field(factory=dict)  # spans that are all rows of a list

    def stored(self, block: Block) -> tuple[Definitions, bool]:
        """What a block stores to on every way through it, and whether a way may leave it before its end."""
        done: Definitions = {}
        for statement in block:
            leaves = False
            match statement:
                case Store():
                    done |= self._definition(statement)
                case IfElse():
                    then, leaves_then = self._branch(statement.then)
                    otherwise, leaves_otherwise = self._branch(statement.orelse)
                    done |= {name: definition for name, definition in then.items() if otherwise.get(name) == definition}
                    leaves = leaves_then or leaves_otherwise
                    self._forget(statement.then + statement.orelse)
                case For():
                    inner, leaves = self._of_loop(statement)
                    done |= inner
                case While():
                    self._forget(statement.head + statement.body)
                    leaves = _returns(statement.body)
                case Once():
                    inner, left = self.stored(statement.body)
                    done |= inner
                    leaves = left and _returns(statement.body)
                    self._forget(statement.body if left else ())
                case Return() | Leave() | Break() | Continue():
                    leaves = True
                case Apply() | Length() | Row() | Load() | Slice() | Member() | ViewAs() | Scratch() | Special():
                    self._note(statement)
                case Check() | DebugPrint() | Breakpoint() | Price() | ApplyToVectors():
                    pass
                case _:
                    assert_never(statement)
            if leaves:
                return done, True
        return done, False

    def _branch(self, block: Block) -> tuple[Definitions, bool]:
        """What one of two branches stores to; what it learns of its locals is not so in the other."""
        known = self.lengths.copy(), self.walks.copy(), self.rows.copy()
        stored = self.stored(block)
        self.lengths, self.walks, self.rows = known
        return stored

    def _of_loop(self, loop: For) -> tuple[Definitions, bool]:
        """What the rounds of a loop store to; a loop that may be for nothing defines only what its own length decides."""
        self._forget(loop.body)
        variable = loop.variable.name
        over = self._range(loop)
        reassigned = variable in assigned(loop.body)
        self._drop(variable)
        if over is not None and not reassigned:
            self.walks[variable] = over
        inner, leaves = self.stored(loop.body)
        self._forget(loop.body)
        self._drop(variable)
        if leaves:  # rounds that end early leave elements out
            return {}, _returns(loop.body)
        whole = {name: definition for name, definition in inner.items() if variable in definition.within}
        return {name: evolve(definition, within=definition.within - {variable}) for name, definition in whole.items()}, False

    def _range(self, loop: For) -> Walk | None:
        """The walk of a loop's variable: over all indices of a span one by one, or shared among the workers."""
        if loop.share is not None:
            return self._shared_range(loop, loop.share)
        bound = self.lengths.get(loop.stop.name) if isinstance(loop.stop, Local) else None
        shared = not isinstance(loop.start, Literal)
        starts = self._walked(loop.start).over == WORKER if isinstance(loop.start, Local) else loop.start.value == 0
        steps = isinstance(loop.step, Literal) and loop.step.value == (self.workers if shared else 1)
        return Walk(bound, loop.variable.name, IN_TURN if shared else "") if bound is not None and starts and steps else None

    def _shared_range(self, loop: For, share: WorkerShare) -> Walk | None:
        """The walk of a loop over `ipu.worker_range`, if what is shared is the length of a span or list."""
        over = self.lengths.get(share.count.name) if isinstance(share.count, Local) else None
        divided = self._walked(share.worker).over == WORKER
        return Walk(over, loop.variable.name, f"by {share.grain}") if over is not None and divided else None

    def _definition(self, store: Store) -> Definitions:
        name = store.span.name
        form = self.forms.get(name)
        if form == "scalar":
            return {name: Definition("")}
        walk = self._walked(store.index)
        if form == "vector" and walk.over == WORKER:
            return {name: Definition(WORKER, division=walk.division)}
        if form == "vector" and self.forms.get(walk.over) == "vector":
            return {name: Definition(walk.over, frozenset({walk.loop}), walk.division)}
        if name in self.rows and walk.over == name:
            rows = self.rows[name]
            if not (walk.shared and rows.shared):  # else a worker takes only its elements of only its rows
                return {rows.over: Definition("", frozenset({walk.loop, rows.loop}), rows.division or walk.division)}
        return {}

    def _walked(self, operand: Operand) -> Walk:
        return self.walks.get(operand.name, NO_WALK) if isinstance(operand, Local) else NO_WALK

    def _note(self, statement: Apply | Length | Row | Load | Slice | Member | ViewAs | Scratch | Special) -> None:
        """What a statement without blocks says of its target."""
        copies = isinstance(statement, Apply) and statement.operation.startswith("copy_")
        source = statement.arguments[0] if isinstance(statement, Apply) and copies else None
        length = self.lengths.get(source.name) if isinstance(source, Local) else None
        index = self.walks.get(source.name) if isinstance(source, Local) else None
        target = statement.target.name
        self._drop(target)
        if isinstance(statement, Length):
            if isinstance(statement.span, SpanList) or statement.span.unit == 1:  # how many records is no number of elements
                self.lengths[target] = statement.span.name
        elif isinstance(statement, Row):
            walk = self._walked(statement.index)
            if walk.over == statement.rows.name:
                self.rows[target] = walk
        elif length is not None:
            self.lengths[target] = length
        elif index is not None:
            self.walks[target] = index

    def _drop(self, name: str) -> None:
        """Forget what is known of a local or span, and of what it is the length or the index of."""
        self.lengths = {local: of for local, of in self.lengths.items() if name not in (local, of)}
        self.walks = {local: of for local, of in self.walks.items() if name not in (local, of.over, of.loop)}
        self.rows = {span: of for span, of in self.rows.items() if name not in (span, of.over, of.loop)}

    def _forget(self, block: Block) -> None:
        for name in assigned(block):
            self._drop(name)


def _returns(block: Block) -> bool:
    """Whether a block may end the vertex."""
    return any(isinstance(statement, Return) for statement in walk(block))


def written_in_full(
    bounds: Int64s, entry: Integers, vertex: Int64s, row: Integers, length: Int64s, first: Int64s, workers: int
) -> Bools:
    """bool [edges]: the vertex surely writes all elements of the edge.

    `bounds` is what `defined_fields` says. Of each edge: `entry` its field in the field table, `vertex`, `row`, `length` in
    elements; `first` is the table's entry of the first field of the edge's codelet.
    """
    bound = bounds[entry]
    full: Bools = (bound == ITSELF) | ((bound == WORKERS) & (length <= workers))
    for deciding in distinct(bound[bound >= 0]):
        longest = np.full(int(vertex.max()) + 1 if len(vertex) else 0, -1)
        decides = (entry - first == deciding) & (row == 0)
        longest[vertex[decides]] = length[decides]
        chosen = bound == deciding
        full[chosen] = longest[vertex[chosen]] >= length[chosen]
    return full
