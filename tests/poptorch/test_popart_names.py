"""States and numbers of PopTorch's optimisers have PopART's names, by which they come and go."""

import copy

import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import InvalidOption
from pypoplar.poptorch.executor import building
from pypoplar.poptorch.update import popart_names

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


NUMBERS_OF_GROUP = {
    "lr": 0.1,
    "weight_decay": 0.25,
    "loss_scaling": 8.0,
    "momentum": 0.5,
    "dampening": 0.375,
    "velocity_scaling": 4.0,
    "beta1": 0.75,
    "beta2": 0.875,
    "eps": 0.0625,
    "max_weight_norm": 10.0,
    "alpha": 0.625,
}
WITH_VELOCITIES = {
    variant: {
        f"scaledMomentum{variant}": 0.5,
        f"dampeningScaleFactor{variant}": 0.625 * scale / 8,
        f"scaledLearningRate{variant}": 0.1 / scale,
        "scaledWeightDecay1": 0.625 * scale * 0.25,
    }
    for variant, scale in ((1, 4.0), (2, 1.0))
}
OF_ADAM = {"learningRate": 0.1, "weightDecay": 0.25, "adamBeta1": 0.75, "adamBeta2": 0.875, "adamEps": 0.0625}
VALUES = {
    "SGD without velocities": (popart_names.PLAIN, {"scaledLearningRate0": 0.0125, "weightDecayScaleFactor0": 0.975}),
    **{f"SGD{variant}": (popart_names._with_velocities(variant), values) for variant, values in WITH_VELOCITIES.items()},
    "Adam": (popart_names.NUMBERS["Adam"], OF_ADAM),
    "LAMB": (popart_names.NUMBERS["LAMB"], {**OF_ADAM, "maxWeightNorm": 10.0}),
    "RMSprop": (
        popart_names.NUMBERS["RMSprop"],
        {"learningRate": 0.1, "weightDecay": 0.25, "adaptiveAlpha": 0.625, "adaptiveMomentum": 0.5, "adaptiveEps": 0.0625},
    ),
}


@pytest.mark.parametrize("of", VALUES)
def test_each_number_of_poparts_is_its_formula_and_gives_back_the_group(of):
    table, values = VALUES[of]
    assert {one.name: pytest.approx(one.of(NUMBERS_OF_GROUP)) for one in table} == values
    for one in table:
        other = {**NUMBERS_OF_GROUP, one.number: 0.0 if one.number in ("dampening", "weight_decay") else 1.0}
        assert one.solve(values[one.name], other) == pytest.approx(NUMBERS_OF_GROUP[one.number])


def test_the_states_of_a_centred_optimizer_with_momentum_have_three_names():
    model, optimizer, training = made("RMSprop", centered=True, momentum=0.5)
    training(X)
    named, states = optimizer.state_dict()["ipu_state"], optimizer.state[model.lin.weight]
    for prefix, state in (("Accl1___", "square_avg"), ("Accl2___", "grad_avg"), ("Accl3___", "momentum_buffer")):
        torch.testing.assert_close(named[f"{prefix}lin.weight"], states[state])


@pytest.mark.parametrize(
    ("combined", "state", "momentum"), [(True, "Accl___", "scaledMomentum1"), (False, "Accl1___", "scaledMomentum2")]
)
def test_velocities_that_take_up_gradients_have_names_of_their_own(combined, state, momentum):
    _, optimizer, training = made("SGD", momentum=0.5, use_combined_accum=combined)
    training(X)
    found = optimizer.state_dict()
    assert {name for name in found["ipu_state"] if name.startswith("Accl") and name.endswith("lin.bias")} == {f"{state}lin.bias"}
    assert found["ipu_param"][f"{momentum}___specific___lin.bias"] == 0.5


def test_a_number_that_a_group_has_now_is_taken_whole_where_the_state_has_it_in_single_precision():
    (rate, *_), single = popart_names.ADAM, float(torch.tensor(0.1))
    assert single != 0.1
    assert popart_names._resolved(rate, {"lr": 0.5, "eps": 1.0}, {"lr": 0.1}, single) == {"lr": 0.1, "eps": 1.0}
    assert popart_names._resolved(rate, {"lr": 0.5, "eps": 1.0}, {"lr": 0.2}, single) == {"lr": single, "eps": 1.0}
    assert popart_names._resolved(rate, {"lr": 0.1, "eps": 1.0}, {"lr": 0.2}, single) == {"lr": 0.1, "eps": 1.0}


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


def test_what_setoptimizer_gives_comes_before_what_the_same_optimizer_has_loaded():
    _, optimizer, training = made("Adam")
    training(X)
    state = copy.deepcopy(optimizer.state_dict())
    for parameter in ("lin.weight", "lin.bias"):
        state["ipu_param"][f"learningRate___specific___{parameter}"] = torch.tensor(0.5)
    optimizer.load_state_dict(state)
    for group in optimizer.param_groups:
        group["lr"] = 0.25
    training.setOptimizer(optimizer)
    training(X)
    assert optimizer.state_dict()["ipu_param"]["learningRate___specific___lin.bias"] == 0.25


def in_two_groups(kind):
    """The same model and numbers, with a group for each parameter."""
    model = Line()
    groups = [{"params": [one], "lr": LR, "weight_decay": DECAY} for one in (model.lin.weight, model.lin.bias)]
    optimizer = getattr(poptorch.optim, kind)(groups, lr=LR, loss_scaling=SCALING)
    return model, optimizer, poptorch.trainingModel(model, optimizer=optimizer)


OWN = {"learningRate___specific___lin.bias": 0.3, "learningRate___specific___lin.weight": 0.02}


@pytest.mark.parametrize("kind", KINDS[1:])
def test_parameters_of_one_group_that_are_given_numbers_of_their_own_step_by_them(kind, caplog):
    model, optimizer, training = made(kind)
    wanted, other, theirs = in_two_groups(kind)
    for one, of_it in ((optimizer, training), (other, theirs)):
        of_it(X)
        state = copy.deepcopy(one.state_dict())
        state["ipu_param"] |= {name: torch.tensor(number) for name, number in OWN.items()}
        if kind != "RMSprop":  # it counts none
            state["ipu_state"]["Step___lin.bias"] = torch.tensor(7.0)
        one.load_state_dict(state)
        assert one.state_dict()["ipu_param"]["learningRate___specific___lin.bias"] == torch.tensor(0.3)
        for _ in range(2):
            of_it(X)
    assert [one for one in caplog.messages if "the optimiser's state has other numbers for each parameter of a group" in one]
    torch.testing.assert_close(model.state_dict(), wanted.state_dict())
    for part in ("ipu_state", "ipu_param"):
        torch.testing.assert_close(optimizer.state_dict()[part], other.state_dict()[part])


def test_velocities_stay_where_groups_are_parted_and_setoptimizer_makes_them_one_again():
    model, optimizer, training = made("SGD", momentum=0.9)
    wanted, other, theirs = made("SGD", momentum=0.9)
    training(X)
    theirs(X)
    state = copy.deepcopy(optimizer.state_dict())
    del state["ipu_state"]["Accl1___lin.weight"]
    state["ipu_param"]["scaledLearningRate2___specific___lin.bias"] = torch.tensor(0.0)
    optimizer.load_state_dict(state)
    bias = model.lin.bias.detach().clone()
    training(X)
    theirs(X)
    assert torch.equal(model.lin.bias, bias)
    torch.testing.assert_close(model.lin.weight, wanted.lin.weight)
    wanted.lin.bias.data.copy_(bias)
    for one, of_it in ((optimizer, training), (other, theirs)):
        one.param_groups[0]["lr"] = 0.01
        of_it.setOptimizer(one)
        of_it(X)
    torch.testing.assert_close(model.lin.weight, wanted.lin.weight)
    assert not torch.equal(model.lin.bias, bias)


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


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_state_may_lack_what_no_step_has_been_made_with(kind, caplog):
    _, optimizer, training = made(kind)
    training.compile(X)
    state = copy.deepcopy(optimizer.state_dict())
    del state["ipu_state"]["Accl1___lin.weight"]
    optimizer.load_state_dict(state)
    training(X)
    assert [one for one in caplog.messages if "lacks Accl1___lin.weight" in one]
    _, other, theirs = made(kind)
    theirs(X)
    torch.testing.assert_close(optimizer.state_dict()["ipu_state"], other.state_dict()["ipu_state"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_for_no_device_has_no_states(kind):
    options = poptorch.Options().useOfflineIpuTarget()
    model = Line()
    optimizer = getattr(poptorch.optim, kind)(model.parameters(), lr=LR)
    poptorch.trainingModel(model, options, optimizer).compile(X)
    state = optimizer.state_dict()
    assert state["ipu_state"] is None
    assert state["ipu_param"] is None
