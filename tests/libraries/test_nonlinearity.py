"""popnn: non-linearities on elements and their gradients, and softmax over rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, Engine, PoplarTypeError, popnn, poputil
from pypoplar.popnn import NonLinearityType
from pypoplar.program import Execute, Sequence

ERF = np.vectorize(math.erf)


def series_erf(z):
    """The error function of a complex number whose imaginary part is tiny."""
    return ERF(z.real) + 1j * z.imag * 2 / math.sqrt(math.pi) * np.exp(-(z.real**2))


FUNCTIONS = {
    "SIGMOID": lambda x: 1 / (1 + np.exp(-x)),
    "HARD_SIGMOID": lambda x: np.where(abs(x.real) <= 2.5, 0.2 * x + 0.5, x.real > 0),
    "RELU": lambda x: np.where(x.real > 0, x, 0),
    "TANH": np.tanh,
    "GELU": lambda x: 0.5 * x * (1 + np.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
    "GELU_ERF": lambda x: 0.5 * x * (1 + series_erf(x / math.sqrt(2))),
    "SWISH": lambda x: x / (1 + np.exp(-x)),
}
OF_INPUTS = ("HARD_SIGMOID", "GELU", "GELU_ERF", "SWISH")
SHORT_NAMES = ("sigmoid", "relu", "tanh", "gelu", "geluErf", "swish", "softmax", "softmaxStable", "scaledSoftmaxStable")
SOFTMAXES = ("SOFTMAX", "SOFTMAX_STABLE", "SOFTMAX_SCALED")
SCALED = 62000.0


def softmax(x):
    powers = np.exp(x - x.real.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def slope(function, x, g):
    """The gradient by x of the sum of g f(x), element by element, by the complex step; of rows by one for each column."""
    if function is not softmax:
        return function(x + 1e-30j).imag / 1e-30 * g
    columns = [(softmax(x + 1e-30j * np.eye(x.shape[-1])[i]).imag / 1e-30 * g).sum(-1) for i in range(x.shape[-1])]
    return np.stack(columns, -1)


class Calls:
    """Calls on operands that are read when all have been added, run in both engines."""

    def __init__(self, type, tiles=16):
        self.type, self.prog, self.values, self.results, self.expected = type, Sequence(), {}, {}, {}
        self.graph, self.device = new_graph(tiles)

    def tensor(self, values, tiles=None):
        name = f"t{len(self.values)}"
        tensor = self.graph.addVariable(self.type, values.shape, name)
        poputil.mapTensorLinearly(self.graph, tensor) if tiles is None else poputil.mapTensorLinearly(self.graph, tensor, 1, 1)
        self.graph.createHostWrite(name, tensor)
        self.values[name] = values.astype(self.type.dtype)
        return tensor, self.values[name].astype(np.float64)

    def expect(self, name, result, expected, **tolerance):
        self.results[name], self.expected[name] = result, (expected, tolerance)

    def check(self, modes=MODES, **tolerance):
        read, cycles = {}, {}
        for name, tensor in self.results.items():
            self.graph.createHostRead(name, tensor)
        for mode in modes:
            engine = Engine(self.graph, self.prog, mode=mode)
            engine.load(self.device)
            for name, value in self.values.items():
                engine.writeTensor(name, value)
            engine.run()
            read[mode] = {name: engine.readTensor(name) for name in self.results}
            cycles[mode] = [step.cycles for step in engine.getReport().execution.steps]
        for name, (expected, own) in self.expected.items():
            np.testing.assert_allclose(read[modes[0]][name], expected, **(tolerance | own), err_msg=name)
            assert all(read[modes[0]][name].tobytes() == read[mode][name].tobytes() for mode in modes), name
        assert all(cycles[mode] == cycles[modes[0]] for mode in modes)
        return cycles[modes[0]]


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_a_non_linearity_and_its_gradient_are_the_function_and_its_slope(type):
    calls = Calls(type)
    x = np.linspace(-8, 8, 111).reshape(3, 37)
    for name, function in FUNCTIONS.items():
        kind = NonLinearityType[name]
        t, exact = calls.tensor(x)
        new = popnn.nonLinearity(calls.graph, kind, t, calls.prog, "act")
        calls.expect(name, new, function(exact.astype(complex)).real)
        g, slopes = calls.tensor(np.cos(x))
        act = t if name in OF_INPUTS else new
        cs = calls.graph.addComputeSet("gradient")
        gradient = popnn.nonLinearityInputGradient(calls.graph, kind, act, g, cs)
        calls.prog.add(Execute(cs))
        tolerance = {} if name in OF_INPUTS else {"atol": 5e-6 if type is FLOAT else 2e-3}  # what a result that is near 1 has lost
        calls.expect(f"{name} gradient", gradient, slope(function, exact, slopes), **tolerance)
        u, _ = calls.tensor(x)
        popnn.nonLinearityInPlace(calls.graph, kind, u, calls.prog)
        calls.expect(f"{name} in place", u, function(exact.astype(complex)).real)
    calls.check(**({"rtol": 5e-6, "atol": 2e-6} if type is FLOAT else {"rtol": 2**-11, "atol": 1e-6}))


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_softmaxes_go_over_the_last_dimension_whichever_way_they_are_computed(type):
    calls = Calls(type)
    rng = np.random.default_rng(0)
    for number, shape in enumerate([(10,), (2, 3, 5), (6, 1), (3, 300), (0, 4)]):
        x, g = rng.standard_normal((2, *shape))
        for name in SOFTMAXES:
            kind, scale = NonLinearityType[name], SCALED if name == "SOFTMAX_SCALED" else 1
            t, exact = calls.tensor(x, tiles=shape[-1])
            new, given = popnn.nonLinearity(calls.graph, kind, t, True, calls.prog)
            assert given == scale
            if type is HALF or not x.size or number > 2:  # its gradient is looked at once below
                calls.expect(f"{name} {shape}", new, scale * softmax(exact) if x.size else x)
            else:
                grads, slopes = calls.tensor(g)
                gradient = popnn.nonLinearityInputGradient(calls.graph, kind, new, grads, calls.prog)
                calls.expect(f"{name} {shape} gradient", gradient, scale * slope(softmax, exact, slopes), atol=1e-6 * scale)
            assert popnn.nonLinearityInPlace(calls.graph, kind, t, True, calls.prog) == scale
            calls.expect(f"{name} {shape} in place", t, scale * softmax(exact) if x.size else x)
        t, exact = calls.tensor(x)
        logarithms = np.log(softmax(exact)) if x.size else x
        calls.expect(f"logarithm {shape}", popnn.logSoftmax(calls.graph, t, calls.prog), logarithms, atol=1e-6)
        popnn.logSoftmaxInPlace(calls.graph, t, calls.prog)
        calls.expect(f"logarithm {shape} in place", t, logarithms, atol=1e-6)
    x, g = rng.standard_normal((2, 2, 200))
    (t, exact), (grads, slopes) = calls.tensor(x), calls.tensor(g)
    new = popnn.softmaxStable(calls.graph, t, calls.prog)
    gradient = popnn.nonLinearityInputGradient(calls.graph, NonLinearityType.SOFTMAX_STABLE, new, grads, calls.prog)
    calls.expect("spread gradient", gradient, slope(softmax, exact, slopes), atol=1e-6 if type is FLOAT else 1e-4)
    calls.check(**({"rtol": 4e-6} if type is FLOAT else {"rtol": 3e-3}))


def test_short_names_are_non_linearities():
    calls = Calls(FLOAT)
    kinds = [NonLinearityType[name.upper()] for name in ("sigmoid", "relu", "tanh", "gelu", "gelu_erf", "swish", *SOFTMAXES)]
    for name, kind in zip(SHORT_NAMES, kinds, strict=True):
        x = np.linspace(-3, 3, 8)
        (t, _), (u, _), (v, _) = calls.tensor(x), calls.tensor(x), calls.tensor(x)
        call, in_place = getattr(popnn, name), getattr(popnn, f"{name}InPlace")
        assert call.__name__ == name
        assert in_place.__name__ == f"{name}InPlace"
        plain = popnn.nonLinearity(calls.graph, kind, t, calls.prog)
        result, scaling = call(calls.graph, t, True, calls.prog, "named")
        assert scaling == kind.scaling
        assert call(calls.graph, t, False, calls.prog)[1] is None
        assert in_place(calls.graph, u, calls.prog) is None
        assert in_place(calls.graph, v, nonLinearityScaling=True, prog=calls.prog) == kind.scaling
        calls.results |= {f"{name} {number}": tensor for number, tensor in enumerate((plain, result, u, v))}
    read, _ = run(calls.graph, calls.device, calls.prog, calls.values, calls.results)
    for name in SHORT_NAMES:
        first, *others = (read[f"{name} {number}"] for number in range(4))
        for other in others:
            np.testing.assert_allclose(first, other, rtol=1e-6)


@examples(6)
@given(st.integers(1, 6), st.integers(1, 60), st.integers(1, 9), st.randoms(use_true_random=False))
def test_rows_of_a_softmax_sum_to_one_wherever_they_lie(rows, columns, tiles, random):
    calls = Calls(FLOAT, tiles)
    x = np.random.default_rng(rows * columns).standard_normal((rows, columns), np.float32) * 5
    t, exact = calls.tensor(x)
    for _ in range(random.randrange(6)):
        calls.graph.setTileMapping(t.flatten()[random.randrange(t.numElements())], random.randrange(tiles))
    calls.expect("softmax", popnn.softmax(calls.graph, t, calls.prog), softmax(exact))
    calls.expect("of a view", popnn.softmaxStable(calls.graph, t.transpose(), calls.prog), softmax(exact.T))
    calls.check(rtol=1e-5)


def test_only_the_stable_softmax_takes_large_logits():
    calls = Calls(FLOAT)
    t, exact = calls.tensor(np.array([[1000.0, 999.0]]))
    calls.expect("plain", popnn.softmax(calls.graph, t, calls.prog), [[np.nan, np.nan]])
    calls.expect("stable", popnn.softmaxStable(calls.graph, t, calls.prog), softmax(exact))
    calls.check(("native",), rtol=1e-6)


def test_a_short_row_is_one_vertex_on_the_tile_that_holds_most_of_it():
    graph, _ = new_graph()
    x = variable(graph, FLOAT, [3, 20], "x")
    graph.setTileMapping(x[1], 9)
    result = popnn.nonLinearity(graph, NonLinearityType.SOFTMAX, x, Sequence())
    assert graph.numVertices() == 3
    assert graph.getTileMapping(result) == graph.getTileMapping(x)


def test_long_rows_are_spread_over_all_tiles_that_hold_some_of_them():
    calls = Calls(FLOAT, 1472)
    t, exact = calls.tensor(np.random.default_rng(1).standard_normal((8, 1000)))
    calls.expect("softmax", popnn.softmaxStable(calls.graph, t, calls.prog), softmax(exact))
    assert sum(calls.check(("native",), rtol=2e-6)) < 5000


@pytest.mark.parametrize("disabled", [False, True])
def test_a_spatial_softmax_is_where_fields_are_largest(disabled):
    calls = Calls(FLOAT)
    t, exact = calls.tensor(np.random.default_rng(0).standard_normal((3, 4, 5)))
    places, temperature = popnn.spatialSoftMax2D(calls.graph, calls.prog, t, 2.0, disabled, "spatial")
    weights = exact / 2 if disabled else softmax(exact.reshape(3, 20) / 2).reshape(3, 4, 5)
    y, x = (weights * np.linspace(-1, 1, 4)[:, np.newaxis]).sum((1, 2)), (weights * np.linspace(-1, 1, 5)).sum((1, 2))
    calls.expect("places", places, np.stack([y, x], 1), atol=1e-6)
    calls.expect("temperature", temperature, 2.0)
    calls.check(rtol=1e-5)


def test_wrong_operands_are_refused_before_the_graph_changes():
    graph, _ = new_graph()
    x, prog = variable(graph, FLOAT, [4], "x"), Sequence()
    y, half = variable(graph, FLOAT, [5], "y"), variable(graph, HALF, [4], "half")
    cs, integers, scalar = graph.addComputeSet("cs"), variable(graph, INT, [4], "i"), variable(graph, FLOAT, [], "scalar")
    relu, stable = NonLinearityType.RELU, NonLinearityType.SOFTMAX_STABLE
    other = new_graph()[0]
    before = graph.numComputeSets(), graph.numVertices()
    refused = [
        (PoplarTypeError, "NonLinearityType", lambda: popnn.nonLinearity(graph, "RELU", x, prog)),
        (PoplarTypeError, "True or False", lambda: popnn.relu(graph, x, nonLinearityScaling=2.0, prog=prog)),
        (poputil.PoplibsError, "INT", lambda: popnn.nonLinearityInPlace(graph, relu, integers, prog)),
        (poputil.PoplibsError, "last dimension", lambda: popnn.nonLinearity(graph, stable, scalar, prog)),
        (poputil.PoplibsError, "last dimension", lambda: popnn.logSoftmax(graph, x[0:0], prog)),
        (poputil.PoplibsError, "twice", lambda: popnn.nonLinearityInPlace(graph, relu, x.broadcast(2, 0), prog)),
        (poputil.PoplibsError, "twice", lambda: popnn.logSoftmaxInPlace(graph, x.broadcast(2, 0), prog)),
        (poputil.PoplibsError, "give it prog", lambda: popnn.nonLinearityInPlace(graph, stable, x, cs)),
        (poputil.PoplibsError, "give it prog", lambda: popnn.nonLinearityInputGradient(graph, stable, x, x, cs)),
        (
            poputil.PoplibsError,
            r"act and .*\[4\].*\[5\]",
            lambda: popnn.nonLinearityInputGradient(graph, relu, x, y, prog),
        ),
        (poputil.PoplibsError, "one shape and type", lambda: popnn.nonLinearityInputGradient(graph, relu, x, half, prog)),
        (poputil.PoplibsError, "fields, height, width", lambda: popnn.spatialSoftMax2D(graph, prog, x, 1.0)),
        (poputil.PoplibsError, "as a FLOAT, got nan", lambda: popnn.spatialSoftMax2D(graph, prog, x.reshape([1, 2, 2]), math.nan)),
        (poputil.PoplibsError, "as a HALF, got 1e-09", lambda: popnn.spatialSoftMax2D(graph, prog, half.reshape([1, 2, 2]), 1e-9)),
        (PoplarTypeError, "another graph", lambda: popnn.relu(graph, variable(other, FLOAT, [4], "far"), prog)),
        (PoplarTypeError, "another graph", lambda: popnn.nonLinearityInPlace(graph, relu, x, other.addComputeSet())),
    ]
    for error, text, work in refused:
        with pytest.raises(error, match=text):
            work()
    assert (graph.numComputeSets(), graph.numVertices(), len(prog)) == (*before, 0)
