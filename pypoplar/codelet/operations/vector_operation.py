"""What a device operation on vectors is: one row, from which both engines, prices, translator and errors take what they need.

Its operands are vectors, counts of what it works on, and strides: how far the rows of each vector lie apart. Price, floating-point
operations and bytes follow from the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from pypoplar.codelet.operations.device_operation import ARCHITECTURES, MARKS
from pypoplar.codelet.operations.matrix_price import MatrixPrice
from pypoplar.codelet.operations.row_claims import wrong
from pypoplar.interface.fault_codes import FaultCode

Extents = Callable[..., tuple[int, ...]]


@frozen(kw_only=True, eq=False)
class VectorOperation:
    """A row. The operands stand in the order of the call: vectors, counts, strides.

    The first of the `vectors` is written, its rows side by side: its stride is at least the last of the counts. `types` are the
    register types that the vectors' elements may have together.
    """

    name: str
    call: str  # how users write it
    vectors: tuple[str, ...]
    counts: tuple[str, ...]
    strides: Mapping[str, str]  # of each vector, and the count that it is if none is given
    types: tuple[tuple[str, ...], ...]
    meaning: Callable[..., None]  # on the host
    extents: Extents  # of counts and strides: how many elements of each vector are needed
    prices: Mapping[tuple[str, str], MatrixPrice]  # by architecture, and the register type of the vectors that are read
    flops: Callable[..., int]  # of the counts

    def __attrs_post_init__(self) -> None:
        if len(self.strides) != len(self.vectors) or not set(self.strides.values()) <= set(self.counts):
            raise wrong(self.name, f": each of its vectors has a stride that may be a count, got {dict(self.strides)}")
        for architecture, type in ((architecture, types[-1]) for architecture in ARCHITECTURES for types in self.types):
            if (architecture, type) not in self.prices:
                raise wrong(self.name, f": it has no price on '{architecture}' for {type}")
        for price in self.prices.values():
            if price.mark not in MARKS:
                raise wrong(self.name, f": a price's mark is {price.mark!r}, expected one of {', '.join(MARKS)}")

    @property
    def numbers(self) -> tuple[str, ...]:
        return (*self.counts, *self.strides)

    @property
    def parameters(self) -> tuple[str, ...]:
        return (*self.vectors, *self.numbers)

    def price(self, architecture: str, type: str) -> MatrixPrice:
        """What it costs; `LookupError` where nobody has said."""
        if (architecture, type) not in self.prices:
            raise LookupError(f"device operation {self.name} has no price for architecture '{architecture}'")
        return self.prices[architecture, type]

    def fault(self, numbers: Sequence[int], lengths: Sequence[int]) -> tuple[FaultCode, int, int] | None:
        """Why the operation is an error with these counts and strides, on vectors of these lengths: code, value, bound."""
        for place, number in enumerate(numbers):
            if number < 0:
                return FaultCode.VECTOR_COUNT, number, place
        rows, columns, stride = numbers[0], numbers[len(self.counts) - 1], numbers[len(self.counts)]
        if rows > 1 and stride < columns:
            return FaultCode.VECTOR_ROWS, stride, columns
        for place, (extent, length) in enumerate(zip(self.extents(*numbers), lengths, strict=True)):
            if extent > length:
                return FaultCode.VECTOR_EXTENT, extent, place << 32 | length
        return None
