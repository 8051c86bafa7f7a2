"""What calls of non-linearities take."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.poputil.arguments import check_codelet, check_compute_set, check_debug, check_operands
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.types import FLOAT, HALF

CODELET = "popnn::SoftMax<float>"  # one of those that popnn.addCodelets makes known


def check_type(call: str, nonLinearityType: object) -> None:
    """`PoplarTypeError` for what is no kind of non-linearity."""
    if not isinstance(nonLinearityType, NonLinearityType):
        raise PoplarTypeError(
            f"{call}: expected a popnn.NonLinearityType such as popnn.NonLinearityType.RELU, got {nonLinearityType!r}"
        )


def check_elements(call: str, graph: Graph, name: str, t: Tensor, debugContext: object) -> None:
    """Whether `t` is a tensor of the graph, with tiles, of floats."""
    check_operands(call, graph, **{name: t})
    check_debug(call, debugContext)
    if t.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: non-linearities take FLOAT or HALF, got {t!r}")
    check_codelet(call, graph, CODELET)


def check_rows(call: str, t: Tensor) -> None:
    """Whether `t` has a last dimension with elements."""
    if t.rank() == 0 or t.dim(-1) == 0:
        raise PoplibsError(f"{call}: a softmax goes over the last dimension, which {t!r} has not or which is empty")


def check_set(call: str, graph: Graph, nonLinearityType: NonLinearityType, cs: ComputeSet) -> None:
    """Whether a non-linearity fits into one compute set of the graph."""
    check_compute_set(call, graph, cs)
    if nonLinearityType.is_softmax:
        raise PoplibsError(f"{call}: {nonLinearityType.value} takes several compute sets; give it prog, a Sequence")


def as_rows(t: Tensor) -> Tensor:
    """The tensor as a matrix of its rows in the last dimension."""
    return t.reshape([t.numElements() // t.dim(-1), t.dim(-1)])
