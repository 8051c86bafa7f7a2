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
    """How the text of an option is read, for an `OptionSpec`.

    C++ sets a variable; here `OptionSpec.parse` returns the value.

    Parameters
    ----------
    read:
        A function of the text that gives its value, and raises `InvalidOption` for one that is not allowed.
    """

    read: Callable[[str], Any]

    def parseValue(self, value: object) -> Any:
        """The value that a text stands for.

        Parameters
        ----------
        value:
            The text; what is none is made one, and a bool ``"true"`` or ``"false"``.

        Returns
        -------
        Any
            What `read` gives.

        Raises
        ------
        InvalidOption
            For a text that is not allowed.
        """
        return self.read(str(value).lower() if isinstance(value, bool) else str(value))

    @staticmethod
    def createWithEnum(valueMap: Mapping[str, Any]) -> OptionHandler:
        """The handler of an option that is one of some words, each with its value.

        Parameters
        ----------
        valueMap:
            The words and their values.

        Returns
        -------
        OptionHandler
            It refuses other words.
        """
        words = dict(ordered(valueMap, "the words of an option", OPTIONS))

        def read(text: str) -> Any:
            if text not in words:
                raise InvalidOption(f"Not one of the values: [{', '.join(map(repr, words))}]")
            return words[text]

        return OptionHandler(read)

    @staticmethod
    def createWithBool() -> OptionHandler:
        """The handler of an option that is ``"true"`` or ``"false"``, which become True and False."""
        return OptionHandler.createWithEnum({"true": True, "false": False})

    @staticmethod
    def createWithInteger() -> OptionHandler:
        """The handler of an option that is a whole number, also one such as ``0x10``."""
        return OptionHandler(lambda text: _integer(text, "Not a valid integer"))

    @staticmethod
    def createWithDouble(
        lowerBound: float = -math.inf,
        lowerBoundIsInclusive: bool = True,
        upperBound: float = math.inf,
        upperBoundIsInclusive: bool = True,
    ) -> OptionHandler:
        """The handler of an option that is a number between two bounds.

        Parameters
        ----------
        lowerBound:
            The smallest number; by default there is no such bound.
        lowerBoundIsInclusive:
            Whether it is allowed itself.
        upperBound:
            The largest number; by default there is no such bound.
        upperBoundIsInclusive:
            Whether it is allowed itself.

        Returns
        -------
        OptionHandler
            It refuses NaN and what is no number.
        """

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
        """The handler of an option that is any text, which is its own value."""
        return OptionHandler(str)

    @staticmethod
    def createWithList() -> OptionHandler:
        """The handler of an option of whole numbers with commas between them, as a list; no text gives none."""
        wrong = "Not a comma-separated list of integers"
        return OptionHandler(lambda text: [_integer(part, wrong) for part in text.split(",")] if text else [])


def _integer(text: str, wrong: str) -> int:
    try:
        return int(text, 16 if "0x" in text else 10)
    except ValueError:
        raise InvalidOption(wrong) from None


@public
class OptionSpec:
    """The options of a call, each with what reads it: ``OptionSpec({"depth": OptionHandler.createWithInteger()})``.

    Parameters
    ----------
    handlers:
        A handler for the name of each option.

    Raises
    ------
    PoplarTypeError
        For what is no `OptionHandler`.

    Examples
    --------
    >>> from pypoplar.poputil import OptionHandler, OptionSpec
    >>> depth, mode = OptionHandler.createWithInteger(), OptionHandler.createWithEnum({"fast": 1, "small": 2})
    >>> spec = OptionSpec({"depth": depth, "mode": mode})
    >>> spec.parse("depth", "0x10"), spec.parse("mode", "small")
    (16, 2)
    """

    def __init__(self, handlers: Mapping[str, OptionHandler]) -> None:
        self._handlers = dict(ordered(handlers, "the options of an OptionSpec", OPTIONS))
        for option, handler in self._handlers.items():
            if not isinstance(handler, OptionHandler):
                raise PoplarTypeError(f"OptionSpec: the option {option!r} has an OptionHandler, got {handler!r}")

    def parse(self, option: str, value: object, ignoreUnknown: bool = False) -> Any:
        """The value of an option that a program gave.

        Parameters
        ----------
        option:
            Its name.
        value:
            Its text.
        ignoreUnknown:
            Whether a name that is not known gives None, else an error.

        Returns
        -------
        Any
            What the handler makes of the text.

        Raises
        ------
        InvalidOption
            For a name that is not known, with the nearest one, and for a value that is not allowed.
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
