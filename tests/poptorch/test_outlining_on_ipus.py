"""Functions of models on several IPUs, each on one of them: results are those of the program without, to the bit."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from law_examples import examples
from outlining_rig import (
    ROWS,
    WIDTH,
    Attention,
    Convolved,
    Dropped,
    Joined,
    Noisy,
    Pooled,
    assert_equal,
    calls_of,
    options_of,
    run_of,
)

from pypoplar import poptorch
from pypoplar.poptorch.executor import building
from pypoplar.poptorch.outlining import outlined_runs

KINDS = (Attention, Convolved, Pooled, Dropped, Noisy, Joined)


@pytest.fixture(autouse=True)
def small_ipus(monkeypatch):
    monkeypatch.setattr(building, "TILES", 24)


class Split(torch.nn.Module):
    """Layers on the IPUs that are told; every third adds what one before it gave."""

    def __init__(self, kinds, ipus):
        super().__init__()
        self.layers = torch.nn.ModuleList(kind() for kind in kinds)
        self.ipus = ipus

    def forward(self, x, target):
        inner = []
        for number, (layer, ipu) in enumerate(zip(self.layers, self.ipus, strict=True)):
            if number == 0 or ipu != self.ipus[number - 1]:
                poptorch.Block.start(f"part{number}", ipu_id=ipu)
            x = layer(x)
            inner.append(x)
            if number % 3 == 2:
                x = x + inner[number - 2] * 0.125
        return x, inner[1], poptorch.identity_loss(((x - target) ** 2).mean(), "none")


def parts_of(ipus):
    return [f"part{number}" for number in range(len(ipus)) if number == 0 or ipus[number] != ipus[number - 1]]


def sharded(kinds, ipus, outline, *, training):
    strategy = poptorch.ShardedExecution(*parts_of(ipus))
    return run_of(
        lambda: Split(kinds, ipus), outline, training=training, setExecutionStrategy=(strategy,), autoRoundNumIPUs=(True,)
    )


@pytest.mark.slow
@examples(6)
@given(
    unit=st.lists(st.sampled_from(KINDS), min_size=1, max_size=2),
    other=st.sampled_from(KINDS),
    ipus=st.lists(st.integers(0, 3), min_size=4, max_size=7).filter(lambda ipus: len(set(ipus)) > 1),
    training=st.booleans(),
)
@example(unit=[Attention], other=Convolved, ipus=[0, 0, 0, 1, 1, 1, 1], training=True)
@example(unit=[Noisy], other=Joined, ipus=[0, 0, 1, 1, 2, 2], training=True)
def test_results_on_several_ipus_are_those_without_functions_to_the_bit(unit, other, ipus, training):
    kinds = [*(unit * len(ipus))[: len(ipus) - 1], other]
    plain, outlined = (sharded(kinds, ipus, outline, training=training) for outline in (False, True))
    assert not calls_of(plain[2])
    assert_equal(plain, outlined)


@pytest.mark.parametrize(
    ("kind", "ipus"), [pytest.param(Attention, (0, 0, 0, 1, 1, 1), marks=pytest.mark.slow), (Dropped, (0, 1) * 4)]
)
def test_functions_and_their_calls_are_on_one_ipu(kind, ipus, monkeypatch):
    called = {}
    call = outlined_runs.Outlining._call

    def noted(self, walk, outlined, number, arguments):
        nodes = self._nodes(outlined.runs, number)
        called.setdefault(outlined, []).append({walk.ipus[node] for node in nodes})
        return call(self, walk, outlined, number, arguments)

    monkeypatch.setattr(outlined_runs.Outlining, "_call", noted)
    outlined = sharded([kind] * len(ipus), ipus, True, training=True)
    assert calls_of(outlined[2])
    assert all(len(set.union(*found)) == 1 for found in called.values())
    assert {min(found[0]) for found in called.values() if len(found) > 1} == {0, 1}


def test_a_pipeline_of_equal_layers_gives_what_it_gives_without_functions():
    def results(outline):
        torch.manual_seed(1)
        options = options_of(outline)
        options.Training.gradientAccumulation(4)
        module = Split([Dropped] * 6, (0, 0, 0, 1, 1, 1))
        model = poptorch.trainingModel(module, options, optimizer=torch.optim.SGD(module.parameters(), lr=0.1))
        torch.manual_seed(2)
        return list(model(torch.randn(4, ROWS, WIDTH), torch.randn(4, ROWS, WIDTH))), dict(module.state_dict()), model

    plain, outlined = results(False), results(True)
    assert calls_of(outlined[2])
    assert_equal(plain, outlined)


class Met(torch.nn.Module):
    """A layer that draws numbers for what it puts together of its own and of what comes from another IPU."""

    def forward(self, x, other):
        first = torch.softmax(x, -1)
        both = torch.cat([other[:, :3], first[:, :3]], 1)
        return torch.nn.functional.dropout(torch.tanh(both + torch.tanh(both * 2)), 0.25, self.training) + x


class Meeting(torch.nn.Module):
    """What is made on one IPU for each layer on another."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Met() for _ in range(5))
        self.scale = torch.nn.Parameter(torch.linspace(0.2, 1.4, WIDTH))

    def forward(self, x, target):
        with poptorch.Block("made", ipu_id=0):
            others = [torch.cumsum(x * self.scale, 1) * (number + 1) for number in range(len(self.layers))]
        with poptorch.Block("met", ipu_id=1):
            for layer, other in zip(self.layers, others, strict=True):
                x = layer(x, other)
            return x, poptorch.identity_loss(((x - target) ** 2).mean(), "none")


def test_numbers_drawn_for_what_comes_from_another_ipu_are_those_without_functions():
    strategy = poptorch.ShardedExecution("made", "met")
    plain, outlined = (run_of(Meeting, outline, setExecutionStrategy=(strategy,)) for outline in (False, True))
    assert_equal(plain, outlined)
