"""Which tensors an operation of an exported program, before its decompositions, writes into, and whose memory they are."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

aten = torch.ops.aten
BATCH_NORM = aten.batch_norm.default  # whose schema does not tell that it changes its running statistics

DETACH = aten.detach.default


def written_operands(node: fx.Node) -> Iterator[fx.Node]:
    """The operands that an operation changes in place."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return
    if node.target is aten.detach_.default:  # which changes no elements
        return
    for number, argument in enumerate(node.target._schema.arguments):
        given = node.args[number] if number < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from (one for one in (given if isinstance(given, list | tuple) else [given]) if isinstance(one, fx.Node))
        elif node.target is BATCH_NORM and argument.name in ("running_mean", "running_var") and _trains(node):
            yield from [given] if isinstance(given, fx.Node) else []


def _trains(node: fx.Node) -> bool:
    names = [argument.name for argument in BATCH_NORM._schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return bool(given["training"])


class Owners:
    """Of each node of a graph that has a tensor the one that had its memory first, of which it is a view, or which it is itself."""

    def __init__(self, graph: fx.Graph) -> None:
        self._by_storage: dict[int, fx.Node] = {}
        for node in graph.nodes:
            storage = _storage(node)
            if storage is not None and node.target is aten.lift_fresh_copy.default:  # a copy, though export does not make it one
                self._by_storage[storage] = node
            elif storage is not None:
                self._by_storage.setdefault(storage, node)

    def of(self, node: fx.Node) -> fx.Node | None:
        """The owner; None of what is no tensor."""
        storage = _storage(node)
        return None if storage is None else self._by_storage.get(storage)


class Written:
    """What has gradients of parameters, and the memory, whoever made it, into which such was written, as nodes are followed."""

    def __init__(self, exported: ExportedProgram, owners: Owners) -> None:
        names = {spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind is InputKind.PARAMETER}
        self._with_gradients = {node for node in exported.graph.nodes if node.name in names}
        self._owners = owners
        self.memory: set[fx.Node | None] = set()

    def follow(self, node: fx.Node) -> None:
        """The next operation where gradients are on."""
        if node.op != "call_function" or node.target is DETACH or not any(map(self.has_gradients, node.all_input_nodes)):
            return
        self._with_gradients.add(node)
        if node.target is not BATCH_NORM:  # whose running statistics have none
            self.memory.update(map(self._owners.of, written_operands(node)))

    def has_gradients(self, node: fx.Node) -> bool:
        """Whether a node of those so far has them, but for what it detaches."""
        return node in self._with_gradients or (node.target is not DETACH and self._owners.of(node) in self.memory)


def memory_of(tensor: torch.Tensor) -> int:
    """What tells one tensor's memory from another's; views have that of what they show, and parts of `torch.vmap` that of all."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor.untyped_storage()._cdata


def _storage(node: fx.Node) -> int | None:
    value = node.meta.get("val")
    return memory_of(value) if isinstance(value, torch.Tensor) else None
