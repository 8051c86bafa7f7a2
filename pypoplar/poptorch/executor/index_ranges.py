"""Indices and labels among a call's arguments, or computed from them by few operations, are checked before the call runs.

The device does not check indices: one that is out of range gives zeros there, and changes nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree
from attrs import frozen
from torch import fx

from pypoplar.errors import PoplarIndexError
from pypoplar.poptorch.capture import InputKind, JointGraph, Pass
from pypoplar.poptorch.executor.batches import Batches
from pypoplar.poptorch.lowering import tensor_views
from pypoplar.poptorch.lowering.elements import ELEMENTS
from pypoplar.poptorch.lowering.folding import EMPTY, folds
from pypoplar.poptorch.lowering.lowering_table import TABLE

aten = torch.ops.aten
MOST_STEPS = 24  # operations by which the host computes an index
MOVES = {  # operations that give elements other places or types
    *(
        operation
        for operation, entry in TABLE.items()
        if entry.__module__ == tensor_views.__name__ and operation.namespace == "aten"
    ),
    *(aten._to_copy.default, aten.cat.default, aten.stack.default),
}
FROM_END = (
    aten.index.Tensor,
    aten.index_put.default,
    aten.take.default,
    aten.put.default,
    aten.index_fill.int_Scalar,
    aten.index_fill.int_Tensor,
)
BLOCKS = {"start_for_loop": 1, "end_for_loop": -1, "start_if_block": 1, "end_if_block": -1}


@frozen
class IndexRange:
    """An index of an operation and what it may be: `least` to `most`, or `ignored`."""

    index: fx.Node
    least: int
    most: int
    ignored: int | None
    operation: str  # with its module and line

    def __str__(self) -> str:
        ignored = (
            "" if self.ignored is None or self.least <= self.ignored <= self.most else f", or {self.ignored}, which is ignored"
        )
        takes = f"takes {self.least} to {self.most}{ignored}" if self.least <= self.most else "has nothing to pick from"
        return f"{self.operation} {takes}"

    def beyond(self, values: torch.Tensor) -> torch.Tensor:
        """Which values are out of range."""
        outside = (values < self.least) | (values > self.most)
        return outside if self.ignored is None else outside & (values != self.ignored)


@frozen(eq=False)
class CheckedIndex:
    """A range, and how the host computes the index from a batch's arguments."""

    range: IndexRange
    steps: tuple[fx.Node, ...]
    arguments: Mapping[fx.Node, str]
    constants: Mapping[fx.Node, torch.Tensor]
    constant_names: Mapping[fx.Node, str]

    def check(self, values: Mapping[str, torch.Tensor], batches: Batches) -> None:
        """`PoplarIndexError` if a value in a call's arguments is out of range."""
        for number in range(batches.given):
            known: dict[fx.Node, Any] = dict(self.constants)
            for node, name in self.arguments.items():
                size = values[name].shape[0] // batches.given if batches.given > 1 else 0
                known[node] = values[name][number * size : (number + 1) * size] if size else values[name]
            for step in self.steps:
                known[step] = _computed(step, known)
            beyond = self.range.beyond(known[self.range.index])
            if beyond.any():
                self._refuse(known[self.range.index], beyond, f" of batch {number}" if batches.given > 1 else "")

    def _refuse(self, index: torch.Tensor, beyond: torch.Tensor, batch: str) -> None:
        place = beyond.nonzero()[0].tolist()
        names = " and ".join(self.arguments.values())
        what = "the argument" if not self.steps else "an index that is computed from"
        where = f" at {place}" if place else ""
        raise PoplarIndexError(f"{what} {names} is {index[tuple(place)].item()}{where}{batch}: {self.range}")


def _computed(step: fx.Node, known: Mapping[fx.Node, Any]) -> Any:
    args, kwargs = fx.map_arg((step.args, step.kwargs), known.__getitem__)
    return step.target(*args, **kwargs)


def checked_indices(joint: JointGraph) -> list[CheckedIndex]:
    """All indices of a graph that the host can check before a call."""
    arguments = {one.node: one.name for one in joint.arguments() if isinstance(one.node.meta.get("val"), torch.Tensor)}
    constants = {one.node: one.value for one in joint.inputs if one.kind is InputKind.CONSTANT and one.value is not None}
    names = {one.node: one.name for one in joint.inputs}
    result = {}
    for found in _ranges(joint):
        steps = _steps(found.index, {*arguments, *constants})
        if steps is None:
            continue
        used = {before for step in (*steps, found.index) for before in (step, *step.all_input_nodes)}
        given = {node: name for node, name in arguments.items() if node in used}
        if given:
            known = {node: value for node, value in constants.items() if node in used}
            result[found] = CheckedIndex(found, steps, given, known, {node: names[node] for node in known})
    return list(result.values())


def ranges_of_indices(joint: JointGraph) -> dict[fx.Node, tuple[int, int]]:
    """The least and the largest value of what the host checks before a call."""
    ranges = [one.range for one in checked_indices(joint)]
    ignored = {one.index: one.least if one.ignored is None else one.ignored for one in ranges}
    return {one.index: (min(one.least, ignored[one.index]), max(one.most, ignored[one.index])) for one in ranges}


def _ranges(joint: JointGraph) -> Iterator[IndexRange]:
    """The ranges of the forward pass; a block that may not run has none."""
    depth = 0
    for node in joint.graph.nodes:
        if node.op != "call_function" or node.meta["pass"] is not Pass.FORWARD:
            continue
        depth += BLOCKS.get(getattr(node.target, "_opname", ""), 0)
        rule = RULES.get(node.target)
        if rule is None or depth:
            continue
        origin = node.meta.get("origin")
        for index, size, ignored in rule(node, *node.args):
            if index.meta["val"].dtype not in (torch.bool, torch.uint8):  # masks
                least = -size if node.target in FROM_END else 0
                yield IndexRange(index, least, size - 1, ignored, str(origin) if origin else str(node.target))


def _steps(index: fx.Node, known: set[fx.Node]) -> tuple[fx.Node, ...] | None:
    """The operations that compute an index from what is known, in order; None if there are others than cheap ones."""
    steps: dict[fx.Node, None] = {}

    def visit(node: fx.Node) -> bool:
        if node in known or node in steps:
            return True
        if node.op != "call_function" or len(steps) > MOST_STEPS or not all(visit(before) for before in node.all_input_nodes):
            return False
        whole = not any(one.dtype.is_floating_point for before in (node, *node.all_input_nodes) for one in _tensors(before))
        steps[node] = None
        return (
            node.target in MOVES
            or node.target is operator.getitem
            or (whole and node.target in ELEMENTS)
            or (not node.all_input_nodes and node.target not in EMPTY and folds(node, known.__contains__))
        )

    return tuple(steps) if visit(index) else None


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    """The tensors that a node is: one, or the parts that an operation gives."""
    return [one for one in pytree.tree_leaves(node.meta["val"]) if isinstance(one, torch.Tensor)]


# which arguments of operations are indices: node, size of what they pick from, and what is ignored

Found = Iterator[tuple[fx.Node, int, int | None]]


def _size(node: fx.Node, dim: int) -> int:
    shape = node.meta["val"].shape
    return int(shape[dim]) if len(shape) else 1


def _of_dimension(node: fx.Node, input: fx.Node, dim: int, index: fx.Node, *_: Any) -> Found:
    yield index, _size(input, dim), None


def _of_table(node: fx.Node, table: fx.Node, indices: fx.Node, *_: Any) -> Found:
    yield indices, _size(table, 0), None


def _of_labels(node: fx.Node, input: fx.Node, labels: fx.Node, weight: Any, reduction: int, ignored: int) -> Found:
    yield labels, _size(input, min(1, input.meta["val"].dim() - 1)), ignored


def _of_dimensions(node: fx.Node, input: fx.Node, indices: list[fx.Node | None], *_: Any) -> Found:
    for dim, index in enumerate(indices):
        if index is not None:
            yield index, _size(input, dim), None


def _of_elements(node: fx.Node, input: fx.Node, index: fx.Node, *_: Any) -> Found:
    yield index, input.meta["val"].numel(), None


def _of_classes(node: fx.Node, labels: fx.Node, classes: Any, *_: Any) -> Found:
    """`one_hot` compares labels with all classes."""
    origin = node.meta.get("origin")
    if origin is not None and origin.operation == "one_hot" and isinstance(classes, fx.Node):
        yield labels, _size(classes, -1), None


_DIMENSION = (
    *(aten.gather.default, aten.scatter.src, aten.scatter.value, aten.scatter.reduce, aten.scatter.value_reduce),
    *(aten.scatter_add.default, aten.scatter_reduce.two, aten.index_select.default, aten.index_add.default),
    *(aten.index_copy.default, aten.index_fill.int_Scalar, aten.index_fill.int_Tensor, aten.index_reduce.default),
)
RULES: dict[Any, Callable[..., Found]] = {
    **dict.fromkeys(_DIMENSION, _of_dimension),
    **dict.fromkeys((aten.nll_loss_forward.default, aten.nll_loss2d_forward.default), _of_labels),
    **dict.fromkeys((aten.index.Tensor, aten.index_put.default), _of_dimensions),
    **dict.fromkeys((aten.take.default, aten.put.default), _of_elements),
    aten.embedding.default: _of_table,
    aten.eq.Tensor: _of_classes,
}
