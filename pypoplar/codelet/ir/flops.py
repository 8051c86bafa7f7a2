"""How many floating-point operations an operation of device code is, and how many bytes an access moves.

FLOPs are a convention, not a cost. The one here is PopLibs': its estimators count one for every unary and binary operation on
halves and floats, an exponential as well as an addition, three for a remainder, and none for integers, whatever the operation
takes (S: ``FlopEstimation.hpp``; ``flopsPerBinaryOpElement`` and ``flopsPerUnaryOpElement`` of ``popopsCycleEstimators.cpp``). A
multiplication and an addition are two, fused or not. Marks are those of `pypoplar.codelet.ir.prices`. What had to be chosen:

- Comparisons count one, as in PopLibs (S): ``max(a, b)`` and ``a if a > b else b`` are the same work.
- Conversions count none (I): in mixed precision they belong to the instruction that takes the value. PopLibs counts one for an
  element of its Cast vertices, which do nothing else.
- Functions that PopLibs does not have count one like those that it has (I), but for those that are plainly made of others.

Bytes are those of the elements of fields that are loaded and stored, at every access in the code. Pointers and lengths of rows,
the stack, and the reading half of a store of 8 or 16 bits are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.operations import FLOATS, SIGNATURES
from pypoplar.codelet.ir.typed import Apply, Load, Statement, Store


@frozen
class Flops:
    """A row of the table: operations on halves and floats (names without their type), flops of an element, mark."""

    operations: str
    flops: int
    mark: str


TABLE: tuple[Flops, ...] = (
    Flops("copy", 0, "I"),
    Flops("f32_from f16_from i32_from u32_from i64_from u64_from bool_from", 0, "I"),
    Flops("add sub mul div min max", 1, "S"),
    Flops("less less_equal equal not_equal isnan isinf isfinite", 1, "S"),
    Flops("neg abs fabs floor ceil trunc round", 1, "S"),
    Flops("sqrt rsqrt exp expm1 log log1p sin cos tan asin acos atan tanh sigmoid erf power pow atan2", 1, "S"),
    Flops("exp2 log2 log10 sinh cosh erfc copysign", 1, "I"),
    Flops("mod fmod", 3, "S"),
    Flops("floordiv", 2, "I"),  # divide, floor
    Flops("hypot", 4, "I"),  # two products, their sum, its root
)


def _flops() -> dict[str, int]:
    """Flops by operation, of halves and floats; every one of them has to be in the table once."""
    found: dict[str, int] = {}
    for row in TABLE:
        for operation in row.operations.split():
            for name in (f"{operation}_{one}" for one in FLOATS):
                if name in found or name not in SIGNATURES:
                    raise ValueError(f"flops of {name}: {'twice' if name in found else 'no such operation'}")
                found[name] = row.flops
    return found


FLOPS: Mapping[str, int] = _flops()
"""Floating-point operations of each operation on halves or floats; others are none."""


def flops_of(statement: Statement) -> int:
    """Floating-point operations of one statement of a straight run."""
    return FLOPS.get(statement.operation, 0) if isinstance(statement, Apply) else 0


def bytes_of(statement: Statement) -> int:
    """Bytes that one statement of a straight run loads or stores."""
    return SIZES[statement.span.element] if isinstance(statement, Load | Store) else 0
