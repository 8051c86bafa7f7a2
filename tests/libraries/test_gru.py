"""popnn.gru against NumPy in float64: results, gradients, attention, steps that end early."""

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, InvalidOption, MissingFeature, PoplarTypeError, popnn
from pypoplar.popnn import NonLinearityType, gru
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence
from pypoplar.types import UNSIGNED_INT

TRAINING = {"inferenceOnly": False}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Case:
    """A layer, its operands by name, and what NumPy says of it."""

    def __init__(self, steps=4, batch=3, sizes=(5, 8), type=FLOAT, lengths=None, attention=False, options=None, tiles=4, **fields):
        self.graph, self.device = new_graph(tiles)
        self.prog, self.options, self.lengths, self.attention = (
            Sequence(),
            TRAINING if options is None else options,
            lengths,
            attention,
        )
        self.real = None if lengths is None else variable(self.graph, UNSIGNED_INT, [len(lengths)], "lengths")
        self.params = gru.GruParams(type, batch, steps, sizes)
        for name, value in fields.items():
            setattr(self.params, name, value)
        arguments = (self.graph, self.params, "g", self.options)
        self.input, self.state = gru.createInput(*arguments), gru.createInitialState(*arguments)
        self.weights = gru.createWeights(*arguments)
        self.tensors = {"input": self.input, "output": self.state}
        self.tensors |= {"wi": self.weights.inputWeights, "wo": self.weights.outputWeights, "b": self.weights.biases}
        if attention:
            self.tensors["scores"] = gru.createAttention(*arguments)
        random = np.random.default_rng(1)
        self.values = {
            name: (random.standard_normal(tensor.shape()) / 2).astype(type.dtype) for name, tensor in self.tensors.items()
        }
        for name, tensor in self.tensors.items():
            self.graph.createHostWrite(name, tensor)
        if lengths is not None:
            self.values["lengths"] = np.array(lengths, np.uint32)

    def forward(self):
        steps = () if self.real is None else (self.real,)
        scores = (self.tensors["scores"],) if self.attention else ()
        call = gru.auGruFwd if self.attention else gru.gruFwd
        return call(self.graph, self.params, self.state, self.input, *steps, self.weights, *scores, self.prog, "f", self.options)

    def run(self, results, mode="native"):
        read, engine = run(self.graph, self.device, self.prog, self.values, results, mode)
        return read, [step.cycles for step in engine.getReport().execution.steps]

    def expected(self, values=None):
        """The output in float64; complex numbers go through."""
        values = self.values if values is None else values
        x, h, wi, wo, b = (values[name].astype(np.result_type(values[name], np.float64)) for name in list(self.tensors)[:5])
        (r, u, c), batch, steps, outputs = self.params.places, h.shape[0], x.shape[0], []
        b = b.reshape([3, -1, b.shape[-1]])
        lengths = np.broadcast_to([steps] if self.lengths is None else self.lengths, [batch])
        for t in range(min(steps, lengths.max())):
            reset, update = (sigmoid(x[t] @ wi[k] + h @ wo[k] + b[k].sum(0)) for k in (r, u))
            inner = reset * (h @ wo[c] + b[c][1]) if self.params.resetAfter else (reset * h) @ wo[c]
            candidate = np.tanh(x[t] @ wi[c] + b[c][0] + inner)
            if self.attention:
                update = update * (1 - values["scores"][:, t, None] * np.float64(1))
            lasts = (t < lengths)[:, None]
            h = np.where(lasts, update * h + (1 - update) * candidate, 0 if self.params.outputFullSequence else h)
            outputs.append(h)
        outputs += [np.zeros_like(h)] * (steps - len(outputs))
        return np.array(outputs) if self.params.outputFullSequence else h

    def gradients(self, split):
        """A forward and a backward pass; gradients by the names of the operands."""
        output, kept = self.forward()
        arriving = variable(self.graph, self.params.rnn.dataType, output.shape(), "arriving")
        self.values["arriving"] = np.random.default_rng(2).standard_normal(output.shape()).astype(self.params.rnn.dataType.dtype)
        steps = () if self.real is None else (self.real,)
        scores = (self.tensors["scores"],) if self.attention else ()
        begin = (self.graph, self.params, self.prog, self.state, kept)
        ends = (self.weights, self.input, *steps, output, arriving, *scores, "b", self.options)
        if split:
            backward, update = (gru.auGruBwd, gru.auGruWU) if self.attention else (gru.gruBwd, gru.gruWU)
            gradient, of_input, slopes, *rest = backward(*begin, *ends)
            weights = update(*begin, slopes, self.weights, self.input, output, "w", self.options)
        else:
            gradient, of_input, weights, *rest = (gru.auGruBwdWithWU if self.attention else gru.gruBwdWithWU)(*begin, *ends)
        made = {"input": of_input, "output": gradient, "wi": weights.inputWeights, "wo": weights.outputWeights, "b": weights.biases}
        if rest:
            made["scores"] = rest[0]
        return output, {name: tensor for name, tensor in made.items() if tensor is not None}


CASES = {
    "plain": {},
    "half": {"type": HALF, "sizes": (8, 16)},
    "after": {"resetAfter": True, "tiles": 16},
    "the last": {"outputFullSequence": False},
    "order": {"cellOrder": [popnn.BasicGruCellUnit(number) for number in (2, 0, 1)], "attention": True},
    "after, order": {"cellOrder": [popnn.BasicGruCellUnit(number) for number in (1, 2, 0)], "resetAfter": True, "attention": True},
    "one step": {"steps": 1, "batch": 1, "sizes": (1, 1), "tiles": 1},
    "variable": {"lengths": [2, 4, 0], "steps": 5},
    "variable, the last": {"lengths": [1, 3, 9], "outputFullSequence": False, "resetAfter": True},
    "all variable, too many": {"lengths": [2**31]},
    "all variable": {"lengths": [3], "attention": True, "outputFullSequence": False},
}


@pytest.mark.parametrize("name", CASES)
def test_passes_are_those_of_float64_and_gradients_those_of_complex_steps(name):
    case = Case(**CASES[name])
    half = case.params.rnn.dataType is HALF
    output, gradients = case.gradients(split=name in ("plain", "after, order", "order"))
    read, cycles = case.run(gradients | {"result": output})
    if name in ("plain", "after, order"):
        assert case.run({}, "interpret")[1] == cycles
    close = {"rtol": 2e-2, "atol": 1e-2} if half else {"rtol": 2e-5, "atol": 2e-6}
    np.testing.assert_allclose(read.pop("result").astype(np.float64), case.expected(), **close)
    assert set(read) == set(case.tensors)
    random = np.random.default_rng(3)
    for operand, gradient in read.items():
        assert gradient.shape == case.values[operand].shape
        for _ in range(3):  # slopes in directions at random
            direction = random.standard_normal(gradient.shape)
            changed = case.values | {operand: case.values[operand] + 1e-30j * direction}
            wanted = (case.expected(changed) * case.values["arriving"].astype(float)).sum().imag / 1e-30
            scale = np.linalg.norm(gradient.astype(np.float64)) * np.linalg.norm(direction)
            assert abs((gradient.astype(np.float64) * direction).sum() - wanted) <= (2e-2 if half else 2e-6) * scale + 1e-6, operand


@pytest.mark.parametrize("fields", [{}, {"resetAfter": True}, {"outputFullSequence": False, "attention": True}])
def test_inference_keeps_nothing(fields):
    case = Case(options={}, **fields)
    output, kept = case.forward()
    assert kept is None
    reads = [case.run({} if place else {"output": output}, mode) for place, mode in enumerate(MODES)]
    np.testing.assert_allclose(reads[0][0]["output"], case.expected(), rtol=2e-5, atol=2e-6)
    assert reads[0][1] == reads[1][1]


def test_flops_are_those_of_poplibs_and_params_can_be_copied():
    params = gru.GruParams(HALF, 2, 3, [5, 7])
    params.resetAfter = True
    copy = gru.GruParams(params)
    copy.batchSize, copy.timeSteps, copy.layerSizes, copy.dataType = 4, 6, [3, 4], FLOAT  # other names of the sizes
    sizes = copy.rnn
    assert (sizes.dataType, sizes.batchSize, sizes.maxTimeSteps, sizes.layerSizes) == (FLOAT, 4, 6, [3, 4])
    assert (params.rnn.dataType, params.rnn.batchSize, params.rnn.maxTimeSteps, params.rnn.layerSizes) == (HALF, 2, 3, [5, 7])
    copy = gru.GruParams(params)
    assert (copy.resetAfter, copy.rnn.layerSizes, copy.cellOrder) == (True, [5, 7], gru.getDefaultBasicGruCellOrder())
    assert gru.getBasicGruCellFwdFlops(params) == (5 + 7) * 3 * 7 * 2 * 3 * 2 + 5 * 3 * 2 * 7
    assert gru.getBasicGruCellBwdFlops(params) == (5 + 7) * 3 * 7 * 2 * 3 * 2 + 8 * 3 * 2 * 7
    assert gru.getBasicGruCellWuFlops(params) == (5 + 7 + 1) * 3 * 7 * 2 * 3 * 2


def test_what_makes_no_layer_is_refused_before_the_graph_changes():
    case = Case(calcInputGradients=False)
    graph, params, prog = case.graph, case.params, case.prog
    kept, output = variable(graph, FLOAT, [4, 4, 3, 8], "kept"), variable(graph, FLOAT, [4, 3, 8], "shown")
    long = variable(graph, UNSIGNED_INT, [4], "long")
    before = len(graph.freeze().variables.names), graph.numComputeSets()

    def forward(**changed):
        given = {"params": params, "stateInit": case.state, "in_": case.input, "weights": case.weights, "options": None} | changed
        return gru.gruFwd(graph, fwdProg=prog, **given)

    def backward(**changed):
        given = {"params": params, "fwdOutputInit": case.state, "fwdIntermediatesSeq": kept, "weights": case.weights} | changed
        given = {"fwdInputSeq": case.input, "fwdOutput": output, "gradLayerNext": output, "options_": TRAINING} | given
        return gru.gruBwd(graph, prog=prog, **given)

    changed = gru.GruParams(params)
    changed.cellOrder = [0, 0, 1]
    other = gru.GruParams(FLOAT, 3, 4, [5, 8], NonLinearityType.SWISH)
    unordered, sizeless = gru.GruParams(params), gru.GruParams(params)
    unordered.cellOrder, sizeless.rnn = None, None
    refused = [
        (PoplibsError, lambda: gru.GruParams(FLOAT, 3, 4, [5]), "layerSizes are"),
        (PoplarTypeError, lambda: gru.createInput(graph, 3), "params is a popnn.gru.GruParams"),
        (PoplibsError, lambda: forward(params=changed), "each of the three units"),
        (PoplibsError, lambda: forward(params=unordered), "each of the three units of a cell once, got None"),
        (PoplarTypeError, lambda: forward(params=sizeless), "params.rnn is a popnn.rnn.RnnParams, got None"),
        (MissingFeature, lambda: forward(params=other), "SWISH is not there"),
        (PoplibsError, lambda: forward(realTimeSteps=long), "varTimeSteps has an INT or UNSIGNED_INT"),
        (PoplibsError, lambda: forward(stateInit=case.input), "stateInit is .batch, out."),
        (PoplarTypeError, lambda: forward(weights=gru.GruWeights()), "weights.inputWeights is missing"),
        (InvalidOption, lambda: forward(options={"preCalcWeights": True}), "has no option 'preCalcWeights'"),
        (PoplibsError, lambda: backward(options_=None), "true by default, nothing is kept"),
        (PoplibsError, lambda: backward(fwdIntermediatesSeq=output), "fwdIntermediates is .steps, matrices, batch, out."),
        (PoplibsError, lambda: backward(gradLayerNext=case.state), "outputGrad is as output"),
        (
            PoplibsError,
            lambda: gru.gruWU(graph, params, prog, case.state, kept, kept, case.weights, case.input, output, "", TRAINING),
            "bwdIntermediates is",
        ),
    ]
    for kind, refuse, words in refused:
        with pytest.raises(kind, match=words):
            refuse()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert backward()[1] is None
