"""Batches put together and cut apart along their first dimension: tensors, or tuples, lists and dicts of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pypoplar.errors import PoplarTypeError, TensorShapeError


def joined_batches(batches: list[Any]) -> Any:
    """Several batches as one, in their order."""
    if len(batches) == 1:
        return batches[0]
    parts = [pytree.tree_flatten(batch) for batch in batches]
    leaves, structure = parts[0]
    for other, its_structure in parts[1:]:
        if its_structure != structure:
            raise PoplarTypeError(f"batches differ in what they are made of: {structure} and {its_structure}")
        for first, second in zip(leaves, other, strict=True):
            if _rows(first).shape[1:] != _rows(second).shape[1:]:
                raise TensorShapeError(
                    f"samples of one data set have different shapes: {list(first.shape[1:])} and {list(second.shape[1:])}"
                )
    columns = zip(*(leaves for leaves, _ in parts), strict=True)
    return pytree.tree_unflatten([torch.cat(column) for column in columns], structure)


def rows_of(batch: Any) -> int:
    """How many samples a batch has."""
    lengths = {len(_rows(leaf)) for leaf in pytree.tree_leaves(batch)}
    if len(lengths) != 1:
        raise TensorShapeError(f"the tensors of a batch have as many samples each, got {sorted(lengths) or 'no tensor'}")
    return lengths.pop()


def _rows(leaf: object) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.dim() == 0:
        what = "one of no dimension" if isinstance(leaf, torch.Tensor) else repr(leaf)
        raise PoplarTypeError(
            "batches that are put together are tensors, or tuples, lists and dicts of them, whose first dimension counts samples: "
            f"got {what}"
        )
    return leaf


def rebatched(batches: Iterable[Any], size: int, drop_last: bool) -> Iterator[Any]:
    """Batches of `size` samples out of batches of any sizes; without `drop_last` a smaller one at the end."""
    pending: list[Any] = []
    count = 0
    for batch in batches:
        pending.append(batch)
        count += rows_of(batch)
        while count >= size:
            whole = joined_batches(pending)
            yield _cut(whole, 0, size)
            count -= size
            pending = [_cut(whole, size, size + count)] if count else []
    if pending and not drop_last:
        yield joined_batches(pending)


def _cut(batch: Any, start: int, stop: int) -> Any:
    """Some of the samples of a batch."""
    return pytree.tree_map(lambda leaf: leaf[start:stop], batch)


def combined(batches: Iterator[Any], number: int, drop_last: bool) -> Iterator[Any]:
    """Every `number` successive batches as one; without `drop_last` fewer at the end."""
    while group := list(islice(batches, number)):
        if len(group) == number or not drop_last:
            yield joined_batches(group)
