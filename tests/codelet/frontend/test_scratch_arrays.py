"""Scratch arrays of device code: what they are good for, how long they last, and what is refused."""

import sys

import numpy as np
import pytest
from codelet_rig import codelet_of, interpret, run, vertex

from pypoplar import ipu
from pypoplar.errors import CodeletError, TensorShapeError
from pypoplar.interface.fault_codes import FaultCode
from pypoplar.types import FLOAT, INT, SUPPORTED

PRELUDE = """
import numpy as np

N = 4
KINDS = (1, 2, 3)

def fill(a, start):
    for i in range(len(a)):
        a[i] = start + i

def doubled_sum(x):
    a = ipu.array(FLOAT, N)
    for i in range(N):
        a[i] = 2.0 * x[i]
    t = 0.0
    for v in a:
        t += v
    return t

def nested(x):
    a = ipu.array(FLOAT, N)
    for i in range(N):
        a[i] = x[i]
    a[0] = doubled_sum(a)
    return a[0] + a[1]

def first_of(x, n):
    a = ipu.array(FLOAT, n)
    a[0] = x[0]
    return a[0]

def half(a):
    return a[: len(a) // 2]

def read_one(i):
    a = ipu.array(FLOAT, N)
    if i == 0:
        a[0] = 1.0
    return a[0]
"""
FIELDS = "n: INT\nx: Input[Vector[FLOAT]]\nout: InOut[Vector[FLOAT]]"
VALUES = {"n": 1, "x": [1, 2, 3, 4], "out": [0, 0]}

PROGRAMS = [  # body, out
    ("a = ipu.array(FLOAT, 4)\nfor i in range(4):\n    a[3 - i] = self.x[i]\nself.out[0] = a[0]\nself.out[1] = len(a)", [4, 4]),
    ("a = ipu.array(FLOAT, N)\nfill(a, 3)\nself.out[0] = a[self.n]\nb = a[1:3]\nb[1] = 9.0\nself.out[1] = a[2] + len(b)", [4, 11]),
    ("a = ipu.array(INT, 2)\nb = a\nb[0] = 5\nb[1] = -2\na[0] += 1\nself.out[0] = a[0]\nself.out[1] = b[1]", [6, -2]),
    ("a = ipu.array(FLOAT, 2)\nfill(a, 5)\nb = self.x\nif self.n > 0:\n    b = a\nself.out[0] = b[0]", [5, 0]),
    ("a = self.out\nif self.n > 1:\n    a = ipu.array(FLOAT, 2)\na[1] = 7.0", [0, 7]),
    ("a = ipu.array(FLOAT, 2)\na[0] = 1.0\na = ipu.array(FLOAT, 3)\na[0] = 2.0\nself.out[0] = a[0] + len(a)", [5, 0]),
    ("self.out[0] = doubled_sum(self.x)\nself.out[1] = doubled_sum(self.x) + doubled_sum(self.x)", [20, 40]),
    ("for i in range(3):\n    self.out[0] += doubled_sum(self.x)", [60, 0]),
    ("self.out[0] = nested(self.x)", [22, 0]),
    ("self.out[0] = first_of(self.x, 2) + first_of(self.x, 3)", [2, 0]),
    ("a = ipu.array(FLOAT, 4)\nfill(a, 1)\nfill(half(a), 7)\nself.out[0] = a[1] + a[2]", [11, 0]),
    ("fill(ipu.array(FLOAT, 2), 1)\nself.out[0] = ipu.array(FLOAT, len(KINDS) * 2)[0:1][0:0] if False else 2.0", [2, 0]),
    ("a = ipu.array(HALF, 2)\na[0] = HALF(0.1)\nb = ipu.array(BOOL, 2)\nb[0] = True\nself.out[0] = a[0] if b[0] else 0.0",
     [float(np.float16(0.1)), 0]),
    ("a = ipu.array(CHAR, 2)\na[0] = self.n + 199\na[1] = 1\nself.out[0] = a[0] + a[1]", [-55, 0]),
    ("a = ipu.array(INT, 2)\nself.out[0] = a[1]", [-1, 0]),
    ("a = ipu.array(FLOAT, 2)\nself.out[0] = 1.0 if a[1] != a[1] else 0.0", [1, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "out"), PROGRAMS, ids=[body for body, _ in PROGRAMS])
def test_device_code_works_on_scratch_arrays(body, out):
    cls = vertex(body, fields=FIELDS, prelude=PRELUDE)
    assert run(cls, **VALUES)["out"] == out
    assert run(cls, **VALUES, touches=True)["out"] == out


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("a = ipu.array(FLOAT, 3)\na[self.n + 2] = 1.0", (FaultCode.INDEX, 3, 3)),
        ("a = ipu.array(FLOAT, 3)\nself.out[0] = a[self.n - 2]", (FaultCode.INDEX, -1, 3)),
        ("a = ipu.array(FLOAT, 3)\nfor i in range(4):\n    a[i] = 1.0", (FaultCode.INDEX, 3, 3)),
        ("a = ipu.array(FLOAT, 3)\nself.out[0] = len(a[self.n:4])", (FaultCode.SLICE_BOUNDS, 4, 3)),
    ],
)
def test_bounds_of_scratch_arrays_are_checked(body, fault):
    code, _, value, bound = run(vertex(body, fields=FIELDS, prelude=PRELUDE), **VALUES).fault
    assert (code, value, bound) == fault


@pytest.mark.parametrize(
    ("body", "index"),
    [
        ("a = ipu.array(FLOAT, 4)\na[0] = 1.0\nself.out[0] = a[0] + a[1]", 1),
        ("for i in range(2):\n    self.out[i] = read_one(i)", 0),
        ("for i in range(2):\n    self.out[i] = doubled_sum(self.x) + read_one(i)", 0),
        ("self.out[0] = read_one(0)\nself.out[1] = read_one(1)", 0),
    ],
)
def test_each_declaration_holds_nothing_that_was_there_before(body, index):
    cls = vertex(body, fields=FIELDS, prelude=PRELUDE)
    code, _, value, _ = run(cls, **VALUES, uninitialised_is_fault=True).fault
    assert (code, value) == (FaultCode.UNINITIALISED, index)


def test_each_worker_has_arrays_of_its_own():
    body = "a = ipu.array(INT, 2)\nself.out[worker] = a[0]\na[0] = worker"
    cls = vertex(body, fields="out: Output[Vector[INT]]", base="MultiVertex", head="self, worker")
    assert run(cls, out=[0] * 6)["out"] == [-1] * 6


def test_a_declaration_costs_nothing():
    without = run(vertex("self.out[0] = 1.0", fields=FIELDS), **VALUES)
    cls = vertex("a = ipu.array(FLOAT, 100)\nself.out[0] = 1.0\nif self.n > 3:\n    self.out[0] = a[0]", fields=FIELDS)
    branch = run(vertex("self.out[0] = 1.0\nif self.n > 3:\n    self.out[0] = self.x[0]", fields=FIELDS), **VALUES)
    assert run(cls, **VALUES).slots == branch.slots > without.slots


def arrays_of(body):
    return [(array.element, array.length) for array in codelet_of(vertex(body, fields=FIELDS, prelude=PRELUDE)).typed.arrays]


def test_calls_that_follow_each_other_share_their_arrays():
    assert arrays_of("self.out[0] = doubled_sum(self.x) + doubled_sum(self.x)") == [("f32", 4)]
    assert arrays_of("self.out[0] = nested(self.x)\nself.out[1] = doubled_sum(self.x)") == [("f32", 4)] * 2
    assert arrays_of("self.out[0] = first_of(self.x, 2) + first_of(self.x, 3)") == [("f32", 2), ("f32", 3)]
    assert arrays_of("a = ipu.array(FLOAT, 4)\na[0] = doubled_sum(self.x)\nself.out[0] = a[0]") == [("f32", 4)] * 2


def test_arrays_of_code_that_never_runs_are_left_out():
    assert arrays_of("if N > 5:\n    a = ipu.array(FLOAT, 4)\nself.out[0] = 1.0") == []
    assert arrays_of("if N > 5:\n    self.out[0] = doubled_sum(self.x)\nself.out[0] = 1.0") == []


UNKNOWN = "the length of a scratch array is a constant, and {} is known only when the vertex runs: write the largest that is needed"
LARGE = "scratch arrays of a codelet take at most 131,072 bytes, with {} they take {}: use a plain field, Vector[...]"
IN_LOOP = "a scratch array in a loop: declare it before the loop; all rounds can use the same memory"
REFUSED = [  # body, what the caret is under, message
    ("a = ipu.array(FLOAT)", "ipu.array(FLOAT)", "write ipu.array(FLOAT, 16): the type of its elements, and how many there are"),
    (
        "a = ipu.array(FLOAT, 2, 2)",
        "ipu.array(FLOAT, 2, 2)",
        "write ipu.array(FLOAT, 16): the type of its elements, and how many there are",
    ),
    ("a = ipu.array(float, 4)", "float", "float is no type of the device: write ipu.array(FLOAT, ...)"),
    (
        "a = ipu.array(DOUBLE, 4)",
        "DOUBLE",
        "device code cannot use DOUBLE: the device has no such numbers; use FLOAT, HALF, INT or LONGLONG",
    ),
    ("a = ipu.array(np.float32, 4)", "np.float32", "device code cannot use numpy's float32: write FLOAT(x)"),
    ("a = ipu.array(4, FLOAT)", "4", "4 is no type: write ipu.array(FLOAT, 16), or another element type"),
    ("a = ipu.array(FLOATS, 4)", "FLOATS", "name 'FLOATS' is not defined; did you mean 'FLOAT'?"),
    (
        "a = ipu.array(Vector[FLOAT], 4)",
        "Vector[FLOAT]",
        "Vector[FLOAT] is no type: write ipu.array(FLOAT, 16), or another element type",
    ),
    ("a = ipu.array(FLOAT, self.n)", "self.n", UNKNOWN.format("self.n")),
    ("a = ipu.array(FLOAT, len(self.x))", "len(self.x)", UNKNOWN.format("len(self.x)")),
    ("a = ipu.array(FLOAT, self.x)", "self.x", "the length of a scratch array is an integer, got a vector, self.x; index it"),
    ("a = ipu.array(FLOAT, True)", "True", "the length of a scratch array is an integer, got True"),
    ("a = ipu.array(FLOAT, 2.5)", "2.5", "the length of a scratch array is an integer, got 2.5"),
    ("a = ipu.array(FLOAT, 0)", "0", "a scratch array has at least 1 element, got 0"),
    ("a = ipu.array(FLOAT, N - 5)", "N - 5", "a scratch array has at least 1 element, got N - 5"),
    ("a = ipu.array(FLOAT, 32769)", "ipu.array(FLOAT, 32769)", LARGE.format("ipu.array(FLOAT, 32769)", "131,076")),
    ("a = ipu.array(LONGLONG, 16384)\nb = ipu.array(CHAR, 1)", "ipu.array(CHAR, 1)", LARGE.format("ipu.array(CHAR, 1)", "131,073")),
    ("for i in range(3):\n    a = ipu.array(FLOAT, 4)", "ipu.array(FLOAT, 4)", IN_LOOP),
    ("while self.n > 0:\n    fill(ipu.array(FLOAT, 4), 0)", "ipu.array(FLOAT, 4)", IN_LOOP),
    (
        "ipu.array(FLOAT, 4)",
        "ipu.array(FLOAT, 4)",
        "ipu.array(FLOAT, 4) has no effect here: nothing uses its value; assign it, name = ipu.array(FLOAT, 4), "
        "or leave the line out",
    ),
    ("a = ipu.array(FLOAT, length=4)", "length=4", "ipu.array takes no keyword arguments in device code"),
    ("self.out[0] = ipu.array(FLOAT, 4)", "ipu.array(FLOAT, 4)", "expected a number, got a vector, ipu.array(FLOAT, 4); index it"),
    (
        "a = 1.0\na = ipu.array(FLOAT, 4)",
        "ipu.array(FLOAT, 4)",
        "'a': it is a vector in one place and a number in another; use two names",
    ),
    ("a = ipu.array", "ipu.array", "ipu.array is a function; call it: ipu.array(...)"),
    (
        "a: FLOAT = ipu.array(FLOAT, 4)",
        "ipu.array(FLOAT, 4)",
        "'a' is declared FLOAT and gets a vector, ipu.array(FLOAT, 4): leave the annotation out",
    ),
    (
        "a: FLOAT = self.x",
        "self.x",
        "'a' is declared FLOAT and gets a vector, self.x: leave the annotation out",
    ),
]


@pytest.mark.parametrize(("body", "culprit", "message"), REFUSED, ids=[body for body, _, _ in REFUSED])
def test_what_is_no_scratch_array_is_refused_with_what_to_write(body, culprit, message):
    with pytest.raises(CodeletError) as caught:
        codelet_of(vertex(body, fields=FIELDS, prelude=PRELUDE))
    error = caught.value
    assert error.msg == message
    assert error.text[error.offset - 1 : error.end_offset - 1] == culprit


HELPERS = """
def whole():
    a = ipu.array(FLOAT, 4)
    a[0] = 1.0
    return a

def part():
    a = ipu.array(FLOAT, 4)
    b = a[1:3]
    return b[0:1]

def pair(x):
    return x[0], ipu.array(FLOAT, 2)

def either(x, n):
    a = ipu.array(FLOAT, 4)
    if n > 1:
        a = x
    return a

def within(x):
    return fits(ipu.array(FLOAT, 4))

def fits(x):
    return x[0:2]

def loops(x):
    for i in range(2):
        a = ipu.array(FLOAT, 4)
        a[0] = x[i]
"""
ENDED = "{0} returns a scratch array of its own, which ends with the call: give it to {0} as an argument"


@pytest.mark.parametrize(
    ("call", "name", "culprit"),
    [
        ("a = whole()", "whole", "a"),
        ("a = part()", "part", "b[0:1]"),
        ("a, b = pair(self.x)", "pair", "x[0], ipu.array(FLOAT, 2)"),
        ("a = either(self.x, self.n)", "either", "a"),
        ("a = within(self.x)", "within", "fits(ipu.array(FLOAT, 4))"),
        ("self.out[0] = whole()[0]", "whole", "a"),
    ],
)
def test_an_array_is_not_returned_by_the_function_with_which_it_ends(call, name, culprit):
    with pytest.raises(CodeletError) as caught:
        codelet_of(vertex(call, fields=FIELDS, prelude=HELPERS))
    error = caught.value
    assert error.msg == ENDED.format(name)
    assert error.text[error.offset - 1 : error.end_offset - 1] == culprit


def test_a_loop_of_a_helper_function_declares_none_either():
    with pytest.raises(CodeletError, match="declare it before the loop"):
        codelet_of(vertex("loops(self.x)", fields=FIELDS, prelude=HELPERS))


def test_what_was_given_to_a_helper_function_may_be_returned():
    cls = vertex("a = ipu.array(FLOAT, 4)\na[1] = 5.0\nself.out[0] = fits(a)[1]", fields=FIELDS, prelude=HELPERS)
    assert run(cls, **VALUES)["out"] == [5, 0]


def test_a_debugger_shows_arrays_as_locals_and_not_as_fields(monkeypatch):
    shown = []

    def look():
        names = sys._getframe(1).f_locals
        shown.extend((repr(names["a"]), repr(names["self"])))

    monkeypatch.setattr(sys, "breakpointhook", look)
    body = "a = ipu.array(INT, 2)\na[0] = 5\nbreakpoint()\nself.out[0] = a[0] + KINDS[1]"
    assert interpret(vertex(body, fields=FIELDS, prelude=PRELUDE), **VALUES)["out"] == [7, 0]
    assert shown == ["[5, -1]", "n = 1, x = [1.0, 2.0, 3.0, 4.0], out = [0.0, 0.0]"]


@pytest.mark.parametrize("element", SUPPORTED, ids=repr)
def test_on_the_host_an_array_is_one_of_numpy(element):
    array = ipu.array(element, 3)
    assert (array.shape, array.dtype) == ((3,), element.dtype)
    assert array.tobytes() == b"\xff" * array.nbytes
    array[:] = 1
    assert array.tolist() == [1, 1, 1]


def test_on_the_host_an_array_has_an_element_at_least():
    with pytest.raises(TensorShapeError, match="a scratch array has at least 1 element, got 0"):
        ipu.array(FLOAT, 0)
    assert ipu.array(INT, 1).tolist() == [-1]
