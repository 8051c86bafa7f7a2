"""Writes operations on vectors as LLVM instructions: their operands are judged, they are paid for, and then they run.

Where an operation's elements are only its own, and nothing is looked after at each access, it runs as fast as the host can
(`pypoplar.codelet.llvm.product_kernel`); else as the loops that it means. Where halves are rounded at random, the fast way has sums
in floats of its own, and rounds them in the order of the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import ApplyToVectors
from pypoplar.codelet.llvm import halves
from pypoplar.codelet.llvm.debug_and_random import LlvmReadingEmitter
from pypoplar.codelet.llvm.emitter_state import EmitterState
from pypoplar.codelet.llvm.halves import SHORT
from pypoplar.codelet.llvm.memory_forms import FLOAT, WORD, word
from pypoplar.codelet.llvm.product_kernel import product_kernel, while_loop
from pypoplar.codelet.operations.matrix_price import SLOT_CYCLES, MatrixPrice
from pypoplar.interface.context_words import Work
from pypoplar.interface.fault_codes import FaultCode

SUMS = 1 << 12  # floats that are held while they are to be rounded at random
STRETCH = 1 << 25  # products between two looks at whether the run has been stopped: some hundredths of a second


def emit_vector_operation(state: EmitterState, statement: ApplyToVectors) -> None:
    numbers = [state.index(number) for number in statement.numbers]
    extents = _extents(state, numbers)
    _judge(state, statement, numbers, extents)
    _pay(state, statement, numbers[:3])
    if not state.checks.only_counts:
        state.emit_block(statement.loops)
        return
    builder = state.builder
    fast, loops, after = (builder.append_basic_block(name) for name in ("product", "product.loops", "product.end"))
    builder.cbranch(_apart(state, statement, extents), fast, loops)
    builder.position_at_end(fast)
    if state.checks.stochastic and statement.vectors[0].element == "f16":
        _run_rounding(state, statement, numbers)
        builder.branch(after)
    else:
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
    _look(state, statement)
    done.add_incoming(upcoming, builder.block)
    builder.branch(top)


def _look(state: EmitterState, statement: ApplyToVectors) -> None:
    """Fault if the run has been stopped."""
    spent, limit = state.builder.load(state.slots), state.limit()
    state.fault_unless(state.builder.icmp_signed("<=", spent, limit), FaultCode.CYCLE_LIMIT, statement.where, spent, limit)


def _run_rounding(state: EmitterState, statement: ApplyToVectors, numbers: Sequence[Any]) -> None:
    """Some whole rows at a time, or a part of a row: their sums in floats, which are then rounded at random one after the other."""
    builder = state.builder
    rows, depth, columns, *strides = numbers
    kernel = product_kernel(builder.module, "f32", statement.vectors[1].element)
    out, a, b = (state.place(span).address for span in statement.vectors)
    out_row, a_row, b_row = (builder.mul(stride, word(2)) for stride in strides)
    sums = builder.ptrtoint(state.function.allocate(ir.ArrayType(FLOAT, SUMS)), WORD)
    columns_at_once = _least(builder, columns, word(SUMS))
    none = builder.icmp_unsigned("==", columns, word(0))
    rows_at_once = builder.udiv(word(SUMS), builder.select(none, word(1), columns_at_once))

    def run_rows(row: Any) -> Any:
        height = _least(builder, rows_at_once, builder.sub(rows, row))

        def run_columns(column: Any) -> Any:
            width = _least(builder, columns_at_once, builder.sub(columns, column))
            offset = builder.mul(column, word(2))
            begin = builder.add(builder.add(out, builder.mul(row, out_row)), offset)

            def element(i: Any, j: Any) -> tuple[Any, Any]:
                half = builder.add(builder.add(begin, builder.mul(i, out_row)), builder.mul(j, word(2)))
                total = builder.add(sums, builder.mul(builder.add(builder.mul(i, width), j), word(4)))
                return builder.inttoptr(half, SHORT.as_pointer()), builder.inttoptr(total, FLOAT.as_pointer())

            def widen(i: Any, j: Any) -> None:
                half, total = element(i, j)
                builder.store(halves.from_half(builder, builder.load(half)), total)

            def narrow(i: Any, j: Any) -> None:
                half, total = element(i, j)
                rounded = halves.round_at_random(builder, builder.load(total), LlvmReadingEmitter(state).next_random())
                builder.store(halves.to_half(builder, rounded), half)

            _for_each(builder, height, width, widen)
            left = builder.add(a, builder.mul(row, a_row))
            row_of_sums = builder.mul(width, word(4))
            builder.call(kernel, [sums, left, builder.add(b, offset), height, depth, width, row_of_sums, a_row, b_row])
            _for_each(builder, height, width, narrow)
            return builder.add(column, width)

        while_loop(builder, word(0), lambda column: builder.icmp_unsigned("<", column, columns), run_columns)
        _look(state, statement)
        return builder.add(row, height)

    while_loop(builder, word(0), lambda row: builder.icmp_signed("<", row, rows), run_rows)


def _least(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.icmp_unsigned("<", one, other), one, other)


def _for_each(builder: Any, rows: Any, columns: Any, do: Callable[[Any, Any], None]) -> None:
    """Do something for each element of some rows, in their order."""

    def row(i: Any) -> Any:
        def column(j: Any) -> Any:
            do(i, j)
            return builder.add(j, word(1))

        while_loop(builder, word(0), lambda j: builder.icmp_unsigned("<", j, columns), column)
        return builder.add(i, word(1))

    while_loop(builder, word(0), lambda i: builder.icmp_unsigned("<", i, rows), row)
