"""Places in a tensor, by coordinates and in the order of its elements."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from math import prod

from pypoplar.braces import ordered
from pypoplar.errors import PoplarIndexError, PoplarTypeError
from pypoplar.graph.variables import check_shape
from pypoplar.tracebacks import public


@public
def unflattenIndex(shape: Iterable[int], index: int) -> list[int]:
    """The coordinates of an element of the flattened tensor: ``unflattenIndex([2, 3], 4)`` is ``[1, 1]``.

    Parameters
    ----------
    shape:
        The shape of the tensor.
    index:
        The place of the element.

    Returns
    -------
    list[int]
        A coordinate for each dimension.

    Raises
    ------
    PoplarIndexError
        Unless ``0 <= index <`` the number of elements.
    """
    sizes = check_shape(shape)
    try:
        place = operator.index(index)
    except TypeError:
        hint = "write unflattenIndex([2, 3], 4)"
        raise PoplarTypeError(f"unflattenIndex takes a shape and a whole number, got {index!r}; {hint}") from None
    if not 0 <= place < prod(sizes):
        raise PoplarIndexError(f"index {place} is out of range for the shape {list(sizes)} of {prod(sizes)} elements")
    coordinates = []
    for size in reversed(sizes):
        place, coordinate = divmod(place, size)
        coordinates.append(coordinate)
    return coordinates[::-1]


@public
def flattenIndex(shape: Iterable[int], indices: Iterable[int]) -> int:
    """The place of an element in the flattened tensor: ``flattenIndex([2, 3], [1, 1])`` is 4.

    Parameters
    ----------
    shape:
        The shape of the tensor.
    indices:
        The coordinates of the element.

    Returns
    -------
    int
        From 0 on.

    Raises
    ------
    PoplarIndexError
        Unless there is a coordinate for each dimension, within its size.
    """
    sizes, coordinates = check_shape(shape), check_coordinates(indices)
    if len(sizes) != len(coordinates) or not all(0 <= place < size for place, size in zip(coordinates, sizes, strict=True)):
        raise PoplarIndexError(f"indices {list(coordinates)} are out of range for the shape {list(sizes)}")
    index = 0
    for size, coordinate in zip(sizes, coordinates, strict=True):
        index = index * size + coordinate
    return index


def check_coordinates(indices: Iterable[int]) -> tuple[int, ...]:
    """The coordinates as a tuple; `PoplarTypeError` for what is no list of whole numbers."""
    try:
        return tuple(operator.index(coordinate) for coordinate in ordered(indices, "indices"))
    except TypeError as problem:
        if isinstance(problem, PoplarTypeError):
            raise
        raise PoplarTypeError(f"indices are a list of whole numbers, got {indices!r}; write flattenIndex([2, 3], [1, 1])") from None
