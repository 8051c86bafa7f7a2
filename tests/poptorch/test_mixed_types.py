"""Layers and products of halves and floats, which PyTorch refuses, have PopTorch's rule."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from pypoplar import poptorch

LAYERS = {
    "linear": (nn.Linear(4, 3), (2, 5, 4)),
    "conv1d": (nn.Conv1d(4, 3, 2), (2, 4, 5)),
    "conv3d without a bias": (nn.Conv3d(2, 3, 2, bias=False), (1, 2, 3, 3, 3)),
    "conv_transpose2d": (nn.ConvTranspose2d(4, 3, 2), (2, 4, 3, 3)),
    "layer norm": (nn.LayerNorm(4), (2, 4)),
    "group norm": (nn.GroupNorm(2, 4), (2, 4, 3)),
    "batch norm": (nn.BatchNorm1d(4), (3, 4)),
    "instance norm": (nn.InstanceNorm1d(4, affine=True), (2, 4, 3)),
    "RMS norm": (nn.RMSNorm(4), (2, 4)),
    "LSTM": (nn.LSTM(4, 3, bidirectional=True), (2, 4, 4)),
    "GRU": (nn.GRU(4, 3), (2, 4, 4)),
    "RNN": (nn.RNN(4, 3, nonlinearity="relu"), (2, 4, 4)),
    "PReLU": (nn.PReLU(4), (2, 4)),
    "attention": (nn.MultiheadAttention(4, 2), (2, 3, 4)),
    "encoder": (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (2, 3, 4)),
}


class Layer(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y = self.layer(x, x, x) if isinstance(self.layer, nn.MultiheadAttention) else self.layer(x)
        y = y[0] if isinstance(y, tuple) else y
        return y, poptorch.identity_loss(y * y, "sum")


@pytest.mark.parametrize("weights", [torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_weights_of_a_layer_take_the_type_of_its_input_and_are_updated_in_their_own(name, weights):
    layer, shape = LAYERS[name]
    given = torch.float16 if weights is torch.float32 else torch.float32
    torch.manual_seed(3)
    x = torch.randn(shape).to(given)
    model = Layer(copy.deepcopy(layer).to(weights))
    wide = copy.deepcopy(model).float()
    y, _ = poptorch.trainingModel(model, None, torch.optim.SGD(model.parameters(), lr=0.0625))(x)
    wanted, wanted_loss = wide(x.float())
    optimizer = torch.optim.SGD(wide.parameters(), lr=0.0625)
    wanted_loss.backward()
    optimizer.step()
    assert y.dtype is given
    tolerance = 1e-5 if weights is torch.float64 else 3e-2
    torch.testing.assert_close(y.float(), wanted, rtol=tolerance, atol=tolerance)
    for (called, one), other in zip(model.named_parameters(), wide.parameters(), strict=True):
        assert one.dtype is weights, called
        torch.testing.assert_close(one.float(), other, rtol=tolerance, atol=tolerance, msg=lambda told, of=called: f"{of}: {told}")


PRODUCTS = {
    "@": lambda x, w: x @ w,
    "matmul": lambda x, w: torch.matmul(x, w),
    "method": lambda x, w: x.mm(w),
    "einsum": lambda x, w: torch.einsum("ij,jk->ik", x, w),
    "addmm": lambda x, w: torch.addmm(w[:1, :1], x, w),
}


class Product(nn.Module):
    def __init__(self, product):
        super().__init__()
        self.product = product

    def forward(self, x, w):
        return self.product(x, w)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_of_a_half_and_a_float_is_of_floats(name):
    x, w = torch.randn(3, 4).half(), torch.randn(4, 2)
    got = poptorch.inferenceModel(Product(PRODUCTS[name]))(x, w)
    assert got.dtype is torch.float32
    torch.testing.assert_close(got, PRODUCTS[name](x.float(), w))


def test_a_half_and_a_float_in_an_operation_on_elements_are_floats():
    x, w = torch.randn(4).half(), torch.randn(4)
    got = poptorch.inferenceModel(Product(torch.mul))(x, w)
    assert torch.equal(got, x * w)


def test_operands_of_two_types_that_reach_a_product_otherwise_are_told_with_their_line():
    told = r"aten.mm.default has operands of FLOAT and HALF: bring them to one type.*test_mixed_types.py:\d+"
    with pytest.raises(poptorch.UnsupportedOperation, match=told):
        poptorch.inferenceModel(Product(lambda x, w: torch.ops.aten.linear.default(x, w.T)))(
            torch.randn(3, 4).half(), torch.randn(4, 2)
        )


def test_pytorchs_classes_and_functions_are_what_they_were_when_the_model_is_captured():
    owners = torch, functional, torch.Tensor, nn.RNNBase
    before = [dict(vars(owner)) for owner in owners]
    poptorch.inferenceModel(nn.Linear(4, 2))(torch.randn(3, 4))
    for owner, known in zip(owners, before, strict=True):
        now = vars(owner)
        assert {name for name in now if now[name] is not known.get(name)} == set(), owner
        assert known.keys() == now.keys(), owner


def test_pytorch_refuses_them_again_when_the_model_is_captured():
    model, x = nn.Linear(4, 2), torch.randn(3, 4).half()
    before = functional.linear, torch.Tensor.__matmul__, torch.nn.RNNBase.check_input, "mm" in vars(torch.Tensor)
    poptorch.inferenceModel(model)(x)
    assert before == (functional.linear, torch.Tensor.__matmul__, torch.nn.RNNBase.check_input, "mm" in vars(torch.Tensor))
    with pytest.raises(RuntimeError, match="same dtype"):
        model(x)
