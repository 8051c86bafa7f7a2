"""The section of the profile summary on the user's lines on the host: what the programs that each made cost."""

from __future__ import annotations

from attrs import define, field

from pypoplar.arrays.number_ranges import counted
from pypoplar.report.execution import Execution
from pypoplar.report.program_nodes import short_place
from pypoplar.report.text.text_columns import shown_name

LINES = 10  # most lines that are shown; the rest is summed
NAMES = 2  # names of steps that a line is shown with


@define
class _Line:
    """A line with what its steps cost."""

    cycles: int = 0
    names: dict[str, None] = field(factory=dict)


def host_lines_section(execution: Execution) -> list[str]:
    """Lines by the cycles of all steps that they made, the most first; none where they are not known."""
    lines: dict[str, _Line] = {}
    for step in execution.steps:
        if step.program is not None and step.program.made_at:
            line = lines.setdefault(step.program.made_at, _Line())
            line.cycles += step.cycles
            line.names[shown_name(step.name)] = None
    if not lines:
        return []
    total = execution.stepCycles
    order = sorted(lines.items(), key=lambda entry: (-entry[1].cycles, entry[0]))
    places = _shown(tuple(lines))
    rows = [(places[place], line.cycles, _names(tuple(line.names))) for place, line in order[:LINES]]
    rest = sum(line.cycles for _, line in order[LINES:])
    if rest:
        rows.append((counted(len(order) - LINES, "more line"), rest, ""))
    left, right = (max(len(text) for text in column) for column in zip(*((row[0], f"{row[1]:,}") for row in rows), strict=True))
    return [
        "  Cycles by line of the program on the host:",
        *(
            f"    {place:<{left}}  {cycles:>{right},}  {cycles / total if total else 0.0:>6.1%}  {names}".rstrip()
            for place, cycles, names in rows
        ),
    ]


def _shown(places: tuple[str, ...]) -> dict[str, str]:
    """How lines are called: without their directories, unless that is the name of two."""
    known: dict[str, list[str]] = {}
    for place in places:
        known.setdefault(short_place(place), []).append(place)
    return {place: short if len(same) == 1 else place for short, same in known.items() for place in same}


def _names(names: tuple[str, ...]) -> str:
    """The first names of a line's steps, and how many more there are."""
    more = f" and {len(names) - NAMES:,} more" if len(names) > NAMES else ""
    return f"{', '.join(names[:NAMES])}{more}"
