"""The greatest common divisor of integers, by Euclid's divisions."""

from __future__ import annotations

import torch

from pypoplar import popops, poputil
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Abs, Const, Max, Rem, Select, _1, _2
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.shared_expressions import as_type, mapped
from pypoplar.poptorch.lowering.tensor_views import broadcast
from pypoplar.program import Repeat, Sequence
from pypoplar.types import INT

DIVISIONS = 46  # what neighbours among Fibonacci's numbers below 2**31 need, the worst of all, and one to exchange them


@lowers(torch.ops.aten.gcd.default)
def common_divisor(ctx: EntryContext, left: Operand, right: Operand) -> Tensor:
    """Divides 46 times, which is enough for 31 bits."""
    pair = [mapped(ctx, Abs(_1), broadcast(as_type(ctx, one.placed(), INT), ctx.shape)) for one in (left, right)]
    larger, smaller = (poputil.duplicate(ctx.graph, one, ctx.program, ctx.name) for one in pair)
    body, none = Sequence(), _2 == Const(0, INT)
    trees = Select(_1, _2, none), Select(_2, Rem(_1, Max(_2, Const(1, INT))), none)
    popops.mapInPlace(ctx.graph, trees, [larger, smaller], body, ctx.name)
    ctx.program.add(Repeat(DIVISIONS, body, name=ctx.name))
    return as_type(ctx, larger, ctx.type)
