"""Rows of what a vertex reduces, as ranges of a vector: views are made of many of them at once."""

from __future__ import annotations

from attrs import frozen

from pypoplar.graph.tensor import Tensor
from pypoplar.types import ElementType


@frozen(eq=False)
class HeldRow:
    """The elements ``[begin, end)`` of a vector."""

    vector: Tensor
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin

    @property
    def type(self) -> ElementType:
        return self.vector.elementType()

    def slice(self, begin: int, end: int) -> HeldRow:
        """The elements ``[begin, end)`` of the row, which has them."""
        return HeldRow(self.vector, self.begin + begin, self.begin + end)
