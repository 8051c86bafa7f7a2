"""The execution sections of the profile summary: where cycles went in all, by vertex type, and step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from pypoplar.arrays.number_ranges import counted
from pypoplar.report.execution import Execution, Step, VertexTypeCycles
from pypoplar.report.ipu_links import BetweenIpus
from pypoplar.report.phases import PHASES
from pypoplar.report.program_nodes import Program
from pypoplar.report.report import Compilation, ReportTarget
from pypoplar.report.slowest_tile import SlowestTiles
from pypoplar.report.text.text_columns import Line, heading, labelled, shown_name

Between = Mapping[int, BetweenIpus]  # by step


@frozen
class StepTiles:
    """What the steps wait for: tiles, and between IPUs links and ports."""

    slowest: SlowestTiles
    between: Between


def execution_section(execution: Execution, compilation: Compilation) -> list[str]:
    """What the runs cost: in all, for the mean tile, in floating-point operations, and by vertex type."""
    target = compilation.target
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
        *([("Tile average cycles of copies on the tile:", part(mean.copies))] if mean.copies else []),
        ("Tile average global exchange cycles:", part(mean.global_exchange)),
        ("Tile average host exchange cycles:", part(mean.host_exchange)),
        ("Tile average sync cycles:", part(mean.sync)),
        ("  of them the syncs themselves:", part(mean.sync - mean.waiting)),
        ("  of them waiting for slower tiles:", part(mean.waiting)),
    ]
    lines += ["", *labelled(rows, 2)]
    if execution.has_ipus:
        lines += ["", *ipus_table(execution)]
    if execution.flops:
        lines += ["", *floating_point(execution, target)]
    types = by_vertex_type(execution, compilation)
    return [*lines, *(["", "  Cycles by vertex type, in worker slots of all executions:", *types] if types else [])]


def ipus_table(execution: Execution) -> list[str]:
    """What each IPU spent its time on: a row for each, whose cycles are all those of the runs."""
    names = [phase for phase in PHASES if any(getattr(ipu, phase.cycles) for ipu in execution.ipus)]
    rows = [["", *(phase.term for phase in names), "waiting"]]
    for number, ipu in enumerate(execution.ipus):
        cycles = [*(getattr(ipu, phase.cycles) for phase in names), ipu.waiting_cycles]
        rows.append([f"IPU {number}", *(f"{part:,}" for part in cycles)])
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shown = ["  ".join(f"{text:>{width}}" for text, width in zip(row, wide, strict=True)) for row in rows]
    return ["  Cycles of each IPU; while one waits for others, these go on:", *(f"    {line}" for line in shown)]


def floating_point(execution: Execution, target: ReportTarget) -> list[str]:
    """Floating-point operations of all runs, per second, and as a share of what the tiles' units can do."""
    rate = achieved(execution, target)
    rows: list[Line] = [
        ("Floating-point operations (FLOPs):", f"{execution.flops:,}"),
        ("Achieved:", f"{rate / 1e9:,.3f} GFLOP/s"),
    ]
    for unit, flops in target.peak_flops_per_cycle.items():
        peak = flops * target.numTiles * target.clockFrequency
        share = (
            f"of which achieved {rate / peak if peak else 0.0:.2%}" if rate <= peak else "less than achieved: other units do more"
        )
        rows.append((f"Peak ({unit}):", f"{peak / 1e9:,.1f} GFLOP/s, {share}"))
    return labelled(rows, 2)


def achieved(execution: Execution, target: ReportTarget) -> float:
    """Floating-point operations of all runs per second."""
    seconds = execution.totalCycles.total / target.clockFrequency if target.clockFrequency else 0.0
    return execution.flops / seconds if seconds else 0.0


def by_vertex_type(execution: Execution, compilation: Compilation) -> list[str]:
    """Vertex types by their worker slots, the most first, with what priced them."""
    used = [entry for entry in execution.cycles_by_vertex_type.items() if entry[1].instances]
    types = sorted(used, key=lambda entry: (-entry[1].cycles, entry[0]))
    priced = {vertex_type.name: pricing(vertex_type.priced_by) for vertex_type in compilation.vertex_types}
    labels = [f"{name} ({counted(cost.instances, 'instance')}):" for name, cost in types]
    cycles = [f"{cost.cycles:,}" for _, cost in types]
    flops = [f"{cost.flops:,} FLOPs" if execution.flops else "" for _, cost in types]
    columns = [cycles, flops, *_costs_of_code([cost for _, cost in types])]
    wide = [max(map(len, column), default=0) for column in (labels, *columns)]
    lines = []
    for (name, _), label, *entries in zip(types, labels, *columns, strict=True):
        shown = "  ".join(f"{entry:>{width}}" for entry, width in zip(entries, wide[1:], strict=True))
        lines.append(f"    {label:<{wide[0]}}  {shown}  {priced.get(name, '')}".rstrip())
    return lines


def _costs_of_code(costs: Sequence[VertexTypeCycles]) -> list[list[str]]:
    """Columns of what compiled code takes and hand-written code could reach; none where they were not counted."""
    if not any(cost.compiled_cycles for cost in costs):
        return []
    return [[f"compiled {cost.compiled_cycles:,}" for cost in costs], [f"bound {cost.bound_cycles:,}" for cost in costs]]


def pricing(counts: Mapping[str, int]) -> str:
    """``priced by code``; with numbers of vertices where there is more than one price: ``priced by code 10, estimate 2``."""
    kinds = [source for source, count in counts.items() if count]
    shown = kinds if len(kinds) < 2 else [f"{source} {counts[source]:,}" for source in kinds]
    return f"priced by {', '.join(shown)}" if kinds else ""


def steps_section(execution: Execution, programs: Sequence[Program], between: Between) -> list[str]:
    """The steps that ran with what all their executions cost, within the loops, branches and calls of the program.

    A function's steps stand at its first call, with what all its calls cost together.
    """
    ran = {step.number: step for step in execution.steps if step.number >= 0}
    tiles = StepTiles(SlowestTiles(ran, execution.slowest_vertices), between)
    if not execution.steps:
        return []
    lines = ["  Execution steps:"]
    seen: set[int] = set()
    shown: set[int] = set()
    for number, program in enumerate(programs):
        below = tree_lines(program, tiles, seen, shown)
        if below and len(programs) > 1:
            title = f"Program {number}" + (f" ({shown_name(program.name)})" if program.name else "")
            lines.append(f"    {title}:")
            below = [f"  {line}" for line in below]
        lines += below
    for step in execution.steps:
        if step.number not in seen:
            lines += step_lines(step, tiles, " " * (4 + 2 * step.depth))
    return lines


def longest_section(execution: Execution, top: int, between: Between) -> list[str]:
    """The `top` steps that took the most cycles, the longest first."""
    total, tiles = execution.stepCycles, StepTiles(SlowestTiles.of(execution), between)
    if not execution.steps:
        return []
    lines = [f"  Longest steps ({min(top, len(execution.steps)):,} of {len(execution.steps):,}):"]
    for step in longest_steps(execution, top):
        first, *rest = step_lines(step, tiles, "    ")
        lines += [f"{first}, {step.cycles / total if total else 0.0:.1%} of total", *rest]
    return lines


def longest_steps(execution: Execution, top: int) -> list[Step]:
    """The `top` steps that took the most cycles, of equals those that come first."""
    return sorted(execution.steps, key=lambda step: -step.cycles)[:top]


def tree_lines(root: Program, tiles: StepTiles, seen: set[int], shown: set[int]) -> list[str]:
    """A program tree as far as its steps ran; nameless sequences are not shown, nor is the one at the root.

    What stands in several places is written out at the first. `seen` are the steps, `shown` the ids of the programs so far.
    """
    ran = tiles.slowest.steps
    alive = ran_below(root, ran)
    lines: list[str] = []
    pending = [(4, root)]
    while pending:
        indent, node = pending.pop()
        if not alive[id(node)]:
            continue
        inner = indent
        margin = " " * indent
        if node.step in ran:
            if node.step not in seen:
                lines += step_lines(ran[node.step], tiles, margin)
                seen.add(node.step)
            continue
        above = id(node) in shown or (node.type == "Call" and not has_more(node, ran, seen, shown))
        above |= all(child.step in seen for child in node.children if alive[id(child)])  # copies that joined a step before
        shown.add(id(node))
        if node.type != "Sequence" or (node.name and node is not root):
            lines.append(f"{margin}{heading(node)}{' (its steps are above)' if above else ':'}")
            inner += 2
        if above:
            continue
        pending.extend((inner, child) for child in reversed(node.children))
    return lines


def has_more(root: Program, ran: Mapping[int, Step], seen: set[int], shown: set[int]) -> bool:
    """Whether a step that ran, and was not seen yet, is below a program. What has been shown has none."""
    pending, visited = [root], set[int]()
    while pending:
        node = pending.pop()
        if node.step in ran and node.step not in seen:
            return True
        if id(node) not in visited and id(node) not in shown:
            visited.add(id(node))
            pending.extend(reversed(node.children))
    return False


def ran_below(root: Program, ran: Mapping[int, Step]) -> dict[int, bool]:
    """By the id of each node whether a step at it or below it ran."""
    alive: dict[int, bool] = {}
    for node in root.nodes():
        alive[id(node)] = node.step in ran or any(alive[id(child)] for child in node.children)
    return alive


def step_lines(step: Step, tiles: StepTiles, indent: str) -> list[str]:
    """A step with its cycles, tiles, balance and bytes, and the tile that it waits for."""
    times = f" ({counted(step.executions, 'execution')})" if step.executions != 1 else ""
    lines = [f"{step.type}: {shown_name(step.name)}{times}", f"  Cycles: {step.cycles:,}{composition(step)}"]
    if step.slowest_tile_cycles > step.compute_cycles:
        lines.append(f"  Slowest tile: {step.slowest_tile_cycles:,}, beside other steps")
    if step.activeTiles:
        balance = f"(balance {step.tileBalance:.1%}, of active tiles {step.activeTileBalance:.1%})"
        lines.append(f"  Active tiles: {step.activeTiles:,} {balance}")
    tile = tiles.slowest.of_step(step)
    if tile is not None:
        lines.append(f"  Slowest tile {tile.told()}")
    if step.number in tiles.between:
        lines.append(f"  Between IPUs: {tiles.between[step.number].told()}")
    if step.cyclesByTile.any():
        lines.append(f"  Thread balance: {step.thread_balance:.1%}")
    if step.program is not None and step.program.vertices:
        lines.append(f"  Vertices: {', '.join(f'{name} ({count:,})' for name, count in step.program.vertices.items())}")
    sent, received = int(step.bytesSentByTile.sum()), int(step.bytesReceivedByTile.sum())
    if sent or received:
        pieces = "" if step.most_pieces is None else f", at most {counted(step.most_pieces, 'piece')} at a tile's port"
        lines.append(f"  Exchange: {sent:,} B sent, {received:,} B received{pieces}")
    if step.host_bytes:
        limit = f", limited by {step.host_limit}" if step.host_limit else ""
        lines.append(f"  Host: {step.host_bytes:,} B{limit}")
    if step.flops:
        lines.append(f"  FLOPs: {step.flops:,}")
    return [f"{indent}{line}" for line in lines]


def composition(step: Step) -> str:
    """What the cycles of a step consist of, in brackets."""
    split = ", ".join(f"{phase.term} {cycles:,}" for phase in PHASES if (cycles := getattr(step, phase.cycles)))
    return f" ({split})" if split else ""
