"""The memory of a device that has just been loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, np.dtype[Any]]


@frozen(eq=False)
class Image:
    """What `Engine.load` writes over the uninitialised memory."""

    address: Array  # int64
    bytes: Array  # int64
    data: Array  # uint8, the pieces end to end
