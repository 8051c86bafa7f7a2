"""Places in a tensor, by coordinates and in the order of its elements."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from math import prod

from pypoplar.errors import PoplarIndexError, PoplarTypeError
from pypoplar.graph.variables import check_shape
from pypoplar.tracebacks import public


@public
def unflattenIndex(shape: Iterable[int], index: int) -> list[int]:
    """The coordinates in `shape` of the element at `index` of the flattened tensor: ``unflattenIndex([2, 3], 4)`` is ``[1, 1]``.

    `PoplarIndexError` unless ``0 <= index <`` the number of elements.
    """
    sizes = check_shape(shape)
    if not hasattr(index, "__index__"):
        raise PoplarTypeError(f"unflattenIndex takes a shape and a whole number, got {index!r}; write unflattenIndex([2, 3], 4)")
    place = operator.index(index)
    if not 0 <= place < prod(sizes):
        raise PoplarIndexError(f"index {place} is out of range for the shape {list(sizes)} of {prod(sizes)} elements")
    coordinates = []
    for size in reversed(sizes):
        place, coordinate = divmod(place, size)
        coordinates.append(coordinate)
    return coordinates[::-1]
