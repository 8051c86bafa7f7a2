"""Damage to the control program, its tree, and the lives of variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from damage import FIRST, LAST, Damage, Damages, beyond_the_end, both, given, insert, less, on, room_on, specifications, tried
from damage_of_host import last_stream, stream, users_stream
from damage_of_moves import with_an_empty_move
from executable_checks import OFF
from executable_damage import Change, Opened, more, put, put_leaf, put_row

from pypoplar.interface.opcodes import (
    BranchOperand,
    CallbackOperand,
    CallOperand,
    ClockOperand,
    ComputeOperand,
    ElapsedOperand,
    JumpOperand,
    MoveOperand,
    Opcode,
    ProgramRow,
    RepeatEndOperand,
    RepeatOperand,
    ServiceOperand,
    StreamOperand,
    UnlessEqualOperand,
)

ROWS = (
    (Opcode.REPEAT, RepeatOperand.AFTER),
    (Opcode.REPEAT_END, RepeatEndOperand.BODY),
    (Opcode.JUMP, JumpOperand.ROW),
    (Opcode.BRANCH, BranchOperand.ROW),
    (Opcode.UNLESS_EQUAL, UnlessEqualOperand.ROW),
    (Opcode.CALL, CallOperand.ROW),
)


def jumps(operation: Opcode, operand: Any) -> list[Damage]:
    """Jumps to any row, of which some are in another program or function."""
    return [Damage(name, put_row(operation, operand, target)) for name in ("control", "transfers") for target in range(45)]


def value_at(value: tuple[Opcode, Any, Any], place: Callable[[int], int], width: Any = None, size: int = 1) -> Change:
    """Where the value of a row lies, and how wide it is: a function of the bytes of its tile's memory."""
    operation, tile, offset = value

    def change(damaged: Opened) -> None:
        program = damaged.array("program")
        rows = program[:, ProgramRow.OPERATION] == operation
        number = int(np.flatnonzero(rows)[0])
        program[number, offset] = place(int(damaged.array("tile_bytes")[program[number, tile]]))
        if width is not None:
            program[number, width] = size

    return change


BRANCH = (Opcode.BRANCH, BranchOperand.TILE, BranchOperand.OFFSET)
UNLESS_EQUAL = (Opcode.UNLESS_EQUAL, UnlessEqualOperand.TILE, UnlessEqualOperand.OFFSET)
ELAPSED = (Opcode.ELAPSED, ElapsedOperand.TILE, ElapsedOperand.OFFSET)
CLOCK = (Opcode.CLOCK, ClockOperand.TILE, ClockOperand.OFFSET)
VALUES = (BRANCH, UNLESS_EQUAL, ELAPSED, CLOCK)


def step_without_compute(damaged: Opened) -> None:
    """A compute set that is executed again elsewhere is none here, and its step is none of a compute set."""
    steps = damaged.tree["steps"]
    put_row(Opcode.COMPUTE, ComputeOperand.STEP, next(i for i, step in enumerate(steps) if step["compute"] < 0), 1)(damaged)
    put_row(Opcode.COMPUTE, ComputeOperand.COMPUTE, -1, 1)(damaged)


def another_compute(damaged: Opened) -> None:
    """The last compute set is executed in the place of the first."""
    program = damaged.array("program")
    rows = np.flatnonzero(program[:, ProgramRow.OPERATION] == Opcode.COMPUTE)
    program[rows[0]] = program[rows[-1]]


def callback_of_no_stream(damaged: Opened) -> None:
    services = damaged.tree["services"]
    put_row(Opcode.CALLBACK, CallbackOperand.SERVICE, next(i for i, s in enumerate(services) if s["kind"] != "callback"))(damaged)
    put_row(Opcode.CALLBACK, CallbackOperand.STREAM, -1)(damaged)


def function_as_entry(damaged: Opened) -> None:
    """A function is one program more."""
    program = damaged.array("program")
    called = program[program[:, ProgramRow.OPERATION] == Opcode.CALL, CallOperand.ROW]
    insert(damaged, "entries", -1, called[0])
    insert(damaged, "tree.root", -1, 0)
    damaged.tree["entry_streams"].append([users_stream(damaged.tree)])


def handles_stream_in_a_program(damaged: Opened) -> None:
    """The first program takes its chunk of a stream from what is lent to a handle."""
    number = damaged.tree["reads"]["digits"]["stream"]
    put_row(Opcode.STREAM_IN, StreamOperand.STREAM, number)(damaged)
    damaged.tree["entry_streams"][0].append(number)


def tree_parent(damaged: Opened) -> None:
    """A node is below itself."""
    tree = damaged.executable().tree
    parent = int(np.flatnonzero(np.diff(tree.first_child))[0])
    damaged.array("tree", "child")[tree.first_child[parent]] = parent


def inner_step(damaged: Opened) -> None:
    """A node of others is the step that was a leaf."""
    tree = damaged.executable().tree
    steps = damaged.array("tree", "step")
    leaf, parent = int(np.flatnonzero(tree.step >= 0)[0]), int(np.flatnonzero(np.diff(tree.first_child))[0])
    steps[parent], steps[leaf] = steps[leaf], -1


def twice_a_step(damaged: Opened) -> None:
    steps = damaged.array("tree", "step")
    first, second = np.flatnonzero(steps >= 0)[:2]
    steps[second] = steps[first]


def other_texts(name: str, part: str = "tree") -> Change:
    """One text more for the nodes of the tree, or in another part."""

    def change(damaged: Opened) -> None:
        damaged.head["texts"].append([*damaged.head["texts"][damaged.tree[part][name]], "more"])
        damaged.tree[part][name] = len(damaged.head["texts"]) - 1

    return change


def stream_of(kind: str, other: str) -> Change:
    """The first stream of a kind is of another kind."""

    def change(damaged: Opened) -> None:
        next(plan for plan in damaged.tree["streams"] if plan["kind"] == kind)["kind"] = other

    return change


def empty_chunk(damaged: Opened) -> None:
    """The first stream to the device carries nothing, in a move that does nothing."""
    both(with_an_empty_move, stream(elements=0), put_row(Opcode.STREAM_IN, StreamOperand.MOVE, -1))(damaged)
    put_row(Opcode.STREAM_IN, StreamOperand.STREAM, last_stream(damaged.tree))(damaged)


def told_streams(stream: Callable[[Any], int]) -> Change:
    """The first program says that it needs one stream more."""
    return lambda damaged: damaged.tree["entry_streams"][0].append(stream(damaged.tree))


def life_before_its_begin(number: int) -> Change:
    return given(lambda damaged: put("lives.range_end", number, damaged.arrays["lives.range_begin"][number] - 1))


OF_THE_PROGRAM: Damages = {
    "program": on("control", lambda damaged: specifications(damaged, "program")[0].pop()),
    "program MOVE MOVE low": on("transfers", both(with_an_empty_move, put_row(Opcode.MOVE, MoveOperand.MOVE, -1))),
    "program STREAM_IN MOVE low": on("transfers", empty_chunk),
    "program COMPUTE COMPUTE": on("shuffled", step_without_compute),
    "computes.first_buffer executed": on("vertices", another_compute),
    "program COMPUTE STEP low": on("control", put_row(Opcode.COMPUTE, ComputeOperand.STEP, FIRST), OFF),
    "program CALLBACK STREAM": on("transfers", callback_of_no_stream),
    **{  # row -1 is in the last block
        f"program {operation.name} {operand.name} low": on("control", put_row(operation, operand, FIRST), OFF)
        for operation, operand in ROWS
    },
    "program UNLESS_EQUAL TILE low": on("control", both(room_on(15), put_row(Opcode.UNLESS_EQUAL, UnlessEqualOperand.TILE, -1))),
    "program ELAPSED TILE low": on("control", both(room_on(15), put_row(Opcode.ELAPSED, ElapsedOperand.TILE, -1))),
    "program BRANCH BYTES": on("control", value_at(BRANCH, lambda size: 0, BranchOperand.BYTES, 3)),
    "program UNLESS_EQUAL BYTES": on("control", value_at(UNLESS_EQUAL, lambda size: 0, UnlessEqualOperand.BYTES, 3)),
    **{f"program {value[0].name} OFFSET low": on("control", value_at(value, lambda size: -4), OFF) for value in (ELAPSED, CLOCK)},
    **{f"program {value[0].name} OFFSET high": on("control", value_at(value, lambda size: LAST - 3), OFF) for value in VALUES[1:]},
    **{f"program {value[0].name} end": on("control", value_at(value, lambda size: size - 4), OFF) for value in (ELAPSED, CLOCK)},
    "program BRANCH OFFSET low": on("control", value_at(BRANCH, lambda size: -1, BranchOperand.BYTES)),
    "program BRANCH OFFSET high": on("control", value_at(BRANCH, lambda size: LAST, BranchOperand.BYTES), OFF),
    "program BRANCH end": on("control", value_at(BRANCH, lambda size: size, BranchOperand.BYTES)),
    "program BRANCH alignment": on("control", value_at(BRANCH, lambda size: 2, BranchOperand.BYTES, 4)),
    "program UNLESS_EQUAL OFFSET low": on("control", value_at(UNLESS_EQUAL, lambda size: -1, UnlessEqualOperand.BYTES)),
    "program UNLESS_EQUAL end": on("control", value_at(UNLESS_EQUAL, lambda size: size, UnlessEqualOperand.BYTES)),
    "program UNLESS_EQUAL alignment": on("control", value_at(UNLESS_EQUAL, lambda size: 2, UnlessEqualOperand.BYTES, 4)),
    "program ELAPSED alignment": on("control", value_at(ELAPSED, lambda size: 2)),
    "program CLOCK alignment": on("control", value_at(CLOCK, lambda size: 2)),
    "program MOVE host": on(
        "transfers", given(lambda damaged: put_row(Opcode.MOVE, MoveOperand.MOVE, len(damaged.array("moves", "first_list")) - 2))
    ),
    "program STREAM_IN kind": on("transfers", stream_of("to device", "to host")),
    "program STREAM_OUT kind": on("transfers", stream_of("to host", "to device")),
    "program STREAM_IN lists": tried("several_ipus", [put("moves.source_ipu", place, 0) for place in range(60)]),
    "program STREAM_OUT lists": tried("several_ipus", [put("moves.target_ipu", place, 0) for place in range(60)]),
    **{
        f"program {operation} {what}": tried("transfers", [put(f"moves.{side}", place, change) for place in range(120)])
        for operation, side in (("STREAM_IN", "source"), ("STREAM_OUT", "target"))
        for what, change in (("end", more), ("chunk", less))
    },
    "program COMPUTE own step": on("control", put_row(Opcode.COMPUTE, ComputeOperand.STEP, 1)),
    "program SERVICE callback": on("control", put_row(Opcode.SERVICE, ServiceOperand.SERVICE, 1)),
    "program CALLBACK own stream": on("transfers", put_row(Opcode.CALLBACK, CallbackOperand.STREAM, 1)),
    "program begin": on("control", put("entries", 0, 1)),
    **{f"program {operation.name} leaves": jumps(operation, operand) for operation, operand in ROWS if operation != Opcode.CALL},
    "program END function": on("control", put_row(Opcode.RETURN, ProgramRow.OPERATION, Opcode.END)),
    "program RETURN function": on("control", put_row(Opcode.END, ProgramRow.OPERATION, Opcode.RETURN)),
    "program block end": on("control", put_row(Opcode.END, ProgramRow.OPERATION, Opcode.SYNC)),
    "cost.decisions": [
        Damage("priced", put_leaf("cost", "decisions", number, name, value))
        for number, name, value in (
            *((0, "row", 0), (0, "known", "guessed"), (0, "number", -1.0), (0, "number", 1e300), (0, "assumption", 3)),
            *((1, "number", 1.5), (1, "number", -0.5), (2, "assumption", -2)),
        )
    ],
    "functions": on("control", function_as_entry),
    "calls": on("control", given(lambda damaged: put_leaf("call_depth", damaged.tree["call_depth"] - 1))),
    "entries": on("control", lambda damaged: damaged.tree["entry_streams"].append([])),
    "entries low": on("control", put("entries", 0, FIRST), OFF),
    "entries handles": on("transfers", handles_stream_in_a_program),
    "entry_streams low": on("control", told_streams(lambda tree: -1)),
    "entry_streams high": on("control", told_streams(lambda tree: len(tree["streams"]))),
    "entry_streams told": on("control", put_leaf("entry_streams", 0, [])),
    "tree.name": on("control", other_texts("name")),
    "tree.detail": on("control", other_texts("detail")),
    "tree.made_at": on("control", other_texts("made_at")),
    "made_at.variables": on("control", other_texts("variables", "made_at")),
    "made_at.compute_sets": on("control", other_texts("compute_sets", "made_at")),
    "tree.child order": on("control", tree_parent),
    "tree.step leaves": on("control", inner_step),
    "tree.step once": on("control", twice_a_step),
    "lives.first_range begin": on("several_ipus", put("lives.first_range", 0, 1)),
    "lives.first_range end": on("several_ipus", put("lives.first_range", -1, more)),
    "lives.first_range rise": on("several_ipus", beyond_the_end("lives.first_range")),
    "lives.range_end order": tried("control", map(life_before_its_begin, range(6))),
    "lives.always times": tried("several_ipus", [put("lives.always", number, True) for number in range(12)]),
}
