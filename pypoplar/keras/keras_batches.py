"""Keras' batches as what a call of the device takes: tensors of types that it has, those of several batches joined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from attrs import frozen
from keras.src.backend.config import floatx
from keras.src.backend.torch.core import to_torch_dtype
from keras.src.trainers.data_adapters.data_adapter_utils import unpack_x_y_sample_weight

from pypoplar.errors import PoplarTypeError


@frozen(eq=False)
class StepBatch:
    """A batch: inputs, targets and weights of samples, of which either may be None, and the tensors that these are."""

    x: Any
    y: Any
    sample_weight: Any
    tensors: tuple[torch.Tensor, ...]
    structure: Any

    @staticmethod
    def of(data: Any, *, with_targets: bool) -> StepBatch:
        """One of Keras'. Numbers of double precision become Keras' `floatx`."""
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        parts = (x, y, sample_weight) if with_targets else (x, None, None)
        leaves, structure = pytree.tree_flatten(tuple(_without_none(part) for part in parts))
        tensors = tuple(_tensor(leaf) for leaf in leaves)
        inputs, targets, weights = unflattened(tensors, structure)
        return StepBatch(inputs, targets, weights, tensors, structure)

    @property
    def signature(self) -> tuple[Any, ...]:
        """What a compiled step is for: structure, shapes and types."""
        return (str(self.structure), *((tuple(one.shape), one.dtype) for one in self.tensors))

    @property
    def size(self) -> int:
        """Samples in it."""
        return int(self.tensors[0].shape[0])


def _without_none(part: Any) -> Any:
    """A part; nothing at all where it is None, which no tensor stands for."""
    return () if part is None else part


def unflattened(tensors: Iterable[torch.Tensor], structure: Any) -> list[Any]:
    """Inputs, targets and weights of samples, None where there are none."""
    parts = pytree.tree_unflatten(list(tensors), structure)
    return [None if isinstance(part, tuple) and not part else part for part in parts]


def _tensor(leaf: Any) -> torch.Tensor:
    try:
        tensor = leaf.detach() if isinstance(leaf, torch.Tensor) else torch.as_tensor(np.asarray(leaf))
    except TypeError as problem:
        raise PoplarTypeError(f"data of a model are arrays and tensors of numbers, got {leaf!r}") from problem
    return tensor.to(to_torch_dtype(floatx())) if tensor.dtype is torch.float64 else tensor


def joined_batches(batches: list[StepBatch]) -> tuple[torch.Tensor, ...]:
    """The tensors of several batches of one signature, one batch after the other."""
    if len(batches) == 1:
        return batches[0].tensors
    return tuple(torch.cat(several) for several in zip(*(one.tensors for one in batches), strict=True))
