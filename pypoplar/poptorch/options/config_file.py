"""Calls of options that are written in a file or in JSON.

A file is read by a walk over its syntax tree: nothing in it is evaluated. It can have literals, name members of enumerations and
types, and make objects of the option classes.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from enum import Enum
from inspect import getattr_static, isfunction
from typing import Any

import torch
from attrs import frozen

from pypoplar.errors import FileLoadError, InvalidOption, PoplarError
from pypoplar.poptorch import enums
from pypoplar.poptorch.options import execution_strategies
from pypoplar.poptorch.options.option_values import OptionValues
from pypoplar.poptorch.options.tensor_locations import TensorLocationSettings
from pypoplar.spelling import nearest, nearest_or_all


class ConfigFileError(InvalidOption):
    """A line of a file of options that is no call of one: see `Options.loadFromFile`."""


@frozen
class OptionCall:
    """One call: the option's name as after ``options.``, its arguments, and the line."""

    name: str
    arguments: Sequence[Any]
    keywords: Mapping[str, Any]
    line: int


CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(execution_strategies.Stage, execution_strategies.PipelinedExecution, execution_strategies.ShardedExecution),
        *(execution_strategies.Phase, execution_strategies.SerialPhasedExecution, execution_strategies.ParallelPhasedExecution),
        TensorLocationSettings,
    )
}
"""Those of which a file can make objects, with their methods."""
ENUMERATIONS = {name: kind for name, kind in vars(enums).items() if isinstance(kind, type) and issubclass(kind, Enum) and len(kind)}
ALLOWED = "there are literals, lists, dicts, members such as poptorch.OutputMode.All, types such as torch.half, option classes"
LONGEST = 60  # letters of an expression in a message
OWN = "loadFromFile"
DEEPEST = 50  # values in each other


class _Refused(Exception):
    """What an argument may not be; the text says why."""


def read_calls(path: str) -> list[OptionCall]:
    """The calls in a file, in its order; `FileLoadError` for one that cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise FileLoadError(f"{path}: no file of options: {problem}") from None
    written = ((number, text.strip()) for number, text in enumerate(lines, 1))
    return [_call(path, number, text) for number, text in written if text and not text.startswith("#")]


def _call(path: str, number: int, text: str) -> OptionCall:
    """What a line says; `ConfigFileError` if it is no call."""
    where = f"line {number} of {path}"
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as problem:
        raise ConfigFileError(f"SyntaxError in {where}: {problem.msg}\n> {text}") from None
    except (ValueError, RecursionError, MemoryError) as problem:  # bytes of 0, and what is too deep for Python
        raise ConfigFileError(f"{where} cannot be read: {str(problem) or type(problem).__name__}\n> {text}") from None
    if not isinstance(tree, ast.Call):
        raise ConfigFileError(f"{where} is no call of an option such as deviceIterations(4)\n> {text}")
    name = _dotted(tree.func)
    if name is None:
        raise ConfigFileError(f"{where} has more than one call; write each in a line of its own\n> {text}")
    if name == OWN:
        raise ConfigFileError(f"{where} names another file of options, which a file cannot\n> {text}")
    try:
        arguments, keywords = _arguments(tree, DEEPEST)
    except _Refused as problem:
        raise ConfigFileError(f"{where}: {problem}\n> {text}") from None
    except PoplarError as problem:
        problem.add_note(f"in {where}")
        raise
    return OptionCall(name, arguments, keywords, number)


def _dotted(expression: ast.expr) -> str | None:
    """Names with points between them; None for anything else."""
    parts = []
    while isinstance(expression, ast.Attribute):
        parts.append(expression.attr)
        expression = expression.value
    return ".".join([expression.id, *reversed(parts)]) if isinstance(expression, ast.Name) else None


def _arguments(call: ast.Call, depth: int) -> tuple[list[Any], dict[str, Any]]:
    """The values that a call is written with."""
    keywords = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise _Refused(f"{_shown(keyword.value)} with stars is no value: {ALLOWED}")
        keywords[keyword.arg] = _value(keyword.value, depth)
    return [_value(argument, depth) for argument in call.args], keywords


def _value(expression: ast.expr, depth: int) -> Any:
    """The value of an argument, by what is written: nothing of it is executed but the option classes' own methods."""
    if depth == 0:
        raise _Refused(f"more than {DEEPEST} values stand in each other")
    match expression:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=int() | float() as value)) if (
            type(value) is not bool
        ):
            return -value if isinstance(sign, ast.USub) else value
        case ast.List(elts=parts):
            return [_value(part, depth - 1) for part in parts]
        case ast.Tuple(elts=parts):
            return tuple(_value(part, depth - 1) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return _dictionary(keys, values, depth - 1)
        case ast.Attribute():
            return _named(expression)
        case ast.Call():
            return _made(expression, depth - 1)
        case ast.Name(id=name):
            raise _Refused(f"name {name!r} is not defined; there are poptorch and torch")
        case _:
            raise _Refused(f"{_shown(expression)} is no value: {ALLOWED}")


def _dictionary(keys: Sequence[ast.expr | None], values: Sequence[ast.expr], depth: int) -> dict[Any, Any]:
    made = {}
    for key, value in zip(keys, values, strict=True):
        if not isinstance(key, ast.Constant | ast.UnaryOp):
            raise _Refused(f"the key {_shown(key) if key is not None else '**'} of a dict is no number or text")
        made[_value(key, depth)] = _value(value, depth)
    return made


def _named(expression: ast.Attribute) -> Any:
    """A member of an enumeration, or a type of PyTorch."""
    name = _dotted(expression)
    match (name or "").split("."):
        case ["torch", name] if isinstance(dtype := vars(torch).get(name), torch.dtype):
            return dtype
        case ["poptorch", "enums", kind, member] | ["poptorch", kind, member] if kind in ENUMERATIONS:
            if member in ENUMERATIONS[kind].__members__:
                return ENUMERATIONS[kind][member]
            raise _Refused(f"{kind} has no member {member!r}{nearest_or_all(member, ENUMERATIONS[kind].__members__)}")
        case ["torch" | "poptorch", *_]:
            raise _Refused(f"there is no {name} that a file can name: {ALLOWED}")
        case [first, *_] if name is not None:
            raise _Refused(f"name {first!r} is not defined; there are poptorch and torch")
        case _:
            raise _Refused(f"{_shown(expression)} is no value: {ALLOWED}")


def _made(call: ast.Call, depth: int) -> Any:
    """What an option class makes of its arguments, or one of its methods, such as ``poptorch.Stage("A").ipu(1)``."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="poptorch"), attr=name) if name in CLASSES:
            function: Any = CLASSES[name]
        case ast.Attribute(value=ast.Call() as inner, attr=name):
            made = _value(inner, depth)
            if type(made) not in CLASSES.values() or name.startswith("_") or not isfunction(getattr_static(made, name, None)):
                raise _Refused(f"{_shown(call.func)} is no method of an option class")
            function = getattr(made, name)
        case _:
            raise _Refused(f"{_shown(call.func)} cannot be called in a file: {ALLOWED}")
    arguments, keywords = _arguments(call, depth)
    try:
        return function(*arguments, **keywords)
    except PoplarError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError) as problem:
        raise _Refused(f"{_shown(call.func)}: {problem}") from None


def _shown(expression: ast.expr) -> str:
    """The beginning of an expression, as a message has it."""
    try:
        text = ast.unparse(expression)
    except (RecursionError, ValueError):  # too deep, or an integer of too many digits
        return f"this {type(expression).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def apply_call(options: Any, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Call the option `name`, such as ``Training.gradientAccumulation``; `InvalidOption` if there is none."""
    target = options
    for part in name.split("."):
        if (part.startswith("_") and part != "_Popart") or not hasattr(target, part):
            known = [known for known in dir(type(target)) if not known.startswith("_")]
            raise InvalidOption(f"there is no option {name!r}{nearest(part, known)}")
        target = getattr(target, part)
    if not callable(target) or isinstance(target, OptionValues):
        raise InvalidOption(f"{name!r} is no option that can be called")
    try:
        target(*arguments, **keywords)
    except TypeError as problem:
        if isinstance(problem, InvalidOption) or type(problem) is not TypeError:
            raise
        raise InvalidOption(f"{name}: {problem}") from None
