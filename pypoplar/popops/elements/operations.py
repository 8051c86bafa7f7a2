"""The element-wise operations that popops has, as data."""

from __future__ import annotations

from attrs import frozen

from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT, ElementType

NUMBERS = (FLOAT, HALF, INT, UNSIGNED_INT)


@frozen
class BinaryOperation:
    """An operation on two tensors. `name` is PopLibs' and that of the vertices, `types` those of the operands."""

    name: str
    meaning: str
    types: tuple[ElementType, ...] = NUMBERS

    def vertex(self, type: ElementType, in_place: bool) -> str:
        """The name of the vertex that does it to tensors of `type`."""
        return templateVertex("popops::BinaryOp1DInPlace" if in_place else "popops::BinaryOp1D", self.name, type)


BINARY_OPERATIONS: dict[str, BinaryOperation] = {
    operation.name: operation
    for operation in (
        BinaryOperation("ADD", "a + b"),
        BinaryOperation("SUBTRACT", "a - b"),
        BinaryOperation("MULTIPLY", "a * b"),
        BinaryOperation("DIVIDE", "a / b", (FLOAT, HALF)),
        BinaryOperation("MAXIMUM", "the larger of a and b"),
        BinaryOperation("MINIMUM", "the smaller of a and b"),
    )
}
