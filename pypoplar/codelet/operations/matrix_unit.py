"""The matrix unit: ``ipu.multiply_accumulate``.

Prices are those of PopLibs' ConvPartial1x1Out (S: ``getConvPartial1x1SupervisorCycleEstimate`` of ``PerformanceEstimation.hpp``),
the supervisor's loading of the weights included. An inner group is 8 floats or 16 halves deep; with 16 convolution units a pass has
16 columns, and loads 512 bytes of weights, 16 in a cycle. The first chip has 8 units (I: from its peak), and loads 8 bytes in a
cycle (I).
"""

from __future__ import annotations

from collections.abc import Mapping

from pypoplar import ipu
from pypoplar.codelet.operations.matrix_price import SLOT_CYCLES, MatrixPrice
from pypoplar.codelet.operations.vector_operation import VectorOperation
from pypoplar.spelling import nearest

_SUPERVISOR = 50 + 13 + 11 - 15  # what is outside its loops; the first inner group takes 11 cycles, the others 15
_INNER = 15
_LOAD = 19 + 6 + 32
_KEPT, _KEPT_INNER = 7, 3  # slots that a worker on halves saves by what it keeps, and that each inner group takes again


def _floats(units: int, mark: str) -> MatrixPrice:
    zeroing = 8 if units == 16 else 4
    return MatrixPrice(8, units, _SUPERVISOR, _INNER, _LOAD, 8, (47, 46, 46), 2, zeroing, mark)


def _halves(units: int, mark: str) -> MatrixPrice:
    first = (33 - _KEPT, 42 - _KEPT, 38 - _KEPT)
    start, inner = _SUPERVISOR + SLOT_CYCLES * (_KEPT - _KEPT_INNER), _INNER + SLOT_CYCLES * _KEPT_INNER
    return MatrixPrice(16, units, start, inner, _LOAD, 4, first, -1, 0, mark)


def _extents(rows: int, depth: int, columns: int, out_stride: int, a_stride: int, b_stride: int) -> tuple[int, int, int]:
    out = (rows - 1) * out_stride + columns if rows and columns else 0
    a = (rows - 1) * a_stride + depth if rows and depth and columns else 0
    b = (depth - 1) * b_stride + columns if rows and depth and columns else 0
    return out, a, b


MULTIPLY_ACCUMULATE = VectorOperation(
    name="multiply_accumulate",
    call="ipu.multiply_accumulate",
    vectors=("out", "a", "b"),
    counts=("rows", "depth", "columns"),
    strides={"out_stride": "columns", "a_stride": "depth", "b_stride": "columns"},
    types=(("f32", "f32", "f32"), ("f32", "f16", "f16"), ("f16", "f16", "f16")),
    meaning=ipu.multiply_accumulate,
    extents=_extents,
    prices={
        ("ipu1", "f32"): _floats(8, "I"), ("ipu1", "f16"): _halves(8, "I"),
        ("ipu2", "f32"): _floats(16, "S"), ("ipu2", "f16"): _halves(16, "S"),
        ("cpu", "f32"): _floats(16, "I"), ("cpu", "f16"): _halves(16, "I"),
    },
    flops=lambda rows, depth, columns: 2 * rows * depth * columns,
)  # fmt: skip

VECTOR_OPERATIONS: Mapping[str, VectorOperation] = {row.name: row for row in (MULTIPLY_ACCUMULATE,)}


def vector_operation(name: str) -> VectorOperation:
    """The operation of a name; `LookupError` with the nearest name if there is none."""
    if name in VECTOR_OPERATIONS:
        return VECTOR_OPERATIONS[name]
    raise LookupError(f"there is no device operation '{name}' on vectors{nearest(name, VECTOR_OPERATIONS)}")


def vector_operation_called(call: str) -> VectorOperation | None:
    """The operation on vectors that users write so, if there is one."""
    return next((row for row in VECTOR_OPERATIONS.values() if row.call == call), None)
