"""Random codelets in the typed form, and vertices for them: what hypothesis compares the engines on."""

import numpy as np
from hypothesis import strategies as st
from native_rig import DTYPES

from pypoplar.codelet.ir.operations import FLOATS, REGISTERS, SIGNATURES, WIDTH
from pypoplar.codelet.ir.typed import (
    Apply,
    Break,
    Check,
    Continue,
    For,
    If,
    Leave,
    Length,
    Literal,
    Load,
    Local,
    Location,
    Once,
    Price,
    Return,
    Row,
    Slice,
    Span,
    SpanList,
    Special,
    Store,
    TypedCodelet,
    TypedField,
    While,
)

ELEMENTS = tuple(DTYPES)
LOCALS = tuple(Local(f"{kind}_{name}", kind) for kind in REGISTERS for name in "pq")
INDICES = tuple(Local(f"k{depth}", "i32") for depth in range(3))
WORKER = Local("worker", "i32")
PLACES = tuple(Location("codelets.py", line, "compute") for line in range(3))


def register_of(element):
    return "i32" if element in ("i8", "u8", "i16", "u16") else element


def literals(kind):
    if kind == "bool":
        return st.booleans().map(lambda one: Literal(one, kind))
    if kind in FLOATS:
        values = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.5, 3.0, float("inf"), float("-inf"), float("nan")])
        width = 32 if kind == "f32" else 16
        return (values | st.floats(width=width)).map(lambda one: Literal(one, kind))
    low, high = (0, 2 ** WIDTH[kind] - 1) if kind[0] == "u" else (-(2 ** (WIDTH[kind] - 1)), 2 ** (WIDTH[kind] - 1) - 1)
    values = st.integers(max(low, -3), 5) | st.sampled_from([low, high, high - 1, 31, 32])
    return values.map(lambda one: Literal(one, kind))


PRICES = st.builds(Price, st.integers(0, 9), st.integers(0, 3), st.integers(0, 16))


class Maker:
    """Draws the statements of one codelet."""

    def __init__(self, draw, fields, multi):
        self.draw, self.fields = draw, fields
        self.locals = [*LOCALS, WORKER] if multi else list(LOCALS)
        self.wheres = 0
        self.whiles = 0

    def where(self):
        self.wheres = (self.wheres + 1) % len(PLACES)
        return self.wheres

    def one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def local(self, kind):
        return self.one_of(*[one for one in LOCALS if one.type == kind])

    def operand(self, kind, scope):
        readable = [one for one in (*self.locals, *scope.indices) if one.type == kind]
        return self.draw(st.sampled_from(readable) | literals(kind))

    def block(self, scope, depth, most=4):
        made = [self.draw(PRICES)]
        for _ in range(self.draw(st.integers(0, most))):
            made += self.statement(scope, depth)
        return tuple(made)

    def statement(self, scope, depth):
        kinds = ["apply"] * 4 + ["load", "store"] * 3 + ["length", "row", "slice", "special", "check"]
        if depth:
            kinds += ["if", "for", "for", "for", "while", "once"]
        if scope.in_loop:
            kinds += ["break", "continue"]
        if scope.in_once and not scope.loop_in_once:
            kinds += ["leave"]
        if depth < 2:
            kinds += ["return"]
        return getattr(self, "make_" + self.one_of(*kinds))(scope, depth)

    def make_apply(self, scope, depth):
        name = self.one_of(*SIGNATURES)
        arguments, result = SIGNATURES[name]
        given = tuple(self.operand(one, scope) for one in arguments)
        return [Apply(self.local(result), name, given, self.where())]

    def index(self, scope):
        """An index: often linear in a loop's variable; and the statements that compute it."""
        if not scope.indices or self.draw(st.integers(0, 4)) == 0:
            return [], self.one_of(
                self.operand(self.one_of("i32", "u32", "i64", "u64"), scope), Literal(self.draw(st.integers(0, 4)), "i32")
            )
        index, made, result = self.one_of(*scope.indices), [], Local("i32_index", "i32")
        for _ in range(self.draw(st.integers(0, 2))):
            operation = self.one_of("add_i32", "sub_i32", "mul_i32")
            other = self.one_of(Literal(self.draw(st.integers(-2, 3)), "i32"), *list(scope.indices), self.local("i32"))
            pair = (index, other) if self.draw(st.booleans()) else (other, index)
            made.append(Apply(result, operation, pair, self.where()))
            index = result
        return made, index

    def spans(self, scope, *, writable):
        fields = [one for one in self.fields if one.form == "vector" and (not writable or one.access != "input")]
        bound = [span for span, allowed in scope.spans.items() if allowed or not writable]
        return [Span(one.name, one.element) for one in fields] + bound

    def scalars(self, *, writable):
        return [
            Span(one.name, one.element) for one in self.fields if one.form == "scalar" and (not writable or one.access != "input")
        ]

    def make_load(self, scope, depth):
        scalars, spans = self.scalars(writable=False), self.spans(scope, writable=False)
        if scalars and (not spans or self.draw(st.booleans())):
            span = self.one_of(*scalars)
            return [Load(self.local(register_of(span.element)), span, Literal(0, "i32"), self.where(), False)]
        if not spans:
            return []
        span = self.one_of(*spans)
        made, index = self.index(scope)
        return [*made, Load(self.local(register_of(span.element)), span, index, self.where())]

    def make_store(self, scope, depth):
        scalars, spans = self.scalars(writable=True), self.spans(scope, writable=True)
        if scalars and (not spans or self.draw(st.booleans())):
            span = self.one_of(*scalars)
            return [Store(span, Literal(0, "i32"), self.operand(register_of(span.element), scope), self.where(), False)]
        if not spans:
            return []
        span = self.one_of(*spans)
        made, index = self.index(scope)
        return [*made, Store(span, index, self.operand(register_of(span.element), scope), self.where())]

    def make_length(self, scope, depth):
        lists = [SpanList(one.name, one.element) for one in self.fields if one.form == "list"]
        spans = [*self.spans(scope, writable=False), *lists]
        return [Length(self.local("i32"), self.one_of(*spans), self.where())] if spans else []

    def make_row(self, scope, depth):
        lists = [one for one in self.fields if one.form == "list"]
        if not lists:
            return []
        rows = self.one_of(*lists)
        target = Span(f"row_{rows.name}_{self.draw(st.integers(0, 1))}", rows.element)
        made, index = self.index(scope)
        scope.spans[target] = rows.access != "input"
        return [*made, Row(target, SpanList(rows.name, rows.element), index, self.where())]

    def make_slice(self, scope, depth):
        spans = self.spans(scope, writable=False)
        if not spans:
            return []
        source = self.one_of(*spans)
        writable = source in self.spans(scope, writable=True)
        target = Span(f"slice_{source.element}_{'w' if writable else 'r'}{self.draw(st.integers(0, 1))}", source.element)
        begin = self.one_of(Literal(self.draw(st.integers(-1, 3)), "i32"), self.operand("i32", scope))
        length = Local("i32_length", "i32")
        end = self.one_of(length, Literal(self.draw(st.integers(0, 6)), "i32"), self.operand("u32", scope))
        scope.spans[target] = writable
        return [Length(length, source, 0), Slice(target, source, begin, end, self.where())]

    def make_special(self, scope, depth):
        name = self.one_of("cycle_count", "random_u32", "random_f32")
        return [Special(self.local("f32" if name == "random_f32" else "u32"), name, self.where())]

    def make_check(self, scope, depth):
        return (
            [Check(self.operand("bool", scope), self.draw(st.integers(0, 1)), self.where())]
            if self.draw(st.integers(0, 5)) == 0
            else []
        )

    def make_if(self, scope, depth):
        return [
            If(
                self.operand("bool", scope),
                self.block(scope.inner(), depth - 1, 3),
                self.block(scope.inner(), depth - 1, 2),
                self.where(),
            )
        ]

    def make_for(self, scope, depth):
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

    def make_while(self, scope, depth):
        self.whiles += 1
        rounds, going = Local(f"rounds{self.whiles}", "i32"), Local(f"going{self.whiles}", "bool")
        most = self.draw(st.integers(0, 6))
        head = (*self.block(scope.condition(), 0, 2), Apply(going, "less_i32", (rounds, Literal(most, "i32")), 0))
        count = Apply(rounds, "add_i32", (rounds, Literal(1, "i32")), 0)
        body = (count, Price(1), *self.block(scope.inner(loop=True), depth - 1))
        start = Apply(rounds, "copy_i32", (Literal(0, "i32"),), 0)
        return [start, While(head, going, body, self.where())]

    def make_once(self, scope, depth):
        return [Once(self.block(scope.inner(once=True), depth - 1))]

    def make_break(self, scope, depth):
        return [If(self.operand("bool", scope), (Break(),), (), 0)]

    def make_continue(self, scope, depth):
        return [If(self.operand("bool", scope), (Continue(),), (), 0)]

    def make_leave(self, scope, depth):
        return [If(self.operand("bool", scope), (Leave(),), (), 0)]

    def make_return(self, scope, depth):
        return [If(self.operand("bool", scope), (Return(self.operand("bool", scope), 0),), (), 0)]


class Scope:
    """What a block may use."""

    def __init__(self, indices=(), spans=None, in_loop=False, in_once=False, loop_in_once=False):
        self.indices, self.spans = indices, dict(spans or {})
        self.in_loop, self.in_once, self.loop_in_once = in_loop, in_once, loop_in_once

    def condition(self):
        """The head of a while loop, which nothing leaves."""
        return Scope(self.indices, self.spans, False, False, True)

    def inner(self, *, loop=False, once=False, index=None):
        indices = self.indices if index is None else (*self.indices, index)
        if once:  # break and continue belong to loops of the helper
            return Scope(indices, self.spans, False, True, False)
        return Scope(indices, self.spans, self.in_loop or loop, self.in_once, self.loop_in_once or loop)


@st.composite
def codelets(draw):
    """A codelet of any kind with a few fields; its body assigns every local before it goes on."""
    fields = [
        TypedField(
            f"f{i}",
            draw(st.sampled_from(["input", "input", "output", "inout", "state"])),
            draw(st.sampled_from(["scalar", "vector", "vector", "list"])),
            draw(st.sampled_from(["f32", "f32", *ELEMENTS])),
        )
        for i in range(draw(st.integers(1, 4)))
    ]
    fields = tuple(
        one if one.access != "state" or one.form != "list" else TypedField(one.name, "inout", "list", one.element) for one in fields
    )
    kind = draw(st.sampled_from(["vertex", "vertex", "vertex", "multi", "supervisor"]))
    maker = Maker(draw, fields, kind == "multi")
    first = [Apply(one, f"copy_{one.type}", (draw(literals(one.type)),), 0) for one in LOCALS]
    body = (*first, *maker.block(Scope(), 3, 8))
    return TypedCodelet("Random", kind, fields, body, True, PLACES, ("one", "two"), WORKER if kind == "multi" else None)


def element_values(element):
    if element == "bool":
        return st.booleans()
    if element in ("f32", "f16"):
        special = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, float("inf"), float("-inf"), float("nan")])
        return special | st.floats(width=32 if element == "f32" else 16)
    limits = np.iinfo(DTYPES[element])
    return st.integers(max(int(limits.min), -3), 6) | st.integers(int(limits.min), int(limits.max))


@st.composite
def vertices(draw, codelet):
    """A group of vertices; most have the same lengths."""
    usual = draw(st.integers(0, 9))
    made = []
    for _ in range(draw(st.sampled_from([1, 1, 2, 9]))):
        fields = {}
        for field in codelet.fields:
            values = element_values(field.element)

            def array(values=values, element=field.element):
                length = usual if draw(st.integers(0, 3)) else draw(st.integers(0, 9))
                return np.array(draw(st.lists(values, min_size=length, max_size=length)), DTYPES[element])

            if field.form == "scalar":
                fields[field.name] = np.array([draw(values)], DTYPES[field.element])
            elif field.form == "vector":
                fields[field.name] = array()
            else:
                fields[field.name] = [array() for _ in range(draw(st.integers(0, 4)))]
        made.append(fields)
    return made


def sums_maker(draw, fields):
    """A maker whose statements can be tried out: they read, compute and bind, but write nothing."""
    maker = Maker(draw, fields, False)

    def tried(scope, most):
        made = [draw(PRICES)]
        for _ in range(draw(st.integers(0, most))):
            made += getattr(maker, "make_" + maker.one_of("apply", "load", "load", "length", "row"))(scope, 0)
        return tuple(made)

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
def sums(draw):
    """Loops that carry floats, alone or in another loop: what runs eight at a time."""
    accesses = ["input", "input", "input", "output", "inout", "state"]
    elements = ["f32", "f32", "f16", "i32", "u8"]
    forms = ["vector", "vector", "list", "scalar"]
    fields = [
        TypedField(f"f{i}", draw(st.sampled_from(accesses)), draw(st.sampled_from(forms)), draw(st.sampled_from(elements)))
        for i in range(draw(st.integers(2, 4)))
    ]
    fields = tuple(
        one if one.access != "state" or one.form != "list" else TypedField(one.name, "input", "list", one.element) for one in fields
    )
    maker, tried = sums_maker(draw, fields)

    def loop(scope, index):
        inner = scope.inner(loop=True, index=index)
        body = list(tried(inner, 3))
        for _ in range(draw(st.integers(1, 3))):
            name = maker.one_of(*SIMPLE)
            arguments, result = SIGNATURES[name]
            body.append(Apply(maker.local(result), name, tuple(maker.operand(one, inner) for one in arguments), 1))
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
        made = maker.make_for(scope, 1)
        return [*made[:-1], For(index, made[-1].start, made[-1].stop, made[-1].step, tuple(body), 1)]

    first = [Apply(one, f"copy_{one.type}", (draw(literals(one.type)),), 0) for one in LOCALS]
    scope = Scope()
    if draw(st.booleans()):
        body = (*first, *tried(scope, 2), *loop(scope, INDICES[0]), *maker.block(scope, 1, 4))
    else:
        inside = scope.inner(loop=True, index=INDICES[0])
        fresh = [Apply(one, f"copy_{one.type}", (draw(literals(one.type)),), 0) for one in LOCALS]
        nested = (*fresh, *tried(inside, 3), *loop(inside, INDICES[1]), *maker.block(inside, 1, 3))
        outer = maker.make_for(scope, 1)
        header = outer[-1]
        stop = header.stop if draw(st.booleans()) else Literal(draw(st.integers(7, 20)), "i32")
        step = header.step if stop is header.stop else Literal(1, "i32")
        body = (*first, *outer[:-1], For(INDICES[0], header.start, stop, step, nested, 1), *maker.block(scope, 0, 3))
    return TypedCodelet("Sums", "vertex", fields, body, True, PLACES, ("one", "two"))


@st.composite
def alike(draw, codelet):
    """A group of vertices that often have the same lengths, and enough of them to run eight at a time."""
    usual, rows = draw(st.integers(0, 20)), draw(st.integers(0, 20))
    seed = draw(st.integers(0, 2**32 - 1))
    odd = draw(st.sampled_from([0, 0, 0, 1, 8]))
    random = np.random.default_rng(seed)

    def array(element, size):
        if element in ("f32", "f16"):
            return random.standard_normal(size).astype(DTYPES[element])
        return random.integers(-2 if element == "i32" else 0, 9, size).astype(DTYPES[element])

    def length():
        return usual if not odd or random.integers(0, odd + 1) else int(random.integers(0, 9))

    def value(field):
        if field.form == "list":
            return [array(field.element, length()) for _ in range(rows)]
        return array(field.element, 1 if field.form == "scalar" else length())

    return [{field.name: value(field) for field in codelet.fields} for _ in range(draw(st.sampled_from([1, 8, 9, 17])))]
