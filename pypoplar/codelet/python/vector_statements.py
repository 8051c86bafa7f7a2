"""Operations on vectors in the Python form of a codelet: before their loops they are judged and paid for."""

from __future__ import annotations

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import ApplyToVectors
from pypoplar.codelet.operations.matrix_unit import vector_operation
from pypoplar.codelet.python.interpreted import MemoryVector, VertexContext, VertexFault
from pypoplar.interface.layout import NOTHING


def begin_vector_operation(statement: ApplyToVectors, context: VertexContext, *operands: MemoryVector | int) -> None:
    """Judge the operands, vectors and then numbers, and pay for what the loops do."""
    row, price, where = vector_operation(statement.operation), statement.price, statement.where
    assert price is not None
    lengths = [operand.length for operand in operands if isinstance(operand, MemoryVector)]
    numbers = [int(operand) for operand in operands if not isinstance(operand, MemoryVector)]
    fault = row.fault(numbers, lengths)
    if fault is not None:
        code, value, bound = fault
        raise VertexFault(code, where, value, bound)
    counts = numbers[: len(row.counts)]
    rows, depth, columns = counts
    slots = price.slots(rows, depth, columns)
    context.check_rounds(1, slots, where)
    written, read = (SIZES[span.element] for span in (statement.vectors[0], statement.vectors[-1]))
    context.slots += slots
    context.bound += slots
    context.flops += row.flops(rows, depth, columns)
    context.bytes += price.moved_bytes(rows, depth, columns, read, written)
    if statement.block != NOTHING:
        context.blocks[statement.block] += slots
