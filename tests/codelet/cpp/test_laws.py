"""What the machine's own C++ compiler makes of a text is what a codelet of the same text computes, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

pytest.importorskip("clang")

from cpp_programs import COMPILER, LENGTH, TYPES, Drawn, compare

compiled = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")


def _values(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    values = {}
    for name, type in TYPES.items():
        if name == "float":
            values[f"{name}s"] = random.choice(np.array([0.5, -1.25, 3.0, 1e6, -0.0, 7.75, 1e-3], type), LENGTH)
        else:
            limits = np.iinfo(type)
            values[f"{name}s"] = random.integers(limits.min, limits.max, LENGTH, dtype=type, endpoint=True)
    return values


def _law(data: st.DataObject, depth: int, count: int) -> None:
    drawn = Drawn(lambda options: data.draw(st.sampled_from(list(options))))
    compare(drawn.statements(depth, count), _values(data.draw(st.integers(0, 1000))))


@compiled
@pytest.mark.no_cover
@examples(40)
@given(st.data())
def test_expressions_and_assignments_are_those_of_cpp(data):
    _law(data, 0, 4)


@compiled
@pytest.mark.slow
@examples(100)
@given(st.data())
def test_loops_branches_and_lambdas_are_those_of_cpp(data):
    _law(data, 2, 4)
