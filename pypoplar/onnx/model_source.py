"""A model as it is read: from a file, bytes or a ModelProto, checked before anything is planned."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from attrs import frozen
from google.protobuf.message import DecodeError
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, defs

from pypoplar.errors import FileLoadError, PoplarTypeError
from pypoplar.onnx.custom_nodes import custom_operator
from pypoplar.onnx.function_bodies import has_body, schema_of
from pypoplar.onnx.model_problems import ModelError, refuse
from pypoplar.onnx.onnx_types import Precision, to_tensor, type_name
from pypoplar.onnx.operator_table import all_operators, find_operator, plain_domain
from pypoplar.poptorch.operators.custom_operators import registered_names
from pypoplar.spelling import nearest_name

PLANNED_OPERATORS = (  # which have no entry: the plan has what they choose, repeat or collect
    "ConcatFromSequence",
    "If",
    "Loop",
    "Scan",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SequenceMap",
    "SplitToSequence",
)
PLACEMENT = ("__ipu_number", "__pipeline_stage")  # attributes that PopART gives nodes of any kind
PLANNING = {"__partials_type": "partialsType", "__available_memory": "availableMemoryProportion"}  # and those of plans
MOST_BYTES = 2**31  # of a protobuf message


@frozen(eq=False)
class ModelSource:
    """A model with what its nodes refer to."""

    name: str  # as messages call it
    proto: ModelProto
    folder: str  # of its external data
    opsets: dict[str, int]  # by domain
    functions: dict[tuple[str, str, str], FunctionProto]
    initializers: dict[str, torch.Tensor]
    precision: Precision

    @property
    def graph(self) -> GraphProto:
        """The model's graph."""
        return self.proto.graph

    def tensor(self, proto: TensorProto) -> torch.Tensor:
        """A tensor of the file; `ModelError` for a type that has no form here."""
        return _tensor(proto, self.name, self.precision, self.folder)

    @classmethod
    def read(cls, model: Any, precision: Precision, known: frozenset[tuple[str, str]] = frozenset()) -> ModelSource:
        """Read a model; `FileLoadError` for what is no model, `ModelError` with all that is wrong within it."""
        name, proto, folder = _proto(model)
        _check_external(proto, name, folder)
        opsets = {plain_domain(one.domain): one.version for one in proto.opset_import}
        functions = {(plain_domain(one.domain), one.name, one.overload): one for one in proto.functions}
        if not proto.HasField("graph"):
            raise FileLoadError(f"{name} has no graph: it is empty, or no ONNX model")
        refuse(_problems(proto, name, opsets, functions), f"{name} cannot run on the IPU as it is:")
        graph = proto.graph
        initializers = {one.name: _tensor(one, name, precision, folder) for one in graph.initializer}
        for sparse in graph.sparse_initializer:
            initializers[sparse.values.name] = _dense(sparse, name, precision, folder)
        return cls(name, proto, folder, opsets, functions, initializers, precision)


def _proto(model: Any) -> tuple[str, ModelProto, str]:
    if isinstance(model, ModelProto):
        return model.graph.name or "model", model, ""
    if isinstance(model, bytes | bytearray | memoryview):
        return "model", _parsed(bytes(model), "the bytes"), ""
    if not isinstance(model, str | os.PathLike):
        raise PoplarTypeError(f"a model is a path, a ModelProto or bytes, got {type(model).__name__}")
    path = Path(model)
    try:
        if path.is_file() and path.stat().st_size >= MOST_BYTES:
            told = f"{path}: a file of ONNX has less than 2 GB, got {path.stat().st_size:,} bytes"
            raise FileLoadError(f"{told}: larger weights are saved as external data")
        data = path.read_bytes()
    except OSError as problem:
        raise FileLoadError(f"{path}: {problem.strerror or problem}") from None
    return path.name, _parsed(data, str(path)), str(path.resolve().parent)


def _parsed(data: bytes, name: str) -> ModelProto:
    proto = ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise FileLoadError(f"{name}: this is no ONNX model, or its end is missing ({len(data)} bytes)") from None
    if not proto.ByteSize() or not proto.HasField("graph") or not proto.ir_version:
        raise FileLoadError(f"{name}: this is no ONNX model: it has no graph ({len(data)} bytes)")
    return proto


def _check_external(proto: ModelProto, name: str, folder: str) -> None:
    """External data lies in the model's directory, and is there; else `FileLoadError`. No link is followed out of it."""
    for tensor in [*_tensors(proto.graph), *(one for function in proto.functions for one in _tensors_of_nodes(function.node))]:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        place = {one.key: one.value for one in tensor.external_data}.get("location", "")
        if not folder:
            raise FileLoadError(f"{name}: {tensor.name} has its elements in the file {place}: load the model by its path")
        inside = Path(folder).resolve()
        file = (inside / place).resolve()
        if not place or os.path.isabs(place) or not file.is_relative_to(inside):
            raise FileLoadError(f"{name}: {tensor.name} has its elements in {place!r}, outside of the model's directory; not read")
        if not file.is_file():
            raise FileLoadError(f"{name}: {tensor.name} has its elements in {place}, which is not there")


def _tensors(graph: GraphProto) -> list[TensorProto]:
    sparse = [one for values in graph.sparse_initializer for one in (values.values, values.indices)]
    return [*graph.initializer, *sparse, *_tensors_of_nodes(graph.node)]


def _tensors_of_nodes(nodes: Iterable[NodeProto]) -> list[TensorProto]:
    found = []
    for node in nodes:
        for attribute in node.attribute:
            found += [attribute.t] if attribute.HasField("t") else []
            found += list(attribute.tensors)
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                found += _tensors(inner)
    return found


def _tensor(proto: TensorProto, name: str, precision: Precision, folder: str) -> torch.Tensor:
    try:
        return to_tensor(proto, precision, folder)
    except KeyError:
        raise ModelError(f"{name}: the initializer {proto.name} is {type_name(proto.data_type)}, which has no form here") from None
    except (ValueError, OSError, RuntimeError, onnx.checker.ValidationError) as problem:
        raise FileLoadError(f"{name}: the elements of {proto.name} {list(proto.dims)} cannot be read: {problem}") from None


def _dense(sparse: Any, name: str, precision: Precision, folder: str) -> torch.Tensor:
    values = _tensor(sparse.values, name, precision, folder)
    indices = _tensor(sparse.indices, name, precision, folder)
    dense = torch.zeros(list(sparse.dims), dtype=values.dtype)
    if indices.dim() == 1:
        dense.view(-1)[indices] = values
    else:
        dense[tuple(indices.unbind(-1))] = values
    return dense


# what is wrong with nodes, before shapes are known


def _problems(
    proto: ModelProto, name: str, opsets: dict[str, int], functions: dict[tuple[str, str, str], FunctionProto]
) -> list[str]:
    problems = []
    newest = defs.onnx_opset_version()
    if "" not in opsets and any(plain_domain(node.domain) == "" for node in proto.graph.node):
        problems.append(f"{name}: it does not say the opset of ai.onnx that its nodes are from")
    if opsets.get("", 1) > newest:
        problems.append(f"{name}: opset {opsets['']} of ai.onnx is newer than the newest that is known, {newest}")
    problems += _order_problems(proto.graph, name)
    problems += _node_problems(list(proto.graph.node), name, opsets, functions)
    for function in proto.functions:
        inner = {plain_domain(one.domain): one.version for one in function.opset_import}
        problems += _node_problems(list(function.node), f"{name}: function {function.name}", inner, functions)
    return problems


def _order_problems(graph: GraphProto, name: str) -> list[str]:
    """Nodes that use what comes later or never, or give a name a second value."""
    known = {one.name for one in graph.input} | {one.name for one in graph.initializer}
    known |= {one.values.name for one in graph.sparse_initializer}
    later = {output for node in graph.node for output in node.output if output}
    problems = []
    for number, node in enumerate(graph.node):
        label = f"{name}: node {node.name or f'number {number}'} ({node.op_type})"
        for used in node.input:
            if used and used not in known:
                if used in node.output or used in later:
                    problems.append(f"{label}: its input {used} is computed by a later node, or from itself: a cycle")
                else:
                    near = nearest_name(used, known)
                    suffix = f"; the nearest is {near}" if near else ""
                    problems.append(f"{label}: its input {used} is missing: no input, initializer or node has it{suffix}")
        for output in node.output:
            if output in known and output:
                problems.append(f"{label}: its output {output} has a value already")
            known.add(output)
    return problems


def _node_problems(
    nodes: list[NodeProto], name: str, opsets: dict[str, int], functions: dict[tuple[str, str, str], FunctionProto]
) -> list[str]:
    problems = []
    for number, node in enumerate(nodes):
        label = f"{name}: node {node.name or f'number {number}'} ({node.op_type})"
        domain = plain_domain(node.domain)
        if (domain, node.op_type, node.overload) not in functions:
            problems += _operator_problems(node, domain, opsets, label)
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                problems += _node_problems(list(inner.node), name, opsets, functions)
    return problems


def _operator_problems(node: NodeProto, domain: str, opsets: dict[str, int], label: str) -> list[str]:
    if domain not in opsets and domain != "":
        return [f"{label}: the model does not say which opset of {domain} it is from"]
    opset = min(opsets.get(domain, 1), defs.onnx_opset_version()) if domain == "" else opsets[domain]
    schema = schema_of(domain, node.op_type, opset)
    found = find_operator(domain, node.op_type, opset) or custom_operator(domain, node.op_type, opset)
    if domain == "ai.onnx.preview.training" and node.op_type == "Gradient":
        return []
    if found is None and not has_body(domain, node.op_type, opset) and not _is_planned(domain, node.op_type):
        if schema is not None:
            return [f"{label}: this operator is not there yet"]
        known = (
            {one.name for one in all_operators() if one.domain == domain} | _schema_names(domain) | set(registered_names(domain))
        )
        near = nearest_name(node.op_type, known)
        of = domain or "ai.onnx"
        return [f"{label}: opset {opset} of {of} has no operator {node.op_type}" + (f"; the nearest is {near}" if near else "")]
    if schema is not None:
        needed = [one for one, spec in schema.attributes.items() if spec.required]
        return _form_problems(node, label, opset, list(schema.attributes), needed, (schema.min_input, schema.max_input))
    if found is None or found.attributes is None:
        return []
    return _form_problems(node, label, opset, [*found.needed, *found.attributes], found.needed, found.operands)


def _is_planned(domain: str, name: str) -> bool:
    """Whether the plan has what an operator does, which needs no entry then."""
    return (domain == "" and name in PLANNED_OPERATORS) or (domain, name) == ("ai.graphcore", "Call")


def _form_problems(
    node: NodeProto, label: str, opset: int, known: Sequence[str], needed: Sequence[str], operands: tuple[int, int]
) -> list[str]:
    """Attributes and numbers of operands that an operator does not have."""
    problems = []
    for attribute in node.attribute:
        if attribute.name not in known and attribute.name not in (*PLACEMENT, *PLANNING):
            near = nearest_name(attribute.name, known)
            suffix = f"; the nearest is {near}" if near else f"; there are {', '.join(known) or 'none'}"
            problems.append(f"{label}: it has no attribute {attribute.name} in opset {opset}{suffix}")
    least, most = operands
    if not least <= len(node.input) <= most:
        problems.append(f"{label}: it takes {_range(least, most)} inputs, got {len(node.input)}")
    given = {one.name for one in node.attribute}
    problems += [f"{label}: the attribute {one} is missing" for one in needed if one not in given]
    return problems


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} or more" if most > 1000 else f"{least} to {most}"


def _schema_names(domain: str) -> set[str]:
    return {one.name for one in defs.get_all_schemas() if one.domain == domain}
