"""What device code cannot do is refused with the user's line, a caret under the culprit, and what to write instead."""

import inspect
import linecache
import sys
from itertools import pairwise

import pytest
from codelet_rig import PRELUDE, codelet_of, module_from, vertex

from pypoplar.codelet.frontend.translate import translate
from pypoplar.codelet.language.diagnostics import STARS
from pypoplar.codelet.language.environment import codelet_source
from pypoplar.errors import CodeletError, PoplarError


def placeholder(text):
    """Where an error in the placeholder of an f-string is seen: before Python 3.12 only its string has a place."""
    return text[2:-1] if sys.version_info >= (3, 12) else text


FIELDS = """
x: Input[Vector[FLOAT]]
y: Output[Vector[FLOAT]]
n: Output[Vector[INT]]
rows: InOut[VectorList[FLOAT]]
h: Vector[HALF]
count: INT
u: UNSIGNED_INT
long: LONGLONG
flag: BOOL
small: CHAR
out: Output[FLOAT]
half: HALF
SIZE = 5
"""

PRELUDE_OF_REFUSED = """
import functools
import random
import typing
import numpy
import numpy as np

BIG = 2 ** 1000
T = typing.TypeVar("T")
NAME = "fast"
TABLE = np.arange(8).reshape(2, 2, 2)
TAPS = (1.0, 2.0)
MATRIX = [[1, 2], [3, 4]]

def sums(row):
    return sum(row)

def plain(x):
    return x

@functools.wraps(plain)
def wrapped(x):
    return x
"""
NO_EFFECT = [  # statement, what was probably meant
    ("++self.count", "++ is two plus signs in Python and changes nothing: write self.count += 1"),
    ("--self.n[0]", "-- is two minus signs in Python and changes nothing: write self.n[0] -= 1"),
    ("self.y[0] == 3.0", "{} has no effect here: nothing uses its value; == compares; did you mean self.y[0] = 3.0?"),
    ("self.x[0] > 3.0", "{} has no effect here: nothing uses its value; did you mean ipu.check(self.x[0] > 3.0)?"),
    ("0 < self.count < 3", "{} has no effect here: nothing uses its value; did you mean ipu.check(0 < self.count < 3)?"),
    ("self.count + 1", "{} has no effect here: nothing uses its value; did you mean self.count += 1?"),
    ("self.count << 2 * SIZE", "{} has no effect here: nothing uses its value; did you mean self.count <<= 2 * SIZE?"),
    ("self.flag and self.count", "{} has no effect here: nothing uses its value; write an if statement"),
    ("1 if self.flag else 2", "{} has no effect here: nothing uses its value; write an if statement"),
    ("7", "{} has no effect here: nothing uses its value; write pass, or ..., where there is nothing to do"),
    *(
        (shown, "{} has no effect here: nothing uses its value; assign it, name = {}, or leave the line out")
        for shown in (
            *("self.x", "self.x[0]", "self.rows[0]", "self.x[1:2]", "SIZE", "-self.count", "(self.count, 1)", "1 + self.count"),
            *("len(self.x)", "math.exp(0.5)", "abs(self.count)", "INT(self.out)", "ipu.popcount(self.count)", "ipu.cycle_count()"),
        )
    ),
]


@pytest.mark.parametrize(("statement", "message"), NO_EFFECT, ids=[statement for statement, _ in NO_EFFECT])
def test_a_statement_without_effect_is_refused_with_what_was_probably_meant(statement, message):
    prelude = "SIZE = 5\n"
    with pytest.raises(CodeletError) as caught:
        codelet_of(vertex(f"if self.flag:\n    {statement}", fields=FIELDS, prelude=prelude))
    assert caught.value.msg == message.format(statement, statement)
    assert caught.value.text.strip() == statement


def test_the_last_expression_of_a_helper_function_was_probably_to_be_returned():
    prelude = """
    def double(x):
        2 * x

    def largest(x):
        max(x, 1)

    def either(x):
        if x > 1:
            x == 2
        return x
    """
    for name, hint in (
        ("double", "did you mean return 2 * x?"),
        ("largest", "did you mean return max(x, 1)?"),
        ("either", "x = 2?"),
    ):
        with pytest.raises(CodeletError) as caught:
            codelet_of(vertex(f"{name}(self.count)", fields=FIELDS, prelude=prelude))
        assert caught.value.msg.endswith(hint)


def test_docstrings_ellipses_helpers_and_random_numbers_may_stand_alone():
    body = """
    '''What it does.'''
    if self.flag:
        ...
    "a comment"
    double(self.count)
    self.method()
    ipu.random_uint()
    ipu.random_float()
    """
    fields = FIELDS + "def method(self):\n    self.count = 1\n    return 2\n"
    codelet_of(vertex(body, fields=fields, prelude="def double(x):\n    return 2 * x\n"))


NAMED = ("x", "y", "n", "rows", "h", "count", "u", "long", "flag", "small", "out", "half")
READ_ONLY = "is a constant table, which device code only reads: keep what changes in a plain field"
TWO = "is a table of two dimensions, which is used under its own name"
KEEP = "to keep a value in the vertex, declare it in the class:"
NUMBERS = "and device code has none to compare: use numbers, or members of an IntEnum"
RANDOM = "write ipu.random_float() or ipu.random_uint()"
REFUSED = [  # code, what the caret is under, message
    ("TAPS[0] = 1.0", "TAPS[0]", f"TAPS {READ_ONLY}"),
    ("t = TAPS\nt[0] = 1.0", "t[0]", f"t, a view, {READ_ONLY}"),
    ("t = TAPS if False else TAPS\nTAPS[1:][0] += 1.0", "TAPS[1:][0]", f"TAPS[1:] {READ_ONLY}"),
    ("MATRIX[0][1] = 3", "MATRIX[0][1]", f"MATRIX[0] {READ_ONLY}"),
    ("MATRIX[0, 1] = 3", "MATRIX[0, 1]", f"MATRIX {READ_ONLY}"),
    ("t = MATRIX", "MATRIX", f"MATRIX {TWO}: MATRIX[r][c]"),
    ("t = MATRIX[0:1]", "MATRIX[0:1]", f"MATRIX {TWO}: MATRIX[r][c]"),
    ("self.out = MATRIX[0]", "MATRIX[0]", "expected a number, got a vector, MATRIX[0]; index it"),
    (
        "row = self.x if self.count > 0 else self.rows[0]\nself.out = row[0]",
        "self.x",
        "a conditional expression chooses between numbers, got a vector, self.x; index it, or write if and else",
    ),
    ("self.out = TAPS", "TAPS", "expected a number, got a vector, TAPS; index it"),
    ("self.out = TAPS[-1]", "-1", "index -1: device code has no negative indices; write len(...) - 1"),
    ("self.out = TAPS[0, 1]", "0, 1", "a list field is indexed row by row: self.rows[r][c]"),
    ("a = TAPS(1)", "TAPS", "Test: TAPS is a constant table, not a function"),
    ("a = TAPS.index(1)", "TAPS.index", "Test: device code cannot use TAPS.index: TAPS is a tuple"),
    ("a = TABLE.shape[0]", "TABLE.shape", "device code cannot use TABLE.shape: TABLE is an array of shape [2, 2, 2]"),
    ("a = random.random()", "random.random", f"Test: device code cannot use random.random: {RANDOM}"),
    ("a = random.randint(1, 6)", "random.randint", f"Test: device code cannot use random.randint: {RANDOM}"),
    ("a = np.random.rand()", "np.random.rand", f"Test: device code cannot use numpy.random.rand: {RANDOM}"),
    ("a = sums(self.x)", "sum", "Test: device code cannot use sum: write a loop that adds the elements"),
    ("a = undefined(1)", "undefined", "Test: name 'undefined' is not defined"),
    ("if NAME == 'slow':\n    pass", "NAME == 'slow'", f"NAME is a string, {NUMBERS}"),
    ("if self.count == 'slow':\n    pass", "self.count == 'slow'", f"'slow' is a string, {NUMBERS}"),
    ("if NAME in ('a', 'b'):\n    pass", "NAME in ('a', 'b')", f"NAME is a string, {NUMBERS}"),
    ("self.steps = 0", "self.steps", f"Test has no field 'steps'; {KEEP} steps: INT = 0"),
    ("self.steps = self.u", "self.steps", f"Test has no field 'steps'; {KEEP} steps: UNSIGNED_INT = 0"),
    ("self.steps = self.count > 2", "self.steps", f"Test has no field 'steps'; {KEEP} steps: BOOL = False"),
    ("self.steps += 0.5", "self.steps", f"Test has no field 'steps'; {KEEP} steps: FLOAT = 0.0"),
    ("self.cuont = 1", "self.cuont", f"Test has no field 'cuont'; did you mean 'count'? T{KEEP[1:]} cuont: INT = 0"),
    ("self.cuont += 1", "self.cuont", f"Test has no field 'cuont'; did you mean 'count'? T{KEEP[1:]} cuont: INT = 0"),
    ("self.steps = self.x", "self.steps", f"Test has no field 'steps'; it has {', '.join(NAMED)}"),
    (
        "try:\n    pass\nexcept ValueError:\n    pass",
        "try:",
        "device code cannot use try: it has no exceptions",
    ),
    (
        "raise ValueError('x')",
        "raise ValueError('x')",
        "device code cannot use raise: it has no exceptions; use ipu.check(condition, message)",
    ),
    (
        "with self.x:\n    pass",
        "with self.x:",
        "device code cannot use with: it has no context managers",
    ),
    (
        "global a\na = 1",
        "global a",
        "device code cannot use global: module-level values are constants here; keep state in a plain field of the vertex",
    ),
    (
        "def inner():\n    pass",
        "def inner():",
        "device code cannot use a nested function: define it at module level",
    ),
    (
        "import math",
        "import math",
        "device code cannot use import: import at the top of the module",
    ),
    (
        "from math import sin",
        "from math import sin",
        "device code cannot use import: import at the top of the module",
    ),
    (
        "del a",
        "del a",
        "device code cannot use del: its locals live to its end",
    ),
    (
        "match self.count:\n    case 1:\n        pass",
        "match self.count:",
        "device code cannot use match: write if and elif",
    ),
    (
        "f = lambda a: a",
        "lambda a: a",
        "device code cannot use lambda: define a function with def at module level",
    ),
    (
        "a = [1, 2]",
        "[1, 2]",
        "device code cannot use a list: the device has no lists; write ipu.array(FLOAT, 16) for working memory",
    ),
    (
        "a = [v for v in self.x]",
        "[v for v in self.x]",
        "device code cannot use a list comprehension: the device has no lists; write the loop out with for and range",
    ),
    (
        "a = {1: 2}",
        "{1: 2}",
        "device code cannot use a dict: the device has no dicts; pass a Vector field as a table",
    ),
    (
        "a = {1, 2}",
        "{1, 2}",
        "device code cannot use a set: the device has no sets",
    ),
    (
        "a = sum(v for v in self.x)",
        "sum",
        "Test: device code cannot use sum: write a loop that adds the elements",
    ),
    (
        "a = sum(self.x)",
        "sum",
        "Test: device code cannot use sum: write a loop that adds the elements",
    ),
    (
        "for i, v in enumerate(self.x):\n    pass",
        "enumerate",
        "Test: device code cannot use enumerate: write `for i in range(len(x))` and use x[i]",
    ),
    (
        "for a, b in zip(self.x, self.y):\n    pass",
        "zip",
        "Test: device code cannot use zip: write `for i in range(len(a))` and use a[i], b[i]",
    ),
    (
        "a = (b := 2)",
        "b := 2",
        "device code cannot use an assignment inside an expression: put it on a line of its own",
    ),
    (
        "a = f'{self.count}'",
        "f'{self.count}'",
        "device code cannot use a string: the device has no strings; debug_print and print take them",
    ),
    (
        "a = 'text'",
        "'text'",
        "expected a number, got a string",
    ),
    (
        "a = None",
        "None",
        "device code has no None; use a number or a bool that says so",
    ),
    (
        "a = 1j",
        "1j",
        "device code has no complex; its numbers are FLOAT, HALF, INT and the other types",
    ),
    (
        "a = b'x'",
        "b'x'",
        "device code has no bytes; its numbers are FLOAT, HALF, INT and the other types",
    ),
    (
        "yield 1",
        "yield 1",
        "device code cannot use yield: compute is not a generator",
    ),
    (
        "a = numpy.zeros(3)",
        "numpy.zeros",
        "Test: device code cannot use numpy.zeros: write ipu.array(FLOAT, 16), and a loop that fills it",
    ),
    (
        "a = np.sqrt(self.out)",
        "np.sqrt",
        "Test: device code cannot use numpy.sqrt: write math.sqrt",
    ),
    (
        "a = undefined",
        "undefined",
        "name 'undefined' is not defined",
    ),
    (
        "a = maths.sqrt(2.0)",
        "maths.sqrt",
        "Test: name 'maths' is not defined; did you mean 'math'?",
    ),
    (
        "a = math.sqr(self.out)",
        "math.sqr",
        "Test: module math has no 'sqr'; did you mean 'sqrt'?",
    ),
    (
        "a = math.log(self.out, 2)",
        "math.log(self.out, 2)",
        "math.log with a base: write math.log(x) / math.log(base), math.log2 or math.log10",
    ),
    (
        "a = math.gcd(4, 2)",
        "math.gcd",
        "Test: device code has no math.gcd",
    ),
    (
        "a = ipu.expp(self.out)",
        "ipu.expp",
        "Test: module pypoplar.ipu has no 'expp'; did you mean 'exp'?",
    ),
    (
        "a = self.z[0]",
        "self.z",
        "Test has no field 'z'; it has x, y, n, rows, h, count, u, long, flag, small, out, half",
    ),
    (
        "a = self.rowss[0][0]",
        "self.rowss",
        "Test has no field 'rowss'; did you mean 'rows'?",
    ),
    (
        "self.z = 1.0",
        "self.z",
        "Test has no field 'z'; to keep a value in the vertex, declare it in the class: z: FLOAT = 0.0",
    ),
    (
        "self.x[0] = 1.0",
        "self.x[0]",
        "self.x is an Input, which a vertex only reads: make the field an Output or InOut",
    ),
    (
        "for i in range(3):\n    self.x[i] += 1.0",
        "self.x[i]",
        "self.x is an Input, which a vertex only reads: make the field an Output or InOut",
    ),
    (
        "row = self.x[1:]\nrow[0] = 2.0",
        "row[0]",
        "row, a view, is an Input, which a vertex only reads: make the field an Output or InOut",
    ),
    (
        "self.x = 1.0",
        "self.x",
        "self.x is a vector: assign its elements in a loop",
    ),
    (
        "self.y = self.x",
        "self.y",
        "self.y is a vector: assign its elements in a loop",
    ),
    (
        "self.rows = 1.0",
        "self.rows",
        "self.rows is a list of rows: assign its elements, self.rows[r][c]",
    ),
    (
        "self.rows[0] = 1.0",
        "self.rows[0]",
        "self.rows[0] is a row: assign its elements in a loop",
    ),
    (
        "self.y[0:2] = 1.0",
        "self.y[0:2]",
        "a slice cannot be assigned: write a loop over its elements",
    ),
    (
        "a = self.x[-1]",
        "-1",
        "index -1: device code has no negative indices; write len(...) - 1",
    ),
    (
        "a = self.x[self.out]",
        "self.out",
        "an index is an integer, got FLOAT: write int(...)",
    ),
    (
        "a = self.x[1.0]",
        "1.0",
        "an index is an integer, got 1.0",
    ),
    (
        "a = self.x[self.flag]",
        "self.flag",
        "an index is an integer, got BOOL: write int(...), or a conditional expression",
    ),
    (
        "a = self.x[::2]",
        "2",
        "a slice in device code has step 1: write a loop over range(begin, end, step)",
    ),
    (
        "a = self.x[::-1]",
        "-1",
        "a slice in device code has step 1: write a loop over range(begin, end, step)",
    ),
    ("a = self.rows[0:1:2]", "2", "a slice in device code has step 1: write a loop over range(begin, end, step)"),
    ("a = self.rows[0:1][0:-1]", "-1", "index -1: device code has no negative indices; write len(...) - 1"),
    ("a = self.x\na = self.rows", "self.rows", "'a': it is a vector in one place and rows in another; use two names"),
    ("a = 1\na = self.rows", "self.rows", "'a': it is a vector in one place and a number in another; use two names"),
    ("a = self.rows\na[0] = 1.0", "a[0]", "a[0] is a row: assign its elements in a loop"),
    ("a = self.rows[0:2]\nself.out = a + 1", "a", "expected a number, got a row list, a, a view; index it"),
    (
        "a = self.rows[0, 1]",
        "0, 1",
        "a list field is indexed row by row: self.rows[r][c]",
    ),
    (
        "a = self.x + 1.0",
        "self.x",
        "expected a number, got a vector, self.x; index it",
    ),
    (
        "a = self.out[0]",
        "self.out[0]",
        "self.out is a number, not a vector: it has no elements",
    ),
    (
        "a = self.count.real",
        "self.count.real",
        "self.count has no attributes in device code; only the vertex has fields",
    ),
    (
        "a = self.x.sum()",
        "self.x.sum",
        "Test: self.x has no methods in device code",
    ),
    (
        "a = self.sum(1)",
        "self.sum",
        "Test has no method 'sum'",
    ),
    (
        "self.count = 1.5",
        "1.5",
        "self.count: 1.5 is a float and INT is an integer type: write int(1.5)",
    ),
    (
        "self.count = self.out",
        "self.out",
        "self.count is an INT, the value a FLOAT: write int(...), which truncates",
    ),
    (
        "self.count = self.flag",
        "self.flag",
        "self.count is an INT, the value a BOOL: write int(...)",
    ),
    (
        "self.flag = 1",
        "1",
        "self.flag: expected a BOOL, got the number 1: write True or False",
    ),
    (
        "self.flag = self.count",
        "self.count",
        "self.flag is a BOOL, the value an INT: write bool(...) or a comparison",
    ),
    (
        "self.small = 300",
        "300",
        "self.small: 300 is out of the range of CHAR, -128 to 127",
    ),
    (
        "self.small = -129",
        "-129",
        "self.small: -129 is out of the range of CHAR, -128 to 127",
    ),
    (
        "self.u = -1",
        "-1",
        "self.u: -1 is out of the range of UNSIGNED_INT, 0 to 4294967295",
    ),
    (
        "self.count = 2 ** 31",
        "2 ** 31",
        "self.count: 2147483648 is out of the range of INT, -2147483648 to 2147483647; UNSIGNED_INT(2147483648) would hold it",
    ),
    (
        "a = 3000000000",
        "3000000000",
        "3000000000 is out of the range of INT, -2147483648 to 2147483647; UNSIGNED_INT(3000000000) would hold it",
    ),
    (
        "self.half = 70000.0",
        "70000.0",
        "self.half: 70000.0 is out of the range of HALF, whose largest number is 65504",
    ),
    (
        "self.out = 1e39",
        "1e39",
        "self.out: 1e+39 is out of the range of FLOAT, whose largest number is 3.4028235e+38",
    ),
    (
        "self.half = self.count",
        "self.count",
        "self.half is a HALF, the value an INT: write HALF(...)",
    ),
    (
        "self.out = self.long",
        "self.long",
        "self.out is a FLOAT, the value a LONGLONG: write float(...)",
    ),
    (
        "a = self.half + self.count",
        "self.half + self.count",
        "+: HALF does not mix with INT: write HALF(...) or float(...) around the INT",
    ),
    (
        "a = self.out + self.long",
        "self.out + self.long",
        "+: FLOAT does not mix with LONGLONG: write float(...) around the LONGLONG",
    ),
    (
        "a = self.flag + 1",
        "self.flag + 1",
        "+: a BOOL does not mix with the number 1: write int(...) around the BOOL, or True or False",
    ),
    (
        "a = self.flag + self.flag",
        "self.flag + self.flag",
        "+: arithmetic on BOOL: write int(...) around each",
    ),
    (
        "a = self.flag * self.count",
        "self.flag * self.count",
        "*: a BOOL does not mix with an INT: write int(...) around the BOOL",
    ),
    (
        "a = -self.flag",
        "-self.flag",
        "arithmetic on BOOL: write int(...) around it",
    ),
    (
        "a = ~self.flag",
        "~self.flag",
        "arithmetic on BOOL: write not",
    ),
    (
        "a = ~self.out",
        "~self.out",
        "~ is for integers, got FLOAT",
    ),
    (
        "a = self.out & 1",
        "self.out & 1",
        "&: bit operations are for integers and BOOL, got FLOAT",
    ),
    (
        "a = self.out << 1",
        "self.out << 1",
        "<<: shifts are for integers",
    ),
    (
        "a = self.count << self.long",
        "self.count << self.long",
        "<<: the shift count is wider than the value: write int(...) around the LONGLONG",
    ),
    (
        "a = self.flag < True",
        "self.flag < True",
        "BOOL has no order: write int(...) around each",
    ),
    (
        "a = self.flag == 1",
        "self.flag == 1",
        "comparison: a BOOL does not mix with the number 1: write int(...) around the BOOL, or True or False",
    ),
    (
        "a = self.count in self.n",
        "self.count in self.n",
        "device code has no 'in': compare numbers with == and !=",
    ),
    (
        "a = self.x @ self.y",
        "self.x @ self.y",
        "device code has no @: write the loops out",
    ),
    (
        "a = self.long / self.long",
        "self.long / self.long",
        "/: LONGLONG has no true division: write //, or float(...) around both",
    ),
    (
        "a = 1 / 0",
        "1 / 0",
        "1 / 0: division by zero",
    ),
    (
        "a = 1 << -1",
        "1 << -1",
        "1 << -1: negative shift count",
    ),
    (
        "a = 10 ** 100000",
        "10 ** 100000",
        "this number is too large for any type of the device",
    ),
    (
        "a = (-1) ** 0.5",
        "(-1) ** 0.5",
        "(-1) ** 0.5 is a complex; the device has no such numbers",
    ),
    (
        "a = 0\na = self.u",
        "self.u",
        "'a': it is an INT elsewhere and an UNSIGNED_INT here: write INT(...) here, or UNSIGNED_INT(...) "
        "where it is first assigned",
    ),
    (
        "a = 0\na = self.flag",
        "self.flag",
        "'a': it is an INT elsewhere and a BOOL here: write INT(...) here, or BOOL(...) where it is first assigned",
    ),
    (
        "a = 0\na = self.x",
        "self.x",
        "'a': it is a vector in one place and a number in another; use two names",
    ),
    (
        "a = self.x\na = self.n",
        "self.n",
        "'a': it is a vector of another element type elsewhere; use two names",
    ),
    (
        "if self.flag:\n    a = 1\nself.count = a",
        "a",
        "'a' may be unassigned here: on some path to here it has no value",
    ),
    (
        "self.count = a",
        "a",
        "name 'a' is not defined",
    ),
    (
        "a += 1",
        "a",
        "'a' may be unassigned here: it has no value yet",
    ),
    (
        "for i in range(self.count):\n    a = 1\nself.count = a",
        "a",
        "'a' may be unassigned here: on some path to here it has no value",
    ),
    (
        "for i in range(self.count):\n    pass\nself.count = i",
        "i",
        "'i' may be unassigned here: on some path to here it has no value",
    ),
    (
        "while self.flag:\n    a = 1\nself.count = a",
        "a",
        "'a' may be unassigned here: on some path to here it has no value",
    ),
    (
        "while True:\n    if self.flag:\n        break\n    a = 1\nself.count = a",
        "a",
        "'a' may be unassigned here: on some path to here it has no value",
    ),
    (
        "while self.flag:\n    pass\nelse:\n    pass",
        "pass",
        "a loop's else: set a bool before break and test it after the loop",
    ),
    (
        "for i in range(3):\n    pass\nelse:\n    pass",
        "pass",
        "a loop's else: set a bool before break and test it after the loop",
    ),
    (
        "for i in range(0, 3, 0):\n    pass",
        "range(0, 3, 0)",
        "range: a step of zero would never end",
    ),
    (
        "for i in range(self.out):\n    pass",
        "range(self.out)",
        "range: expected integers, got FLOAT: write int(...)",
    ),
    (
        "for i in range(1.5):\n    pass",
        "range(1.5)",
        "range: expected integers, got FLOAT: write int(...)",
    ),
    (
        "for i in range():\n    pass",
        "range()",
        "range takes 1 to 3 arguments, got 0",
    ),
    (
        "for i in self.count:\n    pass",
        "self.count",
        "for loops run over range(...), vectors and row lists, not a number; write range(self.count)",
    ),
    (
        "for i in 3:\n    pass",
        "3",
        "for loops run over range(...), vectors and row lists, not a number; write range(3)",
    ),
    (
        "for self.count in range(3):\n    pass",
        "self.count",
        "a for loop in device code has one variable, a local",
    ),
    (
        "r = range(3)",
        "range(3)",
        "range stands in a for loop only: for i in range(...)",
    ),
    (
        "a = range",
        "range",
        "range is a function; call it: range(...)",
    ),
    (
        "a = len",
        "len",
        "len is a function; call it: len(...)",
    ),
    (
        "a = len(self.count)",
        "len(self.count)",
        "len is for vectors and row lists, self.count is a number",
    ),
    (
        "a = len(self.x, 1)",
        "len(self.x, 1)",
        "len takes 1 argument, got 2",
    ),
    (
        "a = min(self.x)",
        "min(self.x)",
        "min takes two or more numbers: for the minimum of a vector write a loop",
    ),
    (
        "a = min(1)",
        "min(1)",
        "min takes two or more numbers: for the minimum of a vector write a loop",
    ),
    (
        "a = max(self.flag, self.flag)",
        "max(self.flag, self.flag)",
        "max of BOOLs: write 'and' or 'or'",
    ),
    (
        "a = abs(self.flag)",
        "abs(self.flag)",
        "abs of a BOOL: write int(...) around it",
    ),
    (
        "a = int(math.inf)",
        "int(math.inf)",
        "int(inf) has no value",
    ),
    (
        "a = int(self.count, 2)",
        "int(self.count, 2)",
        "int takes 1 argument, got 2",
    ),
    (
        "a = float(x=1)",
        "x=1",
        "float takes no keyword arguments in device code",
    ),
    (
        "a = FLOAT",
        "FLOAT",
        "FLOAT is a type; write FLOAT(x) to convert x",
    ),
    (
        "a = FLOAT(1, 2)",
        "FLOAT(1, 2)",
        "FLOAT takes 1 argument, got 2",
    ),
    (
        "a = CHAR(300)",
        "CHAR(300)",
        "300 is out of the range of CHAR, -128 to 127",
    ),
    (
        "a = INT(1e10)",
        "INT(1e10)",
        "10000000000 is out of the range of INT, -2147483648 to 2147483647; LONGLONG(10000000000) would hold it",
    ),
    (
        "a = DOUBLE(1.0)",
        "DOUBLE",
        "Test: device code cannot use DOUBLE: the device has no such numbers; use FLOAT, HALF, INT or LONGLONG",
    ),
    (
        "a = print(1)",
        "print(1)",
        "print has no value: write it on a line of its own",
    ),
    (
        "print(self.x)",
        "self.x",
        "only numbers and strings can be printed, self.x is a vector, self.x; index it",
    ),
    (
        "ipu.debug_print(1, sep='')",
        "sep=''",
        "no keywords here in device code: give the text and the values",
    ),
    (
        "print(1, file=self.x)",
        "file=self.x",
        "print has no 'file' in device code, only sep and end; it prints to Engine.setPrintStream's stream",
    ),
    (
        "print(1, **self.x)",
        "**self.x",
        "print has no '**' in device code, only sep and end; it prints to Engine.setPrintStream's stream",
    ),
    (
        "print(1, end=self.count)",
        "self.count",
        "'end' of print is a string constant, got a number",
    ),
    (
        "print(f'{self.count:c}')",
        placeholder("f'{self.count:c}'"),
        "format 'c': a number is no character in device code",
    ),
    (
        "print(f'{self.count!r}')",
        placeholder("f'{self.count!r}'"),
        "only a constant format can stand here: {x:.3f}",
    ),
    (
        "print(f'{self.x}')",
        "self.x",
        "expected a number, got a vector, self.x; index it",
    ),
    (
        "print('%d' % self.count)",
        "'%d'",
        "expected a number, got a string",
    ),
    (
        "breakpoint(1)",
        "breakpoint(1)",
        "breakpoint takes no arguments in device code",
    ),
    (
        "ipu.check(self.flag, 3)",
        "3",
        "the message of a check is a string constant",
    ),
    (
        "ipu.check()",
        "ipu.check()",
        "write ipu.check(condition) or ipu.check(condition, message)",
    ),
    (
        "ipu.debug_print('a', self.rows)",
        "self.rows",
        "only numbers and strings can be printed, self.rows is a row list, self.rows; index it",
    ),
    (
        "ipu.debug_print(f'{self.out!r}')",
        placeholder("f'{self.out!r}'"),
        "only a constant format can stand here: {x:.3f}",
    ),
    (
        "ipu.debug_print(f'{self.out:d}')",
        placeholder("f'{self.out:d}'"),
        "format 'd': Unknown format code 'd' for object of type 'float'",
    ),
    (
        "a = ipu.check(True)",
        "ipu.check(True)",
        "check has no value: write it on a line of its own",
    ),
    (
        "a = ipu.cycle_count(1)",
        "ipu.cycle_count(1)",
        "ipu.cycle_count takes 0 arguments, got 1",
    ),
    (
        "a = ipu.clz(self.out)",
        "ipu.clz(self.out)",
        "ipu.clz is for integers, got FLOAT",
    ),
    (
        "a, b = 1",
        "1",
        "cannot unpack a number: write the values out, a, b = x, y",
    ),
    (
        "a, b = 1, 2, 3",
        "a, b",
        "2 targets for 3 values",
    ),
    (
        "a, b = self.x",
        "self.x",
        "cannot unpack a vector, self.x; index it: write the values out, a, b = x, y",
    ),
    (
        "*a, b = 1, 2",
        "*a",
        "device code cannot use * in a call or tuple: write the values out",
    ),
    (
        "a: CHAR = 1",
        "CHAR",
        "a local is FLOAT, HALF, INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG or BOOL",
    ),
    (
        "a: str = 1",
        "str",
        "a local is FLOAT, HALF, INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG or BOOL",
    ),
    (
        "a: INT = 1.5",
        "1.5",
        "'a': 1.5 is a float and INT is an integer type: write int(1.5)",
    ),
    (
        "a: INT = 1\na: FLOAT = 2.0",
        "a: FLOAT = 2.0",
        "'a' is declared INT elsewhere",
    ),
    (
        "self.count: INT = 1",
        "self.count: INT = 1",
        "only locals can be annotated in compute; fields are annotated in the class",
    ),
    (
        "return 1",
        "1",
        "compute returns nothing or a BOOL: write a comparison, bool(...), True or False",
    ),
    (
        "return self.count",
        "self.count",
        "compute returns nothing or a BOOL: write a comparison, bool(...), True or False",
    ),
    (
        "if self.flag:\n    return True",
        "def compute(self):",
        "compute returns a BOOL on some paths and may end here without one: return one on every path",
    ),
    (
        "if self.flag:\n    return True\nreturn",
        "return",
        "compute returns a BOOL elsewhere: return one on every path",
    ),
    (
        "self = 1",
        "self",
        "'self' cannot be assigned: it is the vertex",
    ),
    (
        "a = self",
        "self",
        "a local holds a number, a vector or rows, not the vertex itself",
    ),
    (
        "a = isinstance(self.count, int)",
        "isinstance",
        "Test: device code cannot use isinstance: types are known when the codelet is added; use a template, Generic[T]",
    ),
    (
        "a = super().compute()",
        "super",
        "Test: device code cannot use super: call the base class's method by name, Base.method(self, ...)",
    ),
    (
        "assert self.count, self.count",
        "self.count",
        "the message of a check is a string constant",
    ),
    (
        "a = math",
        "math",
        "device code cannot use module math",
    ),
    (
        "a = math.pi()",
        "math.pi",
        "Test: math.pi is a number, not a function",
    ),
    (
        "a = (1, 2)\nb = a",
        "(1, 2)",
        "expected a number, got several values",
    ),
    (
        "a = self.out if self.flag else self.long",
        "self.out if self.flag else self.long",
        "FLOAT does not mix with LONGLONG: write float(...) around the LONGLONG",
    ),
    (
        "a = *self.x,",
        "*self.x",
        "device code cannot use * in a call or tuple: write the values out",
    ),
    (
        "nonlocal_ = open('f')",
        "open",
        "Test: device code cannot use open: it has no files",
    ),
    (
        "self.compute()",
        "self.compute()",
        "recursion (compute -> compute): device code has no call stack; write a loop",
    ),
    (
        "a = self.x[0][1]",
        "self.x[0][1]",
        "self.x[0] is a number, not a vector: it has no elements",
    ),
    (
        "self.count += 0.5",
        "self.count += 0.5",
        "self.count is an INT, the value a FLOAT: write int(...), which truncates",
    ),
    (
        "self.count /= 2",
        "self.count /= 2",
        "self.count is an INT, the value a FLOAT: write int(...), which truncates",
    ),
    (
        "self.u -= -1",
        "-1",
        "-1 is out of the range of UNSIGNED_INT, 0 to 4294967295",
    ),
    (
        "a = 1 if self.x else 2",
        "self.x",
        "expected a number, got a vector, self.x; index it",
    ),
    (
        "a = not self.x",
        "self.x",
        "expected a number, got a vector, self.x; index it",
    ),
    (
        "a = self.count and self.flag",
        "self.count and self.flag",
        "a BOOL does not mix with an INT: write int(...) around the BOOL",
    ),
    (
        "a = math.sqrt(self.flag)",
        "math.sqrt(self.flag)",
        "math.sqrt: expected FLOAT or HALF, got BOOL: write float(...)",
    ),
    (
        "a = math.sqrt(-1.0)",
        "math.sqrt(-1.0)",
        "math.sqrt(-1.0): math domain error",
    ),
    (
        "a = math.sqrt(self.long)",
        "math.sqrt(self.long)",
        "math.sqrt: expected FLOAT or HALF, got LONGLONG: write float(...)",
    ),
    (
        "class B:\n    pass",
        "class B:",
        "device code cannot use a nested class: the device has numbers, vectors and rows only",
    ),
    (
        "a = ...",
        "...",
        "device code has no ellipsis; its numbers are FLOAT, HALF, INT and the other types",
    ),
    (
        "for v in self.rows:\n    v = 1.0",
        "1.0",
        "'v': it is a vector in one place and a number in another; use two names",
    ),
    (
        "a = np.float16(1.0)",
        "np.float16",
        "Test: device code cannot use numpy's float16: write HALF(x)",
    ),
    (
        "a = np.dot(self.x, self.y)",
        "np.dot",
        "Test: device code cannot use numpy.dot: use math, pypoplar.ipu and loops",
    ),
    (
        "a = self.x.size()",
        "self.x.size",
        "Test: self.x has no methods in device code; write len(self.x)",
    ),
    (
        "a = self.x.shape",
        "self.x.shape",
        "self.x has no attributes in device code; write len(self.x)",
    ),
    (
        "ipu.debug_print(f'{self.out:1000.2f}')",
        placeholder("f'{self.out:1000.2f}'"),
        "format '1000.2f': widths and precisions have at most two digits",
    ),
    (
        "self.long = BIG * BIG * BIG * BIG * BIG * BIG",
        "BIG * BIG * BIG * BIG * BIG",
        "this number is too large for any type of the device",
    ),
    (
        "a = math.sqrt(*self.x)",
        "*self.x",
        "device code cannot use * and ** in a call: write the arguments out",
    ),
    (
        "a = self.x[0](1)",
        "self.x[0]",
        "Test: self.x[0] is a value, not a function: call functions by their name",
    ),
    (
        "a = max = 1\nb = max(1, 2)",
        "max",
        "Test: max is a value, not a function: call functions by their name",
    ),
    (
        "a = ipu.sqrtt(1.0)",
        "ipu.sqrtt",
        "Test: module pypoplar.ipu has no 'sqrtt'; did you mean 'sqrt'?",
    ),
    (
        "a = math.pi.real",
        "math.pi.real",
        "device code cannot use math.pi.real: math.pi is a float",
    ),
    (
        "a = T(1)",
        "T",
        "Test: device code cannot use type variable T, which has no type here",
    ),
    (
        "a = wrapped(1)",
        "wrapped",
        "Test: device code cannot use the decorated function plain: helper functions stand without decorators",
    ),
    (
        "a = TABLE[0]",
        "TABLE",
        "device code cannot use an array of shape [2, 2, 2]: a table has one or two dimensions; pass it as an Input field",
    ),
    (
        "a = ~1.5",
        "~1.5",
        "~ is for integers",
    ),
    (
        "for i in range(stop=3):\n    pass",
        "stop=3",
        "range takes no keyword arguments",
    ),
    (
        "v = self.x\nfor v in range(3):\n    pass",
        "v",
        "'v': it is a vector in one place and a number in another; use two names",
    ),
    (
        "self.compute = 1.0",
        "self.compute",
        "self.compute is a function; call it: self.compute(...)",
    ),
    (
        "self.SIZE = 1.0",
        "self.SIZE",
        "self.SIZE is not a field; only fields can be assigned",
    ),
    (
        "self.out[0] = 1.0",
        "self.out",
        "self.out is a number: it has no elements",
    ),
    (
        "a = self.out.x",
        "self.out.x",
        "self.out has no attributes in device code; only the vertex has fields",
    ),
]


@pytest.mark.parametrize(("code", "caret", "message"), REFUSED, ids=[code for code, _, _ in REFUSED])
def test_refusal_points_at_the_culprit_and_says_what_to_write(code, caret, message):
    cls = vertex(code, fields=FIELDS, prelude=PRELUDE_OF_REFUSED)
    with pytest.raises(CodeletError) as caught:
        codelet_of(cls)
    error = caught.value
    assert error.msg == message
    end = error.end_offset if error.end_lineno == error.lineno else len(error.text) + 1
    assert error.text[error.offset - 1 : end - 1] == caret
    assert linecache.getline(error.filename, error.lineno).rstrip() == error.text


def refused(body, **more):
    with pytest.raises(CodeletError) as caught:
        codelet_of(vertex(body, **more))
    return caught.value


def test_the_message_shows_file_line_text_and_caret():
    error = refused("self.out = 1.0\nself.out = self.x[-1]", fields="x: Input[Vector[FLOAT]]\nout: Output[FLOAT]")
    assert str(error) == (
        f"{error.filename}:{error.lineno}: index -1: device code has no negative indices; write len(...) - 1\n"
        "            self.out = self.x[-1]\n"
        "                              ^^"
    )
    assert isinstance(error, SyntaxError)
    assert isinstance(error, PoplarError)


def test_a_caret_counts_characters_not_bytes():
    error = refused("größe = 1; größe = self.länge", fields="x: FLOAT")
    assert error.text[error.offset - 1 : error.end_offset - 1] == "self.länge"


def test_a_tab_in_the_line_keeps_the_caret_in_place():
    text = PRELUDE + "class Test(Vertex):\n\tdef compute(self):\n\t\ta = [1]\n"
    with pytest.raises(CodeletError) as caught:
        codelet_of(module_from(text)["Test"])
    assert str(caught.value).splitlines()[1:] == ["    \t\ta = [1]", "    \t\t    ^^^"]


def test_a_refusal_inside_a_helper_points_into_the_helper():
    error = refused("a = helper(1)", prelude="def helper(x):\n    return x.real\n", fields="out: FLOAT")
    assert error.text == "    return x.real"
    assert error.msg == "x has no attributes in device code; only the vertex has fields"


def test_recursion_is_refused_with_the_whole_cycle():
    helpers = """
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)
    """
    error = refused("a = even(self.n)", prelude=helpers, fields="n: INT")
    assert error.msg == "recursion (even -> odd -> even): device code has no call stack; write a loop"
    assert error.text.strip() == "return False if n == 0 else even(n - 1)"


HELPER = "def f(a, b=2, *, c=3):\n    return a + b + c\n"
CALLS = [
    ("f()", "f needs a value for 'a'"),
    ("f(1, 2, 3)", "f takes 2 positional arguments"),
    ("f(1, d=2)", "f has no parameter 'd'"),
    ("f(1, cc=2)", "f has no parameter 'cc'; did you mean 'c'?"),
    ("f(1, a=2)", "f gets 'a' twice"),
    ("f(*self.x)", STARS),
    ("f(1, **{})", STARS),
    ("f((1, 2))", "an argument is a number, a vector or the vertex; unpack several values first"),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_helper_calls_are_checked_like_pythons(call, message):
    assert refused(f"v = {call}", prelude=HELPER, fields="x: Input[Vector[FLOAT]]").msg == message


HELPERS = [
    ("def f(*a):\n    return 1", "f takes * arguments, which device code has not: name its parameters"),
    ("f = lambda a: a", "device code cannot use a lambda: define a function with def"),
    ("import functools\n\n@functools.cache\ndef f(a):\n    return a", "device code cannot use "),
    ("def f(a):\n    if a:\n        return 1", "f may end without a return value: return one on every path"),
    ("def f(a):\n    if a:\n        return 1\n    return 1, 2", "f returns different numbers of values; return as many everywhere"),
    ("def f(a):\n    a = a\n    while True:\n        return None\n    return 1", "f returns different numbers of values"),
    ("f = [1, 2]", "f is a constant table, not a function"),
    ("f = 3", "f is a number, not a function"),
    ("class f:\n    pass", "device code cannot use class f"),
    ("f = abs.__call__", "device code cannot use "),
    ("def f(a):\n    if a:\n        return pair(a)\n    return 1\n\ndef pair(a):\n    return a, a", "return the values one by one"),
]


@pytest.mark.parametrize(("definition", "message"), HELPERS)
def test_functions_that_cannot_be_inlined_are_refused(definition, message):
    assert message in refused("v = f(self.n)", prelude=definition + "\n", fields="n: INT").msg


def test_a_helper_without_a_value_has_none_to_use():
    error = refused("v = f(self.n)", prelude="def f(n):\n    n += 1\n", fields="n: INT")
    assert error.msg == "expected a number, got nothing, for it returns no value"


def test_a_helper_that_assigns_to_its_vertex_is_refused():
    error = refused("v = f(self)", prelude="def f(vertex):\n    vertex = 1\n    return vertex\n", fields="n: INT")
    assert error.msg == "the helper function assigns to this parameter, which is the vertex itself"


def test_a_vector_is_returned_at_the_end_of_a_helper_only():
    helper = "def f(v, n):\n    if n:\n        return v[1:]\n    return v\n"
    error = refused("v = f(self.x, self.n)", prelude=helper, fields="x: Input[Vector[FLOAT]]\nn: INT")
    assert error.msg == "a helper function that returns a vector has one return, at its end"


def test_code_that_no_path_reaches_is_not_looked_at():
    body = """
    if DEBUG:
        raise ValueError([1])
    while False:
        import os
    return
    del nothing
    """
    codelet_of(vertex(body, prelude="DEBUG = False\n", fields="n: INT"))


@pytest.mark.parametrize(
    ("base", "head", "message"),
    [
        ("Vertex", "self, worker", "compute of this kind of vertex is written def compute(self)"),
        ("Vertex", "", "compute of this kind of vertex is written def compute(self)"),
        ("Vertex", "self, *more", "compute of this kind of vertex is written def compute(self)"),
        ("MultiVertex", "self", "compute of this kind of vertex is written def compute(self, worker)"),
    ],
)
def test_compute_has_the_parameters_of_its_kind(base, head, message):
    error = refused("pass", base=base, head=head, fields="n: INT")
    assert error.msg == message
    assert error.text.strip().startswith("def compute")


def test_nesting_beyond_the_translators_depth_is_refused():
    source = codelet_source(vertex("self.n = " + "-" * 500 + "self.n", fields="n: INT"), {})
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 300)
    try:
        with pytest.raises(CodeletError, match="an expression or a block is nested too deeply"):
            translate(source)
    finally:
        sys.setrecursionlimit(before)


def test_a_first_error_is_the_one_that_is_shown():
    assert refused("a = [1]\nb = {}\nc = a", fields="n: INT").text.strip() == "a = [1]"


def test_a_type_that_widens_later_is_not_refused_too_early():
    body = """
    t = 0
    for i in range(self.n):
        if t < self.half:
            t = t + 0.5
        t = t * self.half
    self.out = t
    """
    codelet_of(vertex(body, fields="n: INT\nhalf: HALF\nout: Output[FLOAT]"))


def test_helpers_that_double_their_calls_again_and_again_are_refused():
    helpers = "def f0(x):\n    return x + 1\n" + "".join(f"def f{i + 1}(x):\n    return f{i}(f{i}(x))\n" for i in range(30))
    error = refused("self.n = f30(self.n)", prelude=helpers, fields="n: INT")
    assert error.msg == "helper functions of helper functions: more than 5000 calls when all are written out"


def test_types_settle_through_a_long_chain_of_locals_and_nans():
    names = [f"a{i}" for i in range(60)]
    body = "\n".join([*(f"{one} = 0" for one in names), "for i in range(3):"])
    body += "".join(f"\n    {one} = {other}" for one, other in pairwise(names)) + "\n    a59 = math.inf - math.inf"
    codelet_of(vertex(body + "\nself.f = a0", fields="f: FLOAT"))
    helper = "def f(x):\n    if x > 0.0:\n        return math.inf - math.inf\n    return x\n"
    codelet_of(vertex("self.f = f(self.f)", prelude=helper, fields="f: FLOAT"))
