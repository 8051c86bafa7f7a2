"""How the profile summary writes numbers, names and columns."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.report.program_nodes import Program

DATA_TYPES = {  # category of a tile's memory -> its words; others are spelled out from their names
    "vertex_state": "Vertex Instances",
    "code": "Vertex Code",
}
Line = tuple[str, str]  # label and value, put into columns by `columns`


def columns(lines: Iterable[Line], indent: int) -> list[str]:
    """Labels to the left, values to the right, all values ending in one column."""
    rows = list(lines)
    left_width = max((len(label) for label, _ in rows), default=0)
    right_width = max((len(value) for _, value in rows), default=0)
    return [f"{'':{indent}}{label:<{left_width}}  {value:>{right_width}}" for label, value in rows]


def labelled(lines: Iterable[Line], indent: int) -> list[str]:
    """Labels to the left, values beginning in one column."""
    rows = list(lines)
    width = max((len(label) for label, _ in rows), default=0)
    return [f"{'':{indent}}{label:<{width}} {value}" for label, value in rows]


def size(count: int) -> str:
    """A number of bytes as texts write it."""
    return f"{count:,} B"


def heading_words(name: str) -> str:
    """A name in snake_case as the words of a heading: "exchange_buffers" is "Exchange Buffers"."""
    return DATA_TYPES.get(name) or name.replace("_", " ").title()


def shown_name(name: str) -> str:
    """A name on one line; what has none is anonymous."""
    return " ".join(name.split()) or "<anonymous>"


def heading(program: Program) -> str:
    """What a node of the program tree is: ``Repeat 100 times: train``, ``If x: choose``."""
    kind, detail = program.type, program.detail
    if detail.startswith(f"{kind.lower()} "):
        detail = detail[len(kind) + 1 :]
    text = f"{kind} {detail}" if detail else kind
    return f"{text}: {shown_name(program.name)}" if program.name else text
