"""Names of PopTorch beside models: parsers of arguments, hooks, marks."""

import pytest
import torch

from pypoplar import poptorch
from pypoplar.errors import InvalidOption, MissingFeature, PoplarTypeError


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second


class PairParser(poptorch.ICustomArgParser):
    def yieldTensors(self, struct):
        yield struct.first
        yield struct.second

    def reconstruct(self, original_structure, tensor_iterator):
        return type(original_structure)(next(tensor_iterator), next(tensor_iterator))


class Swap(torch.nn.Module):
    def forward(self, pair):
        return Pair(pair.second.relu(), pair.first)


def test_models_take_and_return_objects_of_a_class_that_is_registered():
    pair = Pair(torch.ones(2), torch.tensor([-1.0, 2.0, 3.0]))
    poptorch.registerCustomArgParser(Pair, PairParser())
    try:
        result = poptorch.inferenceModel(Swap())(pair)
        poptorch.registerCustomArgParser(Pair, PairParser())
    finally:
        poptorch.registerCustomArgParser(Pair, None)
    assert isinstance(result, Pair)
    assert torch.equal(result.first, torch.tensor([0.0, 2.0, 3.0]))
    assert torch.equal(result.second, pair.first)
    with pytest.raises(PoplarTypeError, match="ICustomArgParser"):
        poptorch.registerCustomArgParser(Pair, print)


def test_hooks_are_called_around_compilation_until_they_are_removed():
    called = []
    handles = [
        poptorch.registerPreCompileHook(lambda: called.append("before")),
        poptorch.registerPostCompileHook(lambda: called.append("after")),
    ]
    model = poptorch.inferenceModel(torch.nn.ReLU())
    model(torch.ones(2))
    model(torch.ones(2))
    assert called == ["before", "after"]
    for handle in handles:
        handle.remove()
    poptorch.inferenceModel(torch.nn.ReLU()).compile(torch.ones(2))
    assert called == ["before", "after"]
    with pytest.raises(PoplarTypeError, match="without arguments"):
        poptorch.registerPreCompileHook(3)


def test_marks_of_a_time_line_change_nothing():
    channel = poptorch.profiling.Channel("mine")
    with channel.tracepoint("part"):
        assert channel.instrument(torch.nn.ReLU(), "forward")(torch.ones(1)) == 1
    with pytest.raises(PoplarTypeError, match="no method 'backwards'"):
        channel.instrument(torch.nn.ReLU(), "backwards")


def test_convolutions_that_may_run_together_are_told_to_follow_each_other(caplog):
    settings = poptorch.MultiConv().availableMemoryProportions([0.2, 0.3]).partialsTypes(torch.half).perConvReservedTiles(4)
    with settings.planType(poptorch.MultiConvPlanType.Parallel).cycleBackOff(0.2).enableConvDithering(True):
        pass
    assert "MultiConv changes nothing" in caplog.text
    with pytest.raises(InvalidOption, match="less than 1"):
        poptorch.MultiConv().availableMemoryProportions(1.5)
    with pytest.raises(PoplarTypeError, match="planType takes MultiConvPlanType"):
        poptorch.MultiConv().planType(1)


def test_faults_of_hardware_are_errors_of_poptorch():
    assert issubclass(poptorch.RecoverableError, poptorch.Error)
    assert issubclass(poptorch.UnrecoverableError, poptorch.Error)


def test_names_of_what_is_within_poptorch_say_what_there_is_instead(capsys):
    for name in ("accessAttributes", "getIpuTensorId", "importPoptorchMetadataFromFile", "registerGeometricCustomArgParsers"):
        with pytest.raises(MissingFeature, match=rf"poptorch\.{name} .*missing; "):
            getattr(poptorch, name)("x")
    assert isinstance(poptorch.createPoptorchError("no"), poptorch.Error)
    layers = torch.nn.Sequential(poptorch.BeginBlock(torch.nn.Linear(2, 3), "first"), torch.nn.ReLU())
    poptorch.print(layers)
    text = capsys.readouterr().out
    assert "Linear(in_features=2, out_features=3, bias=True)" in text
    assert "BeginsBlock" in text
    assert text.endswith(": ReLU()\n)\n")
