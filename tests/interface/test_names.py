"""Rows, services and sources that name what is not there are refused, and code that knows the interface names what it reaches."""

import ast
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import tiny

import pypoplar
from pypoplar import FLOAT, Engine, Graph, PoplarRuntimeError, compileGraph
from pypoplar.engine import division
from pypoplar.interface.opcodes import OPERANDS, CallOperand, JumpOperand, Opcode, ProgramRow, program_row
from pypoplar.interface.service_kinds import ServiceKind, service_of
from pypoplar.program import Copy, Repeat, Sequence

PACKAGE = Path(pypoplar.__file__).parent
UNITS = ("barrier", "driver", "general_tiles", "superstep", "tile_account")
# Operations of native code on the header, with the argument that is one of its slots; on tables and records, with the word in it.
SLOT_OF = {"table": 1, "get": 1, "put": 1, "add": 1, "record": 1}
WORD_OF = {"get": 2, "put": 2, "add": 2, "word": 1, "invariant_word": 1, "put_word": 1, "word_address": 1}
RECORDS = {"row", "rows", "context", "contexts", "header", "words", "mark", "event", "shared", "state", "fault", "entry"}
ROOMS = ("codelet/llvm", "codelet/python", "compiler/flattening", "engine", "executable/verify")


@pytest.mark.parametrize("mode", ["native", "interpret"])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_operation_that_no_engine_knows_ends_the_run_as_an_error(mode, threads):
    device = tiny(2)
    graph = Graph(device.getTarget())
    first, second = (graph.addVariable(FLOAT, [4], name) for name in ("first", "second"))
    graph.setTileMapping(first, 0)
    graph.setTileMapping(second, 1)
    executable = compileGraph(graph, Sequence([Copy(first, second)]))
    row = int(np.flatnonzero(executable.program[:, ProgramRow.OPERATION] == Opcode.MOVE)[0])
    executable.program[row, ProgramRow.OPERATION] = 77
    with patch.object(division, "SERIAL", 0):
        engine = Engine(executable, {"pypoplar.threads": threads}, mode=mode)
    engine.load(device)
    with pytest.raises(PoplarRuntimeError, match=f"row {row} of the program has the operation 77, which no engine knows"):
        engine.run(0)


@pytest.mark.parametrize("row", [-1, 3, 10**7])
def test_the_interpreter_does_not_leave_the_program(row):
    device = tiny(1)
    graph = Graph(device.getTarget())
    executable = compileGraph(graph, Repeat(2, Sequence()))
    assert len(executable.program) == 3
    executable.program[0] = program_row(Opcode.JUMP, {JumpOperand.ROW: row})
    engine = Engine(executable, mode="interpret")
    engine.load(device)
    with pytest.raises(PoplarRuntimeError, match=f"the program goes on at row {row}: it has the rows 0 to 2"):
        engine.run(0)


def test_a_row_has_its_operations_operands_and_no_others():
    for operation, operands in OPERANDS.items():
        row = program_row(operation, {operand: 7 + number for number, operand in enumerate(operands)})
        assert row[ProgramRow.OPERATION] == operation
        assert [row[operand] for operand in operands] == list(range(7, 7 + len(operands)))
    with pytest.raises(ValueError, match=r"JUMP has other operands than CallOperand\.ROW"):
        program_row(Opcode.JUMP, {CallOperand.ROW: 1})
    with pytest.raises(ValueError, match="JUMP has other operands than none"):
        program_row(Opcode.JUMP, {})
    with pytest.raises(ValueError, match="there is no operation 99"):
        program_row(99, {})
    with pytest.raises(ValueError, match=r"END has other operands than JumpOperand\.ROW"):
        program_row(Opcode.END, {JumpOperand.ROW: 1})


def test_a_service_is_told_what_its_kind_has_to_be_told():
    assert service_of(ServiceKind.CALLBACK, stream=3) == {"kind": "callback", "stream": 3}
    with pytest.raises(ValueError, match="the service seed: modifier surplus or missing"):
        service_of(ServiceKind.SEED, stream=3)


def calls_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node


@pytest.mark.parametrize("unit", UNITS)
def test_the_driver_names_every_slot_and_every_word(unit):
    """Index 0 is allowed: the first entry of a list."""
    path = PACKAGE / "engine" / "native" / f"{unit}.py"
    for name, call in calls_of(path):
        if name in SLOT_OF:
            assert ast.unparse(call.args[SLOT_OF[name]]).startswith("Slot."), (unit, ast.unparse(call))
        if name in WORD_OF:
            numbers = [one.value for one in ast.walk(call.args[WORD_OF[name]]) if isinstance(one, ast.Constant)]
            assert not set(numbers) - {0, 1}, (unit, ast.unparse(call))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            assert "8" not in (ast.unparse(node.left), ast.unparse(node.right)), (unit, ast.unparse(node))


@pytest.mark.parametrize("room", ROOMS)
def test_no_record_is_reached_by_a_bare_number(room):
    for path in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in RECORDS:
                places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                for place in places:
                    bare = isinstance(place, ast.Constant) and isinstance(place.value, int)
                    assert not bare, (path.name, node.lineno, ast.unparse(node))
