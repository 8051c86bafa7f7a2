"""Findings of tile memory: the fullest tile, and the step at which the most is live."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.number_ranges import counted
from pypoplar.report.insights.insight import NAMED, Insight, Weight, shown
from pypoplar.report.memory_report import category_label, live_bytes
from pypoplar.report.report import Report

ROOM = 0.85  # of a tile's memory: what holds more has hardly room for another variable
WHAT_FILLS = {
    "variables": "Spread the largest variables over more tiles (poputil.mapTensorLinearly); those of floats take half as much as"
    " HALF.",
    "constants": "Constants are held on every tile that uses them: share them, or compute them on the tile.",
    "constant_tables": "Tables of codelets lie on every tile that runs them: make them smaller, or pass them as Input fields.",
    "exchange_buffers": "What a tile receives is held for the whole step: receive it in smaller steps, or map it elsewhere.",
    "vertex_state": "Use fewer, larger vertices: each has state of its own.",
    "edge_pointers": "Use fewer, larger vertices, and connect contiguous regions: each piece costs a pointer.",
    "code": "Use fewer vertex types on a tile: each brings its code.",
    "stack": "Lower debug.workerStackSizeInBytes if the codelets need less.",
}


def largest_tile(report: Report) -> Insight | None:
    """The fullest tile, and what fills it: where tiles do not fit or hardly do, or where an even spread would empty it."""
    memory, limit = report.compilation.memory, report.compilation.target.bytesPerTile
    whole = memory.including_gaps()
    if not len(whole) or not whole.max() or not limit:
        return None
    tile = int(whole.argmax())
    total, mean = int(whole[tile]), float(whole.mean())
    share = max(total - mean, total - ROOM * limit) / max(total, limit)
    if share <= 0:
        return None
    category = max(memory.categories, key=lambda name: int(memory.categories[name][tile]), default="")
    over = int(np.count_nonzero(whole > limit))
    text = f"{over:,} of {len(whole):,} tiles {'does' if over == 1 else 'do'} not fit. " if over else ""
    text += f"Tile {tile:,} holds {total:,} B, {total / limit:.1%} of its {limit:,} B; the mean tile holds {mean:,.0f} B."
    if category:
        text += f" Most of it: {category_label(category).lower()}, {int(memory.categories[category][tile]):,} B."
    variables = sorted(report.compilation.loweredVariables.forTile(tile), key=lambda variable: -variable.size)[:NAMED]
    if variables:
        text += (
            " Its largest variables: " + ", ".join(f"{shown(variable.name)} {variable.size:,} B" for variable in variables) + "."
        )
    if over:
        empty = int(np.count_nonzero(whole == 0))
        text += f" {counted(empty, 'tile is', 'tiles are')} empty." if empty else ""
        text += " The option pypoplar.run_out_of_memory runs the program all the same."
    weight: Weight = "grave" if over else "notable" if total > ROOM * limit else "good to know"
    advice = WHAT_FILLS.get(category, "")
    title = f"Out of memory: {over:,} of {len(whole):,} tiles" if over else f"Fullest tile: {tile:,}"
    return Insight("largest_tile", weight, title, text, advice, f"memory?tile={tile}", share, of_memory=True)


def peak_liveness(report: Report) -> Insight | None:
    """The step at which the most is live."""
    compilation = report.compilation
    variables, programs, limit = compilation.loweredVariables, compilation.step_programs, compilation.target.bytesPerTile
    if not programs or not len(variables) or not limit:
        return None
    live_by_step = live_bytes(variables, len(programs))
    step = int(live_by_step.argmax())
    if not live_by_step[step]:
        return None
    sizes = np.zeros(len(variables), np.int64)
    living = variables.living(step)
    sizes[living] = variables.total_bytes()[living]
    largest = [int(variable) for variable in np.argsort(-sizes, kind="stable")[:NAMED] if sizes[variable]]
    names = ", ".join(f"{shown(variables.names[variable])} {int(sizes[variable]):,} B" for variable in largest)
    text = f"At step {step:,}, {shown(programs[step].name)}, {int(live_by_step[step]):,} B live besides what is always live."
    text += f" The largest: {names}."
    advice = "Shorten lives: do work in place, and compute large temporaries right before they are used."
    rows = np.isin(variables.owner(), living)
    share = float(np.bincount(variables.tile[rows], variables.bytes[rows]).max()) / limit
    return Insight(
        "peak_liveness", "good to know", "Most live memory", text, advice, f"liveness?step={step}", share, of_memory=True
    )
