"""What a report stands on that no run has made: what was assumed of control that data decide, and which data were drawn."""

from __future__ import annotations

import json
import math
from typing import Any

from attrs import asdict, frozen

from pypoplar.arrays.number_ranges import counted

NOT_MODELLED = "not modelled: overlap of compute with exchange or host I/O, the host's own time"


@frozen
class AssumedControl:
    """An assumption, given by `CostBasis.assumptions`.

    Attributes
    ----------
    text:
        What was assumed, and where: ``assume_count(RepeatWhileTrue, 20) at model.py:7``.
    share:
        Of all cycles, those of what it decides.
    """

    text: str
    share: float


@frozen
class SampledType:
    """A vertex type whose cycles depend on data that were drawn, given by `CostBasis.sampled`.

    Attributes
    ----------
    name:
        That of the vertex type.
    values:
        What was drawn: ``keys from 0 to 99``.
    least_slots:
        Of all its vertices and draws, the fewest slots.
    most_slots:
        The most; for each class of equal vertices the largest of its draws counts.
    """

    name: str
    values: str
    least_slots: int
    most_slots: int


@frozen
class CostBasis:
    """What the figures of an engine with ``mode="cost"`` stand on, given by `Report.cost`.

    Attributes
    ----------
    assumptions:
        What was assumed of control that data decide.
    sampled:
        The vertex types that were priced with data that were drawn.
    of_ones:
        Vertex types whose cycles an estimate gives, and whose operations, bytes and lines are those of one vertex on ones: data
        decide which branches they take.
    uncounted:
        Vertex types whose cycles an estimate gives, and whose operations, bytes and lines are not counted, as data decide how many.
    """

    assumptions: tuple[AssumedControl, ...] = ()
    sampled: tuple[SampledType, ...] = ()
    of_ones: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()

    @property
    def validity(self) -> str:
        """In one line: what was sampled, assumed, and is not modelled."""
        sampled = ", ".join(kind.name for kind in self.sampled) or "nothing"
        assumed = f"{len(self.assumptions)} assumptions" if len(self.assumptions) > 1 else "1 assumption"
        said = [f"sampled: {sampled}", f"assumed: {assumed if self.assumptions else 'nothing'}", NOT_MODELLED]
        if self.of_ones:
            said.append(f"operations of {counted(len(self.of_ones), 'vertex type')} counted on ones, as data decide their branches")
        if self.uncounted:
            said.append(f"operations of {counted(len(self.uncounted), 'vertex type')} not counted, as data decide how many")
        return "; ".join(said)

    def told(self) -> list[str]:
        """As lines."""
        lines = ["Priced without running.", f"  {self.validity}"]
        lines += [f"  assumed: {one.text}, {one.share:.1%} of all cycles" for one in self.assumptions]
        for kind in self.sampled:
            lines.append(f"  sampled: {kind.name}, {kind.values}: {kind.least_slots:,} to {kind.most_slots:,} slots")
        lines += [f"  operations counted on ones: {name}" for name in self.of_ones]
        lines += [f"  operations not counted: {name}" for name in self.uncounted]
        return lines


def cost_text(basis: CostBasis) -> str:
    """What a profile's file keeps of it."""
    return json.dumps(asdict(basis), separators=(",", ":"))


def read_cost(text: str) -> CostBasis:
    """What `cost_text` wrote; `ValueError` for anything else."""
    tree = json.loads(text)
    if not isinstance(tree, dict) or set(tree) != set(CostBasis.__annotations__):
        raise ValueError(f"expected {', '.join(CostBasis.__annotations__)}")
    for names in (tree["of_ones"], tree["uncounted"]):
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{names!r} are no names of vertex types")
    listed = _read(tree["assumptions"], AssumedControl), _read(tree["sampled"], SampledType)
    return CostBasis(*listed, tuple(tree["of_ones"]), tuple(tree["uncounted"]))


def _read(rows: Any, kind: Any) -> tuple[Any, ...]:
    kinds = {"text": str, "share": float, "name": str, "values": str, "least_slots": int, "most_slots": int}
    names = set(kind.__annotations__)
    if not isinstance(rows, list):
        raise ValueError(f"expected a list of {kind.__name__}")
    for row in rows:
        if not isinstance(row, dict) or set(row) != names or any(type(row[name]) is not kinds[name] for name in names):
            raise ValueError(f"{row!r} is no {kind.__name__}")
        if not all(math.isfinite(value) and value >= 0 for value in row.values() if not isinstance(value, str)):
            raise ValueError(f"{row!r} has a number below 0")
    return tuple(kind(**row) for row in rows)
