"""Findings of the code of vertices: those that tiles wait for, and the floating-point rate."""

from __future__ import annotations

import re

from pypoplar.report.execution import Execution
from pypoplar.report.insights.compute_savings import ComputeSavings
from pypoplar.report.insights.dear_functions import dear_lines, dear_operation
from pypoplar.report.insights.insight import Insight, lines_link, shown, told_line, weigh
from pypoplar.report.insights.loop_advice import loop_advice
from pypoplar.report.insights.waited_types import waited_types
from pypoplar.report.line_profile import LineCost
from pypoplar.report.report import Compilation, Report


def dearest_vertex_type(report: Report) -> Insight | None:
    """The vertex type that tiles wait for longest, and what its code could save of the cycles that nothing else claims."""
    execution = report.execution
    costs = execution.cycles_by_vertex_type if execution is not None else {}
    slots = sum(cost.cycles for cost in costs.values())
    if execution is None or not slots or not execution.stepCycles:
        return None
    name = _dearest(report)
    of_library = _estimated_library(report.compilation, name)
    line, dear = (None, []) if of_library else (_dearest_line(execution, name), dear_lines(execution, name))
    waited = waited_types(report)[name].cycles
    total, instances = execution.stepCycles, costs[name].instances
    text = f"Tiles wait {waited:,.0f} cycles for vertices of {shown(name)}, {waited / total:.1%} of the total."
    text += f" All {instances:,} take" if instances > 1 else " It takes"
    text += f" {costs[name].cycles:,} worker slots,"
    text += f" {costs[name].cycles / slots:.1%} of all vertices' slots."
    if line is not None:
        text += f" {line.share:.1%} of them go to {told_line(line.source)}."
    loops = () if of_library else loop_advice(execution, name)
    text += "".join(loop.text for loop in loops)
    bound = _bound(report.compilation, execution, name)
    if bound is not None:
        text += f" Hand-written code could do with {bound - sum(one.saved for one in dear):,}"
        text += ", without the functions of software that it calls." if dear else "."
    halves = _has_floats(report.compilation, name)
    if of_library:
        text += " It is a library's, and an estimate says what it takes: its code is not for editing."
        advice = "Call it less often, or for less: fewer and larger calls take less than many small ones."
        called = dear_operation(name)
        advice += f" {called}" if called else HALVES if halves else ""
    elif dear:
        advice = dear[0].told(line)
        advice += "".join(f" {loop.advice}" for loop in loops)
    else:
        advice = "".join(f"{loop.advice} " for loop in loops)
        advice += "Look at its inner loop first: what runs once per element is worth moving out"
        advice += ", and half halves the bytes it loads." if halves else "."
        if _sums_products(report.compilation, name, line):
            advice += (
                " Sums of products of many rows are a matrix product, for which a tile has a unit of its own that does many in a"
                " cycle: poplin.matMul, or ipu.multiply_accumulate in a MultiVertex."
            )
        if execution.lines is None:
            advice += (
                " With the engine option autoReport.outputExecutionProfile the report tells its lines, and the functions they call."
            )
    title = f"Most expensive vertex type: {shown(name)}"
    share = saved_by_code(report)
    lines = "" if of_library else lines_link(execution, type=name)
    return Insight("dearest_vertex_type", weigh(share), title, text, advice, "vertices", share, lines=lines)


HALVES = (
    " In half it takes half as much or less; what stays float beside it is cast, and small tensors of halves lie on half as many"
    " tiles where they are mapped by bytes."
)
_PRODUCTS = re.compile(r"\+=[^#]*[^*]\*[^*]")  # a sum of products
_UNIT = 7 / 8  # share of such a line's bound that the matrix unit may save: it does eight times as many FLOATs, or more of HALFs
_TOLD_LINE = 0.25  # share of a vertex type's slots from which its dearest line is told


def _dearest_line(execution: Execution, name: str) -> LineCost | None:
    """The line that takes the most slots of a vertex type, if it takes a good part of them and is known."""
    if execution.lines is None or name not in execution.lines.vertex_types:
        return None
    dearest = max(execution.lines.lines(name), key=lambda line: line.slots, default=None)
    return dearest if dearest is not None and dearest.share >= _TOLD_LINE else None


def _sums_products(compilation: Compilation, name: str, line: LineCost | None) -> bool:
    """Whether a line is a sum of products of floats, which the matrix unit may do."""
    return line is not None and _PRODUCTS.search(line.source.text) is not None and bool(_precision(compilation, name))


def _estimated_library(compilation: Compilation, name: str) -> bool:
    """Whether a vertex type is a library's and estimated: nobody changes the estimate by editing its lines."""
    kind = next((kind for kind in compilation.vertex_types if kind.name == name), None)
    return kind is not None and "::" in name and any(count for source, count in kind.priced_by.items() if source != "code")


def _has_floats(compilation: Compilation, name: str) -> bool:
    """Whether a vertex type's vectors have elements of 4 bytes that could be halves."""
    kind = next((kind for kind in compilation.vertex_types if kind.name == name), None)
    return kind is not None and ("float" in kind.elements if kind.elements else kind.precision == "float")


def _precision(compilation: Compilation, name: str) -> str:
    return next((kind.precision for kind in compilation.vertex_types if kind.name == name), "")


def _dearest(report: Report) -> str:
    """The vertex type that tiles wait for longest; of those for which they do not wait, the one that takes the most slots."""
    waited, costs = waited_types(report), report.execution.cycles_by_vertex_type
    return max(costs, key=lambda name: (waited[name].cycles, costs[name].cycles))


def saved_by_code(report: Report) -> float:
    """Share of the total that the code of the dearest vertex type could save at most: down to its bound where that is known.

    Functions of software can mostly be written in another way, so that their lines are not part of the bound here. A library's
    estimated vertices could take half as much in half. 0 where nothing is known by vertex type.
    """
    compilation, execution = report.compilation, report.execution
    costs = execution.cycles_by_vertex_type if execution is not None else {}
    if not any(cost.cycles for cost in costs.values()):
        return 0.0
    name = _dearest(report)
    if _estimated_library(compilation, name):
        saved = costs[name].cycles // 2 if _has_floats(compilation, name) else 0
    else:
        bound = _bound(compilation, execution, name)
        saved = costs[name].cycles - (bound or 0)
        if bound:
            saved += sum(line.saved for line in dear_lines(execution, name))
            line = _dearest_line(execution, name)
            if line is not None and _sums_products(compilation, name, line):
                saved += int((line.bound or 0) * _UNIT)
            saved = min(costs[name].cycles, saved)
    return waited_types(report)[name].left * saved / max(1, costs[name].cycles) / execution.stepCycles


def _bound(compilation: Compilation, execution: Execution, name: str) -> int | None:
    """Slots that hand-written code could reach; None where it is not known, or an estimate decides."""
    priced = next((kind.priced_by for kind in compilation.vertex_types if kind.name == name), {})
    cost, lines = execution.cycles_by_vertex_type[name], execution.lines
    if any(count for source, count in priced.items() if source != "code"):
        return None
    if cost.compiled_cycles:
        return min(cost.bound_cycles, cost.cycles)
    if lines is None or not lines.compiled or name not in lines.vertex_types:
        return None
    return min(sum(line.bound or 0 for line in lines.lines(name)), cost.cycles)


def far_from_peak(report: Report) -> Insight | None:
    """Floating-point operations against what the target could do of their kind. Few programs reach it: it is never a warning.

    What it could save is what other findings do not claim.
    """
    execution, target = report.execution, report.compilation.target
    known = any(target.peak_flops_per_cycle.values()) and target.numTiles > 0 and target.clockFrequency > 0
    if execution is None or not execution.flops or not execution.seconds or not known:
        return None
    name, per_cycle = reachable_peak(report.compilation, execution)
    peak = per_cycle * target.numTiles * target.clockFrequency
    achieved = execution.flops / execution.seconds
    text = f"{execution.flops:,} floating-point operations in {execution.seconds * 1e6:,.1f} \u00b5s: {rate(achieved)},"
    text += f" {achieved / peak:.2%} of the {rate(peak)} of {name}."
    advice = "Matrix products in half come closest to the peak; the roofline shows which compute sets are bound by memory instead."
    left = ComputeSavings.of(report).sum("left") / execution.stepCycles
    share = max(0.0, left - saved_by_code(report) - achieved / peak)
    lines = lines_link(execution)
    return Insight("far_from_peak", "good to know", "Floating-point rate", text, advice, "roofline", share, lines=lines)


def reachable_peak(compilation: Compilation, execution: Execution) -> tuple[str, float]:
    """The unit that operations of these vertex types can run on at best, and its operations of a tile in a cycle.

    Where some types are of float and others of half, it is what both reach together. Types of which nothing is known may be any.
    """
    peaks = _peaks(compilation)
    flops: dict[str, int] = {}
    for name, cost in execution.cycles_by_vertex_type.items():
        units = units_of(compilation, name)
        unit = max(units, key=lambda unit: units[unit])
        flops[unit] = flops.get(unit, 0) + cost.flops
    flops = {unit: count for unit, count in flops.items() if count}
    if not flops:
        unit = max(peaks, key=lambda unit: peaks[unit])
        return unit, peaks[unit]
    return " and ".join(flops), sum(flops.values()) / sum(count / peaks[unit] for unit, count in flops.items())


def _peaks(compilation: Compilation) -> dict[str, float]:
    return {unit: peak for unit, peak in compilation.target.peak_flops_per_cycle.items() if peak}


def units_of(compilation: Compilation, vertex_type: str) -> dict[str, float]:
    """The units that vertices of a type can run on, ``"float, vector code"``, and their operations of a tile in a cycle.

    All of them where nothing is known of its precision.
    """
    precision, peaks = _precision(compilation, vertex_type), _peaks(compilation)
    return {unit: peak for unit, peak in peaks.items() if precision and unit.split(",")[0] == precision} or peaks


def rate(operations: float) -> str:
    """Floating-point operations per second, in the unit that suits them."""
    unit = "FLOP/s"
    for larger in ("kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"):
        if operations < 1000:
            break
        operations, unit = operations / 1000, larger
    return f"{operations:,.1f} {unit}"
