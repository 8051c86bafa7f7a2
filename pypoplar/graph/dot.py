"""The compute graph and the graph of vertices as Graphviz DOT text, as Poplar writes them.

Nodes are called by kind and number, so that no name of the user's stands anywhere but in quoted labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from pypoplar.arrays.dtypes import Bools, Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.braces import ordered
from pypoplar.codelet.codelet import Codelet
from pypoplar.errors import PoplarTypeError
from pypoplar.files import check_text_stream
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.networks import compute_network
from pypoplar.graph.runnable import Programs, Runnable
from pypoplar.graph.vertices import ComputeSet

if TYPE_CHECKING:
    from pypoplar.graph.graph import Graph

SHOWN = 4  # elements of a plain vector field in a label
VARIABLE = "shape=box, style=rounded"
CONSTANT = "shape=box, style=dashed"


def label(*lines: str) -> str:
    """Lines of text as a DOT string: quotes, backslashes, line ends and the ``&`` of entities mean nothing but themselves."""
    return '"' + "\\n".join(map(_escaped, lines)) + '"'


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return "".join(character if character.isprintable() else "\\n" if character == "\n" else " " for character in escaped)


def executed_sets(graph: Graph, programs: Programs) -> set[int]:
    """The numbers of the compute sets that programs, and the functions that they call, execute."""
    ordered(programs, "programs", "[a, b]")
    pending: list[Any] = [programs] if isinstance(programs, Runnable) or not isinstance(programs, Iterable) else list(programs)
    for program in pending:
        if not isinstance(program, Runnable):
            raise PoplarTypeError(f"the graph is written for a list of programs, got {program!r}")
    executed: set[int] = set()
    seen: dict[int, Runnable] = {}  # by id
    while pending:
        part = pending.pop()
        if isinstance(part, ComputeSet):
            if part._vertices is not graph._vertices:
                raise PoplarTypeError(f"{part!r} belongs to another graph")
            executed.add(part.getId())
        elif id(part) not in seen:
            seen[id(part)] = part
            pending.extend(part.runs())
    return executed


def write_computation_graph(stream: TextIO, whole: Graph, programs: Programs | None) -> None:
    """Variables and compute sets as nodes, what vertices read and write as edges.

    Of the compute sets those that `programs` execute, with the variables that these touch; None shows all there is.
    """
    check_text_stream(stream, "outputComputationGraph")
    graph, chosen = whole.freeze(), None if programs is None else executed_sets(whole, programs)
    network = compute_network(graph)
    if chosen is not None:
        sets = [("compute set", graph.compute_sets[number]) for number in chosen]
        touched = {other for node in sets for other in (*network.predecessors(node), *network.successors(node))}
        network = network.subgraph([*sets, *touched])
    names = {node: f"n{number}" for number, node in enumerate(network)}
    stream.write('digraph "computation graph" {\n  node [fontname="sans-serif"];\n')
    for node, data in network.nodes(data=True):
        kind, name = node
        if kind == "variable":
            shown = label(name, f"{data['type']!r} {list(data['shape'])}")
            stream.write(f"  {names[node]} [label={shown}, {CONSTANT if data['constant'] else VARIABLE}];\n")
        else:
            counts = [f"{count:,} {codelet}" for codelet, count in data["codelets"].items()]
            stream.write(f"  {names[node]} [label={label(name, *counts)}, shape=ellipse];\n")
    for source, target, data in network.edges(data=True):
        shown = label(f"{data['elements']:,} elements")
        stream.write(f"  {names[source]} -> {names[target]} [label={shown}];\n")
    stream.write("}\n")


def write_vertex_graph(stream: TextIO, whole: Graph, programs: Programs | None) -> None:
    """Vertices with their tiles and plain fields, grouped by compute set, and which elements of which variables they touch.

    `programs` are as in `write_computation_graph`.
    """
    check_text_stream(stream, "outputVertexGraph")
    graph, chosen = whole.freeze(), None if programs is None else executed_sets(whole, programs)
    sets = range(len(graph.compute_sets)) if chosen is None else sorted(chosen)
    shown = np.zeros(len(graph.compute_sets), bool)
    shown[list(sets)] = True
    wanted = shown[graph.vertices.compute_set]
    stream.write('digraph "vertex graph" {\n  node [fontname="sans-serif"];\n')
    lines, used = edge_lines(graph, wanted)
    variables = range(len(graph.variables.names)) if chosen is None else used.tolist()
    stream.writelines(variable_lines(graph, variables))
    stream.writelines(vertex_lines(graph, sets))
    stream.writelines(lines)
    stream.write("}\n")


def variable_lines(graph: FrozenGraph, numbers: Iterable[int]) -> Iterator[str]:
    """A node for each of these variables."""
    variables = graph.variables
    for number in numbers:
        shown = label(variables.names[number], f"{variables.types[number]!r} {list(variables.shapes[number])}")
        yield f"  d{number} [label={shown}, {CONSTANT if number in variables.constants else VARIABLE}];\n"


def vertex_lines(graph: FrozenGraph, sets: Iterable[int]) -> Iterator[str]:
    """A box for each compute set with its vertices."""
    codelet, tile = graph.vertices.codelet.tolist(), graph.vertices.tile.tolist()
    fields = plain_fields(graph)
    order = np.argsort(graph.vertices.compute_set, kind="stable")
    first = np.searchsorted(graph.vertices.compute_set[order], np.arange(len(graph.compute_sets) + 1))
    names = [_escaped(kind.name) for kind in graph.codelets]
    for number in sets:
        yield f"  subgraph cluster{number} {{\n    label={label(graph.compute_sets[number])};\n"
        for vertex in order[first[number] : first[number + 1]].tolist():
            place = f"tile {tile[vertex]}" if tile[vertex] >= 0 else "no tile"
            shown = f"{names[codelet[vertex]]}\\nvertex {vertex}, {place}{fields.get(vertex, '')}"
            yield f'    v{vertex} [label="{shown}", shape=box];\n'
        yield "  }\n"


def plain_fields(graph: FrozenGraph) -> dict[int, str]:
    r"""By vertex the values of its plain fields as lines of a label: ``\nfactor = 2.0``."""
    shown: dict[int, list[tuple[int, str]]] = {}
    state = graph.state
    codelet = graph.vertices.codelet
    rows = zip(state.vertex.tolist(), state.field.tolist(), state.bits, strict=True)
    for vertex, number, bits in rows:
        value = np.frombuffer(bits.tobytes(), _dtype(graph.codelets[codelet[vertex]], number), 1)[0]
        shown.setdefault(vertex, []).append((number, str(value)))
    for (vertex, number), values in state.vectors.items():
        more = f" ... {len(values)} elements" if len(values) > SHOWN else ""
        shown.setdefault(vertex, []).append((number, f"[{' '.join(map(str, values[:SHOWN].tolist()))}{more}]"))
    lines: dict[int, str] = {}
    for vertex, texts in shown.items():
        fields = graph.codelets[codelet[vertex]].fields
        lines[vertex] = "".join(f"\\n{_escaped(fields[number].name)} = {text}" for number, text in sorted(texts))
    return lines


def _dtype(codelet: Codelet, number: int) -> np.dtype[Any]:
    return codelet.fields[number].type.dtype


def edge_lines(graph: FrozenGraph, wanted: Bools) -> tuple[Iterator[str], Int64s]:
    """The edges of the vertices in the mask `wanted`, one line for each variable that one touches; and those variables.

    A line says which elements: ``x [0:4)`` where they follow each other, else how many there are.
    """
    edges = graph.edges
    edge = np.repeat(np.arange(len(edges.vertex)), np.diff(edges.first_run))
    chosen = wanted[edges.vertex[edge]] & (edges.run_count > 0)
    edge, start, count, step = edge[chosen], edges.run_start[chosen], edges.run_count[chosen], edges.run_step[chosen]
    variable = np.searchsorted(graph.variables.first, start, side="right") - 1
    key, where, group = np.unique(edge * len(graph.variables.names) + variable, return_index=True, return_inverse=True)
    elements = np.bincount(group, weights=count, minlength=len(key)).astype(np.int64)
    whole = (np.bincount(group, minlength=len(key)) == 1) & ((step[where] == 1) | (count[where] == 1))
    edge, variable = edge[where], variable[where]
    first = start[where] - graph.variables.first[variable]
    return _edge_texts(graph, edge, variable, first, elements, whole), distinct(variable)


def _edge_texts(graph: FrozenGraph, edge: Int64s, variable: Int64s, first: Int64s, elements: Int64s, whole: Bools) -> Iterator[str]:
    edges = graph.edges
    vertex = edges.vertex[edge]
    columns = (vertex, graph.vertices.codelet[vertex], edges.field[edge], edges.row[edge], variable, first, elements, whole)
    for user, codelet, number, row, data, begin, size, together in zip(*(column.tolist() for column in columns), strict=True):
        field = graph.codelets[codelet].fields[number]
        name = _escaped(field.name) + (f"[{row}]" if field.form == "list" else "")
        where = f"[{begin}:{begin + size})" if together else f"({size} elements)"
        inward = f"d{data} -> v{user}" if field.access in ("input", "inout") else f"v{user} -> d{data}"
        yield f'  {inward} [label="{name} {where}"{", dir=both" if field.access == "inout" else ""}];\n'
