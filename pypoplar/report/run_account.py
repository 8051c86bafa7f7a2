"""What runs have cost, as the engine counts it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import Int64s, Integers
from pypoplar.codelet.cost.loop_notes import LoopNote
from pypoplar.codelet.cost.pricing import LinePrice
from pypoplar.report.trace import Trace


def _nothing() -> Int64s:
    return np.zeros(0, np.int64)


@frozen(eq=False)
class TileCounts:
    """What the active tiles of compute steps did, by step; of other steps the arrays are empty."""

    cycles: Sequence[Integers]  # [steps][active tiles]
    slots: Sequence[Integers]  # [steps][active tiles]: worker slots of all vertices of the tile

    @staticmethod
    def of(first: Int64s, cycles: Int64s, slots: Int64s) -> TileCounts:
        """Of tables in which a step's tiles begin at ``first[step]``: the arrays are parts of them."""
        bounds = list(pairwise(first.tolist()))
        return TileCounts([cycles[begin:end] for begin, end in bounds], [slots[begin:end] for begin, end in bounds])

    def packed(self, compute: Sequence[int]) -> TileCounts:
        """The same in arrays of their own, in as few bytes as hold the numbers. `compute` is what each step executes.

        A step in which all tiles did what they did in the step before that executes the same has its arrays.
        """
        packed: list[tuple[Integers, Integers]] = []
        last: dict[int, tuple[Integers, Integers]] = {}
        for number, cycles, slots in zip(compute, self.cycles, self.slots, strict=True):
            known = last.get(number)
            if known is None or not (np.array_equal(known[0], cycles) and np.array_equal(known[1], slots)):
                known = last[number] = (narrow(cycles), narrow(slots))
            packed.append(known)
        return TileCounts([cycles for cycles, _ in packed], [slots for _, slots in packed])


def narrow(values: Integers) -> Integers:
    """The same counts in the smallest type that holds them."""
    narrowed: Integers = values.astype(np.min_scalar_type(int(values.max(initial=0))))
    narrowed.flags.writeable = False
    return narrowed


@frozen(eq=False)
class RecordedStep:
    """What the active tiles of a compute step did in single executions."""

    step: int
    execution: Int64s  # [recorded]: their numbers among those of the step in the run, from 0
    cycles: Integers  # [recorded, active tiles]


@frozen(eq=False)
class RunAccount:
    """Counts of one run, or of `count` runs together, by static step of the executable, summed over all executions."""

    name: str
    count: int
    executions: Int64s  # [steps]
    compute_cycles: Int64s  # [steps]: by which the slowest tile came later
    tiles: TileCounts
    codelet_slots: Int64s  # [codelets]
    # Of several IPUs, else empty; see `pypoplar.executable.ipu_steps`.
    share_computed: Int64s = field(factory=_nothing)  # [shares]: cycles of vertices
    share_waited: Int64s = field(factory=_nothing)  # [shares]: cycles that the IPU waited for others before
    ipu_waited: Int64s = field(factory=_nothing)  # [IPUs]: cycles that each waited for others at what is no step
    # With the option profiler.includeFlopEstimates, else empty: floating-point operations, and bytes loaded and stored by vertices.
    step_flops: Int64s = field(factory=_nothing)  # [steps]
    step_bytes: Int64s = field(factory=_nothing)  # [steps]
    codelet_flops: Int64s = field(factory=_nothing)  # [codelets]
    codelet_bytes: Int64s = field(factory=_nothing)  # [codelets]
    # With this option, and the prices of compiled code: slots of their code, and those that hand-written code could reach.
    codelet_compiled: Int64s = field(factory=_nothing)  # [codelets]
    codelet_bound: Int64s = field(factory=_nothing)  # [codelets]
    recorded: tuple[RecordedStep, ...] = ()  # single executions; of the steps that are not there all recorded ones are as the mean


@frozen(eq=False)
class FailedAccount:
    """A run that an error ended: what steps counted whose execution was complete, by static step of the executable."""

    name: str
    error: str
    executions: Int64s  # [steps]
    compute_cycles: Int64s  # [steps]


@frozen(eq=False)
class VertexCounts:
    """How often blocks of codelets ran, in all runs together: row i is about the vertices of ``codelet[i]`` in ``compute[i]``.

    Blocks are those of `pypoplar.codelet.ir.block_numbers`; a row may have words behind its last one. Of a MultiVertex the blocks
    of the worker that took longest count.
    """

    compute: Int64s  # [rows]: index into `Executable.computes`
    codelet: Int64s  # [rows]
    slots: Int64s  # [rows]: worker slots, by estimates where there are any
    first: Int64s  # [rows + 1]: where a row's blocks begin in `blocks`
    blocks: Int64s  # executions
    slowest_cycles: Int64s  # [computes]: of the vertex that took the most in one execution, 0 where none took any
    slowest: Int64s  # [computes]: its position in `Computes.vertex`
    prices: Sequence[Sequence[Sequence[LinePrice]]]  # [codelets][blocks]: the lines that a block's slots belong to
    loops: Sequence[Sequence[LoopNote]]  # [codelets]: what would make loops shorter


@frozen(eq=False)
class RunHistory:
    """The runs since the engine was loaded, or its profile reset."""

    programs: tuple[str, ...]  # names of what has run, in order; equal neighbours count once
    runs: tuple[RunAccount, ...]  # those kept apart, then all further ones together
    trace: Trace
    counts: VertexCounts | None = None  # where a profile of the execution is asked for
    failed: tuple[FailedAccount, ...] = ()  # runs that an error ended, whose counts are nowhere else
    recorded: int = 0  # executions of each step that are recorded from its first on, and as many up to its last
