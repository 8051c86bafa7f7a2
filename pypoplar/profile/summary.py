"""The text of `Engine.printProfileSummary`: a report for people, section by section in Poplar's order and words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import numpy as np

from pypoplar.errors import InvalidOption
from pypoplar.options import OptionValue, read_flag
from pypoplar.profile.execution import Array, Execution, Step
from pypoplar.profile.report import Compilation, Report, ReportGraph, ReportTarget
from pypoplar.profile.tile_memory import MemoryByTile

OPTIONS = ("showExecutionSteps", "showOptimizations", "showPerIpuMemoryUsage", "showVarStorage")
BAR = 40  # characters of the longest bar of the histogram
RANGES = 10  # most ranges of the histogram
FULLEST = 5  # tiles whose memory is shown when some are out of memory
DATA_TYPES = {  # category of a tile's memory -> its words; others are spelled out from their names
    "vertex_state": "Vertex Instances",
    "code": "Vertex Code",
}
Line = tuple[str, str]  # label and value, put into columns by `columns`


def summary(report: Report, options: Mapping[str, OptionValue] | None = None) -> str:
    """The summary of `report`: target, graph, memory usage, and what running cost if the program has run.

    Options are ``"showExecutionSteps"``, ``"showVarStorage"``, ``"showPerIpuMemoryUsage"`` and ``"showOptimizations"``, each
    ``"true"`` or ``"false"``; only the first one adds text so far. An unknown one raises `InvalidOption`.
    """
    chosen = read_options(options or {})
    lines = [*target_section(report.compilation.target), "", *graph_section(report.compilation.graph), ""]
    lines += memory_section(report.compilation)
    if report.execution is not None:
        lines += ["", *execution_section(report.execution, report.compilation.target)]
        if chosen["showExecutionSteps"]:
            lines += ["", *steps_section(report.execution.steps)]
    return "\n".join(lines) + "\n"


def read_options(options: Mapping[str, OptionValue]) -> dict[str, bool]:
    """The options as bools, all of `OPTIONS`."""
    chosen = dict.fromkeys(OPTIONS, False)
    for name, value in options.items():
        if name not in chosen:
            near = difflib.get_close_matches(str(name), OPTIONS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; the options are {', '.join(OPTIONS)}"
            raise InvalidOption(f"printProfileSummary has no option {name!r}{hint}")
        chosen[name] = read_flag(name, value)
    return chosen


def columns(lines: Iterable[Line], indent: int) -> list[str]:
    """Labels to the left, values to the right, all values ending in one column."""
    rows = list(lines)
    label = max((len(one) for one, _ in rows), default=0)
    value = max((len(one) for _, one in rows), default=0)
    return [f"{'':{indent}}{left:<{label}}  {right:>{value}}" for left, right in rows]


def size(count: int) -> str:
    return f"{count:,} B"


def words(name: str) -> str:
    """A name in snake_case as the words of a heading: "exchange_buffers" is "Exchange Buffers"."""
    return DATA_TYPES.get(name) or name.replace("_", " ").title()


def target_section(target: ReportTarget) -> list[str]:
    """The machine."""
    rows = [
        ("Number of IPUs:", f"{target.numIPUs:,}"),
        ("Tiles per IPU:", f"{target.tilesPerIpu:,}"),
        ("Total Tiles:", f"{target.numTiles:,}"),
        ("Memory Per-Tile:", f"{target.bytesPerTile / 1024:,.1f} kB"),
        ("Total Memory:", f"{target.totalMemory / 1024**2:,.1f} MB"),
        ("Clock Speed (approx):", f"{target.clockFrequency / 1e6:,.1f} MHz"),
        ("Number of Replicas:", f"{target.numReplicas:,}"),
        ("IPUs per Replica:", f"{target.numIPUs // target.numReplicas:,}"),
        ("Tiles per Replica:", f"{target.numTiles // target.numReplicas:,}"),
        ("Memory per Replica:", f"{target.totalMemory / target.numReplicas / 1024**2:,.1f} MB"),
    ]
    label = max(len(one) for one, _ in rows)
    return ["Target:", *(f"  {left:<{label}}  {right}" for left, right in rows)]


def graph_section(graph: ReportGraph) -> list[str]:
    """The graph's size."""
    rows = [
        ("Number of vertices:", f"{graph.numVertices:,}"),
        ("Number of edges:", f"{graph.numEdges:,}"),
        ("Number of variables:", f"{graph.numVars:,}"),
        ("Number of compute sets:", f"{graph.numComputeSets:,}"),
    ]
    return ["Graph:", *columns(rows, 2)]


def memory_section(compilation: Compilation) -> list[str]:
    """The memory of all tiles: totals, by category, and how evenly it is spread."""
    memory, target = compilation.memory, compilation.target
    used, whole = memory.excluding_gaps(), memory.including_gaps()
    lines = ["Memory Usage:", "  Total:"]
    lines += columns([("Including Gaps:", size(int(whole.sum()))), ("Excluding Gaps:", size(int(used.sum())))], 4)
    # The regions of a tile's memory are not modelled apart: what fits counts as non-interleaved, what does not as overflowed.
    over = min(int(np.maximum(whole - target.bytesPerTile, 0).sum()), int(used.sum()))
    regions = [("Non-interleaved:", int(used.sum()) - over), ("Interleaved:", 0), ("Overflowed:", over)]
    lines += ["      By Memory Region:", *columns([(name, size(count)) for name, count in regions], 8), "      By Data Type:"]
    lines += columns([(f"{words(name)}:", size(int(one.sum()))) for name, one in memory.categories.items()], 8)
    lines += vertex_data(compilation)
    lines += ["  By Tile (Excluding Gaps):", *histogram(used)]
    return [*lines, *fullest(memory, target)]


def vertex_data(compilation: Compilation) -> list[str]:
    """The memory of vertices by category and by type, the largest first."""
    memory = compilation.memory
    lines = [f"  Vertex Data ({compilation.graph.numVertices:,} vertices):"]
    for title, table in (("By Category:", memory.vertex_data), ("By Type:", memory.vertex_data_by_type)):
        if not table:
            continue
        by_type = table is memory.vertex_data_by_type
        entries = sorted(table.items(), key=lambda entry: (-entry[1], entry[0])) if by_type else list(table.items())
        lines.append(f"    {title}")
        lines += columns([(f"{name if by_type else words(name).capitalize()}:", size(count)) for name, count in entries], 6)
    return lines


def histogram(used: Array) -> list[str]:
    """How many tiles use how many KB."""
    if not len(used):
        return []
    low, high = int(used.min()) // 1024, int(used.max()) // 1024 + 1
    step = -(-(high - low) // RANGES)
    edges = [low + step * one for one in range(-(-(high - low) // step) + 1)]
    counts = np.histogram(used / 1024, edges)[0]
    number = len(f"{edges[-1]:,}")
    most = int(counts.max())
    lines = [f"    {'Range (KB)':<{2 * number + 3}}  {'Histogram':<{BAR}}  Count (tiles)"]
    for begin, end, count in zip(edges[:-1], edges[1:], counts, strict=True):
        bar = "*" * (max(1, BAR * int(count) // most) if count else 0)
        lines.append(f"    {f'{begin:>{number},} - {end:>{number},}':<{max(2 * number + 3, 10)}}  {bar:<{BAR}}  {int(count):,}")
    return lines


def fullest(memory: MemoryByTile, target: ReportTarget) -> list[str]:
    """The fullest tile, and where memory does not suffice what fills the fullest ones."""
    used, whole = memory.excluding_gaps(), memory.including_gaps()
    if not len(used):
        return []
    lines = []
    for title, values in (("Including", whole), ("Excluding", used)):
        tile = int(values.argmax())
        lines.append(f"    Maximum ({title} Gaps): {int(values[tile]):,} B ({values[tile] / 1024:,.1f} K) on tile {tile:,}")
    out = int(np.count_nonzero(whole > target.bytesPerTile))
    lines.append(f"    {out:,} tile(s) out of memory")
    if out:
        for tile in np.argsort(-whole, kind="stable")[: min(FULLEST, out)]:
            rows = [(f"{words(name)}:", size(int(one[tile]))) for name, one in memory.categories.items()]
            rows.append(("Over by:", size(int(whole[tile]) - target.bytesPerTile)))
            lines += [f"  Tile # {int(tile):,} memory usage:", *columns(rows, 4)]
    return lines


def execution_section(execution: Execution, target: ReportTarget) -> list[str]:
    """What the runs cost: in all, for the mean tile, and by vertex type."""
    total, mean = execution.totalCycles.total, execution.tile_average
    microseconds = total / target.clockFrequency * 1e6
    lines = ["Execution:", "  Programs executed:"]
    lines += [f"    {name}" for name in execution.programs] or ["    (none)"]

    def part(cycles: float) -> str:
        return f"{cycles:,.1f} ({cycles / total if total else 0.0:.1%} of total)"

    rows = [
        ("Total cycles:", f"{total:,} (approx {microseconds:,.1f} microseconds)"),
        ("Tile average compute cycles (including idle threads):", part(mean.compute_including_idle)),
        ("Tile average compute cycles (excluding idle threads):", part(mean.compute_excluding_idle)),
        ("Tile average IPU exchange cycles:", part(mean.exchange)),
        ("Tile average global exchange cycles:", part(mean.global_exchange)),
        ("Tile average host exchange cycles:", part(mean.host_exchange)),
        ("Tile average sync cycles:", part(mean.sync)),
    ]
    label = max(len(one) for one, _ in rows)
    lines += ["", *(f"  {left:<{label}} {right}" for left, right in rows), "", "  Cycles by vertex type:"]
    types = sorted(execution.cycles_by_vertex_type.items(), key=lambda entry: (-entry[1].cycles, entry[0]))
    lines += columns([(f"{name} ({one.instances:,} instances):", f"{one.cycles:,}") for name, one in types], 4)
    return lines


def steps_section(steps: Iterable[Step]) -> list[str]:
    """Every static step in program order, deeper ones further in, with what all its executions cost."""
    lines = ["  Execution steps:"]
    for one in steps:
        indent = " " * (4 + 2 * one.depth)
        times = f" ({one.executions:,} executions)" if one.executions != 1 else ""
        lines.append(f"{indent}{one.type}: {one.name or '<anonymous>'}{times}")
        parts = [
            (one.sync_cycles, "sync"),
            (one.exchange_cycles, "exchange"),
            (one.compute_cycles, "compute"),
            (one.host_exchange_cycles, "host exchange"),
        ]
        split = ", ".join(f"{title} {cycles:,}" for cycles, title in parts if cycles)
        lines.append(f"{indent}  Cycles: {one.cycles:,}{f' ({split})' if split else ''}")
        if one.activeTiles:
            balance = f"(balance {one.tileBalance:.1%}, of active tiles {one.activeTileBalance:.1%})"
            lines.append(f"{indent}  Active tiles: {one.activeTiles:,} {balance}")
        sent, received = int(one.bytesSentByTile.sum()), int(one.bytesReceivedByTile.sum())
        if sent or received:
            lines.append(f"{indent}  Exchange: {sent:,} B sent, {received:,} B received")
        if one.host_bytes:
            lines.append(f"{indent}  Host: {one.host_bytes:,} B")
    return lines
