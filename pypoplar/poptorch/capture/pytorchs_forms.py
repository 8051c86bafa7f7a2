"""Operations that have no entry of their own, and that PyTorch composes of others: they are traced as these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table

aten = torch.ops.aten
COMPOSED = (
    aten.special_entr,
    aten.special_ndtr,
    aten.special_log_ndtr,
    aten.special_xlog1py,
    aten.mvlgamma,
    aten.renorm,
    aten.addr,
    aten.trace,
    aten.sinc,
    aten.multi_margin_loss,
)


def pytorchs_forms() -> dict[Any, Callable[..., Any]]:
    """By operation. Gradients are those of the operation, whose formulas PyTorch has, not of what it is composed of."""
    operations = [getattr(packet, overload) for packet in COMPOSED for overload in packet.overloads()]
    return {operation: decomposition_table[operation] for operation in operations if operation in decomposition_table}
