"""The text of `Engine.printProfileSummary`: a report for people, section by section in Poplar's order and words."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

from pypoplar.braces import OPTIONS as NAMED_VALUES
from pypoplar.braces import ordered
from pypoplar.errors import InvalidOption
from pypoplar.options import OptionValue, read_flag
from pypoplar.report.escaping import escaped
from pypoplar.report.insights.ranking import insights
from pypoplar.report.ipu_links import between_ipus
from pypoplar.report.report import Report, ReportGraph, ReportTarget
from pypoplar.report.text.summary_execution import execution_section, longest_section, steps_section
from pypoplar.report.text.summary_host_lines import host_lines_section
from pypoplar.report.text.summary_lines import lines_section
from pypoplar.report.text.summary_memory import memory_section
from pypoplar.report.text.text_columns import columns
from pypoplar.spelling import nearest

WIDTH = 120  # of lines that are sentences
OPTIONS = ("showExecutionSteps", "showOptimizations", "showPerIpuMemoryUsage", "showVarStorage")


def summary(report: Report, options: Mapping[str, OptionValue] | None = None, top: int = 0, *, with_insights: bool = False) -> str:
    """The summary of `report`: target, graph, memory usage, and what running cost if the program has run.

    Options, each ``"true"`` or ``"false"``: ``"showVarStorage"`` adds variables and when they live, ``"showPerIpuMemoryUsage"``
    the memory of each IPU, ``"showExecutionSteps"`` the steps of the program; ``"showOptimizations"`` adds nothing, because the
    compiler makes no optimisations that it could list. An unknown one raises `InvalidOption`. `top` adds so
    many of the longest steps, and `with_insights` at the end what the page of a profile says in words.
    """
    ordered(options, "the options of a summary", NAMED_VALUES)
    flags = read_options(options or {})
    compilation, execution = report.compilation, report.execution
    lines = [*target_section(compilation.target), "", *graph_section(compilation.graph), ""]
    lines += memory_section(compilation, per_ipu=flags["showPerIpuMemoryUsage"], variables=flags["showVarStorage"])
    if execution is not None:
        lines += ["", *execution_section(execution, compilation)]
        between = between_ipus(report)
        sections = [
            lines_section(execution.lines) if execution.lines is not None else [],
            host_lines_section(execution),
            longest_section(execution, top, between) if top else [],
            steps_section(execution, compilation.programs, between) if flags["showExecutionSteps"] else [],
        ]
        lines += [line for section in sections if section for line in ("", *section)]
    if report.cost is not None:
        lines += ["", *report.cost.told()]
    if report.failed_runs:
        lines += ["", "Failed runs:", *(f"  {line}" for run in report.failed_runs for line in run.told())]
    if with_insights:
        lines += ["", *insights_section(report)]
    return escaped("\n".join(lines) + "\n")


def read_options(options: Mapping[str, OptionValue]) -> dict[str, bool]:
    """The options as bools, all of `OPTIONS`."""
    flags = dict.fromkeys(OPTIONS, False)
    for name, value in options.items():
        if name not in flags:
            hint = nearest(name, OPTIONS, f"; the options are {', '.join(OPTIONS)}")
            raise InvalidOption(f"printProfileSummary has no option {name!r}{hint}")
        flags[name] = read_flag(name, value)
    return flags


def insights_section(report: Report) -> list[str]:
    """What could be gained where, by what it could save at most, and what to try."""
    lines = ["Insights:"]
    for finding in insights(report):
        share = f", {finding.share:.1%} of {'memory' if finding.of_memory else 'all cycles'} at most" if finding.share else ""
        lines.append(f"  {finding.title} ({finding.weight}{share})")
        for words in (finding.text, finding.advice):
            lines += wrap(words, WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return lines if len(lines) > 1 else ["Insights: none"]


def target_section(target: ReportTarget) -> list[str]:
    """The machine."""
    replicas = target.numReplicas
    rows = [
        ("Number of IPUs:", f"{target.numIPUs * replicas:,}"),
        ("Tiles per IPU:", f"{target.tilesPerIpu:,}"),
        ("Total Tiles:", f"{target.numTiles * replicas:,}"),
        ("Memory Per-Tile:", f"{target.bytesPerTile / 1024:,.1f} kB"),
        ("Total Memory:", f"{target.totalMemory * replicas / 1024**2:,.1f} MB"),
        ("Clock Speed (approx):", f"{target.clockFrequency / 1e6:,.1f} MHz"),
        ("Timing:", target.timing),
        ("Number of Replicas:", f"{replicas:,}"),
        ("IPUs per Replica:", f"{target.numIPUs:,}"),
        ("Tiles per Replica:", f"{target.numTiles:,}"),
        ("Memory per Replica:", f"{target.totalMemory / 1024**2:,.1f} MB"),
    ]
    width = max(len(label) for label, _ in rows)
    return ["Target:", *(f"  {label:<{width}}  {value}" for label, value in rows)]


def graph_section(graph: ReportGraph) -> list[str]:
    """The graph's size."""
    rows = [
        ("Number of vertices:", f"{graph.numVertices:,}"),
        ("Number of edges:", f"{graph.numEdges:,}"),
        ("Number of variables:", f"{graph.numVars:,}"),
        ("Number of compute sets:", f"{graph.numComputeSets:,}"),
    ]
    return ["Graph:", *columns(rows, 2)]
