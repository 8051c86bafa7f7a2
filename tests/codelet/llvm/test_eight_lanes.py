"""Vertices that run side by side give what they give one by one: same bits, same slots, same faults."""

import numpy as np
import pytest
from native_rig import Memory, run_native
from written_codelets import DOT, K, N, X, Y, Z, codelet, f32, floats, i32, ordered_dot

from pypoplar.codelet.backend import native_codelet as native
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.eight_lanes_plan import plan_vertices
from pypoplar.codelet.ir.typed import Apply, For, IfElse, Length, Literal, Load, Local, Price, Return, Row, Span, SpanList, Store
from pypoplar.codelet.llvm import halves

A, B, OUT = Span("a", "f32"), Span("b", "f32"), Span("out", "f32")
ODD, FEW = Local("odd", "bool"), Local("few", "bool")

REDUCE = codelet(
    ["in input vector f32", "out output scalar f32"],
    Price(3),
    Store(OUT, i32(0), f32(0.0), 0, checked=False),
    Length(N, Span("in", "f32"), 0),
    For(
        K, i32(0), N, i32(1),
        (
            Price(4),
            Load(X, Span("in", "f32"), K, 1),
            Load(Y, OUT, i32(0), 1, checked=False),
            Apply(Y, "add_f32", (Y, X), 1),
            Store(OUT, i32(0), Y, 1, checked=False),
        ),
        1,
    ),
)  # fmt: skip

# The library's dot product: even and odd places apart, halves into floats, an ending with a branch.
EVEN, UNEVEN, LAST, STOP = Local("even", "f32"), Local("uneven", "f32"), Local("last", "i32"), Local("stop", "i32")
HA, HB, HX, HY = Span("a", "f16"), Span("b", "f16"), Local("hx", "f16"), Local("hy", "f16")


def product(total, index):
    return (
        Load(HX, HA, index, 2),
        Apply(X, "f32_from_f16", (HX,), 2),
        Load(HY, HB, index, 3),
        Apply(Y, "f32_from_f16", (HY,), 3),
        Apply(Z, "mul_f32", (X, Y), 2),
        Apply(total, "add_f32", (total, Z), 2),
    )


PAIRS = codelet(
    ["a input vector f16", "b input vector f16", "out output scalar f16"],
    Price(5),
    Apply(EVEN, "copy_f32", (f32(0.0),), 0),
    Apply(UNEVEN, "copy_f32", (f32(0.0),), 0),
    Length(N, HA, 0),
    Apply(STOP, "sub_i32", (N, i32(1)), 0),
    For(
        K, i32(0), STOP, i32(2),
        (*product(EVEN, K), Apply(LAST, "add_i32", (K, i32(1)), 2), *product(UNEVEN, LAST), Price(7)),
        1,
    ),
    Apply(LAST, "and_i32", (N, i32(1)), 0),
    Apply(ODD, "bool_from_i32", (LAST,), 0),
    Apply(LAST, "sub_i32", (N, i32(1)), 0),
    IfElse(ODD, (Price(9), *product(EVEN, LAST)), (), 4),
    Apply(EVEN, "add_f32", (EVEN, UNEVEN), 5),
    Apply(HX, "f16_from_f32", (EVEN,), 5),
    Store(Span("out", "f16"), i32(0), HX, 5, checked=False),
)  # fmt: skip


def half_values(count):
    return floats(count).astype(np.float16)


def pairs(a, b):
    even = uneven = np.float32(0)
    a, b = a.astype(np.float32), b.astype(np.float32)
    for i in range(0, len(a) - 1, 2):
        even += a[i] * b[i]
        uneven += a[i + 1] * b[i + 1]
    if len(a) % 2:
        even += a[-1] * b[-1]
    return np.float16(even + uneven)


def one_by_one(made, vertices, **options):
    return [run_native(made, [one], **options) for one in vertices]


def assert_same_as_one_by_one(made, vertices, **options):
    together = run_native(made, vertices, **options)
    alone = one_by_one(made, vertices, **options)
    for i, (one, fields) in enumerate(zip(alone, together.fields, strict=True)):
        for name, array in fields.items():
            expected = one.fields[0][name]
            for got, wanted in zip(array, expected, strict=True) if isinstance(array, list) else [(array, expected)]:
                np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8), err_msg=f"{name} of vertex {i}")
    assert together.slots == [one.slots[0] for one in alone]
    assert together.results == [one.results[0] for one in alone]
    faults = [(one.code, i, one.where, one.value, one.bound) for i, one in enumerate(alone) if one.code]
    assert together.fault == (faults[0] if faults else None)
    return together


@pytest.mark.parametrize("made", [DOT, REDUCE, PAIRS])
def test_sums_are_run_side_by_side(made):
    assert plan_vertices(made, Checks()) is not None
    assert plan_vertices(made, Checks(flops=True)) is not None
    assert plan_vertices(made, Checks(floating_point=True)) is None


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 31, 64])
@pytest.mark.parametrize("shared", ["a", "b", "both", "none"])
def test_a_dot_product_with_an_operand_in_common(width, shared):
    a, b = floats(width), floats(width)
    vertices = [
        {"a": a if shared in ("a", "both") else floats(width), "b": b if shared in ("b", "both") else floats(width), "out": 0}
        for _ in range(19)
    ]
    outcome = assert_same_as_one_by_one(DOT, vertices)
    assert [one["out"][0] for one in outcome.fields] == [ordered_dot(one["a"], one["b"]) for one in vertices]


def test_an_operand_in_common_that_is_one_place_in_memory(monkeypatch):
    vertices = [{"a": floats(21), "b": floats(21), "out": 0} for _ in range(16)]
    shared = vertices[3]["b"]
    original = Memory.__init__

    def share(self, *arguments, **options):
        original(self, *arguments, **options)
        self.rows[:, 2:4] = self.rows[3, 2:4]

    monkeypatch.setattr(Memory, "__init__", share)
    outcome = run_native(DOT, vertices)
    assert [one["out"][0] for one in outcome.fields] == [ordered_dot(one["a"], shared) for one in vertices]


@pytest.mark.parametrize("width", [0, 1, 5, 8, 20])
def test_a_sum_in_a_scalar_field(width):
    vertices = [{"in": floats(width), "out": 5} for _ in range(17)]
    outcome = assert_same_as_one_by_one(REDUCE, vertices)
    assert [one["out"][0] for one in outcome.fields] == [ordered_dot(one["in"], np.ones(width, np.float32)) for one in vertices]


@pytest.mark.parametrize("width", [1, 2, 3, 15, 16, 17, 18, 33, 50])
def test_pairs_of_halves_with_an_ending_that_branches(width):
    vertices = [{"a": half_values(width), "b": half_values(width), "out": 0} for _ in range(20)]
    outcome = assert_same_as_one_by_one(PAIRS, vertices)
    assert [one["out"][0] for one in outcome.fields] == [pairs(one["a"], one["b"]) for one in vertices]


def test_halves_without_the_hosts_instructions(monkeypatch, tmp_path):
    monkeypatch.setattr(halves, "by_instruction", lambda: False)
    monkeypatch.setattr(native, "_compiled", {})
    monkeypatch.setenv("PYPOPLAR_CACHE_DIR", str(tmp_path))
    vertices = [{"a": half_values(21), "b": half_values(21), "out": 0} for _ in range(10)]
    outcome = assert_same_as_one_by_one(PAIRS, vertices)
    assert [one["out"][0] for one in outcome.fields] == [pairs(one["a"], one["b"]) for one in vertices]


def test_groups_of_mixed_lengths_are_taken_apart():
    widths = [9] * 8 + [9] * 7 + [4] + [6] * 16 + [0] * 8 + [5]
    assert_same_as_one_by_one(DOT, [{"a": floats(w), "b": floats(w), "out": 3} for w in widths])


def test_a_vertex_whose_index_is_beyond_its_field_is_found_among_the_others():
    vertices = [{"a": floats(9), "b": floats(9), "out": 3} for _ in range(24)]
    vertices[11]["b"] = floats(8)
    outcome = assert_same_as_one_by_one(DOT, vertices)
    assert outcome.fault == (1, 11, 2, 8, 8)


def test_endings_may_fault_and_return_early():
    small = Local("small", "bool")
    made = codelet(
        ["in input vector f32", "at input scalar i32", "out output vector f32"],
        Apply(X, "copy_f32", (f32(0.0),), 0),
        Length(N, Span("in", "f32"), 0),
        Load(Local("at", "i32"), Span("at", "i32"), i32(0), 0, checked=False),
        For(K, i32(0), N, i32(1), (Load(Y, Span("in", "f32"), K, 1), Apply(X, "add_f32", (X, Y), 1), Price(2)), 1),
        Price(3),
        Apply(small, "less_f32", (X, f32(0.0)), 2),
        IfElse(small, (Price(1), Return(small, 2)), (), 2),
        Store(OUT, Local("at", "i32"), X, 3),
        Price(4),
        Return(Literal(False, "bool"), 4),
        returns=True,
    )
    assert plan_vertices(made, Checks()) is not None
    vertices = [{"in": abs(floats(12)) * (1 if i % 2 else -1), "at": i % 4, "out": np.zeros(3)} for i in range(25)]
    outcome = assert_same_as_one_by_one(made, vertices)
    assert outcome.code == 1
    assert set(outcome.results) == {0, 1}


def test_loops_that_use_their_variable_and_run_backwards_or_over_constant_places():
    made = codelet(
        ["in input vector f32", "bounds input vector i32", "k state scalar i32", "out output scalar f32"],
        Apply(X, "copy_f32", (f32(1.0),), 0),
        Load(N, Span("k", "i32"), i32(0), 0, checked=False),
        For(
            K, N, i32(0), i32(-1),
            (
                Load(Y, Span("in", "f32"), K, 1),
                Apply(Z, "f32_from_i32", (K,), 1),
                Apply(Y, "mul_f32", (Y, Z), 1),
                Load(Local("c", "i32"), Span("bounds", "i32"), i32(1), 1),
                Apply(Z, "f32_from_i32", (Local("c", "i32"),), 1),
                Apply(Y, "max_f32", (Y, Z), 1),
                Apply(X, "sub_f32", (Y, X), 1),
            ),
            1,
        ),
        Store(OUT, i32(0), X, 0, checked=False),
    )  # fmt: skip
    assert plan_vertices(made, Checks()) is not None
    for start in (5, 12):
        vertices = [{"in": floats(start + 1), "bounds": [0, i - 8], "k": start, "out": 0} for i in range(18)]
        assert_same_as_one_by_one(made, vertices)


def test_neighbours_in_one_vector_are_loaded_within_it():
    left, right = Local("left", "i32"), Local("right", "i32")
    made = codelet(
        ["in input vector f32", "out output scalar f32"],
        Apply(X, "copy_f32", (f32(0.0),), 0),
        Length(N, Span("in", "f32"), 0),
        Apply(N, "sub_i32", (N, i32(1)), 0),
        For(
            K, i32(1), N, i32(1),
            (
                Apply(left, "sub_i32", (K, i32(1)), 0),
                Apply(right, "add_i32", (K, i32(1)), 0),
                Load(Y, Span("in", "f32"), left, 0),
                Load(Z, Span("in", "f32"), right, 0),
                Apply(Y, "mul_f32", (Y, Z), 0),
                Apply(X, "add_f32", (X, Y), 0),
            ),
            1,
        ),
        Store(OUT, i32(0), X, 0, checked=False),
    )  # fmt: skip
    for width in (3, 9, 10, 11, 30):
        assert_same_as_one_by_one(made, [{"in": floats(width), "out": 0} for _ in range(9)])


def test_rows_at_fixed_places_are_bound_before_the_loop():
    row = Span("row", "f32")
    made = codelet(
        ["a input list f32", "b input vector f32", "out output scalar f32"],
        Apply(X, "copy_f32", (f32(0.0),), 0),
        Length(N, B, 0),
        Length(K, SpanList("a", "f32"), 0),
        For(
            Local("c", "i32"), i32(0), N, i32(1),
            (
                Load(Y, B, Local("c", "i32"), 0),
                Apply(X, "add_f32", (X, Y), 0),
            ),
            0,
        ),
        Store(OUT, i32(0), X, 0, checked=False),
    )  # fmt: skip
    vertices = [{"a": [floats(3), floats(4)], "b": floats(10), "out": 0} for _ in range(9)]
    assert_same_as_one_by_one(made, vertices)
    with_row = codelet(
        ["a input list f32", "b input vector f32", "out output scalar f32"],
        *made.body[:3],
        For(
            Local("c", "i32"), i32(0), N, i32(1),
            (
                Row(row, SpanList("a", "f32"), i32(1), 1),
                Load(Y, row, Local("c", "i32"), 2),
                Load(Z, B, Local("c", "i32"), 3),
                Apply(Y, "mul_f32", (Y, Z), 0),
                Apply(X, "add_f32", (X, Y), 0),
            ),
            0,
        ),
        Store(OUT, i32(0), X, 0, checked=False),
    )  # fmt: skip
    vertices = [{"a": [floats(3), floats(10)], "b": floats(10), "out": 0} for _ in range(9)]
    assert_same_as_one_by_one(with_row, vertices)
    vertices[5]["a"][1] = floats(9)
    assert_same_as_one_by_one(with_row, vertices)


@pytest.mark.parametrize("start", [0, 3])
def test_the_loop_variable_keeps_its_last_value(start):
    last = Local("last", "i32")
    made = codelet(
        ["in input vector f32", "out output vector f32", "last output vector i32"],
        Apply(X, "copy_f32", (f32(0.0),), 0),
        Length(N, Span("in", "f32"), 0),
        For(
            K,
            i32(start),
            N,
            i32(3),
            (Load(Y, Span("in", "f32"), K, 1), Apply(X, "add_f32", (X, Y), 1), Apply(last, "mul_i32", (K, i32(2)), 1)),
            1,
        ),
        Store(OUT, i32(0), X, 2),
        Store(OUT, i32(1), Y, 2),
        Store(Span("last", "i32"), i32(0), K, 3),
        Store(Span("last", "i32"), i32(1), last, 3),
    )
    assert plan_vertices(made, Checks()) is not None
    outcome = assert_same_as_one_by_one(made, [{"in": floats(20), "out": [0, 0], "last": [0, 0]} for _ in range(9)])
    expected = range(start, 20, 3)[-1]
    assert [one["last"].tolist() for one in outcome.fields] == [[expected, 2 * expected]] * 9
