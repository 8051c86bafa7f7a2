"""How words, columns, codes and bits are numbered: in the order in which an enumeration names them.

Every table that generated code, compiler, driver, verifier and interpreter share is made of 64-bit words, unless it says otherwise.
An enumeration's own order is the only place where it stands which word holds what.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

WORD_BYTES = 8
CACHE_LINE_WORDS = 8
NOTHING = -1  # in a word that else holds a number from 0 on: there is none


class Layout(IntEnum):
    """Words of a record, or columns of a table, from the first on."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return count


class Code(IntEnum):
    """Numbers that tell kinds apart, from 0 on."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return count


class Bit(IntEnum):
    """Bits of a mask, from the lowest on."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return 1 << count


def words(layout: type[Layout]) -> int:
    """How many words a record has, or columns a table."""
    return max(layout) + 1


def whole_lines(layout: type[Layout]) -> int:
    """Words of a record that fills cache lines, so that records side by side can be written by threads of their own."""
    return -(-words(layout) // CACHE_LINE_WORDS) * CACHE_LINE_WORDS


def mask(bits: type[Bit]) -> int:
    """All bits together."""
    return sum(bits)
