"""The page's picture of tile memory: by tile and category, by variable, by step of the program."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.report.memory_report import LoweredVariables, category_label, live_bytes
from pypoplar.report.page.blocks import Blocks, Reference
from pypoplar.report.program_nodes import short_place
from pypoplar.report.report import Compilation

MOST_PLACES = 4_000_000  # pairs of a variable and a tile; beyond it, the page shows variables without their tiles

HOST = "the host's own reading and writing of tensors"


def memory_data(compilation: Compilation, blocks: Blocks) -> dict[str, Any]:
    """Bytes by tile."""
    memory = compilation.memory
    whole = memory.including_gaps()
    return {
        "limit": compilation.target.bytesPerTile,
        "categories": [
            {"name": name, "label": category_label(name), "bytes": blocks.array(values), "total": int(values.sum())}
            for name, values in memory.categories.items()
        ],
        "gaps": blocks.array(memory.gaps),
        "total": int(whole.sum()),
        "most": int(whole.max()) if len(whole) else 0,
        "always_live": blocks.array(memory.always_live) if len(memory.always_live) else None,
        "not_always_live": blocks.array(memory.not_always_live) if len(memory.not_always_live) else None,
        "vertex_data": [[category_label(name), size] for name, size in memory.vertex_data.items()],
    }


def variables_data(variables: LoweredVariables, blocks: Blocks) -> dict[str, Any] | None:
    """The variables, where they lie and when they live; None where the report does not say."""
    if not len(variables):
        return None
    placed = len(variables.tile) <= MOST_PLACES
    return {
        "names": blocks.value(list(variables.names)),
        "made_at": blocks.value([short_place(place) for place in variables.made_at]),
        "always": blocks.array(variables.always),
        "first_life": blocks.array(variables.first_life),
        "life_begin": blocks.array(variables.life_begin),
        "life_end": blocks.array(variables.life_end),
        "total": blocks.array(variables.total_bytes()),
        "first": blocks.array(variables.first) if placed else None,
        "tile": blocks.array(variables.tile) if placed else None,
        "bytes": blocks.array(variables.bytes) if placed else None,
        "offset": blocks.array(variables.offset) if placed and len(variables.offset) else None,
        "span": blocks.array(variables.span) if placed and len(variables.span) else None,
    }


def liveness_data(compilation: Compilation, blocks: Blocks) -> dict[str, Any] | None:
    """Bytes that live at each static step, on all tiles together; None where the report does not say."""
    steps = len(compilation.step_programs)
    if not steps or not len(compilation.loweredVariables):
        return None
    live_by_step = live_bytes(compilation.loweredVariables, steps)
    return {"always": _always_live(compilation), "not_always": blocks.array(live_by_step)}


def _always_live(compilation: Compilation) -> int:
    if len(compilation.memory.always_live):
        return int(compilation.memory.always_live.sum())
    variables = compilation.loweredVariables
    return int(variables.total_bytes()[np.asarray(variables.always, bool)].sum())


def step_names(compilation: Compilation, blocks: Blocks) -> Reference:
    """Name and type of every static step; what stands in no program is what the host does by itself."""
    known = set(compilation.program_steps)
    return blocks.value(
        [[program.name if number in known else HOST, program.type] for number, program in enumerate(compilation.step_programs)]
    )
