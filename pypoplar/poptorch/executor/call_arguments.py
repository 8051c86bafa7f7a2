"""The arguments of a call, in one order whatever way they are given, and compared with those that a model was compiled for."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from attrs import field, frozen

from pypoplar.errors import PoplarTypeError, TensorShapeError
from pypoplar.poptorch.capture.own_dictionaries import know_dicts
from pypoplar.poptorch.user_log import say_once

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@frozen(eq=False)
class CallArguments:
    """What a model was compiled for: arguments like those of its first call, tensors without values."""

    like: Arguments
    optional: frozenset[str]  # the names of tensors that were given, and need not be
    _flat: tuple[list[Any], pytree.TreeSpec] = field(init=False)  # what the flattened arguments of calls are compared with

    @_flat.default
    def _flattened(self) -> tuple[list[Any], pytree.TreeSpec]:
        return pytree.tree_flatten(_arranged(self.like, self.like))

    @classmethod
    def of(cls, given: Arguments, optional: frozenset[str]) -> CallArguments:
        """Those like what was given."""
        like = pytree.tree_map(lambda leaf: torch.empty_like(leaf) if isinstance(leaf, torch.Tensor) else leaf, given)
        return cls(like, optional)

    def lacks(self, optional: frozenset[str]) -> bool:
        """Whether a call gives other optional tensors, for which the model is compiled anew."""
        return self.optional != optional

    def check(self, given: Arguments, names: list[str]) -> list[Any]:
        """The flattened arguments of another call, in the order of the first; `names` are theirs.

        `TensorShapeError` for other ones.
        """
        leaves, structure = pytree.tree_flatten(_arranged(given, self.like))
        compiled, wanted = self._flat
        same = structure == wanted and all(_alike(one, other) for one, other in zip(leaves, compiled, strict=True))
        if not same:
            pairs = zip(names, leaves, compiled, strict=False)
            wrong = [told for name, one, like in pairs for told in _differences(name, like, one)]
            told = [*_other_count(self.like, given), *_missing_and_others(self.like, given)]
            told += wrong if len(leaves) == len(compiled) else []
            told = told or [f"{len(compiled)} arguments were given, and now {len(leaves)}."]
            raise TensorShapeError(
                f"the model was compiled for other arguments. {' '.join(told)} Make a new model for these, or destroy() it first"
            )
        return leaves


def in_order(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], devices: tuple[str, ...] = ("cpu",)
) -> Arguments:
    """The arguments in the order of the module's forward pass, by position where they can be.

    `PoplarTypeError` for what is no tensor of PyTorch, but like one, and for tensors on other `devices`.
    """
    know_dicts((args, kwargs))
    for leaf in pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, np.ndarray):
            raise PoplarTypeError(f"a model takes tensors of PyTorch, got an array of NumPy, {leaf.shape}: call torch.from_numpy")
        if not isinstance(leaf, torch.Tensor):
            continue
        if leaf.layout is not torch.strided or leaf.is_quantized or leaf.device.type not in devices:
            raise PoplarTypeError(f"a model takes dense tensors on the CPU, got one of {leaf.layout} on {leaf.device}")
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the forward pass itself tells what is wrong
        return args, kwargs
    return bound.args, bound.kwargs


def optional_arguments(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> frozenset[str]:
    """The names of the arguments of a call that are tensors, or have some in them, and by default None or other tensors."""
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return frozenset()
    parameters = bound.signature.parameters
    return frozenset(
        name
        for name, value in bound.arguments.items()
        if isinstance(parameters[name].default, torch.Tensor | None)
        and value is not parameters[name].default
        and any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))
    )


def outside_inference_mode(given: Arguments) -> Arguments:
    """Arguments whose tensors are as if none had been made in `torch.inference_mode`."""
    copied: Arguments = pytree.tree_map(
        lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) and leaf.is_inference() else leaf, given
    )
    return copied


def _arranged(given: Any, like: Any) -> Any:
    """Arguments whose dicts have their entries in the order of others; lists and tuples are alike."""
    if isinstance(given, dict) and isinstance(like, dict) and given.keys() == like.keys():
        return {key: _arranged(given[key], like[key]) for key in like}
    if type(given) in (list, tuple) and type(like) in (list, tuple) and len(given) == len(like):
        return [_arranged(one, other) for one, other in zip(given, like, strict=True)]
    return given


def tell_of_gradients(leaves: list[Any], trains: bool) -> None:
    """Say it where an argument of a model that `trains` has a gradient in PyTorch, as a parameter that is given has."""
    if trains and any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves):
        say_once("an argument has requires_grad=True: it is taken as detach() gives it, and no gradient goes through it")


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and one.dtype is other.dtype
    return type(one) is type(other) and bool(one == other)


def _other_count(like: Arguments, given: Arguments) -> list[str]:
    before, now = len(like[0]), len(given[0])
    return [f"Number of positional arguments mismatch: expected {before} arguments but got {now}."] if before != now else []


def _missing_and_others(like: Arguments, given: Arguments) -> list[str]:
    """What a call does not give of the arguments that a model was compiled for, and what it gives beside them, by name."""
    before, now = (
        {pytree.keystr(path): _called(path) for path, _ in pytree.tree_flatten_with_path(one)[0]} for one in (like, given)
    )
    missing = [name for path, name in before.items() if path not in now]
    others = [name for path, name in now.items() if path not in before]
    told = (("Missing arguments", missing), ("Unexpected arguments", others))
    return [f"{what}: {', '.join(names)}." for what, names in told if names]


def _called(path: tuple[Any, ...]) -> str:
    """The name of an argument: its key, where it has one."""
    last = path[-1] if path else None
    return str(last.key) if isinstance(last, pytree.MappingKey) else pytree.keystr(path)


def _differences(name: str, like: Any, one: Any) -> list[str]:
    """What one argument was compiled for, and what it is now, in PopTorch's words."""
    if not isinstance(like, torch.Tensor) or not isinstance(one, torch.Tensor):
        if _alike(one, like):
            return []
        what, pair = ("Value", (like, one)) if type(like) is type(one) else ("Type", (_told(like), _told(one)))
        return [f"{what} mismatch for {name}: expected {pair[0]} but got {pair[1]}."]
    pairs = ("Data type", like.dtype, one.dtype), ("Shape", like.shape, one.shape)
    return [f"{what} mismatch for {name}: expected {was} but got {now}." for what, was, now in pairs if was != now]


def _told(leaf: Any) -> str:
    return f"torch.Tensor of {leaf.shape}" if isinstance(leaf, torch.Tensor) else f"{type(leaf).__name__} {leaf!r}"
