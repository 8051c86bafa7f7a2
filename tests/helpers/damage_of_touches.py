"""Damage to the tables by which races are judged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from damage import LAST, Damages, beyond_the_end, both, given, holding, insert, on, room_on, specifications
from executable_checks import OFF
from executable_damage import Change, Opened, more, put, put_leaf

from pypoplar.executable.claims import LARGEST
from pypoplar.executable.touched_edges import Touches
from pypoplar.executable.verify.touch_claims import lengths


def first_run_elsewhere(damaged: Opened) -> None:
    """The runs of the first edge are those from the second on; the first is of no elements."""
    for name in ("run_start", "run_count", "run_step"):
        insert(damaged, f"touches.{name}", 0, 0)
    damaged.array("touches", "first_run")[:] += 1


def empty_run(step: int) -> Change:
    """A run of no elements, at the end of the last edge."""

    def change(damaged: Opened) -> None:
        for name, value in (("run_start", 0), ("run_count", 0), ("run_step", step)):
            insert(damaged, f"touches.{name}", -1, value)
        damaged.array("touches", "first_run")[-1] += 1

    return change


def endless_runs(damaged: Opened) -> None:
    """The last edge has so many elements more that 64 bits hold the same number as before."""
    for name, value in (("run_start", 0), ("run_count", LARGEST), ("run_step", 0)):
        (shape,) = specifications(damaged, f"touches.{name}")
        shape[2] += 1 << 16
        damaged.arrays[f"touches.{name}"] = np.append(damaged.arrays[f"touches.{name}"], np.full(1 << 16, value))
    damaged.array("touches", "first_run")[-1] += 1 << 16


def run_around(damaged: Opened) -> None:
    """The elements of the last edge's run go so far that 64 bits hold the place of the first again."""
    tile = int(damaged.array("touches", "edge_tile")[-1])
    holding(tile, code=1 << 20)(damaged)
    damaged.array("tile_bytes")[tile] = 1 << 20
    damaged.tree["touch_bytes"] += 1 << 16
    damaged.array("touches", "run_count")[-1] = (1 << 16) + 1
    damaged.array("touches", "run_step")[-1] = -LARGEST


def tables_of(damaged: Opened) -> Touches:
    tables = damaged.executable().touches
    assert tables is not None
    return tables


def edge_beyond_its_tile(damaged: Opened) -> Change:
    """The last edge ends one byte beyond its tile."""
    tables = tables_of(damaged)
    size = damaged.array("tile_bytes")[tables.edge_tile[-1]]
    return put("touches.edge_offset", -1, size - lengths(tables)[-1] * tables.edge_width[-1] + 1)


def home_beyond_its_tile(damaged: Opened) -> Change:
    return put("touches.home_offset", -1, damaged.array("tile_bytes")[tables_of(damaged).home_tile[-1]])


def later_marks(by: Callable[[Touches, int], int]) -> Change:
    """The marks of all edges are later by so many bytes: a function of the tables and of how many marks there are."""

    def change(damaged: Opened) -> None:
        damaged.array("touches", "edge_touch")[:] += by(tables_of(damaged), damaged.tree["touch_bytes"])

    return change


def run_to_the_end(damaged: Opened) -> Change:
    """The last run ends one element beyond the last variable's."""
    tables = tables_of(damaged)
    return put("touches.run_start", -1, tables.first_element[-1] - (tables.run_count[-1] - 1) * tables.run_step[-1])


OF_TOUCHES: Damages = {
    "touches": on("vertices", put_leaf("options", "pypoplar.races", "elements")),
    "touch_bytes without marks": on("vertices", put_leaf("touch_bytes", 1)),
    "touches.first_edge rise": on("judged", beyond_the_end("touches.first_edge")),
    "touches.first_run begin": on("judged", first_run_elsewhere),
    "touches.first_run rise": on("judged", beyond_the_end("touches.first_run")),
    "touches.edge_field least": on("judged", put("touches.edge_field", 0, -1)),
    "touches.edge_field most": on("judged", put("touches.edge_field", 0, 3)),
    "touches.run_count total": on("judged", endless_runs, OFF),
    "touches.edge_tile low": on("judged", both(room_on(15), put("touches.edge_tile", 0, -1))),
    "touches.edge_offset high": on("judged", put("touches.edge_offset", 0, LAST), OFF),
    "touches.edge_offset reach": on("judged", given(edge_beyond_its_tile)),
    "touches.edge_touch low": on("judged", later_marks(lambda tables, marks: -1 - int(tables.edge_touch[0]))),
    "touches.edge_touch high": on("judged", put("touches.edge_touch", -1, LAST), OFF),
    "touches.edge_touch reach": on(
        "judged", later_marks(lambda tables, marks: marks + 1 - int((tables.edge_touch + lengths(tables)).max()))
    ),
    "touches.edge_touch order": on("judged", put("touches.edge_touch", 1, more)),
    "touches.first_element end": on("judged", put("touches.first_element", -1, LARGEST)),
    "touches.run_step low": on("judged", empty_run(-LARGEST - 1)),
    "touches.run_step high": on("judged", empty_run(LARGEST)),
    "touches.run_step span": on("judged", run_around, OFF),
    "touches.run_start least": on("judged", put("touches.run_start", 0, -1)),
    "touches.run_start most": on("judged", given(run_to_the_end)),
    "touches.home_begin order": on(
        "judged", given(lambda damaged: put("touches.home_begin", 1, damaged.arrays["touches.home_begin"][0]))
    ),
    "touches.home_tile low": on("judged", both(room_on(15), put("touches.home_tile", 0, -1))),
    "touches.home_offset least": on("judged", put("touches.home_offset", -1, -1)),
    "touches.home_offset most": on("judged", given(home_beyond_its_tile)),
}
