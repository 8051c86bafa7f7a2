"""What a codelet reads of the tile that it runs on: the cycle counter and random numbers.

Unlike an operation's, these numbers do not come from operands alone. What they mean for the interpreter are the methods of the same
names of `pypoplar.codelet.python.interpreted.VertexContext`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from pypoplar.codelet.operations.device_operation import IssueSlots, slots

ReadingName = Literal["cycle_count", "random_u32", "random_f32"]


@frozen
class TileReading:
    """A row: the name in the typed form, the result's register type, how users call it, what it costs."""

    name: ReadingName
    result: str
    call: str
    prices: IssueSlots
    ends_run: bool = False  # what comes after it in a straight run is not part of it

    def slots(self, architecture: str) -> int:
        """What it costs; `LookupError` where nobody has said."""
        if architecture not in self.prices.architectures:
            raise LookupError(f"{self.name} has no price for architecture '{architecture}'")
        return self.prices.slots


READINGS: Mapping[ReadingName, TileReading] = {
    reading.name: reading
    for reading in (
        TileReading("cycle_count", "u32", "ipu.cycle_count", slots("", 1, "I"), ends_run=True),
        TileReading("random_u32", "u32", "ipu.random_uint", slots("", 1, "I")),
        TileReading("random_f32", "f32", "ipu.random_float", slots("", 3, "I")),  # made with two more instructions
    )
}
