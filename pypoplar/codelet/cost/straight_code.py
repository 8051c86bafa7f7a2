"""Instructions of operations, and of the typed form's other straight statements."""

from __future__ import annotations

from typing import assert_never

from pypoplar.codelet.cost.affine_index import AffineIndex
from pypoplar.codelet.cost.block_prices import Unpriced
from pypoplar.codelet.cost.constant_divisors import division_by_constant
from pypoplar.codelet.cost.constants import is_folded
from pypoplar.codelet.cost.instructions import Instruction, Pipe, Register
from pypoplar.codelet.cost.memory_code import load, member, row, scratch, set_length, slice_of, store, view
from pypoplar.codelet.cost.selection import Known, Selection, file_of, words_of
from pypoplar.codelet.cost.word_pairs import pair_slots
from pypoplar.codelet.ir.typed import (
    Apply,
    Breakpoint,
    Check,
    DebugPrint,
    Length,
    Literal,
    Load,
    Member,
    Row,
    Scratch,
    Slice,
    Special,
    Store,
    Straight,
    ViewAs,
)
from pypoplar.codelet.operations.device_operation import TypedOperation
from pypoplar.codelet.operations.registers import WIDTH
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.codelet.operations.tile_readings import WORKER_COUNT, reading

_MEMORY_WAY = 2  # slots from the main to the auxiliary registers, which is an instruction of its own here


def select(selection: Selection, statement: Straight) -> None:  # noqa: C901, PLR0912 - an arm for each statement
    """Make the instructions of a statement."""
    match statement:
        case Apply():
            _apply(selection, statement)
        case Load():
            load(selection, statement)
        case Store():
            store(selection, statement)
        case Length():
            set_length(selection, statement)
        case Row():
            row(selection, statement)
        case Slice():
            slice_of(selection, statement)
        case Member():
            member(selection, statement)
        case ViewAs():
            view(selection, statement)
        case Scratch():
            scratch(selection, statement)
        case Check():
            _check(selection, statement)
        case Special():
            _special(selection, statement)
        case DebugPrint() | Breakpoint():
            return
        case _:
            assert_never(statement)


def _check(selection: Selection, statement: Check) -> None:
    known = selection.known(statement.condition)
    if isinstance(known, Register):
        reads = (selection.moved(known, statement.where, Pipe.MAIN),)
        branch = Instruction("brz", Pipe.MAIN, statement.where, reads=reads, call=True, needed=True)
        selection.numbering.run.instructions.append(branch)
    selection.numbering.may_end()


def _special(selection: Selection, statement: Special) -> None:
    row = reading(statement.name)
    try:
        slots = row.slots(selection.architecture)
    except LookupError as problem:
        raise Unpriced(str(problem), statement.where) from problem
    result = Register(file_of(row.result), words_of(row.result), len(selection.numbering.loops))
    instruction = Instruction(statement.name, Pipe.MAIN, statement.where, result, slots=slots, needed=True)
    selection.numbering.run.instructions.append(instruction)
    selection.locals[statement.target.name] = result
    if statement.name == WORKER_COUNT:
        selection.constants[result] = selection.workers


# Operations


def _apply(selection: Selection, statement: Apply) -> None:
    row = typed_operation(statement.operation)
    known = [selection.known(argument) for argument in statement.arguments]
    try:
        price = row.price(selection.architecture)
    except LookupError as problem:
        raise Unpriced(str(problem), statement.where) from problem
    value: Known | None = _constant(row, known)
    if value is None and price.slots == 0:  # another name for a register
        value = known[0] if isinstance(known[0], Register) else Literal(known[0].value, statement.target.type)
    selection.locals[statement.target.name] = value or _computed(selection, statement, row, known)


def _constant(row: TypedOperation, known: list[Known]) -> Literal | None:
    """The result of an operation on constants alone, which the compiler works out."""
    values = [value.value for value in known if isinstance(value, Literal)]
    if len(values) < len(known) or (row.fault is not None and row.fault(*(int(value) for value in values))):
        return None
    try:
        return Literal(row.compute(*values), row.result)
    except (ArithmeticError, ValueError):
        return None


def _computed(selection: Selection, statement: Apply, row: TypedOperation, known: list[Known]) -> Register:
    price, where = row.price(selection.architecture), statement.where
    floats = row.result[0] == "f" or any(type[0] == "f" for type in row.arguments)
    division = division_by_constant(selection, row, known, where)
    software = price.software and division is None
    pipe = Pipe.AUXILIARY if floats and not software else Pipe.MAIN
    slots = pair_slots(row) or price.slots if division is None else division.slots
    reads = [] if division is None else list(division.reads)
    for position, (type, value) in enumerate(zip(row.arguments, known, strict=True)):
        if division is not None and position == 1:
            continue
        if isinstance(value, Literal) and is_folded(row.name, value, position):
            continue
        register = selection.in_register(value, where, file_of(type) if software else pipe)
        reads += [] if register is None else [register]
        slots -= _MEMORY_WAY if pipe is Pipe.AUXILIARY and type in WIDTH else 0
    slots -= pipe is Pipe.AUXILIARY and row.result in WIDTH  # the move to the main registers is one as well
    index = _index(selection, statement, known)
    key = (row.name, *map(_key, known)) if index is None else ("sum", index.terms, index.constant)
    instruction = Instruction(row.name, pipe, where, reads=tuple(reads), slots=max(1, slots), call=software)
    file = file_of(row.result) if software else pipe
    result = selection.numbering.value(key, instruction, file, words=words_of(row.result))
    if index is not None:
        selection.indices[result] = index
    constants = [selection.constant(value) for value in known]
    if row.result in WIDTH and not software and None not in constants:
        selection.constants[result] = int(row.compute(*constants))
    most = _most(selection, row, known)
    if most is not None:
        selection.most[result] = most
    return result


def _key(value: Known) -> object:
    return (value.type, repr(value.value)) if isinstance(value, Literal) else value


def _index(selection: Selection, statement: Apply, known: list[Known]) -> AffineIndex | None:
    """An integer result as a sum, if it is one."""
    name, _, type = statement.operation.rpartition("_")
    if type not in ("i32", "u32") or statement.target.type not in ("i32", "u32"):
        return None
    indices = [selection.index(argument) for argument in statement.arguments]
    if name == "add":
        return indices[0] + indices[1]
    if name == "sub":
        return indices[0] - indices[1]
    factor = known[-1]
    if name == "mul" and isinstance(known[0], Literal):
        indices, factor = indices[::-1], known[0]
    if name == "mul" and isinstance(factor, Literal):
        return indices[0].times(int(factor.value))
    if name == "shift_left" and isinstance(factor, Literal) and 0 <= factor.value < WIDTH[type]:  # any other is an error
        return indices[0].times(1 << int(factor.value))
    return None


def _most(selection: Selection, row: TypedOperation, known: list[Known]) -> int | None:
    """The most that a result can be which is not negative: what the compiler knows of masked and shifted integers."""
    name = row.name.rpartition("_")[0]
    bounds = [selection.bound(value) for value in known]
    sure = [bound for bound in bounds if bound is not None]
    if name == "and" and row.result in WIDTH and sure:
        return min(sure)
    if name == "min" and sure and len(sure) == len(bounds):
        return min(sure)
    if name == "shift_right" and bounds[1] is not None and (bounds[0] is not None or row.type == "u32"):
        return ((1 << 32) - 1 if bounds[0] is None else bounds[0]) >> bounds[1]
    return None
