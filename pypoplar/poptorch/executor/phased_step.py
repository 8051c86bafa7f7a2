"""The program of a call of a model in phases."""

from __future__ import annotations

from attrs import define

from pypoplar.poptorch.executor.step_program import StepProgram
from pypoplar.poptorch.pipelines.phase_walk import PhasedGraph
from pypoplar.poptorch.pipelines.streamed_weights import StreamedWeights
from pypoplar.poptorch.update.parameter_step import WeightHomes
from pypoplar.program import Sequence


@define(eq=False)
class PhasedStep(StepProgram):
    """Builds the program of a call from a graph that has been lowered by phases."""

    _weights: StreamedWeights | None = None

    def _passes(self) -> Sequence:
        """The phases, each behind its weights. What anchors and outputs have added is of the last one."""
        assert isinstance(self.lowered, PhasedGraph)
        if self.settings.streamed is not None:
            self._weights = StreamedWeights(self.lowered, self.settings.streamed)
            self.rows = self._weights.rows
        program = Sequence()
        for turn in self.lowered.turns:
            if self._weights is not None:
                program.add(self._weights.brought_for(turn))
            program.add(turn.program)
        return program

    def _homes(self) -> WeightHomes | None:
        return self._weights
