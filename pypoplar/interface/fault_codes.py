"""What stops a vertex."""

from __future__ import annotations

from enum import auto
from typing import Any

from pypoplar.interface.layout import Bit, Code, mask

NO_FAULT = 0


class FaultCode(Code):
    """Why a vertex stopped; the value and the bound that are recorded with it stand behind each."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return Code._generate_next_value_(name, start, count, last_values) + 1  # NO_FAULT is none of them

    INDEX = auto()  # the index, the length
    ZERO_DIVISION = auto()  # of integers
    SHIFT_WIDTH = auto()  # the amount, the type's width
    NEGATIVE_POWER = auto()  # the exponent
    RANGE_STEP = auto()  # of 0
    CHECK = auto()  # the message's number
    CYCLE_LIMIT = auto()  # slots spent (not more than allowed: those of the loop's rounds come to them), slots allowed
    INVALID = auto()  # a floating-point operation whose result is NaN
    OVERFLOW = auto()
    DIVISION_BY_ZERO = auto()
    UNINITIALISED = auto()  # the index of the element that nothing has written
    SLICE_BOUNDS = auto()  # the bound, the length
    ROW_INDEX = auto()  # the row, how many there are
    READ_AFTER_WRITE = auto()  # the index of the element, of an Input that is one tensor with an Output; where touches are recorded
    WORKER_RACE = auto()  # where the element's mark is, see `edge_rows`, from the tile's memory on; the mark, and 256 times its own
    VIEW_ALIGNMENT = auto()  # bytes from the last multiple of the alignment, the alignment: of a view of bytes as records
    VIEW_SIZE = auto()  # the bytes, those of a record
    UNWRITTEN = auto()  # the number of a field promised to be written in full; the element left out, and 2**32 times its row
    VECTOR_COUNT = auto()  # a count or stride below 0 of an operation on vectors; which one, in their order
    VECTOR_ROWS = auto()  # how far rows that are written lie apart, how long they are
    VECTOR_EXTENT = auto()  # elements that are needed of a vector; its length, and 2**32 times which one it is


class FloatingPoint(Bit):
    """How floating-point arithmetic behaves: exceptions that can be faults, and how results are rounded to halves."""

    INVALID = auto()
    OVERFLOW = auto()
    DIVISION_BY_ZERO = auto()
    STOCHASTIC = auto()  # rounds at random


EXCEPTIONS = mask(FloatingPoint) - FloatingPoint.STOCHASTIC
"""The bits of the exceptions."""
