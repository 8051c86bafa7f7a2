"""Whether a node's operands have the types that ONNX's schema says, and its axes are some of theirs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from onnx import NodeProto, helper

from pypoplar.onnx.function_bodies import schema_of
from pypoplar.onnx.model_problems import ModelError
from pypoplar.onnx.onnx_types import FLOATS, Precision, dtype_name
from pypoplar.onnx.operator_table import plain_domain

ONE_MORE = ("ConcatFromSequence", "Flatten", "OneHot", "SplitToSequence")  # whose axis may lie behind the last one
OF_ANY_TYPES = ("CastLike",)  # whose operands need not be alike for what they are used for
OWN_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")


def check_operands(node: NodeProto, opset: int, operands: Sequence[torch.Tensor | None], precision: Precision, label: str) -> None:
    """`ModelError` for an operand of a type that the operator does not take, and for an axis that there is not."""
    if plain_domain(node.domain) not in OWN_DOMAINS:
        return
    _check_types(node, opset, operands, precision, label)
    first = operands[0] if operands else None
    axis = next((int(helper.get_attribute_value(one)) for one in node.attribute if one.name == "axis"), None)
    if first is None or axis is None or node.op_type in ONE_MORE:
        return
    rank = first.dim()
    last = rank if node.op_type in ("Softmax", "LogSoftmax", "Hardmax") and opset < 13 else rank - 1
    if node.op_type not in ("QuantizeLinear", "DequantizeLinear") and not -rank <= axis <= last and rank:
        raise ModelError(f"{label}: axis is {axis}, and its input {node.input[0]} has shape {list(first.shape)}")


def _check_types(node: NodeProto, opset: int, operands: Sequence[torch.Tensor | None], precision: Precision, label: str) -> None:
    schema = schema_of(node.domain, node.op_type, opset)
    if schema is None or not schema.inputs:
        return
    allowed = {one.type_param_str: set(one.allowed_type_strs) for one in schema.type_constraints}
    bound: dict[str, tuple[str, str]] = {}
    for number, operand in enumerate(operands):
        if operand is None:
            continue
        formal = schema.inputs[min(number, len(schema.inputs) - 1)]
        kind, name = dtype_name(operand.dtype), node.input[number]
        takes = allowed.get(formal.type_str, {formal.type_str})
        told = sorted(one.removeprefix("tensor(").removesuffix(")") for one in takes if one.startswith("tensor("))
        converted = precision.floats is not None and operand.dtype in FLOATS
        if told and kind not in told and not converted:
            raise ModelError(f"{label}: its input {number} ({name}) is {kind}; {node.op_type} takes {', '.join(told)} there")
        if formal.type_str not in allowed or not formal.is_homogeneous:
            continue
        other, before = bound.setdefault(formal.type_str, (name, kind))
        if before != kind and node.op_type not in OF_ANY_TYPES:
            raise ModelError(f"{label}: its input {number} ({name}) is {kind}, and {other} is {before}; they are of one type")
