"""Blocks run on their IPUs, and train as one IPU does."""

import copy
import io

import numpy as np
import pytest
import torch
from torch import fx, nn

from pypoplar import poptorch
from pypoplar.errors import InvalidOption


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """Small machines, which are compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)


class Staged(nn.Module):
    """Three blocks, the first shared by a weight with the last, and a loss behind them."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(6, 5), nn.Linear(5, 7), nn.Linear(7, 3)

    def forward(self, x, labels=None):
        with poptorch.Block("A"):
            kept = torch.relu(self.a(x))
        with poptorch.Block("B"):
            y = torch.relu(self.b(kept))
        with poptorch.Block("C"):
            y = self.c(y) + kept.sum(1, keepdim=True) * self.a.bias.sum()
            return y if labels is None else (y, nn.functional.cross_entropy(y, labels))


def samples(count):
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(1)), torch.arange(count) % 3


def trained(options, accumulated):
    """Losses and weights of two calls."""
    torch.manual_seed(0)
    model = Staged()
    options.Training.gradientAccumulation(accumulated)
    options.outputMode(poptorch.OutputMode.All)
    training = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.2))
    x, labels = samples(4 * accumulated)
    losses = [training(x, labels)[1] for _ in range(2)]
    return torch.stack(losses), [value.detach().clone() for value in model.parameters()], training


@pytest.mark.parametrize("strategy", [poptorch.PipelinedExecution, poptorch.ShardedExecution])
def test_stages_on_several_ipus_train_as_one_ipu_does(strategy):
    alone = poptorch.Options().setExecutionStrategy(strategy(*(poptorch.Stage(name).ipu(0) for name in "ABC")))
    losses, weights, _ = trained(alone, 6)
    stages = [poptorch.Stage("A").ipu(0), poptorch.Stage("B").ipu(1), poptorch.Stage("C").ipu(2)]
    options = poptorch.Options().setExecutionStrategy(strategy(*stages)).autoRoundNumIPUs(True)
    staged_losses, staged_weights, training = trained(options, 6)
    np.testing.assert_allclose(staged_losses.numpy(), losses.numpy(), rtol=1e-6)
    for one, other in zip(staged_weights, weights, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-7)
    report = training.getReport()
    assert report.compilation.target.numIPUs == 4
    assert sum(step.global_exchange_cycles > 0 for step in report.execution.steps) > 3


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_scaling_of_a_loss_reaches_the_ipu_of_a_loss_of_halves(replicas):
    weights = []
    for scaling in (1.0, 64.0):
        torch.manual_seed(0)
        model = Staged().half()
        stages = [poptorch.Stage("A", "B").ipu(0), poptorch.Stage("C").ipu(1)]
        options = poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution(*stages)).replicationFactor(replicas)
        optimizer = poptorch.optim.SGD(model.parameters(), lr=0.5, loss_scaling=scaling, use_combined_accum=False)
        x, labels = samples(4)
        poptorch.trainingModel(model, options, optimizer)(x.half(), labels)
        weights.append([value.detach().float() for value in model.parameters()])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)


def inferred(strategy):
    return poptorch.inferenceModel(Staged(), poptorch.Options().setExecutionStrategy(strategy))(samples(2)[0])


def test_three_ipus_are_refused_unless_they_may_be_rounded():
    stages = [poptorch.Stage(name).ipu(number) for number, name in enumerate("ABC")]
    with pytest.raises(InvalidOption, match="autoRoundNumIPUs"):
        poptorch.inferenceModel(Staged(), poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution(*stages)))(
            samples(2)[0]
        )


def test_a_block_that_no_stage_has_is_told():
    with pytest.raises(InvalidOption, match="no block 'B'"):
        poptorch.inferenceModel(Staged(), poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution("A", "C")))(
            samples(2)[0]
        )


class Outside(nn.Module):
    """Two blocks with an operation before them, one between, and one behind both."""

    def __init__(self, begins=False):
        super().__init__()
        self.begins = begins

    def forward(self, x):
        x = x + 1
        with poptorch.Block("A", ipu_id=0):
            x = torch.sin(x)
        if self.begins:
            poptorch.Block.start("between", ipu_id=1)
        x = x * 2
        with poptorch.Block(ipu_id=1):
            x = torch.cos(x)
        if self.begins:
            poptorch.Block.start("behind", ipu_id=1)
        return x, x / 2


def test_an_operation_behind_a_block_is_refused_until_another_begins():
    sharded = poptorch.ShardedExecution(poptorch.AutoStage.AutoIncrement)
    with pytest.raises(poptorch.Error, match="No active Block, all the ops must belong to a Block") as told:
        poptorch.inferenceModel(Outside(), poptorch.Options().setExecutionStrategy(sharded))(torch.ones(3))
    text = str(told.value)
    assert "mul comes behind the end of block 'A'; let it be in that one" in text
    assert "div comes behind the end of block; let it" in text
    assert "`x = x * 2`" in text
    assert "add comes" not in text
    begun = poptorch.inferenceModel(Outside(begins=True), poptorch.Options().setExecutionStrategy(sharded))
    for one, wanted in zip(begun(torch.ones(3)), Outside()(torch.ones(3)), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-6)


def test_layers_begin_blocks_with_their_ipus():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    wanted = copy.deepcopy(model)
    poptorch.BeginBlock(model[0], ipu_id=0)
    poptorch.BeginBlock(model[2], ipu_id=1)
    x = torch.randn(6, 4)
    inference = poptorch.inferenceModel(model, poptorch.Options().deviceIterations(2))
    np.testing.assert_allclose(inference(x).numpy(), wanted(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    report = inference.getReport()
    assert report.compilation.target.numIPUs == 2
    assert [step for step in report.execution.steps if step.global_exchange_cycles]
    poptorch.removeBlocks(model)
    assert poptorch.inferenceModel(model)(x).shape == (6, 2)
    with pytest.raises(InvalidOption, match="already"):
        poptorch.BeginBlock(poptorch.BeginBlock(nn.Linear(1, 1)))


class Functions(nn.Module):
    """A function and a method of its own that begin blocks."""

    def __init__(self):
        super().__init__()
        self.first = poptorch.BeginBlock(torch.relu, "first", 0)
        self.double = poptorch.BeginBlock(self.double, "second", 1)

    def double(self, x):
        return 2 * x

    def forward(self, x):
        return self.double(self.first(x) + 1)


def test_functions_and_methods_begin_blocks():
    model = poptorch.inferenceModel(Functions(), poptorch.Options().setExecutionStrategy(poptorch.ShardedExecution()))
    assert torch.equal(model(torch.tensor([-1.0, 1.0])), torch.tensor([2.0, 4.0]))
    assert model.getReport().compilation.target.numIPUs == 2


def test_what_begins_a_block_says_so_and_can_be_saved():
    begun = poptorch.BeginBlock(torch.relu, 1, 2)
    assert (begun._user_id, begun._ipu_id) == (1, 2)  # by PopTorch's names
    layer = poptorch.BeginBlock(nn.Linear(1, 1), user_id=1, ipu_id=2)
    for one in (begun, layer):
        file = io.BytesIO()
        torch.save(one, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        assert torch.equal(loaded(torch.ones(1, 1)), one(torch.ones(1, 1)))
    assert poptorch.module_repr(layer).startswith("BeginBlock(user_id=1, ipu_id=2) Linear(")


def test_a_decorated_function_is_a_block():
    class Decorated(nn.Module):
        def forward(self, x):
            return self.second(x + 1)

        @poptorch.BlockFunction("second", ipu_id=1)
        def second(self, x):
            return x * 2

    options = poptorch.Options()
    assert torch.equal(poptorch.inferenceModel(Decorated(), options)(torch.ones(3)), torch.full((3,), 4.0))


def test_marks_end_with_the_capture_whatever_order_they_end_in():
    class Left(nn.Module):
        def forward(self, x):
            with poptorch.NameScope("scope"):
                poptorch.BlockFunction("first", ipu_id=0)(torch.relu)(x)
                poptorch.Block.start("second", ipu_id=1)
                x = x + 1
            return self.end(x)

        def end(self, x):
            return x * 2

    class Fails(Left):
        def end(self, x):
            with poptorch.Block("third", ipu_id=0), poptorch.NameScope("failing"):
                return x if x.sum() > 0 else -x

    poptorch.inferenceModel(Left(), poptorch.Options().deviceIterations(2))(torch.ones(2, 3))
    assert not fx.traceback.current_meta.get("custom")
    with pytest.raises(poptorch.Error, match="asks for the value of a tensor"):
        poptorch.inferenceModel(Fails())(torch.ones(3))
    assert not fx.traceback.current_meta.get("custom")


def of_elements(x):
    with poptorch.Block("first", ipu_id=0):
        x = x * 4
    with poptorch.Block("second", ipu_id=1):
        x = x + 1
    return x


def of_elements_chosen(x):
    with poptorch.Block("first", ipu_id=1):
        large, twice = x > 2, x * 2
    with poptorch.Block("second", ipu_id=0):
        x = torch.where(large, x, twice).half().sigmoid()
    return x


@pytest.mark.parametrize("function", [of_elements, of_elements_chosen])
@pytest.mark.parametrize("execution", [poptorch.ShardedExecution, poptorch.PipelinedExecution])
def test_blocks_of_element_operations_alone_run_on_their_ipus(function, execution):
    class Model(nn.Module):
        def forward(self, x):
            return function(x)

    options = poptorch.Options().deviceIterations(2)
    options.setExecutionStrategy(execution(poptorch.AutoStage.SameAsIpu))
    x = torch.arange(12.0).reshape(4, 3)
    torch.testing.assert_close(poptorch.inferenceModel(Model(), options)(x), function(x), rtol=1e-3, atol=1e-3)
