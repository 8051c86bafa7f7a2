"""The Python form: lines, names and calls of the user's code; and random expressions against an oracle for each type."""

import pdb
import sys
import traceback

import numpy as np
import pytest
from codelet_rig import DTYPES, codelet_of, interpret, priced_codelet, run, vertex
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from native_rig import Memory

from pypoplar.codelet.python.interpreted import VertexContext, VertexFault
from pypoplar.codelet.python.python_form import PythonForm


def form_of(cls, **fields):
    """The Python form of a codelet and the arguments of a run on these fields."""
    codelet = priced_codelet(cls)
    memory = Memory(codelet, [fields])
    return PythonForm(codelet), (memory.bytes, memory.rows[0], 0, memory.table, VertexContext())


def test_a_traceback_goes_through_the_users_line():
    cls = vertex("a = 1\nfor i in range(9):\n    self.x[i] = a", fields="x: Output[Vector[INT]]")
    form, arguments = form_of(cls, x=[0, 0])
    with pytest.raises(VertexFault) as caught:
        form.run(*arguments)
    frames = traceback.extract_tb(caught.tb)
    (ours,) = [one for one in frames if one.filename == cls.compute.__code__.co_filename]
    assert (ours.name, ours.line) == ("compute", "self.x[i] = a")


def test_every_line_of_the_code_is_a_line_of_the_form():
    body = "a = 0\nif self.k > 0:\n    a = 1\nelse:\n    a = 2\nwhile a < 3:\n    a += 1\nself.k = a"
    cls = vertex(body, fields="k: INT")
    first, seen = cls.compute.__code__.co_firstlineno + 1, set()

    def trace(frame, event, _):
        if frame.f_code.co_filename == cls.compute.__code__.co_filename and event == "line":
            seen.add(frame.f_lineno - first)
        return trace

    form, arguments = form_of(cls, k=1)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        form.run(*arguments)
    finally:
        sys.settrace(before)
    assert seen == {0, 1, 2, 5, 6, 7}  # not the else branch


def test_locals_keep_their_names_and_self_shows_the_fields(monkeypatch, capsys):
    body = "total = 0\nfor value in self.x:\n    total += value\nrow = self.rows[1]\nbreakpoint()\nself.out = total"
    cls = vertex(body, fields="x: Input[Vector[INT]]\nrows: Input[VectorList[FLOAT]]\nout: INT\nflag: BOOL")
    seen = {}

    def look():
        frame = sys._getframe(1)
        seen.update(frame.f_locals, line=frame.f_lineno - cls.compute.__code__.co_firstlineno)

    monkeypatch.setattr(sys, "breakpointhook", look)
    ran = interpret(cls, x=[1, 2, 3], rows=[[0.5], [1.5, 2.5]], out=7, flag=True)
    assert ran["out"] == [6]
    assert (seen["total"], seen["value"], seen["line"]) == (6, 3, 5)
    assert list(seen["row"]) == [1.5, 2.5]
    vertex_seen = seen["self"]
    assert (vertex_seen.out, vertex_seen.flag, list(vertex_seen.x), len(vertex_seen.rows)) == (6, True, [1, 2, 3], 2)
    assert "x = [1, 2, 3]" in repr(vertex_seen)
    assert "rows = [[0.5], [1.5, 2.5]]" in repr(vertex_seen)
    with pytest.raises(AttributeError, match="looked at here, not set"):
        vertex_seen.out = 3
    with pytest.raises(AttributeError, match="no field 'y'"):
        vertex_seen.y
    with pytest.raises(IndexError):
        vertex_seen.x[3]
    with pytest.raises(IndexError):
        vertex_seen.rows[2]


def test_the_debugger_stops_at_the_users_line(monkeypatch):
    cls = vertex("a = 4\nbreakpoint()\nself.k = a", fields="k: INT")
    stops = []

    first = cls.compute.__code__

    class Watcher(pdb.Pdb):
        def interaction(self, frame, _):
            stops.append((frame.f_code.co_filename, frame.f_lineno - first.co_firstlineno, frame.f_locals["a"]))
            self.set_continue()

    monkeypatch.setattr(sys, "breakpointhook", lambda: Watcher().set_trace(sys._getframe(1)))
    before = sys.gettrace()
    try:
        interpret(cls, k=0)
    finally:
        sys.settrace(before)
    line = 2 if sys.version_info >= (3, 13) else 3  # of the call itself, or after it
    assert stops == [(first.co_filename, line, 4)]


def test_print_records_its_text_and_values():
    cls = vertex("print('k is', self.k, f'{self.f:.1f}')\nprint()", fields="k: INT\nf: FLOAT")
    ran = interpret(cls, k=3, f=0.25)
    texts = codelet_of(cls).typed.texts
    assert [(texts[text], values) for _, text, values in ran.printed] == [("k is {} {:.1f}\n", (3, 0.25)), ("\n", ())]


def test_helpers_from_another_file_stand_at_the_call():
    from codelet_rig import PRELUDE, module_from

    helper = module_from("\n" * 50 + "def helper(x):\n    return x // 0\n")["helper"]
    names = module_from(PRELUDE + "class Test(Vertex):\n    k: INT\n\n    def compute(self):\n        self.k = given(self.k)\n")
    names["given"] = helper
    form, arguments = form_of(names["Test"], k=1)
    with pytest.raises(VertexFault) as caught:
        form.run(*arguments)
    assert form.codelet.locations[caught.value.where].line == 52
    lines = [one.line for one in traceback.extract_tb(caught.tb)]
    assert "self.k = given(self.k)" in lines


def test_slots_up_to_a_fault_are_counted():
    ran = interpret(vertex("for i in range(9):\n    self.x[i] = i", fields="x: Output[Vector[INT]]"), x=[0, 0])
    assert ran.slots == 14 + 3


def test_memory_outside_the_fields_is_never_touched():
    cls = vertex("for i in range(len(self.x)):\n    self.x[i] = 5", fields="x: Output[Vector[CHAR]]")
    assert interpret(cls, x=[1, 2, 3])["x"] == [5, 5, 5]  # the rig looks at what is around


NANS = [0x7FC00001, 0x7F800001, 0xFFFFFFFF, 0xFF812345, 0x7FC00000, 0x80000000, 0x00000001]


@pytest.mark.parametrize("bits", NANS)
def test_a_copied_float_keeps_its_bits(bits):
    given = np.array([bits], np.uint32).view(np.float32)
    ran = run(
        vertex("self.y[0] = self.x[0]", fields="x: Input[Vector[FLOAT]]\ny: Output[Vector[FLOAT]]"), x=given, y=[0], nan_bits=True
    )
    assert ran.fields["y"].view(np.uint32)[0] == bits


def test_every_half_survives_a_copy():
    given = np.arange(2**16, dtype=np.uint16)
    signalling = (given & 0x7C00 == 0x7C00) & (given & 0x3FF != 0) & (given & 0x200 == 0)  # a load makes them quiet
    given = given[~signalling]
    fields = "x: Input[Vector[HALF]]\ny: Output[Vector[HALF]]"
    cls = vertex("for i in range(len(self.x)):\n    self.y[i] = self.x[i]", fields=fields)
    ran = interpret(cls, x=given.view(np.float16), y=np.zeros(len(given)))
    np.testing.assert_array_equal(ran.fields["y"].view(np.uint16), given)


# Random expressions of one type

FLOATS, INTEGERS = ("FLOAT", "HALF"), ("INT", "UNSIGNED_INT", "LONGLONG", "UNSIGNED_LONGLONG")
CODES = dict(zip(FLOATS + INTEGERS, ("f32", "f16", "i32", "u32", "i64", "u64"), strict=True))


@st.composite
def expressions(draw, floating, depth=3):
    """An expression in a, b and c as device code writes it."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        literal = draw(st.sampled_from(["0.5", "2.0", "-1.5", "3"])) if floating else draw(st.sampled_from(["1", "7", "100"]))
        return draw(st.sampled_from(["a", "b", "c", literal]))
    left, right = (draw(expressions(floating, depth - 1)) for _ in range(2))
    symbols = ["+", "-", "*", "min", "max"] + (["abs"] if floating else ["&", "|", "^", "<<", ">>", "//", "%"])
    symbol = draw(st.sampled_from([*symbols, "neg", "if"]))
    match symbol:
        case "min" | "max":
            return f"{symbol}({left}, a, {right})"
        case "neg":
            return f"(-(a - {left}))"
        case "abs":
            return f"abs(b + {left})"
        case "if":
            return f"({left} if a < {right} else b)"
        case "<<" | ">>":
            return f"((c ^ {left}) {symbol} (b & 15))"
        case "//" | "%":
            return f"((a + {left}) {symbol} (b | 1))"
    return f"(({left} {symbol} b) {symbol} {right})"


def values(floating, code):
    if floating:
        return st.floats(width=32 if code == "f32" else 16, allow_nan=False)
    info = np.iinfo(DTYPES[code])
    return st.one_of(st.integers(int(info.min), int(info.max)), st.integers(max(-9, int(info.min)), 9))


@pytest.mark.parametrize("name", list(CODES))
@examples(25)
@given(data=st.data())
def test_random_expressions_compute_as_numpy_scalars_do(name, data):
    floating, code = name in FLOATS, CODES[name]
    expression = data.draw(expressions(floating))
    given_values = {one: DTYPES[code](data.draw(values(floating, code))) for one in "abc"}
    used = f"({expression}) + (c - c)" if floating else f"({expression}) ^ (c & 0)"  # so that literals take the type
    fields = "\n".join(f"{one}: {name}" for one in ("a", "b", "c", "out"))
    fields = "\n".join(f"{one}: {name}" for one in ("a", "b", "c", "out"))
    cls = vertex(f"a = self.a\nb = self.b\nc = self.c\nself.out = {used}", fields=fields)
    ran = run(cls, **given_values, out=0)
    scalar = DTYPES[code]

    def smallest(*numbers):  # as Python's min, which np.min is not where there are NaNs
        return min(scalar(one) for one in numbers)

    def largest(*numbers):
        return max(scalar(one) for one in numbers)

    with np.errstate(all="ignore"):
        expected = scalar(eval(used, {"min": smallest, "max": largest, "abs": abs}, dict(given_values)))
    if floating and np.isnan(expected):
        assert np.isnan(ran.fields["out"][0])
    else:
        assert ran.fields["out"].tobytes() == expected.tobytes()
