"""Attention and layers of transformers give PyTorch's results and gradients."""

import pytest
import torch
import torch.nn.functional as F
from poptorch_rig import check
from torch import nn

MASK = nn.Transformer.generate_square_subsequent_mask(5)
PADDED = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


def random(*shape: int, type: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(type)


@pytest.mark.parametrize("type", [torch.float32, torch.float16])
def test_attention_is_pytorchs(type):
    operands = random(2, 3, 4, 5, type=type), random(2, 3, 6, 5, type=type, seed=2), random(2, 3, 6, 5, type=type, seed=3)
    check(F.scaled_dot_product_attention, *operands)
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3), *operands)
    added = random(4, 6, type=type, seed=4)
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, added, is_causal=True), *operands)


def test_masked_attention_is_pytorchs():
    operands = random(2, 4, 5), random(2, 6, 5, seed=2), random(2, 6, 5, seed=3)
    shown = torch.ones(4, 6, dtype=torch.bool)
    shown[1, 2:] = shown[2] = False  # nothing is left of the third row
    added = torch.zeros(4, 6).masked_fill(~shown, -torch.inf)
    check(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), *operands, arguments=(added,))
    check(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), *operands, arguments=(shown,))


def check_layer(layer: nn.Module, *tensors: torch.Tensor, **more: object) -> None:
    """Compare a layer's first result and its gradients by arguments and parameters."""
    parameters = dict(layer.named_parameters())

    def call(*given: torch.Tensor) -> torch.Tensor:
        own = dict(zip(parameters, given[len(tensors) :], strict=True))
        result = torch.func.functional_call(layer, own, given[: len(tensors)], more)
        return result[0] if isinstance(result, tuple) else result

    check(call, *tensors, *(parameter.detach() for parameter in parameters.values()))


@pytest.mark.parametrize("more", [{}, {"need_weights": False, "attn_mask": MASK, "is_causal": True}], ids=["weights", "causal"])
def test_multi_head_attention_is_pytorchs(more):
    torch.manual_seed(1)
    check_layer(nn.MultiheadAttention(8, 2, batch_first=True), *(random(3, 5, 8, seed=seed) for seed in range(3)), **more)


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({}, {"mask": MASK}),
        ({"norm_first": True, "activation": "gelu"}, {}),
        ({"batch_first": True}, {"src_key_padding_mask": PADDED}),
    ],
    ids=["mask", "gelu", "padding"],
)
def test_encoders_of_transformers_are_pytorchs(settings, more):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **settings)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    check_layer(encoder, random(2, 5, 8) if settings.get("batch_first") else random(5, 2, 8), **more)


@pytest.mark.parametrize("training", [True, False])
def test_transformers_are_pytorchs(training):
    torch.manual_seed(1)
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True).train(training)
    check_layer(model, random(2, 4, 8), random(2, 5, 8), tgt_mask=MASK, tgt_is_causal=True)
