"""Operators of a program's own, which `pypoplar.poptorch.registerCustomOp` made known, as entries of the table."""

from __future__ import annotations

from typing import Any

import torch

from pypoplar.onnx.node_call import NodeCall
from pypoplar.onnx.operator_table import ALL, Operator
from pypoplar.poptorch.operators import custom_op, isRunningOnIpu
from pypoplar.poptorch.operators.custom_operators import CustomOperator, registered_operator


def custom_operator(domain: str, name: str, opset: int) -> Operator | None:
    """The entry of an operator that was registered for a domain and its opset; None if there is none."""
    registered = registered_operator(name, domain, opset)
    if registered is None:
        return None

    def entry(call: NodeCall, *tensors: torch.Tensor) -> Any:
        attributes = {one.name: call.attribute(one.name) for one in call.node.attribute if not one.name.startswith("__")}
        examples = _examples(registered, call, tensors, attributes)
        if not isRunningOnIpu() and any(one.device.type == "meta" for one in tensors):
            return examples
        return custom_op(list(tensors), name, domain, opset, example_outputs=examples, attributes=attributes)

    return Operator(domain, name, opset, entry, ALL)


def _examples(
    registered: CustomOperator, call: NodeCall, tensors: tuple[torch.Tensor, ...], attributes: dict[str, Any]
) -> list[torch.Tensor]:
    """Tensors with the shapes and types of what comes out: those of the reference; without one all are as the first operand."""
    meta = [torch.empty_like(one, device="meta") for one in tensors]
    if registered.reference is None:
        if not meta:
            raise call.error("without operands, the operator needs a reference, which says the shapes of what it makes")
        return [torch.empty_like(meta[0]) for _ in call.outputs]
    made = registered.reference(*meta, **attributes)
    listed = list(made) if isinstance(made, list | tuple) else [made]
    if len(listed) < len(call.outputs):
        raise call.error(f"the operator's reference makes {len(listed)} tensors, and the node has {len(call.outputs)} outputs")
    return listed
