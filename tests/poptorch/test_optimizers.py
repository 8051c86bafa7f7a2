"""Optimisers: PyTorch's on the host, with PopTorch's arguments, checked, copied and saved."""

import copy
import inspect
import pickle

import numpy as np
import pytest
import torch

import pypoplar.poptorch as poptorch
from pypoplar.errors import ApplicationRuntimeError, InvalidOption, MissingFeature, PoplarTypeError
from pypoplar.poptorch.optim import LAMB, SGD, Adam, AdamW, RMSprop, optimizer_kind

MADE = {
    "SGD": lambda parameters: SGD(parameters, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda parameters: Adam(parameters, lr=0.01, weight_decay=0.01),
    "AdamW": lambda parameters: AdamW(parameters, lr=0.01, betas=(0.8, 0.99)),
    "RMSprop": lambda parameters: RMSprop(parameters, lr=0.01, momentum=0.5, centered=True),
    "LAMB": lambda parameters: LAMB(parameters, lr=0.01),
}
PYTORCHS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, betas=(0.8, 0.99)),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5, centered=True),
}


def parameters():
    return [torch.nn.Parameter(torch.linspace(-1, 1, 6).reshape(2, 3)), torch.nn.Parameter(torch.ones(3))]


def steps(optimizer, count=5):
    """The parameters of an optimiser after some steps down a bowl."""
    own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for _ in range(count):
        optimizer.zero_grad()
        sum(((parameter - 0.3) ** 2).sum() for parameter in own).backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in own])


@pytest.mark.parametrize("name", PYTORCHS)
def test_steps_on_the_host_are_pytorchs(name):
    assert torch.equal(steps(MADE[name](parameters())), steps(PYTORCHS[name](parameters())))


@pytest.mark.parametrize("eps", [1e-8, 0.1])
@pytest.mark.parametrize("correction", [True, False])
def test_a_step_of_lamb_is_the_papers(correction, eps):
    (weights,) = mine = [torch.nn.Parameter(torch.tensor([0.5, -2.0, 1.0]))]
    x, first, second = np.array([0.5, -2.0, 1.0]), np.zeros(3), np.zeros(3)
    optimizer = LAMB(mine, lr=0.1, eps=eps, weight_decay=0.05, max_weight_norm=2.0, bias_correction=correction)
    for step in range(1, 4):
        gradient = 2 * (x - 0.3)
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        scales = (1 - 0.9**step, 1 - 0.999**step) if correction else (1, 1)
        update = first / scales[0] / (np.sqrt(second / scales[1]) + eps) + 0.05 * x
        x = x - 0.1 * min(np.linalg.norm(x), 2.0) / np.linalg.norm(update) * update
        optimizer.zero_grad()
        ((weights - 0.3) ** 2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(weights.detach().numpy(), x, rtol=1e-5)


def test_lamb_takes_weights_for_no_longer_than_a_half_can_be_unless_it_is_told():
    weights = torch.nn.Parameter(torch.tensor([1e5]))
    optimizer = LAMB([weights], lr=1.0, weight_decay=0.0)
    weights.sum().backward()
    optimizer.step()
    assert weights.item() == pytest.approx(1e5 - 65500, abs=0.1)


def test_lamb_moves_weights_of_length_0_and_runs_a_closure():
    weights = torch.nn.Parameter(torch.zeros(2))
    optimizer = LAMB([weights])

    def closure():
        loss = (weights - 1).pow(2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2
    assert (weights > 0).all()


@pytest.mark.parametrize("name", MADE)
def test_hooks_of_a_step_run_once(name):
    PYTORCHS.get(name, MADE[name])(parameters()).step()
    optimizer, called = MADE[name](parameters()), []
    optimizer.register_step_pre_hook(lambda *_: called.append("before"))
    optimizer.register_step_post_hook(lambda *_: called.append("after"))
    steps(optimizer, 1)
    assert called == ["before", "after"]


@pytest.mark.parametrize("name", MADE)
def test_schedulers_change_the_rate(name):
    optimizer = MADE[name](parameters())
    rate = optimizer.param_groups[0]["lr"]
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    steps(optimizer, 1)
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == rate / 2


@pytest.mark.parametrize("cls", [SGD, Adam, AdamW, RMSprop])
def test_arguments_are_in_poptorchs_order(cls):
    ours = list(inspect.signature(cls).parameters)
    pytorchs = set(inspect.signature(cls._pytorch).parameters)
    own = [name for name in ours if name not in pytorchs]
    assert ours[-len(own) :] == own
    assert set(own) == set(cls._own)
    for name in ("loss_scaling", "accum_type"):
        assert name in own


@pytest.mark.parametrize("name", MADE)
def test_a_copy_has_the_attributes_too(name):
    optimizer = MADE[name](parameters())
    optimizer.loss_scaling = 8.0
    optimizer.variable_attrs.markAsConstant("lr")
    steps(optimizer, 1)
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert [getattr(other, attribute) for attribute in other._own] == [
            getattr(optimizer, attribute) for attribute in optimizer._own
        ]
        assert other.variable_attrs == optimizer.variable_attrs
        assert torch.equal(steps(other), steps(copy.deepcopy(optimizer)))


@pytest.mark.parametrize("name", MADE)
def test_a_state_is_saved_and_loaded(name):
    optimizer, other = MADE[name](parameters()), MADE[name](parameters())
    assert not optimizer.has_state()
    assert not optimizer.ipu_state_is_dirty
    assert not optimizer.host_state_is_dirty
    optimizer.set_state_dict({"ipu_state": {"a": 1}, "ipu_param": {"b": 2}})
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    other.load_state_dict(optimizer.state_dict())
    assert other.has_state()
    assert other.ipu_state_is_dirty
    assert not other.host_state_is_dirty
    assert other.state_dict()["ipu_state"] == {"a": 1}
    assert other.param_groups[0]["lr"] == 0.5


def test_a_state_that_has_none_of_a_device_is_refused():
    optimizer = SGD(parameters(), 0.1)
    with pytest.raises(ApplicationRuntimeError, match="the state is empty"):
        optimizer.load_state_dict({})
    with pytest.raises(RuntimeError, match="the state has no ipu_state and no ipu_param"):
        optimizer.load_state_dict(torch.optim.SGD(parameters(), 0.1).state_dict())


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda p: SGD(p, 0.1, loss_scaling=0), InvalidOption, "SGD: loss_scaling is a number above 0, got 0"),
        (lambda p: SGD(p, 0.1, loss_scaling=float("nan")), InvalidOption, "SGD: loss_scaling takes a number, got nan"),
        (lambda p: SGD(p, 0.1, accum_type=torch.double), InvalidOption, "SGD: accum_type is torch.float32 or torch.float16"),
        (lambda p: SGD(p, 0.1, use_combined_accum=1), PoplarTypeError, "use_combined_accum takes True or False, got 1"),
        (lambda p: SGD(p, 0.1, max_grad_norm=float("nan")), InvalidOption, "max_grad_norm is a number above 0, or infinite"),
        (lambda p: SGD(p, 0.1, max_grad_norm="1"), PoplarTypeError, "max_grad_norm takes a number"),
        (lambda p: Adam(p, amsgrad=True), MissingFeature, "Adam: pypoplar does not have amsgrad"),
        (lambda p: Adam(p, second_order_momentum_accum_type="half"), InvalidOption, "second_order_momentum_accum_type is torch"),
        (lambda p: RMSprop(p, use_tf_variant=2), PoplarTypeError, "use_tf_variant takes True or False"),
        (lambda p: LAMB(p, lr=-1), InvalidOption, "LAMB: lr is a number of at least 0, got -1"),
        (lambda p: LAMB(p, betas=(0.9, 1.0)), InvalidOption, "LAMB: betas are two numbers"),
        (lambda p: LAMB(p, max_weight_norm=0), InvalidOption, "LAMB: max_weight_norm is a number above 0"),
        (lambda p: SGD(p, -0.1), ValueError, "Invalid learning rate"),
    ],
)
def test_arguments_that_make_no_sense(make, kind, message):
    with pytest.raises(kind, match=message):
        make(parameters())


def test_attributes_are_checked_when_they_are_set():
    optimizer = AdamW(parameters())
    with pytest.raises(InvalidOption, match="AdamW: loss_scaling is a number above 0, got -1"):
        optimizer.loss_scaling = -1
    optimizer.loss_scaling = 1024
    assert optimizer.loss_scaling == 1024.0


def test_lamb_has_poptorchs_defaults():
    defaults = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2, "max_weight_norm": 65500.0}
    (group,) = LAMB(parameters()).param_groups
    assert {name: group[name] for name in defaults} == defaults


def test_what_is_not_given_is_constant():
    attributes = SGD(parameters(), 0.1, loss_scaling=2.0).variable_attrs
    assert not attributes.isConstant("lr")
    assert not attributes.isConstant("loss_scaling")
    assert attributes.isConstant("momentum")
    attributes.markAsVariable("momentum")
    attributes.markAsConstant("lr")
    assert (attributes.isConstant("momentum"), attributes.isConstant("lr")) == (False, True)
    with pytest.raises(InvalidOption, match="no value 'momentun'; did you mean 'momentum'"):
        attributes.isConstant("momentun")
    assert not LAMB(parameters(), betas=(0.8, 0.9)).variable_attrs.isConstant("betas")
    assert LAMB(parameters()).variable_attrs.isConstant("betas")


def test_velocities_are_scaled_by_group_where_accumulators_are_combined(caplog):
    first, second = parameters()
    groups = [{"params": [first]}, {"params": [second], "velocity_scaling": 4.0}]
    optimizer = SGD(groups, 0.1, momentum=0.5, use_combined_accum=True, velocity_scaling=2.0)
    assert [group["velocity_scaling"] for group in optimizer.param_groups] == [2.0, 4.0]
    optimizer.add_param_group({"params": parameters()})
    assert optimizer.param_groups[2]["velocity_scaling"] == 2.0
    assert not caplog.records
    assert "velocity_scaling" not in SGD(parameters(), 0.1, velocity_scaling=2.0).param_groups[0]
    assert "changes nothing without" in caplog.text


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda p: SGD(p, 0.1, max_grad_norm=1.0), "max_grad_norm"),
        (lambda p: AdamW(p, bias_correction=False), "bias_correction"),
        (lambda p: RMSprop(p, use_tf_variant=True), "use_tf_variant"),
    ],
)
def test_a_step_on_the_host_refuses_what_pytorchs_does_not_have(make, name):
    with pytest.raises(MissingFeature, match=f"does not have {name}="):
        steps(make(parameters()))


class Renamed(Adam):
    pass


class Own(torch.optim.SGD):
    def step(self, closure=None):
        return None


class TestKinds:
    @pytest.mark.parametrize("makers", [MADE, PYTORCHS])
    def test_of_pytorch_and_of_poptorch(self, makers):
        assert {name: optimizer_kind(make(parameters())) for name, make in makers.items()} == {name: name for name in makers}

    def test_of_derived_classes(self):
        assert optimizer_kind(Renamed(parameters())) == "Adam"
        assert optimizer_kind(torch.optim.Adam(parameters(), decoupled_weight_decay=True)) == "AdamW"
        with pytest.raises(MissingFeature, match="Own has a step of its own"):
            optimizer_kind(Own(parameters(), 0.1))

    @pytest.mark.parametrize(
        ("make", "kind", "message"),
        [
            (
                lambda p: torch.optim.Rprop(p),
                MissingFeature,
                "Rprop: pypoplar has the optimisers SGD, AdamW, Adam, RMSprop, LAMB, Adagrad, Adadelta, Adamax",
            ),
            (lambda p: torch.optim.Adagrad(p, lr_decay=0.1), MissingFeature, r"lr_decay is 0, got 0\.1 \(parameter group 0\)"),
            (lambda p: torch.optim.Adam(p, differentiable=True), MissingFeature, r"differentiable=True yet \(parameter group 0\)"),
            (lambda p: p, PoplarTypeError, "an optimiser is one of"),
        ],
    )
    def test_that_a_device_does_not_have(self, make, kind, message):
        with pytest.raises(kind, match=message):
            optimizer_kind(make(parameters()))


def test_they_are_where_poptorch_has_them():
    assert poptorch.optim.SGD is SGD
    assert issubclass(poptorch.optim.LAMB, torch.optim.Optimizer)


@pytest.mark.parametrize("base", [torch.optim.SGD, torch.optim.AdamW, poptorch.optim.SGD, poptorch.optim.LAMB])
def test_a_class_of_the_users_own_is_told_to_have_the_steps_of_its_base(base, caplog):
    class Own(base):
        pass

    for cls, told in ((base, 0), (Own, 1)):
        caplog.clear()
        module = torch.nn.Linear(2, 1)
        model = poptorch.trainingModel(Summed(module), optimizer=cls(module.parameters(), lr=0.1))
        model(torch.ones(1, 2))
        words = "Own is a class of your own. Poptorch does not run Python optimizer code directly; the device makes steps of"
        assert len([one for one in caplog.messages if words in one]) == told


@pytest.mark.parametrize("register", ["register_step_pre_hook", "register_step_post_hook"])
def test_hooks_of_a_step_are_told_not_to_be_called(register, caplog):
    module = torch.nn.Linear(2, 1)
    plain, hooked = (torch.optim.SGD(module.parameters(), lr=0.1) for _ in range(2))
    getattr(hooked, register)(lambda *given: None)
    words = "SGD has hooks of its step, which are not called"
    model = poptorch.trainingModel(Summed(module), optimizer=plain)
    assert not any(words in one for one in caplog.messages)
    model.setOptimizer(hooked)
    poptorch.trainingModel(Summed(module), optimizer=hooked)
    assert len([one for one in caplog.messages if words in one]) == 2


class Summed(torch.nn.Module):
    """A layer whose sum is the loss."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return poptorch.identity_loss(self.layer(x), "sum")
