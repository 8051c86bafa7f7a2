"""Writes operations on vectors as LLVM instructions: their operands are judged, they are paid for, and then they run.

Where an operation's elements are only its own, and nothing is looked after at each access, it runs as fast as the host can
(`pypoplar.codelet.llvm.product_kernel`); else as the loops that it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import ApplyToVectors
from pypoplar.codelet.llvm.emitter_state import EmitterState
from pypoplar.codelet.llvm.memory_forms import word
from pypoplar.codelet.llvm.product_kernel import product_kernel
from pypoplar.codelet.operations.matrix_price import SLOT_CYCLES, MatrixPrice
from pypoplar.interface.context_words import Work
from pypoplar.interface.fault_codes import FaultCode

STRETCH = 1 << 25  # products between two looks at whether the run has been stopped: some hundredths of a second


def emit_vector_operation(state: EmitterState, statement: ApplyToVectors) -> None:
    numbers = [state.index(number) for number in statement.numbers]
    extents = _extents(state, numbers)
    _judge(state, statement, numbers, extents)
    _pay(state, statement, numbers[:3])
    rounds_at_random = state.checks.stochastic and statement.vectors[0].element == "f16"
    if rounds_at_random or not state.checks.only_counts:
        state.emit_block(statement.loops)
        return
    builder = state.builder
    fast, loops, after = (builder.append_basic_block(name) for name in ("product", "product.loops", "product.end"))
    builder.cbranch(_apart(state, statement, extents), fast, loops)
    builder.position_at_end(fast)
    _run_kernel(state, statement, numbers, after)
    builder.position_at_end(loops)
    state.emit_block(statement.loops)
    state.go(after)
    builder.position_at_end(after)


def _extents(state: EmitterState, numbers: Sequence[Any]) -> tuple[Any, ...]:
    """How many elements are needed of each vector."""
    builder = state.builder
    rows, depth, columns, out_stride, a_stride, b_stride = numbers
    some_rows, some_depth, some_columns = (builder.icmp_signed(">", count, word(0)) for count in (rows, depth, columns))
    written = builder.and_(some_rows, some_columns)
    read = builder.and_(written, some_depth)

    def extent(some: Any, lines: Any, stride: Any, length: Any) -> Any:
        end = builder.add(builder.mul(builder.sub(lines, word(1)), stride), length)
        return builder.select(some, end, word(0))

    return (
        extent(written, rows, out_stride, columns),
        extent(read, rows, a_stride, depth),
        extent(read, depth, b_stride, columns),
    )


def _judge(state: EmitterState, statement: ApplyToVectors, numbers: Sequence[Any], extents: Sequence[Any]) -> None:
    """Faults as `VectorOperation.fault` has them."""
    builder, where = state.builder, statement.where
    for place, number in enumerate(numbers):
        fine = builder.icmp_signed(">=", number, word(0))
        state.fault_unless(fine, FaultCode.VECTOR_COUNT, where, number, word(place))
    rows, _, columns, stride = numbers[:4]
    fine = builder.or_(builder.icmp_signed("<=", rows, word(1)), builder.icmp_signed(">=", stride, columns))
    state.fault_unless(fine, FaultCode.VECTOR_ROWS, where, stride, columns)
    for place, (span, extent) in enumerate(zip(statement.vectors, extents, strict=True)):
        length = state.place(span).length
        bound = builder.or_(length, word(place << 32))
        state.fault_unless(builder.icmp_signed("<=", extent, length), FaultCode.VECTOR_EXTENT, where, extent, bound)


def _pay(state: EmitterState, statement: ApplyToVectors, counts: Sequence[Any]) -> None:
    """Judge the vertex by the cycle limit with what the operation costs, and pay."""
    builder, price = state.builder, statement.price
    assert price is not None
    rows, depth, columns = counts
    inner, outer = _parts(builder, depth, price.pass_depth), _parts(builder, columns, price.pass_columns)
    slots = _slots(state, price, rows, inner, outer)
    spent, limit = builder.load(state.slots), state.limit()
    fine = builder.icmp_signed("<=", builder.add(spent, slots), limit)
    state.fault_unless(fine, FaultCode.CYCLE_LIMIT, statement.where, spent, limit)
    state.add_to(state.slots, slots)
    state.count_block(statement.block, slots)
    if state.work:
        written, read = (SIZES[span.element] for span in (statement.vectors[0], statement.vectors[-1]))
        products = builder.mul(builder.mul(rows, depth), columns)
        loaded = builder.mul(depth, builder.add(columns, builder.mul(rows, outer)))
        passed = builder.mul(builder.mul(rows, columns), inner)
        moved = builder.add(builder.mul(loaded, word(read)), builder.mul(passed, word(2 * written)))
        for column, amount in ((Work.FLOPS, builder.mul(products, word(2))), (Work.BYTES, moved), (Work.BOUND, slots)):
            state.add_to(state.work[column], amount)


def _parts(builder: Any, count: Any, size: int) -> Any:
    return builder.udiv(builder.add(count, word(size - 1)), word(size))


def _slots(state: EmitterState, price: MatrixPrice, rows: Any, inner: Any, outer: Any) -> Any:
    builder = state.builder
    first = word(price.first_rows[-1])
    for few, slots in enumerate(price.first_rows[:-1], 1):
        first = builder.select(builder.icmp_signed("==", rows, word(few)), word(slots), first)
    beyond = builder.sub(rows, word(3))
    beyond = builder.select(builder.icmp_signed(">", beyond, word(0)), beyond, word(0))
    of_pass = builder.add(first, builder.mul(beyond, word(price.row)))
    passes = builder.mul(outer, builder.add(word(price.load), builder.mul(of_pass, word(SLOT_CYCLES))))
    of_inner = builder.mul(inner, builder.add(word(price.inner), passes))
    some = builder.icmp_signed(">", rows, word(0))
    cycles = builder.add(word(price.start), builder.select(some, of_inner, word(0)))
    return _parts(builder, cycles, SLOT_CYCLES)


def _apart(state: EmitterState, statement: ApplyToVectors, extents: Sequence[Any]) -> Any:
    """Whether what is written lies wholly before or behind what is read."""
    builder = state.builder
    begins = [state.place(span).address for span in statement.vectors]
    ends = [
        builder.add(begin, builder.mul(extent, word(SIZES[span.element])))
        for begin, extent, span in zip(begins, extents, statement.vectors, strict=True)
    ]
    apart = None
    for begin, end in zip(begins[1:], ends[1:], strict=True):
        clear = builder.or_(builder.icmp_unsigned("<=", ends[0], begin), builder.icmp_unsigned("<=", end, begins[0]))
        apart = clear if apart is None else builder.and_(apart, clear)
    return apart


def _run_kernel(state: EmitterState, statement: ApplyToVectors, numbers: Sequence[Any], after: Any) -> None:
    """Some rows at a time, and looks in between."""
    builder = state.builder
    rows, depth, columns, *strides = numbers
    kernel = product_kernel(builder.module, statement.vectors[0].element, statement.vectors[1].element)
    out, a, b = (state.place(span).address for span in statement.vectors)
    row_bytes = [builder.mul(stride, word(SIZES[span.element])) for stride, span in zip(strides, statement.vectors, strict=True)]
    of_row = builder.add(builder.mul(depth, columns), word(1))
    most = builder.add(builder.udiv(word(STRETCH), of_row), word(1))
    before = builder.block
    top, looking = (builder.append_basic_block(name) for name in ("product.rows", "product.look"))
    builder.cbranch(builder.icmp_signed(">", rows, word(0)), top, after)
    builder.position_at_end(top)
    done = builder.phi(out.type)
    done.add_incoming(word(0), before)
    left = builder.sub(rows, done)
    count = builder.select(builder.icmp_unsigned("<", left, most), left, most)
    out_row, a_row = (builder.add(begin, builder.mul(done, size)) for begin, size in zip((out, a), row_bytes, strict=False))
    builder.call(kernel, [out_row, a_row, b, count, depth, columns, *row_bytes])
    upcoming = builder.add(done, count)
    builder.cbranch(builder.icmp_unsigned("<", upcoming, rows), looking, after)
    builder.position_at_end(looking)
    spent, limit = builder.load(state.slots), state.limit()
    state.fault_unless(builder.icmp_signed("<=", spent, limit), FaultCode.CYCLE_LIMIT, statement.where, spent, limit)
    done.add_incoming(upcoming, builder.block)
    builder.branch(top)
