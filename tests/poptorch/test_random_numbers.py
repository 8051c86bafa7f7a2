"""Random numbers have PyTorch's distributions, and are others in the next call."""

import math

import numpy as np
import pytest
import torch
from poptorch_rig import Differentiated, Plain, compiled
from torch.nn import functional

from pypoplar import MissingFeature
from pypoplar.poptorch import CaptureError

COUNT = 2000


def draws(x):
    return (
        torch.rand(COUNT),
        torch.randn_like(x),
        torch.bernoulli(torch.full_like(x, 0.25)),
        torch.normal(x, 2.0),
        torch.randint(-2, 3, (COUNT,)),
        torch.empty_like(x).exponential_(0.5),
        torch.empty_like(x).uniform_(2, 4),
        torch.randperm(50),
    )


def test_distributions():
    machine = compiled(Plain(draws), (torch.full((COUNT,), 3.0),), training=False)
    machine.random_state = [11, 0]
    first = machine.run([torch.full((COUNT,), 3.0)])
    uniform, normal, success, shifted, whole, exponential, between, order = first
    for drawn, mean, deviation in (
        *((uniform, 0.5, 0.289), (normal, 0.0, 1.0), (success, 0.25, 0.433), (shifted, 3.0, 2.0)),
        *((whole, 0.0, 1.414), (exponential, 2.0, 2.0), (between, 3.0, 0.577)),
    ):
        assert abs(float(drawn.double().mean()) - mean) < 5 * deviation / COUNT**0.5
        assert abs(float(drawn.double().std()) / deviation - 1) < 0.15
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert set(whole.tolist()) == {-2, -1, 0, 1, 2}
    assert sorted(order.tolist()) == list(range(50))
    assert not torch.equal(machine.run([torch.full((COUNT,), 3.0)])[0], uniform)
    machine.random_state = [11, 0]
    assert torch.equal(machine.run([torch.full((COUNT,), 3.0)])[0], uniform)


def draws_of_defaults(x):
    return (
        torch.empty_like(x).normal_(),
        torch.empty_like(x).bernoulli_(),
        torch.empty_like(x).exponential_(),
        torch.empty_like(x).uniform_(),
        torch.randint(3, (COUNT,)),
        torch.randint_like(x, 3),
        torch.empty_like(x).bernoulli_(0.2),
        torch.normal(x, x + 2.0),
    )


def test_distributions_that_leave_their_parameters_out_have_pytorchs():
    x = torch.zeros(COUNT)
    machine = compiled(Plain(draws_of_defaults), (x,), training=False)
    machine.random_state = [12, 0]
    results = machine.run([x])
    means = ((0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.5, 0.289), (1.0, 0.816), (1.0, 0.816), (0.2, 0.4), (0.0, 2.0))
    for drawn, (mean, deviation) in zip(results, means, strict=True):
        assert abs(float(drawn.double().mean()) - mean) < 5 * deviation / COUNT**0.5
        assert abs(float(drawn.double().std()) / deviation - 1) < 0.15
    assert set(results[1].tolist()) == set(results[6].tolist()) == {0.0, 1.0}
    assert set(results[4].tolist()) == set(results[5].tolist()) == {0, 1, 2}
    assert (results[2] >= 0).all()
    assert results[2].min() < 0.05


def draws_in_place(x):
    return (
        torch.empty_like(x).random_(),
        torch.empty_like(x).random_(5),
        torch.zeros(COUNT, dtype=torch.int32).random_(-2, 3),
        torch.zeros(COUNT, dtype=torch.int64).random_(**{"from": 7, "to": 9}),
        torch.zeros(COUNT, dtype=torch.int32).random_(0, None),
        torch.zeros(COUNT, dtype=torch.bool).random_(),
        torch.zeros(COUNT, dtype=torch.float16).random_(),
        torch.empty_like(x).bernoulli_(x),
        torch.zeros(COUNT, dtype=torch.int32).bernoulli_(x),
        torch.empty_like(x).log_normal_(0.5, 0.25),
        torch.empty_like(x).cauchy_(2.0, 3.0),
        torch.empty_like(x).geometric_(0.25),
        torch.zeros(COUNT, dtype=torch.int32).geometric_(0.5),
        torch.zeros(COUNT, dtype=torch.int64).random_(),
        torch.zeros(COUNT, dtype=torch.float64).random_(),
    )


def test_distributions_in_place():
    x = torch.full((COUNT,), 0.25)
    machine = compiled(Plain(draws_in_place), (x,), training=False)
    machine.random_state = [13, 0]
    drawn_ones = machine.run([x])
    floats, below, between, named, widest, truths, halves, success, whole, log_normal, cauchy, tried, tried_whole = drawn_ones[:-2]
    long, double = drawn_ones[-2:]  # are of 32 bits on the IPU
    moments = math.exp(0.5 + 0.25**2 / 2), math.exp(0.5 + 0.25**2 / 2) * math.sqrt(math.exp(0.25**2) - 1)
    for drawn, mean, deviation in (
        *((floats, 2**23, 2**24 / 12**0.5), (below, 2.0, 2**0.5), (between, 0.0, 2**0.5), (named, 7.5, 0.5)),
        *((widest, 2**30, 2**31 / 12**0.5), (truths, 0.5, 0.5), (halves, 2**10, 2**11 / 12**0.5)),
        *((success, 0.25, 0.433), (whole, 0.25, 0.433), (log_normal, *moments)),
        *((tried, 4.0, 12**0.5), (tried_whole, 2.0, 2**0.5)),
        *((long, 2**30, 2**31 / 12**0.5), (double, 2**23, 2**24 / 12**0.5)),
    ):
        assert abs(float(drawn.double().mean()) - mean) < 5 * deviation / COUNT**0.5
        assert abs(float(drawn.double().std()) / deviation - 1) < 0.2
    assert [set(one.tolist()) for one in (below, between, named)] == [{0, 1, 2, 3, 4}, {-2, -1, 0, 1, 2}, {7, 8}]
    assert (floats == floats.round()).all()
    assert 0 <= floats.min() <= floats.max() <= 2**24
    assert halves.max() <= 2**11
    assert min(tried.min(), tried_whole.min()) == 1
    quarters = torch.quantile(cauchy, torch.tensor([0.25, 0.5, 0.75]))
    assert torch.allclose(quarters, torch.tensor([-1.0, 2.0, 5.0]), atol=0.6), "a cauchy distribution has no mean"
    assert not torch.equal(machine.run([x])[0], floats)


def test_whole_numbers_of_64_bits_without_bounds_are_told_to_be_of_32(caplog, monkeypatch):
    monkeypatch.setattr("pypoplar.poptorch.user_log._said", set())
    with caplog.at_level("WARNING", "poptorch"):
        compiled(Plain(lambda x: (x.long().random_(), x.long().random_(0, 9))), (torch.ones(3),), training=False)
    assert caplog.messages == ["random_ of torch.int64 without bounds draws from 0 to 2147483647, as of torch.int32"]


def test_what_is_drawn_in_place_has_no_gradient():
    def drawn(x):
        kept = [(x * 2).random_(3), (x * 2).bernoulli_(torch.sigmoid(x)), (x * 2).log_normal_(), (x * 2).cauchy_()]
        return torch.stack([*kept, x * 3])

    _, gradient = Differentiated(drawn, (torch.ones(4),)), None
    machine = compiled(_, (), training=True)
    machine.run([])
    gradient = machine.engine.readTensor("gradient/tensors.0")
    assert np.allclose(gradient, 3 * np.sin(np.arange(16, 20) * 1.7), atol=1e-5)


REFUSED = {
    "below none": (
        lambda x: x.int().random_(5, 5),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=5 >= to=5",
    ),
    "beyond the type": (lambda x: x.to(torch.uint8).random_(500), RuntimeError, "to - 1 is out of bounds for"),
    "beyond the device": (
        lambda x: x.long().random_(0, 2**40),
        MissingFeature,
        "draws from 0 to 1099511627775, and integers on the IPU",
    ),
    "no range": (lambda x: x.random_(1, 2, 3), TypeError, r"random_\(\)"),
    "a generator": (
        lambda x: x.clone().random_(5, generator=torch.Generator()),
        CaptureError,
        r"an object such as a torch.Generator",
    ),
    "no deviation": (lambda x: x.clone().log_normal_(1, 0), RuntimeError, "log_normal_ expects std > 0.0, but found std=0"),
    "no width": (lambda x: x.clone().cauchy_(1, -1), RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=-1"),
    "no chance": (lambda x: x.clone().geometric_(0), RuntimeError, r"geometric_ expects p to be in \(0, 1\), but got p=0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_ranges_that_pytorch_or_the_device_do_not_have_are_refused(name):
    function, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        compiled(Plain(function), (torch.ones(3),), training=False)


def test_shapes_with_one_element_are_drawn_and_those_without_are_empty():
    machine = compiled(
        Plain(
            lambda x: (
                torch.rand(3, 1),
                torch.randn(1),
                torch.rand(()),
                torch.rand(3, 0),
                torch.randint(5, (0,)),
                torch.randperm(0),
                x,
            )
        ),
        (torch.zeros(1),),
        training=False,
    )
    column, one, scalar, *empty, _ = machine.run([torch.zeros(1)])
    assert len(set(column.flatten().tolist())) == 3
    assert (column.shape, one.shape, scalar.shape) == ((3, 1), (1,), ())
    assert one.item() != 0
    assert scalar.item() != 0
    assert [tuple(each.shape) for each in empty] == [(3, 0), (0,), (0,)]


def test_whether_a_chance_comes_is_drawn_in_float32_for_every_type():
    """float16 has no numbers between 0 and 1 that come so seldom as this one."""
    chance = 0.01

    def chances(x):
        return x.bernoulli(chance), torch.bernoulli(torch.full_like(x, chance))

    results = []
    for dtype in (torch.float32, torch.float16):
        x = torch.zeros(20 * COUNT, dtype=dtype)
        machine = compiled(Plain(chances), (x,), training=False)
        machine.random_state = [13, 0]
        results.append([each.float() for each in machine.run([x])])
    in_float, in_half = results
    assert torch.equal(in_float[0], in_half[0])
    assert in_float[0].any()
    assert (in_float[1] != in_half[1]).sum() <= 2  # the chance itself is rounded to float16


def kept_in_training(probability):
    """What two dropouts make of ones in a step, and the gradient by each, which has PyTorch's weights of `Differentiated`."""
    ones = torch.ones(COUNT)
    module = Differentiated(lambda *both: torch.cat([functional.dropout(one, probability) for one in both]), (ones, ones))
    machine = compiled(module, (), training=True)
    machine.random_state = [11, 0]
    results = [machine.run(())[0].numpy().reshape(2, COUNT) for _ in range(2)]
    weights = np.sin(np.arange(2 * COUNT, dtype=np.float32) * np.float32(1.7)).reshape(2, COUNT)
    gradients = [machine.engine.readTensor(f"gradient/tensors.{number}").reshape(COUNT) for number in range(2)]
    return results, gradients, weights


def test_a_dropout_scales_what_it_keeps_so_that_the_mean_stays():
    (first, _), *_ = kept_in_training(0.25)
    assert set(np.unique(first)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(np.count_nonzero(first) / first.size - 0.75) < 5 * 0.433 / first.size**0.5


def test_dropouts_of_a_step_and_of_the_next_step_keep_other_elements():
    (first, second), *_ = kept_in_training(0.25)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first, second)


def test_a_gradient_goes_through_the_elements_that_the_dropout_kept():
    (_, last), gradients, weights = kept_in_training(0.25)
    for result, gradient, weight in zip(last, gradients, weights, strict=True):
        np.testing.assert_allclose(gradient, result * weight, rtol=1e-5, atol=1e-6)


def test_a_dropout_of_everything_leaves_zeros_and_no_gradient():
    (first, second), gradients, _ = kept_in_training(1.0)
    assert not any(array.any() for array in (first, second, *gradients))


def test_a_dropout_that_does_not_train_is_its_input():
    x = torch.linspace(-1, 1, 64)
    machine = compiled(Plain(lambda x: functional.dropout(x, 0.5, training=False)), (x,), training=False)
    assert torch.equal(machine.run([x])[0], x)
