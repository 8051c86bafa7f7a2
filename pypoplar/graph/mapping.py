"""Which tile holds which element."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Protocol, TypeAlias

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.element_runs import RunList
from pypoplar.arrays.groups import group_positions, opens, sorting_order
from pypoplar.arrays.interval_algebra import join_touching, paint
from pypoplar.arrays.intervals import Interval
from pypoplar.arrays.strides import row_major
from pypoplar.graph.frozen import FrozenMapping
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.variables import Variables
from pypoplar.host_memory import TableSize
from pypoplar.notebook import ShownInNotebooks

Intervals: TypeAlias = "Iterable[Interval | tuple[int, int]]"
TileMapping: TypeAlias = "int | Iterable[int] | Iterable[Intervals] | Mapping[int, Intervals]"
"""A tile, or intervals of a flattened tensor for each tile, or for those named; of a range of vertices a tile for each."""


class TileToTensorMapping(list[list[Interval]], ShownInNotebooks):
    """For each tile the intervals of a flattened tensor that it holds, given by `Graph.getTileMapping`: a list of lists.

    Attributes
    ----------
    complete:
        Whether all elements have a tile.
    """

    complete: bool

    def __init__(self, intervals: Iterable[list[Interval]], complete: bool) -> None:
        super().__init__(intervals)
        self.complete = complete


_NOTHING = (np.zeros(0, np.int64),) * 3
_MADE = "made"  # the key of the layout that a variable was made with
_FEW_ROWS = 64  # that are noted one by one: NumPy needs longer to make its arrays


Pieces: TypeAlias = tuple[Int64s, Int64s, Int64s]
"""Arrays of begins, ends and values."""


class Laid(Protocol):
    """A layout: the graph knows of it that it has an array of tiles."""

    @property
    def tile(self) -> Int64s:
        """The tile of each part."""


@frozen(eq=False)
class KeptLayout:
    """How a variable lies, as the libraries know it: a view of all of it, and the tiles of the layout's parts."""

    layout: Laid
    view: Tensor
    tile: Int64s


Derive: TypeAlias = "Callable[[tuple[int, ...], Int64s, Int64s, Int64s], Laid | None]"
"""From the shape of a variable and the pieces of its mapping to its layout, or None."""


class MappingTable:
    """The tile of each element: a log of (begin, end, tile) over element ids in which later entries win.

    It is read variable by variable: what has been noted since is sorted by variable, and painted over what the variable had, so
    that a question looks at the variables that it is about, and at each entry once.
    """

    __slots__ = ("_kept", "_log", "_noted", "_painted", "_painting", "_variables")

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._log = array("q")
        self._noted: dict[int, list[Int64s]] = {}  # by the number of a variable: rows that are not painted yet
        self._painting = Lock()
        self._painted: dict[int, Pieces] = {}  # likewise: sorted pieces, joined where they touch
        self._kept: dict[int, dict[tuple[int, ...] | str | None, KeptLayout | None]] = {}  # likewise: layouts, until more is noted

    def place(self, tensor: Tensor, tile: int) -> None:
        """Put all elements of the tensor on one tile, which exists."""
        before = len(self._log)
        try:
            self._note(tensor, tile)
        except MemoryError:
            del self._log[before:]
            raise

    def _note(self, tensor: Tensor, tile: int) -> None:
        steps = tensor._strides
        if steps is not None:
            shape = tensor._shape
            begin = tensor._offset
            if not shape:
                self._log.extend((begin, begin + 1, tile))
                return
            if len(shape) == 1 and steps[0] == 1:
                self._log.extend((begin, begin + shape[0], tile))
                return
            if len(shape) == 2 and steps[1] == 1 and shape[0] <= _FEW_ROWS and shape[1]:
                step, (count, length) = steps[0], shape
                rows = array("q", (begin, begin + length, tile)) * count
                for place in range(3, 3 * count, 3):  # one list for all rows, which takes less than one for each
                    begin += step
                    rows[place], rows[place + 1] = begin, begin + length
                self._log.extend(rows)
                return
        runs = tensor._run_list().unit_steps()
        self._append(runs.start, runs.start + runs.count, np.full(len(runs), tile))

    def sizes(self) -> tuple[TableSize, TableSize]:
        """What is noted, and what questions have made of it."""
        noted = len(self._log) // 3 + sum(len(rows) for own in list(self._noted.values()) for rows in own)
        painted = sum(len(begin) for begin, _, _ in list(self._painted.values()))
        return TableSize("tile mappings", noted, 24 * noted), TableSize("pieces on tiles", painted, 24 * painted)

    def place_pieces(self, tensor: Tensor, begin: Int64s, end: Int64s, tile: Int64s) -> None:
        """Put the flattened ranges ``[begin, end)`` of the tensor on their tiles."""
        if tensor._strides is not None and len(tensor._shape) == 1 and tensor._strides[0] == 1:
            self._append(begin + tensor._offset, end + tensor._offset, tile)
            return
        pieces, owner = tensor._run_list().unit_steps().cut(begin, end)
        self._append(pieces.start, pieces.start + pieces.count, tile[owner])

    def place_laid(self, tensor: Tensor, begin: Int64s, end: Int64s, tile: Int64s, kept: KeptLayout) -> None:
        """Place the pieces of all of a variable, and keep its layout until anything else is noted of it."""
        (number,) = tensor.variable_numbers()
        with self._painting:
            self._sort()
            self.place_pieces(tensor, begin, end, tile)
            self._sort()
            self._kept[number] = {_MADE: kept}

    def kept(self, number: int, shape: tuple[int, ...] | None, derive: Derive | None) -> KeptLayout | None:
        """The layout of a variable: the one that it was made with, else what is derived for a shape, by default its own."""
        with self._painting:
            self._sort()
            own = self._kept.get(number, {})
            if _MADE in own or derive is None:
                return own.get(_MADE)
            if shape not in own:
                if number in self._noted:
                    self._paint([number])
                self._kept.setdefault(number, {})[shape] = self._derived(number, shape, derive)
            return self._kept[number][shape]

    def _derived(self, number: int, shape: tuple[int, ...] | None, derive: Derive) -> KeptLayout | None:
        begin, end, tile = self._painted.get(number, _NOTHING)
        first, own = self._variables.first[number], self._variables.shapes[number]
        layout = derive(own, begin - first, end - first, tile)
        return None if layout is None else KeptLayout(layout, self._whole(number, own if shape is None else shape), layout.tile)

    def _whole(self, number: int, shape: tuple[int, ...]) -> Tensor:
        """A variable as a tensor of a shape."""
        tensor = Tensor()
        tensor._variables, tensor._type = self._variables, self._variables.types[number]
        return tensor._strided(self._variables.first[number], shape, row_major(shape))

    def repeat_layout(self, low: int, high: int, variable: Tensor) -> None:
        """Keep the layout that the variable of the elements ``[low, high)`` was made with for another one, mapped as it is."""
        number, (new,) = self._variables.number_of(low), variable.variable_numbers()
        if self._variables.first[number : number + 2] != [low, high]:
            return
        with self._painting:
            self._sort()
            kept = self._kept.get(number, {}).get(_MADE)
            if kept is not None:
                view = kept.view._moved(self._variables.first[new] - low, variable.elementType())
                self._kept[new] = {_MADE: KeptLayout(kept.layout, view, kept.tile)}

    def _append(self, begin: Int64s, end: Int64s, tile: Int64s) -> None:
        self._log.frombytes(np.column_stack((begin, end, tile)).astype(np.int64, copy=False).tobytes())

    def pieces_of(self, tensor: Tensor) -> Pieces:
        """Flattened ranges (begin, end, tile) of the tensor that have a tile, in flattened order, joined where they touch."""
        runs = tensor._run_list()
        if len(runs) == 0:
            return runs.start, runs.start, runs.start
        begin, end, tile = self._of(tensor.variable_numbers())
        low, pieces = _met(runs, begin, end)
        if pieces.sum() > 2 * runs.elements():
            runs = runs.unit_steps()
            low, pieces = _met(runs, begin, end)
        run = np.repeat(np.arange(len(runs)), pieces)
        which = low[run] + group_positions(pieces)
        first, last = _places(runs, run, begin[which], end[which])
        full = last > first
        first, last, tile = first[full], last[full], tile[which][full]
        order = sorting_order(first)
        if order is not None:
            first, last, tile = first[order], last[order], tile[order]
        return join_touching(first, last, tile, np.empty(0, np.int64))

    def pieces_of_variables(self, tensor: Tensor) -> Pieces:
        """Ascending ranges (begin, end, tile) of element ids that have a tile, of all variables that the tensor views."""
        return self._of(tensor.variable_numbers())

    def has_all_of(self, tensor: Tensor) -> bool:
        """Whether all elements of all variables that the tensor views have a tile."""
        numbers, first = tensor.variable_numbers(), self._variables.first
        begin, end, _ = self._of(numbers)
        return int((end - begin).sum()) == sum(first[number + 1] - first[number] for number in numbers)

    def append(self, begin: Int64s, end: Int64s, tile: Int64s) -> None:
        """Put ranges ``[begin, end)`` of element ids on their tiles; empty ones say nothing."""
        self._append(begin, end, tile)

    def repeat(self, low: int, high: int, start: int) -> None:
        """Map as many elements from `start` on as the elements ``[low, high)`` are."""
        begin, end, tile = self._of(range(self._variables.number_of(low), self._variables.number_of(high - 1) + 1))
        met = slice(np.searchsorted(end, low, "right"), np.searchsorted(begin, high))
        self._append(np.maximum(begin[met], low) - low + start, np.minimum(end[met], high) - low + start, tile[met])

    def _of(self, variables: Sequence[int]) -> Pieces:
        """The mapping of all elements of some variables, whose numbers ascend."""
        with self._painting:  # graphs are compiled by several threads
            self._sort()
            noted = [number for number in variables if number in self._noted]
            if noted:
                self._paint(noted)
        if len(variables) == 1:
            return self._painted.get(variables[0], _NOTHING)
        begin, end, tile = zip(_NOTHING, *(self._painted.get(number, _NOTHING) for number in variables), strict=True)
        return np.concatenate(begin), np.concatenate(end), np.concatenate(tile)

    def _paint(self, variables: list[int]) -> None:
        """Paint what was noted of some variables over what they have."""
        had = [np.column_stack(self._painted[number]) for number in variables if number in self._painted]
        rows = np.concatenate([*had, *(each for number in variables for each in self._noted[number])])
        first = self._variables.bounds()[variables]
        begin, end, tile = join_touching(*paint(rows[:, 0], rows[:, 1], rows[:, 2]), first)
        cuts = np.searchsorted(begin, first[1:])
        pieces = zip(*(np.split(column, cuts) for column in (begin, end, tile)), strict=True)
        self._painted.update(zip(variables, pieces, strict=True))
        for number in variables:  # last: where memory does not suffice, all is painted again
            del self._noted[number]

    def _sort(self) -> None:
        """Sort what was noted by variable."""
        if not self._log:
            return
        rows = np.array(self._log, dtype=np.int64).reshape(-1, 3)
        end = rows.size
        rows = rows[rows[:, 1] > rows[:, 0]]
        variable = self._variables.numbers_of(rows[:, 0])
        order = sorting_order(variable)
        if order is not None:
            rows, variable = rows[order], variable[order]
        first = np.flatnonzero(opens(variable))
        for number, own in zip(variable[first].tolist(), np.split(rows, first[1:]), strict=False):
            self._kept.pop(number, None)
            self._noted.setdefault(number, []).append(own)
        del self._log[:end]  # last: what is sorted twice is painted twice, and comes to the same

    def freeze(self) -> FrozenMapping:
        """Intervals are joined within a variable only."""
        return FrozenMapping(*self._of(range(len(self._variables.names))))


def _met(runs: RunList, begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Of sorted intervals the first one that each run reaches, and how many lie in its span."""
    last = runs.start + (runs.count - 1) * runs.step
    low = np.searchsorted(end, np.minimum(runs.start, last), side="right")
    high = np.searchsorted(begin, np.maximum(runs.start, last), side="right")
    return low, np.maximum(high - low, 0)


def _places(runs: RunList, run: Int64s, begin: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The flattened range of the elements that a run has in an interval ``[begin, end)`` of ids; it may be empty."""
    start, step = runs.start[run], runs.step[run]
    size = np.maximum(np.abs(step), 1)
    forwards = step >= 0
    low = -(-np.where(forwards, begin - start, start - end + 1) // size)
    high = -(-np.where(forwards, end - start, start - begin + 1) // size)
    high = np.where(step == 0, runs.count[run], high)  # all of them are one element, which lies in the interval
    first = runs.first[run]
    return first + np.maximum(low, 0), first + np.minimum(high, runs.count[run])


def appended_mapping(first: FrozenMapping, second: FrozenMapping) -> FrozenMapping:
    """Two mappings as one; the elements of the second follow those of the first."""
    return FrozenMapping(
        np.concatenate((first.begin, second.begin)),
        np.concatenate((first.end, second.end)),
        np.concatenate((first.tile, second.tile)),
    )


def linear_pieces(elements: int, tiles: int) -> tuple[Int64s, Int64s, Int64s]:
    """`elements` spread evenly in order over the tiles from tile 0 on, as arrays (begin, end, tile) without empty ranges."""
    bounds = -(np.arange(tiles + 1, dtype=np.int64) * -elements // tiles)
    full = np.flatnonzero(bounds[1:] > bounds[:-1])
    return bounds[full], bounds[full + 1], full
