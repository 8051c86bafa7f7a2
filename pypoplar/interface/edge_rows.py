"""Edge rows: what a vertex is told of its fields, field after field; and the row table, in which the rows of list fields stand.

Addresses are byte offsets in the memory of the vertex's tile. Where touches are recorded, each scalar and vector field has one
more word behind its own, and the row table's entries have `RowEntry.TOUCH`: where the mark of the first element is, a byte; one
follows for each further element. A mark is 0, or has bits of `Touch` and, from `WORKER_SHIFT` on, the worker of a MultiVertex that
came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import auto
from typing import NamedTuple, Protocol

from pypoplar.interface.layout import NOTHING, Bit, Layout, mask, words


class ScalarField(Layout):
    """Words of a field of one element."""

    ADDRESS = auto()


class VectorField(Layout):
    """Words of a vector field."""

    ADDRESS = auto()
    LENGTH = auto()  # elements


class ListField(Layout):
    """Words of a list of vectors."""

    FIRST = auto()  # its first entry in the row table
    ROWS = auto()


class TouchField(Layout):
    """What stands behind a field's words where touches are recorded."""

    TOUCH = auto()


class RowEntry(Layout):
    """An entry of the row table."""

    ADDRESS = auto()
    LENGTH = auto()  # elements
    TOUCH = auto()  # only where touches are recorded


class Touch(Bit):
    """What has happened to an element."""

    READ = auto()
    WRITTEN = auto()


WORKER_SHIFT = mask(Touch).bit_length()  # where the number of the worker begins in a mark
MOST_WORKERS = 1 << (8 - WORKER_SHIFT)  # that marks tell apart

FIELD_WORDS: Mapping[str, int] = {"scalar": words(ScalarField), "vector": words(VectorField), "list": words(ListField)}
_WORDS: Mapping[str, tuple[int, int]] = {
    "scalar": (ScalarField.ADDRESS, NOTHING),
    "vector": (VectorField.ADDRESS, VectorField.LENGTH),
    "list": (ListField.FIRST, ListField.ROWS),
}


def entry_words(*, record_touches: bool) -> int:
    """Words of an entry of the row table."""
    return words(RowEntry) if record_touches else RowEntry.LENGTH + 1


class EdgeRowField(Protocol):
    """What has to be known of a field: ``"scalar"``, ``"vector"`` or ``"list"``."""

    @property
    def form(self) -> str:
        """What it is, in that word."""


class FieldWords(NamedTuple):
    """Which words of an edge row are a field's; `NOTHING` for those that it does not have."""

    start: int  # the address, or the first entry in the row table
    extent: int  # elements, or rows; a scalar has none
    touch: int  # where its elements' touches are noted


class EdgeRow(NamedTuple):
    """The edge row of a codelet's vertices."""

    fields: tuple[FieldWords, ...]
    words: int


def edge_row(fields: Iterable[EdgeRowField], *, record_touches: bool) -> EdgeRow:
    """Where the words of each field are, in the order of the fields."""
    places, end = [], 0
    for field in fields:
        start, extent = _WORDS[field.form]
        touched = record_touches and field.form != "list"
        own = FIELD_WORDS[field.form]
        touch = end + own + TouchField.TOUCH if touched else NOTHING
        places.append(FieldWords(end + start, end + extent if extent != NOTHING else NOTHING, touch))
        end += own + (words(TouchField) if touched else 0)
    return EdgeRow(tuple(places), end)
