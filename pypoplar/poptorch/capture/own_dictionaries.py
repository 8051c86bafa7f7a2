"""Dictionaries of a program's own classes among what models take and return, which PyTorch takes apart for whoever tells it how."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import torch.utils._pytree as pytree

TakesApart = Callable[[Any], tuple[list[Any], Any]]

REGISTERED: set[type] = set()
"""The classes that PyTorch was told of here or by `poptorch.registerCustomArgParser`."""


def forget(kind: type) -> None:
    """Let PyTorch not know a class any more, if it was told of it here."""
    if kind in REGISTERED:
        pytree._deregister_pytree_node(kind)
        REGISTERED.discard(kind)


def know(kind: type, flatten: TakesApart, unflatten: Callable[[Iterable[Any], Any], Any], named: TakesApart) -> None:
    """Tell PyTorch of a class how its objects are taken apart. `ValueError` if it knows the class from somebody else.

    Only PyTorch's trees in Python are told, of which its captures are made: those in C++ (`optree`) forget no class.
    """
    if kind in pytree.SUPPORTED_NODES:
        raise ValueError(f"{kind} is already registered as pytree node.")
    pytree._private_register_pytree_node(kind, flatten, unflatten, flatten_with_keys_fn=named)
    REGISTERED.add(kind)


def know_dicts(value: Any) -> None:
    """Let PyTorch take apart the dictionaries of a program's own classes that are in a value, as it does plain ones.

    What is made of their entries again is of their class and has its methods, not what an object has beside its entries.
    """
    while unknown := {type(leaf) for leaf in pytree.tree_leaves(value) if isinstance(leaf, dict)}:
        for kind in unknown:
            _register_dicts(kind)


def _register_dicts(kind: type[dict[Any, Any]]) -> None:
    plain = OrderedDict if issubclass(kind, OrderedDict) else dict

    def made(values: Iterable[Any], keys: Any) -> dict[Any, Any]:
        new = kind.__new__(kind)
        for key, value in zip(keys, values, strict=True):
            plain.__setitem__(new, key, value)
        return new

    def named(given: dict[Any, Any]) -> tuple[list[Any], Any]:
        return [(pytree.MappingKey(key), value) for key, value in given.items()], list(given)

    know(kind, lambda given: (list(given.values()), list(given)), made, named)
