"""What a product of matrices is: its sizes and types."""

from __future__ import annotations

from attrs import frozen

from pypoplar.types import FLOAT, HALF, ElementType


@frozen
class ProductParams:
    """A product [groups, rows, depth] x [groups, depth, columns]; partial products are of type `partials`.

    Its blocks may take the part `memory` of a tile's memory. Partial products that are HALFs are never rounded at random where
    it is `always_nearest`.
    """

    groups: int
    rows: int
    depth: int
    columns: int
    type: ElementType
    result: ElementType
    partials: ElementType
    memory: float
    always_nearest: bool = False

    @property
    def stride(self) -> int:
        """Elements from row to row of partial products: neighbouring workers share no word of halves."""
        return self.columns + (self.columns % 2 if self.partials is HALF else 0)

    @property
    def empty(self) -> bool:
        """Whether nothing is multiplied."""
        return 0 in (self.groups, self.rows, self.depth, self.columns)

    @property
    def a_shape(self) -> list[int]:
        return [self.groups, self.rows, self.depth]

    @property
    def b_shape(self) -> list[int]:
        return [self.groups, self.depth, self.columns]

    @property
    def out_shape(self) -> list[int]:
        return [self.groups, self.rows, self.columns]


def partials_type(type: ElementType, half: bool) -> ElementType:
    """The type of partial products: the unit has HALFs only of HALFs."""
    return HALF if half and type is HALF else FLOAT
