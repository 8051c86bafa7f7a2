"""The table of device operations: every one by its full name, and by how users call it.

Rows are checked as they are registered: one that leaves something out is refused by name, so that nothing is ever run or priced
as if it were nothing. A row may be registered from outside, and removed again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pypoplar.codelet.operations import conversions, float_arithmetic, float_functions, integer_arithmetic
from pypoplar.codelet.operations.device_operation import ARCHITECTURES, ByType, DeviceOperation, Meaning, Operation
from pypoplar.codelet.operations.registers import REGISTERS, rounding
from pypoplar.spelling import nearest

_operations: dict[str, Operation] = {}
_called: dict[str, dict[str, Operation]] = {}  # by how users write it, and T
_numbers = itertools.count(1)

OPERATIONS: Mapping[str, Operation] = MappingProxyType(_operations)
"""All operations by full name, such as ``add_f32``."""


def register(row: DeviceOperation) -> None:
    """Add a row from outside; `ValueError` says by name what it leaves out, or what there is already."""
    _add(row, next(_numbers))


def remove(row: DeviceOperation) -> None:
    """Take a registered row away again."""
    for name in [operation.name for operation in _operations.values() if operation.row is row]:
        del _operations[name]
    for operations in _called.values():
        for type in [type for type, operation in operations.items() if operation.row is row]:
            del operations[type]


def operation(name: str) -> Operation:
    """The operation of a full name; `LookupError` with the nearest name if there is none."""
    if name in _operations:
        return _operations[name]
    raise LookupError(f"there is no device operation '{name}'{nearest(name, _operations)}")


def called(call: str) -> Mapping[str, Operation]:
    """What users write so, by the type that it is used on; empty where nothing is."""
    return MappingProxyType(_called.get(call, {}))


def refused(call: str, type: str) -> str | None:
    """What its rows say of a use on a type that has no such operation."""
    rows = dict.fromkeys(operation.row for operation in called(call).values())
    return next((row.words[type] for row in rows if type in row.words), None)


def functions_of(module: str) -> dict[str, Mapping[str, Operation]]:
    """The functions of a module of users, "math" or "ipu", that are operations: by their name there."""
    prefix = module + "."
    return {call.removeprefix(prefix): by_type for call, by_type in _called.items() if call.startswith(prefix) and by_type}


def library_functions() -> Iterator[str]:
    """The functions of the C library that emitted code calls."""
    return iter(dict.fromkeys(name for operation in _operations.values() for name in operation.row.library))


def _add(row: DeviceOperation, number: int) -> None:
    operations = [_of_type(row, type, number) for type in row.types or ("",)]
    for new in operations:
        if new.name in _operations:
            raise ValueError(f"device operation {new.name}: there is one of this name")
        for call in row.calls:
            if new.type in _called.get(call, {}):
                raise ValueError(f"device operation {new.name}: {call} is {_called[call][new.type].name}")
    for new in operations:
        _operations[new.name] = new
        for call in row.calls:
            _called.setdefault(call, {})[new.type] = new


def _of_type(row: DeviceOperation, type: str, number: int) -> Operation:
    """A row's operation on one type, if the row is complete."""
    name = f"{row.name}_{type}" if type else row.name
    arguments, result = _signature(row, name, type)
    if row.meaning is None:
        raise ValueError(f"device operation {name} has no meaning in Python")
    if row.llvm is None:
        raise ValueError(f"device operation {name} has no recipe for LLVM")
    if row.flops is None:
        raise ValueError(f"device operation {name} does not say how many floating-point operations it is")
    meaning = row.meaning.of(type) if isinstance(row.meaning, ByType) else row.meaning
    scalar = result in REGISTERS and all(argument in REGISTERS for argument in arguments)
    compute: Meaning = rounding(result, meaning, len(arguments)) if scalar and not row.exact else meaning
    fault = row.fault(type) if row.fault is not None else None
    operation = Operation(name, row, type, arguments, result, compute, fault, number)
    _check_prices(operation)
    return operation


def _check_prices(operation: Operation) -> None:
    """Every architecture has one price."""
    for architecture in ARCHITECTURES:
        fitting = [
            price
            for price in operation.row.prices
            if (not operation.type or operation.type in price.types) and architecture in price.architectures
        ]
        if not fitting:
            raise ValueError(f"device operation {operation.name} has no price for architecture '{architecture}'")
        if len(fitting) > 1:
            raise ValueError(f"device operation {operation.name} has {len(fitting)} prices for architecture '{architecture}'")
        if fitting[0].slots < 0:
            raise ValueError(f"device operation {operation.name}: a price of {fitting[0].slots} slots")


def _signature(row: DeviceOperation, name: str, type: str) -> tuple[tuple[str, ...], str]:
    """The types of arguments and result."""
    left, arrow, right = row.signature.partition("->")
    arguments, results = ([type if word == "T" else word for word in side.split()] for side in (left, right))
    for word in (*arguments, *results):
        if word.removesuffix("[]").removesuffix("[]") not in REGISTERS:
            raise ValueError(f"device operation {name}: there is no type '{word}' in its signature '{row.signature}'")
    if not arrow or not arguments or len(results) != 1:
        raise ValueError(f"device operation {name}: its signature is '{row.signature}'; write it as 'T T -> T'")
    return tuple(arguments), results[0]


for _row in (*conversions.ROWS, *float_arithmetic.ROWS, *float_functions.ROWS, *integer_arithmetic.ROWS):
    _add(_row, 0)
