"""Calls of a compiled model: arguments however they are given, and a module that has changed since."""

import copy
import logging

import numpy as np
import pytest
import torch
from torch import nn

from pypoplar import poptorch
from pypoplar.errors import PoplarRuntimeError, PoplarTypeError, TensorShapeError


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    """A small machine, which is compiled for quickly."""
    monkeypatch.setattr("pypoplar.poptorch.executor.building.TILES", 4)


class Difference(nn.Module):
    def forward(self, a, b, c=None, *, scale=1):
        of = a["more"] - 2 * a["less"] if isinstance(a, dict) else a - 2 * b
        return (of if c is None else of - 3 * c) * scale


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.outer = nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)

    def forward(self, x):
        y = self.outer(self.norm(self.inner(x)))
        return y, nn.functional.mse_loss(y, torch.ones(5, 2))


def vectors():
    return torch.ones(3), torch.full((3,), 5.0), torch.full((3,), 7.0)


def test_arguments_by_name_may_come_in_any_order():
    a, b, c = vectors()
    inference = poptorch.inferenceModel(Difference())
    wanted = (a - 2 * b - 3 * c).tolist()
    for got in (
        inference(a, b, c),
        inference(a, c=c, b=b),
        inference(c=c, b=b, a=a),
    ):
        assert got.tolist() == wanted


def test_entries_of_a_dict_may_come_in_any_order():
    a, b, _ = vectors()
    inference = poptorch.inferenceModel(Difference())
    wanted = (a - 2 * b).tolist()
    assert inference({"more": a, "less": b}, None).tolist() == wanted
    assert inference({"less": b, "more": a}, None).tolist() == wanted


def test_other_arguments_are_told_by_name():
    a, b, c = vectors()
    inference = poptorch.inferenceModel(Difference())
    inference(a, b, scale=2)
    with pytest.raises(TensorShapeError, match=r"b was \(3,\) of float32 and is \(4,\) of float32; make a new model"):
        inference(a, torch.ones(4), scale=2)
    with pytest.raises(TensorShapeError, match="scale was 2 and is 3"):
        inference(a, b, scale=3)
    with pytest.raises(TensorShapeError, match=r"scale was 2 and is \(3,\)|2 and is 7|3 arguments were given, and now 4"):
        inference(a, b, c, scale=2)
    with pytest.raises(PoplarTypeError, match="array of NumPy"):
        inference(a, b.numpy(), scale=2)
    with pytest.raises(PoplarTypeError, match="dense tensors"):
        inference(a, b.to_sparse(), scale=2)


def replaced_layer(model):
    model.outer = nn.Linear(3, 2)


def filled(model):
    model.outer.weight.data.fill_(0.5)


def through_numpy(model):
    model.outer.weight.detach().numpy()[:] = 3


def replaced_data(model):
    model.outer.weight.data = torch.randn(2, 3)


def test_weights_that_change_in_any_way_are_those_of_the_next_call():
    model, x = Network().eval(), torch.randn(5, 4)
    inference = poptorch.inferenceModel(model)
    inference(x)
    for change in (replaced_layer, filled, through_numpy, replaced_data):
        change(model)
        np.testing.assert_allclose(inference(x)[0].numpy(), model(x)[0].detach().numpy(), rtol=1e-4, atol=1e-5)


def test_running_statistics_of_inference_come_back():
    model, x = Network().train(), torch.randn(5, 4)
    other = copy.deepcopy(model)
    poptorch.inferenceModel(model)(x)
    other(x)
    np.testing.assert_allclose(model.norm.running_mean.numpy(), other.norm.running_mean.numpy(), rtol=1e-4, atol=1e-6)


def test_what_a_compiled_model_cannot_follow_is_refused():
    model, x = Network(), torch.randn(5, 4)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    training(x)
    model.inner.requires_grad_(False)
    with pytest.raises(PoplarRuntimeError, match=r"requires_grad of inner.weight has changed to False"):
        training(x)
    model.inner.requires_grad_(True)
    training(x)
    model.half()
    with pytest.raises(PoplarRuntimeError, match=r"inner.weight has changed from \(3, 4\) of float32 to \(3, 4\) of float16"):
        training(x)
    model.float()
    model.outer = nn.Identity()
    with pytest.raises(PoplarRuntimeError, match=r"the module has lost outer.weight"):
        training(x)


def test_another_mode_of_layers_is_told_once(caplog):
    model, x = Network(), torch.randn(5, 4)
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    training(x)
    model.eval()
    with caplog.at_level(logging.WARNING, "poptorch"):
        training(x)
        training(x)
    assert len([said for said in caplog.messages if "stays as compiled, after train()" in said]) == 1
