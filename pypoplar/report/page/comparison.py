"""Two reports side by side: what differs, with steps, compute sets and vertex types matched by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pypoplar.report.execution import Step
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.memory_data import category_label, liveness_data
from pypoplar.report.page.operation_data import compute_set_rows, vertex_type_rows
from pypoplar.report.page.step_data import step_number
from pypoplar.report.page.summary_data import summary_data
from pypoplar.report.report import Report

Row = dict[str, Any]


def comparison_data(first: Report, second: Report, blocks: Blocks) -> Row:
    """The page's data of two reports, "a" and "b" in it."""
    a, b = summary_data(first), summary_data(second)
    ran = first.execution is not None and second.execution is not None
    return {
        "kind": "comparison",
        "names": [label(first, "A"), label(second, "B")],
        "ran": [first.execution is not None, second.execution is not None],
        "headline": facts(a["headline"], b["headline"]),
        "graph": facts(a["graph"], b["graph"]),
        "target": facts(a["target"], b["target"]),
        "options": facts(a["options"], b["options"]),
        "machine": [a["machine"], b["machine"]],
        "mean_tile": [a["mean_tile"], b["mean_tile"]],
        "memory": [_memory(report, blocks) for report in (first, second)],
        "categories": _categories(first, second),
        "liveness": [liveness_data(report.compilation, blocks) for report in (first, second)],
        "vertex_types": blocks.value(matched(vertex_type_rows(first), vertex_type_rows(second), ("cycles", "instances"))),
        "compute_sets": blocks.value(_compute_sets(first, second)) if ran else None,
        "steps": blocks.value(matched_steps(steps_of(first), steps_of(second))) if ran else None,
    }


def label(report: Report, letter: str) -> str:
    return f"{letter}: {report.name}" if report.name else letter


def change(a: float | None, b: float | None) -> Row:
    """How `b` differs from `a`: "difference", and "percent" as a share of `a`, None where there is no such number."""
    if a is None or b is None:
        return {"difference": None, "percent": None}
    return {"difference": b - a, "percent": (b - a) / a if a else None}


def facts(a: Iterable[Row], b: Iterable[Row]) -> list[Row]:
    """Facts of both, matched by label. Numbers have their difference."""
    left, right = ({fact["label"]: fact for fact in side} for side in (a, b))
    rows = []
    for name in dict.fromkeys((*left, *right)):
        unit = (left.get(name) or right[name])["unit"]
        values = [side[name]["value"] if name in side else None for side in (left, right)]
        differs = change(*values) if unit != "text" else {}
        rows.append({"label": name, "unit": unit, "a": values[0], "b": values[1], **differs})
    return rows


def matched(a: Sequence[Row], b: Sequence[Row], numbers: Sequence[str]) -> list[Row]:
    """Rows of both by their "name": each number as "a_cycles" and "b_cycles", with the change of the first of them."""
    left, right = ({row["name"]: row for row in side} for side in (a, b))
    rows = []
    for name in dict.fromkeys((*left, *right)):
        row: Row = {"name": name}
        for number in numbers:
            row[f"a_{number}"] = left[name][number] if name in left else None
            row[f"b_{number}"] = right[name][number] if name in right else None
        # What only one side has costs nothing on the other.
        rows.append({**row, **change(row[f"a_{numbers[0]}"] or 0, row[f"b_{numbers[0]}"] or 0)})
    return rows


def matched_steps(a: Mapping[int, Step], b: Mapping[int, Step]) -> list[Row]:
    """Steps by type and name, the second of that name with the second, in the order of both programs."""
    left, right = _by_name(a), _by_name(b)
    rows = []
    for key in _merged(list(left), list(right)):
        row: Row = {"type": key[0], "name": key[1]}
        for letter, side in (("a", left), ("b", right)):
            number, step = side.get(key, (None, None))
            row[f"{letter}_step"] = number
            row[f"{letter}_executions"] = step.executions if step else None
            row[f"{letter}_cycles"] = step.cycles if step else None
        rows.append({**row, **change(row["a_cycles"] or 0, row["b_cycles"] or 0)})
    return rows


def steps_of(report: Report) -> dict[int, Step]:
    steps = report.execution.steps if report.execution is not None else ()
    return {step_number(step, place): step for place, step in enumerate(steps)}


def _by_name(steps: Mapping[int, Step]) -> dict[tuple[str, str, int], tuple[int, Step]]:
    count: dict[tuple[str, str], int] = {}
    by_name = {}
    for number, step in steps.items():
        key = (step.type, step.name)
        by_name[(*key, count.get(key, 0))] = (number, step)
        count[key] = count.get(key, 0) + 1
    return by_name


def _merged(a: list[Any], b: list[Any]) -> list[Any]:
    """The keys of both, in the order of `a`; what only `b` has stands after what it follows in `b`."""
    in_a = set(a)
    after: dict[Any, list[Any]] = {}
    last = None
    for key in b:
        if key in in_a:
            last = key
        else:
            after.setdefault(last, []).append(key)
    return [*after.get(None, []), *(key for first in a for key in (first, *after.get(first, [])))]


def _compute_sets(first: Report, second: Report) -> list[Row]:
    rows = [compute_set_rows(report.execution) if report.execution is not None else [] for report in (first, second)]
    return matched(rows[0], rows[1], ("cycles", "executions", "balance"))


def _memory(report: Report, blocks: Blocks) -> Row:
    memory = report.compilation.memory
    return {
        "including": blocks.array(memory.including_gaps()),
        "excluding": blocks.array(memory.excluding_gaps()),
        "limit": report.compilation.target.bytesPerTile,
    }


def _categories(first: Report, second: Report) -> list[Row]:
    rows = []
    for report in (first, second):
        memory = report.compilation.memory
        sizes = {category_label(name): int(values.sum()) for name, values in memory.categories.items()}
        rows.append([{"name": name, "bytes": size} for name, size in {**sizes, "Gaps": int(memory.gaps.sum())}.items()])
    return matched(rows[0], rows[1], ("bytes",))
