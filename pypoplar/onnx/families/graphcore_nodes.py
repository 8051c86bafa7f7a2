"""Operators of Graphcore's domain, ``ai.graphcore``."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import operator

DOMAIN = "ai.graphcore"
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Expm1": torch.expm1,
    "Log1p": torch.log1p,
    "Round": torch.round,
    "NearbyInt": torch.round,
    "Detach": torch.detach,
    "Nop": lambda x: x,
    "Gelu": lambda x: F.gelu(x, approximate="tanh"),
    "GeluErf": F.gelu,
    "Swish": F.silu,
    "BitwiseNot": torch.bitwise_not,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Atan2": torch.atan2,
    "Fmod": torch.fmod,
    "Remainder": torch.remainder,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "BitwiseXnor": lambda a, b: torch.bitwise_not(torch.bitwise_xor(a, b)),
}


def _enter_unary(name: str, function: Callable[[Tensor], Tensor]) -> None:
    def entry(op: NodeCall, x: Tensor) -> Tensor:
        return function(x)

    operator(name, domain=DOMAIN, attributes=())(entry)


def _enter_binary(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    def entry(op: NodeCall, a: Tensor, b: Tensor) -> Tensor:
        return function(a, b)

    operator(name, domain=DOMAIN, attributes=())(entry)


for _name, _function in UNARY.items():
    _enter_unary(_name, _function)
for _name, _pair in BINARY.items():
    _enter_binary(_name, _pair)


@operator("Scale", domain=DOMAIN, needed=("scale",), attributes=())
def scale(op: NodeCall, x: Tensor) -> Tensor:
    """Times a number."""
    return x * op.attribute("scale")


@operator("ScaledAdd", domain=DOMAIN, attributes=("scale0", "scale1"))
def scaled_add(op: NodeCall, a: Tensor, b: Tensor, first: Tensor | None = None, second: Tensor | None = None) -> Tensor:
    """A sum, each term times a number."""
    left = op.attribute("scale0", 1.0) if first is None else first
    right = op.attribute("scale1", 1.0) if second is None else second
    return a * left + b * right


@operator("GroupNormalization", domain=DOMAIN, needed=("num_groups",), attributes=("epsilon",))
def group_normalization(op: NodeCall, x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, ...]:
    """Groups of channels by their means and variances; also the means and what variances are divided by."""
    groups, epsilon = op.attribute("num_groups"), op.attribute("epsilon", 1e-5)
    parts = x.reshape(x.shape[0] * groups, -1)
    mean = torch.mean(parts, 1)
    spread = torch.mean((parts - mean.unsqueeze(1)) ** 2, 1)
    return F.group_norm(x, groups, gamma, beta, epsilon), mean, torch.rsqrt(spread + epsilon)


@operator("Subsample", domain=DOMAIN, needed=("strides",), attributes=())
def subsample(op: NodeCall, x: Tensor) -> Tensor:
    """Every so many elements along each axis."""
    return x[tuple(slice(None, None, one) for one in op.attribute("strides"))]


@operator("Reverse", domain=DOMAIN, needed=("dimensions",), attributes=())
def reverse(op: NodeCall, x: Tensor) -> Tensor:
    """Axes backwards."""
    return torch.flip(x, list(op.attribute("dimensions")))


@operator("Reshape", domain=DOMAIN, needed=("shape",), attributes=())
def reshape(op: NodeCall, x: Tensor) -> Tensor:
    """Another shape."""
    return x.reshape(list(op.attribute("shape")))


@operator("Init", domain=DOMAIN, needed=("data_type",), attributes=("init_type", "batch_axis"), operands=(1, 1))
def init(op: NodeCall) -> Tensor:
    """Zeros in a shape that an operand gives."""
    return torch.zeros(op.ints(0) or [], dtype=op.dtype(op.attribute("data_type")))


@operator("IncrementMod", domain=DOMAIN, needed=("increment", "modulus"), attributes=())
def increment_mod(op: NodeCall, x: Tensor) -> Tensor:
    """One step on, round a circle."""
    return torch.remainder(x + op.attribute("increment"), op.attribute("modulus"))


@operator("ReduceMedian", domain=DOMAIN, attributes=("axes", "keepdims"))
def reduce_median(op: NodeCall, x: Tensor) -> tuple[Tensor, ...]:
    """The lower median along an axis, and its place."""
    axes = op.attribute("axes") or [-1]
    if len(axes) != 1:
        raise op.error("the median over several axes is missing")
    values, places = torch.median(x, axes[0], bool(op.attribute("keepdims", 1)))
    return values, places


# losses, with PopART's numbers of reductions: a sum, a mean, none

SUM, MEAN, NONE = 0, 1, 2


def reduced(op: NodeCall, x: Tensor) -> Tensor:
    """A loss in the form that the node says."""
    kind = op.attribute("reduction", MEAN)
    return torch.sum(x) if kind == SUM else torch.mean(x) if kind == MEAN else x


@operator("IdentityLoss", domain=DOMAIN, attributes=("reduction",))
def identity_loss(op: NodeCall, x: Tensor) -> Tensor:
    """The operand as a loss."""
    return reduced(op, x)


@operator("L1", domain=DOMAIN, needed=("lambda",), attributes=("reduction",))
def l1_loss(op: NodeCall, x: Tensor) -> Tensor:
    """``lambda |x|``."""
    return reduced(op, torch.abs(x) * op.attribute("lambda", 1.0))


@operator("Nll", domain=DOMAIN, attributes=("reduction", "ignoreIndex", "inputIsLogProbability"))
def nll_loss(op: NodeCall, probabilities: Tensor, labels: Tensor) -> Tensor:
    """The negative logarithm of the label's probability."""
    logs = probabilities if op.attribute("inputIsLogProbability", 0) else torch.log(probabilities)
    rows = logs.reshape(-1, logs.shape[-1])
    ignored = op.attribute("ignoreIndex", -100)
    kind = {SUM: "sum", MEAN: "mean", NONE: "none"}[op.attribute("reduction", MEAN)]
    result = F.nll_loss(rows, labels.reshape(-1).to(torch.int64), reduction=kind, ignore_index=ignored)
    return result.reshape(labels.shape) if kind == "none" else result
