"""Parts of a forward pass without gradients: `torch.no_grad` and its like.

`torch.export` makes graphs of their own out of them, which its decompositions dissolve and forget. Here they become part of the
graph around them beforehand, and their operations are marked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from pypoplar.poptorch.capture.origins import origin_of
from pypoplar.poptorch.capture.problems import Problem, at_node
from pypoplar.poptorch.capture.written_operands import Owners, Written, written_operands

MARK = "poptorch_without_gradients"  # of nodes, in meta["custom"]


@contextlib.contextmanager
def inference_modes_as_gradient_modes() -> Iterator[None]:
    """While a module is exported, `torch.inference_mode`, which export does not know, is `torch.no_grad`."""
    kind = torch.inference_mode
    enter, leave = kind.__enter__, kind.__exit__
    open_modes: list[Any] = []

    def entered(mode: Any) -> None:
        open_modes.append(torch.set_grad_enabled(torch.is_grad_enabled() and not mode.mode))

    def left(mode: Any, *_: Any) -> None:
        open_modes.pop().__exit__(None, None, None)

    kind.__enter__, kind.__exit__ = entered, left
    try:
        yield
    finally:
        kind.__enter__, kind.__exit__ = enter, leave


def mark_gradient_modes(module: fx.GraphModule, enabled: bool = True) -> None:
    """Put parts of an exported graph that set the gradient mode in their places, their operations marked with it."""
    graph = module.graph
    for node in graph.nodes:
        marks = {name: value for name, value in (node.meta.get("custom") or {}).items() if name.startswith("poptorch")}
        node.meta["custom"] = marks if enabled else {**marks, MARK: True}  # PyTorch's own differ from part to part
    for node in list(graph.nodes):
        if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
            mode, part, *operands = node.args
            inner = getattr(module, part.target)
            mark_gradient_modes(inner, mode)
            _put_in_place(graph, node, inner.graph, operands)
            if not part.users:
                graph.erase_node(part)
    graph.lint()
    module.recompile()


def changes_without_gradients(exported: ExportedProgram) -> list[Problem]:
    """Changes in place, where gradients are off, of tensors that have gradients from elsewhere, which a graph would lose."""
    owners = Owners(exported.graph)
    written, problems = Written(exported, owners), []
    for node in exported.graph.nodes:
        if not without_gradients(node):
            written.follow(node)
        elif any(_from_elsewhere(owner) or owner in written.memory for owner in map(owners.of, written_operands(node))):
            what = "a tensor is changed in place where gradients are off; make a new one, or change it where gradients are on"
            problems.append(at_node(what, origin_of(node)))
    return problems


def _from_elsewhere(owner: fx.Node | None) -> bool:
    """Whether an operation where gradients are on made the memory that is changed where they are off."""
    return owner is None or (owner.op == "call_function" and not without_gradients(owner))


def _put_in_place(graph: fx.Graph, call: fx.Node, inner: fx.Graph, operands: list[Any]) -> None:
    """Copies of the nodes of `inner` in place of its call, whose results are picked by getitem."""
    known: dict[fx.Node, Any] = dict(zip((node for node in inner.nodes if node.op == "placeholder"), operands, strict=True))
    returned: Any = None
    with graph.inserting_before(call):
        for node in inner.nodes:
            if node.op == "output":
                (returned,) = node.args
            elif node.op != "placeholder":
                known[node] = graph.node_copy(node, known.__getitem__)
    for pick in list(call.users):
        result = returned[pick.args[1]]
        result = known[result] if isinstance(result, fx.Node) else result
        name = pick.name
        pick.replace_all_uses_with(result)
        graph.erase_node(pick)
        if isinstance(result, fx.Node) and result.op == "call_function":
            result._rename(name)  # by which the exported program's signature knows its outputs
    graph.erase_node(call)


def without_gradients(node: fx.Node) -> bool:
    """Whether a node of an exported graph was marked."""
    return bool((node.meta.get("custom") or {}).get(MARK))
