"""The edge rows of all vertices, as tables that can be read in bulk: codelet by codelet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import distinct
from pypoplar.codelet.codelet import Codelet
from pypoplar.executable.compute_sets import Computes
from pypoplar.interface.edge_rows import EdgeRow, edge_row


@frozen(eq=False)
class VertexRows:
    """The vertices of one codelet, in all compute sets."""

    codelet: Codelet
    layout: EdgeRow
    position: Int64s  # [vertices]: in `Computes.vertex`
    first_word: Int64s  # [vertices]: where each one's edge row begins in `Computes.words`
    tile: Int64s  # [vertices]

    def chosen(self, own: Int64s) -> VertexRows:
        """Some of the vertices, by their places here."""
        return VertexRows(self.codelet, self.layout, self.position[own], self.first_word[own], self.tile[own])


def rows_by_codelet(codelets: tuple[Codelet, ...], computes: Computes, *, record_touches: bool) -> Iterator[VertexRows]:
    """The vertices of each codelet that has any."""
    first = np.append(computes.group_position, len(computes.vertex))[computes.first_group]
    tile = np.repeat(computes.active_tile, np.diff(first))
    number_of = np.repeat(computes.group_codelet, computes.group_count)
    inside = np.arange(len(computes.vertex)) - np.repeat(computes.group_position, computes.group_count)
    group_row = np.repeat(computes.group_row, computes.group_count)
    for number in distinct(number_of):
        codelet = codelets[int(number)]
        chosen = np.flatnonzero(number_of == number)
        layout = edge_row(codelet.fields, record_touches=record_touches)
        yield VertexRows(codelet, layout, chosen, group_row[chosen] + inside[chosen] * layout.words, tile[chosen])


@frozen(eq=False)
class ListedRows:
    """The rows of the list fields of some vertices."""

    entry: Int64s  # [rows]: numbers of `RowEntry` records
    owner: Int64s  # [rows]: the position of the vertex

    @staticmethod
    def of(first: Int64s, count: Int64s) -> ListedRows:
        """Of vertices whose rows are `count` entries from `first` on."""
        inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        return ListedRows(np.repeat(first, count) + inside, np.repeat(np.arange(len(first)), count))
