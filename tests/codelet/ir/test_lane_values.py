"""Integers in lanes: what operations mean there is what they mean everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar.codelet.ir.lane_values import TYPES, LaneValue, apply
from pypoplar.codelet.operations.registers import limits
from pypoplar.codelet.operations.table import OPERATIONS, typed_operation

COMPUTED = sorted(
    name
    for name in OPERATIONS
    if apply(name, [LaneValue.of(1, 1)] * len(typed_operation(name).arguments)) is not None
)  # fmt: skip
LEFT_OUT = ("power", "popcount", "clz")


def numbers(type):
    """Numbers of a type, most often small ones or those at the ends."""
    if type == "bool":
        return st.integers(0, 1)
    low, high = limits(type)
    near = st.integers(-40, 40).filter(lambda number: low <= number <= high)
    return near | st.sampled_from([low, low + 1, high - 1, high]) | st.integers(low, high)


def test_the_integer_operations_of_32_bits_are_known_but_for_rare_ones():
    missing = [
        name
        for name in OPERATIONS
        if all(type in TYPES for type in (*typed_operation(name).arguments, typed_operation(name).result)) and name not in COMPUTED
    ]
    assert {typed_operation(name).row.name for name in missing} == set(LEFT_OUT)
    assert {"add_i32", "mul_u32", "less_i32", "not_bool", "i32_from_bool", "wrap_i8"} <= set(COMPUTED)


@pytest.mark.parametrize("name", COMPUTED)
@examples(20)
@given(data=st.data())
def test_an_operation_gives_in_each_lane_what_it_means(name, data):
    known = typed_operation(name)
    rows = data.draw(st.lists(st.tuples(*(numbers(type) for type in known.arguments)), min_size=1, max_size=8))
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    whether = [np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))) for _ in columns]
    applied = apply(name, [LaneValue(*argument) for argument in zip(columns, whether, strict=True)])
    assert applied is not None
    for lane, row in enumerate(rows):
        wrong = known.fault is not None and bool(known.fault(row[-1]))
        assert applied.faulty[lane] == (wrong and whether[-1][lane])
        assert applied.value.known[lane] == (all(column[lane] for column in whether) and not wrong)
        if applied.value.known[lane]:
            assert applied.value.numbers[lane] == int(known.compute(*row))


def test_what_takes_or_gives_other_types_is_not_known():
    for name in ("add_f32", "add_i64", "i32_from_f32", "f32_from_i32", "power_i32"):
        assert apply(name, [LaneValue.of(1, 3)] * len(typed_operation(name).arguments)) is None
