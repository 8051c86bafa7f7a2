"""The tables by which an engine judges which elements vertices touched; see `Touches`."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets, ragged
from pypoplar.compiler.exchange.graph_index import Survey
from pypoplar.compiler.exchange_plan import ComputePlan, Homes
from pypoplar.executable.touched_edges import Touches
from pypoplar.graph.frozen import FrozenGraph
from pypoplar.types import SUPPORTED


@define(eq=False)
class TouchTables:
    """The tables while they are made, compute set by compute set."""

    graph: FrozenGraph
    homes: Homes
    survey: Survey
    size: int = 0  # bytes for the marks of the largest compute set
    _end: int = 0  # of the marks of the compute set that is being added
    _edges: list[Int64s] = field(factory=list)  # numbers of the graph's edges
    _tile: list[Int64s] = field(factory=list)
    _offset: list[Int64s] = field(factory=list)
    _touch: list[Int64s] = field(factory=list)

    def add(self, plan: ComputePlan, offset: Int64s) -> Int64s:
        """Add the edges of a compute set, whose offsets on their tiles are given; returns where each edge's marks begin.

        An Input that is one tensor with an Output of its vertex has that one's marks.
        """
        first, last = self.survey.first_edge[plan.vertex], self.survey.first_edge[plan.vertex + 1]
        length = plan.edge_length
        touch = offsets(length)
        edges = ragged(first, last - first)
        self._edges.append(edges)
        self._tile.append(plan.tile[plan.edge_position])
        self._offset.append(offset)
        self._touch.append(touch[:-1])
        self._end = 0
        self._reserve(touch)
        return touch[self.survey.in_place.places(edges)]

    def add_state(self, length: Int64s) -> Int64s:
        """Add plain fields of so many elements to the compute set that was added last; returns where the marks of each begin."""
        touch = self._end + offsets(length)
        self._reserve(touch)
        return touch[:-1]

    def _reserve(self, touch: Int64s) -> None:
        self._end = int(touch[-1])
        self.size = max(self.size, self._end)

    def finish(self) -> Touches:
        edges = self.graph.edges
        chosen = np.concatenate([np.zeros(0, np.int64), *self._edges])
        runs = ragged(edges.first_run[chosen], edges.first_run[chosen + 1] - edges.first_run[chosen])
        sizes = np.array([element.size for element in SUPPORTED], np.int64)
        homes = self.homes
        return Touches(
            first_edge=offsets([len(edges) for edges in self._edges]),
            edge_vertex=edges.vertex[chosen].astype(np.int64),
            edge_field=edges.field[chosen].astype(np.int64),
            edge_tile=np.concatenate([np.zeros(0, np.int64), *self._tile]),
            edge_offset=np.concatenate([np.zeros(0, np.int64), *self._offset]),
            edge_width=sizes[edges.type[chosen]],
            edge_touch=np.concatenate([np.zeros(0, np.int64), *self._touch]),
            first_run=offsets(edges.first_run[chosen + 1] - edges.first_run[chosen]),
            run_start=edges.run_start[runs],
            run_count=edges.run_count[runs],
            run_step=edges.run_step[runs],
            home_begin=homes.begin,
            home_tile=homes.tile,
            home_offset=homes.offset,
            home_width=homes.width,
            first_element=self.graph.variables.first.astype(np.int64),
            vertex_codelet=self.graph.vertices.codelet.astype(np.int64),
        )
