"""`poolInputGradient`: the gradient of pooling by what was pooled."""

from __future__ import annotations

from math import prod
from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.pooling.pool_arguments import (
    Options,
    PoolOptions,
    check_places,
    check_pooling,
    mean_scales,
    pool_axes,
)
from pypoplar.popnn.pooling.pool_layout import plan_channels
from pypoplar.popnn.pooling.pool_params import PoolingType, PoolParams
from pypoplar.popnn.pooling.pool_vertices import PoolVertices, grouped, ungrouped
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.elements.fill import zero
from pypoplar.poputil.arguments import whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.placement.kept_layouts import channels_together
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.types import FLOAT, HALF

CALL = "popnn.pooling.poolInputGradient"


@overload
def poolInputGradient(
    graph: Graph, params: PoolParams, in_: Tensor, pooled: Tensor, pooledGradient: Tensor, useScaledGradient: bool,
    prog: Sequence, debugContext: str | None = None, options: Options = None,
) -> Tensor: ...  # fmt: skip
@overload
def poolInputGradient(
    graph: Graph, params: PoolParams, fwdChansPerGroup: int, pooledGradient: Tensor, prog: Sequence,
    debugContext: str | None = None, options: Options = None,
) -> Tensor: ...  # fmt: skip
@overloaded(CALL)
def poolInputGradient(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    params: PoolParams,
    pooledGradient: Tensor,
    prog: Sequence,
    in_: Tensor | None = None,
    pooled: Tensor | None = None,
    useScaledGradient: bool = False,
    fwdChansPerGroup: int | None = None,
    debugContext: str | None = None,
    options: Options = None,
) -> Tensor:
    """The gradient by what was pooled, from that by the windows; `prog` is extended.

    For MAX the gradient of a window goes to all places that hold its largest element; means and sums do not need what was
    pooled.

    Parameters
    ----------
    params:
        The parameters of `pool`.
    pooledGradient:
        The gradient by the windows, [samples, channels, windows...].
    in_:
        What was pooled, for MAX.
    pooled:
        What `pool` gave, for MAX.
    useScaledGradient:
        Whether such places get equal parts of the gradient of MAX, else all of it each.
    fwdChansPerGroup:
        How many channels of a place lie side by side in the result, in the form for means and sums.
    options:
        As for `pool`.

    Returns
    -------
    Tensor
        A new tensor [samples, channels, field...].

    Raises
    ------
    PoplibsError
        For other shapes and types, MAX without what was pooled, and a `fwdChansPerGroup` that does not divide the channels.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    check_pooling(CALL, graph, params, prog, debugContext)
    windows = params.getOutputFieldShape()
    check_places(CALL, graph, "pooledGradient", pooledGradient, windows, params)
    largest = params.poolingType is PoolingType.MAX
    if in_ is not None and pooled is not None:
        check_places(CALL, graph, "in", in_, list(params.inputFieldShape), params)
        check_places(CALL, graph, "pooled", pooled, windows, params)
    else:
        _check_group(params, fwdChansPerGroup)
    chosen = PoolOptions.read(CALL, options)
    debug = below(debugContext, f"{params.poolingType.value.lower()}Pool", "Bwd")
    shape = [params.batchSize, params.numChannels, *params.inputFieldShape]
    if prod(shape) == 0 or pooledGradient.numElements() == 0:
        gradient = graph.addVariable(params.dType, shape, debug)
        mapTensorLinearly(graph, gradient)
        zero(graph, gradient, prog, debug)
        return gradient
    if largest:
        assert in_ is not None
        assert pooled is not None
        gradient = _scaled(graph, params, in_, pooled, pooledGradient, prog, debug, chosen) if useScaledGradient else pooledGradient
        return _largest(graph, params, in_, pooled, gradient, prog, debug, chosen)
    together = channels_together(graph, in_) if in_ is not None else fwdChansPerGroup
    assert together is not None
    if chosen.float_partials and params.dType is HALF:
        wide = cast(graph, pooledGradient, FLOAT, prog, debug)
        return cast(graph, _spread(graph, params, wide, together, prog, debug, chosen), HALF, prog, debug)
    return _spread(graph, params, pooledGradient, together, prog, debug, chosen)


def _check_group(params: PoolParams, fwdChansPerGroup: int | None) -> None:
    if params.poolingType is PoolingType.MAX:
        raise PoplibsError(f"{CALL}: the gradient of MAX needs in and pooled; this form is for AVG and SUM")
    channels = whole_number(CALL, "fwdChansPerGroup", fwdChansPerGroup, 1)
    if params.numChannels % channels:
        raise PoplibsError(f"{CALL}: fwdChansPerGroup divides the {params.numChannels} channels, got {channels}")


def _largest(
    graph: Graph,
    params: PoolParams,
    in_: Tensor,
    pooled: Tensor,
    gradient: Tensor,
    prog: Sequence,
    debug: str,
    options: PoolOptions,
) -> Tensor:
    """To the places that hold the largest element."""
    together = channels_together(graph, in_)
    channels, plan = plan_channels(graph, "max gradient", params.dType, together, lambda size: pool_axes(params, size, back=True))
    vertices = PoolVertices(graph, pool_axes(params, channels, back=True), plan, channels)
    views = {"in": grouped(gradient, channels), "fwdActsOut": grouped(pooled, channels)}
    out, tiles = vertices.new_result(in_, debug, views["fwdActsOut"] if options.follows else None)
    cs = graph.addComputeSet(debug)
    acts = {"fwdActsIn": grouped(in_, channels)}
    vertices.add(cs, templateVertex("popnn::MaxPoolingGrad", params.dType), out, tiles, views, acts)
    prog.add(Execute(cs))
    return ungrouped(out)


def _scaled(
    graph: Graph,
    params: PoolParams,
    in_: Tensor,
    pooled: Tensor,
    gradient: Tensor,
    prog: Sequence,
    debug: str,
    options: PoolOptions,
) -> Tensor:
    """The gradients of the windows, each over the number of its largest elements."""
    together = channels_together(graph, in_)
    channels, plan = plan_channels(graph, "scale", params.dType, together, lambda size: pool_axes(params, size, back=False))
    vertices = PoolVertices(graph, pool_axes(params, channels, back=False), plan, channels)
    debug = below(debug, "Scale")
    view = grouped(in_, channels)
    out, tiles = vertices.new_result(in_, debug, view if options.follows else None)
    cs = graph.addComputeSet(debug)
    like = {"fwdActsOut": grouped(pooled, channels), "grads": grouped(gradient, channels)}
    vertices.add(cs, templateVertex("popnn::MaxPoolingGradientScale", params.dType), out, tiles, {"in": view}, like)
    prog.add(Execute(cs))
    return ungrouped(out)


def _spread(
    graph: Graph, params: PoolParams, gradient: Tensor, together: int, prog: Sequence, debug: str, options: PoolOptions
) -> Tensor:
    """To all places of the windows."""
    channels, plan = plan_channels(graph, "sum", gradient.elementType(), together, lambda size: pool_axes(params, size, back=True))
    axes = pool_axes(params, channels, back=True)
    vertices = PoolVertices(graph, axes, plan, channels)
    view = grouped(gradient, channels)
    out, tiles = vertices.new_result(gradient, debug, view if options.follows else None)
    cs = graph.addComputeSet(debug)
    vertex = templateVertex("popnn::SumPoolingGrad", gradient.elementType())
    vertices.add(cs, vertex, out, tiles, {"in": view}, scales=mean_scales(params, axes))
    prog.add(Execute(cs))
    return ungrouped(out)
