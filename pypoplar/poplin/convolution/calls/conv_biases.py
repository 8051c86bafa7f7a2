"""Biases of convolutions."""

from __future__ import annotations

from typing import overload

from pypoplar import popops
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.calls.conv_call import Options
from pypoplar.poplin.convolution.calls.conv_gradients import check_scale
from pypoplar.poplin.convolution.calls.conv_operands import check_channels
from pypoplar.poplin.convolution.conv_options import ConvolutionOptions
from pypoplar.poputil.arguments import check_call, check_operands, check_own, check_writeable
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF


@public
def addBias(graph: Graph, in_: Tensor, biases: Tensor, prog: Sequence, debugContext: str | None = None) -> None:
    """Add the bias of its channel to each element, in place; `prog` is extended.

    Parameters
    ----------
    in_:
        What is written: FLOAT or HALF [batch, channels, *field].
    biases:
        [channels] of its type.

    Raises
    ------
    PoplibsError
        For other shapes and types, and if `in_` holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    _check("poplin.addBias", graph, "in_", in_, biases, prog, debugContext, in_)
    shape = [in_.dim(1), *[1] * (in_.rank() - 2)]
    popops.addInPlace(graph, in_, biases.reshape(shape), prog, below(debugContext, "addBias"))


@overload
def convolutionBiasUpdate(
    graph: Graph, zDeltas: Tensor, biases: Tensor, scale: Tensor, options: Options, prog: Sequence, debugContext: str | None = None
) -> None: ...
@overload
def convolutionBiasUpdate(
    graph: Graph, zDeltas: Tensor, biases: Tensor, scale: float, options: Options, prog: Sequence, debugContext: str | None = None
) -> None: ...
@overloaded("poplin.convolutionBiasUpdate")
def convolutionBiasUpdate(
    graph: Graph,
    zDeltas: Tensor,
    biases: Tensor,
    scale: Tensor | float,
    options: Options,
    prog: Sequence,
    debugContext: str | None = None,
) -> None:
    """Add to biases a multiple of the sums of gradients over all but the channels; `prog` is extended.

    Parameters
    ----------
    zDeltas:
        The gradient of the result: FLOAT or HALF [batch, channels, *field].
    biases:
        What is written: FLOAT or HALF [channels], whatever `zDeltas` is.
    scale:
        The factor, a number or a tensor of one FLOAT.
    options:
        As for `createWeights`; ``partialsType`` is the type of the sums.

    Raises
    ------
    PoplibsError
        For other shapes and types, for a scale that is NaN, and if `biases` holds an element twice or a constant.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "poplin.convolutionBiasUpdate"
    _check(call, graph, "zDeltas", zDeltas, biases, prog, debugContext, biases)
    read = ConvolutionOptions.read(call, options)
    check_scale(call, graph, scale)
    if isinstance(scale, Tensor) and scale.elementType() is not FLOAT:
        raise PoplibsError(f"{call}: scale is a number or a tensor of one FLOAT, got {scale!r}")
    name = below(debugContext, "biasUpdate")
    if not isinstance(scale, Tensor):
        scale = graph.addConstant(FLOAT, [], scale, below(name, "scale"))
        graph.setTileMapping(scale, 0)
    dims = [dim for dim in range(zDeltas.rank()) if dim != 1]
    sums = popops.ReduceParams(popops.Operation.ADD, True, scale.reshape([]))
    partials = read.partials_type.spelling
    types = {"accumType.interTile": partials, "accumType.inVertex": partials}
    popops.reduceWithOutput(graph, zDeltas, biases, dims, sums, prog, name, types)


def _check(
    call: str, graph: Graph, name: str, tensor: Tensor, biases: Tensor, prog: Sequence, debugContext: str | None, written: Tensor
) -> None:
    """`PoplibsError` unless a tensor has channels, there is a bias of its type for each, and `written` can be written."""
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, **{name: tensor}, biases=biases)
    check_channels(call, name, tensor)
    types = (tensor.elementType(),) if written is tensor else (FLOAT, HALF)
    if biases.shape() != [tensor.dim(1)] or biases.elementType() not in types:
        words = " or ".join(repr(type) for type in types)
        raise PoplibsError(f"{call}: biases are [channels] = [{tensor.dim(1)}] of {words}, as {name} has them, got {biases!r}")
    check_writeable(call, written)
    check_operands(call, graph, **{name: tensor}, biases=biases)
