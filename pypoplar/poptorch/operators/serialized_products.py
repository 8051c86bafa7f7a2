"""Products of matrices in parts, one after the other."""

from __future__ import annotations

import torch

from pypoplar.errors import InvalidOption, PoplarTypeError, TensorShapeError
from pypoplar.poptorch.enums import MatMulSerializationMode
from pypoplar.poptorch.operators.tensor_arguments import check_number, check_tensor
from pypoplar.tracebacks import public

InputChannels, ReducingDim = MatMulSerializationMode.InputChannels, MatMulSerializationMode.ReducingDim


@public
def serializedMatMul(
    lhs: torch.Tensor, rhs: torch.Tensor, mode: MatMulSerializationMode, factor: int = 0, keep_precision: bool = False
) -> torch.Tensor:
    """The product of matrices in parts that are computed one after the other, which takes less memory than the product at once.

    Sums of parts, which `ReducingDim` has in the forward pass and `InputChannels` in the gradient of `rhs`, are of the operands'
    type.

    Parameters
    ----------
    lhs:
        [..., m, n]
    rhs:
        [..., n, p]
    mode:
        Which dimension is cut: `MatMulSerializationMode.InputChannels` m, `ReducingDim` n, `OutputChannels` p; `Disabled` none.
    factor:
        The number of parts, which divides the dimension.
    keep_precision:
        Whether sums of parts of halves are FLOAT.

    Returns
    -------
    torch.Tensor
        [..., m, p]

    Raises
    ------
    TensorShapeError
        For operands that do not fit each other.
    InvalidOption
        For a factor that does not divide the dimension.
    PoplarTypeError
        For arguments of other types.
    """
    call = "serializedMatMul"
    check_tensor(call, "lhs", lhs)
    check_tensor(call, "rhs", rhs)
    if not isinstance(mode, MatMulSerializationMode):
        raise PoplarTypeError(f"poptorch.{call} takes poptorch.MatMulSerializationMode for mode, got {mode!r}")
    if not isinstance(keep_precision, bool):
        raise PoplarTypeError(f"poptorch.{call} takes True or False for keep_precision, got {keep_precision!r}")
    check_number(call, "factor", factor, 0)
    if mode is MatMulSerializationMode.Disabled:
        return torch.matmul(lhs, rhs)
    if lhs.dim() < 2 or rhs.dim() < 2 or lhs.shape[-1] != rhs.shape[-2]:
        raise TensorShapeError(f"poptorch.{call} takes [..., m, n] and [..., n, p], got {list(lhs.shape)} and {list(rhs.shape)}")
    size = lhs.shape[-2] if mode is InputChannels else lhs.shape[-1] if mode is ReducingDim else rhs.shape[-1]
    if not factor or size % factor:
        raise InvalidOption(f"poptorch.{call}: factor divides the dimension that {mode.name} cuts, {size}; got {factor}")
    width = size // factor
    wide = keep_precision and lhs.dtype is torch.float16
    cuts = [(number * width, width) for number in range(factor)]
    if mode is InputChannels:
        whole = rhs.float() if wide else rhs  # so that its gradient is a sum of floats
        parts = [torch.matmul(lhs.narrow(-2, *cut), whole.to(rhs.dtype)) for cut in cuts]
        return torch.cat(parts, -2)
    if mode is ReducingDim:
        return _sum([torch.matmul(lhs.narrow(-1, *cut), rhs.narrow(-2, *cut)) for cut in cuts], wide)
    return torch.cat([torch.matmul(lhs, rhs.narrow(-1, *cut)) for cut in cuts], -1)


def _sum(parts: list[torch.Tensor], wide: bool) -> torch.Tensor:
    """The sum of parts, in FLOAT where `wide`, of their type."""
    total = parts[0].float() if wide else parts[0]
    for part in parts[1:]:
        total = total + part
    return total.to(parts[0].dtype)
