"""Arrays by the type of their elements, as annotations say them; comments beside them say shapes and units."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

# What `numpy.typing.NDArray` stands for, written out: from Python 3.12 on that is an alias that cannot be looked into at run time,
# as the codec of executables does.

Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Int8s: TypeAlias = np.ndarray[Any, np.dtype[np.int8]]
Int16s: TypeAlias = np.ndarray[Any, np.dtype[np.int16]]
Int32s: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
Int64s: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
UInt32s: TypeAlias = np.ndarray[Any, np.dtype[np.uint32]]
UInt64s: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
Integers: TypeAlias = np.ndarray[Any, np.dtype[np.integer[Any]]]  # of any width
Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.number[Any]]]  # whole or not
Float64s: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
StructuredArray: TypeAlias = np.ndarray[Any, np.dtype[np.void]]  # of a dtype with fields
AnyArray: TypeAlias = np.ndarray[
    Any, np.dtype[Any]
]  # values of the user's element types, and whatever NumPy's functions are generic in
