"""Functions that call themselves without Python's stack."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.compiler.control.stackless import answer


def summed(tree):
    if isinstance(tree, int):
        return tree
    total = 0
    for branch in tree:
        total += yield summed(branch)
    return total


def flat_sum(tree):
    return tree if isinstance(tree, int) else sum(map(flat_sum, tree))


@given(st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=4), max_leaves=30))
def test_calls_return_what_functions_would(tree):
    assert answer(summed(tree)) == flat_sum(tree)


def test_calls_may_be_deep():
    tree = [1]
    for _ in range(100_000):
        tree = [tree, 1]
    assert answer(summed(tree)) == 100_001


def test_an_error_within_a_call_comes_out():
    def failing(depth):
        if depth == 0:
            raise KeyError("deep")
        yield failing(depth - 1)

    with pytest.raises(KeyError, match="deep"):
        answer(failing(10))
