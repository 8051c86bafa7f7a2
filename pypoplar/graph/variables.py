"""The variables and constants of a graph: names, types, shapes and the numbering of their elements."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Int64s
from pypoplar.braces import ordered
from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.graph.frozen import ElementRuns, FrozenVariables
from pypoplar.graph.location import LocationTable
from pypoplar.graph.names import Names
from pypoplar.types import ElementType

if TYPE_CHECKING:
    from pypoplar.graph.graph import Graph


MOST_ELEMENTS = 1 << 40  # of a shape: more than all memory there is has bytes, and far from where 64 bits end


def check_shape(shape: Any) -> tuple[int, ...]:
    """The shape as a tuple; an int is the shape of a vector. `TensorShapeError` for negative sizes, and for too many elements."""
    ordered(shape, "a shape")
    try:
        if isinstance(shape, bytes | Mapping):
            raise TypeError
        sizes = (operator.index(shape),) if not isinstance(shape, Iterable) else tuple(operator.index(size) for size in shape)
    except TypeError:
        raise PoplarTypeError(f"a shape is a list of whole numbers, got {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise TensorShapeError(f"a shape has no negative sizes, got {list(sizes)}")
    if prod(sizes) > MOST_ELEMENTS:
        raise TensorShapeError(f"a shape of {prod(sizes)} elements is more than a graph has, {MOST_ELEMENTS}: got {list(sizes)}")
    return sizes


class Variables:
    """One row per variable or constant. Elements are numbered through all of them, in the order of adding, row-major."""

    __slots__ = ("_bounds", "_names", "constants", "first", "graph", "initial", "location", "locations", "names", "shapes", "types")

    def __init__(self, graph: Graph, locations: LocationTable) -> None:
        self.graph = graph
        self.locations = locations
        self.names: list[str] = []
        self.types: list[ElementType] = []
        self.shapes: list[tuple[int, ...]] = []
        self.location: list[int] = []
        self.first: list[int] = [0]
        self.constants: dict[int, AnyArray] = {}
        self.initial: list[tuple[ElementRuns, AnyArray]] = []
        self._names = Names()
        self._bounds: Int64s = np.zeros(1, np.int64)

    def add(self, type: ElementType, shape: tuple[int, ...], name: str, location: int) -> int:
        """The number of a new variable."""
        number, given = len(self.names), self._names.give(name)
        try:
            self.names.append(given)
            self.types.append(type)
            self.shapes.append(shape)
            self.location.append(location)
            self.first.append(self.first[-1] + prod(shape))
        except MemoryError:
            for column in (self.names, self.types, self.shapes, self.location):
                del column[number:]
            self._names.take_back(given)
            raise
        return number

    def number_of(self, element: int) -> int:
        """The variable that an element belongs to."""
        return bisect_right(self.first, element) - 1

    def bounds(self) -> Int64s:
        """The first element of each variable and, last, the number of all elements, as an array."""
        if len(self._bounds) != len(self.first):
            self._bounds = np.array(self.first, np.int64)
        return self._bounds

    def numbers_of(self, elements: Int64s) -> Int64s:
        """`number_of` for an array of elements."""
        numbers: Int64s = np.searchsorted(self.bounds(), elements, side="right") - 1
        return numbers

    def region_text(self, element: int, size: int = 1) -> str:
        """``[begin:end) of variable 'name'``, as messages show a piece of a variable."""
        number = self.number_of(element)
        begin = element - self.first[number]
        return f"[{begin}:{begin + size}) of variable {self.names[number]!r}"

    def freeze(self) -> FrozenVariables:
        """The variables as arrays, which later ones do not touch."""
        return FrozenVariables(
            names=tuple(self.names),
            types=tuple(self.types),
            shapes=tuple(self.shapes),
            locations=self.locations.all_of(self.location),
            first=np.array(self.first, np.int64),
            constants=dict(self.constants),
            initial=tuple(self.initial),
        )
