"""The profile summary's cycles by source line: the text of codelets with what its lines cost, and slowest vertices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from pypoplar.arrays.number_ranges import counted
from pypoplar.report.line_profile import LineCost, LineProfile
from pypoplar.report.text.text_columns import shown_name

LEAST = 0.005  # of all slots: vertex types with less are only counted
AROUND = 1  # lines without cost that are shown around those that have one
GAP = "..."
FEWEST = 3  # lines that a gap stands for
DEFINITION = re.compile(r"\s*(async\s+)?def\s")


def lines_section(profile: LineProfile) -> list[str]:
    """Vertex types by their slots, the most first, each with its text as far as it costs; then slowest vertices."""
    totals = {name: sum(group.slots for group in profile.groups_of(name)) for name in profile.vertex_types}
    whole = sum(totals.values())
    named = [name for name, slots in totals.items() if slots and slots >= LEAST * whole]
    lines = ["  Cycles by source line, in worker slots of all executions:"] if whole else []
    for name in named:
        groups = profile.groups_of(name)
        vertices = sum(group.vertices for group in groups)
        lines.append(
            f"    {shown_name(name)} ({counted(vertices, 'instance')}): {totals[name]:,} slots, {totals[name] / whole:.1%} of all"
        )
        lines += [f"      {line}" for line in text_lines(profile.lines(name))]
    others = [slots for name, slots in totals.items() if name not in named]
    if others and whole:
        lines.append(f"    {counted(len(others), 'more vertex type')}: {sum(others):,} slots")
    return [*lines, *slowest_lines(profile)]


def text_lines(costs: Sequence[LineCost]) -> Iterator[str]:
    """The lines of a codelet that cost something and those around them, by function and file, with figures in front.

    Each function begins with its head, and a gap stands for several lines.
    """
    compiled = any(cost.compiled is not None for cost in costs)
    heads = ["slots", "share", *(["compiled", "bound"] if compiled else []), "line"]
    shown = _shown(costs)
    rows = [[*_figures(costs[place], compiled), str(costs[place].source.line)] for place in shown]
    wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def row(entries: Sequence[str], text: str) -> str:
        return "  ".join((*(f"{entry:>{width}}" for entry, width in zip(entries, wide, strict=True)), text)).rstrip()

    yield row(heads, "text")
    before = -1
    numbered = list(zip(shown, rows, strict=True))
    for (file, function), of_function in groupby(numbered, lambda pair: _place(costs[pair[0]])):
        yield row([""] * len(heads), f"-- {function}, {file}")
        for place, entries in of_function:
            if before >= 0 and place > before + 1 and _place(costs[place]) == _place(costs[before]):
                yield row([""] * len(heads), GAP)
            yield row(entries, costs[place].source.text)
            before = place


def _shown(costs: Sequence[LineCost]) -> list[int]:
    """Places of the lines that cost something, those around them, the head of each function that has any, and short gaps."""
    chosen = {place for place in range(len(costs)) if any(_costs(costs, place + by) for by in range(-AROUND, AROUND + 1))}
    functions = {_place(costs[place]) for place in chosen}
    heads: dict[tuple[str, str], int] = {}
    for place, cost in enumerate(costs):
        if DEFINITION.match(cost.source.text) and _place(cost) in functions:
            heads.setdefault(_place(cost), place)
    shown: list[int] = []
    for place in sorted(chosen | set(heads.values())):
        if shown and place - shown[-1] <= FEWEST and _place(costs[place]) == _place(costs[shown[-1]]):
            shown += range(shown[-1] + 1, place)
        shown.append(place)
    return shown


def slowest_lines(profile: LineProfile) -> list[str]:
    """The slowest vertex of each compute set, the slowest first."""
    slowest = sorted(profile.slowest, key=lambda vertex: (-vertex.cycles, vertex.compute_set))
    lines = ["  Slowest vertex of each compute set, in tile cycles of one execution:"] if slowest else []
    for vertex in slowest:
        sizes = "".join(f", {size}" for size in vertex.sizes)
        lines.append(
            f"    {shown_name(vertex.compute_set)}: {vertex.cycles:,} tile cycles, {shown_name(vertex.vertex_type)} on tile"
            f" {vertex.tile:,}{sizes}"
        )
    return lines


def _place(cost: LineCost) -> tuple[str, str]:
    return cost.source.file, cost.source.function


def _costs(costs: Sequence[LineCost], place: int) -> bool:
    """Whether a line costs something, as executed or as code."""
    return 0 <= place < len(costs) and bool(costs[place].slots or costs[place].compiled)


def _figures(cost: LineCost, compiled: bool) -> list[str]:
    if not (cost.slots or cost.compiled):
        return [""] * (4 if compiled else 2)
    figures = [f"{cost.slots:,}", f"{cost.share:.1%}"]
    return [*figures, f"{cost.compiled:,}", f"{cost.bound:,}"] if compiled else figures
