"""Random device code means in both engines what it means as plain Python."""

import types

import numpy as np
from codelet_rig import array, module_from, run
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

PRELUDE = """\
import math
from pypoplar.codelet.language.fields import InOut, Input, Output, Vector, VectorList, Vertex
from pypoplar.types import FLOAT, INT

LIMIT = 5

def clamp(x, low=-4.0, high=4.0):
    if x < low:
        return low
    if high < x:
        return high
    return x

def index_of(values, wanted):
    for i in range(len(values)):
        if values[i] == wanted:
            return i
    return -1

def swap_if(a, b, wanted):
    if wanted:
        a, b = b, a
    return a, b

def add_up(values, start=0, *, scale=1):
    for value in values:
        if value < 0:
            continue
        start += (value * scale) & 255
        if start > 700:
            return start - 700
    return start & 255

def find(rows, wanted):
    for r in range(len(rows)):
        for c in range(len(rows[r])):
            if rows[r][c] == wanted:
                return r, c
    return -1, -1

class Test(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]
    n: InOut[Vector[INT]]
    rows: Input[VectorList[INT]]
    k: INT
    out: Output[FLOAT]
    THREE = 3

    def even(self, value):
        return value % 2 == 0

    def compute(self):
        a = 1
        b = self.k
        c = len(self.x)
        s = FLOAT(0.5)
        t = self.out
        view = self.n
"""
FIELDS = {"x": 4, "y": 3, "n": 5}


class Writer:
    """Writes statements; every integer stays in 0 to 1023, so that nothing wraps where Python would go on."""

    def __init__(self, draw):
        self.draw = draw
        self.loops = 0
        self.names = 0

    def one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def fresh(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def integer(self, depth):
        if depth == 0:
            return self.one_of("a", "b", "c", "self.k", "LIMIT", "self.THREE", str(self.draw(st.integers(0, 9))), "len(self.y)")
        left, right = self.integer(depth - 1), self.integer(depth - 1)
        form = self.one_of(
            "(({l} + {r}) & 1023)", "(({l} - {r}) & 1023)", "(({l} * {r}) & 1023)", "({l} // ({r} + 1))", "({l} % ({r} + 1))",
            "({l} & {r})", "({l} | {r})", "({l} ^ {r})", "(({l} << ({r} % 4)) & 1023)", "({l} >> ({r} % 8))", "min({l}, {r}, 9)",
            "max({l}, {r})", "abs({l} - {r})", "({l} if {c} else {r})", "int({f})", "(self.n[{l} % 5] & 1023)", "int({c})",
            "add_up(self.n)", "add_up(self.rows[{l} % 3], {r})", "add_up(self.n[1:4], scale={r})", "len(self.rows[{l} % 3])",
            "add_up(self.n[{l} % 5 : 5][1:])", "(index_of(self.x, {s}) + 1)", "(view[0] & 1023)", "self.n[2:][{l} % 3] % 7",
            "(~{l} & 1023)", "(-{l} & 1023)", "((({l} % 7) ** 2) & 1023)",
        )  # fmt: skip
        clamped = f"min(max({self.number(depth - 1)}, -100.0), 100.0)"
        return form.format(
            l=left, r=right, c=self.condition(depth - 1), f=f"abs({clamped})", s=self.number(0)
        )  # fmt: skip

    def number(self, depth):
        if depth == 0:
            return self.one_of("s", "t", "self.out", "0.25", "2.0", "-1.5", "self.x[1]", "self.y[self.k % 3]")
        left, right = self.number(depth - 1), self.number(depth - 1)
        form = self.one_of(
            "({l} + {r})", "({l} - {r})", "({l} * {r})", "min({l}, {r})", "max({l}, {r}, 0.0)", "abs({l})", "-{l}",
            "({l} if {c} else {r})", "clamp({l})", "clamp({l}, high=2.0)", "({l} + {i})", "({i} * {r})", "float({i})",
            "self.x[{i} % 4]", "(FLOAT({l}) / (abs(FLOAT({r})) + 1.0))", "({l} * {l})",
        )  # fmt: skip
        return form.format(l=left, r=right, c=self.condition(depth - 1), i=self.integer(depth - 1))

    def condition(self, depth):
        form = self.one_of(
            "{i} < {j}", "{i} <= {j} < {k}", "{f} > {g}", "{i} == {j}", "{f} != {g} > 0.0", "({p} and {q})", "({p} or {q})",
            "(not {p})", "self.even({i})", "({p}) == ({q})", "{i} >= {j}",
        ) if depth else self.one_of("a < b", "s <= t", "self.k == c", "self.even(a)", "True")  # fmt: skip
        if depth == 0:
            return form
        lower = depth - 1
        return "(" + form.format(
            i=self.integer(lower), j=self.integer(lower), k=self.integer(0), f=self.number(lower), g=self.number(0),
            p=self.condition(lower), q=self.condition(lower),
        ) + ")"  # fmt: skip

    def statement(self, margin, depth):  # noqa: C901, PLR0911, PLR0912 - an arm for each statement
        deep = ("if", "for", "vector", "rows", "while", "while true") if depth else ()
        kind = self.one_of("a", "b", "c", "s", "t", "store", "add", "out", "swap", "pair", "bind", "find", *deep)
        inner = margin + "    "
        match kind:
            case "a" | "b" | "c":
                return [f"{margin}{kind} {self.one_of('=', '=', '&=', '|=', '^=')} {self.integer(2)}"]
            case "s" | "t":
                return [f"{margin}{kind} {self.one_of('=', '+=', '-=', '*=')} FLOAT({self.number(2)})"]
            case "store":
                return [f"{margin}self.n[{self.integer(1)} % 5] = {self.integer(2)}"]
            case "add":
                return [f"{margin}self.y[{self.integer(0)} % 3] {self.one_of('+=', '-=', '*=', '=')} {self.number(2)}"]
            case "out":
                return [f"{margin}self.out {self.one_of('=', '+=', '*=')} {self.number(2)}"]
            case "swap":
                return [margin + self.one_of("a, b = b, a", "s, t = t, s", "a, b, c = c, a, b")]
            case "pair":
                return [f"{margin}a, b = swap_if({self.integer(1)}, {self.integer(0)}, {self.condition(1)})"]
            case "bind":
                return [margin + self.one_of("view = self.n", "view = view")]
            case "find":
                return [f"{margin}r, a = find(self.rows, {self.integer(1)})", f"{margin}a = (a + r) & 1023"]
            case "if":
                made = [f"{margin}if {self.condition(2)}:", *self.block(inner, depth - 1)]
                if self.draw(st.booleans()):
                    made += [f"{margin}elif {self.condition(1)}:", *self.block(inner, depth - 1)]
                if self.draw(st.booleans()):
                    made += [f"{margin}else:", *self.block(inner, depth - 1)]
                return made
            case "for":
                name = self.fresh("i")
                bounds = self.one_of("{0} % 4", "1, {0} % 5", "5, {0} % 3, -2", "{0} % 3, 6, {1} % 2 + 1", "3").format(
                    self.integer(1), self.integer(0)
                )
                head = f"{margin}for {name} in range({bounds}):"
                return [head, *self.loop(inner, depth - 1, f"a = (a + {name}) & 1023")]
            case "vector":
                name = self.fresh("v")
                what = self.one_of("self.x", "self.x[1:3]", "self.y")
                return [f"{margin}for {name} in {what}:", *self.loop(inner, depth - 1, f"s = FLOAT(clamp(s + {name}))")]
            case "rows":
                name = self.fresh("row")
                return [f"{margin}for {name} in self.rows:", *self.loop(inner, depth - 1, f"b = (b + add_up({name})) & 1023")]
            case "while":
                name = self.fresh("w")
                head = [f"{margin}{name} = 0", f"{margin}while {name} < 3 and {self.condition(1)}:", f"{inner}{name} += 1"]
                return [*head, *self.loop(inner, depth - 1, "pass")]
        name = self.fresh("w")
        head = [
            f"{margin}{name} = 4",
            f"{margin}while True:",
            f"{inner}{name} -= 1",
            f"{inner}if {name} < 0 or {self.condition(1)}:",
        ]
        return [*head, f"{inner}    break", *self.loop(inner, depth - 1, "pass")]

    def loop(self, margin, depth, first):
        self.loops += 1
        made = [margin + first, *self.block(margin, depth)]
        self.loops -= 1
        return made

    def block(self, margin, depth):
        made = []
        for _ in range(self.draw(st.integers(1, 3))):
            made += self.statement(margin, depth)
        if self.loops and self.draw(st.integers(0, 5)) == 0:
            made += [f"{margin}if {self.condition(1)}:", f"{margin}    {self.one_of('break', 'continue')}"]
        return made


@st.composite
def programs(draw):
    writer = Writer(draw)
    body = writer.block("        ", 2)
    ending = ["        self.n[0] = (self.n[0] + a + b + c) & 1023", "        self.y[0] += s + t"]
    return PRELUDE + "\n".join([*body, *ending]) + "\n"


def as_python(names, fields):
    """Run compute as Python, on lists of float32 and int."""
    cls = names["Test"]
    one = types.SimpleNamespace(
        x=list(fields["x"]), y=list(fields["y"]), n=fields["n"].tolist(), rows=[row.tolist() for row in fields["rows"]],
        k=int(fields["k"]), out=fields["out"], THREE=3,
    )  # fmt: skip
    one.even = lambda value: cls.even(one, value)
    device_float, names["FLOAT"] = names["FLOAT"], np.float32  # a double that Python keeps would be rounded later
    with np.errstate(all="ignore"):
        cls.compute(one)
    names["FLOAT"] = device_float
    return {
        "y": np.array(one.y, np.float32),
        "n": np.array(one.n, np.int32),
        "out": np.array([one.out], np.float32),
    }


@examples(40)
@given(programs(), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_random_programs_mean_what_they_mean_in_python(text, k, seed):
    random = np.random.default_rng(seed)
    fields = {
        "x": array("f32", random.integers(-8, 9, 4) / 4),
        "y": array("f32", random.integers(-8, 9, 3) / 4),
        "n": array("i32", random.integers(0, 30, 5)),
        "rows": [array("i32", random.integers(-3, 30, length)) for length in (2, 0, 4)],
        "k": np.int32(k),
        "out": np.float32(0.5),
    }
    names = module_from(text)
    expected = as_python(names, fields)
    ran = run(names["Test"], **fields)
    assert ran.fault is None
    for name, values in expected.items():
        np.testing.assert_array_equal(ran.fields[name], values, err_msg=text)
