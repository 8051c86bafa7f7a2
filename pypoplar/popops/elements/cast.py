"""Casts: the elements of a tensor as another type."""

from __future__ import annotations

from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.map_call import MapCall
from pypoplar.popops.expr import Cast, PlaceHolder
from pypoplar.poputil.arguments import check_call, check_graph, check_tensor
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@overload
def cast(graph: Graph, src: Tensor, dst: ElementType, prog: Sequence, debugContext: str | None = None) -> Tensor: ...
@overload
def cast(graph: Graph, src: Tensor, dst: Tensor, prog: None = None, debugContext: str | None = None) -> Sequence: ...
@public
def cast(
    graph: Graph, src: Tensor, dst: ElementType | Tensor, prog: Sequence | None = None, debugContext: str | None = None
) -> Tensor | Sequence:
    """The elements of `src` as another type: as a new tensor of type `dst`, where `prog` is extended; or into the tensor `dst`.

    The second form takes no `prog` and returns the program that does it. Floats become integers by cutting towards 0, held at the
    ends of the range; integers wrap; what is not 0 becomes true. `PoplibsError` where `dst` has another shape.
    """
    check_graph("popops.cast", graph)
    check_tensor("popops.cast", src)
    if isinstance(dst, Tensor):
        program = Sequence() if prog is None else prog
        _call("cast", graph, src, dst.elementType(), program, debugContext).into(dst)
        return program
    return _call("cast", graph, src, dst, prog, debugContext).plain()[0]  # type: ignore[arg-type]  # a wrong one is refused there


@public
def castWithOutput(graph: Graph, src: Tensor, dst: Tensor, prog: Sequence, debugContext: str | None = None) -> None:
    """The elements of `src` into `dst`, which has its shape, as the type of `dst`; `prog` is extended."""
    for tensor in (src, dst):
        check_tensor("popops.castWithOutput", tensor)
    _call("castWithOutput", graph, src, dst.elementType(), prog, debugContext).into(dst)


def _call(name: str, graph: Graph, src: Tensor, type: ElementType, prog: Sequence, debugContext: str | None) -> MapCall:
    call = f"popops.{name}"
    check_call(call, graph, prog, debugContext)
    return MapCall.of(call, graph, [Cast(PlaceHolder(1), type)], [src], prog, below(debugContext, "cast"))
