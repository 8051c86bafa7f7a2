"""float64 is computed as float32, and it is said; what float32 does not reach is refused, or stays finite in a bound."""

import copy
import logging

import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import TensorIOStateError


class Mixed(nn.Module):
    """A network whose parameters and buffers are double, and whose loss has constants of its own."""

    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(5, 4), nn.BatchNorm1d(4)
        self.register_buffer("weights", torch.linspace(0.5, 1, 4))

    def forward(self, x, wanted):
        y = torch.softmax(self.norm(self.inner(x.to(self.weights.dtype))) * self.weights, 1)
        return y, nn.functional.smooth_l1_loss(y, wanted.to(y.dtype))


OPTIMIZERS = {
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_double_model_trains_as_the_same_model_in_single_precision(kind):
    torch.manual_seed(1)
    single = Mixed()
    double = copy.deepcopy(single).double()
    x, wanted = torch.randn(6, 5), torch.rand(6, 4)
    models = [poptorch.trainingModel(one, None, OPTIMIZERS[kind](one.parameters())) for one in (single, double)]
    for _ in range(2):
        (y, loss), (other, other_loss) = models[0](x, wanted), models[1](x.double(), wanted.double())
        assert other.dtype is torch.float32
        assert torch.equal(y, other)
        assert torch.equal(loss, other_loss)
    for one, other in zip(single.state_dict().values(), double.state_dict().values(), strict=True):
        assert torch.equal(one.to(other.dtype), other)
    assert double.inner.weight.dtype is torch.float64


def test_the_optimiser_of_a_double_model_steps_on_the_host_between_calls():
    model = Mixed().double()
    optimizer = OPTIMIZERS["Adam"](model.parameters())
    training = poptorch.trainingModel(model, None, optimizer)
    x, wanted = torch.randn(6, 5), torch.rand(6, 4)
    training(x, wanted)
    for one in model.parameters():
        one.grad = torch.ones_like(one)
    optimizer.step()
    states = [optimizer.state[one] for one in model.parameters()]
    training(x, wanted)
    assert all(float(state["step"]) == 3 for state in (optimizer.state[one] for one in model.parameters()))
    assert all(state["exp_avg"].dtype is torch.float64 for state in states)


def test_where_double_precision_is_lost_is_told_once(caplog):
    model = poptorch.inferenceModel(Mixed().double())
    with caplog.at_level(logging.WARNING, "poptorch"):
        model(torch.ones(2, 5, dtype=torch.float64), torch.ones(2, 4))
        model(torch.ones(2, 5, dtype=torch.float64), torch.ones(2, 4))
    told = [one.getMessage() for one in caplog.records]
    assert len(told) == 1
    assert told[0].startswith("float64 is computed as float32, which is what the IPU has (parameter inner.weight and ")


def test_constants_that_are_computed_in_double_are_no_reason_to_tell(caplog):
    class Positions(nn.Module):
        def forward(self, x):
            return x * (torch.arange(3, dtype=torch.float64) / 7).float()

    with caplog.at_level(logging.WARNING, "poptorch"):
        got = poptorch.inferenceModel(Positions())(torch.ones(3))
    assert torch.equal(got, (torch.arange(3, dtype=torch.float64) / 7).float())
    assert not caplog.records


@pytest.mark.parametrize("made", ["filled", "constant", "compared"])
def test_the_lowest_double_in_a_mask_stays_finite(made):
    class Masked(nn.Module):
        def forward(self, x, hidden):
            lowest = torch.finfo(x.dtype).min
            if made == "filled":
                return torch.softmax(x.masked_fill(hidden, lowest), 1)
            if made == "constant":
                return torch.softmax(torch.where(hidden, torch.tensor(lowest, dtype=x.dtype), x), 1)
            return (x.masked_fill(hidden, lowest) >= lowest).to(x.dtype)

    x = torch.randn(2, 3, dtype=torch.float64)
    hidden = torch.tensor([[True, True, True], [False, True, False]])
    got = poptorch.inferenceModel(Masked())(x, hidden)
    torch.testing.assert_close(got.double(), Masked()(x, hidden), rtol=1e-6, atol=1e-6)


def test_infinities_and_nans_stay_what_they_are():
    class Beyond(nn.Module):
        def forward(self, x):
            return x + torch.tensor([float("inf"), float("-inf"), float("nan")], dtype=torch.float64), x * float("inf")

    got, times = poptorch.inferenceModel(Beyond())(torch.ones(3, dtype=torch.float64))
    assert torch.equal(got.nan_to_num(7.0, 8.0, 9.0), torch.tensor([8.0, 9.0, 7.0]))
    assert torch.equal(times, torch.full((3,), float("inf")))


def test_an_argument_beyond_float32_is_refused_and_the_model_goes_on():
    class Twice(nn.Module):
        def forward(self, x):
            return x * 2

    model = poptorch.inferenceModel(Twice())
    with pytest.raises(TensorIOStateError, match=r"x has values from -1e\+300 to 1\.0; floats on the IPU are 32 bits wide"):
        model(torch.tensor([-1e300, 1, float("nan")], dtype=torch.float64))
    assert model(torch.tensor([1.5, 1, float("inf")], dtype=torch.float64)).tolist() == [3, 2, float("inf")]


def test_a_parameter_beyond_float32_is_refused():
    model = nn.Linear(2, 1).double()
    model.weight.data[0, 0] = 1e200
    with pytest.raises(TensorIOStateError, match=r"weight has values from .* to 1e\+200; floats on the IPU are 32 bits wide"):
        poptorch.inferenceModel(model)(torch.ones(1, 2, dtype=torch.float64))


def test_a_double_argument_that_is_changed_in_place_has_its_new_value():
    class Counts(nn.Module):
        def forward(self, x):
            x += 1
            return x * 2

    x = torch.tensor([0.5, 1.5], dtype=torch.float64)
    assert poptorch.inferenceModel(Counts())(x).tolist() == [3, 5]
    assert x.tolist() == [1.5, 2.5]
