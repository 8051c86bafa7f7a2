"""Copies of a tensor's form: a new variable seen through the same view."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import prod

import numpy as np

from pypoplar.arrays import strides
from pypoplar.arrays.boxes import Box
from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.element_runs import RunList, join
from pypoplar.arrays.groups import group_positions, offsets
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.mapping import MappingTable
from pypoplar.graph.tensor import Tensor

_SPARSE = 8  # elements of the variables for each that a tensor has


class TensorCloneMethod(Enum):
    """How the elements of a clone, see `Graph.clone`, lie in its variable.

    Attributes
    ----------
    PRESERVE_ORDER_AND_ALIASES:
        In the order of the original's elements in memory; elements that the original holds twice are one in the clone.
    CREATE_NEW_ORDER:
        In row-major order; each is an element of its own.
    PRESERVE_ORDER_UNLESS_ALIASES:
        In the original's order in memory, or in row-major order if it holds an element twice.
    GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES:
        As `PRESERVE_ORDER_AND_ALIASES`, with the elements of each tile together.
    """

    PRESERVE_ORDER_AND_ALIASES = "PRESERVE_ORDER_AND_ALIASES"
    CREATE_NEW_ORDER = "CREATE_NEW_ORDER"
    PRESERVE_ORDER_UNLESS_ALIASES = "PRESERVE_ORDER_UNLESS_ALIASES"
    GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES = "GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES"


def clone_view(
    tensor: Tensor, copies: int, method: TensorCloneMethod, mapping: MappingTable, new_variable: Callable[[tuple[int, ...]], Tensor]
) -> Tensor:
    """A view ``[copies, *shape]`` of a new variable, which `new_variable` makes for a shape, ordered as `method` says.

    Each copy is mapped like the original, as far as that is.
    """
    if not hasattr(copies, "__index__") or copies < 0:
        raise PoplarTypeError(f"the number of clones of {tensor._described()} is a whole number of at least 0, got {copies!r}")
    if not isinstance(method, TensorCloneMethod):
        raise PoplarTypeError(
            f"the method of cloning {tensor._described()} is a TensorCloneMethod"
            f" such as TensorCloneMethod.CREATE_NEW_ORDER, got {method!r}"
        )
    shape = tensor._shape
    keeps_aliases = method.name.endswith("AND_ALIASES")
    gathers = method is TensorCloneMethod.GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES
    if method is TensorCloneMethod.CREATE_NEW_ORDER or (not keeps_aliases and tensor.containsAliases()):
        clone = new_variable((copies, *shape))
    elif copies and not gathers and _is_stretch(tensor):
        return _stretch(tensor, copies, mapping, new_variable)
    elif not gathers and _is_distinct(tensor):
        clone = _compacted(tensor, copies, new_variable)
    elif not gathers and copies:
        return _in_order(tensor, copies, mapping, new_variable)
    else:
        clone = _gathered(tensor, copies, mapping, new_variable) if gathers else new_variable((0, *shape))
    begin, end, tile = mapping.pieces_of(tensor)
    for copy in range(copies):
        mapping.place_pieces(clone[copy].flatten(), begin, end, tile)
    return clone


def _is_stretch(tensor: Tensor) -> bool:
    """Whether the elements are a stretch of memory without gaps, in which each of them is once."""
    box = tensor._whole_box()
    if box is not None and box.surely_distinct():
        low, high = box.bounds()
        return high - low == prod(tensor._shape)
    runs = tensor._run_list()
    return len(runs) > 0 and runs.is_stretch()


def _stretch(tensor: Tensor, copies: int, mapping: MappingTable, new_variable: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
    """The clone of a stretch of memory: other stretches seen through the same view, and mapped as it is."""
    box, runs = tensor._whole_box(), None
    if box is not None:
        low, high = box.bounds()
    else:
        runs = tensor._run_list()
        low, high = runs.bounds()
    variable = new_variable((copies, high - low))
    first = [variable._offset + copy * (high - low) for copy in range(copies)]
    for begin in first:
        mapping.repeat(low, high, begin)
    if copies == 1:
        mapping.repeat_layout(low, high, variable)
    shape = (copies, *tensor._shape)
    if box is not None:
        axes = ((copies, high - low),) if copies > 1 else ()
        return variable._boxed(Box(first[0] + box.offset - low, (axes, *box.dimensions)))
    assert runs is not None
    if copies == 1 and tensor._boxes is not None:
        return variable._of_boxes(tensor._boxes.moved(first[0] - low), shape)
    if copies == 1:
        return variable._scattered(runs.moved(first[0] - low), shape)
    start = np.concatenate([runs.start - low + begin for begin in first])
    return variable._scattered(RunList(start, np.tile(runs.count, copies), np.tile(runs.step, copies)), shape)


def _is_distinct(tensor: Tensor) -> bool:
    if tensor._strides is not None:
        return strides.surely_distinct(tensor._shape, tensor._strides)
    return tensor._box is not None and tensor._box.surely_distinct()


def _compacted(tensor: Tensor, copies: int, new_variable: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
    """The clone of a strided tensor or a box without aliases."""
    if tensor._strides is None:
        assert tensor._box is not None
        elements = prod(tensor._shape)
        variable = new_variable((copies, elements))
        own = tensor._box.compacted()
        axes = ((copies, elements),) if copies > 1 else ()
        return variable._boxed(Box(variable._offset + own.offset, (axes, *own.dimensions)))
    offset, steps = strides.compacted(tensor._shape, tensor._strides)
    elements = prod(tensor._shape)
    if steps == strides.row_major(tensor._shape):
        return new_variable((copies, *tensor._shape))
    variable = new_variable((copies, elements))
    return variable._strided(variable._offset + offset, (copies, *tensor._shape), (elements, *steps))


def _in_order(tensor: Tensor, copies: int, mapping: MappingTable, new_variable: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
    """The clone of any tensor: its distinct elements in the order of their ids, on their tiles."""
    numbers, runs = np.array(tensor.variable_numbers(), np.int64), tensor._run_list()
    first, behind = (tensor._bounds()[one] for one in (numbers, numbers + 1))
    gap = first - offsets(behind - first)[:-1]  # what ids are lowered by where these variables alone lie side by side

    def closed(ids: Int64s) -> Int64s:
        return ids - gap[np.searchsorted(first, ids, "right") - 1] if len(ids) else ids

    runs = RunList(closed(runs.start), runs.count, runs.step)
    begin, end, tile = mapping.pieces_of_variables(tensor)
    begin, length = closed(begin), end - begin
    end = begin + length
    whole = int((behind - first).sum())
    if copies == 1 and runs.elements() == whole and runs.surely_distinct():  # all of the variables, in another order
        variable = new_variable((1, whole))
        mapping.append(begin + variable._offset, end + variable._offset, tile)
        return variable._scattered(join([runs.moved(variable._offset)], variable._bounds()), (1, *tensor._shape))
    ids = runs.ids()
    before = _seen_before(ids, whole)
    if before is None:
        seen, place = np.unique(ids, return_inverse=True)
        count, begin, end = len(seen), np.searchsorted(seen, begin), np.searchsorted(seen, end)
    else:
        place, count, begin, end = before[ids], int(before[-1]), before[begin], before[end]
    variable = new_variable((copies, count))
    starts = variable._offset + np.arange(copies) * count
    for start in starts.tolist():
        mapping.append(begin + start, end + start, tile)
    return variable._of_ids(place.reshape(1, *tensor._shape) + starts.reshape(-1, *[1] * tensor.rank()))


def _seen_before(ids: Int64s, behind: int) -> Int64s | None:
    """How many distinct ids there are before each number up to `behind`; None where they are sparse: sorting takes less memory."""
    if behind > _SPARSE * len(ids):
        return None
    seen = np.zeros(behind, bool)
    seen[ids] = True
    return offsets(seen)


def _gathered(tensor: Tensor, copies: int, mapping: MappingTable, new_variable: Callable[[tuple[int, ...]], Tensor]) -> Tensor:
    """The clone of any tensor: its distinct elements by tile, those of a tile in the order of their ids."""
    ids, place = np.unique(tensor._ids().reshape(-1), return_inverse=True)
    begin, end, on = mapping.pieces_of(tensor)
    tile = np.full(len(ids), -1, np.int64)
    tile[place.reshape(-1)[np.repeat(begin, end - begin) + group_positions(end - begin)]] = np.repeat(on, end - begin)
    order = np.argsort(tile, kind="stable")
    place = np.argsort(order, kind="stable")[place]
    variable = new_variable((copies, len(ids)))
    whole = place.reshape(1, *tensor._shape) + variable._offset + np.arange(copies).reshape(-1, *[1] * tensor.rank()) * len(ids)
    return variable._of_ids(whole)
