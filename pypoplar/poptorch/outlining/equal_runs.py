"""Runs of operations of a joint graph that are equal: what they do, of what shapes and types, with which options, in one order."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from attrs import define, field, frozen
from torch import fx

from pypoplar.arrays.dtypes import Int64s
from pypoplar.poptorch.lowering.elements import ELEMENTS
from pypoplar.poptorch.lowering.tensor_views import VIEWS
from pypoplar.poptorch.lowering.walks.graph_walk import GraphWalk
from pypoplar.poptorch.outlining.repeats import RepeatedStretch, repeats

aten = torch.ops.aten
OF_ELEMENTS, OF_OTHERS = 0.01, 1.0  # what outlining an operation is worth: PopART has 1 for those that have large vertices
DEPTH_SEEN = 3  # how far entries look around: at the transpose of a view of a gradient, at what the parts of a sum are made of


@frozen(eq=False)
class EqualRuns:
    """Runs of as many operations that are equal, and the values of others that each of them reads, in one order."""

    starts: tuple[int, ...]  # positions of their first operations
    length: int
    given: tuple[tuple[fx.Node, ...], ...]  # of each run

    def __attrs_post_init__(self) -> None:
        assert len({len(nodes) for nodes in self.given}) == 1


def equal_runs(
    walk: GraphWalk,
    operations: Sequence[fx.Node],
    threshold: float,
    wanted: Callable[[EqualRuns], bool],
    apart: frozenset[fx.Node] = frozenset(),
) -> list[EqualRuns]:
    """All equal runs that are worth a threshold and wanted; no operation is in two, and none of those that stay `apart`."""
    slots, read = _with_turns(walk, operations), _Operands()
    labels = _labels(walk, slots, read, apart)
    before = np.concatenate(([0.0], np.cumsum([0.0 if node is None else worth_of(node) for node in slots]))).tolist()
    slot = {node: place for place, node in enumerate(slots) if node is not None}
    position = {slot[node]: place for place, node in enumerate(operations)}

    def runs_of(stretch: RepeatedStretch) -> EqualRuns:
        given = tuple(tuple(_form(slots, slot, read, start, stretch.length)[1]) for start in stretch.starts)
        return EqualRuns(tuple(position[start] for start in stretch.starts), stretch.length, given)

    def found(stretch: RepeatedStretch) -> RepeatedStretch | None:
        alike = _alike(stretch, slots, slot, read)
        return alike if alike is not None and wanted(runs_of(alike)) else None

    return [runs_of(stretch) for stretch in repeats(labels, before, threshold, found)]


def _with_turns(walk: GraphWalk, operations: Sequence[fx.Node]) -> list[fx.Node | None]:
    """Operations, with None where they turn to another IPU: no run goes over it."""
    ipus = [walk.ipus.get(node, 0) for node in operations]
    slots: list[fx.Node | None] = []
    for node, ipu, before in zip(operations, ipus, [*ipus[:1], *ipus], strict=False):
        slots += [node] if ipu == before else [None, node]
    return slots


def worth_of(node: fx.Node) -> float:
    """What outlining an operation is worth, views nothing."""
    return 0.0 if node.target in VIEWS else OF_ELEMENTS if node.target in ELEMENTS else OF_OTHERS


def draws(node: fx.Node) -> bool:
    """Whether an operation draws random numbers."""
    drawn = isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags
    return drawn or node.target is aten.native_dropout_backward.default


def _alike(
    repeat: RepeatedStretch, operations: Sequence[fx.Node | None], position: dict[fx.Node, int], read: _Operands
) -> RepeatedStretch | None:
    """The occurrences whose operations read from each other alike; the most, if there are several kinds."""
    kinds: dict[Any, list[int]] = {}
    for start in repeat.starts:
        kinds.setdefault(_form(operations, position, read, start, repeat.length)[0], []).append(start)
    most = max(kinds.values(), key=len)
    return RepeatedStretch(tuple(most), repeat.length) if len(most) > 1 else None


def _form(
    operations: Sequence[fx.Node | None], position: dict[fx.Node, int], read: _Operands, start: int, length: int
) -> tuple[tuple[int, ...], dict[fx.Node, int]]:
    """Of what each operation reads: how far before it in the run, or which of the values of others; and these."""
    given: dict[fx.Node, int] = {}
    form = []
    for place in range(start, start + length):
        for node in read[_operation(operations[place])]:
            before = position.get(node, -1)
            form.append(place - before if before >= start else -1 - given.setdefault(node, len(given)))
        form.append(0)
    return tuple(form), given


def _operation(node: fx.Node | None) -> fx.Node:
    assert node is not None, "no run goes over a turn to another IPU"
    return node


class _Operands(dict[fx.Node, list[fx.Node]]):
    """The values that operations read, in the order of their arguments, each as often as it stands there."""

    def __missing__(self, node: fx.Node) -> list[fx.Node]:
        found = [leaf for leaf in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(leaf, fx.Node)]
        self[node] = found
        return found


def _labels(walk: GraphWalk, operations: Sequence[fx.Node | None], read: _Operands, apart: frozenset[fx.Node]) -> Int64s:
    """A number for each operation, equal for equal ones; those that nobody may repeat, and turns, have one of their own."""
    labels = _Labels(walk, read)
    return np.array([labels.of_turn() if node is None or node in apart else labels.number(node) for node in operations], np.int64)


@define(eq=False)
class _Labels:
    """Tells operations by all that decides how they are lowered, but for where their operands lie."""

    walk: GraphWalk
    read: _Operands
    _numbers: dict[Any, int] = field(factory=dict)
    _described: dict[fx.Node, Any] = field(factory=dict)

    def number(self, node: fx.Node) -> int:
        """That of an operation."""
        label: Any = node
        if _is_repeatable(self.walk, node):
            options = tuple(sorted(self.walk.context(node).options.items()))
            label = self._used(node, DEPTH_SEEN), self._made(node, DEPTH_SEEN), options
        return self._numbers.setdefault(label, len(self._numbers))

    def of_turn(self) -> int:
        """One that nothing else has."""
        return self._numbers.setdefault(object(), len(self._numbers))

    def _described_as(self, node: fx.Node) -> int:
        """An operation with the shapes and types of what it reads and gives, and its IPU."""
        if node not in self._described:
            origin = node.meta.get("origin")
            where = node.meta.get("pass"), self.walk.ipus.get(node), None if origin is None else origin.plan
            described = str(node.target), _plain((node.args, node.kwargs)), _plain(node.meta.get("val")), where
            self._described[node] = self._numbers.setdefault(described, len(self._numbers))
        return self._described[node]

    def _used(self, node: fx.Node, further: int) -> Any:
        """The same with what its users are, and theirs: some operations are lowered otherwise for one user."""
        if not further:
            return self._described_as(node)
        return self._described_as(node), tuple(sorted(map(repr, (self._used(user, further - 1) for user in node.users))))

    def _made(self, node: fx.Node, further: int) -> Any:
        """The same with what its operands are made of."""
        described: Any = self._described_as(node) if node.op == "call_function" else node.op
        return (described, tuple(self._made(one, further - 1) for one in self.read[node])) if further else described


def _is_repeatable(walk: GraphWalk, node: fx.Node) -> bool:
    """Whether an operation does the same again: it draws no numbers, talks to no host, and is no mark of a loop or an IPU.

    What a function draws would depend on where its tensors lie among others, and is not yet proved to be what is drawn without it.
    """
    if node is walk.model.first_gradient or draws(node):
        return False
    if node.target is operator.getitem:
        return isinstance(node.args[0], fx.Node) and _is_repeatable(walk, node.args[0])
    known = isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "aten"
    several = pytree.tree_leaves(node.meta.get("val"))
    tensors = all(one is None or isinstance(one, torch.Tensor) for one in several)
    return known and tensors


def _plain(arguments: Any) -> Any:
    """Arguments in a form that can be compared: of tensors their shapes and types."""
    leaves, structure = pytree.tree_flatten(arguments)
    return str(structure), tuple(map(_leaf, leaves))


def _leaf(one: Any) -> Any:
    one = one.meta.get("val") if isinstance(one, fx.Node) else one
    if isinstance(one, torch.Tensor):
        return str(one.dtype), tuple(one.shape)
    if isinstance(one, list | tuple):  # what a node with several results gives
        return _plain(one)
    return type(one).__name__, repr(one)
