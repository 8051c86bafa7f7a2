"""What ``ipu.multiply_accumulate`` means, in the typed form: three loops.

They are paid for with the operation, so their rounds have a price, which is nothing. The indices are of 32 bits, and do not wrap
where the operation is no error.
"""

from __future__ import annotations

from collections.abc import Callable

from pypoplar.codelet.ir.memory_types import REGISTERS_OF
from pypoplar.codelet.ir.typed import Apply, Block, For, IfElse, Literal, Load, Local, Operand, RoundsPrice, Span, Store

_ZERO, _ONE = Literal(0, "i32"), Literal(1, "i32")
_FREE = RoundsPrice(1, 0, 0)


def product_loops(vectors: tuple[Span, ...], numbers: tuple[Operand, ...], where: int, temporary: Callable[[str], Local]) -> Block:
    """``out[r][j] += sum over p of a[r][p] * b[p][j]``, the products added in order of p; `temporary` makes a local of a type."""
    out, a, b = vectors
    rows, depth, columns, out_stride, a_stride, b_stride = numbers
    r, p, j, out_row, a_row, b_row, of_out, of_a, of_b = (temporary("i32") for _ in range(9))
    x, y, product, total = (temporary("f32") for _ in range(4))

    def add(target: Local, left: Local, right: Local) -> Apply:
        return Apply(target, "add_i32", (left, right), where)

    def multiply(target: Local, left: Local, right: Operand) -> Apply:
        return Apply(target, "mul_i32", (left, right), where)

    def loop(variable: Local, stop: Operand, *body: Block) -> For:
        return For(variable, _ZERO, stop, _ONE, sum(body, ()), where, price=_FREE)

    def load(target: Local, span: Span, index: Local) -> Block:
        if REGISTERS_OF[span.element] == target.type:
            return (Load(target, span, index, where),)
        narrow = temporary(REGISTERS_OF[span.element])
        return (Load(narrow, span, index, where), Apply(target, "f32_from_f16", (narrow,), where))

    def store(span: Span, index: Local, value: Local) -> Block:
        if REGISTERS_OF[span.element] == value.type:
            return (Store(span, index, value, where),)
        narrow = temporary(REGISTERS_OF[span.element])
        return (Apply(narrow, "f16_from_f32", (value,), where), Store(span, index, narrow, where))

    add_product = (Apply(product, "mul_f32", (x, y), where), Apply(total, "add_f32", (total, product), where))
    adding = loop(
        p, depth,
        (add(of_a, a_row, p),), load(x, a, of_a),
        (multiply(b_row, p, b_stride), add(of_b, b_row, j)), load(y, b, of_b),
        add_product,
    )  # fmt: skip
    column = loop(j, columns, (add(of_out, out_row, j),), load(total, out, of_out), (adding,), store(out, of_out, total))
    lines = loop(r, rows, (multiply(out_row, r, out_stride), multiply(a_row, r, a_stride)), (column,))
    some = temporary("bool")  # rows of nothing may be very many
    return (Apply(some, "less_i32", (_ZERO, columns), where), IfElse(some, (lines,), (), where))
