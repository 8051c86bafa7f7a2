"""Convolutions of every kind give PyTorch's results and gradients."""

import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import check

TYPES = [torch.float32, torch.float16]


def random(*shape: int, type: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(type)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    ("how", "biased"),
    [
        ({}, True),
        ({"stride": 2, "padding": 1, "output_padding": 1}, True),
        ({"stride": (1, 3), "padding": (0, 1), "output_padding": (0, 2), "groups": 2}, False),
        ({"stride": 2, "dilation": 2, "padding": 1, "output_padding": 1}, False),
    ],
)
def test_transposed_convolutions_are_pytorchs(type, how, biased):
    groups = how.get("groups", 1)
    bias = [random(3 * groups, type=type)] if biased else []
    check(lambda x, w, *b: F.conv_transpose2d(x, w, *b, **how), random(2, 4, 5, 4, type=type), random(4, 3, 3, 2, type=type), *bias)


def test_lines_and_bodies_are_convolved_both_ways():
    def lines(x, w, b):
        return F.conv1d(x, w, b, stride=2, padding="valid"), F.conv_transpose1d(x, w.transpose(0, 1), stride=2).detach()

    check(lines, random(2, 3, 9), random(4, 3, 4), random(4))
    check(lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1), random(1, 3, 5), random(3, 2, 4))
    check(lambda x, w: F.conv3d(x, w, padding=1), random(1, 2, 3, 4, 3), random(3, 2, 3, 2, 1))
    check(lambda x, w: F.conv_transpose3d(x, w, stride=2), random(1, 2, 2, 3, 2), random(2, 3, 2, 3, 1))


def test_one_sample_without_its_dimension_is_convolved():
    check(lambda x, w, b: F.conv2d(x, w, b, padding="same"), random(3, 6, 5), random(4, 3, 3, 3), random(4))
    check(lambda x, w: F.conv_transpose2d(x, w), random(3, 4, 5), random(3, 2, 2, 2))


def test_only_the_gradients_that_are_needed_are_made():
    x, w, b = random(2, 3, 5, 5), random(4, 3, 2, 2), random(4)
    check(lambda w, x: F.conv2d(x, w), w, arguments=(x,))
    check(lambda x, w, b: F.conv2d(x, w, b), x, arguments=(w, b))
    check(lambda b, x, w: F.conv2d(x, w, b), b, arguments=(x, w))


def test_no_samples_give_none_and_no_gradient():
    check(lambda x, w, b: F.conv2d(x, w, b), random(0, 3, 5, 5), random(4, 3, 2, 2), random(4))
