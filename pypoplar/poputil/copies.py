"""Copies of tensors."""

from __future__ import annotations

from pypoplar.graph.cloning import TensorCloneMethod
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poputil.arguments import check_prog
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public


@public
def duplicate(
    graph: Graph,
    in_: Tensor,
    p: Sequence,
    debugContext: str | None = None,
    method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES,
) -> Tensor:
    """A new tensor shaped and mapped like `in_`; the Sequence `p` is extended by the copy of its values."""
    check_prog("poputil.duplicate", p)
    copy = graph.clone(in_, debugContext or "", method)
    p.add(Copy(in_, copy))
    return copy


def apart(graph: Graph, tensor: Tensor, written: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """`tensor` if it has no element of `written`, else a copy of it: vertices read nothing that is written in their compute set."""
    shared = set(tensor.variable_numbers()) & set(written.variable_numbers())
    if shared and concat(tensor.flatten(), written.flatten()).containsAliases():
        return duplicate(graph, tensor, prog, debugContext)
    return tensor


@public
def cloneN(
    graph: Graph,
    t: Tensor,
    N: int,
    debugContext: str | None = None,
    method: TensorCloneMethod = TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES,
) -> Tensor:
    """N new tensors shaped and mapped like `t`, stacked in a new first dimension: the result is ``[N, *shape]``."""
    if N < 1:
        raise PoplibsError(f"cloneN makes at least one clone of {t!r}, got N = {N}")
    return graph.cloneN(t, N, debugContext or "", method)
