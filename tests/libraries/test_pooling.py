"""popnn.pooling: windows of fields, and the gradients by what was pooled."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, variable

from pypoplar import FLOAT, HALF, INT, Engine, InvalidOption, InvalidTileMapping, PoplarTypeError, poputil
from pypoplar.popnn import PoolingType, pooling
from pypoplar.popnn.pooling import PoolParams
from pypoplar.program import Sequence

MAX, AVG, SUM = PoolingType.MAX, PoolingType.AVG, PoolingType.SUM


def windows(params, dimension):
    """For each window the places that it has, without padding."""
    size, lower = params.inputFieldShape[dimension], params.inputTruncationOrPaddingLower[dimension]
    first = [window * params.stride[dimension] - lower for window in range(params.getOutputFieldShape()[dimension])]
    return [[place for place in range(begin, begin + params.kernelShape[dimension]) if 0 <= place < size] for begin in first]


def each_window(params, x):
    """The index of each window, and that of what it has."""
    by_dimension = [windows(params, dimension) for dimension in range(params.getNumFieldDims())]
    for window in itertools.product(*(range(len(places)) for places in by_dimension)):
        places = [by_dimension[dimension][index] for dimension, index in enumerate(window)]
        if all(places):
            yield (slice(None), slice(None), *window), np.ix_(range(x.shape[0]), range(x.shape[1]), *places)


def pooled_by_numpy(params, x):
    result = np.zeros([*x.shape[:2], *params.getOutputFieldShape()])
    value = {MAX: np.max, AVG: np.mean, SUM: np.sum}[params.poolingType]
    for window, places in each_window(params, x):
        result[window] = value(x[places], axis=tuple(range(2, x.ndim)))
    return result


def gradient_by_numpy(params, x, pooled, grads, scaled):
    result = np.zeros(x.shape)
    for window, places in each_window(params, x):
        part = x[places]
        axes = tuple(range(2, x.ndim))
        grad = np.expand_dims(grads[window], axes)
        if params.poolingType is MAX:
            largest = part == np.expand_dims(pooled[window], axes)
            result[places] += largest * grad / (largest.sum(axes, keepdims=True) if scaled else 1)
        else:
            result[places] += np.broadcast_to(grad, part.shape) / (part[0, 0].size if params.poolingType is AVG else 1)
    return result


def grouped(graph, type, shape, channels, name):
    """A variable whose neighbours in memory are so many channels, as convolutions write it."""
    tensor = graph.addVariable(type, [shape[0], shape[1] // channels, *shape[2:], channels], name)
    poputil.mapTensorLinearly(graph, tensor, 0, channels)
    tensor = tensor.dimRoll(tensor.rank() - 1, 2).reshape(shape)
    graph.createHostWrite(name, tensor)
    return tensor


class Cases:
    """Pools with their gradients in one program."""

    def __init__(self, tiles=4):
        self.graph, self.device = new_graph(tiles)
        self.prog, self.values, self.expected = Sequence(), {}, []

    def add(self, params, channels=1, scaled=False, options=None):
        number = len(self.values)
        shape = [params.batchSize, params.numChannels, *params.inputFieldShape]
        outputs = [*shape[:2], *params.getOutputFieldShape()]
        rng = np.random.default_rng(number)
        x, grads = (rng.integers(-4, 5, size).astype(np.float64) for size in (shape, outputs))
        in_ = grouped(self.graph, params.dType, shape, channels, f"x{number}")
        gradient = grouped(self.graph, params.dType, outputs, channels, f"g{number}")
        self.values |= {f"x{number}": x.astype(params.dType.dtype), f"g{number}": grads.astype(params.dType.dtype)}
        result = pooling.pool(self.graph, params, in_, self.prog, "pool", options)
        pooled = pooled_by_numpy(params, x)
        slopes = gradient_by_numpy(params, x, pooled, grads, scaled)
        back = pooling.poolInputGradient(self.graph, params, in_, result, gradient, scaled, self.prog, "back", options)
        self.expected += [(params, result, pooled), (params, back, slopes)]
        if params.poolingType is not MAX:
            spread = pooling.poolInputGradient(self.graph, params, channels, gradient, self.prog, options=options)
            self.expected.append((params, spread, slopes))

    def check(self, modes=MODES):
        for number, (_, tensor, _) in enumerate(self.expected):
            self.graph.createHostRead(str(number), tensor)
        read = []
        for mode in modes:
            engine = Engine(self.graph, self.prog, mode=mode)
            engine.load(self.device)
            for name, value in self.values.items():
                engine.writeTensor(name, value)
            engine.run()
            cycles = [step.cycles for step in engine.getReport().execution.steps]
            read.append([*(engine.readTensor(str(number)) for number in range(len(self.expected))), np.array(cycles)])
        for results in zip(*read, strict=True):
            assert all(result.tobytes() == results[0].tobytes() for result in results)
        for result, (params, _, expected) in zip(read[0], self.expected, strict=False):
            tolerance = 1e-5 if params.dType is FLOAT else 4e-3
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance, err_msg=str(params))
        return cycles


@pytest.mark.parametrize("kind", PoolingType)
def test_windows_are_pooled_in_any_number_of_dimensions(kind):
    cases = Cases()
    cases.add(PoolParams(kind, [5, 6], [2, 3], [1, 2], [1, 0], [0, 1], 4, 2, FLOAT), channels=2)
    cases.add(PoolParams(kind, [7], [3], [2], [-1], [2], 4, 1, HALF), channels=4, scaled=True)
    cases.add(PoolParams(kind, [2, 3, 3], [2, 2, 2], [2, 1, 2], [0, 1, 1], [0, 0, 1], 3, 1, FLOAT), scaled=True)
    cases.add(
        PoolParams(kind, [4, 4], [4, 4], [1, 1], [0, 0], [0, 0], 3, 2, HALF), options={"poolUseIntrospectiveMapping": "false"}
    )
    cases.add(
        PoolParams(kind, [6, 2], [1, 2], [3, 2], [0, 0], [0, 0], 2, 1, HALF), options={"useFloatPartialsWhereBeneficial": True}
    )
    cases.add(PoolParams(kind, [2], [2], [1], [3], [0], 1, 1, FLOAT))  # its first windows have nothing but padding
    cases.add(PoolParams(kind, [], [], [], [], [], 2, 3, FLOAT))
    cases.add(PoolParams(kind, [4], [1], [2], [2], [-1], 6, 1, FLOAT), channels=3)
    cases.add(PoolParams(kind, [3], [2], [1], [1], [0], 17, 1, HALF), channels=17)
    cases.check()


@st.composite
def pools(draw):
    dimensions = draw(st.integers(1, 3))
    lists = []
    for _ in range(dimensions):
        size, kernel, stride = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
        lower, upper = draw(st.integers(-1, 2)), draw(st.integers(-1, 2))
        if size + min(lower, 0) + min(upper, 0) < 0 or size + lower + upper < kernel:
            lower, upper = kernel, 0
        lists.append((size, kernel, stride, lower, upper))
    channels = draw(st.sampled_from([1, 2, 4]))
    type, kind = draw(st.sampled_from([FLOAT, HALF])), draw(st.sampled_from(list(PoolingType)))
    return PoolParams(
        kind, *map(list, zip(*lists, strict=True)), channels * draw(st.integers(1, 2)), draw(st.integers(1, 2)), type
    ), channels


@examples(8)
@given(st.lists(pools(), min_size=2, max_size=3), st.sampled_from([1, 3, 16]), st.booleans())
def test_any_windows_are_pooled_as_numpy_does(several, tiles, scaled):
    cases = Cases(tiles)
    for params, channels in several:
        cases.add(params, channels, scaled)
    cases.check(("native",))


def test_pooling_on_a_bow_takes_few_cycles():
    cases = Cases(1472)
    cases.add(PoolParams(MAX, [26, 26], [2, 2], [2, 2], [0, 0], [0, 0], 32, 2, HALF), channels=16)
    assert sum(cases.check(("native",))) < 4000


def test_windows_and_flops_are_counted():
    params = PoolParams(AVG, [5, 4], (3, 2), [2, 2], [1, 0], [1, 0], 3, 2, FLOAT)
    assert params.getNumFieldDims() == 2
    assert params.getOutputFieldShape() == pooling.getOutputFieldShape(params) == [3, 2]
    assert pooling.getFwdFlops(params) == 2 * 3 * ((2 + 3 + 2) * 4 + 6)
    assert pooling.getBwdFlops(params) == 2 * 3 * ((2 + 3 + 2) * 4 + 5 * 4)
    graph, _ = new_graph(4)
    assert pooling.getFwdPerfectCycleCount(graph, params) == pooling.getFwdFlops(params) / (2 * 4)
    assert pooling.getBwdPerfectCycleCount(graph, params) == 2 * pooling.getFwdPerfectCycleCount(graph, params)


def test_pools_of_nothing_are_empty():
    graph, _ = new_graph()
    params, prog = PoolParams(MAX, [4], [2], [2], [0], [0], 0, 2, FLOAT), Sequence()
    x = variable(graph, FLOAT, [2, 0, 4], "x")
    pooled = pooling.pool(graph, params, x, prog)
    assert pooled.shape() == [2, 0, 2]
    assert pooling.poolInputGradient(graph, params, x, pooled, pooled, False, prog).shape() == [2, 0, 4]


@pytest.mark.parametrize(("arguments", "error", "text"), [
    (("MAX", [4], [2], [2], [0], [0], 1, 1, FLOAT), PoplarTypeError, "poolingType is a popnn.PoolingType"),
    ((MAX, [4], [2], [2], [0], [0], 1, 1, INT), poputil.PoplibsError, "dType is FLOAT or HALF, got INT"),
    ((MAX, [4], [2], [2], [0], [0], 1, 1, "float"), PoplarTypeError, "dType is an element type"),
    ((MAX, [4], [2, 2], [2], [0], [0], 1, 1, FLOAT), poputil.PoplibsError, "kernelShape has 2"),
    ((MAX, [4], [0], [2], [0], [0], 1, 1, FLOAT), poputil.PoplibsError, "kernelShape is 1 at least, got 0"),
    ((MAX, [4], [2], [0], [0], [0], 1, 1, FLOAT), poputil.PoplibsError, "stride is 1 at least, got 0"),
    ((MAX, 4, [2], [1], [0], [0], 1, 1, FLOAT), PoplarTypeError, "inputFieldShape is a list of whole numbers"),
    ((MAX, {4, 5}, [2, 2], [1, 1], [0, 0], [0, 0], 1, 1, FLOAT), PoplarTypeError, "inputFieldShape of PoolParams"),
    ((MAX, [4], [2.5], [1], [0], [0], 1, 1, FLOAT), PoplarTypeError, "each of kernelShape is a whole number"),
    ((MAX, [4], [2], [1], [0], [0], -1, 1, FLOAT), poputil.PoplibsError, "numChannels is 0 at least, got -1"),
    ((MAX, [4], [2], [1], [-3], [-2], 1, 1, FLOAT), poputil.PoplibsError, "4 places, of which 3 and 2 are to be cut off"),
    ((MAX, [4], [6], [1], [0], [1], 1, 1, FLOAT), poputil.PoplibsError, "kernel has 6 places in dimension 0, and the field 5"),
])  # fmt: skip
def test_parameters_that_fit_no_field_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        PoolParams(*arguments)


def test_wrong_operands_are_refused_before_the_graph_changes():
    graph, _ = new_graph()
    params, sums = (PoolParams(kind, [4, 4], [2, 2], [2, 2], [0, 0], [0, 0], 4, 2, FLOAT) for kind in (MAX, SUM))
    prog, x, half = Sequence(), variable(graph, FLOAT, [2, 4, 4, 4], "x"), variable(graph, HALF, [2, 4, 4, 4], "half")
    y, bare = variable(graph, FLOAT, [2, 4, 2, 2], "y"), graph.addVariable(FLOAT, [2, 4, 4, 4], "bare")
    refused = [
        (poputil.PoplibsError, r"in is \[samples, .*\] = \[2, 4, 4, 4\]", lambda: pooling.pool(graph, params, y, prog)),
        (poputil.PoplibsError, "in is FLOAT by the parameters", lambda: pooling.pool(graph, params, half, prog)),
        (InvalidTileMapping, "'bare'", lambda: pooling.pool(graph, params, bare, prog)),
        (PoplarTypeError, "params are popnn.pooling.PoolParams", lambda: pooling.pool(graph, "max", x, prog)),
        (PoplarTypeError, "prog", lambda: pooling.pool(graph, params, x, None)),
        (InvalidOption, "optimizeForSpeed", lambda: pooling.pool(graph, params, x, prog, options={"optimiseForSpeed": True})),
        (poputil.PoplibsError, "pooledGradient is", lambda: pooling.poolInputGradient(graph, params, x, y, x, False, prog)),
        (poputil.PoplibsError, "pooled is", lambda: pooling.poolInputGradient(graph, params, x, x, y, False, prog)),
        (poputil.PoplibsError, "needs in and pooled", lambda: pooling.poolInputGradient(graph, params, 1, y, prog)),
        (poputil.PoplibsError, "divides the 4 channels, got 3", lambda: pooling.poolInputGradient(graph, sums, 3, y, prog)),
        (poputil.PoplibsError, "fwdChansPerGroup is 1 at least", lambda: pooling.poolInputGradient(graph, sums, 0, y, prog)),
        (
            PoplarTypeError,
            "useScaledGradient is True or False",
            lambda: pooling.poolInputGradient(graph, params, x, y, y, 1.0, prog),
        ),
    ]
    before = graph.numComputeSets(), graph.numVertices()
    for error, text, work in refused:
        with pytest.raises(error, match=text):
            work()
    assert (graph.numComputeSets(), graph.numVertices(), len(prog)) == (*before, 0)
