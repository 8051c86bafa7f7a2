"""Processes that come to different things, or one of which has failed: all of them learn of it, and raise the same."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from attrs import evolve

from pypoplar.engine.processes.errors_told import packed_error, rebuilt_error
from pypoplar.engine.processes.peers import Peers, together
from pypoplar.engine.replicas.meeting import Failure
from pypoplar.errors import ApplicationRuntimeError

HOST = -5  # the place of what hosts do together; services of a run are from 0 on, beginnings of programs from `BEGINS` down
BEGINS = -10  # the place of the beginning of program 0; that of program 1 is one less, and so on


def gathered(peers: Peers, told: Any, kind: str, doing: Callable[[], str]) -> list[Any]:
    """What each process tells, in their order; an error where others have come to something else than this `kind` of call."""
    mark = zlib.crc32(kind.encode())
    failed, _, high, low, most, least = peers.greatest((0, 0, HOST, -HOST, mark, -mark), doing)
    if failed:
        raise first_failure(peers, None)
    if high != -low or most != -least:
        raise different_places(peers, doing())
    return peers.gather(told, doing)


def different_places(peers: Peers, place: str) -> BaseException:
    """The error of processes that have come to different places, of which this one is at `place`; all of them ask for it."""
    places = peers.gather(place, lambda: "the comparison of what instances do")
    other = next((process for process, where in enumerate(places) if where != places[0]), 0)
    return together(
        ApplicationRuntimeError(
            f"{peers.name(0)} has come to {places[0]}, and {peers.name(other)} to {places[other]}: all instances run the same "
            "programs, and call the same, in the same order"
        ),
        other,
    )


def first_failure(peers: Peers, own: Failure | None) -> BaseException:
    """The first failure of all processes as an error, given that of this one; all of them ask for it."""
    told = peers.gather(
        None if own is None else (evolve(own, fault=None, error=None), packed_error(own.error)),
        lambda: "the comparison of what instances have",
    )
    process, found = min(((process, one) for process, one in enumerate(told) if one is not None), key=lambda one: one[1][0])
    if own is not None and process == peers.rank and own.error is not None:
        return together(own.error, process)
    return together(rebuilt_error(found[1], peers.name(process)), process)
