"""Replicas that never meet are runs of one, bit for bit: memory, streams, prints, errors, cycles and reports."""

import io
import random
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import Add, Bench, shown, tiny, traced
from engine_random import ALL, PURE, Look, RandomProgram
from hypothesis import given, reject
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import AtomicStoreError, Device, Engine, PoplarError, compileGraph
from pypoplar.engine import division
from pypoplar.program import Repeat

SEEDS = st.integers(0, 2**32 - 1)
WAYS = (("interpret", 1), ("native", 1), ("native", 2))


WIDE = {"machine_host_bytes_per_second": 1e18, "streaming_memory_bytes_per_second": 1e18}
"""What replicas of a machine share is no limit here."""


def built(seed, tiles, codelets, steps, replicas):
    """A random program for so many replicas; the same one whatever their number, with values that the host writes to each."""
    device = Device.createSimulatorDevice(tiny(tiles, ipus=replicas).getTarget().evolve(**WIDE))
    made = RandomProgram(random.Random(seed), device, codelets, steps, replicas=replicas)
    for name in made.handles[:6]:
        tensor = made.variables[name]
        made.graph.createHostWrite(name, made.graph.getNonReplicatedTensor(tensor) if replicas > 1 else tensor)
    try:
        return made, compileGraph(made.graph, made.programs)
    except AtomicStoreError:
        reject()


def values_of(made, replica):
    """What the host gives a replica: streams and tensors."""
    chosen = np.random.default_rng([replica, len(made.arrays)])
    arrays = {name: chosen.permutation(array) for name, array in made.arrays.items()}
    sizes = {name: made.variables[name].elementType() for name in made.handles[:6]}
    tensors = {
        name: chosen.integers(0, 2 if type.dtype == bool else 100, made.variables[name].numElements()).astype(type.dtype)
        for name, type in sizes.items()
    }
    return arrays, tensors


def alone(made, executable, replica, mode):
    """What a run of one leaves, with the values of a replica."""
    engine = Engine(executable, mode=mode)
    arrays, tensors = values_of(made, replica)
    with patch.object(made, "arrays", arrays):
        connected = made.connect(engine)
    engine.load(made.device)
    for name, values in tensors.items():
        engine.writeTensor(name, values)
    engine.setPrintStream(out := io.StringIO())
    error = outcome_of(engine)
    return left(made, engine, 0, connected, out, one=True), error


def outcome_of(engine):
    """What the first program raises."""
    try:
        engine.run(0)
    except PoplarError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def left(made, engine, replica, arrays, out, one):
    values = {name: engine.readTensor(name) if one else engine.readTensor(name)[replica] for name in made.handles}
    for name, dtype, count in made.rows:
        for row in range(2):
            values[name, row] = np.zeros(count, dtype)
            engine.copyFromRemoteBuffer(name, values[name, row], row, replica)
    execution = engine.getReport(replica).execution
    if execution is not None and not one:
        assert execution.replicas[replica].totalCycles == execution.totalCycles
    facts = [] if execution is None else [*map(step_facts, execution.steps), traced(execution.trace)]
    printed = out.getvalue().replace(f"replica {replica}, ", "")
    return {"values": values, "arrays": arrays, "printed": printed, "facts": facts, "clock": engine._replicas[replica].state.clock}


def step_facts(step):
    numbers = (step.name, step.type, step.executions, step.sync_cycles, step.exchange_cycles, step.compute_cycles)
    return [*numbers, step.cyclesByTile, step.activeCyclesByTile, step.exchange_cycles_by_tile, step.host_bytes]


def together(made, executable, replicas, mode, threads):
    """What a run of all replicas leaves of each."""
    engine = Engine(executable, {"pypoplar.threads": threads}, mode=mode)
    given_to = [values_of(made, replica) for replica in range(replicas)]
    with patch.object(made, "arrays", {name: np.stack([arrays[name] for arrays, _ in given_to]) for name in made.arrays}):
        connected = made.connect(engine)
    engine.load(made.device)
    for name in made.handles[:6]:
        engine.writeTensor(name, np.stack([tensors[name] for _, tensors in given_to]))
    outs = [io.StringIO() for _ in range(replicas)]
    for replica, out in zip(engine._replicas, outs, strict=True):
        replica.services.stream_out = out
    error = outcome_of(engine)
    return [
        left(made, engine, replica, {name: array[replica] for name, array in connected.items()}, outs[replica], one=False)
        for replica in range(replicas)
    ], error


def hold(seed, tiles, replicas, codelets, steps):
    made, executable = built(seed, tiles, codelets, steps, replicas)
    single, own = built(seed, tiles, codelets, steps, 1)
    for mode, threads in WAYS:
        with patch.object(division, "SERIAL", 0):
            all_left, error = together(made, executable, replicas, mode, threads)
            runs = [alone(single, own, replica, mode) for replica in range(replicas)]
        failures = {replica: text for replica, (_, text) in enumerate(runs) if text}
        if failures:
            expected = {
                text.replace(" in compute set", f" of replica {replica} in compute set") for replica, text in failures.items()
            }
            expected |= {text.replace(": ", f": replica {replica}: ", 1) for replica, text in failures.items()}
            assert error in expected
        else:
            assert error == ""
            for replica, (one, _) in enumerate(runs):
                for name in one:
                    assert shown(all_left[replica][name]) == shown(one[name]), (mode, threads, replica, name)


@examples(20)
@given(SEEDS, st.integers(1, 6), st.sampled_from([1, 3, 16]), st.integers(2, 8))
def test_replicas_that_never_meet_are_runs_of_one(seed, steps, tiles, replicas):
    hold(seed, tiles, replicas, ALL, steps)


@examples(20)
@given(SEEDS, st.integers(1, 4), st.integers(2, 5))
def test_of_replicas_that_fail_the_first_fault_is_told_once(seed, steps, replicas):
    hold(seed, 4, replicas, [*PURE, Look, Look], steps)


@pytest.mark.parametrize("replicas", [2, 5])
def test_tables_and_codelets_do_not_grow_with_replicas(replicas):
    sizes = []
    for count in (1, replicas):
        bench = Bench(replicas=count)
        program = Repeat(3, bench.execute(Add, value=bench.variable("x", [0])[0], amount=1))
        engine = bench.engine(program)
        executable = engine.executable
        sizes.append(
            [len(executable.codelets), len(executable.program), executable.computes.words.tolist(), len(executable.image.data)]
        )
        first, last = engine._replicas[0].state, engine._replicas[-1].state
        assert all(first.tables[which] is last.tables[which] for which in first._program_slots)
    assert sizes[0] == sizes[1]


def test_more_threads_than_replicas_are_threads_of_each(mode):
    with patch.object(division, "SERIAL", 0):
        bench = Bench(replicas=2)
        x = bench.variable("x", np.arange(16), tile=range(16))
        compute_set = bench.graph.addComputeSet("add")
        for tile in range(16):
            bench.vertex(compute_set, Add, tile, value=x[tile], amount=tile)
        from pypoplar.program import Execute

        engine = bench.engine(Repeat(4, Execute(compute_set)), mode, {"pypoplar.threads": 4})
    assert engine._replicas[1].state.division.threads == (2 if mode == "native" else 1)
    engine.run()
    assert engine.readTensor("x").tolist() == [[5 * tile for tile in range(16)]] * 2
