"""`Tensor`: a view of elements of variables, never data.

A tensor is immutable and cheap: most are *strided* (offset, shape and strides in element ids), and making one takes about a
microsecond, so programs may slice a matrix a hundred thousand times. What has several strides a dimension, such as the flattened
view of a transposed matrix, is a `Box`; what is no box, such as most concatenations, is a `RunList` with a shape, or a `BoxList`
where runs are many and boxes few.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from copy import copy
from enum import Enum
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, overload

import numpy as np

from pypoplar.arrays import aliasing as regions
from pypoplar.arrays import strides
from pypoplar.arrays.box_lists import BoxList, PlacedBox
from pypoplar.arrays.boxes import Box
from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.element_runs import RunList, compress, interleaved, join, permuted_rows
from pypoplar.arrays.groups import distinct
from pypoplar.arrays.intervals import Interval, VariableInterval, bounds_of
from pypoplar.braces import INTERVALS, ordered
from pypoplar.errors import PoplarIndexError, PoplarMemoryError, PoplarTypeError, TensorShapeError
from pypoplar.graph.frozen import ElementRuns
from pypoplar.graph.numpy_habits import WithoutValues, listed, refuse_number
from pypoplar.graph.variables import Variables, check_shape
from pypoplar.host_memory import Holdings, shortage
from pypoplar.notebook import ShownInNotebooks
from pypoplar.tracebacks import public, slow_path, swift
from pypoplar.types import FLOAT, ElementType, check_type

if TYPE_CHECKING:
    from pypoplar.graph.graph import Graph

Shape = tuple[int, ...]
_new = object.__new__


class UpsampleMethod(Enum):
    """How `Tensor.upsample` fills the new indices of a dimension.

    Attributes
    ----------
    REPEAT:
        With the index that they stand for.
    """

    REPEAT = "REPEAT"


def _index_hint(value: object) -> str:
    """What there is for an index that is no whole number."""
    if value is None:
        return "; use expand([dimension]) for a new dimension"
    if isinstance(value, list | np.ndarray):
        return "; concat([t[i:i + 1] for i in ...]) has rows that are known now; popops.multiSlice takes a tensor of indices"
    if isinstance(value, Tensor):
        return "; popops.multiSlice and popops.dynamicSlice take what a tensor of indices says"
    if inspect.isroutine(value):
        return f"; call it: {value.__name__}()"
    return ""


@public
class Tensor(WithoutValues, ShownInNotebooks):
    """A view of elements of a graph's variables and constants, with a shape and an element type.

    Every method that returns a tensor returns another view of the same elements. `shape()`, `dim(i)` and `rank()` are calls, as in
    Poplar; indexing, `len` and iteration follow Python, except that slices beyond the end raise `PoplarIndexError`.
    ``Tensor()`` is the null tensor: no elements, no graph, ``valid()`` is False.

    Examples
    --------
    >>> from pypoplar import INT, Graph, IPUModel, concat
    >>> graph = Graph(IPUModel("tiny").createDevice())
    >>> m = graph.addConstant(INT, [2, 3], [[1, 2, 3], [4, 5, 6]])
    >>> views = m[1], m[:, 1:], m.transpose(), m.reshape([3, 2]), m[0].broadcast(2, 0), m[0].upsample(2, 0), m.subSample(2, 1)
    >>> for view in views:
    ...     print(graph.getConstantValue(view).tolist())
    [4, 5, 6]
    [[2, 3], [5, 6]]
    [[1, 4], [2, 5], [3, 6]]
    [[1, 2], [3, 4], [5, 6]]
    [1, 2, 3, 1, 2, 3]
    [1, 1, 2, 2, 3, 3]
    [[1, 3], [4, 6]]
    """

    __slots__ = ("_box", "_boxes", "_offset", "_runs", "_shape", "_strides", "_type", "_variables")

    _variables: Variables | None
    _type: ElementType
    _offset: int  # of a strided tensor
    _shape: Shape
    _strides: Shape | None  # None: see _box, _boxes and _runs, one of which is there then
    _box: Box | None
    _boxes: BoxList | None
    _runs: RunList | None

    def __init__(self) -> None:
        self._variables = None
        self._type = FLOAT
        self._offset = 0
        self._shape = (0,)
        self._strides = (1,)
        self._box = None
        self._boxes = None
        self._runs = None

    # -- making views ---------------------------------------------------------------------------------------------------------

    def _strided(self, offset: int, shape: Shape, steps: Shape) -> Tensor:
        view = _new(Tensor)
        view._variables = self._variables
        view._type = self._type
        view._offset = offset
        view._shape = shape
        view._strides = steps
        view._box = None
        view._boxes = None
        view._runs = None
        return view

    def _boxed(self, box: Box) -> Tensor:
        """A view of a box of one variable, strided where it can be."""
        shape, steps = box.shape, box.strides()
        if steps is not None:
            return self._strided(box.offset, shape, steps)
        view = self._strided(box.offset, shape, ())
        view._strides = None
        view._box = box
        return view

    def _of_boxes(self, boxes: BoxList, shape: Shape) -> Tensor:
        """A view of a list of boxes, strided or one box where that does."""
        whole = boxes.whole()
        if whole is not None and (shaped := whole.reshaped(shape)) is not None:
            return self._boxed(shaped)
        view = self._strided(0, shape, ())
        view._strides = None
        view._boxes = boxes
        return view

    def _joined(self, boxes: list[PlacedBox] | None, shape: Shape) -> Tensor | None:
        """A view of boxes, if these are few."""
        made = None if boxes is None else BoxList.made(boxes, self._bounds())
        return None if made is None else self._of_boxes(made, shape)

    def _whole_box(self) -> Box | None:
        """The view as a box; None of run lists and of no elements."""
        if self._strides is None:
            return self._box
        return Box.strided(self._offset, self._shape, self._strides) if prod(self._shape) else None

    def _regular(self, shape: Shape, form: tuple[int, Shape] | None, find_box: Callable[[], Box | None]) -> Tensor | None:
        """A strided view of a form that was found; else one of a box, if there is one that has the shape."""
        if form is not None:
            return self._strided(form[0], shape, form[1])
        box = find_box()
        shaped = None if box is None else box.reshaped(shape)
        return None if shaped is None else self._boxed(shaped)

    def _scattered(self, runs: RunList, shape: Shape) -> Tensor:
        """A view of `runs`, strided or a box where equal runs allow it."""
        bounds = self._bounds()
        regular = self._regular(shape, regions.strided_form(runs, shape, bounds), partial(regions.box_of, runs, bounds))
        if regular is not None:
            return regular
        view = self._strided(0, shape, ())
        view._strides = None
        view._runs = runs
        return view

    def _of_ids(self, ids: Int64s) -> Tensor:
        """A view of the element ids, in the shape of the array."""
        bounds = self._bounds()
        regular = self._regular(ids.shape, regions.strided_form_of_ids(ids, bounds), partial(regions.box_of_ids, ids, bounds))
        return self._scattered(compress(ids, bounds), ids.shape) if regular is None else regular

    def _of_long_runs(self, runs: RunList, shape: Shape) -> Tensor:
        """What `_of_ids` gives of the elements of runs of step 1 that `compress` finds, all of two elements at least."""
        bounds = self._bounds()
        form = regions.strided_form_of_long_runs(runs, shape, bounds)
        regular = self._regular(shape, form, partial(regions.box_of_long_runs, runs, bounds))
        return self._scattered(runs, shape) if regular is None else regular

    def _moved(self, by: int, type: ElementType) -> Tensor:
        """The same view of elements of a type that lie so much further on."""
        view = copy(self)
        view._type = type
        view._offset += by
        view._box = None if self._box is None else Box(self._box.offset + by, self._box.dimensions)
        view._boxes = None if self._boxes is None else self._boxes.moved(by)
        view._runs = None if self._runs is None else self._runs.moved(by)
        return view

    def _ids(self) -> Int64s:
        """The element ids as an array of the tensor's shape; not to be written to."""
        if self._strides is not None:
            return strides.element_ids(self._offset, self._shape, self._strides)
        if self._box is not None:
            return self._box.ids()
        if self._boxes is not None:
            return self._boxes.ids().reshape(self._shape)
        return self._run_list().ids().reshape(self._shape)

    def _run_list(self) -> RunList:
        if self._runs is not None:
            return self._runs
        if self._box is not None:
            return RunList(*self._box.runs())
        if self._boxes is not None:
            return self._boxes.runs(self._bounds())
        assert self._strides is not None
        return RunList(*strides.runs(self._offset, self._shape, self._strides))

    def _memory_shortage(self, error: MemoryError) -> PoplarMemoryError:
        """What `Graph._memory_shortage` gives (not part of Poplar)."""
        return shortage(error, partial(Holdings, ())) if self._variables is None else self._variables.graph._memory_shortage(error)

    def _bounds(self) -> Int64s:
        return self._variables.bounds() if self._variables is not None else np.zeros(1, np.int64)

    # -- geometry -------------------------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph that has the tensor's variables (the outermost one, if it was made in a virtual graph)."""
        if self._variables is None:
            raise PoplarTypeError("the null tensor belongs to no graph")
        return self._variables.graph

    def elementType(self) -> ElementType:
        """The element type; a reinterpreted view has another than its variable."""
        return self._type

    def shape(self) -> list[int]:
        """The size of each dimension; ``[]`` for a scalar."""
        return list(self._shape)

    def rank(self) -> int:
        """The number of dimensions of the tensor; 0 for a scalar."""
        return len(self._shape)

    def dim(self, dimension: int) -> int:
        """The size of one dimension.

        Parameters
        ----------
        dimension:
            Its number; negative ones count from the end.

        Returns
        -------
        int
            Elements along it.

        Raises
        ------
        PoplarIndexError
            If the tensor has no such dimension.
        """
        return self._shape[self._dimension(dimension)]

    def numElements(self) -> int:
        """The product of the shape: 1 for a scalar."""
        return prod(self._shape)

    def valid(self) -> bool:
        """Whether it is a tensor of a graph: False for the null tensor ``Tensor()`` only."""
        return self._variables is not None

    def runs(self) -> ElementRuns:
        """The element ids in flattened order, as the compiler reads them (not part of Poplar)."""
        if self._strides is not None:
            return ElementRuns(*strides.runs(self._offset, self._shape, self._strides))
        runs = self._run_list()
        return ElementRuns(runs.start, runs.count, runs.step)

    def single_run(self) -> tuple[int, int, int] | None:
        """Start, count and step of a view that is known to be one run, as `runs` has them (not part of Poplar)."""
        if self._strides is None or len(self._shape) > 1:
            return None
        count = self._shape[0] if self._shape else 1
        if count > 1:
            return self._offset, count, self._strides[0]
        return (self._offset, 1, 1) if count else None

    # -- elements and slices --------------------------------------------------------------------------------------------------

    @swift
    def __getitem__(self, key: Any) -> Tensor:
        """``t[2]`` drops dimension 0, ``t[1:3]`` keeps it, ``t[1, :, 2:4]`` goes over dimensions; ``t[-1]`` is the last."""
        shape = self._shape
        steps = self._strides
        if key.__class__ is int and shape and steps is not None:
            extent = shape[0]
            if key < 0:
                key += extent
            if 0 <= key < extent:
                return self._strided(self._offset + key * steps[0], shape[1:], steps[1:])
            key -= extent if key < 0 else 0
        return self._subscript(key)

    @slow_path
    def _subscript(self, key: Any) -> Tensor:
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(key is Ellipsis for key in keys):
            place = next(place for place, key in enumerate(keys) if key is Ellipsis)
            keys[place : place + 1] = [slice(None)] * (len(self._shape) - len(keys) + 1)
        if len(keys) > len(self._shape):
            raise PoplarIndexError(f"{len(keys)} indices for {self._described()} of rank {len(self._shape)}")
        result = self
        dimension = 0
        for key in keys:
            extent = result._shape[dimension]
            if isinstance(key, slice):
                if key.step not in (None, 1):
                    raise PoplarIndexError("a tensor slice has step 1; use subSample(stride, dimension) or reverse(dimension)")
                begin = 0 if key.start is None else self._whole(key.start)
                end = extent if key.stop is None else self._whole(key.stop)
                result = result._part(begin + extent * (begin < 0), end + extent * (end < 0), dimension, f"[{begin}:{end}]")
                dimension += 1
            else:
                index = self._whole(key)
                if not -extent <= index < extent:
                    raise PoplarIndexError(f"index {index} is out of range for dimension of size {extent} of {self._described()}")
                part = result._part(index % extent, index % extent + 1, dimension, "")
                result = part._with_shape(part._shape[:dimension] + part._shape[dimension + 1 :])
        return result

    def _whole(self, value: Any, wanted: str = "a tensor is indexed by whole numbers and slices") -> int:
        try:
            if value.__class__ is not bool:
                return operator.index(value)
            raise TypeError
        except TypeError:
            ordered(value, f"an index of {self._described()}")
            raise PoplarTypeError(f"{wanted}, got {value!r}{_index_hint(value)}") from None

    def _part(self, begin: int, end: int, dimension: int, asked: str) -> Tensor:
        """``[begin, end)`` of one dimension; `asked` is how the user wrote it."""
        shape = self._shape
        if not 0 <= begin <= end <= shape[dimension]:
            raise PoplarIndexError(self._wrong_part(begin, end, dimension, asked or f"[{begin}:{end})"))
        cut = (*shape[:dimension], end - begin, *shape[dimension + 1 :])
        if self._strides is not None:
            return self._strided(self._offset + begin * self._strides[dimension], cut, self._strides)
        if self._box is not None and begin < end and (part := self._box.part(dimension, begin, end)) is not None:
            return self._boxed(part)
        if self._boxes is not None and (cut_out := self._joined(self._boxes.part(shape, dimension, begin, end), cut)) is not None:
            return cut_out
        outer, inner = prod(shape[:dimension]), prod(shape[dimension + 1 :])
        if outer == 1:
            return self._scattered(self._run_list().part(begin * inner, end * inner), cut)
        if prod(cut) == 0:
            return self._strided(0, cut, strides.row_major(cut))
        rows = np.arange(outer) * (shape[dimension] * inner)
        return self._scattered(join([self._run_list().cut(rows + begin * inner, rows + end * inner)[0]], self._bounds()), cut)

    def _wrong_part(self, begin: int, end: int, dimension: int, asked: str) -> str:
        what = f"is out of range for dimension {dimension} of size {self._shape[dimension]} of {self._described()}"
        if begin > end:
            what = f"of {self._described()} begins after its end in dimension {dimension}: the begin comes first, as in slice(2, 5)"
        return f"slice {asked} {what}"

    @overload
    def slice(self, begin: int, end: int, dimension: int = 0) -> Tensor: ...
    @overload
    def slice(self, begin: SequenceOf[int], end: SequenceOf[int], dimension: int | SequenceOf[int] = 0) -> Tensor: ...
    @overload
    def slice(self, begin: Interval, end: int | None = None, dimension: int = 0) -> Tensor: ...
    @swift
    def slice(self, begin: Any, end: Any = None, dimension: int | SequenceOf[int] = 0) -> Tensor:
        """The half-open range ``[begin, end)`` of a dimension, or of several.

        ``slice(1, 3)``, ``slice(1, 3, dimension)``, ``slice([1, 1], [2, 4])`` for dimensions 0 and 1, ``slice([1, 1], [2, 4],
        [0, 2])`` for those named, ``slice(Interval(1, 3), dimension)``.

        Parameters
        ----------
        begin:
            The first index, one for each dimension, or an `Interval`.
        end:
            The index behind the last; after an `Interval` the dimension.
        dimension:
            The dimension, or a list of them; negative numbers count from the end.

        Returns
        -------
        Tensor
            A view of the same rank.

        Raises
        ------
        PoplarIndexError
            If the range goes beyond the end or begins after it, or if there is no such dimension.
        TensorShapeError
            If there are not as many begins as ends and dimensions.
        PoplarTypeError
            If an index is no whole number.
        """
        shape, steps = self._shape, self._strides
        plain = begin.__class__ is int and end.__class__ is int and dimension == 0
        if plain and len(shape) == 1 and steps is not None and 0 <= begin <= end <= shape[0]:
            return self._strided(self._offset + begin * steps[0], (end - begin,), steps)
        if begin.__class__ is list and end.__class__ is list and steps is not None and dimension.__class__ is int:
            cut = self._cut(steps, begin, end)
            if cut is not None:
                return cut
        return self._sliced(begin, end, dimension)

    def _cut(self, steps: Shape, begins: list[int], ends: list[int]) -> Tensor | None:
        """A strided view cut in its first dimensions; None where that is not as usual."""
        if not len(begins) == len(ends) <= len(self._shape):
            return None
        offset, shape = self._offset, list(self._shape)
        for dimension, begin in enumerate(begins):
            end = ends[dimension]
            if begin.__class__ is not int or end.__class__ is not int or not 0 <= begin <= end <= shape[dimension]:
                return None
            offset += begin * steps[dimension]
            shape[dimension] = end - begin
        return self._strided(offset, tuple(shape), steps)

    @slow_path
    def _sliced(self, begin: Any, end: Any, dimension: int | SequenceOf[int]) -> Tensor:
        if isinstance(begin, Interval):
            dimension = dimension if end is None else end
            begin, end = begin
        if end is None:
            raise PoplarTypeError(f"slice takes begin and end, or an Interval, got {begin!r} alone")
        if not isinstance(begin, Iterable) or isinstance(begin, str):
            return self._part(self._whole(begin), self._whole(end), self._dimension(dimension), "")
        begins, ends = list(ordered(begin, "the begin of a slice")), list(ordered(end, "the end of a slice"))
        dimensions = range(len(begins)) if isinstance(dimension, int) else list(ordered(dimension, "the dimensions of a slice"))
        if not len(begins) == len(ends) == len(dimensions) <= len(self._shape):
            raise TensorShapeError(
                f"slice of {self._described()} with {len(begins)} begins, {len(ends)} ends and {len(dimensions)} dimensions"
            )
        result = self
        for begin, end, dimension in zip(begins, ends, dimensions, strict=True):
            result = result._part(self._whole(begin), self._whole(end), self._dimension(dimension), "")
        return result

    def slices(self, intervals: Iterable[Interval | tuple[int, int] | SupportsIndex], dimension: int = 0) -> list[Tensor]:
        """One slice per interval, ``(begin, end)`` pair or index (a slice of size 1), along a dimension.

        Parameters
        ----------
        intervals:
            Intervals, pairs or indices of the dimension.
        dimension:
            The dimension; negative numbers count from the end.

        Returns
        -------
        list[Tensor]
            Views of the same rank, in the order of `intervals`.

        Raises
        ------
        PoplarIndexError
            If one goes beyond the end.
        """
        bounds = [
            (int(each), int(each) + 1) if isinstance(each, int | np.integer) else bounds_of(each, "an interval of slices")
            for each in listed("slices", ordered(intervals, "the intervals of slices", INTERVALS))
        ]
        return [self.slice(begin, end, dimension) for begin, end in bounds]

    def index(self, indices: SequenceOf[int], *more: NoReturn) -> Tensor:
        """The sub-tensor at these indices of the leading dimensions: ``t.index([1, 2])`` is ``t[1][2]``.

        Parameters
        ----------
        indices:
            An index for each of the first dimensions; negative ones count from the end.
        more:
            Nothing; Poplar takes one list.

        Returns
        -------
        Tensor
            A view without those dimensions.

        Raises
        ------
        PoplarIndexError
            If an index is beyond the end, or if there are more of them than dimensions.
        """
        return self._subscript(tuple(self._whole(index) for index in listed("index", indices, more)))

    def subSample(self, stride: int, dimension: int = 0) -> Tensor:
        """Every `stride`-th element of a dimension, beginning with the first.

        Parameters
        ----------
        stride:
            At least 1.
        dimension:
            The dimension; negative numbers count from the end.

        Returns
        -------
        Tensor
            A view whose size there is divided by the stride, rounded up.

        Raises
        ------
        TensorShapeError
            If the stride is less than 1.
        PoplarIndexError
            If there is no such dimension.
        """
        axis = self._dimension(dimension)
        if self._whole(stride, "a stride is a whole number") < 1:
            raise TensorShapeError(f"subSample of {self._described()} needs a stride of at least 1, got {stride}")
        if self._box is not None and (part := self._box.every(axis, stride)) is not None:
            return self._boxed(part)
        if self._boxes is not None:
            sampled = (*self._shape[:axis], -(-self._shape[axis] // stride), *self._shape[axis + 1 :])
            if (view := self._joined(self._boxes.every(self._shape, axis, stride), sampled)) is not None:
                return view
        if self._strides is None:
            return self._of_ids(self._ids()[(slice(None),) * axis + (slice(None, None, stride),)])
        shape = (*self._shape[:axis], -(-self._shape[axis] // stride), *self._shape[axis + 1 :])
        return self._strided(self._offset, shape, (*self._strides[:axis], self._strides[axis] * stride, *self._strides[axis + 1 :]))

    def reverse(self, dimension: int = 0) -> Tensor:
        """One dimension in reverse order, the last index first.

        Parameters
        ----------
        dimension:
            The dimension; negative numbers count from the end.

        Returns
        -------
        Tensor
            A view of the same shape.

        Raises
        ------
        PoplarIndexError
            If there is no such dimension.
        """
        axis = self._dimension(dimension)
        if self._box is not None:
            return self._boxed(self._box.reversed(axis))
        if self._boxes is not None and (view := self._joined(self._boxes.reversed(self._shape, axis), self._shape)) is not None:
            return view
        if self._strides is None or self._shape[axis] == 0:
            return self._of_ids(np.flip(self._ids(), axis))
        step = self._strides[axis]
        turned = (*self._strides[:axis], -step, *self._strides[axis + 1 :])
        return self._strided(self._offset + (self._shape[axis] - 1) * step, self._shape, turned)

    # -- shapes ---------------------------------------------------------------------------------------------------------------

    def _with_shape(self, shape: Shape) -> Tensor:
        """The same elements in the same order under a shape with as many elements."""
        if self._strides is not None:
            steps = strides.reshape(self._shape, self._strides, shape)
            if steps is not None:
                return self._strided(self._offset, shape, steps)
        box = self._whole_box()
        if box is not None and (shaped := box.reshaped(shape)) is not None:
            return self._boxed(shaped)
        if self._boxes is not None:
            return self._of_boxes(self._boxes, shape)
        return self._scattered(self._run_list(), shape)

    def reshape(self, shape: int | Iterable[int], *more: NoReturn) -> Tensor:
        """The same elements in another shape; one size may be -1 and is then found from the others.

        Parameters
        ----------
        shape:
            The size of each dimension of the result.
        more:
            Nothing; Poplar takes one list.

        Returns
        -------
        Tensor
            A view with the elements in the same row-major order.

        Raises
        ------
        TensorShapeError
            If the shape has another number of elements.
        PoplarTypeError
            If the shape is no list of whole numbers.
        """
        sizes = listed("reshape", shape, more) if more or isinstance(shape, Iterable) else [shape]
        if sizes.count(-1) == 1:
            known = -prod(sizes)
            sizes[sizes.index(-1)] = self.numElements() // known if known else 0
        wanted = check_shape(sizes)
        if prod(wanted) != prod(self._shape):
            raise TensorShapeError(f"cannot reshape {self._described()} of {self.numElements()} elements to {list(wanted)}")
        return self._with_shape(wanted)

    def flatten(self, begin: int = 0, end: int | None = None) -> Tensor:
        """All dimensions, or those in ``[begin, end)``, as one.

        Parameters
        ----------
        begin:
            The first dimension of those that become one.
        end:
            The dimension behind the last; None: ``rank()``.

        Returns
        -------
        Tensor
            A view with the elements in the same row-major order.

        Raises
        ------
        PoplarIndexError
            If there are no such dimensions.
        """
        if begin == 0 and end is None:
            return self if len(self._shape) == 1 else self._with_shape((prod(self._shape),))
        begin, end = self._dimension_range(begin, len(self._shape) if end is None else end)
        return self.reshapePartial(begin, end, [prod(self._shape[begin:end])])

    def reshapePartial(self, begin: int, end: int, shape: int | Iterable[int]) -> Tensor:
        """Dimensions ``[begin, end)`` in another shape, the others kept.

        Parameters
        ----------
        begin:
            The first dimension that is replaced.
        end:
            The dimension behind the last.
        shape:
            The sizes that stand in their place.

        Returns
        -------
        Tensor
            A view with the elements in the same row-major order.

        Raises
        ------
        TensorShapeError
            If the shape has another number of elements.
        PoplarIndexError
            If there are no such dimensions.
        """
        begin, end = self._dimension_range(begin, end)
        return self.reshape((*self._shape[:begin], *check_shape(shape), *self._shape[end:]))

    def expand(self, dimensions: Iterable[int], *more: NoReturn) -> Tensor:
        """New dimensions of size 1, each before the named dimension of this tensor; ``rank()`` names the end; a name may repeat.

        Parameters
        ----------
        dimensions:
            Numbers of dimensions of this tensor, 0 to ``rank()``.
        more:
            Nothing; Poplar takes one list.

        Returns
        -------
        Tensor
            A view of the rank increased by the number of `dimensions`.

        Raises
        ------
        PoplarIndexError
            If there is no such place.
        """
        rank = len(self._shape)
        places = sorted(self._whole(dimension) for dimension in listed("expand", dimensions, more))
        if any(not 0 <= place <= rank for place in places):
            raise PoplarIndexError(f"expand({places}) of {self._described()}: dimensions go from 0 to {rank}")
        shape = list(self._shape)
        for place in reversed(places):
            shape.insert(place, 1)
        return self._with_shape(tuple(shape))

    def squeeze(self, dimensions: Iterable[int], *more: NoReturn) -> Tensor:
        """The tensor without the named dimensions, which have size 1.

        Parameters
        ----------
        dimensions:
            Numbers of dimensions of this tensor; negative ones count from the end.
        more:
            Nothing; Poplar takes one list.

        Returns
        -------
        Tensor
            A view without them.

        Raises
        ------
        TensorShapeError
            If the size of one is not 1.
        PoplarIndexError
            If there is no such dimension.
        """
        dropped = {self._dimension(dimension) for dimension in listed("squeeze", dimensions, more)}
        for dimension in dropped:
            if self._shape[dimension] != 1:
                raise TensorShapeError(
                    f"cannot squeeze dimension {dimension} of {self._described()}: its size is {self._shape[dimension]}, not 1"
                )
        return self._with_shape(tuple(size for place, size in enumerate(self._shape) if place not in dropped))

    def dimShuffle(self, permutation: Iterable[int], *more: NoReturn) -> Tensor:
        """The dimensions in another order: dimension k of the result is dimension ``permutation[k]`` of this tensor.

        Parameters
        ----------
        permutation:
            Every dimension of this tensor once.
        more:
            Nothing; Poplar takes one list.

        Returns
        -------
        Tensor
            A view of the same elements; nothing moves.

        Raises
        ------
        TensorShapeError
            If it is no permutation of the dimensions.
        """
        order = tuple(self._whole(dimension) for dimension in listed("dimShuffle", permutation, more))
        if sorted(order) != list(range(len(self._shape))):
            raise TensorShapeError(
                f"dimShuffle({list(order)}) of {self._described()} is not a permutation of its {self.rank()} dimensions"
            )
        if self._box is not None:
            return self._boxed(self._box.permuted(order))
        shape = tuple(self._shape[dimension] for dimension in order)
        if self._boxes is not None and (view := self._joined(self._boxes.permuted(self._shape, order), shape)) is not None:
            return view
        if self._strides is not None:
            return self._strided(self._offset, shape, tuple(self._strides[dimension] for dimension in order))
        long = permuted_rows(self._run_list(), self._shape, order, self._bounds())
        return self._of_ids(self._ids().transpose(order)) if long is None else self._of_long_runs(long, shape)

    def dimShufflePartial(self, source: Iterable[int], destination: Iterable[int]) -> Tensor:
        """Dimension ``source[k]`` moved to place ``destination[k]``, for each k; the others keep their order.

        Parameters
        ----------
        source:
            Dimensions of this tensor; negative numbers count from the end.
        destination:
            As many dimensions of the result.

        Returns
        -------
        Tensor
            A view of the same elements; nothing moves.

        Raises
        ------
        TensorShapeError
            If the lists differ in length or name a dimension twice.
        PoplarIndexError
            If there is no such dimension.
        """
        moved = [self._dimension(dimension) for dimension in listed("dimShufflePartial", source)]
        places = [self._dimension(dimension) for dimension in listed("dimShufflePartial", destination)]
        if len(moved) != len(places) or len(set(moved)) != len(moved) or len(set(places)) != len(places):
            raise TensorShapeError(
                f"dimShufflePartial({moved}, {places}) of {self._described()} needs two lists of as many different dimensions"
            )
        order = [dimension for dimension in range(len(self._shape)) if dimension not in moved]
        for place, dimension in sorted(zip(places, moved, strict=True)):
            order.insert(place, dimension)
        return self.dimShuffle(order)

    def dimRoll(self, dimension: int, newIndex: int = 0) -> Tensor:
        """One dimension moved to `newIndex`, the others kept in order.

        Parameters
        ----------
        dimension:
            The dimension to move; negative numbers count from the end.
        newIndex:
            Its number in the result.

        Returns
        -------
        Tensor
            A view of the same elements; nothing moves.

        Raises
        ------
        PoplarIndexError
            If there is no such dimension.
        """
        return self.dimShufflePartial([dimension], [newIndex])

    def transpose(self, *order: NoReturn) -> Tensor:
        """The two dimensions of a matrix swapped: a view of shape [columns, rows].

        Parameters
        ----------
        order:
            Nothing; `dimShuffle` takes an order.

        Returns
        -------
        Tensor
            A view of the same elements; nothing moves.

        Raises
        ------
        TensorShapeError
            If the rank is not 2, or an order is given.
        """
        if order or len(self._shape) != 2:
            raise TensorShapeError(f"transpose needs rank 2 and no order, got {self._described()}; use dimShuffle([1, 0])")
        return self.dimShuffle((1, 0))

    def broadcast(self, times: int, dimension: int = 0) -> Tensor:
        """The tensor repeated along a dimension: ``[a b]`` three times is ``[a b a b a b]``. The view has aliases.

        Parameters
        ----------
        times:
            How often, at least 0.
        dimension:
            The dimension; negative numbers count from the end.

        Returns
        -------
        Tensor
            A view whose size there is `times` as large; nothing can write to it if `times` is above 1.

        Raises
        ------
        TensorShapeError
            If `times` is negative.
        PoplarIndexError
            If there is no such dimension.
        """
        return self._repeated(times, self._dimension(dimension), inner=False, asked="broadcast")

    def upsample(self, scale: int, dimension: int = 0, method: UpsampleMethod = UpsampleMethod.REPEAT) -> Tensor:
        """Each index of a dimension repeated: ``[a b]`` with scale 3 is ``[a a a b b b]``. The view has aliases.

        Parameters
        ----------
        scale:
            How often each index is there, at least 0.
        dimension:
            The dimension; negative numbers count from the end.
        method:
            There is one: `UpsampleMethod.REPEAT`.

        Returns
        -------
        Tensor
            A view whose size there is `scale` times as large; nothing can write to it if `scale` is above 1.

        Raises
        ------
        TensorShapeError
            If `scale` is negative.
        PoplarIndexError
            If there is no such dimension.
        PoplarTypeError
            For another method.
        """
        if method is not UpsampleMethod.REPEAT:
            raise PoplarTypeError(f"upsample takes UpsampleMethod.REPEAT, got {method!r}")
        return self._repeated(scale, self._dimension(dimension), inner=True, asked="upsample")

    def _repeated(self, times: int, axis: int, inner: bool, asked: str) -> Tensor:
        if self._whole(times, f"the count of {asked} is a whole number") < 0:
            raise TensorShapeError(f"{asked} of {self._described()} needs a count of at least 0, got {times}")
        shape = (*self._shape[:axis], self._shape[axis] * times, *self._shape[axis + 1 :])
        if self._strides is not None:
            place, steps = axis + inner, self._strides
            spread = (*self._shape[:place], times, *self._shape[place:])
            return self._strided(self._offset, spread, (*steps[:place], 0, *steps[place:]))._with_shape(shape)
        if prod(shape) == 0:
            return self._of_ids(np.zeros(shape, np.int64))
        if self._box is not None:
            return self._boxed(self._box.repeated(axis, times, inner=inner))
        if self._boxes is not None:
            boxes = self._boxes.repeated(self._shape, axis, times, each=inner)
            if (view := self._joined(boxes, shape)) is not None:
                return view
        rows = prod(self._shape[: axis + inner])
        return self._scattered(interleaved([self._run_list()], rows, self._bounds(), times), shape)

    def reinterpret(self, type: ElementType) -> Tensor:
        """The same bytes read as another type of the same size.

        Parameters
        ----------
        type:
            An element type of as many bytes.

        Returns
        -------
        Tensor
            A view of the same shape; no value is converted.

        Raises
        ------
        PoplarTypeError
            If the sizes of the types differ.
        """
        if check_type(type).size != self._type.size:
            raise PoplarTypeError(
                f"cannot reinterpret {self._described()} as {type!r}: {self._type.size} bytes against {type.size}"
            )
        view = copy(self)
        view._type = type
        return view

    # -- Python ---------------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if not self._shape:
            raise PoplarTypeError(f"{self._described()} is a scalar and has no len()")
        return self._shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return map(self.__getitem__, range(len(self)))

    @public
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return refuse_number(self, other)
        alike = self._variables is other._variables and self._type is other._type and self._shape == other._shape
        return alike and (self._looks_like(other) or bool((self._ids() == other._ids()).all()))

    def _looks_like(self, other: Tensor) -> bool:
        """Whether two views of one shape have one form, and so the same elements; False decides nothing."""
        if self._runs is not None and other._runs is not None:
            mine, theirs = self._runs, other._runs
            return all(map(np.array_equal, (mine.start, mine.count, mine.step), (theirs.start, theirs.count, theirs.step)))
        if self._boxes is not None and other._boxes is not None:
            return self._boxes.boxes == other._boxes.boxes
        own, its = self._whole_box(), other._whole_box()
        return own is not None and own == its

    def __hash__(self) -> int:
        first = int(self._run_list().start[0]) if prod(self._shape) else 0
        return hash((id(self._variables), self._shape, first))

    def __repr__(self) -> str:
        return f"<Tensor {self._described()}>" if self._variables is not None else "Tensor()"

    def _described(self) -> str:
        """``'name' FLOAT [2, 3]``, as messages show a tensor."""
        names = ", ".join(map(repr, self.variable_names()[:3]))
        return f"{names} {self._type!r} {list(self._shape)}".strip()

    # -- what it refers to ----------------------------------------------------------------------------------------------------

    def variable_numbers(self) -> list[int]:
        """The numbers of the variables it views, ascending (not part of Poplar)."""
        if self._variables is None or prod(self._shape) == 0:
            return []
        if self._boxes is not None:
            return sorted({self._variables.number_of(element) for element in self._boxes.first()})
        if self._runs is None:
            return [self._variables.number_of(self._offset)]
        return [int(number) for number in distinct(self._variables.numbers_of(self._runs.start))]

    def variable_names(self) -> list[str]:
        """The names of the variables it views, in the order they were added (not part of Poplar)."""
        return [self._variables.names[number] for number in self.variable_numbers()] if self._variables is not None else []

    def getDebugStr(self) -> str:
        """The names of the variables that the tensor views, with commas between them."""
        return ", ".join(self.variable_names())

    def isContiguous(self) -> bool:
        """Whether the elements follow each other in their variable."""
        return len(self.getContiguousRegions()) <= 1 and len(self.variable_numbers()) <= 1

    @public
    def getContiguousRegions(self) -> list[Interval]:
        """Intervals of the flattened tensor whose elements follow each other in a variable."""
        return regions.contiguous(self._run_list().unit_steps())

    def getVarRegions(self) -> list[VariableInterval]:
        """The pieces of variables, in flattened order, that make up the tensor."""
        names = self._variables.names if self._variables is not None else []
        return regions.of_variables(self._run_list().unit_steps(), self._bounds(), names)

    @public
    def containsAliases(self) -> bool:
        """Whether an element occurs twice, as in a broadcast."""
        if self._strides is not None and strides.surely_distinct(self._shape, self._strides):
            return False
        if self._box is not None and self._box.surely_distinct():
            return False
        return prod(self._shape) > 1 and regions.has_duplicates(self._run_list())

    def containsConstant(self) -> bool:
        """Whether any element of the tensor is of a constant."""
        constants = self._variables.constants if self._variables is not None else {}
        return bool(constants) and any(number in constants for number in self.variable_numbers())

    def isParallelWriteable(self) -> bool:
        """Whether all elements can be written at once: no aliases and no constants."""
        return not self.containsConstant() and not self.containsAliases()

    def _dimension(self, dimension: Any) -> int:
        number = self._whole(dimension, "a dimension is a whole number")
        if not self._shape:
            hint = "reshape([1]) makes it a tensor of rank 1, which can be broadcast"
            raise PoplarIndexError(f"{self._described()} of rank 0 has no dimension {number}: {hint}")
        if not -len(self._shape) <= number < len(self._shape):
            raise PoplarIndexError(f"{self._described()} of rank {len(self._shape)} has no dimension {number}")
        return number % len(self._shape)

    def _dimension_range(self, begin: int, end: int) -> tuple[int, int]:
        begin, end = (self._whole(dimension, "a dimension is a whole number") for dimension in (begin, end))
        if not 0 <= begin <= end <= len(self._shape):
            raise PoplarIndexError(
                f"dimensions [{begin}:{end}) are out of range for {self._described()} of rank {len(self._shape)}"
            )
        return begin, end
