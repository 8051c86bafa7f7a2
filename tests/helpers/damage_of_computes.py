"""Damage to compute sets: their groups, and what vertices are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from damage import LAST, Damages, beyond_the_end, both, given, insert, less, on, tried
from damage_by_rule import other_shapes
from damage_of_moves import with_an_empty_move
from executable_checks import OFF
from executable_damage import Change, Opened, more, put, put_leaf

from pypoplar.executable.vertex_rows import rows_by_codelet
from pypoplar.interface.edge_rows import RowEntry


def empty_tile(damaged: Opened) -> None:
    """A tile that is active in the first compute set, and has no vertices there."""
    computes = damaged.executable().computes
    place = int(computes.first_active[1])
    insert(damaged, "computes.active_tile", place, int(computes.active_tile[place - 1]) + 1)
    insert(damaged, "computes.cost", place, 0)
    insert(damaged, "computes.first_group", place, int(computes.first_group[place]))
    damaged.array("computes", "first_active")[1:] += 1


def empty_group(damaged: Opened) -> None:
    """A vertex more of Noise, whose words are those of the next tile's, in place of the one vertex before."""
    executable = damaged.executable()
    computes = executable.computes
    (noise,) = (number for number, codelet in enumerate(executable.codelets) if codelet.name == "Noise")
    inner = np.setdiff1d(np.arange(len(computes.group_codelet)), computes.first_group)
    group = int(inner[computes.group_codelet[inner] == noise][0])
    damaged.array("computes", "group_count")[[group - 1, group]] = 0, 2
    damaged.array("computes", "group_position")[group] -= 1


def last_group(damaged: Opened) -> None:
    """The edge rows of the last group end one word beyond all."""
    computes = damaged.executable().computes
    size = int(computes.group_count[-1] * computes.codelet_words[computes.group_codelet[-1]])
    damaged.array("computes", "group_row")[-1] = len(computes.words) - size + 1


def swapped_order(damaged: Opened) -> None:
    """The first vertex stands for the last one, counted backwards from it, and the last one for the first."""
    order, vertices = damaged.array("computes", "list_order"), damaged.arrays["computes.vertex"].size
    computes = damaged.executable().computes
    first = np.append(computes.group_position, vertices)[computes.first_group]
    order[0], order[-1] = -1, -int(first[-2])


def result_place(place: Callable[[int], int]) -> Change:
    """Where the first result goes that is stored: a function of the bytes of its tile's memory."""

    def change(damaged: Opened) -> None:
        computes = damaged.executable().computes
        number = int(np.flatnonzero(computes.result_tile >= 0)[0])
        size = int(damaged.array("tile_bytes")[computes.result_tile[number]])
        damaged.array("computes", "result_offset")[number] = place(size)

    return change


def first_vertex(place: Callable[[Any], int]) -> Change:
    """Where the vertices of the first compute set begin: a function of the compute sets."""
    return given(lambda damaged: put("computes.first_vertex", 0, place(damaged.executable().computes)))


def second_tile(computes: Any) -> int:
    return int(computes.group_position[computes.first_group[1]])


def tile_like(place: int, other: int) -> Change:
    """The tiles of two entries are one."""
    return given(lambda damaged: put("computes.active_tile", place, damaged.arrays["computes.active_tile"][other]))


def field(name: str, **values: Any) -> Change:
    """A change of the words of a field of the codelet's first vertex; a function gets the bytes of its tile's memory."""

    def change(damaged: Opened) -> None:
        executable = damaged.executable()
        for rows in rows_by_codelet(executable.codelets, executable.computes, record_touches=executable.touches is not None):
            for described, words in zip(rows.codelet.fields, rows.layout.fields, strict=True):
                if f"{rows.codelet.name}.{described.name}" == name:
                    size = int(executable.tile_bytes[rows.tile[0]])
                    for word, value in values.items():
                        place = rows.first_word[0] + getattr(words, word)
                        damaged.array("computes", "words")[place] = value(size) if callable(value) else value

    return change


def first_word(name: str, word: str) -> Callable[[Opened], int]:
    """A word of a field of the codelet's first vertex."""

    def value(damaged: Opened) -> int:
        executable = damaged.executable()
        for rows in rows_by_codelet(executable.codelets, executable.computes, record_touches=False):
            for described, words in zip(rows.codelet.fields, rows.layout.fields, strict=True):
                if f"{rows.codelet.name}.{described.name}" == name:
                    return int(executable.computes.words[rows.first_word[0] + getattr(words, word)])
        raise LookupError(name)

    return value


def row(**words: Any) -> Change:
    """A change of the first row of the list fields; a function gets the bytes of its tile's memory."""

    def change(damaged: Opened) -> None:
        executable = damaged.executable()
        computes = executable.computes
        (lists,) = [
            rows
            for rows in rows_by_codelet(executable.codelets, computes, record_touches=False)
            if any(described.form == "list" for described in rows.codelet.fields)
        ]
        for name, value in words.items():
            size = int(executable.tile_bytes[lists.tile[0]])
            damaged.array("computes", "row_table")[RowEntry[name]] = value(size) if callable(value) else value

    return change


def row_mark(value: Any) -> Change:
    return put("computes.row_table", RowEntry.TOUCH, value)


def row_mark_beyond(damaged: Opened) -> Change:
    """The marks of the first row end one byte beyond all."""
    return row_mark(damaged.tree["touch_bytes"] + 1 - damaged.arrays["computes.row_table"][RowEntry.LENGTH])


OF_COMPUTES: Damages = {
    "computes.first_active begin": on("vertices", both(put("computes.first_active", 0, 1), first_vertex(second_tile))),
    "computes.first_active rise": on("vertices", beyond_the_end("computes.first_active")),
    "computes.first_group begin": on(
        "vertices", both(put("computes.first_group", 0, -1), first_vertex(lambda computes: len(computes.vertex)))
    ),
    "computes.first_group rise": on("vertices", empty_tile),
    "computes.group_count": on("vertices", empty_group),
    "computes.group_row high": on("vertices", put("computes.group_row", 0, LAST), OFF),
    "computes.group_row end": on("vertices", last_group),
    "computes.vertex": on("vertices", both(put("computes.group_count", -1, more), put("computes.group_row", -1, less))),
    "computes workers": on("control", put_leaf("target", "num_worker_contexts", 1 << 40)),
    "computes.active_tile order": tried("vertices", [tile_like(i, j) for i in range(1, 20) for j in (i - 1, i + 1)]),
    "computes.list_order least": on("vertices", swapped_order, OFF),
    "computes.list_order most": on("vertices", put("computes.list_order", -1, 1)),
    "computes.list_order whole": on("vertices", put("computes.list_order", slice(None), 0)),
    "computes.moves low": on("vertices", both(with_an_empty_move, put("computes.moves", (0, 0), -2))),
    "computes.moves host": on(
        "several_ipus", given(lambda damaged: put("computes.moves", (0, 0), len(damaged.array("moves", "first_list")) - 2))
    ),
    "computes.result_offset least": on("several_ipus", result_place(lambda size: -1)),
    "computes.result_offset most": on("several_ipus", result_place(lambda size: size)),
    "computes.row_table": tried("vertices", other_shapes("vertices", "computes.row_table")),
    "field address low": on("vertices", field("Narrow.char", start=-1, extent=1)),
    "field address high": on("vertices", field("Narrow.char", start=LAST), OFF),
    "field length low": on("vertices", field("Scale.x", extent=-1)),
    "field length high": on("vertices", field("Scale.x", extent=1 << 62), OFF),
    "field end": on("vertices", field("Scale.x", start=lambda size: size + 1, extent=0)),
    "field alignment": on("vertices", field("Scale.x", start=1, extent=1)),
    "field apart": on("demands", given(lambda damaged: field("Apart.x", start=first_word("Apart.y", "start")(damaged)))),
    "in_place apart": on("demands", put("in_place", (0, 1), 0)),
    "field records": on("records", field("Follow.rays", extent=23)),
    "field marks low": on("judged", field("Touch.x", touch=-1)),
    "field marks high": on("judged", field("Touch.x", touch=LAST), OFF),
    "field marks end": on("judged", given(lambda damaged: field("Touch.x", touch=damaged.tree["touch_bytes"] - 15))),
    "list first low": on("vertices", field("SumRows.rows", start=-1)),
    "list first high": on("vertices", field("SumRows.rows", start=LAST), OFF),
    "list rows": on("vertices", field("SumRows.rows", extent=-1)),
    "list end": on("vertices", field("SumRows.rows", start=1)),
    "list shared": on("judged", field("Touch.rows", extent=5)),
    "row address low": on("vertices", row(ADDRESS=-1, LENGTH=0)),
    "row address high": on("vertices", row(ADDRESS=LAST - 3, LENGTH=1), OFF),
    "row length low": on("vertices", row(LENGTH=-1)),
    "row length high": on("vertices", row(LENGTH=1 << 62), OFF),
    "row end": on("vertices", row(ADDRESS=lambda size: size + 1, LENGTH=0)),
    "row alignment": on("vertices", row(ADDRESS=1, LENGTH=1)),
    "row marks low": on("judged", row_mark(-1)),
    "row marks high": on("judged", row_mark(LAST), OFF),
    "row marks end": on("judged", given(row_mark_beyond)),
}
