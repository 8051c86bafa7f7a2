"""What a graph and its programs are, in digests: processes compare theirs, and name the first part that differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.codelet.ir.terms import line_text
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.graph.graph import Graph
from pypoplar.graph.host_links import DataStream, Function, HostConnections, HostFunction, RemoteBuffer
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.options import EngineOptions
from pypoplar.program.base import Calling, InTurn, OneOf, Program, Rounds
from pypoplar.types import ElementType

OWN = ("pypoplar.threads", "pypoplar.progress", "pypoplar.mpi_timeout", "pypoplar.mpi_checks", "autoReport.")
"""Options, or beginnings of them, that each process may have for itself."""


@frozen(eq=False)
class Item:
    """One thing of a part: what messages call it, and all that it is."""

    text: str
    facts: Any

    def digest(self) -> bytes:
        """The same for equal facts."""
        return digest_of(self.facts)


@frozen(eq=False)
class GraphParts:
    """The parts of a graph with its programs and options, in the order in which they are compared."""

    parts: Mapping[str, Callable[[], Iterator[Item]]]
    tables: Mapping[str, Callable[[], Any]]  # of large parts all facts together, so that no item is made for each row

    def digests(self) -> dict[str, bytes]:
        """A digest of each part."""
        tables = {name: digest_of(table()) for name, table in self.tables.items()}
        return {name: tables.get(name) or _digest_of_items(items()) for name, items in self.parts.items()}

    def items(self, name: str) -> list[bytes]:
        """The digests of the items of a part."""
        return [item.digest() for item in self.parts[name]()]

    def text(self, name: str, number: int) -> str:
        """What messages call an item; of one that is not there that there is none."""
        found = next((item.text for position, item in enumerate(self.parts[name]()) if position == number), None)
        return "nothing" if found is None else found


def graph_parts(graph: Graph, programs: Iterable[Program], options: EngineOptions) -> GraphParts:
    """What processes compare of what they compile."""
    whole = graph.getTopLevelGraph()
    frozen_graph, host, listed = whole.freeze(), whole.host(), [*programs]
    return GraphParts(
        {
            "target": lambda: iter([Item("the target", [whole.getTarget().to_json(), whole.replicas().count])]),
            "options": lambda: _options(options),
            "variables": lambda: _variables(frozen_graph),
            "tile mapping": lambda: _mapping(frozen_graph),
            "codelets": lambda: (Item(f"codelet {one.name}", one.source.to_json()) for one in frozen_graph.codelets),
            "compute sets": lambda: (Item(f"compute set {name!r}", name) for name in frozen_graph.compute_sets),
            "vertices": lambda: _vertices(frozen_graph),
            "fields of vertices": lambda: _fields(frozen_graph),
            "streams and handles": lambda: _host(host),
            "programs": lambda: _programs(listed),
        },
        {
            "variables": lambda: _variable_table(frozen_graph),
            "tile mapping": lambda: [frozen_graph.mapping.begin, frozen_graph.mapping.end, frozen_graph.mapping.tile],
            "vertices": lambda: _vertex_table(frozen_graph),
        },
    )


def _options(options: EngineOptions) -> Iterator[Item]:
    for name, value in sorted(options.given):
        if not name.startswith(OWN):
            yield Item(f"option {name} = {value!r}", [name, value])


def _variables(graph: FrozenGraph) -> Iterator[Item]:
    variables = graph.variables
    rows = zip(variables.names, variables.types, variables.shapes, variables.locations, strict=True)
    for number, (name, type, shape, location) in enumerate(rows):
        value = variables.constants.get(number)
        what = "constant" if value is not None else "variable"
        yield Item(f"{what} {name!r}, {type!r} {list(shape)} [{line_text(location)}]", [name, type, shape, value])
    for runs, values in variables.initial:
        yield Item("an initial value", [runs.start, runs.count, runs.step, values])


def _variable_table(graph: FrozenGraph) -> Any:
    variables = graph.variables
    types, shapes = [repr(type) for type in variables.types], repr(variables.shapes)
    initial = [(runs.start, runs.count, runs.step, values) for runs, values in variables.initial]
    return ["\n".join(variables.names), "\n".join(types), shapes, variables.constants, initial]


def _mapping(graph: FrozenGraph) -> Iterator[Item]:
    mapping, first, names = graph.mapping, graph.variables.first, graph.variables.names
    bounds = np.searchsorted(mapping.begin, first).tolist()
    for number, name in enumerate(names):
        rows = slice(bounds[number], bounds[number + 1])
        yield Item(f"the tiles of {name!r}", [mapping.begin[rows], mapping.end[rows], mapping.tile[rows]])


def _vertices(graph: FrozenGraph) -> Iterator[Item]:
    rows, table = graph.vertices, _vertex_table(graph)
    for number in range(len(table)):
        codelet = graph.codelets[int(rows.codelet[number])].name
        line = line_text(graph.locations[int(rows.location[number])])
        yield Item(f"vertex {number} of {codelet} on tile {int(rows.tile[number])} [{line}]", table[number])


def _vertex_table(graph: FrozenGraph) -> Any:
    return np.column_stack((graph.vertices.codelet, graph.vertices.compute_set, graph.vertices.tile))


def _fields(graph: FrozenGraph) -> Iterator[Item]:
    edges, state, estimates = graph.edges, graph.state, graph.estimates
    columns = (edges.vertex, edges.field, edges.row, edges.type, edges.first_run, edges.run_start, edges.run_count, edges.run_step)
    yield Item("what fields are connected to", [*columns, edges.no_rows])
    yield Item("values of plain fields", [state.vertex, state.field, state.bits, sorted(state.vectors.items(), key=_first)])
    yield Item("cycles of vertices", [estimates.vertex, estimates.cycles, estimates.flops])


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _host(host: HostConnections) -> Iterator[Item]:
    for stream in host.streams.values():
        yield Item(f"stream {stream.handle()!r} [{line_text(stream.location)}]", stream)
    for buffer in host.remote_buffers.values():
        yield Item(f"remote buffer {buffer.handle()!r} [{line_text(buffer.location)}]", buffer)
    for function in host.host_functions.values():
        yield Item(f"host function {function.handle()!r} [{line_text(function.location)}]", function)
    for what, tensors in (("write", host.writes), ("read", host.reads)):
        for name, tensor in tensors.items():
            yield Item(f"host {what} {name!r}", [name, tensor])


def _programs(programs: Sequence[Program]) -> Iterator[Item]:
    functions: set[int] = set()
    todo = [(program, f"program {number}") for number, program in reversed([*enumerate(programs)])]
    while todo:
        program, place = todo.pop()
        name = f" {program.name!r}" if program.name else ""
        kept = {key: value for key, value in vars(program).items() if key != "location"}
        effects = program.effects()
        facts = [type(program).__qualname__, place, effects.reads, effects.writes, kept]
        yield Item(f"{type(program).__name__}{name}, {place} [{line_text(program.location)}]", facts)
        inner = _inner(program, effects.contents, functions)
        todo += [(part, f"{place}, {where}" if where else place) for part, where in reversed(inner)]


def _inner(program: Program, contents: object, functions: set[int]) -> list[tuple[Program, str]]:
    match contents:
        case InTurn() | OneOf():
            return [(part.program, part.name) for part in contents.parts]
        case Rounds():
            return [(part.program, part.name) for part in (contents.head, contents.body) if part is not None]
        case Calling():
            function = contents.function
            if function.number in functions or not isinstance(function.program, Program):
                return []
            functions.add(function.number)
            return [(function.program, f"function {function.number}")]
        case _:
            return []


# Digests


def digest_of(facts: Any) -> bytes:
    """A digest of numbers, texts, arrays, tensors, types and what else a graph has, and of tables and lists of them."""
    hasher = hashlib.blake2b(digest_size=8)
    _feed(hasher.update, facts)
    return hasher.digest()


def _digest_of_items(items: Iterator[Item]) -> bytes:
    hasher = hashlib.blake2b(digest_size=8)
    for item in items:
        _feed(hasher.update, item.facts)
    return hasher.digest()


def _feed(update: Callable[[bytes], object], facts: Any) -> None:  # noqa: C901, PLR0912 - an arm for each kind
    """Every kind begins with a mark of its own, so that no two things give the same bytes."""
    match facts:
        case np.ndarray():
            update(f"a{facts.dtype.str}{facts.shape}".encode())
            update(np.ascontiguousarray(facts).view(np.uint8).tobytes() if facts.size else b"")
        case Tensor():
            runs = facts.runs()
            _feed(update, ["tensor", facts.shape, facts.elementType(), runs.start, runs.count, runs.step])
        case ElementType():
            update(f"t{facts!r};".encode())
        case Enum():
            update(f"e{facts};".encode())
        case float() | np.floating():
            update(f"f{float(facts).hex()};".encode())
        case str() | bytes() | int() | None:
            text = repr(facts)
            update(f"{type(facts).__name__[0]}{len(text)}:{text}".encode())
        case ComputeSet():
            update(f"c{facts.getId()};".encode())
        case Function():
            update(f"F{facts.number};".encode())
        case DataStream():
            _feed(update, [facts.handle(), facts.elementType(), facts.numElements(), facts.direction, facts.replicatedMode()])
        case RemoteBuffer():
            _feed(update, [facts.handle(), facts.elementType(), facts.numElements(), facts.getRepeats()])
        case HostFunction():
            _feed(update, [facts.handle(), facts.inputs, facts.outputs])
        case Program():
            update(b"P")  # which is an item of its own
        case Mapping():
            update(f"m{len(facts)};".encode())
            for key, value in facts.items():
                _feed(update, key)
                _feed(update, value)
        case list() | tuple():
            update(f"l{len(facts)};".encode())
            for fact in facts:
                _feed(update, fact)
        case np.generic():
            _feed(update, facts.item())
        case _:
            update(f"?{json.dumps(type(facts).__qualname__)}".encode())
