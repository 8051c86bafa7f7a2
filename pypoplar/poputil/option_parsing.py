"""Options of a library's own calls: what names there are, and how the text of each is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from pypoplar.braces import OPTIONS, ordered
from pypoplar.errors import InvalidOption, PoplarTypeError
from pypoplar.spelling import nearest
from pypoplar.tracebacks import public


@public
@frozen
class OptionHandler:
    """How the text of an option is read: `read` gives its value. C++ sets a variable; here `OptionSpec.parse` returns the value."""

    read: Callable[[str], Any]

    def parseValue(self, value: object) -> Any:
        """The value that a text stands for; `InvalidOption` for one that is not allowed."""
        return self.read(str(value).lower() if isinstance(value, bool) else str(value))

    @staticmethod
    def createWithEnum(valueMap: Mapping[str, Any]) -> OptionHandler:
        """One of some words, each with its value."""
        words = dict(ordered(valueMap, "the words of an option", OPTIONS))

        def read(text: str) -> Any:
            if text not in words:
                raise InvalidOption(f"Not one of the values: [{', '.join(map(repr, words))}]")
            return words[text]

        return OptionHandler(read)

    @staticmethod
    def createWithBool() -> OptionHandler:
        """``"true"`` or ``"false"``."""
        return OptionHandler.createWithEnum({"true": True, "false": False})

    @staticmethod
    def createWithInteger() -> OptionHandler:
        """A whole number, also one such as ``0x10``."""
        return OptionHandler(lambda text: _integer(text, "Not a valid integer"))

    @staticmethod
    def createWithDouble(
        lowerBound: float = -math.inf,
        lowerBoundIsInclusive: bool = True,
        upperBound: float = math.inf,
        upperBoundIsInclusive: bool = True,
    ) -> OptionHandler:
        """A number between two bounds. Without them any, NaN excepted."""

        def read(text: str) -> float:
            try:
                number = float(text)
            except ValueError:
                raise InvalidOption("Not a floating point number") from None
            if math.isnan(number) or number < lowerBound or (number == lowerBound and not lowerBoundIsInclusive):
                raise InvalidOption(f"Value must be greater than {'or equal to ' * lowerBoundIsInclusive}{lowerBound}")
            if number > upperBound or (number == upperBound and not upperBoundIsInclusive):
                raise InvalidOption(f"Value must be less than {'or equal to ' * upperBoundIsInclusive}{upperBound}")
            return number

        return OptionHandler(read)

    @staticmethod
    def createWithString() -> OptionHandler:
        """Any text."""
        return OptionHandler(str)

    @staticmethod
    def createWithList() -> OptionHandler:
        """Whole numbers with commas between them, as a list; no text gives none."""
        wrong = "Not a comma-separated list of integers"
        return OptionHandler(lambda text: [_integer(part, wrong) for part in text.split(",")] if text else [])


def _integer(text: str, wrong: str) -> int:
    try:
        return int(text, 16 if "0x" in text else 10)
    except ValueError:
        raise InvalidOption(wrong) from None


@public
class OptionSpec:
    """The options of a call, each with what reads it: ``OptionSpec({"depth": OptionHandler.createWithInteger()})``."""

    def __init__(self, handlers: Mapping[str, OptionHandler]) -> None:
        self._handlers = dict(ordered(handlers, "the options of an OptionSpec", OPTIONS))
        for option, handler in self._handlers.items():
            if not isinstance(handler, OptionHandler):
                raise PoplarTypeError(f"OptionSpec: the option {option!r} has an OptionHandler, got {handler!r}")

    def parse(self, option: str, value: object, ignoreUnknown: bool = False) -> Any:
        """The value of an option; None for one that is not known, with `ignoreUnknown`.

        `InvalidOption` for one that is not known, with the nearest name, and for a value that is not allowed.
        """
        handler = self._handlers.get(option)
        if handler is None:
            if ignoreUnknown:
                return None
            raise InvalidOption(f"Unrecognised option {option!r}{nearest(option, self._handlers)}")
        try:
            return handler.parseValue(value)
        except InvalidOption as problem:
            raise InvalidOption(f"Invalid value {str(value)!r} for option {option!r}: {problem}") from None
