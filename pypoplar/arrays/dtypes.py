"""Arrays by the type of their elements, as annotations say them; comments beside them say shapes and units."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Int8s: TypeAlias = NDArray[np.int8]
Int16s: TypeAlias = NDArray[np.int16]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt32s: TypeAlias = NDArray[np.uint32]
UInt64s: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.integer[Any]]  # of any width
Numbers: TypeAlias = NDArray[np.number[Any]]  # whole or not
Float64s: TypeAlias = NDArray[np.float64]
StructuredArray: TypeAlias = NDArray[np.void]  # of a dtype with fields
AnyArray: TypeAlias = NDArray[Any]  # values of the user's element types, and whatever NumPy's functions are generic in
