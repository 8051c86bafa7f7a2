"""A finding in words, and the weight that it has by what it could save."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from attrs import frozen

from pypoplar.report.escaping import escaped
from pypoplar.report.execution import Execution
from pypoplar.report.line_profile import SourceLine

Weight = Literal["grave", "notable", "good to know"]
# From which share a finding is told at all, from which it is worth a warning, and from which it is the first thing to look at.
TOLD, NOTED, GRAVE = 0.005, 0.15, 0.4
NAMED = 3  # variables named in a sentence


@frozen
class Insight:
    """A finding. `link` is the place in the page that shows it.

    `share` is what it could save at most, and no other finding claims: of the total cycles, or of what a tile has or holds where
    `of_memory`. `lines` is the place of the
    lines of code that it is about; empty where it is about none, or they are not known.
    """

    rule: str
    weight: Weight
    title: str
    text: str
    advice: str
    link: str
    share: float
    of_memory: bool = False
    lines: str = ""


def weigh(share: float) -> Weight:
    """The weight of what could save a share of the total."""
    return "grave" if share >= GRAVE else "notable" if share >= NOTED else "good to know"


def shown(name: str) -> str:
    """A name in quotes, as findings write it."""
    return f'"{name}"' if name else "an unnamed step"


def told_line(line: SourceLine) -> str:
    """A line with its text: ``line 20 of slow.py, `where = self.keys[i] % self.classes` ``."""
    return f"line {line.line} of {Path(line.file).name}, `{line.text.strip()}`"


def lines_link(execution: Execution, **of: str) -> str:
    """The place in the page that shows the lines of a vertex ``type``, or of a compute ``set``; empty where they are not known."""
    if execution.lines is None:
        return ""
    return f"lines?{urlencode({name: escaped(value) for name, value in of.items()})}" if of else "lines"
