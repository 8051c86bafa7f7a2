"""The logarithm of softmax."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.nonlinearities.nonlinearity_arguments import as_rows, check_elements, check_rows
from pypoplar.popnn.nonlinearities.softmax_rows import Softmax
from pypoplar.popops.elements.element_output import output_like
from pypoplar.poputil.arguments import check_call, check_writeable
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public


@public
def logSoftmax(graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """The logarithm of the softmax over the last dimension, as a new tensor; `prog` is extended.

    It is ``x - max - log(sum(exp(x - max)))`` of each row, in float, rounded once.

    Parameters
    ----------
    t:
        FLOAT or HALF, with a last dimension that has elements.

    Returns
    -------
    Tensor
        Of the shape and type of `t`.

    Raises
    ------
    PoplibsError
        For another type, and for no rows.
    """
    call = "popnn.logSoftmax"
    check_call(call, graph, prog, debugContext)
    check_elements(call, graph, "t", t, debugContext)
    check_rows(call, t)
    debug = below(debugContext, "LogSoftmax")
    result = output_like(graph, [t], t.elementType(), debug)
    Softmax(graph, debug, logarithm=True).add(prog, as_rows(t), as_rows(result))
    return result


@public
def logSoftmaxInPlace(graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> None:
    """The logarithm of the softmax over the last dimension, in the place of a tensor; `prog` is extended.

    Parameters
    ----------
    t:
        What is written: FLOAT or HALF, with a last dimension that has elements.

    Raises
    ------
    PoplibsError
        As for `logSoftmax`; and if `t` holds an element twice or a constant.
    """
    call = "popnn.logSoftmaxInPlace"
    check_call(call, graph, prog, debugContext)
    check_elements(call, graph, "t", t, debugContext)
    check_rows(call, t)
    check_writeable(call, t)
    Softmax(graph, below(debugContext, "LogSoftmax"), logarithm=True).add(prog, as_rows(t), as_rows(t))
