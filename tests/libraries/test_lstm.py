"""popnn.lstm against NumPy in float64: results, options, cells, steps that end early."""

import numpy as np
import pytest
from library_programs import new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, InvalidOption, MissingFeature, PoplarTypeError, popnn
from pypoplar.popnn import NonLinearityType, lstm
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

FUNCTIONS = {
    NonLinearityType.TANH: np.tanh,
    NonLinearityType.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
    NonLinearityType.RELU: lambda x: np.where(x.real > 0, x, 0),
    NonLinearityType.HARD_SIGMOID: lambda x: np.where(abs(x.real) < 2.5, 0.2 * x + 0.5, (x.real > 0) * 1.0),
}


class Case:
    """A layer, its operands by name, and what NumPy says of it."""

    def __init__(self, steps=4, batch=3, sizes=(5, 8), type=FLOAT, lengths=None, options=None, tiles=4, seed=0, **fields):
        self.graph, self.device = new_graph(tiles)
        self.prog, self.options, self.sizes, self.lengths = Sequence(), options, list(sizes), lengths
        given = [steps] if lengths is None else [steps, variable(self.graph, UNSIGNED_INT, [len(lengths)], "lengths")]
        activations = [fields.pop(name) for name in ("activation", "recurrentActivation") if name in fields]
        self.params = lstm.LstmParams(type, batch, *given, self.sizes, *activations)
        for name, value in fields.items():
            setattr(self.params, name, value)
        arguments = (self.graph, self.params, "l", options)
        self.input, self.state = lstm.createInput(*arguments), lstm.createInitialState(*arguments)
        self.weights = lstm.createWeights(*arguments)
        self.tensors = {"input": self.input, "output": self.state.output, "cell": self.state.cellState}
        self.tensors |= {"wi": self.weights.inputWeights, "wo": self.weights.outputWeights, "b": self.weights.biases}
        random = np.random.default_rng(seed)
        self.values = {
            name: (random.standard_normal(tensor.shape()) / 2).astype(type.dtype) for name, tensor in self.tensors.items()
        }
        for name, tensor in self.tensors.items():
            self.graph.createHostWrite(name, tensor)
        if lengths is not None:
            self.values["lengths"] = np.array(lengths, np.uint32)

    def forward(self):
        return lstm.lstmFwd(self.graph, self.params, self.state, self.input, self.weights, self.prog, "l", self.options)

    def run(self, results, mode="native"):
        read, engine = run(self.graph, self.device, self.prog, self.values, results, mode)
        return read, [step.cycles for step in engine.getReport().execution.steps]

    def both(self, results):
        """The results of both engines, which are equal bit for bit, cycles too."""
        read, cycles = self.run(results)
        again, as_many = self.run({}, "interpret")
        assert not again
        assert cycles == as_many
        return read

    def expected(self, values=None):
        """Output and cell state in float64; complex numbers go through."""
        values = self.values if values is None else values
        x, h, c, wi, wo, b = (values[name].astype(np.result_type(values[name], np.float64)) for name in self.tensors)
        gate, other = FUNCTIONS[self.params.recurrentActivation], FUNCTIONS[self.params.activation]
        batch, steps, outputs = h.shape[0], x.shape[0], []
        lengths = np.broadcast_to([steps] if self.lengths is None else self.lengths, [batch])
        for t in range(min(steps, lengths.max())):  # the loop ends with the longest
            lasts = (t < lengths)[:, None]
            units = [(x[t] @ wi[k] if self.params.doInputWeightCalc else 0) + h @ wo[k] + b[k] for k in self.params.places]
            forget, into, out = (gate(units[k]) for k in (0, 1, 3))
            updated = forget * c + into * other(units[2])
            shown = out * other(updated)
            c = np.where(lasts, updated, c if self.params.preserveFinalState else 0)
            h = np.where(lasts, shown, 0 if self.params.outputFullSequence else h)
            outputs.append(h)
        outputs += [np.zeros_like(h)] * (steps - len(outputs))
        return (np.array(outputs) if self.params.outputFullSequence else h), c

    def with_gradients(self, split=False):
        """A forward and a backward pass; gradients by the names of the operands."""
        output, _, kept = self.forward()
        random = np.random.default_rng(7)
        state = lstm.createInitialState(self.graph, self.params)
        arriving = {"of_output": variable(self.graph, self.params.rnn.dataType, output.shape(), "of_output")}
        if not self.lengths:
            arriving |= {"last.output": state.output, "last.cell": state.cellState}
            self.graph.createHostWrite("last.output", state.output)
            self.graph.createHostWrite("last.cell", state.cellState)
        for name, tensor in arriving.items():
            self.values[name] = random.standard_normal(tensor.shape()).astype(self.params.rnn.dataType.dtype)
        last = None if self.lengths else state
        passed = (self.graph, self.params, self.prog, self.state, kept)
        ends = (self.weights, self.input, output)
        if split:
            grad, of_input, slopes = lstm.lstmBwd(*passed, *ends, arriving["of_output"], last, "b", self.options)
            of_weights = lstm.lstmWU(*passed, slopes, *ends, "w", self.options)
        else:
            grad, of_input, of_weights = lstm.lstmBwdWithWU(*passed, *ends, arriving["of_output"], last, "b", self.options)
        gradients = {"output": grad.output, "cell": grad.cellState, "input": of_input, "b": of_weights.biases}
        gradients |= {"wi": of_weights.inputWeights, "wo": of_weights.outputWeights}
        return {name: tensor for name, tensor in gradients.items() if tensor is not None}

    def loss(self, values):
        """What the gradients are of, in complex numbers."""
        output, cell = self.expected(values)
        total = (output * self.values["of_output"].astype(float)).sum()
        if not self.lengths:
            final = output[-1] if self.params.outputFullSequence else output
            total += (final * self.values["last.output"].astype(float)).sum()
            total += (cell * self.values["last.cell"].astype(float)).sum()
        return total


CASES = {
    "plain": {},
    "half": {"type": HALF, "sizes": (8, 16)},
    "all at once": {"options": {"preCalcWeights": True, "partialsType": "float", "availableMemoryProportion": 0.3}},
    "inference": {"options": {"inferenceOnly": True}},
    "inference of the last": {"options": {"inferenceOnly": True}, "outputFullSequence": False},
    "the last": {"outputFullSequence": False, "options": {"recomputationMode": "cellAndTanh"}},
    "one step": {"steps": 1, "batch": 1, "sizes": (1, 1), "tiles": 1},
    "without input": {"doInputWeightCalc": False},
    "order": {"cellOrder": [popnn.BasicLstmCellUnit(number) for number in (3, 1, 0, 2)]},
    "relu": {"activation": NonLinearityType.RELU, "recurrentActivation": NonLinearityType.HARD_SIGMOID, "tiles": 16},
    "relu, half": {"type": HALF, "activation": NonLinearityType.HARD_SIGMOID, "recurrentActivation": NonLinearityType.RELU},
    "variable": {"lengths": [2, 4, 0], "steps": 5},
    "all variable": {"lengths": [3], "options": {"preCalcWeights": True}},
    "variable, the last": {"lengths": [4, 2**32 - 1, 2], "outputFullSequence": False, "activation": NonLinearityType.SIGMOID},
    "variable, kept": {"lengths": [1, 3, 2], "preserveFinalState": True},
}


@pytest.mark.parametrize("name", CASES)
def test_a_forward_pass_is_that_of_float64(name):
    case = Case(**CASES[name])
    output, cell, kept = case.forward()
    assert (kept is None) == name.startswith("inference")
    results = {"output": output, "cell": cell}
    read = case.both(results) if name in ("plain", "half", "variable, kept") else case.run(results)[0]
    close = {"rtol": 2e-2, "atol": 1e-2} if case.params.rnn.dataType is HALF else {"rtol": 2e-5, "atol": 2e-6}
    for result, wanted in zip(("output", "cell"), case.expected(), strict=True):
        np.testing.assert_allclose(read[result].astype(np.float64), wanted, **close, err_msg=result)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("inference") and name != "without input"])
def test_gradients_are_those_of_complex_steps(name):
    case = Case(**CASES[name])
    gradients = case.with_gradients(split=name in ("order", "the last"))
    assert set(gradients) == set(case.tensors)
    read = case.both(gradients) if name in ("plain", "variable") else case.run(gradients)[0]
    random = np.random.default_rng(3)
    for operand, gradient in read.items():
        assert gradient.shape == case.values[operand].shape
        for _ in range(3):  # slopes in directions at random
            direction = random.standard_normal(gradient.shape)
            changed = case.values | {operand: case.values[operand] + 1e-30j * direction}
            wanted = case.loss(changed).imag / 1e-30
            scale = np.linalg.norm(gradient.astype(np.float64)) * np.linalg.norm(direction)
            relative = 2e-2 if case.params.rnn.dataType is HALF else 2e-6
            assert abs((gradient.astype(np.float64) * direction).sum() - wanted) <= relative * scale + 1e-6, operand


def test_gradients_of_inputs_are_there_if_asked_for():
    case = Case(calcInputGradients=False, doInputWeightCalc=False, options={"weightAccumulatorsType": "float", "rnnStepsPerWU": 2})
    assert set(case.with_gradients()) == {"output", "cell", "b", "wo"}
    case = Case(steps=2)
    output, _, kept = case.forward()
    arguments = (case.graph, case.params, case.prog, case.state, kept, case.weights, case.input, output, output)
    gradient, _, slopes = lstm.lstmBwd(*arguments, None)
    assert (gradient.output.shape(), slopes.shape()) == ([3, 8], [2, 4, 3, 8])
    lstm.lstmBwd(*arguments, case.state.cellState)  # the gradient of the last cell state alone


def test_flops_and_products_are_those_of_poplibs():
    params = lstm.LstmParams(HALF, 2, 3, [5, 7])
    assert lstm.getBasicLstmCellFwdFlops(params) == (5 + 7) * 4 * 7 * 2 * 3 * 2 + 4 * 3 * 2 * 7
    assert lstm.getBasicLstmCellBwdFlops(params) == (5 + 7) * 4 * 7 * 2 * 3 * 2 + 6 * 3 * 2 * 7
    assert lstm.getBasicLstmCellWuFlops(params) == (5 + 7) * 4 * 7 * 2 * 3 * 2 + 4 * 7 * 2 * 3 * 2
    products = lstm.getMatMulPrePlanParameters(params, {"partialsType": "half"})
    assert [options["fullyConnectedPass"] for _, options in products] == ["TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU"]
    assert products[0][0].aShape[-2:] == (2, 12)
    assert len(lstm.getMatMulPrePlanParameters(params, {"inferenceOnly": True})) == 1


def test_the_number_of_steps_does_not_change_the_program():
    sizes = []
    for steps in (3, 30):
        case = Case(steps=steps)
        case.forward()
        sizes.append(case.graph.numComputeSets())
    assert sizes[0] == sizes[1]


def test_a_layer_of_the_whole_machine_takes_few_cycles_a_step():
    case = Case(steps=8, batch=16, sizes=(64, 64), type=HALF, tiles=1472)
    output, _, _ = case.forward()
    read, cycles = case.run({"output": output})
    np.testing.assert_allclose(read["output"].astype(np.float64), case.expected()[0], rtol=4e-2, atol=2e-2)
    assert sum(cycles) < 8 * 4_000


def test_states_can_be_filled_with_zeros_and_be_one_tensor():
    case = Case()
    lstm.zeroInitialState(case.graph, case.state, case.prog)
    read, _ = case.run({"state": case.state.getAsTensor()})
    assert read["state"].shape == (2, 3, 8)
    assert not read["state"].any()


def test_sizes_have_the_same_values_by_both_of_their_names():
    params = lstm.LstmParams(FLOAT, 3, 4, [5, 8])
    params.batchSize, params.timeSteps, params.layerSizes, params.dataType = 2, 6, [3, 4], HALF
    sizes = params.rnn
    assert (sizes.batchSize, sizes.maxTimeSteps, sizes.timeSteps, sizes.layerSizes, sizes.dataType) == (2, 6, 6, [3, 4], HALF)
    sizes.timeSteps = 7
    assert (params.timeSteps, sizes.maxTimeSteps) == (7, 7)


def test_what_makes_no_layer_is_refused_before_the_graph_changes():
    case, other = Case(), Case()
    graph, params, prog = case.graph, case.params, case.prog
    names = [unit.name for unit in lstm.getDefaultBasicLstmCellOrder()]
    assert names == [f"BASIC_LSTM_CELL_{name}" for name in ("FORGET_GATE", "INPUT_GATE", "CANDIDATE", "OUTPUT_GATE")]
    three = variable(graph, INT, [3], "three")
    before = len(graph.freeze().variables.names), graph.numComputeSets()

    def forward(**changed):
        given = {"params": params, "stateInit": case.state, "in_": case.input, "weights": case.weights, "options": None} | changed
        return lstm.lstmFwd(graph, fwdProg=prog, **given)

    def with_fields(**fields):
        changed = lstm.LstmParams(FLOAT, 3, 4, [5, 8])
        for name, value in fields.items():
            setattr(changed, name, value)
        return changed

    weights = lstm.LstmWeights(case.weights.inputWeights, case.weights.inputWeights, case.weights.biases)
    refused = [
        (PoplibsError, lambda: lstm.LstmParams(INT, 3, 4, [5, 8]), "dataType is FLOAT or HALF"),
        (PoplibsError, lambda: lstm.LstmParams(FLOAT, 0, 4, [5, 8]), "batchSize is 1 at least"),
        (PoplibsError, lambda: lstm.LstmParams(FLOAT, 3, 4, [5, 8, 8]), "layerSizes are"),
        (PoplibsError, lambda: lstm.LstmParams(FLOAT, 4, 4, three, [5, 8]), "varTimeSteps has an INT or UNSIGNED_INT"),
        (PoplarTypeError, lambda: lstm.LstmParams(FLOAT, 3, "many", [5, 8]), "timeSteps is a"),
        (PoplarTypeError, lambda: lstm.createInput(graph, "params"), "params is a popnn.lstm.LstmParams"),
        (PoplibsError, lambda: forward(params=with_fields(cellOrder=[0, 1, 1, 3])), "each of the four units"),
        (PoplibsError, lambda: forward(params=with_fields(cellOrder=None)), "each of the four units"),
        (PoplibsError, lambda: forward(params=with_fields(batchSize=0)), "batchSize is 1 at least, got 0"),
        (PoplarTypeError, lambda: forward(params=with_fields(layerSizes=None)), "layerSizes is a list of whole numbers, got None"),
        (PoplarTypeError, lambda: forward(params=with_fields(rnn=None)), "params.rnn is a popnn.rnn.RnnParams, got None"),
        (AttributeError, lambda: setattr(params.rnn, "batchsize", 3), "batchsize"),
        (PoplarTypeError, lambda: forward(weights=None), "weights is a popnn.lstm.LstmWeights, got None"),
        (PoplarTypeError, lambda: lstm.zeroInitialState(graph, None, prog), "initialState is a popnn.lstm.LstmState, got None"),
        (PoplarTypeError, lambda: forward(params=with_fields(outputFullSequence="no")), "outputFullSequence is True or False"),
        (MissingFeature, lambda: forward(params=with_fields(activation=NonLinearityType.GELU)), "GELU is not there"),
        (PoplarTypeError, lambda: forward(params=with_fields(activation="tanh")), "activation is a popnn.NonLinearityType"),
        (PoplibsError, lambda: forward(in_=case.state.output), "in_ is .steps, batch, in. = FLOAT .4, 3, 5., got"),
        (PoplibsError, lambda: forward(weights=weights), "weights.outputWeights is .units, out, out. = FLOAT"),
        (PoplarTypeError, lambda: forward(weights=lstm.LstmWeights()), "weights.inputWeights is missing"),
        (PoplarTypeError, lambda: forward(stateInit=lstm.LstmState()), "stateInit.output is missing"),
        (PoplarTypeError, lambda: forward(in_=other.input), "another graph"),
        (InvalidOption, lambda: forward(options={"preCalcWeight": True}), "preCalcWeights"),
        (InvalidOption, lambda: forward(options={"recomputationMode": "some"}), "one of none, cellAndTanh, full"),
        (MissingFeature, lambda: forward(options={"recomputationMode": "full"}), "recomputationMode 'full'"),
        (PoplibsError, lambda: forward(options={"availableMemoryProportion": 2}), "from 0 to 1"),
        (PoplibsError, lambda: forward(options={"numShards": 0}), "numShards"),
    ]
    kept = variable(graph, FLOAT, [4, 6, 3, 8], "kept")
    output = variable(graph, FLOAT, [4, 3, 8], "shown")
    before = len(graph.freeze().variables.names), graph.numComputeSets()

    def backward(**changed):
        given = {"params": params, "fwdIntermediates": kept, "outputGrad": output, "lastStepStateGrad": None} | changed
        given = {"fwdStateInit": case.state, "weights": case.weights, "input": case.input, "output": output} | given
        return lstm.lstmBwd(graph, prog=prog, **given)

    varying = lstm.LstmParams(FLOAT, 3, 4, three, [5, 8])
    refused += [
        (PoplibsError, lambda: backward(fwdIntermediates=output), "fwdIntermediates is .steps, matrices, batch, out."),
        (PoplibsError, lambda: backward(options={"recomputationMode": "cellAndTanh"}), "= FLOAT .4, 4, 3, 8., got"),
        (PoplibsError, lambda: backward(outputGrad=case.state.output), "outputGrad is as output"),
        (PoplibsError, lambda: backward(options={"inferenceOnly": True}), "nothing is kept"),
        (PoplibsError, lambda: backward(params=varying, lastStepStateGrad=case.state), "with varTimeSteps the state"),
        (PoplibsError, lambda: backward(params=with_fields(doInputWeightCalc=False)), "the input has no gradient"),
        (PoplarTypeError, lambda: backward(lastStepStateGrad=3), "lastStepStateGrad is a"),
        (
            PoplibsError,
            lambda: lstm.lstmWU(graph, params, prog, case.state, kept, kept, case.weights, case.input, output),
            "bwdIntermediates is .steps, units, batch, out.",
        ),
    ]
    for kind, refuse, words in refused:
        with pytest.raises(kind, match=words):
            refuse()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
