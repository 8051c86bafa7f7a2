"""States of an optimiser that change on the host, in whatever way, are those of the next call; the host sees the device's."""

import copy
import io
import pickle
from collections import defaultdict

import pytest
import torch
from line_model import Line, batch
from torch import nn

from pypoplar import poptorch
from pypoplar.engine.engine import Engine
from pypoplar.errors import InvalidOption, MissingFeature


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 4)


def sgd(optim):
    return lambda model: optim.SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.25)


def adam(optim):
    return lambda model: optim.Adam(model.parameters(), lr=0.05)


def rmsprop(optim):
    return lambda model: optim.RMSprop(model.parameters(), lr=0.02, momentum=0.5)


MAKERS = {
    **{
        f"{make.__name__} of {optim.__name__}": make(optim)
        for make in (sgd, adam, rmsprop)
        for optim in (torch.optim, poptorch.optim)
    },
    "adamw of poptorch": lambda model: poptorch.optim.AdamW(model.parameters(), lr=0.05),
    "lamb": lambda model: poptorch.optim.LAMB(model.parameters(), lr=0.05),
}


class Pair:
    """A model on the device, and the same in PyTorch alone."""

    def __init__(self, make):
        self.models = [Line(), Line()]
        self.optimizers = [make(model) for model in self.models]
        self.training = poptorch.trainingModel(self.models[0], optimizer=self.optimizers[0])

    def call(self, number):
        self.training(*batch(number))
        self.host_step(self.models[1], self.optimizers[1], number)
        self.compare()

    def host_step(self, model, optimizer, number):
        optimizer.zero_grad()
        model(*batch(number)).backward()
        optimizer.step()

    def step_on_the_host(self, number):
        for model, optimizer in zip(self.models, self.optimizers, strict=True):
            self.host_step(model, optimizer, number)

    def change(self, change):
        for optimizer in self.optimizers:
            change(optimizer)

    def compare(self):
        for mine, wanted in zip(*(model.parameters() for model in self.models), strict=True):
            torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-6)

    def compare_states(self):
        mine, wanted = (optimizer.state_dict()["state"] for optimizer in self.optimizers)
        assert mine.keys() == wanted.keys()
        for number, states in wanted.items():
            assert mine[number].keys() == states.keys()
            for name, state in states.items():
                torch.testing.assert_close(
                    torch.as_tensor(mine[number][name]).float(), torch.as_tensor(state).float(), rtol=1e-4, atol=1e-6
                )


@pytest.mark.parametrize("make", MAKERS)
def test_steps_on_the_host_and_on_the_device_go_on_from_each_other(make):
    pair = Pair(MAKERS[make])
    for number in range(0, 6, 2):
        pair.call(number)
        pair.call(number)
        pair.step_on_the_host(number + 1)
        pair.compare()
        pair.compare_states()
    pair.call(7)
    pair.compare_states()


def cleared(optimizer):
    optimizer.state.clear()


def replaced(optimizer):
    optimizer.state = defaultdict(dict)


def deleted(optimizer):
    for parameter in list(optimizer.state):
        del optimizer.state[parameter]


def emptied(optimizer):
    for states in optimizer.state.values():
        states.clear()


def zeroed(optimizer):
    for states in optimizer.state.values():
        for name, state in states.items():
            if name != "step":
                state.zero_()


def halved(optimizer):
    for states in optimizer.state.values():
        for name, state in states.items():
            if name != "step":
                state.data.mul_(0.5)


def through_numpy(optimizer):
    for states in optimizer.state.values():
        for name, state in states.items():
            if name != "step":
                state.numpy()[:] *= 2


def one_replaced(optimizer):
    states = optimizer.state[optimizer.param_groups[0]["params"][1]]
    name = next(name for name in states if name != "step")
    states[name] = torch.full((3,), 0.125)


def loaded_and_zeroed(optimizer):
    loaded(optimizer)
    zeroed(optimizer)


def stepped(optimizer):
    for states in optimizer.state.values():
        if "step" in states:
            states["step"] += 3


def loaded(optimizer):
    saved = copy.deepcopy(optimizer.state_dict())
    for states in saved["state"].values():
        for name in states:
            if name != "step":
                states[name] *= 0.5
    optimizer.load_state_dict(saved)


CHANGES = [cleared, replaced, deleted, emptied, zeroed, halved, through_numpy, one_replaced, stepped, loaded, loaded_and_zeroed]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("make", ["sgd of torch.optim", "adam of torch.optim", "adamw of poptorch"])
def test_what_the_host_changes_reaches_the_device(make, change):
    """Whether somebody has looked at the states before or not, and after a step on the host as well."""
    pair = Pair(MAKERS[make])
    pair.call(0)
    pair.change(change)
    pair.call(1)
    pair.compare_states()
    pair.change(change)
    pair.call(2)
    pair.step_on_the_host(3)
    pair.change(change)
    pair.call(4)
    pair.compare_states()


def test_changes_before_a_step_on_the_host_count():
    def loaded_and_cleared(optimizer):
        loaded(optimizer)
        cleared(optimizer)

    for change in (cleared, halved, loaded, loaded_and_cleared):
        for make in ("adam of torch.optim", "adamw of poptorch"):
            pair = Pair(MAKERS[make])
            pair.call(0)
            pair.change(change)
            pair.step_on_the_host(1)
            pair.call(2)
            pair.compare_states()


def test_states_of_the_device_are_seen_however_they_are_looked_at():
    ways = [
        lambda state: len(state),
        lambda state: len(list(state)),
        lambda state: len(dict(state)),
        lambda state: len({**state}),
        lambda state: len(state.keys()),
        lambda state: len(state.copy()),
        lambda state: len(copy.copy(state)),
        lambda state: len(copy.deepcopy(state)),
        lambda state: len(pickle.loads(pickle.dumps(state))),
        lambda state: len(state | {}),
        lambda state: len({} | state),
        lambda state: 2 * bool(state),
        lambda state: len([one for one in state.values() if "exp_avg" in one]),
    ]
    model = Line()
    optimizer = torch.optim.Adam(model.parameters())
    training = poptorch.trainingModel(model, optimizer=optimizer)
    for way in ways:
        training(*batch(0))
        assert way(optimizer.state) == 2
    training(*batch(0))
    assert model.layer.bias in optimizer.state
    training(*batch(0))
    assert float(optimizer.state[model.layer.bias]["step"]) == len(ways) + 2


def test_what_was_saved_before_a_call_stays_and_is_plain():
    model = Line()
    optimizer = torch.optim.Adam(model.parameters())
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    saved = optimizer.state_dict()
    wanted = copy.deepcopy(saved)
    training(*batch(1))
    assert optimizer.state_dict()["state"][0]["step"] == 2
    torch.testing.assert_close(saved["state"], wanted["state"], rtol=0, atol=0)
    stream = io.BytesIO()
    torch.save(saved, stream)
    stream.seek(0)
    torch.testing.assert_close(torch.load(stream, weights_only=True)["state"], wanted["state"], rtol=0, atol=0)
    assert type(copy.deepcopy(optimizer).state) is defaultdict


def test_states_that_cannot_be_written_are_refused_until_they_are_right():
    model = Line()
    optimizer = torch.optim.Adam(model.parameters())
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    weights, states = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    training(*batch(1))
    wanted = copy.deepcopy(model.state_dict())
    model.load_state_dict(weights)
    optimizer.load_state_dict(copy.deepcopy(states))
    right = optimizer.state[model.layer.bias]["exp_avg_sq"]
    optimizer.state[model.layer.bias]["exp_avg_sq"] = torch.ones(7)
    for _ in range(2):
        with pytest.raises(InvalidOption, match=r"exp_avg_sq of layer.bias has shape \(7,\)"):
            training(*batch(1))
    optimizer.state[model.layer.bias]["exp_avg_sq"] = right
    optimizer.state[model.layer.bias]["step"] += 1
    with pytest.raises(InvalidOption, match=r"have made \[1.0, 2.0\] steps"):
        training(*batch(1))
    optimizer.state[model.layer.bias]["step"] -= 1
    training(*batch(1))
    torch.testing.assert_close(dict(model.state_dict()), dict(wanted), rtol=0, atol=0)


def test_an_optimiser_that_goes_from_model_to_model_takes_its_states_along():
    make = MAKERS["adam of torch.optim"]
    pair = Pair(make)
    first, second = pair.training, poptorch.trainingModel(pair.models[0], optimizer=pair.optimizers[0])
    pair.call(0)
    pair.training = second
    pair.call(1)
    pair.change(halved)
    pair.training = first
    pair.call(2)
    pair.training = second
    pair.call(3)
    pair.change(cleared)
    pair.training = first
    pair.call(4)
    pair.compare_states()
    first.destroy()
    pair.compare_states()
    pair.training = second
    pair.call(5)
    pair.compare_states()


def test_a_loaded_optimiser_of_poptorch_steps_on_the_host_from_what_was_loaded():
    pair = Pair(MAKERS["adamw of poptorch"])
    pair.call(0)
    loaded_into = []
    for model, optimizer in zip(pair.models, pair.optimizers, strict=True):
        fresh = MAKERS["adamw of poptorch"](model)
        fresh.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
        loaded_into.append(fresh)
    pair.optimizers = loaded_into
    pair.step_on_the_host(1)
    pair.training = poptorch.trainingModel(pair.models[0], optimizer=loaded_into[0])
    pair.call(2)
    pair.compare_states()


def test_a_loaded_optimiser_of_poptorch_steps_on_the_host_after_a_look_at_its_states():
    pair = Pair(MAKERS["adamw of poptorch"])
    pair.call(0)
    pair.optimizers[0].load_state_dict(copy.deepcopy(pair.optimizers[0].state_dict()))
    pair.compare_states()
    pair.step_on_the_host(1)
    pair.compare()
    pair.call(2)
    pair.compare_states()


def test_scaled_velocities_are_for_the_device():
    model = Line()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5, use_combined_accum=True, velocity_scaling=4.0)
    poptorch.trainingModel(model, optimizer=optimizer)(*batch(0))
    with pytest.raises(MissingFeature, match="PyTorch's step on the host does not have use_combined_accum=True"):
        optimizer.step()


def test_parameters_that_leave_a_group_on_the_host_are_told(caplog):
    model = Line()
    optimizer = torch.optim.Adam(model.parameters())
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(*batch(0))
    caplog.clear()
    optimizer.param_groups[0]["params"].pop()
    training(*batch(1))
    assert sum("Adam: param_groups changed on the host" in message for message in caplog.messages) == 1


def test_tensors_that_have_changed_on_the_host_are_written_alone(monkeypatch):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    inference = poptorch.inferenceModel(model)
    x = torch.ones(1, 3)
    inference(x)
    written, write = [], Engine.writeTensor
    monkeypatch.setattr(Engine, "writeTensor", lambda self, handle, *rest: (written.append(handle), write(self, handle, *rest)))
    inference(x)
    assert written == []
    model[1].bias.data.numpy()[0] = 5  # which raises no version of the tensor
    torch.testing.assert_close(inference(x), model(x).detach())
    assert written == ["1.bias"]
    model[0].weight.data = torch.ones(3, 3)
    model[1].bias.data += 1
    torch.testing.assert_close(inference(x), model(x).detach())
    assert written == ["1.bias", "0.weight", "1.bias"]


def test_after_a_write_that_fails_the_device_gets_all_anew(monkeypatch):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    inference = poptorch.inferenceModel(model)
    x = torch.ones(1, 3)
    wanted, before = inference(x), copy.deepcopy(model.state_dict())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1
    with monkeypatch.context() as patch:
        written, write = [], Engine.writeTensor

        def failing(engine, handle, *rest):
            if written:
                raise OSError("no longer there")
            written.append(handle)
            write(engine, handle, *rest)

        patch.setattr(Engine, "writeTensor", failing)
        with pytest.raises(OSError, match="no longer there"):
            inference(x)
    model.load_state_dict(before)
    torch.testing.assert_close(inference(x), wanted)
