"""Flattens the programs that decide what runs next: loops and branches as jumps, calls of functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pypoplar.compiler.control.operation_tree import Line
from pypoplar.compiler.flattening.flattening_state import Flattening
from pypoplar.compiler.flattening.rules import Around, Leaf, Rules
from pypoplar.graph.host_links import HostFunction
from pypoplar.interface.layout import NOTHING
from pypoplar.interface.opcodes import (
    BranchOperand,
    JumpOperand,
    Opcode,
    RepeatEndOperand,
    RepeatOperand,
    UnlessEqualOperand,
)
from pypoplar.program.branches import If, Switch
from pypoplar.program.calling import Call
from pypoplar.program.loops import Repeat, RepeatWhileFalse, RepeatWhileTrue
from pypoplar.program.sequence import Sequence


def flatten_sequence(flattening: Flattening, sequence: Sequence, parts: tuple[Line, ...]) -> Iterator[Line]:
    yield from parts


def flatten_repeat(flattening: Flattening, repeat: Repeat, parts: tuple[Line, ...]) -> Iterator[Line]:
    (body,) = parts
    counter = flattening.counters
    flattening.counters += 1
    times = {RepeatOperand.COUNTER: counter, RepeatOperand.TIMES: repeat.count, RepeatOperand.AFTER: NOTHING}
    start = flattening.row(Opcode.REPEAT, times)
    yield body
    flattening.row(Opcode.REPEAT_END, {RepeatEndOperand.COUNTER: counter, RepeatEndOperand.BODY: start + 1})
    flattening.rows[start][RepeatOperand.AFTER] = flattening.next_row()


def flatten_repeat_while_true(flattening: Flattening, repeat: RepeatWhileTrue, parts: tuple[Line, ...]) -> Iterator[Line]:
    condition, body = parts
    start = flattening.next_row()
    yield condition
    leave = flattening.branch(repeat.predicate)
    yield body
    flattening.jump(start)
    flattening.rows[leave][BranchOperand.ROW] = flattening.next_row()


def flatten_repeat_while_false(flattening: Flattening, repeat: RepeatWhileFalse, parts: tuple[Line, ...]) -> Iterator[Line]:
    condition, body = parts
    start = flattening.next_row()
    yield condition
    go_on = flattening.branch(repeat.predicate)
    leave = flattening.jump()
    flattening.rows[go_on][BranchOperand.ROW] = flattening.next_row()
    yield body
    flattening.jump(start)
    flattening.rows[leave][JumpOperand.ROW] = flattening.next_row()


def flatten_if(flattening: Flattening, choice: If, parts: tuple[Line, ...]) -> Iterator[Line]:
    then, otherwise = parts
    skip = flattening.branch(choice.predicate)
    yield then
    done = flattening.jump()
    flattening.rows[skip][BranchOperand.ROW] = flattening.next_row()
    yield otherwise
    flattening.rows[done][JumpOperand.ROW] = flattening.next_row()


def flatten_switch(flattening: Flattening, switch: Switch, parts: tuple[Line, ...]) -> Iterator[Line]:
    (tile, offset), size = flattening.value_place(switch.index), switch.index.elementType().size
    ends = []
    cases, default = parts[: len(switch.cases)], parts[len(switch.cases) :]
    for (value, _), case in zip(switch.cases, cases, strict=True):
        signed = int(np.array(value).astype(np.int64).astype(np.int32)) if size == 4 else value
        comparison = {
            UnlessEqualOperand.TILE: tile,
            UnlessEqualOperand.OFFSET: offset,
            UnlessEqualOperand.BYTES: size,
            UnlessEqualOperand.VALUE: signed,
            UnlessEqualOperand.ROW: NOTHING,
        }
        other = flattening.row(Opcode.UNLESS_EQUAL, comparison)
        yield case
        ends.append(flattening.jump())
        flattening.rows[other][UnlessEqualOperand.ROW] = flattening.next_row()
    yield from default
    for end in ends:
        flattening.rows[end][JumpOperand.ROW] = flattening.next_row()


def flatten_call(flattening: Flattening, call: Call) -> None:
    if isinstance(call.function, HostFunction):
        _call_host(flattening, call, call.function)
    else:
        flattening.call(call.function)


def _call_host(flattening: Flattening, call: Call, function: HostFunction) -> None:
    name = flattening.handle(function)
    inputs = [flattening.fetch(tensor) for tensor in call.inputs]
    outputs = [flattening.internal_stream(tensor.elementType(), tensor.numElements()) for tensor in call.outputs]
    flattening.serve("host_function", name=name, inputs=inputs, outputs=outputs)
    for stream, tensor in zip(outputs, call.outputs, strict=True):
        flattening.transfer(stream, tensor, inward=True)


RULES: Rules = {
    Sequence: Around(flatten_sequence),
    Repeat: Around(flatten_repeat),
    RepeatWhileTrue: Around(flatten_repeat_while_true),
    RepeatWhileFalse: Around(flatten_repeat_while_false),
    If: Around(flatten_if),
    Switch: Around(flatten_switch),
    Call: Leaf(flatten_call),
}
