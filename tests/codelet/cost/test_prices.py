"""Prices of basic blocks: the sums that a hand computes from the table of the machine model."""

import numpy as np
import pytest
from codelet_rig import codelet_of, lines, run, vertex

from pypoplar.codelet.cost.scalar_prices import StatementPrices
from pypoplar.codelet.operations.device_operation import ARCHITECTURES
from pypoplar.codelet.operations.table import OPERATIONS

X = "x: InOut[Vector[FLOAT]]\nk: INT\nout: FLOAT"
SOFTWARE = ["sin", "cos", "tan", "asin", "acos", "atan", "atan2", "power", "pow", "fmod", "mod", "floordiv", "erf", "erfc", "sinh"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_operation_has_a_price_with_its_source_on_every_architecture(architecture):
    for operation in OPERATIONS.values():
        price = operation.price(architecture)
        assert price.slots >= 0, operation.name
        assert price.mark in ("D", "S", "M", "I", "D S"), operation.name


@pytest.mark.parametrize(
    ("operation", "slots"),
    [
        ("add_i32", 1), ("mul_u32", 1), ("less_i32", 1), ("shift_left_i32", 1), ("add_f32", 1), ("mul_f32", 1), ("min_f32", 1),
        ("div_f32", 3), ("sqrt_f32", 5), ("rsqrt_f32", 4), ("exp_f32", 3), ("log_f32", 6), ("tanh_f32", 5), ("sigmoid_f32", 5),
        ("exp_f16", 2), ("log_f16", 2), ("tanh_f16", 1), ("sigmoid_f16", 2), ("floordiv_i32", 270), ("mod_i32", 285),
        ("sin_f32", 2300), ("tan_f32", 5100), ("pow_f32", 312), ("atan2_f32", 136), ("fmod_f32", 66), ("erf_f32", 41),
        ("f32_from_i32", 3), ("i32_from_f32", 3), ("copy_f32", 0),
    ],
)  # fmt: skip
def test_the_table_has_the_machine_models_figures(operation, slots):
    assert {OPERATIONS[operation].price(architecture).slots for architecture in ARCHITECTURES} == {slots}


@pytest.mark.parametrize("name", SOFTWARE)
def test_software_functions_are_calls(name):
    assert OPERATIONS[f"{name}_f32"].price("ipu2").software


ENTRY = StatementPrices().entry_and_exit
PRICED = [  # body, slots for x of 5 elements and k = 3
    ("pass", ENTRY),
    ("self.out = 1.0", ENTRY + 1),
    ("self.out = self.x[0] * self.x[1] + self.out", ENTRY + 3 + 2 + 1),  # three loads, mul and add, a store
    ("for i in range(len(self.x)):\n    self.x[i] += 1.0", ENTRY + 2 + 5 * 3),  # a repeat
    ("for i in range(self.k):\n    self.out += 1.0", ENTRY + 1 + 2 + 3 * 3),
    ("for i in range(self.k):\n    self.k += 1", ENTRY + 1 + 2 + 3 * (3 + 4)),  # the bound may have changed
    ("n = self.k\nfor i in range(n):\n    self.k += 1", ENTRY + 1 + 2 + 3 * 3),
    ("n = self.k + 0\nfor i in range(n):\n    self.k += 1", ENTRY + 2 + 2 + 3 * 3),
    ("for v in self.x:\n    self.out += v", ENTRY + 2 + 5 * 4),
    ("for i in range(5):\n    if self.x[i] > 0.0:\n        self.out += 1.0", ENTRY + 2 + 5 * (3 + (1 + 1 + 1) + 3)),
    ("for i in range(5):\n    self.k = i // 2", ENTRY + 2 + 5 * (3 + 270 + 1)),  # a software function needs a loop
    ("for i in range(5):\n    for j in range(2):\n        self.out += 1.0", ENTRY + 2 + 5 * (3 + 2 + 2 * 3)),
    ("for i in range(5):\n    ipu.check(i < 9)", ENTRY + 2 + 5 * (3 + 1 + 1)),
    ("for i in range(5):\n    ipu.debug_print(i)\n    print(i)\n    self.out = 1.0", ENTRY + 2 + 5),
    ("for i in range(5):\n    if i == 2:\n        break", ENTRY + 2 + 3 * (3 + 1 + 1)),
    ("i = 0\nwhile i < self.k:\n    i += 1", ENTRY + 4 * (1 + 1 + 1) + 3 * 1),  # load, compare, branch; add
    ("while True:\n    self.k -= 1\n    if self.k < 0:\n        break", ENTRY + 4 * (1 + 3 + 1 + 1 + 1)),
    ("if self.k > 0 and self.k < 2:\n    self.k = 0", ENTRY + (1 + 1 + 1) + (1 + 1) + 1),
    ("if self.k > 9 and self.k < 2:\n    self.k = 0", ENTRY + (1 + 1 + 1) + 1),
    ("self.k = 5 if self.out > 0.0 else 6", ENTRY + 1 + 1 + 1 + 1),
    ("self.out = relu(self.x[0])", ENTRY + 1 + 2 + 0 + 1),  # an inlined call is no call
    ("if DEBUG:\n    self.out = math.sin(self.out)", ENTRY),
    ("self.out = math.sin(self.out)", ENTRY + 1 + 2300 + 1),
    ("self.out = float(self.k)", ENTRY + 1 + 3 + 1),
    ("self.k = int(self.out)", ENTRY + 1 + 3 + 1),
    ("v = self.x[1:]\nself.k = len(v)", ENTRY + 1 + 1),
    ("self.k = ipu.clz(self.k)", ENTRY + 3),
    ("self.out = ipu.random_float()", ENTRY + 4),
    ("self.out = self.out ** 2", ENTRY + 3),
    ("self.out = self.out ** 3", ENTRY + 1 + 312 + 1),
    ("return\nself.out = 1.0", ENTRY),
]


@pytest.mark.parametrize(("body", "slots"), PRICED, ids=[one for one, _ in PRICED])
def test_a_run_costs_what_its_blocks_cost(body, slots):
    helpers = "DEBUG = False\ndef relu(x):\n    if x > 0.0:\n        return x\n    return 0.0\n"
    assert run(vertex(body, fields=X, prelude=helpers), x=np.ones(5), k=3, out=0).slots == slots


@pytest.mark.parametrize("element", ["CHAR", "UNSIGNED_CHAR", "SHORT", "UNSIGNED_SHORT", "HALF", "BOOL"])
def test_stores_below_32_bits_read_modify_and_write(element):
    body = "self.x[0] = self.x[1]"
    assert run(vertex(body, fields=f"x: InOut[Vector[{element}]]"), x=[0, 1]).slots == ENTRY + 1 + 5


@pytest.mark.parametrize("element", ["INT", "UNSIGNED_INT", "FLOAT", "LONGLONG", "UNSIGNED_LONGLONG"])
def test_stores_of_32_and_64_bits_cost_one(element):
    assert run(vertex("self.x[0] = self.x[1]", fields=f"x: InOut[Vector[{element}]]"), x=[0, 1]).slots == ENTRY + 1 + 1


def test_a_row_pointer_costs_two_and_its_length_nothing():
    fields = "rows: InOut[VectorList[FLOAT]]\nn: INT"
    assert run(vertex("self.n = len(self.rows[1])", fields=fields), rows=[[1], [2, 3]], n=0).slots == ENTRY + 2 + 1
    assert run(vertex("row = self.rows[1]\nrow[0] = row[1]", fields=fields), rows=[[1], [2, 3]], n=0).slots == ENTRY + 2 + 2


def test_the_examples_are_priced_by_their_code():
    body = "total = 0.0\nfor i in range(len(self.a)):\n    total += self.a[i] * self.b[i]\nself.out = total"
    cls = vertex(body, fields="a: Input[Vector[FLOAT]]\nb: Input[Vector[FLOAT]]\nout: Output[FLOAT]")
    assert run(cls, a=np.ones(143), b=np.ones(143), out=0).slots == ENTRY + 2 + 143 * 4 + 1
    assert lines(cls) == [
        "price 14",
        "total:f32 = copy_f32 0.0:f32",
        "_1:i32 = length a",
        "for i 0:i32 _1 1:i32",
        "  price 4",
        "  _2:f32 = load a i",
        "  _3:f32 = load b i",
        "  _4:f32 = mul_f32 _2, _3",
        "  total:f32 = add_f32 total, _4",
        "price 1",
        "store out 0:i32 total",
    ]


def test_a_multivertex_pays_entry_for_each_worker():
    cls = vertex("self.x[worker] = 1.0", fields="x: Output[Vector[FLOAT]]", base="MultiVertex", head="self, worker")
    assert run(cls, x=np.zeros(6)).slots == ENTRY + 1


def test_every_straight_run_begins_with_its_price():
    body = """
    a = 0
    for i in range(self.k):
        a += i
        if a > 3:
            a -= 2
        elif a > 2:
            continue
        else:
            while a > 0:
                a -= 1
    self.k = a
    """
    for text in lines(codelet_of(vertex(body, fields=X))):
        assert "price 0" not in text
