"""Reductions and scans give PyTorch's results and gradients."""

import pytest
import torch
from poptorch_functions import of_all, random, total_of
from poptorch_rig import check

TYPES = [torch.float32, torch.float16]


ALONG = [
    lambda a: a.sum(1),
    lambda a: a.mean((0, 2), keepdim=True),
    lambda a: a.prod(1),
    lambda a: a.amax((0, -1)),
    lambda a: a.amin(1),
    lambda a: a.max(1).values,
    lambda a: a.min(2, keepdim=True).values,
    lambda a: a.std(1),
    lambda a: a.var((0, 1), correction=0),
    lambda a: a.norm(dim=1),
    lambda a: a.norm(1, dim=0),
    lambda a: a.norm(float("inf"), dim=2),
    lambda a: a.logsumexp((0, 1)),
    lambda a: a.cumsum(1),
    lambda a: a.cumprod(2),
    lambda a: torch.std_mean(a, 1)[1],
    lambda a: a.norm(3),
    lambda a: a.nansum(1),
]
OF_ALL = [torch.sum, torch.mean, torch.prod, torch.amax, torch.max, torch.min, torch.std, torch.var, torch.norm]


@pytest.mark.parametrize("type", TYPES)
def test_reductions_and_their_gradients(type):
    check(total_of(*ALONG, *OF_ALL), (random(3, 4, 5) + 0.1).to(type))


@pytest.mark.parametrize("type", TYPES)
def test_scans(type):
    check(
        total_of(*(lambda a, f=f: f(a, 1)[0] for f in (torch.cummax, torch.cummin)), lambda a: a.logcumsumexp(1)),
        random(3, 5, type=type),
    )


@pytest.mark.parametrize("type", [*TYPES, torch.int64, torch.bool, torch.uint8])
def test_places_and_truths(type):
    x = torch.tensor([[3, 1, 3, 0], [0, 0, 0, 0], [2, 5, 5, 1]]).to(type)
    places = [lambda a: a.argmax(1), lambda a: a.argmin(0, keepdim=True), torch.argmax, torch.argmin]
    truths = [lambda a: a.any(1), lambda a: a.all(0), torch.any, torch.all, lambda a: a.count_nonzero(1), torch.count_nonzero]
    others = [lambda a: a.amax(1), lambda a: a.min(), torch.sum, lambda a: a.cumsum(0), torch.aminmax]
    if type is not torch.bool:
        others += [lambda a: a.max(1), lambda a: a.prod(1)]
    else:
        places = []
    check(of_all(*places, *truths, *others), x, gradients=False)


def test_not_a_number_is_the_extreme():
    x = torch.tensor([[1.0, float("nan"), 3.0], [float("inf"), 2.0, -float("inf")], [0.0, -0.0, float("nan")]])
    extremes = [
        lambda a: a.amax(1),
        lambda a: a.max(1),
        lambda a: a.min(1),
        torch.amin,
        lambda a: a.argmax(1),
        lambda a: a.cummax(1),
    ]
    check(
        of_all(*extremes, lambda a: a.logsumexp(1), lambda a: a.sum(1), lambda a: a.nansum(1), lambda a: a.any(1)),
        x,
        gradients=False,
    )


def test_reductions_of_nothing_and_of_one_number():
    check(
        of_all(torch.sum, torch.mean, torch.prod, lambda a: a.sum(0), lambda a: a.any(1), lambda a: a.all()),
        torch.zeros(0, 3),
        gradients=False,
    )
    several = [
        torch.sum,
        torch.mean,
        lambda a: a.sum(0),
        lambda a: a.amax(),
        lambda a: a.max(0),
        torch.argmax,
        lambda a: a.cumsum(0),
    ]
    check(of_all(*several, lambda a: a.logsumexp(0), torch.norm, lambda a: a.prod(0)), torch.tensor(2.5), gradients=False)


def test_halves_are_added_in_float():
    check(lambda a: torch.stack([a.sum(), a.mean()]).float(), torch.full((4000,), 1.0, dtype=torch.float16))
    check(lambda a: a.cumsum(0), torch.full((300,), 0.1, dtype=torch.float16))
