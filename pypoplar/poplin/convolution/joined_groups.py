"""Plans of convolutions whose groups are joined: several have the channels of one, with zeros between their weights."""

from __future__ import annotations

from math import prod

from attrs import evolve, frozen

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.convolution.conv_cycles import matrix_unit
from pypoplar.poplin.convolution.conv_layout import map_convolution_weights
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.conv_request import ConvRequest
from pypoplar.poplin.convolution.conv_shape import ConvTypes
from pypoplar.poplin.convolution.layout.memory_order import in_order
from pypoplar.poplin.convolution.layout.plan_memory import weights_memory
from pypoplar.poplin.convolution.plan_costs import spreading_cycles
from pypoplar.poputil.cycles import ceiling


@frozen
class JoinedPlan:
    """`factor` groups are one of the inner plan, which multiplies each input with weights of all of them, most of which are 0."""

    result: tuple[int, ...]
    factor: int
    inner: ConvolutionPlan
    spreading: int  # cycles in which weights are put between zeros

    @property
    def types(self) -> ConvTypes:
        return self.inner.types

    @property
    def cycles(self) -> int:
        return self.inner.cycles + self.spreading

    @property
    def bytes(self) -> int:
        """Memory of the fullest tile."""
        return self.inner.bytes

    @property
    def limit(self) -> int:
        return self.inner.limit

    @property
    def tiles(self) -> int:
        """Tiles at work."""
        return self.inner.tiles

    def describe(self) -> str:
        return f"groups joined: {self.factor}; weights are put between zeros in {self.spreading} cycles\n{self.inner.describe()}"

    def joined_input(self, input: Tensor) -> Tensor:
        """An input [groups, batch, channels, *field] with channels of several groups."""
        apart = input.reshapePartial(0, 1, [input.dim(0) // self.factor, self.factor])
        return apart.dimRoll(1, 2).flatten(2, 4)

    def joined_output(self, output: Tensor) -> Tensor:
        """The same of a result."""
        return self.joined_input(output)

    def apart(self, inner: Tensor) -> Tensor:
        """A result of the inner plan with groups of their own."""
        channels = inner.dim(2) // self.factor
        return inner.reshapePartial(2, 3, [self.factor, channels]).dimRoll(2, 1).flatten(0, 2)

    def spread_weights(self, graph: Graph, weights: Tensor, name: str) -> tuple[Tensor, Tensor]:
        """A new tensor for the weights of the inner plan, which is 0, and the part of it that is like weights as they are given."""
        groups, outputs, inputs, *kernel = weights.shape()
        shape = [groups // self.factor, self.factor * outputs, self.factor * inputs, *kernel]
        spread = in_order(graph, weights.elementType(), shape, weights_memory(self.inner, shape), name)
        map_convolution_weights(graph, self.inner, spread)
        blocks = spread.reshapePartial(1, 3, [self.factor, outputs, self.factor, inputs])
        own = [blocks.slice(part, part + 1, 1).slice(part, part + 1, 3).squeeze([3]) for part in range(self.factor)]
        return spread, concat(own, 1).flatten(0, 2)

    def map_weights(self, graph: Graph, weights: Tensor) -> None:
        """Map weights [groups, output channels, channels, *kernel] to where they are put between zeros."""
        scratch = Graph(graph.getTarget())
        _, own = self.spread_weights(scratch, scratch.addVariable(weights.elementType(), weights.shape()), "")
        graph.setTileMapping(weights, scratch.getTileMapping(own))

    def input_order(self) -> list[int]:
        """The dimensions in which an input lies best in memory, if the groups are seen as [groups that are joined, factor]."""
        return _apart(self.inner.input_order())

    def weights_order(self) -> list[int]:
        """The same of weights."""
        return self.inner.weights_order()

    def output_order(self) -> list[int]:
        """The same of a result."""
        return _apart(self.inner.output_order())


def _apart(order: list[int]) -> list[int]:
    """The order of [groups, batch, channels, *field] with channels of several groups as one of [groups, factor, batch, ...]."""
    return [each for place in order for each in ([1, 3] if place == 2 else [place + (place > 0)])]


def joined_groups(request: ConvRequest) -> list[tuple[int, ConvRequest]]:
    """The convolution with groups joined, and how many: those that fill the matrix unit, or that are wanted."""
    groups, batch, inputs, outputs = request.sizes
    unit = matrix_unit(request.target, request.types.operands)
    wanted = request.constraints.factors
    several = []
    for factor in range(2, groups + 1):
        fills = factor * inputs <= unit.pass_depth or factor * outputs <= unit.pass_columns
        if groups % factor == 0 and (factor in wanted if wanted is not None else fills):
            several.append((factor, evolve(request, sizes=(groups // factor, batch, factor * inputs, factor * outputs))))
    return several if wanted is not None else several[-2:]


def joined_plan(request: ConvRequest, factor: int, inner: ConvolutionPlan) -> JoinedPlan:
    """The plan of groups that are joined in the inner one."""
    groups, _, inputs, outputs = request.sizes
    rows = groups * inputs * prod(axis.kernel for axis in request.axes)
    tile_rows = int(ceiling(rows, inner.tiles))
    return JoinedPlan(
        request.result, factor, inner, spreading_cycles(request.target, tile_rows, outputs * request.types.operands.size)
    )
