"""Fraction and exponent of floating-point numbers, from their bits."""

from __future__ import annotations

import torch

from pypoplar.graph.tensor import Tensor
from pypoplar.popops.expr import Abs, BitwiseAnd, BitwiseOr, Const, IsFinite, Not, Or, Select, Shr, _1, _2
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.shared_expressions import as_type, mapped
from pypoplar.types import FLOAT, INT

SMALLEST = 2.0**-126  # below it exponents are no longer in the bits
FRACTION, HALVES = 0x807FFFFF - 2**32, 0x3F000000  # sign and fraction; the exponent of numbers from 1/2 to 1


@lowers(torch.ops.aten.frexp.Tensor)
def fraction_and_exponent(ctx: EntryContext, input: Operand) -> tuple[Tensor, Tensor]:
    """``fraction * 2**exponent``, with fractions from 1/2 to 1; zeros and what is not finite have exponent 0."""
    tensor = as_type(ctx, input.placed(), FLOAT)
    small = Abs(_1) < SMALLEST
    bits = mapped(ctx, Select(_1 * 2.0**24, _1, small), tensor).reinterpret(INT)
    plain = Or(_1 == 0.0, Not(IsFinite(_1)))
    raised = BitwiseAnd(Shr(_2, Const(23, INT)), Const(255, INT))
    lowered = Select(Const(126 + 24, INT), Const(126, INT), small)
    exponents = mapped(ctx, Select(Const(0, INT), raised - lowered, plain), tensor, bits)
    within = BitwiseOr(BitwiseAnd(_1, Const(FRACTION, INT)), Const(HALVES, INT))
    fractions = mapped(ctx, within, bits).reinterpret(FLOAT)
    fractions = mapped(ctx, Select(_1, _2, plain), tensor, fractions)
    return as_type(ctx, fractions, input.type), exponents
