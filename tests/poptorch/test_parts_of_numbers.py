"""Common divisors, fractions and exponents, and medians that leave NaNs out are PyTorch's."""

from math import inf, nan

import pytest
import torch
from poptorch_rig import check

FIRST = [12, -8, 0, 0, 7, 1836311903, -1836311903, 2147483647, 1, 100]
SECOND = [18, 6, 5, 0, -14, 1134903170, 1134903170, 2147483646, 1, 100]


@pytest.mark.parametrize("type", [torch.int32, torch.int64])
def test_common_divisors_are_pytorchs_for_numbers_that_take_the_most_divisions(type):
    check(torch.gcd, torch.tensor(FIRST, dtype=type), torch.tensor(SECOND, dtype=type), gradients=False)
    check(torch.gcd, torch.tensor([[4], [9]], dtype=type), torch.tensor([6, 27, 0], dtype=type), gradients=False)


def test_common_divisors_and_multiples_of_narrow_integers_are_pytorchs():
    first, second = torch.tensor([12, -8, 0, 0, 7, -1]), torch.tensor([18, 6, 5, 0, -14, 9])
    for type in (torch.int8, torch.int16, torch.int32):
        for function in (torch.gcd, torch.lcm):
            check(function, first.to(type), second.to(type), gradients=False)


def test_fractions_and_exponents_are_pytorchs_to_the_smallest_numbers():
    numbers = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 0.99999994, -3.5, 1e30, 1.17549435e-38, 1e-40, -1.4e-45, inf, -inf, nan])
    check(lambda x: list(torch.frexp(x)), numbers, gradients=False)


def test_fractions_of_halves_are_halves():
    check(lambda x: list(torch.frexp(x)), torch.tensor([0.0, 1.0, -6e-8, 65504.0, 0.1], dtype=torch.float16), gradients=False)


def test_gradients_of_fractions_are_pytorchs():
    check(lambda x: torch.frexp(x)[0], torch.tensor([1.0, -3.5, 0.1, 40.0]))


TABLE = [[1.0, nan, 3.0, 2.0], [nan] * 4, [2.0, 9.0, -1.0, -inf], [inf, nan, nan, inf]]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_medians_of_numbers_leave_nans_out(dim):
    check(lambda x: torch.nanmedian(x, dim)[0], torch.tensor(TABLE), gradients=False)
    check(lambda x: torch.nanmedian(x, dim, keepdim=True)[0], torch.tensor(TABLE), gradients=False)
    places = lambda x: list(torch.nanmedian(x, dim))  # noqa: E731
    check(places, torch.tensor([[5.0, 1.0, nan], [nan, 4.0, 2.0], [3.0, nan, 7.0]]), gradients=False)


@pytest.mark.parametrize("numbers", [[1.0, 2.0, nan, 2.0, 3.0], [nan], [inf, inf, 1.0], [4.0]])
def test_the_median_of_all_numbers_and_its_gradient_are_pytorchs(numbers):
    check(lambda x: torch.nanmedian(x)[None], torch.tensor(numbers))


def test_gradients_of_medians_go_to_the_element_that_is_taken():
    check(lambda x: torch.nanmedian(x, 1)[0], torch.tensor([[1.0, nan, 3.0, 2.0], [2.0, 9.0, -1.0, 4.0]]))


def test_whole_numbers_are_copied_and_mixed():
    check(lambda x: (x * 2).copy_(3) + x, torch.tensor([1.0, 2.0]))
    check(lambda x: torch.lerp(x, x * x, 2), torch.tensor([1.0, 2.0]))


OUT_OF_RANGE = [
    lambda i: [torch.remainder(i, -3), i // -2, torch.div(i, -2, rounding_mode="trunc"), torch.fmod(i, -3)],
    lambda i: [torch.remainder(i, 200), i // 130, torch.remainder(-7, i.clamp(1)), -7 // i.clamp(1), i * -1, i - 300],
    lambda i: [i > -1, i < 300, i == -1, i == 255, i >= -2, i != 70000, i.to(torch.int16) < 70000],
    lambda i: [i.clamp(-1, 5), i.clamp(min=-1), i.clamp(max=100), torch.maximum(i, torch.tensor(-1, dtype=torch.int8))],
    lambda i: [i.masked_fill(i > 1, -1), torch.where(i > 1, i, -1), i ^ -1, i & -2, i | 1, torch.add(i, i, alpha=-1)],
    lambda i: [torch.remainder(i, torch.tensor(-3)), i > torch.tensor(-2), i.to(torch.int8) + i.to(torch.int16) * 300],
]


@pytest.mark.parametrize("several", OUT_OF_RANGE, ids=range(len(OUT_OF_RANGE)))
@pytest.mark.parametrize("type", [torch.uint8, torch.int8, torch.int16])
def test_numbers_that_a_narrow_integer_does_not_have_are_cut_before_it_is_computed_with_as_by_pytorch(several, type):
    check(several, torch.tensor([2, 0, 7, 100, -1, -56]).to(type), gradients=False)
