"""C++ overloads as one Python function: each call goes to the first declared form that its arguments fit.

    @overload
    def duplicate(graph: Graph, in_: Tensor, prog: Sequence) -> Tensor: ...
    @overload
    def duplicate(graph: Graph, in_: Tensor, ipu: int, prog: Sequence) -> Tensor: ...
    @overloaded("poputil.duplicate")
    def duplicate(graph: Graph, in_: Tensor, prog: Sequence, ipu: int | None = None) -> Tensor:
        ...

What is declared is what type checkers see, what `docs/poplibs.md` is compared with, and what calls are held to: the function itself
gets its arguments by name, of the types that the form says.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from enum import Enum
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np
from attrs import frozen

from pypoplar.braces import ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_graph, check_prog, check_tensor
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import ElementType

Result = TypeVar("Result")

NUMBERS: dict[object, tuple[tuple[type, ...], str]] = {  # what stands for each kind of number, and what messages call it
    bool: ((bool, np.bool_), "True or False"),
    int: ((int, np.integer), "a whole number"),
    float: ((int, float, np.integer, np.floating), "a number"),
}
WORDS: dict[object, str] = {
    str: "a text",
    Tensor: "a tensor",
    Graph: "a graph",
    Sequence: "a Sequence",
    ElementType: "an element type",
}


@frozen
class Form:
    """One declared overload: its parameters, and their types."""

    signature: inspect.Signature
    types: Mapping[str, Any]

    def __str__(self) -> str:
        names = [
            f"[, {name}]" if parameter.default is not parameter.empty else f", {name}"
            for name, parameter in self.signature.parameters.items()
        ]
        return f"({''.join(names).removeprefix(', ')})"

    def begins_with(self, arguments: tuple[object, ...], keywords: Mapping[str, object]) -> bool:
        """Whether arguments fit the form but for those that are not there."""
        try:
            return self.misfit(self.signature.bind_partial(*arguments, **keywords).arguments) is None
        except TypeError:
            return False

    def misfit(self, given: Mapping[str, object]) -> str | None:
        """The first argument that has not the type of its parameter."""
        return next((name for name, value in given.items() if not fits(value, self.types.get(name, Any))), None)


def overloaded(call: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Make a function, whose forms are declared before it with `typing.overload`, the `public` one that takes them all.

    `call` is its name in messages. `PoplarTypeError` for a call that no form fits: with the argument that is wrong in the form
    that fits furthest, or with all forms.
    """

    def declared(function: Callable[..., Result]) -> Callable[..., Result]:
        @wraps(function)
        def choose(*arguments: Any, **keywords: Any) -> Result:
            return function(**_arranged(call, function, arguments, keywords))

        return public(choose)

    return declared


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type as annotations write it; of what lists and dicts hold, the first is looked at."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, part) for part in inner)
    if hint in NUMBERS:
        return isinstance(value, NUMBERS[hint][0]) and (hint is bool or not isinstance(value, bool | np.bool_))
    if origin is None:
        return isinstance(value, hint)
    if not isinstance(value, origin) or isinstance(value, str | bytes | Tensor | set | frozenset):
        return False
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return False
    return origin in (Callable, type) or not inner or all(fits(item, inner[0]) for item in _first(value))


def _first(values: Iterable[object]) -> list[object]:
    """The first of several values; of those that can be taken but once, none."""
    return list(values)[:1] if isinstance(values, Mapping | SequenceOf | np.ndarray) else []


def _arranged(
    call: str, function: Callable[..., object], arguments: tuple[object, ...], keywords: Mapping[str, object]
) -> dict[str, object]:
    """The arguments by name, as the first form has them that they fit."""
    furthest: tuple[int, str, Form, dict[str, object]] | None = None
    refused = lacking = ""
    for form in forms(function):
        try:
            given = form.signature.bind(*arguments, **keywords).arguments
        except TypeError as error:
            refused = refused or str(error)
            if not lacking and form.begins_with(arguments, keywords):
                lacking = str(error)
            continue
        wrong = form.misfit(given)
        if wrong is None:
            return given
        place = list(given).index(wrong)
        if furthest is None or place > furthest[0]:
            furthest = place, wrong, form, given
    if furthest is None or lacking:
        raise PoplarTypeError(f"{call}: {lacking or refused}; it takes {' or '.join(map(str, forms(function)))}")
    _, name, form, given = furthest
    raise _refusal(call, name, given[name], form.types[name])


@cache
def forms(function: Callable[..., object]) -> tuple[Form, ...]:
    """The forms that were declared for a function."""
    return tuple(Form(inspect.signature(form), typing.get_type_hints(form)) for form in typing.get_overloads(function))


def _refusal(call: str, name: str, value: object, hint: Any) -> PoplarTypeError:
    """The error for an argument of another type; what all calls have is worded as everywhere."""
    ordered(value, f"{name} of {call}")
    if hint is Graph:
        check_graph(call, value)
    if hint is Tensor:
        check_tensor(call, value, name)
    if hint is Sequence:
        check_prog(call, value)
    if name == "debugContext":
        return PoplarTypeError(f"{call}: a debug name is a string, got {value!r}; options come after it")
    return PoplarTypeError(f"{call}: {name} is {type_words(hint)}, got {value!r}")


def type_words(hint: Any) -> str:
    """What a message calls a type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_words(part) for part in inner if part is not type(None))
    if hint in NUMBERS:
        return NUMBERS[hint][1]
    if hint in WORDS:
        return WORDS[hint]
    if origin is not None and issubclass(origin, Mapping):
        return "a dict"
    if origin is not None and origin is not Callable:
        return f"a list, each {type_words(inner[0])}" if inner else "a list"
    if isinstance(hint, type):
        article = "an" if hint.__name__[0] in "AEIOU" else "a"
        return f"{article} {hint.__name__}" + (f" such as {next(iter(hint))}" if issubclass(hint, Enum) else "")
    return "a function" if origin is Callable else str(hint)
