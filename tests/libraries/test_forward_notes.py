"""Backward passes of recurrent layers say so when what they are given is of another forward pass."""

import pytest
from library_programs import new_graph, variable

from pypoplar import FLOAT, INT
from pypoplar.popnn import NonLinearityType, gru, lstm
from pypoplar.poputil import duplicate
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

TRAINING = {"inferenceOnly": False}


class Layers:
    """Layers of one size; `forward` gives output and intermediates, `backward` what `lstmBwd` or `gruBwd` gives of them."""

    def __init__(self, library):
        self.graph, self.library, self.prog = new_graph(2)[0], library, Sequence()
        self.params = self.new_params()
        arguments = self.graph, self.params
        self.input, self.state = library.createInput(*arguments), library.createInitialState(*arguments)
        self.weights = library.createWeights(*arguments)
        self.grad = variable(self.graph, FLOAT, [2, 1, 3], "grad")

    def new_params(self):
        return (lstm.LstmParams if self.library is lstm else gru.GruParams)(FLOAT, 1, 2, [2, 3])

    def forward(self, params=None, name="first", attention=()):
        call = lstm.lstmFwd if self.library is lstm else gru.auGruFwd if attention else gru.gruFwd
        ends = self.weights, *attention, self.prog, name, TRAINING
        output, *_, kept = call(self.graph, params or self.params, self.state, self.input, *ends)
        return output, kept

    def backward(self, output, kept, params=None, attention=()):
        call = lstm.lstmBwd if self.library is lstm else gru.auGruBwd if attention else gru.gruBwd
        begin = self.graph, params or self.params, self.prog, self.state, kept, self.weights, self.input, output
        last = [None] if self.library is lstm else attention
        return call(*begin, self.grad, *last, "b", TRAINING)[2]

    def update(self, output, kept, slopes):
        call = lstm.lstmWU if self.library is lstm else gru.gruWU
        begin = self.graph, self.params, self.prog, self.state
        return call(*begin, kept, slopes, self.weights, self.input, output, "w", TRAINING)


@pytest.mark.parametrize("library", [lstm, gru])
def test_intermediates_and_results_are_of_one_forward_pass(library):
    layers = Layers(library)
    output, kept = layers.forward()
    other, other_kept = layers.forward(name="second")
    with pytest.raises(PoplibsError, match=r"got fwdIntermediates of .*Fwd 'second/.*' and output of .*Fwd 'first/"):
        layers.backward(output, other_kept)
    slopes = layers.backward(other, other_kept)
    with pytest.raises(PoplibsError, match=r"got fwdIntermediates of .* 'first/.*' and bwdIntermediates of .* 'second/"):
        layers.update(output, kept, slopes)
    copies = [duplicate(layers.graph, tensor, layers.prog) for tensor in (output, other_kept)]
    layers.update(*copies, layers.backward(*copies))  # of which nothing is known


@pytest.mark.parametrize("library", [lstm, gru])
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("activation", NonLinearityType.RELU, "with activation TANH, not RELU"),
        ("recurrentActivation", NonLinearityType.HARD_SIGMOID, "with recurrentActivation SIGMOID, not HARD_SIGMOID"),
        ("cellOrder", None, r"with cellOrder \[0, 1, 2.*\], not \[.*2, 1, 0\]"),
        ("varTimeSteps", None, "with varTimeSteps False, not True"),
    ],
)
def test_parameters_of_a_backward_pass_are_those_of_the_forward_pass(library, field, value, words):
    layers = Layers(library)
    output, kept = layers.forward()
    changed = layers.new_params()
    if field == "varTimeSteps":
        changed.rnn.varTimeSteps = variable(layers.graph, INT, [1], "steps")
    else:
        setattr(changed, field, changed.cellOrder[::-1] if field == "cellOrder" else value)
    with pytest.raises(PoplibsError, match=rf"fwdIntermediates is of popnn\..*Fwd 'first/.*Fwd' {words}"):
        layers.backward(output, kept, changed)


def test_attention_scores_are_there_in_both_passes_or_in_none():
    layers = Layers(gru)
    scores = [gru.createAttention(layers.graph, layers.params)]
    with pytest.raises(PoplibsError, match="with attention True, not False"):
        layers.backward(*layers.forward(attention=scores))
    with pytest.raises(PoplibsError, match="with attention False, not True"):
        layers.backward(*layers.forward(), attention=scores)
