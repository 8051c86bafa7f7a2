"""Connections: every field of every vertex has its edge, of the right type, and may do to it what it does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s, Integers
from pypoplar.arrays.groups import offsets, opens, sums
from pypoplar.arrays.interval_algebra import keys, meets, union
from pypoplar.arrays.number_ranges import counted
from pypoplar.codelet.ir.terms import line_text
from pypoplar.codelet.language.constraints import constraint_of
from pypoplar.compiler.check.connected_regions import Regions, collect_regions
from pypoplar.compiler.check.in_place import InPlaceEdges, find_in_place
from pypoplar.compiler.check.overlaps import Claims, find_overlap
from pypoplar.compiler.field_table import INPUT, LIST, SCALAR, STATE
from pypoplar.compiler.wording import (
    and_others,
    compute_set_name,
    elements_of_variable,
    field_name,
    variable_of,
    vertex_location,
    vertex_name,
)
from pypoplar.errors import GraphConnectionError, MemoryElemConstraintsError, TensorWriteError
from pypoplar.graph.frozen import FrozenGraph


def check_connections(
    graph: FrozenGraph, compute_sets: Sequence[int], regions: Regions | None = None, in_place: InPlaceEdges | None = None
) -> None:
    """Check all fields of all vertices of the compute sets; the message is about the first vertex of each kind of fault.

    `GraphConnectionError`: a field without an edge or with two, a plain field that is never set, a scalar field on several
    elements, and fields of one vertex that overlap with a write, but for an Input and an Output that are one tensor
    (`MemoryElemConstraintsError` where the codelet demands that they do not).
    `TensorWriteError`: an Output or InOut on a constant, or on a view that holds an element twice. Pass the regions, and what is
    in place, if they have been found already.
    """
    if regions is None:
        regions = collect_regions(graph, compute_sets)
    if in_place is None:
        in_place = find_in_place(graph, regions)
    _check_counts(graph, regions)
    _check_plain_fields(graph, regions)
    _check_scalars(graph, regions)
    _check_constants(graph, regions)
    _check_aliases(graph, regions)
    _check_overlaps(graph, regions, in_place)


def _check_counts(graph: FrozenGraph, regions: Regions) -> None:
    """Each field once; of a list field, rows 0, 1, ... once each."""
    edges, fields, edge = graph.edges, regions.fields, regions.edge
    field, row, form = edges.field[edge], edges.row[edge], fields.form[regions.entry]
    begins = opens(regions.vertex, field)
    expected_row = np.zeros(len(edge), np.int64)
    expected_row[1:] = np.where(begins[1:], 0, row[:-1] + 1)
    wrong = np.flatnonzero(np.where(form == LIST, row != expected_row, ~begins))
    if len(wrong):
        raise GraphConnectionError(_connected_wrongly(graph, regions, wrong, begins))
    used = regions.vertices
    connected = np.bincount(regions.vertex[begins], minlength=len(graph.vertices.codelet))
    connected += _connected_to_no_rows(graph, used, regions.vertex[begins], field[begins])
    is_edge = offsets(fields.access != STATE)
    needed = is_edge[fields.first[1:]] - is_edge[fields.first[:-1]]
    lacking = np.flatnonzero(used & (connected < needed[graph.vertices.codelet]))
    if len(lacking):
        raise GraphConnectionError(_not_connected(graph, lacking))


def _connected_to_no_rows(graph: FrozenGraph, used: Bools, vertex: Int64s, field: Integers) -> Int64s:
    """How many list fields of each vertex are connected to no rows, which must be all that they are connected to."""
    if not len(graph.edges.no_rows):
        return np.zeros(len(used), np.int64)
    width = int(max(field.max(initial=0), graph.edges.no_rows[:, 1].max(initial=0))) + 1
    key, times = np.unique(graph.edges.no_rows @ np.array([width, 1]), return_counts=True)
    times += np.isin(key, vertex * width + field)
    owner = key // width
    twice = np.flatnonzero(used[owner] & (times > 1))
    if len(twice):
        first = int(owner[twice[0]])
        name = field_name(graph, first, int(key[twice[0]]) % width)
        what = f"field {name} is connected {int(times[twice[0]])} times, expected once"
        raise GraphConnectionError(_about(graph, first, what) + and_others(graph, owner[twice]))
    return np.bincount(owner, minlength=len(used))


def _connected_wrongly(graph: FrozenGraph, regions: Regions, wrong: Int64s, begins: Bools) -> str:
    edge = int(regions.edge[wrong[0]])
    vertex, field, row = int(graph.edges.vertex[edge]), int(graph.edges.field[edge]), int(graph.edges.row[edge])
    name = field_name(graph, vertex, field)
    if not begins[wrong[0]] and int(graph.edges.row[edge - 1]) == row:
        times = int(((graph.edges.vertex == vertex) & (graph.edges.field == field) & (graph.edges.row == row)).sum())
        what = f"field {field_name(graph, vertex, field, row)} is connected {times} times, expected once"
    else:
        what = f"rows of field {name} are connected up to {row}, but not all rows before it"
    return _about(graph, vertex, what) + and_others(graph, regions.vertex[wrong])


def _not_connected(graph: FrozenGraph, lacking: Int64s) -> str:
    vertex = int(lacking[0])
    codelet = graph.codelets[int(graph.vertices.codelet[vertex])]
    connected = graph.edges.field[slice(*np.searchsorted(graph.edges.vertex, [vertex, vertex + 1]))]
    connected = np.append(connected, graph.edges.no_rows[graph.edges.no_rows[:, 0] == vertex, 1])
    fields = [field for number, field in enumerate(codelet.fields) if field.access != "state" and number not in connected]
    names = ", ".join(f"{codelet.name}.{field.name}" for field in fields)
    what = f"field{'' if len(fields) == 1 else 's'} {names} {'is' if len(fields) == 1 else 'are'} not connected to a tensor"
    return _about(graph, vertex, what) + and_others(graph, lacking)


def _check_plain_fields(graph: FrozenGraph, regions: Regions) -> None:
    """Each plain field has a value, that of the vertex or the class's default: what it held otherwise would be left open."""
    state, fields = graph.state, regions.fields
    given = np.bincount(state.vertex, minlength=len(graph.vertices.codelet))
    np.add.at(given, np.array([vertex for vertex, _ in state.vectors], np.int64), 1)
    is_plain = offsets(fields.access == STATE)
    needed = is_plain[fields.first[1:]] - is_plain[fields.first[:-1]]
    lacking = np.flatnonzero(regions.vertices & (given < needed[graph.vertices.codelet]))
    if len(lacking):
        raise GraphConnectionError(_never_set(graph, lacking))


def _never_set(graph: FrozenGraph, lacking: Int64s) -> str:
    vertex, state = int(lacking[0]), graph.state
    codelet = graph.codelets[int(graph.vertices.codelet[vertex])]
    given = {*state.field[slice(*np.searchsorted(state.vertex, [vertex, vertex + 1]))].tolist()}
    given |= {field for owner, field in state.vectors if owner == vertex}
    unset = [field for number, field in enumerate(codelet.fields) if field.access == "state" and number not in given]
    first = unset[0]
    names = ", ".join(f"{codelet.name}.{field.name}" for field in unset)
    zero = first.type.dtype.type(0).item()
    declared = f"{first.type!r} = {zero}" if first.form == "scalar" else f"Vector[{first.type!r}] = [{zero}, {zero}]"
    what = (
        f"plain field{'' if len(unset) == 1 else 's'} {names} {'is' if len(unset) == 1 else 'are'} never set; give "
        f"{'it' if len(unset) == 1 else 'each'} a value in addVertex or with graph.setInitialValue, or a default in the class, "
        f"{codelet.location.function} at {line_text(codelet.location)}: {first.attribute}: {declared}"
    )
    alike = graph.vertices.codelet[lacking] == graph.vertices.codelet[vertex]
    return _about(graph, vertex, what) + and_others(graph, lacking[alike])


def _check_scalars(graph: FrozenGraph, regions: Regions) -> None:
    edges = graph.edges
    counts = offsets(edges.run_count)
    length = counts[edges.first_run[regions.edge + 1]] - counts[edges.first_run[regions.edge]]
    wrong = np.flatnonzero((regions.fields.form[regions.entry] == SCALAR) & (length != 1))
    if len(wrong):
        vertex, name = _first(graph, regions, wrong)
        what = f"field {name} is a scalar and takes 1 element, got {int(length[wrong[0]]):,}"
        raise GraphConnectionError(_about(graph, vertex, what) + and_others(graph, regions.vertex[wrong]))


def _check_constants(graph: FrozenGraph, regions: Regions) -> None:
    constants = np.array(sorted(graph.variables.constants), np.int64)
    if len(constants) == 0:
        return
    first = graph.variables.first
    constant = union(first[constants], first[constants + 1])
    begin = regions.strands.begin
    end = begin + regions.strands.length
    wrong = np.flatnonzero(regions.written & meets(begin, end, *constant))
    if len(wrong):
        owner = regions.strands.owner[wrong]
        vertex, name = _first(graph, regions, owner)
        number = int(constants[(first[constants] < end[wrong[0]]) & (begin[wrong[0]] < first[constants + 1])][0])
        added = line_text(graph.variables.locations[number])
        what = f"field {name} would write to constant '{graph.variables.names[number]}' (added at {added})"
        raise TensorWriteError(_about(graph, vertex, what) + and_others(graph, regions.vertex[owner]))


def _check_aliases(graph: FrozenGraph, regions: Regions) -> None:
    """Only views of several runs, or with a broadcast run, can hold an element twice."""
    edges, edge = graph.edges, regions.edge
    suspect = regions.fields.access[regions.entry] != INPUT
    broadcast = offsets((edges.run_step == 0) & (edges.run_count > 1))
    many = edges.first_run[edge + 1] - edges.first_run[edge] > 1
    many |= broadcast[edges.first_run[edge + 1]] > broadcast[edges.first_run[edge]]
    suspect &= many
    if not bool(suspect.any()):
        return
    counts = offsets(edges.run_count)
    length = counts[edges.first_run[edge + 1]] - counts[edges.first_run[edge]]
    chosen = suspect[regions.strands.owner]
    begin = keys(regions.strands.owner[chosen], regions.strands.begin[chosen], regions.span)
    begin, end = union(begin, begin + regions.strands.length[chosen])
    distinct = sums(end - begin, begin // regions.span, len(edge))
    wrong = np.flatnonzero(suspect & (distinct < length))
    if len(wrong):
        vertex, name = _first(graph, regions, wrong)
        twice = int(length[wrong[0]] - distinct[wrong[0]])
        what = (
            f"field {name} would write to {_tensor(graph, regions, wrong[0])}, a view that holds "
            f"{counted(twice, 'element')} of its {int(length[wrong[0]]):,} more than once"
        )
        raise TensorWriteError(_about(graph, vertex, what) + and_others(graph, regions.vertex[wrong]))


def _check_overlaps(graph: FrozenGraph, regions: Regions, in_place: InPlaceEdges) -> None:
    """Fields of one vertex that share an element, one of them writing it: they must be one InOut.

    What is in the way of an Input that is one tensor with an Output is in the way of that Output.
    """
    if regions.disjoint:
        return
    allowed = np.concatenate((in_place.input, in_place.apart))
    judged = np.flatnonzero(~np.isin(regions.edge, allowed)[regions.strands.owner])
    owner, begin = regions.strands.owner[judged], regions.strands.begin[judged]
    claims = Claims(regions.vertex[owner], owner, begin, begin + regions.strands.length[judged], regions.written[judged])
    overlap = find_overlap(claims, regions.span)
    if overlap is None:
        return
    edges = regions.edge[[overlap.writer, overlap.other]]
    names = (field_name(graph, overlap.group, int(graph.edges.field[edge]), int(graph.edges.row[edge])) for edge in edges)
    field, other = names
    what = (
        f"field {field} writes to {elements_of_variable(graph, overlap.begin, overlap.end)} that field {other} of the same vertex "
        f"{'writes' if overlap.both_write else 'reads'}"
    )
    codelet = graph.codelets[int(graph.vertices.codelet[overlap.group])]
    first, second = np.sort(graph.edges.field[edges]).tolist()
    if (first, second) not in codelet.distinct:
        raise GraphConnectionError(_about(graph, overlap.group, f"{what}; use one InOut field for both"))
    demand = constraint_of(codelet.fields[first], codelet.fields[second])
    kept = f"{codelet.name}, at {line_text(codelet.location)}, demands {demand!r}, and what is written cannot be in two places"
    remedy = "copy one of the two into a variable of its own before"
    raise MemoryElemConstraintsError(_about(graph, overlap.group, f"{what}; {kept}: {remedy}"))


def _about(graph: FrozenGraph, vertex: int, what: str) -> str:
    return f"{vertex_location(graph, vertex)}: {what}: {vertex_name(graph, vertex)} of {compute_set_name(graph, vertex)}"


def _first(graph: FrozenGraph, regions: Regions, wrong: Int64s) -> tuple[int, str]:
    """The first offending edge's vertex and field."""
    edge = int(regions.edge[wrong[0]])
    vertex = int(graph.edges.vertex[edge])
    return vertex, field_name(graph, vertex, int(graph.edges.field[edge]), int(graph.edges.row[edge]))


def _tensor(graph: FrozenGraph, regions: Regions, number: int) -> str:
    """The variable behind an edge, as far as one name can say it."""
    run = int(graph.edges.first_run[regions.edge[number]])
    if run == int(graph.edges.first_run[regions.edge[number] + 1]):
        return "an empty tensor"
    return f"a view of variable '{graph.variables.names[variable_of(graph, int(graph.edges.run_start[run]))]}'"
