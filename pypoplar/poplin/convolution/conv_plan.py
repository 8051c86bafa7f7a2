"""Plans of convolutions: how one is cut over the tiles, and what that takes, chosen by cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isqrt, prod

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poplin.convolution.conv_cycles import matrix_unit
from pypoplar.poplin.convolution.conv_partition import CHANNELS_LAST, DIMENSIONS, OUTPUTS_LAST, ConvPartition
from pypoplar.poplin.convolution.conv_request import ConvRequest
from pypoplar.poplin.convolution.conv_shape import AXES, ConvForm, ConvShape, ConvTypes
from pypoplar.poplin.convolution.plan_costs import Candidates, PlanCost, costs, joined_costs, zeroing_cycles
from pypoplar.poplin.convolution.sliding_axis import TrimmedAxis, trimmed
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import HALF

SUMMED = (8, 5, 6, 7)  # dimensions of a partition whose parts give partial sums
MOST_CANDIDATES = 300_000
LANES = 4  # channels that the vertical multiply-accumulate and the outer product take together
KINDS = {"VMAC": "a kernel for each channel", "OUTER_PRODUCT": "products of one channel"}  # of vertices without the matrix unit
ALIKE = 0.02  # of the cycles: estimates are not better


@frozen
class ConvolutionPlan:
    """How a convolution is computed: the form of its axes, its partition, and the estimated cost of the busiest tile.

    `result` is the shape of what it gives, [groups, batch, output channels, *field]; `limit` the bytes of a tile that it may take
    at most. One without any products is `empty`.
    """

    result: tuple[int, ...]
    types: ConvTypes
    form: ConvForm
    shape: ConvShape
    partition: ConvPartition
    cost: PlanCost
    limit: int = 0
    empty: bool = False

    @property
    def cycles(self) -> int:
        return int(self.cost.cycles)

    @property
    def bytes(self) -> int:
        """Memory of the fullest tile."""
        return int(self.cost.bytes)

    @property
    def is_product(self) -> bool:
        """Whether the vertices multiply matrices."""
        return self.shape.is_product and not self.form.lanes and not self.form.outer

    @property
    def tiles(self) -> int:
        """Tiles at work."""
        return self.partition.tiles

    def input_order(self) -> list[int]:
        """The dimensions of an input [groups, batch, channels, *field] in the order in which they lie best in memory."""
        return [0, 1, *range(3, len(self.result)), 2] if self.empty else self.form.input_order()

    def weights_order(self) -> list[int]:
        """The same of weights [groups, output channels, channels, *kernel]."""
        return [0, *range(3, len(self.result)), 2, 1] if self.empty else self.form.weights_order()

    def output_order(self) -> list[int]:
        """The same of a result [groups, batch, output channels, *field]: the order in which it is computed."""
        return [0, 1, *range(3, len(self.result)), 2] if self.empty else self.form.output_order()

    def describe(self) -> str:
        """The plan in words, a line for each thing that was chosen."""
        if self.empty:
            return "no products: the result is zeros\n"
        folded = [str(place) for place, fold in enumerate(self.form.folded) if fold]
        parts = ", ".join(f"{name} {count}" for name, count in zip(DIMENSIONS, self.partition.parts, strict=True) if count > 1)
        cost, over = self.cost, f", and no plan keeps to the {self.limit} of availableMemoryProportion"
        kind = "1x1 products" if self.is_product else KINDS.get(self.form.method, "n x 1 kernels")
        lines = [
            f"vertices: {kind} of {self.types.operands.spelling}s",
            f"folded dimensions: {', '.join(folded) or 'none'}",
            f"parts: {parts or 'one'}; {self.tiles} tiles",
            f"cycles: {self.cycles} (exchange {cost.exchange}, copies {cost.copies}, compute {cost.compute}, sums {cost.reduce})",
            f"bytes of the fullest tile: {self.bytes}{'' if self.bytes <= self.limit else over}",
        ]
        return "".join(f"{line}\n" for line in lines)


def plans_by_form(request: ConvRequest) -> list[ConvolutionPlan]:
    """The best plan of each form of the axes that is worth a look, or that the constraints say."""
    wanted, (groups, batch, inputs, outputs) = request.constraints, request.sizes
    trims = tuple(trim for trim in map(trimmed, request.axes) if trim is not None)
    forms = [ConvForm(trims, folded, inputs) for folded in _foldings(request, trims)]
    forms = [evolve(form, samples=request.samples and form.is_flat) for form in forms]
    if inputs == outputs == 1 and groups > 1 and not wanted.folded:
        lanes = ConvForm(trims, (False,) * len(trims), 1, lanes=True)
        # a fold of halves that are channels of their own would exchange them one by one
        forms = [lanes] if request.types.operands is HALF and wanted.folded is None else [*forms, lanes]
    shapes = [(form, form.shape(groups, batch, outputs)) for form in forms]
    forms += [evolve(form, outer=True) for form, shape in shapes if shape.is_product and shape.in_channels == 1 and not form.lanes]
    forms = [form for form in forms if wanted.allows(form)]
    plans = []
    for form in forms:
        fixed = wanted.fixed(form)
        if fixed is not None and len(form.sliding) <= AXES:
            plan = _plan(request, form, form.shape(groups, batch, outputs), fixed)
            plans += [plan] if plan is not None else []
    return plans


def empty_plan(request: ConvRequest) -> ConvolutionPlan:
    """The plan of a convolution without products."""
    form = ConvForm((), (), 1)
    partition = ConvPartition((1,) * len(DIMENSIONS), 1, 1, CHANNELS_LAST)
    outputs = prod(request.result)
    zeroing = zeroing_cycles(request.target, outputs, request.types.result.size) if outputs else 0
    cost = PlanCost(0, zeroing, 0, 0, 0)
    return ConvolutionPlan(request.result, request.types, form, form.shape(1, 1, 1), partition, cost, empty=True)


def _foldings(request: ConvRequest, axes: tuple[TrimmedAxis, ...]) -> Iterator[tuple[bool, ...]]:
    """Which axes are folded: those wanted; or none, and where channels do not fill the unit, the last kernel, or all kernels."""
    wanted = request.constraints.folded
    if wanted is not None:
        if set(wanted) <= set(range(len(axes))):
            yield tuple(place in wanted for place in range(len(axes)))
        return
    yield tuple(False for _ in axes)
    slides = [trim.axis.kernel > 1 for trim in axes]
    if request.sizes[2] < matrix_unit(request.target, request.types.operands).pass_depth and any(slides):
        yield tuple(slides)
        last = max(place for place, kernel in enumerate(slides) if kernel)
        if sum(slides) > 1:
            yield tuple(place == last for place in range(len(axes)))


def _plan(request: ConvRequest, form: ConvForm, shape: ConvShape, fixed: Mapping[int, int]) -> ConvolutionPlan | None:
    """The best plan of a form with fixed numbers of parts of some dimensions, if there is one."""
    target, types = request.target, request.types
    if form.outer:  # no sums are taken
        types = evolve(types, partials=types.result)
    unit = matrix_unit(target, types.operands)
    grains = (
        min(unit.pass_depth, shape.in_channels),
        min(LANES if form.lanes or form.outer else unit.pass_columns, shape.out_channels),
    )
    parts = _candidates(target, shape, grains, fixed)
    if len(parts) == 0:
        return None
    orders = (CHANNELS_LAST, OUTPUTS_LAST)
    cost = joined_costs([costs(target, form, shape, types, Candidates(parts, grains, order)) for order in orders])
    best = _best(cost, request.limit)
    chosen = parts[best % len(parts)]
    partition = ConvPartition(tuple(int(count) for count in chosen), *grains, orders[best // len(parts)])
    return ConvolutionPlan(request.result, types, form, shape, partition, cost.at(best), request.limit)


def _best(cost: PlanCost, limit: float) -> int:
    """The candidate that takes least memory of those that take about as few cycles as any that fits; if none fits, least memory."""
    fitting = np.flatnonzero(cost.bytes <= limit)
    if len(fitting) == 0:
        return int(np.lexsort((cost.cycles, cost.bytes))[0])
    alike = fitting[cost.cycles[fitting] <= cost.cycles[fitting].min() * (1 + ALIKE)]
    return int(alike[np.lexsort((cost.cycles[alike], cost.bytes[alike]))[0]])


def _candidates(target: Target, shape: ConvShape, grains: tuple[int, int], fixed: Mapping[int, int]) -> Int64s:
    """All numbers of parts worth a look that fit on the tiles, one row each."""
    tiles = target.getNumTiles()
    kernel = [axis.kernel for axis in shape.axes]
    channels = (ceiling(shape.in_channels, grains[0]), ceiling(shape.out_channels, grains[1]))
    sizes = (shape.groups, shape.batch, *shape.outputs, *kernel, *channels)
    rows = np.ones((1, 0), np.int64)
    used = np.ones(1, np.int64)
    for dimension, size in enumerate(sizes):
        counts = _worthwhile(size, tiles)
        if dimension in fixed:
            counts = np.array([fixed[dimension]])[: fixed[dimension] <= size]
        while len(counts) > 2 and len(rows) * len(counts) > MOST_CANDIDATES:
            counts = np.concatenate((counts[:-1:2], counts[-1:]))
        wide = used[:, None] * counts
        row, count = np.nonzero(wide <= tiles)
        rows = np.concatenate((rows[row], counts[count][:, None]), axis=1)
        used = wide[row, count]
    if fixed:
        return rows
    busy = used >= min(int(used.max()), tiles) // 2
    return rows[busy] if shape.products > 64 * tiles else rows


def _worthwhile(size: int, tiles: int) -> Int64s:
    """Numbers of parts: one for each size of the largest part, which is what costs."""
    most = min(size, tiles)
    root = isqrt(size)
    many = -(-size // np.arange(1, root + 1))
    return np.unique(np.concatenate((np.arange(1, min(root, most) + 1), many[many <= most], [most])))
