"""The tables of a profile file that hold cycles by source line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from pypoplar.executable.claims import claim, claim_number
from pypoplar.report.file.column_kinds import COUNT, MAYBE, TEXT, ColumnKind
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

Rows = Iterable[Sequence[Any]]


def line_rows(profile: LineProfile) -> Iterator[tuple[str, Rows]]:
    """Names of tables, and their rows."""
    number_of = {text.vertex_type: number for number, text in enumerate(profile.texts)}
    yield "line_profile", [(int(profile.compiled),)]
    yield "codelet", [(number, text.vertex_type, text.workers, len(text.blocks)) for number, text in enumerate(profile.texts)]
    yield (
        "codelet_line",
        (
            (number, place, line.function, line.file, line.line, line.text)
            for number, text in enumerate(profile.texts)
            for place, line in enumerate(text.lines)
        ),
    )
    yield (
        "block_line",
        (
            (number, block, part.line, part.slots, part.bound)
            for number, text in enumerate(profile.texts)
            for block, parts in enumerate(text.blocks)
            for part in parts
        ),
    )
    yield (
        "loop_hint",
        (
            (number, hint.line, hint.first, hint.end, hint.reason, hint.saved, ",".join(hint.fields))
            for number, text in enumerate(profile.texts)
            for hint in text.loops
        ),
    )
    groups = profile.groups
    yield (
        "vertex_group",
        (
            (number, group.compute_set, number_of[group.vertex_type], group.vertices, group.slots)
            for number, group in enumerate(groups)
        ),
    )
    yield (
        "block_execution",
        ((number, block, times) for number, group in enumerate(groups) for block, times in enumerate(group.executions) if times),
    )
    yield (
        "longest_vertex",
        (
            (number, vertex.compute_set, vertex.vertex_type, vertex.tile, vertex.cycles)
            for number, vertex in enumerate(profile.slowest)
        ),
    )
    yield (
        "longest_vertex_field",
        ((number, size.name, size.elements, size.rows) for number, vertex in enumerate(profile.slowest) for size in vertex.sizes),
    )


class TableReader(Protocol):
    """What is asked of the reader of a file."""

    def rows(self, table: str, order: str = "rowid", /, **kinds: ColumnKind) -> list[tuple[Any, ...]]:
        """All rows of a table, whose columns are checked for their kinds."""

    def numbered(self, table: str, key: str, rows: Sequence[Any]) -> None:
        """Claim that the key of each row is its place."""


def read_lines(tables: TableReader, tiles: int) -> LineProfile | None:
    """The profile of lines, if the file has one."""
    about = tables.rows("line_profile", compiled=COUNT)
    claim(len(about) < 2, f"line_profile has {len(about)} rows: expected at most 1")
    texts = _read_texts(tables)
    groups = _read_groups(tables, texts)
    slowest = _read_slowest(tables, tiles)
    if not about:
        claim(not (texts or slowest), "line_profile has 0 rows: codelet and longest_vertex have some")
        return None
    compiled = about[0][0]
    claim_number("line_profile.compiled", compiled, 0, 2)
    return LineProfile(bool(compiled), texts, groups, slowest)


def _read_texts(tables: TableReader) -> tuple[CodeletText, ...]:
    codelets = tables.rows("codelet", vertex_type=TEXT, workers=COUNT, blocks=COUNT)
    tables.numbered("codelet", "codelet", codelets)
    claim(len({row[0] for row in codelets}) == len(codelets), "codelet.vertex_type has one name twice")
    lines: list[list[SourceLine]] = [[] for _ in codelets]
    kinds = {"codelet": COUNT, "place": COUNT, "function": TEXT, "file": TEXT, "line": COUNT, "text": TEXT}
    for number, place, *line in tables.rows("codelet_line", "codelet, place", **kinds):
        claim_number("codelet_line.codelet", number, 0, len(codelets))
        claim(place == len(lines[number]), f"codelet_line.place of codelet {number} is {place}: expected {len(lines[number])}")
        lines[number].append(SourceLine(*line))
    blocks: list[dict[int, list[LinePart]]] = [{} for _ in codelets]
    for number, block, *part in tables.rows("block_line", codelet=COUNT, block=COUNT, place=COUNT, slots=COUNT, bound=COUNT):
        claim_number("block_line.codelet", number, 0, len(codelets))
        claim_number("block_line.block", block, 0, codelets[number][2])
        claim_number("block_line.place", part[0], 0, len(lines[number]))
        claim(part[2] <= part[1], f"block_line of codelet {number} has a bound above its slots")
        blocks[number].setdefault(block, []).append(LinePart(*part))
    hints = _read_hints(tables, [row[2] for row in codelets], list(map(len, lines)))
    return tuple(
        CodeletText(name, workers, tuple(own), tuple(tuple(parts.get(block, ())) for block in range(count)), tuple(loops))
        for (name, workers, count), own, parts, loops in zip(codelets, lines, blocks, hints, strict=True)
    )


def _read_hints(tables: TableReader, blocks: Sequence[int], lines: Sequence[int]) -> list[list[LoopHint]]:
    """By codelet, of each of which the numbers of blocks and lines are known."""
    hints: list[list[LoopHint]] = [[] for _ in blocks]
    numbers = {"codelet": COUNT, "place": COUNT, "first_block": COUNT, "end_block": COUNT}
    rows = tables.rows("loop_hint", **numbers, reason=TEXT, saved=COUNT, fields=TEXT)
    for codelet, place, first, end, reason, saved, fields in rows:
        claim_number("loop_hint.codelet", codelet, 0, len(blocks))
        claim_number("loop_hint.place", place, 0, lines[codelet])
        claim_number("loop_hint.end_block", end, 0, blocks[codelet] + 1)
        claim_number("loop_hint.first_block", first, 0, end + 1)
        hints[codelet].append(LoopHint(place, first, end, reason, saved, tuple(fields.split(",")) if fields else ()))
    return hints


def _read_groups(tables: TableReader, texts: Sequence[CodeletText]) -> tuple[VertexGroup, ...]:
    rows = tables.rows("vertex_group", compute_set=TEXT, codelet=COUNT, vertices=COUNT, slots=COUNT)
    tables.numbered("vertex_group", "vertex_group", rows)
    for _, codelet, *_ in rows:
        claim_number("vertex_group.codelet", codelet, 0, len(texts))
    executions = [[0] * len(texts[codelet].blocks) for _, codelet, *_ in rows]
    for number, block, times in tables.rows(
        "block_execution", "vertex_group, block", vertex_group=COUNT, block=COUNT, executions=COUNT
    ):
        claim_number("block_execution.vertex_group", number, 0, len(rows))
        claim_number("block_execution.block", block, 0, len(executions[number]))
        executions[number][block] = times
    return tuple(
        VertexGroup(name, texts[codelet].vertex_type, vertices, slots, tuple(counts))
        for (name, codelet, vertices, slots), counts in zip(rows, executions, strict=True)
    )


def _read_slowest(tables: TableReader, tiles: int) -> tuple[SlowestVertex, ...]:
    rows = tables.rows("longest_vertex", compute_set=TEXT, vertex_type=TEXT, tile=COUNT, cycles=COUNT)
    tables.numbered("longest_vertex", "longest_vertex", rows)
    sizes: list[list[FieldSize]] = [[] for _ in rows]
    for number, *size in tables.rows("longest_vertex_field", longest_vertex=COUNT, name=TEXT, elements=COUNT, field_rows=MAYBE):
        claim_number("longest_vertex_field.longest_vertex", number, 0, len(rows))
        sizes[number].append(FieldSize(*size))
    for _, _, tile, _ in rows:
        claim_number("longest_vertex.tile", tile, 0, tiles)
    return tuple(
        SlowestVertex(compute_set, vertex_type, tile, cycles, tuple(fields))
        for (compute_set, vertex_type, tile, cycles), fields in zip(rows, sizes, strict=True)
    )
