"""Claims about the tables by which an engine judges races from what vertices really touched."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import sums_between
from pypoplar.executable.claims import LARGEST
from pypoplar.executable.executable import Executable
from pypoplar.executable.touched_edges import Touches
from pypoplar.executable.verify.named_checks import (
    check,
    check_each,
    check_least,
    check_limit,
    check_most,
    check_range,
    check_running,
    check_shape,
)

EDGES = ("edge_vertex", "edge_field", "edge_tile", "edge_offset", "edge_width", "edge_touch")
RUNS = ("run_start", "run_count", "run_step")
HOMES = ("home_begin", "home_tile", "home_offset", "home_width")


def verify_touches(executable: Executable) -> None:
    """Check the tables of an executable whose compute tables have been checked; only one that judges races so has them."""
    touches, wanted = executable.touches, executable.options.races == "elements"
    text = f"touches are {'missing' if wanted else 'surplus'}: see the option pypoplar.races"
    check("touches", (touches is not None) == wanted, text)
    if not wanted:
        text = f"touch_bytes is {executable.touch_bytes}, but nothing is marked"
        check_limit("touch_bytes without marks", executable.touch_bytes, 0, text)
    if touches is not None:
        _verify_shapes(executable, touches)
        _verify_fields(executable, touches)
        _verify_marks(executable, touches)
        _verify_elements(executable, touches)


def _verify_shapes(executable: Executable, touches: Touches) -> None:
    edges, runs, homes = len(touches.edge_vertex), len(touches.run_start), len(touches.home_begin)
    for names, size in ((EDGES, edges), (RUNS, runs), (HOMES, homes)):
        for name in names:
            check_shape(f"touches.{name}", getattr(touches, name), size)
    check_running("touches.first_edge", touches.first_edge, len(executable.computes.result_tile), edges)
    check_running("touches.first_run", touches.first_run, edges, runs)
    check_shape("touches.vertex_codelet", touches.vertex_codelet, len(executable.vertex_names.location))


def _verify_fields(executable: Executable, touches: Touches) -> None:
    codelets = executable.codelets
    check_range("touches.vertex_codelet", touches.vertex_codelet, 0, len(codelets))
    check_range("touches.edge_vertex", touches.edge_vertex, 0, len(touches.vertex_codelet))
    fields = np.array([len(codelet.fields) for codelet in codelets], np.int64)
    known = fields[touches.vertex_codelet[touches.edge_vertex]]
    check_least("touches.edge_field least", touches.edge_field, 0, "is no field of its codelet", "touches.edge_field")
    check_most("touches.edge_field most", touches.edge_field, known - 1, "is no field of its codelet", "touches.edge_field")


def lengths(touches: Touches) -> Int64s:
    """Elements of every edge."""
    return sums_between(touches.first_run, touches.run_count)


def _verify_marks(executable: Executable, touches: Touches) -> None:
    """The edges lie in their tiles' memories; the marks of a compute set lie end to end."""
    check_least("touches.run_count", touches.run_count, 0)
    whole = sum(touches.run_count.tolist())
    check_limit("touches.run_count total", whole, LARGEST - 1, f"the runs have {whole} elements: expected less than {LARGEST}")
    check_range("touches.edge_width", touches.edge_width, 1, 9)
    check_range("touches.edge_tile", touches.edge_tile, 0, len(executable.tile_bytes))
    check_range("touches.edge_offset", touches.edge_offset, 0, LARGEST)
    check_range("touches.edge_touch", touches.edge_touch, 0, LARGEST)
    length = lengths(touches)
    reach = touches.edge_offset + length * touches.edge_width
    memory = executable.tile_bytes[touches.edge_tile]
    check_most("touches.edge_offset reach", reach, memory, "reaches beyond the tile", "touches.edge_offset")
    ends = touches.edge_touch + length
    check_most("touches.edge_touch reach", ends, executable.touch_bytes, "reaches beyond the marks", "touches.edge_touch")
    opens = np.zeros(len(ends) + 1, bool)
    opens[touches.first_edge] = True
    follows = opens[1:-1] | (touches.edge_touch[1:] == ends[:-1])
    check_each("touches.edge_touch order", follows, "is not followed by the next edge's", "touches.edge_touch")


def _verify_elements(executable: Executable, touches: Touches) -> None:
    """Every element of a run is of a variable and has a home in memory."""
    first = touches.first_element
    check_shape("touches.first_element", first, len(executable.variable_names) + 1)
    text = f"touches.first_element goes from {first[0]} to {first[-1]}: expected 0 to less than {LARGEST}"
    check("touches.first_element begin", bool(first[0] == 0), text)
    check_limit("touches.first_element end", int(first[-1]), LARGEST - 1, text)
    check_least("touches.first_element rise", first[1:], first[:-1], "goes backwards", "touches.first_element")
    check_range("touches.run_step", touches.run_step, -LARGEST, LARGEST)
    steps = np.maximum(touches.run_count - 1, 0)
    farthest = LARGEST // np.maximum(np.abs(touches.run_step), 1)
    check_most("touches.run_step span", steps, farthest, "goes too far", "touches.run_step")
    last = touches.run_start + steps * touches.run_step
    low, high = np.minimum(touches.run_start, last), np.maximum(touches.run_start, last)
    check_range("touches.home_begin", touches.home_begin, 0, LARGEST)
    after, text = touches.home_begin[:-1] + 1, "is not followed by a higher one"
    check_least("touches.home_begin order", touches.home_begin[1:], after, text, "touches.home_begin")
    least = int(touches.home_begin[0]) if len(touches.home_begin) else LARGEST
    some, text = touches.run_count > 0, "leads to elements without a home"
    check_least("touches.run_start least", np.where(some, low, least), least, text, "touches.run_start")
    check_most("touches.run_start most", np.where(some, high, 0), first[-1] - 1, text, "touches.run_start")
    check_range("touches.home_width", touches.home_width, 1, 9)
    check_range("touches.home_tile", touches.home_tile, 0, len(executable.tile_bytes))
    memory, text = executable.tile_bytes[touches.home_tile], "is not in the tile's memory"
    check_least("touches.home_offset least", touches.home_offset, 0, text, "touches.home_offset")
    check_most("touches.home_offset most", touches.home_offset, memory - 1, text, "touches.home_offset")
