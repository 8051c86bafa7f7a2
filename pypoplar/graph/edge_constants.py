"""Values on Input edges: a tile holds equal ones once, as a constant of their vertices' tile."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import AnyArray, Int32s, Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.codelet.ir.terms import Access, Form, Location
from pypoplar.graph.edge_table import TYPE_CODE
from pypoplar.graph.frozen import FrozenMapping, FrozenVariables
from pypoplar.graph.names import Names
from pypoplar.graph.tensor import Tensor
from pypoplar.host_memory import TableSize
from pypoplar.host_values import bits_of, values_of
from pypoplar.types import ElementType

SEVERAL = (Tensor, list, tuple, np.ndarray)  # are no elements of a vector's values
NAMED = 4  # most numbers in a constant's name


def takes_value(access: Access, form: Form, value: Any) -> bool:
    """Whether a value stands for the tensor of a field: a number for a scalar Input, a sequence for an Input of a Vector."""
    if access != "input":
        return False
    if form == "scalar":
        return isinstance(value, bool | int | float | np.number | np.bool_)
    if isinstance(value, np.ndarray):
        return form == "vector" and value.ndim == 1
    return form == "vector" and isinstance(value, list | tuple) and not any(isinstance(item, SEVERAL) for item in value)


def takes_values(access: Access, form: Form, value: Any) -> bool:
    """`takes_value`, or an array with a value for each of many vertices."""
    if takes_value(access, form, value):
        return True
    if isinstance(value, np.ndarray):
        return access == "input" and value.ndim == {"scalar": 1, "vector": 2}.get(form, -1)
    return isinstance(value, list | tuple) and len(value) > 0 and all(takes_value(access, form, each) for each in value)


@frozen(eq=False)
class PlacedConstants:
    """What the values on edges add to a graph: variables, where they lie, and edges."""

    variables: FrozenVariables
    mapping: FrozenMapping
    runs: Int64s  # [edges, 5]: rows of an `EdgeTable`


class EdgeConstants:
    """Rows (vertex, field, number of the values), and the different values."""

    __slots__ = ("_by_bits", "_numbers", "_rows", "_types", "_values")

    def __init__(self) -> None:
        self._rows = array("q")
        self._values: list[AnyArray] = []
        self._types: list[ElementType] = []
        self._numbers: dict[tuple[ElementType, bytes], int] = {}
        self._by_bits: dict[tuple[ElementType, int], int] = {}

    def connect(self, vertex: int, field: int, type: ElementType, form: Form, value: Any) -> None:
        """Connect a field to a value; `PoplarTypeError` where the type cannot hold it."""
        if form == "scalar":
            bits = bits_of(type, value)
            number = self._by_bits.get((type, bits))
            if number is None:
                number = self._by_bits[type, bits] = self._number(type, values_of(type, value, 1, "the value"))
        else:
            number = self._number(type, values_of(type, value, len(value), "the vector"))
        self._rows.extend((vertex, field, number))

    def connect_many(self, vertices: range, field: int, type: ElementType, form: Form, value: Any, where: str) -> None:
        """Connect a field of many vertices to one value, or to the values of an array with a row for each vertex."""
        given = np.asarray(value)
        each = given.ndim == (1 if form == "scalar" else 2)
        rows, size = len(vertices) if each else 1, 1 if form == "scalar" else given.shape[-1]
        table = values_of(type, value, rows * size, where).reshape(rows, size)
        if size:
            different, kind = np.unique(table.view(np.uint8), axis=0, return_inverse=True)
        else:
            different, kind = table[:1], np.zeros(rows, np.int64)
        numbers = np.array([self._number(type, row.view(type.dtype)) for row in different], np.int64)
        added = np.empty((len(vertices), 3), np.int64)
        added[:, 0], added[:, 1], added[:, 2] = vertices, field, numbers[kind.reshape(-1)]
        self._rows.frombytes(added.tobytes())

    def _number(self, type: ElementType, values: AnyArray) -> int:
        key = (type, values.tobytes())
        number = self._numbers.get(key)
        if number is None:
            number = len(self._types)
            self._values[number:] = [values]  # over what is left where memory did not suffice
            self._types.append(type)
            self._numbers[key] = number
        return number

    def mend(self) -> None:
        """Take back what there is of a row for which the memory did not suffice."""
        del self._rows[len(self._rows) // 3 * 3 :]

    def size(self) -> TableSize:
        """Rows and bytes."""
        return TableSize("values on edges", len(self._rows) // 3, 8 * len(self._rows))

    def remove(self, first_vertex: int) -> None:
        """Take back the edges at the end of the table of vertices from `first_vertex` on."""
        end = len(self._rows)
        while end and self._rows[end - 3] >= first_vertex:
            end -= 3
        del self._rows[end:]

    def place(self, variables: FrozenVariables, tile: Int32s, locations: Sequence[Location], location: Int32s) -> PlacedConstants:
        """The graph's variables and one for each of the different values, with a row on each tile of its vertices.

        `tile` and `location` are those of the vertices. A vertex without a tile, which is refused later, has them on tile 0.
        """
        rows = np.array(self._rows, np.int64).reshape(-1, 3)
        vertex, number = rows[:, 0], rows[:, 2]
        tiles = int(tile.max(initial=0)) + 1
        homes, home = np.unique(number * tiles + np.maximum(tile[vertex], 0), return_inverse=True)
        values, on = np.divmod(homes, tiles)
        size = np.array([len(constant) for constant in self._values], np.int64)
        begin = variables.first[-1] + offsets(size[values])
        used, first_home, copies = np.unique(values, return_index=True, return_counts=True)
        first_row = np.unique(number, return_index=True)[1]
        added = [self._values[number] for number in used.tolist()]
        known, names = len(variables.names), Names()
        for name in variables.names:
            names.give(name)
        whole = evolve(
            variables,
            names=(*variables.names, *(names.give(_name(constant)) for constant in added)),
            types=(*variables.types, *(self._types[number] for number in used.tolist())),
            shapes=(*variables.shapes, *((int(count), len(constant)) for count, constant in zip(copies, added, strict=True))),
            locations=(*variables.locations, *(locations[location[vertex[row]]] for row in first_row)),
            first=np.append(variables.first, begin[np.append(first_home[1:], len(homes))]),
            constants={
                **variables.constants,
                **{known + place: np.tile(constant, copies[place]) for place, constant in enumerate(added)},
            },
        )
        filled = size[values] > 0
        mapping = FrozenMapping(begin[:-1][filled], begin[1:][filled], on[filled])
        code = rows[:, 1] + np.array([TYPE_CODE[type] for type in self._types], np.int64)[number]
        runs = np.column_stack((vertex, code, begin[:-1][home.reshape(-1)], size[number], np.ones(len(rows), np.int64)))
        return PlacedConstants(whole, mapping, runs)

    def __len__(self) -> int:
        return len(self._rows) // 3


def _name(values: AnyArray) -> str:
    shown = ", ".join(map(str, values[:NAMED].tolist()))
    return f"constant {shown}" if len(values) == 1 else f"constant [{shown}{', ...' if len(values) > NAMED else ''}]"
