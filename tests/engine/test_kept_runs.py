"""A run of a large program is kept in few bytes: equal steps together, counts in small types. Its report is the same."""

from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import Bench
from hypothesis import given
from hypothesis import strategies as st
from profile_reports import differences

from pypoplar import INT, Engine, InOut, Vertex
from pypoplar.engine import runs
from pypoplar.interface.header_slots import Slot
from pypoplar.program import Execute, Repeat, Sequence
from pypoplar.report.run_account import TileCounts

KEPT = "autoReport.executionProfileProgramRunCount"


class Walk(Vertex):
    """Takes longer from step to step, and then not."""

    value: InOut[INT]

    def compute(self) -> None:
        for _ in range(self.value % 7):
            self.value += 0
        self.value += 1


def walking() -> tuple[Bench, Sequence]:
    """Unrolled steps on some tiles and on all, and a loop."""
    bench = Bench()
    some, every = bench.graph.addComputeSet("some"), bench.graph.addComputeSet("every")
    for tile in range(16):
        value = bench.variable(f"value{tile}", tile, tile)
        bench.vertex(every, Walk, tile, value=value)
        if tile in (3, 7):
            bench.vertex(some, Walk, tile, value=value)
    return bench, Sequence([Execute(some), Execute(every)] * 5 + [Repeat(3, Execute(some))])


def ran(mode: str, packed: int) -> Engine:
    bench, program = walking()
    with patch.object(runs, "PACKED", packed):
        engine = bench.engine(program, mode, {KEPT: 2})
        for _ in range(3):
            engine.run()
    return engine


def test_a_run_that_is_kept_in_few_bytes_has_the_report_of_one_that_is_kept_as_it_is(mode):
    packed, plain = ran(mode, 0).getReport().execution, ran(mode, 1 << 30).getReport().execution
    assert differences(packed, plain) == []
    assert {array.dtype for run in packed.runs for step in run.steps for array in (step.cyclesByTile, step.activeCyclesByTile)} == {
        np.dtype(np.int64)
    }


def test_such_a_run_keeps_no_tables_by_tile(mode):
    for packed, kept in ((0, True), (1 << 30, False)):
        account = ran(mode, packed)._runs._kept[0].account
        assert (len(account.tables[Slot.TILE_CYCLES]) == 0) is kept
        assert account.tables[Slot.EXECUTIONS].sum() > 0


def test_equal_steps_share_their_counts_and_others_take_small_types(mode):
    tiles = ran(mode, 0)._runs._kept[0].tiles
    assert {array.dtype for array in (*tiles.cycles, *tiles.slots)} <= {np.dtype(np.uint8), np.dtype(np.uint16)}
    equal = TileCounts.of(np.arange(0, 13, 4), np.tile([1, 2, 3, 300], 3), np.arange(12) // 8).packed([5, 5, 5])
    assert equal.cycles[0] is equal.cycles[1]
    assert equal.cycles[1] is not equal.cycles[2]  # whose slots differ
    assert [array.dtype.itemsize for array in (equal.cycles[0], equal.slots[2])] == [2, 1]


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.sampled_from([0, 1, 255, 256, 65535, 65536, 1 << 40]), max_size=4))))
def test_packing_changes_no_count(steps):
    first = np.cumsum([0, *(len(values) for _, values in steps)])
    cycles = np.array([value for _, values in steps for value in values], np.int64)
    plain = TileCounts.of(first, cycles, cycles[::-1].copy())
    packed = plain.packed([compute for compute, _ in steps])
    for name in ("cycles", "slots"):
        pairs = zip(getattr(plain, name), getattr(packed, name), strict=True)
        assert all(one.tolist() == other.tolist() for one, other in pairs)
    assert sum(array.nbytes for array in packed.cycles) <= cycles.nbytes


@pytest.mark.parametrize("packed", [0, 1 << 30])
def test_what_was_reported_stays_when_more_runs_follow(mode, packed):
    engine = ran(mode, packed)
    before = engine.getReport()
    cycles = [step.cyclesByTile.copy() for step in before.execution.runs[0].steps]
    engine.run()
    assert all(np.array_equal(step.cyclesByTile, kept) for step, kept in zip(before.execution.runs[0].steps, cycles, strict=True))
