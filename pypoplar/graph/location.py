"""Where in the user's code something was made.

Every vertex, variable and program remembers its line, so that a message about it can name that line. Taking note of a line
must cost next to nothing, since a graph has 10^5 vertices and more: a `LocationTable` turns (code object, instruction) into a
small number, and the readable `Location` is made only when somebody asks for it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from types import CodeType, FrameType

from pypoplar.codelet.ir.terms import Location
from pypoplar.tracebacks import is_ours

_INSIDE = -1
_file_is_ours = functools.lru_cache(1024)(is_ours)  # each program asks it of some frames, of the same few files


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
        self._numbers: dict[tuple[int, int], int] = {}
        self._places: list[tuple[CodeType, int]] = []

    def note(self, depth: int = 2) -> int:
        """The number of the nearest line outside pypoplar, looking from `depth` frames up (1 is the caller)."""
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

    def location(self, number: int) -> Location:
        """The line with this number."""
        return location_of(*self._places[number])

    def all_of(self, numbers: Iterable[int]) -> tuple[Location, ...]:
        """The lines with these numbers, each made once: a loop makes many things at one line."""
        made: dict[int, Location] = {}
        return tuple(made[number] if number in made else made.setdefault(number, self.location(number)) for number in numbers)

    def __len__(self) -> int:
        return len(self._places)


def caller_location(made: object = None) -> Location:
    """The nearest line outside pypoplar that led here; the constructor of what is `made` is none, wherever its class is from."""
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
