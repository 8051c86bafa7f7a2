"""What a row must say before the table keeps it: the kind and value of each field, and how they fit each other.

What a row says wrongly is a `ValueError` that names the operation, and gives expected against got.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeGuard

from pypoplar.codelet.operations.c_library import arguments_of
from pypoplar.codelet.operations.call_forms import COMPARISONS, OPERANDS, never_called
from pypoplar.codelet.operations.device_operation import (
    ARCHITECTURES,
    MARKS,
    ByType,
    DeviceOperation,
    Flops,
    IssueSlots,
    OperandFault,
    TypedOperation,
)
from pypoplar.codelet.operations.registers import FLOATS, INTEGERS, REGISTERS
from pypoplar.interface.fault_codes import FaultCode

LARGEST = (1 << 31) - 1
_TUPLES: Mapping[str, type] = {"types": str, "lanes": str, "library": str, "calls": str, "prices": IssueSlots}


def wrong(name: object, claim: str) -> ValueError:
    """The error of a row, by the name of its operation."""
    return ValueError(f"device operation {name}{claim}")


def judge_row(row: DeviceOperation) -> None:
    """What can be said of a row before T is known."""
    if not isinstance(row, DeviceOperation):
        raise ValueError(f"the table takes a DeviceOperation, got {row!r}")
    name: object = row.name
    if not isinstance(name, str) or not name.isidentifier():
        raise wrong(repr(name), ": its name is one that a name of Python may be")
    _judge_kinds(row)
    for type in row.types:
        if type not in REGISTERS or row.types.count(type) > 1:
            raise wrong(row.name, f": `types` are some of {', '.join(REGISTERS)}, each once; got {row.types}")
    if bool(row.types) != ("T" in row.signature.split()):
        raise wrong(row.name, f": `types` says what T is in its signature '{row.signature}', got {row.types}")
    for function in row.library:
        try:
            arguments_of(function)
        except LookupError as problem:
            raise wrong(row.name, f": {problem}") from None
    _judge_words(row)


def _judge_kinds(row: DeviceOperation) -> None:
    for field, kind in _TUPLES.items():
        value = getattr(row, field)
        if not isinstance(value, tuple) or not all(isinstance(entry, kind) for entry in value):
            raise wrong(row.name, f": `{field}` is a tuple of {kind.__name__}, got {value!r}")
    if not isinstance(row.signature, str):
        raise wrong(row.name, f": its signature is a text such as 'T T -> T', got {row.signature!r}")
    if not isinstance(row.exact, bool):
        raise wrong(row.name, f": `exact` is True or False, got {row.exact!r}")
    by_type = row.meaning.of if isinstance(row.meaning, ByType) else None
    functions: dict[str, object] = {"meaning": by_type or row.meaning, "llvm": row.llvm, "fault": row.fault}
    for field, function in functions.items():
        if function is not None and not callable(function):
            raise wrong(row.name, f": `{field}` is a function, got {function!r}")
    for field, function in (("meaning", by_type), ("fault", row.fault)):
        if function is not None and not takes(function, 1):
            raise wrong(row.name, f": `{field}` by type is a function of a register type, got {function!r}")


def _judge_figure(name: str, figure: object, unit: str, mark: object) -> None:
    """A whole number from 0 on, of which machine code can count many, with the mark of its source."""
    if not _is_whole(figure) or not 0 <= figure <= LARGEST:
        raise wrong(name, f": {unit.format(figure)}, expected a whole number from 0 to {LARGEST}")
    if not isinstance(mark, str) or not mark.split() or not set(mark.split()) <= MARKS.keys():
        sources = ", ".join(f"{letter} ({source})" for letter, source in MARKS.items())
        raise wrong(name, f": {unit.format(figure)} with the mark {mark!r}, expected some of {sources}")


def _is_whole(figure: object) -> TypeGuard[int]:
    return isinstance(figure, int) and not isinstance(figure, bool)


def _judge_words(row: DeviceOperation) -> None:
    """What is said where the operation is used on a type that it is not for."""
    if not isinstance(row.words, Mapping):
        raise wrong(row.name, f": `words` are texts by type, got {row.words!r}")
    for type, text in row.words.items():
        if type not in REGISTERS or type in row.types:
            raise wrong(row.name, f": `words` are for types that it is not for, got {type!r}")
        try:
            text.format(type="FLOAT")
        except (AttributeError, LookupError, ValueError, TypeError):
            raise wrong(row.name, f": `words` are texts in which {{type}} may stand, got {text!r}") from None


def judge_operations(operations: Sequence[TypedOperation], called: Mapping[str, Mapping[str, TypedOperation]]) -> None:
    """What can be said of a row's operations; `called` are those that there are already, by how users write them."""
    first = operations[0]
    row, arguments = first.row, first.arguments
    _judge_arguments(first, "recipe for LLVM", row.llvm, len(arguments) + 1, " after the emitter")
    for operation in operations if isinstance(row.meaning, ByType) else [first]:
        meaning = row.meaning.of(operation.type) if isinstance(row.meaning, ByType) else row.meaning
        _judge_arguments(operation, "meaning", meaning, len(arguments))
    may_have = row.types or arguments[:1]
    if not all(type in may_have for type in row.lanes):
        raise wrong(first.name, f": `lanes` are some of {', '.join(may_have)}, got {row.lanes}")
    _judge_figures(first)
    for operation in operations:
        _judge_prices(operation)
        _judge_fault(operation)
        _judge_pole(operation)
        for call in row.calls:
            _judge_call(operation, call, called.get(call, {}))


def _judge_arguments(operation: TypedOperation, what: str, function: object, count: int, besides: str = "") -> None:
    if not callable(function):
        raise wrong(operation.name, f": its {what} is a function, got {function!r}")
    if not takes(function, count):
        given = len(operation.arguments)
        raise wrong(operation.name, f": its {what} does not take {given} argument{'s' * (given != 1)}{besides}")


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments; one that does not say how many it takes is believed.

    `inspect.signature` says it of any, and takes longer for our own rows than all else that is to be judged.
    """
    if isinstance(function, functools.partial) and not function.keywords:
        return takes(function.func, len(function.args) + count)
    if isinstance(function, FunctionType):
        code = function.__code__
        if code.co_kwonlyargcount > len(function.__kwdefaults__ or ()):
            return False
        if code.co_flags & inspect.CO_VARARGS:
            return count >= code.co_argcount - len(function.__defaults__ or ())
        return code.co_argcount - len(function.__defaults__ or ()) <= count <= code.co_argcount
    text = getattr(function, "__text_signature__", None)  # of what is written in C: "($module, x, y, /)"
    if isinstance(text, str) and not set("*=") & set(text):
        return len(set(text.strip("()").split(", ")) - {"$module", "$self", "/"}) == count
    try:
        inspect.signature(function).bind(*range(count))
    except ValueError:
        return True
    except TypeError:
        return False
    return True


def _judge_prices(operation: TypedOperation) -> None:
    """Every architecture has one price."""
    name, type = operation.name, operation.type
    own = [price for price in operation.row.prices if not type or type in price.types]
    for architecture in ARCHITECTURES:
        fitting = [price for price in own if architecture in price.architectures]
        if not fitting:
            raise wrong(name, f" has no price for architecture '{architecture}'")
        if len(fitting) > 1:
            raise wrong(name, f" has {len(fitting)} prices for architecture '{architecture}'")


def _judge_figures(operation: TypedOperation) -> None:
    """What the row says of work and slots; no price is for a type or an architecture that there is not."""
    row, name = operation.row, operation.name
    if not isinstance(row.flops, Flops):
        raise wrong(name, f": `flops` are Flops(number, mark), got {row.flops!r}")
    _judge_figure(name, row.flops.flops, "work of {!r} floating-point operations", row.flops.mark)
    for price in row.prices:
        _judge_figure(name, price.slots, "a price of {!r} slots", price.mark)
        if not isinstance(price.software, bool):
            raise wrong(name, f": `software` of a price is True or False, got {price.software!r}")
        for field, known in (("types", row.types), ("architectures", ARCHITECTURES)):
            given: object = getattr(price, field)
            if not isinstance(given, tuple) or bool(given) != bool(known) or not all(word in known for word in given):
                raise wrong(name, f": the {field} of a price are a tuple of some of ({', '.join(known)}), got {given!r}")


def _judge_fault(operation: TypedOperation) -> None:
    """A fault records an integer, the last argument, and the engine must know what to say of its code."""
    name, fault = operation.name, operation.fault
    if fault is None:
        return
    if not isinstance(fault, OperandFault):
        raise wrong(name, f": its fault is an OperandFault, got {fault!r}")
    code: object = fault.code
    if not isinstance(code, FaultCode) or code is FaultCode.CHECK:  # whose value is the number of a text
        raise wrong(name, f": the code of its fault is a FaultCode that operands can have, got {code!r}")
    if operation.arguments[-1] not in INTEGERS:
        raise wrong(name, f": its fault is one of its last argument, which must be an integer, got {operation.arguments[-1]}")
    if not _is_whole(fault.bound) or not 0 <= fault.bound <= LARGEST:
        raise wrong(name, f": the bound of its fault is a whole number from 0 to {LARGEST}, got {fault.bound!r}")
    forms: tuple[tuple[str, object, int], ...] = ("condition", fault.test, 1), ("recipe for LLVM", fault.llvm, 2)
    for what, function, count in forms:
        if not callable(function) or not takes(function, count):
            besides = " after the emitter" * (count - 1)
            raise wrong(name, f": the {what} of its fault is a function of the last argument{besides}, got {function!r}")


def _judge_pole(operation: TypedOperation) -> None:
    pole, arguments = operation.row.pole, operation.arguments
    if pole is None:
        return
    match pole:
        case (int() as position, int() | float() as value) if not isinstance(position, bool) and not math.isnan(value):
            if position in range(len(arguments)) and arguments[position] in FLOATS and operation.result in FLOATS:
                return
    claim = "its pole is the place of an argument and the value that it has there, where argument and result are floats"
    raise wrong(operation.name, f": {claim}; got {pole!r}")


def _judge_call(operation: TypedOperation, call: str, others: Mapping[str, TypedOperation]) -> None:
    """That it can be called so, as the translator will, and by nothing else."""
    name, row, arguments = operation.name, operation.row, operation.arguments
    reason = never_called(call)
    if reason is not None:
        raise wrong(name, f": {reason}")
    if row.calls.count(call) > 1:
        raise wrong(name, f": {call} is there twice")
    if operation.type in others:
        raise wrong(name, f": {call} is {others[operation.type].name}")
    if row.types and set(arguments) != {operation.type}:
        raise wrong(name, f": users call operations whose arguments are all T, or have types of their own; got '{row.signature}'")
    if call in OPERANDS and (not row.types or len(arguments) != OPERANDS[call]):
        wanted = " ".join("T" * OPERANDS[call])
        raise wrong(name, f": {call} takes '{wanted}', got '{row.signature}'")
    if call in COMPARISONS and operation.result != "bool":
        raise wrong(name, f": {call} gives a bool, got '{row.signature}'")
    for other in others.values():
        if len(other.arguments) != len(arguments) or not (other.type and operation.type):
            raise wrong(name, f": {call} is {other.name}, which takes '{other.row.signature}'; got '{row.signature}'")
