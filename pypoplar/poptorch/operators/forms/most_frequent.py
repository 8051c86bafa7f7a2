"""The most frequent elements of a dimension, from sorted ones: equal ones follow each other."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.poptorch.operators.captured_forms import replaces

aten = torch.ops.aten


@replaces(aten.mode.default)
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """The least of the elements that are there most often, at its last place. NaNs differ from each other."""
    elements = input.reshape(1) if input.dim() == 0 else input
    along = dim % elements.dim()
    length = elements.shape[along]
    if not length:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    ordered, places = elements.sort(stable=True, dim=along)
    numbers = torch.arange(length).reshape(-1, *[1] * (elements.dim() - 1 - along))
    begins = ordered.narrow(along, 1, length - 1) != ordered.narrow(along, 0, length - 1)
    first = torch.ones_like(ordered.narrow(along, 0, 1), dtype=torch.bool)
    begin = torch.where(torch.cat([first, begins], along), numbers, 0).cummax(along).values
    most = (numbers - begin).argmax(along, keepdim=True)
    place = places.gather(along, most)
    value = elements.gather(along, place)
    shape = input.shape if input.dim() == 0 else value.shape if keepdim else value.squeeze(along).shape
    return value.reshape(shape), place.reshape(shape)
