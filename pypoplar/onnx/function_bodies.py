"""Functions that operators without an entry are expanded into: those of the model's file, and bodies in ONNX's schemas."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import FunctionProto, NodeProto, TypeProto, defs

from pypoplar.onnx.operator_table import plain_domain


def schema_of(domain: str, name: str, opset: int) -> defs.OpSchema | None:
    """ONNX's schema of an operator in an opset; None if there is none."""
    plain = plain_domain(domain)
    try:
        return defs.get_schema(name, opset, plain)
    except defs.SchemaError:
        return None


def body_of(node: NodeProto, opset: int, types: Sequence[TypeProto]) -> FunctionProto | None:
    """The function that ONNX's schema gives for a node whose operands have these types; None if it gives none."""
    schema = schema_of(node.domain, node.op_type, opset)
    if schema is None:
        return None
    if schema.has_function:
        versions = [one for one in schema.function_opset_versions if one <= opset]
        text = schema.get_function_with_opset_version(max(versions)) if versions else None
    elif schema.has_context_dependent_function:
        versions = [one for one in schema.context_dependent_function_opset_versions if one <= opset]
        named = [one for one in types if one.WhichOneof("value")]
        shortened = NodeProto()
        shortened.CopyFrom(node)
        text = None
        if versions and named:
            serialized = [one.SerializeToString() for one in types]
            text = schema.get_context_dependent_function_with_opset_version(
                max(versions), shortened.SerializeToString(), serialized
            )
    else:
        text = None
    if not text:
        return None
    function = FunctionProto()
    function.ParseFromString(text)
    return function


def has_body(domain: str, name: str, opset: int) -> bool:
    """Whether ONNX's schema has a function for an operator in this opset."""
    schema = schema_of(domain, name, opset)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def with_attributes(function: FunctionProto, call: NodeProto, schema: defs.OpSchema | None) -> list[NodeProto]:
    """The nodes of a function whose attributes are those of a call, or the defaults of the schema and function."""
    defaults = {} if schema is None else {name: one.default_value for name, one in schema.attributes.items()}
    given = {name: one for name, one in defaults.items() if one.name}
    given |= {one.name: one for one in function.attribute_proto}
    given |= {one.name: one for one in call.attribute}
    return [_bound(node, given) for node in function.node]


def _bound(node: NodeProto, given: dict[str, onnx.AttributeProto]) -> NodeProto:
    copied = NodeProto()
    copied.CopyFrom(node)
    del copied.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                copied.attribute.add().CopyFrom(given[attribute.ref_attr_name])
                copied.attribute[-1].name = attribute.name
            continue
        copied.attribute.add().CopyFrom(attribute)
        new = copied.attribute[-1]
        for graph in [*([new.g] if new.HasField("g") else []), *new.graphs]:
            bound = [_bound(inner, given) for inner in graph.node]
            del graph.node[:]
            graph.node.extend(bound)
    return copied
