"""Optimisers on the device make PyTorch's steps."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import poptorch
from pypoplar.errors import InvalidOption, MissingFeature
from pypoplar.popops.expr import PlaceHolder
from pypoplar.poptorch.update.accumulation import GradientReduction
from pypoplar.poptorch.update.element_update import plus
from pypoplar.types import HALF
from tests.helpers.update_rig import UpdateRig, parameters, steps_alike

SETTINGS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "weight_decay": 0.2, "maximize": True},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.8, "dampening": 0.4, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    ],
    "Adam": [
        {"lr": 0.05},
        {"lr": 0.05, "betas": (0.7, 0.9), "weight_decay": 0.1, "eps": 1e-4},
        {"lr": 0.05, "amsgrad": True, "maximize": True},
        {"lr": 0.05, "betas": (0.0, 0.9), "foreach": True},
    ],
    "AdamW": [{"lr": 0.05}, {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}],
    "RMSprop": [
        {"lr": 0.05},
        {"lr": 0.05, "centered": True, "weight_decay": 0.1},
        {"lr": 0.05, "momentum": 0.7, "alpha": 0.8},
        {"lr": 0.05, "momentum": 0.7, "centered": True, "maximize": True},
    ],
    "Adagrad": [{"lr": 0.05}, {"lr": 0.05, "weight_decay": 0.1, "maximize": True, "initial_accumulator_value": 0.5}],
    "Adadelta": [{"lr": 0.5}, {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1}],
    "Adamax": [{"lr": 0.05}, {"lr": 0.05, "betas": (0.7, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}],
}
EVERY = [(kind, chosen) for kind, several in SETTINGS.items() for chosen in several]


@pytest.mark.parametrize(("kind", "chosen"), EVERY)
def test_steps_are_pytorchs(kind, chosen):
    steps_alike(lambda parameters: getattr(torch.optim, kind)(parameters, **chosen))


def optim(kind, **chosen):
    return lambda parameters: getattr(poptorch.optim, kind)(parameters, **chosen)


def pytorchs(kind, **chosen):
    return lambda parameters: getattr(torch.optim, kind)(parameters, **chosen)


def test_a_decay_that_is_the_constant_0_is_not_computed():
    gradient, weight = PlaceHolder(1), PlaceHolder(2)
    assert plus(gradient, 0.0, weight) is gradient
    for number in (1.0, -1.0, PlaceHolder(3)):
        assert plus(gradient, number, weight) is not gradient


@pytest.mark.parametrize("correction", [True, False])
def test_steps_of_lamb_are_those_of_the_host(correction):
    steps_alike(optim("LAMB", lr=0.05, weight_decay=0.1, bias_correction=correction, max_weight_norm=1.5), relative=5e-5)


@pytest.mark.parametrize("correction", [True, False])
def test_eps_of_lamb_shortens_small_gradients_as_on_the_host(correction):
    steps_alike(optim("LAMB", lr=0.05, eps=0.1, bias_correction=correction), relative=5e-5)


def test_lamb_moves_nothing_where_there_are_no_gradients():
    weights = parameters()
    machine = UpdateRig(optim("LAMB", lr=0.05, weight_decay=0.0)(list(weights.values())), weights)
    machine.step({name: torch.zeros_like(one) for name, one in weights.items()})
    for name, one in weights.items():
        np.testing.assert_array_equal(machine.weight(name), one.detach().numpy())


def test_a_spread_that_rounding_brings_below_0_counts_as_0():
    """Of gradients that do not change the mean of squares is the square of the mean, but for the last bits."""
    weights = {"weight": torch.nn.Parameter(torch.zeros(200))}
    gradient = {"weight": torch.linspace(0.1, 2.0, 200)}
    optimizer = torch.optim.RMSprop(weights.values(), lr=0.01, alpha=0.3, eps=0.5, centered=True)
    machine = UpdateRig(optimizer, weights)
    for _ in range(20):
        machine.step(gradient)
    squares, means = (machine.engine.readTensor(state.handle).reshape(-1) for state in machine.update.states)
    assert (squares < means * means).any()
    before = machine.weight("weight")
    machine.step(gradient)
    np.testing.assert_allclose(before - machine.weight("weight"), 0.01 * gradient["weight"].numpy() / 0.5, rtol=5e-3)


class Unbiased(torch.optim.Optimizer):
    """AdamW without bias correction, RMSprop of TensorFlow, gradient descent of clipped gradients: as their papers say."""

    def __init__(self, params, rule, **settings):
        super().__init__(params, settings)
        self.rule = rule

    @torch.no_grad()
    def step(self):
        (group,) = self.param_groups
        longest = group.get("max_grad_norm")
        if longest is not None:
            norm = torch.cat([one.grad.flatten() for one in group["params"]]).norm()
            for one in group["params"]:
                one.grad = one.grad * min(1.0, longest / norm)
        for one in group["params"]:
            self.rule(one, one.grad, self.state[one], group)


def adamw_without_correction(weight, gradient, state, group):
    first, second = state.get("first", torch.zeros_like(weight)), state.get("second", torch.zeros_like(weight))
    state["first"] = 0.9 * first + 0.1 * gradient
    state["second"] = 0.99 * second + 0.01 * gradient**2
    weight -= group["lr"] * (state["first"] / (state["second"].sqrt() + 1e-8) + group["weight_decay"] * weight)


def tensorflows(weight, gradient, state, group):
    state["squares"] = 0.9 * state.get("squares", torch.ones_like(weight)) + 0.1 * gradient**2
    step = group["lr"] * gradient / (state["squares"] + 1e-3).sqrt()
    state["velocity"] = 0.5 * state.get("velocity", torch.zeros_like(weight)) + step
    weight -= state["velocity"]


def plain(weight, gradient, state, group):
    weight -= group["lr"] * gradient


def reference(rule, **settings):
    return lambda parameters: Unbiased(parameters, rule, **settings)


def test_what_poptorchs_optimisers_have_beyond_pytorchs():
    steps_alike(
        optim("AdamW", lr=0.05, betas=(0.9, 0.99), weight_decay=0.1, bias_correction=False),
        reference(adamw_without_correction, lr=0.05, weight_decay=0.1),
    )
    steps_alike(optim("RMSprop", lr=0.05, alpha=0.9, eps=1e-3, momentum=0.5, use_tf_variant=True), reference(tensorflows, lr=0.05))
    steps_alike(optim("SGD", lr=0.1, max_grad_norm=1.0), reference(plain, lr=0.1, max_grad_norm=1.0))


@pytest.mark.parametrize("reduction", GradientReduction)
def test_gradients_of_several_batches(reduction):
    steps_alike(pytorchs("SGD", lr=0.1), accumulated=3, reduction=reduction, calls=4)
    steps_alike(optim("Adam", lr=0.05, loss_scaling=1.0), pytorchs("Adam", lr=0.05), accumulated=3, reduction=reduction, calls=4)


@pytest.mark.parametrize("accumulated", [1, 3])
def test_velocities_take_up_gradients(accumulated):
    chosen = {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.1}
    combined = optim("SGD", **chosen, use_combined_accum=True, velocity_scaling=4.0)
    steps_alike(combined, pytorchs("SGD", **chosen), accumulated=accumulated)
    with pytest.raises(MissingFeature, match="use_combined_accum=True is missing with nesterov=True"):
        steps_alike(optim("SGD", **chosen, use_combined_accum=True, nesterov=True))


def test_a_velocity_of_one_parameter_takes_up_gradients():
    weight = {"weight": torch.nn.Parameter(torch.ones(3))}
    optimizer = optim("SGD", lr=0.5, momentum=0.5, use_combined_accum=True)(list(weight.values()))
    machine = UpdateRig(optimizer, weight)
    for _ in range(2):
        machine.step({"weight": torch.ones(3)})
    np.testing.assert_allclose(machine.weight("weight"), 1 - 0.5 * (1 + 1.5))


@pytest.mark.parametrize("kind", ["SGD", "AdamW", "RMSprop", "LAMB"])
def test_weights_of_halves(kind):
    chosen = {"lr": 0.05, **({"momentum": 0.5} if kind in ("SGD", "RMSprop") else {})}
    wanted = optim(kind, **chosen) if kind == "LAMB" else pytorchs(kind, **chosen)
    rounded = {"dtype": torch.float16, "relative": 4e-3, "absolute": 4e-3}
    steps_alike(pytorchs(kind, **chosen) if kind != "LAMB" else wanted, wanted, accumulated=2, **rounded)
    halves = {"accum_type": torch.float16}
    halves |= {"velocity_accum_type": torch.float16} if kind == "SGD" else {"first_order_momentum_accum_type": torch.float16}
    machine = steps_alike(optim(kind, **chosen, **halves), wanted, accumulated=2, **rounded)
    assert machine.update.reduction is GradientReduction.RUNNING_MEAN  # of halves, which a sum could be too large for
    assert HALF in {state.type for state in machine.update.states}


def test_a_running_mean_is_not_larger_than_the_gradients():
    weight = {"weight": torch.nn.Parameter(torch.zeros(3, dtype=torch.float16))}
    optimizer = optim("SGD", lr=1e-4, accum_type=torch.float16)(list(weight.values()))
    machine = UpdateRig(optimizer, weight, accumulated=4)
    machine.step(*[{"weight": torch.full((3,), 60000.0, dtype=torch.float16)}] * 4)
    np.testing.assert_allclose(machine.weight("weight"), -6.0, rtol=1e-3)


def test_parameters_without_gradients_stay():
    machine = steps_alike(pytorchs("Adam", lr=0.1, weight_decay=0.1), left_out=("layer.bias",), calls=3)
    np.testing.assert_array_equal(machine.weight("layer.bias"), machine.weights["layer.bias"].detach().numpy())


def test_groups_have_their_own_settings():
    def make(parameters):
        groups = [{"params": parameters[:1], "lr": 0.1}, {"params": parameters[1:], "weight_decay": 0.3, "betas": (0.5, 0.9)}]
        return torch.optim.AdamW(groups, lr=0.01)

    steps_alike(make)


def test_betas_that_change_correct_as_pytorchs():
    def change(call, optimizer):
        if call == 4:
            optimizer.param_groups[0].update(lr=0.02, betas=(0.6, 0.95), eps=1e-5, weight_decay=0.2)
        return call == 4

    given = {"lr": 0.05, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}
    steps_alike(optim("Adam", **given), pytorchs("Adam", **given), change=change)


def test_a_parameter_twice_is_an_error():
    weights = parameters()
    with pytest.warns(UserWarning, match="duplicate"):
        optimizer = torch.optim.SGD([weights["scale"], weights["scale"]], lr=0.1)
    with pytest.raises(InvalidOption, match="SGD: the parameter scale is in parameter group 0 twice"):
        UpdateRig(optimizer, weights)


NUMBERS = {"lr": (0.001, 0.2), "momentum": (0, 0.95), "dampening": (0, 0.5), "weight_decay": (0, 0.3), "alpha": (0.5, 0.99)}
NUMBERS |= {"eps": (1e-8, 1e-2)}
TAKES = {
    "SGD": ("lr", "momentum", "dampening", "weight_decay"),
    "Adam": ("lr", "betas", "eps", "weight_decay"),
    "AdamW": ("lr", "betas", "eps", "weight_decay"),
    "RMSprop": ("lr", "alpha", "eps", "weight_decay", "momentum"),
}
FLAGS = {"SGD": ("maximize",), "Adam": ("amsgrad", "maximize"), "AdamW": ("amsgrad", "maximize"), "RMSprop": ("maximize",)}


@st.composite
def optimizers(draw):
    """A kind and settings of it, and others that numbers change to."""
    kind = draw(st.sampled_from(sorted(TAKES)))

    def numbers():
        drawn = {name: draw(st.floats(*NUMBERS[name])) for name in TAKES[kind] if name != "betas"}
        return drawn | ({"betas": (draw(st.floats(0, 0.95)), draw(st.floats(0.5, 0.999)))} if "betas" in TAKES[kind] else {})

    return kind, numbers(), numbers(), {name: draw(st.booleans()) for name in FLAGS[kind]}


NO_MOMENTUM = {"lr": 0.125, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0}


@examples(8)
@given(optimizers(), st.booleans())
@example(("SGD", NO_MOMENTUM, NO_MOMENTUM | {"momentum": 0.5}, {"maximize": False}), True)
def test_drawn_settings(drawn, variable):
    """A momentum that can change has its velocity from the first step on; PyTorch begins one when it is not 0 any more."""
    kind, first, second, flags = drawn
    kept = {**first, "momentum": first["momentum"] or 1e-30} if variable and "momentum" in first else first

    def change(call, optimizer):
        if call == 3:
            optimizer.param_groups[0].update(second)
        return call == 3

    flags = {name: flag for name, flag in flags.items() if not (variable and name == "amsgrad")}
    make = optim(kind, **first, **flags) if variable else pytorchs(kind, **first, **flags)
    steps_alike(make, pytorchs(kind, **kept, **flags), calls=6, change=change if variable else None, relative=2e-4, absolute=2e-5)
