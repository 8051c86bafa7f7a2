"""Judges races by the elements that vertices really touched (`pypoplar.races = "elements"`), and writes back what they wrote."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Bools, Bytes, Int64s
from pypoplar.arrays.groups import distinct, offsets
from pypoplar.engine.arena import Arena
from pypoplar.errors import GraphCycleError
from pypoplar.executable.executable import Executable
from pypoplar.executable.touched_edges import Touches
from pypoplar.interface.edge_rows import Touch
from pypoplar.interface.layout import NOTHING


@frozen(eq=False)
class _Touched:
    """Every touched element of every edge of a compute set."""

    element: Int64s
    edge: Int64s
    index: Int64s  # within the edge
    written: Bools


def judge_touches(executable: Executable, memory: Arena, compute: int, name: str) -> None:
    """After compute set number `compute` has run: `GraphCycleError` if two vertices touched an element and one wrote it.

    Otherwise bring what was written to where the variables live, and clear the marks.
    """
    touches = executable.touches
    assert touches is not None
    touched = _collect(touches, memory.marks, compute)
    _judge(executable, touches, touched, name)
    computes = executable.computes
    result_tile = int(computes.result_tile[compute])
    result = int(memory.tile_base[result_tile] + computes.result_offset[compute]) if result_tile != NOTHING else NOTHING
    _write_back(touches, memory, touched, result)


def _collect(touches: Touches, whole: Bytes, compute: int) -> _Touched:
    first, last = int(touches.first_edge[compute]), int(touches.first_edge[compute + 1])
    runs = slice(int(touches.first_run[first]), int(touches.first_run[last]))
    counts = touches.run_count[runs]
    begin = offsets(counts)
    base = int(touches.edge_touch[first]) if last > first else 0
    marks = whole[base : base + int(begin[-1])]
    place = np.flatnonzero(marks)
    run = np.searchsorted(begin, place, side="right") - 1
    element = touches.run_start[runs][run] + (place - begin[run]) * touches.run_step[runs][run]
    starts = touches.edge_touch[first:last] - base
    edge = np.searchsorted(touches.first_run[first : last + 1], run + runs.start, side="right") - 1
    written = (marks[place] & Touch.WRITTEN) != 0
    whole[:] = 0
    return _Touched(element, edge + first, place - starts[edge], written)


def _judge(executable: Executable, touches: Touches, touched: _Touched, name: str) -> None:
    if len(touched.element) == 0:
        return
    vertex = touches.edge_vertex[touched.edge]
    order = np.lexsort((vertex, touched.element))
    element, vertex, written = touched.element[order], vertex[order], touched.written[order]
    opens = np.flatnonzero(np.concatenate(([True], element[1:] != element[:-1])))
    lowest, highest = np.minimum.reduceat(vertex, opens), np.maximum.reduceat(vertex, opens)
    racing = np.flatnonzero((lowest != highest) & np.logical_or.reduceat(written, opens))
    if len(racing) == 0:
        return
    begin = opens[racing[0]]
    end = opens[racing[0] + 1] if racing[0] + 1 < len(opens) else len(element)
    group = order[begin:end]
    writer = group[touched.written[group]][0]
    mine = touches.edge_vertex[touched.edge[writer]]
    other = next(entry for entry in group if touches.edge_vertex[touched.edge[entry]] != mine)
    ids = element[opens[racing]]
    length = 1 + int(np.argmin(np.append(np.diff(ids) == 1, False)))
    variable = int(np.searchsorted(touches.first_element, ids[0], side="right")) - 1
    low = int(ids[0] - touches.first_element[variable])
    done = "written" if touched.written[other] else "read"
    region = f"[{low}:{low + length}) of variable {executable.variable_names[variable]!r}"
    raise GraphCycleError(
        f"{_place(executable, int(mine))}: {_field(executable, touches, touched, writer)} wrote to elements {region} "
        f"that were {done} elsewhere in same compute set {name!r}: by {_field(executable, touches, touched, other)} "
        f"of the vertex added at {_place(executable, int(touches.edge_vertex[touched.edge[other]]))} "
        f"({len(racing)} element{'' if len(racing) == 1 else 's'} in all); {executable.compute_set_made(name)}, "
        f"variable {executable.variable_names[variable]!r} at {executable.made_at.variables[variable]}"
    )


def _field(executable: Executable, touches: Touches, touched: _Touched, entry: int) -> str:
    edge = touched.edge[entry]
    number, field = int(touches.vertex_codelet[touches.edge_vertex[edge]]), int(touches.edge_field[edge])
    codelet, pairs = executable.codelets[number], executable.in_place
    if not touched.written[entry]:  # an Input that is one tensor with an Output has that one's marks
        inputs = pairs[(pairs[:, 0] == number) & (pairs[:, 2] == field), 1]
        field = int(inputs[0]) if len(inputs) else field
    return f"Field {codelet.name}.{codelet.fields[field].name}"


def _place(executable: Executable, vertex: int) -> str:
    file, line, _ = executable.vertex_names.locations[int(executable.vertex_names.location[vertex])]
    return f"{file}:{line}"


def _write_back(touches: Touches, memory: Arena, touched: _Touched, result: int) -> None:
    """Move every written element from where its vertex has it to its home, where that is another place.

    The result of Execute, at place `result` of the memory, comes after the write-back and has been written already.
    """
    element, edge, index = (column[touched.written] for column in (touched.element, touched.edge, touched.index))
    width = touches.edge_width[edge]
    home = np.searchsorted(touches.home_begin, element, side="right") - 1
    target = (
        memory.tile_base[touches.home_tile[home]]
        + touches.home_offset[home]
        + (element - touches.home_begin[home]) * touches.home_width[home]
    )
    source = memory.tile_base[touches.edge_tile[edge]] + touches.edge_offset[edge] + index * width
    for size in distinct(width):
        chosen = np.flatnonzero((width == size) & (source != target) & (target != result))
        inside = np.arange(int(size))
        memory.whole[target[chosen][:, None] + inside] = memory.whole[source[chosen][:, None] + inside]
