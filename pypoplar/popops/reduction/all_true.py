"""Whether all elements of a tensor are true."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.reduction.reduce_call import reduce
from pypoplar.popops.reduction.reduce_params import Operation
from pypoplar.poputil.arguments import check_call, check_operands
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import BOOL


@public
def allTrue(graph: Graph, A: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """Whether all elements of `A` are true; `prog` is extended.

    Parameters
    ----------
    A:
        BOOL of any shape.

    Returns
    -------
    Tensor
        A new BOOL of shape [], true for no elements.

    Raises
    ------
    PoplibsError
        For another type.
    InvalidTileMapping
        If an element of `A` has no tile.
    """
    check_call("popops.allTrue", graph, prog, debugContext)
    check_operands("popops.allTrue", graph, A)
    if A.elementType() is not BOOL:
        raise PoplibsError(f"popops.allTrue takes BOOL, got {A!r}")
    return reduce(graph, A.flatten(), [0], Operation.LOGICAL_AND, prog, below(debugContext, "allTrue"))
