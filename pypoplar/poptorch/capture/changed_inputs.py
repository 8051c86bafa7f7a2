"""Changes in place of what a graph only reads: parameters, and tensors that the module holds by itself."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from pypoplar.poptorch.capture.origins import origin_of
from pypoplar.poptorch.capture.problems import Problem, at_node
from pypoplar.poptorch.capture.written_operands import Owners, written_operands

KINDS = {
    InputKind.PARAMETER: "the parameter {} is changed in place: change it on the host between calls, or make a new tensor",
    InputKind.CONSTANT_TENSOR: "the tensor {} of the module is changed in place: register it as a buffer",
}


def changed_inputs(exported: ExportedProgram) -> list[Problem]:
    """The operations of an exported program, before its decompositions, that change what they may not."""
    specs = {spec.arg.name: spec for spec in exported.graph_signature.input_specs}
    owners = Owners(exported.graph)
    problems = []
    for node in exported.graph.nodes:
        for operand in written_operands(node):
            owner = owners.of(operand)
            spec = specs.get(owner.name) if owner is not None and owner.op == "placeholder" else None
            if spec is not None and spec.kind in KINDS:
                problems.append(at_node(KINDS[spec.kind].format(spec.target), origin_of(node)))
    return problems
