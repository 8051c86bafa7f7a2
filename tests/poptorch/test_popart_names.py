"""States and numbers of PopTorch's optimisers have PopART's names, by which they come and go."""

import copy

import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import InvalidOption
from pypoplar.poptorch.executor import building

LR, DECAY, SCALING = 0.05, 0.025, 0.75


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setattr(building, "TILES", 4)


class Line(nn.Module):
    """A layer with a loss."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(3, 2)

    def forward(self, x):
        return poptorch.identity_loss(self.lin(x).square(), "mean")


def made(kind, **named):
    model = Line()
    optimizer = getattr(poptorch.optim, kind)(model.parameters(), lr=LR, weight_decay=DECAY, loss_scaling=SCALING, **named)
    return model, optimizer, poptorch.trainingModel(model, optimizer=optimizer)


X = torch.linspace(-1, 1, 6).reshape(2, 3)
KINDS = ["SGD", "Adam", "AdamW", "RMSprop", "LAMB"]


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_numbers_are_poparts_once_compiled(kind):
    _, optimizer, training = made(kind)
    assert optimizer.state_dict()["ipu_param"] is None
    training.compile(X)
    state = optimizer.state_dict()
    names = {"scaledLearningRate0": LR / SCALING, "weightDecayScaleFactor0": 1 - LR * DECAY}
    if kind != "SGD":
        names = {"learningRate": LR, "weightDecay": DECAY}
        assert {"Accl1___lin.weight", "Accl1___lin.bias"} <= state["ipu_state"].keys()
    for name, number in {**names}.items():
        for parameter in ("lin.weight", "lin.bias"):
            torch.testing.assert_close(state["ipu_param"][f"{name}___specific___{parameter}"], torch.tensor(number))
    torch.testing.assert_close(state["ipu_param"]["lossScaling_FLOAT"], torch.tensor(SCALING))
    training(X)
    after = optimizer.state_dict()["ipu_state"]
    assert kind == "SGD" or not torch.equal(after["Accl1___lin.weight"], state["ipu_state"]["Accl1___lin.weight"])


FORMS = [("SGD", {}), ("SGD", {"momentum": 0.9, "dampening": 0.2}), ("SGD", {"momentum": 0.9, "use_combined_accum": True})]


@pytest.mark.parametrize(("kind", "named"), [*FORMS, *((kind, {}) for kind in KINDS[1:])])
def test_numbers_of_a_loaded_state_are_those_of_the_next_step(kind, named):
    first_model, first, training = made(kind, **named)
    training(X)
    for group in first.param_groups:
        group.update(lr=0.2, weight_decay=0.1)
    training.setOptimizer(first)
    state, weights = copy.deepcopy(first.state_dict()), copy.deepcopy(first_model.state_dict())
    for group in state["param_groups"]:
        group.update(lr=7.0)  # which setOptimizer would give the device
    other_model, other, going_on = made(kind, **named)
    going_on(X)
    other_model.load_state_dict(weights)
    other.load_state_dict(state)
    for name, number in state["ipu_param"].items():
        assert other.state_dict()["ipu_param"][name] == number
    training(X)
    going_on(X)
    torch.testing.assert_close(list(other_model.parameters()), list(first_model.parameters()))
    torch.testing.assert_close(other.state_dict()["ipu_param"], state["ipu_param"])


def test_an_optimizer_that_is_set_comes_before_what_a_state_has():
    model, optimizer, training = made("Adam")
    training(X)
    state = copy.deepcopy(optimizer.state_dict())
    for group in state["param_groups"]:
        group["lr"] = 0.5
    loaded = poptorch.optim.Adam(model.parameters(), lr=0.1, weight_decay=DECAY, loss_scaling=SCALING)
    loaded.load_state_dict(state)
    training.setOptimizer(loaded)
    training(X)
    after = loaded.state_dict()
    assert after["ipu_param"]["learningRate___specific___lin.bias"] == 0.5
    assert after["ipu_state"]["Step___lin.bias"] == 2


def test_several_values_in_one_group_are_refused():
    _, optimizer, training = made("Adam")
    training(X)
    state = copy.deepcopy(optimizer.state_dict())
    state["ipu_param"]["learningRate___specific___lin.bias"] = torch.tensor(0.3)
    optimizer.load_state_dict(state)
    with pytest.raises(InvalidOption, match=r"the parameters of group 0 have 2 values of learningRate; .* make a group for each"):
        training(X)


def test_constants_of_the_program_are_not_loaded():
    model = Line()
    optimizer = poptorch.optim.Adam(model.parameters(), lr=LR)
    training = poptorch.trainingModel(model, optimizer=optimizer)
    training(X)
    state = copy.deepcopy(optimizer.state_dict())
    for parameter in ("lin.weight", "lin.bias"):
        state["ipu_param"][f"adamEps___specific___{parameter}"] = torch.tensor(0.1)
    optimizer.load_state_dict(state)
    with pytest.raises(InvalidOption, match=r"eps from 1e-08 to 0.1.*, which is a constant of the compiled program"):
        training(X)


def test_what_a_state_lacks_stays_as_it_is_on_the_device(caplog):
    _, optimizer, training = made("Adam")
    training(X)
    state = copy.deepcopy(optimizer.state_dict())
    del state["ipu_state"]["Accl1___lin.weight"]
    del state["ipu_param"]["learningRate___specific___lin.weight"]
    optimizer.load_state_dict(state)
    assert "Accl1___lin.weight" not in optimizer.state_dict()["ipu_state"]
    training(X)
    assert [one for one in caplog.messages if "lacks Accl1___lin.weight" in one]
    _, other, theirs = made("Adam")
    theirs(X)
    theirs(X)
    torch.testing.assert_close(optimizer.state_dict()["ipu_state"], other.state_dict()["ipu_state"])


def test_states_that_were_saved_by_the_names_of_before_are_taken():
    _, optimizer, training = made("AdamW")
    training(X)
    state = copy.deepcopy(optimizer.state_dict())
    old = {"Accl1___": "exp_avg/", "Accl2___": "exp_avg_sq/"}
    state["ipu_param"] = {"optimizer/0/step": state["ipu_state"]["Step___lin.weight"]}
    state["ipu_state"] = {
        f"{old[before]}{name.removeprefix(before)}": value
        for name, value in state["ipu_state"].items()
        for before in old
        if name.startswith(before)
    }
    model, other, going_on = made("AdamW")
    going_on(X)
    before = copy.deepcopy(other.state_dict()["ipu_state"])
    going_on(X)
    other.load_state_dict(state)
    assert other.state[model.lin.weight]["step"] == 1
    torch.testing.assert_close(other.state_dict()["ipu_state"], before)
