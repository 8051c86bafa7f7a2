"""Random numbers have PyTorch's distributions, and are others in the next call."""

import torch
from poptorch_rig import Plain, compiled

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
