"""Claims about the tables by which an engine judges races from what vertices really touched."""

from __future__ import annotations

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import sums_between
from pypoplar.executable.claims import LARGEST, claim, claim_each, claim_range, claim_running, claim_shape
from pypoplar.executable.executable import Executable
from pypoplar.executable.touched_edges import Touches

EDGES = ("edge_vertex", "edge_field", "edge_tile", "edge_offset", "edge_width", "edge_touch")
RUNS = ("run_start", "run_count", "run_step")
HOMES = ("home_begin", "home_tile", "home_offset", "home_width")


def verify_touches(executable: Executable) -> None:
    """Check the tables of an executable whose compute tables have been checked; only one that judges races so has them."""
    touches, wanted = executable.touches, executable.options.races == "elements"
    claim((touches is not None) == wanted, f"touches are {'missing' if wanted else 'surplus'}: see the option pypoplar.races")
    claim(wanted or executable.touch_bytes == 0, f"touch_bytes is {executable.touch_bytes}, but nothing is marked")
    if touches is not None:
        _verify_shapes(executable, touches)
        _verify_fields(executable, touches)
        _verify_marks(executable, touches)
        _verify_elements(executable, touches)


def _verify_shapes(executable: Executable, touches: Touches) -> None:
    edges, runs, homes = len(touches.edge_vertex), len(touches.run_start), len(touches.home_begin)
    for names, size in ((EDGES, edges), (RUNS, runs), (HOMES, homes)):
        for name in names:
            claim_shape(f"touches.{name}", getattr(touches, name), size)
    claim_running("touches.first_edge", touches.first_edge, len(executable.computes.result_tile), edges)
    claim_running("touches.first_run", touches.first_run, edges, runs)
    claim_shape("touches.vertex_codelet", touches.vertex_codelet, len(executable.vertex_names.location))
    claim_shape("touches.first_element", touches.first_element, len(executable.variable_names) + 1)


def _verify_fields(executable: Executable, touches: Touches) -> None:
    codelets = executable.codelets
    claim_range("touches.vertex_codelet", touches.vertex_codelet, 0, len(codelets))
    claim_range("touches.edge_vertex", touches.edge_vertex, 0, len(touches.vertex_codelet))
    fields = np.array([len(codelet.fields) for codelet in codelets], np.int64)
    known = fields[touches.vertex_codelet[touches.edge_vertex]]
    claim_each("touches.edge_field", (touches.edge_field >= 0) & (touches.edge_field < known), "is no field of its codelet")


def lengths(touches: Touches) -> Int64s:
    """Elements of every edge."""
    return sums_between(touches.first_run, touches.run_count)


def _verify_marks(executable: Executable, touches: Touches) -> None:
    """The edges lie in their tiles' memories; the marks of a compute set lie end to end."""
    claim_range("touches.run_count", touches.run_count, 0, executable.touch_bytes + 1)
    claim_range("touches.edge_width", touches.edge_width, 1, 9)
    claim_range("touches.edge_tile", touches.edge_tile, 0, len(executable.tile_bytes))
    claim_range("touches.edge_offset", touches.edge_offset, 0, LARGEST)
    claim_range("touches.edge_touch", touches.edge_touch, 0, executable.touch_bytes + 1)
    length = lengths(touches)
    reach = touches.edge_offset + length * touches.edge_width
    claim_each("touches.edge_offset", reach <= executable.tile_bytes[touches.edge_tile], "reaches beyond the tile")
    ends = touches.edge_touch + length
    claim_each("touches.edge_touch", ends <= executable.touch_bytes, "reaches beyond the marks")
    opens = np.zeros(len(ends) + 1, bool)
    opens[touches.first_edge] = True
    claim_each("touches.edge_touch", opens[1:-1] | (touches.edge_touch[1:] == ends[:-1]), "is not followed by the next edge's")


def _verify_elements(executable: Executable, touches: Touches) -> None:
    """Every element of a run is of a variable and has a home in memory."""
    first = touches.first_element
    claim_range("touches.first_element", first, 0, LARGEST)
    claim_running("touches.first_element", first, len(first) - 1, int(first[-1]))
    claim_range("touches.run_start", touches.run_start, 0, LARGEST)
    claim_range("touches.run_step", touches.run_step, -LARGEST, LARGEST)
    steps = np.maximum(touches.run_count - 1, 0)
    claim_each("touches.run_step", steps <= LARGEST // np.maximum(np.abs(touches.run_step), 1), "goes too far")
    last = touches.run_start + steps * touches.run_step
    low, high = np.minimum(touches.run_start, last), np.maximum(touches.run_start, last)
    claim_range("touches.home_begin", touches.home_begin, 0, LARGEST)
    claim_each("touches.home_begin", touches.home_begin[1:] > touches.home_begin[:-1], "is not followed by a higher one")
    least = int(touches.home_begin[0]) if len(touches.home_begin) else LARGEST
    some = touches.run_count > 0
    claim_each("touches.run_start", ~some | ((low >= least) & (high < first[-1])), "leads to elements without a home")
    claim_range("touches.home_width", touches.home_width, 1, 9)
    claim_range("touches.home_tile", touches.home_tile, 0, len(executable.tile_bytes))
    inside = (touches.home_offset >= 0) & (touches.home_offset < executable.tile_bytes[touches.home_tile])
    claim_each("touches.home_offset", inside, "is not in the tile's memory")
