"""The table of device operations: every one by its full name, and by how users call it.

Rows are checked as they are registered: one that leaves something out is refused by name, so that nothing is ever run or priced
as if it were nothing. A row may be registered from outside, and removed again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pypoplar.codelet.operations import (
    bit_patterns,
    conversions,
    cut_division,
    float_arithmetic,
    float_functions,
    integer_arithmetic,
)
from pypoplar.codelet.operations.device_operation import ByType, DeviceOperation, Meaning, TypedOperation
from pypoplar.codelet.operations.registers import REGISTERS, rounding
from pypoplar.codelet.operations.row_claims import judge_operations, judge_row, wrong
from pypoplar.spelling import nearest

_operations: dict[str, TypedOperation] = {}
_called: dict[str, dict[str, TypedOperation]] = {}  # by how users write it, and T
_numbers = itertools.count(1)
_revision = 0

OPERATIONS: Mapping[str, TypedOperation] = MappingProxyType(_operations)
"""All operations by full name, such as ``add_f32``."""


def register(row: DeviceOperation) -> None:
    """Add a row from outside; `ValueError` says by name what it leaves out or gets wrong, or what there is already."""
    global _revision
    _add(row, next(_numbers))
    _revision += 1


def remove(row: DeviceOperation) -> None:
    """Take a row from outside away again; `ValueError` if it is not there, or is one of ours."""
    global _revision
    operations = [operation for operation in _operations.values() if operation.row is row]
    if not operations or operations[0].number == 0:
        raise wrong(row.name, ": it was not registered from outside, so it stays" if operations else ": its row is not registered")
    for operation in operations:
        del _operations[operation.name]
        for call in row.calls:
            del _called[call][operation.type]
    _revision += 1


def revision() -> int:
    """Another number whenever the table has changed: what was translated by it may mean something else now."""
    return _revision


def typed_operation(name: str) -> TypedOperation:
    """The operation of a full name; `LookupError` with the nearest name if there is none."""
    if name in _operations:
        return _operations[name]
    raise LookupError(f"there is no device operation '{name}'{nearest(name, _operations)}")


def called(call: str) -> Mapping[str, TypedOperation]:
    """What users write so, by the type that it is used on; empty where nothing is."""
    return MappingProxyType(_called.get(call, {}))


def refused(call: str, type: str) -> str | None:
    """What its rows say of a use on a type that has no such operation."""
    rows = dict.fromkeys(operation.row for operation in called(call).values())
    return next((row.words[type] for row in rows if type in row.words), None)


def functions_of(module: str) -> dict[str, Mapping[str, TypedOperation]]:
    """The functions of a module of users, "math" or "ipu", that are operations: by their name there."""
    prefix = module + "."
    return {call.removeprefix(prefix): by_type for call, by_type in _called.items() if call.startswith(prefix) and by_type}


def python_functions() -> list[str]:
    """Python's own functions that are operations."""
    return [call for call, by_type in _called.items() if call.isidentifier() and by_type]


def library_functions() -> Iterator[str]:
    """The functions of the C library that emitted code calls."""
    return iter(dict.fromkeys(name for operation in _operations.values() for name in operation.row.library))


def _add(row: DeviceOperation, number: int) -> None:
    judge_row(row)
    operations = [_of_type(row, type, number) for type in row.types or ("",)]
    for new in operations:
        if new.name in _operations:
            raise wrong(new.name, ": there is one of this name")
    judge_operations(operations, _called)
    for new in operations:
        _operations[new.name] = new
        for call in row.calls:
            _called.setdefault(call, {})[new.type] = new


def _of_type(row: DeviceOperation, type: str, number: int) -> TypedOperation:
    """A row's operation on one type, if the row is complete."""
    name = f"{row.name}_{type}" if type else row.name
    arguments, result = _signature(row, name, type)
    if row.meaning is None:
        raise wrong(name, " has no meaning in Python")
    if row.llvm is None:
        raise wrong(name, " has no recipe for LLVM")
    if row.flops is None:
        raise wrong(name, " does not say how many floating-point operations it is")
    meaning = row.meaning.of(type) if isinstance(row.meaning, ByType) else row.meaning
    scalar = result in REGISTERS and all(argument in REGISTERS for argument in arguments)
    compute: Meaning = rounding(result, meaning, len(arguments)) if scalar and not row.exact else meaning
    fault = row.fault(type) if row.fault is not None else None
    rounds = scalar and result == "f16" and not row.exact and name != "f16_from_f16"
    unrounded = rounding("f32", meaning, len(arguments)) if rounds else None
    return TypedOperation(name, row, type, arguments, result, compute, fault, number, unrounded)


def _signature(row: DeviceOperation, name: str, type: str) -> tuple[tuple[str, ...], str]:
    """The types of arguments and result."""
    left, arrow, right = row.signature.partition("->")
    arguments, results = ([type if word == "T" else word for word in side.split()] for side in (left, right))
    for word in (*arguments, *results):
        if word.removesuffix("[]").removesuffix("[]") not in REGISTERS:
            raise wrong(name, f": there is no type '{word}' in its signature '{row.signature}'")
    if not arrow or not arguments or len(results) != 1:
        raise wrong(name, f": its signature is '{row.signature}'; write it as 'T T -> T'")
    return tuple(arguments), results[0]


for _row in (
    *conversions.ROWS,
    *bit_patterns.ROWS,
    *float_arithmetic.ROWS,
    *float_functions.ROWS,
    *integer_arithmetic.ROWS,
    *cut_division.ROWS,
):
    _add(_row, 0)
