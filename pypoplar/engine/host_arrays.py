"""What the host hands to a tensor: arrays of its dtype as they are, lists and numbers where its type can hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import AnyArray


def host_array(given: Any, dtype: np.dtype[Any]) -> AnyArray:
    """`given` as an array of `dtype`. `ValueError` says what was expected and what came instead.

    An array has the dtype already; other values are converted, as long as they stay what they are. Floats round to the type.
    """
    if isinstance(given, np.ndarray):
        if given.dtype != dtype:
            raise ValueError(f"expected an array of {dtype}, got {given.dtype}; write array.astype(numpy.{dtype})")
        return given
    try:
        values = np.asarray(given)
    except ValueError:
        raise ValueError(f"expected an array of {dtype}, got rows of unequal length") from None
    if values.dtype.kind not in "biuf":
        raise ValueError(f"expected an array of {dtype}, got {given!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        converted: AnyArray = values.astype(dtype)
    flat, came = converted.ravel(), values.ravel()
    changed = np.isinf(flat) & ~np.isinf(came) if dtype.kind == "f" else flat != came
    if changed.any():
        place = int(np.argmax(changed))
        raise ValueError(f"expected an array of {dtype}, got {came[place]} at index {place}")
    return converted
