"""Both engines, and any number of threads, give the same bits, texts, cycles and errors."""

import io
import random
from unittest.mock import patch

import pytest
from engine_builder import WAYS, shown, tiny
from engine_outcome import outcome
from engine_random import ALL, PURE, Look, RandomProgram
from hypothesis import given, reject
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import AtomicStoreError, Executable, IPUModel, compileGraph
from pypoplar.engine import division


def compiled(made, options=None):
    try:
        return compileGraph(made.graph, made.programs, options)
    except AtomicStoreError:
        reject()


def same_everywhere(made, options=None):
    """Run in every way and compare; IEEE arithmetic leaves open which bits a NaN made of two has, and LLVM makes use of that."""
    executable = compiled(made, options)
    outcomes = []
    for mode, threads in WAYS:
        with patch.object(division, "SERIAL", 0):
            outcomes.append(outcome(made, executable, mode, {**(options or {}), "pypoplar.threads": threads}))
    interpreted, first, *others = outcomes
    for name in first:
        assert shown(first[name], nan_bits=False) == shown(interpreted[name], nan_bits=False), name
        for threads, other in enumerate(others, 2):
            assert shown(other[name]) == shown(first[name]), (threads, name)
    return interpreted


SEEDS = st.integers(0, 2**32 - 1)
FAILING = [*PURE, Look, Look]


@examples(40)
@given(SEEDS, st.integers(1, 8), st.sampled_from([1, 2, 3, 16]))
def test_random_programs_are_the_same_in_every_way_of_running_them(seed, steps, tiles):
    same_everywhere(RandomProgram(random.Random(seed), tiny(tiles), ALL, steps))


@examples(30)
@given(SEEDS, st.integers(1, 8), st.sampled_from([1, 2, 3, 16]))
def test_random_programs_are_the_same_in_every_way_with_the_timing_of_hardware(seed, steps, tiles):
    same_everywhere(RandomProgram(random.Random(seed), tiny(tiles, "hardware"), [*ALL, Look], steps))


@examples(30)
@given(SEEDS, st.integers(1, 4))
def test_random_programs_that_fail_are_the_same_too(seed, steps):
    same_everywhere(RandomProgram(random.Random(seed), tiny(4), FAILING, steps))


@pytest.mark.parametrize(
    "options",
    [
        {"pypoplar.races": "elements"},
        {"pypoplar.uninitialised": "error"},
        {"debug.floatPointOpException": True},
        {"pypoplar.cycle_limit": 900},
        {"profiler.includeFlopEstimates": True},
        {
            "pypoplar.uninitialised": "error",
            "debug.floatPointOpException": True,
            "pypoplar.races": "elements",
            "profiler.includeFlopEstimates": True,
        },
    ],
    ids=lambda one: "-".join(name.rpartition(".")[2] for name in one),
)
@examples(8)
@given(seed=SEEDS, steps=st.integers(1, 6))
def test_random_programs_are_the_same_with_every_option(options, seed, steps):
    same_everywhere(RandomProgram(random.Random(seed), tiny(5), [*ALL, Look], steps), options)


@examples(30)
@given(SEEDS, st.integers(1, 6))
def test_the_order_in_which_vertices_are_added_changes_no_result(seed, steps):
    outcomes = []
    for order in (None, lambda number: -number, lambda number: number * 7 % 5):
        made = RandomProgram(random.Random(seed), tiny(3), PURE, steps, order=order, clock=False)
        outcomes.append(outcome(made, compiled(made), "native", {}))
    for other in outcomes[1:]:
        for name in ("values", "printed", "errors"):
            assert shown(other[name], nan_bits=False) == shown(outcomes[0][name], nan_bits=False), name


@examples(20)
@given(SEEDS, st.integers(1, 6))
def test_the_timing_changes_no_result(seed, steps):
    outcomes = []
    for timing in ("model", "hardware"):
        made = RandomProgram(random.Random(seed), tiny(3, timing), PURE, steps, clock=False)
        outcomes.append(outcome(made, compiled(made), "native", {}))
    for name in ("values", "printed", "errors"):
        assert shown(outcomes[1][name]) == shown(outcomes[0][name]), name


@examples(20)
@given(SEEDS, st.integers(1, 6))
def test_races_judged_by_elements_change_no_result(seed, steps):
    outcomes = []
    for races in ("regions", "elements"):
        made = RandomProgram(random.Random(seed), tiny(3), ALL, steps)
        outcomes.append(outcome(made, compiled(made, {"pypoplar.races": races}), "native", {"pypoplar.races": races}))
    assert shown(outcomes[1], nan_bits=False) == shown(outcomes[0], nan_bits=False)


@examples(20)
@given(SEEDS, st.integers(1, 6), st.sampled_from([{}, {"pypoplar.races": "elements"}]))
def test_an_executable_that_was_saved_and_loaded_does_the_same(seed, steps, options):
    made = RandomProgram(random.Random(seed), tiny(3), [*ALL, Look], steps)
    executable = compiled(made, options)
    file = io.BytesIO()
    executable.save(file)
    file.seek(0)
    loaded = Executable.load(file)
    for mode in ("native", "interpret"):
        assert shown(outcome(made, loaded, mode, options)) == shown(outcome(made, executable, mode, options))


@examples(4)
@given(SEEDS)
def test_a_whole_bow_computes_the_same_on_any_number_of_threads(seed):
    made = RandomProgram(random.Random(seed), IPUModel().createDevice(), ALL, 5, size=400)
    same_everywhere(made)
