"""A loss scaling that follows the gradients grows and shrinks as PopART's, and changes nothing else."""

import copy
from itertools import pairwise

import pytest
import torch

from pypoplar import poptorch
from pypoplar.errors import InvalidOption, MissingFeature, UnknownHandle

FACTOR = "lossScaleUpdateFactor"


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return poptorch.identity_loss(self.layer(x).float() ** 2, "mean")


class Product(torch.nn.Module):
    """The gradient of its weight is its argument."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return poptorch.identity_loss((self.weight * x).float(), "sum")


def options(automatic=True, accumulated=1, replicas=1):
    chosen = poptorch.Options().replicationFactor(replicas)
    chosen.Training.setAutomaticLossScaling(automatic).gradientAccumulation(accumulated)
    if automatic:
        chosen.anchorTensor("scaling", "finalLossScale")
    return chosen


def scalings(model, arguments):
    """Those of calls, one for each argument."""
    found = []
    for x in arguments:
        model(x)
        found.append(float(model.getAnchoredTensor("scaling").flatten()[0]))
    return found


@pytest.mark.parametrize("accumulated", [1, 2])
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (poptorch.optim.SGD, {"use_combined_accum": False}),
        (poptorch.optim.SGD, {"use_combined_accum": False, "momentum": 0.9, "weight_decay": 0.1}),
        (poptorch.optim.SGD, {"use_combined_accum": True, "momentum": 0.9}),
        (poptorch.optim.Adam, {"max_grad_norm": 1.0}),
        (poptorch.optim.LAMB, {}),
        (poptorch.optim.RMSprop, {}),
    ],
)
def test_weights_are_those_of_a_loss_scaling_that_stays(kind, more, accumulated):
    torch.manual_seed(0)
    modules = [Line().half()]
    modules.append(copy.deepcopy(modules[0]))
    optimizers = [kind(one.parameters(), lr=0.01, loss_scaling=2.0, **more) for one in modules]
    following, staying = (
        poptorch.trainingModel(module, options(automatic, accumulated), optimizer)
        for module, optimizer, automatic in zip(modules, optimizers, (True, False), strict=True)
    )
    x = torch.randn(5 * accumulated, 4).half()
    assert scalings(following, [x] * 4) == [2.0, 4.0, 8.0, 16.0]
    for _ in range(4):
        staying(x)
    for one, other in zip(*(module.parameters() for module in modules), strict=True):
        assert torch.equal(one, other)
    assert float(optimizers[0].state_dict()["ipu_state"][FACTOR]) == 16.0


def expected(gradients, scaling, period=1, edge=0.125, proportion=1e-7):
    """The loss scalings of steps with these gradients of two elements."""
    found, factor = [], 1.0
    for step, gradient in enumerate(gradients):
        found.append(scaling * factor)
        if step % period == 0:
            large = (abs(gradient.half() * found[-1]) >= edge * 65504).sum()
            factor = factor / 2 if large > proportion * 2 else min(2 * factor, 32768 / scaling)
    return found


@pytest.mark.parametrize("period", [1, 2, 3])
def test_it_shrinks_where_gradients_are_large_and_grows_to_the_largest(period):
    generator = torch.Generator().manual_seed(period)
    gradients = [torch.randn(2, generator=generator) * 10.0 ** (number % 5) for number in range(14)] + [torch.zeros(2)] * 20
    chosen = options()
    chosen._Popart.set("automaticLossScalingSettings.updatePeriod", period)
    module = Product().half()
    model = poptorch.trainingModel(module, chosen, poptorch.optim.SGD(module.parameters(), lr=0.0, loss_scaling=10.0))
    found = scalings(model, [one.half() for one in gradients])
    assert found == pytest.approx(expected(gradients, 10.0, period), rel=1e-6)
    assert any(after < before for before, after in pairwise(found))
    if period == 1:
        assert found[-1] == 32768.0


def test_what_is_large_and_how_many_may_be_are_options():
    chosen = options()
    chosen._Popart.set("automaticLossScalingSettings.binEdgeLocation", 0.5)
    chosen._Popart.set("automaticLossScalingSettings.thresholdUpperCountProportion", 0.5)
    gradients = [torch.tensor(one) for one in ([20000.0, 0.0], [20000.0, 20000.0], [9000.0, 9000.0], [30000.0, 30000.0])]
    module = Product().half()
    model = poptorch.trainingModel(module, chosen, poptorch.optim.SGD(module.parameters(), lr=0.0))
    found = scalings(model, [one.half() for one in gradients])
    assert found == expected(gradients, 1.0, edge=0.5, proportion=0.5) == [1.0, 2.0, 1.0, 2.0]
    for key in ("binEdgeLocation", "thresholdUpperCountProportion"):
        with pytest.raises(InvalidOption, match="from 0 to 1"):
            poptorch.Options()._Popart.set(f"automaticLossScalingSettings.{key}", 2.0)
    with pytest.raises(InvalidOption, match="at least 1"):
        poptorch.Options()._Popart.set("automaticLossScalingSettings.updatePeriod", 0)


def test_a_large_gradient_of_one_replica_or_batch_counts_for_all():
    for chosen, rows in ((options(replicas=2), 2), (options(accumulated=2), 2)):
        module = Product().half()
        model = poptorch.trainingModel(module, chosen, poptorch.optim.SGD(module.parameters(), lr=0.0, use_combined_accum=False))
        small, large = torch.full((1, 2), 0.5).half(), torch.full((1, 2), 9000.0).half()
        found = scalings(model, [torch.cat([small] * rows), torch.cat([small, large]), torch.cat([small] * rows)])
        assert found == [1.0, 2.0, 1.0]


class Stages(Line):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(3, 3)

    def forward(self, x):
        with poptorch.Block("first", ipu_id=0):
            x = torch.tanh(self.layer(x))
        with poptorch.Block("last", ipu_id=1):
            return poptorch.identity_loss(self.last(x).float() ** 2, "mean")


@pytest.mark.parametrize("strategy", [poptorch.ShardedExecution, poptorch.PipelinedExecution])
def test_stages_have_one_loss_scaling(strategy):
    torch.manual_seed(1)
    modules = [Stages().half()]
    modules.append(copy.deepcopy(modules[0]))
    x, found = torch.randn(12, 4).half(), []
    for module, automatic in zip(modules, (True, False), strict=True):
        chosen = options(automatic, accumulated=4).setExecutionStrategy(strategy())
        optimizer = poptorch.optim.SGD(module.parameters(), lr=0.1, use_combined_accum=False)
        model = poptorch.trainingModel(module, chosen, optimizer)
        found.append(scalings(model, [x] * 3) if automatic else [model(x) for _ in range(3)])
    assert found[0] == [1.0, 2.0, 4.0]
    for one, other in zip(*(module.parameters() for module in modules), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("kind", [torch.optim.SGD, poptorch.optim.SGD, poptorch.optim.Adam])
def test_the_factor_is_a_state_that_is_saved_and_loaded(kind, tmp_path):
    x, module = torch.zeros(2).half(), Product().half()
    optimizer = kind(module.parameters(), lr=0.0)
    model = poptorch.trainingModel(module, options(), optimizer)
    assert scalings(model, [x] * 3) == [1.0, 2.0, 4.0]
    torch.save(optimizer.state_dict(), tmp_path / "state")
    model.destroy()

    other = kind(module.parameters(), lr=0.0)
    other.load_state_dict(torch.load(tmp_path / "state"))
    again = poptorch.trainingModel(module, options(), other)
    assert scalings(again, [x] * 2) == [8.0, 16.0]
    state = other.state_dict()
    if issubclass(kind, poptorch.optim.Optimizer):
        state["ipu_state"][FACTOR] = torch.tensor(0.5)
    state["state"][FACTOR]["value"] = torch.tensor(0.5)
    other.load_state_dict(state)
    assert scalings(again, [x] * 2) == [0.5, 1.0]
    again.setOptimizer(kind(module.parameters(), lr=0.0))  # which has no states: the device's stay
    assert scalings(again, [x]) == [2.0]


def test_a_kept_model_follows_as_one_that_is_compiled(tmp_path):
    x, found = torch.zeros(2).half(), []
    for automatic in (False, True, True):
        module = Product().half()
        chosen = options(automatic).enableExecutableCaching(str(tmp_path))
        model = poptorch.trainingModel(module, chosen, poptorch.optim.SGD(module.parameters(), lr=0.0))
        found.append(scalings(model, [x] * 3) if automatic else [float(model(x)) for _ in range(3)])
    assert found[1:] == [[1.0, 2.0, 4.0]] * 2
    assert len(list(tmp_path.glob("*.poptorch"))) == 2


def test_a_failed_call_leaves_the_factor_as_it_was():
    module = Product().half()
    chosen = options()
    chosen.Precision.enableFloatingPointExceptions(True)
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.0)
    model = poptorch.trainingModel(module, chosen, optimizer)
    zero = torch.zeros(2).half()
    assert scalings(model, [zero] * 2) == [1.0, 2.0]
    with pytest.raises(poptorch.Error):
        model(torch.tensor([float("inf"), -float("inf")]).half())
    assert float(optimizer.state_dict()["ipu_state"][FACTOR]) == 4.0
    assert scalings(model, [zero]) == [4.0]


def test_without_gradients_in_halves_it_stays_and_says_so(caplog):
    module = Product()
    model = poptorch.trainingModel(module, options(), poptorch.optim.SGD(module.parameters(), lr=0.0, loss_scaling=3.0))
    assert scalings(model, [torch.ones(2)] * 2) == [3.0, 3.0]
    assert "no gradient is of halves, so the loss scaling stays what is set" in caplog.text


@pytest.mark.parametrize("automatic", [True, False])
def test_what_an_update_makes_is_anchored_behind_steps(automatic):
    module = Product().half()
    chosen = options(automatic).deviceIterations(2)
    chosen.anchorTensor("weights", "UpdatedVar___weight")
    chosen.anchorTensor("each", "UpdatedVar___weight", poptorch.OutputMode.EveryN, 1)
    model = poptorch.trainingModel(module, chosen, poptorch.optim.SGD(module.parameters(), lr=0.5))
    model(torch.ones(2, 2).half())
    assert torch.equal(model.getAnchoredTensor("weights").reshape(-1), module.weight)
    assert model.getAnchoredTensor("each").reshape(2, -1)[:, 0].tolist() == [0.5, 0.0]
    assert ("finalLossScale" in model.getTensorNames()) is automatic
    assert "UpdatedVar___weight" in model.getTensorNames()


def test_anchors_of_updates_that_are_not_there_are_refused():
    def trained(name, *mode, automatic=True):
        module = Product().half()
        chosen = options(automatic).anchorTensor("one", name, *mode)
        poptorch.trainingModel(module, chosen, poptorch.optim.SGD(module.parameters(), lr=0.5)).compile(torch.ones(2).half())

    with pytest.raises(MissingFeature, match=r"UpdatedVar___weight is there behind a step.*OutputMode\.All"):
        trained("UpdatedVar___weight", poptorch.OutputMode.All)
    with pytest.raises(UnknownHandle, match="no tensor 'finalLossScale'"):
        trained("finalLossScale", automatic=False)
    with pytest.raises(UnknownHandle, match="did you mean 'UpdatedVar___weight'"):
        trained("UpdatedVar___weigth")
