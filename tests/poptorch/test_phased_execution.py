"""Phases: weights are in streaming memory between them, and results are those of the model on tiles alone, to the bit."""

import copy
import itertools

import numpy as np
import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import InvalidOption, PoplarError
from pypoplar.poptorch.enums import Liveness

WIDE = 24


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


class Network(nn.Module):
    """Three blocks; the first and the last share a weight, the second has statistics and random numbers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second, self.last = nn.Linear(8, WIDE), nn.Linear(WIDE, WIDE), nn.Linear(WIDE, 8)
        self.shared = nn.Parameter(torch.rand(WIDE))
        self.norm, self.drop = nn.BatchNorm1d(WIDE), nn.Dropout(0.25)

    def forward(self, x, labels=None):
        with poptorch.Block("A"):
            y = (self.first(x) * self.shared).relu()
        with poptorch.Block("B"):
            y = self.drop(self.norm(self.second(y)).relu())
        with poptorch.Block("C"):
            y = self.last(y * self.shared)
            return y if labels is None else (y, nn.functional.cross_entropy(y, labels))


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum, combined": lambda parameters: poptorch.optim.SGD(parameters, lr=0.1, momentum=0.9, use_combined_accum=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "LAMB": lambda parameters: poptorch.optim.LAMB(parameters, lr=0.01),
    "groups": lambda parameters: torch.optim.SGD(
        [{"params": list(parameters)[::2]}, {"params": [*parameters][1::2], "lr": 0.3}], lr=0.1
    ),
}
STRATEGIES = {
    "serial": lambda: poptorch.SerialPhasedExecution("A", "B", "C"),
    "parallel": lambda: poptorch.ParallelPhasedExecution("A", "B", "C"),
    "two stages in a phase": lambda: poptorch.SerialPhasedExecution([poptorch.Stage("A"), poptorch.Stage("B")], "C"),
    "apart": lambda: poptorch.SerialPhasedExecution("A", "B", "C").useSeparateBackwardPhase(),
}


def options(strategy=None, accumulated=2):
    chosen = poptorch.Options().randomSeed(7)
    chosen.Training.gradientAccumulation(accumulated)
    if strategy is not None:
        chosen.setExecutionStrategy(strategy)
    return chosen


def batch(seed, rows=8):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 8, generator=random), torch.randint(0, 8, (rows,), generator=random)


def trained(chosen, optimizer, calls=3):
    model = Network()
    training = poptorch.trainingModel(model, chosen, OPTIMIZERS[optimizer](list(model.parameters())))
    losses = [training(*batch(number))[1].item() for number in range(calls)]
    return model, training, losses


def same_states(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


CASES = [
    *(pytest.param(name, "Adam", marks=[] if name in ("serial", "parallel") else pytest.mark.slow) for name in STRATEGIES),
    *(pytest.param("serial", name, marks=pytest.mark.slow) for name in OPTIMIZERS if name != "Adam"),
]


def sharded(ipus=(0, 0, 0)):
    return poptorch.ShardedExecution(*(poptorch.Stage(block).ipu(ipu) for block, ipu in zip("ABC", ipus, strict=True)))


@pytest.mark.parametrize(("strategy", "optimizer"), CASES)
def test_training_in_phases_gives_what_training_on_tiles_gives(strategy, optimizer):
    ipus = {"parallel": (0, 1, 0), "two stages in a phase": (0, 1, 0)}.get(strategy, (0, 0, 0))
    plain, _, losses = trained(options(sharded(ipus)), optimizer)
    phased, training, own = trained(options(STRATEGIES[strategy]()), optimizer)
    assert own == losses
    same_states(phased.state_dict(), plain.state_dict())
    assert training.cycleCount() > 0


def steps_of(training):
    return [step for step in training.getReport().execution.steps if "/weights/" in step.name]


def test_each_phase_brings_its_weights_and_each_update_takes_them_back():
    _, training, _ = trained(options(poptorch.SerialPhasedExecution("A", "B", "C"), accumulated=1), "SGD", calls=1)
    names = [step.name for step in steps_of(training)]
    passes = [name for name in names if name.startswith("phase")]
    assert [name[5] for name in passes] == ["0", "0", "1", "2", "2", "1", "0"]  # the shared weight has a row of its own
    updates = [name.rpartition("/")[2] for name in names if name.startswith("optimizer")]
    assert updates == ["bring", "take"] * 4
    assert all(step.cycles > 0 for step in steps_of(training))


def test_weights_of_other_phases_take_no_memory_of_tiles():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(160, 160, bias=False) for _ in range(6))

        def forward(self, x):
            for number, layer in enumerate(self.layers):
                with poptorch.Block(str(number)):
                    x = layer(x)
            return x

    blocks = [str(number) for number in range(6)]

    def bytes_of(strategy):
        inference = poptorch.inferenceModel(Deep(), poptorch.Options().setExecutionStrategy(strategy))
        inference.compile(torch.zeros(1, 160))
        return sum(tile.memory.total.includingGaps for tile in inference.getReport().compilation.tiles)

    on_tiles = bytes_of(poptorch.ShardedExecution(poptorch.Stage(*blocks).ipu(0)))
    in_phases = bytes_of(poptorch.SerialPhasedExecution(*blocks))
    assert on_tiles - in_phases > 4 * 160 * 160 * 4  # of six weights one is on tiles


def test_weights_stay_on_tiles_where_their_location_says_so():
    chosen = options(poptorch.SerialPhasedExecution("A", "B", "C"))
    chosen.TensorLocations.setWeightLocation(poptorch.TensorLocationSettings().useOnChipStorage(True))
    _, training, _ = trained(chosen, "SGD", calls=1)
    assert steps_of(training) == []
    chosen = options(poptorch.SerialPhasedExecution("A", "B", "C"), accumulated=1)
    chosen.TensorLocations.setWeightLocation(poptorch.TensorLocationSettings().minElementsForOffChip(WIDE * WIDE))
    _, training, _ = trained(chosen, "SGD", calls=1)
    assert [step.name for step in steps_of(training)] == [
        *["phase1/weights/bring"] * 2,
        *(f"optimizer/update/weights/{what}" for what in ("bring", "take")),
    ]


@pytest.mark.slow
def test_weights_that_change_on_the_host_reach_streaming_memory_and_come_back():
    model, training, _ = trained(options(poptorch.SerialPhasedExecution("A", "B", "C")), "SGD", calls=1)
    other = Network()
    with torch.no_grad():
        for one, another in zip(model.parameters(), other.parameters(), strict=True):
            another.copy_(one + 1)
            one += 1
    other.load_state_dict(model.state_dict())
    plain = poptorch.trainingModel(other, options(sharded()), OPTIMIZERS["SGD"](list(other.parameters())))
    plain.compile(*batch(5))
    plain.rng_state = training.rng_state
    training(*batch(5))
    plain(*batch(5))
    same_states(model.state_dict(), other.state_dict())


def test_one_weight_of_a_phase_that_changes_on_the_host_leaves_the_others_of_the_phase():
    models = [Network().eval(), Network().eval()]
    device = [
        poptorch.inferenceModel(model, options(strategy, 1))
        for model, strategy in zip(models, (STRATEGIES["serial"](), sharded()), strict=True)
    ]
    x, _ = batch(1)
    for _ in range(2):
        assert torch.equal(*(inference(x) for inference in device))
        with torch.no_grad():
            for model in models:
                model.second.bias += 1


@pytest.mark.slow
def test_a_kept_executable_knows_where_weights_are(tmp_path):
    def of_cache():
        chosen = options(poptorch.SerialPhasedExecution("A", "B", "C")).enableExecutableCaching(str(tmp_path))
        return trained(chosen, "Adam", calls=2)

    first, _, losses = of_cache()
    again, _, same = of_cache()
    assert same == losses
    same_states(again.state_dict(), first.state_dict())
    another = options(poptorch.SerialPhasedExecution(["A", "B"], "C")).enableExecutableCaching(str(tmp_path))
    _, training, other = trained(another, "Adam", calls=2)
    assert other == losses
    assert {step.name[5] for step in steps_of(training) if step.name.startswith("phase")} == {"0", "1"}


@pytest.mark.parametrize("own_buffers", [pytest.param(False, marks=pytest.mark.slow), True])
def test_replicas_have_rows_of_their_own_and_a_failed_call_leaves_them(own_buffers):
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.first, self.last = nn.Linear(8, WIDE), nn.Linear(WIDE, 8)
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x, labels):
            with poptorch.Block("A"):
                y = self.first(x).relu()
                if own_buffers:
                    self.calls += 1
            with poptorch.Block("B"):
                return nn.functional.cross_entropy(self.last(y) + self.calls, labels)

    def made(strategy):
        chosen = options(strategy, accumulated=1).replicationFactor(2).broadcastBuffers(False)
        model = Plain()
        return model, poptorch.trainingModel(model, chosen, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5))

    plain, on_tiles = made(poptorch.ShardedExecution(poptorch.Stage("A", "B").ipu(0)))
    phased, in_phases = made(poptorch.SerialPhasedExecution("A", "B"))
    for number in range(2):
        assert torch.equal(in_phases(*batch(number)), on_tiles(*batch(number)))
    same_states(phased.state_dict(), plain.state_dict())
    before = copy.deepcopy(phased.state_dict())
    compiled = in_phases._built.compiled
    run = compiled.engine.run
    compiled.engine.run = lambda: (run(), 1 / 0)
    with pytest.raises(ZeroDivisionError):
        in_phases(*batch(2))
    compiled.engine.run = run
    same_states(phased.state_dict(), before)
    for number in (3, 4):
        assert torch.equal(in_phases(*batch(number)), on_tiles(*batch(number)))
    same_states(phased.state_dict(), plain.state_dict())


def test_a_model_in_phases_is_predicted_as_it_runs():
    model = Network()
    chosen = options(poptorch.SerialPhasedExecution("A", "B", "C"))
    training = poptorch.trainingModel(model, chosen, OPTIMIZERS["SGD"](list(model.parameters())))
    prediction = training.predict(*batch(0))
    training(*batch(0))
    assert prediction.report.execution.totalCycles.total == training.cycleCount()


@pytest.mark.slow
def test_layers_of_random_networks_in_random_phases_give_what_they_give_on_tiles():
    random = np.random.default_rng(11)
    for _ in range(4):
        sizes = random.integers(3, 20, 6).tolist()
        groups = np.cumsum(random.integers(0, 2, 5)).tolist()

        class Chain(nn.Module):
            def __init__(self, sizes=sizes):
                super().__init__()
                torch.manual_seed(sum(sizes))
                self.layers = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(sizes))

            def forward(self, x):
                for number, layer in enumerate(self.layers):
                    with poptorch.Block(str(number)):
                        x = torch.tanh(layer(x))
                        loss = poptorch.identity_loss(x, "sum")
                return x, loss

        phases = [[str(number) for number, group in enumerate(groups) if group == one] for one in sorted(set(groups))]
        results = []
        for strategy in (
            poptorch.SerialPhasedExecution(*phases),
            poptorch.ShardedExecution(poptorch.Stage(*map(str, range(5))).ipu(0)),
        ):
            model = Chain()
            training = poptorch.trainingModel(
                model, options(strategy, accumulated=1), torch.optim.Adam(model.parameters(), lr=0.01)
            )
            for call in range(2):
                training(torch.randn(2, sizes[0], generator=torch.Generator().manual_seed(call)))
            results.append(model.state_dict())
        same_states(*results)


class Tied(nn.Module):
    """A weight with two names, as of an embedding and the layer that gives its words: a row has it once."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.words, self.last = nn.Embedding(6, 4), nn.Linear(4, 6)
        self.last.weight = self.words.weight

    def forward(self, ids):
        with poptorch.Block("A"):
            y = self.words(ids)
        with poptorch.Block("B"):
            y = self.last(torch.tanh(y))
            return y, nn.functional.cross_entropy(y, ids)


def test_weights_of_two_names_are_those_on_tiles(tmp_path):
    def made(strategy):
        chosen = options(strategy, accumulated=1).enableExecutableCaching(str(tmp_path))
        model = Tied()
        return model, poptorch.trainingModel(model, chosen, torch.optim.Adam(model.parameters(), lr=0.1))

    def trained_in(strategy):
        model, training = made(strategy)
        for number in range(2):
            training(torch.randint(0, 6, (3,), generator=torch.Generator().manual_seed(number)))
        return model

    plain = trained_in(poptorch.ShardedExecution(poptorch.Stage("A", "B").ipu(0)))
    for _ in range(2):  # the second is the kept one
        same_states(trained_in(poptorch.SerialPhasedExecution("A", "B")).state_dict(), plain.state_dict())
    assert not torch.equal(plain.words.weight, Tied().words.weight)


def test_mistakes_with_phases_are_told():
    with pytest.raises(InvalidOption, match="at least one"):
        poptorch.SerialPhasedExecution()
    with pytest.raises(InvalidOption, match="more than one stage"):
        poptorch.SerialPhasedExecution("A", ["B", "A"])
    with pytest.raises(PoplarError, match="no block 'B'"):
        poptorch.inferenceModel(Network(), options(poptorch.SerialPhasedExecution("A", "C"), 1)).compile(batch(0)[0])
    odd = poptorch.ParallelPhasedExecution(poptorch.Phase(poptorch.Stage("A").ipu(1)), "B", "C")
    with pytest.raises(InvalidOption, match="even phases must run on even IPUs and odd phases on odd IPUs"):
        poptorch.inferenceModel(Network(), options(odd, 1)).compile(batch(0)[0])


def test_activations_that_shall_leave_tiles_are_told(caplog):
    poptorch.SerialPhasedExecution("A").setTensorsLiveness(Liveness.OffChipAfterFwd)
    assert "activations stay in the memory of tiles" in caplog.text


def test_weights_that_shall_leave_tiles_without_phases_are_told_to_stay(caplog):
    chosen = poptorch.Options()
    chosen.TensorLocations.setWeightLocation(poptorch.TensorLocationSettings().useOnChipStorage(False))
    poptorch.inferenceModel(nn.ReLU(), chosen)
    assert "setWeightLocation: weights stay in the memory of tiles" in caplog.text
