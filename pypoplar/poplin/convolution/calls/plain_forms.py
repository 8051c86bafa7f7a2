"""A convolution with any transforms as plain convolutions: of views of its operands, which give parts of its result.

A plain convolution has padding of its input, a stride and a dilated kernel, and nothing else. What is cut off and flipped is a
view. Zeros between inputs can be kept (`FILLED`: one convolution, most of whose products are of zeros), or outputs of the same
phase are a convolution each (`SEPARATE`: no product too many, one convolution after the other), or are output channels of one
convolution whose kernel has all elements that any phase needs (`STACKED`: some products too many).
"""

from __future__ import annotations

from enum import Enum
from itertools import product
from math import prod

from attrs import evolve, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.calls.plain_axis import PlainAxis, filled_axis, number_of_phases, plain_axes, stacked_axis
from pypoplar.poplin.convolution.conv_axis import ConvAxis
from pypoplar.poplin.convolution.conv_params import ConvParams, with_axes
from pypoplar.poplin.convolution.conv_shape import FIELD
from pypoplar.poputil.exceptions import PoplibsError

MOST_PHASES = 1 << 11  # of outputs, each a convolution of its own


class OutputPhases(Enum):
    """What is done with the outputs of different phases, where there are zeros between inputs."""

    FILLED = "zeros between inputs kept"
    SEPARATE = "one convolution a phase"
    STACKED = "phases as output channels"


@frozen
class PlainConvolution:
    """A convolution of parts of the field and of the kernel; `params` is `None` where its outputs are 0."""

    axes: tuple[PlainAxis, ...]
    params: ConvParams | None

    def input(self, seen: Tensor) -> Tensor:
        """Its part of [groups, batch, channels, *field] as it is seen."""
        for dim, axis in enumerate(self.axes):
            seen = seen.slice(axis.begin, axis.end, FIELD + dim)
        return seen

    def weights(self, seen: Tensor, first: int = FIELD) -> Tensor:
        """Its part of [groups, output channels, input channels, *kernel] as it is seen; the kernel may be from `first` on."""
        for dim, axis in enumerate(self.axes, first):
            end = axis.kernel_first + (axis.kernel_count - 1) * axis.kernel_step + 1
            seen = seen.slice(axis.kernel_first, end, dim).subSample(axis.kernel_step, dim)
        return seen


@frozen
class PlainForm:
    """How a convolution is written as plain ones: one for each part of the result; the `params` are canonical."""

    params: ConvParams
    phases: OutputPhases
    parts: tuple[PlainConvolution, ...]
    whole: PlainConvolution | None = None  # of which the parts are output channels

    def convolutions(self) -> list[PlainConvolution]:
        """Those that compute something, in order."""
        computed = [self.whole] if self.whole is not None else list(self.parts)
        return [part for part in computed if part.params is not None]

    def products(self) -> int:
        """Multiplications of all, those with zeros that are kept included."""
        return sum(products(part.params) for part in self.convolutions() if part.params is not None)

    def seen_input(self, graph: Graph, input: Tensor) -> Tensor:
        """An input [groups, batch, channels, *field] cut and flipped, with zeros between inputs where they are kept."""
        for dim, axis in enumerate(self.params.axes()):
            field = axis.input
            input = input.slice(field.truncationLower, field.size - field.truncationUpper, FIELD + dim)
            input = input.reverse(FIELD + dim) if field.flip else input
            if self.phases is OutputPhases.FILLED and field.dilation > 1:
                input = _filled(graph, input, FIELD + dim, field.dilation)
        return input

    def seen_weights(self, weights: Tensor) -> Tensor:
        """Weights [groups, output channels, input channels, *kernel] cut and flipped."""
        for dim, axis in enumerate(self.params.axes()):
            kernel = axis.kernel
            weights = weights.slice(kernel.truncationLower, kernel.size - kernel.truncationUpper, FIELD + dim)
            weights = weights.reverse(FIELD + dim) if kernel.flip else weights
        return weights

    def stacked_weights(self, graph: Graph, seen: Tensor) -> Tensor:
        """The weights of all parts as output channels of the whole, each part's kernel between zeros."""
        assert self.whole is not None
        last = [*range(FIELD, seen.rank())]  # the kernel is put first: rows of channels stay together between its zeros
        seen, of_parts = seen.dimShuffle([*last, *range(FIELD)]), []
        for part in self.parts:
            if part.params is None:
                kernel = [axis.kernel_count for axis in self.whole.axes]
                of_parts.append(_zeros(graph, seen, [*kernel, *seen.shape()[len(last) :]]))
                continue
            weights = part.weights(seen, 0)
            for dim, (axis, whole) in enumerate(zip(part.axes, self.whole.axes, strict=True)):
                before = (axis.begin - axis.lower - whole.begin + whole.lower) // whole.dilation
                behind = whole.kernel_count - before - axis.kernel_count
                weights = _between_zeros(graph, weights, dim, before, behind)
            of_parts.append(weights)
        return concat(of_parts, len(last) + 1).dimShuffle([len(last) + dim for dim in range(FIELD)] + [*range(len(last))])

    def joined(self, results: list[Tensor]) -> Tensor:
        """The result, without its output padding, of the parts' results [groups, batch, channels, *outputs], phase beside phase."""
        steps = [axis.step for axis in self.parts[0].axes]
        counts = [min(step, axis.strided_size) for step, axis in zip(steps, self.params.axes(), strict=True)]
        if len(results) == 1:
            return results[0]
        most = results[0].shape()  # the first phases may have one output more than the others
        joined = concat([_extended(result, most).expand([0]) for result in results], 0)
        fields = range(len(counts))
        apart = joined.reshape([*counts, *most])
        order = [len(counts) + dim for dim in range(FIELD)]
        for dim in fields:
            order += [len(counts) + FIELD + dim, dim]
        sizes = [size * count for size, count in zip(most[FIELD:], counts, strict=True)]
        whole = apart.dimShuffle(order).reshape([*most[:FIELD], *sizes])
        outputs = [sum(result.dim(FIELD + dim) for result in _along(results, counts, dim)) for dim in fields]
        return whole.slice([0] * whole.rank(), [*most[:FIELD], *outputs])


def products(params: ConvParams) -> int:
    """Multiplications of inputs and weights, but for those with padding."""
    channels = params.inputChannelsPerConvGroup * params.outputChannelsPerConvGroup
    return params.batchSize * params.numConvGroups * channels * prod(axis.products() for axis in params.axes())


def plain_forms(params: ConvParams, most: int) -> list[PlainForm]:
    """The ways to write canonical parameters as plain convolutions; one if there are no zeros between inputs.

    Zeros are kept where the input with them has `most` elements at most; `PoplibsError` where there is no other way.
    """
    axes = params.axes()
    phases = prod(number_of_phases(axis) for axis in axes)
    filled = params.batchSize * params.getNumInputChans() * prod(axis.input.transformed_size for axis in axes)
    forms = []
    if phases <= MOST_PHASES:
        forms.append(PlainForm(params, OutputPhases.SEPARATE, _parts(params, axes)))
    elif filled > most:
        dilation = [axis.input.dilation for axis in axes]
        raise PoplibsError(
            f"a convolution whose input has the dilation {dilation} would be {phases:,} convolutions, at most {MOST_PHASES:,} are "
            f"planned; with the zeros its input would have {filled:,} elements, at most {most:,} are"
        )
    if all(axis.input.dilation == 1 for axis in axes):
        return forms
    if filled <= most:
        forms.append(PlainForm(params, OutputPhases.FILLED, _parts(params, [filled_axis(axis) for axis in axes])))
    if 1 < phases <= MOST_PHASES:
        whole = [stacked_axis(plain_axes(axis)) for axis in axes]
        if None not in whole:
            of_axes = tuple(axis for axis in whole if axis is not None)
            stacked = _plain(params, of_axes, params.outputChannelsPerConvGroup * phases)
            forms.append(evolve(forms[0], phases=OutputPhases.STACKED, whole=stacked))
    return forms


def _parts(params: ConvParams, axes: list[ConvAxis]) -> tuple[PlainConvolution, ...]:
    return tuple(
        _plain(params, phases, params.outputChannelsPerConvGroup) for phases in product(*(plain_axes(axis) for axis in axes))
    )


def _plain(params: ConvParams, axes: tuple[PlainAxis, ...], channels: int) -> PlainConvolution:
    if any(axis.empty for axis in axes):
        return PlainConvolution(axes, None)
    plain = with_axes(params, [axis.axis() for axis in axes])
    plain.outputChannelsPerConvGroup = channels
    return PlainConvolution(axes, plain)


def _zeros(graph: Graph, like: Tensor, shape: list[int]) -> Tensor:
    if not prod(shape):
        return like.flatten().slice(0, 0).reshape(shape)
    zero = graph.addConstant(like.elementType(), [1], 0, "zero")
    graph.setTileMapping(zero, 0)
    return zero.broadcast(prod(shape)).reshape(shape)


def _between_zeros(graph: Graph, tensor: Tensor, dimension: int, before: int, behind: int) -> Tensor:
    sizes = tensor.shape()
    zeros = [[*sizes[:dimension], count, *sizes[dimension + 1 :]] for count in (before, behind)]
    return concat([_zeros(graph, tensor, zeros[0]), tensor, _zeros(graph, tensor, zeros[1])], dimension)


def _filled(graph: Graph, tensor: Tensor, dimension: int, dilation: int) -> Tensor:
    """With zeros between neighbours in a dimension."""
    size = tensor.dim(dimension)
    apart = tensor.expand([dimension + 1])
    shape = apart.shape()
    shape[dimension + 1] = dilation - 1
    wide = concat([apart, _zeros(graph, tensor, shape)], dimension + 1).flatten(dimension, dimension + 2)
    return wide.slice(0, (size - 1) * dilation + 1, dimension)


def _along(results: list[Tensor], counts: list[int], dim: int) -> list[Tensor]:
    """The results of a dimension's phases, the others' being the first."""
    return results[:: prod(counts[dim + 1 :])][: counts[dim]]


def _extended(result: Tensor, shape: list[int]) -> Tensor:
    """With some of its elements again behind its field, up to a shape: what stands there is cut off later."""
    for dim in range(FIELD, len(shape)):
        missing = shape[dim] - result.dim(dim)
        if missing:
            result = concat([result, result.slice(0, missing, dim)], dim)
    return result
