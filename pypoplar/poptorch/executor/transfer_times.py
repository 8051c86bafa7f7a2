"""When a call moved its arguments and results between host and device: PopTorch's performance counters, by the simulated clock."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.errors import PoplarRuntimeError
from pypoplar.executable.executable import Executable
from pypoplar.report.report import Report

Counters = dict[str, list[list[float]]]
Reduction = Callable[[list[float]], float]
NONE: Counters = {"input": [[]], "input_complete": [[]], "output": [[]], "output_complete": [[]]}  # as PopTorch has it
EVENTS = "input", "input_complete", "output", "output_complete"


@frozen(eq=False)
class TransferTimes:
    """The transfers of the last call, by stream."""

    executable: Executable
    report: Report

    def counters(self, inputs: list[str], outputs: list[str], replicas: int) -> Counters:
        """Seconds at which each stream's transfers began and were done; the `replicas` have theirs at the same time."""
        moved = [[self._of(stream, replicas) for stream in streams] for streams in (inputs, outputs)]
        values = [[times[side] for times in streams] for streams in moved for side in (0, 1)]
        return dict(zip(EVENTS, values, strict=True))

    def _of(self, stream: str, replicas: int) -> tuple[list[float], list[float]]:
        """Seconds at which a stream's transfers begin and end, in their order."""
        execution = self.report.execution
        if execution is None:
            return [], []
        trace = execution.trace
        if trace.missed:
            recorded = len(trace.step)
            raise PoplarRuntimeError(
                f"getPerfCounters: the call took {recorded + trace.missed:,} steps, and the times of {recorded:,} are recorded: "
                "take fewer deviceIterations; getReport() has the sum of each step"
            )
        steps = [number for number, step in enumerate(self.executable.steps) if stream in step.streams]
        begins, ends = self._transfers(np.isin(trace.step, steps))
        clock = self.report.compilation.target.clockFrequency
        return (np.repeat(begins, replicas) / clock).tolist(), (np.repeat(ends, replicas) / clock).tolist()

    def _transfers(self, events: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[Int64s, Int64s]:
        """The cycles at which transfers begin and end, which several IPUs may have a part in."""
        assert self.report.execution is not None
        trace = self.report.execution.trace
        step, ipu, begin = trace.step[events], trace.ipu[events], trace.begin[events]
        end = begin + trace.cycles[events]
        order = np.lexsort((begin, ipu, step))
        first = np.flatnonzero(np.diff(step[order], prepend=-1) | np.diff(ipu[order], prepend=-1))
        execution = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
        _, which = np.unique(np.stack([step[order].astype(np.int64), execution]), axis=1, return_inverse=True)
        which = which.reshape(-1)
        count = int(which.max()) + 1 if len(which) else 0
        begins, ends = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
        np.minimum.at(begins, which, begin[order])
        np.maximum.at(ends, which, end[order])
        in_time = np.argsort(begins, kind="stable")
        return begins[in_time], ends[in_time]


def latency(counters: Counters, since: str, first: Reduction, until: str, last: Reduction) -> tuple[float, float, float]:
    """The least, the most and the mean time from an event of a batch to another, of all batches of a call.

    Where several batches have one result, it begins with the first of them, as in PopTorch.
    """
    begins = [first(list(times)) for times in zip(*counters[since], strict=True)]
    ends = [last(list(times)) for times in zip(*counters[until], strict=True)]
    if not begins or not ends:
        return 0.0, 0.0, 0.0
    each = len(begins) // len(ends)
    spans = [end - min(begins[number * each : (number + 1) * each]) for number, end in enumerate(ends)]
    return min(spans), max(spans), sum(spans) / len(spans)
