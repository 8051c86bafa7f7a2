"""Frozen graphs by hand, and random ones, for the tests of the compiler's passes.

Views are NumPy arrays of element ids, so NumPy's own indexing makes slices, transposes, reversals and broadcasts.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from attrs import define, field, frozen

from pypoplar.codelet.ir.terms import Location
from pypoplar.graph.frozen import (
    ElementRuns,
    FrozenEdges,
    FrozenEstimates,
    FrozenGraph,
    FrozenMapping,
    FrozenState,
    FrozenVariables,
    FrozenVertices,
)
from pypoplar.types import FLOAT, SUPPORTED


@frozen
class FieldStandIn:
    name: str
    access: str = "input"
    form: str = "vector"
    type: Any = FLOAT
    aligned: int = 0

    @property
    def alignment(self) -> int:
        return max(min(int(self.type.size), 4), self.aligned)


@frozen
class CodeletStandIn:
    name: str
    fields: tuple[FieldStandIn, ...]
    kind: str = "vertex"
    distinct: tuple[tuple[int, int], ...] = ()

    @property
    def alignments(self) -> list[int]:
        return [field.alignment for field in self.fields]


def runs_of(ids: Any) -> list[tuple[int, int, int]]:
    """A view's elements as runs (start, count, step), each as long as it gets."""
    ids = np.asarray(ids).ravel()
    runs = []
    at = 0
    while at < len(ids):
        step = int(ids[at + 1] - ids[at]) if at + 1 < len(ids) else 1
        end = at + 1
        while end < len(ids) and ids[end] - ids[end - 1] == step:
            end += 1
        runs.append((int(ids[at]), end - at, step if end - at > 1 else 1))
        at = end
    return runs


def frozen_runs(ids: Any) -> ElementRuns:
    columns = np.array(runs_of(ids), np.int64).reshape(-1, 3)
    return ElementRuns(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())


@define
class Builder:
    tiles: int = 4
    names: list[str] = field(factory=list)
    types: list[Any] = field(factory=list)
    shapes: list[tuple[int, ...]] = field(factory=list)
    lines: list[Location] = field(factory=list)
    constants: dict[int, Any] = field(factory=dict)
    tile_of: list[int] = field(factory=list)  # of each element, -1 for none
    codelets: list[CodeletStandIn] = field(factory=list)
    compute_sets: list[str] = field(factory=list)
    vertices: list[tuple[int, int, int, int]] = field(factory=list)
    locations: list[Location] = field(factory=list)
    edges: list[tuple[int, int, int, int, Any]] = field(factory=list)
    no_rows: list[tuple[int, int]] = field(factory=list)

    def variable(self, shape: Any, tiles: Any = 0, *, type: Any = FLOAT, name: str = "", constant: bool = False) -> Any:
        """The ids of a new variable; `tiles` is one tile or a list with the tile of each element."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        size = int(np.prod(shape, dtype=int))
        first = len(self.tile_of)
        self.tile_of.extend(np.broadcast_to(np.asarray(tiles, int), (size,)).tolist())
        self.names.append(name or f"v{len(self.names)}")
        self.types.append(type)
        self.shapes.append(shape)
        self.lines.append(Location("graph.py", len(self.names), "build"))
        if constant:
            self.constants[len(self.names) - 1] = np.zeros(size, type.dtype)
        return np.arange(first, first + size).reshape(shape)

    def codelet(self, name: str, *fields: FieldStandIn, kind: str = "vertex", distinct: tuple[tuple[int, int], ...] = ()) -> int:
        self.codelets.append(CodeletStandIn(name, fields, kind, distinct))
        return len(self.codelets) - 1

    def compute_set(self, name: str = "") -> int:
        self.compute_sets.append(name or f"set{len(self.compute_sets)}")
        return len(self.compute_sets) - 1

    def vertex(self, compute_set: int, codelet: int, tile: int, edges: dict[str, Any]) -> int:
        """A vertex; `edges` maps field names to views, to lists of views (list fields), or to (view, type) pairs."""
        number = len(self.vertices)
        self.locations.append(Location("vertices.py", 100 + number, "build"))
        self.vertices.append((codelet, compute_set, tile, number))
        for name, view in edges.items():
            at = [field.name for field in self.codelets[codelet].fields].index(name)
            form = self.codelets[codelet].fields[at].form
            if form == "list" and len(view) == 0:
                self.no_rows.append((number, at))
            for row, ids in enumerate(view if form == "list" else [view]):
                self.edge(number, at, row, ids)
        return number

    def edge(self, vertex: int, at: int, row: int, ids: Any) -> None:
        type = None
        if isinstance(ids, tuple):
            ids, type = ids
        ids = np.asarray(ids).ravel()
        if type is None:
            starts = self.starts()
            owner = int(np.searchsorted(starts, ids[0], "right")) - 1 if len(ids) else -1
            type = self.types[owner] if len(ids) else self.codelets[self.vertices[vertex][0]].fields[at].type
        self.edges.append((vertex, at, row, SUPPORTED.index(type), ids))

    def state(self) -> FrozenState:
        """All plain fields are 0."""
        rows = [
            (number, at)
            for number, (codelet, *_) in enumerate(self.vertices)
            for at, described in enumerate(self.codelets[codelet].fields)
            if described.access == "state"
        ]
        table = np.array(rows, np.int64).reshape(-1, 2)
        return FrozenState(table[:, 0].copy(), table[:, 1].astype(np.int32), np.zeros(len(table), np.uint64), {})

    def starts(self) -> Any:
        return np.cumsum([0] + [int(np.prod(shape, dtype=int)) for shape in self.shapes])[:-1]

    def freeze(self) -> FrozenGraph:
        first = np.append(self.starts(), len(self.tile_of)).astype(np.int64)
        edges = sorted(self.edges, key=lambda edge: edge[:3])
        runs = [runs_of(edge[4]) for edge in edges]
        table = np.array([run for view in runs for run in view], np.int64).reshape(-1, 3)
        columns = np.array([edge[:4] for edge in edges], np.int64).reshape(-1, 4)
        vertices = np.array(self.vertices, np.int32).reshape(-1, 4)
        nothing = np.zeros(0, np.int64)
        return FrozenGraph(
            tiles=self.tiles,
            variables=FrozenVariables(
                tuple(self.names), tuple(self.types), tuple(self.shapes), tuple(self.lines), first, dict(self.constants), ()
            ),
            mapping=mapping_of(self.tile_of),
            codelets=cast(Any, tuple(self.codelets)),
            compute_sets=tuple(self.compute_sets),
            vertices=FrozenVertices(*(vertices[:, at].copy() for at in range(4))),
            edges=FrozenEdges(
                vertex=columns[:, 0].copy(),
                field=columns[:, 1].astype(np.int32),
                row=columns[:, 2].astype(np.int32),
                type=columns[:, 3].astype(np.int16),
                first_run=np.cumsum([0] + [len(view) for view in runs]).astype(np.int64),
                run_start=table[:, 0].copy(),
                run_count=table[:, 1].copy(),
                run_step=table[:, 2].copy(),
                no_rows=np.array(self.no_rows, np.int64).reshape(-1, 2),
            ),
            state=self.state(),
            estimated=lambda graph: FrozenEstimates(nothing, nothing, nothing, nothing.astype(bool)),
            compute_set_locations=tuple(Location("sets.py", 10 + number, "build") for number in range(len(self.compute_sets))),
            locations=tuple(self.locations),
        )


def mapping_of(tile_of: list[int]) -> FrozenMapping:
    tile = np.array(tile_of, np.int64)
    opens = np.flatnonzero(np.concatenate(([True], tile[1:] != tile[:-1]))) if len(tile) else np.zeros(0, np.int64)
    ends = np.append(opens[1:], len(tile))[: len(opens)]
    kept = tile[opens] >= 0
    return FrozenMapping(opens[kept], ends[kept], tile[opens][kept])


def all_used(graph: FrozenGraph) -> Any:
    return np.ones(len(graph.variables.names), bool)
