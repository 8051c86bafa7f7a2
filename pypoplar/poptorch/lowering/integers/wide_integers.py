"""Sums and products that PyTorch computes with 64 bits: so are they here, and a result that leaves 32 bits is an error of the run.

Where the ranges of operands say that no result can, 32 bits do.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.integers.integer_ranges import DTYPES, IntegerRange
from pypoplar.poputil.codelet_modules import codelet_module
from pypoplar.program import Execute
from pypoplar.types import INT

Combined = Callable[[IntegerRange, int], IntegerRange]


def is_wide(ctx: EntryContext, input: Operand, count: int, combined: Combined) -> bool:
    """Whether this operation, which combines up to so many elements of an operand, has int64 results that may leave 32 bits."""
    if ctx.likes[0].dtype is not torch.int64:
        return False
    return not DTYPES[torch.int32].holds(combined(input.range, count))


def narrowed(ctx: EntryContext, wide: Tensor) -> Tensor:
    """LONGLONGs as INT; the run ends with an error that has the operation's line if one does not fit."""
    graph = ctx.graph
    graph.addCodelets(codelet_module("poptorch_integers.py"))
    source = wide.flatten()
    result = graph.addVariable(INT, source.shape(), f"{ctx.name}/narrowed")
    mapping = graph.getTileMapping(source)
    checks = graph.addComputeSet(f"{ctx.name}/narrowed")
    for tile, regions in enumerate(mapping):
        if regions:
            for region in regions:
                graph.setTileMapping(result.slice(region.begin(), region.end()), tile)
            fields: dict[str, Any] = {"in": concat(source.slices(regions)), "out": concat(result.slices(regions))}
            graph.setTileMapping(graph.addVertex(checks, "poptorch::NarrowChecked", fields), tile)
    ctx.program.add(Execute(checks))
    return result.reshape(wide.shape())


def combined_elements(tensor: Tensor, axes: list[int]) -> int:
    """How many elements a reduction over dimensions combines."""
    return prod(tensor.dim(axis) for axis in axes)
