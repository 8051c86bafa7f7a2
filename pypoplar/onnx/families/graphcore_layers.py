"""Operators of Graphcore's domain, ``ai.graphcore``, that ONNX or PyTorch has in another form: layers, losses, prints."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.families.graphcore_nodes import DOMAIN, MEAN, NONE, SUM
from pypoplar.onnx.families.shape_nodes import depth_to_space
from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator
from pypoplar.poptorch.operators import ctc_beam_search_decoder, ipu_print_tensor, isRunningOnIpu

PRINTED = ("summariseThreshold", "edgeItems", "maxLineWidth", "digits", "floatFormat", "separator", "openBracket", "closeBracket")

operator("DepthToSpace", domain=DOMAIN, needed=("blocksize",), attributes=("mode",))(depth_to_space)


@operator("BatchNormalization", domain=DOMAIN, attributes=("epsilon", "momentum"))
def batch_normalization(op: NodeCall, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
    """By the mean and variance that are given; with three outputs by those of the batch, which the others move to."""
    epsilon, momentum = op.attribute("epsilon", 1e-5), op.attribute("momentum", 0.9)
    if not any(op.outputs[1:]):
        return (F.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon),)
    if len(op.outputs) != 3:
        raise op.error(f"it gives 1 tensor, or in training 3, got {len(op.outputs)} outputs")
    axes = [axis for axis in range(x.dim()) if axis != 1]
    shape = [1, -1, *[1] * (x.dim() - 2)]
    now = torch.mean(x, axes)
    spread = torch.mean((x - now.reshape(shape)) ** 2, axes)
    count = x.numel() // x.shape[1]
    moved = variance * momentum + spread * (count / max(count - 1, 1)) * (1 - momentum)
    normal = (x - now.reshape(shape)) * torch.rsqrt(spread + epsilon).reshape(shape)
    return normal * scale.reshape(shape) + bias.reshape(shape), mean * momentum + now * (1 - momentum), moved


FULL = ("outputFullSequence", "output_full_sequence")  # Python's name, and that in files


@operator("LSTM", domain=DOMAIN, attributes=(*FULL, "activation", "recurrent_activation"), operands=(2, 5))
def lstm(op: NodeCall, x: Tensor) -> tuple[Tensor, Tensor]:
    """Long short-term memory: outputs [steps, items, hidden], or those of the last step, and the cells' state at the end."""
    weight = op.tensor(1)
    assert weight is not None
    if x.dim() != 3 or weight.dim() != 3 or weight.shape[0] != 4 or weight.shape[1] != x.shape[2] + weight.shape[2]:
        raise op.error(
            f"it takes [steps, items, in] and weights [4, in + hidden, hidden], got {list(x.shape)} and {list(weight.shape)}"
        )
    for name, usual in (("activation", "tanh"), ("recurrent_activation", "sigmoid")):
        if str(op.attribute(name, usual)).lower() != usual:
            raise op.error(f"{name} is {usual}, got {op.attribute(name)!r}")
    if op.has(4):
        raise op.error("sequence lengths, the fifth input, are missing")
    items, hidden, given = x.shape[1], weight.shape[2], op.tensor(3)
    for operand, shape, one in ((2, [4, hidden], op.tensor(2)), (3, [2, items, hidden], given)):
        if one is not None and list(one.shape) != shape:
            raise op.error(f"{op.operand_name(operand)} has shape {shape}, got {list(one.shape)}")
    states = torch.zeros(2, 1, items, hidden, dtype=x.dtype, device=x.device) if given is None else given.unsqueeze(1)
    flat = op.prepared("weights", lambda w, b: _gates(w, b, x.shape[2]), 1, 2)
    outputs, _, cells = torch.lstm(x, [states[0], states[1]], flat, op.has(2), 1, 0.0, False, False, False)
    whole = next((op.attribute(name) for name in FULL if op.attribute(name) is not None), 1)
    return outputs if whole else outputs[-1], cells.squeeze(0)


def _gates(weight: Tensor, bias: Tensor | None, inputs: int) -> list[Tensor]:
    """Weights and biases as PyTorch has them, gate by gate: in, forget, cell, out; PopART's are forget, in, cell, out."""
    order = (1, 0, 2, 3)
    rows = torch.cat([weight[one].transpose(0, 1) for one in order])
    parts = [rows[:, :inputs], rows[:, inputs:]]
    if bias is not None:
        biases = torch.cat([bias[one] for one in order])
        parts += [biases, torch.zeros_like(biases)]
    return parts


@operator("NormalizeImage", domain=DOMAIN, attributes=("scale",))
def normalize_image(op: NodeCall, image: Tensor, offsets: Tensor, scales: Tensor) -> Tensor:
    """Pictures whose last axis are 3 channels, ``(scale image - offsets) scales``, with zeros as a fourth one."""
    if image.dim() < 2 or image.shape[-1] != 3 or list(offsets.shape) != [3] or list(scales.shape) != [3]:
        raise op.error(
            f"it takes pictures whose last axis has 3 channels, and 3 offsets and scales, got {list(image.shape)}, "
            f"{list(offsets.shape)} and {list(scales.shape)}"
        )
    if image.dtype is torch.uint8:
        image = image.to(torch.float16)
    return F.pad((image * op.attribute("scale", 1.0) - offsets) * scales, [0, 1])


@operator("PrintTensor", domain=DOMAIN, attributes=("print_gradient", "title", *PRINTED))
def print_tensor(op: NodeCall, x: Tensor) -> Tensor:
    """The operand, which the host prints when the device computes it."""
    if not isRunningOnIpu():
        return x
    title = str(op.attribute("title", "")) or op.node.input[0]
    return ipu_print_tensor(x, title, bool(op.attribute("print_gradient", 1)))


@operator("ShapedDropout", domain=DOMAIN, needed=("shape",), attributes=("ratio",))
def shaped_dropout(op: NodeCall, x: Tensor) -> Tensor:
    """In models that train slices are dropped, as large as what the shape is broadcast by; else nothing."""
    shape, ratio = list(op.attribute("shape")), op.attribute("ratio", 0.5)
    if torch.broadcast_shapes(shape, x.shape) != x.shape:
        raise op.error(f"its shape {shape} is not broadcast to {list(x.shape)}")
    if not op.training:
        return x
    kept = torch.rand(shape, dtype=x.dtype, device=x.device) >= ratio
    return torch.where(kept, x / (1.0 - ratio), torch.zeros_like(x))


@operator("Ctc", domain=DOMAIN, attributes=("reduction", "outDataType", "blank", "zeroInfinity"))
def ctc_loss(op: NodeCall, logs: Tensor, labels: Tensor, times: Tensor, lengths: Tensor) -> Tensor:
    """The loss of connectionist temporal classification, of logarithms [time, batch, classes]."""
    if op.attribute("outDataType", "UNDEFINED") != "UNDEFINED":
        raise op.error("outDataType is missing: the loss has the type of the logarithms")
    kind = {SUM: "sum", MEAN: "mean", NONE: "none"}[op.attribute("reduction", MEAN)]
    if logs.device.type == "meta":  # of which PyTorch's knows no shape
        return torch.empty([logs.shape[1]] if kind == "none" else [], dtype=logs.dtype, device="meta")
    blank, infinite = op.attribute("blank", 0), bool(op.attribute("zeroInfinity", 0))
    return F.ctc_loss(logs, labels, times, lengths, blank=blank, reduction=kind, zero_infinity=infinite)


@operator("CtcBeamSearchDecoder", domain=DOMAIN, attributes=("blank", "beamWidth", "topPaths"))
def ctc_beams(op: NodeCall, logs: Tensor, times: Tensor) -> tuple[Tensor, ...]:
    """The likeliest labels of each item: their probabilities, their lengths, and the labels."""
    beams = {
        "blank": op.attribute("blank", 0),
        "beam_width": op.attribute("beamWidth", 100),
        "top_paths": op.attribute("topPaths", 1),
    }
    return tuple(ctc_beam_search_decoder(logs, times, **beams))


@operator("TensorRemap", domain=DOMAIN, needed=("remap_type",), attributes=())
def tensor_remap(op: NodeCall, x: Tensor) -> Tensor:
    """The operand: where it lies is the compiler's to say."""
    return x
