"""The shapes of what connectionist temporal classification gives, which PyTorch does not know without lengths of samples."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_impls import op_implementations_dict, register_op_impl

OPERATION = torch.ops.aten._ctc_loss.Tensor


def _losses_and_paths(
    mode: Any, operation: Any, logs: Any, labels: Any, steps: Any, lengths: Any, blank: int = 0, zero_infinity: bool = False
) -> tuple[Any, Any]:
    """A loss for each sample, and what PyTorch saves for the gradient, by the longest label that there can be."""
    with mode:
        samples = logs.shape[1]
        return logs.new_empty([samples]), logs.new_empty([samples, logs.shape[0], 2 * labels.shape[-1] + 1])


if OPERATION not in op_implementations_dict:
    register_op_impl(OPERATION)(_losses_and_paths)
