"""popops.allTrue, hasNaN and hasNaNOrInf, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import new_graph, run, variable

from pypoplar import BOOL, FLOAT, HALF, INT, popops
from pypoplar.popops.reduction.nan_cycles import search_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

NUMPY = {
    "allTrue": lambda values: values.all(),
    "hasNaN": lambda values: np.isnan(values).any(),
    "hasNaNOrInf": lambda values: not np.isfinite(values).all(),
}


def answers(tiles, arrays, mode="native"):
    """What each function says of each array that it takes, and what NumPy says."""
    graph, device = new_graph(tiles)
    prog, values, results, wanted = Sequence(), {}, {}, {}
    for number, array in enumerate(arrays):
        type = {"bool": BOOL, "float32": FLOAT, "float16": HALF}[array.dtype.name]
        tensor = variable(graph, type, array.shape, f"t{number}")
        values[f"t{number}"] = array
        for name in ["allTrue"] if type is BOOL else ["hasNaN", "hasNaNOrInf"]:
            results[f"{name} {number}"] = getattr(popops, name)(graph, tensor, prog)
            wanted[f"{name} {number}"] = bool(NUMPY[name](array))
    assert all(result.elementType() is BOOL and result.shape() == [] for result in results.values())
    read, _ = run(graph, device, prog, values, results, mode)
    return {name: bool(answer) for name, answer in read.items()}, wanted


@pytest.mark.parametrize("tiles", [1, 4, 7])
@pytest.mark.parametrize("size", [0, 1, 3, 1000])
def test_one_element_decides_wherever_it_is(tiles, size, mode):
    arrays = [np.ones(size, bool), *(np.zeros(size, type) for type in (np.float32, np.float16))]
    for place in {0, size // 2, size - 1} if size else ():
        for array, values in [(arrays[0], [False]), *((array, (np.nan, np.inf, -np.inf)) for array in arrays[1:3])]:
            for value in values:
                arrays.append(array.copy())
                arrays[-1][place] = value
    read, wanted = answers(tiles, arrays if mode == "native" else arrays[:8], mode)
    assert read == wanted


@examples(25)
@given(st.lists(st.integers(1, 6), min_size=0, max_size=4), st.integers(1, 9), st.integers(0, 3))
def test_shapes_and_tiles_do_not_matter(shape, tiles, seed):
    random = np.random.default_rng(seed)
    floats = random.choice([0.0, 1.0, np.nan, np.inf], shape, p=[0.5, 0.45, 0.03, 0.02])
    read, wanted = answers(tiles, [random.random(shape) < 0.95, np.asarray(floats, np.float32), np.asarray(floats, np.float16)])
    assert read == wanted


def test_other_types_are_refused():
    graph, _ = new_graph(4)
    x = variable(graph, INT, [3], "x")
    with pytest.raises(PoplibsError, match=r"popops.allTrue takes BOOL, got <Tensor 'x' INT \[3\]>"):
        popops.allTrue(graph, x, Sequence())
    for call in (popops.hasNaN, popops.hasNaNOrInf):
        with pytest.raises(PoplibsError, match=f"popops.{call.__name__} takes FLOAT or HALF, got <Tensor 'x' INT"):
            call(graph, x, Sequence())
    assert graph.numVertices() == 0


def test_the_search_costs_what_poplibs_says():
    figures = [(FLOAT, 64, False, 66), (FLOAT, 64, True, 83), (FLOAT, 7, True, 41), (HALF, 64, False, 88), (HALF, 64, True, 57)]
    for type, elements, infinities, cycles in figures:
        assert search_cycles(type, elements, infinities) == cycles, (type, elements, infinities)
