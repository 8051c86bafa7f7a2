"""Operations of Keras that change no values, and are left out while a model is captured, where each of them takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from keras.src.backend.common.masking import get_keras_mask
from keras.src.backend.torch import nn as keras_nn
from torch.overrides import TorchFunctionMode

Function = Callable[..., Any]

ELEMENTWISE: frozenset[Function] = frozenset(
    (
        *(F.relu, F.relu6, F.sigmoid, F.tanh, F.silu, F.gelu, F.elu, F.selu, F.celu, F.leaky_relu, F.softplus, F.hardtanh),
        *(F.dropout, torch.relu, torch.sigmoid, torch.tanh, torch.square, torch.abs, torch.exp, torch.negative),
    )
)
"""Of one tensor, element by element: whether its dimensions are permuted before or behind makes no difference."""
CONVOLUTIONS: frozenset[Function] = frozenset((torch.conv1d, torch.conv2d, torch.conv3d, F.conv1d, F.conv2d, F.conv3d))
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32)
ADD, MATMUL, PERMUTE, TO = torch.add, torch.matmul, torch.permute, torch.Tensor.to  # others while PyTorch exports


class LeftOutOperations(TorchFunctionMode):
    """Leaves out what changes no values.

    - Conversions of tensors to what they are already, of which Keras has two before each operation, and of classes to floats and
      back.
    - Keras' orders of elements in memory: on the device they are its own.
    - Permutations that undo others: Keras has channels last, and PyTorch's convolutions and pools have them first.
    - Sums of a convolution, or of a product, and its bias: one operation has both.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bias: torch.Tensor | None = None  # of the next convolution, which takes it
        self._made: dict[int, tuple[torch.Tensor, Function, Any]] = {}  # what tensors were made of, by their identities

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is TO:
            return self._converted(args, kwargs)
        if func is PERMUTE and len(args) == 2 and not kwargs:
            return self._permuted(*args)
        if func is torch.Tensor.contiguous and sys._getframe(1).f_globals.get("__name__") == keras_nn.__name__:
            return args[0]
        if func in ELEMENTWISE:
            before = self._made_by(args[0] if args else None, PERMUTE)
            if before is not None:
                return self._permuted(func(before[0], *args[1:], **kwargs), before[1])
        elif func in CONVOLUTIONS and self.bias is not None:
            bias, self.bias = self.bias, None
            return func(*args, **kwargs, bias=bias)
        elif func is ADD and len(args) == 2 and not kwargs:
            product = self._made_by(args[0], MATMUL)
            if product is not None and _is_bias(args[1], args[0]):
                return torch.addmm(args[1], *product)
        result = func(*args, **kwargs)
        if func is MATMUL and len(args) == 2 and args[0].dim() == args[1].dim() == 2 and result.dtype is torch.float32:
            self._made[id(result)] = (result, func, args)
        return result

    def _made_by(self, tensor: Any, func: Function) -> Any:
        """What a function made a tensor of, if it did."""
        made = self._made.get(id(tensor))
        return made[2] if made is not None and made[1] is func else None

    def _permuted(self, tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
        order = tuple(order)
        before = self._made_by(tensor, PERMUTE)
        undone = before is not None and tuple(before[1][place] for place in order) == tuple(range(len(order)))
        if undone and get_keras_mask(before[0]) is None:  # a mask is not the result's
            return before[0]
        result = PERMUTE(tensor, order)
        if all(place >= 0 for place in order):
            self._made[id(result)] = (result, PERMUTE, (tensor, order))
        return result

    def _converted(self, args: Any, kwargs: Any) -> torch.Tensor:
        tensor = args[0]
        if _changes_nothing(*args, **kwargs):
            return tensor
        asked = [one for one in (*args[1:], *kwargs.values()) if isinstance(one, torch.dtype)]
        before = self._made_by(tensor, TO)
        if before is not None and asked == [torch.int64] and _changes_nothing(*args, **kwargs, but_types=True):
            return before.to(torch.int64)  # classes, which losses take as they are
        result = TO(*args, **kwargs)
        if asked == [torch.float32] and tensor.dtype in INTEGERS:
            self._made[id(result)] = (result, TO, tensor)
        return result


def _is_bias(bias: Any, product: torch.Tensor) -> bool:
    return isinstance(bias, torch.Tensor) and bias.dtype is product.dtype and tuple(bias.shape) == tuple(product.shape[1:])


def _changes_nothing(tensor: torch.Tensor, *asked: Any, but_types: bool = False, **named: Any) -> bool:
    """Whether a conversion gives what the tensor is; of its type apart with `but_types`."""
    for one in (*asked, *named.values()):
        if isinstance(one, torch.dtype):
            changes = one is not tensor.dtype and not but_types
        elif isinstance(one, str | torch.device):
            changes = torch.device(one).type != tensor.device.type
        else:
            changes = one is not None
        if changes:
            return False
    return True
