"""Lowers the programs that decide what runs next: loops and branches as jumps, calls of functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pypoplar.compiler.control.operation_tree import Line
from pypoplar.compiler.lowering.lowering_state import Lowering
from pypoplar.compiler.lowering.rules import Around, Leaf, Rules
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


def lower_sequence(lowering: Lowering, sequence: Sequence, parts: tuple[Line, ...]) -> Iterator[Line]:
    yield from parts


def lower_repeat(lowering: Lowering, repeat: Repeat, parts: tuple[Line, ...]) -> Iterator[Line]:
    (body,) = parts
    counter = lowering.counters
    lowering.counters += 1
    times = {RepeatOperand.COUNTER: counter, RepeatOperand.TIMES: repeat.count, RepeatOperand.AFTER: NOTHING}
    start = lowering.row(Opcode.REPEAT, times)
    yield body
    lowering.row(Opcode.REPEAT_END, {RepeatEndOperand.COUNTER: counter, RepeatEndOperand.BODY: start + 1})
    lowering.rows[start][RepeatOperand.AFTER] = lowering.next_row()


def lower_repeat_while_true(lowering: Lowering, repeat: RepeatWhileTrue, parts: tuple[Line, ...]) -> Iterator[Line]:
    condition, body = parts
    start = lowering.next_row()
    yield condition
    leave = lowering.branch(repeat.predicate)
    yield body
    lowering.jump(start)
    lowering.rows[leave][BranchOperand.ROW] = lowering.next_row()


def lower_repeat_while_false(lowering: Lowering, repeat: RepeatWhileFalse, parts: tuple[Line, ...]) -> Iterator[Line]:
    condition, body = parts
    start = lowering.next_row()
    yield condition
    go_on = lowering.branch(repeat.predicate)
    leave = lowering.jump()
    lowering.rows[go_on][BranchOperand.ROW] = lowering.next_row()
    yield body
    lowering.jump(start)
    lowering.rows[leave][JumpOperand.ROW] = lowering.next_row()


def lower_if(lowering: Lowering, choice: If, parts: tuple[Line, ...]) -> Iterator[Line]:
    then, otherwise = parts
    skip = lowering.branch(choice.predicate)
    yield then
    done = lowering.jump()
    lowering.rows[skip][BranchOperand.ROW] = lowering.next_row()
    yield otherwise
    lowering.rows[done][JumpOperand.ROW] = lowering.next_row()


def lower_switch(lowering: Lowering, switch: Switch, parts: tuple[Line, ...]) -> Iterator[Line]:
    (tile, offset), size = lowering.value_place(switch.index), switch.index.elementType().size
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
        other = lowering.row(Opcode.UNLESS_EQUAL, comparison)
        yield case
        ends.append(lowering.jump())
        lowering.rows[other][UnlessEqualOperand.ROW] = lowering.next_row()
    yield from default
    for end in ends:
        lowering.rows[end][JumpOperand.ROW] = lowering.next_row()


def lower_call(lowering: Lowering, call: Call) -> None:
    if isinstance(call.function, HostFunction):
        _call_host(lowering, call, call.function)
    else:
        lowering.call(call.function)


def _call_host(lowering: Lowering, call: Call, function: HostFunction) -> None:
    name = lowering.handle(function)
    inputs = [lowering.fetch(tensor) for tensor in call.inputs]
    outputs = [lowering.internal_stream(tensor.elementType(), tensor.numElements()) for tensor in call.outputs]
    lowering.serve("host_function", name=name, inputs=inputs, outputs=outputs)
    for stream, tensor in zip(outputs, call.outputs, strict=True):
        lowering.transfer(stream, tensor, inward=True)


RULES: Rules = {
    Sequence: Around(lower_sequence),
    Repeat: Around(lower_repeat),
    RepeatWhileTrue: Around(lower_repeat_while_true),
    RepeatWhileFalse: Around(lower_repeat_while_false),
    If: Around(lower_if),
    Switch: Around(lower_switch),
    Call: Leaf(lower_call),
}
