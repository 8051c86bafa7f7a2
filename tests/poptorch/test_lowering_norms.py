"""Norms give PyTorch's results and gradients, and running statistics are PyTorch's."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import check, compiled
from torch import nn

from pypoplar.poptorch.operators import identity_loss

TYPES = [torch.float32, torch.float16]


def random(*shape: int, type: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(type)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("shape", [(6, 4), (2, 4, 3, 5)])
def test_batch_norms_are_pytorchs(type, shape):
    x, weight, bias = random(*shape, type=type), random(4, type=type, seed=2), random(4, type=type, seed=3)
    check(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, weight, bias)
    check(lambda x: F.batch_norm(x, None, None, None, None, True), x)
    mean, variance = random(4, type=type), random(4, type=type).abs() + 0.5
    check(lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, False), x, weight, bias, arguments=(mean, variance))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(("shape", "last"), [((4, 8), 1), ((2, 3, 4), 2), ((5,), 1)])
def test_layer_norms_are_pytorchs(type, shape, last):
    normalized = shape[-last:]
    vectors = random(*normalized, type=type, seed=2), random(*normalized, type=type, seed=3)
    x = random(*shape, type=type)
    check(lambda x, w, b: F.layer_norm(x, normalized, w, b), x, *vectors)


def test_layer_norms_without_vectors_are_pytorchs():
    check(lambda x, w: F.layer_norm(x, [8], w, eps=1e-3), random(4, 8), random(8))
    check(lambda x: F.layer_norm(x, [8]), random(4, 8))
    check(lambda x: F.layer_norm(x, [1]), random(2, 1))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(("shape", "groups"), [((2, 6, 3, 2), 3), ((3, 8), 1), ((1, 6, 2, 2, 2), 6)])
def test_group_norms_are_pytorchs(type, shape, groups):
    x, weight, bias = random(*shape, type=type), random(shape[1], type=type, seed=2), random(shape[1], type=type, seed=3)
    check(lambda x, w, b: F.group_norm(x, groups, w, b), x, weight, bias)


def test_instance_norms_are_pytorchs():
    x, weight, bias = random(2, 4, 3, 5), random(4, seed=2), random(4, seed=3)
    check(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), x, weight, bias)
    check(lambda x: F.instance_norm(x), x)
    statistics = random(4), random(4).abs() + 0.5
    check(lambda x, w, b, m, v: F.instance_norm(x, m, v, w, b, False), x, weight, bias, arguments=statistics)


class Scored(nn.Module):
    """A norm whose result has a loss."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        y = self.norm(x)
        return y, identity_loss((y.float() * y.float()).sum() + (y.float() * x.float()).sum(), "sum")


@pytest.mark.parametrize(
    ("norm", "type"),
    [
        (nn.BatchNorm2d(4, momentum=0.3), torch.float32),
        (nn.BatchNorm2d(4), torch.float16),
        (nn.BatchNorm2d(4, momentum=None), torch.float32),
        (nn.BatchNorm2d(4, affine=True, track_running_stats=False), torch.float32),
        (nn.InstanceNorm2d(4, affine=True, track_running_stats=True), torch.float32),
        (nn.SyncBatchNorm(4), torch.float32),
    ],
    ids=["momentum", "half", "cumulative", "untracked", "instance", "sync"],
)
def test_running_statistics_are_pytorchs(norm, type):
    module = Scored(copy.deepcopy(norm).to(type))
    x = random(3, 4, 5, 2, type=type) * 2 + 1
    machine = compiled(module, (x,), training=True)
    for batch in (x, x * 3 - 1):
        outputs = machine.run([batch])
        wanted = module(batch)
        tolerance = 2e-2 if type is torch.float16 else 1e-5
        np.testing.assert_allclose(outputs[0].float(), wanted[0].detach().float(), rtol=tolerance, atol=tolerance)
    for name, buffer in module.named_buffers():
        got = machine.engine.readTensor(name).astype(np.float64).reshape(buffer.shape)
        np.testing.assert_allclose(got, buffer.double(), rtol=tolerance, err_msg=name)


def test_stable_norms_are_right_where_the_mean_is_large(monkeypatch):
    from pypoplar import poptorch

    norm, x = nn.LayerNorm(64), random(3, 64) + 3000
    options = poptorch.Options().enableStableNorm(True)
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 8)
    got = poptorch.inferenceModel(norm, options)(x)
    plain = poptorch.inferenceModel(norm)(x)
    wanted = norm(x).detach()
    assert (got - wanted).abs().max() < 1e-2 < (plain - wanted).abs().max()
