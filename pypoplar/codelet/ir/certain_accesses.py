"""Which elements the workers of a MultiVertex surely touch: whatever the data, in every run that ends without an error.

The code is gone through once for many executions at a time, the *lanes*: every worker of every vertex in question, in a loop every
round of these. What a lane knows are numbers that follow from the worker, loop variables, lengths and plain fields; a condition
that it knows decides where it goes on, any other leaves open what comes of it. Of a loop of very many rounds only the first and
the last are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

import numpy as np
from attrs import define, evolve, field, frozen

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import group_positions
from pypoplar.codelet.ir.lane_values import TYPES, LaneValue, apply
from pypoplar.codelet.ir.span_roots import span_roots
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
    Span,
    SpanList,
    Special,
    Statement,
    Store,
    TypedCodelet,
    ViewAs,
    While,
)
from pypoplar.codelet.ir.walk import assigned, read_first, walk
from pypoplar.codelet.operations.tile_readings import WORKER_COUNT

MOST_LANES = 1 << 13


@frozen(eq=False)
class VertexShapes:
    """Vertices of a codelet, and the pieces of memory that they have: one for each field, of a list field one for each row."""

    first_piece: Int64s  # [vertices, fields]: a field's piece, or its first row's
    extent: Int64s  # [vertices, fields]: elements, or rows
    length: Int64s  # [pieces]: elements
    numbers: Int64s  # [vertices, fields]: values of plain fields
    known: Bools  # [vertices, fields]: whether a plain field has that value all the time


@frozen(eq=False)
class Accesses:
    """Elements that are surely loaded or stored, in the order of the code."""

    lane: Int64s  # of vertices whose workers follow each other
    piece: Int64s
    index: Int64s
    stored: Bools
    where: Int64s  # numbers of the codelet's locations

    def chosen(self, which: Int64s | Bools) -> Accesses:
        return Accesses(self.lane[which], self.piece[which], self.index[which], self.stored[which], self.where[which])


@frozen(eq=False)
class LaneSpan:
    """What a span or list is in each lane."""

    piece: Int64s  # of a list, that of its first row
    begin: Int64s  # element of the piece
    length: Int64s  # of its own elements, records or rows
    known: Bools

    def at(self, lane: Int64s) -> LaneSpan:
        return LaneSpan(self.piece[lane], self.begin[lane], self.length[lane], self.known[lane])


Exits = Mapping[type[Statement], Bools]  # lanes that may have gone that way: by Leave, Break, Continue or Return


def certain_accesses(codelet: TypedCodelet, shapes: VertexShapes, workers: int, contended: frozenset[str]) -> Accesses:
    """The accesses to the fields `contended`. Of vertices that surely fail there are none."""
    vertices = len(shapes.extent)
    search = _Search.of(codelet, shapes, contended)
    lanes = _Lanes(search, np.repeat(np.arange(vertices), workers), workers)
    if codelet.worker is not None:
        numbers = np.tile(np.arange(workers, dtype=np.int64), vertices)
        lanes.values[codelet.worker.name] = LaneValue(numbers, np.ones(len(numbers), bool))
    everyone = np.ones(vertices * workers, bool)
    lanes.run(codelet.body, everyone, everyone)
    failing = np.zeros(vertices, bool)
    failing[lanes.vertex[np.concatenate((*lanes.failed, np.zeros(0, np.int64)))]] = True
    if not lanes.touched:
        none = np.zeros(0, np.int64)
        return Accesses(none, none, none, np.zeros(0, bool), none)
    columns = ([getattr(part, name) for part in lanes.touched] for name in ("lane", "piece", "index", "stored", "where"))
    every = Accesses(*(np.concatenate(column) for column in columns))
    return every.chosen(~failing[lanes.vertex[every.lane]])


@define(eq=False)
class _Search:
    """What all lanes have in common."""

    shapes: VertexShapes
    fields: Mapping[str, int]
    constant: Mapping[str, tuple[int, int]]  # tables and scratch arrays: the first piece, and elements or rows
    length: Int64s  # of the vertices' pieces, and of those
    recorded: frozenset[str]  # spans that may be pieces of contended fields

    @staticmethod
    def of(codelet: TypedCodelet, shapes: VertexShapes, contended: frozenset[str]) -> _Search:
        constant: dict[str, tuple[int, int]] = {}
        lengths: list[int] = []
        sizes = {table.name: table.shape for table in codelet.tables} | {array.name: (array.length,) for array in codelet.arrays}
        for name, size in sizes.items():
            constant[name] = (len(shapes.length) + len(lengths), size[0])
            lengths += [size[0]] if len(size) == 1 else [size[1]] * size[0]
        return _Search(
            shapes,
            {described.name: number for number, described in enumerate(codelet.fields)},
            constant,
            np.concatenate((shapes.length, np.array(lengths, np.int64))),
            frozenset(name for name, roots in span_roots(codelet).items() if roots & contended),
        )


@define(eq=False)
class _Lanes:
    """Executions of a block, and what each of them knows.

    `sure` lanes are surely there where a statement is, `maybe` lanes may be; no others are.
    """

    search: _Search
    vertex: Int64s  # [lanes]
    workers: int  # of a tile
    values: dict[str, LaneValue] = field(factory=dict)
    spans: dict[str, LaneSpan] = field(factory=dict)
    touched: list[Accesses] = field(factory=list)
    failed: list[Int64s] = field(factory=list)  # lanes that surely end with an error

    # What lanes know

    def value(self, operand: Operand) -> LaneValue:
        if isinstance(operand, Literal) and operand.type in TYPES:
            return LaneValue.of(int(operand.value), len(self.vertex))
        known = self.values.get(operand.name) if isinstance(operand, Local) else None
        return LaneValue.unknown(len(self.vertex)) if known is None else known

    def span(self, span: Span | SpanList) -> LaneSpan:
        search, lanes = self.search, len(self.vertex)
        none = np.zeros(lanes, np.int64)
        if span.name in search.fields:
            number = search.fields[span.name]
            shapes, everywhere = search.shapes, np.ones(lanes, bool)
            length = shapes.extent[self.vertex, number]
            length = length // span.unit if isinstance(span, Span) else length
            return LaneSpan(shapes.first_piece[self.vertex, number], none, length, everywhere)
        if span.name in search.constant:
            piece, length = search.constant[span.name]
            return LaneSpan(np.full(lanes, piece), none, np.full(lanes, length), np.ones(lanes, bool))
        return self.spans.get(span.name, LaneSpan(none, none, none, np.zeros(lanes, bool)))

    def assign(self, target: Local, value: LaneValue | None, maybe: Bools, sure: Bools) -> None:
        if target.type not in TYPES:
            return
        if value is None:
            self.forget((target.name,), maybe)
        elif sure.all():
            self.values[target.name] = value
        else:
            old = self.value(target)
            known = np.where(maybe, sure & value.known, old.known)
            self.values[target.name] = LaneValue(np.where(sure, value.numbers, old.numbers), known)

    def bind(self, target: Span | SpanList, new: LaneSpan, maybe: Bools, sure: Bools) -> None:
        old = self.span(target)
        self.spans[target.name] = LaneSpan(
            np.where(sure, new.piece, old.piece),
            np.where(sure, new.begin, old.begin),
            np.where(sure, new.length, old.length),
            np.where(maybe, sure & new.known, old.known),
        )

    def forget(self, names: Iterable[str], lanes: Bools) -> None:
        for name in names:
            if name in self.values:
                self.values[name] = evolve(self.values[name], known=self.values[name].known & ~lanes)
            if name in self.spans:
                self.spans[name] = evolve(self.spans[name], known=self.spans[name].known & ~lanes)

    # What they do

    def run(self, block: Block, maybe: Bools, sure: Bools) -> tuple[Bools, Exits]:
        """Which lanes may come to the end of a block, and which may leave it elsewhere."""
        exits: Exits = {}
        for statement in block:
            if not maybe.any():
                break
            maybe, gone = self.step(statement, maybe, sure)
            if gone:
                exits = _joined(exits, gone)
                sure = sure & ~_any(gone, sure)
        return maybe, exits

    def step(self, statement: Statement, maybe: Bools, sure: Bools) -> tuple[Bools, Exits]:
        match statement:
            case IfElse():
                return self.branch(statement, maybe, sure)
            case For():
                return self.go_through(statement, maybe, sure)
            case While():
                return self.repeat(statement, maybe, sure)
            case Once():
                ending, exits = self.run(statement.body, maybe, sure)
                return ending | exits.get(Leave, False), {kind: lanes for kind, lanes in exits.items() if kind is not Leave}
            case ApplyToVectors(loops=loops):
                return self.run(loops, maybe, sure)
            case Leave() | Break() | Continue() | Return():
                return np.zeros_like(maybe), {type(statement): maybe}
            case Price() | DebugPrint() | Breakpoint():
                return maybe, {}
            case _:
                faulty = sure & self.straight(statement, maybe, sure)
                if not faulty.any():
                    return maybe, {}
                self.failed.append(np.flatnonzero(faulty))
                return maybe & ~faulty, {Return: faulty}

    def straight(
        self,
        statement: Apply | Load | Store | Length | Row | Slice | Member | ViewAs | Scratch | Check | Special,
        maybe: Bools,
        sure: Bools,
    ) -> Bools:
        """Do what goes on to the next statement; where it is an error instead."""
        faulty = np.zeros_like(sure)
        match statement:
            case Apply(target=target, operation=name, arguments=arguments):
                applied = apply(name, [self.value(argument) for argument in arguments]) if target.type in TYPES else None
                self.assign(target, None if applied is None else applied.value, maybe, sure)
                faulty = applied.faulty if applied is not None else faulty
            case Load(target=target, span=span, index=index, where=where):
                faulty = self.touch(span, index, where, sure, stored=False)
                self.assign(target, self.plain(span), maybe, sure)
            case Store(span=span, index=index, where=where):
                faulty = self.touch(span, index, where, sure, stored=True)
            case Length(target=target, span=measured):
                place = self.span(measured)
                self.assign(target, LaneValue(place.length, place.known), maybe, sure)
            case Row(target=row, rows=rows, index=index):
                place, number = self.span(rows), self.value(index)
                faulty = _outside(place, number)
                known = place.known & number.known & ~faulty
                piece = np.where(known, place.piece + number.numbers, 0)
                length = self.search.length[piece] if len(self.search.length) else np.zeros_like(piece)
                self.bind(row, LaneSpan(piece, np.zeros_like(piece), length, known), maybe, sure)
            case Slice(target=part, span=whole, begin=begin, end=end):
                faulty = self.cut(part, self.span(whole), self.value(begin), self.value(end), maybe, sure)
            case Member(target=member, span=span, index=index, offset=offset, length=length):
                place, number = self.span(span), self.value(index)
                faulty = _outside(place, number)
                first = place.begin + number.numbers * span.size + offset
                known = place.known & number.known & ~faulty
                self.bind(member, LaneSpan(place.piece, first, np.full_like(first, length), known), maybe, sure)
            case ViewAs(target=view, span=span):
                place = self.span(span)
                faulty = place.known & (place.length % view.size != 0)
                self.bind(view, LaneSpan(place.piece, place.begin, place.length // view.size, place.known & ~faulty), maybe, sure)
            case Scratch(target=whole, array=name):
                self.bind(whole, self.span(Span(name, whole.element)), maybe, sure)
            case Check(condition=condition):
                faulty = self.value(condition).false
            case Special(target=target, name=name):
                count = LaneValue.of(self.workers, len(maybe)) if name == WORKER_COUNT else None
                self.assign(target, count, maybe, sure)
            case _:
                assert_never(statement)
        return faulty

    def cut(self, part: Span | SpanList, whole: LaneSpan, begin: LaneValue, end: LaneValue, maybe: Bools, sure: Bools) -> Bools:
        known = whole.known & begin.known & end.known
        fine = (begin.numbers >= 0) & (begin.numbers <= end.numbers) & (end.numbers <= whole.length)
        first = begin.numbers if isinstance(part, SpanList) else np.zeros_like(begin.numbers)
        inside = whole.begin + (begin.numbers - first) * (part.marks if isinstance(part, Span) else 1)
        self.bind(part, LaneSpan(whole.piece + first, inside, end.numbers - begin.numbers, known & fine), maybe, sure)
        return known & ~fine

    def plain(self, span: Span) -> LaneValue | None:
        """The value of a plain field, where it stays as it is."""
        number = self.search.fields.get(span.name)
        if number is None:
            return None
        shapes = self.search.shapes
        return LaneValue(shapes.numbers[self.vertex, number], shapes.known[self.vertex, number])

    def touch(self, span: Span, index: Operand, where: int, sure: Bools, *, stored: bool) -> Bools:
        """Record an access; where its index is out of range."""
        place, number = self.span(span), self.value(index)
        faulty = _outside(place, number)
        if span.name in self.search.recorded:
            recorded = sure & place.known & number.known & ~faulty & (place.piece < len(self.search.shapes.length))
            lane = np.repeat(np.flatnonzero(recorded), span.marks)
            first = place.begin[lane] + number.numbers[lane] * span.marks
            element = first + np.arange(len(lane)) % span.marks
            self.touched.append(Accesses(lane, place.piece[lane], element, np.full(len(lane), stored), np.full(len(lane), where)))
        return faulty

    # Control flow

    def branch(self, statement: IfElse, maybe: Bools, sure: Bools) -> tuple[Bools, Exits]:
        condition = self.value(statement.condition)
        ending, exits = self.run(statement.then, maybe & ~condition.false, sure & condition.true)
        other, gone = self.run(statement.orelse, maybe & ~condition.true, sure & condition.false)
        return ending | other, _joined(exits, gone)

    def repeat(self, loop: While, maybe: Bools, sure: Bools) -> tuple[Bools, Exits]:
        """The first round is as certain as its condition; what the others do is left open."""
        going, exits = self.run(loop.head, maybe, sure)
        condition = self.value(loop.condition)
        begun = sure & ~_any(exits, sure)
        self.run(loop.body, going & ~condition.false, begun & condition.true)
        self.forget(assigned((loop,)), maybe & ~(begun & condition.false))
        returns = any(isinstance(inner, Return) for inner in walk((loop,)))
        return maybe, {Return: maybe & ~(begun & condition.false)} if returns else {}

    def go_through(self, loop: For, maybe: Bools, sure: Bools) -> tuple[Bools, Exits]:
        start, stop, step = self.value(loop.start), self.value(loop.stop), self.value(loop.step)
        known = start.known & stop.known & step.known
        by = np.where(step.numbers == 0, 1, step.numbers)
        rounds = np.where(known, np.maximum(0, -((start.numbers - stop.numbers) // by)), 0)
        faulty = sure & step.false
        self.failed.append(np.flatnonzero(faulty))
        taken = np.flatnonzero(sure & ~faulty & (rounds > 0))
        taken = taken[:: -(-len(taken) * 2 // MOST_LANES) or 1]
        returned = faulty.copy()
        if any(isinstance(inner, Return) for inner in walk(loop.body)):
            others = maybe & ~(known & (rounds == 0))
            others[taken] = False
            returned |= others
        if len(taken):
            returned[taken[self.rounds(loop, taken, start.numbers, by, rounds)]] = True
        self.forget(assigned((loop,)), maybe & ~(known & (rounds == 0)))
        return maybe & ~faulty, {Return: returned} if returned.any() else {}

    def rounds(self, loop: For, taken: Int64s, start: Int64s, step: Int64s, rounds: Int64s) -> Bools:
        """Let the lanes `taken` go through the rounds of a loop; which of them may return there."""
        most = MOST_LANES // len(taken)
        count = np.minimum(rounds[taken], most)
        early = any(isinstance(inner, Break | Return) for inner in walk(loop.body))
        lane, number = np.repeat(np.arange(len(taken)), count), group_positions(count)
        skipped = np.zeros_like(number) if early else np.where(2 * number >= count[lane], (rounds[taken] - count)[lane], 0)
        owner = taken[lane]
        carried = read_first(loop.body) & assigned(loop.body)
        kept = read_first(loop.body) - carried - {loop.variable.name}
        inner = _Lanes(
            self.search,
            self.vertex[owner],
            self.workers,
            {name: value.at(owner) for name, value in self.values.items() if name in kept},
            {name: span.at(owner) for name, span in self.spans.items() if name in kept},
        )
        everyone = np.ones(len(owner), bool)
        inner.values[loop.variable.name] = LaneValue(start[owner] + step[owner] * (number + skipped), everyone)
        _, exits = inner.run(loop.body, everyone, everyone)
        ended = np.full(len(taken), np.iinfo(np.int64).max)
        for kind in (Break, Return):
            if kind in exits:
                np.minimum.at(ended, lane[exits[kind]], number[exits[kind]])
        certain = number <= ended[lane]
        self.touched += [_of_owners(part, certain, owner) for part in inner.touched]
        self.failed += [owner[lanes[certain[lanes]]] for lanes in inner.failed]
        left: Bools = np.zeros(len(taken), bool)
        if Return in exits:
            left[lane[exits[Return]]] = True
        return left


def _outside(place: LaneSpan, index: LaneValue) -> Bools:
    """Where an index surely is out of range."""
    faulty: Bools = place.known & index.known & ((index.numbers < 0) | (index.numbers >= place.length))
    return faulty


def _of_owners(part: Accesses, certain: Bools, owner: Int64s) -> Accesses:
    """The accesses of the lanes that are certain, as those of the lanes that own them."""
    chosen = part.chosen(certain[part.lane])
    return evolve(chosen, lane=owner[chosen.lane])


def _joined(exits: Exits, others: Exits) -> Exits:
    both = {kind: lanes | exits[kind] for kind, lanes in others.items() if kind in exits}
    return {**exits, **others, **both}


def _any(exits: Exits, like: Bools) -> Bools:
    """The lanes that may have gone any way."""
    return np.logical_or.reduce(list(exits.values())) if exits else np.zeros_like(like)
