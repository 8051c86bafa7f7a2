"""`pool`: the largest element, the mean or the sum of windows of a field."""

from __future__ import annotations

from math import prod

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.pooling.pool_arguments import (
    Options,
    PoolOptions,
    check_places,
    check_pooling,
    mean_scales,
    pool_axes,
    pools_whole_fields,
)
from pypoplar.popnn.pooling.pool_cycles import Kind
from pypoplar.popnn.pooling.pool_layout import plan_channels
from pypoplar.popnn.pooling.pool_params import PoolingType, PoolParams
from pypoplar.popnn.pooling.pool_vertices import PoolVertices, grouped, ungrouped
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.reduction.reduce_call import reduce
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.kept_layouts import channels_together
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF


@public
def pool(
    graph: Graph, params: PoolParams, in_: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None
) -> Tensor:
    """The windows of a tensor pooled, as a new tensor; `prog` is extended.

    Windows that have nothing but padding give 0. The sums of HALFs are HALFs, rounded for each place, unless an option says
    otherwise.

    Parameters
    ----------
    params:
        What is computed.
    in_:
        [samples, channels, field...], by the parameters.
    options:
        Known are

        - ``useFloatPartialsWhereBeneficial`` (false): sums of HALFs are floats that are rounded once.
        - ``poolUseIntrospectiveMapping`` (true): windows are computed where the tensor lies, if the plan's boxes lie on
          different tiles.
        - ``optimizeForSpeed``: it changes nothing.

    Returns
    -------
    Tensor
        [samples, channels, windows...] of the type of `in_`.

    Raises
    ------
    PoplibsError
        For another shape or type.
    InvalidTileMapping
        If an element of `in_` has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import FLOAT, popnn, program, testing
    >>> params = popnn.pooling.PoolParams(popnn.PoolingType.MAX, [4], [2], [2], [0], [0], 1, 1, FLOAT)
    >>> def compute(graph, x):
    ...     popnn.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"y": popnn.pooling.pool(graph, params, x, prog)}
    >>> testing.run(compute, {"x": np.float32([[[1, 5, 2, 3]]])})["y"].tolist()
    [[[5.0, 3.0]]]
    """
    call = "popnn.pooling.pool"
    check_pooling(call, graph, params, prog, debugContext)
    check_places(call, graph, "in", in_, list(params.inputFieldShape), params)
    chosen = PoolOptions.read(call, options)
    debug = below(debugContext, f"{params.poolingType.value.lower()}Pool", "Fwd")
    shape = [params.batchSize, params.numChannels, *params.getOutputFieldShape()]
    if prod(shape) == 0:
        return graph.addVariable(params.dType, shape, debug)
    if pools_whole_fields(params):
        return _reduced(graph, params, in_, prog, debug).reshape(shape)
    if chosen.float_partials and params.dType is HALF and params.poolingType is not PoolingType.MAX:
        wide = cast(graph, in_, FLOAT, prog, debug)
        return cast(graph, windows_pooled(graph, params, wide, prog, debug, chosen), HALF, prog, debug)
    return windows_pooled(graph, params, in_, prog, debug, chosen)


def windows_pooled(graph: Graph, params: PoolParams, in_: Tensor, prog: Sequence, debug: str, options: PoolOptions) -> Tensor:
    """`pool` by vertices."""
    largest = params.poolingType is PoolingType.MAX
    kind: Kind = "max" if largest else "sum"
    together = channels_together(graph, in_)
    channels, plan = plan_channels(graph, kind, in_.elementType(), together, lambda size: pool_axes(params, size, back=False))
    axes = pool_axes(params, channels, back=False)
    vertices = PoolVertices(graph, axes, plan, channels)
    view = grouped(in_, channels)
    out, tiles = vertices.new_result(in_, debug, view if options.follows and view.numElements() else None)
    cs = graph.addComputeSet(debug)
    vertex = templateVertex("popnn::MaxPooling" if largest else "popnn::SumPooling", in_.elementType())
    vertices.add(cs, vertex, out, tiles, {"in": view}, scales=None if largest else mean_scales(params, axes))
    prog.add(Execute(cs))
    return ungrouped(out)


def _reduced(graph: Graph, params: PoolParams, in_: Tensor, prog: Sequence, debug: str) -> Tensor:
    """One window, which is the field: PopLibs reduces it, too."""
    operation = Operation.MAX if params.poolingType is PoolingType.MAX else Operation.ADD
    scale = None
    if params.poolingType is PoolingType.AVG:
        scale = graph.addConstant(FLOAT, [], 1 / prod(params.kernelShape), below(debug, "scale"))
        graph.setTileMapping(scale, 0)
    dims = list(range(2, in_.rank()))
    return reduce(graph, in_, params.dType, dims, ReduceParams(operation, False, scale), prog, debug)
