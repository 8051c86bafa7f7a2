"""Cycle estimators: functions that say how long a vertex takes, instead of the price of its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.arrays.groups import offsets
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.terms import Location, line_text
from pypoplar.codelet.registry import CodeletRegistry
from pypoplar.errors import PoplarIndexError, PoplarTypeError, UnknownField, UnknownVertexType
from pypoplar.graph.field_values import MOST_ESTIMATED
from pypoplar.graph.frozen import FrozenEdges, FrozenEstimates, FrozenState, FrozenVertices
from pypoplar.spelling import nearest_or_all
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import ElementType


@frozen
class VertexPerfEstimate:
    """What an estimator may return: worker cycles, and floating-point operations of the whole vertex.

    Without `flops` the vertex's code counts them.
    """

    cycles: int
    flops: int | None = None


@public
class FieldData:
    """A field of a vertex, as an estimator sees it: its size, and its value if it is a plain field."""

    __slots__ = ("_is_list", "_sizes", "_value")

    def __init__(self, sizes: Int64s, value: Any, is_list: bool) -> None:
        self._sizes = sizes
        self._value = value
        self._is_list = is_list

    def size(self) -> int:
        """Elements of a vector, or its records; 1 for a scalar; rows of a `VectorList`."""
        return len(self._sizes) if self._is_list else int(self._sizes[0])

    def empty(self) -> bool:
        return self.size() == 0

    def getSizeAtIndex(self, index: int) -> int:
        """Elements of one row of a `VectorList`."""
        if not 0 <= index < len(self._sizes):
            raise PoplarIndexError(f"row {index} is out of range for a field of {len(self._sizes)} rows")
        return int(self._sizes[index])

    def getInitialValue(self) -> Any:
        """The value of a plain field: a number, or an array for a vector; None where none was set."""
        return self._value


@public
class VertexIntrospector:
    """A vertex, as an estimator sees it."""

    __slots__ = ("_codelet", "_sizes", "_values", "target")

    def __init__(self, codelet: Codelet, sizes: Mapping[int, Int64s], values: Mapping[int, Any], target: Target) -> None:
        self._codelet = codelet
        self._sizes = sizes
        self._values = values
        self.target = target

    def getFieldInfo(self, name: str) -> FieldData:
        """The field called `name`; `UnknownField` if there is none."""
        for number, field in enumerate(self._codelet.fields):
            if field.name == name:
                value = self._values.get(number)
                if number in self._sizes:
                    return FieldData(self._sizes[number] // field.unit, value, field.form == "list")
                if field.form == "list":
                    return FieldData(np.zeros(0, np.int64), None, is_list=True)
                size = 1 if field.form == "scalar" else np.size(value) if value is not None else 0
                return FieldData(np.array([size]), value, is_list=False)
        hint = nearest_or_all(name, [field.name for field in self._codelet.fields])
        raise UnknownField(f"codelet {self._codelet.name!r} has no field {name!r}{hint}")

    def fieldSize(self, name: str) -> int:
        """Elements of a vector field, or its records; 1 for a scalar, rows of a `VectorList`."""
        return self.getFieldInfo(name).size()

    def value(self, name: str) -> Any:
        """The initial value of a plain field."""
        return self.getFieldInfo(name).getInitialValue()


Estimator = Callable[[VertexIntrospector], Any]


@frozen(eq=False)
class RegisteredEstimator:
    """What `Graph.registerPerfEstimator` was given for a vertex type, and the user's line."""

    function: Callable[[VertexIntrospector, Target], Any]
    location: Location

    def __call__(self, vertex: VertexIntrospector) -> Any:
        return self.function(vertex, vertex.target)


def check_estimators(registered: Mapping[str, RegisteredEstimator], registry: CodeletRegistry) -> None:
    """`UnknownVertexType` for an estimator of a codelet that the graph does not have, which nothing would ever ask."""
    for name, estimator in registered.items():
        if name not in registry:
            hint = nearest_or_all(name, registry.names)
            raise UnknownVertexType(
                f"{line_text(estimator.location)}: an estimator was registered for {name!r}, but the graph has no codelet of that "
                f"name{hint}"
            )


def estimate(
    estimators: Mapping[int, Estimator],
    codelets: tuple[Codelet, ...],
    target: Target,
    vertices: FrozenVertices,
    edges: FrozenEdges,
    state: FrozenState,
    given: FrozenEstimates,
) -> FrozenEstimates:
    """The estimates given for single vertices, and those that `estimators` (by codelet number) make for the others."""
    chosen = np.isin(vertices.codelet, list(estimators))
    chosen[given.vertex] = False
    numbers = np.flatnonzero(chosen)
    if not len(numbers):
        return given
    ends = offsets(edges.run_count)
    sizes = ends[edges.first_run[1:]] - ends[edges.first_run[:-1]]
    first_edge = np.searchsorted(edges.vertex, numbers)
    last_edge = np.searchsorted(edges.vertex, numbers, side="right")
    values = _values_by_vertex(codelets, vertices, state)
    estimated = np.empty((len(numbers), 2), np.int64)
    for place, number in enumerate(numbers.tolist()):
        index = int(vertices.codelet[number])
        own = slice(first_edge[place], last_edge[place])
        fields = edges.field[own]
        by_field = {int(field): sizes[own][fields == field] for field in np.unique(fields)}
        seen = VertexIntrospector(codelets[index], by_field, values.get(number, {}), target)
        estimated[place] = _checked(estimators[index](seen), codelets[index].name)
    vertex = np.concatenate((given.vertex, numbers))
    order = np.argsort(vertex)
    return FrozenEstimates(
        vertex[order],
        np.concatenate((given.cycles, estimated[:, 0]))[order],
        np.concatenate((given.flops, estimated[:, 1]))[order],
        np.concatenate((given.by_estimator, np.ones(len(numbers), bool)))[order],
    )


def _checked(answer: Any, name: str) -> tuple[int, int]:
    """Cycles and flops, -1 where there are none."""
    if isinstance(answer, VertexPerfEstimate):
        answer = (answer.cycles, answer.flops)
    elif not isinstance(answer, tuple):
        answer = (answer, None)
    given = answer[:1] if len(answer) == 2 and answer[1] is None else answer
    if len(answer) != 2 or not all(isinstance(count, int | np.integer) and 0 <= count <= MOST_ESTIMATED for count in given):
        raise PoplarTypeError(
            f"the estimator of {name} must return cycles as an int of 0 to 2**40, or a VertexPerfEstimate; got {answer!r}"
        )
    return int(answer[0]), -1 if answer[1] is None else int(answer[1])


def _values_by_vertex(codelets: tuple[Codelet, ...], vertices: FrozenVertices, state: FrozenState) -> dict[int, dict[int, Any]]:
    values: dict[int, dict[int, Any]] = {}
    for vertex, field, bits in zip(state.vertex.tolist(), state.field.tolist(), state.bits, strict=True):
        type: ElementType = codelets[int(vertices.codelet[vertex])].fields[field].type
        values.setdefault(vertex, {})[field] = np.frombuffer(bits.tobytes(), type.dtype)[0].item()
    for (vertex, field), array in state.vectors.items():
        values.setdefault(vertex, {})[field] = array
    return values
