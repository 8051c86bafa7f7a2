"""What is put aside of a model whose stages are computed again for their gradients, by PopART's ways to choose it."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from enum import IntEnum
from itertools import pairwise
from math import sqrt

import torch
import torch.utils._pytree as pytree
from attrs import frozen
from torch import fx

from pypoplar.poptorch.capture import JointGraph, Pass
from pypoplar.poptorch.lowering.tensor_views import VIEWS

aten = torch.ops.aten
MARK = torch.ops.poptorch.recomputation_checkpoint.default
NORMS = frozenset(
    {
        *(aten._native_batch_norm_legit_functional.default, aten._native_batch_norm_legit.no_stats),
        *(aten.native_batch_norm.default, aten._native_batch_norm_legit_no_training.default),
        *(aten.native_layer_norm.default, aten.native_group_norm.default),
    }
)
NON_LINEARITIES = frozenset(
    {
        *(aten.relu.default, aten.gelu.default, aten.silu.default, aten.sigmoid.default, aten.tanh.default),
        *(aten.leaky_relu.default, aten.elu.default, aten.hardtanh.default, aten.hardsigmoid.default, aten.hardswish.default),
    }
)
FIRST_INTERVAL = 0.75  # S: of the length that PopART's intervals could begin with


class Recomputation(IntEnum):
    """PopART's ``RecomputationType``, by its numbers."""

    NONE = 0
    STANDARD = 1  # what lies between the cheapest places of intervals that become shorter
    NORM_ONLY = 2  # norms, and the non-linearities behind them
    PIPELINE = 3  # all of a stage
    ALL = 4


@frozen(eq=False)
class KeptOperations:
    """Operations whose results are put aside beside the inputs of stages; and those that alone are done again, if it is not all."""

    kept: frozenset[fx.Node]
    again: frozenset[fx.Node] | None = None

    @property
    def apart(self) -> frozenset[fx.Node]:
        """Operations that no function of the graph may have among others: they are told from these as the program runs."""
        return self.again or self.kept


def checkpoints_of(joint: JointGraph, kind: Recomputation) -> KeptOperations | None:
    """Those of a model; None where nothing is done again."""
    if kind is Recomputation.NONE:
        return None
    forward = [node for node in joint.graph.nodes if node.op == "call_function" and node.meta["pass"] is Pass.FORWARD]
    marked = frozenset(node for node in forward if node.target is MARK)
    if kind is Recomputation.NORM_ONLY:
        again = _norms(forward)
        return KeptOperations(frozenset(forward) - again, again)
    if kind is Recomputation.STANDARD:
        return KeptOperations(marked | _cheapest(joint, forward))
    return KeptOperations(marked)


def _norms(forward: SequenceOf[fx.Node]) -> frozenset[fx.Node]:
    """Norms, and what follows them: their parts, and non-linearities that read one."""
    found = set[fx.Node]()
    for node in forward:
        of_norm = bool(found.intersection(node.all_input_nodes)) and (node.target in VIEWS or node.target in NON_LINEARITIES)
        if node.target in NORMS or of_norm:
            found.add(node)
    return frozenset(found)


def _cheapest(joint: JointGraph, forward: SequenceOf[fx.Node]) -> frozenset[fx.Node]:
    """S: of each interval of the operations that lead to the loss what is alive where that is the fewest bytes."""
    leading = _leading_to(joint.loss)
    made = [node for node in forward if node in leading and node.target not in VIEWS and _bytes(node)]
    last = _last_readers(made, set(forward))
    found = set[fx.Node]()
    alive: list[frozenset[fx.Node]] = []
    now = list[fx.Node]()
    for place, node in enumerate(made):
        now = [one for one in now if last[one] > place] + [node]
        alive.append(frozenset(now))
    for begin, end in intervals(len(made)):
        found |= min(alive[begin:end], key=lambda nodes: sum(map(_bytes, nodes)))
    return frozenset(found)


def intervals(count: int) -> list[tuple[int, int]]:
    """S: so many places in intervals, each one place shorter than the one before; single places behind them."""
    length = int((int(sqrt(2.0 * count)) - 1) * FIRST_INTERVAL)
    ends = [0]
    while length > 0 and ends[-1] + length <= count:
        ends.append(ends[-1] + length)
        length -= 1
    return list(pairwise([*ends, *range(ends[-1] + 1, count + 1)]))


def _leading_to(loss: fx.Node | None) -> set[fx.Node]:
    """What a loss is computed from, and the loss."""
    found, unseen = set[fx.Node](), [] if loss is None else [loss]
    while unseen:
        node = unseen.pop()
        if node not in found:
            found.add(node)
            unseen += node.all_input_nodes
    return found


def _last_readers(made: SequenceOf[fx.Node], forward: set[fx.Node]) -> dict[fx.Node, int]:
    """The place of the last operation forward that reads each, itself or through views; its own place if there is none."""
    places = {node: place for place, node in enumerate(made)}
    last = dict(places)
    for node, place in places.items():
        unseen = list(node.users)
        while unseen:
            user = unseen.pop()
            if user not in forward:
                continue
            if user.target in VIEWS:
                unseen += user.users
            last[node] = max(last[node], places.get(user, place))
    return last


def _bytes(node: fx.Node) -> int:
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves if isinstance(leaf, torch.Tensor))
