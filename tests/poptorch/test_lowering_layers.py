"""Layers of networks give PyTorch's results and gradients."""

import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import check

TYPES = [torch.float32, torch.float16]


def random(*shape: int, type: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(type)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups", "biased"),
    [(1, 0, 1, 1, True), (2, 1, 1, 1, False), (1, (1, 2), 2, 2, True), ((2, 1), 0, 1, 4, True)],
)
def test_convolutions_are_pytorchs(type, stride, padding, dilation, groups, biased):
    weights = random(8, 4 // groups, 3, 3, type=type)
    bias = [random(8, type=type)] if biased else []

    def convolve(x, w, *b):
        return F.conv2d(x, w, *b, stride=stride, padding=padding, dilation=dilation, groups=groups)

    check(convolve, random(2, 4, 9, 8, type=type), weights, *bias)


@pytest.mark.parametrize("type", TYPES)
def test_linear_layers_are_pytorchs(type):
    check(F.linear, random(6, 20, type=type), random(12, 20, type=type), random(12, type=type))
    check(F.linear, random(6, 20, type=type), random(12, 20, type=type))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "ceil"), [(2, None, 0, False), (3, 2, 1, False), ((2, 3), (1, 2), 0, True)]
)
def test_max_pools_are_pytorchs(kernel, stride, padding, ceil):
    check(lambda x: F.max_pool2d(x, kernel, stride, padding, ceil_mode=ceil), random(2, 3, 9, 8))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmaxes_are_pytorchs(type, dim):
    check(lambda x: torch.softmax(x, dim), random(4, 5, 6, type=type))
    check(lambda x: torch.log_softmax(x, dim), random(4, 5, 6, type=type))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_cross_entropies_are_pytorchs(reduction, ignored):
    labels = torch.tensor([1, 2, 0, 2, 3])
    weights = torch.tensor([0.5, 1, 2, 0.25])
    for weight in (None, weights):
        check(
            lambda x, labels, weight=weight: F.cross_entropy(x, labels, weight, ignore_index=ignored, reduction=reduction),
            random(5, 4),
            arguments=(labels,),
        )


def test_labels_of_a_field_have_a_loss_each():
    check(lambda x, labels: F.cross_entropy(x, labels), random(2, 4, 3, 5), arguments=(torch.arange(30).reshape(2, 3, 5) % 4,))


def test_layers_of_kernels_of_their_own_are_pytorchs():
    x, y, weight = random(2, 3, 4), random(2, 3, 5, seed=2), random(2, 4, 5, seed=3)
    check(lambda x, y, w, b: F.bilinear(x, y, w, b), x, y, weight, random(2))
    check(lambda x: F.channel_shuffle(x, 2), random(1, 4, 3))
    check(lambda v, g: F.linear(v[0], torch._weight_norm(v[0], g, 0)), weight, random(4, 1)[:4])
    check(lambda v, g: torch._weight_norm(v, g, -1) * torch._weight_norm(v[0, 0], v[1, 0], 0), weight, random(1)[0])
    check(lambda x, y: torch.cdist(x, y, p=1.0).sum(0) + torch.cdist(x, x[0])[1], x, random(2, 3, 4, seed=4))
