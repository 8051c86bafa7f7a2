"""Whole numbers in the smallest type that holds them: so files keep arrays, which unpack in a third of the time.

A row of memory moves is 72 bytes of 64-bit numbers and 23 of the types that hold what they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import AnyArray

NARROW = tuple(np.dtype(name) for name in ("u1", "i1", "u2", "i2", "i4", "u4"))  # the first that holds all numbers is taken


def narrowed(array: AnyArray) -> AnyArray:
    """The same numbers in the smallest types that hold them all; those of records field by field."""
    names = array.dtype.names
    if names is None:
        return array.astype(_narrowest(array), copy=False)
    return _record(array, np.dtype([(name, _narrowest(array[name])) for name in names]))


def holds(stored: np.dtype[Any], declared: np.dtype[Any]) -> bool:
    """Whether an array of `stored` may stand in a file for one of `declared`: the same, or of narrower whole numbers."""
    if stored == declared:
        return True
    if declared.names is None:
        return _are_whole(stored, declared) and stored.itemsize < declared.itemsize and np.can_cast(stored, declared)
    return stored.names == declared.names and all(holds(stored[name], declared[name]) for name in declared.names)


def widened(array: AnyArray, declared: np.dtype[Any]) -> AnyArray:
    """An array in the type that it stands for."""
    return array.astype(declared, copy=False) if declared.names is None else _record(array, declared)


def _narrowest(array: AnyArray) -> np.dtype[Any]:
    if not array.size or not _are_whole(array.dtype):
        return array.dtype
    least, most = int(array.min()), int(array.max())
    smaller = (one for one in NARROW if one.itemsize < array.dtype.itemsize and np.can_cast(one, array.dtype))
    return next((one for one in smaller if np.iinfo(one).min <= least and most <= np.iinfo(one).max), array.dtype)


def _are_whole(*types: np.dtype[Any]) -> bool:
    return all(one.kind in "iu" for one in types)


def _record(array: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    if array.dtype == dtype:
        return array
    record: AnyArray = np.empty(array.shape, dtype)
    fill(record, array)
    return record


def fill(array: AnyArray, other: AnyArray) -> None:
    """Give an array the numbers of another, whatever whole numbers it has; of records field by field."""
    if array.dtype.names is None or array.dtype == other.dtype:
        array[:] = other
        return
    for name in array.dtype.names:
        array[name] = other[name]
