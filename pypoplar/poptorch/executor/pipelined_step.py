"""The program of a call whose stages overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import define, field
from torch import fx

from pypoplar import poputil
from pypoplar.graph.tensor import Tensor
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.executor.common_rounding import rounded_alike
from pypoplar.poptorch.executor.step_program import OutputCopy, StepProgram, copied
from pypoplar.poptorch.pipelines.pipeline_program import PipelineProgram, Seeds
from pypoplar.poptorch.pipelines.pipeline_units import SentResult, cycle_parts
from pypoplar.poptorch.pipelines.stage_segments import NotPipelined, Segment
from pypoplar.poptorch.pipelines.stage_walk import StagedGraph
from pypoplar.poptorch.update.accumulation import BatchPart, PartOf
from pypoplar.program import Copy, Repeat, Sequence


@define(eq=False)
class PipelinedStep(StepProgram):
    """Builds the program of a call from a graph that has been lowered by segments. `NotPipelined` where it cannot be."""

    _segments: dict[int, Segment] = field(factory=dict)  # that make an output, by the identity of its copy

    @property
    def _staged(self) -> StagedGraph:
        assert isinstance(self.lowered, StagedGraph)
        return self.lowered

    def _program(self, before: Sequence) -> Sequence:
        settings, lowered = self.settings, self._staged
        self._add_buffer_updates()
        behind = Sequence() if self.update is None else self._updates(Sequence())
        if self.update is not None and settings.stochastic_rounding:
            behind = rounded_alike(lowered.graph, behind)
        sums = self._sums_by_segment()
        every = self._of(OutputMode.EveryN)
        loops = self.loops
        training = self.update is not None or loops.accumulated > 1
        period = 1 if training else loops.period
        results = [self._result(copy, 1) for copy in self._of(OutputMode.All)]
        if not training:
            results += [self._result(copy, period) for copy in every]
        inputs = [copy for copy in before.programs if isinstance(copy, Copy)]
        written = [one.tensor for one in lowered.variables.values() if one.tensor is not None]
        parts = cycle_parts(lowered.graph, lowered.programs, inputs, results, written, self._staged.walk.kept_variables())
        self.cycle = parts.segments
        seeds = None if lowered.seed is None else Seeds(lowered.seed, lowered.walk.model.seeds or {})
        pipeline = PipelineProgram(lowered.graph, parts, seeds)
        final = Sequence([copied(self._of(OutputMode.Final)), sums])
        if not training:
            return Sequence([pipeline.build(settings.batches.iterations), final])
        ahead = Sequence() if self.update is None else self.update.ahead
        step = Sequence([ahead, pipeline.build(loops.accumulated), behind])
        if loops.period > 1 or every:
            step = Sequence([Repeat(loops.period, step) if loops.period > 1 else step, copied(every)])
        return Sequence([Repeat(loops.times, step) if loops.times > 1 else step, final])

    def _parts(self) -> PartOf:
        return self._part_of

    def _part_of(self, parameter: str) -> BatchPart:
        """The segment that makes the gradient of a parameter."""
        segment = self._segment(self.lowered.joint.gradients[parameter])
        return BatchPart(self._staged.programs[segment], segment.ipu)

    def _segment(self, node: Any) -> Segment:
        """The segment that makes the value of a node; of an input the first one where it lies."""
        segments = self._staged.segments
        if isinstance(node, fx.Node) and node in segments.of:
            return segments.of[node]
        ipu = self.lowered.variables[node].ipu if node in self.lowered.variables else 0
        segment = segments.on(ipu)
        if segment is None:
            raise NotPipelined(f"{node} is on IPU {ipu}, which has no stage")
        return segment

    def _add_buffer_updates(self) -> None:
        """Buffers get their new values at the end of the segment that makes them, all at once."""
        lowered = self._staged
        known = {one.name: one.node for one in lowered.joint.inputs}
        copies = list[tuple[Segment, Copy]]()
        for name, (node, old, new) in self._new_buffers().items():
            segment = self._made_in(node, lowered.variables[known[name]].ipu)
            if self._shows_buffers(new):
                new = poputil.duplicate(lowered.graph, new, lowered.programs[segment], f"{name}/update")
            copies.append((segment, Copy(new, old, name=f"{name.replace('.', '/')}/update")))
        for segment, copy in copies:
            lowered.programs[segment].add(copy)

    def _made_in(self, node: fx.Node, ipu: int) -> Segment:
        """The segment of an IPU that makes the value of a node: its own, or, where that is on another one, of what it reads."""
        segments = self._staged.segments
        unseen, found = [node], list[Segment]()
        while unseen:
            segment = segments.of.get(one := unseen.pop())
            if segment is not None and segment.ipu == ipu:
                found.append(segment)
            elif segment is not None:
                unseen += one.all_input_nodes
        return max(found, key=lambda segment: segment.rank, default=None) or self._segment(node)

    def _sums_by_segment(self) -> Sequence:
        """Let segments add up outputs that they make; gives the copies of the sums."""
        copies = Sequence()
        for copy in self._of(OutputMode.Sum):
            copies.add(self._summed(copy, self._staged.programs[self._segments[id(copy)]]))
        return copies

    def _result(self, copy: OutputCopy, period: int) -> SentResult:
        return SentResult(self._segments[id(copy)], Copy(copy.tensor, copy.stream, name=copy.name), period)

    def _output(self, name: str, node: Any, mode: OutputMode, period: int) -> Any:
        before = len(self._copies)
        output = super()._output(name, node, mode, period)
        for copy in self._copies[before:]:
            self._segments[id(copy)] = self._segment(node)
        return output

    def _apart(self, tensor: Tensor, name: str) -> Tensor:
        lowered = self._staged
        kept = {number for one in lowered.variables.values() if one.tensor is not None for number in one.tensor.variable_numbers()}
        if kept.isdisjoint(tensor.variable_numbers()):
            return tensor
        tiles = lowered.graph.getTarget().getTilesPerIPU()
        ipus = {int(tile) // tiles for tile in np.unique(lowered.graph.mapped_pieces(tensor)[2])}
        segment = lowered.segments.on(min(ipus, default=0))
        if len(ipus) != 1 or segment is None:
            raise NotPipelined(f"{name} lies on several IPUs, or on one without a stage")
        return poputil.duplicate(lowered.graph, tensor, lowered.programs[segment], f"{name}/forward")
