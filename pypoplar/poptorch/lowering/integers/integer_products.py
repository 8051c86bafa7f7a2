"""Products of matrices of integers, which no unit of a tile multiplies: element by element, then summed."""

from __future__ import annotations

from pypoplar import popops
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import _1, _2
from pypoplar.poptorch.lowering.entry_context import EntryContext
from pypoplar.poptorch.lowering.shared_expressions import as_type, mapped, reduced
from pypoplar.types import INT


def integer_product(ctx: EntryContext, left: Tensor, right: Tensor) -> Tensor:
    """The product [..., n, m] by [..., m, k]; all n m k products of elements lie on tiles at once."""
    rank = left.rank()
    order = [*range(rank - 2), rank - 1, rank - 2]
    rows, columns = as_type(ctx, left, INT), as_type(ctx, right, INT).dimShuffle(order)
    multiplied = mapped(ctx, _1 * _2, rows.expand([rank - 1]), columns.expand([rank - 2]))
    return as_type(ctx, reduced(ctx, multiplied, popops.Operation.ADD, [rank], INT), ctx.type)
