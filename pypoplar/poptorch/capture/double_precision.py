"""Numbers of double precision, which the device computes in single: those that its floats do not reach."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import fx
from torch.fx.node import map_aggregate

MOST = torch.finfo(torch.float32).max


def keep_numbers_finite(graph: fx.Graph) -> None:
    """Have finite numbers beyond single precision be its largest where operations are of doubles.

    They are bounds and masks, such as ``torch.finfo(torch.float64).min``: made infinite, they would give NaNs.
    """
    for node in graph.nodes:
        if node.op == "call_function" and any(_is_double(one) for one in (node, *node.all_input_nodes)):
            node.args, node.kwargs = map_aggregate(node.args, _finite), map_aggregate(node.kwargs, _finite)


def _is_double(node: fx.Node) -> bool:
    tensors = pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(one, torch.Tensor) and one.dtype is torch.float64 for one in tensors)


def _finite(argument: Any) -> Any:
    if isinstance(argument, float) and abs(argument) != float("inf"):
        return max(-MOST, min(argument, MOST)) if argument == argument else argument
    return argument
