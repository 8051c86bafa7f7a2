"""Constant tables: tuples, lists and NumPy arrays that device code reads, frozen when the codelet is added."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.errors import PoplarError
from pypoplar.host_values import values_of
from pypoplar.types import BOOL, FLOAT, INT, LONGLONG, UNSIGNED_INT, UNSIGNED_LONGLONG, ElementType, type_of_dtype

LARGEST = 1 << 20  # bytes: no tile has as much
_WHOLE = (INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG)  # the first that holds all numbers


class NoTable(Exception):
    """What is no table; the text says what it is, and what a table would be."""


@frozen
class ConstantTable:
    """Numbers of one type, in one or two dimensions; `data` are their bytes in memory, row by row."""

    type: ElementType
    shape: tuple[int, ...]
    data: bytes

    def __attrs_post_init__(self) -> None:
        if len(self.shape) not in (1, 2) or min(self.shape) < 1 or prod(self.shape) * self.type.size != len(self.data):
            raise ValueError(f"{len(self.data)} bytes for a table of {self.type!r} of shape {list(self.shape)}")


def table_of(value: Sequence[Any] | AnyArray) -> ConstantTable:
    """The table that a tuple, a list or an array makes; `NoTable` says why it makes none."""
    kind = "an array" if isinstance(value, np.ndarray) else "a tuple" if isinstance(value, tuple) else "a list"
    if isinstance(value, np.ndarray):
        shape = f"{kind} of shape {list(value.shape)}"
        if value.ndim not in (1, 2):
            raise NoTable(f"{shape}: a table has one or two dimensions; pass it as an Input field")
        if isinstance(value, np.ma.MaskedArray):
            raise NoTable(f"{kind} with a mask, which a table does not have: write .filled(...) with a number for what is masked")
        numbers = _array(value.tolist(), kind) if value.dtype == object else np.asarray(value)
    else:
        numbers, shape = _array(value, kind), kind
    if numbers.size == 0:
        raise NoTable(f"{shape} without elements: a table has some")
    element = _type_of(numbers, is_array=isinstance(value, np.ndarray), kind=kind)
    if numbers.size * element.size > LARGEST:
        raise NoTable(
            f"{shape} of {numbers.size * element.size:,} bytes, and a table lies in each tile's memory; pass it as an Input field"
        )
    try:
        flat = values_of(element, numbers, numbers.size, f"{kind}: its type")
    except PoplarError as problem:
        raise NoTable(str(problem)) from problem
    if element.is_floating:
        flat[np.isnan(flat)] = np.nan  # one of all NaNs
    return ConstantTable(element, numbers.shape, flat.tobytes())


def _array(value: Sequence[Any], kind: str) -> AnyArray:
    """The numbers of a tuple or list, or of its rows, as Python has them."""
    rows = [isinstance(row, list | tuple | np.ndarray) for row in value]
    flat = [number for row in value for number in row] if value and all(rows) else list(value)
    if any(rows) and not all(rows):
        raise NoTable(f"{kind} of rows and of other values: a table has one or two dimensions")
    for number in flat:
        if not isinstance(number, bool | int | float | np.number | np.bool_):
            what = "rows of rows" if isinstance(number, list | tuple | np.ndarray) else f"a {type(number).__name__}"
            raise NoTable(f"{kind} with {what}: a table has numbers, in one or two dimensions")
    shape: tuple[int, ...] = (len(flat),)
    if value and all(rows):
        if len({len(row) for row in value}) > 1:
            raise NoTable(f"{kind} of rows of different lengths: a table has rows of one length")
        shape = (len(value), len(value[0]))
    array = np.empty(len(flat), object)
    array[:] = [number.item() if isinstance(number, np.generic) else number for number in flat]
    return array.reshape(shape)


def _type_of(numbers: AnyArray, *, is_array: bool, kind: str) -> ElementType:
    """An array's own type; of Python's numbers, and of NumPy's 64-bit ones, the type that they are as literals of device code."""
    if is_array and numbers.dtype not in (np.int64, np.float64, object):
        try:
            return type_of_dtype(numbers.dtype)
        except PoplarError as problem:
            raise NoTable(f"{kind}: {problem}") from problem
    flat = numbers.reshape(-1).tolist()
    bools = [isinstance(number, bool) for number in flat]
    if any(bools):
        if not all(bools):
            raise NoTable(f"{kind} of numbers and of bools: a table has one type")
        return BOOL
    if any(isinstance(number, float) for number in flat):
        return FLOAT
    low, high = min(flat), max(flat)
    for element in _WHOLE:
        least, most = element.limits
        if least <= low and high <= most:
            return element
    raise NoTable(f"{kind} of numbers from {low} to {high}: no type of the device holds them")
