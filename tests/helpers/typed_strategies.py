"""Random codelets in the typed form, and vertices for them: what hypothesis compares the engines on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve
from emitted_operations import SIGNATURES
from hypothesis import strategies as st
from native_rig import DTYPES, Array

from pypoplar.codelet.ir.terms import Location
from pypoplar.codelet.ir.typed import (
    Apply,
    Block,
    Break,
    Check,
    Continue,
    For,
    IfElse,
    Leave,
    Length,
    Literal,
    Load,
    Local,
    Once,
    Operand,
    Price,
    PricedCodelet,
    Return,
    Row,
    Scratch,
    Slice,
    Span,
    SpanList,
    Special,
    Store,
    TypedArray,
    TypedField,
    TypedTable,
    While,
)
from pypoplar.codelet.operations.registers import FLOATS, REGISTERS, WIDTH

Statements = list[Any]  # what a drawing puts in a row; a block of a codelet is a tuple of them
ELEMENTS = tuple(DTYPES)
LOCALS = tuple(Local(f"{kind}_{name}", kind) for kind in REGISTERS for name in "pq")
INDICES = tuple(Local(f"k{depth}", "i32") for depth in range(3))
WORKER = Local("worker", "i32")
PLACES = tuple(Location("codelets.py", line, "compute") for line in range(3))


def register_of(element: str) -> str:
    return "i32" if element in ("i8", "u8", "i16", "u16") else element


def literals(kind: str) -> st.SearchStrategy[Literal]:
    if kind == "bool":
        return st.booleans().map(lambda value: Literal(value, kind))
    if kind in FLOATS:
        values = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.5, 3.0, float("inf"), float("-inf"), float("nan")])
        floats = st.floats(width=32) if kind == "f32" else st.floats(width=16)
        return (values | floats).map(lambda value: Literal(value, kind))
    low, high = (0, 2 ** WIDTH[kind] - 1) if kind[0] == "u" else (-(2 ** (WIDTH[kind] - 1)), 2 ** (WIDTH[kind] - 1) - 1)
    values = st.integers(max(low, -3), 5) | st.sampled_from([low, high, high - 1, 31, 32])
    return values.map(lambda value: Literal(value, kind))


PRICES = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 3), st.integers(0, 16)).map(
    lambda parts: Price(max(parts[:2]), *parts[2:], bound=min(parts[:2]))
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[TypedTable, ...]:
    """Constant tables of one and two dimensions."""
    drawn = []
    for number in range(draw(st.integers(0, 2))):
        element, shape = (
            draw(st.sampled_from(["f32", *ELEMENTS])),
            draw(st.sampled_from([(1,), (4,), (9,), (1, 4), (3, 2), (4, 9)])),
        )
        size = int(np.prod(shape))
        values = draw(st.lists(element_values(element), min_size=size, max_size=size))
        drawn.append(TypedTable(f"#{number}", element, shape, np.array(values, DTYPES[element]).tobytes()))
    return tuple(drawn)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[TypedArray, ...]:
    """Scratch arrays."""
    elements, lengths = st.sampled_from(["f32", *ELEMENTS]), st.sampled_from([1, 3, 4, 9, 33])
    return tuple(TypedArray(f"%{number}", draw(elements), draw(lengths)) for number in range(draw(st.integers(0, 2))))


class Maker:
    """Draws the statements of one codelet."""

    def __init__(self, draw: st.DrawFn, fields: Sequence[TypedField], multi: bool) -> None:
        self.draw, self.fields, self.tables, self.arrays = draw, fields, draw(tables()), draw(arrays())
        self.locals = [*LOCALS, WORKER] if multi else list(LOCALS)
        self.wheres = 0
        self.whiles = 0

    def where(self) -> int:
        self.wheres = (self.wheres + 1) % len(PLACES)
        return self.wheres

    def one_of(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def local(self, kind: str) -> Local:
        local: Local = self.one_of(*[local for local in LOCALS if local.type == kind])
        return local

    def operand(self, kind: str, scope: Scope) -> Operand:
        readable = [local for local in (*self.locals, *scope.indices) if local.type == kind]
        return self.draw(st.sampled_from(readable) | literals(kind))

    def block(self, scope: Scope, depth: int, most: int = 4) -> Block:
        statements: Statements = [self.draw(PRICES)]
        for _ in range(self.draw(st.integers(0, most))):
            statements += self.statement(scope, depth)
        return tuple(statements)

    def statement(self, scope: Scope, depth: int) -> Statements:
        kinds = ["apply"] * 4 + ["load", "store"] * 3 + ["length", "row", "slice", "special", "check"]
        kinds += ["scratch"] * (2 if self.arrays else 0)
        if depth:
            kinds += ["if", "for", "for", "for", "while", "once"]
        if scope.in_loop:
            kinds += ["break", "continue"]
        if scope.in_once and not scope.loop_in_once:
            kinds += ["leave"]
        if depth < 2:
            kinds += ["return"]
        statements: Statements = getattr(self, "make_" + self.one_of(*kinds))(scope, depth)
        return statements

    def make_apply(self, scope: Scope, depth: int) -> Statements:
        name = self.one_of(*SIGNATURES)
        arguments, result = SIGNATURES[name]
        given = tuple(self.operand(kind, scope) for kind in arguments)
        return [Apply(self.local(result), name, given, self.where())]

    def index(self, scope: Scope) -> tuple[Statements, Operand]:
        """An index: often linear in a loop's variable; and the statements that compute it."""
        if not scope.indices or self.draw(st.integers(0, 4)) == 0:
            return [], self.one_of(
                self.operand(self.one_of("i32", "u32", "i64", "u64"), scope), Literal(self.draw(st.integers(0, 4)), "i32")
            )
        index, result = self.one_of(*scope.indices), Local("i32_index", "i32")
        statements: Statements = []
        for _ in range(self.draw(st.integers(0, 2))):
            operation = self.one_of("add_i32", "sub_i32", "mul_i32")
            other = self.one_of(Literal(self.draw(st.integers(-2, 3)), "i32"), *list(scope.indices), self.local("i32"))
            pair = (index, other) if self.draw(st.booleans()) else (other, index)
            statements.append(Apply(result, operation, pair, self.where()))
            index = result
        return statements, index

    def spans(self, scope: Scope, *, writable: bool) -> list[Span]:
        fields = [field for field in self.fields if field.form == "vector" and (not writable or field.access != "input")]
        bound = [span for span, allowed in scope.spans.items() if isinstance(span, Span) and (allowed or not writable)]
        constant = [Span(table.name, table.element) for table in self.tables if len(table.shape) == 1 and not writable]
        return [Span(field.name, field.element) for field in fields] + constant + bound

    def lists(self, scope: Scope) -> dict[SpanList, bool]:
        """The lists that there are, fields and slices of them, and which are writable."""
        fields = {SpanList(field.name, field.element): field.access != "input" for field in self.fields if field.form == "list"}
        return fields | {rows: writable for rows, writable in scope.spans.items() if isinstance(rows, SpanList)}

    def scalars(self, *, writable: bool) -> list[Span]:
        return [
            Span(field.name, field.element)
            for field in self.fields
            if field.form == "scalar" and (not writable or field.access != "input")
        ]

    def make_load(self, scope: Scope, depth: int) -> Statements:
        scalars, spans = self.scalars(writable=False), self.spans(scope, writable=False)
        if scalars and (not spans or self.draw(st.booleans())):
            span = self.one_of(*scalars)
            return [Load(self.local(register_of(span.element)), span, Literal(0, "i32"), self.where(), False)]
        if not spans:
            return []
        span = self.one_of(*spans)
        before, index = self.index(scope)
        return [*before, Load(self.local(register_of(span.element)), span, index, self.where())]

    def make_store(self, scope: Scope, depth: int) -> Statements:
        scalars, spans = self.scalars(writable=True), self.spans(scope, writable=True)
        if scalars and (not spans or self.draw(st.booleans())):
            span = self.one_of(*scalars)
            return [Store(span, Literal(0, "i32"), self.operand(register_of(span.element), scope), self.where(), False)]
        if not spans:
            return []
        span = self.one_of(*spans)
        before, index = self.index(scope)
        return [*before, Store(span, index, self.operand(register_of(span.element), scope), self.where())]

    def make_length(self, scope: Scope, depth: int) -> Statements:
        spans = [*self.spans(scope, writable=False), *self.lists(scope)]
        return [Length(self.local("i32"), self.one_of(*spans), self.where())] if spans else []

    def make_row(self, scope: Scope, depth: int) -> Statements:
        constant = {SpanList(table.name, table.element): False for table in self.tables if len(table.shape) == 2}
        lists = self.lists(scope) | constant
        if not lists:
            return []
        rows = self.one_of(*lists)
        target = Span(f"row_{rows.name}_{self.draw(st.integers(0, 1))}", rows.element)
        before, index = self.index(scope)
        scope.spans[target] = lists[rows]
        return [*before, Row(target, rows, index, self.where())]

    def make_slice(self, scope: Scope, depth: int) -> Statements:
        lists = self.lists(scope)
        sources = [*self.spans(scope, writable=False), *lists]
        if not sources:
            return []
        source = self.one_of(*sources)
        writable = lists[source] if isinstance(source, SpanList) else source in self.spans(scope, writable=True)
        kind = "rows" if isinstance(source, SpanList) else "slice"
        target = evolve(source, name=f"{kind}_{source.element}_{'w' if writable else 'r'}{self.draw(st.integers(0, 1))}")
        begin = self.one_of(Literal(self.draw(st.integers(-1, 3)), "i32"), self.operand("i32", scope))
        length = Local("i32_length", "i32")
        end = self.one_of(length, Literal(self.draw(st.integers(0, 6)), "i32"), self.operand("u32", scope))
        scope.spans[target] = writable
        return [Length(length, source, 0), Slice(target, source, begin, end, self.where())]

    def make_scratch(self, scope: Scope, depth: int) -> Statements:
        array = self.one_of(*self.arrays)
        target = Span(f"slice_{array.element}_w{self.draw(st.integers(0, 1))}", array.element)  # also of what slices bind
        scope.spans[target] = True
        return [Scratch(target, array.name, self.where())]

    def make_special(self, scope: Scope, depth: int) -> Statements:
        name: Any = self.one_of("cycle_count", "random_u32", "random_f32")
        return [Special(self.local("f32" if name == "random_f32" else "u32"), name, self.where())]

    def make_check(self, scope: Scope, depth: int) -> Statements:
        return (
            [Check(self.operand("bool", scope), self.draw(st.integers(0, 1)), self.where())]
            if self.draw(st.integers(0, 5)) == 0
            else []
        )

    def make_if(self, scope: Scope, depth: int) -> Statements:
        return [
            IfElse(
                self.operand("bool", scope),
                self.block(scope.inner(), depth - 1, 3),
                self.block(scope.inner(), depth - 1, 2),
                self.where(),
            )
        ]

    def make_for(self, scope: Scope, depth: int) -> Statements:
        variable = INDICES[len(scope.indices)] if len(scope.indices) < len(INDICES) else None
        if variable is None:
            return []
        length = Local("i32_length", "i32")
        spans = self.spans(scope, writable=False)
        before = [Length(length, self.one_of(*spans), 0)] if spans else [Apply(length, "copy_i32", (Literal(3, "i32"),), 0)]
        start = Literal(self.draw(st.sampled_from([0, 0, 0, 1, -1, 2])), "i32")
        stop = self.one_of(length, length, length, Literal(self.draw(st.integers(0, 9)), "i32"))
        step = Literal(self.draw(st.sampled_from([1, 1, 1, 1, 2, 3])), "i32")
        if self.draw(st.integers(0, 3)) == 0:
            start, stop, step = stop, start, Literal(-int(step.value), "i32")
        body = self.block(scope.inner(loop=True, index=variable), depth - 1)
        return [*before, For(variable, start, stop, step, body, self.where())]

    def make_while(self, scope: Scope, depth: int) -> Statements:
        self.whiles += 1
        rounds, going = Local(f"rounds{self.whiles}", "i32"), Local(f"going{self.whiles}", "bool")
        most = self.draw(st.integers(0, 6))
        head = (*self.block(scope.condition(), 0, 2), Apply(going, "less_i32", (rounds, Literal(most, "i32")), 0))
        count = Apply(rounds, "add_i32", (rounds, Literal(1, "i32")), 0)
        body = (count, Price(1), *self.block(scope.inner(loop=True), depth - 1))
        start = Apply(rounds, "copy_i32", (Literal(0, "i32"),), 0)
        return [start, While(head, going, body, self.where())]

    def make_once(self, scope: Scope, depth: int) -> Statements:
        return [Once(self.block(scope.inner(once=True), depth - 1))]

    def make_break(self, scope: Scope, depth: int) -> Statements:
        return [IfElse(self.operand("bool", scope), (Break(),), (), 0)]

    def make_continue(self, scope: Scope, depth: int) -> Statements:
        return [IfElse(self.operand("bool", scope), (Continue(),), (), 0)]

    def make_leave(self, scope: Scope, depth: int) -> Statements:
        return [IfElse(self.operand("bool", scope), (Leave(),), (), 0)]

    def make_return(self, scope: Scope, depth: int) -> Statements:
        return [IfElse(self.operand("bool", scope), (Return(self.operand("bool", scope), 0),), (), 0)]


class Scope:
    """What a block may use."""

    def __init__(
        self,
        indices: tuple[Local, ...] = (),
        spans: Mapping[Span | SpanList, bool] | None = None,
        in_loop: bool = False,
        in_once: bool = False,
        loop_in_once: bool = False,
    ) -> None:
        self.indices, self.spans = indices, dict(spans or {})
        self.in_loop, self.in_once, self.loop_in_once = in_loop, in_once, loop_in_once

    def condition(self) -> Scope:
        """The head of a while loop, which nothing leaves."""
        return Scope(self.indices, self.spans, False, False, True)

    def inner(self, *, loop: bool = False, once: bool = False, index: Local | None = None) -> Scope:
        indices = self.indices if index is None else (*self.indices, index)
        if once:  # break and continue belong to loops of the helper
            return Scope(indices, self.spans, False, True, False)
        return Scope(indices, self.spans, self.in_loop or loop, self.in_once, self.loop_in_once or loop)


def _as_state_can_be(field: TypedField, access: Any) -> TypedField:
    """A field as drawn, or with another access if it is a list that a vertex keeps, which there is not."""
    if field.access == "state" and field.form == "list":
        return TypedField(field.name, access, "list", field.element)
    return field


@st.composite
def codelets(draw: st.DrawFn) -> PricedCodelet:
    """A codelet of any kind with a few fields; its body assigns every local before it goes on."""
    drawn = [
        TypedField(
            f"f{i}",
            draw(st.sampled_from(["input", "input", "output", "inout", "state"])),
            draw(st.sampled_from(["scalar", "vector", "vector", "list"])),
            draw(st.sampled_from(["f32", "f32", *ELEMENTS])),
        )
        for i in range(draw(st.integers(1, 4)))
    ]
    fields = tuple(_as_state_can_be(field, "inout") for field in drawn)
    kind: Any = draw(st.sampled_from(["vertex", "vertex", "vertex", "multi", "supervisor"]))
    maker = Maker(draw, fields, kind == "multi")
    first = [Apply(local, f"copy_{local.type}", (draw(literals(local.type)),), 0) for local in LOCALS]
    body = (*first, *maker.block(Scope(), 3, 8))
    worker = WORKER if kind == "multi" else None
    return PricedCodelet(
        "Random", kind, fields, body, True, PLACES, ("one", "two"), worker, tables=maker.tables, arrays=maker.arrays
    )


def element_values(element: str) -> st.SearchStrategy[Any]:
    if element == "bool":
        return st.booleans()
    if element in ("f32", "f16"):
        special = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, float("inf"), float("-inf"), float("nan")])
        return special | st.floats(width=32 if element == "f32" else 16)
    limits = np.iinfo(DTYPES[element])
    return st.integers(max(int(limits.min), -3), 6) | st.integers(int(limits.min), int(limits.max))


@st.composite
def vertices(draw: st.DrawFn, codelet: PricedCodelet) -> list[dict[str, Any]]:
    """A group of vertices; most have the same lengths."""
    usual = draw(st.integers(0, 9))
    group = []
    for _ in range(draw(st.sampled_from([1, 1, 2, 9]))):
        fields: dict[str, Any] = {}
        for field in codelet.fields:
            values = element_values(field.element)

            def array(values: st.SearchStrategy[Any] = values, element: str = field.element) -> Array:
                length = usual if draw(st.integers(0, 3)) else draw(st.integers(0, 9))
                return np.array(draw(st.lists(values, min_size=length, max_size=length)), DTYPES[element])

            if field.form == "scalar":
                fields[field.name] = np.array([draw(values)], DTYPES[field.element])
            elif field.form == "vector":
                fields[field.name] = array()
            else:
                fields[field.name] = [array() for _ in range(draw(st.integers(0, 4)))]
        group.append(fields)
    return group


def sums_maker(draw: st.DrawFn, fields: Sequence[TypedField]) -> tuple[Maker, Callable[[Scope, int], Block]]:
    """A maker whose statements can be tried out: they read, compute and bind, but write nothing."""
    maker = Maker(draw, fields, False)

    def tried(scope: Scope, most: int) -> Block:
        statements: Statements = [draw(PRICES)]
        for _ in range(draw(st.integers(0, most))):
            statements += getattr(maker, "make_" + maker.one_of("apply", "load", "load", "length", "row"))(scope, 0)
        return tuple(statements)

    return maker, tried


SIMPLE = (
    "add_f32",
    "mul_f32",
    "sub_f32",
    "max_f32",
    "f32_from_i32",
    "f32_from_f16",
    "f16_from_f32",
    "add_f16",
    "mul_f16",
    "less_f32",
)


@st.composite
def sums(draw: st.DrawFn) -> PricedCodelet:
    """Loops that carry floats, alone or in another loop: what runs eight at a time."""
    accesses = ["input", "input", "input", "output", "inout", "state"]
    elements = ["f32", "f32", "f16", "i32", "u8"]
    forms = ["vector", "vector", "list", "scalar"]
    drawn = [
        TypedField(f"f{i}", draw(st.sampled_from(accesses)), draw(st.sampled_from(forms)), draw(st.sampled_from(elements)))
        for i in range(draw(st.integers(2, 4)))
    ]
    fields = tuple(_as_state_can_be(field, "input") for field in drawn)
    maker, tried = sums_maker(draw, fields)

    def loop(scope: Scope, index: Local) -> Statements:
        inner = scope.inner(loop=True, index=index)
        body = list(tried(inner, 3))
        for _ in range(draw(st.integers(1, 3))):
            name = maker.one_of(*SIMPLE)
            arguments, result = SIGNATURES[name]
            body.append(Apply(maker.local(result), name, tuple(maker.operand(kind, inner) for kind in arguments), 1))
        body.append(
            Apply(
                Local("f32_p", "f32"),
                maker.one_of("add_f32", "sub_f32", "max_f32"),
                (Local("f32_p", "f32"), Local("f32_q", "f32")),
                2,
            )
        )
        if draw(st.booleans()) and maker.scalars(writable=True):
            span = maker.one_of(*maker.scalars(writable=True))
            body.append(Store(span, Literal(0, "i32"), maker.operand(register_of(span.element), inner), 2, False))
        loop_statements = maker.make_for(scope, 1)
        return [
            *loop_statements[:-1],
            For(index, loop_statements[-1].start, loop_statements[-1].stop, loop_statements[-1].step, tuple(body), 1),
        ]

    first = [Apply(local, f"copy_{local.type}", (draw(literals(local.type)),), 0) for local in LOCALS]
    scope = Scope()
    if draw(st.booleans()):
        body = (*first, *tried(scope, 2), *loop(scope, INDICES[0]), *maker.block(scope, 1, 4))
    else:
        if draw(st.booleans()) and maker.arrays:
            first += maker.make_scratch(scope, 0)
        inside = scope.inner(loop=True, index=INDICES[0])
        fresh = [Apply(local, f"copy_{local.type}", (draw(literals(local.type)),), 0) for local in LOCALS]
        nested = (*fresh, *tried(inside, 3), *loop(inside, INDICES[1]), *maker.block(inside, 1, 3))
        outer = maker.make_for(scope, 1)
        header = outer[-1]
        stop = header.stop if draw(st.booleans()) else Literal(draw(st.integers(7, 20)), "i32")
        step = header.step if stop is header.stop else Literal(1, "i32")
        body = (*first, *outer[:-1], For(INDICES[0], header.start, stop, step, nested, 1), *maker.block(scope, 0, 3))
    return PricedCodelet("Sums", "vertex", fields, body, True, PLACES, ("one", "two"), tables=maker.tables, arrays=maker.arrays)


@st.composite
def alike(draw: st.DrawFn, codelet: PricedCodelet) -> list[dict[str, Any]]:
    """A group of vertices that often have the same lengths, and enough of them to run eight at a time."""
    usual, rows = draw(st.integers(0, 20)), draw(st.integers(0, 20))
    seed = draw(st.integers(0, 2**32 - 1))
    odd = draw(st.sampled_from([0, 0, 0, 1, 8]))
    random = np.random.default_rng(seed)

    def array(element: str, size: int) -> Array:
        if element in ("f32", "f16"):
            return random.standard_normal(size).astype(DTYPES[element])
        return random.integers(-2 if element == "i32" else 0, 9, size).astype(DTYPES[element])

    def length() -> int:
        return usual if not odd or random.integers(0, odd + 1) else int(random.integers(0, 9))

    def value(field: TypedField) -> Any:
        if field.form == "list":
            return [array(field.element, length()) for _ in range(rows)]
        return array(field.element, 1 if field.form == "scalar" else length())

    return [{field.name: value(field) for field in codelet.fields} for _ in range(draw(st.sampled_from([1, 8, 9, 17])))]
