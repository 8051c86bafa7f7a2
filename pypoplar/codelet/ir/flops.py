"""How many floating-point operations an operation of device code is, and how many bytes an access moves.

FLOPs are a convention, not a cost. The one here is PopLibs': its estimators count one for every unary and binary operation on
halves and floats, an exponential as well as an addition, three for a remainder, and none for integers, whatever the operation
takes (S: ``FlopEstimation.hpp``; ``flopsPerBinaryOpElement`` and ``flopsPerUnaryOpElement`` of ``popopsCycleEstimators.cpp``). A
multiplication and an addition are two, fused or not. Each row of
`pypoplar.codelet.operations` says what its operations count. What had to be chosen:

- Comparisons count one, as in PopLibs (S): ``max(a, b)`` and ``a if a > b else b`` are the same work.
- Conversions count none (I): in mixed precision they belong to the instruction that takes the value. PopLibs counts one for an
  element of its Cast vertices, which do nothing else.
- Functions that PopLibs does not have count one like those that it has (I), but for those that are plainly made of others.

Bytes are those of the elements of fields, tables and scratch arrays that are loaded and stored, at every access in the code.
Pointers and lengths of rows, what else is on the stack, and the reading half of a store of 8 or 16 bits are left out.
"""

from __future__ import annotations

from typing import assert_never

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import (
    Apply,
    Breakpoint,
    Check,
    DebugPrint,
    Length,
    Load,
    Member,
    Row,
    Scratch,
    Slice,
    Special,
    Store,
    Straight,
    ViewAs,
)
from pypoplar.codelet.operations.table import typed_operation


def flops_of(statement: Straight) -> int:
    """Floating-point operations of one statement of a straight run."""
    match statement:
        case Apply():
            return typed_operation(statement.operation).flops
        case Load() | Store() | Length() | Row() | Slice():
            return 0
        case Member() | ViewAs() | Scratch() | Check() | DebugPrint() | Special() | Breakpoint():
            return 0
        case _:
            assert_never(statement)


def bytes_of(statement: Straight) -> int:
    """Bytes that one statement of a straight run loads or stores."""
    match statement:
        case Load() | Store():
            return SIZES[statement.span.element]
        case Apply() | Length() | Row() | Slice():
            return 0
        case Member() | ViewAs() | Scratch() | Check() | DebugPrint() | Special() | Breakpoint():
            return 0
        case _:
            assert_never(statement)
