"""Operations whose value is known when the graph is built: PyTorch computes it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch import fx

from pypoplar.errors import TensorIOStateError
from pypoplar.poptorch.lowering.values import Constant

aten = torch.ops.aten
EMPTY = (  # nothing has written what they give
    *(aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default, aten.empty_permuted.default),
    *(aten.new_empty.default, aten.new_empty_strided.default),
)
OF_SHAPE = (  # of their operands, these ask for shape and type alone
    *(aten.ones_like.default, aten.zeros_like.default, aten.full_like.default, *EMPTY),
    *(aten.new_zeros.default, aten.new_ones.default, aten.new_full.default, aten.zero.default),
)
UNWRITTEN = (float("nan"), 1.0), (-0x55555556, 0x55555555), (False, True)  # floats, integers and truths that memory might hold


def folds(node: fx.Node, is_known: Callable[[fx.Node], bool]) -> bool:
    """Whether the value of an operation is known: its operands are, and chance has no part in it."""
    if node.target is operator.getitem or node.target in OF_SHAPE:
        return node.target is not operator.getitem
    known = isinstance(node.target, torch._ops.OpOverload)
    random = known and torch.Tag.nondeterministic_seeded in node.target.tags
    own = known and node.target.namespace == "poptorch"  # they mark places, print, or have no form on the CPU
    return not random and not own and all(is_known(before) for before in node.all_input_nodes)


def folded(node: fx.Node, value: Callable[[fx.Node], Any]) -> Any:
    """The value that PyTorch computes; `value` gives those of operands.

    What depends on memory that nothing has written is computed of two contents of it: where the results are one, that is the value.
    """
    if node.target in EMPTY:
        return _unwritten(node.meta["val"])
    operands = [value(before) for before in node.all_input_nodes] if node.target not in OF_SHAPE else []
    first = _computed(node, value, lambda constant: constant.computed)
    if all(not isinstance(one, Constant) or one.other is None for one in operands):
        return pytree.tree_map(lambda one: Constant(_as_computed(one)) if isinstance(one, torch.Tensor) else one, first)
    second = _computed(node, value, lambda constant: constant.computed if constant.other is None else constant.other)
    return pytree.tree_map(_of_both, first, second)


def _computed(node: fx.Node, value: Callable[[fx.Node], Any], array: Callable[[Constant], np.ndarray[Any, Any]]) -> Any:
    """What PyTorch computes of the arrays of constants."""

    def known(argument: Any) -> Any:
        if not isinstance(argument, fx.Node):
            return argument
        constant, like = value(argument), argument.meta["val"]
        if isinstance(constant, Constant):
            return torch.from_numpy(np.array(array(constant))).to(like.dtype)
        return torch.zeros(like.shape, dtype=like.dtype)  # its shape is all that is asked for

    args, kwargs = pytree.tree_map(known, (node.args, node.kwargs), is_leaf=lambda leaf: isinstance(leaf, fx.Node))
    return node.target(*args, **kwargs)


def _unwritten(like: torch.Tensor) -> Constant:
    floats, integers, truths = UNWRITTEN
    pair = floats if like.dtype.is_floating_point else truths if like.dtype is torch.bool else integers
    return Constant(*(narrowed(torch.tensor(one).to(like.dtype).repeat(like.shape)) for one in pair))


def _of_both(first: Any, second: Any) -> Any:
    """The constant of two results; what has no value is not refused for it."""
    if not isinstance(first, torch.Tensor):
        return first
    if torch.equal(torch.nan_to_num(first), torch.nan_to_num(second)) and torch.equal(first != first, second != second):
        return Constant(_as_computed(first))
    cut = [one.to(torch.int32) if one.dtype is torch.int64 else one for one in (first, second)]
    return Constant(*(narrowed(one) for one in cut))


def _as_computed(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """A constant's elements as they are on the IPU; integers that do not fit as they are."""
    array = value.contiguous().numpy(force=True)
    return array if array.dtype == np.int64 and not _fits(array) else narrowed(value)


def _fits(array: np.ndarray[Any, Any]) -> bool:
    return not array.size or bool(array.min() >= -(2**31) and array.max() < 2**31)


def narrowed(value: torch.Tensor) -> np.ndarray[Any, Any]:
    """A constant's elements as they are on the IPU: 64-bit integers with 32 bits, double as float."""
    array = value.contiguous().numpy(force=True)
    if array.dtype == np.int64:
        if not _fits(array):
            raise TensorIOStateError(
                f"integers are 32 bits wide on the IPU; a constant has values from {array.min()} to {array.max()}"
            )
        return array.astype(np.int32)
    return in_single(array) if array.dtype == np.float64 else array


def in_single(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Doubles as floats; what is finite stays so, as the lowest number that masks are made of."""
    most = np.finfo(np.float32).max
    return np.where(np.isfinite(array), np.clip(array, -most, most), array).astype(np.float32)
