"""The page's exchanges: messages from tile to tile, one row for each pair, coarser where there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import Int64s, Integers
from pypoplar.report.execution import Execution, Step, numbered_steps
from pypoplar.report.page.blocks import Blocks
from pypoplar.report.report import ExchangeReport

MOST_PAIRS = 3_000_000  # of all exchanges; beyond it, those with the most pairs are kept by groups of tiles
GROUP = 4  # tiles in such a group


def exchanges_data(exchanges: Sequence[ExchangeReport], execution: Execution | None, blocks: Blocks) -> dict[str, Any] | None:
    """All exchanges. `width` is 1 where pairs of tiles are exact, else the tiles of a group, which its first tile stands for."""
    if not exchanges:
        return None
    ran = numbered_steps(execution)
    pairs = sum(len(exchange.source) for exchange in exchanges)
    listed: list[dict[str, Any]] = []
    parts: list[tuple[Integers, Integers, Int64s]] = []
    for exchange in exchanges:
        coarse = pairs > MOST_PAIRS and len(exchange.source) > MOST_PAIRS // len(exchanges)
        rows = grouped(exchange) if coarse else (exchange.source, exchange.destination, exchange.bytes)
        parts.append(rows)
        listed.append(
            {
                "name": exchange.name,
                "phase": exchange.phase,
                "step": exchange.step,
                **_of_step(ran.get(exchange.step)),
                "bytes": int(exchange.bytes.sum()),
                "pairs": len(exchange.source),
                "rows": len(rows[0]),
                "width": GROUP if coarse else 1,
            }
        )
    source, destination, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    return {"list": listed, "source": blocks.array(source), "destination": blocks.array(destination), "bytes": blocks.array(size)}


def _of_step(step: Step | None) -> dict[str, int | None]:
    """Executions of an exchange's step, and the cycles and the pieces at the busiest port of one; None if it has not run."""
    if step is None or not step.executions:
        return {"executions": 0, "cycles": None, "pieces": None}
    cycles, pieces = step.exchange_cycles + step.copy_cycles + step.global_exchange_cycles, step.most_pieces
    return {
        "executions": step.executions,
        "cycles": cycles // step.executions,
        "pieces": None if pieces is None else pieces // step.executions,
    }


def grouped(exchange: ExchangeReport) -> tuple[Integers, Integers, Int64s]:
    """The exchange between groups of `GROUP` tiles, each named by its first tile."""
    source, destination = exchange.source // GROUP, exchange.destination // GROUP
    groups = int(max(source.max(), destination.max())) + 1
    keys, place = np.unique(source.astype(np.int64) * groups + destination, return_inverse=True)
    size = np.zeros(len(keys), np.int64)
    np.add.at(size, place, exchange.bytes)
    return (keys // groups * GROUP).astype(np.int32), (keys % groups * GROUP).astype(np.int32), size
