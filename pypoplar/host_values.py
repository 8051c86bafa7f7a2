"""Host values as a type holds them: of constants, initial values, plain fields and their defaults."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pypoplar.arrays.dtypes import AnyArray, Bools, Int64s
from pypoplar.braces import ordered
from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.types import SUPPORTED, ElementType

_FORMATS = {"f32": "f", "f16": "e", "i32": "i", "u32": "I", "i16": "h", "u16": "H", "i8": "b", "u8": "B", "i64": "q", "u64": "Q"}
_PACK: dict[ElementType, Callable[..., bytes]] = {
    element: struct.Struct(f"<{_FORMATS[element.code]}{8 - element.size}x").pack
    for element in SUPPORTED
    if element.code in _FORMATS
}
_UNPACK = struct.Struct("<q").unpack
_BOOLS = (False, True)


def bits_of(type: ElementType, value: Any) -> int:
    """The value as 8 raw bytes of the type (little-endian, zero-filled), read as a signed 64-bit number.

    `PoplarTypeError` where the type cannot hold the value.
    """
    try:
        if type.is_floating:
            return int(_UNPACK(_PACK[type](value))[0])
        if isinstance(value, (float, np.floating)) and value == int(value):
            value = int(value)
        if type.code == "bool":
            if value in _BOOLS:
                return int(value)
            raise ValueError
        return int(_UNPACK(_PACK[type](operator.index(value)))[0])
    except (TypeError, ValueError, OverflowError, struct.error):
        hint = range_text(type) if isinstance(value, int | float | np.number) else ""
        raise PoplarTypeError(f"{type!r} cannot hold {value!r}{hint}") from None


def range_text(type: ElementType) -> str:
    """``: FLOAT goes from -3.4028235e+38 to 3.4028235e+38``, after a value that the type cannot hold."""
    least, most = type.limits
    numbers = f"{least:.8g} to {most:.8g}" if type.is_floating else f"{least} to {most}, in whole numbers"
    return f": {type!r} goes from {numbers}"


def bits_of_many(values: AnyArray) -> Int64s:
    """`bits_of` for each element of an array that has the type's dtype already."""
    bits = np.zeros((len(values), 8), np.uint8)
    bits[:, : values.itemsize] = values.reshape(-1, 1).view(np.uint8)
    return bits.view(np.int64).reshape(-1)


def values_of(type: ElementType, value: Any, count: int, what: str, shape: Sequence[int] = ()) -> AnyArray:
    """`count` values of the type as a flat array of its dtype: one value fills, otherwise the number must be right.

    `TensorShapeError` for a wrong number, and for rows of another length than a tensor of `shape` has; `PoplarTypeError` for
    values that the type cannot hold.
    """
    given = _as_array(type, value, what)
    if given.ndim == 0 or (given.size == 1 and count == 1):
        return np.full(count, _fitting(type, given, what)[0], type.dtype)
    if given.size != count:
        raise TensorShapeError(f"{what} has {count} elements, got {given.size} values")
    wrong = misshapen(given, shape)
    if wrong:
        raise TensorShapeError(f"{what}: {wrong}")
    return _fitting(type, given, what)


def few_values_of(type: ElementType, value: Any, count: int, what: str, shape: Sequence[int] = ()) -> AnyArray:
    """`values_of`, to be read only: where one value fills, or an array was broadcast from one, it is there once."""
    given = _as_array(type, value, what)
    if given.size == count > 1 and all(step == 0 or size == 1 for step, size in zip(given.strides, given.shape, strict=True)):
        wrong = misshapen(given, shape)
        if wrong:
            raise TensorShapeError(f"{what}: {wrong}")
        return np.broadcast_to(_fitting(type, given[(0,) * given.ndim], what), (count,))
    if given.ndim == 0 and count > 1:
        return np.broadcast_to(_fitting(type, given, what), (count,))
    return values_of(type, value, count, what, shape)


def held_bytes(values: AnyArray) -> int:
    """The bytes that flat values take on the host."""
    return values.itemsize if values.strides == (0,) else values.nbytes


def misshapen(given: AnyArray, shape: Sequence[int]) -> str:
    """What is wrong with an array for a tensor of a shape, whose rows would come into others, as in a transposed matrix.

    Nothing for a flat array, and where only dimensions of size 1 differ.
    """
    rows, wanted = ([size for size in sizes if size != 1] for sizes in (given.shape, shape))
    if len(rows) < 2 or len(wanted) < 2 or rows == wanted:
        return ""
    return f"expected the shape {list(shape)}, got an array of shape {list(given.shape)}; transpose it, or flatten() it"


def _as_array(type: ElementType, value: Any, what: str) -> AnyArray:
    ordered(value, what, "[1.0, 2.0]")
    try:
        given = np.asarray(value)
    except ValueError:
        raise TensorShapeError(f"{what} needs values of equal rows, got {value!r}") from None
    if given.dtype.kind == "O" or (given.dtype.kind == "f" and not type.is_floating and not isinstance(value, np.ndarray)):
        return _exact(type, np.asarray(value, object), what)
    if given.dtype.kind not in "biuf":
        raise PoplarTypeError(f"{what} needs numbers, got {value!r}")
    return given


def _exact(type: ElementType, given: AnyArray, what: str) -> AnyArray:
    """Python's numbers in the type's dtype, one by one: of a list with large whole numbers NumPy would make 64-bit floats."""
    bits = np.empty(given.size, np.int64)
    for place, number in enumerate(given.flat):
        ordered(number, what, "[1.0, 2.0]")
        if not isinstance(number, int | float | np.integer | np.floating | np.bool_):
            raise PoplarTypeError(f"{what} needs numbers, got {number!r}")
        try:
            bits[place] = bits_of(type, number)
        except PoplarTypeError:
            raise _misfit(type, what, number, place, given.shape) from None
    raw = np.ascontiguousarray(bits.view(np.uint8).reshape(-1, 8)[:, : type.size])
    return raw.view(type.dtype).reshape(given.shape)


def _fitting(type: ElementType, given: AnyArray, what: str) -> AnyArray:
    """The numbers in flat order, in the type's dtype. `PoplarTypeError` names the first that the type cannot hold."""
    flat = given.reshape(-1)
    if flat.dtype == type.dtype:
        return flat.copy()
    wide = flat.astype({"b": np.uint8, "f": np.float64}.get(flat.dtype.kind, flat.dtype), copy=False)  # NumPy compares these
    outside = _beyond(type, wide)
    if outside.any():
        place = int(np.argmax(outside))
        raise _misfit(type, what, flat[place], place, given.shape)
    return flat.astype(type.dtype)


def _beyond(type: ElementType, numbers: AnyArray) -> Bools:
    """Which of the numbers the type cannot hold; infinities and NaN are floats as others are, and floats round."""
    beyond: Bools
    least, most = type.limits
    if type.is_floating:
        with np.errstate(over="ignore"):
            beyond = np.isinf(numbers.astype(type.dtype)) & ~np.isinf(numbers)
    elif numbers.dtype.kind != "f":
        beyond = (numbers > most) | (numbers < least)
    else:  # the most of 64 bits is no float
        beyond = (numbers >= float(most + 1)) | (numbers < least) | (numbers != np.floor(numbers))
    return beyond


def _misfit(type: ElementType, what: str, number: Any, place: int, shape: tuple[int, ...]) -> PoplarTypeError:
    """The number at `place` of values of this shape does not fit the type."""
    index = [int(part) for part in np.unravel_index(place, shape)]
    where = f" at index {index[0] if len(index) == 1 else index}" if index else ""
    return PoplarTypeError(f"{what} is {type!r}, which cannot hold {number}{where}{range_text(type)}")
