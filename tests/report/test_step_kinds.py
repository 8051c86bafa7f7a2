"""Every kind of step, of cycles and of memory is drawn, summed and written; one that nobody knows is refused by name."""

import sqlite3

import numpy as np
import pytest
from attrs import evolve, fields
from page_reports import compute, report
from profile_reports import full_report

from pypoplar import FLOAT, Engine, FileLoadError, Graph, IPUModel, pva
from pypoplar.executable.memory_use import TileMemory
from pypoplar.executable.steps import StaticStep
from pypoplar.executable.verify.executable_claims import STEP_KINDS
from pypoplar.program import Copy, Sequence
from pypoplar.report import palette, phases
from pypoplar.report.compute_set_costs import compute_sets
from pypoplar.report.execution import BY_IPU, COSTS, COSTS_BY_TILE, CYCLES, STEP_TYPES, Execution, Run, Step
from pypoplar.report.file.tile_profile_table import BY_TILE as COLUMNS
from pypoplar.report.insights.memory_insights import WHAT_FILLS
from pypoplar.report.making.make_programs import TYPES, step_type
from pypoplar.report.making.make_report import make_report
from pypoplar.report.notebook_tables import html_of, report_html
from pypoplar.report.page import step_data
from pypoplar.report.page.step_data import phase_rows
from pypoplar.report.page.summary_data import machine_parts, mean_tile_parts
from pypoplar.report.text.summary_execution import composition
from pypoplar.report.timeline import COPIES_UNKNOWN, PHASES, make_timeline


def ran_for(kind, cycles=70):
    """A report of one step with one kind of cycles."""
    step = evolve(Step(name="step", type="Sync", executions=1, number=0), **{kind: cycles})
    if kind == "exchange_cycles":
        step = evolve(step, exchange_cycles_by_tile=np.full(4, cycles))
    if kind == "copy_cycles":
        step = evolve(step, copy_cycles_by_tile=np.full(4, cycles))
    if kind == "compute_cycles":
        step = evolve(step, cyclesByTile=np.full(4, cycles), activeCyclesByTile=np.full(4, cycles))
    idle = report(compute("work", 0, [1, 1, 1, 1]))
    return evolve(idle, execution=Execution((step,), {}, ("main",), 4, (Run("main", (step,)),), clockFrequency=1e9))


def test_the_lists_of_costs_are_what_a_step_has():
    numbers = {field.name for field in fields(Step) if field.type == "int"} - {"number", "depth", "num_ipus"}
    assert numbers == set(COSTS)
    assert {name for name in numbers if name.endswith("_cycles")} == set(CYCLES)
    assert {field.name for field in fields(Step) if field.type == "Int64s"} == set(COSTS_BY_TILE)


def test_what_goes_by_kinds_of_cycles_goes_through_all_of_them():
    assert set(PHASES.values()) == set(CYCLES)
    assert {*COLUMNS.values(), "cycles_by_ipu"} == {*step_data.BY_TILE.values(), "cycles_by_ipu"} == set(COSTS_BY_TILE)
    assert (*CYCLES, "waiting_cycles") == BY_IPU
    assert set(CYCLES) < set(step_data.NUMBERS)


@pytest.mark.parametrize("kind", CYCLES)
def test_every_kind_of_cycles_is_in_every_sum(kind):
    ran = ran_for(kind)
    execution = ran.execution
    (step,) = execution.steps
    assert step.cycles == execution.totalCycles.total == execution.runs[0].cycles == 70
    assert composition(step) == f" ({kind.removesuffix('_cycles').replace('_', ' ')} 70)"
    assert sum(part["cycles"] for part in machine_parts(execution)) == 70
    assert sum(part["cycles"] for part in mean_tile_parts(execution)) == 70
    assert "100.0%" in report_html(ran)
    (group, *_) = make_timeline(ran).groups
    (phase,) = (track for track in group.tracks if track.name in PHASES)
    assert PHASES[phase.name] == kind


def test_there_is_one_table_of_phases_and_one_place_of_colours():
    names = {phase.name for phase in phases.PHASES}
    assert {phase.cycles for phase in phases.PHASES} == set(CYCLES)
    assert {phase.by_tile for phase in phases.PHASES} <= {"", *COSTS_BY_TILE}
    assert names | {phases.WAITING[0], phases.IDLE_THREADS[0]} == set(palette.PHASES)
    ran = ran_for("compute_cycles")
    assert [row["name"] for row in phase_rows(ran.execution)] == [phase.name for phase in phases.PHASES] + ["waiting"]
    assert {row["part"] for row in machine_parts(ran.execution)} == names
    assert {row["part"] for row in mean_tile_parts(ran.execution)} == set(palette.PHASES)


def test_copies_that_a_profile_does_not_tell_apart_are_absent_and_not_0():
    ran = ran_for("exchange_cycles")
    older = evolve(ran, execution=evolve(ran.execution, copies_known=False))
    for parts in (machine_parts, mean_tile_parts):
        labels = {part["part"]: part["label"] for part in parts(older.execution)}
        assert "copies" not in labels
        assert labels["exchange"] == "Exchange and copies on the tile"
        assert sum(part["cycles"] for part in parts(older.execution)) == 70
    assert "copies" not in [row["name"] for row in phase_rows(older.execution)]
    assert COPIES_UNKNOWN in make_timeline(older).notes
    assert COPIES_UNKNOWN not in make_timeline(ran).notes


def test_every_kind_of_static_step_has_a_type():
    assert set(TYPES) == set(STEP_KINDS)
    assert set(TYPES.values()) == set(STEP_TYPES)


def test_a_kind_of_static_step_that_reports_do_not_know_is_refused():
    step = StaticStep("gather", "teleport", 0, np.zeros(0, np.int64))
    with pytest.raises(ValueError, match="step 'gather' is of the kind 'teleport', and reports know exchange, copy, compute"):
        step_type(step)


def test_a_step_of_a_type_that_nobody_sums_cannot_be_made():
    with pytest.raises(ValueError, match=r"'type' must be in .*OnTileExecute.* \(got 'Teleport'\)"):
        Step(name="gather", type="Teleport", executions=1)


def test_a_file_with_a_step_of_such_a_type_is_refused(tmp_path):
    path = tmp_path / "profile.pop"
    pva.save_report(full_report(), path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE step SET type = 'Teleport' WHERE step = 1")
    database.close()
    with pytest.raises(FileLoadError, match=r"step\.type is 'Teleport': expected OnTileExecute, DoExchange, StreamCopy, Sync"):
        pva.openReport(path)


def test_steps_without_vertices_are_in_no_compute_set():
    for kind in STEP_TYPES:
        step = evolve(compute("work", 0, [1, 2, 3, 4]), type=kind)
        assert len(compute_sets(Execution((step,), {}))) == (kind == "OnTileExecute")


@pytest.fixture
def executable():
    """A copy between two tiles."""
    device = IPUModel("tiny").createDevice()
    graph = Graph(device.getTarget())
    x, y = graph.addVariable(FLOAT, [4], "x"), graph.addVariable(FLOAT, [4], "y")
    for tile, variable in enumerate((x, y)):
        graph.setTileMapping(variable, tile)
    return Engine(graph, Sequence([Copy(x, y)])).executable


def test_every_category_of_memory_is_in_the_report(executable):
    memory = make_report(executable).compilation.memory
    categories = {field.name for field in fields(TileMemory)} - {"gaps", "always_live", "not_always_live"}
    assert set(memory.categories) == set(WHAT_FILLS) == categories
    assert memory.including_gaps().tolist() == executable.memory.total().tolist()


def test_a_notebook_has_no_view_of_something_else():
    with pytest.raises(TypeError, match="notebooks have no view of int"):
        html_of(3)
