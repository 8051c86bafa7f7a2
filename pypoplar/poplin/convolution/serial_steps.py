"""Plans of convolutions in steps, one after the other: what is needed for a step alone takes memory only in that step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from math import prod

from attrs import evolve, field, frozen

from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.convolution.conv_cycles import sum_cycles
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.conv_request import ConvRequest
from pypoplar.poplin.convolution.conv_shape import FIELD, ConvTypes
from pypoplar.poplin.convolution.joined_groups import JoinedPlan
from pypoplar.poplin.convolution.plan_costs import start_cycles
from pypoplar.poplin.convolution.sliding_axis import Range
from pypoplar.poplin.convolution.swapped_plan import SwappedPlan
from pypoplar.poplin.splitting import bounds
from pypoplar.poputil.cycles import ceiling

DIMENSIONS = ("groups", "batch", "in_channels", "out_channels")  # that can be cut into steps, and each of the field
INPUTS = 2  # the number of the input channels
COUNTS = (2, 3, 4, 6, 8, 12, 16)  # of steps
OPERANDS: dict[int, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    0: ((0,), (0,), (0,)),
    1: ((1,), (), (1,)),
    2: ((2,), (2,), ()),
    3: ((), (1,), (2,)),
}  # by the number of a size: which dimension of the input, of the weights and of the result it is
WholePlan = ConvolutionPlan | SwappedPlan | JoinedPlan
Planner = Callable[[ConvRequest], list[WholePlan]]


@frozen
class SerialStep:
    """A part of a convolution: ranges of some dimensions of its operands and of the result, and their plan."""

    input: dict[int, Range] = field(factory=dict)
    weights: dict[int, Range] = field(factory=dict)
    result: dict[int, Range] = field(factory=dict)


@frozen
class SteppedPlan:
    """Parts of a convolution, one after the other; `counts` are their numbers by dimension. Parts of one result are added."""

    result: tuple[int, ...]
    types: ConvTypes
    counts: dict[str, int]
    steps: tuple[tuple[SerialStep, WholePlan], ...]
    adding: int  # cycles of adding a step's result to those before
    others: int  # bytes of a tile that the other steps have of operands and results
    limit: int

    @property
    def cycles(self) -> int:
        return sum(plan.cycles for _, plan in self.steps) + self.adding

    @property
    def bytes(self) -> int:
        """Memory of the fullest tile."""
        return max(plan.bytes for _, plan in self.steps) + self.others

    @property
    def tiles(self) -> int:
        """Tiles at work."""
        return max(plan.tiles for _, plan in self.steps)

    @property
    def first(self) -> WholePlan:
        return self.steps[0][1]

    def describe(self) -> str:
        parts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        over = "" if self.bytes <= self.limit else f", and no plan keeps to the {self.limit} of availableMemoryProportion"
        lines = [f"steps, one after the other: {parts}; {len(self.steps)} in all, {self.cycles} cycles"]
        lines += [f"bytes of the fullest tile: {self.bytes}{over}", "the first step:", *self.first.describe().splitlines()]
        return "".join(f"{line}\n" for line in lines)

    def input_order(self) -> list[int]:
        """The dimensions of an input in the order in which they lie best in memory."""
        return self.first.input_order()

    def weights_order(self) -> list[int]:
        """The same of weights."""
        return self.first.weights_order()

    def output_order(self) -> list[int]:
        """The same of a result."""
        return self.first.output_order()

    def part(self, tensor: Tensor, ranges: dict[int, Range]) -> Tensor:
        """What a step has of a tensor."""
        for dimension, (begin, end) in ranges.items():
            tensor = tensor.slice(begin, end, dimension)
        return tensor


def stepped_plan(request: ConvRequest, counts: Mapping[int, int], plans: Planner) -> SteppedPlan | None:
    """The plan with so many steps of the sizes, by number, or of the dimensions of the field behind these; None without one."""
    sizes = [*request.sizes, *(axis.out for axis in request.axes)]
    if any(count > sizes[place] for place, count in counts.items()):
        return None
    adds = counts.get(INPUTS, 1) > 1
    types = evolve(request.types, result=request.types.partials) if adds else request.types
    several: list[tuple[SerialStep, ConvRequest]] = [(SerialStep(), evolve(request, types=types))]
    for place, count in counts.items():
        several = [part for step, own in several for part in _cut(step, own, place, count)]
    held = _held(request)
    known: dict[tuple[object, ...], WholePlan | None] = {}
    steps = []
    others = 0
    for step, own in several:
        rest = max(held - _held(own), 0)
        key = (own.sizes, own.axes)
        if key not in known:
            memory = max(request.memory - rest / request.target.getBytesPerTile(), 0)
            known[key] = cheapest(plans(evolve(own, memory=memory)))
        plan = known[key]
        if plan is None:
            return None
        others = max(others, rest)
        steps.append((step, plan))
    if adds:  # the sum so far, and the next one
        others += 2 * prod(request.result) * types.partials.size // request.target.getNumTiles()
    names = {_name(place): count for place, count in counts.items()}
    added = _adding(request, several) if adds else 0
    return SteppedPlan(request.result, request.types, names, tuple(steps), added, others, request.limit)


def fitting_steps(request: ConvRequest, plans: Planner) -> SteppedPlan | None:
    """The cheapest plan with the fewest steps that fits into memory; if none does, None."""
    sizes = [*request.sizes, *(axis.out for axis in request.axes)]
    if _held(request) > request.limit:
        return None
    for several in (1, 2):
        for count in COUNTS:
            fitting = []
            for places in combinations(range(len(sizes)), several):
                if all(sizes[place] >= count for place in places):
                    plan = stepped_plan(request, dict.fromkeys(places, count), plans)
                    fitting += [plan] if plan is not None and plan.bytes <= request.limit else []
            if fitting:
                return min(fitting, key=lambda plan: plan.cycles)
    return None


def cheapest(plans: Sequence[WholePlan]) -> WholePlan | None:
    """Of those within the memory that of the fewest cycles, or else that of the least memory.

    Swapped operands are taken where they save more than it takes to bring the input and the result into their order.
    """

    def cycles(plan: WholePlan) -> int:
        return plan.cycles + (plan.rearranging if isinstance(plan, SwappedPlan) else 0)

    fitting = [plan for plan in plans if plan.bytes <= plan.limit]
    return min(fitting, key=cycles) if fitting else min(plans, key=lambda plan: plan.bytes, default=None)


def _name(place: int) -> str:
    return DIMENSIONS[place] if place < len(DIMENSIONS) else f"field {place - len(DIMENSIONS)}"


def _cut(step: SerialStep, request: ConvRequest, place: int, count: int) -> Iterator[tuple[SerialStep, ConvRequest]]:
    """Parts of a step in one dimension."""
    if place >= len(DIMENSIONS):
        yield from _cut_field(step, request, place - len(DIMENSIONS), count)
        return
    for begin, end in pairwise(bounds(request.sizes[place], count)):
        groups, batch, inputs, outputs = (end - begin if number == place else size for number, size in enumerate(request.sizes))
        ranges = ({**old, **dict.fromkeys(dims, (begin, end))} for old, dims in zip(_ranges(step), OPERANDS[place], strict=True))
        yield SerialStep(*ranges), evolve(request, sizes=(groups, batch, inputs, outputs))


def _cut_field(step: SerialStep, request: ConvRequest, place: int, count: int) -> Iterator[tuple[SerialStep, ConvRequest]]:
    axis = request.axes[place]
    for outputs in pairwise(bounds(axis.out, count)):
        (begin, end), first = axis.inputs_of(outputs, (0, axis.kernel))
        own = evolve(axis, size=end - begin, lower=-first, out=outputs[1] - outputs[0])
        axes = (*request.axes[:place], own, *request.axes[place + 1 :])
        part = evolve(step, input={**step.input, FIELD + place: (begin, end)}, result={**step.result, FIELD + place: outputs})
        yield part, evolve(request, axes=axes)


def _ranges(step: SerialStep) -> tuple[dict[int, Range], dict[int, Range], dict[int, Range]]:
    return step.input, step.weights, step.result


def _held(request: ConvRequest) -> int:
    """Bytes of a tile that operands and result take where they are shared out evenly."""
    groups, batch, inputs, outputs = request.sizes
    input = groups * batch * inputs * prod(axis.size for axis in request.axes)
    weights = groups * inputs * outputs * prod(axis.kernel for axis in request.axes)
    result = prod(request.result) * request.types.result.size
    return int(ceiling((input + weights) * request.types.operands.size + result, request.target.getNumTiles()))


def _adding(request: ConvRequest, several: Sequence[tuple[SerialStep, ConvRequest]]) -> int:
    """Cycles of adding the results of steps, each shared out evenly: all but the first of those of one part of the result."""
    target, types, known, cycles = request.target, request.types, set(), 0
    for step, own in several:
        place = tuple(sorted(step.result.items()))
        if place in known:
            elements = ceiling(prod(own.result), target.getNumTiles())
            cycles += start_cycles(target) + int(sum_cycles(target, elements, 2, types.partials, types.partials))
        known.add(place)
    return cycles
