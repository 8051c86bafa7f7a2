"""What the Python form of a codelet works with: its tile's memory, its vectors, and what a vertex knows of its surroundings."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import Bytes, Int64s, UInt64s
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import TypedArray, TypedTable
from pypoplar.codelet.operations.registers import half_at_random
from pypoplar.interface.context_words import UNLIMITED
from pypoplar.interface.edge_rows import MOST_WORKERS, WORKER_SHIFT, RowEntry, Touch, entry_words
from pypoplar.interface.fault_codes import FaultCode

Number = int | float | bool

FORMATS = {
    "f32": struct.Struct("<f"), "i8": struct.Struct("<b"), "u8": struct.Struct("<B"), "i16": struct.Struct("<h"),
    "u16": struct.Struct("<H"), "i32": struct.Struct("<i"), "u32": struct.Struct("<I"), "i64": struct.Struct("<q"),
    "u64": struct.Struct("<Q"), "bool": struct.Struct("<B"), "f16": struct.Struct("<H"),
}  # fmt: skip
_UNWRITTEN = {"f32": (FORMATS["u32"], 0xFFFFFFFF), "f16": (FORMATS["u16"], 0xFFFF), "bool": (FORMATS["u8"], 0xFF)}
_DOUBLE = struct.Struct("<d")
# Not as members: NumPy asks what is beside an array for attributes, an enumeration answers in Python code, and NumPy ignores its
# errors, a Ctrl-C that arrives just there among them.
_READ, _WRITTEN = int(Touch.READ), int(Touch.WRITTEN)
_ALL_BITS = 2**64 - 1


class VertexFault(Exception):
    """What stops a vertex: a `FaultCode`, the location's number, and what was wrong."""

    def __init__(self, code: int, where: int, value: int = 0, bound: int = 0) -> None:
        super().__init__(code, where, value, bound)
        self.code, self.where, self.value, self.bound = code, where, value, bound


@define(eq=False)
class VertexContext:
    """What a vertex meets besides its fields. `slots`, `flops`, `bytes`, `bound` count as it runs."""

    clock: int = 0  # cycles when the compute set's vertices start
    cycle_limit: int = UNLIMITED  # slots
    random: UInt64s = field(factory=lambda: np.arange(1, 13, dtype=np.uint64).reshape(6, 2))  # states of the tile's workers
    floating_point_mask: int = 0  # `FloatingPoint` bits
    uninitialised_is_fault: bool = False
    workers: int = 6
    worker: int = 0  # of a MultiVertex, the one that runs
    number: int = 0  # of the vertex among those of its codelet that run on the tile in this compute set
    generator: int = 0  # of the tile's, the one that is asked for random numbers
    written: set[int] | None = None  # bytes of memory where elements begin that were stored to, while a promise is to be kept
    debug_print: Callable[[int, int, tuple[Number, ...]], None] | None = None  # gets location, text number, values
    undefined: Callable[[int, str], None] | None = None  # gets location and text of what the user's language leaves undefined
    slot_cycles: int = 6  # of one slot
    slots: int = 0
    waited: int = 0  # of a MultiVertex, slots in which its other workers waited for the slowest
    flops: int = 0  # where they are counted
    bytes: int = 0  # of elements loaded and stored, the same
    bound: int = 0  # slots that hand-written code could reach, the same
    blocks: Counter[int] = field(factory=Counter)  # executions by number, the same

    def check_limit(self, where: int) -> None:
        """At the beginning of each round of a loop, unless it is even."""
        if self.slots > self.cycle_limit:
            raise VertexFault(FaultCode.CYCLE_LIMIT, where, self.slots, self.cycle_limit)

    def check_rounds(self, rounds: int, slots: int, where: int) -> None:
        """Before the first of so many rounds of an even loop, of so many slots each."""
        if self.slots + rounds * slots > self.cycle_limit:
            raise VertexFault(FaultCode.CYCLE_LIMIT, where, self.slots, self.cycle_limit)

    def record(self, where: int, text: int, values: tuple[Number, ...]) -> None:
        if self.debug_print is not None:
            self.debug_print(where, text, values)

    def next_random(self) -> int:
        """The next 64 bits of the worker's xoroshiro128aox."""
        s0, s1 = (int(word) for word in self.random[self.generator])
        either, both = s0 ^ s1, s0 & s1
        self.random[self.generator] = _rotated(s0, 55) ^ either ^ (either << 14 & _ALL_BITS), _rotated(either, 36)
        return either ^ (_rotated(both, 1) | _rotated(both, 2))

    def half_at_random(self, value: float) -> float:
        """A float32 rounded to a half by the next bits of the worker's generator."""
        return half_at_random(value, self.next_random())


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _ALL_BITS


class MemoryVector:
    """A piece of the tile's memory: a field, a row or a slice. It reads like a list, in a debugger say.

    An index counts `unit` elements, 1 or the bytes of a record. Touches of what is `by_byte` are recorded for each of its bytes.
    """

    __slots__ = ("_address", "_bytes", "_context", "_element", "_given", "_length", "_marks", "_memory", "_size", "_touch")

    def __init__(  # noqa: PLR0913 - what is known of a place
        self,
        memory: Bytes,
        element: str,
        address: int,
        length: int,
        touch: int | None,
        context: VertexContext,
        given: bool,
        unit: int = 1,
        by_byte: bool = False,
    ) -> None:
        self._memory, self._element, self._address, self._length = memory, element, address, length
        self._bytes = memory.data
        self._size = SIZES[element] * unit  # bytes from an index to the next
        self._touch = touch  # offset of the first mark
        self._marks = self._size if by_byte else 1  # bytes from the marks of an index to those of the next
        self._context = context
        self._given = given  # an Input's: reading what the vertex has written is a fault where touches are recorded

    @property
    def length(self) -> int:
        return self._length

    def load(self, index: int, where: int) -> Number:
        """The element at `index`, checked."""
        self._check(index, where)
        self._note(index, _READ, where)
        if self._context.uninitialised_is_fault and self._element in _UNWRITTEN:
            form, pattern = _UNWRITTEN[self._element]
            if form.unpack_from(self._bytes, self._place(index))[0] == pattern:
                raise VertexFault(FaultCode.UNINITIALISED, where, index)
        return self._read(index)

    def store(self, index: int, value: Number, where: int) -> None:
        """Write the element at `index`, checked; `value` fits the element's register type."""
        self._check(index, where)
        self._note(index, _WRITTEN, where)
        form, place = FORMATS[self._element], self._place(index)
        if self._context.written is not None:
            self._context.written.add(place)
        if self._element == "f16":
            form.pack_into(self._bytes, place, int(np.float16(value).view(np.uint16)))
        elif self._element == "f32" and value != value:
            bits = int.from_bytes(_DOUBLE.pack(value), "little")  # a NaN keeps its bits
            FORMATS["u32"].pack_into(self._bytes, place, (bits >> 32 & 0x80000000) | 0x7F800000 | (bits >> 29 & 0x7FFFFF))
        elif self._element in ("i8", "u8", "i16", "u16"):
            size = 8 * form.size
            whole = int(value) % (1 << size)
            signed = self._element[0] == "i" and whole >> (size - 1)
            form.pack_into(self._bytes, place, whole - (1 << size) if signed else whole)
        else:
            form.pack_into(self._bytes, place, value)

    def left_out(self, written: set[int]) -> int | None:
        """The first of its elements that is not among those that were stored to."""
        return next((index for index in range(self._length) if self._place(index) not in written), None)

    def unwritten(self) -> MemoryVector:
        """This vector, whose elements nothing has written by now."""
        self._memory[self._address : self._place(self._length)] = 0xFF
        return self

    def slice(self, begin: int, end: int, where: int) -> MemoryVector:
        """The elements from `begin` up to `end`, a view."""
        _check_bounds(begin, end, self._length, where)
        touch = self._touch + begin * self._marks if self._touch is not None else None
        place, unit, by_byte = self._place(begin), self._size // SIZES[self._element], self._marks > 1
        return MemoryVector(self._memory, self._element, place, end - begin, touch, self._context, self._given, unit, by_byte)

    def member(self, index: int, offset: int, length: int, element: str, unit: int, where: int) -> MemoryVector:
        """What lies from byte `offset` of the record at `index` on, which is checked."""
        self._check(index, where)
        touch = self._touch + index * self._size + offset if self._touch is not None else None
        place = self._place(index) + offset
        return MemoryVector(self._memory, element, place, length, touch, self._context, self._given, unit, True)

    def view_as(self, size: int, alignment: int, where: int) -> MemoryVector:
        """These bytes as records of `size` bytes; they begin at a multiple of `alignment`, and hold whole records."""
        if self._address % alignment:
            raise VertexFault(FaultCode.VIEW_ALIGNMENT, where, self._address % alignment, alignment)
        if self._length % size:
            raise VertexFault(FaultCode.VIEW_SIZE, where, self._length, size)
        length, touch = self._length // size, self._touch
        return MemoryVector(self._memory, "u8", self._address, length, touch, self._context, self._given, size, True)

    def _note(self, index: int, bit: int, where: int) -> None:
        """Note a read or a write, where touches are recorded.

        It is a fault if another worker has touched the element and one of the two writes, and if an Input is read that the worker
        has written through the Output that is the same tensor. Workers run in order: one that was not the first is another one.
        """
        if self._touch is None:
            return
        first = self._touch + index * self._marks
        for place in range(first, first + self._marks):
            self._mark(place, bit, index, where)

    def _mark(self, place: int, bit: int, index: int, where: int) -> None:
        mark, own = int(self._memory[place]), bit | self._context.worker % MOST_WORKERS << WORKER_SHIFT
        if mark == 0:
            self._memory[place] = own
            return
        if mark >> WORKER_SHIFT != own >> WORKER_SHIFT and (mark | bit) & _WRITTEN:
            raise VertexFault(FaultCode.WORKER_RACE, where, place, mark | own << 8)
        if bit == _READ and self._given and mark & _WRITTEN:
            raise VertexFault(FaultCode.READ_AFTER_WRITE, where, index)
        self._memory[place] = mark | bit

    def _check(self, index: int, where: int) -> None:
        if not 0 <= index < self._length:
            raise VertexFault(FaultCode.INDEX, where, _signed(index), self._length)

    def _place(self, index: int) -> int:
        return self._address + index * self._size

    def _read(self, index: int) -> Number:
        value = FORMATS[self._element].unpack_from(self._bytes, self._place(index))[0]
        if self._element == "f16":
            return float(np.uint16(value).view(np.float16))
        if self._element == "bool":
            return bool(value)
        if self._element == "f32" and value != value:
            bits = FORMATS["u32"].unpack_from(self._bytes, self._place(index))[0]
            wide = (bits & 0x80000000) << 32 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
            return float(_DOUBLE.unpack(wide.to_bytes(8, "little"))[0])
        return value  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Number:
        if not 0 <= index < self._length:
            raise IndexError(f"index {index} of {self._length} elements")
        return self._read(index)

    def __iter__(self) -> Iterator[Number]:
        return (self._read(index) for index in range(self._length))

    def __repr__(self) -> str:
        if self._size > SIZES[self._element]:
            return f"[{self._length} records of {self._size} bytes]"
        shown = ", ".join(str(element) for element in list(self)[:8])
        return f"[{shown}{', ...' if self._length > 8 else ''}]"


class MemoryRows:
    """A list field: rows, each a vector of its own length."""

    __slots__ = ("_context", "_element", "_first", "_given", "_length", "_memory", "_table", "_touches")

    def __init__(
        self,
        memory: Bytes,
        element: str,
        table: Int64s,
        first: int,
        length: int,
        touches: bool,
        context: VertexContext,
        given: bool,
    ) -> None:
        self._memory, self._element, self._table, self._first, self._length = memory, element, table, first, length
        self._touches = touches  # whether they are recorded
        self._context, self._given = context, given

    @property
    def length(self) -> int:
        return self._length

    def row(self, index: int, where: int) -> MemoryVector:
        """The row at `index`, checked."""
        if not 0 <= index < self._length:
            raise VertexFault(FaultCode.ROW_INDEX, where, _signed(index), self._length)
        return self[index]

    def slice(self, begin: int, end: int, where: int) -> MemoryRows:
        """The rows from `begin` up to `end`."""
        _check_bounds(begin, end, self._length, where)
        first, length = self._first + begin, end - begin
        return MemoryRows(self._memory, self._element, self._table, first, length, self._touches, self._context, self._given)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> MemoryVector:
        if not 0 <= index < self._length:
            raise IndexError(f"row {index} of {self._length} rows")
        width = entry_words(record_touches=self._touches)
        entry = self._table[(self._first + index) * width :][:width]
        address, length = int(entry[RowEntry.ADDRESS]), int(entry[RowEntry.LENGTH])
        touch = int(entry[RowEntry.TOUCH]) if self._touches else None
        return MemoryVector(self._memory, self._element, address, length, touch, self._context, self._given)

    def __repr__(self) -> str:
        return f"[{', '.join(repr(self[index]) for index in range(min(4, self._length)))}{', ...' if self._length > 4 else ''}]"


def table_view(table: TypedTable) -> MemoryVector | MemoryRows:
    """A constant table, in a memory of its own."""
    memory, size = np.frombuffer(table.data, np.uint8), SIZES[table.element]
    if len(table.shape) == 1:
        return MemoryVector(memory, table.element, 0, table.shape[0], None, VertexContext(), False)
    rows, columns = table.shape
    entries = np.zeros((rows, entry_words(record_touches=False)), np.int64)
    entries[:, RowEntry.ADDRESS] = np.arange(rows) * columns * size
    entries[:, RowEntry.LENGTH] = columns
    return MemoryRows(memory, table.element, entries.ravel(), 0, rows, False, VertexContext(), False)


def scratch_view(array: TypedArray, context: VertexContext) -> MemoryVector:
    """A scratch array, in a memory of its own."""
    return MemoryVector(np.zeros(array.bytes, np.uint8), array.element, 0, array.length, None, context, False)


class Fields:
    """``self`` as a debugger shows it."""

    def __init__(self, views: dict[str, MemoryVector | MemoryRows], scalars: frozenset[str]) -> None:
        self.__dict__["_views"], self.__dict__["_scalars"] = views, scalars

    def __getattr__(self, name: str) -> Any:
        if name not in self._views:
            raise AttributeError(f"no field '{name}'")
        view = self._views[name]
        return view[0] if name in self._scalars else view

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("fields can be looked at here, not set")

    def __repr__(self) -> str:
        fields = (name for name in self._views if name.isidentifier())  # not tables and scratch arrays
        return ", ".join(f"{name} = {getattr(self, name)!r}" for name in fields)


def _check_bounds(begin: int, end: int, length: int, where: int) -> None:
    if not 0 <= end <= length:
        raise VertexFault(FaultCode.SLICE_BOUNDS, where, _signed(end), length)
    if not 0 <= begin <= end:
        raise VertexFault(FaultCode.SLICE_BOUNDS, where, _signed(begin), end)


def _signed(value: int) -> int:
    """An index as a fault records it: 64 bits, signed."""
    return value - 2**64 if value >= 2**63 else value
