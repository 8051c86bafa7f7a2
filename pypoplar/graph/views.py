"""The free functions on tensors: `concat`, `append` and `stack`, and `concat_slices`, which takes many slices at once."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from pypoplar.arrays.box_lists import MOST_BOXES, BoxList, PlacedBox, beside
from pypoplar.arrays.boxes import Box
from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.element_runs import RunList, interleaved, join
from pypoplar.braces import TENSORS, ordered
from pypoplar.errors import PoplarIndexError, PoplarTypeError, TensorShapeError
from pypoplar.graph.tensor import Tensor
from pypoplar.tracebacks import public

FEW_RUNS = 64  # of a view, which are as quickly looked through as boxes


@public
def concat(tensors: Tensor | Iterable[Tensor], *more: Tensor | int, dimension: int = 0) -> Tensor:
    """The tensors joined along a dimension: ``concat([a, b, c], 1)`` or ``concat(a, b, 1)``; the other dimensions must agree.

    Parameters
    ----------
    tensors:
        A list of tensors, or the first of them.
    more:
        Further tensors, and at the end the dimension, if it is not named.
    dimension:
        Where they are joined; negative numbers count from the end.

    Returns
    -------
    Tensor
        A view of the same elements; nothing is copied.

    Raises
    ------
    TensorShapeError
        If there is no tensor, or if other sizes differ; the message names the first tensor that does not fit.
    PoplarTypeError
        If element types or graphs differ.
    PoplarIndexError
        If the tensors have no such dimension.

    Examples
    --------
    >>> from pypoplar import FLOAT, Graph, IPUModel, concat
    >>> graph = Graph(IPUModel("tiny").createDevice())
    >>> a, b = graph.addVariable(FLOAT, [2, 3]), graph.addVariable(FLOAT, [2, 5])
    >>> concat([a, b], 1).shape()
    [2, 8]
    """
    several, dimension = _listed("concat", tensors, more, dimension)
    first = several[0]
    axis = first._dimension(dimension)
    for tensor in several[1:]:
        if tensor.rank() != first.rank() or any(tensor._shape[d] != first._shape[d] for d in range(first.rank()) if d != axis):
            raise TensorShapeError(
                f"cannot concatenate {first._described()} and {tensor._described()} along dimension {axis}: other sizes differ"
            )
    shape = (*first._shape[:axis], sum(tensor._shape[axis] for tensor in several), *first._shape[axis + 1 :])
    if len(several) == 1:
        return first
    rows = prod(shape[:axis])
    if rows == 1:
        runs = join([tensor._run_list() for tensor in several], first._bounds())
    elif prod(shape) == 0:
        return first._of_ids(np.zeros(shape, np.int64))
    else:
        runs = interleaved([tensor._run_list() for tensor in several], rows, first._bounds())
    joined = first._scattered(runs, shape)
    boxes = _boxes_beside(several, rows) if joined._runs is not None and len(runs) > FEW_RUNS else None
    return joined if boxes is None else first._of_boxes(boxes.knowing(runs), shape)


def _boxes_beside(tensors: list[Tensor], rows: int) -> BoxList | None:
    """Tensors of as many rows each, whose rows follow each other in turn, as boxes; None if they are too many."""
    views: list[tuple[list[PlacedBox], int]] = []
    left = MOST_BOXES
    for tensor in tensors:
        if (elements := prod(tensor._shape)) == 0:
            continue
        boxes = _placed_boxes(tensor, left)
        if boxes is None:
            return None
        views.append((boxes, elements // rows))
        left -= len(boxes)
    boxes = beside(views)
    return None if boxes is None else BoxList.made(boxes, tensors[0]._bounds())


def _placed_boxes(tensor: Tensor, most: int) -> list[PlacedBox] | None:
    """The boxes of a tensor, a run at least each; None if they are more than so many."""
    if tensor._boxes is not None:
        return list(tensor._boxes.boxes) if len(tensor._boxes.boxes) <= most else None
    box = tensor._whole_box()
    if box is not None:
        return [PlacedBox.of(0, box)] if most else None
    runs = tensor._run_list()
    if len(runs) > most:
        return None
    columns = (column.tolist() for column in (runs.first[:-1], runs.start, runs.count, runs.step))
    return [PlacedBox.of(place, Box.strided(start, (count,), (step,))) for place, start, count, step in zip(*columns, strict=True)]


@public
def append(first: Tensor, second: Tensor, dimension: int = 0) -> Tensor:
    """`second` joined to `first` as one more element of a dimension, which `second` does not have: a row to a matrix.

    Parameters
    ----------
    first:
        A tensor of rank n.
    second:
        A tensor of rank n - 1.
    dimension:
        The dimension of `first` that grows by one, from 0.

    Returns
    -------
    Tensor
        A view of the same elements; nothing is copied.

    Raises
    ------
    TensorShapeError
        If the rank of `second` is not one less, or if other sizes differ.
    PoplarTypeError
        If element types or graphs differ.
    PoplarIndexError
        If `first` has no such dimension.
    """
    if second.rank() != first.rank() - 1:
        raise TensorShapeError(
            f"append needs a tensor of rank {first.rank() - 1} to go with {first._described()}, got {second._described()}"
        )
    return concat(first, second.expand([dimension]), dimension)


@public
def stack(tensors: Iterable[Tensor], dimension: int = 0) -> Tensor:
    """Tensors of equal shape joined along a new dimension.

    Parameters
    ----------
    tensors:
        At least one tensor.
    dimension:
        The place of the new dimension in the result, from 0; its size is the number of tensors.

    Returns
    -------
    Tensor
        A view of the same elements; nothing is copied.

    Raises
    ------
    TensorShapeError
        If the shapes differ, or if there is no tensor.
    PoplarTypeError
        If element types or graphs differ.
    PoplarIndexError
        If the result cannot have such a dimension.
    """
    several, _ = _listed("stack", tensors, (), 0)
    for tensor in several[1:]:
        if tensor._shape != several[0]._shape:
            raise TensorShapeError(f"cannot stack {several[0]._described()} and {tensor._described()}: the shapes differ")
    return concat([tensor.expand([dimension]) for tensor in several], dimension)


def _listed(
    asked: str, tensors: Tensor | Iterable[Tensor], more: tuple[Tensor | int, ...], dimension: int
) -> tuple[list[Tensor], int]:
    if more and not isinstance(more[-1], Tensor):
        dimension = more[-1]
        more = more[:-1]
    several = [tensors] if isinstance(tensors, Tensor) else list(ordered(tensors, f"the tensors of {asked}", TENSORS))
    for extra in more:
        ordered(extra, f"a tensor of {asked}", TENSORS)
        if isinstance(extra, Tensor):
            several.append(extra)
    if not several:
        raise TensorShapeError(f"{asked} needs at least one tensor")
    for tensor in several:
        if not isinstance(tensor, Tensor):
            raise PoplarTypeError(f"{asked} needs tensors, got {tensor!r}")
        if tensor._variables is not several[0]._variables:
            raise PoplarTypeError(
                f"{asked} needs tensors of one graph; {tensor._described()} is of another than {several[0]._described()}"
            )
        if tensor._type is not several[0]._type:
            raise PoplarTypeError(f"{asked} needs one element type: {tensor._described()} against {several[0]._described()}")
    return several, dimension


@public
def concat_slices(tensor: Tensor, begin: Int64s, end: Int64s) -> Tensor:
    """The slices ``[begin[i], end[i])`` of dimension 0, one after the other, as one tensor (not part of Poplar).

    It has the elements of ``concat(tensor.slices(intervals))``, without a tensor for each slice; slices may be empty, overlap and
    repeat, and there may be none. `PoplarIndexError` names the first that is not within the dimension.
    """
    low, high = np.asarray(begin), np.asarray(end)
    if low.ndim != 1 or low.shape != high.shape or not (low.dtype.kind in "iu" and high.dtype.kind in "iu"):
        raise PoplarTypeError(
            f"concat_slices takes two arrays of as many whole numbers, begins and ends, got {begin!r} and {end!r}"
        )
    shape = tensor._shape
    if not shape:
        raise PoplarIndexError(f"concat_slices: {tensor._described()} is a scalar and has no slices")
    wrong = np.flatnonzero((low < 0) | (low > high) | (high > shape[0]))
    if len(wrong):
        bounds = int(low[wrong[0]]), int(high[wrong[0]])
        asked = f"number {wrong[0]}, [{bounds[0]}:{bounds[1]})"
        raise PoplarIndexError(f"concat_slices: {tensor._wrong_part(*bounds, 0, asked)}")
    return tensor._scattered(join([_runs_of_slices(tensor, low, high)], tensor._bounds()), (int((high - low).sum()), *shape[1:]))


def pieces_of_slices(tensor: Tensor, begin: Int64s, end: Int64s) -> Int64s:
    """[slices]: in how many pieces the slices ``[begin[i], end[i])`` of a flat tensor lie in memory."""
    runs, owner = tensor._run_list().cut(begin, end)
    pieces: Int64s = np.bincount(owner, np.where(runs.step == 1, 1, runs.count), len(begin)).astype(np.int64)
    return pieces


def element_numbers(tensor: Tensor) -> Int64s:
    """A number for each element of the flattened tensor: equal ones are of one element."""
    return tensor._run_list().ids()


def _runs_of_slices(tensor: Tensor, begin: Int64s, end: Int64s) -> RunList:
    if tensor._strides is None or len(tensor._shape) > 1:
        inner = prod(tensor._shape[1:])
        return tensor._run_list().cut(begin * inner, end * inner)[0]
    full = end > begin
    begin, count, (step,) = begin[full], (end - begin)[full], tensor._strides
    return RunList(tensor._offset + begin * step, count, np.where(count > 1, step, 1))


def whole_variables(tensor: Tensor) -> list[Tensor]:
    """The variables and constants that a tensor views, each as one flat tensor, in the order of `Tensor.variable_numbers`."""
    variables = tensor._variables
    if variables is None:
        return []
    ends = [variables.first[number : number + 2] for number in tensor.variable_numbers()]
    return [tensor._strided(first, (end - first,), (1,)) for first, end in ends]
