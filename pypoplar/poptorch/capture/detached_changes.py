"""Changes in place through `detach()` of tensors whose gradients are asked for: a graph would lose these."""

from __future__ import annotations

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from pypoplar.poptorch.capture.gradient_modes import without_gradients
from pypoplar.poptorch.capture.origins import origin_of
from pypoplar.poptorch.capture.problems import Problem, at_node
from pypoplar.poptorch.capture.written_operands import Owners, written_operands

DETACH = torch.ops.aten.detach.default
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
    detached, trained = _behind_detach(graph, owners), _with_gradients(exported)
    problems = []
    for node in graph.nodes:
        for operand in written_operands(node):
            owner = owners.of(operand)
            if operand not in detached or owner is None:
                continue
            others = (one for one in trained if one not in detached and owners.of(one) is owner)
            if any(place[user] > place[node] for one in others for user in one.users):
                problems.append(at_node(TOLD, origin_of(node)))
                break
    return problems


def _behind_detach(graph: fx.Graph, owners: Owners) -> set[fx.Node]:
    """Detached tensors, and views of them."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        first = node.args[0] if node.op == "call_function" and node.args else None
        if node.target is DETACH or (first in found and owners.of(node) is owners.of(first)):
            found.add(node)
    return found


def _with_gradients(exported: ExportedProgram) -> set[fx.Node]:
    """What is computed of parameters where gradients are on, but for what is detached."""
    names = {spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind is InputKind.PARAMETER}
    found: set[fx.Node] = set()
    for node in exported.graph.nodes:
        kept = node.op == "call_function" and node.target is not DETACH and not without_gradients(node)
        if node.name in names or (kept and any(before in found for before in node.all_input_nodes)):
            found.add(node)
    return found
