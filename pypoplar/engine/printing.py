"""How `PrintTensor` writes a tensor: floats with seven decimals, one line for a rank-1 tensor, one indented line a row above."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import AnyArray


def format_element(value: Any) -> str:
    """One element as `PrintTensor` writes it: a float with seven decimals, else a whole number."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.7f}"
    return str(int(value))


def format_tensor(values: AnyArray) -> str:
    """The text of a tensor.

    >>> format_tensor(np.float32([1, 1.5]))
    '[1.0000000 1.5000000]'
    >>> print(format_tensor(np.int32([[1, 2], [3, 4]])))
    [
      [1 2]
      [3 4]
    ]
    """
    return "\n".join(_lines(values, 0))


def _lines(values: AnyArray, depth: int) -> list[str]:
    indent = "  " * depth
    if values.ndim == 0:
        return [indent + format_element(values[()])]
    if values.ndim == 1:
        return [indent + "[" + " ".join(map(format_element, values)) + "]"]
    inner = [line for row in values for line in _lines(row, depth + 1)]
    return [indent + "[", *inner, indent + "]"]
