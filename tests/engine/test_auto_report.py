"""Engines write their profile by themselves when the autoReport options ask for it."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import engine_builder
import numpy as np
import pytest
from engine_builder import Add, tiny

from pypoplar import FLOAT, Engine, Executable, Graph, GraphMemoryAllocationError, InvalidOption, compileGraph
from pypoplar.program import Repeat, Sequence
from pypoplar.report.file.sqlite_file import load_report

ALL = "autoReport.all"
PLACE = "autoReport.directory"
GRAPH = "autoReport.outputGraphProfile"
EXECUTION = "autoReport.outputExecutionProfile"
KEPT = "autoReport.executionProfileProgramRunCount"


def step(bench):
    return Repeat(3, bench.execute(Add, 3, value=bench.variable("value", 0, 3), amount=1))


def made(bench, mode, name="", **options):
    program = getattr(bench, "step", None) or step(bench)
    bench.step = program
    engine = Engine(bench.graph, program, options, mode=mode, name=name)
    engine.load(bench.device)
    return engine


def runs_in(path):
    execution = load_report(path).execution
    return None if execution is None else [one.count for one in execution.runs]


def ended(engine):
    """Drop the last reference to an engine: ``ended(engines.pop())``."""
    del engine
    gc.collect()


def test_nothing_is_written_unless_it_is_asked_for(bench, mode, tmp_path):
    engines = [made(bench, mode, **{PLACE: str(tmp_path)})]
    engines[0].run()
    ended(engines.pop())
    assert list(tmp_path.iterdir()) == []


def test_the_profile_is_there_from_the_beginning_and_grows_with_the_kept_runs(bench, mode, tmp_path):
    place = tmp_path / "reports" / "here"
    engine = made(bench, mode, **{ALL: "true", PLACE: str(place)})
    file = place / "profile.pop"
    assert runs_in(file) is None
    seen = []
    for _ in range(4):
        engine.run()
        seen.append(runs_in(file))
    assert seen == [[1], [1, 1], [1, 1], [1, 1]]
    assert list(place.iterdir()) == [file]


def test_when_the_engine_is_gone_all_its_runs_are_in_the_profile(bench, mode, tmp_path):
    engines = [made(bench, mode, **{ALL: True, PLACE: str(tmp_path)})]
    for _ in range(5):
        engines[0].run()
    total = engines[0].getReport().execution.totalCycles.total
    ended(engines.pop())
    report = load_report(tmp_path / "profile.pop")
    assert [one.count for one in report.execution.runs] == [1, 1, 3]
    assert report.execution.totalCycles.total == total
    assert len(report.execution.trace) == 6


def test_what_is_loaded_afterwards_does_not_empty_the_profile(bench, mode, tmp_path):
    engines = [made(bench, mode, **{ALL: True, PLACE: str(tmp_path)})]
    engines[0].run()
    engines[0].load()
    ended(engines.pop())
    assert runs_in(tmp_path / "profile.pop") == [1]


def test_one_part_alone_can_be_written(bench, mode, tmp_path):
    engines = [made(bench, mode, **{ALL: True, EXECUTION: False, PLACE: str(tmp_path / "graph")})]
    engines[0].run()
    ended(engines.pop())
    assert runs_in(tmp_path / "graph" / "profile.pop") is None
    engines = [made(bench, mode, **{EXECUTION: True, PLACE: str(tmp_path / "runs")})]
    assert not (tmp_path / "runs").exists()
    engines[0].run()
    assert runs_in(tmp_path / "runs" / "profile.pop") == [1]
    engines = [made(bench, mode, **{ALL: True, GRAPH: False, PLACE: str(tmp_path / "neither")})]
    assert not (tmp_path / "neither").exists()


def test_without_kept_runs_all_is_written_at_the_end(bench, mode, tmp_path):
    engines = [made(bench, mode, **{EXECUTION: True, KEPT: 0, PLACE: str(tmp_path)})]
    for _ in range(3):
        engines[0].run()
    assert list(tmp_path.iterdir()) == []
    ended(engines.pop())
    assert runs_in(tmp_path / "profile.pop") == [3]


def test_many_kept_runs_are_not_written_one_by_one(bench, mode, tmp_path):
    engines = [made(bench, mode, **{EXECUTION: True, KEPT: 11, PLACE: str(tmp_path)})]
    seen = []
    for _ in range(12):
        engines[0].run()
        seen.append(len(runs_in(tmp_path / "profile.pop")))
    assert seen == [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 11, 11]
    ended(engines.pop())
    assert runs_in(tmp_path / "profile.pop") == [1] * 12


def test_an_engine_with_a_name_has_its_own_directory(bench, mode, tmp_path):
    engine = made(bench, mode, "inference", **{ALL: True, PLACE: str(tmp_path)})
    report = load_report(tmp_path / "inference" / "profile.pop")
    assert report.name == engine.getReport().name == "inference"
    assert report.created == engine.getReport().created > "2020"


@pytest.mark.parametrize("name", ["../up", "a/b", "..", "/"])
def test_a_name_that_is_no_directory_is_refused(bench, name, tmp_path):
    with pytest.raises(InvalidOption, match="cannot be one"):
        made(bench, "interpret", name, **{ALL: True, PLACE: str(tmp_path)})


def test_the_environment_asks_for_profiles_too_even_of_saved_executables(bench, mode, tmp_path, monkeypatch):
    compileGraph(bench.graph, step(bench)).save(tmp_path / "program")
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", f'{{"autoReport.all": "true", "autoReport.directory": "{tmp_path}"}}')
    engine = Engine(Executable.load(tmp_path / "program"), mode=mode)
    engine.load()
    engine.run()
    assert runs_in(tmp_path / "profile.pop") == [1]


def test_out_of_memory_leaves_a_profile_of_the_graph(tmp_path):
    graph = Graph(tiny())
    x = graph.addVariable(FLOAT, [10_000_000], "large")
    graph.setTileMapping(x, 3)
    graph.createHostRead("x", x)
    file = tmp_path / "big" / "profile.pop"
    with pytest.raises(GraphMemoryAllocationError, match="large") as caught:
        Engine(graph, Sequence(), {ALL: True, PLACE: str(tmp_path)}, name="big")
    assert str(caught.value).endswith(f"\nProfile saved to: {file}")
    report = load_report(file)
    assert report.name == caught.value.report.name == "big"
    assert report.compilation.tiles[3].memory.total.excludingGaps >= 40_000_000
    assert report.compilation.options == {ALL: "true", PLACE: str(tmp_path)}
    with pytest.raises(GraphMemoryAllocationError) as caught:
        compileGraph(graph, Sequence(), {ALL: True, GRAPH: False, PLACE: str(tmp_path)})
    assert "Profile" not in str(caught.value)


def test_a_directory_that_cannot_be_is_an_error_at_once_and_a_warning_later(bench, mode, tmp_path):
    (tmp_path / "file").write_text("in the way")
    place = str(tmp_path / "file")
    there = rf"\[Errno 17\] File exists: '{place}'"
    expected = rf"autoReport\.directory is '{place}': the profile cannot be written there: {there}; choose another"
    with pytest.raises(InvalidOption, match=expected) as caught:
        made(bench, mode, **{ALL: True, PLACE: place})
    assert caught.value.__cause__ is None  # the text says it all, without a second traceback
    engine = made(bench, mode, **{EXECUTION: True, PLACE: str(tmp_path / "file")})
    with pytest.warns(RuntimeWarning, match="the profile could not be written"):
        engine.run()
    assert engine.getReport().execution.runs[0].count == 1


@pytest.mark.parametrize("place", ["null \0 character", "lone \ud800 surrogate"])
def test_a_directory_with_a_name_that_none_can_have_is_refused(bench, place):
    with pytest.raises(InvalidOption, match=r"the profile cannot be written there: .*No file has such a name"):
        made(bench, "interpret", **{ALL: True, PLACE: place})


def test_out_of_memory_is_reported_even_if_its_profile_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    graph = Graph(tiny())
    x = graph.addVariable(FLOAT, [10_000_000], "large")
    graph.setTileMapping(x, 3)
    graph.createHostRead("x", x)
    with pytest.raises(GraphMemoryAllocationError, match="large") as caught:
        Engine(graph, Sequence(), {ALL: True, PLACE: str(tmp_path / "file")})
    assert "\nThe profile could not be saved: [Errno 17] File exists: " in str(caught.value)
    assert caught.value.report is not None


PROGRAM = """
import os, sys
sys.path.insert(0, {tests!r})
from engine_builder import Add, Bench
bench = Bench()
engine = bench.engine(bench.execute(Add, 3, value=bench.variable("value", 0, 3), amount=1), "interpret",
                      {{"autoReport.all": True, "autoReport.directory": {place!r}}})
for _ in range(3):
    engine.run()
if {fork}:
    child = os.fork()
    if child == 0:
        engine.run()
        sys.exit()  # as if the child were the program
    os.waitpid(child, 0)
    os._exit(0)
"""


@pytest.mark.parametrize("fork", [False, True])
def test_the_end_of_the_program_is_the_end_of_its_engines_but_not_that_of_forked_processes(tmp_path, fork):
    code = PROGRAM.format(tests=str(Path(engine_builder.__file__).parent), place=str(tmp_path), fork=fork)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert runs_in(tmp_path / "profile.pop") == ([1, 1] if fork else [1, 1, 1])


def test_profiles_say_the_same_as_the_engine(bench, mode, tmp_path):
    engine = made(bench, mode, **{ALL: True, KEPT: 1, PLACE: str(tmp_path)})
    engine.run()
    ours, saved = engine.getReport(), load_report(tmp_path / "profile.pop")
    assert [one.name for one in saved.execution.steps] == [one.name for one in ours.execution.steps]
    for attribute in ("step", "run", "begin", "cycles"):
        np.testing.assert_array_equal(getattr(saved.execution.trace, attribute), getattr(ours.execution.trace, attribute))
    assert [str(one) for one in saved.compilation.programs] == [str(one) for one in ours.compilation.programs]
