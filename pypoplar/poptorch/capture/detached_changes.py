"""Changes in place through `detach()` of tensors whose gradients are asked for: a graph would lose these."""

from __future__ import annotations

from torch import fx
from torch.export import ExportedProgram

from pypoplar.poptorch.capture.gradient_modes import without_gradients
from pypoplar.poptorch.capture.origins import origin_of
from pypoplar.poptorch.capture.problems import Problem, at_node
from pypoplar.poptorch.capture.written_operands import DETACH, Owners, Written, written_operands

TOLD = (
    "a tensor that has gradients is changed in place through its detach(), and used after that: change the tensor itself, or a "
    "detach().clone() of it"
)


def detached_changes(exported: ExportedProgram) -> list[Problem]:
    """What is written through a `detach` into memory of which a tensor with gradients is used later."""
    graph = exported.graph
    if all(node.target is not DETACH for node in graph.nodes):
        return []
    place = {node: number for number, node in enumerate(graph.nodes)}
    owners = Owners(graph)
    detached, written = _behind_detach(graph, owners), Written(exported, owners)
    problems = []
    for node in graph.nodes:
        changed = {owners.of(operand) for operand in written_operands(node) if operand in detached} - {None}
        if changed:
            others = (one for one in place if one not in detached and owners.of(one) in changed and written.has_gradients(one))
            if any(place[user] > place[node] for one in others for user in one.users):
                problems.append(at_node(TOLD, origin_of(node)))
        if not without_gradients(node):
            written.follow(node)
    return problems


def _behind_detach(graph: fx.Graph, owners: Owners) -> set[fx.Node]:
    """Detached tensors, and views of them."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        first = node.args[0] if node.op == "call_function" and node.args else None
        if node.target is DETACH or (first in found and owners.of(node) is owners.of(first)):
            found.add(node)
    return found
