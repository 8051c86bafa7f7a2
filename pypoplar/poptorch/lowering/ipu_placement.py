"""Which IPU each operation runs on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import fx

from pypoplar.errors import InvalidOption
from pypoplar.poptorch.capture import JointGraph, Pass
from pypoplar.poptorch.options.execution_strategies import BlockPlace


def ipus_of_nodes(joint: JointGraph) -> dict[fx.Node, int]:
    """The IPU of each operation."""
    return by_block(joint, lambda place: place.ipu)


def by_block(joint: JointGraph, number: Callable[[BlockPlace], int]) -> dict[fx.Node, int]:
    """A number of each operation's block; without a block that of the operation before. Gradients are with their operations.

    What capture hands out, results and buffers, is where it is made.
    """
    calls = [node for node in joint.graph.nodes if node.op == "call_function"]
    places = [node.meta["origin"].place for node in calls if node.meta.get("origin") is not None]
    now = next((number(place) for place in places if place is not None), 0)
    known: dict[int, int] = {}  # by origin, which operations share with their gradients
    numbers: dict[fx.Node, int] = {}
    for node in calls:
        origin = node.meta.get("origin")
        if handed_out(node) and (made := numbers.get(node.all_input_nodes[0])) is not None:
            numbers[node] = made
            continue
        if origin is not None and origin.place is not None:
            now = number(origin.place)
        elif origin is not None and id(origin) in known:
            now = known[id(origin)]
        if origin is not None:
            known.setdefault(id(origin), now)
        numbers[node] = now
    return numbers


def handed_out(node: fx.Node) -> bool:
    """Whether a node is a result or a new buffer as capture hands it out: what the user's module computes, by itself.

    What a layer sets a buffer to is detached before, which the model as a whole does behind its last block.
    """
    if node.target is not torch.ops.aten.detach.default:
        return False
    return node.meta.get("origin") is None or (bool(node.users) and all(map(handed_out, node.users)))


def placed_by_user(node: fx.Node) -> bool:
    """Whether a node is an operation of the user's module forward, by whose IPU stages begin and end."""
    return node.meta["pass"] is Pass.FORWARD and bool(node.meta.get("origin")) and not handed_out(node)


def stages_of(joint: JointGraph) -> int:
    """The stages of a pipeline that the forward pass is: as many as it has turns from an IPU to another, and one."""
    ipus = [ipu for node, ipu in ipus_of_nodes(joint).items() if placed_by_user(node)]
    return 1 + sum(before != after for before, after in pairwise(ipus))


def ipus_needed(joint: JointGraph, rounds: bool) -> int:
    """How many IPUs a model takes: a power of two, to which a smaller number is rounded up if `rounds`."""
    needed = max(ipus_of_nodes(joint).values(), default=0) + 1
    power = 1 << (needed - 1).bit_length()
    if power != needed and not rounds:
        raise InvalidOption(
            f"the model's blocks take {needed} IPUs; devices have a power of two of them: place blocks on {power // 2} or {power}, "
            "or call Options.autoRoundNumIPUs(True)"
        )
    return power
