"""Runs typed codelets on groups of vertices in a memory of its own, without a graph around them."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pypoplar.codelet.backend.contract import NativeCodelet
from pypoplar.codelet.backend.native_codelet import native_code
from pypoplar.codelet.ir.block_numbers import most_blocks
from pypoplar.codelet.ir.checks import Checks
from pypoplar.codelet.ir.random_rounding import may_round_at_random
from pypoplar.codelet.ir.typed import For, Price, PricedCodelet, TypedField, check_priced
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.python.interpreted import VertexContext, VertexFault
from pypoplar.codelet.python.python_form import PythonForm
from pypoplar.interface.context_words import CALL_ARGUMENTS, CONTEXT_WORDS, UNLIMITED, WORK_WORDS, CallArgument, Context, Work
from pypoplar.interface.edge_rows import FieldWords, RowEntry, edge_row, entry_words
from pypoplar.interface.fault_codes import NO_FAULT, FloatingPoint
from pypoplar.interface.layout import NOTHING

Array = NDArray[Any]
Fields = Mapping[str, Any]  # of a vertex: arrays, or lists of arrays, by name
DTYPES: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "bool": np.bool_,
}  # fmt: skip
FAULT = [Context.FAULT, Context.FAULT_VERTEX, Context.FAULT_LOCATION, Context.FAULT_VALUE, Context.FAULT_BOUND]
PADDING = 64  # bytes around every span; a write there is an error of ours


def compile_codelet(codelet: PricedCodelet, checks: Checks = Checks()) -> NativeCodelet:  # noqa: B008  # frozen
    """The native code of a codelet that has its prices."""
    check_priced(codelet)
    return native_code(codelet, checks, _work(codelet, checks), lambda: codelet)


def _work(codelet: PricedCodelet, checks: Checks) -> list[tuple[int, ...]]:
    """What the blocks do and could cost, where the code counts it; their text does not say it."""
    if not checks.flops:
        return []
    work: list[tuple[int, ...]] = []
    for statement in walk(codelet.body):
        match statement:
            case Price(flops=flops, bytes=bytes, bound=bound):
                work.append((flops, bytes, bound))
            case For(price=price) if price is not None:
                work.append((price.bound, price.bound_of_rest))
    return work


class Memory:
    """An arena, the edge rows and the row table of a group; fields are given as arrays (scalar fields of one element)."""

    def __init__(self, codelet: PricedCodelet, vertices: Sequence[Fields], *, touches: bool = False) -> None:
        self.codelet, self.vertices, self.touches = codelet, vertices, touches
        self.size = PADDING
        self.pieces: list[tuple[int, Array]] = []  # (address, array)
        self.touched: dict[tuple[Any, ...], int] = {}
        self.row_table: list[Array] = []
        rows = []
        layout = edge_row(codelet.fields, record_touches=touches)
        for number, fields in enumerate(vertices):
            words = np.zeros(layout.words, np.int64)
            for field, place in zip(codelet.fields, layout.fields, strict=True):
                self._field(number, field, place, fields[field.name], words)
            rows.append(words)
        self.rows = np.array(rows, np.int64)
        self.table = np.array(self.row_table, np.int64).reshape(-1)
        self.bytes = np.full(self.size, 0xA5, np.uint8)
        for address, array in self.pieces:
            self.bytes[address : address + array.nbytes] = array.view(np.uint8)
        self.before = self.bytes.copy()

    def _place(self, array: Array) -> int:
        address = self.size
        self.pieces.append((address, array))
        self.size += -(-array.nbytes // 8) * 8 + PADDING
        return address

    def _array(self, field: TypedField, value: object) -> Array:
        return np.ascontiguousarray(np.asarray(value, DTYPES[field.element]).reshape(-1))

    def _span(self, key: tuple[Any, ...], field: TypedField, value: object) -> tuple[int, int, int]:
        """Place a span; returns where it is, its length, and where its touches are noted, 0 for nowhere."""
        array = self._array(field, value)
        address = self._place(array)
        if self.touches:
            self.touched[key] = self._place(np.zeros(array.size, np.uint8))
        return address, array.size, self.touched.get(key, 0)

    def _field(self, number: int, field: TypedField, place: FieldWords, value: Any, words: Array) -> None:
        key = (number, field.name)
        if field.form == "list":
            words[place.start], words[place.extent] = len(self.row_table), len(value)
            for r, row in enumerate(value):
                entry = np.zeros(entry_words(record_touches=self.touches), np.int64)
                entry[RowEntry.ADDRESS], entry[RowEntry.LENGTH], touch = self._span((*key, r), field, row)
                if self.touches:
                    entry[RowEntry.TOUCH] = touch
                self.row_table.append(entry)
            return
        words[place.start], length, touch = self._span(key, field, value)
        if place.extent != NOTHING:
            words[place.extent] = length
        if place.touch != NOTHING:
            words[place.touch] = touch

    def fields(self) -> list[dict[str, Any]]:
        """What each field holds now: a list of dicts of arrays, or of lists of arrays."""
        vertices, pieces = [], iter(self.pieces)
        for fields in self.vertices:
            values = {}
            for field in self.codelet.fields:
                rows = []
                for _ in fields[field.name] if field.form == "list" else [None]:
                    address, array = next(pieces)
                    rows.append(self.bytes[address : address + array.nbytes].view(array.dtype).copy())
                    if self.touches:
                        next(pieces)
                values[field.name] = rows if field.form == "list" else rows[0]
            vertices.append(values)
        return vertices

    def touch_bytes(self) -> dict[tuple[Any, ...], list[int]]:
        sizes = dict(self.pieces)
        return {key: self.bytes[address : address + sizes[address].size].tolist() for key, address in self.touched.items()}

    def outside_is_untouched(self) -> bool:
        outside = np.ones(self.size, bool)
        for address, array in self.pieces:
            outside[address : address + array.nbytes] = False
        return bool((self.bytes[outside] == self.before[outside]).all())


class Outcome:
    """What a call left behind."""

    def __init__(self, memory: Memory, slots: list[int], results: list[Any], context: Array, debug: Array | None) -> None:
        self.fields, self.slots, self.results = memory.fields(), slots, results
        self.code, self.vertex, self.where, self.value, self.bound = (int(context[word]) for word in FAULT)
        self.fault = (self.code, self.vertex, self.where, self.value, self.bound) if self.code else None
        self.debug, self.debug_used = debug, int(context[Context.DEBUG_USED])
        self.touched = memory.touch_bytes() if memory.touches else {}
        self.work: list[list[int]] | None = None  # `Work` of each vertex, if it was counted
        self.blocks: list[int] = []  # executions of all vertices together, by number, if they were counted
        self.random: list[int] = []  # the state of the random numbers


def random_states(first: Sequence[int] | None, workers: int) -> NDArray[np.uint64]:
    """[workers, 2]: states of random generators that begin with these words, and go on with others."""
    states = np.arange(1, 2 * workers + 1, dtype=np.uint64)
    given = np.array(first or [], np.uint64)[: len(states)]
    states[: len(given)] = given
    return states.reshape(workers, 2)


def _work_of_vertex(workers: Array) -> list[int]:
    """Work of a vertex from that of its workers: flops and bytes of all, the largest of what they spent and could have."""
    done, spent = [Work.FLOPS, Work.BYTES], [Work.COMPILED, Work.BOUND]
    return [*workers[:, done].sum(0).tolist(), *workers[:, spent].max(0).tolist()]


def run_native(  # noqa: PLR0913 - a rig has a knob for everything
    codelet: PricedCodelet,
    vertices: Sequence[Fields],
    *,
    cycle_limit: int = UNLIMITED,
    clock: int = 0,
    random: Sequence[int] | None = None,  # words of the state of each worker's generator, one behind the other
    debug_words: int = 0,
    mask: int = 0,
    workers: int = 6,
    record_touches: bool = False,
    uninitialised_checks: bool = False,
    floating_point_checks: bool = False,
    count_flops: bool = False,
    count_blocks: bool = False,
) -> Outcome:
    """Run a group of vertices natively; `vertices` is a list of dicts, field name to array (or list of arrays)."""
    stochastic = mask & FloatingPoint.STOCHASTIC != 0 and may_round_at_random(codelet)
    machine_code = compile_codelet(
        codelet,
        Checks(record_touches, uninitialised_checks, floating_point_checks, count_flops, count_blocks, stochastic),
    )
    memory = Memory(codelet, vertices, touches=record_touches)
    count = len(vertices)
    slots = np.full(count * (workers if codelet.kind == "multi" else 1), -1, np.int64)
    results = np.full(count, 7, np.uint8)
    context = np.zeros(CONTEXT_WORDS, np.int64)
    state = random_states(random, workers)
    debug = np.zeros(max(debug_words, 1), np.int64)
    context[[Context.CYCLE_LIMIT, Context.SUPERVISOR_LIMIT]] = cycle_limit
    context[Context.CLOCK], context[Context.RANDOM] = clock, state.ctypes.data
    context[Context.DEBUG], context[Context.DEBUG_WORDS] = (debug.ctypes.data, debug_words) if debug_words else (0, 0)
    work = np.full((len(slots), WORK_WORDS), -1, np.int64)
    context[Context.WORKERS], context[Context.FLOATING_POINT], context[Context.WORK] = workers, mask, work.ctypes.data
    blocks = np.zeros(most_blocks(codelet), np.int64)
    context[Context.BLOCKS] = blocks.ctypes.data
    arguments = [0] * CALL_ARGUMENTS
    arguments[CallArgument.MEMORY], arguments[CallArgument.ROWS] = memory.bytes.ctypes.data, memory.rows.ctypes.data
    arguments[CallArgument.ROW_TABLE], arguments[CallArgument.COUNT] = memory.table.ctypes.data, count
    arguments[CallArgument.SLOTS], arguments[CallArgument.RESULTS] = slots.ctypes.data, results.ctypes.data
    arguments[CallArgument.CONTEXT] = context.ctypes.data
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * CALL_ARGUMENTS)(machine_code.address)(*arguments)
    assert memory.outside_is_untouched()
    outcome = Outcome(memory, slots.tolist(), results.tolist(), context, debug)
    outcome.work = [_work_of_vertex(rows) for rows in work.reshape(count, -1, WORK_WORDS)] if count_flops else None
    assert count_flops or (work == -1).all()
    outcome.blocks = blocks.tolist()
    outcome.random = state.ravel().tolist()
    return outcome


def run_interpreted(  # noqa: PLR0913 - a rig has a knob for everything
    codelet: PricedCodelet,
    vertices: Sequence[Fields],
    *,
    cycle_limit: int = UNLIMITED,
    clock: int = 0,
    random: Sequence[int] | None = None,
    mask: int = 0,
    workers: int = 6,
    touches: bool = False,
    unwritten: bool = False,
    flops: bool = False,
    blocks: bool = False,
) -> Outcome:
    """Run a group of vertices in plain Python, as the interpreting engine does; the outcome has what a native one has."""
    memory = Memory(codelet, vertices, touches=touches)
    state = random_states(random, workers)
    form = PythonForm(codelet, record_touches=touches, count_flops=flops, count_blocks=blocks)
    slots: list[int] = []
    results: list[bool | None] = []
    work, context, counts = [], np.zeros(CONTEXT_WORDS, np.int64), np.zeros(most_blocks(codelet), np.int64)
    words = memory.rows.reshape(-1)
    for number in range(len(vertices)):
        around = VertexContext(clock, cycle_limit, state, mask, unwritten, workers, number=number)
        row = number * memory.rows.shape[1] if memory.rows.ndim == 2 else 0
        try:
            spent, result = form.run(memory.bytes, words, row, memory.table, around)
        except VertexFault as fault:
            spent, result = around.slots, None
            if context[Context.FAULT] == NO_FAULT:
                context[FAULT] = fault.code, number, fault.where, fault.value, fault.bound
        slots.append(spent)
        results.append(result)
        work.append([around.flops, around.bytes, spent, around.bound])
        for block, times in around.blocks.items():
            counts[block] += times
    assert memory.outside_is_untouched()
    outcome = Outcome(memory, slots, results, context, None)
    outcome.work = work if flops else None
    outcome.blocks = counts.tolist()
    outcome.random = state.ravel().tolist()
    return outcome
