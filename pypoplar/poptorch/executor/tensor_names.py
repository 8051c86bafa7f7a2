"""Names of tensors of a captured model, for `Options.anchorTensor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch
from torch import fx

from pypoplar.errors import UnknownHandle
from pypoplar.poptorch.capture import InputKind, JointGraph, Pass
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.update.automatic_loss_scaling import FACTOR, FINAL
from pypoplar.spelling import nearest_or_all

GRADIENT = "Gradient___"
UPDATED = "UpdatedVar___"


def named_tensors(joint: JointGraph) -> dict[str, fx.Node]:
    """Parameters and buffers by their names, ``Gradient___NAME`` of parameters, and results of operations.

    An operation's result is ``module/path/operation:N``, N counted from 0 where a module has an operation several times.
    """
    named = {one.name: one.node for one in joint.inputs if one.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.ARGUMENT)}
    named.update({f"{GRADIENT}{name}": node for name, node in joint.gradients.items()})
    counts: Counter[str] = Counter()
    results: dict[int, fx.Node] = {}
    for node in joint.graph.nodes:
        origin = node.meta.get("origin")
        if origin is not None and node.meta["pass"] is Pass.FORWARD and isinstance(node.meta.get("val"), torch.Tensor):
            results[id(origin)] = node  # the last one made for it
    for node in results.values():
        origin = node.meta["origin"]
        path = "/".join(filter(None, [origin.module.replace(".", "/"), origin.operation]))
        named[f"{path}:{counts[path]}"] = node
        counts[path] += 1
    return named


def names_for_anchors(named: Iterable[str], gradients: Iterable[str], settings: ModelSettings) -> list[str]:
    """The names of all tensors that can be anchored: those `named`, and ``UpdatedVar___NAME`` of parameters behind a step."""
    automatic = [FINAL, FACTOR] if settings.loss_scaling is not None else []
    return [*named, *(f"{UPDATED}{name}" for name in gradients), *automatic]


def tensor_named(named: dict[str, fx.Node], name: str, others: Iterable[str] = ()) -> fx.Node:
    """The node of this name; `UnknownHandle` tells the nearest, which may be one of `others`."""
    if name not in named:
        nearest = nearest_or_all(name, [*named, *others])
        raise UnknownHandle(f"anchorTensor: the model has no tensor {name!r}{nearest}; see getTensorNames()")
    return named[name]
