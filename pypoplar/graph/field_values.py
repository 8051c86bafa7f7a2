"""Plain fields of vertices and estimates of their cycles: values by vertex, in which later ones win."""

from __future__ import annotations

from array import array

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Int32s, Int64s
from pypoplar.codelet.codelet import Codelet
from pypoplar.graph.frozen import FrozenEstimates, FrozenState
from pypoplar.host_memory import TableSize
from pypoplar.host_values import bits_of


class StateTable:
    """Initial values of plain fields: rows (vertex, field, bits) for scalars, arrays for vectors."""

    __slots__ = ("_rows", "sizes", "vectors")

    def __init__(self) -> None:
        self._rows = array("q")
        self.vectors: dict[tuple[int, int], AnyArray] = {}
        self.sizes: dict[tuple[int, int], int] = {}  # given by setFieldSize

    def set(self, vertex: int, field: int, bits: int) -> None:
        """Give a plain field of a vertex its value, as bits."""
        self._rows.extend((vertex, field, bits))

    def set_many(self, first_vertex: int, vertices: int, field: int, bits: Int64s | int) -> None:
        """Give a plain field its value in each of successive vertices, or one value in all."""
        rows = np.empty((vertices, 3), np.int64)
        rows[:, 0] = np.arange(first_vertex, first_vertex + vertices)
        rows[:, 1], rows[:, 2] = field, bits
        self._rows.frombytes(rows.data.cast("B") if vertices else b"")

    def mend(self) -> None:
        """Take back what there is of a row for which the memory did not suffice."""
        del self._rows[len(self._rows) // 3 * 3 :]

    def size(self) -> TableSize:
        """Rows and bytes, of vectors too."""
        vectors = list(self.vectors.values())
        size = 8 * len(self._rows) + sum(each.nbytes for each in vectors)
        return TableSize("plain fields", len(self._rows) // 3 + len(vectors), size)

    def remove(self, first_vertex: int) -> None:
        """Take back the values at the end of the table of vertices from `first_vertex` on."""
        end = len(self._rows)
        while end and self._rows[end - 3] >= first_vertex:
            end -= 3
        del self._rows[end:]
        while self.vectors and next(reversed(self.vectors))[0] >= first_vertex:
            self.vectors.popitem()

    def freeze(self, codelet: Int32s, codelets: tuple[Codelet, ...]) -> FrozenState:
        """All values, and for vertices without one the defaults of their codelets; `codelet` is the number of each vertex's."""
        defaults, vectors = _defaults(codelet, codelets)
        rows = np.concatenate((*defaults, np.array(self._rows, dtype=np.int64).reshape(-1, 3)))
        width = int(rows[:, 1].max()) + 1 if len(rows) else 1
        rows = rows[_last_of_each(rows[:, 0] * width + rows[:, 1])]
        return FrozenState(
            rows[:, 0].copy(), rows[:, 1].astype(np.int32), rows[:, 2].copy().view(np.uint64), vectors | self.vectors
        )


def _defaults(codelet: Int32s, codelets: tuple[Codelet, ...]) -> tuple[list[Int64s], dict[tuple[int, int], AnyArray]]:
    """The defaults of all vertices: rows as a `StateTable` has them, and arrays by vertex and field."""
    rows: list[Int64s] = []
    vectors: dict[tuple[int, int], AnyArray] = {}
    for number, described in enumerate(codelets):
        for position, field in enumerate(described.fields):
            if field.default is None:
                continue
            vertex = np.flatnonzero(codelet == number)
            if isinstance(field.default, tuple):
                values = np.array(field.default, field.type.dtype)
                vectors |= dict.fromkeys(((int(owner), position) for owner in vertex), values)
            else:
                bits = np.full(len(vertex), bits_of(field.type, field.default))
                rows.append(np.column_stack((vertex, np.full(len(vertex), position), bits)).astype(np.int64, copy=False))
    return rows, vectors


MOST_ESTIMATED = 1 << 40  # cycles or flops of a vertex: sums over vertices and steps stay within 64 bits


class EstimateTable:
    """Worker cycles and flops (-1 where none are given) of single vertices."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows = array("q")

    def set(self, vertex: int, cycles: int, flops: int) -> None:
        """Say how many cycles and floating-point operations a vertex takes."""
        self._rows.extend((vertex, cycles, flops))

    def set_many(self, vertex: Int64s, cycles: Int64s, flops: Int64s) -> None:
        """Say so of several vertices."""
        self._rows.frombytes(np.column_stack((vertex, cycles, flops)).astype(np.int64, copy=False).tobytes())

    def freeze(self) -> FrozenEstimates:
        """The estimates as arrays, of each vertex the last one."""
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 3)
        rows = rows[_last_of_each(rows[:, 0])]
        return FrozenEstimates(rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy(), np.zeros(len(rows), bool))


def _last_of_each(key: Int64s) -> Int64s:
    """The positions of the last entry for each key, in the order of the keys."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    last: Int64s = order[np.concatenate((ordered[1:] != ordered[:-1], np.ones(min(len(key), 1), bool)))]
    return last
