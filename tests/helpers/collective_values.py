"""What collectives are tested with: small values, and what NumPy makes of rows of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pypoplar import BOOL, UNSIGNED_INT, UNSIGNED_LONGLONG
from pypoplar.gcl import CollectiveOperator
from pypoplar.types import ElementType

COMBINE: dict[CollectiveOperator, Callable[[Any], Any]] = {
    CollectiveOperator.ADD: lambda rows: rows.sum(0),
    CollectiveOperator.MEAN: lambda rows: rows.mean(0),
    CollectiveOperator.MUL: lambda rows: rows.prod(0),
    CollectiveOperator.MIN: lambda rows: rows.min(0),
    CollectiveOperator.MAX: lambda rows: rows.max(0),
    CollectiveOperator.SQUARE_ADD: lambda rows: (rows * rows).sum(0),
    CollectiveOperator.LOGICAL_AND: lambda rows: rows.all(0),
    CollectiveOperator.LOGICAL_OR: lambda rows: rows.any(0),
}


def values(seed: int, type: ElementType, *shape: int) -> Any:
    """Small numbers, whose sums and products are exact in every type."""
    chosen = np.random.default_rng(seed)
    low, high = (0, 2) if type is BOOL else (1, 3) if type in (UNSIGNED_INT, UNSIGNED_LONGLONG) else (-2, 3)
    return chosen.integers(low, high, shape).astype(type.dtype)
