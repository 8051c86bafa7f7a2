"""The driver's language: what compiled functions do is what Python does with the same text, and the rest is refused."""

import enum

import pytest
from driver_units import compiled
from hypothesis import example, given
from hypothesis import strategies as st

from pypoplar.engine.native.memory_operations import load_i64, store_i64
from pypoplar.engine.native.unit import entry, part, seldom
from pypoplar.engine.native.unit_code import unit_text

LIMIT = 7
NAME = "seven"


class Code(enum.IntEnum):
    FIRST = 3


def wrapped(value):
    return (value + 2**63) % 2**64 - 2**63


@entry
def arithmetic(a: int, b: int) -> int:
    total = a + b - 3 * a
    total += a & b
    total ^= a | 5
    total -= -b
    return total * (a >> 3) + (b << 2) + LIMIT - Code.FIRST


@entry
def quotient(a: int, b: int) -> int:
    return a // b


@entry
def rest(a: int, b: int) -> int:
    return a % b


@part
def is_small(x: int) -> bool:
    return bool(x < LIMIT and not x < -LIMIT)


@seldom
def distance(a: int, b: int) -> int:
    """A text does nothing."""
    if a == b:
        return 0
    if a > b:
        return a - b
    else:
        return b - a


@part
def nothing(x: int) -> None:
    if x != 3:
        return


@entry
def choices(a: int, b: int) -> int:
    small, large = is_small(a), not is_small(b)
    nothing(a)
    if (small and large) or a == b:
        result = max(a, b)
    elif small:
        result = min(a, b) + (1 if a >= b else 0)
    else:
        result = int(a <= b) - (a != b)
    return result + distance(a, b)


@entry
def loops(a: int, b: int) -> int:
    total = 0
    for i in range(a):
        for k in range(i, b):
            total += i * k + 1
            i = 100
    while total > 50 or is_small(total):
        if total < 0:
            total += 1000
        total = total // 2 + 9
        if total < 20:
            return total
    return total


@entry
def endless(a: int, b: int) -> int:
    while True:
        a += 1
        if a * a > b:
            return a


WORDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)
COMPILED = {}


def run(function, *arguments):
    if function not in COMPILED:
        COMPILED[function] = compiled(function)
    return COMPILED[function](*arguments)


@given(WORDS, WORDS)
def test_integers_are_pythons_and_wrap(a, b):
    assert run(arithmetic, a, b) == wrapped(arithmetic(a, b))


@given(WORDS, WORDS.filter(bool))
@example(-7, 2)
@example(7, -2)
@example(-8, 2)
def test_quotients_and_rests_are_pythons(a, b):
    assert run(rest, a, b) == rest(a, b)
    if (a, b) != (-(2**63), -1):
        assert run(quotient, a, b) == quotient(a, b)


@given(WORDS)
def test_by_zero_quotients_and_rests_are_zero(a):
    assert (run(quotient, a, 0), run(rest, a, 0)) == (0, 0)


@given(st.integers(-20, 20), st.integers(-20, 20))
def test_choices_are_pythons(a, b):
    assert run(choices, a, b) == choices(a, b)


@given(st.integers(-3, 12), st.integers(-3, 12))
def test_loops_are_pythons(a, b):
    assert run(loops, a, b) == loops(a, b)
    assert run(endless, a, b) == endless(a, b)


@part
def note(address: int, value: int) -> bool:
    store_i64(address, load_i64(address) * 10 + value)
    return value > 1


@entry
def order(address: int) -> int:
    first = note(address, 1) and note(address, 2)
    second = note(address, 3) or note(address, 4)
    third = note(address, 5) and note(address, 6) and not note(address, 1)
    return first + 10 * second + 100 * third


def test_what_is_decided_already_is_not_evaluated():
    import ctypes

    noted = ctypes.c_int64(0)
    assert run(order, ctypes.addressof(noted)) == 110
    assert noted.value == 13561


def changes_type(a: int) -> int:
    b = a
    b = a > 1
    return b


def ends_without(a: int) -> int:
    if a > 1:
        return a


def wrong_result(a: int) -> int:
    return a > 1


def adds_text(a: int) -> int:
    return a + NAME


def calls_python(a: int) -> int:
    return abs(a)


def unknown_name(a: int) -> int:
    return a + missing  # noqa: F821


def has_try(a: int) -> int:
    try:
        return a
    finally:
        pass


def steps(a: int) -> int:
    for i in range(0, a, 2):
        a -= i
    return a


def goes_on(a: int) -> int:
    return a
    a += 1


def chained(a: int) -> int:
    if 1 < a < 3:
        return a
    return 0


def divides(a: int) -> int:
    return a / 2


def keywords(a: int) -> int:
    return max(a, key=a)


def subscripts(a: int) -> int:
    a[0] = 1
    return a


REFUSED = [
    (changes_type, 2, "'b' changes its type: b"),
    (ends_without, 0, "it may end without a value"),
    (wrong_result, 1, "its type is i1, not i64: a > 1"),
    (adds_text, 1, "it is no integer: NAME"),
    (calls_python, 1, "nothing is called so: abs"),
    (unknown_name, 1, "nothing is called so: missing"),
    (has_try, 1, "the driver has no such statement: try:"),
    (steps, 1, "the driver counts in steps of one: range(0, a, 2)"),
    (goes_on, 2, "nothing comes here: a += 1"),
    (chained, 1, "the driver has no such expression: 1 < a < 3"),
    (divides, 1, "the driver has no such operation: a / 2"),
    (keywords, 1, "arguments have their places: max(a, key=a)"),
    (subscripts, 1, "the driver has no such target: a[0]"),
]


@pytest.mark.parametrize(("function", "line", "message"), REFUSED, ids=[function.__name__ for function, _, _ in REFUSED])
def test_what_the_language_does_not_have_is_refused_with_its_line(function, line, message):
    with pytest.raises(NotImplementedError) as caught:
        unit_text(entry(function), "tested")
    place = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno + line}: "
    assert str(caught.value).startswith(place + message)
