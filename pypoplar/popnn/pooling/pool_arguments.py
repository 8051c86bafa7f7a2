"""What calls of pooling take."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from attrs import frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.pooling.pool_axis import PoolAxis
from pypoplar.popnn.pooling.pool_params import PoolingType, PoolParams, check_params
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands
from pypoplar.poputil.call_options import read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.largest_tensor import check_fits
from pypoplar.program import Sequence
from pypoplar.types import ElementType

OPTIONS = {"poolUseIntrospectiveMapping": bool, "optimizeForSpeed": bool, "useFloatPartialsWhereBeneficial": bool}
Options = Mapping[str, object] | None


@frozen
class PoolOptions:
    """Whether boxes follow what is pooled, and whether sums of HALFs are taken in float."""

    follows: bool
    float_partials: bool

    @staticmethod
    def read(call: str, options: Options) -> PoolOptions:
        chosen = read_options(call, options, OPTIONS)
        follows = bool(chosen.get("poolUseIntrospectiveMapping", True))
        return PoolOptions(follows, bool(chosen.get("useFloatPartialsWhereBeneficial", False)))


def check_pooling(call: str, graph: Graph, params: PoolParams, prog: Sequence, debugContext: str | None) -> None:
    """Whether a call has its arguments, and the graph the device code."""
    check_call(call, graph, prog, debugContext)
    check_params(call, params)
    for what, shape in (("input", params.inputFieldShape), ("output", params.getOutputFieldShape())):
        check_fits(f"{call}: the {what}", graph.getTarget(), params.dType, [params.batchSize, params.numChannels, *shape])
    check_codelet(call, graph, "popnn::MaxPooling<float>")


def check_places(call: str, graph: Graph, name: str, tensor: Tensor, shape: list[int], params: PoolParams) -> None:
    """Whether a tensor has a shape, [samples, channels, field], and the type of the parameters."""
    check_operands(call, graph, **{name: tensor})
    whole = [params.batchSize, params.numChannels, *shape]
    if tensor.shape() != whole:
        raise PoplibsError(f"{call}: {name} is [samples, channels, field...] = {whole} by the parameters, got {tensor!r}")
    check_dtype(call, name, tensor.elementType(), tensor, params)


def check_dtype(call: str, name: str, type: ElementType, tensor: Tensor, params: PoolParams) -> None:
    """Whether a tensor has the type of the parameters."""
    if type is not params.dType:
        raise PoplibsError(f"{call}: {name} is {params.dType!r} by the parameters, got {tensor!r}")


def pool_axes(params: PoolParams, channels: int, back: bool) -> list[PoolAxis]:
    """The dimensions [samples, groups of channels, field...]; `back` are those of a gradient."""
    windows = params.getOutputFieldShape()
    outer = [params.batchSize, params.numChannels // channels]
    axes = [PoolAxis(size, size, back=back) for size in outer]
    for dimension, size in enumerate(params.inputFieldShape):
        kernel, stride = params.kernelShape[dimension], params.stride[dimension]
        axes.append(PoolAxis(size, windows[dimension], kernel, stride, params.padding(dimension)[0], back))
    return axes


def mean_scales(params: PoolParams, axes: list[PoolAxis]) -> list[list[float]]:
    """What sums are multiplied by, the product of one for each dimension: 1 over the places of the window that are there."""
    if params.poolingType is not PoolingType.AVG:
        return [[1.0] * max(axis.windows, axis.places) for axis in axes]
    return [[1 / max(count, 1) for count in axis.used()] for axis in axes]


def pools_whole_fields(params: PoolParams) -> bool:
    """Whether there is one window, which is the field: then pooling is a reduction."""
    padded = any(params.inputTruncationOrPaddingLower) or any(params.inputTruncationOrPaddingUpper)
    return params.kernelShape == params.inputFieldShape and not padded and prod(params.kernelShape) > 0
