"""Compute sets and vertices: handles for the user, flat tables for the compiler."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.braces import CONNECTIONS, TENSORS, ordered
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.ir.terms import Access, Form, line_text
from pypoplar.codelet.language.defaults import Default
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.errors import GraphConnectionError, PoplarIndexError, PoplarTypeError, TensorShapeError, UnknownField
from pypoplar.graph.edge_constants import EdgeConstants, takes_value, takes_values
from pypoplar.graph.edge_table import EdgeTable, check_bytes
from pypoplar.graph.field_values import MOST_ESTIMATED, EstimateTable, StateTable
from pypoplar.graph.frozen import FrozenVertices
from pypoplar.graph.location import LocationTable
from pypoplar.graph.names import Names
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.variables import Variables
from pypoplar.host_memory import TableSize
from pypoplar.host_values import bits_of, bits_of_many, values_of
from pypoplar.spelling import nearest_or_all
from pypoplar.tracebacks import public, slow_path, swift
from pypoplar.types import BOOL, LONGLONG, ElementType

if TYPE_CHECKING:
    from pypoplar.graph.graph import Graph

RECORDS = -2
_COUNTED = 3 << 10  # entries of the table that are counted at once
_RANKS: dict[Form, int] = {"scalar": 0, "vector": 1, "list": 2}
_WORDS: dict[Form, str] = {
    "scalar": "takes a tensor of one element",
    "vector": "is a Vector and takes a tensor of rank 1",
    "list": "is a VectorList and takes a tensor of rank 2 or a list of tensors of rank 1",
}


@frozen(eq=False)
class FieldSlot:
    """A field of a codelet, as the tables need it."""

    number: int
    name: str
    access: Access
    form: Form
    type: ElementType
    rank: int  # of the tensor that an edge takes; -1 for a plain field, RECORDS for one of records
    default: Default | None
    record: RecordLayout | None


class NumberedCodelet:
    """A codelet with its number and its fields by name."""

    __slots__ = ("codelet", "index", "name", "slots")

    def __init__(self, index: int, codelet: Codelet) -> None:
        self.index = index
        self.codelet = codelet
        self.name = codelet.name
        self.slots = {
            field.name: FieldSlot(
                number,
                field.name,
                field.access,
                field.form,
                field.type,
                -1 if field.access == "state" else RECORDS if field.record is not None else _RANKS[field.form],
                field.default,
                field.record,
            )
            for number, field in enumerate(codelet.fields)
        }

    @slow_path
    def slot(self, name: Any) -> FieldSlot:
        """The field called `name`; `UnknownField` with the nearest name."""
        slot = self.slots.get(name)
        if slot is None:
            raise UnknownField(f"codelet {self.name!r} has no field {name!r}{nearest_or_all(name, self.slots)}")
        return slot


@public
class ComputeSet:
    """A set of vertices that run in parallel in one step; made by `Graph.addComputeSet`."""

    __slots__ = ("_number", "_vertices")

    def __init__(self, vertices: VertexTable, number: int) -> None:
        self._vertices = vertices
        self._number = number

    def getId(self) -> int:
        """The number of the compute set in its graph, from 0."""
        return self._number

    @property
    def graph(self) -> Graph:
        """The graph that has it, the outermost one (not part of Poplar)."""
        return self._vertices.variables.graph

    @property
    def name(self) -> str:
        """Its debug name, unique in the graph (not part of Poplar)."""
        return self._vertices.set_names[self._number]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComputeSet) and (self._vertices, self._number) == (other._vertices, other._number)

    def __hash__(self) -> int:
        return hash((id(self._vertices), self._number))

    def __repr__(self) -> str:
        return f"<ComputeSet {self.name!r}>"


@public
class VertexRef:
    """A vertex of a graph, made by `Graph.addVertex`; ``vertex["x"]`` is its field x."""

    __slots__ = ("_kind", "_number", "_vertices")

    @swift
    def __init__(self, vertices: VertexTable, number: int, kind: NumberedCodelet) -> None:
        self._vertices = vertices
        self._number = number
        self._kind = kind

    def getId(self) -> int:
        """The number of the vertex in its graph, counted from 0."""
        return self._number

    @swift
    def __getitem__(self, name: str) -> FieldRef:
        """The field called `name`; `UnknownField` with the nearest name if the codelet has none of that name."""
        return FieldRef(self, self._kind.slots.get(name) or self._kind.slot(name))

    if not TYPE_CHECKING:

        def __setitem__(self, name: str, value: object) -> NoReturn:
            raise PoplarTypeError(
                f"a field is not assigned; write graph.connect(vertex[{name!r}], tensor), or for a plain field "
                f"graph.setInitialValue(vertex[{name!r}], value)"
            )

    def __iter__(self) -> NoReturn:
        raise PoplarTypeError("a vertex is indexed by field name")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VertexRef) and (self._vertices, self._number) == (other._vertices, other._number)

    def __hash__(self) -> int:
        return hash((id(self._vertices), self._number))

    def __repr__(self) -> str:
        return f"<VertexRef {self._vertices.described(self._number)}>"


@public
class FieldRef:
    """A field of a vertex, given by ``vertex["x"]``, for `Graph.connect` and its like; ``field[i]`` is row i of a `VectorList`."""

    __slots__ = ("_row", "_slot", "_vertex")

    @swift
    def __init__(self, vertex: VertexRef, slot: FieldSlot, row: int | None = None) -> None:
        self._vertex = vertex
        self._slot = slot
        self._row = row

    def __getitem__(self, row: int) -> FieldRef:
        if self._slot.form != "list" or self._row is not None:
            raise PoplarTypeError(f"{self._described()} is no VectorList and has no rows")
        if not hasattr(row, "__index__"):
            raise PoplarTypeError(f"a row of {self._described()} is a whole number, got {row!r}")
        if not 0 <= row < 1 << 30:
            raise PoplarIndexError(f"{self._described()} has no row {row}")
        return FieldRef(self._vertex, self._slot, row)

    def __iter__(self) -> NoReturn:
        raise PoplarTypeError("the rows of a field are known when it is connected; index them by number")

    def _described(self) -> str:
        return self._vertex._vertices.field_text(self._vertex._number, self._slot)

    def __repr__(self) -> str:
        return f"<FieldRef {self._described()}>"


@public
class VertexRange:
    """Vertices in a row, made by `Graph.add_vertices`; ``range[i]`` is the i-th as a `VertexRef` (not part of Poplar)."""

    __slots__ = ("_count", "_first", "_kind", "_vertices")

    def __init__(self, vertices: VertexTable, first: int, count: int, kind: NumberedCodelet) -> None:
        self._vertices = vertices
        self._first = first
        self._count = count
        self._kind = kind

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> VertexRef:
        if not -self._count <= index < self._count:
            raise PoplarIndexError(f"index {index} is out of range for {self._count} vertices of {self._kind.name}")
        return VertexRef(self._vertices, self._first + index % self._count, self._kind)

    def __iter__(self) -> Iterator[VertexRef]:
        return map(self.__getitem__, range(self._count))

    def __repr__(self) -> str:
        return f"<VertexRange of {self._count} {self._kind.name}>"


class VertexTable:
    """A row (codelet, compute set, location) for each vertex; tiles, edges, plain fields and estimates; and the compute sets."""

    __slots__ = (
        "_names",
        "constants",
        "edges",
        "estimates",
        "kinds",
        "locations",
        "rows",
        "set_locations",
        "set_names",
        "state",
        "tile",
        "variables",
    )

    def __init__(self, variables: Variables, locations: LocationTable) -> None:
        self.variables = variables
        self.locations = locations
        self.kinds: dict[int, NumberedCodelet] = {}  # by the codelet's number
        self.rows = array("q")
        self.tile = array("i")
        self.edges = EdgeTable()
        self.constants = EdgeConstants()
        self.state = StateTable()
        self.estimates = EstimateTable()
        self.set_names: list[str] = []
        self.set_locations: list[int] = []  # numbers of the lines that made them
        self._names = Names()

    def add_set(self, name: str, location: int) -> int:
        """A new compute set, by its number, made at a line; its name is made unique."""
        given = self._names.give(name)
        try:
            self.set_names.append(given)
            self.set_locations.append(location)
        except MemoryError:
            del self.set_names[len(self.set_locations) :]
            self._names.take_back(given)
            raise
        return len(self.set_names) - 1

    def remove_last(self, number: int) -> None:
        """Take back the vertices from `number` on, which could not be connected as asked."""
        self.mend()
        del self.rows[3 * number :]
        del self.tile[number:]
        self.edges.remove(number)
        self.constants.remove(number)
        self.state.remove(number)

    def mend(self) -> None:
        """Take back what there is of an edge, a value or an estimate for which the memory did not suffice."""
        for table in (self.edges, self.constants, self.state):
            table.mend()

    # -- one vertex -----------------------------------------------------------------------------------------------------------

    def connect(self, number: int, slot: FieldSlot, value: Any) -> None:
        """Connect a field of a vertex to a tensor or a list of tensors, or set a plain field to a value."""
        rank = slot.rank
        if rank == RECORDS:
            self._connect_records(number, slot, value)
            return
        if value.__class__ is Tensor and value._variables is self.variables and value._type is slot.type:
            if rank == 1 and len(value._shape) == 1:
                self.edges.connect(number, slot.number, value)
                return
            if rank == 0 and (not value._shape or prod(value._shape) == 1):
                self.edges.connect(number, slot.number, value)
                return
            if rank == 2 and len(value._shape) == 2:
                self.edges.connect_rows(number, slot.number, value)
                return
        elif rank == -1 and not isinstance(value, Tensor):
            self.set_value(number, slot, value)
            return
        elif rank == 2 and isinstance(value, list | tuple):
            for row, tensor in enumerate(value):
                self._check_row(number, slot, row, tensor)
            self.edges.connect_list(number, slot.number, value)
            return
        elif takes_value(slot.access, slot.form, value):
            self._connect_value(number, slot, value)
            return
        self._refuse(number, slot, value, slot.form)

    def _connect_records(self, number: int, slot: FieldSlot, value: Any) -> None:
        """Connect a field of records to the bytes that they are."""
        where = self.field_text(number, slot)
        if isinstance(value, Tensor) and value._variables is not self.variables:
            raise GraphConnectionError(f"{where}: {value._described()} belongs to another graph")
        check_bytes(where, slot.record, value, 1)
        self.edges.connect(number, slot.number, value)

    def _connect_value(self, number: int, slot: FieldSlot, value: Any) -> None:
        try:
            self.constants.connect(number, slot.number, slot.type, slot.form, value)
        except (PoplarTypeError, TensorShapeError) as error:
            raise type(error)(f"{self.field_text(number, slot)}: {error}") from None

    def connect_row(self, number: int, slot: FieldSlot, row: int, tensor: Any) -> None:
        """Connect one row of a list field."""
        self._check_row(number, slot, row, tensor)
        self.edges.connect(number, slot.number, tensor, row)

    def _check_row(self, number: int, slot: FieldSlot, row: int, tensor: Any) -> None:
        own = isinstance(tensor, Tensor) and tensor._variables is self.variables
        if not own or len(tensor._shape) != 1 or tensor._type is not slot.type:
            self._refuse(number, slot, tensor, "vector", f"row {row} of ")

    def _refuse(self, number: int, slot: FieldSlot, value: Any, form: Form, part: str = "") -> NoReturn:
        where = f"{part}{self.field_text(number, slot)}"
        if not isinstance(value, Tensor):
            ordered(value, where, TENSORS)
            hint = "" if isinstance(value, list | tuple) else "; make a tensor of a value with graph.addConstant"
            if slot.access != "input":
                hint = "; only an Input takes a value: what is written is a variable, graph.addVariable"
            elif form != "list":
                hint += f", or give {'a number' if form == 'scalar' else 'a list of numbers'}" if hint else ""
            raise GraphConnectionError(f"{where} {_WORDS[form]}, got {value!r}{hint}")
        if value._variables is not self.variables:
            raise GraphConnectionError(f"{where}: {value._described()} belongs to another graph")
        if slot.rank == -1:
            raise GraphConnectionError(
                f"{where} is a plain field and takes a value, got tensor {value._described()}; make it an Input edge"
            )
        self._check_type(number, slot, value, where)
        hint = "; use flatten()" if form == "vector" and value.rank() != 1 else ""
        raise GraphConnectionError(f"{where} {_WORDS[form]}, got {value._described()} of rank {value.rank()}{hint}")

    def _check_type(self, number: int, slot: FieldSlot, tensor: Tensor, where: str) -> None:
        if tensor._type is not slot.type:
            raise GraphConnectionError(
                f"{where}: {self.kinds[self.rows[3 * number]].name}.{slot.name} takes elements of type {slot.type!r}, "
                f"got {tensor._described()}; connect a tensor of {slot.type!r}, or make the field {tensor._type!r}"
            )

    def set_value(self, number: int, slot: FieldSlot, value: Any) -> None:
        """Set a plain field."""
        if slot.rank != -1:
            raise GraphConnectionError(
                f"{self.field_text(number, slot)} is an edge, not a plain field: give the connected tensor an initial value"
            )
        try:
            if slot.form == "scalar":
                self.state.set(number, slot.number, bits_of(slot.type, value))
                return
            given = np.asarray(ordered(value, "a vector of values", "[1.0, 2.0]"))
            size = self.state.sizes.get((number, slot.number), given.size)
            self.state.vectors[number, slot.number] = values_of(slot.type, given, size, "the vector")
        except (PoplarTypeError, TensorShapeError) as error:
            raise type(error)(f"{self.field_text(number, slot)}: {error}") from None

    def set_size(self, number: int, slot: FieldSlot, size: int) -> None:
        """Give a plain vector field its size; without values and a default it starts as zeros."""
        if slot.rank != -1 or slot.form != "vector":
            raise GraphConnectionError(
                f"{self.field_text(number, slot)} is no plain vector field; only those have a size of their own"
            )
        if not hasattr(size, "__index__"):
            raise PoplarTypeError(f"the size of {self.field_text(number, slot)} is a whole number, got {size!r}")
        if size < 0:
            raise TensorShapeError(f"{self.field_text(number, slot)} cannot have size {size}")
        key = (number, slot.number)
        default = np.array(slot.default, slot.type.dtype) if isinstance(slot.default, tuple) else None
        before = self.state.vectors.get(key, default)
        if before is not None and before.size != size and (key not in self.state.sizes or default is not None):
            raise TensorShapeError(f"{self.field_text(number, slot)} has {before.size} values, so its size cannot be {size}")
        self.state.sizes[key] = size
        self.state.vectors[key] = before if before is not None and before.size == size else np.zeros(size, slot.type.dtype)

    def set_estimate(self, vertex: Any, cycles: Any, flops: Any) -> None:
        """Estimates for a vertex, or for a range of them; without flops the code counts them."""
        if not isinstance(vertex, VertexRef | VertexRange) or vertex._vertices is not self:
            raise PoplarTypeError(f"an estimate is for a vertex of this graph, got {vertex!r}")
        count = len(vertex) if isinstance(vertex, VertexRange) else 1
        asked = (cycles,) if flops is None else (cycles, flops)
        whole = [values_of(LONGLONG, given, count, f"estimate for {vertex!r}") for given in asked]
        if any(column.min(initial=0) < 0 or column.max(initial=0) > MOST_ESTIMATED for column in whole):
            raise PoplarTypeError(
                f"an estimate for {vertex!r} is at least 0 and at most 2**40, got {cycles!r} cycles and {flops!r} flops"
            )
        if flops is None:
            whole.append(np.full(count, -1))
        first = vertex._first if isinstance(vertex, VertexRange) else vertex._number
        self.estimates.set_many(np.arange(first, first + count), *whole)

    # -- many vertices of one codelet -----------------------------------------------------------------------------------------

    def count_of(self, kind: NumberedCodelet, given: list[tuple[FieldSlot, Any]], tiles: Any) -> int:
        """How many vertices are meant: dimension 0 of the first tensor, else the number of tiles."""
        for slot, value in given:
            tensor = value[0] if slot.rank == 2 and isinstance(value, list | tuple) and value else value
            if slot.rank != -1 and isinstance(tensor, Tensor) and tensor._shape:
                return tensor._shape[0]
        if np.ndim(tiles) != 1:
            raise TensorShapeError(
                f"the number of {kind.name} vertices is that of a tensor's dimension 0 or of the tiles; neither is given"
            )
        return len(tiles)

    def add_many(self, kind: NumberedCodelet, compute_set: ComputeSet, location: int, tiles: Int64s) -> int:
        """Add a vertex for each tile; the number of the first."""
        first = len(self.tile)
        rows = np.empty((len(tiles), 3), np.int64)
        rows[:] = kind.index, compute_set._number, location
        try:
            self.rows.frombytes(rows.tobytes())
            self.tile.frombytes(tiles.astype(np.int32).tobytes())
        except MemoryError:
            del self.rows[3 * first :]
            raise
        return first

    def connect_many(self, first: int, count: int, slot: FieldSlot, value: Any) -> None:
        """Connect a field of many vertices: index v of the tensor's dimension 0 goes to vertex v."""
        where = f"field {slot.name!r} of {count} vertices"
        if slot.rank == -1:
            self._set_many(first, count, slot, value, where)
            return
        if slot.rank == 2 and isinstance(value, list | tuple) and value and all(isinstance(row, Tensor) for row in value):
            for number, row in enumerate(value):
                self._check_many(first, count, slot, row, 2, f"row {number} of {where}")
                self.edges.connect_many(first, count, slot.number, row, None, number)
            return
        if not isinstance(value, Tensor):
            ordered(value, where, TENSORS)
            if slot.rank != RECORDS and takes_values(slot.access, slot.form, value):
                self.constants.connect_many(range(first, first + count), slot.number, slot.type, slot.form, value, where)
                return
            raise GraphConnectionError(f"{where} needs one tensor whose dimension 0 goes over the vertices, got {value!r}")
        self._check_many(first, count, slot, value, slot.rank + 1, where)
        self.edges.connect_many(first, count, slot.number, value, value._shape[1] if slot.rank == 2 else None)

    def _check_many(self, first: int, count: int, slot: FieldSlot, value: Tensor, rank: int, where: str) -> None:
        if value._variables is not self.variables:
            raise GraphConnectionError(f"{where}: {value._described()} belongs to another graph")
        if slot.rank == RECORDS:
            check_bytes(where, slot.record, value, 2)
        elif value.rank() != rank:
            raise GraphConnectionError(f"{where} needs a tensor of rank {rank}, got {value._described()} of rank {value.rank()}")
        if value._shape[0] != count:
            raise TensorShapeError(f"{where} needs dimension 0 of size {count}, got {value._described()}")
        if slot.rank != RECORDS:
            self._check_type(first, slot, value, where)

    def _set_many(self, first: int, count: int, slot: FieldSlot, value: Any, where: str) -> None:
        ordered(value, where, "[1.0, 2.0]")
        if slot.form == "scalar":
            whole = _whole(slot.type, value)
            bits = bits_of_many(values_of(slot.type, value, count, where)) if whole is None else whole
            self.state.set_many(first, count, slot.number, bits)
            return
        given = np.asarray(value)
        if given.ndim not in (1, 2) or (given.ndim == 2 and len(given) != count):
            raise TensorShapeError(f"{where} needs a vector, or an array with a row for each vertex, got shape {list(given.shape)}")
        values = values_of(slot.type, given, given.size, where).reshape(given.shape)
        for offset in range(count):
            self.state.vectors[first + offset, slot.number] = values[offset] if given.ndim == 2 else values

    # -- reading --------------------------------------------------------------------------------------------------------------

    def described(self, number: int) -> str:
        """``Scale, vertex 3 of compute set 'scale', added at file:line``."""
        codelet, compute_set, place = self.rows[3 * number : 3 * number + 3]
        line = line_text(self.locations.location(place))
        return f"{self.kinds[codelet].name}, vertex {number} of compute set {self.set_names[compute_set]!r}, added at {line}"

    def field_text(self, number: int, slot: FieldSlot) -> str:
        """What messages call a field of a vertex: its name and type, and the vertex's."""
        held = repr(slot.type) if slot.record is None else f"records of {slot.record.name}"
        return f"field {slot.name!r} ({held}) of {self.described(number)}"

    def sizes(self) -> tuple[TableSize, ...]:
        """Rows and bytes of all tables."""
        vertices = TableSize("vertices", len(self.tile), 8 * len(self.rows) + self.tile.itemsize * len(self.tile))
        return vertices, self.edges.size(), self.constants.size(), self.state.size()

    def modules(self) -> tuple[tuple[str, int], ...]:
        """How many vertices are of each module: of compute sets whose debug names have the same beginning before the last slash.

        A part of the table is counted at a time, for this is asked where memory is short.
        """
        counts = np.zeros(len(self.set_names), np.int64)
        for begin in range(0, len(self.rows), _COUNTED):
            part = np.array(self.rows[begin : begin + _COUNTED])[1::3]
            counts += np.bincount(part, minlength=len(counts))
        modules: dict[str, int] = {}
        for name, count in zip(self.set_names, counts.tolist(), strict=True):
            module = name.rpartition("/")[0] or name
            modules[module] = modules.get(module, 0) + count
        return tuple((module, count) for module, count in modules.items() if count)

    def freeze(self) -> FrozenVertices:
        """The vertices as arrays, which later ones do not touch."""
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, 3)
        return FrozenVertices(
            codelet=rows[:, 0].astype(np.int32),
            compute_set=rows[:, 1].astype(np.int32),
            tile=np.array(self.tile, dtype=np.int32),
            location=rows[:, 2].astype(np.int32),
        )


def _whole(type: ElementType, value: Any) -> int | None:
    """The bits of a whole number that a type of integers can hold: libraries give a score of them with each call."""
    if value.__class__ is not int or type.is_floating or type is BOOL:
        return None
    low, high = type.limits
    return bits_of(type, value) if low <= value <= high else None


def pairs(connections: Any) -> Iterable[tuple[Any, Any]]:
    """Field names and values from a dict or a list of pairs."""
    if isinstance(connections, Mapping):
        return connections.items()
    ordered(connections, "the connections of a vertex", CONNECTIONS)
    listed = list(connections) if isinstance(connections, Iterable) else [connections]
    if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in listed):
        raise PoplarTypeError(
            f"connections are a dict or a list of pairs from field names to tensors or values, got {connections!r}"
        )
    return [(name, value) for name, value in listed]
