"""How the operands of a plan lie in memory: what a tile has of one is in one piece, but for what it shares with its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pypoplar.poplin.convolution.conv_partition import KERNEL, AxisWindow
from pypoplar.poplin.convolution.conv_plan import ConvolutionPlan
from pypoplar.poplin.convolution.conv_shape import AXES, FIELD
from pypoplar.poplin.convolution.layout.memory_order import MemoryOrder


def input_memory(plan: ConvolutionPlan, shape: Sequence[int]) -> MemoryOrder:
    """Of an input [groups, batch, channels, *field] of this shape."""
    order = tuple(plan.input_order())
    if plan.empty:
        return MemoryOrder(order)
    form, bounds = plan.form, plan.partition.bounds(plan.shape)
    cuts: dict[int, tuple[int, ...]] = {}
    if form.lanes:
        cuts[0] = tuple(bounds[9])
    elif not form.is_folded:  # the channels of one that is folded are those of the kernel, too
        cuts[2] = tuple(bounds[8])
    if not form.is_folded:
        windows = plan.partition.windows(plan.shape)[AXES - len(form.sliding) :]
        for place, several in zip(form.sliding, windows, strict=True):
            if _are_apart(several) and form.axes[place].step == 1:
                begins = {form.axes[place].inputs[0] + window.inputs[0] for window in several}
                cuts[FIELD + place] = _cut_at(begins, shape[FIELD + place])
    phases = {}
    for place, trim in enumerate(form.axes):
        step = trim.step * (trim.axis.dilation if form.folded[place] and trim.axis.kernel > 1 else 1)
        if step > 1:
            phases[FIELD + place] = step
    return MemoryOrder(order, cuts=cuts, phases=phases)


def weights_memory(plan: ConvolutionPlan, shape: Sequence[int]) -> MemoryOrder:
    """Of weights [groups, output channels, channels, *kernel] of this shape."""
    order = tuple(plan.weights_order())
    if plan.empty:
        return MemoryOrder(order)
    form, bounds = plan.form, plan.partition.bounds(plan.shape)
    cuts = {0 if form.lanes else 1: tuple(bounds[9])}
    if not form.is_folded and not form.lanes:
        cuts[2] = tuple(bounds[8])
    for place, own in zip(form.sliding, bounds[KERNEL][AXES - len(form.sliding) :], strict=True):
        begins = {form.axes[place].kernel[0] + begin for begin in own[:-1]}
        cuts[FIELD + place] = _cut_at(begins, shape[FIELD + place])
    return MemoryOrder(order, cuts=cuts)


def _are_apart(windows: Sequence[AxisWindow]) -> bool:
    """Whether no two windows have inputs in common; cut, a window would be in more pieces than it is whole."""
    ranges = sorted({window.inputs for window in windows})
    return all(end <= begin for (_, end), (begin, _) in pairwise(ranges))


def _cut_at(begins: set[int], size: int) -> tuple[int, ...]:
    """The bounds of parts of a dimension that begin there; what is before the first and behind the last is of these."""
    return (0, *sorted(begins - {min(begins)}), size)
