"""Locals that hold rows: a list field, or a slice of one."""

import pytest
from codelet_rig import array, codelet_of, run, vertex

from pypoplar.interface.fault_codes import FaultCode

FIELDS = """
rows: InOut[VectorList[INT]]
other: Input[VectorList[INT]]
n: InOut[INT]
out: Output[Vector[INT]]
"""


def ran(body, *, prelude="", n=0, rows=((1, 2, 3), (4,), (), (5, 6)), other=((70,), (80, 90)), **settings):
    lists = {"rows": [array("i32", row) for row in rows], "other": [array("i32", row) for row in other]}
    return run(vertex(body, fields=FIELDS, prelude=prelude), n=n, out=[0] * 4, **lists, **settings)


PROGRAMS = [  # body, out
    ("a = self.rows\nself.out[0] = len(a)\nself.out[1] = a[0][2]\nself.out[2] = len(a[1])", [4, 3, 1, 0]),
    ("a = self.rows[1:]\nself.out[0] = len(a)\nself.out[1] = a[0][0]\nself.out[2] = a[2][1]", [3, 4, 6, 0]),
    ("a = self.rows[1:][1:3]\nself.out[0] = len(a)\nself.out[1] = a[1][0]", [2, 5, 0, 0]),
    (
        "self.out[0] = len(self.rows[2:2])\nself.out[1] = len(self.rows[:self.n + 3])\nself.out[2] = self.rows[3:][0][1]",
        [0, 3, 6, 0],
    ),
    ("t = 0\nfor row in self.rows[0:2]:\n    for x in row:\n        t += x\nself.out[0] = t", [10, 0, 0, 0]),
    ("a = self.rows if False else self.rows\nself.out[0] = len(a)", [4, 0, 0, 0]),
    ("a = self.rows\nif self.n == 0:\n    a = self.other\nself.out[0] = len(a)\nself.out[1] = a[1][1]", [2, 90, 0, 0]),
    ("a = self.rows\nb = self.other\na, b = b, a\nself.out[0] = len(a)\nself.out[1] = len(b)", [2, 4, 0, 0]),
    (
        "a = self.rows\nt = 0\nfor row in a:\n    a = self.other\n    t += len(row)\nself.out[0] = t\nself.out[1] = len(a)",
        [6, 2, 0, 0],
    ),
    ("a = self.rows\nfor i in range(2):\n    a = a[1:]\nself.out[0] = len(a)\nself.out[1] = a[1][1]", [2, 6, 0, 0]),
    ("a = self.rows\nt = 0\nwhile len(a) > 1:\n    a = a[1:]\n    t += 1\nself.out[0] = t\nself.out[1] = a[0][0]", [3, 5, 0, 0]),
    ("self.out[0] = total(self.rows[0:2])\nself.out[1] = total(self.other)", [10, 240, 0, 0]),
    ("self.out[0] = rest(self.rows)", [11, 0, 0, 0]),
    ("a = tail(self.rows)\nself.out[0] = a[0][0]\nself.out[1] = len(tail(tail(self.rows)))", [4, 2, 0, 0]),
    ("t = 0\na = self.rows[0:1]\nfor c in range(len(a[0])):\n    t += a[0][c]\nself.out[0] = t", [6, 0, 0, 0]),
]
PRELUDE = """
def total(rows):
    t = 0
    for r in range(len(rows)):
        for c in range(len(rows[r])):
            t += rows[r][c]
    return t

def rest(rows):
    rows = rows[1:]
    t = 0
    for row in rows:
        for c in range(len(row)):
            t += row[c]
    return t - 4

def tail(rows):
    return rows[1:]
"""


@pytest.mark.parametrize(("body", "out"), PROGRAMS, ids=[body for body, _ in PROGRAMS])
def test_a_local_holds_rows(body, out):
    assert ran(body, prelude=PRELUDE)["out"] == out


def test_a_slice_of_rows_is_a_view_that_writes():
    after = ran("a = self.rows[1:4]\na[0][0] = 40\na[2][1] += 1")
    assert after["rows"] == [[1, 2, 3], [40], [], [5, 7]]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("a = self.rows[1:3]\na[2][0] = 1", (FaultCode.ROW_INDEX, 2, 2)),
        ("a = self.rows[1:3]\na[0][1] = 1", (FaultCode.INDEX, 1, 1)),
        ("a = self.rows[0:5]\nself.n = len(a)", (FaultCode.SLICE_BOUNDS, 5, 4)),
        ("a = self.rows[3:2]\nself.n = len(a)", (FaultCode.SLICE_BOUNDS, 3, 2)),
        ("a = self.rows[1:]\nb = a[:4]\nself.n = len(b)", (FaultCode.SLICE_BOUNDS, 4, 3)),
        ("a = self.rows[self.n - 1:]\nself.n = len(a)", (FaultCode.SLICE_BOUNDS, -1, 4)),
        ("a = self.rows[0:2]\nfor i in range(2):\n    a = a[1:]\n    self.n += a[0][0]", (FaultCode.ROW_INDEX, 0, 0)),
    ],
)
def test_bounds_of_rows_are_checked(body, fault):
    code, _, value, bound = ran(body).fault
    assert (code, value, bound) == fault


def test_rows_of_an_input_are_not_written_through_a_local():
    from pypoplar.errors import CodeletError

    body = "a = self.rows\nif self.n > 0:\n    a = self.other\na[0][0] = 1"
    with pytest.raises(CodeletError, match=r"a\[0\] is an Input, which a vertex only reads"):
        codelet_of(vertex(body, fields=FIELDS))


def test_touched_elements_are_those_of_the_field():
    after = ran("a = self.rows[1:]\na[2][1] = self.other[0:1][0][0]", touches=True)
    assert after.touched[0, "rows", 3] == [0, 2]
    assert after.touched[0, "other", 0] == [1]


def test_a_vector_that_a_loop_runs_over_stays_the_one_it_was():
    body = "v = self.rows[0]\nt = 0\nfor x in v:\n    t += x\n    v = self.other[1]\nself.out[0] = t\nself.out[1] = v[0]"
    assert ran(body)["out"] == [6, 80, 0, 0]


def test_a_slice_of_rows_costs_what_a_slice_does():
    rows = {"rows": [array("i32", [1])], "other": [array("i32", [1])], "n": 0, "out": [0] * 4}
    plain = run(vertex("self.n = len(self.rows)", fields=FIELDS), **rows)
    sliced = run(vertex("self.n = len(self.rows[0:1])", fields=FIELDS), **rows)
    assert sliced.slots - plain.slots == 1
