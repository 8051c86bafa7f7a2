"""The views of a page, and the parts of its data that they read: a new view is a row here, a script, and the module of its data."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from attrs import frozen

from pypoplar.report.insights.ranking import insight_data
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.comparison import (
    Sides,
    category_changes,
    compute_set_changes,
    step_changes,
    tile_bytes,
    vertex_type_changes,
)
from pypoplar.report.page.difference_data import changed_names, phases_of_both, traces_data, words_data
from pypoplar.report.page.document import asset
from pypoplar.report.page.exchange_data import exchanges_data
from pypoplar.report.page.ipu_data import ipu_data
from pypoplar.report.page.line_data import line_data
from pypoplar.report.page.memory_data import liveness_data, memory_data, step_names, variables_data
from pypoplar.report.page.name_data import name_data
from pypoplar.report.page.operation_data import compute_set_data, vertex_type_rows
from pypoplar.report.page.program_data import tree_data
from pypoplar.report.page.step_data import execution_data, phase_rows
from pypoplar.report.page.summary_data import summary_data, target_data
from pypoplar.report.report import Report

Subject = TypeVar("Subject")  # what a page shows


@frozen
class PageView:
    """A view. It `reads` parts of the page's data by their names; `shows` says what it is for, in ``docs/report.md``.

    ``assets/view_NAME.js`` draws it, in a comparison ``assets/view_compare_NAME.js``: it calls ``page.view(NAME, TITLE, draw)``.
    """

    name: str
    reads: tuple[str, ...]
    shows: str


@frozen
class PageKind(Generic[Subject]):
    """A kind of page: its views in the order of their tabs, and how each part of its data is made, in the order of the file.

    A part that is not known is None, and the views that read it say so. What is heavy goes into the blocks.
    """

    name: str
    scripts: str  # how the names of the views' scripts begin
    parts: Mapping[str, Callable[[Subject, Blocks], Any]]
    views: tuple[PageView, ...]

    def data(self, subject: Subject, blocks: Blocks) -> dict[str, Any]:
        """All that the page's views read, and "kind", the name of this one."""
        read = {part for view in self.views for part in view.reads}
        unknown = sorted(read - self.parts.keys())
        if unknown:
            raise KeyError(f"views of a {self.name} read what is no part of its data: {', '.join(unknown)}")
        return {"kind": self.name} | {name: part(subject, blocks) for name, part in self.parts.items() if name in read}

    def script(self, view: PageView) -> str:
        """The name of the script that draws a view."""
        return f"{self.scripts}{view.name}"

    def title(self, view: PageView) -> str:
        """What the view's tab says, as its script has it."""
        match = re.search(rf'page\.view\("{view.name}", "([^"]+)"', asset(f"{self.script(view)}.js"))
        if match is None:
            raise KeyError(f"{self.script(view)}.js makes no view {view.name!r}")
        return match[1]


REPORT = PageKind[Report](
    "report",
    "view_",
    parts={
        "summary": lambda report, _: summary_data(report),
        "insights": lambda report, _: insight_data(report),
        "phases": lambda report, _: phase_rows(report.execution),
        "target": lambda report, _: target_data(report.compilation.target),
        "total_cycles": lambda report, _: report.execution.stepCycles if report.execution else 0,
        "memory": lambda report, blocks: memory_data(report.compilation, blocks),
        "variables": lambda report, blocks: variables_data(report.compilation.loweredVariables, blocks),
        "liveness": lambda report, blocks: liveness_data(report.compilation, blocks),
        "step_names": lambda report, blocks: step_names(report.compilation, blocks),
        "tree": lambda report, blocks: blocks.known(tree_data(report.compilation.programs, report.execution)),
        "names": lambda report, blocks: blocks.known(name_data(report)),
        "ipus": lambda report, blocks: blocks.known(ipu_data(report)),
        "execution": lambda report, blocks: execution_data(report, blocks),
        "vertex_types": lambda report, blocks: blocks.value(vertex_type_rows(report)),
        "compute_sets": lambda report, blocks: blocks.known(compute_set_data(report)),
        "lines": lambda report, blocks: blocks.known(line_data(report)),
        "exchanges": lambda report, blocks: exchanges_data(report.compilation.exchanges, report.execution, blocks),
    },
    views=(
        PageView(
            "summary",
            ("summary",),
            "cycles, time, memory, bytes moved, floating-point operations; where the time goes, for the machine and for the mean"
            " tile; the longest steps; target, graph, options",
        ),
        PageView(
            "insights",
            ("insights", "summary"),
            "in words, by what they could save: the fullest tile and what fills it, the compute set that loses the most to"
            " imbalance, the one that waits for a tile whose work cannot be divided, and the biggest exchange, with the tile that"
            " they wait for, the vertex type that tiles wait for longest, with its line, its loop and what that could be, idle"
            " threads, unused tiles, whether host or sync decide; each with what to try",
        ),
        PageView(
            "memory",
            ("memory", "target", "variables"),
            "bytes by tile: by category, always live and not, total; the limit of a tile; the variables of the tile that you"
            " select, by size and by address",
        ),
        PageView(
            "liveness",
            ("liveness", "step_names", "variables", "tree"),
            "bytes live at each step of the program, on top of what is always live; the variables that live at the selected step,"
            " and its call path",
        ),
        PageView(
            "programs", ("tree", "total_cycles", "summary"), "the control program with executions, cycles and share of each node"
        ),
        PageView(
            "names",
            ("names", "phases", "total_cycles", "summary"),
            "steps and variables by their name paths, such as `layer1/conv/fwd`, as a flame graph and a table: cycles by phase,"
            " bytes moved, vertices, memory; names that differ in numbers only, as of unrolled loops (`fwd`, `fwd_1`), fold",
        ),
        PageView(
            "steps",
            ("execution", "tree", "exchanges", "lines", "liveness", "phases", "total_cycles"),
            "every step that ran; of a selected one its phases, call path, busiest tiles, and the ways to its name, events,"
            " balance, exchange and liveness",
        ),
        PageView("trace", ("execution", "phases", "target", "total_cycles", "summary"), "what each tile does over time; see below"),
        PageView(
            "vertices",
            ("vertex_types", "compute_sets", "lines"),
            "vertex types by worker slots and compute sets by tile cycles, with instances, operations, memory, and what priced"
            " them",
        ),
        PageView(
            "lines",
            ("lines", "summary"),
            "the text of each codelet with slots, share, compiled and bound by line, in all or in one compute set; the slowest"
            " vertex of each compute set with its tile and sizes",
        ),
        PageView(
            "exchange",
            ("exchanges", "target"),
            "bytes from tile to tile as a map, of one exchange or of all; bytes that each tile sends and receives",
        ),
        PageView(
            "ipus",
            ("ipus",),
            "each IPU's memory, compute and exchange; bytes from IPU to IPU as a matrix, with the use of the links; the"
            " exchanges between IPUs",
        ),
        PageView(
            "roofline",
            ("target", "compute_sets"),
            "floating-point rate over operations per byte of tile memory, under the target's ceilings",
        ),
        PageView(
            "balance",
            ("execution",),
            "each compute step's slowest tile with its vertices and exchange, mean and active tiles, idle threads, and what an even"
            " spread would save; its tiles as a line and a histogram",
        ),
    ),
)

COMPARISON = PageKind[Sides](
    "comparison",
    "view_compare_",
    parts={
        "names": lambda sides, _: sides.names,
        "words": lambda sides, _: words_data(sides.first, sides.second),
        "phases": lambda sides, _: phases_of_both(sides.first, sides.second),
        "ran": lambda sides, _: sides.ran,
        "headline": lambda sides, _: sides.facts("headline"),
        "graph": lambda sides, _: sides.facts("graph"),
        "target": lambda sides, _: sides.facts("target"),
        "options": lambda sides, _: sides.facts("options"),
        "machine": lambda sides, _: [summary["machine"] for summary in sides.summaries],
        "mean_tile": lambda sides, _: [summary["mean_tile"] for summary in sides.summaries],
        "memory": lambda sides, blocks: sides.each(lambda report: tile_bytes(report, blocks)),
        "categories": lambda sides, _: category_changes(sides),
        "liveness": lambda sides, blocks: sides.each(lambda report: liveness_data(report.compilation, blocks)),
        "vertex_types": lambda sides, blocks: blocks.value(vertex_type_changes(sides)),
        "compute_sets": lambda sides, blocks: blocks.known(compute_set_changes(sides)),
        "steps": lambda sides, blocks: blocks.known(step_changes(sides)),
        "tree": lambda sides, blocks: blocks.known(changed_names(sides.first, sides.second)),
        "traces": lambda sides, blocks: traces_data(sides.first, sides.second, blocks),
    },
    views=(
        PageView(
            "summary",
            ("words", "headline", "names", "ran", "machine", "mean_tile", "graph", "target", "options"),
            "what differs, in words; the headline numbers of both with their differences; where the time of both goes, on one"
            " scale; graph, target, options",
        ),
        PageView(
            "paths",
            ("tree", "phases"),
            "cycles and memory of both by name path, as a tree, with the phases on one scale",
        ),
        PageView(
            "trace",
            ("traces", "names", "phases"),
            "the traces of both below each other, on one scale of time, aligned at their beginning or at a step that both have",
        ),
        PageView("memory", ("memory", "names", "categories"), "memory by tile as two lines, and by category"),
        PageView("liveness", ("liveness", "names"), "bytes live at each step as two lines"),
        PageView(
            "operations",
            ("compute_sets", "vertex_types"),
            "tile cycles by compute set and worker slots by vertex type, matched by name",
        ),
        PageView(
            "steps",
            ("steps",),
            "cycles by step, matched by type and name, the second of a name with the second",
        ),
    ),
)
