"""Processes of one machine find each other's memory, and take no other for it."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from attrs import evolve

from pypoplar.engine.processes import shared_segments
from pypoplar.engine.processes.shared_segments import NO_SEGMENTS, SharedSegments
from pypoplar.engine.processes.shares import Shares

SHARES = Shares.of(4, 2)


def executable(elements, receivers):
    """One with a service that is no exchange, and two exchanges of so many floats."""
    stream = SimpleNamespace(elements=elements, type="FLOAT")
    return SimpleNamespace(services=[{"kind": "print"}, *({"sent": 0, "receivers": to} for to in receivers)], streams=[stream])


def test_only_what_crosses_processes_has_buffers_two_each_which_do_not_overlap():
    places, totals = shared_segments._places(executable(20, [(1, 2, 3, 0), (2, 3, 0, 1)]), SHARES)
    assert sorted(places) == [(1, 1), (1, 3), (2, 0), (2, 1), (2, 2), (2, 3)]
    for process in range(2):
        of_process = [begin for (_, sender), begin in places.items() if SHARES.holder(sender) == process]
        begins = sorted(begin + half for begin in of_process for half in (0, 128))  # 80 bytes in lines of 64
        assert begins[0] >= shared_segments.TOKEN
        assert np.diff([*begins, totals[process]]).tolist() == [128] * 6


def test_exchanges_of_nothing_have_no_segment():
    assert shared_segments._places(executable(0, [(1, 2, 3, 0)]), SHARES) == ({}, {})
    assert NO_SEGMENTS.buffers(SHARES, 1, 1, 2, np.zeros(0, np.float32)) is None


@pytest.fixture
def own():
    found = shared_segments._new_segment(256)
    if found is None:
        pytest.skip("the system has no memory that processes share")
    yield found
    os.close(found.told.file)


def test_what_is_written_into_a_segment_is_read_by_who_has_found_it(own):
    read = shared_segments._read_segment(own.told, own.told, 256)
    own.bytes[64:128] = np.arange(64)
    assert read[64:128].tolist() == list(range(64))
    assert not read.flags.writeable


def test_what_is_on_another_machine_or_is_another_file_is_not_taken_for_the_segment(own):
    for other in (
        evolve(own.told, machine="another"),
        evolve(own.told, token=bytes(16)),
        evolve(own.told, file=own.told.file + 1000),
        evolve(own.told, process=2**22 + 1),
    ):
        assert shared_segments._read_segment(own.told, other, 256) is None
    assert shared_segments._read_segment(own.told, own.told, 320) is None


def test_where_the_system_has_no_such_memory_there_is_no_segment(monkeypatch, tmp_path):
    monkeypatch.setattr(shared_segments, "BOOT", tmp_path / "nothing")
    assert shared_segments._new_segment(256) is None


def test_buffers_are_those_of_the_senders_process_if_the_receivers_reads_it():
    whole = {process: np.zeros(512, np.uint8) for process in range(2)}
    segments = SharedSegments({(3, 1): 64, (3, 2): 64}, whole, frozenset({(1, 0)}))
    like = np.zeros(20, np.float32)
    first, second = segments.buffers(SHARES, 3, 1, 2, like)
    first[:], second[:] = 1, 2
    assert whole[0].view(np.float32)[16:36].tolist() == [1] * 20
    assert whole[0].view(np.float32)[48:68].tolist() == [2] * 20
    assert (first.shape, first.dtype) == (like.shape, like.dtype)
    assert segments.buffers(SHARES, 3, 2, 1, like) is None  # process 0 does not read the other
    assert segments.buffers(SHARES, 4, 1, 2, like) is None
