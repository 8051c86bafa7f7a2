"""Models train with optimisers whose numbers change and whose states are saved and loaded."""

import copy
import pickle

import numpy as np
import pytest
import torch
from line_model import Line, batch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import InvalidOption, MissingFeature, PoplarTypeError
from pypoplar.poptorch.update.host_state import HostState


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 4)


def pytorch_steps(model, optimizer, calls):
    for call in calls:
        optimizer.zero_grad()
        model(*batch(call)).backward()
        optimizer.step()


def same(model, other, relative=1e-5, absolute=1e-6):
    for mine, wanted in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach().float().numpy(), wanted.detach().float().numpy(), rtol=relative, atol=absolute)


def adam(model, **settings):
    return torch.optim.Adam(model.parameters(), lr=0.05, **settings)


def test_states_of_pytorchs_optimisers_go_to_the_host_and_back():
    model = Line(unused=True)
    other = copy.deepcopy(model)
    optimizer, theirs = adam(model, amsgrad=True), adam(other, amsgrad=True)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    assert not optimizer.state_dict()["state"]
    for call in range(3):
        training(*batch(call))
    pytorch_steps(other, theirs, range(3))
    saved, wanted = copy.deepcopy(optimizer.state_dict()), theirs.state_dict()
    assert saved["state"].keys() == wanted["state"].keys()
    for number, state in wanted["state"].items():
        assert saved["state"][number].keys() == state.keys()
        for name, one in state.items():
            np.testing.assert_allclose(saved["state"][number][name].numpy(), one.numpy(), rtol=1e-4, atol=1e-7)
    weights = copy.deepcopy(model.state_dict())
    training(*batch(3))
    model.load_state_dict(weights)
    optimizer.load_state_dict(saved)
    training(*batch(3))
    pytorch_steps(other, theirs, [3])
    same(model, other)
    optimizer.step()  # on the host, with the gradients of none
    fresh = adam(model, amsgrad=True)
    training.setOptimizer(fresh)  # which has no states: the device's stay
    training(*batch(4))
    pytorch_steps(other, theirs, [4])
    same(model, other)
    fresh.load_state_dict(adam(Line(unused=True), amsgrad=True).state_dict())  # as before the first step
    training(*batch(5))
    last = adam(other, amsgrad=True)
    pytorch_steps(other, last, [5])
    same(model, other)


@pytest.mark.parametrize("optim", [torch.optim, poptorch.optim])
def test_a_loaded_state_is_that_of_the_object_before_the_next_step_too(optim):
    model = Line(unused=True)
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    first = copy.deepcopy(optimizer.state_dict())
    training(*batch(1))  # the device is ahead of the object
    optimizer.load_state_dict(copy.deepcopy(first))
    alike(optimizer.state_dict(), first)


def alike(one, other):
    """Assert that two states are the same."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            alike(one[key], other[key])
    else:
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def test_what_the_object_has_from_the_device_is_not_written_back(monkeypatch):
    model, written = Line(unused=True), []
    optimizer = adam(model)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    optimizer.state_dict()
    write = HostState._write
    monkeypatch.setattr(HostState, "_write", lambda self, given: (written.append(given), write(self, given)))
    training(*batch(1))
    assert not written
    optimizer.state_dict()
    optimizer.state[model.layer.weight]["exp_avg"] += 1
    training(*batch(2))
    assert len(written) == 1


def test_betas_of_pytorchs_optimisers_are_constants_of_the_program():
    model = Line(unused=True)
    optimizer = adam(model, betas=(0.8, 0.9))
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    optimizer.param_groups[0]["betas"] = (0.7, 0.9)
    with pytest.raises(InvalidOption, match=r"from 0\.8 to 0\.7, which is a constant .*markAsVariable\('betas'\)"):
        training.setOptimizer(optimizer)


def test_steps_on_the_host_go_on_on_the_device():
    model = Line(unused=True)
    other = copy.deepcopy(model)
    optimizer, theirs = adam(model), adam(other)
    pytorch_steps(model, optimizer, range(2))
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(2))
    pytorch_steps(other, theirs, range(3))
    same(model, other)
    assert [float(state["step"]) for state in optimizer.state_dict()["state"].values()] == [3.0, 3.0]


def test_states_of_poptorchs_optimisers_are_named():
    model = Line(unused=True)
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=0.05)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    assert optimizer.host_state_is_dirty
    saved = pickle.loads(pickle.dumps((optimizer.state_dict(), model.state_dict())))
    names = [f"{state}___layer.{parameter}" for state in ("Accl1", "Accl2", "Step") for parameter in ("bias", "weight")]
    assert sorted(saved[0]["ipu_state"]) == names
    assert saved[0]["ipu_state"]["Step___layer.weight"] == 1
    training(*batch(1))
    again = Line(unused=True)
    again.load_state_dict(saved[1])
    loaded = poptorch.optim.AdamW(again.parameters(), lr=0.05)
    loaded.load_state_dict(saved[0])
    poptorch.trainingModel(again, optimizer=loaded)(*batch(1))
    same(again, model, 0, 0)
    state = {"ipu_state": {"exp_avg/other": torch.ones(1)}, "ipu_param": {}}
    optimizer.set_state_dict(state)
    with pytest.raises(InvalidOption, match="the state is that of another model's optimiser: it differs in exp_avg/other"):
        training(*batch(2))


def test_numbers_change_without_compilation_where_they_are_variable(caplog):
    model = Line(unused=True)
    other = copy.deepcopy(model)
    make = {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.1, "loss_scaling": 8.0}
    optimizer = poptorch.optim.SGD(model.parameters(), **make)
    theirs = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.5, weight_decay=0.1)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    pytorch_steps(other, theirs, [0])
    changes = {"lr": 0.3, "momentum": 0.8, "weight_decay": 0.0}
    for one in (optimizer, theirs):
        one.param_groups[0].update(changes)
    training(*batch(1))
    training(*batch(1))
    told = [record.message for record in caplog.records if "changed on the host" in record.message]
    assert len(told) == 1
    assert "SGD: lr, momentum, weight_decay changed" in told[0]
    theirs.param_groups[0].update(lr=0.1, momentum=0.5, weight_decay=0.1)
    pytorch_steps(other, theirs, [1, 1])
    theirs.param_groups[0].update(changes)
    optimizer.loss_scaling = 32.0
    training.setOptimizer(optimizer)
    training(*batch(2))
    pytorch_steps(other, theirs, [2])
    same(model, other)
    optimizer.param_groups[0]["dampening"] = 0.5
    with pytest.raises(InvalidOption, match=r"group 0: dampening from 0.0 to 0.5, which is a constant .*markAsVariable"):
        training.setOptimizer(optimizer)
    optimizer.param_groups[0].update(dampening=0.0, nesterov=True)
    with pytest.raises(InvalidOption, match="nesterov from False to True is another program"):
        training.setOptimizer(optimizer)
    with pytest.raises(InvalidOption, match="the model was compiled for SGD, got Adam"):
        training.setOptimizer(adam(model))
    groups = [{"params": model.layer.parameters()}, {"params": [model.unused]}]
    with pytest.raises(InvalidOption, match="compiled for 1 groups of parameters"):
        training.setOptimizer(poptorch.optim.SGD(groups, **make))


def test_a_number_that_is_none_is_refused_by_its_name():
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for wrong in ("0.1", True, [0.1], torch.ones(2)):
        optimizer.param_groups[0]["lr"] = wrong
        with pytest.raises(PoplarTypeError, match="SGD, parameter group 0: lr is a number, got "):
            poptorch.trainingModel(model, optimizer=optimizer)(*batch(0))


def test_a_parameter_that_changes_its_group_on_the_host_is_told(caplog):
    model = Line()
    groups = [{"params": [parameter]} for parameter in model.parameters()]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    assert not [record for record in caplog.records if "changed on the host" in record.message]
    for group, parameter in zip(optimizer.param_groups, reversed(list(model.parameters())), strict=True):
        group["params"] = [parameter]
    training(*batch(1))
    assert [record for record in caplog.records if "SGD: param_groups changed on the host" in record.message]


def test_states_join_other_dictionaries_from_either_side():
    model = Line()
    optimizer = adam(model)
    poptorch.trainingModel(model, optimizer=optimizer)(*batch(0))
    for joined in (optimizer.state | {"mine": {}}, {"mine": {}} | optimizer.state):
        assert set(joined) == {"mine", *model.parameters()}
        assert all(joined[parameter]["exp_avg"].any() for parameter in model.parameters())


def test_losses_of_halves_are_scaled_and_gradients_not_lost():
    model = Line(unused=True).half()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=1.0, loss_scaling=1024.0)
    small = poptorch.trainingModel(model, optimizer=optimizer)
    x, labels = batch(0, torch.float16)
    before = copy.deepcopy(model).float()
    small(x, labels)
    theirs = torch.optim.SGD(before.parameters(), lr=1.0)
    before(x.float(), labels).backward()
    theirs.step()
    same(model, before, 2e-3, 1e-3)
    optimizer.loss_scaling = 1e5
    with pytest.raises(InvalidOption, match=r"loss_scaling is 100000\.0, and the loss has a type of numbers up to 65504"):
        small.setOptimizer(optimizer)


class Tied(nn.Module):
    """Two layers of one weight, one that is frozen."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.frozen = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.second.weight = self.first.weight
        self.frozen.weight.requires_grad_(False)

    def forward(self, x, labels):
        return nn.functional.cross_entropy(self.frozen(self.second(torch.relu(self.first(x)))), labels)


def test_tied_and_frozen_parameters_and_those_of_no_group():
    model = Tied()
    other = copy.deepcopy(model)

    def make(one):
        weights, biases = [one.first.weight, one.frozen.weight], [one.second.bias, one.frozen.bias]
        return torch.optim.SGD([{"params": weights}, {"params": biases, "lr": 0.05, "momentum": 0.5}], lr=0.2)

    optimizer, theirs = make(model), make(other)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    for call in range(3):
        training(*batch(call))
    pytorch_steps(other, theirs, range(3))
    same(model, other)
    assert model.second.weight is model.first.weight


def test_optimisers_that_make_no_sense_for_a_model():
    model = Line(unused=True)
    with pytest.raises(InvalidOption, match=r"SGD updates 3 of 3 tensors .* of shape \(2,\) in parameter group 0"):
        poptorch.trainingModel(model, optimizer=torch.optim.SGD(Line(unused=True).parameters(), lr=0.1))(*batch(0))
    with pytest.raises(MissingFeature, match="Rprop: pypoplar has the optimisers SGD, AdamW, Adam, RMSprop, LAMB"):
        poptorch.trainingModel(model, optimizer=torch.optim.Rprop(model.parameters()))(*batch(0))


@pytest.mark.parametrize("optim", [torch.optim, poptorch.optim])
def test_a_new_model_goes_on_with_an_optimisers_states(optim):
    model = Line(unused=True)
    other = copy.deepcopy(model)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for call in range(3):
        poptorch.trainingModel(model, optimizer=optimizer)(*batch(call))
    pytorch_steps(other, torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9), range(3))
    same(model, other)
