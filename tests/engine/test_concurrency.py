"""Several engines at once: in threads, in forked processes, one after the other."""

import subprocess
import sys
import threading
import weakref
from pathlib import Path

import concurrent_programs
import numpy as np
import pytest
from engine_builder import Add, Bench
from unmeasured import unmeasured

from pypoplar import Engine, compileGraph
from pypoplar.program import Copy, Execute, Repeat, Sequence

PROGRAMS = Path(concurrent_programs.__file__)


def in_threads(works):
    """Do all of these at once; what one raises is raised here."""
    results, errors = [None] * len(works), []

    def run(number):
        try:
            results[number] = works[number]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if errors:
        raise errors[0]
    return results


def counting(mode, rounds, threads=0):
    """An engine that counts on many tiles, and hands its count out every round."""
    bench = Bench()
    x = bench.variable("x", np.zeros(16, np.int32), np.arange(16))
    stream = bench.graph.addDeviceToHostFIFO("out", x.elementType(), 16)
    compute_set = bench.graph.addComputeSet("count")
    for tile in range(16):
        bench.vertex(compute_set, Add, (tile + 5) % 16, value=x[tile], amount=tile)
    program = Repeat(rounds, Sequence([Execute(compute_set), Copy(x, stream)]))
    return bench.engine(program, mode, {"pypoplar.threads": threads})


@pytest.mark.parametrize("threads", [1, 2])
def test_two_engines_run_at_once_in_two_threads(mode, threads):
    rounds = 2000 if mode == "native" else 20

    def work(engine):
        seen = []
        engine.connectStreamToCallback("out", lambda chunk: seen.append(int(chunk[15])))
        engine.run()
        return seen, engine.readTensor("x")

    engines = [counting(mode, rounds, threads) for _ in range(2)]
    for seen, left in in_threads([lambda one=one: work(one) for one in engines]):
        assert seen == [15 * (number + 1) for number in range(rounds)]
        assert left.tolist() == [rounds * tile for tile in range(16)]


def test_engines_of_both_kinds_share_an_executable_at_once():
    bench = Bench()
    x = bench.variable("x", np.zeros(16, np.int32), np.arange(16))
    executable = compileGraph(bench.graph, Repeat(30, bench.execute(Add, 3, value=x[7], amount=1)))

    def work(mode):
        engine = Engine(executable, mode=mode)
        engine.load()
        for _ in range(3):
            engine.run()
        return engine.readTensor("x")[7]

    assert in_threads([lambda: work("native"), lambda: work("interpret"), lambda: work("native")]) == [90, 90, 90]


def test_threads_that_use_one_engine_take_turns(mode):
    bench = Bench()
    x = bench.variable("x", np.zeros(4, np.int32), [0, 5, 9, 9])
    engine = bench.engine(Repeat(10, bench.execute(Add, 2, value=x[1], amount=1)), mode)

    def work():
        for _ in range(10):
            engine.run()
            engine.readTensor("x")

    in_threads([work, work, work])
    assert engine.readTensor("x").tolist() == [0, 300, 0, 0]


def test_an_engine_is_compiled_in_any_thread(mode):
    def work():
        bench = Bench()
        x = bench.variable("x", [1, 2], [0, 5])
        engine = bench.engine(bench.execute(Add, 2, value=x[1], amount=5), mode)
        engine.run()
        return engine.readTensor("x").tolist()

    assert in_threads([work] * 4) == [[1, 7]] * 4


def test_what_a_thread_runs_fails_in_that_thread(mode):
    def fail(chunk):
        raise KeyError("mine")

    engines = [counting(mode, 3), counting(mode, 3)]
    engines[0].connectStreamToCallback("out", fail)
    engines[1].connectStreamToCallback("out", lambda chunk: None)
    with pytest.raises(KeyError, match="mine"):
        in_threads([engines[0].run, engines[1].run])
    assert engines[1].readTensor("x")[1] == 3


def test_an_engine_is_gone_as_soon_as_nobody_holds_it(mode):
    bench = Bench()
    x = bench.variable("x", [1, 2])
    engine = bench.engine(bench.execute(Add, value=x[1], amount=5), mode)
    engine.run()
    held = weakref.ref(engine)
    memory = weakref.ref(engine._state.memory.whole)
    del engine
    assert held() is None
    assert memory() is None


@pytest.mark.parametrize("name", ["first_engines", pytest.param("fork", marks=pytest.mark.slow), "growth"])
def test_processes_whose_threads_make_their_first_engines_that_fork_or_make_many_engines(name):
    command = [sys.executable, "-W", "error", str(PROGRAMS), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.no_cover
def test_engines_run_in_the_workers_of_pytest_xdist():
    pytest.importorskip("xdist")
    tests = Path(__file__).with_name("test_programs.py")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", str(tests), "-k", "repeat or switch"]
    project = tests.parent.parent.parent
    done = subprocess.run(command, cwd=project, env=unmeasured(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
