"""What a notebook shows of graphs, tensors, tile mappings, engines, reports, runs and programs: small pieces of HTML.

They stand alone: no scripts, no styles but their own, nothing loaded. All text of the user's is escaped. They are made for any
object in any state, such as an empty tensor, a variable without tiles, or a program that has not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.number_ranges import counted
from pypoplar.report import palette
from pypoplar.report.escaping import escaped
from pypoplar.report.execution import Execution, Run, Step, Steps
from pypoplar.report.phase_cycles import mean_tile_cycles
from pypoplar.report.phases import PHASES
from pypoplar.report.program_nodes import Program as ReportProgram
from pypoplar.report.program_nodes import short_place
from pypoplar.report.report import Report, ReportTarget
from pypoplar.report.text.text_columns import heading
from pypoplar.target import Target

if TYPE_CHECKING:
    from pypoplar.executable.executable import Executable
    from pypoplar.graph.graph import Graph
    from pypoplar.graph.host_links import HostConnections
    from pypoplar.graph.mapping import TileToTensorMapping
    from pypoplar.graph.tensor import Tensor
    from pypoplar.program import Program

Node = TypeVar("Node")
Described = tuple[str, Sequence[tuple[str, Node]]]  # what a node is, and the nodes below it with a word about each

COLUMNS = 1472  # most columns of a strip; more tiles than that share columns
DEPTH = 8  # levels of a program tree
OPEN = 2  # levels that are unfolded at first
CHILDREN = 20  # parts shown of one program
NODES = 400  # parts shown in all
INTERVALS = 4  # intervals shown of one tile
TILES = 12  # tiles whose intervals are shown
STEPS = 60  # steps shown of an execution
TYPES = 8  # vertex types shown of a graph
TEXT = 120  # characters of one value
STRIPED = ("threads",)  # what has another's colour has stripes, as in the page
SQUARES = {True: "&#9637;", False: "&#9632;"}  # of a legend: striped or not
STRIPE = 8  # thousandths of a bar from one stripe to the next
OVER = palette.TEXTS["warn"]
GROUND = palette.GROUNDS["paper"]
FIXED = 'vector-effect="non-scaling-stroke"'  # a line is one pixel wide, however the strip is stretched
INDENT = "margin-left: 16px"


def html_of(shown: object) -> str:
    """The view of an object that has one; what is derived from a kind is shown as that kind."""
    for kind in type(shown).__mro__:
        view = VIEWS.get(f"{kind.__module__}.{kind.__qualname__}")
        if view is not None:
            return view(shown)
    raise TypeError(f"notebooks have no view of {type(shown).__name__}")


def themed(name: str, colour: palette.Colour) -> str:
    """A property of a style with a colour of the notebook's theme; old browsers take the light one."""
    return f"{name}: {colour.light}; {name}: light-dark({colour.light}, {colour.dark})"


def block(*parts: str) -> str:
    """The frame around everything that is shown."""
    return escaped(f'<div style="font-family: sans-serif; font-size: 13px; line-height: 1.5">{"".join(parts)}</div>')


def strip(values: Int64s, limit: float = 0.0, title: str = "") -> str:
    """A value for each tile as a bar, from left to right; with a line where the limit is, and red above it."""
    shown = np.asarray(values, np.float64)
    if not len(shown):
        return ""
    if len(shown) > COLUMNS:
        starts = np.arange(COLUMNS) * len(shown) // COLUMNS
        shown = np.maximum.reduceat(shown, starts)
    top = max(float(shown.max()), limit, 1e-300)
    over = bool(limit) and float(shown.max()) > limit
    first = np.flatnonzero(np.concatenate(([True], shown[1:] != shown[:-1])))
    heights = np.where(shown[first] > 0, np.maximum(40 * shown[first] / top, 1.0), 0.0)
    steps = "".join(f"H{x}V{40 - height:.4g}" for x, height in zip(first.tolist(), heights.tolist(), strict=True))
    line = (
        f'<path d="M0 {40 - 40 * limit / top:.4g}h{len(shown)}" style="{themed("stroke", OVER)}" stroke-width="1" {FIXED}/>'
        if limit
        else ""
    )
    fill = themed("fill", OVER if over else palette.PHASES["compute"])
    border = f"border: 1px solid; {themed('border-color', palette.LINES['line'])}"
    return (
        f'<svg viewBox="0 0 {len(shown)} 40" preserveAspectRatio="none" role="img" width="100%" height="40" '
        f'style="max-width: 900px; display: block; {border}"><title>{escape(title)}</title>'
        f'<path d="M0 40{steps}H{len(shown)}V40Z" style="{fill}"/>{line}</svg>'
    )


def shares(parts: Sequence[tuple[str, str, float]]) -> str:
    """A bar divided into parts, each with the name of its colour and a label, and its legend with percentages."""
    whole = sum(amount for *_, amount in parts)
    if whole <= 0:
        return ""
    bars, legend, begin = [], [], 0.0
    for name, label, amount in parts:
        if amount <= 0:
            continue
        colour = palette.PHASES[name]
        wide = 1000 * amount / whole
        bars.append(f'<rect x="{begin:.4g}" y="0" width="{wide:.4g}" height="16" style="{themed("fill", colour)}"/>')
        if name in STRIPED:
            places = np.arange(0, wide - STRIPE / 2, STRIPE)
            stripes = "".join(f"M{begin + place:.4g} 0h{STRIPE // 2}v16h-{STRIPE // 2}z" for place in places)
            bars.append(f'<path d="{stripes}" style="{themed("fill", GROUND)}"/>' if stripes else "")
        square = f'<span style="{themed("color", colour)}">{SQUARES[name in STRIPED]}</span>'
        legend.append(f"{square} {escape(label)} {amount / whole:.1%}")
        begin += wide
    return (
        '<svg viewBox="0 0 1000 16" preserveAspectRatio="none" role="img" width="100%" height="16" '
        f'style="max-width: 900px; display: block">{"".join(bars)}</svg><div>{" &nbsp; ".join(legend)}</div>'
    )


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts with a heading for each column; columns in which no row has anything are left out."""
    listed = list(rows)
    used = [place for place in range(len(head)) if any(row[place] for row in listed)]
    cell = "padding: 0 12px 0 0; text-align: left; vertical-align: top"
    titles = "".join(f'<th style="{cell}">{escape(head[place])}</th>' for place in used)
    lines = ("".join(f'<td style="{cell}">{escape(row[place])}</td>' for place in used) for row in listed)
    return f'<table style="border-collapse: collapse"><tr>{titles}</tr>{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Labels and values, which are HTML."""
    cell = "padding: 0 12px 0 0; text-align: left"
    lines = (f'<tr><td style="{cell}">{escape(label)}</td><td style="{cell}">{value}</td></tr>' for label, value in rows)
    return f'<table style="border-collapse: collapse">{"".join(lines)}</table>'


# Tensors


def tensor_html(tensor: Tensor) -> str:
    """A tensor's name, type, shape, and how its bytes are spread over the tiles."""
    if not tensor.valid():
        return block("<b>Tensor()</b>: the null tensor")
    size = tensor.elementType().size
    sizes = f"{counted(tensor.numElements(), 'element')}, {counted(tensor.numElements() * size, 'byte')}"
    head = f"<b>{escape(tensor._described())}</b>: {sizes}"
    if tensor.containsAliases():
        head += ", some of them several times"
    graph = tensor.graph
    begin, end, tile = graph._mapping.pieces_of(tensor)
    return block(head, *spread(begin, end, tile, tensor.numElements(), graph.getTarget().getNumTiles(), size))


def mapping_html(mapping: TileToTensorMapping) -> str:
    """A tile mapping: which tile holds how many elements, and which."""
    rows = [(interval.begin(), interval.end(), tile) for tile, intervals in enumerate(mapping) for interval in intervals]
    begin, end, tile = np.array(rows, np.int64).reshape(-1, 3).T
    note = "" if mapping.complete else "; some elements have no tile"
    head = f"<b>tile mapping</b> of {counted(int((end - begin).sum()), 'element')}{note}"
    return block(head, *spread(begin, end, tile, int((end - begin).sum()), len(mapping), 0))


def spread(begin: Int64s, end: Int64s, tile: Int64s, elements: int, tiles: int, size: int) -> list[str]:
    """How the flattened ranges ``[begin, end)`` lie on tiles; in bytes if the size of an element is given, else in elements."""
    count = end - begin
    counts = np.bincount(tile, weights=count, minlength=tiles).astype(np.int64)
    used = np.flatnonzero(counts)
    missing = elements - int(count.sum())
    parts = []
    if missing:
        parts.append(f'<div style="{themed("color", OVER)}">unmapped: {missing:,} of {elements:,} elements have no tile</div>')
    if not len(used):
        return parts
    fullest = int(counts.argmax())
    where = f"tile {used[0]:,}" if len(used) == 1 else f"tiles {used[0]:,} to {used[-1]:,}"
    unit = "bytes" if size else "elements"
    scale = size or 1
    most = f"at most {int(counts[fullest]) * scale:,} {unit} (tile {fullest:,}), {counts[used].mean() * scale:,.1f} on average"
    parts.append(f"<div>on {len(used):,} of {tiles:,} tiles, {where}; {most}</div>")
    parts.append(strip(counts, title=f"{unit} by tile"))
    return [*parts, interval_list(begin, end, tile, used)]


def interval_list(begin: Int64s, end: Int64s, tile: Int64s, used: Int64s) -> str:
    """The intervals of the first tiles, folded away."""
    rows = []
    for number in used[:TILES].tolist():
        pieces = np.flatnonzero(tile == number)
        texts = [f"[{begin[piece]}:{end[piece]})" for piece in pieces[:INTERVALS].tolist()]
        rows.append((f"tile {number:,}", escape(" ".join(texts)) + more(len(pieces) - INTERVALS)))
    rest = f"<div>{more(len(used) - TILES)} tiles</div>" if len(used) > TILES else ""
    return f"<details><summary>elements by tile</summary>{table(rows)}{rest}</details>"


def more(count: int) -> str:
    """What stands behind a list that is cut off: how many more there are."""
    return f" &hellip; {count:,} more" if count > 0 else ""


# Graphs


def graph_html(graph: Graph) -> str:
    """A graph as far as it is built: what it has of everything, its vertices by type, and the bytes of each tile's variables."""
    variables, table_of_vertices, host = graph._variables, graph._vertices, graph._host
    target, tiles = graph.getTopLevelGraph().getTarget(), graph.getTopLevelGraph().getTarget().getNumTiles()
    widths = np.array([type.size for type in variables.types], np.int64)
    first = np.array(variables.first, np.int64)
    sizes = np.diff(first) * widths
    constants = list(variables.constants)
    mapping = graph._mapping.freeze()
    owner = np.searchsorted(first, mapping.begin, "right") - 1
    held = np.bincount(mapping.tile, (mapping.end - mapping.begin) * widths[owner], tiles).astype(np.int64)
    seen = graph.getTarget().getNumTiles()
    shown_tiles = f"{tiles:,} tiles" if seen == tiles else f"{seen:,} of {tiles:,} tiles, which this virtual graph sees"
    vertices = np.array(table_of_vertices.rows, np.int64).reshape(-1, 3)[:, 0]
    rows = [
        ("target", f"{escape(target.getTargetSystemString())}, {shown_tiles}"),
        ("variables", f"{len(sizes) - len(constants):,}, {int(sizes.sum()) - int(sizes[constants].sum()):,} bytes"),
        ("constants", f"{len(constants):,}, {int(sizes[constants].sum()):,} bytes"),
        ("vertices", f"{len(vertices):,} in {counted(len(table_of_vertices.set_names), 'compute set')}"),
        *_vertex_rows(vertices, {number: kind.codelet.name for number, kind in table_of_vertices.kinds.items()}),
        *_link_rows(host),
    ]
    parts = [f"<b>graph</b>{table(rows)}"]
    unmapped = int(first[-1]) - int((mapping.end - mapping.begin).sum())
    if unmapped:
        parts.append(f'<div style="{themed("color", OVER)}">{unmapped:,} elements of variables and constants have no tile</div>')
    if held.any():
        limit = target.getBytesPerTile()
        parts += [
            f"<div>bytes of variables and constants by tile; {fullest(held, limit)}</div>",
            strip(held, limit, "bytes by tile"),
        ]
    return block(*parts)


def _vertex_rows(vertices: Int64s, names: Mapping[int, str]) -> list[tuple[str, str]]:
    """The vertex types with the most vertices."""
    numbers, counts = np.unique(vertices, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    rows = [("", f"{int(counts[place]):,} of {escape(names[int(numbers[place])])}") for place in order[:TYPES].tolist()]
    return [*rows, ("", more(len(order) - TYPES))] if len(order) > TYPES else rows


def _link_rows(host: HostConnections) -> list[tuple[str, str]]:
    """What connects the graph with its host, by name."""
    links: tuple[tuple[str, Iterable[str]], ...] = (
        ("streams", host.streams),
        ("host writes", host.writes),
        ("host reads", host.reads),
        ("remote buffers", host.remote_buffers),
        ("host functions", host.host_functions),
    )
    return [(what, names_html(list(names))) for what, names in links if names]


def names_html(names: Sequence[str]) -> str:
    """The first names of a list."""
    return escape(", ".join(names[:CHILDREN])) + more(len(names) - CHILDREN)


# Reports


def engine_html(executable: Executable, report: Report, mode: str, *, loaded: bool) -> str:
    """An engine: how it runs what, the streams to connect, its runs, and its report."""
    streams = [f"{stream.name} ({stream.kind})" for stream in executable.streams if stream.kind != "internal"]
    programs = len(executable.entries)
    rows = [("programs", f"{programs:,}"), ("mode", mode), ("loaded", "yes" if loaded else "no: call load(device)")]
    handles = (("streams", streams), ("host writes", list(executable.writes)), ("host reads", list(executable.reads)))
    rows += [(what, names_html(names)) for what, names in handles if names]
    title = " ".join(filter(None, ("Engine", report.name)))
    runs = [_run_table(report.execution)] if report.execution is not None else []
    return block(f"<b>{escape(title)}</b>", table(rows), *runs, _report_html(report))


def execution_html(execution: Execution) -> str:
    """All runs: their cycles, and where those of the mean tile went."""
    return block("<b>execution</b>", _run_table(execution), *_mean_tile(execution))


def _run_table(execution: Execution) -> str:
    total = execution.totalCycles.total
    rows = [
        (_run_title(run), f"{run.cycles:,} cycles{_time(run.cycles, execution.clockFrequency)}")
        for run in execution.runs[:CHILDREN]
    ]
    rest = [("", more(len(execution.runs) - CHILDREN))] if len(execution.runs) > CHILDREN else []
    return table([*rows, *rest, ("all runs", f"{total:,} cycles{_time(total, execution.clockFrequency)}")])


def run_html(run: Run) -> str:
    """A run: its cycles by phase, and its longest steps."""
    phases = [(phase.name, phase.label, float(sum(getattr(step, phase.cycles) for step in run.steps))) for phase in PHASES]
    longest = sorted(run.steps, key=lambda step: -step.cycles)[:TILES]
    rows = [(step.name or step.type, f"{step.cycles:,} cycles in {counted(step.executions, 'execution')}") for step in longest]
    head = f"<b>run</b> <i>{escape(_run_title(run))}</i>: {run.cycles:,} cycles"
    rest = f"<div>{more(len(run.steps) - TILES)} steps</div>" if len(run.steps) > TILES else ""
    return block(head, shares(phases), "<div>its longest steps</div>", table(rows), rest)


def steps_html(steps: Steps) -> str:
    """The steps of an execution as a table, in their order."""
    head = ("step", "type", "name", "executions", "cycles", "of all", "tile balance", "made at")
    total = sum(step.cycles for step in steps)
    rows = [_step_cells(step, total) for step in steps[:STEPS]]
    rest = f"<div>{more(len(steps) - STEPS)} steps</div>" if len(steps) > STEPS else ""
    return block(f"<b>{counted(len(steps), 'step')}</b>: {total:,} cycles", grid(head, rows), rest)


def _step_cells(step: Step, total: int) -> tuple[str, ...]:
    share = f"{step.cycles / total:.1%}" if total else ""
    balance = f"{step.tileBalance:.1%}" if len(step.cyclesByTile) and step.cyclesByTile.any() else ""
    place = short_place(step.program.made_at) if step.program is not None else ""
    return (str(step.number), step.type, step.name, f"{step.executions:,}", f"{step.cycles:,}", share, balance, place)


def target_html(target: Target) -> str:
    """A machine: its IPUs, tiles, memory, clock and exchange."""
    tiles, memory = target.getNumTiles(), target.getBytesPerTile()
    rows = [
        ("IPUs", f"{target.getNumIPUs():,}"),
        ("tiles", f"{tiles:,}, {target.getTilesPerIPU():,} of each IPU"),
        ("memory", f"{memory:,} bytes of each tile, {tiles * memory:,} in all"),
        ("worker threads", f"{target.getNumWorkerContexts():,} of each tile"),
        ("clock", f"{target.getTileClockFrequency() / 1e9:,.2f} GHz"),
        ("exchange", f"a tile receives {target.exchange_bytes_per_cycle:,} bytes in a cycle"),
        ("architecture, timing", f"{escape(target.getTargetArchString())}, {escape(target.timing)}"),
    ]
    return block(f"<b>target</b> <i>{escape(target.getTargetSystemString())}</i>{table(rows)}")


def _run_title(run: Run) -> str:
    return (run.name or "run") + (f" ({run.count:,} runs together)" if run.count > 1 else "")


def _time(cycles: int, clock: float) -> str:
    return f", {cycles / clock * 1e6:,.1f} &micro;s" if clock else ""


def report_html(report: Report) -> str:
    """A report: the machine, the graph, the memory of its fullest tile, and where the mean tile's cycles went."""
    return block(_report_html(report))


def _report_html(report: Report) -> str:
    compilation, execution = report.compilation, report.execution
    target, graph = compilation.target, compilation.graph
    rows = [("target", machine(target))]
    counts = (graph.numVertices, "vertex", "vertices"), (graph.numEdges, "edge"), (graph.numVars, "variable")
    rows.append(("graph", ", ".join(counted(*row) for row in (*counts, (graph.numComputeSets, "compute set")))))
    whole = compilation.memory.including_gaps()
    if len(whole) and target.bytesPerTile:
        rows.append(("fullest tile", fullest(whole, target.bytesPerTile)))
    title = " ".join(filter(None, ("report", report.name)))
    parts = [f"<b>{escape(title)}</b>"]
    if execution is None:
        parts += [table([*rows, ("cycles", "it has not run")])]
    else:
        total = execution.totalCycles.total
        parts += [table([*rows, ("cycles", f"{total:,}{_time(total, target.clockFrequency)}")]), *_mean_tile(execution)]
    parts += ["<div>memory by tile</div>", strip(whole, target.bytesPerTile, "memory by tile")]
    return "".join([*parts, "<div><code>report.open_page()</code> shows all of it in the browser</div>"])


def _mean_tile(execution: Execution) -> list[str]:
    return ["<div>cycles of the mean tile</div>", shares(mean_tile_cycles(execution))]


def machine(target: ReportTarget) -> str:
    """A target in short: name, tiles, clock, and the timing if it is not the model's."""
    name = target.system or target.architecture
    tiles = f"{target.numIPUs:,} x {target.tilesPerIpu:,} tiles at {target.clockFrequency / 1e9:,.2f} GHz"
    return f"{escape(name)}, {tiles}{'' if target.timing == 'model' else f', {escape(target.timing)} timing'}"


def fullest(whole: Int64s, limit: int) -> str:
    """The fullest tile's bytes against its memory."""
    tile = int(whole.argmax())
    text = f"tile {tile:,}: {int(whole[tile]):,} of {limit:,} bytes ({whole[tile] / limit:.1%})"
    over = int(np.count_nonzero(whole > limit))
    short = counted(over, "tile")
    return f'{text}, <span style="{themed("color", OVER)}">{short} out of memory</span>' if over else text


# Programs


def report_program_html(program: ReportProgram) -> str:
    """A program tree of a report."""
    return block(tree(program, describe_report_program))


def describe_report_program(program: ReportProgram) -> Described[ReportProgram]:
    """A node of a report's program tree, with those below it."""
    counts = ", ".join(f"{count:,} {name}" for name, count in program.vertices.items())
    step = f"step {program.step}" if program.step >= 0 else ""
    return titled(heading(program), "", filter(None, (counts, step))), [("", child) for child in program.children]


def program_html(program: Program) -> str:
    """A program as the user built it, with what is inside it."""
    return block(tree(program, describe_program))


def describe_program(program: Program) -> Described[Program]:
    """A program's arguments but for programs, and the programs in it with their names."""
    from pypoplar.program.base import Calling, function_program

    contents = program.contains()
    below = [(part.name, part.program) for part in program.parts()]
    if isinstance(contents, Calling):
        below.append(("", function_program(contents.function)))
    details = [
        f"{name.replace('_', ' ')} {shown_value(value)}"
        for name, value in vars(program).items()
        if name not in ("name", "location")
        and name[0] != "_"
        and value is not None
        and value is not False
        and value not in ("", {})
        and not _holds_programs(value)
    ]
    return titled(type(program).__name__, getattr(program, "name", ""), details), below


def _holds_programs(value: object) -> bool:
    """Whether an argument is a program, a list of programs, or one of numbers and programs, as the cases of a Switch are."""
    from pypoplar.program import Program

    if isinstance(value, list | tuple):
        return all(map(_holds_programs, value)) or (len(value) == 2 and isinstance(value[0], int) and _holds_programs(value[1]))
    return isinstance(value, Program)


def shown_value(value: object) -> str:
    """An argument of a program, short."""
    texts = (ARGUMENTS.get(f"{kind.__module__}.{kind.__qualname__}") for kind in type(value).__mro__)
    text = next(filter(None, texts), str)(value)
    return text if len(text) <= TEXT else text[: TEXT - 4] + " ..."


def _first_of(values: list[Any]) -> str:
    return ", ".join(map(shown_value, values[:INTERVALS])) + (" ..." if len(values) > INTERVALS else "")


def titled(kind: str, name: str, details: Iterable[str]) -> str:
    """A node's line, as HTML."""
    shown = f" <i>{escape(str(name))}</i>" if name else ""
    return f"<b>{escape(kind)}</b>{shown}{''.join(f' &middot; {escape(detail)}' for detail in details)}"


def tree(root: Node, describe: Callable[[Node], Described[Node]]) -> str:
    """Nested foldable lists. Of what is too deep or too much, only the number of parts is said."""
    left = NODES

    def shown(word: str, node: Node, depth: int) -> str:
        nonlocal left
        left -= 1
        text, below = describe(node)
        line = f"{escape(word)}: {text}" if word else text
        if not below:
            return f'<div style="{INDENT}">{line}</div>'
        parts = []
        for name, part in below[:CHILDREN]:
            if depth + 1 >= DEPTH or left <= 0:
                break
            parts.append(shown(name, part, depth + 1))
        rest = f'<div style="{INDENT}">{more(len(below) - len(parts))}</div>' if len(below) > len(parts) else ""
        unfolded = " open" if depth < OPEN else ""
        return f'<details{unfolded} style="{INDENT}"><summary>{line}</summary>{"".join(parts)}{rest}</details>'

    return shown("", root, 0)


# By the names of kinds, which are not imported before there is one.
VIEWS: Mapping[str, Callable[[Any], str]] = {
    "pypoplar.graph.tensor.Tensor": tensor_html,
    "pypoplar.graph.mapping.TileToTensorMapping": mapping_html,
    "pypoplar.graph.graph.Graph": graph_html,
    "pypoplar.report.report.Report": report_html,
    "pypoplar.report.execution.Execution": execution_html,
    "pypoplar.report.execution.Steps": steps_html,
    "pypoplar.report.execution.Run": run_html,
    "pypoplar.report.program_nodes.Program": report_program_html,
    "pypoplar.target.Target": target_html,
    "pypoplar.program.base.Program": program_html,
}
ARGUMENTS: Mapping[str, Callable[[Any], str]] = {  # of the arguments of programs; what is not here is as `str` has it
    "pypoplar.graph.tensor.Tensor": lambda tensor: str(tensor._described()),
    "pypoplar.graph.vertices.ComputeSet": lambda compute_set: str(compute_set.name),
    "pypoplar.graph.host_links.Function": lambda function: str(function.number),
    "enum.Enum": lambda member: str(member.name),
    "builtins.list": _first_of,
}
