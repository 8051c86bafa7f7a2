"""Programs for `tests/engine/test_interrupts.py`, each run in a process of its own: they are interrupted and go on.

    python interrupted_programs.py NAME MODE

Signals come from a timer, and again and again: where in the program the first arrives does not matter.
"""

import io
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from engine_builder import Add, Bench, Less, tiny
from engine_random import ALL, RandomProgram

from pypoplar import (
    AtomicStoreError,
    Engine,
    InOut,
    Input,
    MultiVertex,
    SupervisorVertex,
    Vector,
    Vertex,
    compileGraph,
    ipu,
)
from pypoplar.engine import division
from pypoplar.program import Copy, CrossReplicaCopy, Execute, Repeat, RepeatWhileTrue, Sequence
from pypoplar.types import FLOAT, INT

FOREVER = 2**40


class Increment(Vertex):
    values: InOut[Vector[INT]]

    def compute(self) -> None:
        for i in range(len(self.values)):
            self.values[i] += 1


class Longer(Vertex):
    """Vertices that run for years, each in another shape of loop."""

    n: Input[INT]
    x: InOut[Vector[INT]]
    y: InOut[FLOAT]


class Nested(Longer):
    def compute(self) -> None:
        for i in range(self.n):
            for j in range(self.n):
                self.x[0] += i ^ j


class NestedWorkers(MultiVertex):
    n: Input[INT]
    x: InOut[Vector[INT]]
    y: InOut[FLOAT]

    def compute(self, worker: int) -> None:
        for i in range(self.n):
            for j in range(self.n):
                self.x[worker] += i ^ j


class NestedSupervisor(SupervisorVertex):
    n: Input[INT]
    x: InOut[Vector[INT]]
    y: InOut[FLOAT]

    def compute(self) -> None:
        for i in range(self.n):
            for j in range(self.n):
                self.x[0] += i ^ j


class Branching(Longer):
    def compute(self) -> None:
        for i in range(self.n):
            for j in range(self.n):
                if self.x[j & 3] > i:
                    self.x[j & 3] -= 1


class Known(Longer):
    def compute(self) -> None:
        for _ in range(100000):
            for _ in range(100000):
                for i in range(4):
                    self.x[i] += self.x[i] & 3


class Sum(Longer):
    """Eight run side by side."""

    def compute(self) -> None:
        total = 0.0
        for i in range(self.n):
            total += 1.0 / (1.0 + float(i))
        self.y = total


class Sums(Longer):
    """Eight rounds run side by side."""

    def compute(self) -> None:
        for i in range(self.n):
            total = 0.0
            for j in range(self.n):
                total += 1.0 / (1.0 + float(j))
            self.x[i & 3] = int(total)


class Waiting(Longer):
    def compute(self) -> None:
        while self.x[0] >= 0:
            for i in range(self.n):
                self.x[1] ^= i


class Printing(Longer):
    def compute(self) -> None:
        for i in range(self.n):
            ipu.debug_print("round", i)


def interrupted(work: Callable[[], object], seconds: float = 0.05) -> None:
    """Do something that has no end, until an interrupt arrives."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)  # on a busy machine it may go off at once
        work()
    except KeyboardInterrupt:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    raise AssertionError("it ended by itself")


def loop(mode: Any) -> None:
    """A Repeat that would run for years; the signal is the one of Ctrl-C."""
    bench = Bench()
    x = bench.variable("x", np.zeros(64, np.int32), np.arange(64) % 16)
    step = bench.execute(Increment, 3, values=x)
    engine = bench.engine([Repeat(FOREVER, step), step], mode)

    def interrupt_once_it_runs() -> None:
        while not engine._state.executed_steps():
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt_once_it_runs, daemon=True).start()
    try:
        engine.run(0)
    except KeyboardInterrupt:
        print("interrupted")
    done = engine.readTensor("x")
    assert done.min() > 0
    engine.run(1)
    assert engine.readTensor("x").min() >= done.min()
    engine.load()
    engine.run(1)
    assert (engine.readTensor("x") == 1).all()
    execution = engine.getReport().execution
    assert execution is not None
    assert execution.programs == ("program 1",)


def condition(mode: Any) -> None:
    """A loop whose condition never becomes false."""
    bench = Bench()
    x, flag = bench.variable("x", 0), bench.variable("flag", True, 4)
    body = bench.execute(Add, value=x, amount=0)
    test = bench.execute(Less, value=x, out=flag, limit=1)
    engine = bench.engine([RepeatWhileTrue(test, flag, body), body], mode)
    for _ in range(3):
        interrupted(engine.run)
    engine.run(1)


def callback(mode: Any) -> None:
    """A callback that waits for something that never comes."""
    bench = Bench()
    x = bench.variable("x", [0, 0])
    stream = bench.graph.addHostToDeviceFIFO("in", INT, 2)
    engine = bench.engine(Sequence([bench.execute(Add, value=x[0], amount=1), Copy(stream, x)]), mode)
    engine.connectStreamToCallback("in", lambda chunk: threading.Event().wait(60))
    for _ in range(3):
        interrupted(engine.run)
    engine.connectStreamToCallback("in", lambda chunk: [5, 6])
    engine.run()
    assert engine.readTensor("x").tolist() == [5, 6]


def anywhere(mode: Any) -> None:
    """Random programs on several threads, interrupted at random times, compute right afterwards."""
    numbers = random.Random(11)
    for _ in range(25):
        program = RandomProgram(random.Random(numbers.getrandbits(32)), tiny(numbers.choice([1, 3, 16])), ALL, 5, clock=False)
        try:
            executable = compileGraph(
                program.graph, [Sequence(program.programs), Repeat(FOREVER, Sequence([Sequence(), *program.programs]))]
            )
        except AtomicStoreError:
            continue
        left = []
        for threads in (1, 2, 3):
            with patch.object(division, "SERIAL", numbers.choice([0, 3000])):
                engine = Engine(executable, {"pypoplar.threads": threads}, mode=mode)
            engine.setPrintStream(io.StringIO())
            program.connect(engine)
            engine.load()
            for _ in range(4):
                interrupted(partial(engine.run, 1), numbers.uniform(0.0005, 0.01))
            engine.load()
            engine.run(0)
            left.append([engine.readTensor(name).tobytes() for name in program.variables])
        assert left[0] == left[1] == left[2]


def replicas(mode: Any) -> None:
    """Replicas that meet without end, or never, interrupted at random times, compute right afterwards."""
    numbers = random.Random(5)
    for threads in (1, 2, 5):
        bench = Bench(replicas=3)
        x = bench.variable("x", [1, 2])
        add = bench.execute(Add, value=x[0], amount=1)
        copy = CrossReplicaCopy(x, x, {0: 1, 1: 2, 2: 0})
        programs = [Sequence([add, copy]), Repeat(FOREVER, Sequence([add, copy])), Repeat(FOREVER, add)]
        engine = bench.engine(programs, mode, {"pypoplar.threads": threads})
        for program in (1, 2) * 4:
            interrupted(partial(engine.run, program), numbers.uniform(0.0005, 0.05))
        engine.load()
        engine.run(0)
        assert engine.readTensor("x").tolist() == [[2, 2]] * 3


LOOPS = (Nested, NestedWorkers, NestedSupervisor, Branching, Known, Sum, Sums, Waiting, Printing)
CHECKS: tuple[dict[str, Any], ...] = (
    {},
    {"pypoplar.races": "elements"},
    {"profiler.includeFlopEstimates": True},
    {"debug.floatPointOpException": True},
)


def vertices(mode: Any) -> None:
    """Vertices without end, of every kind, with everything that is looked for besides; without a cycle limit."""
    for codelet in LOOPS:
        for checks in CHECKS:
            bench = Bench()
            n = bench.variable("n", 2**31 - 1)
            x, y = bench.variable("x", np.ones((17, 6), np.int32), 3), bench.variable("y", np.zeros(17), 3)
            compute_set = bench.graph.addComputeSet("longer")
            for number in range(17):
                bench.vertex(compute_set, codelet, 3, n=n, x=x[number], y=y[number])
            step = bench.execute(Increment, 3, values=x.flatten())
            engine = bench.engine([Execute(compute_set), step], mode, {"pypoplar.cycle_limit": 0, **checks})
            engine.setPrintStream(io.StringIO())
            interrupted(lambda: engine.run(0), 0.02)
            engine.load()
            engine.run(1)
            assert (engine.readTensor("x") == 2).all()
            if codelet not in (Known, Waiting):
                engine.writeTensor("n", 9)
                engine.run(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    globals()[sys.argv[1]](sys.argv[2])
    print("done")
