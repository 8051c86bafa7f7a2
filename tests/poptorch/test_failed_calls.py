"""A call that fails midway is undone: the next one goes on from what the one before it has left."""

import copy
import signal
import traceback
from unittest.mock import Mock

import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import ApplicationRuntimeError, PoplarError, PoplarIndexError


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 4)


class Watched(nn.Module):
    """A layer with all that a device keeps from call to call, and a function of the host in the middle of each batch."""

    def __init__(self, dropped=0.5):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.norm, self.drop = nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(dropped)
        self.calls, self.fails, self.problem = 0, -1, ValueError
        self.host = poptorch.CPU(self.watch, "watch")

    def watch(self, x):
        self.calls += 1
        if self.calls == self.fails:
            if self.problem is KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
            raise self.problem("the host has had enough")
        return x * 2

    def fail_in(self, batch, problem=ValueError):
        self.calls, self.fails, self.problem = 0, batch, problem

    def forward(self, x, labels):
        y = self.drop(self.norm(self.layer(x)))
        return self.host(y.detach()), nn.functional.cross_entropy(y, labels)


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=0.05)


def options(iterations=2, accumulated=2, mode=poptorch.OutputMode.Sum):
    chosen = poptorch.Options().deviceIterations(iterations).outputMode(mode).randomSeed(3)
    chosen.Training.gradientAccumulation(accumulated)
    return chosen


def batch(call, count=4, samples=6):
    generator = torch.Generator().manual_seed(call)
    return torch.randn(count * samples, 4, generator=generator), torch.randint(0, 3, (count * samples,), generator=generator)


def everything(model, training, optimizer):
    """All that the host has, and can ask for."""
    return model.state_dict(), optimizer.state_dict(), training.rng_state


def same(some, others):
    if isinstance(some, torch.Tensor):
        return torch.equal(some, others)
    if isinstance(some, dict):
        return some.keys() == others.keys() and all(same(one, others[name]) for name, one in some.items())
    if isinstance(some, list | tuple):
        return len(some) == len(others) and all(map(same, some, others))
    return some == others


OPTIMIZERS = {
    "Adam": adam,
    "momentum": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.5),
    "named": lambda model: poptorch.optim.AdamW(model.parameters(), lr=0.05),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("failing", "place"), [(1, "batch 1 of 4, device iteration 1 of 2"), (4, "batch 4 of 4, device iteration 2 of 2")]
)
def test_a_training_call_that_fails_changes_nothing(optimizer, failing, place):
    """The same calls without the one that fails give the same, to the bit."""
    outcomes = []
    for fails in (False, True):
        model = Watched()
        chosen = OPTIMIZERS[optimizer](model)
        training = poptorch.trainingModel(model, options(), chosen)
        training.compile(*batch(0))
        results = []
        for call in range(3):
            if fails:
                before = copy.deepcopy(everything(model, training, chosen))
                model.fail_in(failing)
                with pytest.raises(ValueError, match="had enough") as caught:
                    training(*batch(call + 10))
                assert f"failed in {place}. Weights and states are as before" in caught.value.__notes__[0]
                assert same(before, everything(model, training, chosen))
            results.append(training(*batch(call)))
        outcomes.append((results, everything(model, training, chosen)))
    assert same(*outcomes)


@pytest.mark.parametrize("failing", [2, 3])
def test_ctrl_c_and_faults_are_undone(failing):
    model = Watched(dropped=0.0)
    training = poptorch.trainingModel(model, options(3, 1), adam(model))
    other = copy.deepcopy(model)
    plain = poptorch.trainingModel(other, options(3, 1), adam(other))
    x, labels = batch(0, 3)
    assert same(training(x, labels), plain(x, labels))
    model.fail_in(failing, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        training(x, labels)
    assert f"batch {failing} of 3, device iteration {failing} of 3" in caught.value.__notes__[0]
    assert same(training(x, labels), plain(x, labels))
    assert same(model.state_dict(), other.state_dict())


@pytest.mark.parametrize("failing", [1, 4, 5, 6, 8])
def test_the_batch_is_told_where_outputs_have_a_period(failing):
    chosen = poptorch.Options().deviceIterations(4).outputMode(poptorch.OutputMode.EveryN, 2)
    chosen.Training.gradientAccumulation(2)
    model = Watched()
    training = poptorch.trainingModel(model, chosen, adam(model))
    training.compile(*batch(0, 8))
    model.fail_in(failing)
    with pytest.raises(ValueError, match="had enough") as caught:
        training(*batch(0, 8))
    assert f"batch {failing} of 8, device iteration {(failing + 1) // 2} of 4" in caught.value.__notes__[0]


class Quotient(nn.Module):
    """A division that faults where its argument has a 0."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return poptorch.identity_loss((self.scale / x), "sum")


def test_a_fault_of_the_device_is_undone():
    chosen = poptorch.Options().deviceIterations(3)
    chosen.Precision.enableFloatingPointExceptions(True)
    model = Quotient()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    training = poptorch.trainingModel(model, chosen, optimizer)
    good = torch.ones(9)
    wrong = torch.tensor([1.0] * 5 + [0.0] + [1.0] * 3)
    with pytest.raises(PoplarError) as caught:
        training(wrong)
    assert "batch 2 of 3, device iteration 2 of 3" in caught.value.__notes__[0]
    assert torch.equal(model.scale.detach(), torch.ones(3))
    assert not optimizer.state_dict()["state"]
    training(good)
    with pytest.raises(PoplarError):
        training(wrong)
    training(good)
    wanted = Quotient()
    theirs = torch.optim.SGD(wanted.parameters(), lr=0.1, momentum=0.9)
    for _ in range(6):
        theirs.zero_grad()
        wanted(torch.ones(3)).backward()
        theirs.step()
    torch.testing.assert_close(model.scale, wanted.scale)
    torch.testing.assert_close(optimizer.state[model.scale]["momentum_buffer"], theirs.state[wanted.scale]["momentum_buffer"])


def test_a_call_that_is_interrupted_while_the_module_gets_its_weights_is_undone(monkeypatch):
    model = Watched()
    training = poptorch.trainingModel(model, options(), adam(model))
    training(*batch(0))
    before = copy.deepcopy(model.state_dict())
    give = torch.Tensor.copy_
    copied = []

    def interrupted(self, *arguments):
        copied.append(self)
        if len(copied) == 3:
            raise KeyboardInterrupt
        return give(self, *arguments)

    with monkeypatch.context() as changed:
        changed.setattr(torch.Tensor, "copy_", interrupted)
        with pytest.raises(KeyboardInterrupt):
            training(*batch(1))
    assert same(before, model.state_dict())
    assert same(before, copy.deepcopy(training.model.state_dict()))
    training.copyWeightsToHost()
    assert same(before, model.state_dict())


def test_what_interrupts_the_undoing_leaves_it_to_the_next_use(monkeypatch):
    model = Watched()
    optimizer = adam(model)
    training = poptorch.trainingModel(model, options(), optimizer)
    training(*batch(0))
    before = copy.deepcopy(everything(model, training, optimizer))

    def interrupted(*_):
        raise KeyboardInterrupt

    model.fail_in(3)
    with monkeypatch.context() as changed:
        changed.setattr("pypoplar.engine.checkpoint.Checkpoint.put_back", interrupted)
        with pytest.raises(KeyboardInterrupt):
            training(*batch(1))
    assert same(before, everything(model, training, optimizer))


def test_what_interrupts_the_undoing_leaves_it_to_who_looks_at_the_optimisers_states(monkeypatch):
    """Nobody has looked before: what the device has is read, and that is what the call that failed has left there."""
    seen = []
    for fails in (False, True):
        model = Watched()
        optimizer = adam(model)
        training = poptorch.trainingModel(model, options(), optimizer)
        training(*batch(0))
        if fails:
            model.fail_in(3)
            with monkeypatch.context() as changed:
                changed.setattr("pypoplar.engine.checkpoint.Checkpoint.put_back", Mock(side_effect=KeyboardInterrupt))
                with pytest.raises(KeyboardInterrupt):
                    training(*batch(1))
        seen.append({name: dict(optimizer.state[parameter]) for name, parameter in model.named_parameters()})
    assert same(*seen)


def test_an_inference_model_that_fails_keeps_running_statistics_and_random_numbers():
    class Noisy(Watched):
        def forward(self, x):
            return self.host(self.norm(x[:, :3]) + torch.rand_like(x[:, :3]))

    outcomes = []
    for fails in (False, True):
        model = Noisy()
        inference = poptorch.inferenceModel(model, poptorch.Options().deviceIterations(4).randomSeed(3))
        inference.compile(batch(0)[0])
        results = []
        for call in range(2):
            if fails:
                model.fail_in(2)
                with pytest.raises(ValueError, match="had enough") as caught:
                    inference(batch(9)[0])
                assert "batch 2 of 4" in caught.value.__notes__[0]
            results.append(inference(batch(call)[0]))
        outcomes.append((results, model.state_dict(), inference.rng_state))
    assert same(*outcomes)


def test_weights_that_change_after_a_failed_call_are_those_of_the_next():
    model = Watched(dropped=0.0)
    training = poptorch.trainingModel(model, options(), torch.optim.SGD(model.parameters(), lr=0.1))
    training.compile(*batch(0))
    model.fail_in(2)
    with pytest.raises(ValueError, match="had enough"):
        training(*batch(0))
    model.load_state_dict(Watched().state_dict())
    other = Watched(dropped=0.0)
    other.load_state_dict(model.state_dict())
    training(*batch(1))
    poptorch.trainingModel(other, options(), torch.optim.SGD(other.parameters(), lr=0.1))(*batch(1))
    assert same(model.state_dict(), other.state_dict())


def test_a_callback_cannot_use_the_model_that_runs():
    model = Watched()
    optimizer = adam(model)
    training = poptorch.trainingModel(model, options(), optimizer)
    training.compile(*batch(0))
    model.fail_in(1, lambda _: training.rng_state)
    with pytest.raises(ApplicationRuntimeError, match="the engine is running"):
        training(*batch(0))
    training(*batch(0))


def test_a_compilation_that_is_interrupted_at_its_end_is_made_anew():
    def interrupt():
        raise KeyboardInterrupt

    outcomes = []
    for interrupted in (False, True):
        model = Watched()
        optimizer = adam(model)
        training = poptorch.trainingModel(model, options(), optimizer)
        if interrupted:
            hook = poptorch.registerPostCompileHook(interrupt)
            with pytest.raises(KeyboardInterrupt):
                training(*batch(0))
            hook.remove()
            assert not training.isCompiled()
        outcomes.append((training(*batch(0)), everything(model, training, optimizer)))
    assert same(*outcomes)


def test_the_traceback_of_what_cannot_be_lowered_has_the_line_of_the_module():
    class Picks(nn.Module):
        def forward(self, x):
            return x[torch.tensor([5])]

    with pytest.raises(PoplarIndexError) as caught:
        poptorch.inferenceModel(Picks())(torch.ones(3))
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    assert lines == ["poptorch.inferenceModel(Picks())(torch.ones(3))", "return x[torch.tensor([5])]"]


class Weighing(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5))


class Raising(Weighing):
    def forward(self, x):
        raise ValueError("of the user")


class Deciding(Weighing):
    def forward(self, x):
        return self.weight.sum() if x.sum() > 0 else 2 * self.weight.sum()


class Leaving(Weighing):
    def forward(self, x):
        return self.weight.sum() + torch.from_numpy(x.numpy()).sum()


OWNERS = (
    torch,
    torch.Tensor,
    torch.nn.functional,
    torch.nn.Module,
    torch.distributions.Distribution,
    torch.utils.data,
    torch.autograd,
)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("module", [Raising, Deciding, Leaving])
def test_a_module_that_cannot_be_captured_leaves_pytorch_as_it_was(module, training):
    """A mode of its export that stayed made plain losses forget their weights."""
    make = poptorch.trainingModel if training else poptorch.inferenceModel
    x, y, weight = torch.randn(3, 5), torch.randn(3, 5), torch.rand(3, 5)
    wanted = nn.functional.l1_loss(x, y, weight=weight)
    before = []
    for _ in range(2):  # the first one imports what comes late
        before = [dict(vars(owner)) for owner in OWNERS]
        with pytest.raises((ValueError, PoplarError), match=r"of the user|cannot run on the IPU"):
            make(module())(x)
    for owner, known in zip(OWNERS, before, strict=True):
        changed = [name for name, value in vars(owner).items() if known.get(name) is not value]
        assert changed == [], owner
        assert vars(owner).keys() == known.keys()
    assert not torch.overrides.has_torch_function((x,))
    assert type(torch.zeros(1) + 1) is torch.Tensor
    assert torch.equal(nn.functional.l1_loss(x, y, weight=weight), wanted)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
