"""Where in the user's code something was made.

Every vertex, variable and program remembers its line, so that a message about it can name that line. Taking note of a line
must cost next to nothing, since a graph has 10^5 vertices and more: a `LocationTable` turns (code object, instruction) into a
small number, and the readable `Location` is made only when somebody asks for it.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import CodeType, FrameType

from pypoplar.codelet.ir.terms import Location
from pypoplar.errors import PoplarTypeError
from pypoplar.tracebacks import is_ours, public

_INSIDE = -1
_here: ContextVar[Location | None] = ContextVar("location", default=None)  # what is being made belongs to this line
_file_is_ours = functools.lru_cache(1024)(is_ours)  # each program asks it of some frames, of the same few files


@public
def location(file: str, line: int, function: str = "") -> AbstractContextManager[None]:
    """Let what is made meanwhile belong to a line of another file: for libraries and front ends that read a program from somewhere.

    Messages, reports and profiles name this line in the place of the one that called pypoplar.

    Parameters
    ----------
    file:
        The name of the file.
    line:
        The number of the line in it, from 1 on.
    function:
        What the line is in, as Python's `__qualname__` names it, where that is known.

    Returns
    -------
    AbstractContextManager
        What a ``with`` statement takes.

    Raises
    ------
    PoplarTypeError
        For what is no text and no number.

    Examples
    --------
    >>> import pypoplar
    >>> from pypoplar.program import Sequence
    >>> with pypoplar.location("network.txt", 12):
    ...     program = Sequence()
    >>> program.location.file, program.location.line
    ('network.txt', 12)
    """
    if type(file) is not str or type(function) is not str:
        raise PoplarTypeError(f"location takes the names of a file and of a function, got {file!r} and {function!r}")
    if type(line) is not int or line < 1:
        raise PoplarTypeError(f"location takes the number of a line, from 1 on, got {line!r}")
    return at(Location(file, line, function))


@contextlib.contextmanager
def at(here: Location | None) -> Iterator[None]:
    """Let what is made meanwhile belong to a line, or, with None, to the line that makes it."""
    before = _here.set(here)
    try:
        yield
    finally:
        _here.reset(before)


def location_of(code: CodeType, instruction: int) -> Location:
    """The readable form of a place in a code object."""
    line = code.co_firstlineno
    for begin, end, number in code.co_lines():
        if begin <= instruction < end and number is not None:
            line = number
            break
    return Location(code.co_filename, line, code.co_qualname)


class LocationTable:
    """Numbers for lines of the user's code."""

    __slots__ = ("_numbers", "_places")

    def __init__(self) -> None:
        # A code object is hashed by value, which is slow; its id serves, because `_places` keeps it alive.
        self._numbers: dict[tuple[int, int] | Location, int] = {}
        self._places: list[tuple[CodeType, int] | Location] = []

    def note(self, depth: int = 2) -> int:
        """The number of the line that `location` says, else of the nearest one of the user's, `depth` frames up or further."""
        here = _here.get()
        if here is not None:
            return self._noted(here)
        frame = sys._getframe(depth)
        code = frame.f_code
        number = self._numbers.get((id(code), frame.f_lasti), _INSIDE)
        if number != _INSIDE:
            return number
        while is_ours(code.co_filename) and frame.f_back is not None:
            frame = frame.f_back
            code = frame.f_code
        key = (id(code), frame.f_lasti)
        number = self._numbers.get(key, _INSIDE)
        if number == _INSIDE:
            number = len(self._places)
            self._places.append((code, frame.f_lasti))
            self._numbers[key] = number
        return number

    def _noted(self, here: Location) -> int:
        number = self._numbers.setdefault(here, len(self._places))
        if number == len(self._places):
            self._places.append(here)
        return number

    def location(self, number: int) -> Location:
        """The line with this number."""
        place = self._places[number]
        return place if isinstance(place, Location) else location_of(*place)

    def all_of(self, numbers: Iterable[int]) -> tuple[Location, ...]:
        """The lines with these numbers, each made once: a loop makes many things at one line."""
        made: dict[int, Location] = {}
        return tuple(made[number] if number in made else made.setdefault(number, self.location(number)) for number in numbers)

    def __len__(self) -> int:
        return len(self._places)


def caller_location(made: object = None) -> Location:
    """The line that `location` says, else the nearest one outside pypoplar that led here.

    The constructor of what is `made` is none, wherever its class is from.
    """
    here = _here.get()
    if here is not None:
        return here
    frame = sys._getframe(1)
    while frame.f_back is not None and (_file_is_ours(frame.f_code.co_filename) or _constructs(frame, made)):
        frame = frame.f_back
    return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def _constructs(frame: FrameType, made: object) -> bool:
    """Whether a frame is of the constructor of an object."""
    code = frame.f_code
    if made is None or code.co_name != "__init__" or not code.co_argcount:
        return False
    return frame.f_locals.get(code.co_varnames[0]) is made
