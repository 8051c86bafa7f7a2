"""What of a captured graph cannot be lowered: all of it in one error, with modules, lines and what is nearest."""

from __future__ import annotations

import operator

import torch
from torch import fx

from pypoplar.poptorch.capture import InputKind, JointGraph, Origin
from pypoplar.poptorch.capture.problems import listed
from pypoplar.poptorch.lowering.folding import folds
from pypoplar.poptorch.lowering.lowering_table import TABLE, UnsupportedOperation
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.spelling import nearest_name

REMEDIES = {
    torch.float64: "; call float(), on the module and its inputs, or half()",
    torch.bfloat16: "; call half(), on the module and its inputs, or float()",
    **dict.fromkeys((torch.complex64, torch.complex128), "; compute with real and imaginary parts apart"),
}


def check_supported(joint: JointGraph, unknown: fx.Node | None = None) -> None:
    """Raise `UnsupportedOperation` for operations without an entry and for types that the IPU does not have.

    `unknown` is an operation whose value is given when the program runs.
    """
    problems = unsupported(joint, unknown)
    if problems:
        raise UnsupportedOperation(f"the model has parts that have no form on the IPU:\n{listed(problems)}")


def unsupported(joint: JointGraph, unknown: fx.Node | None = None) -> list[str]:
    """What has no form on the IPU, with the places of each."""
    problems: dict[str, list[str]] = {}
    inputs = {one.node: one for one in joint.inputs}
    known = {one.node for one in joint.inputs if one.kind is InputKind.CONSTANT}
    for node in joint.graph.nodes:
        if node in inputs:
            problem = _type_problem(node)
            if problem:
                problems.setdefault(problem, []).append(f"{inputs[node].kind.value} {inputs[node].name}")
        if node.op != "call_function" or node.target is operator.getitem or node is unknown:
            continue
        if folds(node, known.__contains__):
            known.add(node)
            continue
        problem = _problem(node)
        if problem:
            problems.setdefault(problem, []).append(_place(node))
    return [problem + _places(places) for problem, places in problems.items()]


def _problem(node: fx.Node) -> str | None:
    if node.target not in TABLE:
        near = nearest_name(str(node.target), [str(operation) for operation in TABLE])
        return f"the operation {node.target} is missing" + (f"; the nearest in the table is {near}" if near else "")
    return _type_problem(node)


def _type_problem(node: fx.Node) -> str | None:
    value = node.meta.get("val")
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, torch.Tensor) and one.dtype not in ELEMENT_TYPES:
            known = ", ".join(str(dtype).removeprefix("torch.") for dtype in ELEMENT_TYPES)
            remedy = REMEDIES.get(one.dtype, "")
            return f"{str(one.dtype).removeprefix('torch.')} is no type of the IPU's libraries; there are {known}{remedy}"
    return None


def _place(node: fx.Node) -> str:
    origin: Origin | None = node.meta.get("origin")
    return str(origin) if origin else "the loss"


def _places(places: list[str]) -> str:
    once = list(dict.fromkeys(places))
    if not once:
        return ""
    return f" ({once[0]}" + (f" and {len(once) - 1} more)" if len(once) > 1 else ")")
