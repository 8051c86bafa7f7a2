"""Rows of what vertices reduce, as ranges of a vector, in flat arrays: a network's reductions have a million of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets, ragged
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat_slices
from pypoplar.types import ElementType


@frozen(eq=False)
class HeldRows:
    """The rows of many entries. Entry i has the rows ``[first[i], first[i + 1])``, and a row the elements ``[begin, end)``."""

    vector: Tensor
    first: Int64s
    begin: Int64s
    end: Int64s

    @property
    def type(self) -> ElementType:
        return self.vector.elementType()

    @property
    def count(self) -> Int64s:
        """Rows of each entry."""
        return np.diff(self.first)

    @property
    def size(self) -> Int64s:
        """Elements of each row."""
        return self.end - self.begin

    def of(self, entries: Int64s) -> HeldRows:
        """The rows of some entries."""
        count = self.count[entries]
        rows = ragged(self.first[entries], count)
        return HeldRows(self.vector, offsets(count), self.begin[rows], self.end[rows])

    def and_those_of(self, other: HeldRows) -> HeldRows:
        """The entries of both, whose vector is one."""
        first = np.append(self.first[:-1], self.first[-1] + other.first)
        return HeldRows(self.vector, first, np.append(self.begin, other.begin), np.append(self.end, other.end))

    def alike(self, *columns: Int64s) -> list[Int64s]:
        """Entries whose rows have the same sizes, and that are equal in all columns, together; in the order of the first ones."""
        heads, sizes = np.column_stack((*columns, self.count)), self.size
        width, head, body = heads.strides[0], heads.tobytes(), sizes.tobytes()
        found: dict[bytes, list[int]] = {}
        for number, (low, high) in enumerate(pairwise((self.first * sizes.itemsize).tolist())):
            found.setdefault(head[number * width : (number + 1) * width] + body[low:high], []).append(number)
        return [np.array(entries, np.int64) for entries in found.values()]

    def matrices(self, entries: Int64s) -> Sequence[Tensor]:
        """Of entries whose rows are alike, the first rows of all, the second ones, and so on: each a matrix."""
        first, count = self.first[entries], int(self.count[entries[0]])
        return [views(self.vector, self.begin[first + row], self.end[first + row]) for row in range(count)]


def views(vector: Tensor, begin: Int64s, end: Int64s) -> Tensor:
    """Ranges of a vector that are as long as each other, as the rows of a matrix."""
    return concat_slices(vector, begin, end).reshape([len(begin), int(end[0] - begin[0])])
