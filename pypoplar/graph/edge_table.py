"""Edges between vertex fields and views, as one flat table of runs."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from attrs import fields, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets, ragged
from pypoplar.arrays.run_sweeps import place_runs
from pypoplar.arrays.strides import element_ids
from pypoplar.braces import TENSORS, ordered
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.errors import GraphConnectionError
from pypoplar.graph.frozen import FrozenEdges
from pypoplar.graph.tensor import Tensor
from pypoplar.host_code.sweep import SweepCode
from pypoplar.host_memory import TableSize
from pypoplar.types import CHAR, SIGNED_CHAR, SUPPORTED, UNSIGNED_CHAR, ElementType

_BYTES = (UNSIGNED_CHAR, CHAR, SIGNED_CHAR)  # that records are made of
TYPE_CODE: dict[ElementType, int] = {element: number << 16 for number, element in enumerate(SUPPORTED)}
_FIELD = (1 << 16) - 1
_TYPE_SHIFT, _TYPE = 16, (1 << 8) - 1
_CONTINUES = 1 << 24
_ROW_SHIFT = 32
_NEXT_ROW = 1 << _ROW_SHIFT


_MANY_RUNS = 512  # that are a block of their own
_FEW_ROWS = 64  # that are noted one by one: NumPy needs longer to make its arrays


@frozen(eq=False)
class RowRuns:
    """One view per row: the runs of all rows, and the row that each run is of. A row without elements has one run of count 0."""

    start: Int64s
    count: Int64s
    step: Int64s
    owner: Int64s


def rows_of(tensor: Tensor, rows: int) -> RowRuns:
    """The tensor's flattened elements cut into `rows` equal rows."""
    length = prod(tensor._shape) // rows if rows else 0
    number = np.arange(rows, dtype=np.int64)
    if length == 0:
        zero = np.zeros(rows, np.int64)
        return RowRuns(zero, zero, zero + 1, number)
    shape, steps = tensor._shape, tensor._strides
    outer = len(shape) - (length > 1)  # dimensions that go over the rows, where a row is one run
    if steps is not None and prod(shape[:outer]) == rows:
        start = element_ids(tensor._offset, shape[:outer], steps[:outer]).reshape(-1)
        return RowRuns(start, np.full(rows, length), np.full(rows, steps[-1] if length > 1 else 1), number)
    box = tensor._box.reshaped((rows, length)) if tensor._box is not None else None
    if box is not None and len(box.dimensions[1]) == 1:
        ((_, step),) = box.dimensions[1]
        start = element_ids(box.offset, *zip(*box.dimensions[0], strict=True)) if rows > 1 else np.array(box.offset)
        return RowRuns(start.reshape(-1), np.full(rows, length), np.full(rows, step), number)
    pieces, owner = tensor._run_list().cut(number * length, (number + 1) * length)
    return RowRuns(pieces.start, pieces.count, pieces.step, owner)


@frozen(eq=False)
class _EdgeBlock:
    """Edges in the order in which they were connected, and the runs of all, which no later change touches."""

    vertex: Int64s
    code: Int64s
    length: Int64s  # runs of each edge: one at least until it is frozen, then none of an edge without elements
    start: Int64s  # from here on of the runs
    count: Int64s
    step: Int64s

    @staticmethod
    def of_rows(table: Int64s) -> _EdgeBlock:
        """The edges of rows (vertex, code, start, count, step), one a run."""
        head = np.flatnonzero((table[:, 1] & _CONTINUES) == 0)
        length = np.diff(head, append=len(table))
        return _EdgeBlock(table[head, 0], table[head, 1], length, *(column.copy() for column in table[:, 2:].T))

    @staticmethod
    def joined(blocks: Sequence[_EdgeBlock]) -> _EdgeBlock:
        """The edges of several blocks, those of one after the other's."""
        if len(blocks) == 1:
            return blocks[0]
        return _EdgeBlock(*(np.concatenate([getattr(block, column.name) for block in blocks]) for column in fields(_EdgeBlock)))

    def unwriteable(self) -> _EdgeBlock:
        """The same, which nobody who shares its memory can change."""
        columns = [getattr(self, column.name).view() for column in fields(_EdgeBlock)]
        for column in columns:
            column.flags.writeable = False
        return _EdgeBlock(*columns)

    def first(self, edges: int) -> _EdgeBlock:
        """So many edges from the first on."""
        runs = int(self.length[:edges].sum())
        of_edges, of_runs = (self.vertex, self.code, self.length), (self.start, self.count, self.step)
        return _EdgeBlock(*(column[:edges] for column in of_edges), *(column[:runs] for column in of_runs))

    def with_more(self, more: _EdgeBlock) -> tuple[_EdgeBlock, Int64s]:
        """Both in order, those of `more` behind others of the same vertex, field and row, and where they are.

        Both are in order already.
        """
        fields, rows = (1 + max(own, other) for own, other in zip(self._most(), more._most(), strict=True))
        at = np.searchsorted(self._keys(fields, rows), more._keys(fields, rows), "right")
        runs = np.repeat(offsets(self.length)[at], more.length)
        of_edges = (np.insert(getattr(self, name), at, getattr(more, name)) for name in ("vertex", "code", "length"))
        whole = _EdgeBlock(
            *of_edges, *(np.insert(getattr(self, name), runs, getattr(more, name)) for name in ("start", "count", "step"))
        )
        return whole, at + np.arange(len(at))

    def without(self, edges: Int64s) -> _EdgeBlock:
        """The same but for some edges."""
        runs = ragged(offsets(self.length)[edges], self.length[edges])
        of_edges = (np.delete(getattr(self, name), edges) for name in ("vertex", "code", "length"))
        return _EdgeBlock(*of_edges, *(np.delete(getattr(self, name), runs) for name in ("start", "count", "step")))

    def without_empty_runs(self) -> _EdgeBlock:
        """The same where edges without elements have no runs, and runs of one element the step 1."""
        length, runs = self.length, (self.start, self.count, self.step)
        full = self.count > 0
        if not full.all():
            length = np.diff(offsets(full)[offsets(length)])
            runs = self.start[full], self.count[full], self.step[full]
        start, count, step = runs
        if bool(((count == 1) & (step != 1)).any()):
            step = np.where(count > 1, step, 1)
        return _EdgeBlock(self.vertex, self.code, length, start, count, step)

    def _most(self) -> tuple[int, int]:
        """The largest field and row."""
        return int((self.code & _FIELD).max(initial=0)), int((self.code >> _ROW_SHIFT).max(initial=0))

    def _keys(self, fields: int, rows: int) -> Int64s:
        """What edges are sorted by: vertex, field below `fields`, and row below `rows`."""
        keys = self.vertex * fields
        keys += self.code & _FIELD
        keys *= rows
        keys += self.code >> _ROW_SHIFT
        return keys

    def in_order(self) -> _EdgeBlock:
        """Sorted by vertex, field and row."""
        order = self._order()
        if order is None:
            return self
        length = self.length[order]
        single = len(self.start) == len(order) and bool((length == 1).all())
        runs = order if single else ragged(offsets(self.length)[:-1][order], length)
        return _EdgeBlock(self.vertex[order], self.code[order], length, self.start[runs], self.count[runs], self.step[runs])

    def _order(self) -> Int64s | None:
        """The edges in this order, or None where they are in it."""
        if not len(self.vertex):
            return None
        keys = self._keys(*(1 + most for most in self._most()))
        return None if (keys[1:] >= keys[:-1]).all() else np.argsort(keys, kind="stable")

    @staticmethod
    def swept_in_order(blocks: Sequence[_EdgeBlock], code: SweepCode) -> tuple[_EdgeBlock, Int64s]:
        """The edges of several blocks in order, without empty runs, and where those of the last block are.

        These are what joining, sorting and `with_more` make one after the other, each with a copy of all.
        """
        blocks = [block if bool((block.count > 0).all()) else block.without_empty_runs() for block in blocks]
        nothing = np.zeros(0, np.int64)
        vertex, codes, length = (
            np.concatenate([getattr(block, name) for block in blocks]) for name in ("vertex", "code", "length")
        )
        order = _EdgeBlock(vertex, codes, length, nothing, nothing, nothing)._order()
        edges = offsets([len(block.vertex) for block in blocks])
        if order is None:
            order = np.arange(len(length))
        last = np.flatnonzero(order >= edges[-2])
        if len(last) == len(length) and bool((np.diff(order) == 1).all()):
            return blocks[-1].without_empty_runs(), last
        length = length[order]
        first = np.empty(len(length), np.int64)
        first[order] = offsets(length)[:-1]
        runs = [np.empty(int(length.sum()), np.int64) for _ in range(3)]
        for block, begin, end in zip(blocks, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            code(first[begin:end], block.length, block.start, block.count, block.step, *runs)
        return _EdgeBlock(vertex[order], codes[order], length, *runs), last


class EdgeTable:
    """Edges in blocks, and those that came one by one as rows (vertex, code, start, count, step), a row a run.

    `code` packs field, type, row of a list field, and in rows "continues": a run that continues belongs to the same edge as the
    run before it. Edges connected twice are kept twice: the compiler judges that.
    """

    __slots__ = ("_blocks", "_constants", "_freezing", "_in_blocks", "_no_rows", "_runs")

    def __init__(self) -> None:
        self._blocks: list[_EdgeBlock] = []
        self._in_blocks = 0  # runs
        self._constants = np.zeros(
            0, np.int64
        )  # edges of the first block that its last freezing has brought, and the next takes out
        self._runs = array("q")  # behind the blocks
        self._no_rows = array("q")  # (vertex, field) of list fields connected to no rows
        self._freezing = Lock()  # graphs are compiled by several threads

    def connect(self, vertex: int, field: int, tensor: Tensor, row: int = 0) -> None:
        """Add one edge to the whole of a tensor."""
        code = field + TYPE_CODE[tensor._type] + (row << _ROW_SHIFT)
        steps = tensor._strides
        if steps is not None:
            shape = tensor._shape
            if len(shape) == 1:
                self._runs.extend((vertex, code, tensor._offset, shape[0], steps[0]))
                return
            if not shape:
                self._runs.extend((vertex, code, tensor._offset, 1, 1))
                return
        self._append(np.full(1, vertex), np.full(1, code), rows_of(tensor, 1))

    def connect_rows(self, vertex: int, field: int, tensor: Tensor, first_row: int = 0) -> None:
        """Add one edge of a list field per index of dimension 0."""
        shape, steps = tensor._shape, tensor._strides
        if shape[0] == 0:
            self._no_rows.extend((vertex, field))
            return
        if steps is not None and len(shape) == 2 and shape[0] <= _FEW_ROWS and shape[1] > 1:
            row_code, start = field + TYPE_CODE[tensor._type] + (first_row << _ROW_SHIFT), tensor._offset
            step, (count, length) = steps[0], shape
            rows = array("q", (vertex, row_code, start, length, steps[1])) * count
            for place in range(6, 5 * count, 5):  # one list for all rows, which takes less than one for each
                row_code += _NEXT_ROW
                start += step
                rows[place], rows[place + 1] = row_code, start
            self._runs.extend(rows)
            return
        number = np.arange(tensor._shape[0], dtype=np.int64) + first_row
        code = field + TYPE_CODE[tensor._type] + (number << _ROW_SHIFT)
        self._append(np.full(len(number), vertex), code, rows_of(tensor, len(number)))

    def connect_list(self, vertex: int, field: int, tensors: Sequence[Tensor]) -> None:
        """Add one edge of a list field per tensor."""
        if not tensors:
            self._no_rows.extend((vertex, field))
        before = self._rows()
        try:
            for row, tensor in enumerate(tensors):
                self.connect(vertex, field, tensor, row)
        except MemoryError:
            self._keep(before)
            raise

    def connect_many(
        self, first_vertex: int, vertices: int, field: int, tensor: Tensor, rows: int | None, first_row: int = 0
    ) -> None:
        """Add an edge to each vertex, index v of dimension 0 to vertex v; or `rows` edges, index r of dimension 1 to row r.

        Rows are counted from `first_row`.
        """
        if rows == 0:
            for vertex in range(first_vertex, first_vertex + vertices):
                self._no_rows.extend((vertex, field))
            return
        each = 1 if rows is None else rows
        numbers = np.repeat(np.arange(first_vertex, first_vertex + vertices, dtype=np.int64), each)
        row = np.tile(np.arange(first_row, first_row + each, dtype=np.int64), vertices)
        code = field + TYPE_CODE[tensor._type] + (row << _ROW_SHIFT)
        self._append(numbers, code, rows_of(tensor, vertices * each))

    def _append(self, vertex: Int64s, code: Int64s, rows: RowRuns) -> None:
        """Add edges with the views of `rows`."""
        if len(rows.start) >= _MANY_RUNS:
            length = np.bincount(rows.owner, minlength=len(vertex))
            self._close()
            self._blocks.append(_EdgeBlock(vertex, code, length, rows.start, rows.count, rows.step))
            self._in_blocks += len(rows.start)
            return
        block = np.empty((len(rows.start), 5), np.int64)
        if len(rows.owner) == len(vertex):
            block[:, 0], block[:, 1] = vertex, code
        else:
            block[:, 0], block[:, 1] = vertex[rows.owner], code[rows.owner]
            block[1:, 1] += _CONTINUES * (rows.owner[1:] == rows.owner[:-1])
        block[:, 2], block[:, 3], block[:, 4] = rows.start, rows.count, rows.step
        if len(block):
            self._runs.frombytes(block.data.cast("B"))

    def _close(self) -> None:
        """Make a block of the edges that came one by one."""
        if self._runs:
            self._blocks.append(_EdgeBlock.of_rows(np.frombuffer(self._runs, np.int64).reshape(-1, 5)))
            self._in_blocks += len(self._blocks[-1].start)
            self._runs = array("q")

    def mend(self) -> None:
        """Take back what there is of a row for which the memory did not suffice."""
        del self._runs[len(self._runs) // 5 * 5 :]
        del self._no_rows[len(self._no_rows) // 2 * 2 :]

    def size(self) -> TableSize:
        """Rows and bytes."""
        bytes = 8 * len(self._runs) + 24 * sum(len(block.vertex) + len(block.start) for block in self._blocks)
        return TableSize("runs of edges", self._rows(), bytes)

    def _rows(self) -> int:
        """Runs of all edges."""
        return self._in_blocks + len(self._runs) // 5

    def _keep(self, rows: int) -> None:
        """Take back all edges behind the first ones, which have so many runs."""
        del self._runs[max(rows - self._in_blocks, 0) * 5 :]
        while self._in_blocks > rows:
            self._shorten(lambda block, below: int(np.searchsorted(np.cumsum(block.length), rows - below, "right")))

    def _shorten(self, edges: Callable[[_EdgeBlock, int], int]) -> bool:
        """Take back the edges at the end of the last block but for so many; whether any are left. It is told what is below."""
        block = self._blocks.pop()
        self._in_blocks -= len(block.start)
        kept = block.first(edges(block, self._in_blocks))
        if not self._blocks:
            self._constants = self._constants[self._constants < len(kept.vertex)]
        if len(kept.vertex) == 0:
            return False
        self._blocks.append(kept)
        self._in_blocks += len(kept.start)
        return True

    def remove(self, first_vertex: int) -> None:
        """Take back the edges at the end of the table of vertices from `first_vertex` on."""
        end = len(self._runs)
        while end and self._runs[end - 5] >= first_vertex:
            end -= 5
        del self._runs[end:]
        if not end:
            while self._blocks and not self._shorten(lambda block, _: _edges_up_to(block.vertex, first_vertex)):
                pass
        end = len(self._no_rows)
        while end and self._no_rows[end - 2] >= first_vertex:
            end -= 2
        del self._no_rows[end:]

    def freeze(self, more: Int64s | None = None) -> FrozenEdges:
        """The edges, with `more` rows behind them. The table keeps both as one block, whose memory the edges share."""
        with self._freezing:
            edges = self._frozen(more)
            return FrozenEdges(
                vertex=edges.vertex,
                field=(edges.code & _FIELD).astype(np.int32),
                row=(edges.code >> _ROW_SHIFT).astype(np.int32),
                type=((edges.code >> _TYPE_SHIFT) & _TYPE).astype(np.int16),
                first_run=offsets(edges.length),
                run_start=edges.start,
                run_count=edges.count,
                run_step=edges.step,
                no_rows=np.array(self._no_rows, dtype=np.int64).reshape(-1, 2),
            )

    def _frozen(self, more: Int64s | None) -> _EdgeBlock:
        """The one block that the table has now."""
        self._close()
        if len(self._constants):
            self._blocks[0] = self._blocks[0].without(self._constants)
            self._constants = np.zeros(0, np.int64)
        behind = None if more is None else _EdgeBlock.of_rows(more)
        code = place_runs.code(self._in_blocks)
        if self._blocks and code is not None:
            whole, last = _EdgeBlock.swept_in_order(self._blocks if behind is None else [*self._blocks, behind], code)
            self._blocks, self._constants = [whole], self._constants if behind is None else last
        else:
            self._freeze_by_steps(behind)
        self._blocks[0] = self._blocks[0].unwriteable()
        self._in_blocks = len(self._blocks[0].start)
        return self._blocks[0]

    def _freeze_by_steps(self, more: _EdgeBlock | None) -> None:
        """One block of short lists, or where there is no machine code: each step leaves the one before free."""
        if self._blocks:
            self._blocks = [_EdgeBlock.joined(self._blocks)]
            self._blocks[0] = self._blocks[0].in_order()
            self._blocks[0] = self._blocks[0].without_empty_runs()
        else:
            self._blocks = [_EdgeBlock.of_rows(np.zeros((0, 5), np.int64))]
        if more is not None:
            self._blocks[0], self._constants = self._blocks[0].with_more(more.in_order().without_empty_runs())


def _edges_up_to(vertex: Int64s, first_vertex: int) -> int:
    """How many edges there are without those at the end whose vertices are from one on."""
    others = np.flatnonzero(vertex < first_vertex)
    return int(others[-1]) + 1 if len(others) else 0


def check_bytes(where: str, record: RecordLayout | None, value: Any, rank: int) -> None:
    """Raise unless `value` is a tensor of bytes, of so many dimensions, whose last one holds whole records."""
    assert record is not None
    each = f"{record.size} bytes for each {record.name}"
    if not isinstance(value, Tensor):
        ordered(value, where, TENSORS)
        raise GraphConnectionError(f"{where} takes a tensor of UNSIGNED_CHARs or CHARs, {each}; got {value!r}")
    got = value._described()
    if value._type not in _BYTES:
        raise GraphConnectionError(f"{where} takes a tensor of UNSIGNED_CHARs or CHARs, {each}; got {got}")
    if value.rank() != rank:
        hint = "; use flatten()" if rank == 1 else ""
        raise GraphConnectionError(f"{where} needs a tensor of rank {rank}, got {got} of rank {value.rank()}{hint}")
    size, bytes = record.size, value._shape[-1]
    if bytes % size:
        below = bytes - bytes % size
        remedy = f"make it {f'{below:,} or ' if below else ''}{below + size:,}"
        raise GraphConnectionError(
            f"{where}: {bytes:,} bytes are no whole number of {record.name} records of {size}, got {got}; {remedy}"
        )
