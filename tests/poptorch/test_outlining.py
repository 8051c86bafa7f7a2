"""Operations that repeat are a function of the graph, called with copies: results are those of the program without, to the bit."""

import re

import pytest
import torch
from outlining_rig import (
    ROWS,
    WIDTH,
    Attention,
    Convolved,
    Dropped,
    Joined,
    Network,
    Noisy,
    Pooled,
    assert_equal,
    calls_of,
    run_of,
)

from pypoplar import poptorch
from pypoplar.errors import InvalidOption
from pypoplar.poptorch.outlining import outlined_runs
from pypoplar.poptorch.outlining.tensors_within import tensors_within
from pypoplar.report.naming.called_steps import steps_of


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", [Attention, Convolved, Dropped, Noisy, Pooled])
def test_results_with_functions_are_those_without_to_the_bit(kind, training):
    plain = run_of(lambda: Network(kind, 6), False, training=training)
    outlined = run_of(lambda: Network(kind, 6), True, training=training)
    assert calls_of(outlined[2])
    assert not calls_of(plain[2])
    assert_equal(plain, outlined)
    vertices = [model.getReport().compilation.graph.numVertices for *_, model in (plain, outlined)]
    assert vertices[1] < vertices[0]


def test_dropouts_are_in_no_function():
    counts = []
    for outline in (False, True):
        *_, model = run_of(lambda: Network(Dropped, 6), outline, calls=1)
        dropouts = [step for step in model.getReport().execution.steps if "native_dropout" in step.name and step.compute_cycles]
        counts.append((len(dropouts), sum(step.compute_cycles for step in dropouts)))
    assert counts[0] == counts[1]
    assert counts[0][0] == 12


@pytest.mark.parametrize("count", [3, 4, 5])
def test_numbers_drawn_for_what_is_put_together_of_results_of_a_call_are_those_without_functions(count):
    plain, outlined = (run_of(lambda: Network(Joined, count), outline) for outline in (False, True))
    assert calls_of(outlined[2])
    assert_equal(plain, outlined)


def test_copies_are_named_by_the_module_whose_call_they_belong_to():
    *_, model = run_of(lambda: Network(Attention, 5), True, training=False)
    named = {match[0] for name in calls_of(model) if (match := re.match(r"layers/\d|forward", name))}
    assert len(named) > 1


def test_inner_tensors_of_layers_that_are_calls_can_be_anchored():
    name = "layers/3/queries/linear:0"
    results = []
    for outline in (False, True):
        *_, model = run_of(lambda: Network(Attention, 5), outline, anchorTensor=("kept", name))
        results.append(model.getAnchoredTensor("kept"))
    torch.testing.assert_close(*results, rtol=0, atol=0)


def test_layers_that_share_weights_read_them_where_they_are():
    class Shared(Network):
        def __init__(self):
            super().__init__(Attention, 4)
            for layer in self.layers[1:]:
                layer.queries = self.layers[0].queries

    plain, outlined = (run_of(Shared, outline) for outline in (False, True))
    assert calls_of(outlined[2])
    assert_equal(plain, outlined)


def test_layers_that_hold_other_constants_are_told_apart():
    class Scaled(torch.nn.Module):
        def __init__(self, number):
            super().__init__()
            self.linear, self.factor = torch.nn.Linear(WIDTH, WIDTH), torch.full((WIDTH,), float(number % 3))

        def forward(self, x):
            return torch.tanh(self.linear(x) * self.factor)

    class Scaling(Network):
        def __init__(self):
            super().__init__(Attention, 0)
            self.layers = torch.nn.ModuleList([Scaled(number) for number in range(6)])

    plain, outlined = (run_of(Scaling, outline) for outline in (False, True))
    assert_equal(plain, outlined)


def test_an_argument_that_lies_otherwise_is_no_argument_of_the_function(monkeypatch):
    refused = []
    arguments = outlined_runs.Outlining._arguments

    def noted(self, walk, outlined, number):
        found = arguments(self, walk, outlined, number)
        refused.append(found is None)
        return found

    monkeypatch.setattr(outlined_runs.Outlining, "_arguments", noted)

    class Unlike(Network):
        def forward(self, x, target):
            for number, layer in enumerate(self.layers):
                x = layer(x.transpose(0, 2).contiguous().transpose(0, 2) * 2 if number == 3 else x * 2)
            return x, poptorch.identity_loss(((x - target) ** 2).mean(), "none")

    plain, outlined = (run_of(lambda: Unlike(Attention, 5), outline, training=False) for outline in (False, True))
    assert_equal(plain, outlined)
    assert not all(refused)


def test_small_runs_are_no_functions_unless_options_ask_for_them():
    torch.manual_seed(1)
    module = Network(Convolved, 4).eval()
    options = poptorch.Options()
    model = poptorch.inferenceModel(module, options)
    model(torch.randn(2, ROWS, WIDTH), torch.randn(2, ROWS, WIDTH))
    assert not calls_of(model)


def test_a_threshold_below_zero_is_refused():
    with pytest.raises(InvalidOption, match=r"outlineThreshold.*0 or more, got -1\.0"):
        poptorch.Options()._Popart.set("outlineThreshold", -1.0)


def test_integers_of_other_ranges_are_other_arguments():
    class Counted(torch.nn.Module):
        def forward(self, x, number):
            return x + (number * number).sum(1, keepdim=True).float() / 8

    class Counting(Network):
        def __init__(self):
            super().__init__(Counted, 5)

        def forward(self, x, target):
            numbers = [(target > 0).int() * 3 if number == 3 else (x * 100).int() for number in range(5)]
            for layer, number in zip(self.layers, numbers, strict=True):
                x = layer(x, number)
            return x, poptorch.identity_loss(((x - target) ** 2).mean(), "none")

    plain, outlined = (run_of(Counting, outline, training=False) for outline in (False, True))
    assert_equal(plain, outlined)


def test_calls_cost_under_the_names_of_their_own_modules_what_they_cost_without_functions():
    def by_layer(outline):
        *_, model = run_of(lambda: Network(Attention, 6), outline, calls=1)
        sums = {}
        for step in steps_of(model.getReport()):
            if (match := re.match(r"layers/[1-4]/", step.name)) and "outlined" not in step.name:
                sums[match[0]] = sums.get(match[0], 0) + step.compute_cycles
        return sums, model.getReport()

    (plain, _), (outlined, report) = by_layer(False), by_layer(True)
    for layer in ("layers/1/", "layers/2/", "layers/3/"):
        assert abs(plain[layer] - outlined[layer]) <= 0.03 * plain[layer]
    calls = [node for root in report.compilation.programs for node in root.nodes() if node.type == "Call"]
    assert calls
    assert all(re.search(r"copies [\d,]+ B of arguments and [\d,]+ B of results$", call.detail) for call in calls)


class Summed(torch.nn.Module):
    """A layer that sums what holds each element several times, made before it, in an order that rounding tells."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x, repeated):
        sums = (repeated * 1.37).sum((0, 1)) + repeated.transpose(1, 2).sum(2).mean(0) + repeated.flatten(0, 1).cumsum(0)[-1]
        return torch.tanh(self.linear(x)) + sums * 0.01


class Summing(Network):
    """Layers that are given views with each element several times, or one of several times."""

    def __init__(self):
        super().__init__(Summed, 6)

    def forward(self, x, target):
        rows = [(x * (1 + number)).abs().sum((0, 1)) for number in range(len(self.layers))]
        repeated = [torch.cat([row.expand(2, ROWS, WIDTH), row.flip(0).expand(2, 3, WIDTH)], 1) for row in rows]
        for layer, several in zip(self.layers, repeated, strict=True):
            x = layer(x, several)
        return x, poptorch.identity_loss(((x - target) ** 2).mean(), "none")


@pytest.mark.parametrize("training", [True, False])
def test_sums_of_what_holds_an_element_several_times_are_those_without_functions(training, monkeypatch):
    aliased = []
    arguments = outlined_runs.Outlining._arguments

    def noted(self, walk, outlined, number):
        found = arguments(self, walk, outlined, number)
        if found is not None:
            given = [tensor for value in found.values() for tensor in tensors_within(value)]
            own = [tensor for one in outlined.parameters.values() for tensor in tensors_within(one.value)]
            aliased.append(([tensor.containsAliases() for tensor in given], [tensor.containsAliases() for tensor in own]))
        return found

    monkeypatch.setattr(outlined_runs.Outlining, "_arguments", noted)
    plain, outlined = (run_of(Summing, outline, training=training) for outline in (False, True))
    assert_equal(plain, outlined)
    assert any(any(given) for given, _ in aliased)
    assert all(given == own for given, own in aliased)
