"""Native code of codelets written by hand in the typed form: results, slots, faults."""

import numpy as np
import pytest
from native_rig import DTYPES, compile_codelet, run_native
from written_codelets import DOT, OUT, RANDOM, START, STENCIL, A, B, J, K, N, X, Y, codelet, f32, floats, i32, ordered_dot

from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.typed import (
    Apply,
    Break,
    Check,
    Continue,
    DebugPrint,
    For,
    IfElse,
    Leave,
    Length,
    Literal,
    Load,
    Local,
    Once,
    Price,
    Return,
    Row,
    Slice,
    Span,
    SpanList,
    Special,
    Store,
    While,
)


@pytest.fixture(autouse=True)
def _random_numbers_from_the_start():
    """Each test has the same numbers, whichever run before it."""
    RANDOM.bit_generator.state = START


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 40])
def test_a_group_of_dot_products_sums_in_the_order_written(count):
    vertices = [{"a": floats(33), "b": floats(33), "out": 0} for _ in range(count)]
    outcome = run_native(DOT, vertices)
    assert [one["out"][0] for one in outcome.fields] == [ordered_dot(one["a"], one["b"]) for one in vertices]
    assert outcome.slots == [16 + 4 * 33] * count
    assert outcome.results == [1] * count
    assert outcome.fault is None


def test_vertices_of_a_group_may_have_different_lengths():
    vertices = [
        {"a": floats(n), "b": floats(n + 2), "out": 9} for n in (3, 0, 8, 8, 8, 8, 8, 8, 8, 8, 1, 5, 5, 5, 5, 5, 5, 5, 5, 7)
    ]
    outcome = run_native(DOT, vertices)
    expected = [ordered_dot(one["a"], one["b"][: len(one["a"])]) for one in vertices]
    assert [one["out"][0] for one in outcome.fields] == expected
    assert outcome.slots == [16 + 4 * len(one["a"]) for one in vertices]


def test_a_vertex_that_indexes_beyond_its_field_stops_there_and_the_others_go_on():
    lengths = [(8, 8)] * 9 + [(9, 8)] * 8 + [(8, 5), (3, 3)]
    vertices = [{"a": floats(n), "b": floats(m), "out": 77} for n, m in lengths]
    outcome = run_native(DOT, vertices)
    assert outcome.fault == (1, 9, 2, 8, 8)  # the first fault: vertex 9, location 2, index 8 against 8
    for (n, m), given, after, slots in zip(lengths, vertices, outcome.fields, outcome.slots, strict=True):
        fine = m >= n
        assert after["out"][0] == (ordered_dot(given["a"], given["b"]) if fine else 77)
        assert slots == (16 + 4 * n if fine else 14 + 4 * (m + 1))


@pytest.mark.parametrize("element", DTYPES)
def test_elements_of_every_type_are_loaded_and_stored(element):
    register = "i32" if element in ("i8", "u8", "i16", "u16") else element
    source, target, value = Span("a", element), Span("out", element), Local("value", register)
    copy = codelet(
        [f"a input vector {element}", f"out output vector {element}"],
        Length(N, source, 0),
        For(K, i32(0), N, i32(1), (Load(value, source, K, 0), Store(target, K, value, 0)), 0),
    )
    bits = RANDOM.integers(0, 2, 64) if element == "bool" else np.frombuffer(RANDOM.bytes(512), np.uint8)
    values = bits.astype(bool) if element == "bool" else bits.view(DTYPES[element])
    with np.errstate(invalid="ignore"):
        outcome = run_native(copy, [{"a": values, "out": np.zeros_like(values)}])
    np.testing.assert_array_equal(outcome.fields[0]["out"], values)


def test_a_narrow_scalar_field_reads_back_what_fits_into_it():
    field, value, out = Span("a", "i8"), Local("value", "i32"), Span("out", "i32")
    wrap = codelet(
        ["a inout scalar i8", "out output scalar i32"],
        Load(value, field, i32(0), 0, checked=False),
        Apply(value, "add_i32", (value, i32(100)), 0),
        Store(field, i32(0), value, 0, checked=False),
        Load(value, field, i32(0), 0, checked=False),
        Store(out, i32(0), value, 0, checked=False),
    )
    outcome = run_native(wrap, [{"a": 100, "out": 0}])
    assert outcome.fields[0]["a"][0] == outcome.fields[0]["out"][0] == -56


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (5, 0, -1), (-3, 9, 4), (9, -4, -5), (4, 4, 1), (5, 4, 1), (0, 3, 7)]
)
@pytest.mark.parametrize("literal", [True, False])
def test_a_range_loop_runs_as_pythons(start, stop, step, literal):
    out, place = Span("out", "i32"), Local("place", "i32")
    fields = ["bounds input vector i32", "out output vector i32", "last output scalar i32"]
    bounds = [Local(name, "i32") for name in ("start", "stop", "step")]
    loads = [Load(one, Span("bounds", "i32"), i32(k), 0) for k, one in enumerate(bounds)]
    count = codelet(
        fields,
        *loads,
        Apply(place, "copy_i32", (i32(0),), 0),
        Apply(K, "copy_i32", (i32(-99),), 0),
        For(
            K, *([i32(start), i32(stop), i32(step)] if literal else bounds),
            (Store(out, place, K, 0), Apply(place, "add_i32", (place, i32(1)), 0)),
            0,
        ),
        Store(Span("last", "i32"), i32(0), K, 0, checked=False),
    )  # fmt: skip
    outcome = run_native(count, [{"bounds": [start, stop, step], "out": np.full(8, -1), "last": 0}])
    expected = list(range(start, stop, step))
    assert outcome.fields[0]["out"].tolist() == expected + [-1] * (8 - len(expected))
    assert outcome.fields[0]["last"][0] == (expected[-1] if expected else -99)


@pytest.mark.parametrize("kind", ["i32", "u32", "i64", "u64"])
def test_a_range_counts_to_the_ends_of_its_type(kind):
    limits = np.iinfo(DTYPES[kind])
    low, high = int(limits.min), int(limits.max)
    variable, out = Local("v", kind), Span("out", kind)
    step = high // 2 + 1
    sizes = [Literal(one, kind) for one in (low, high, step if kind[0] == "u" else high)]
    count = codelet(
        [f"out output vector {kind}"],
        Apply(J, "copy_i32", (i32(0),), 0),
        For(variable, *sizes, (Store(out, J, variable, 0), Apply(J, "add_i32", (J, i32(1)), 0)), 0),
    )
    outcome = run_native(count, [{"out": np.zeros(5, DTYPES[kind])}])
    expected = list(range(low, high, step if kind[0] == "u" else high))
    assert outcome.fault is None
    assert outcome.fields[0]["out"].tolist() == expected + [0] * (5 - len(expected))


def test_a_step_of_zero_is_a_fault():
    loop = codelet(
        ["a input scalar i32"], Load(J, Span("a", "i32"), i32(0), 0, checked=False), Price(3), For(K, i32(0), i32(4), J, (), 6)
    )
    outcome = run_native(loop, [{"a": 2}, {"a": 0}])
    assert outcome.fault == (5, 1, 6, 0, 0)


def test_the_loop_variable_may_be_assigned_and_break_and_continue_work():
    out = Span("out", "i32")
    small, big = Local("small", "bool"), Local("big", "bool")
    loop = codelet(
        ["out output vector i32"],
        For(
            K, i32(0), i32(100), i32(1),
            (
                Apply(J, "copy_i32", (K,), 0),
                Apply(small, "less_i32", (K, i32(2)), 0),
                Apply(K, "mul_i32", (K, i32(10)), 0),
                IfElse(small, (Continue(),), (), 0),
                Apply(big, "less_i32", (i32(40), K), 0),
                IfElse(big, (Break(),), (), 0),
                Store(out, J, K, 0),
                Price(1),
            ),
            0,
        ),
        Store(out, i32(0), K, 0),
    )  # fmt: skip
    outcome = run_native(loop, [{"out": np.zeros(6)}])
    assert outcome.fields[0]["out"].tolist() == [50, 0, 20, 30, 40, 0]
    assert outcome.slots == [3]


def test_an_index_that_wraps_is_the_index_that_the_device_computes():
    out = Span("out", "i32")
    loop = codelet(
        ["out output vector i32"],
        For(
            K, i32(0), i32(6), i32(1),
            (
                Apply(J, "add_i32", (K, i32(2**31 - 1)), 0),
                Apply(J, "sub_i32", (J, i32(2**31 - 1)), 0),
                Store(out, J, K, 0),
            ),
            0,
        ),
        Apply(J, "mul_i32", (K, i32(-1)), 0),
        For(K, i32(0), i32(3), i32(1), (Apply(N, "add_i32", (K, J), 0), Store(out, N, K, 4)), 0),
    )  # fmt: skip
    outcome = run_native(loop, [{"out": np.full(6, 9)}])
    assert outcome.fault == (1, 0, 4, -5, 6)
    assert outcome.fields[0]["out"].tolist() == [0, 1, 2, 3, 4, 5]


def test_a_while_loop_stops_at_the_cycle_limit():
    going = Local("going", "bool")
    head = (Price(2), Load(J, Span("a", "i32"), i32(0), 0, checked=False), Apply(going, "less_i32", (J, i32(50)), 0))
    body = (Price(3), Apply(J, "add_i32", (J, i32(1)), 0), Store(Span("a", "i32"), i32(0), J, 0, checked=False))
    loop = codelet(["a inout scalar i32"], Price(10), While(head, going, body, 5))
    outcome = run_native(loop, [{"a": 0}, {"a": 40}], cycle_limit=100)
    assert outcome.fault == (7, 0, 5, 105, 100)
    assert outcome.fields[0]["a"][0] == 19
    assert outcome.fields[1]["a"][0] == 50
    assert outcome.slots == [105, 10 + 10 * 5 + 2]
    assert run_native(loop, [{"a": 0}]).fault is None


def test_a_helper_is_left_early():
    inside = Local("inside", "bool")
    helper = Once(
        (Apply(inside, "less_f32", (X, f32(1.0)), 0), IfElse(inside, (Leave(),), (), 0), Apply(X, "mul_f32", (X, f32(2.0)), 0))
    )
    twice = codelet(
        ["a inout vector f32"],
        Length(N, A, 0),
        For(K, i32(0), N, i32(1), (Load(X, A, K, 0), helper, Store(A, K, X, 0)), 0),
    )
    outcome = run_native(twice, [{"a": [0.5, 1.5, 0.25, 4.0]}])
    assert outcome.fields[0]["a"].tolist() == [0.5, 3.0, 0.25, 8.0]


def test_what_compute_returns_is_written_and_a_vertex_may_end_early():
    small = Local("small", "bool")
    check = codelet(
        ["a input scalar f32", "out output scalar f32"],
        Load(X, A, i32(0), 0, checked=False),
        Apply(small, "less_f32", (X, f32(1.0)), 0),
        IfElse(small, (Return(small, 0),), (), 0),
        Store(OUT, i32(0), X, 0, checked=False),
        Return(small, 0),
        returns=True,
    )
    outcome = run_native(check, [{"a": v, "out": -1} for v in (0.5, 2.0, 0.0)])
    assert outcome.results == [1, 0, 1]
    assert [one["out"][0] for one in outcome.fields] == [-1, 2, -1]


def test_a_stencil_on_rows_equals_numpys():
    a = floats(12, 23)
    outcome = run_native(STENCIL, [{"a": list(a), "out": list(np.zeros_like(a))}])
    expected = np.zeros_like(a)
    expected[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) * np.float32(0.25)
    np.testing.assert_array_equal(np.stack(outcome.fields[0]["out"]), expected)
    assert outcome.fault is None
    assert outcome.slots == [10 * (5 + 21 * 11)]


@pytest.mark.parametrize(
    ("rows", "lengths", "fault"),
    [
        (3, [9, 9, 5], (1, 0, 3, 5, 5)),  # the lower row is short
        (2, [9, 9, 9], (13, 0, 6, 2, 2)),  # the result has too few rows
        (4, [9, 9, 9], None),
    ],
)
def test_jagged_rows_fault_where_they_end(rows, lengths, fault):
    a = [floats(9), floats(9), *[floats(n) for n in lengths[2:]], floats(9)]
    outcome = run_native(STENCIL, [{"a": a, "out": [np.zeros(9) for _ in range(rows)]}])
    assert outcome.fault == fault


def test_a_slice_is_a_view_and_its_bounds_are_checked():
    piece = Span("piece", "f32")
    body = (
        Load(K, Span("bounds", "i32"), i32(0), 0),
        Load(J, Span("bounds", "i32"), i32(1), 0),
        Slice(piece, A, K, J, 4),
        Length(N, piece, 0),
        For(K, i32(0), N, i32(1), (Load(X, piece, K, 5), Apply(X, "neg_f32", (X,), 0), Store(piece, K, X, 5)), 0),
    )
    negate = codelet(["a inout vector f32", "bounds input vector i32"], *body)
    for begin, end, fault in (
        (1, 3, None),
        (0, 4, None),
        (2, 2, None),
        (3, 2, (12, 0, 4, 3, 2)),
        (0, 5, (12, 0, 4, 5, 4)),
        (-1, 2, (12, 0, 4, -1, 2)),
    ):
        outcome = run_native(negate, [{"a": [1, 2, 3, 4], "bounds": [begin, end]}])
        assert outcome.fault == fault
        expected = [1, 2, 3, 4]
        if fault is None:
            expected[begin:end] = [-one for one in expected[begin:end]]
        assert outcome.fields[0]["a"].tolist() == expected


def arithmetic(operation, kind):
    span = Span("a", kind)
    values = [Local(name, kind) for name in "pq"]
    loads = [Load(one, span, i32(k), 0) for k, one in enumerate(values)]
    return codelet(
        [f"a inout vector {kind}"], *loads, Apply(values[0], operation, tuple(values), 2), Store(span, i32(0), values[0], 0)
    )


@pytest.mark.parametrize(
    ("operation", "p", "q", "fault"),
    [
        ("floordiv_i32", -7, 2, None),
        ("floordiv_i32", 5, 0, (2, 0, 2, 0, 0)),
        ("mod_u32", 5, 0, (2, 0, 2, 0, 0)),
        ("mod_i64", -(2**63), -1, None),
        ("shift_left_i32", 1, 31, None),
        ("shift_left_i32", 1, 32, (3, 0, 2, 32, 32)),
        ("shift_right_i32", 1, -1, (3, 0, 2, -1, 32)),
        ("shift_right_u64", 1, 64, (3, 0, 2, 64, 64)),
        ("power_i32", 3, 4, None),
        ("power_i64", 3, -1, (4, 0, 2, -1, 0)),
    ],
)
def test_integer_operations_without_a_result_are_faults(operation, p, q, fault):
    kind = operation.rpartition("_")[2]
    outcome = run_native(arithmetic(operation, kind), [{"a": [p, q]}, {"a": [6, 1]}])
    assert outcome.fault == fault
    if fault is not None:
        assert outcome.fields[0]["a"].tolist() == [p, q]


def test_a_check_is_a_fault_with_its_text():
    fine = Local("fine", "bool")
    check = codelet(
        ["a input scalar i32"],
        Load(J, Span("a", "i32"), i32(0), 0, checked=False),
        Apply(fine, "less_i32", (J, i32(3)), 0),
        Check(fine, 1, 7),
    )
    assert run_native(check, [{"a": 2}, {"a": 3}]).fault == (6, 1, 7, 1, 0)


def test_workers_of_a_multi_vertex_run_in_order_with_a_price_each():
    worker = Local("worker", "i32")
    out, k = Span("out", "i32"), Local("k", "i32")
    multi = codelet(
        ["out inout vector i32", "next inout scalar i32"],
        Price(2),
        Load(k, Span("next", "i32"), i32(0), 0, checked=False),
        Store(out, worker, k, 3),
        Apply(k, "add_i32", (k, i32(1)), 0),
        Store(Span("next", "i32"), i32(0), k, 0, checked=False),
        Price(1),
        kind="multi",
        worker=worker,
    )
    outcome = run_native(multi, [{"out": np.zeros(6), "next": 10}, {"out": np.zeros(4), "next": 0}])
    assert outcome.fields[0]["out"].tolist() == [10, 11, 12, 13, 14, 15]
    assert outcome.fields[1]["out"].tolist() == [0, 1, 2, 3]
    assert outcome.fields[1]["next"][0] == 4
    assert outcome.fault == (1, 1, 3, 4, 4)
    assert outcome.slots == [3] * 6 + [3, 3, 3, 3, 2, 0]


def test_debug_records_hold_the_values_and_count_on_when_the_buffer_is_full():
    prints = codelet(
        ["a input vector f32", "b input scalar u32"],
        Load(X, A, i32(0), 0),
        Load(Local("u", "u32"), Span("b", "u32"), i32(0), 0, checked=False),
        DebugPrint(1, (X, Local("u", "u32"), i32(-1), Literal(True, "bool")), 4),
    )
    outcome = run_native(prints, [{"a": [v], "b": 2**32 - 1} for v in (1.5, 2.5)], debug_words=20)
    bits = int(np.float64(1.5).view(np.int64))
    assert outcome.debug[:12].tolist() == [0, 4, 1, 4, 0, bits, 3, 2**32 - 1, 2, -1, 6, 1]
    assert outcome.debug[12:].tolist() == [0] * 8
    assert outcome.debug_used == 24
    assert run_native(prints, [{"a": [0], "b": 0}]).debug_used == 12


def aox(state):
    """xoroshiro128aox in plain Python, of a state of two words."""
    mask = 2**64 - 1

    def rotated(value, bits):
        return (value << bits | value >> (64 - bits)) & mask

    s0, s1 = state
    result = s0 ^ s1 ^ (rotated(s0 & s1, 1) | rotated(s0 & s1, 2))
    state[:] = rotated(s0, 55) ^ s0 ^ s1 ^ ((s0 ^ s1) << 14 & mask), rotated(s0 ^ s1, 36)
    return result


def test_random_numbers_are_xoroshiro128aox_of_the_workers_in_turn():
    u = Local("u", "u32")
    draw = codelet(
        ["a output scalar u32", "b output scalar f32"],
        Special(u, "random_u32", 0),
        Special(X, "random_f32", 0),
        Store(Span("a", "u32"), i32(0), u, 0, checked=False),
        Store(B, i32(0), X, 0, checked=False),
    )
    states = [[11, 22], [33, 2**64 - 44], [2**63, 7]]
    outcome = run_native(draw, [{"a": 0, "b": 0}] * 5, random=[word for state in states for word in state], workers=3)
    for number, fields in enumerate(outcome.fields):
        assert fields["a"][0] == aox(states[number % 3]) >> 32
        assert fields["b"][0] == (aox(states[number % 3]) >> 40) * 2.0**-24
    assert outcome.random == [word for state in states for word in state]


def test_the_cycle_counter_goes_on_from_the_clock_by_six_cycles_a_slot():
    u = Local("u", "u32")
    count = codelet(
        ["a output vector u32"],
        For(K, i32(0), i32(3), i32(1), (Price(5), Special(u, "cycle_count", 0), Store(Span("a", "u32"), K, u, 0)), 0),
    )
    outcome = run_native(count, [{"a": np.zeros(3)}], clock=2**32 + 100)
    assert outcome.fields[0]["a"].tolist() == [130, 160, 190]


def test_touches_of_elements_are_recorded():
    mixed = codelet(
        ["a input vector f32", "out output list f32", "s inout scalar f32", "k state scalar i32"],
        Load(N, Span("k", "i32"), i32(0), 0, checked=False),
        For(
            K,
            i32(0),
            N,
            i32(2),
            (Load(X, A, K, 0), Row(Span("row", "f32"), SpanList("out", "f32"), i32(1), 0), Store(Span("row", "f32"), K, X, 0)),
            0,
        ),
        Load(Y, Span("s", "f32"), i32(0), 0, checked=False),
        Store(Span("s", "f32"), i32(0), Y, 0, checked=False),
        Slice(Span("tail", "f32"), A, i32(3), i32(5), 0),
        Load(X, Span("tail", "f32"), i32(1), 0),
    )
    outcome = run_native(mixed, [{"a": floats(5), "out": [floats(2), floats(4)], "s": 1, "k": 3}], record_touches=True)
    assert outcome.touched == {
        (0, "a"): [1, 0, 1, 0, 1],
        (0, "out", 0): [0, 0],
        (0, "out", 1): [2, 0, 2, 0],
        (0, "s"): [3],
        (0, "k"): [1],
    }


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_reading_what_nothing_has_written_is_a_fault_where_asked_for(kind):
    span, value = Span("a", kind), Local("value", kind)
    read = codelet(
        [f"a inout vector {kind}"], For(K, i32(0), i32(4), i32(1), (Load(value, span, K, 3), Store(span, K, value, 3)), 0)
    )
    values = np.array([1, 2, np.nan, 4], DTYPES[kind])
    assert run_native(read, [{"a": values}], uninitialised_checks=True).fault is None
    values.view(f"u{values.itemsize}")[2] = 2 ** (8 * values.itemsize) - 1
    assert run_native(read, [{"a": values}], uninitialised_checks=True).fault == (11, 0, 3, 2, 0)
    assert run_native(read, [{"a": values}]).fault is None


@pytest.mark.parametrize(
    ("operation", "p", "q", "mask", "code"),
    [
        ("sub_f32", np.inf, np.inf, 1, 8),
        ("sub_f32", np.inf, np.inf, 6, 0),
        ("add_f32", np.nan, 1.0, 7, 0),
        ("mul_f32", 3e38, 2.0, 2, 9),
        ("mul_f16", 60000.0, 2.0, 2, 9),
        ("div_f32", 1.0, 0.0, 4, 10),
        ("div_f32", 1.0, 0.0, 3, 0),
        ("pow_f16", 0.0, -1.0, 7, 10),
        ("add_f32", 1.0, 2.0, 7, 0),
    ],
)
def test_floating_point_exceptions_are_faults_where_asked_for(operation, p, q, mask, code):
    kind = operation.rpartition("_")[2]
    made = arithmetic(operation, kind)
    outcome = run_native(made, [{"a": [p, q]}], floating_point_checks=True, mask=mask)
    assert outcome.fault == ((code, 0, 2, 0, 0) if code else None)
    assert run_native(made, [{"a": [p, q]}], mask=mask).fault is None


def test_equal_codelets_share_their_code_and_versions_do_not():
    other = codelet([f"{one.name} {one.access} {one.form} {one.element}" for one in DOT.fields], *DOT.body)
    assert compile_codelet(DOT).address == compile_codelet(other).address
    assert compile_codelet(DOT).address != compile_codelet(DOT, Checks(touches=True)).address
