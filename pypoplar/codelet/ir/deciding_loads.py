"""Which values that a codelet loads decide what it does: a branch, how often a loop goes round, or an index.

Where none does, vertices that are alike but for their data take the same cycles. The analysis follows values through locals,
scratch arrays and fields, wherever they are assigned: control that data decide is found itself, so that it need not be followed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from attrs import define, field, frozen

from pypoplar.codelet.ir.kept_analyses import kept
from pypoplar.codelet.ir.span_roots import span_roots
from pypoplar.codelet.ir.typed import (
    Apply,
    ApplyToVectors,
    Check,
    For,
    IfElse,
    Load,
    Local,
    Member,
    Operand,
    Row,
    Slice,
    Special,
    Statement,
    Store,
    TypedCodelet,
    While,
)
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.codelet.operations.tile_readings import WORKER_COUNT, reading

Sources: TypeAlias = frozenset[str]

BRANCH, LOOP, INDEX = "a branch", "the rounds of a loop", "an index"


@frozen(order=True)
class DecidingLoad:
    """That what is loaded from a field, or read of the tile, decides something at a line of the codelet."""

    where: int  # number of a location
    source: str  # the field's name, or how the reading is called
    decides: str  # BRANCH, LOOP or INDEX
    is_field: bool


@kept
def deciding_loads(codelet: TypedCodelet) -> tuple[DecidingLoad, ...]:
    """What decides anything in the code, in the order of its lines, each line and source once.

    The number of worker threads and a plain field that the code does not write are the same whenever a vertex runs: no data.
    """
    sources = _sources_of_locals(codelet)
    fields = {field.name for field in codelet.fields}
    found = {
        (where, source): DecidingLoad(where, source, decides, source in fields)
        for statement in walk(codelet.body)
        for operand, decides, where in _decisions(statement)
        if isinstance(operand, Local)
        for source in sources[operand.name]
    }
    return tuple(sorted(found.values()))


def deciding_fields(codelet: TypedCodelet) -> frozenset[str]:
    """Names of the fields among them."""
    return frozenset(load.source for load in deciding_loads(codelet) if load.is_field)


@kept
def faulting_fields(codelet: TypedCodelet) -> frozenset[str]:
    """Names of the fields whose values can make a check, a division, a shift or a power fail, beside `deciding_fields`."""
    sources, fields = _sources_of_locals(codelet), {field.name for field in codelet.fields}
    operands = (operand for statement in walk(codelet.body) for operand in _failing(statement))
    return frozenset(source for operand in operands if isinstance(operand, Local) for source in sources[operand.name] & fields)


def _failing(statement: Statement) -> Iterator[Operand]:
    """The operands of a statement with which it may fail."""
    match statement:
        case Check(condition=condition):
            yield condition
        case Apply(operation=operation, arguments=arguments) if typed_operation(operation).fault is not None:
            yield arguments[-1]


def _decisions(statement: Statement) -> Iterator[tuple[Operand, str, int]]:
    """The operands of a statement that decide something: what, and at which line."""
    match statement:
        case IfElse(condition=condition, where=where):
            yield condition, BRANCH, where
        case While(condition=condition, where=where):
            yield condition, LOOP, where
        case For(start=start, stop=stop, step=step, where=where):
            yield from ((bound, LOOP, where) for bound in (start, stop, step))
        case ApplyToVectors(numbers=numbers, where=where):
            yield from ((number, LOOP, where) for number in numbers)
        case Load(index=index, where=where) | Store(index=index, where=where):
            yield index, INDEX, where
        case Row(index=index, where=where) | Member(index=index, where=where):
            yield index, INDEX, where
        case Slice(begin=begin, end=end, where=where):
            yield from ((bound, INDEX, where) for bound in (begin, end))


def _sources_of_locals(codelet: TypedCodelet) -> Mapping[str, Sources]:
    """By local, where its value may come from: names of fields whose elements are loaded, and of readings of the tile."""
    statements, roots = list(walk(codelet.body)), span_roots(codelet)
    stored = {root for statement in statements if isinstance(statement, Store) for root in roots[statement.span.name]}
    flow = _ValueFlow(roots)
    for own in codelet.fields:
        if own.access != "state" or own.name in stored:  # what a vertex writes may be another when it runs again
            flow.places[own.name] = frozenset({own.name})
    while sum(flow.follow(statement) for statement in statements):
        pass
    return flow.locals


@define(eq=False)
class _ValueFlow:
    """What locals, fields and scratch arrays may hold, by name."""

    roots: Mapping[str, frozenset[str]]
    locals: defaultdict[str, Sources] = field(factory=lambda: defaultdict(frozenset))
    places: defaultdict[str, Sources] = field(factory=lambda: defaultdict(frozenset))

    def follow(self, statement: Statement) -> bool:
        """Note what a statement adds; whether that is anything new."""
        match statement:
            case Apply(target=target, arguments=arguments):
                return _add(self.locals, target.name, self._of(*arguments))
            case Load(target=target, span=span, index=index):
                held = (self.places[root] for root in self.roots[span.name])
                return _add(self.locals, target.name, self._of(index).union(*held))
            case Special(target=target, name=name) if name != WORKER_COUNT:
                return _add(self.locals, target.name, frozenset({reading(name).call}))
            case For(variable=variable, start=start, stop=stop, step=step):
                return _add(self.locals, variable.name, self._of(start, stop, step))
            case Store(span=span, index=index, value=value):
                added = self._of(index, value)
                return sum(_add(self.places, root, added) for root in self.roots[span.name]) > 0
        return False

    def _of(self, *operands: Operand) -> Sources:
        none: Sources = frozenset()
        return none.union(*(self.locals[operand.name] for operand in operands if isinstance(operand, Local)))


def _add(known: defaultdict[str, Sources], name: str, added: Sources) -> bool:
    if added <= known[name]:
        return False
    known[name] |= added
    return True
