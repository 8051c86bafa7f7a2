"""Where vertices mark the elements that they touch (`pypoplar.races = "elements"`), once the engine's memory is known."""

from __future__ import annotations

from pypoplar.arrays.dtypes import Int64s
from pypoplar.engine.arena import Arena
from pypoplar.executable.executable import Executable
from pypoplar.executable.vertex_rows import ListedRows, rows_by_codelet
from pypoplar.interface.edge_rows import RowEntry, entry_words
from pypoplar.interface.layout import NOTHING


def rows_with_marks(executable: Executable, memory: Arena) -> tuple[Int64s, Int64s]:
    """The edge rows and the row table as vertices read them.

    A vertex finds everything from its tile's memory on: the place of a mark, which the executable counts from the first mark,
    becomes what it is from there.
    """
    computes = executable.computes
    if executable.touches is None:
        return computes.words, computes.row_table
    words = computes.words.copy()
    table = computes.row_table.reshape(-1, entry_words(record_touches=True)).copy()
    for rows in rows_by_codelet(executable.codelets, computes, record_touches=True):
        base = memory.marks_base - memory.tile_base[rows.tile]
        for described, place in zip(rows.codelet.fields, rows.layout.fields, strict=True):
            if place.touch != NOTHING:
                words[rows.first_word + place.touch] += base
            if described.form == "list":
                listed = ListedRows.of(words[rows.first_word + place.start], words[rows.first_word + place.extent])
                table[listed.entry, RowEntry.TOUCH] += base[listed.owner]
    return words, table.ravel()
