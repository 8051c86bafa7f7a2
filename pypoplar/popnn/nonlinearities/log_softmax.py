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
    """The logarithm of the softmax over the last dimension of `t` (FLOAT or HALF), as a new tensor; `prog` is extended.

    ``x - max - log(sum(exp(x - max)))`` of each row, in float, rounded once.
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
    """`logSoftmax` of `t` itself."""
    call = "popnn.logSoftmaxInPlace"
    check_call(call, graph, prog, debugContext)
    check_elements(call, graph, "t", t, debugContext)
    check_rows(call, t)
    check_writeable(call, t)
    Softmax(graph, below(debugContext, "LogSoftmax"), logarithm=True).add(prog, as_rows(t), as_rows(t))
