"""Changes in place of what a graph only reads: arguments of a call, and parameters."""

from __future__ import annotations

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from pypoplar.poptorch.capture.origins import origin_of
from pypoplar.poptorch.capture.problems import Problem, at_node

KINDS = {
    InputKind.USER_INPUT: "the argument {} is changed in place: make a new tensor, as in x = x + 1",
    InputKind.PARAMETER: "the parameter {} is changed in place: change it on the host between calls, or make a new tensor",
    InputKind.CONSTANT_TENSOR: "the tensor {} of the module is changed in place: register it as a buffer",
}


def changed_inputs(exported: ExportedProgram) -> list[Problem]:
    """The operations of an exported program, before its decompositions, that change what they may not."""
    specs = {spec.arg.name: spec for spec in exported.graph_signature.input_specs}
    problems = []
    for node in exported.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            base = _base(node.args[0]) if node.args else None
            spec = specs.get(base.name) if base is not None and base.op == "placeholder" else None
            if spec is not None and spec.kind in KINDS:
                name = spec.target if spec.kind is not InputKind.USER_INPUT else spec.arg.name
                problems.append(at_node(KINDS[spec.kind].format(name), origin_of(node)))
    return problems


def _base(node: object) -> fx.Node | None:
    """What a node is a view of."""
    while isinstance(node, fx.Node) and node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
        returned = node.target._schema.returns
        if not returned or returned[0].alias_info is None or not node.args:
            break
        node = node.args[0]
    return node if isinstance(node, fx.Node) else None
