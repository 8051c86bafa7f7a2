"""poplin's convolutions against plain NumPy: all transforms, gradients, biases, reports, and what is refused."""

import io
from itertools import combinations

import numpy as np
import pytest
from attrs import evolve
from convolution_reference import conv_params, reference_convolution
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, call, new_graph, run, variable

from pypoplar import (
    FLOAT,
    HALF,
    Engine,
    Graph,
    InvalidOption,
    InvalidTileMapping,
    MissingFeature,
    PoplarIndexError,
    PoplarTypeError,
    TensorShapeError,
    UnknownVertexType,
    poplin,
    setStochasticRounding,
)
from pypoplar.poplin import ConvParams, multiconv
from pypoplar.poplin.convolution import plan_execution
from pypoplar.poplin.convolution.calls import chosen_form
from pypoplar.poplin.convolution.calls.chosen_form import Canonical
from pypoplar.poplin.convolution.calls.plain_forms import plain_forms
from pypoplar.poplin.convolution.calls.tile_shares import ConvolutionJob, share_tiles
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poplin.convolution.layout import operand_layout
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

# Operands are small whole numbers, so every product and sum is exact in float, and all but the largest in half, whatever the order.


def operands(params, seed=0, largest=4):
    random = np.random.default_rng(seed)
    shapes = (
        (params.batchSize, params.getNumInputChans(), *params.inputFieldShape),
        (params.numConvGroups, params.outputChannelsPerConvGroup, params.inputChannelsPerConvGroup, *params.kernelShape),
        (params.batchSize, params.getNumOutputChans(), *params.getOutputFieldShape()),
    )
    return [random.integers(-largest, largest + 1, shape).astype(params.inputType.dtype) for shape in shapes]


def convolve(params, input, weights, flipped=False, tiles=16, mode="native", options=None):
    def function(graph, t, prog):
        return poplin.convolution(graph, *t, params, flipped, prog, "c", options)

    return call(function, [params.inputType] * 2, [input, weights], tiles, mode)


@examples(20)
@given(conv_params(FLOAT), st.sampled_from([1, 4, 16]))
def test_a_convolution_with_any_transforms_is_that_of_numpy(params, tiles):
    input, weights, _ = operands(params)
    result, _ = convolve(params, input, weights, tiles=tiles)
    np.testing.assert_array_equal(result, reference_convolution(params, input, weights))


@pytest.fixture
def form_number(monkeypatch):
    """Let convolutions be written in the way of a number, of those that there are."""

    def choose(number):
        chosen_form._chosen.cache_clear()
        monkeypatch.setattr(chosen_form, "plain_forms", lambda params, most: [plain_forms(params, most)[number]])

    yield choose
    chosen_form._chosen.cache_clear()


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize(
    ("field", "kernel", "dilation", "kernel_dilation", "stride"),
    [
        ([5, 4], [3, 3], [2, 2], [1, 1], [1, 1]),
        ([6], [4], [3], [1], [2]),
        ([4], [3], [4], [2], [1]),
        ([3, 5], [2, 2], [1, 3], [1, 1], [1, 2]),
    ],
)
def test_zeros_between_inputs_give_the_same_in_every_form(number, field, kernel, dilation, kernel_dilation, stride, form_number):
    params = ConvParams(FLOAT, 2, field, kernel, 2, 3, 2)
    params.inputTransform.dilation, params.kernelTransform.dilation = dilation, kernel_dilation
    params.inputTransform.paddingLower, params.inputTransform.paddingUpper = [2] * len(field), [3] * len(field)
    params.outputTransform.stride = stride
    form_number(number)
    input, weights, _ = operands(params)
    result, _ = convolve(params, input, weights)
    np.testing.assert_array_equal(result, reference_convolution(params, input, weights))


@pytest.mark.parametrize("kernel", [1, 3])
def test_half_partial_sums_are_rounded_at_random_unless_the_option_says_otherwise(kernel):
    params = ConvParams(HALF, HALF, 2, [12], [kernel], 5, 6, 1)
    random = np.random.default_rng(kernel)
    input, weights = (random.standard_normal(part.shape).astype(np.float16) for part in operands(params)[:2])

    def convolved(at_random, off, mode="native"):
        def function(graph, t, prog):
            setStochasticRounding(graph, prog, at_random)
            options = {"partialsType": "half", "disableSRForAMPVertices": off}
            return poplin.convolution(graph, *t, params, False, prog, "c", options)

        return call(function, [HALF, HALF], [input, weights], 1, mode)[0]

    nearest, result = convolved(False, False), convolved(True, False)
    assert (convolved(True, True) == nearest).all()
    assert (convolved(True, False, "interpret") == result).all()
    assert 0.2 < (result != nearest).mean() < 0.9


@examples(12)
@given(conv_params(HALF), st.sampled_from([HALF, FLOAT]))
def test_halves_are_convolved_in_float_by_both_engines_alike(params, output):
    params.outputType = output
    input, weights, _ = operands(params, largest=2)
    (native, engine), (interpreted, other) = (convolve(params, input, weights, mode=mode) for mode in MODES)
    assert native.dtype == output.dtype
    np.testing.assert_array_equal(native, interpreted)
    np.testing.assert_array_equal(native, reference_convolution(params, input, weights))
    assert engine.getReport().execution.totalCycles == other.getReport().execution.totalCycles


@examples(12)
@given(conv_params(FLOAT))
def test_gradients_are_adjoint_to_the_convolution(params):
    input, weights, deltas = operands(params)
    backward = poplin.getGradientParams(params)
    assert backward.getOutputFieldShape() == params.inputFieldShape
    flipped = np.flip(weights.swapaxes(1, 2), tuple(range(3, weights.ndim)))
    expected = reference_convolution(backward, deltas, flipped)
    forward = (reference_convolution(params, input, weights) * deltas).sum()
    assert (expected * input).sum() == forward  # <conv(x, w), y> = <x, bwd(y, w)>
    moved, _ = convolve(backward, deltas, weights, flipped=True)
    np.testing.assert_array_equal(moved, expected)

    def function(graph, t, prog):
        return poplin.calculateWeightDeltas(graph, *t, params, prog)

    update, _ = call(function, [FLOAT] * 2, [deltas, input])
    assert update.shape == weights.shape
    assert (update.astype(float) * weights).sum() == forward  # = <w, wu(x, y)>


@examples(8)
@given(conv_params(FLOAT, dims=2), st.integers(0, 10**6))
def test_gradients_are_what_differences_of_the_convolution_say(params, seed):
    input, weights, deltas = operands(params)

    def function(graph, t, prog):
        return poplin.calculateWeightDeltas(graph, *t, params, prog)

    update, _ = call(function, [FLOAT] * 2, [deltas, input])
    backward, _ = convolve(poplin.getGradientParams(params), deltas, weights, flipped=True)
    for array, gradient, name in ((weights, update, "weights"), (input, backward, "input")):
        if array.size:
            moved = {"input": input.copy(), "weights": weights.copy()}
            place = np.unravel_index(seed % array.size, array.shape)
            moved[name][place] += 1  # linear: a difference of 1 is exact
            change = reference_convolution(params, **moved) - reference_convolution(params, input, weights)
            assert (change * deltas).sum() == gradient[place]


@pytest.mark.parametrize("scale", [0.5, "tensor"])
@pytest.mark.parametrize(("type", "master"), [(FLOAT, FLOAT), (HALF, HALF), (HALF, FLOAT), (FLOAT, HALF)])
def test_weights_and_biases_are_updated_by_scaled_gradients(type, master, scale):
    params = ConvParams(type, 2, [6, 5], [3, 2], 2, 3, 2)
    params.outputTransform.stride = [2, 1]
    input, weights, deltas = operands(params, largest=2)
    biases, weights = np.arange(6).astype(master.dtype), weights.astype(master.dtype)
    graph, device = new_graph()
    values = {"input": input, "weights": weights, "deltas": deltas, "biases": biases, "scale": np.array([0.5], np.float32)}
    types = {"scale": FLOAT, "weights": master, "biases": master}
    t = {name: variable(graph, types.get(name, type), value.shape, name) for name, value in values.items()}
    prog = Sequence()
    factor = t["scale"] if scale == "tensor" else scale
    poplin.convolutionWeightUpdate(graph, t["deltas"], t["weights"], t["input"], params, factor, prog)
    poplin.convolutionBiasUpdate(graph, t["deltas"], t["biases"], factor, {}, prog)
    read, _ = run(graph, device, prog, values, {"weights": t["weights"], "biases": t["biases"]})
    np.testing.assert_array_equal(read["biases"], biases + 0.5 * deltas.sum((0, 2, 3)))
    update = poplin.getWeightUpdateParams(params)
    acts = input.reshape(2, 2, 2, 6, 5).transpose(2, 1, 0, 3, 4).reshape(2, 4, 6, 5)
    gradient = reference_convolution(update, acts, deltas.reshape(2, 2, 3, *deltas.shape[2:]).transpose(1, 2, 0, 3, 4))
    np.testing.assert_array_equal(read["weights"], weights + 0.5 * gradient.reshape(2, 2, 3, 3, 2).transpose(1, 2, 0, 3, 4))


@examples(12)
@given(conv_params(FLOAT, dims=2), st.booleans())
def test_tensors_laid_out_for_a_convolution_give_the_same_into_an_output_of_its_own(params, biased):
    input, weights, _ = operands(params)
    graph, device = new_graph()
    cache = poplin.PlanningCache()
    t = [poplin.createInput(graph, params, "input", {}, cache), poplin.createWeights(graph, params, "weights", cache=cache)]
    out = poplin.createConvOutput(graph, params, "out", cache=cache)
    assert [list(tensor.shape()) for tensor in t] == [list(input.shape), list(weights.shape)]
    for name, tensor in zip(("x", "w"), t, strict=True):
        graph.createHostWrite(name, tensor)
    prog = Sequence()
    poplin.convolutionWithOutput(graph, *t, out, params, False, prog, cache=cache)
    expected = reference_convolution(params, input, weights)
    values = {"x": input, "w": weights}
    assert cache.size() == 1
    if biased and out.numElements():
        biases = poplin.createBiases(graph, out, params, cache=cache)
        graph.createHostWrite("b", biases)
        values["b"] = np.arange(params.getNumOutputChans(), dtype=np.float32)
        poplin.addBias(graph, out, biases, prog)
        expected = expected + values["b"][:, None, None]
    read, _ = run(graph, device, prog, values, {"out": out})
    np.testing.assert_array_equal(read["out"], expected)


@pytest.mark.parametrize("flipped", [False, True])
def test_operands_that_lie_otherwise_are_copied_once_where_that_takes_fewer_cycles(flipped, monkeypatch):
    params = ConvParams(HALF, 2, [8, 8], [3, 3], 16, 16, 1)
    input, weights, _ = operands(params, largest=1)

    def cycles():
        result, engine = convolve(params, input, weights, flipped, 64)
        used = np.flip(weights.swapaxes(1, 2), (3, 4)) if flipped else weights
        np.testing.assert_array_equal(result, reference_convolution(params, input, used))
        return engine.getReport().execution.totalCycles.total

    copied = cycles()
    for name in ("planned_input", "planned_weights"):
        monkeypatch.setattr(plan_execution, name, lambda graph, plan, tensor, prog, name: tensor)
    assert copied < 0.8 * cycles()


def test_operands_are_transposed_in_blocks_where_that_takes_fewer_cycles(monkeypatch):
    """The images of a batch are the channels of a gradient, whose neighbours lie in 4 tensors of 64 channels each."""
    params = ConvParams(HALF, 4, [14, 14], [1, 1], 64, 64, 1)
    input, _, deltas = operands(params, largest=1)

    def update():
        graph, device = new_graph(16)
        x, y = (variable(graph, HALF, [4, 14, 14, 64], name).dimRoll(3, 1) for name in ("x", "y"))
        prog = Sequence()
        result = poplin.calculateWeightDeltas(graph, y, x, params, prog, "update")
        values = {"x": input.transpose(0, 2, 3, 1), "y": deltas.transpose(0, 2, 3, 1)}
        read, engine = run(graph, device, prog, values, {"update": result})
        execution = engine.getReport().execution
        return read["update"], execution.totalCycles.total, {step.program.name for step in execution.steps}

    result, cycles, names = update()
    assert any(name.endswith("transposed") for name in names)
    monkeypatch.setattr(operand_layout, "best_blocks", lambda graph, tensor: None)
    plain, more, _ = update()
    np.testing.assert_array_equal(result, plain)
    np.testing.assert_array_equal(result.astype(float).sum(), np.einsum("nihw,nohw->", input.astype(float), deltas.astype(float)))
    assert cycles < more


@pytest.mark.parametrize("padding", [0, 1])
def test_the_fields_of_samples_are_taken_one_behind_the_other_where_the_gradient_of_weights_is_a_product(padding):
    """Channels lie in blocks, within which the places of a sample are neighbours: a tile takes what follows in memory."""
    params = ConvParams(HALF, 3, [12, 12], [1, 1], 32, 32, 1)
    params.inputTransform.paddingLower = params.inputTransform.paddingUpper = [padding, padding]  # cuts elements of the kernel off
    input, _, deltas = operands(params, largest=1)
    graph, device = new_graph(64)
    memory = {name: variable(graph, HALF, [3, 2, *value.shape[2:], 16], name) for name, value in {"x": input, "y": deltas}.items()}
    x, y = (memory[name].dimRoll(4, 2).reshape(value.shape) for name, value in {"x": input, "y": deltas}.items())
    prog = Sequence()
    result = poplin.calculateWeightDeltas(graph, y, x, params, prog, "update")
    values = {
        name: value.reshape(3, 2, 16, *value.shape[2:]).transpose(0, 1, 3, 4, 2)
        for name, value in {"x": input, "y": deltas}.items()
    }
    read, _ = run(graph, device, prog, values, {"update": result})
    there = np.pad(input.astype(float), [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    np.testing.assert_array_equal(read["update"][0, :, :, 0, 0], np.einsum("niyx,noyx->oi", there, deltas.astype(float)))
    (weights,) = {
        (number, place)
        for number, codelet in enumerate(graph.freeze().codelets)
        for place, field in enumerate(codelet.fields)
        if "Conv" in codelet.name and field.name == "weights"
    }
    frozen = graph.freeze()
    edges = frozen.edges
    own = (frozen.vertices.codelet[edges.vertex] == weights[0]) & (edges.field == weights[1])
    assert np.diff(edges.first_run)[own].mean() < 3 + 12 * padding  # of two samples at most, the rows of which are cut


@pytest.mark.parametrize(
    ("type", "batch", "field", "channels", "less"), [(FLOAT, 2, 4, 64, 0.75), (HALF, 4, 8, 32, 0.5), (FLOAT, 1, 8, 32, 0.9)]
)
def test_an_input_that_is_folded_is_copied_where_its_elements_are_wanted_for_many_of_the_kernel(
    type, batch, field, channels, less, monkeypatch
):
    """The images of a batch lie far apart, and each is wanted for nine elements of the gradient."""
    params = ConvParams(type, batch, [field, field], [3, 3], channels, channels, 1)
    params.inputTransform.paddingLower = params.inputTransform.paddingUpper = [1, 1]
    input, _, deltas = (np.moveaxis(one, 1, -1) for one in operands(params, largest=1))

    def update():
        graph, device = new_graph(64)
        x, y = (variable(graph, type, [batch, field, field, channels], name).dimRoll(3, 1) for name in ("x", "y"))
        prog = Sequence()
        result = poplin.calculateWeightDeltas(graph, y, x, params, prog, "update")
        read, engine = run(graph, device, prog, {"x": input, "y": deltas}, {"update": result})
        return read["update"], engine.getReport().execution.totalCycles.total

    result, cycles = update()
    padded = np.pad(input.astype(float), [(0, 0), (1, 1), (1, 1), (0, 0)])
    for row, column in np.ndindex(3, 3):
        there = padded[:, row : row + field, column : column + field]
        np.testing.assert_array_equal(result[0, :, :, row, column], np.einsum("nyxi,nyxo->oi", there, deltas.astype(float)))
    monkeypatch.setattr(plan_execution, "planned_input", lambda graph, plan, tensor, prog, name: tensor)
    gathered, more = update()
    np.testing.assert_array_equal(result, gathered)
    assert cycles < less * more


def test_a_convolution_of_digits_and_its_gradients_run_on_all_tiles_of_a_chip():
    params = ConvParams(FLOAT, 4, [28, 28], [3, 3], 1, 16, 1)
    params.inputTransform.paddingLower = params.inputTransform.paddingUpper = [1, 1]
    params.outputTransform.stride = [2, 2]
    input, weights, deltas = operands(params)
    graph, device = new_graph(1472)
    x, w = poplin.createInput(graph, params, "x"), poplin.createWeights(graph, params, "w")
    y = poplin.createConvOutput(graph, params, "y")
    for tensor, name in ((x, "x"), (w, "w"), (y, "y")):
        graph.createHostWrite(name, tensor)
    prog = Sequence()
    results = {
        "out": poplin.convolution(graph, x, w, params, False, prog, "forward"),
        "back": poplin.convolution(graph, y, w, poplin.getGradientParams(params), True, prog, "backward"),
        "update": poplin.calculateWeightDeltas(graph, y, x, params, prog, "update"),
    }
    read, _ = run(graph, device, prog, {"x": input, "w": weights, "y": deltas}, results)
    expected = reference_convolution(params, input, weights)
    np.testing.assert_array_equal(read["out"], expected)
    assert (read["back"].astype(float) * input).sum() == (read["update"].astype(float) * weights).sum() == (expected * deltas).sum()


def test_tensors_of_a_virtual_graph_stay_on_its_tiles():
    graph, _ = new_graph(16)
    half, prog = graph.createVirtualGraph(4, 12), Sequence()
    params = ConvParams(FLOAT, 2, [6, 5], [3, 3], 3, 4, 2)
    tensors = [poplin.createInput(half, params), poplin.createWeights(half, params), poplin.createConvOutput(half, params)]
    out = poplin.convolution(half, *tensors[:2], params, False, prog)
    args = [multiconv.CreateTensorArgs(params)] * 2
    tensors += [out, poplin.createBiases(half, out), multiconv.createInput(half, args, 1), multiconv.createWeights(half, args, 0)]
    assert {tile for t in tensors for tile, held in enumerate(graph.getTileMapping(t)) if held} <= set(range(4, 12))


def test_a_result_can_be_written_and_is_the_same_in_every_run():
    params = ConvParams(FLOAT, 1, [4], [2], 1, 2, 1)
    params.outputTransform.paddingLower, params.inputTransform.dilation = [2], [2]
    graph, device = new_graph()
    input, weights, _ = operands(params)
    t = [variable(graph, FLOAT, value.shape, name) for name, value in (("x", input), ("w", weights))]
    prog = Sequence()
    out = poplin.convolution(graph, *t, params, False, prog)
    assert out.isParallelWriteable()
    graph.createHostWrite("out", out)
    graph.createHostRead("read", out)
    engine = Engine(graph, prog)
    engine.load(device)
    for name, value in (("x", input), ("w", weights)):
        engine.writeTensor(name, value)
    for _ in range(2):
        engine.writeTensor("out", np.full(out.shape(), np.nan, np.float32))
        engine.run()
        np.testing.assert_array_equal(engine.readTensor("read"), reference_convolution(params, input, weights))


@pytest.mark.parametrize("name", ["batchSize", "inputChannelsPerConvGroup", "outputChannelsPerConvGroup", "numConvGroups"])
def test_sizes_of_0_give_empty_results_or_zeros(name):
    params = ConvParams(FLOAT, 2, [4, 4], [3, 3], 2, 3, 1)
    setattr(params, name, 0)
    graph, device = new_graph()
    t = [poplin.createInput(graph, params, "x"), poplin.createWeights(graph, params, "w")]
    prog = Sequence()
    out = poplin.convolution(graph, *t, params, False, prog)
    read, _ = run(graph, device, prog, {}, {"out": out})
    np.testing.assert_array_equal(read["out"], np.zeros((params.batchSize, params.getNumOutputChans(), 2, 2)))


def test_weights_are_transposed_and_flipped_also_onto_themselves():
    random = np.random.default_rng(3)
    weights = random.integers(-9, 9, (2, 3, 3, 4, 2)).astype(np.float32)
    graph, device = new_graph()
    t = variable(graph, FLOAT, weights.shape, "w")
    out = variable(graph, FLOAT, weights.shape, "o")
    prog = Sequence()
    poplin.weightsTransposeChansFlipXY(graph, t, out, prog)
    poplin.weightsTransposeChansFlipXY(graph, t, t, prog)
    params = ConvParams(FLOAT, 4, [1], [1], 5, 7, 2)
    fc = variable(graph, FLOAT, [2, 5, 7, 1], "fc")
    transposed = poplin.fullyConnectedWeightTranspose(graph, fc, params, prog)
    values = {"w": weights, "fc": random.integers(-9, 9, (2, 5, 7, 1)).astype(np.float32)}
    read, _ = run(graph, device, prog, values, {"out": out, "w": t, "fc": transposed})
    expected = np.flip(weights.swapaxes(1, 2), (3, 4))
    np.testing.assert_array_equal(read["out"], expected)
    np.testing.assert_array_equal(read["w"], expected)
    np.testing.assert_array_equal(read["fc"], values["fc"].swapaxes(1, 2))


@examples(40)
@given(conv_params(FLOAT, dims=1), st.data())
def test_ranges_of_indices_are_the_least_that_hold_what_meets(params, data):
    def some(size):
        begin = data.draw(st.integers(0, size))
        return begin, data.draw(st.integers(begin, size))

    outputs, kernels, inputs = (some(size) for size in (params.getOutputSize(0), params.kernelShape[0], params.inputFieldShape[0]))
    triples = [
        (o, k, i)
        for o in range(*outputs)
        for k in range(params.kernelShape[0])
        if (i := poplin.getInputIndex(0, o, k, params)) is not None
    ]
    assert all(poplin.getKernelIndex(0, o, i, params) == k for o, k, i in triples)

    def least(place, kernels=None, inputs=None):
        found = [
            t[place] for t in triples if (kernels is None or t[1] in range(*kernels)) and (inputs is None or t[2] in range(*inputs))
        ]
        return (min(found), max(found) + 1) if found else (0, 0)

    assert poplin.getOutputRangeForKernelRange(0, outputs, kernels, params) == least(0, kernels)
    assert poplin.getOutputRangeForInputRange(0, outputs, inputs, params) == least(0, None, inputs)
    assert poplin.getInputRange(0, outputs, kernels, params) == least(2, kernels)
    assert poplin.getInputRange(0, outputs, params) == least(2)
    assert poplin.getKernelRange(0, outputs, inputs, params) == least(1, None, inputs)
    for k in range(*kernels):
        assert poplin.getOutputRangeForKernelIndex(0, outputs, k, params) == least(0, (k, k + 1))
        assert poplin.getInputRange(0, outputs, k, params) == least(2, (k, k + 1))
    for i in range(*inputs):
        assert poplin.getOutputRangeForInputIndex(0, outputs, i, params) == least(0, None, (i, i + 1))
        assert poplin.getKernelRange(0, outputs, i, params) == least(1, None, (i, i + 1))
    for o in range(*outputs):
        assert poplin.getInputRange(0, o, params) == poplin.getInputRange(0, (o, o + 1), params)


def test_flops_and_perfect_cycles_count_no_padding():
    params = ConvParams(HALF, 2, [8, 8], [3, 3], 16, 32, 2)
    assert poplin.getFwdFlops(params) == poplin.getBwdFlops(params) == poplin.getWuFlops(params) == 2 * 2 * 2 * 16 * 32 * 36 * 9
    params.inputTransform.paddingLower = params.inputTransform.paddingUpper = [1, 1]
    assert poplin.getFwdFlops(params) == 2 * 2 * 2 * 16 * 32 * (8 + 7 + 7) ** 2
    graph, _ = new_graph(16)
    assert poplin.getFwdPerfectCycleCount(graph, params) == poplin.getFwdFlops(params) / 2 / (64 * 16)
    params.inputType = params.outputType = FLOAT
    assert poplin.getWuPerfectCycleCount(graph, params) == poplin.getBwdPerfectCycleCount(graph, params)
    assert poplin.getWuPerfectCycleCount(graph, params) == poplin.getFwdFlops(params) / 2 / (2 * 16)


def test_plans_are_reported_and_found_again():
    graph, _ = new_graph()
    params = ConvParams(HALF, 2, [8, 8], [3, 3], 16, 32, 1)
    cache, out, update = poplin.PlanningCache(), io.StringIO(), io.StringIO()
    poplin.reportPlanInfo(out, graph, params, {}, cache)
    costs = poplin.reportPlanEstimatedCosts(graph, params, {}, cache)
    assert (cache.size(), costs.cycles > 0, costs.memory > 0) == (1, True, True)
    assert f"cycles {costs.cycles}" in out.getvalue()
    poplin.reportWeightUpdatePlanInfo(update, graph, params, {}, cache)
    poplin.preplanConvolutions([(graph.getTarget(), params, {})], cache)
    poplin.preplanConvolutions(graph, [(graph.getTarget(), params, {"partialsType": "half"})], cache)
    assert cache.size() == 3
    assert poplin.PlanCosts() == poplin.PlanCosts(poplin.PlanCosts.unknown, poplin.PlanCosts.unknown)
    poplin.convolutionValidateOptions({"partialsType": "half"})


def test_plans_are_written_as_constraints_that_can_be_given(tmp_path):
    graph, _ = new_graph()
    params = ConvParams(HALF, 2, [8, 8], [3, 3], 16, 32, 1)
    options = {"planConstraintsOutputFilename": str(tmp_path / "plan"), "pass": "TRAINING_FWD"}
    costs = poplin.reportPlanEstimatedCosts(graph, params, options)
    poplin.reportWeightUpdatePlanInfo(io.StringIO(), graph, params, options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan_FWD.json", "plan_WU.json"]
    given = {"planConstraints": (tmp_path / "plan_FWD.json").read_text(encoding="utf-8")}
    assert poplin.reportPlanEstimatedCosts(graph, params, given) == costs


def two_layers(graph, type=FLOAT):
    """Two equal convolutions and another one, of multiconv, with their values."""
    shapes = [([5, 5], [3, 3], 2, 3, 2), ([4, 6], [1, 2], 3, 2, 1), ([5, 5], [3, 3], 2, 3, 2)]
    params = [ConvParams(type, 2, *sizes) for sizes in shapes]
    created = [multiconv.CreateTensorArgs(one, {}, f"n{number}") for number, one in enumerate(params)]
    return params, created, [operands(one, seed) for seed, one in enumerate(params)]


@pytest.mark.parametrize("plan", ["serial", "parallel"])
def test_several_convolutions_at_once_give_what_each_gives(plan):
    graph, device = new_graph()
    params, created, values = two_layers(graph)
    options = {"planType": plan}
    inputs = [multiconv.createInput(graph, created, number, options) for number in range(3)]
    weights = [multiconv.createWeights(graph, created, number, options) for number in range(3)]
    turned = [graph.addVariable(FLOAT, w.dimShufflePartial([1], [2]).shape(), "turned") for w in weights]
    for w in turned:
        graph.setTileMapping(w, 0)
    deltas = [variable(graph, FLOAT, value[2].shape, f"y{n}") for n, value in enumerate(values)]
    prog = Sequence()
    args = [multiconv.ConvolutionArgs(*each) for each in zip(inputs, weights, params, strict=True)]
    results = multiconv.convolution(graph, args, False, prog, "m", options)
    flipped = [multiconv.ConvolutionArgs(weights=each) for each in turned]
    for own, one in zip(flipped, params, strict=True):
        own.params = poplin.getGradientParams(one)
    multiconv.weightsTransposeChansFlipXY(graph, flipped, weights, prog, options, "t", None)
    gradients = [multiconv.CalculateWeightDeltasArgs(*each) for each in zip(deltas, inputs, params, strict=True)]
    updates = multiconv.calculateWeightDeltas(graph, gradients, prog, "u", options)
    scaled = [multiconv.ConvWeightUpdateArgsScalar(*each) for each in zip(deltas, weights, inputs, [2.0] * 3, params, strict=True)]
    multiconv.convolutionWeightUpdate(graph, scaled, prog, "s", options)
    written = {}
    for number, value in enumerate(values):
        for tensor, array, name in ((inputs, value[0], "x"), (weights, value[1], "w")):
            graph.createHostWrite(f"{name}{number}", tensor[number])
            written[f"{name}{number}"] = array
        written[f"y{number}"] = value[2]
    named = {"r": results, "t": turned, "u": updates, "w": weights}
    read, _ = run(graph, device, prog, written, {f"{name}{n}": t for name, several in named.items() for n, t in enumerate(several)})
    for number, (one, (x, w, y)) in enumerate(zip(params, values, strict=True)):
        np.testing.assert_array_equal(read[f"r{number}"], reference_convolution(one, x, w))
        np.testing.assert_array_equal(read[f"t{number}"], np.flip(w.swapaxes(1, 2), (3, 4)))
        assert (read[f"u{number}"] * w).sum() == (reference_convolution(one, x, w) * y).sum()
        np.testing.assert_array_equal(read[f"w{number}"], w + 2 * read[f"u{number}"])


def beside(options, mode="native", tiles=32):
    """Three convolutions that differ, of multiconv: engine, results, and the tiles that each result lies on."""
    graph, device = new_graph(tiles)
    params = [
        ConvParams(HALF, 2, *sizes) for sizes in (([8, 8], [3, 3], 16, 16, 1), ([8], [2], 3, 5, 2), ([6, 6], [1, 1], 32, 8, 1))
    ]
    params[1].inputTransform.dilation = [2]
    created = [multiconv.CreateTensorArgs(one) for one in params]
    args, values = [], {}
    for number, one in enumerate(params):
        tensors = [create(graph, created, number, options) for create in (multiconv.createInput, multiconv.createWeights)]
        for tensor, array, name in zip(tensors, operands(one, number, 1), "xw", strict=False):
            graph.createHostWrite(f"{name}{number}", tensor)
            values[f"{name}{number}"] = array
        args.append(multiconv.ConvolutionArgs(*tensors, one))
    prog = Sequence()
    results = multiconv.convolution(graph, args, False, prog, "m", options)
    read, engine = run(graph, device, prog, values, {str(number): result for number, result in enumerate(results)}, mode)
    for number, one in enumerate(params):
        np.testing.assert_array_equal(read[str(number)], reference_convolution(one, values[f"x{number}"], values[f"w{number}"]))
    return engine, [{tile for tile, held in enumerate(graph.getTileMapping(result)) if held} for result in results]


def test_convolutions_that_differ_are_computed_side_by_side_on_tiles_of_their_own():
    options = {"perConvReservedTiles": 4}
    (engine, held), (interpreted, _), (serial, _) = beside(options), beside(options, "interpret"), beside({"planType": "serial"})
    cycles = [each.getReport().execution.totalCycles.total for each in (engine, interpreted, serial)]
    assert cycles[0] == cycles[1] < 0.7 * cycles[2]
    assert not any(one & other for one, other in combinations(held, 2))


def test_convolutions_that_would_be_slower_side_by_side_follow_each_other():
    job = ConvolutionJob(Canonical(ConvParams(HALF, 4, [8, 8], [3, 3], 32, 32, 1)), ConvolutionOptions(), 1)
    small = ConvolutionJob(Canonical(ConvParams(HALF, 1, [4], [1], 4, 4, 1)), ConvolutionOptions(), 1)
    target = new_graph(64)[0].getTarget()
    shares = share_tiles(target, [job, small], 2, None)
    assert shares.beside
    assert shares.bounds[0][1] - shares.bounds[0][0] > 50
    assert not share_tiles(target, [job, small], 32, None).beside  # half of the tiles are too many for the small one
    less = evolve(job, options=ConvolutionOptions(memory=0.0))
    assert not share_tiles(target, [less, less, small], 2, None).beside  # on half of the tiles they take more memory


@pytest.mark.parametrize(
    ("mistake", "error", "words"),
    [
        (lambda g, a, p: multiconv.createInput(g, a, 3), PoplarIndexError, "inputIndex is 3, and args has 3 convolutions"),
        (lambda g, a, p: multiconv.createInput(g, {1}, 0), PoplarTypeError, "a set has no order"),
        (lambda g, a, p: multiconv.createInput(g, [3], 0), PoplarTypeError, "each a multiconv.CreateTensorArgs, got 3 as args[0]"),
        (lambda g, a, p: multiconv.createInput(g, a, 0, {"planType": "x"}), InvalidOption, "serial, parallel"),
        (lambda g, a, p: multiconv.createInput(g, a, 0, {"cycleBackOff": 2}), InvalidOption, "cycleBackOff from 0 to 1"),
        (lambda g, a, p: multiconv.convolution(g, a, False, p), PoplarTypeError, "each a multiconv.ConvolutionArgs"),
        (lambda g, a, p: multiconv.convolution(g, [multiconv.ConvolutionArgs()], False, p), PoplibsError, "args[0]"),
        (lambda g, a, p: multiconv.convolution(g, [multiconv.ConvolutionArgs(params=a[0].params)], False, p), PoplarTypeError,
         "args[0]: in_ = Tensor() belongs to no graph"),
    ],
)  # fmt: skip
def test_mistakes_around_several_convolutions_are_told(mistake, error, words):
    graph, _ = new_graph()
    with pytest.raises(error) as raised:
        mistake(graph, two_layers(graph)[1], Sequence())
    assert words in str(raised.value)


def test_the_products_of_a_fully_connected_layer_can_be_planned():
    layer = poplin.fc.FullyConnectedParams(2, 4, 6, 8)
    products = poplin.fc.getMatMulPrePlanParameters(layer, {"partialsType": "half"}, HALF, False)
    assert [(each.aShape, each.bShape) for each, _ in products] == [
        ((2, 4, 6), (2, 6, 8)),
        ((2, 4, 8), (2, 8, 6)),
        ((2, 6, 4), (2, 4, 8)),
    ]
    assert [options["fullyConnectedPass"] for _, options in products] == ["TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU"]
    assert poplin.fc.getMatMulPrePlanParameters(layer, {}, HALF, True)[0][1] == {"fullyConnectedPass": "INFERENCE_FWD"}
    target, cache = new_graph()[0].getTarget(), poplin.PlanningCache()
    convs = [(target, ConvParams(HALF, 2, [5], [3], 2, 3, 2), {})]
    poplin.preplan(convs, [(target, *product) for product in products], cache)
    assert cache.size() == 4
    with pytest.raises(PoplarTypeError, match=r"parameters is a poplin\.fc\.FullyConnectedParams"):
        poplin.fc.getMatMulPrePlanParameters(3, {}, HALF, True)


class Mistakes:
    """Fitting arguments, to be made wrong."""

    def __init__(self):
        self.graph, _ = new_graph()
        self.params = ConvParams(FLOAT, 2, [6, 6], [3, 3], 2, 3, 1)
        shapes = {"x": [2, 2, 6, 6], "w": [1, 3, 2, 3, 3], "y": [2, 3, 4, 4], "b": [3], "half": [2, 2, 6, 6]}
        for name, shape in shapes.items():
            setattr(self, name, variable(self.graph, HALF if name == "half" else FLOAT, shape, name))
        self.unmapped = self.graph.addVariable(FLOAT, [2, 2, 6, 6], "unmapped")
        self.other = variable(new_graph()[0], FLOAT, [2, 2, 6, 6], "other")
        self.prog = Sequence()

    def conv(self, in_=None, weights=None, params=None, flipped=False, *rest):
        given = [own if given is None else given for given, own in ((in_, self.x), (weights, self.w), (params, self.params))]
        return poplin.convolution(self.graph, *given, flipped, self.prog, *rest)

    def without_codelets(self):
        graph = Graph(self.graph.getTarget())
        tensors = [variable(graph, FLOAT, tensor.shape(), tensor.getDebugStr()) for tensor in (self.x, self.w)]
        return poplin.convolution(graph, *tensors, self.params, False, self.prog)

    def four_dimensions(self):
        return ConvParams(FLOAT, 1, [1] * 4, [1] * 4, 1, 1, 1)


MISTAKES = [
    (lambda m: m.conv(m.y), PoplibsError,
     "poplin.convolution: in_ is [batch, input channels, *field] = [2, 2, 6, 6] by the parameters"),
    (lambda m: m.conv(None, m.x), PoplibsError, "weights is [groups, output channels, input channels, *kernel] = [1, 3, 2, 3, 3]"),
    (lambda m: m.conv(None, m.w, None, True), PoplibsError,
     "weights is [groups, input channels, output channels, *kernel] = [1, 2, 3, 3, 3]"),
    (lambda m: m.conv(m.half), PoplibsError, "in_ is FLOAT by the parameters, got <Tensor 'half' HALF [2, 2, 6, 6]>"),
    (lambda m: m.conv(m.unmapped), InvalidTileMapping, "unmapped"),
    (lambda m: m.conv(m.other), PoplarTypeError,
     "poplin.convolution: in_ = <Tensor 'other' FLOAT [2, 2, 6, 6]> belongs to another graph"),
    (lambda m: m.conv(None, None, 3), PoplarTypeError, "params is a poplin.ConvParams, got 3"),
    (lambda m: m.conv(None, None, ConvParams()), PoplibsError, "inputType is FLOAT or HALF, got None"),
    (lambda m: m.conv(None, None, m.four_dimensions()), MissingFeature, "a field has 3 dimensions at most in pypoplar, got 4"),
    (lambda m: m.conv(None, None, None, 1), PoplarTypeError, "transposeAndFlipWeights is True or False, got 1"),
    (lambda m: m.conv(None, None, None, False, {}), PoplarTypeError, "a debug name is a string"),
    (lambda m: m.conv(None, None, None, False, "c", {"partialType": "half"}), InvalidOption, "partialsType"),
    (lambda m: m.conv(None, None, None, False, "c", {}, {}), PoplarTypeError, "cache is a poplin.PlanningCache, got {}"),
    (lambda m: poplin.convolutionWithOutput(m.graph, m.x, m.w, m.x, m.params, False, m.prog), PoplibsError,
     "out is [batch, output channels, *output field] = [2, 3, 4, 4]"),
    (lambda m: poplin.convolutionWithOutput(m.graph, m.x, m.w, m.y[:1].broadcast(2), m.params, False, m.prog), PoplibsError,
     "cannot be written"),
    (lambda m: poplin.calculateWeightDeltas(m.graph, m.x, m.x, m.params, m.prog), PoplibsError, "zDeltas is"),
    (lambda m: poplin.calculateWeightDeltas(m.graph, m.y, m.y, m.params, m.prog), PoplibsError, "activations is"),
    (lambda m: poplin.convolutionWeightUpdate(m.graph, m.y, m.x, m.x, m.params, 1.0, m.prog), PoplibsError, "weights is"),
    (lambda m: poplin.convolutionWeightUpdate(m.graph, m.y, m.w, m.x, m.params, m.b, m.prog), PoplibsError, "scale is a number or"),
    (lambda m: poplin.convolutionWeightUpdate(m.graph, m.y, m.w, m.x, m.params, "1", m.prog), PoplarTypeError,
     "takes a tensor, got '1'"),
    (lambda m: poplin.convolutionWeightUpdate(m.graph, m.y, m.w, m.x, m.params, float("nan"), m.prog), PoplibsError,
     "scale is a number, got nan"),
    (lambda m: poplin.convolutionWeightUpdate(m.graph, m.y, m.w, m.x, m.params, 10**400, m.prog), PoplarTypeError,
     "scale of poplin.convolutionWeightUpdate is FLOAT, which cannot hold 1000"),
    (lambda m: poplin.createInput(m.graph, ConvParams(FLOAT, 1, [2**31] * 2, [1, 1], 1, 1, 1)), TensorShapeError,
     "poplin.createInput: params: the input: a shape of 4611686018427387904 elements"),
    (lambda m: poplin.createBiases(m.graph, m.unmapped), InvalidTileMapping,
     "poplin.createBiases: 144 of 144 elements of activations"),
    (lambda m: poplin.convolutionBiasUpdate(m.graph, m.y, m.b, float("nan"), {}, m.prog), PoplibsError,
     "scale is a number, got nan"),
    (lambda m: m.without_codelets(), UnknownVertexType, "call poplin.addCodelets(graph) first"),
    (lambda m: poplin.addBias(m.graph, m.x, m.b, m.prog), PoplibsError, "biases are [channels] = [2] of FLOAT, as in_ has them"),
    (lambda m: poplin.addBias(m.graph, m.b, m.b, m.prog), PoplibsError, "in_ is [batch, channels, *field]"),
    (lambda m: poplin.convolutionBiasUpdate(m.graph, m.x, m.b, 1.0, {}, m.prog), PoplibsError, "biases are [channels] = [2]"),
    (lambda m: poplin.createBiases(m.graph, m.x, m.params), PoplibsError, "activations is [batch, output channels, *output field]"),
    (lambda m: poplin.weightsTransposeChansFlipXY(m.graph, m.w, m.w, m.prog), PoplibsError,
     "weightsOut is [groups, input channels, output channels, *kernel] = [1, 2, 3, 3, 3]"),
    (lambda m: poplin.fullyConnectedWeightTranspose(m.graph, m.w, m.params, m.prog), PoplibsError,
     "the field has one dimension, got 2"),
    (lambda m: poplin.reportPlanInfo(3, m.graph, m.params), PoplibsError, "out is a text file, such as sys.stdout, got 3"),
    (lambda m: poplin.preplanConvolutions([3], poplin.PlanningCache()), PoplarTypeError, "a target, parameters and options each"),
    (lambda m: poplin.getInputIndex(2, 0, 0, m.params), PoplarIndexError, "dim is 2, and the field has 2 dimensions"),
    (lambda m: poplin.getInputIndex(0, 4, 0, m.params), PoplarIndexError, "outputIndex is 4, and there are 4"),
    (lambda m: poplin.getInputRange(0, (0, 5), m.params), PoplarIndexError, "outputRange is [0, 5), and there are 4"),
    (lambda m: poplin.getInputRange(0, (3, 2), m.params), PoplibsError, "outputRange begins before it ends, got [3, 2)"),
    (lambda m: poplin.getOutputRangeForInputRange(0, 3, (0, 1), m.params), PoplarTypeError, "outputRange is a pair of"),
    (lambda m: poplin.getDilatedSize(3, 0), PoplibsError, "dilation is 1 at least, got 0"),
    (lambda m: poplin.createInput(m.graph, m.params, {}), PoplarTypeError, "a debug name is a string"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "error", "words"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_told_before_the_graph_is_changed(mistake, error, words):
    given = Mistakes()
    before = given.graph.addVariable(FLOAT, [1]).runs().start[0]
    with pytest.raises(error) as raised:
        mistake(given)
    assert words in str(raised.value)
    assert given.graph.addVariable(FLOAT, [1]).runs().start[0] == before + 1
