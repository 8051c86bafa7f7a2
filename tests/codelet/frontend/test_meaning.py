"""What device code does, run in both engines: control flow, vectors, helper functions, kinds of vertices, faults."""

import numpy as np
import pytest
from codelet_rig import codelet_of, lines, run, vertex

from pypoplar.errors import CodeletError


def line_of(cls, text):
    """The line of the user's code that begins with a text."""
    listing = codelet_of(cls).source.functions[0].listing
    for number, line in enumerate(listing.text.splitlines()):
        if line.strip().startswith(text):
            return listing.first_line + number
    raise ValueError(text)


def out(body, count=1, prelude="", **values):
    """Run a body that writes ``self.out`` (a vector of INT); `values` are plain fields of type INT."""
    fields = "out: Output[Vector[INT]]\n" + "\n".join(
        f"{k}: {'FLOAT' if isinstance(v, float) else 'INT'}" for k, v in values.items()
    )
    ran = run(vertex(body, fields=fields, prelude=prelude), out=[-99] * count, **values)
    assert ran.fault is None
    return ran["out"]


# Loops


@pytest.mark.parametrize(
    "bounds", ["5", "0", "-3", "2, 6", "6, 2", "0, 10, 3", "10, 0, -3", "0, 10, -1", "3, 3", "-2, 3", "1, 2, 100", "5, -1, -5"]
)
@pytest.mark.parametrize("constant", [False, True])
def test_for_over_range_is_pythons(bounds, constant):
    arguments = [int(one) for one in bounds.split(",")]
    names = ["start", "stop", "step"][: len(arguments)] if len(arguments) > 1 else ["stop"]
    given = dict(zip(names, arguments, strict=True))
    shown = bounds if constant else ", ".join(f"self.{one}" for one in names)
    body = f"k = 0\ni = 77\nfor i in range({shown}):\n    self.out[k] = i\n    k += 1\nself.out[8] = k\nself.out[9] = i"
    expected = list(range(*arguments))
    last = expected[-1] if expected else 77
    assert out(body, 10, **given) == [*expected, *[-99] * (8 - len(expected)), len(expected), last]


def test_the_bounds_of_a_for_are_taken_once_and_its_variable_may_be_assigned():
    body = "i = 0\nn = 3\nk = 0\nfor i in range(n):\n    n = 100\n    i *= 10\n    self.out[k] = i\n    k += 1\nself.out[3] = i"
    assert out(body, 4) == [0, 10, 20, 20]


def test_a_for_variable_of_another_type_counts_apart():
    body = "i = 0.5\nfor i in range(3):\n    self.out[int(i)] = int(i * 2)\n    i = i + 0.5\nself.out[3] = int(i * 2)"
    assert out(body, 4) == [0, 2, 4, 5]


def test_unsigned_and_64_bit_ranges():
    body = "for i in range(self.u, self.u + 2):\n    self.a += i\nfor j in range(self.l, self.l + 4, 2):\n    self.b += j"
    cls = vertex(body, fields="u: UNSIGNED_INT\nl: LONGLONG\na: UNSIGNED_INT\nb: LONGLONG")
    ran = run(cls, u=2**32 - 3, l=2**40, a=0, b=0)
    assert ran["a"] == [(2**32 - 3 + 2**32 - 2) % 2**32]
    assert ran["b"] == [2**40 + 2**40 + 2]


def test_break_and_continue_in_nested_loops():
    body = """
    k = 0
    for i in range(5):
        if i == 1:
            continue
        for j in range(5):
            if j == i:
                break
            if j == 1:
                continue
            k += 10
        k += 1
        if i == 3:
            break
    self.out[0] = k
    """
    assert out(body) == [33]


def test_while_with_a_condition_that_calls_a_helper():
    helper = "def more(n):\n    for i in range(n):\n        if i * i > 20:\n            return False\n    return True\n"
    assert out("n = 0\nwhile more(n):\n    n += 1\nself.out[0] = n", prelude=helper) == [6]


# Vectors


def test_iteration_reads_each_element_when_its_turn_comes():
    cls = vertex("for v in self.x:\n    self.x[len(self.x) - 1] += v", fields="x: InOut[Vector[INT]]")
    assert run(cls, x=[1, 2, 3])["x"] == [1, 2, 12]


def test_slices_are_views_and_slices_of_slices_too():
    body = "a = self.x[1:]\nb = a[1:3]\nb[0] = 50\na[0] = len(b)\nself.x[0] = len(a[:2][1:]) + len(self.x[2:2])"
    assert run(vertex(body, fields="x: InOut[Vector[INT]]"), x=[1, 2, 3, 4, 5])["x"] == [1, 2, 50, 4, 5]


def test_a_local_vector_can_be_bound_anew():
    body = """
    a = self.x
    b = self.y
    for i in range(3):
        b[i] = a[i] + 1
        a, b = b, a
    self.x[0] = len(b[1:]) if i == 2 else 0
    v = self.y
    v = v[1:]
    v = v[1:]
    v[0] = 99
    """
    cls = vertex(body, fields="x: InOut[Vector[INT]]\ny: InOut[Vector[INT]]")
    ran = run(cls, x=[1, 2, 3], y=[10, 20, 30])
    assert (ran["x"], ran["y"]) == ([2, 21, 3], [2, 20, 99])


def test_rows_are_jagged_and_iterate():
    body = """
    for r in range(len(self.rows)):
        for c in range(len(self.rows[r])):
            self.rows[r][c] += 10 * r + c
    for row in self.rows:
        for v in row:
            self.total += v
        if len(row) > 0:
            row[0] = -1
    """
    ran = run(vertex(body, fields="rows: InOut[VectorList[INT]]\ntotal: INT"), rows=[[1], [], [2, 3, 4]], total=0)
    assert ran["rows"] == [[-1], [], [-1, 24, 26]]
    assert ran["total"] == [1 + 22 + 24 + 26]


def test_a_local_may_be_called_like_a_field():
    body = "x = self.x[1:]\nfactor = self.factor * 2\nfor row in self.row:\n    row[0] = x[0] * factor"
    cls = vertex(body, fields="x: Input[Vector[INT]]\nfactor: INT\nrow: InOut[VectorList[INT]]")
    assert run(cls, x=[1, 2], factor=3, row=[[0, 5], [0]])["row"] == [[12, 5], [12]]


def test_fields_named_by_keywords_take_an_underscore_in_the_class_only():
    cls = vertex("self.in_[0] = self.lambda_ * 2\nself.not_a_ = 1", fields="in_: Output[Vector[INT]]\nlambda_: INT\nnot_a_: INT")
    assert [one.name for one in codelet_of(cls).fields] == ["in", "lambda", "not_a_"]
    assert run(cls, **{"in": [0], "lambda": 4, "not_a_": 0})["in"] == [8]


def test_an_output_reads_back_what_the_vertex_wrote():
    assert run(vertex("self.o = 2\nself.o = self.o * self.o + 1", fields="o: Output[INT]"), o=0)["o"] == [5]


# Order of evaluation

ORDER = """
def note(log, value):
    log[0] = log[0] * 10 + value
    return value
"""


@pytest.mark.parametrize(
    ("statement", "order"),
    [
        ("a = note(self.log, 1) + note(self.log, 2) * note(self.log, 3)", 123),
        ("self.y[note(self.log, 2) - 2] = note(self.log, 1)", 12),
        ("self.y[note(self.log, 1) - 1] += note(self.log, 2)", 12),
        ("a = note(self.log, 1) < note(self.log, 2) < note(self.log, 3)", 123),
        ("a = note(self.log, 2) < note(self.log, 1) < note(self.log, 3)", 21),
        ("a = note(self.log, 2) > note(self.log, 1)", 21),
        ("a = note(self.log, 1) > 3 and note(self.log, 2) > 0", 1),
        ("a = note(self.log, 1) > 0 or note(self.log, 2) > 0", 1),
        ("a = note(self.log, 1) if note(self.log, 2) > 5 else note(self.log, 3)", 23),
        ("a, b = note(self.log, 1), note(self.log, 2)", 12),
        ("a = b = note(self.log, 1)", 1),
        ("self.y[note(self.log, 2) - 2] = self.y[note(self.log, 3) - 3] = note(self.log, 1)", 123),
        ("a = min(note(self.log, 3), note(self.log, 1), note(self.log, 2))", 312),
        ("for i in range(note(self.log, 1), note(self.log, 3), note(self.log, 2)):\n    pass", 132),
        ("a = 0 < note(self.log, 1) < note(self.log, 2) < note(self.log, 2) < note(self.log, 4)", 122),
    ],
)
def test_operands_are_evaluated_in_pythons_order(statement, order):
    cls = vertex(statement, fields="log: InOut[Vector[INT]]\ny: InOut[Vector[INT]]", prelude=ORDER)
    assert run(cls, log=[0], y=[0] * 5)["log"] == [order]


# Helper functions

HELPERS = """
BIAS = 3

def add_bias(x, bias=BIAS, *, times=1):
    return (x + bias) * times

def first_negative(values):
    for i in range(len(values)):
        for j in range(2):
            if values[i] < 0:
                return i
    return len(values)

def zero(values, begin=0):
    for i in range(begin, len(values)):
        values[i] = 0

def tail(values):
    return values[1:]

def minmax(values):
    low = values[0]
    high = values[0]
    for v in values:
        low = min(low, v)
        high = max(high, v)
    return low, high

def nothing(n):
    if n > 0:
        return
    n += 1

def changed(n):
    n += 1
    return n

def of_vertex(vertex, k):
    return vertex.x[k] + vertex.EXTRA

def second(values):
    values = values[1:]
    return values[0]

def shout(log):
    log[0] = 1000
    return None

def early(n):
    while True:
        n -= 1
        if n < 5:
            return n
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.out[0] = add_bias(1)", 4),
        ("self.out[0] = add_bias(1, 2)", 3),
        ("self.out[0] = add_bias(bias=5, x=1, times=2)", 12),
        ("self.out[0] = first_negative(self.x)", 2),
        ("self.out[0] = first_negative(self.x[3:])", 1),
        ("zero(self.x, begin=1)\nself.out[0] = self.x[0] + self.x[1] + self.x[3]", 4),
        ("self.out[0] = tail(tail(self.x))[0]", -3),
        ("low, high = minmax(self.x)\nself.out[0] = low * 100 + high", -293),
        ("nothing(1)\nnothing(0)\nself.out[0] = 1", 1),
        ("n = 4\nself.out[0] = changed(n) * 10 + n", 54),
        ("self.out[0] = changed(changed(changed(1)))", 4),
        ("self.out[0] = of_vertex(self, 1)", 106),
        ("self.out[0] = self.method(2) + self.fixed(3)", -3 + 100 + 9),
        ("self.out[0] = early(100) + early(3)", 6),
        ("self.out[0] = second(self.x) * 10 + self.x[0]", 64),
        ("shout(self.out)", 1000),
        ("n = add_bias\nself.out[0] = 1", None),
    ],
)
def test_helper_functions(body, expected):
    fields = """
    x: InOut[Vector[INT]]
    out: Output[Vector[INT]]
    EXTRA = 100

    def method(self, k):
        return of_vertex(self, k)

    @staticmethod
    def fixed(n):
        return n * n
    """
    cls = vertex(body, fields=fields, prelude=HELPERS)
    if expected is None:
        with pytest.raises(CodeletError, match="add_bias is a function; call it"):
            codelet_of(cls)
    else:
        assert run(cls, x=[4, 6, -3, 7], out=[0])["out"] == [expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("YES and self.k > 2", True),
        ("NO and self.k // 0 > 2", False),
        ("NO or self.k > 2", True),
        ("YES or self.k // 0 > 2", True),
        ("self.k > 2 and YES", True),
        ("self.k > 2 and NO", False),
        ("self.k > 9 or NO", False),
        ("not YES", False),
        ("(1 and self.k) == 3", True),
        ("(0 or self.k) == 3", True),
        ("(self.k and 0) == 0", True),
        ("1 < 2 < self.k", True),
        ("3 < 2 < self.k // 0", False),
        ("~5 == -6", True),
        ("math.isnan(math.nan)", True),
        ("self.k == 3 == 3", True),
    ],
)
def test_constants_in_conditions_are_settled_beforehand(expression, expected):
    prelude = "YES = True\nNO = False\n"
    for body in (f"return {expression}", f"if {expression}:\n    return True\nreturn False"):
        assert run(vertex(body, fields="k: INT", prelude=prelude), k=3).result == expected


def test_each_call_of_a_helper_has_the_types_of_its_arguments():
    prelude = "def twice(x):\n    y = x\n    y += x\n    return y\n"
    cls = vertex(
        "self.h = twice(self.h)\nself.i = twice(self.i)\nself.f = twice(self.f)",
        fields="h: HALF\ni: INT\nf: FLOAT",
        prelude=prelude,
    )
    ran = run(cls, h=0.1, i=2**30, f=0.1)
    assert ran.fields["h"][0] == np.float16(0.1) * 2
    assert ran["i"] == [-(2**31)]
    assert ran.fields["f"][0] == np.float32(0.1) * 2
    assert codelet_of(cls).typed.helpers == ("twice",)


def test_an_argument_that_is_used_twice_is_evaluated_once():
    prelude = "def twice(x):\n    y = x\n    return x + y\n"
    assert sum("mul_i32" in one for one in lines(vertex("self.i = twice(self.i * 3)", fields="i: INT", prelude=prelude))) == 1
    assert run(vertex("self.i = twice(self.i * 3)", fields="i: INT", prelude=prelude), i=2)["i"] == [12]


# Definite assignment


@pytest.mark.parametrize(
    "body",
    [
        "if self.k > 0:\n    a = 1\nelse:\n    a = 2\nself.out[0] = a",
        "for i in range(3):\n    a = i\nself.out[0] = a + i",
        "for i in range(2, 5):\n    if i == self.k:\n        a = 1\n        continue\n    a = 3\nself.out[0] = a",
        "while True:\n    a = self.k\n    if a > 0:\n        break\nself.out[0] = a",
        "while True:\n    if self.k > 0:\n        a = 5\n        break\nself.out[0] = a",
        "if self.k < 0:\n    return\nelse:\n    a = 4\nself.out[0] = a",
        "for i in range(self.k):\n    a = 1\n    self.out[0] = a",
        "for i in range(self.k):\n    if i < 0:\n        continue\n    a = 1\n    self.out[0] = a",
        "if ALWAYS:\n    a = 6\nself.out[0] = a",
    ],
)
def test_a_local_that_every_path_assigns_may_be_read(body):
    assert out(body, prelude="ALWAYS = True\n", k=3) != [-99]


@pytest.mark.parametrize(
    "body",
    [
        "if self.k > 0:\n    a = 1\nself.out[0] = a",
        "for i in range(self.k):\n    a = 1\nself.out[0] = a",
        "for i in range(3):\n    if i > self.k:\n        break\n    a = 1\nself.out[0] = a",
        "for i in range(3):\n    if i > 0:\n        self.out[0] = a\n    a = i",
        "while self.k > 0:\n    a = 1\nself.out[0] = a",
        "if self.k > 0:\n    pass\nelif self.k < 0:\n    a = 1\nelse:\n    a = 2\nself.out[0] = a",
        "for i in range(0):\n    a = 1\nself.out[0] = a",
    ],
)
def test_a_local_that_some_path_leaves_out_may_not_be_read(body):
    with pytest.raises(CodeletError, match="'a' may be unassigned here"):
        out(body, k=3)


# Results, kinds


def test_compute_may_return_a_bool():
    cls = vertex("for v in self.x:\n    if v < 0:\n        return False\nreturn True", fields="x: Input[Vector[INT]]")
    assert codelet_of(cls).typed.returns
    assert (run(cls, x=[1, 2]).result, run(cls, x=[1, -2]).result) == (True, False)


def test_compute_without_a_value_counts_as_true():
    cls = vertex("if self.k > 0:\n    return\nself.k = 5", fields="k: INT")
    assert not codelet_of(cls).typed.returns
    assert (run(cls, k=1).result, run(cls, k=1)["k"], run(cls, k=0)["k"]) == (True, [1], [5])


def test_a_multivertex_runs_its_workers_in_order():
    body = (
        "for i in range(worker, len(self.x), 6):\n    self.x[i] = self.last * 10 + worker\nself.last = worker\nreturn worker != 3"
    )
    cls = vertex(body, fields="x: InOut[Vector[INT]]\nlast: INT", base="MultiVertex", head="self, worker")
    ran = run(cls, x=[0] * 8, last=9)
    assert (ran["x"], ran["last"], ran.result) == ([90, 1, 12, 23, 34, 45, 90, 1], [5], False)


def test_a_supervisor_vertex_is_marked():
    assert codelet_of(vertex("self.k = 1", fields="k: INT", base="SupervisorVertex")).typed.kind == "supervisor"


# Faults

FAULTS = [  # body, line's beginning, code, value, bound
    ("self.x[0] = self.x[self.k]", "self.x[0]", 1, 7, 3),
    ("self.x[self.k - 8] = 1", "self.x", 1, -1, 3),
    ("a = self.x[1:3]\na[2] += 1", "a[2]", 1, 2, 2),
    ("a = self.x[self.k - 4 : 2]", "a =", 12, 3, 2),
    ("a = self.x[: self.k]", "a =", 12, 7, 3),
    ("a = self.rows[self.k - 5]", "a =", 13, 2, 2),
    ("a = self.rows[0][1]", "a =", 1, 1, 1),
    ("self.k = 5 // (self.k - 7)", "self.k", 2, 0, 0),
    ("self.k = 5 % (self.k - 7)", "self.k", 2, 0, 0),
    ("self.k %= self.k - 7", "self.k", 2, 0, 0),
    ("self.k = 1 << (self.k * 5)", "self.k", 3, 35, 32),
    ("self.k >>= -1", "self.k", 3, -1, 32),
    ("self.k = 2 ** (4 - self.k)", "self.k", 4, -3, 0),
    ("for i in range(0, 5, self.k - 7):\n    pass", "for", 5, 0, 0),
    ("ipu.check(self.k < 7, 'k is small')", "ipu", 6, 0, 0),
    ("assert self.k < 0", "assert", 6, 0, 0),
    ("n = 0\nwhile n >= 0:\n    n = 0", "while", 7, 1002, 1000),
]


@pytest.mark.parametrize(("body", "line", "code", "value", "bound"), FAULTS)
def test_faults_name_line_value_and_bound(body, line, code, value, bound):
    cls = vertex(body, fields="x: InOut[Vector[INT]]\nrows: InOut[VectorList[INT]]\nk: INT")
    ran = run(cls, x=[1, 2, 3], rows=[[1], [2, 3]], k=7, cycle_limit=1000)
    assert ran.fault == (code, line_of(cls, line), value, bound)


def test_what_was_written_before_a_fault_stays():
    ran = run(vertex("self.x[0] = 5\nself.x[9] = 6\nself.x[1] = 7", fields="x: InOut[Vector[INT]]"), x=[1, 2])
    assert (ran["x"], ran.fault[0]) == ([5, 2], 1)


def test_a_checks_text_is_its_message_or_its_condition():
    cls = vertex("ipu.check(self.k < 7, 'small')\nassert self.k > 0, 'large'\nassert self.k != 3", fields="k: INT")
    assert codelet_of(cls).typed.texts == ("small", "large", "self.k != 3")


@pytest.mark.parametrize(
    ("body", "mask", "code"),
    [
        ("self.f = self.big * self.big", 2, 9),
        ("self.f = self.big * self.big", 5, None),
        ("self.f = self.f / self.zero", 4, 10),
        ("self.f = self.zero / self.zero", 1, 8),
        ("self.f = math.sqrt(self.f - 2.0)", 7, 8),
        ("self.h = HALF(self.big)", 7, 9),
        ("self.f = math.log(self.zero)", 7, 10),
    ],
)
def test_floating_point_exceptions_are_faults_where_asked_for(body, mask, code):
    cls = vertex(body, fields="f: FLOAT\nzero: FLOAT\nbig: FLOAT\nh: HALF")
    ran = run(cls, f=1, zero=0, big=1e30, h=0, floating_point_mask=mask)
    assert (ran.fault and ran.fault[0]) == code


def test_reading_what_nothing_has_written_is_a_fault_where_asked_for():
    cls = vertex("self.x[0] = 2.0\na = self.x[0]\na = self.x[1]", fields="x: InOut[Vector[FLOAT]]")
    nothing = np.full(2, -1, np.int32).view(np.float32)
    assert run(cls, x=nothing).fault is None
    assert run(cls, x=nothing, uninitialised_is_fault=True).fault == (11, line_of(cls, "a = self.x[1]"), 1, 0)


def test_touched_elements_are_noted():
    body = "self.y[1] = self.x[0]\nself.y[2] += 1\nself.rows[1][0] = self.k"
    cls = vertex(body, fields="x: Input[Vector[INT]]\ny: InOut[Vector[INT]]\nrows: InOut[VectorList[INT]]\nk: INT")
    ran = run(cls, x=[1, 2], y=[0, 0, 0], rows=[[1], [2]], k=5, touches=True)
    assert ran.touched == {(0, "x"): [1, 0], (0, "y"): [0, 2, 3], (0, "rows", 0): [0], (0, "rows", 1): [2], (0, "k"): [1]}


# Intrinsics


def test_the_cycle_counter_counts_slots_from_the_clock():
    body = "self.a = ipu.cycle_count()\nfor i in range(10):\n    self.n += 1\nself.b = ipu.cycle_count()"
    ran = run(vertex(body, fields="a: UNSIGNED_INT\nb: UNSIGNED_INT\nn: INT"), a=0, b=0, n=0, clock=2**32 + 100)
    (a,), (b,) = ran["a"], ran["b"]
    assert (a - 100) % 6 == 0
    assert b - a == 6 * (1 + 2 + 10 * 3 + 1)  # a store, a loop's start, its rounds, a reading


def test_random_numbers_are_the_workers_and_go_on():
    body = "for i in range(len(self.u)):\n    self.u[i] = ipu.random_uint()\n    self.f[i] = ipu.random_float()"
    cls = vertex(body, fields="u: Output[Vector[UNSIGNED_INT]]\nf: Output[Vector[FLOAT]]")
    one, other = (run(cls, u=[0] * 50, f=[0] * 50, random=state) for state in ([2**63 + 1, 2**62 + 3], [2**63 + 1, 2**62]))
    assert one["u"][:2] == [0xC0000000, 0xC19360F8]  # by hand: 0xc000000000000004, a float, 0xc19360f82c000302
    assert one["u"] != other["u"]
    assert all(0 <= value < 1 for value in one["f"])


def test_a_random_number_of_64_bits_is_a_whole_draw():
    cls = vertex("self.u = ipu.random_ulonglong()", fields="u: UNSIGNED_LONGLONG")
    assert run(cls, u=0, random=[2**63 + 1, 2**62 + 3])["u"] == [0xC000000000000004]


def test_bit_counts():
    ran = run(
        vertex("self.a = ipu.popcount(self.u)\nself.b = ipu.clz(self.u)", fields="u: UNSIGNED_INT\na: INT\nb: INT"),
        u=0xF0F0,
        a=0,
        b=0,
    )
    assert (ran["a"], ran["b"]) == ([8], [16])


def test_prints_are_texts_with_places_for_values():
    body = "ipu.debug_print('x', self.k, f'{self.f:.2f}|{{}}')\nipu.debug_print(self.k)\nprint('at', self.k)"
    cls = vertex(body, fields="k: INT\nf: FLOAT")
    ran = run(cls, k=3, f=0.5)
    texts = codelet_of(cls).typed.texts
    assert [texts[text].format(*values) for _, text, values in ran.printed] == ["x 3 0.50|{}\n", "3\n", "at 3\n"]


def test_the_cycle_counter_measures_what_stands_between_two_readings():
    body = "self.a = ipu.cycle_count()\nn = self.n * self.n\nself.b = ipu.cycle_count()\nself.n = n * n"
    ran = run(vertex(body, fields="a: UNSIGNED_INT\nb: UNSIGNED_INT\nn: INT"), a=0, b=0, n=3)
    assert ran["b"][0] - ran["a"][0] == 6 * (1 + 2 + 1 + 1)  # a store, two loads, a product, a reading


NAMES = ["rounds", "fault", "check", "operands", "context", "views", "result", "fields", "float", "scalars", "add_i32"]


def test_fields_may_have_any_names():
    fields = "\n".join(f"{name}: Input[Vector[INT]]" for name in NAMES) + "\nout: InOut[Vector[INT]]"
    body = "out = self.out[1:]\nfor i in range(len(out)):\n"
    body += "    out[i] = " + " + ".join(f"self.{name}[i] // 3" for name in NAMES)
    ran = run(vertex(body, fields=fields), out=[0, 0, 0], **{name: [3, 6] for name in NAMES})
    assert ran["out"] == [0, len(NAMES), 2 * len(NAMES)]
