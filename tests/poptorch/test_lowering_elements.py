"""Operations on elements give PyTorch's results and gradients, for all types, NaN and infinities too."""

from math import inf, nan

import pytest
import torch
from poptorch_functions import of_all, random
from poptorch_rig import Plain, check, compiled

TYPES = [torch.float32, torch.float16]
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.25, -2.5, 3.7, float("inf"), -float("inf"), float("nan")])


def positive(*shape: int, type: torch.dtype = torch.float32) -> torch.Tensor:
    return (random(*shape).abs() + 0.25).to(type)


def gradients_of_all(*functions):
    return lambda *tensors: torch.stack([function(*tensors).float() for function in functions])


OF_ONE = [
    torch.abs,
    torch.exp,
    torch.expm1,
    torch.sin,
    torch.cos,
    torch.tan,
    torch.tanh,
    torch.sigmoid,
    torch.erf,
    torch.erfc,
    torch.sinh,
    torch.cosh,
    torch.asinh,
    torch.atan,
    torch.exp2,
    torch.square,
    torch.neg,
    torch.sgn,
    torch.frac,
    torch.positive,
    lambda a: a**3,
    lambda a: a**4,
    lambda a: 2**a,
    lambda a: 1 - a,
    lambda a: a.clamp(-0.5, 0.7),
    lambda a: a.clamp_min(0.1),
    lambda a: a / 3,
    lambda a: a.clamp(max=0.5),
    lambda a: a % 0.7,
    lambda a: torch.fmod(a, 0.7),
    lambda a: a * a + a,
    lambda a: torch.where(a > 0.1, a, a * 2),
    lambda a: a.masked_fill(a < 0, 2.0),
    lambda a: a**0,
    lambda a: a**1,
]
OF_POSITIVE = [
    torch.log,
    torch.log1p,
    torch.log2,
    torch.log10,
    torch.sqrt,
    torch.rsqrt,
    torch.reciprocal,
    lambda a: a**0.3,
    lambda a: a**-1,
    lambda a: a**-2,
    lambda a: a**-0.5,
    lambda a: a**0.5,
    lambda a: torch.acosh(a + 1),
    lambda a: a**2.5,
]
OF_SMALL = [torch.asin, torch.acos, torch.atanh, lambda a: torch.logit(a + 0.55), lambda a: torch.logit(a + 0.5, 0.2)]
OF_TWO = [
    torch.atan2,
    torch.maximum,
    torch.minimum,
    torch.remainder,
    torch.fmod,
    torch.hypot,
    torch.logaddexp,
    torch.copysign,
    lambda a, b: torch.addcmul(a, a, b, value=2),
    lambda a, b: torch.addcdiv(a, a, b, value=0.5),
    torch.fmax,
    torch.fmin,
    lambda a, b: torch.lerp(a, b, 0.3),
    lambda a, b: torch.lerp(a, b, b),
    lambda a, b: torch.add(a, b, alpha=0.3),
    lambda a, b: torch.sub(a, b, alpha=2),
    torch.xlogy,
    lambda a, b: torch.clamp(a, b - 1, b),
    lambda a, b: b**a,
    lambda a, b: torch.rsub(a, b, alpha=2),
    lambda a, b: torch.rsub(a, 1, alpha=3) * b,
    lambda a, b: torch.sgn(a) * torch.deg2rad(b) + torch.rad2deg(a).zero_(),
    torch.div,
    lambda a, b: torch.where(a > b, a, b),
    lambda a, b: torch.ldexp(a, b),
]


@pytest.mark.parametrize("type", TYPES)
def test_functions_of_one_operand(type):
    check(gradients_of_all(*OF_ONE), random(3, 4, type=type))
    check(gradients_of_all(*OF_POSITIVE), positive(3, 4, type=type))
    check(gradients_of_all(*OF_SMALL), (random(3, 4) * 0.1).clamp(-0.4, 0.4).to(type))


@pytest.mark.parametrize("type", TYPES)
def test_functions_of_two_operands(type):
    check(
        gradients_of_all(*(lambda a, b, f=f: f(a, b).expand(3, 4) for f in OF_TWO)), random(3, 4, type=type), positive(4, type=type)
    )


@pytest.mark.parametrize("type", TYPES)
def test_not_a_number_and_infinities(type):
    x = SPECIAL.to(type)
    several = [f for f in OF_ONE if f not in (torch.sin, torch.cos, torch.tan)]
    check(of_all(*several, torch.sign, torch.relu, torch.floor, torch.ceil, torch.trunc, torch.round), x, gradients=False)
    check(of_all(torch.isnan, torch.isinf, torch.isfinite, torch.signbit, torch.isposinf, torch.isneginf), x, gradients=False)
    check(of_all(torch.nan_to_num, lambda a: torch.nan_to_num(a, 1.0, 2.0, 3.0), torch.logical_not), x, gradients=False)
    check(of_all(*OF_POSITIVE), x.abs(), gradients=False)
    a, b = (one.reshape(-1) for one in torch.meshgrid(x, x, indexing="ij"))
    extremes = torch.maximum, torch.minimum, torch.fmax, torch.fmin, torch.atan2, torch.copysign, torch.xlogy, torch.hypot
    relations = torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge, torch.logical_and, torch.logical_or, torch.logical_xor
    check(of_all(*extremes, *relations, torch.div, torch.mul, torch.add, torch.heaviside), a, b, gradients=False)


def test_quotients_of_floats():
    a, b = torch.tensor([7.0, -7.0, 7.0, -7.0, 0.0, 6.0, -6.0, 1.0]), torch.tensor([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 3.0, 0.1])
    floor, cut = (lambda x, y, m=m: torch.div(x, y, rounding_mode=m) for m in ("floor", "trunc"))
    for type in TYPES:
        check(of_all(floor, cut, torch.floor_divide, torch.remainder, torch.fmod), a.to(type), b.to(type), gradients=False)
        check(of_all(lambda x: x // 2, lambda x: x % -3, lambda x: 5 % x, lambda x: 7 // x), b.to(type), gradients=False)


@pytest.mark.parametrize("type", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_integers(type):
    a = torch.tensor([7, -7, 7, -7, 0, 6, -6, 100]).to(type)
    b = torch.tensor([2, 2, -2, -2, 3, 3, 3, 120]).to(type)
    floor, cut = (lambda x, y, m=m: torch.div(x, y, rounding_mode=m) for m in ("floor", "trunc"))
    check(of_all(floor, cut, torch.remainder, torch.fmod, torch.add, torch.mul, torch.sub, torch.div), a, b, gradients=False)
    check(of_all(torch.maximum, torch.minimum, torch.eq, torch.lt, torch.ge, torch.logical_and), a, b, gradients=False)
    check(of_all(torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor), a, b, gradients=False)
    of_one = [torch.bitwise_not, lambda x: x.clamp(0, 5), lambda x: x + 1, lambda x: x * 0.5, lambda x: x > 2.5, lambda x: x**2]
    of_one += [lambda x: x << 2, lambda x: x >> 1]
    check(of_all(*of_one, lambda x: x.float(), lambda x: x.bool(), lambda x: x.half() / 3, torch.logical_not), a, gradients=False)
    check(of_all(torch.sign, torch.sqrt, torch.floor, torch.isnan, torch.isfinite, lambda x: 3 - x), a, gradients=False)


def test_truth_values():
    a, b = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    check(
        of_all(torch.logical_and, torch.bitwise_or, torch.bitwise_xor, torch.add, torch.mul, torch.eq, torch.lt),
        a,
        b,
        gradients=False,
    )
    check(of_all(lambda x: ~x, lambda x: x.float() * 2, lambda x: x + 1, lambda x: x * 0.5, torch.logical_not), a, gradients=False)
    check(
        of_all(lambda x, y: torch.where(x, y, ~y), lambda x, y: torch.where(x, 1.0, 2.0), lambda x, y: x.masked_fill(y, True)),
        a,
        b,
        gradients=False,
    )


def test_types_are_promoted_as_pytorch_does():
    whole, half, float_, number = torch.arange(4), random(4, type=torch.float16), random(4), torch.tensor(2.5)
    mixes = [
        lambda i, h, f, n: h + f,
        lambda i, h, f, n: i * h,
        lambda i, h, f, n: i / 2,
        lambda i, h, f, n: h * n,
        lambda i, h, f, n: i + n,
    ]
    more = [
        lambda i, h, f, n: i > h,
        lambda i, h, f, n: h * 1e-8,
        lambda i, h, f, n: h * 0.1,
        lambda i, h, f, n: h / 1e6,
        lambda i, h, f, n: f.int(),
    ]
    check(
        of_all(*mixes, *more, lambda i, h, f, n: (f > 0) * h, lambda i, h, f, n: f.to(torch.int8)),
        whole,
        half,
        float_,
        number,
        gradients=False,
    )


@pytest.mark.parametrize("shapes", [((), ()), ((1,), (3, 1)), ((0,), (2, 0)), ((2, 1, 3), (4, 1)), ((1, 1), ())])
def test_odd_shapes(shapes):
    check(lambda a, b: (a * b + torch.sin(a)) / (b * b + 1), random(*shapes[0]), random(*shapes[1]))


def test_an_operand_of_many_uses_and_constants_that_are_larger_than_tensors():
    check(lambda a: torch.sin(a) * a + torch.sin(a) ** 2 - a / (1 + a * a), random(3, 4))
    check(lambda a: a + torch.zeros(3, 4), random(4))
    check(lambda a: torch.where(torch.ones(3, 4) > 0, a, 0.0), random(1))


def test_long_chains_are_cut_into_expressions():
    def chain(a):
        for _ in range(60):
            a = torch.sin(a) + a * 0.5
        return a

    check(chain, random(5))


@pytest.mark.parametrize("type", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_shifts_beyond_the_width_give_what_pytorch_gives(type):
    x = torch.tensor([1, 5, 100, -3, -100]).to(type)
    by = torch.tensor([33, -1, 64, 31, 2]).to(type)
    numbers = (32, 33, 63, 64, 100, -1)
    check(of_all(*(lambda x, by, n=n: x >> n for n in (1, 31, *numbers)), lambda x, by: x >> by), x, by, gradients=False)
    narrow = lambda x: x.to(torch.int32)  # noqa: E731 - of 64 bits those that the IPU has
    machine = compiled(Plain(lambda x, by: (*(x << n for n in (1, 31, *numbers)), x << by)), (x, by), training=False)
    for got, wanted in zip(machine.run((x, by)), (*(x << n for n in (1, 31, *numbers)), x << by), strict=True):
        assert torch.equal(narrow(got), narrow(wanted))


@pytest.mark.parametrize("type", [torch.int32, torch.int16])
def test_numbers_are_shifted_by_tensors(type):
    by = torch.tensor([0, 3, 14], dtype=type)
    check(of_all(lambda by: 1 << by, lambda by: -9000 >> by), by, gradients=False)


@pytest.mark.parametrize("type", [torch.float32, torch.float16])
def test_a_quotient_of_zero_has_the_sign_of_what_was_rounded(type):
    a = torch.tensor([-0.0, 0.0, -0.0, 0.0, 0.3, -0.3, 1.0, -2.0, -0.0], dtype=type)
    b = torch.tensor([3.0, -3.0, -3.0, 3.0, inf, -inf, 7.0, -7.0, inf], dtype=type)
    for function in (lambda a, b: a // b, lambda a, b: torch.div(a, b, rounding_mode="floor")):
        (got,) = compiled(Plain(function), (a, b), training=False).run((a, b))
        assert torch.equal(torch.signbit(got), torch.signbit(function(a, b)))
        assert torch.equal(got, function(a, b))


@pytest.mark.parametrize("type", [torch.float32, torch.float16])
def test_infinity_has_no_quotient_that_is_a_whole_number(type):
    a = torch.tensor([inf, -inf, inf, 5.0, -5.0, inf, 0.0, 7.0, -7.0, inf, nan], dtype=type)
    b = torch.tensor([2.0, 2.0, -2.0, inf, inf, 0.0, 0.0, 2.0, 2.0, inf, 1.0], dtype=type)
    divisions = (lambda a, b: a // 2, lambda a, b: a // b, lambda a, b: 2 // b, lambda a, b: a // 0)
    check(of_all(*divisions, lambda a, b: torch.div(a, b, rounding_mode="floor")), a, b, gradients=False)


@pytest.mark.parametrize("value", [0.5, 2.7, -2.7, 3])
def test_the_factor_of_an_integers_product_is_whole(value):
    whole = torch.tensor([3, -5, 7], dtype=torch.int32)
    check(lambda x: torch.addcmul(x, x, x, value=value), whole, gradients=False)
