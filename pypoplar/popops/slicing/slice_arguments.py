"""Checks of what the calls that slice and update have in common: dimensions, sizes, offsets, options."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from attrs import frozen

from pypoplar.braces import ordered
from pypoplar.errors import PoplarIndexError, PoplarTypeError
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import shape_of
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.types import UNSIGNED_INT

Options = Mapping[str, object] | None

INDEX_OPTIONS: dict[str, Kind] = {"remapOutOfBoundIndices": bool, "paddingIndexUsed": bool}


@frozen
class Extent:
    """The dimensions of a shape that are sliced, and how many elements of each a slice takes."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def slice_shape(self) -> list[int]:
        """The shape of a slice."""
        taken = dict(zip(self.dims, self.sizes, strict=True))
        return [taken.get(dim, size) for dim, size in enumerate(self.shape)]

    @property
    def kept(self) -> list[int]:
        """The dimensions that are not sliced."""
        return [dim for dim in range(len(self.shape)) if dim not in self.dims]

    @property
    def unsliced(self) -> int:
        """Elements of the dimensions that are not sliced."""
        return prod(self.shape[dim] for dim in self.kept)

    def best_order(self) -> list[int]:
        """Places in `dims`, the dimension first of which a slice takes the smallest part."""
        return sorted(range(len(self.dims)), key=lambda place: self.sizes[place] / max(self.shape[self.dims[place]], 1))


def whole_number(call: str, name: str, value: object, least: int = 0) -> int:
    """A whole number of at least `least`, or a `PoplarTypeError`."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise PoplarTypeError(f"{call}: {name} is a whole number, got {value!r}") from None
    if number < least or isinstance(value, bool):
        raise PoplibsError(f"{call}: {name} is a whole number of at least {least}, got {value!r}")
    return number


def whole_numbers(call: str, name: str, values: object, least: int = 0) -> tuple[int, ...]:
    """Whole numbers of at least `least`."""
    given = ordered(values, f"{name} of {call}")
    scalar = getattr(given, "shape", None) == ()  # an array of no dimensions
    if scalar or not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | Tensor):
        raise PoplarTypeError(f"{call}: {name} is a list of whole numbers, got {values!r}")
    return tuple(whole_number(call, f"each of {name}", value, least) for value in given)


def read_extent(call: str, shape: Any, dims: object, sizes: object, sizes_name: str = "sizes") -> Extent:
    """Dimensions and sizes that fit a shape; with `sizes_name` "numSlices" sizes may be any number of at least 1."""
    extents = shape_of(call, shape)
    chosen = whole_numbers(call, "dims", dims)
    slices = sizes_name == "numSlices"
    taken = whole_numbers(call, sizes_name, sizes, 1 if slices else 0)
    if len(chosen) != len(taken):
        raise PoplibsError(f"{call}: dims and {sizes_name} are of one length, got {list(chosen)} and {list(taken)}")
    for place, dim in enumerate(chosen):
        if dim >= len(extents):
            raise PoplarIndexError(f"{call}: dimension {dim} of dims is out of range for the shape {list(extents)}")
        if dim in chosen[:place]:
            raise PoplibsError(f"{call}: dims has dimension {dim} twice: {list(chosen)}")
        if taken[place] > extents[dim] and not slices:
            raise PoplibsError(f"{call}: a slice of {taken[place]} of dimension {dim} is larger than the shape {list(extents)}")
    return Extent(extents, chosen, taken)


def check_name(call: str, debugContext: object) -> None:
    """`PoplarTypeError` unless a debug name is a string or None."""
    if not isinstance(debugContext, str | None):
        raise PoplarTypeError(f"{call}: a debug name is a string, got {debugContext!r}")


def check_offsets(call: str, offset: Tensor, shape: Sequence[int], meaning: str) -> Tensor:
    """The offsets in the shape that a call wants; `PoplibsError` if they are others or no unsigned integers."""
    if offset.elementType() is not UNSIGNED_INT:
        hint = "; write offset.reinterpret(UNSIGNED_INT)" if offset.elementType().size == 4 else ""
        raise PoplibsError(f"{call}: offsets are UNSIGNED_INT, got {offset!r}{hint}")
    if list(shape) != offset.shape():
        raise PoplibsError(f"{call}: the offsets have the shape {list(shape)}, {meaning}, got {offset!r}")
    return offset


def check_same_type(call: str, **tensors: Tensor) -> None:
    """`PoplibsError` unless all have one element type."""
    types = {tensor.elementType() for tensor in tensors.values()}
    if len(types) > 1:
        raise PoplibsError(f"{call}: {' and '.join(tensors)} have one type, got {' and '.join(map(repr, tensors.values()))}")


def check_written(call: str, tensor: Tensor) -> None:
    """`PoplibsError` for a tensor that cannot be written."""
    if not tensor.isParallelWriteable():
        raise PoplibsError(f"{call} cannot write {tensor!r}: it holds an element twice, or a constant")


@frozen
class IndexOptions:
    """What becomes of an index that is out of range."""

    remaps: bool  # it is taken for 0
    pads: bool  # it may be one beyond the end, whose slice is zeros

    @staticmethod
    def read(call: str, options: Options) -> IndexOptions:
        chosen = read_options(call, options, INDEX_OPTIONS)
        return IndexOptions(bool(chosen.get("remapOutOfBoundIndices", False)), bool(chosen.get("paddingIndexUsed", False)))
