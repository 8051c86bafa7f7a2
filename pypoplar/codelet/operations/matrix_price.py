"""What the multiply-accumulate unit takes for a product, as PopLibs' ConvPartial1x1Out uses it."""

from __future__ import annotations

from typing import Any

from attrs import frozen

SLOT_CYCLES = 6  # a worker issues an instruction in turn with five others


@frozen
class MatrixPrice:
    """A price in cycles of a tile whose six workers all do the same, six for each of a worker's slots.

    A pass multiplies rows by `pass_depth` x `pass_columns` weights, which are loaded before it. `first_rows` are a worker's slots
    of passes over 1, 2 and 3 rows, `row` those of each row beyond; without rows there are no passes. Passes that begin their
    outputs with zeros instead of reading them take so many slots more: `zeroing`, and `zeroing_row` for each row.
    """

    pass_depth: int
    pass_columns: int
    start: int  # cycles of a product
    inner: int  # cycles for each `pass_depth` of the depth, beside the passes
    load: int  # cycles of a pass beside the worker's: its weights are loaded
    row: int
    first_rows: tuple[int, int, int]
    zeroing: int
    zeroing_row: int
    mark: str

    def passes(self, depth: Any, columns: Any) -> tuple[Any, Any]:
        """Into how many parts the depth is cut, and the columns."""
        return -(-depth // self.pass_depth), -(-columns // self.pass_columns)

    def cycles(self, rows: Any, depth: Any, columns: Any, *, zeroes: bool = False) -> Any:
        """Cycles of a product; `zeroes` the outputs first. Numbers, or NumPy's arrays of them."""
        inner, outer = self.passes(depth, columns)
        alone, two, three = self.first_rows
        first = (rows == 1) * alone + (rows == 2) * two + (rows > 2) * three
        beyond = (rows > 3) * (rows - 3)
        cycles = self.start + (rows > 0) * inner * (self.inner + outer * (self.load + SLOT_CYCLES * (first + self.row * beyond)))
        return cycles + SLOT_CYCLES * outer * (self.zeroing + self.zeroing_row * rows) if zeroes else cycles

    def slots(self, rows: Any, depth: Any, columns: Any, *, zeroes: bool = False) -> Any:
        """Issue slots of a worker."""
        return -(-self.cycles(rows, depth, columns, zeroes=zeroes) // SLOT_CYCLES)

    def moved_bytes(self, rows: Any, depth: Any, columns: Any, element: int, result: int) -> Any:
        """Bytes moved, of elements of so many: weights once, inputs for each part of the columns, outputs for each of the depth."""
        inner, outer = self.passes(depth, columns)
        return element * depth * (columns + rows * outer) + 2 * result * rows * columns * inner
