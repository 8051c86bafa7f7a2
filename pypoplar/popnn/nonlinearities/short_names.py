"""Non-linearities by their names: `relu` and `reluInPlace` are `nonLinearity` and `nonLinearityInPlace` of RELU."""

from __future__ import annotations

from typing import Protocol, overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.nonlinearities.nonlinearity_calls import non_linearity, non_linearity_in_place
from pypoplar.popnn.nonlinearities.nonlinearity_type import NonLinearityType
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence

PLAIN = """
Parameters
----------
t:
    FLOAT or HALF of any shape; of a softmax with a last dimension that has elements.
nonLinearityScaling:
    Whether the scaling is asked for; without it the result is the tensor alone.

Returns
-------
Tensor | tuple[Tensor, float | None]
    A tensor shaped and mapped like `t`; with `nonLinearityScaling` also the scaling, see `nonLinearity`.

Raises
------
PoplibsError
    For another type, and for a softmax of no rows.
InvalidTileMapping
    If an element of `t` has no tile.
"""
IN_PLACE = """
Parameters
----------
t:
    What is written: FLOAT or HALF of any shape; of a softmax with a last dimension that has elements.
nonLinearityScaling:
    Whether the scaling is asked for.

Returns
-------
float | None
    With `nonLinearityScaling` True what elements are multiplied by, else None.

Raises
------
PoplibsError
    For another type, a softmax of no rows, and if `t` holds an element twice or a constant.
InvalidTileMapping
    If an element of `t` has no tile.
"""


class NamedNonLinearity(Protocol):
    """A non-linearity with a new tensor as result, with `nonLinearityScaling` followed by its scaling."""

    @overload
    def __call__(self, graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor: ...
    @overload
    def __call__(
        self, graph: Graph, t: Tensor, nonLinearityScaling: bool, prog: Sequence, debugContext: str | None = None
    ) -> tuple[Tensor, float | None]: ...


class NamedNonLinearityInPlace(Protocol):
    """A non-linearity that replaces a tensor, and with `nonLinearityScaling` gives its scaling."""

    @overload
    def __call__(self, graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> None: ...
    @overload
    def __call__(
        self, graph: Graph, t: Tensor, nonLinearityScaling: bool, prog: Sequence, debugContext: str | None = None
    ) -> float | None: ...


def named(name: str, kind: NonLinearityType) -> NamedNonLinearity:
    """A short name of `nonLinearity`."""

    @overload
    def plain(graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor: ...
    @overload
    def plain(
        graph: Graph, t: Tensor, nonLinearityScaling: bool, prog: Sequence, debugContext: str | None = None
    ) -> tuple[Tensor, float | None]: ...
    @overloaded(f"popnn.{name}")
    def plain(
        graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None, nonLinearityScaling: bool | None = None
    ) -> Tensor | tuple[Tensor, float | None]:
        result = non_linearity(f"popnn.{name}", graph, kind, t, prog, debugContext)
        return result if nonLinearityScaling is None else (result, kind.scaling if nonLinearityScaling else None)

    plain.__name__ = plain.__qualname__ = name
    plain.__doc__ = f"`nonLinearity` of {kind.value}: a new tensor; `prog` is extended.\n{PLAIN}"
    return plain


def named_in_place(name: str, kind: NonLinearityType) -> NamedNonLinearityInPlace:
    """A short name of `nonLinearityInPlace`."""
    call = f"{name}InPlace"

    @overload
    def in_place(graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None) -> None: ...
    @overload
    def in_place(
        graph: Graph, t: Tensor, nonLinearityScaling: bool, prog: Sequence, debugContext: str | None = None
    ) -> float | None: ...
    @overloaded(f"popnn.{call}")
    def in_place(
        graph: Graph, t: Tensor, prog: Sequence, debugContext: str | None = None, nonLinearityScaling: bool | None = None
    ) -> float | None:
        non_linearity_in_place(f"popnn.{call}", graph, kind, t, prog, None, debugContext)
        return kind.scaling if nonLinearityScaling else None

    in_place.__name__ = in_place.__qualname__ = call
    in_place.__doc__ = f"`nonLinearityInPlace` of {kind.value}: of `t` itself; `prog` is extended.\n{IN_PLACE}"
    return in_place


sigmoid, sigmoidInPlace = named("sigmoid", NonLinearityType.SIGMOID), named_in_place("sigmoid", NonLinearityType.SIGMOID)
relu, reluInPlace = named("relu", NonLinearityType.RELU), named_in_place("relu", NonLinearityType.RELU)
tanh, tanhInPlace = named("tanh", NonLinearityType.TANH), named_in_place("tanh", NonLinearityType.TANH)
gelu, geluInPlace = named("gelu", NonLinearityType.GELU), named_in_place("gelu", NonLinearityType.GELU)
geluErf, geluErfInPlace = named("geluErf", NonLinearityType.GELU_ERF), named_in_place("geluErf", NonLinearityType.GELU_ERF)
swish, swishInPlace = named("swish", NonLinearityType.SWISH), named_in_place("swish", NonLinearityType.SWISH)
softmax, softmaxInPlace = named("softmax", NonLinearityType.SOFTMAX), named_in_place("softmax", NonLinearityType.SOFTMAX)
softmaxStable = named("softmaxStable", NonLinearityType.SOFTMAX_STABLE)
softmaxStableInPlace = named_in_place("softmaxStable", NonLinearityType.SOFTMAX_STABLE)
scaledSoftmaxStable = named("scaledSoftmaxStable", NonLinearityType.SOFTMAX_SCALED)
scaledSoftmaxStableInPlace = named_in_place("scaledSoftmaxStable", NonLinearityType.SOFTMAX_SCALED)
