"""Copies that a call of a function takes: clones of tensors, and what lies as another."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from typing import Any

import numpy as np
from attrs import define, field

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.graph.cloning import TensorCloneMethod
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat, concat_slices
from pypoplar.poptorch.outlining.memory_order import in_memory_order
from pypoplar.poptorch.outlining.tensors_within import tensors_within
from pypoplar.program import Copy, Sequence
from pypoplar.types import ElementType

LayoutOfView = tuple[AnyArray, ...]


@define(eq=False)
class Twins:
    """Clones of tensors, of each one: elements that are one in a tensor are one in its clone."""

    graph: Graph
    name: str
    twins: dict[int, tuple[Tensor, Tensor]] = field(factory=dict)  # by identity of the tensor, which is kept beside its clone

    @staticmethod
    def of_values(graph: Graph, name: str, values: Iterable[Any]) -> Twins:
        """Those of all tensors within values, which lie in memory in the order of these."""
        twins = Twins(graph, name)
        for tensor in in_memory_order(tensor for value in values for tensor in tensors_within(value)):
            twins.of(tensor)
        return twins

    def of(self, tensor: Tensor) -> Tensor:
        """The clone of a tensor."""
        if id(tensor) not in self.twins:
            method = TensorCloneMethod.PRESERVE_ORDER_AND_ALIASES
            self.twins[id(tensor)] = tensor, self.graph.clone(tensor, self.name, method)
        return self.twins[id(tensor)][1]


def add_copies(graph: Graph, program: Sequence, pairs: SequenceOf[tuple[Tensor, Tensor]], name: str) -> None:
    """Copy tensors to their like, all of a type in one step: apart they would find their targets where others have been."""
    by_type: dict[ElementType, list[tuple[Tensor, Tensor]]] = {}
    for source, target in pairs:
        if target.numElements():
            by_type.setdefault(target.elementType(), []).append(_in_memory(graph, source, target))
    for together in by_type.values():
        sources, targets = (concat(list(side)) for side in zip(*together, strict=True))
        program.add(Copy(sources, targets, name=name))


def bytes_of(pairs: SequenceOf[tuple[Tensor, Tensor]]) -> int:
    """What is copied."""
    return sum(target.numElements() * target.elementType().size for _, target in pairs)


def _in_memory(graph: Graph, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the order of the target's memory; elements that it holds twice once."""
    if not target.containsAliases():
        in_memory, (other,) = graph.reorderToSimplify(target, [source])
        return other, in_memory
    regions = graph.getSortedContiguousRegions(target, [(0, target.numElements())], True)
    begin, end = np.array([(one.begin(), one.end()) for region in regions for one in region], np.int64).T
    return concat_slices(source.flatten(), begin, end), concat_slices(target.flatten(), begin, end)


def layouts(graph: Graph, value: Any) -> tuple[LayoutOfView, ...]:
    """Of the tensors within a value."""
    return tuple(layout_of_view(graph, tensor) for tensor in tensors_within(value))


def layout_of_view(graph: Graph, tensor: Tensor) -> LayoutOfView:
    """Where a tensor lies: the order of its elements in memory, from the first of them on, and the tile of each."""
    runs = tensor.runs()
    begin = runs.start.min(initial=np.iinfo(np.int64).max)
    return runs.start - begin, runs.count, runs.step, *graph.mapped_pieces(tensor)


def are_equal(layouts: tuple[LayoutOfView, ...], others: tuple[LayoutOfView, ...]) -> bool:
    """Whether tensors lie alike."""
    return len(layouts) == len(others) and all(
        np.array_equal(column, with_it)
        for layout, other in zip(layouts, others, strict=True)
        for column, with_it in zip(layout, other, strict=True)
    )
