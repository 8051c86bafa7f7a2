"""What an entry of the table is given of a node: attributes, operands, and the values of those that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from onnx import AttributeProto, NodeProto, helper

from pypoplar.onnx.model_problems import ModelError
from pypoplar.onnx.onnx_types import Precision, to_tensor, type_name


class NeedsValue(Exception):
    """An entry needs the value of an operand that is not known."""

    def __init__(self, operand: int, data: bool) -> None:
        super().__init__(operand)
        self.operand = operand
        self.data = data  # whether no value is taken that a call gives


class Expand(Exception):
    """An entry leaves a node to the function that ONNX's schema has for it."""


class NodeCall:
    """A node as its entry sees it. Operands that are left out are None."""

    def __init__(
        self, node: NodeProto, opset: int, known: Sequence[torch.Tensor | None], precision: Precision, label: str, folder: str = ""
    ) -> None:
        self.node, self.opset, self.known, self.precision, self.label = node, opset, list(known), precision, label
        self.folder = folder
        self.count = len(known)
        self.outputs = [bool(name) for name in node.output]
        self.training = False  # whether the module of the call that runs trains
        self.used: set[int] = set()  # known operands of which the device needs the elements
        self.tensors: list[torch.Tensor | None] = []  # of the call that runs
        self.prepared_tensors: dict[str, list[torch.Tensor]] = {}
        self.find_prepared: Callable[[str, int], torch.Tensor] | None = None  # where the captured module has them
        self._attributes = {one.name: one for one in node.attribute}
        self._values: dict[str, Any] = {}
        self._arrays: dict[int, np.ndarray[Any, Any]] = {}

    # attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value, texts as str, tensors as tensors; the default where the node has none."""
        if name not in self._values:
            self._values[name] = self._value(self._attributes[name]) if name in self._attributes else default
        return self._values[name]

    def _value(self, attribute: AttributeProto) -> Any:
        if attribute.type == AttributeProto.TENSOR:
            return self._constant(attribute.t)
        value = helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, list | tuple) or hasattr(value, "__len__"):
            return [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in value]
        return value

    def _constant(self, proto: Any) -> torch.Tensor:
        try:
            return to_tensor(proto, self.precision, self.folder)
        except KeyError:
            raise self.error(f"a constant of {type_name(proto.data_type)}, which has no form here") from None

    def dtype(self, elem_type: int) -> torch.dtype:
        """The type in which values of a type of ONNX are computed."""
        try:
            return self.precision.dtype(elem_type)
        except KeyError:
            raise self.error(f"{type_name(elem_type)} has no form on the device") from None

    # operands

    def has(self, operand: int) -> bool:
        """Whether the node has this operand."""
        return operand < self.count and self.tensors[operand] is not None

    def is_known(self, operand: int) -> bool:
        """Whether the operand's value is known when the model is compiled."""
        return operand < len(self.known) and self.known[operand] is not None

    def tensor(self, operand: int) -> torch.Tensor | None:
        """An operand as a tensor of the graph; None if it is left out."""
        if operand >= self.count:
            return None
        if self.is_known(operand):
            self.used.add(operand)
        return self.tensors[operand]

    def array(self, operand: int, data: bool = False) -> np.ndarray[Any, Any]:
        """The value of an operand that shapes depend on; with `data` one that may not even be given by a call."""
        if operand not in self._arrays:
            known = self.known[operand]
            if known is None:
                raise NeedsValue(operand, data)
            self._arrays[operand] = known.float().numpy() if known.dtype is torch.bfloat16 else known.numpy()
        return self._arrays[operand]

    def ints(self, operand: int, attribute: str | None = None) -> list[int] | None:
        """The value of a list of whole numbers: of an operand, or of an attribute that an earlier opset had in its place."""
        if operand < self.count and self.tensors[operand] is not None:
            return [int(one) for one in np.atleast_1d(self.array(operand)).ravel()]
        return None if attribute is None or self.attribute(attribute) is None else [int(one) for one in self.attribute(attribute)]

    def number(self, operand: int, default: Any = None) -> Any:
        """The value of an operand of one element; the default if it is left out."""
        if operand >= self.count or self.tensors[operand] is None:
            return default
        array = self.array(operand)
        if array.size != 1:
            raise self.error(f"{self.operand_name(operand)} is one number, got shape {list(array.shape)}")
        return array.reshape(-1)[0].item()

    def axis(self, axis: int, rank: int, name: str = "axis") -> int:
        """An axis of a tensor of a rank, as a number from 0 on; an error for one that there is not."""
        if not -rank <= axis < rank:
            raise self.error(f"{name} {axis} is none of a tensor with {rank} dimensions")
        return int(axis) % rank

    def axes(self, axes: Sequence[int], rank: int) -> list[int]:
        """Axes from 0 on, as `axis` takes them; an error for one that is named twice."""
        found = [self.axis(one, rank) for one in axes]
        if len(set(found)) != len(found):
            raise self.error(f"axes are named once each, got {list(axes)}")
        return found

    def prepared(self, key: str, make: Callable[..., Sequence[torch.Tensor]], *operands: int) -> list[torch.Tensor]:
        """What is computed from operands alone, such as weights in another order: once, on the host, where they are all known."""
        given = [one for one in operands if one < self.count and self.tensors[one] is not None]
        if not all(self.is_known(one) for one in given):
            return list(make(*(self.tensor(one) if one in given else None for one in operands)))
        if key not in self.prepared_tensors:
            made = make(*(self.known[one] if one in given else None for one in operands))
            self.prepared_tensors[key] = [one.contiguous() for one in made]
        if self.find_prepared is not None:
            return [self.find_prepared(key, number) for number in range(len(self.prepared_tensors[key]))]
        device = next((one.device for one in self.tensors if one is not None and one.device.type == "meta"), torch.device("cpu"))
        return [one.to(device) for one in self.prepared_tensors[key]]

    def operand_name(self, operand: int) -> str:
        """An operand as messages call it."""
        return f"input {operand} ({self.node.input[operand]})"

    def error(self, message: str) -> ModelError:
        """The error that this node is wrong in some way."""
        return ModelError(f"{self.label}: {message}")
