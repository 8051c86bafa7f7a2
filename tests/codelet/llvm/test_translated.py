"""Codelets as users write them, run natively: they give what NumPy gives, and the fast forms of their loops are found."""

import numpy as np
import pytest
from codelet_rig import priced_codelet
from native_rig import run_native
from written_codelets import floats, ordered_dot

from pypoplar import FLOAT, HALF, INT, InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.eight_lanes_plan import plan_vertices
from pypoplar.codelet.ir.loop_checks import plan_loop
from pypoplar.codelet.ir.span_roots import stored_fields
from pypoplar.codelet.ir.typed import For, Load, Store
from pypoplar.codelet.ir.walk import inner_blocks, walk
from pypoplar.codelet.registry import collect


class DotProduct(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i] * self.b[i]
        self.out = total


class Sum(Vertex):
    in_: Input[Vector[HALF]]
    out: Output[FLOAT]

    def compute(self):
        self.out = 0.0
        for value in self.in_:
            self.out += float(value)


class Stencil(Vertex):
    a: Input[VectorList[FLOAT]]
    out: Output[VectorList[FLOAT]]

    def compute(self):
        for r in range(1, len(self.a) - 1):
            for c in range(1, len(self.a[r]) - 1):
                around = self.a[r - 1][c] + self.a[r + 1][c] + self.a[r][c - 1] + self.a[r][c + 1]
                self.out[r][c] = 0.25 * around


class Flat(Vertex):
    matrix: Input[Vector[FLOAT]]
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        width = len(self.x)
        for r in range(len(self.y)):
            total = self.y[r]
            for c in range(width):
                total += self.matrix[r * width + c] * self.x[c]
            self.y[r] = total


def relu(x):
    return x if x > 0.0 else 0.0


class Relu(MultiVertex):
    x: InOut[Vector[HALF]]
    share: INT

    def compute(self, worker):
        begin = worker * self.share
        for i in range(begin, min(begin + self.share, len(self.x))):
            self.x[i] = relu(self.x[i])


def typed(cls):
    return priced_codelet(collect(cls)[0])


def innermost_loops(codelet):
    return [one for one in walk(codelet.body) if isinstance(one, For) and not any(isinstance(each, For) for each in walk(one.body))]


@pytest.mark.parametrize("cls", [DotProduct, Sum, Stencil, Flat, Relu])
def test_no_index_is_checked_inside_an_innermost_loop(cls):
    codelet = typed(cls)
    for loop in innermost_loops(codelet):
        plan = plan_loop(loop, stored_fields(codelet))
        assert plan is not None
        assert not [one for one in walk(plan.body) if isinstance(one, Load | Store) and one.checked]
    assert all(inner_blocks(one) for one in innermost_loops(codelet))


@pytest.mark.parametrize("cls", [DotProduct, Sum])
def test_sums_run_side_by_side(cls):
    assert plan_vertices(typed(cls), Checks()) is not None


def test_dot_products():
    vertices = [{"a": floats(31), "b": floats(31), "out": 0} for _ in range(11)]
    outcome = run_native(typed(DotProduct), vertices)
    assert [one["out"][0] for one in outcome.fields] == [ordered_dot(one["a"], one["b"]) for one in vertices]


def test_sums_of_halves_in_float():
    vertices = [{"in": floats(31).astype(np.float16), "out": 0} for _ in range(11)]
    outcome = run_native(typed(Sum), vertices)
    ones = np.ones(31, np.float32)
    assert [one["out"][0] for one in outcome.fields] == [ordered_dot(one["in"].astype(np.float32), ones) for one in vertices]


def test_a_stencil():
    a = floats(9, 14)
    outcome = run_native(typed(Stencil), [{"a": list(a), "out": list(np.zeros_like(a))}])
    expected = np.zeros_like(a)
    expected[1:-1, 1:-1] = np.float32(0.25) * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    np.testing.assert_array_equal(np.stack(outcome.fields[0]["out"]), expected)


def test_a_matrix_in_one_vector():
    matrix, x, y = floats(19, 7), floats(7), floats(19)
    outcome = run_native(typed(Flat), [{"matrix": matrix, "x": x, "y": y}])
    expected = y.copy()
    for c in range(7):
        expected += matrix[:, c] * x[c]
    np.testing.assert_array_equal(outcome.fields[0]["y"], expected)
    short = run_native(typed(Flat), [{"matrix": matrix.reshape(-1)[:50], "x": x, "y": y}])
    assert (short.code, short.value, short.bound) == (1, 50, 50)
    assert short.fields[0]["y"].tolist() == [*expected[:7], *y[7:]]


def test_six_workers_share_a_vector():
    x = floats(29).astype(np.float16)
    outcome = run_native(typed(Relu), [{"x": x, "share": 5}])
    np.testing.assert_array_equal(outcome.fields[0]["x"], np.maximum(x, np.float16(0)))
    assert outcome.fault is None
