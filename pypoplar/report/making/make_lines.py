"""Makes the profile of lines of what the vertices of an executable counted."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cost.loop_notes import LoopNote
from pypoplar.codelet.cost.pricing import COMPILED, LinePrice
from pypoplar.executable.compute_sets import Computes
from pypoplar.executable.executable import Executable
from pypoplar.interface.edge_rows import RowEntry, edge_row, entry_words
from pypoplar.interface.layout import NOTHING
from pypoplar.report.line_profile import (
    CodeletText,
    FieldSize,
    LinePart,
    LineProfile,
    LoopHint,
    SlowestVertex,
    SourceLine,
    VertexGroup,
)
from pypoplar.report.run_account import VertexCounts

DEFINITION = re.compile(r"\s*(async\s+)?def\s")


def make_line_profile(executable: Executable, counts: VertexCounts) -> LineProfile:
    """The profile, with the compute sets under the names of their steps."""
    names = _compute_names(executable)
    ran = {int(codelet) for row, codelet in enumerate(counts.codelet) if _ran(counts, row)}
    workers = executable.target.getNumWorkerContexts()
    texts = {
        codelet: _text(executable.codelets[codelet], counts.prices[codelet], counts.loops[codelet], workers)
        for codelet in sorted(ran)
    }
    return LineProfile(
        executable.options.codelet_cost == COMPILED,
        tuple(texts.values()),
        tuple(_groups(executable, counts, names, texts)),
        tuple(_slowest(executable, counts, names)),
    )


def _compute_names(executable: Executable) -> dict[int, str]:
    """The name of each compute's compute set."""
    return {step.compute: step.name for step in executable.steps if step.compute != NOTHING}


def _ran(counts: VertexCounts, row: int) -> bool:
    return bool(counts.slots[row]) or bool(counts.blocks[counts.first[row] : counts.first[row + 1]].any())


def _text(codelet: Codelet, prices: Sequence[Sequence[LinePrice]], notes: Sequence[LoopNote], workers: int) -> CodeletText:
    """The text of the functions that a codelet's code is made of."""
    lines: list[SourceLine] = []
    places: dict[tuple[str, int], int] = {}
    used = {(location.file, location.line) for location in codelet.typed.locations}
    for function in codelet.source.functions:
        listing = function.listing
        texts = listing.text.rstrip().split("\n")  # other ends of lines, as a form feed, are none of Python's
        numbers = range(listing.first_line, listing.first_line + len(texts))
        if function is not codelet.source.functions[0] and not any((listing.file, number) in used for number in numbers):
            continue  # its code is nobody's, or has been folded away
        for number, text in zip(numbers, texts, strict=True):
            if (listing.file, number) not in places:
                places[listing.file, number] = len(lines)
                lines.append(SourceLine(function.name, listing.file, number, text))
    entry = next((place for place, line in enumerate(lines) if DEFINITION.match(line.text)), 0)

    def place_of(where: int) -> int:
        if where == NOTHING:
            return entry
        location = codelet.typed.locations[where]
        if (location.file, location.line) not in places:
            places[location.file, location.line] = len(lines)
            lines.append(SourceLine(location.function, location.file, location.line, ""))
        return places[location.file, location.line]

    blocks = tuple(_parts([(place_of(price.where), price.slots, price.bound) for price in block]) for block in prices)
    hints = tuple(
        LoopHint(place_of(note.where), note.blocks.start, note.blocks.stop, note.reason, note.saved, note.fields) for note in notes
    )
    return CodeletText(codelet.name, workers if codelet.kind == "multi" else 1, tuple(lines), blocks, hints)


def _parts(prices: Sequence[tuple[int, int, int]]) -> tuple[LinePart, ...]:
    """Lines of a block, each once: several locations may be on one line."""
    places = dict.fromkeys(place for place, _, _ in prices)
    return tuple(
        LinePart(place, *(sum(price[column] for price in prices if price[0] == place) for column in (1, 2))) for place in places
    )


def _groups(
    executable: Executable, counts: VertexCounts, names: dict[int, str], texts: dict[int, CodeletText]
) -> list[VertexGroup]:
    """The vertices of each type in each compute set. Those of a compute set with and without a result are the same ones."""
    rows: dict[tuple[str, int], list[int]] = {}
    for row, (compute, codelet) in enumerate(zip(counts.compute.tolist(), counts.codelet.tolist(), strict=True)):
        if compute in names and _ran(counts, row):
            rows.setdefault((names[compute], codelet), []).append(row)
    groups = []
    for (name, codelet), of_group in rows.items():
        blocks = len(texts[codelet].blocks)
        executions = sum(counts.blocks[counts.first[row] : counts.first[row] + blocks] for row in of_group)
        vertices = _vertices(executable.computes, codelet, [int(counts.compute[row]) for row in of_group])
        slots = int(counts.slots[of_group].sum())
        groups.append(VertexGroup(name, executable.codelets[codelet].name, vertices, slots, tuple(np.asarray(executions).tolist())))
    return groups


def _vertices(computes: Computes, codelet: int, of: Sequence[int]) -> int:
    """How many vertices of a codelet some computes have together, each counted once."""
    numbers: set[int] = set()
    for compute in of:
        groups = slice(*computes.first_group[computes.first_active[compute : compute + 2]].tolist())
        own = np.flatnonzero(computes.group_codelet[groups] == codelet) + groups.start
        for group in own.tolist():
            begin = int(computes.group_position[group])
            numbers.update(computes.vertex[begin : begin + int(computes.group_count[group])].tolist())
    return len(numbers)


def _slowest(executable: Executable, counts: VertexCounts, names: dict[int, str]) -> list[SlowestVertex]:
    """The slowest vertex of each compute set."""
    most: dict[str, int] = {}
    for compute, name in names.items():
        cycles = int(counts.slowest_cycles[compute])
        if cycles and (name not in most or cycles > counts.slowest_cycles[most[name]]):
            most[name] = compute
    return [
        _slowest_vertex(executable, name, int(counts.slowest[compute]), int(counts.slowest_cycles[compute]))
        for name, compute in most.items()
    ]


def _slowest_vertex(executable: Executable, compute_set: str, position: int, cycles: int) -> SlowestVertex:
    computes = executable.computes
    group = int(np.searchsorted(computes.group_position, position, side="right")) - 1
    active = int(np.searchsorted(computes.first_group, group, side="right")) - 1
    codelet = executable.codelets[int(computes.group_codelet[group])]
    words = int(computes.codelet_words[int(computes.group_codelet[group])])
    row = int(computes.group_row[group]) + words * (position - int(computes.group_position[group]))
    sizes = _field_sizes(codelet, computes, row, touches=executable.touches is not None)
    return SlowestVertex(compute_set, codelet.name, int(computes.active_tile[active]), cycles, sizes)


def _field_sizes(codelet: Codelet, computes: Computes, row: int, *, touches: bool) -> tuple[FieldSize, ...]:
    """How long the vectors and lists of a vertex are, whose edge row begins at a word."""
    sizes = []
    entry = entry_words(record_touches=touches)
    for declared, place in zip(codelet.typed.fields, edge_row(codelet.fields, record_touches=touches).fields, strict=True):
        if place.extent == NOTHING:
            continue
        extent = int(computes.words[row + place.extent])
        if declared.form == "list":
            first = entry * int(computes.words[row + place.start]) + RowEntry.LENGTH
            elements = int(computes.row_table[first : first + entry * extent : entry].sum())
            sizes.append(FieldSize(declared.name, elements, extent))
        else:
            sizes.append(FieldSize(declared.name, extent // declared.unit))
    return tuple(sizes)
