"""Replicas of several processes are those of one: results, cycles, bytes, exchanges, errors, bit for bit."""

import pytest
from engine_builder import shown
from hypothesis import given, reject
from hypothesis import strategies as st
from law_examples import examples
from mpi_launching import Ranks, require_mpi
from spread_cases import Case, outcome

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.slow)])
def ranks(request):
    require_mpi()
    found = Ranks(request.param)
    yield request.param, found
    found.close()


@examples(15, fewest=5)  # each costs two processes and the test half a second
@given(SEEDS, st.integers(1, 4), st.sampled_from(["native", "interpret"]), st.integers(1, 2))
def test_replicas_of_several_processes_are_those_of_one(ranks, seed, share, mode, machines):
    processes, workers = ranks
    replicas = max(2, min(8, share * processes))
    expected = outcome(Case(seed, replicas))
    if expected is None:
        reject()
    workers.begin(Case(seed, replicas, mode, machines=machines))
    found = workers.outcome()
    assert len(found) == replicas
    for replica, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert one.keys() == other.keys()
        for what in one:
            assert shown(other[what]) == shown(one[what]), (replica, what)
