"""Element types of ONNX, of PyTorch, and what the device has of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from attrs import frozen
from onnx import TensorProto, numpy_helper

from pypoplar.errors import InvalidOption
from pypoplar.spelling import nearest

TORCH_TYPES: dict[int, torch.dtype] = {
    TensorProto.FLOAT: torch.float32,
    TensorProto.FLOAT16: torch.float16,
    TensorProto.BFLOAT16: torch.bfloat16,
    TensorProto.DOUBLE: torch.float64,
    TensorProto.BOOL: torch.bool,
    TensorProto.INT8: torch.int8,
    TensorProto.INT16: torch.int16,
    TensorProto.INT32: torch.int32,
    TensorProto.INT64: torch.int64,
    TensorProto.UINT8: torch.uint8,
    TensorProto.UINT16: torch.uint16,
    TensorProto.UINT32: torch.uint32,
    TensorProto.UINT64: torch.uint64,
}
DEVICE_TYPES = (
    torch.float32,
    torch.float16,
    torch.bool,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
)  # of values that the device computes; 64 bits are 32 there
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
PRECISIONS = {"float": torch.float32, "half": torch.float16}


@frozen
class Precision:
    """In which type floats are computed: as the model says, or all of them in one."""

    floats: torch.dtype | None = None

    @classmethod
    def of(cls, name: str | None) -> Precision:
        """What a user calls it; `InvalidOption` for another name."""
        if name is None:
            return cls()
        if name not in PRECISIONS:
            raise InvalidOption(f"precision is 'float', 'half' or None, got {name!r}{nearest(str(name), PRECISIONS)}")
        return cls(PRECISIONS[name])

    def dtype(self, elem_type: int) -> torch.dtype:
        """The type in which values of a type of ONNX are computed; KeyError for one that PyTorch does not have."""
        return self.converted(TORCH_TYPES[elem_type])

    def converted(self, dtype: torch.dtype) -> torch.dtype:
        """The type in which values of a type of PyTorch are computed."""
        return self.floats if self.floats is not None and dtype in FLOATS else dtype


def type_name(elem_type: int) -> str:
    """A type as ONNX calls it, in lower letters, such as float16."""
    return str(TensorProto.DataType.Name(elem_type)).lower() if elem_type in TensorProto.DataType.values() else f"type {elem_type}"


def dtype_name(dtype: torch.dtype) -> str:
    """A type of PyTorch as ONNX calls it."""
    name = str(dtype).removeprefix("torch.")
    return {"float32": "float", "float64": "double"}.get(name, name)


def type_problem(dtype: torch.dtype) -> str:
    """Why a type cannot be computed with, and what to do."""
    known = ", ".join(dtype_name(one) for one in DEVICE_TYPES)
    remedy = "; precision='float' or 'half' converts it" if dtype in (torch.float64, torch.bfloat16) else ""
    return f"{dtype_name(dtype)} is no type of the device, which has {known}{remedy}"


def to_tensor(proto: TensorProto, precision: Precision, base_dir: str = "") -> torch.Tensor:
    """A tensor of a model's file as one of PyTorch; KeyError for types that PyTorch does not have."""
    dtype = TORCH_TYPES[proto.data_type]
    array = np.ascontiguousarray(numpy_helper.to_array(proto, base_dir))
    return from_array(array.reshape(tuple(proto.dims)), dtype).to(precision.converted(dtype))


def from_array(array: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
    """An array, which has no other elements than a type has, as a tensor of its own."""
    if dtype is torch.bfloat16:
        return torch.from_numpy(np.array(array, dtype=np.float32)).to(torch.bfloat16)
    return torch.from_numpy(np.array(array))
