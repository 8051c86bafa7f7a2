"""Constant tables: what makes one, of what type, and that it is frozen; what device code reads of it."""

import enum
import json
import math

import numpy as np
import pytest
from codelet_rig import codelet_of, module_from, run, vertex
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import Input, Output, Vector, Vertex
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.constant_tables import NoTable, table_of
from pypoplar.errors import CodeletError, FileLoadError
from pypoplar.interface.fault_codes import FaultCode
from pypoplar.types import BOOL, FLOAT, HALF, INT, LONGLONG, SUPPORTED, UNSIGNED_INT, UNSIGNED_LONGLONG


class Kind(enum.IntEnum):
    WALL = 3


TYPES = [
    ([1, 2, 3], INT, (3,)),
    ((1, 2.5), FLOAT, (2,)),
    ([True, False], BOOL, (2,)),
    ([0, 2**32 - 1], UNSIGNED_INT, (2,)),
    ([-1, 2**32 - 1], LONGLONG, (2,)),
    ([0, 2**64 - 1], UNSIGNED_LONGLONG, (2,)),
    ([[1, 2, 3], [4, 5, 6]], INT, (2, 3)),
    (((1.0,), (2,)), FLOAT, (2, 1)),
    ([Kind.WALL, np.int64(4)], INT, (2,)),
    ([np.float64(0.5), np.float32(1)], FLOAT, (2,)),
    ([np.arange(3), np.arange(3)], INT, (2, 3)),
    (np.arange(4), INT, (4,)),
    (np.array([2**40]), LONGLONG, (1,)),
    (np.zeros((2, 2)), FLOAT, (2, 2)),
    (np.zeros(3, bool), BOOL, (3,)),
    (np.array([[1, 2]], object), INT, (1, 2)),
    (np.zeros((2, 3), int).view(np.matrix), INT, (2, 3)),
    *((np.zeros((1, 2), element.dtype), None, (1, 2)) for element in SUPPORTED),
]


@pytest.mark.parametrize(("value", "element", "shape"), TYPES, ids=repr)
def test_a_table_has_the_type_of_its_numbers(value, element, shape):
    table = table_of(value)
    assert table.shape == shape
    if element is None:
        assert table.type.dtype == (value.dtype if value.dtype not in (np.int64, np.float64) else np.int32)
    else:
        assert table.type is element
    np.testing.assert_array_equal(np.frombuffer(table.data, table.type.dtype).reshape(shape), np.array(value))


NONE = [
    ([], "a list without elements: a table has some"),
    (np.zeros((0, 3)), "an array of shape [0, 3] without elements: a table has some"),
    ([[]], "a list without elements: a table has some"),
    ([[1, 2], [3]], "a list of rows of different lengths: a table has rows of one length"),
    ([[1, 2], 3], "a list of rows and of other values: a table has one or two dimensions"),
    ([[[1]]], "a list with rows of rows: a table has numbers, in one or two dimensions"),
    (["a"], "a list with a str: a table has numbers, in one or two dimensions"),
    ((1, None), "a tuple with a NoneType: a table has numbers, in one or two dimensions"),
    ([1, True], "a list of numbers and of bools: a table has one type"),
    ([1j], "a list with a complex: a table has numbers, in one or two dimensions"),
    ([1e300], "a list: its type is FLOAT, which cannot hold 1e+300 at index 0: FLOAT goes from -3.4028235e+38 to 3.4028235e+38"),
    ([0, 2**64], f"a list of numbers from 0 to {2**64}: no type of the device holds them"),
    (np.zeros((2, 2, 2)), "an array of shape [2, 2, 2]: a table has one or two dimensions; pass it as an Input field"),
    (np.zeros(2, complex), "an array: no element type has the NumPy dtype complex128"),
    (np.array(["a"]), "an array: no element type has the NumPy dtype <U1"),
    (np.array([1, None], object), "an array with a NoneType: a table has numbers, in one or two dimensions"),
    (np.array([[1j]], object), "an array with a complex: a table has numbers, in one or two dimensions"),
    *(
        (
            np.ma.array([1, 2], element, mask=[0, 1]),
            "an array with a mask, which a table does not have: write .filled(...) with a number for what is masked",
        )
        for element in (np.int32, np.int64)
    ),
    (
        np.zeros(300_000),
        "an array of shape [300000] of 1,200,000 bytes, and a table lies in each tile's memory; pass it as an Input field",
    ),
]


@pytest.mark.parametrize(("value", "message"), NONE, ids=[message for _, message in NONE])
def test_what_makes_no_table_is_refused_by_what_it_is(value, message):
    with pytest.raises(NoTable) as caught:
        table_of(value)
    assert str(caught.value) == message

    class Test(Vertex):
        out: Output[FLOAT]

        def compute(self):
            self.out = float(value[0])

    with pytest.raises(CodeletError) as refused:
        codelet_of(Test)
    assert refused.value.msg == f"device code cannot use {message}"


def test_tables_are_frozen_when_the_codelet_is_added():
    table = [1, 2, 3]

    class Test(Vertex):
        n: INT
        TAPS = np.array([4, 5], np.int8)
        SHARED: tuple[int, ...] = (6, 7)

        def compute(self):
            self.n = table[1] + self.TAPS[0] + self.SHARED[1]

    codelet = codelet_of(Test)
    table[1] = 100
    Test.TAPS[0] = 100
    assert run(codelet, n=0)["n"] == [2 + 4 + 7]
    assert codelet != codelet_of(Test)


def test_equal_tables_are_one_and_those_that_nothing_reads_are_none():
    prelude = "A = (1, 2)\nB = [1, 2]\nC = [1.0, 2.0]\nD = (3, 4)\nDEBUG = False\n"
    body = "self.n = A[self.n] + B[self.n] + int(C[self.n])\nif DEBUG:\n    self.n = D[0]"
    codelet = codelet_of(vertex(body, fields="n: INT", prelude=prelude))
    assert [(table.type, table.shape) for table in codelet.source.tables] == [(INT, (2,)), (FLOAT, (2,)), (INT, (2,))]
    assert [table.element for table in codelet.typed.tables] == ["i32", "f32"]
    assert run(codelet, n=1)["n"] == [6]


PRELUDE = """
import numpy as np

WEIGHTS = (0.5, 0.25, 2.0)
MATRIX = [[1, 2, 3], [4, 5, 6]]
SMALL = np.array([-1, 200 - 256], np.int8)
FLAGS = (True, False)
WIDE = np.array([2**40, -1])
HALVES = np.array([0.1, 1.5], np.float16)

def dot(x, taps=WEIGHTS):
    t = 0.0
    for i in range(len(taps)):
        t += x[i] * taps[i]
    return t
"""
PROGRAMS = [  # body, out
    ("self.out[0] = WEIGHTS[self.n] + len(WEIGHTS)", [3.25, 0]),
    ("for w in WEIGHTS:\n    self.out[0] += w", [2.75, 0]),
    ("for w in WEIGHTS[1:]:\n    self.out[0] += w", [2.25, 0]),
    ("self.out[0] = MATRIX[self.n][2] + 10 * MATRIX[0, self.n]\nself.out[1] = len(MATRIX) + len(MATRIX[0])", [26, 5]),
    ("for row in MATRIX:\n    for x in row[1:]:\n        self.out[0] += x", [16, 0]),
    ("t = WEIGHTS\nfor k in range(2):\n    t = t[1:]\nself.out[0] = t[0]", [2, 0]),
    ("self.out[0] = SMALL[0] + SMALL[1]\nself.out[1] = float(WIDE[0] >> 39)", [-57, 2]),
    ("self.out[0] = 1.0 if FLAGS[self.n] else 2.0\nself.out[1] = HALVES[0]", [2, float(np.float16(0.1))]),
    ("self.out[0] = dot(self.x)\nself.out[1] = dot(WEIGHTS, self.x)", [0.5 + 0.5 + 6, 7]),
    ("self.out[0] = dot(MATRIX[1], MATRIX[0])", [32, 0]),
    ("t = self.x\nif self.n > 0:\n    t = WEIGHTS\nself.out[0] = t[2]", [2, 0]),
    ("self.out[0] = min(WEIGHTS[0], WEIGHTS[1]) + max(MATRIX[0][0], 3)", [3.25, 0]),
]


@pytest.mark.parametrize(("body", "out"), PROGRAMS, ids=[body for body, _ in PROGRAMS])
def test_device_code_reads_tables(body, out):
    cls = vertex(body, fields="n: INT\nx: Input[Vector[FLOAT]]\nout: InOut[Vector[FLOAT]]", prelude=PRELUDE)
    assert run(cls, n=1, x=[1, 2, 3], out=[0, 0])["out"] == out
    assert run(cls, n=1, x=[1, 2, 3], out=[0, 0], touches=True, uninitialised_is_fault=True)["out"] == out


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("self.out[0] = WEIGHTS[self.n + 2]", (FaultCode.INDEX, 3, 3)),
        ("self.out[0] = WEIGHTS[self.n - 2]", (FaultCode.INDEX, -1, 3)),
        ("self.out[0] = MATRIX[self.n + 1][0]", (FaultCode.ROW_INDEX, 2, 2)),
        ("self.out[0] = MATRIX[self.n, 3]", (FaultCode.INDEX, 3, 3)),
        ("self.out[0] = len(WEIGHTS[self.n:4])", (FaultCode.SLICE_BOUNDS, 4, 3)),
        ("for i in range(4):\n    self.out[0] += WEIGHTS[i]", (FaultCode.INDEX, 3, 3)),
    ],
)
def test_bounds_of_tables_are_checked(body, fault):
    cls = vertex(body, fields="n: INT\nout: InOut[Vector[FLOAT]]", prelude=PRELUDE)
    code, _, value, bound = run(cls, n=1, out=[0, 0]).fault
    assert (code, value, bound) == fault


def test_an_element_of_a_table_costs_what_one_of_a_field_does():
    fields = "n: INT\nx: Input[Vector[FLOAT]]\nout: Output[FLOAT]"
    values = {"n": 1, "x": [1, 2, 3], "out": 0}
    field = run(vertex("self.out = self.x[self.n]", fields=fields, prelude=PRELUDE), **values)
    table = run(vertex("self.out = WEIGHTS[self.n]", fields=fields, prelude=PRELUDE), **values)
    assert field.slots == table.slots


@given(st.lists(st.floats(width=32), min_size=1, max_size=40))
def test_any_floats_come_back_to_the_bit(values):
    class Test(Vertex):
        out: Output[Vector[FLOAT]]

        def compute(self):
            for i in range(len(values)):
                self.out[i] = values[i]

    ran = run(Test, out=np.zeros(len(values)), nan_bits=True)
    expected = np.array([math.nan if value != value else value for value in values], np.float32)
    assert ran.fields["out"].tobytes() == expected.tobytes()


def test_a_template_may_read_tables():
    from typing import Generic, TypeVar

    T = TypeVar("T")

    class Weigh(Vertex, Generic[T]):
        x: Input[Vector[T]]
        out: Output[T]
        TAPS = np.array([1, 2], np.float16)

        def compute(self):
            self.out = T(self.x[0] * self.TAPS[1])

    for element in (FLOAT, HALF):
        assert run(Codelet.of_class(Weigh, {T: element}), x=[3], out=0)["out"] == [6]


ALL = vertex(
    "self.f = W[0] + M[1][0] + self.H[1]",
    fields="f: FLOAT\nH = (0.5, 2.0)",
    prelude="import numpy as np\nW = [math.nan, -0.0]\nM = np.array([[1], [255]], np.uint8)\n",
)


def test_json_gives_back_equal_tables():
    codelet = codelet_of(ALL)
    again = Codelet.from_json(json.loads(json.dumps(codelet.to_json(), allow_nan=False)))
    assert again == codelet
    assert again.typed == codelet.typed
    assert [table.type.__name__ for table in again.source.tables] == ["FLOAT", "UNSIGNED_CHAR", "FLOAT"]


DAMAGE = [
    lambda tables: tables[0].__setitem__(0, "DOUBLE"),
    lambda tables: tables[0].__setitem__(0, "BOOL"),
    lambda tables: tables[0].__setitem__(1, [3]),
    lambda tables: tables[0].__setitem__(1, [-1, -2]),
    lambda tables: tables[0].__setitem__(1, [2.0]),
    lambda tables: tables[0].__setitem__(1, []),
    lambda tables: tables[0].__setitem__(2, "!!"),
    lambda tables: tables[0].__setitem__(2, None),
    lambda tables: tables[1].__setitem__(1, [1, 1, 2]),
    lambda tables: tables.pop(),
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_tables_are_refused(damage):
    tree = json.loads(json.dumps(codelet_of(ALL).to_json()))
    damage(tree["source"]["tables"])
    with pytest.raises(FileLoadError):
        Codelet.from_json(tree)


def test_tables_of_other_modules_and_functions_are_constants():
    names = module_from("from codelet_rig import *\nimport math\nT = (5, 6)\n")

    class Other:
        TABLE = names["T"]

    class Test(Vertex):
        n: INT

        def compute(self):
            self.n = Other.TABLE[self.n]

    assert run(Test, n=1)["n"] == [6]
    assert isinstance(codelet_of(Test).typed.tables[0].data, bytes)
