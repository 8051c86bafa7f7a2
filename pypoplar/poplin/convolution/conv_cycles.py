"""Cycles of a tile for its part of a convolution: the forms of PopLibs' PerformanceEstimation.

They take numbers, or NumPy's arrays of them: the planner calls the same functions as the codelets' estimators. A worker's share of
the positions, by flat number, is cut into rows where rows of outputs end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pypoplar.codelet.operations.matrix_price import SLOT_CYCLES, MatrixPrice
from pypoplar.codelet.operations.matrix_unit import MULTIPLY_ACCUMULATE
from pypoplar.poplin.matmul.matmul_cycles import reduce_add_cycles
from pypoplar.poputil.cycles import by_type, ceiling
from pypoplar.target import Target
from pypoplar.types import FLOAT, HALF, ElementType

NX1_OVERHEAD = 109  # convNx1Overhead
NX1_RETAINED = 9  # convnx1WorkerRetentionSavings
GROUP_OVERHEAD = 9  # of a 1x1 vertex, for each group of channels but the first: 12 + 1 + 10 + 1 - 15
CONVERSION_START = 2 + 18 + 19  # slots of a worker before it converts
OUTER_STRIDE = 512  # words of a row of an outer product from which on it is slow
BITS = np.array([0, 1, 1, 2])  # that are set in a number
WEIGHT_LOAD = 32, 15, 3  # cycles of a pass of an n x 1 vertex before its workers run: loads, and what is around them


def matrix_unit(target: Target, type: ElementType) -> MatrixPrice:
    """What the matrix unit takes for operands of a type."""
    return MULTIPLY_ACCUMULATE.price(target.architecture, type.code)


def product_cycles(target: Target, groups: Any, positions: Any, depth: Any, columns: Any, type: ElementType) -> Any:
    """getConvPartial1x1SupervisorCycleEstimate, as the matrix unit has it; the first of the input groups zeroes the outputs."""
    unit = matrix_unit(target, type)
    each = unit.cycles(ceiling(positions, target.getNumWorkerContexts()), depth, columns, zeroes=True)
    return unit.start + groups * (each - unit.start) + GROUP_OVERHEAD * (groups - 1)


def sliding_cycles(  # noqa: PLR0913 (PopLibs' arguments)
    target: Target,
    groups: Any,
    positions: Any,
    row: Any,
    kernel: Sequence[Any],
    depth: Any,
    columns: Any,
    type: ElementType,
    partials: ElementType,
    adjacent: bool,
) -> Any:
    """getConvPartialnx1SupervisorCycleEstimate for `positions` outputs in rows of `row`, and a kernel along three axes.

    Each element of the kernel is taken to have all positions. Zeroing the outputs is included. Where the elements of a row of the
    kernel meet `adjacent` inputs, which lie in whole words of 8 bytes, a row of it can be taken as one, with more channels.
    """
    unit, workers = matrix_unit(target, type), target.getNumWorkerContexts()
    of_workers = workers * _busiest_worker(workers, positions, row, type, partials)

    def each(inner: Any, channels: Any) -> Any:
        inner_groups, passes = unit.passes(channels, columns)
        of_kernel = kernel[0] * kernel[1] * (14 + inner * (12 + passes * (sum(WEIGHT_LOAD) + of_workers)))
        return inner_groups * (28 + of_kernel)

    cycles = each(kernel[2], depth)
    if adjacent:
        cycles = np.where(depth * type.size % 8 == 0, np.minimum(cycles, each(1, depth * kernel[2])), cycles)
    start = NX1_OVERHEAD + workers * (NX1_RETAINED + by_type(partials, 9, 10)) + 6 * (groups - 1) + 1
    zeroing = groups * (18 + workers * zeroing_slots(target, positions * columns, partials))
    return start + zeroing + groups * (16 + cycles)


def lanes_cycles(
    target: Target, positions: Any, row: Any, kernel: Sequence[Any], lanes: Any, type: ElementType, partials: ElementType
) -> Any:
    """Of channels with kernels of their own: getConvPartialVerticalMacSupervisorCycleEstimate, of floats horizontal MACs'."""
    if type is FLOAT:
        return _horizontal_cycles(target, positions, row, kernel, lanes)
    workers, wide = target.getNumWorkerContexts(), partials is HALF
    items = ceiling(positions * kernel[0] * kernel[1], workers)
    fours = 19 - wide + items * (7 + 5 - 2 * wide + 3 + 2 * (kernel[2] - 1))
    eights = 13 + items * (7 + 15 + 3 + 3 * (kernel[2] - 1))
    use_eights = wide & (lanes % 8 == 0)
    group: Any = np.where(use_eights, 8, 4)
    elements = positions * group
    zeroing = 4 + ceiling(elements, by_type(partials, 2, 4))
    adding = 10 - (not wide) + (9 - 2 * wide + (2 - wide) * (workers - 1)) * ceiling(elements, workers) // group
    inner = workers * np.where(use_eights, eights, fours)
    return 61 + 14 + 25 + (not wide) + (zeroing + 32 + 24 + inner + adding) * ceiling(lanes, group)


def _horizontal_cycles(target: Target, positions: Any, row: Any, kernel: Sequence[Any], lanes: Any) -> Any:
    """getConvPartialHorizontalMacSupervisorCycleEstimate of floats, with a channel in each group."""
    workers = target.getNumWorkerContexts()
    share = ceiling(positions, workers)
    rows = ceiling(share, row) + (share % row > 0)
    inner = workers * (16 + kernel[0] * kernel[1] * kernel[2] * (16 + 19 * rows + 17 * share))
    zeroing = lanes * workers * zeroing_slots(target, positions, FLOAT)
    return 58 + 9 * workers + lanes * (23 + 15 + 10 + inner) + zeroing


def outer_cycles(target: Target, groups: Any, positions: Any, columns: Any, type: ElementType, partials: ElementType) -> Any:
    """getOuterProductCycleEstimate of the worker with most positions, whose columns are one group of channels."""
    workers = target.getNumWorkerContexts()
    width, words = ceiling(positions, workers), by_type(HALF if type is partials is HALF else FLOAT, 2, 4)
    quick = (columns >= 3 * words) & (columns % words == 0) & (columns // words + 1 < OUTER_STRIDE)
    slow = 10 + (columns * 2 if words == 2 else columns * 5 // 2)
    row = np.where(quick, 6 + (columns - 3 * words) // words, slow)
    return workers * (25 + groups * ((11 if words == 2 else 10) + width * row))


def zeroing_slots(target: Target, outputs: Any, partials: ElementType) -> Any:
    """getZeroSupervisorVertexCycleEstimate, of a worker and a group of channels."""
    vectors = ceiling(ceiling(outputs, target.getNumWorkerContexts()), by_type(partials, 2, 4))
    return vectors + by_type(partials, 14 - 9, 15 - 10)


def _busiest_worker(workers: int, positions: Any, row: Any, type: ElementType, partials: ElementType) -> Any:
    """getConvPartialnx1WorkerCycles of the worker that takes longest."""
    most: Any = 0
    for worker in range(workers):
        begin, end = worker * positions // workers, (worker + 1) * positions // workers
        first = np.minimum(end, (begin // row + 1) * row) - begin
        rows = np.where(end > begin, (end - 1) // row - begin // row + 1, 0)
        last = end - (end - 1) // row * row
        cycles = (rows > 0) * _row_slots(first, type) + (rows > 1) * _row_slots(last, type)
        cycles = cycles + np.maximum(rows - 2, 0) * _row_slots(row, type)
        most = np.maximum(most, cycles)
    return most + by_type(partials, 17, 18)


def _row_slots(positions: Any, type: ElementType) -> Any:
    """A row of so many positions, at least one."""
    one, two, three, more = (33, 44, 45, 8) if type is FLOAT else (29, 33, 34, 4)
    slots = np.where(positions == 1, one, np.where(positions == 2, two, three + (positions - 3) * more))
    return slots + 3 - NX1_RETAINED


def sum_cycles(target: Target, outputs: Any, count: Any, partials: ElementType, result: ElementType) -> Any:
    """Adding `count` partial sums, as ReduceAdd, or converting single ones."""
    several = reduce_add_cycles(outputs, count, partials, result)
    return target.getNumWorkerContexts() * np.where(count > 1, several, conversion_slots(target, outputs, result))


def conversion_slots(target: Target, outputs: Any, result: ElementType) -> Any:
    """getCast1DCycleEstimate, from FLOAT to HALF or the other way round."""
    share = ceiling(outputs, target.getNumWorkerContexts())
    if result is HALF:
        return CONVERSION_START + 2 * (share // 4) + 2 + 2 * BITS[share % 4]
    return CONVERSION_START + share // 2 + 1 + 2 * (share % 2)


def slots(cycles: Any) -> int:
    """Cycles of a tile as issue slots of a worker."""
    return int(ceiling(int(cycles), SLOT_CYCLES))
