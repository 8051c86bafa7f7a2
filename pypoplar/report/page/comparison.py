"""Two reports side by side: what differs, with steps, compute sets and vertex types matched by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import field, frozen

from pypoplar.report.execution import Step, numbered_steps
from pypoplar.report.memory_report import category_label
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.page.operation_data import compute_set_data, vertex_type_rows
from pypoplar.report.page.summary_data import summary_data
from pypoplar.report.report import Report

Row = dict[str, Any]
Value = TypeVar("Value")


@frozen(eq=False)
class Sides:
    """The two reports of a comparison, "a" and "b" in the page's data, with the first view of each."""

    first: Report
    second: Report
    summaries: tuple[Row, Row] = field(init=False)

    @summaries.default
    def _summaries(self) -> tuple[Row, Row]:
        return self.each(summary_data)

    @property
    def names(self) -> tuple[str, str]:
        """What the two are called."""
        return (label(self.first, "A"), label(self.second, "B"))

    @property
    def ran(self) -> tuple[bool, bool]:
        """Which of them have run."""
        return self.each(lambda report: report.execution is not None)

    def each(self, value: Callable[[Report], Value]) -> tuple[Value, Value]:
        """A value of both reports."""
        return (value(self.first), value(self.second))

    def facts(self, name: str) -> list[Row]:
        """Facts of both summaries, with the differences."""
        return facts(*(summary[name] for summary in self.summaries))


def label(report: Report, letter: str) -> str:
    """What the page calls a report: its letter, and its name if it has one."""
    return f"{letter}: {report.name}" if report.name else letter


def category_changes(sides: Sides) -> list[Row]:
    """Bytes of all tiles by category in both."""
    return matched(*sides.each(category_rows), ("bytes",))


def vertex_type_changes(sides: Sides) -> list[Row]:
    """Vertex types with their cycles in both."""
    return matched(*sides.each(vertex_type_rows), ("cycles", "instances"))


def compute_set_changes(sides: Sides) -> list[Row] | None:
    """Compute sets with their cycles in both; None unless both have run."""
    first, second = sides.each(compute_set_data)
    return None if first is None or second is None else matched(first, second, ("cycles", "executions", "balance"))


def step_changes(sides: Sides) -> list[Row] | None:
    """Steps with their cycles in both; None unless both have run."""
    return matched_steps(*sides.each(lambda report: numbered_steps(report.execution))) if all(sides.ran) else None


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


def _by_name(steps: Mapping[int, Step]) -> dict[tuple[str, str, int], tuple[int, Step]]:
    count: dict[tuple[str, str], int] = {}
    by_name: dict[tuple[str, str, int], tuple[int, Step]] = {}
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


def tile_bytes(report: Report, blocks: Blocks) -> Row:
    """Bytes by tile with and without gaps, and what a tile has."""
    memory = report.compilation.memory
    return {
        "including": blocks.array(memory.including_gaps()),
        "excluding": blocks.array(memory.excluding_gaps()),
        "limit": report.compilation.target.bytesPerTile,
    }


def category_rows(report: Report) -> list[Row]:
    """Bytes of all tiles by category."""
    memory = report.compilation.memory
    sizes = {category_label(name): int(values.sum()) for name, values in memory.categories.items()}
    return [{"name": name, "bytes": size} for name, size in {**sizes, "Gaps": int(memory.gaps.sum())}.items()]
