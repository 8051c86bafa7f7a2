"""What a report stands on that no run has made: what was assumed of control that data decide, and which data were drawn."""

from __future__ import annotations

import json
import math
from typing import Any

from attrs import asdict, frozen

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
    """

    assumptions: tuple[AssumedControl, ...] = ()
    sampled: tuple[SampledType, ...] = ()

    @property
    def validity(self) -> str:
        """In one line: what was sampled, assumed, and is not modelled."""
        sampled = ", ".join(kind.name for kind in self.sampled) or "nothing"
        assumed = f"{len(self.assumptions)} assumptions" if len(self.assumptions) > 1 else "1 assumption"
        return f"sampled: {sampled}; assumed: {assumed if self.assumptions else 'nothing'}; {NOT_MODELLED}"

    def told(self) -> list[str]:
        """As lines."""
        lines = ["Priced without running.", f"  {self.validity}"]
        lines += [f"  assumed: {one.text}, {one.share:.1%} of all cycles" for one in self.assumptions]
        for kind in self.sampled:
            lines.append(f"  sampled: {kind.name}, {kind.values}: {kind.least_slots:,} to {kind.most_slots:,} slots")
        return lines


def cost_text(basis: CostBasis) -> str:
    """What a profile's file keeps of it."""
    return json.dumps(asdict(basis), separators=(",", ":"))


def read_cost(text: str) -> CostBasis:
    """What `cost_text` wrote; `ValueError` for anything else."""
    tree = json.loads(text)
    if not isinstance(tree, dict) or set(tree) != {"assumptions", "sampled"}:
        raise ValueError("expected assumptions and sampled")
    return CostBasis(_read(tree["assumptions"], AssumedControl), _read(tree["sampled"], SampledType))


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
