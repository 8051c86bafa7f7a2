"""What a codelet reads of the tile that it runs on, a row for each: the cycle counter, random numbers, the number of workers.

Unlike an operation's, these numbers do not come from operands alone. A row has all that there is to know of a reading, as an
operation's has: what it means, in terms of what the interpreter knows of a vertex, and how it is written for LLVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from attrs import frozen

from pypoplar.codelet.operations.device_operation import IssueSlots, slots
from pypoplar.codelet.operations.registers import Number
from pypoplar.spelling import nearest


class RunningVertex(Protocol):
    """What a meaning works with: the vertex that runs, and its tile."""

    clock: int  # cycles when the compute set's vertices start
    slots: int  # that the vertex has spent
    slot_cycles: int  # of one slot
    workers: int  # of the tile

    def next_random(self) -> int:
        """The next number of the worker's generator, xoroshiro128aox: 64 bits."""


class ReadingEmitter(Protocol):
    """What a recipe for LLVM works with. Numbers are LLVM's ``i64``, if nothing else is said."""

    @property
    def builder(self) -> Any:
        """llvmlite's, where the reading is to be written."""

    @property
    def clock(self) -> Any:
        """Cycles when the compute set's vertices start."""

    @property
    def slots(self) -> Any:
        """Slots that the vertex has spent."""

    @property
    def slot_cycles(self) -> Any:
        """Cycles of one slot."""

    @property
    def workers(self) -> Any:
        """Worker threads of the tile."""

    def next_random(self) -> Any:
        """The next number of the worker's generator, xoroshiro128aox, an ``i64``."""

    def register(self, type: str) -> Any:
        """LLVM's type for a register type."""

    def constant(self, like: Any, value: float) -> Any:
        """A number of the type that a value has."""


@frozen(kw_only=True)
class TileReading:
    """A row: the name in the typed form, the result's register type, how users call it, what it is and what it costs."""

    name: str
    result: str
    call: str
    meaning: Callable[[RunningVertex], Number]
    llvm: Callable[[ReadingEmitter], Any]
    prices: IssueSlots
    ends_run: bool = False  # it depends on the slots spent: what comes after it in a straight run is not part of it

    def slots(self, architecture: str) -> int:
        """What it costs; `LookupError` where nobody has said."""
        if architecture not in self.prices.architectures:
            raise LookupError(f"{self.name} has no price for architecture '{architecture}'")
        return self.prices.slots


def _cycle_count_recipe(emitter: ReadingEmitter) -> Any:
    builder = emitter.builder
    spent = builder.mul(emitter.slots, emitter.slot_cycles)
    return builder.trunc(builder.add(emitter.clock, spent), emitter.register("u32"))


def _random_uint_recipe(emitter: ReadingEmitter) -> Any:
    builder, bits = emitter.builder, emitter.next_random()
    return builder.trunc(builder.lshr(bits, emitter.constant(bits, 32)), emitter.register("u32"))


def _random_ulonglong_recipe(emitter: ReadingEmitter) -> Any:
    return emitter.next_random()


def _random_float_recipe(emitter: ReadingEmitter) -> Any:
    builder, bits = emitter.builder, emitter.next_random()
    upper = builder.uitofp(builder.lshr(bits, emitter.constant(bits, 40)), emitter.register("f32"))
    return builder.fmul(upper, emitter.constant(upper, 2.0**-24))


WORKER_COUNT = "worker_count"
READINGS: Mapping[str, TileReading] = {
    reading.name: reading
    for reading in (
        TileReading(
            name="cycle_count", result="u32", call="ipu.cycle_count", ends_run=True, prices=slots("", 1, "I"),
            meaning=lambda vertex: (vertex.clock + vertex.slots * vertex.slot_cycles) % 2**32,
            llvm=_cycle_count_recipe,
        ),
        TileReading(  # a constant of the architecture
            name=WORKER_COUNT, result="i32", call="ipu.worker_count", prices=slots("", 1, "I"),
            meaning=lambda vertex: vertex.workers,
            llvm=lambda emitter: emitter.builder.trunc(emitter.workers, emitter.register("i32")),
        ),
        TileReading(
            name="random_u32", result="u32", call="ipu.random_uint", prices=slots("", 1, "I"),
            meaning=lambda vertex: vertex.next_random() >> 32,
            llvm=_random_uint_recipe,
        ),
        TileReading(  # the instruction urand64, which PopLibs' random codelets use
            name="random_u64", result="u64", call="ipu.random_ulonglong", prices=slots("", 1, "S"),
            meaning=lambda vertex: vertex.next_random(),
            llvm=_random_ulonglong_recipe,
        ),
        TileReading(  # uniform in [0, 1): the upper 24 bits
            name="random_f32", result="f32", call="ipu.random_float", prices=slots("", 3, "I"),  # made with two more instructions
            meaning=lambda vertex: (vertex.next_random() >> 40) * 2.0**-24,
            llvm=_random_float_recipe,
        ),
    )
}  # fmt: skip


def reading(name: str) -> TileReading:
    """The reading of a name in the typed form; `LookupError` with the nearest name if there is none."""
    if name in READINGS:
        return READINGS[name]
    raise LookupError(f"there is no reading '{name}' of a tile{nearest(name, READINGS)}")


def reading_called(call: str) -> TileReading | None:
    """The reading that users write so, if there is one."""
    return next((reading for reading in READINGS.values() if reading.call == call), None)
