"""Copies of tensors."""

from __future__ import annotations

from pypoplar.graph.cloning import TensorCloneMethod
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Copy, Sequence


def duplicate(
    graph: Graph,
    tensor: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
    method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES,
) -> Tensor:
    """A new tensor shaped and mapped like `tensor`; `prog` is extended by the copy of its values."""
    copy = graph.clone(tensor, debugContext or "", method)
    prog.add(Copy(tensor, copy))
    return copy


def cloneN(
    graph: Graph,
    tensor: Tensor,
    N: int,
    debugContext: str | None = None,
    method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES,
) -> Tensor:
    """N new tensors shaped and mapped like `tensor`, stacked in a new first dimension: the result is ``[N, *shape]``."""
    if N < 1:
        raise PoplibsError(f"cloneN makes at least one clone of {tensor!r}, got N = {N}")
    return graph.cloneN(tensor, N, debugContext or "", method)
