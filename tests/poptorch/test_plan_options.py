"""Options that reach plans, devices and pipelines."""

import pytest
import torch

from pypoplar import poplin, poptorch
from pypoplar.errors import InvalidOption
from pypoplar.poptorch.executor.model_settings import ModelSettings


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


class Layers(torch.nn.Module):
    def __init__(self, mark=lambda x: x):
        super().__init__()
        self.convolution, self.linear = torch.nn.Conv1d(2, 3, 2), torch.nn.Linear(9, 2)
        self.mark = mark

    def forward(self, x):
        with poptorch.Block("first", ipu_id=0):
            x = self.convolution(x)
        with poptorch.Block("second", ipu_id=1):
            y = self.mark(self.linear(x.flatten(1)))
            return y, poptorch.identity_loss(y, "sum")


def batch(count):
    return torch.randn(2 * count, 2, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def asked(monkeypatch):
    """The options of each convolution and product."""
    seen = {}
    for name in ("convolution", "matMul"):
        whole = getattr(poplin, name)

        def call(*arguments, name=name, whole=whole):
            seen[name] = next(one for one in arguments if type(one) is dict)
            return whole(*arguments)

        monkeypatch.setattr(poplin, name, call)
    return seen


def options(**popart):
    given = poptorch.Options().deviceIterations(2)
    given.setAvailableMemoryProportion({"IPU0": 0.2, "IPU1": 0.4})
    for name, value in popart.items():
        given._Popart.set(name, value)
    return given


def test_options_of_plans_are_those_of_their_operation_and_ipu(asked):
    given = options(convolutionOptions={"enableConvDithering": False}, matmulOptions={"partialsType": "half"})
    poptorch.inferenceModel(Layers(), given)(batch(2))
    assert asked == {
        "convolution": {"enableConvDithering": "false", "availableMemoryProportion": "0.2"},
        "matMul": {"partialsType": "half", "availableMemoryProportion": "0.4"},
    }


def test_a_tensor_says_what_memory_its_operation_takes(asked):
    given = options()
    given.Precision.setPartialsType(torch.half)
    poptorch.inferenceModel(Layers(lambda x: poptorch.set_available_memory(x, 0.7)), given)(batch(2))
    assert asked["matMul"] == {"partialsType": "half", "availableMemoryProportion": "0.7"}
    assert asked["convolution"] == {"partialsType": "half", "availableMemoryProportion": "0.2"}


def test_recurrent_layers_have_options_of_their_own():
    plans = ModelSettings.of(options(lstmOptions={"partialsType": "half"}).outputMode(poptorch.OutputMode.All), False).plans
    assert plans.of("lstm_backward", 1) == {"partialsType": "half", "availableMemoryProportion": "0.4"}
    assert plans.of("bmm", 2) == {}


def test_a_model_is_compiled_for_the_chip_that_is_asked_for(monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 2000)
    model = poptorch.inferenceModel(torch.nn.ReLU(), poptorch.Options().useOfflineIpuTarget(1))
    model.compile(torch.ones(4))
    assert model._settings.chip == "ipu1"
    assert model._built.compiled.engine.executable.target.getTilesPerIPU() == 1216


def test_a_pipeline_needs_batches_for_its_stages():
    with pytest.raises(
        InvalidOption, match=r"\.deviceIterations must be greater.* stages \(2\) when .* It is 1; poptorch\.Sharded"
    ):
        poptorch.inferenceModel(Layers())(batch(1))
    given = poptorch.Options()
    given.Training.gradientAccumulation(2)
    with pytest.raises(
        InvalidOption, match=r"gradientAccumulation must be .* \(3\) .* with 2 pipeline stages .* an additional 1 .* It is 2"
    ):
        poptorch.trainingModel(Layers(), given)(batch(2))
    sharded = poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution(poptorch.AutoStage.AutoIncrement))
    poptorch.inferenceModel(Layers(), sharded).compile(batch(1))


class Drops(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))

    def forward(self):
        y = torch.nn.functional.dropout(self.weight, 0.5, training=True)
        return y, poptorch.identity_loss(y, "sum")


def test_a_seed_says_what_is_drawn_and_cycles_are_logged(caplog):
    def drawn(seed):
        return poptorch.trainingModel(Drops(), poptorch.Options().randomSeed(seed).logCycleCount(True))()[0]

    with caplog.at_level("DEBUG", logger="poptorch"):
        first = drawn(3)
    assert "cycles" in caplog.text
    assert torch.equal(drawn(3), first)
    assert not torch.equal(drawn(4), first)
