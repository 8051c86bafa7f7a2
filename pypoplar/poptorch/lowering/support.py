"""What of a captured graph cannot be lowered: all of it in one error, with modules, lines and what is nearest."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import torch
from torch import fx

from pypoplar.poptorch.capture import InputKind, JointGraph, Origin
from pypoplar.poptorch.capture.problems import listed
from pypoplar.poptorch.lowering.folding import folds
from pypoplar.poptorch.lowering.lowering_table import TABLE, UnsupportedOperation
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.spelling import nearest_name

REMEDIES = {
    torch.bfloat16: "; call half(), on the module and its inputs, or float()",
    **dict.fromkeys((torch.complex64, torch.complex128), "; compute with real and imaginary parts apart"),
}
aten = torch.ops.aten
OF_ONE_TYPE = (aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default, aten.convolution.default)


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
    for node, place in _computed(joint, unknown):
        problem = _problem(node)
        if problem:
            problems.setdefault(problem, []).append(place)
    return [problem + _places(places) for problem, places in problems.items()]


def told_doubles(joint: JointGraph) -> str | None:
    """What a model's user is told of double precision, which the device computes as float; None where there is none."""
    constants = {one.node for one in joint.inputs if one.kind is InputKind.CONSTANT}
    computed = [(node, place) for node, place in _computed(joint, None) if node not in constants]
    places = [place for node, place in computed if torch.float64 in [one.dtype for one in _tensors(node)]]
    return f"float64 is computed as float32, which is what the IPU has{_places(places)}" if places else None


def _computed(joint: JointGraph, unknown: fx.Node | None) -> Iterator[tuple[fx.Node, str]]:
    """Inputs, and operations whose value is not known when the graph is built, with their places."""
    inputs = {one.node: one for one in joint.inputs}
    known = {one.node for one in joint.inputs if one.kind is InputKind.CONSTANT}
    for node in joint.graph.nodes:
        if node in inputs:
            yield node, f"{inputs[node].kind.value} {inputs[node].name}"
        if node.op != "call_function" or node.target is operator.getitem or node is unknown:
            continue
        if folds(node, known.__contains__):
            known.add(node)
        else:
            yield node, _place(node)


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("val")
    return [one for one in (value if isinstance(value, list | tuple) else (value,)) if isinstance(one, torch.Tensor)]


def _problem(node: fx.Node) -> str | None:
    if node.op == "call_function" and node.target not in TABLE:
        near = nearest_name(str(node.target), [str(operation) for operation in TABLE])
        return f"the operation {node.target} is missing" + (f"; the nearest in the table is {near}" if near else "")
    types = {_device_type(one) for before in node.all_input_nodes for one in _tensors(before) if one.is_floating_point()}
    if node.target in OF_ONE_TYPE and len(types) > 1:
        told = " and ".join(sorted(types))
        return f"{node.target} has operands of {told}: bring them to one type, or call a function of torch or of its nn.functional"
    for one in _tensors(node):
        if one.dtype not in ELEMENT_TYPES:
            known = ", ".join(str(dtype).removeprefix("torch.") for dtype in ELEMENT_TYPES if dtype is not torch.float64)
            remedy = REMEDIES.get(one.dtype, "")
            return f"{str(one.dtype).removeprefix('torch.')} is no type of the IPU's libraries; there are {known}{remedy}"
    return None


def _device_type(tensor: torch.Tensor) -> str:
    type = ELEMENT_TYPES.get(tensor.dtype)
    return str(tensor.dtype) if type is None else type.__name__


def _place(node: fx.Node) -> str:
    origin: Origin | None = node.meta.get("origin")
    return str(origin) if origin else "the loss"


def _places(places: list[str]) -> str:
    once = list(dict.fromkeys(places))
    if not once:
        return ""
    return f" ({once[0]}" + (f" and {len(once) - 1} more)" if len(once) > 1 else ")")
