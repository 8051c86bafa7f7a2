"""`UpsampleMethod`: what `Tensor.upsample` fills new indices with."""

from enum import Enum


class UpsampleMethod(Enum):
    """How `Tensor.upsample` fills the new indices."""

    REPEAT = "REPEAT"
