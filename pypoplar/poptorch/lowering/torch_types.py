"""Element types of PyTorch and of the IPU. The IPU has no 64-bit numbers in its libraries: they become 32 bits wide."""

from __future__ import annotations

import torch

from pypoplar.types import BOOL, FLOAT, HALF, INT, SHORT, SIGNED_CHAR, UNSIGNED_CHAR, ElementType

ELEMENT_TYPES: dict[torch.dtype, ElementType] = {
    torch.float32: FLOAT,
    torch.float64: FLOAT,
    torch.float16: HALF,
    torch.int64: INT,
    torch.int32: INT,
    torch.int16: SHORT,
    torch.int8: SIGNED_CHAR,
    torch.uint8: UNSIGNED_CHAR,
    torch.bool: BOOL,
}
