"""popnn.rnn against NumPy in float64: loops with a body of the caller's, and layers without gates."""

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, MissingFeature, PoplarTypeError, popops
from pypoplar.popnn import NonLinearityType, rnn
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Copy, Sequence

STEPS, BATCH, SIZE = 5, 3, 8
TANH = NonLinearityType.TANH


def drawn(named, type=FLOAT):
    random = np.random.default_rng(4)
    return {name: (random.standard_normal(tensor.shape()) / 2).astype(type.dtype) for name, tensor in named.items()}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("lengths", [None, [3], [2, 5, 0]])
def test_a_loop_with_a_body_of_its_own_is_that_of_numpy_in_both_engines(reverse, lengths):
    graph, device = new_graph(4)
    prog = Sequence()
    steps = None if lengths is None else variable(graph, UNSIGNED_INT, [len(lengths)], "lengths")
    params = rnn.RnnParams(FLOAT, BATCH, STEPS, steps, [SIZE, SIZE])
    named = {
        "input": rnn.createInputTensor(graph, params, 1),
        "kept": rnn.createOutputTensor(graph, params, 2, 1).reshape([STEPS, 2, BATCH, SIZE]),
        "state": rnn.createInitialState(graph, params, True, 1, 1),
    }
    written = {
        "history": rnn.createOutputTensor(graph, params, 1),
        "interim": rnn.createOutputTensor(graph, params, 2, 1).reshape([STEPS, 2, BATCH, SIZE]),
        "output": rnn.createOutputTensor(graph, params, 1),
    }
    calls = []

    def body(graph, time, flags, state, slice, created, initProg, name):
        calls.append(name)
        assert flags.valid() == (lengths is not None and len(lengths) > 1)
        assert (time.variableSeqFlag is not None) == flags.valid()
        assert slice.inputs[1] is None
        turn = Sequence()
        popops.mapInPlace(graph, popops.expr._1 * 0.5 + popops.expr._2, [state[0][0], slice.inputs[0]], turn)
        turn.add(Copy(slice.interimIn, slice.interimOut))
        source = state[0][0]
        if flags.valid():
            both = popops.expr._1 * popops.expr._2 - popops.expr._3
            source = popops.map(graph, both, [state[0][0], flags.mask.expand([1]), flags.inverse.expand([1])], turn)
        turn.add(Copy(source, slice.outputs[0]))
        turn.add(Copy(time.counter, created[0]))
        return turn

    last = variable(graph, UNSIGNED_INT, [1], "last", 0)
    for tensor in written.values():
        popops.zero(graph, tensor, prog)
    (final,) = rnn.Rnn(
        graph, params, reverse, [named["state"]], rnn.StateSequence(written["history"], 0), [named["input"], None], named["kept"],
        written["interim"], [written["output"]], [last], prog, body, 1, {"codeReuse": True}, "loop",
    )  # fmt: skip
    assert calls == ["loop"]
    values = drawn(named)
    for name, tensor in named.items():
        graph.createHostWrite(name, tensor)
    given = values | ({} if lengths is None else {"lengths": np.array(lengths, np.uint32)})
    results, cycles, first = {"final": final, "last": last, **written}, [], {}
    for place, mode in enumerate(MODES):
        read, engine = run(graph, device, prog, given, {} if place else results, mode)
        first = read or first
        cycles.append([step.cycles for step in engine.getReport().execution.steps])
    assert cycles[0] == cycles[1]
    count = STEPS if lengths is None else max(lengths)
    state, wanted = values["state"][0].astype(float), {name: np.zeros(tensor.shape()) for name, tensor in written.items()}
    for t in reversed(range(count)) if reverse else range(count):
        state = state * 0.5 + values["input"][t]
        wanted["history"][t], wanted["interim"][t] = state, values["kept"][t]
        lasts = np.ones([BATCH, 1]) if lengths is None or len(lengths) == 1 else (t < np.array(lengths))[:, None]
        wanted["output"][t] = state * lasts - (1 - lasts)
    np.testing.assert_allclose(first["final"][0], state, rtol=1e-5, atol=1e-6)
    assert first["last"] == (0 if reverse else count - 1)
    for name, value in wanted.items():
        np.testing.assert_allclose(first[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_sequences_are_shifted_and_sizes_are_told():
    graph, device = new_graph(16)
    params, prog = rnn.RnnParams(HALF, BATCH, STEPS, [4, SIZE]), Sequence()
    base, single = rnn.createRecurrentTensor(graph, params, 4, 2), variable(graph, HALF, [BATCH, 4], "single")
    graph.createHostWrite("base", base)
    shifted = rnn.shiftRnnTensor(graph, params, base, single, prog, 1)
    values = drawn({"base": base, "single": single}, HALF)
    read, _ = run(graph, device, prog, values, {"shifted": shifted})
    np.testing.assert_array_equal(read["shifted"], np.concatenate([values["single"][None], values["base"][:-1]]))
    assert (params.getInputBytesPerTile(graph), params.getOutputBytesPerTile(graph)) == (8, 16)
    assert params.getMaxShards(graph) == 5
    assert (params.timeSteps, params.variableTimeSteps(), params.batchVariableTimeSteps()) == (STEPS, False, False)


@pytest.mark.parametrize("weighed", [False, True])
def test_a_layer_without_gates_and_its_gradients_are_those_of_float64(weighed):
    graph, device = new_graph(4)
    prog, inputs = Sequence(), 4
    sizes = (BATCH, inputs, SIZE, FLOAT)
    named = {
        "x": rnn.createInput(graph, STEPS, *sizes),
        "h": rnn.createFwdState(graph, FLOAT, BATCH, SIZE, prog, False, False),
        "wi": rnn.createWeightsInput(graph, STEPS, *sizes),
        "wf": rnn.createWeightsFeedback(graph, BATCH, SIZE, FLOAT),
        "b": variable(graph, FLOAT, [SIZE], "b"),
        "g": variable(graph, FLOAT, [BATCH, STEPS, SIZE], "g"),
    }
    x, h, wi, wf, b, g = named.values()
    product = rnn.forwardWeightInput(graph, x, wi, prog) if weighed else None
    out = rnn.rnnFwdSequence(graph, prog, rnn.getOutputFromFwdState(h), product, b, wi, wf, x, TANH, FLOAT, False)
    results = {"out": out}
    if weighed:
        results["again"] = rnn.forwardIterate(graph, product, h, wf, b, prog, TANH)
    gradients = rnn.rnnBwdSequence(graph, True, False, prog, h, out, b, wi, wf, g, x, TANH, FLOAT)
    assert rnn.rnnBwdSequence(graph, False, True, Sequence(), h, out, b, wi, wf, g, x, TANH, FLOAT) == (None,) * 4
    results |= dict(zip(("x", "wi", "wf", "b"), gradients, strict=True))
    values = drawn(named)
    for name, tensor in named.items():
        if name not in "bg":
            graph.createHostWrite(name, tensor)
    read, _ = run(graph, device, prog, values, results)

    def outputs(changed):
        state, steps = changed["h"], []
        for t in range(STEPS):
            state = np.tanh(changed["x"][t] @ changed["wi"] + state @ changed["wf"] + changed["b"])
            steps.append(state)
        return np.array(steps)

    exact = {name: value.astype(float) for name, value in values.items()}
    for name in results.keys() & {"out", "again"}:
        np.testing.assert_allclose(read[name], outputs(exact), rtol=1e-5, atol=1e-6)
    random = np.random.default_rng(5)
    for name in ("x", "wi", "wf", "b"):
        direction = random.standard_normal(read[name].shape)
        slope = (outputs(exact | {name: exact[name] + 1e-30j * direction}) * exact["g"].swapaxes(0, 1)).sum().imag / 1e-30
        assert (read[name] * direction).sum() == pytest.approx(slope, rel=1e-4, abs=1e-5), name


def test_single_steps_back_add_up_gradients():
    graph, device = new_graph(4)
    prog = Sequence()
    named = {
        name: variable(graph, FLOAT, shape, name)
        for name, shape in {
            "g": [BATCH, SIZE], "act": [BATCH, SIZE], "wi": [4, SIZE], "wf": [SIZE, SIZE], "x": [BATCH, 4], "h": [BATCH, SIZE],
            "dwi": [4, SIZE], "dwf": [SIZE, SIZE], "db": [SIZE],
        }.items()
    }  # fmt: skip
    before = rnn.createBwdState(graph, FLOAT, BATCH, SIZE, prog)
    of_input, state = rnn.backwardGradientStep(graph, named["g"], before, named["act"], named["wi"], named["wf"], prog, TANH)
    alone = rnn.backwardGradientStep(graph, named["g"], state, named["act"], named["wf"], prog, TANH)
    rnn.paramDeltaUpdate(graph, state, named["x"], named["h"], named["dwi"], named["dwf"], named["db"], prog)
    results = {"of_input": of_input, "state": state, "alone": alone} | {f"new {name}": named[name] for name in ("dwi", "dwf", "db")}
    v = drawn(named)
    read, _ = run(graph, device, prog, v, results)
    slope = 1 - v["act"].astype(float) ** 2
    wanted = v["g"] * slope
    expected = {
        "state": wanted, "of_input": wanted @ v["wi"].T, "alone": (v["g"] + wanted @ v["wf"].T) * slope,
        "new dwi": v["dwi"] + v["x"].T @ wanted, "new dwf": v["dwf"] + v["h"].T @ wanted, "new db": v["db"] + wanted.sum(0),
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_allclose(read[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def test_flops_and_products_are_those_of_poplibs():
    assert rnn.getFwdFlops(3, 2, 5, 7) == 5 * 7 * 6 + 7 * 4 * 6 + 7 * 7 * 6 + 7 * 6 * 6 + 2 * 3 * 7
    assert rnn.getBwdFlops(3, 2, 5, 7, False) == 7 * 7 * 6 + 7 * 6 * 6
    assert rnn.getWuFlops(3, 2, 5, 7) == 5 * 7 * 6 + 5 * 5 * 7 + 7 * 7 * 6 + 5 * 49 + 5 * 7 + 5 * 7 + 49 + 7
    products = rnn.getMatMulPrePlanParameters(3, 2, 5, 7, HALF, inferenceOnly=True)
    assert [params.aShape[-2:] for params, _ in products] == [(2, 5), (2, 7)]


def test_what_makes_no_recurrence_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    params, prog = rnn.RnnParams(FLOAT, BATCH, STEPS, [SIZE, SIZE]), Sequence()
    state, flat = rnn.createInitialState(graph, params, True, 1, 1), variable(graph, FLOAT, [BATCH, SIZE], "flat")
    whole, steps = variable(graph, INT, [STEPS, BATCH, SIZE], "whole"), rnn.createOutputTensor(graph, params, 1)
    twice = rnn.createOutputTensor(graph, params, 2, 1)
    square = variable(graph, FLOAT, [SIZE, SIZE], "square")
    before = len(graph.freeze().variables.names), graph.numComputeSets()

    def loop(**changed):
        given = {"params": params, "initState": [state], "stateSequence": rnn.StateSequence(), "inputs": [steps], "numShards": 1}
        given |= {"interimIn": None, "interimOut": None, "outputs": [], "created": [], "loopFn": lambda *_: Sequence()} | changed
        return rnn.Rnn(graph, reverse=False, prog=prog, **given)

    gather = {"gatherInputs": [], "gatherFn": lambda *_: Sequence(), "stepsPerGather": 1, "numTemps": 1, "numShards": 1}
    refused = [
        (PoplibsError, lambda: loop(inputs=[flat]), "inputs.0. is FLOAT .5 steps, ..., 3 samples, size., got"),
        (PoplibsError, lambda: loop(inputs=[whole]), "inputs.0. is"),
        (PoplibsError, lambda: loop(initState=[flat]), "initState.0. is FLOAT .number, 3 samples, size."),
        (PoplibsError, lambda: loop(stateSequence=rnn.StateSequence(steps, 1)), "stateIndex is that of one of 1 states, got 1"),
        (PoplarTypeError, lambda: loop(stateSequence=rnn.StateSequence(steps, "0")), "stateIndex is a whole number, got '0'"),
        (PoplibsError, lambda: loop(inputs=[twice]), "inputs.0. is FLOAT .5 steps, ..., 3 samples, size., got"),
        (PoplibsError, lambda: loop(outputs=[steps, steps]), "outputs.0., .*, has elements of outputs.1."),
        (PoplarTypeError, lambda: loop(created=[variable(new_graph(4)[0], FLOAT, [1], "other")]), "another graph"),
        (PoplarTypeError, lambda: rnn.createInitialState(graph, params, 1, 1, 1), "isOutput is True or False, got 1"),
        (PoplibsError, lambda: rnn.shiftRnnTensor(graph, params, steps, flat.transpose(), prog, 1), "tBase has 5 steps"),
        (PoplibsError, lambda: loop(numShards=9), "numShards is 1 at most|numShards is .* at most"),
        (PoplarTypeError, lambda: loop(loopFn=3), "loopFn is a function"),
        (
            MissingFeature,
            lambda: rnn.Rnn(
                graph, params, [state], rnn.StateSequence(), [steps], interimIn=steps, prog=prog, loopFn=print, **gather
            ),
            "form that gathers",
        ),
        (PoplibsError, lambda: rnn.shiftRnnTensor(graph, params, steps, state.flatten()[:3], prog, 1), "tBase has 5 steps"),
        (PoplarTypeError, lambda: rnn.createInputTensor(graph, 3, 1), "params is a popnn.rnn.RnnParams"),
        (PoplibsError, lambda: rnn.createInput(graph, 0, 1, 1, 1, FLOAT), "numSteps is 1 at least"),
        (PoplibsError, lambda: rnn.forwardWeightInput(graph, flat, square, prog), "actIn is FLOAT or HALF .steps, batch, size."),
        (PoplibsError, lambda: rnn.forwardIterate(graph, steps, flat, flat, flat, prog, TANH), "biases is .out."),
        (
            MissingFeature,
            lambda: rnn.backwardGradientStep(graph, flat, flat, flat, square, prog, NonLinearityType.GELU),
            "GELU is not there",
        ),
        (
            PoplibsError,
            lambda: rnn.backwardGradientStep(graph, flat, flat, flat, square[0][0], square, prog, TANH),
            "weightsInput is .in, out.",
        ),
        (PoplarTypeError, lambda: rnn.getOutputFromFwdState(None), "takes a tensor, got None for fwdState"),
    ]
    for kind, refuse, words in refused:
        with pytest.raises(kind, match=words):
            refuse()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
