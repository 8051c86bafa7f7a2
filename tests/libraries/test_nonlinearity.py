"""popnn: non-linearities on elements, and softmax over rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, call, new_graph, variable

from pypoplar import FLOAT, HALF, INT, MissingFeature, PoplarTypeError, popnn, poputil
from pypoplar.popnn import NonLinearityType
from pypoplar.program import Sequence

ERF = np.vectorize(math.erf)
FUNCTIONS = {
    "SIGMOID": lambda x: 1 / (1 + np.exp(-x)),
    "HARD_SIGMOID": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "RELU": lambda x: np.maximum(x, 0),
    "TANH": np.tanh,
    "GELU": lambda x: 0.5 * x * (1 + np.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
    "GELU_ERF": lambda x: 0.5 * x * (1 + ERF(x / math.sqrt(2))),
    "SWISH": lambda x: x / (1 + np.exp(-x)),
}


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def apply(name, x, type, mode="native", in_place=False, tiles=16):
    def function(graph, t, prog):
        if in_place:
            popnn.nonLinearityInPlace(graph, NonLinearityType[name], t[0], prog)
            return t[0]
        return popnn.nonLinearity(graph, NonLinearityType[name], t[0], prog, "act")

    return call(function, [type], [x], tiles, mode)


@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_non_linearity_is_the_function_on_every_element(name, type, mode):
    x = np.linspace(-8, 8, 111).reshape(3, 37).astype(type.dtype)
    expected = FUNCTIONS[name](x.astype(np.float64))
    tolerance = {"rtol": 2e-6, "atol": 2e-6} if type is FLOAT else {"rtol": 2**-11, "atol": 1e-6}
    new, _ = apply(name, x, type, mode)
    np.testing.assert_allclose(new, expected, **tolerance)
    in_place, _ = apply(name, x, type, mode, in_place=True)
    assert (new == in_place).all()


@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", ["SOFTMAX", "SOFTMAX_STABLE"])
@pytest.mark.parametrize("shape", [(10,), (1, 10), (4, 7), (2, 3, 5), (6, 1)])
def test_softmax_goes_over_the_last_dimension(shape, name, in_place, type, mode):
    x = np.random.default_rng(0).standard_normal(shape).astype(type.dtype)
    result, _ = apply(name, x, type, mode, in_place)
    np.testing.assert_allclose(result, softmax(x.astype(np.float64)), rtol=1e-6 if type is FLOAT else 2e-3)


@examples(20)
@given(st.integers(1, 6), st.integers(1, 60), st.integers(1, 9))
def test_rows_of_a_softmax_sum_to_one_in_both_engines_alike(rows, columns, tiles):
    x = np.random.default_rng(rows * columns).standard_normal((rows, columns), np.float32) * 5
    native, interpreted = (apply("SOFTMAX", x, FLOAT, mode, tiles=tiles)[0] for mode in MODES)
    np.testing.assert_allclose(native.sum(axis=1), 1, rtol=1e-5)
    assert (native.view(np.uint32) == interpreted.view(np.uint32)).all()


def test_only_the_stable_softmax_takes_large_logits():
    x = np.array([[1000.0, 999.0]], np.float32)
    assert np.isnan(apply("SOFTMAX", x, FLOAT)[0]).any()
    np.testing.assert_allclose(apply("SOFTMAX_STABLE", x, FLOAT)[0], softmax(x), rtol=1e-6)


def test_a_short_row_is_one_vertex_on_the_tile_that_holds_most_of_it():
    graph, _ = new_graph()
    x = variable(graph, FLOAT, [3, 40], "x")
    graph.setTileMapping(x[1], 9)
    result = popnn.nonLinearity(graph, NonLinearityType.SOFTMAX, x, Sequence())
    assert graph.numVertices() == 3
    assert graph.getTileMapping(result) == graph.getTileMapping(x)


def test_wrong_operands_are_refused():
    graph, _ = new_graph()
    x, prog = variable(graph, FLOAT, [4], "x"), Sequence()
    with pytest.raises(PoplarTypeError, match="NonLinearityType"):
        popnn.nonLinearity(graph, "RELU", x, prog)
    with pytest.raises(MissingFeature, match="SOFTMAX_SCALED"):
        popnn.nonLinearity(graph, NonLinearityType.SOFTMAX_SCALED, x, prog)
    with pytest.raises(poputil.PoplibsError, match="INT"):
        popnn.nonLinearityInPlace(graph, NonLinearityType.RELU, variable(graph, INT, [4], "i"), prog)
    with pytest.raises(poputil.PoplibsError, match="last dimension"):
        popnn.nonLinearity(graph, NonLinearityType.SOFTMAX, variable(graph, FLOAT, [], "scalar"), prog)
    with pytest.raises(poputil.PoplibsError, match="twice"):
        popnn.nonLinearityInPlace(graph, NonLinearityType.RELU, x.broadcast(2, 0), prog)
    assert len(prog) == 0
