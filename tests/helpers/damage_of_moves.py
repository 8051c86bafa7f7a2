"""Damage to moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from damage import FIRST, LAST, Damages, both, insert, on, room_on, tried
from damage_by_rule import put_flat
from executable_checks import OFF
from executable_damage import Change, Opened

from pypoplar.executable.claims import LARGEST
from pypoplar.interface.header_slots import HOST
from pypoplar.interface.opcodes import Opcode, ProgramRow, StreamOperand

SIDES = (("source", "target"), ("target", "source"))


def record(choose: Callable[[Any, int], bool], **values: Any) -> Change:
    """A change of the first record of a move between IPUs that is so; a function gets the moves and the record's number."""

    def change(damaged: Opened) -> None:
        moves = damaged.executable().moves
        pair = np.repeat(np.stack((moves.source_ipu, moves.target_ipu)), np.diff(moves.first), axis=1)
        number = next(r for r in range(len(moves.source)) if (pair[:, r] != HOST).all() and choose(moves, r))
        for name, value in values.items():
            damaged.array("moves", name)[number] = value(damaged, number) if callable(value) else value

    return change


def plain(moves: Any, number: int) -> bool:
    return bool(moves.source_list[number] < 0 and moves.target_list[number] < 0)


def source_listed(moves: Any, number: int) -> bool:
    return bool(moves.source_list[number] >= 0)


def target_listed(moves: Any, number: int) -> bool:
    return bool(moves.target_list[number] >= 0)


def beyond_the_memory(side: str) -> Callable[[Opened, int], int]:
    """Where a piece of 4 bytes ends one byte beyond the memory of the IPU."""

    def place(damaged: Opened, number: int) -> int:
        moves = damaged.executable().moves
        ipu = np.repeat(getattr(moves, f"{side}_ipu"), np.diff(moves.first))[number]
        return int(damaged.executable().layout.ipu_bytes[ipu]) - 3

    return place


def places_end(damaged: Opened, number: int) -> int:
    """Where a list of two places ends one place beyond all of them."""
    return len(damaged.arrays["moves.places"]) - 1


def column(name: str) -> Callable[[Opened, int], int]:
    """What another column has for the record."""
    return lambda damaged, number: int(damaged.array("moves", name)[number])


def with_an_empty_move(damaged: Opened) -> None:
    """One move more, which does nothing."""
    insert(damaged, "moves.first_list", -1, damaged.arrays["moves.first_list"][-1])


def falling_tiles(damaged: Opened) -> None:
    """Two records of a list are in the wrong order, by one tile."""
    moves = damaged.executable().moves
    entry = next(entry for entry in range(len(moves.source_ipu)) if moves.first[entry] + 2 == moves.first[entry + 1])
    damaged.array("moves", "tile")[moves.first[entry] :][:2] = (1, 0)


def from_host_to_host(damaged: Opened) -> None:
    """What is moved for the first stream to the device goes to the host."""
    program = damaged.array("program")
    move = program[program[:, ProgramRow.OPERATION] == Opcode.STREAM_IN, StreamOperand.MOVE][0]
    damaged.array("moves", "target_ipu")[damaged.array("moves", "first_list")[move]] = HOST


AROUND = {"count": (1 << 16) + 1, "bytes": 1, "source": 0, "target": 0}
"""So many steps of -LARGEST bytes go round in 64 bits, and end where they begin."""
PAIR = {"count": 2, "bytes": 1, "source": 0, "target": 0, "source_step": 1, "target_step": 1}

OF_MOVES: Damages = {
    "moves between hosts": on("transfers", from_host_to_host),
    "moves.source low": on("transfers", record(plain, **{**PAIR, "source": FIRST, "source_step": -8}), OFF),  # its span goes round
    "moves.target low": on("transfers", record(plain, **{**PAIR, "target": FIRST, "target_step": -8}), OFF),
    **{f"moves.{name} high": on("transfers", put_flat(f"moves.{name}", 0, LAST), OFF) for name in ("source", "target", "bytes")},
    "moves.count high": tried("shuffled", [put_flat("moves.count", place, LAST) for place in range(60)], OFF),
    "moves.tile order": on("several_ipus", falling_tiles),
    "moves.target_step zero": on("transfers", record(plain, **{**PAIR, "target_step": 0})),
    "moves.source_list alone": on(
        "shuffled", record(target_listed, source=0, source_list=column("target_list"), target_step=column("bytes"))
    ),
    "moves.source begin": on("transfers", record(plain, **{**PAIR, "source": 3, "source_step": -4})),
    "moves.target begin": on("transfers", record(plain, **{**PAIR, "target": 3, "target_step": -4})),
    "moves.source_step span": on("transfers", both(room_on(0), record(plain, **AROUND, source_step=-LARGEST, target_step=1)), OFF),
    "moves.target_step span": on("transfers", record(plain, **AROUND, source_step=0, target_step=-LARGEST), OFF),
    **{
        f"moves.{side} end": on("transfers", record(plain, **{**PAIR, "count": 1, "bytes": 4, side: beyond_the_memory(side)}))
        for side, _ in SIDES
    },
    **{
        f"moves.{side}_list high": on("transfers", record(plain, **{**PAIR, f"{side}_list": LAST, f"{other}_step": 1}), OFF)
        for side, other in SIDES
    },
    **{
        f"moves.{side}_list {what}": on("shuffled", record(listed, **values))
        for (side, other), listed in zip(SIDES, (source_listed, target_listed), strict=True)
        for what, values in (
            ("count", {"count": 1}),
            ("bytes", {"bytes": 5, f"{other}_step": 5, "source": 0, "target": 0}),
            ("gap", {f"{other}_step": 5, "source": 0, "target": 0}),
            ("end", {f"{side}_list": places_end, "count": 2}),
        )
    },
}
