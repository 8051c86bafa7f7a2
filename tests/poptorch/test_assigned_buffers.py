"""Buffers that layers set to new tensors have these after a call, and changes through `detach()` do not lose gradients silently."""

import copy

import pytest
import torch
from torch.utils import _pytree as pytree

from pypoplar import poptorch
from pypoplar.poptorch import CaptureError


class Assigning(torch.nn.Module):
    def __init__(self, change):
        super().__init__()
        self.register_buffer("a", torch.rand(3, 4))
        self.register_buffer("b", torch.rand(3, 4))
        self.weight = torch.nn.Parameter(torch.rand(4))
        self.change = change

    def forward(self, x):
        return self.change(self, x)


class Outer(torch.nn.Module):
    """Two layers, each called twice."""

    def __init__(self, change):
        super().__init__()
        self.layers = torch.nn.ModuleList([Assigning(change), Assigning(change)])

    def forward(self, x):
        results = [layer(x) for layer in self.layers for _ in range(2)]
        return results, poptorch.identity_loss(sum(one.sum() for one in pytree.tree_leaves(results)), "none")


class Single(Assigning):
    """One layer, which is the model."""

    @property
    def layers(self):
        return [self]

    def forward(self, x):
        results = self.change(self, x)
        return results, poptorch.identity_loss(sum(one.sum() for one in pytree.tree_leaves(results)), "none")


def moves(layer, x):
    layer.a = layer.a * 0.9 + 0.1
    return x * layer.weight


def swaps(layer, x):
    layer.a, layer.b = layer.b, layer.a
    return x * layer.a + layer.b * layer.weight


def uses_what_was_there(layer, x):
    old = layer.a
    layer.a = old * 2
    return old, old * layer.weight, layer.a


def returns_views_of_what_was_there(layer, x):
    flat, first = layer.a.reshape(-1), layer.a[0]
    layer.a = layer.a * 0.5
    return flat, first.detach(), layer.a.T, x * layer.weight


def hands_on(layer, x):
    layer.a = layer.b
    layer.b = x * layer.weight
    return layer.a + layer.b


def changes_what_was_assigned(layer, x):
    layer.a = layer.a + x
    y = layer.a * layer.weight
    layer.a = layer.a.flip(0)
    layer.a.add_(1)
    return y


def swaps_copies(layer, x):
    layer.a, layer.b = layer.b.clone(), layer.a.clone()
    return x * layer.a + layer.b * layer.weight


CHANGES = [moves, swaps, uses_what_was_there, returns_views_of_what_was_there, hands_on, changes_what_was_assigned, swaps_copies]


@pytest.mark.parametrize("kind", [Outer, Single])
@pytest.mark.parametrize("change", CHANGES)
def test_layers_find_what_their_last_call_set_their_buffers_to(kind, change):
    torch.manual_seed(3)
    model = kind(change)
    host, x = copy.deepcopy(model), torch.rand(3, 4)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    optimizer = torch.optim.SGD(host.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        wanted, loss = host(x)
        loss.backward()
        optimizer.step()
        for layer in host.layers:
            layer.a, layer.b = layer.a.detach(), layer.b.detach()
        got, _ = training(x)
        for one, other in zip(pytree.tree_leaves(got), pytree.tree_leaves(wanted), strict=True):
            torch.testing.assert_close(one, other.detach())
    training.copyWeightsToHost()
    for name, one in model.state_dict().items():
        torch.testing.assert_close(one, host.state_dict()[name], msg=name)


def becomes_another(layer, x):
    layer.a = layer.b
    return x * layer.a


def becomes_a_view(layer, x):
    layer.a = layer.b.flip(0)
    layer.b = layer.a.view(3, 4)
    return x * layer.a


@pytest.mark.parametrize("kind", [Outer, Single])
@pytest.mark.parametrize("change", [becomes_another, becomes_a_view])
def test_buffers_that_become_one_are_refused(kind, change):
    with pytest.raises(poptorch.Error, match=r"the buffer .* is set to the buffer .*, .* set it to a clone\(\) of it"):
        poptorch.inferenceModel(kind(change))(torch.rand(3, 4))


@pytest.mark.parametrize("trained", [False, True])
def test_a_buffer_that_becomes_a_parameter_which_is_trained_is_refused(trained):
    def becomes_a_parameter(layer, x):
        layer.a = layer.frozen.detach().view(3, 4)
        return x * layer.a * layer.weight

    model = Single(becomes_a_parameter)
    model.frozen = torch.nn.Parameter(torch.rand(12), requires_grad=trained)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    if trained:
        with pytest.raises(poptorch.Error, match=r"the buffer a is set to the parameter frozen, .* set it to a clone\(\) of it"):
            training(torch.rand(3, 4))
    else:
        training(torch.rand(3, 4))
        assert torch.equal(model.a, model.frozen.view(3, 4))


def test_an_inference_keeps_what_a_layer_set():
    model = Outer(moves)
    before = model.layers[1].a.clone()
    poptorch.inferenceModel(model)(torch.rand(3, 4))
    torch.testing.assert_close(model.layers[1].a, (before * 0.9 + 0.1) * 0.9 + 0.1)


class Detaching(torch.nn.Module):
    def __init__(self, change):
        super().__init__()
        self.weight, self.change = torch.nn.Parameter(torch.rand(3, 4)), change

    def forward(self, x):
        y = self.change(self.weight * 1, x) + self.weight
        return y, poptorch.identity_loss(y.sum(), "none")


def through_a_view(v, x):
    v.detach().view(-1)[::2].add_(1)
    return v


def of_a_view(v, x):
    flat = v.view(-1)
    v.detach().mul_(2)
    return flat.view(3, 4)


def of_what_was_written(v, x):
    u = torch.zeros(3, 4)
    u[0] = v[0]
    u.detach().mul_(2)
    return u


def of_a_copy(v, x):
    return v + v.detach().clone().add_(1)


def of_what_is_not_used(v, x):
    return x + v.detach().add_(1)


def of_what_has_no_gradient(v, x):
    u = x * 2
    u.detach().add_(1)
    return v + u


@pytest.mark.parametrize("change", [through_a_view, of_a_view, of_what_was_written])
def test_a_change_through_detach_of_what_has_gradients_is_refused_where_it_is_used_after_that(change):
    model = Detaching(change)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0))
    with pytest.raises(CaptureError, match=r"changed in place through its detach\(\), and used after that.*`.*[uv]\.detach\(\)"):
        training(torch.rand(3, 4))


@pytest.mark.parametrize("change", [of_a_copy, of_what_is_not_used, of_what_has_no_gradient])
def test_other_changes_through_detach_leave_gradients_as_they_are(change):
    model, x = Detaching(change), torch.rand(3, 4)
    host = copy.deepcopy(model)
    wanted, loss = host(x)
    loss.backward()
    before = model.weight.detach().clone()
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0))
    got, _ = training(x)
    training.copyWeightsToHost()
    torch.testing.assert_close(got, wanted.detach())
    torch.testing.assert_close(before - model.weight.detach(), host.weight.grad)


class Rotating(torch.nn.Module):
    """Buffers that take the values of each other, and views of themselves."""

    def __init__(self):
        super().__init__()
        for name in "abc":
            self.register_buffer(name, torch.rand(3, 3))

    def forward(self, x):
        a = self.a.clone()
        self.a.copy_(self.b)
        self.b.copy_(self.c.T)
        self.c.copy_(a.flip(0))
        return x * 2


def test_buffers_get_their_new_values_at_once():
    model = Rotating()
    host = copy.deepcopy(model)
    inference = poptorch.inferenceModel(model)
    for _ in range(3):
        inference(torch.ones(2))
        host(torch.ones(2))
        for name, one in model.state_dict().items():
            assert torch.equal(one, host.state_dict()[name]), name


class Converting(torch.nn.Module):
    """Buffers that get values of another type, and of a shape that is broadcast."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(2, 3))
        for name, type in (("floats", torch.float32), ("halves", torch.float16), ("integers", torch.int64), ("row", torch.float32)):
            self.register_buffer(name, torch.ones(2, 3, dtype=type))

    def forward(self, x):
        self.integers.copy_(x)
        self.halves.copy_(x[:, :1])
        self.floats.copy_(x > 2)
        self.row.copy_(x[0])
        y = self.weight * self.integers + self.halves + self.floats * self.row
        return y, poptorch.identity_loss(y, "sum")


@pytest.mark.parametrize("training", [False, True])
def test_what_is_copied_into_a_buffer_gets_its_type_and_shape(training):
    model, x = Converting(), torch.tensor([[1.7, 2.3, -1.2], [4.9, 0.4, 2.0]])
    host = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    ipu = poptorch.trainingModel(model, optimizer=optimizer) if training else poptorch.inferenceModel(model)
    y, _ = ipu(x)
    wanted, loss = host(x)
    torch.testing.assert_close(y, wanted.detach())
    for name, one in model.named_buffers():
        assert torch.equal(one, host.get_buffer(name)), name
    if training:
        loss.backward()
        torch.testing.assert_close(model.weight.detach(), (host.weight - 0.5 * host.weight.grad).detach())


def one_after_the_other(layer, x):
    layer.a.copy_(layer.b)
    layer.b.copy_(x)
    layer.a.copy_(layer.b)
    return x * layer.weight


def one_becomes_what_the_other_was(layer, x):
    shown = layer.a
    layer.a.copy_(layer.b)
    layer.b.copy_(shown)
    return layer.a * layer.weight


@pytest.mark.parametrize("change", [one_after_the_other, one_becomes_what_the_other_was])
@pytest.mark.parametrize("training", [False, True])
def test_two_buffers_may_get_one_value(change, training):
    model, x = Single(change), torch.rand(3, 4)
    host = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ipu = poptorch.trainingModel(model, optimizer=optimizer) if training else poptorch.inferenceModel(model)
    torch.testing.assert_close(ipu(x)[0], host(x)[0].detach())
    for name, one in model.named_buffers():
        assert torch.equal(one, host.get_buffer(name)), name


class Flipping(Rotating):
    def forward(self, x):
        self.a.copy_(self.a.T)
        self.b = self.b.flip(1)
        self.c.mul_(1)
        return x * 2


def test_a_buffer_may_become_a_view_of_what_it_was():
    model = Flipping()
    before = copy.deepcopy(model.state_dict())
    poptorch.inferenceModel(model)(torch.ones(2))
    assert torch.equal(model.a, before["a"].T)
    assert torch.equal(model.b, before["b"].flip(1))
    assert torch.equal(model.c, before["c"])
