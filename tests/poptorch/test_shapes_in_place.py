"""Arguments, buffers and `out` that would get another shape in place are refused; what is made in the forward pass may."""

import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import PoplarError
from pypoplar.poptorch.executor import building


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setattr(building, "TILES", 4)


def given_data(model, x):
    model.row.data = x * 2
    return x + model.row


class Changing(nn.Module):
    """Does what a function says."""

    def __init__(self, change):
        super().__init__()
        self.change = change
        self.register_buffer("row", torch.ones(1, 3))

    def forward(self, x):
        return self.change(self, x)


def run(change, x):
    return poptorch.inferenceModel(Changing(change))(x)


REFUSED = {
    "squeeze_": (
        lambda model, x: x.squeeze_() * 2,
        r"squeeze_ gives an argument .* \(1, 3\) before and \(3,\) then: .* by squeeze",
    ),
    "unsqueeze_": (lambda model, x: x.unsqueeze_(0) * 2, r"unsqueeze_ gives an argument another shape in place"),
    "t_": (lambda model, x: x.t_() * 2, r"t_ gives an argument another shape in place"),
    "transpose_": (lambda model, x: x.transpose_(0, 1).add_(1), r"transpose_ gives an argument another shape in place"),
    "resize_": (lambda model, x: x.resize_(2) + 1, r"resize_ gives an argument .* by reshape"),
    "a buffer": (lambda model, x: x + model.row.unsqueeze_(0), r"unsqueeze_ gives the buffer row another shape in place"),
    "data of a buffer": (given_data, r"the buffer row is given other data, which no graph sees: change it by copy_"),
    "out": (
        lambda model, x: torch.add(x.expand(2, 3), 1, out=x[:, None] * 2),
        r"out has the shape \(1, 1, 3\), and the result \(2, 3\)",
    ),
    "unfold": (lambda model, x: x.unfold(-1, 2, 2).mul_(2), r"a view by unfold, .* is changed in place"),
    "a view of unfold": (lambda model, x: x.unfold(-1, 2, 2)[0].mul_(2), r"a view by unfold, .* is changed in place"),
    "cov": (lambda model, x: torch.cov(x), r"cov\(\) asks for values in PyTorch: take x - x.mean"),
    "combinations": (lambda model, x: torch.combinations(x[0]), r"combinations\(\) has a shape .* take i = torch.combinations"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_graph_has_is_refused_once_with_the_line(name):
    change, told = REFUSED[name]
    with pytest.raises(PoplarError, match=told) as refused:
        run(change, torch.ones(1, 3))
    assert "test_shapes_in_place.py" in str(refused.value)
    assert len([line for line in str(refused.value).splitlines() if "in place" in line]) <= 1


def own(model, x):
    y = x * 1
    y.squeeze_()
    y.unsqueeze_(1)
    y.t_()
    return y + 1


def out_of_nothing(model, x):
    out = torch.empty(0)
    torch.add(x, 1, out=out)
    return out * 2


def unfolds_all(model, x):
    y = x * 2
    y.unfold(-1, 1, 1).add_(1)
    y.unfold(-1, 3, 3)[0].mul_(2)
    return y


@pytest.mark.parametrize("change", [own, out_of_nothing, unfolds_all])
def test_a_tensor_of_the_forward_pass_may_get_another_shape(change):
    x = torch.arange(3.0).reshape(1, 3)
    assert torch.equal(run(change, x), change(None, x.clone()))
