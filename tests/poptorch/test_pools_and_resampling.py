"""Pools, and fields made larger or smaller, give PyTorch's results and gradients."""

import math

import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import Plain, check, compiled

from pypoplar.poptorch import UnsupportedOperation

TYPES = [torch.float32, torch.float16]


def distinct(*shape: int, type: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers that all differ."""
    count = torch.Size(shape).numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(count))
    return ((order - count // 2) / 16).reshape(shape).to(type)


def together(*functions):
    """Functions of a tensor each; the loss is of their first results' sums."""

    def run(*tensors):
        results = [function(x) for function, x in zip(functions, tensors, strict=True)]
        total = results[0].sum()
        for one in results[1:]:
            total = total + (one * one).sum()
        return total, *results

    return run


def check_each(x, *functions):
    check(together(*functions), *[x] * len(functions))


@pytest.mark.parametrize("type", TYPES)
def test_max_pools_are_pytorchs(type):
    check_each(
        distinct(2, 3, 8, 7, type=type) / 8,
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.max_pool2d(x, (2, 3), (1, 2), ceil_mode=True),
        lambda x: F.adaptive_max_pool2d(x, (4, 1)),
    )
    check(lambda x: F.max_pool1d(x, 3, 2, 1), distinct(3, 8, type=type) / 2)
    check(lambda x: F.max_pool3d(x, 2, ceil_mode=True), distinct(1, 2, 4, 3, 5, type=type) / 4)


@pytest.mark.parametrize("type", TYPES)
def test_mean_pools_are_pytorchs(type):
    check_each(
        distinct(2, 3, 8, 7, type=type) / 8,
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False, ceil_mode=True),
        lambda x: F.avg_pool2d(x, (2, 3), divisor_override=4),
        lambda x: x.mean((2, 3)),
    )
    check(lambda x: F.avg_pool1d(x, 3, 2, 1), distinct(3, 8, type=type) / 2)
    if type is torch.float32:  # PyTorch has no other on the CPU
        check(lambda x: F.avg_pool3d(x, 2, padding=1), distinct(2, 2, 4, 3, 5) / 4)


@pytest.mark.parametrize("type", TYPES)
def test_adaptive_means_are_pytorchs(type):
    sizes = (1, (4, 7), (3, 5), (11, 2), (None, 3))
    check_each(distinct(2, 3, 8, 7, type=type) / 8, *[lambda x, size=size: F.adaptive_avg_pool2d(x, size) for size in sizes])
    check(lambda x: F.adaptive_avg_pool1d(x, 3), distinct(3, 8, type=type) / 2)
    check(lambda x: F.adaptive_avg_pool3d(x, (2, 1, 3)), distinct(2, 2, 4, 3, 5, type=type) / 4)


@pytest.mark.parametrize("type", TYPES)
def test_interpolations_are_pytorchs(type):
    given = [
        {"scale_factor": 2},
        {"size": (5, 11), "mode": "nearest"},
        {"size": (5, 11), "mode": "nearest-exact"},
        {"scale_factor": 1.5, "mode": "bilinear"},
        {"size": (8, 9), "mode": "bilinear", "align_corners": True},
        {"scale_factor": (2, 0.5), "mode": "bicubic"},
        {"scale_factor": 0.5, "mode": "area"},
    ]
    if type is torch.float32:  # PyTorch has no other on the CPU
        given.append({"size": (2, 3), "mode": "bilinear", "antialias": True})
    check_each(distinct(2, 3, 4, 6, type=type), *[lambda x, one=one: F.interpolate(x, **one) for one in given])


def test_interpolations_of_lines_and_bodies_are_pytorchs():
    check_each(
        distinct(2, 3, 5),
        lambda x: F.interpolate(x, scale_factor=3),
        lambda x: F.interpolate(x, size=8, mode="linear"),
    )
    check_each(
        distinct(1, 2, 3, 2, 4),
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.interpolate(x, size=(4, 3, 5), mode="trilinear", align_corners=True),
    )


def test_no_samples_give_none():
    check(lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2)), torch.zeros(0, 2, 4, 4), gradients=False)


def test_a_batch_of_nothing_is_resampled_to_one():
    x = torch.ones(2, 3, 4, 5)
    for mode, given in (("nearest", {"scale_factor": 2}), ("bilinear", {"size": (4, 5)}), ("bicubic", {"scale_factor": 1.5})):
        module = Plain(lambda x, mode=mode, given=given: F.interpolate(x[:0], mode=mode, **given))
        (found,) = compiled(module, (x,), training=False).run([x])
        assert found.shape == module(x).shape


@pytest.mark.parametrize("part", [(slice(None), slice(0, 0)), (..., slice(0, 0))])
def test_fields_without_elements_are_pytorchs_error(part):
    with pytest.raises(RuntimeError, match=r"Non-empty 4D data tensor expected|Input and output sizes should be greater than 0"):
        compiled(Plain(lambda x: F.interpolate(x[part], size=(4, 4))), (torch.ones(2, 3, 4, 5),), training=False)


@pytest.mark.parametrize(
    ("indices", "hint"), [(False, "windows of several sizes"), (True, "places of a max pool's largest elements")]
)
def test_what_max_pools_lack_is_told(indices, hint):
    with pytest.raises(UnsupportedOperation, match=hint):
        check(lambda x: F.adaptive_max_pool2d(x, 4 if indices else 3, indices), distinct(1, 2, 8, 8), gradients=False)


def test_a_max_pool_leaves_out_nan():
    """As PopLibs' does, and not as PyTorch's: docs/pytorch.md says so."""
    x = torch.tensor([[[[1.0, math.nan, -3.0, math.nan], [2.0, 0.0, math.nan, -5.0]]]])
    (got,) = compiled(Plain(lambda x: F.max_pool2d(x, 2)), (x,), training=False).run((x,))
    assert got.tolist() == [[[[2.0, -3.0]]]]
