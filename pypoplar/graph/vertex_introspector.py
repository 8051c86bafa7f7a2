"""A vertex as an estimator of its cycles sees it: sizes and types of its fields, values, and the arguments of its template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.declaration import split_name
from pypoplar.errors import PoplarIndexError, UnknownField
from pypoplar.spelling import nearest_or_all
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import BY_SPELLING, ElementType


@frozen
class VertexPerfEstimate:
    """What an estimator may return: the cost of one vertex.

    Parameters
    ----------
    cycles:
        Worker cycles, 0 to 2**40.
    flops:
        Floating-point operations of the whole vertex; without them the vertex's code counts them.
    """

    cycles: int
    flops: int | None = None


@public
class FieldData:
    """A field of a vertex as an estimator sees it, given by `VertexIntrospector.getFieldInfo`: its size, type and value."""

    __slots__ = ("_is_list", "_sizes", "_type", "_value")

    def __init__(self, type: ElementType, sizes: Int64s, value: Any, is_list: bool) -> None:
        self._type = type
        self._sizes = sizes
        self._value = value
        self._is_list = is_list

    def size(self) -> int:
        """Elements of a vector, or its records; 1 for a scalar; rows of a `VectorList`."""
        return len(self._sizes) if self._is_list else int(self._sizes[0])

    def elementType(self) -> ElementType:
        """The type of its elements; UNSIGNED_CHAR for records, whose bytes it holds."""
        return self._type

    def empty(self) -> bool:
        """Whether the field has no elements, or no rows."""
        return self.size() == 0

    def getSizeAtIndex(self, index: int) -> int:
        """Elements of one row of a `VectorList`.

        Parameters
        ----------
        index:
            The number of the row.

        Returns
        -------
        int
            Its elements.

        Raises
        ------
        PoplarIndexError
            If there is no such row.
        """
        if not 0 <= index < len(self._sizes):
            raise PoplarIndexError(f"row {index} is out of range for a field of {len(self._sizes)} rows")
        return int(self._sizes[index])

    def getInitialValue(self) -> Any:
        """The value of a plain field: a number, or an array for a vector; None where none was set."""
        return self._value


@public
class VertexIntrospector:
    """A vertex as an estimator sees it, given by `Graph.registerPerfEstimator`: its fields' sizes, types and values.

    Attributes
    ----------
    target:
        The target of the graph.
    """

    __slots__ = ("_codelet", "_read", "_sizes", "_values", "target")

    def __init__(self, codelet: Codelet, sizes: Mapping[int, Int64s], values: Mapping[int, Any], target: Target) -> None:
        self._codelet = codelet
        self._sizes = sizes
        self._values = values
        self._read: dict[int, None] = {}  # numbers of the fields that were asked for, in their order
        self.target = target

    def getFieldInfo(self, name: str) -> FieldData:
        """The field called `name`, as the vertex has it.

        Parameters
        ----------
        name:
            The name of a field of the codelet.

        Returns
        -------
        FieldData
            Its size and type, and the value of a plain field.

        Raises
        ------
        UnknownField
            If the codelet has no such field; the message shows the nearest name.
        """
        for number, field in enumerate(self._codelet.fields):
            if field.name == name:
                self._read[number] = None
                value = self._values.get(number)
                if number in self._sizes:
                    return FieldData(field.type, self._sizes[number] // field.unit, value, field.form == "list")
                if field.form == "list":
                    return FieldData(field.type, np.zeros(0, np.int64), None, is_list=True)
                size = 1 if field.form == "scalar" else np.size(value) if value is not None else 0
                return FieldData(field.type, np.array([size]), value, is_list=False)
        hint = nearest_or_all(name, [field.name for field in self._codelet.fields])
        raise UnknownField(f"codelet {self._codelet.name!r} has no field {name!r}{hint}")

    def templateArguments(self) -> tuple[ElementType | str, ...]:
        """The arguments of the codelet's template: ``("ADD", FLOAT)`` of ``popops::BinaryOp1D<ADD,float>``; () without any."""
        return tuple(BY_SPELLING.get(word, word) for word in split_name(self._codelet.name)[1])

    def fieldSize(self, name: str) -> int:
        """Elements of a vector field, or its records; 1 for a scalar, rows of a `VectorList`.

        Parameters
        ----------
        name:
            The name of a field of the codelet.

        Returns
        -------
        int
            Elements, records or rows.

        Raises
        ------
        UnknownField
            If the codelet has no such field.
        """
        return self.getFieldInfo(name).size()

    def value(self, name: str) -> Any:
        """The initial value of a plain field of the vertex.

        Parameters
        ----------
        name:
            The name of a field of the codelet.

        Returns
        -------
        Any
            A number, or an array for a vector; None where none was set.

        Raises
        ------
        UnknownField
            If the codelet has no such field.
        """
        return self.getFieldInfo(name).getInitialValue()
