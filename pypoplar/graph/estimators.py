"""Cycle estimators: functions that say how long a vertex takes, instead of the price of its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray, Bools, Int64s
from pypoplar.arrays.equal_rows import first_equal
from pypoplar.arrays.groups import distinct, offsets, ragged, sums_between
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.terms import Location, line_text
from pypoplar.codelet.language.declaration import split_name
from pypoplar.codelet.registry import CodeletRegistry
from pypoplar.errors import PoplarTypeError, UnknownVertexType
from pypoplar.graph.field_values import MOST_ESTIMATED
from pypoplar.graph.frozen import FrozenEdges, FrozenEstimates, FrozenGraph, FrozenState, FrozenVertices
from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.spelling import nearest_or_all
from pypoplar.target import Target

Estimator = Callable[[VertexIntrospector], Any]


@frozen(eq=False)
class RegisteredEstimator:
    """What `Graph.registerPerfEstimator` was given for a vertex type, and the user's line."""

    function: Callable[[VertexIntrospector, Target], Any]
    location: Location

    def __call__(self, vertex: VertexIntrospector) -> Any:
        """What the user's function says of a vertex."""
        return self.function(vertex, vertex.target)


def check_estimators(registered: Mapping[str, RegisteredEstimator], registry: CodeletRegistry) -> None:
    """`UnknownVertexType` for an estimator of a codelet that the graph does not have, which nothing would ever ask."""
    for name, estimator in registered.items():
        if name not in registry and not registry.has_template(name):
            hint = nearest_or_all(name, registry.names)
            raise UnknownVertexType(
                f"{line_text(estimator.location)}: an estimator was registered for {name!r}, but the graph has no codelet of that "
                f"name{hint}"
            )


def estimators_of(codelets: tuple[Codelet, ...], registered: Mapping[str, RegisteredEstimator]) -> dict[int, Estimator]:
    """By codelet number the function that estimates: the one registered with the graph, for it or its template, else its own."""
    by_number = (
        (number, _registered_for(codelet.name, registered) or codelet.estimator) for number, codelet in enumerate(codelets)
    )
    return {number: estimator for number, estimator in by_number if estimator is not None}


def _registered_for(name: str, registered: Mapping[str, RegisteredEstimator]) -> RegisteredEstimator | None:
    """The estimator of a codelet, or of the template that names the most of its arguments."""
    base, arguments = split_name(name)
    for count in range(len(arguments), 0, -1):
        estimator = registered.get(f"{base}<{','.join(arguments[:count])}>")
        if estimator is not None:
            return estimator
    return registered.get(base)


def estimate(estimators: Mapping[int, Estimator], target: Target, given: FrozenEstimates, graph: FrozenGraph) -> FrozenEstimates:
    """The estimates given for single vertices, and those that `estimators` (by codelet number) make for the others.

    An estimator is asked once for all vertices of one codelet that are equal in the fields that it reads.
    """
    has_one = np.zeros(len(graph.codelets), bool)
    has_one[list(estimators)] = True
    chosen: Bools = has_one[graph.vertices.codelet]
    chosen[given.vertex] = False
    numbers = np.flatnonzero(chosen)
    if not len(numbers):
        return given
    seen = SeenVertices.of(graph.codelets, numbers, graph.vertices, graph.edges, graph.state)
    asked, kind = np.unique(seen.alike(), return_inverse=True)
    answers = np.empty((len(asked), 2), np.int64)
    codelet = graph.vertices.codelet[numbers[asked]]
    for index in distinct(codelet).tolist():
        places = np.flatnonzero(codelet == index)
        answers[places] = _answers(estimators[index], graph.codelets[index].name, seen, asked[places], target)
    estimated = answers[kind]
    vertex = np.concatenate((given.vertex, numbers))
    order = np.argsort(vertex)
    return FrozenEstimates(
        vertex[order],
        np.concatenate((given.cycles, estimated[:, 0]))[order],
        np.concatenate((given.flops, estimated[:, 1]))[order],
        np.concatenate((given.by_estimator, np.ones(len(numbers), bool)))[order],
    )


def _answers(estimator: Estimator, name: str, seen: SeenVertices, asked: Int64s, target: Target) -> Int64s:
    """Cycles and flops of some vertices of a codelet: the estimator is asked once for all that are equal in what it reads.

    Which field it reads next depends on what it has read alone. So vertices that are equal in some fields that it reads first are
    divided by the next one.
    """
    answers = np.empty((len(asked), 2), np.int64)

    def told(place: int) -> tuple[int, list[int], tuple[int, int]]:
        vertex = seen.introspector(int(asked[place]), target)
        answer = _checked(estimator(vertex), name)
        return place, [*vertex._read], answer

    alike = [(np.arange(len(asked)), 0, told(0))]  # places; how many fields they are equal in; what was told of one of them
    while alike:
        places, depth, (place, read, answer) = alike.pop()
        if len(places) == 1 or depth == len(read):
            answers[places] = answer
            continue
        group = np.unique(seen.alike_in(asked[places], read[depth]), return_inverse=True)[1]
        own = int(group[np.flatnonzero(places == place)[0]])
        for number, part in enumerate(np.split(places[np.argsort(group, kind="stable")], np.cumsum(np.bincount(group))[:-1])):
            alike.append((part, depth + 1, (place, read, answer) if number == own else told(int(part[0]))))
    return answers


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


OWN_CODELET = -1  # in the place of a field's number


@frozen(eq=False)
class SeenVertices:
    """What estimators see of some vertices, as entries sorted by vertex: the codelet, then connected fields, then plain ones.

    `value` is the codelet's number, the elements of a connected field or of one of its rows, the bits of a plain field; of a plain
    vector it is a number that equal vectors share.
    """

    first: Int64s  # [vertices + 1]: where a vertex's entries begin
    field: Int64s  # [entries]: twice its number, and one more for plain fields; `OWN_CODELET`
    value: Int64s  # [entries]
    codelets: tuple[Codelet, ...]
    vectors: tuple[AnyArray, ...]  # by number

    @staticmethod
    def of(
        codelets: tuple[Codelet, ...], numbers: Int64s, vertices: FrozenVertices, edges: FrozenEdges, state: FrozenState
    ) -> SeenVertices:
        """Of the vertices `numbers`, which are sorted."""
        place = np.full(len(vertices.codelet), -1, np.int64)
        place[numbers] = np.arange(len(numbers))
        owner, position, number, vectors = _plain_vectors(state, place)
        columns: tuple[Int64s, ...] = (
            np.concatenate((place[numbers], place[edges.vertex], place[state.vertex], owner)),
            np.concatenate((np.full(len(numbers), OWN_CODELET), edges.field * 2, state.field * 2 + 1, position * 2 + 1)),
            np.concatenate(
                (vertices.codelet[numbers], sums_between(edges.first_run, edges.run_count), state.bits.view(np.int64), number)
            ),
        )
        order = np.argsort(columns[0], kind="stable")
        order = order[int(np.count_nonzero(columns[0] < 0)) :]
        count = np.bincount(columns[0][order], minlength=len(numbers))
        return SeenVertices(offsets(count), columns[1][order], columns[2][order], codelets, vectors)

    def alike(self) -> Int64s:
        """For each vertex the first one of the same codelet, sizes and values."""
        return first_equal(self.first, self.field, self.value)

    def alike_in(self, vertices: Int64s, field: int) -> Int64s:
        """For each of some vertices of a codelet the place of the first one whose field has the same sizes and value."""
        count = self.first[vertices + 1] - self.first[vertices]
        entries = ragged(self.first[vertices], count)
        chosen = self.field[entries] // 2 == field
        first = offsets(sums_between(offsets(count), chosen))
        return first_equal(first, self.field[entries[chosen]], self.value[entries[chosen]])

    def introspector(self, vertex: int, target: Target) -> VertexIntrospector:
        """The vertex at this place, for its estimator."""
        own = slice(self.first[vertex] + 1, self.first[vertex + 1])
        codelet = self.codelets[self.value[self.first[vertex]]]
        sizes, values = self._sizes(self.field[own], self.value[own]), {}
        for key, value in zip(self.field[own].tolist(), self.value[own], strict=True):
            if key % 2:
                values[key // 2] = self._plain(codelet, key // 2, value)
        return VertexIntrospector(codelet, sizes, values, target)

    @staticmethod
    def _sizes(field: Int64s, value: Int64s) -> dict[int, Int64s]:
        connected = distinct(field[field % 2 == 0]).tolist()
        return {key // 2: value[field == key] for key in connected}

    def _plain(self, codelet: Codelet, number: int, value: np.int64) -> Any:
        field = codelet.fields[number]
        return np.frombuffer(value.tobytes(), field.type.dtype)[0].item() if field.form == "scalar" else self.vectors[value]


def _plain_vectors(state: FrozenState, place: Int64s) -> tuple[Int64s, Int64s, Int64s, tuple[AnyArray, ...]]:
    """The plain vectors of the vertices that have a place: it, the field and the vector's number; and the vectors by number."""
    numbers: dict[tuple[str, bytes], int] = {}
    vectors: list[AnyArray] = []
    rows = []
    for (vertex, field), array in state.vectors.items():
        if place[vertex] >= 0:
            number = numbers.setdefault((array.dtype.str, array.tobytes()), len(vectors))
            if number == len(vectors):
                vectors.append(array)
            rows.append((int(place[vertex]), field, number))
    columns = np.array(sorted(rows), np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2], tuple(vectors)
