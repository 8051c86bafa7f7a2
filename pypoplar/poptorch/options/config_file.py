"""Calls of options that are written in a file or in JSON."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from attrs import frozen

from pypoplar.errors import FileLoadError, InvalidOption
from pypoplar.poptorch import enums
from pypoplar.poptorch.options import execution_strategies
from pypoplar.poptorch.options.option_values import OptionValues
from pypoplar.poptorch.options.tensor_locations import TensorLocationSettings
from pypoplar.spelling import nearest


class ConfigFileError(InvalidOption):
    """A line of a file of options that is no call of one: see `Options.loadFromFile`."""


@frozen
class OptionCall:
    """One call: the option's name as after ``options.``, its arguments, and the line."""

    name: str
    arguments: Sequence[Any]
    keywords: Mapping[str, Any]
    line: int


NAMES = {
    "poptorch": SimpleNamespace(
        enums=enums, TensorLocationSettings=TensorLocationSettings, **{**vars(execution_strategies), **vars(enums)}
    ),
    "torch": torch,
}
"""What a line of a file can name."""


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
    if not isinstance(tree, ast.Call):
        raise ConfigFileError(f"{where} is no call of an option such as deviceIterations(4)\n> {text}")
    name = ast.unparse(tree.func)
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigFileError(f"{where} has more than one call; write each in a line of its own\n> {text}")
    try:
        arguments = [_value(argument) for argument in tree.args]
        keywords = {keyword.arg: _value(keyword.value) for keyword in tree.keywords if keyword.arg}
    except (NameError, AttributeError) as problem:
        raise ConfigFileError(f"{where}: {problem}; there are poptorch and torch\n> {text}") from None
    return OptionCall(name, arguments, keywords, number)


def _value(expression: ast.expr) -> Any:
    """The value of an argument, as Python has it."""
    return eval(compile(ast.Expression(expression), "<options>", "eval"), {"__builtins__": {}, **NAMES})


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
