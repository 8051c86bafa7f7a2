"""The order of tensors in memory: where they are put together, numbers that are drawn, and sums, may depend on it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from pypoplar.graph.tensor import Tensor


def in_memory_order(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Tensors by their first elements in memory."""
    return sorted(tensors, key=_extent)


def are_in_turn(tensors: Iterable[Tensor]) -> bool:
    """Whether each of several tensors ends in memory before the next one begins."""
    extents = [_extent(tensor) for tensor in tensors if tensor.numElements()]
    return all(end <= begin for (_, end), (begin, _) in pairwise(extents))


def _extent(tensor: Tensor) -> tuple[int, int]:
    """From the first element in memory to behind the last."""
    runs = tensor.runs()
    if not len(runs.start):
        return 0, 0
    last = runs.start + (runs.count - 1) * runs.step
    return int(np.minimum(runs.start, last).min()), int(np.maximum(runs.start, last).max()) + 1
