"""The debug buffer: what vertices print, record after record.

A record is the words of `PrintRecord`, followed by those of `Value` for each value that is printed. Behind the records of a group
of vertices the driver puts the words of `Mark`; what none of these has reached holds `NO_MARK` in its first word.
"""

from __future__ import annotations

from enum import auto

from pypoplar.interface.layout import Code, Layout, words


class PrintRecord(Layout):
    """The beginning of a record."""

    VERTEX = auto()  # its row in the group
    LOCATION = auto()
    TEXT = auto()
    VALUES = auto()  # how many


class Value(Layout):
    """A value of a record."""

    TYPE = auto()  # `ValueType`
    BITS = auto()  # a float as float64


class Mark(Layout):
    """The end of a group's records."""

    MARK = auto()  # `GROUP_MARK`: vertices are numbered from 0 on
    GROUP = auto()
    SEQUENCE = auto()  # compute sets that the program had come to


class ValueType(Code):
    """Types of printed values: the names are those of the register types of `pypoplar.codelet.ir.typed`."""

    f32 = auto()
    f16 = auto()
    i32 = auto()
    u32 = auto()
    i64 = auto()
    u64 = auto()
    bool = auto()


GROUP_MARK = -1
NO_MARK = -2
RECORD_WORDS = words(PrintRecord)
VALUE_WORDS = words(Value)
MARK_WORDS = words(Mark)
