"""Activation functions give PyTorch's results and gradients."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import Plain, check, compiled

from pypoplar.poptorch import identity_loss

TYPES = [torch.float32, torch.float16]

ACTIVATIONS = {
    "relu": torch.relu,
    "relu6": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, -2, 0.5),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "rrelu": F.rrelu,
    "elu": lambda x: F.elu(x, 1.5),
    "celu": lambda x: F.celu(x, 2.0),
    "selu": F.selu,
    "gelu": F.gelu,
    "gelu of tanh": lambda x: F.gelu(x, approximate="tanh"),
    "logsigmoid": F.logsigmoid,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "silu": F.silu,
    "mish": F.mish,
    "softplus": lambda x: F.softplus(x, 2.0, 5.0),
    "threshold": lambda x: F.threshold(x, 0.25, 20.0),
    "threshold of 0": lambda x: F.threshold(x, 0, 20.0),
}
VALUES = torch.tensor([-60, -7, -3, -2.5, -1, -0.5, -1e-3, 0, 0.125, 0.25, 1, 2.5, 3, 4, 6, 30, -100, 100])


# PyTorch gives gelu(inf) as inf on some processors and as NaN on others: what its documentation writes down is what must hold.
DOCUMENTED = {
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu of tanh": lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) / 2,
}


def random(*shape: int, type: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(type)


def total_and_each(results):
    total = results[0]
    for one in results[1:]:
        total = total + one
    return total, *results


@pytest.mark.parametrize("type", TYPES)
def test_activations_are_pytorchs(type):
    functions = ACTIVATIONS.values()
    values = [VALUES.to(type)] * len(functions)
    check(lambda *x: total_and_each([function(one) for function, one in zip(functions, x, strict=True)]), *values)


@pytest.mark.parametrize("type", TYPES)
def test_activations_of_what_is_not_finite_are_pytorchs(type):
    values = torch.tensor([float("nan"), float("inf"), float("-inf"), 1e30, -1e30, 6e4, -6e4, -0.0, 1e-30]).to(type)

    def activations(x):
        return [function(x) for function in ACTIVATIONS.values()]

    results = compiled(Plain(activations), (values,), training=False).run((values,))
    for name, got, wanted in zip(ACTIVATIONS, results, activations(values), strict=True):
        if name in DOCUMENTED:
            wanted = torch.tensor([DOCUMENTED[name](value) for value in values.tolist()]).to(type)
        relative = 1e-5 if type is torch.float32 else 2e-3
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=relative, atol=1e-6, err_msg=name)


def test_activations_of_odd_shapes_are_pytorchs():
    for x in (torch.tensor(-0.5), torch.zeros(0, 3), random(1, 1), random(4, 6).t()[::2]):
        check(lambda x: (torch.relu(x), F.gelu(x), F.leaky_relu(x), F.logsigmoid(x)), x, gradients=False)
    check(torch.relu, torch.tensor([[-3, 0, 7]]), gradients=False)


@pytest.mark.parametrize("type", TYPES)
def test_slopes_of_channels_are_trained(type):
    check(F.prelu, random(2, 3, 4, type=type), torch.tensor([0.25, -0.5, 2], dtype=type))
    check(F.prelu, random(5, type=type), torch.tensor([0.25], dtype=type))


@pytest.mark.parametrize("dim", [0, -1])
def test_gated_linear_units_are_pytorchs(dim):
    for type in TYPES:
        check(lambda x: F.glu(x, dim), random(4, 3, 6, type=type))


def test_random_slopes_differ_from_element_to_element_and_are_those_of_the_gradient():
    x = -1 - torch.rand(20, 30)
    x[0, 0] = 2.0
    result, gradient = drawn(lambda x: F.rrelu(x, 0.25, 0.75, training=True), x)
    slopes = result / x
    assert slopes[0, 0] == 1
    assert slopes[1:].min() >= 0.2499
    assert slopes[1:].max() <= 0.7501
    assert 0.4 < slopes[1:].mean() < 0.6
    assert slopes.unique().numel() > 300
    np.testing.assert_allclose(gradient, slopes.numpy(), rtol=1e-5)


def drawn(function, x):
    """The result of a function on the machine, and the gradient of its sum."""

    class Summed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x = torch.nn.Parameter(x)

        def forward(self):
            result = function(self.x)
            return result, identity_loss(result, "sum")

    machine = compiled(Summed(), (), training=True)
    result, _ = machine.run(())
    return result, machine.engine.readTensor("gradient/x").reshape(x.shape)


@pytest.mark.parametrize("type", TYPES)
def test_softmaxes_are_pytorchs(type):
    x = random(3, 4, 5, type=type)
    check(lambda x: F.softmin(x, 1), x)
    check(lambda x: F.softmax(x, 0, dtype=torch.float32), x)
    check(lambda x: F.log_softmax(x, -1, dtype=torch.float32), x)
    check(lambda x: (torch.softmax(x, 0), torch.log_softmax(x, 0)), torch.tensor(2.0, dtype=type))
    check(lambda x: (torch.softmax(x, 1), torch.log_softmax(x, 0)), torch.zeros(3, 0, dtype=type), gradients=False)


def test_masked_rows_of_a_softmax_are_pytorchs():
    x = random(3, 4)
    x[0, 1], x[1] = float("-inf"), float("-inf")
    check(lambda x: torch.ops.aten._safe_softmax(x, 1), x)
    check(lambda x: torch.softmax(x, 1), x[:1])
    got = compiled(Plain(lambda x: torch.softmax(x, 1)), (x,), training=False).run((x,))[0]
    assert got[1].isnan().all()
    assert not got[0].isnan().any()


@pytest.mark.parametrize("type", TYPES)
def test_a_gradient_that_is_not_finite_is_nan_behind_a_relu_of_0(type):
    """As the device and PopLibs multiply by 0; elsewhere it is PyTorch's."""
    back = torch.tensor([math.nan, math.inf, 2.0, math.nan, -math.inf, 3.0]).to(type)
    results = torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]).to(type)

    def gradient(back, results):
        return torch.ops.aten.threshold_backward(back, results, 0)

    (got,) = compiled(Plain(gradient), (back, results), training=False).run((back, results))
    pytorchs = gradient(back, results)
    np.testing.assert_array_equal(got.numpy()[2:], pytorchs.numpy()[2:])
    assert got[:2].isnan().all()
    assert (pytorchs[:2] == 0).all()
