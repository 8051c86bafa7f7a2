"""PopART's Builder: tensors are names, and methods of domains add nodes."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from pypoplar.errors import PoplarError
from pypoplar.onnx.graph_plan import Planner
from pypoplar.onnx.model_source import PLACEMENT, PLANNING, ModelSource
from pypoplar.onnx.onnx_types import TORCH_TYPES, Precision
from pypoplar.onnx.plan_steps import GraphValue
from pypoplar.popart.operator_calls import GRAPHCORE, OperatorCalls
from pypoplar.popart.popart_types import DTYPES, InputSettings, TensorInfo, popart_exception
from pypoplar.poptorch.operators.custom_operators import registered_names, registered_operator
from pypoplar.spelling import nearest, nearest_or_all

DEFAULT_OPSET = 11
IPU, STAGE = PLACEMENT
PARTIALS, MEMORY = PLANNING
PLANNED_KINDS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
PARTIALS_TYPES = ("FLOAT", "HALF")
OPSETS = (6, 7, 8, 9, 10, 11)
NAMES = {torch_type: name for name, dtype in DTYPES.items() if (torch_type := getattr(torch, dtype, None)) is not None}


class Builder:
    """Builds a model of ONNX: ``builder.aiOnnx.matmul([x, w])`` adds a node and gives the name of what it makes.

    Parameters
    ----------
    modelProtoOrFilename:
        A model to begin with: bytes or a file; None: an empty one.
    opsets:
        Numbers of opsets by domains; others are those of the first node of a domain.

    Raises
    ------
    popart_exception
        For what is no model, and for unknown domains and opsets.
    """

    def __init__(self, modelProtoOrFilename: Any = None, opsets: Mapping[str, int] | None = None) -> None:
        self._graph = GraphProto(name="BuilderGraph")
        self._opsets: dict[str, int] = _opsets(opsets or {})
        self._scopes: list[str] = []
        self._places: dict[str, int] = {}  # attributes of nodes that are added
        self._count: dict[str, int] = {}
        self.parent: Builder | None = None
        if modelProtoOrFilename is not None:
            proto = model_proto(modelProtoOrFilename)
            self._graph = proto.graph
            self._opsets = {one.domain: one.version for one in proto.opset_import}
        for opset in OPSETS:
            setattr(self, f"aiOnnxOpset{opset}", OperatorCalls(self, "", opset))
        self.aiOnnx = OperatorCalls(self, "", self._opsets.get("", DEFAULT_OPSET))
        self.aiGraphcore = self.aiGraphcoreOpset1 = OperatorCalls(self, GRAPHCORE, 1)

    # tensors

    def addInputTensor(self, info: Any, shape: Any = None, *more: Any, debugContext: str = "") -> str:
        """An input, which a session's step is given.

        Parameters
        ----------
        info:
            A `TensorInfo`, or the name of a type.
        shape:
            The shape, where `info` is a type.
        more:
            Settings, and a name.
        debugContext:
            What the tensor is called.

        Returns
        -------
        str
            The tensor's name.
        """
        rest = list(more)
        if isinstance(info, TensorInfo):
            rest = [*([] if shape is None else [shape]), *rest]
        else:
            info = TensorInfo(info, shape)
        for one in rest:
            if not isinstance(one, str | InputSettings):
                raise popart_exception(f"addInputTensor takes InputSettings and a name behind the shape, got {one!r}")
        words = [one for one in rest if isinstance(one, str)]
        name = self._free(words[0] if words else debugContext or "input")
        self._graph.input.append(helper.make_tensor_value_info(name, _code(info), info.shape()))
        return name

    def addUntypedInputTensor(self, debugContext: str = "") -> str:
        """An input of a subgraph, whose type and shape are those of what it is given.

        Parameters
        ----------
        debugContext:
            What the tensor is called.

        Returns
        -------
        str
            The tensor's name.
        """
        name = self._free(debugContext or "input")
        self._graph.input.append(onnx.ValueInfoProto(name=name))
        return name

    def addInputTensorFromParentGraph(self, name: str) -> None:
        """Let a subgraph use a tensor of the graph around it, which it does anyway.

        Parameters
        ----------
        name:
            The tensor.
        """

    def addInitializedInputTensor(self, value: Any, debugContext: str = "") -> str:
        """A weight.

        Parameters
        ----------
        value:
            An array with its first elements.
        debugContext:
            What the tensor is called.

        Returns
        -------
        str
            The tensor's name.
        """
        array = _numbers(value, "addInitializedInputTensor")
        name = self._free(debugContext or "init_input")
        self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def addOutputTensor(self, name: str) -> None:
        """Make a tensor an output of the model.

        Parameters
        ----------
        name:
            The tensor.

        Raises
        ------
        popart_exception
            If there is no such tensor.
        """
        self._check(name)
        self._graph.output.append(onnx.ValueInfoProto(name=name))

    def _check(self, name: str) -> None:
        known = self._known()
        if not isinstance(name, str):
            raise popart_exception(f"a tensor is a name, got {name!r}")
        if name not in known:
            raise popart_exception(f"there is no tensor {name!r}{nearest(str(name), known)}")

    def _known(self) -> set[str]:
        own = {one.name for one in (*self._graph.input, *self._graph.initializer)}
        own |= {output for node in self._graph.node for output in node.output}
        return own if self.parent is None else own | self.parent._known()

    def _free(self, name: str) -> str:
        wanted = "/".join([*self._scopes, name])
        number, free = 1, wanted
        known = self._known()
        while free in known:
            free = f"{wanted}__{number}"
            number += 1
        return free

    # nodes

    def add_node(
        self, domain: str, opset: int, kind: str, inputs: list[str], attributes: dict[str, Any], outputs: int, context: str = ""
    ) -> list[str]:
        """Add a node, and give the names of what it makes; `OperatorCalls` and `customOp` call it.

        Parameters
        ----------
        domain, opset, kind:
            The operator, by the domain, its opset, and its name.
        inputs:
            Tensors.
        attributes:
            Its attributes; builders are graphs within.
        outputs:
            How many tensors it makes.
        context:
            What the node is called.

        Returns
        -------
        list
            The names of what it makes.

        Raises
        ------
        popart_exception
            For a second opset of a domain, unknown tensors, and attributes of no kind.
        """
        if self._opsets.setdefault(domain, opset) != opset:
            raise popart_exception(
                f"a model has one opset of a domain: {kind} is of opset {opset}, others of {self._opsets[domain]}"
            )
        for name in inputs:
            if name:
                self._check(name)
        number = self._count.get(kind, 0)
        self._count[kind] = number + 1
        made = [self._free(f"{context or kind}:{one}") for one in range(outputs)]
        label = "/".join([*self._scopes, context or f"{kind}_{number}"])
        subgraphs = {key: value._graph if isinstance(value, Builder) else value for key, value in attributes.items()}
        try:
            node = helper.make_node(kind, inputs, made, label, domain=domain, **subgraphs, **self._places)
        except (TypeError, ValueError) as problem:
            raise popart_exception(f"{kind}: {problem}") from None
        self._graph.node.append(node)
        return made

    def customOp(
        self,
        opName: str,
        opVersion: int,
        domain: str,
        inputs: Sequence[str],
        attributes: Mapping[str, Any],
        numOutputs: int = 1,
        debugContext: str = "",
    ) -> list[str]:
        """An operator of your own, made of codelets: `pypoplar.poptorch.registerCustomOp` makes it known, with its gradient.

        What comes out has the types and shapes that its `reference` gives; without one, those of the first input.

        Parameters
        ----------
        opName, opVersion, domain:
            The operator, by its name, the opset of its domain, and the domain.
        inputs:
            Tensors.
        attributes:
            Its attributes.
        numOutputs:
            How many tensors it makes.
        debugContext:
            What the node is called.

        Returns
        -------
        list
            The names of what it makes.

        Raises
        ------
        popart_exception
            If no such operator was registered.
        """
        if registered_operator(opName, domain, opVersion) is None:
            known = registered_names(domain)
            raise popart_exception(
                f"customOp: no operator {opName!r} of {domain} and version {opVersion} is registered"
                f"{nearest_or_all(opName, known)}; pypoplar.poptorch.registerCustomOp makes one known"
            )
        if isinstance(inputs, str) or not all(isinstance(one, str) for one in inputs):
            raise popart_exception(f"customOp takes a list of tensors, which are names, got {inputs!r}")
        return self.add_node(domain, opVersion, opName, list(inputs), dict(attributes), numOutputs, debugContext)

    def reshape_const(self, ai_onnx: OperatorCalls, inputs: Sequence[str], shape: Sequence[int], debugContext: str = "") -> str:
        """A reshape to a shape that is known.

        Parameters
        ----------
        ai_onnx:
            ``builder.aiOnnx``.
        inputs:
            The tensor.
        shape:
            The shape.
        debugContext:
            What the node is called.

        Returns
        -------
        str
            The name of the result.
        """
        if isinstance(inputs, str):
            raise popart_exception(f"reshape_const takes a list of tensors, which are names, got {inputs!r}")
        sizes = ai_onnx.constant(np.array(shape, np.int64))
        return str(ai_onnx.reshape([inputs[0], sizes], debugContext=debugContext))

    def createSubgraphBuilder(self) -> Builder:
        """A builder of a graph within this one, such as the body of a loop."""
        inner = Builder(opsets=self._opsets)
        inner.parent = self
        return inner

    # where nodes are, and what is told of them

    @contextmanager
    def nameScope(self, name: str) -> Iterator[None]:
        """Within it, names begin with this one.

        Parameters
        ----------
        name:
            The name.

        Returns
        -------
        AbstractContextManager
            For a `with` statement.
        """
        if not isinstance(name, str):
            raise popart_exception(f"nameScope takes a name, got {name!r}")
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def virtualGraph(self, *given: Any) -> AbstractContextManager[None]:
        """On which IPU nodes run, where the option `virtualGraphMode` is Manual.

        Parameters
        ----------
        given:
            The IPU's number, for ``with builder.virtualGraph(1):``; or what a node makes, a name or a list, and the number.

        Returns
        -------
        AbstractContextManager
            Within it, nodes that are added are on the IPU.

        Raises
        ------
        popart_exception
            For what is no number of an IPU, and where no node makes the tensors.
        """
        return self._placed("virtualGraph", IPU, given)

    def pipelineStage(self, *given: Any) -> AbstractContextManager[None]:
        """In which stage of a pipeline nodes run, where the option `enablePipelining` is set.

        Parameters
        ----------
        given:
            The stage's number, or what a node makes and the number, as for `virtualGraph`.

        Returns
        -------
        AbstractContextManager
            Within it, nodes that are added are of the stage.

        Raises
        ------
        popart_exception
            As from `virtualGraph`.
        """
        return self._placed("pipelineStage", STAGE, given)

    def _placed(self, call: str, attribute: str, given: Sequence[Any]) -> AbstractContextManager[None]:
        number = given[-1] if given else None
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0 or len(given) > 2:
            raise popart_exception(f"{call} takes a number from 0 on, or tensors and a number, got {', '.join(map(repr, given))}")
        if len(given) == 2:
            self.addNodeAttribute(attribute, int(number), given[0])
            return nullcontext()
        return self._within(attribute, int(number))

    @contextmanager
    def _within(self, attribute: str, number: int) -> Iterator[None]:
        before = self._places.get(attribute)
        self._places[attribute] = number
        try:
            yield
        finally:
            del self._places[attribute]
            if before is not None:
                self._places[attribute] = before

    def setPartialsType(self, nodeOutputName: Any, partialsType: str = "FLOAT") -> None:
        """In which type a convolution or product of matrices, and its gradients, keep partial sums.

        Parameters
        ----------
        nodeOutputName:
            What the node makes, a name or a set of them.
        partialsType:
            "FLOAT" or "HALF".

        Raises
        ------
        popart_exception
            For another type, and for what no convolution or product makes.
        """
        if str(partialsType).upper() not in PARTIALS_TYPES:
            raise popart_exception(f"setPartialsType: partialsType is FLOAT or HALF, got {partialsType!r}")
        self._plan("setPartialsType", PARTIALS, str(partialsType).upper(), nodeOutputName)

    def getPartialsType(self, nodeOutputName: str) -> str:
        """The type that `setPartialsType` has set; FLOAT at first.

        Parameters
        ----------
        nodeOutputName:
            What the node makes.

        Returns
        -------
        str
            "FLOAT" or "HALF".

        Raises
        ------
        popart_exception
            If no node makes it.
        """
        given = {one.name: one for one in self._maker("getPartialsType", nodeOutputName).attribute}
        return given[PARTIALS].s.decode() if PARTIALS in given else "FLOAT"

    def setAvailableMemoryProportion(self, nodeOutputName: Any, availableMemoryProportion: float) -> None:
        """Which part of memory the plan of a convolution or product of matrices, and of its gradients, may take.

        Parameters
        ----------
        nodeOutputName:
            What the node makes, a name or a set of them.
        availableMemoryProportion:
            More than 0, and at most 1.

        Raises
        ------
        popart_exception
            For another number, and for what no convolution or product makes.
        """
        given: object = availableMemoryProportion
        if isinstance(given, bool) or not isinstance(given, int | float | np.number) or not 0 < given <= 1:
            raise popart_exception(f"setAvailableMemoryProportion takes a number above 0, at most 1, got {given!r}")
        self._plan("setAvailableMemoryProportion", MEMORY, float(given), nodeOutputName)

    def _plan(self, call: str, attribute: str, value: Any, outputs: Any) -> None:
        """Give nodes that have plans an attribute."""
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        for name in names:
            kind = self._maker(call, name).op_type
            if kind not in PLANNED_KINDS and attribute == PARTIALS:
                raise popart_exception(f"{call}: {name} is made by {kind}; partial sums have {', '.join(PLANNED_KINDS)}")
            if kind not in PLANNED_KINDS:
                logging.getLogger("popart").warning("Builder.%s changes nothing for %s", call, kind)
        for name in names:
            self.addNodeAttribute(attribute, value, name)

    def _maker(self, call: str, name: Any) -> onnx.NodeProto:
        """The node that makes a tensor."""
        found = next((node for node in self._graph.node if name in node.output), None)
        if found is None:
            made = [one for node in self._graph.node for one in node.output]
            raise popart_exception(f"{call}: no node makes {name!r}{nearest(str(name), made)}")
        return found

    def setGraphName(self, name: str) -> None:
        """Give the graph a name.

        Parameters
        ----------
        name:
            The name.
        """
        self._graph.name = name

    def addNodeAttribute(self, name: str, value: Any, outputs: Any) -> None:
        """Give the node that makes tensors an attribute.

        Parameters
        ----------
        name, value:
            The attribute.
        outputs:
            What the node makes.

        Raises
        ------
        popart_exception
            If no node makes them.
        """
        wanted = {outputs} if isinstance(outputs, str) else set(outputs)
        for node in self._graph.node:
            if wanted & set(node.output):
                kept = [one for one in node.attribute if one.name != name]
                del node.attribute[:]
                node.attribute.extend(kept)
                try:
                    node.attribute.append(helper.make_attribute(name, value))
                except (TypeError, ValueError) as problem:
                    raise popart_exception(f"addNodeAttribute: {name}: {problem}") from None
                return
        raise popart_exception(f"addNodeAttribute: no node makes {sorted(wanted)}")

    # what there is

    def getTensorShape(self, name: str) -> list[int]:
        """The shape of a tensor, as nodes and inputs so far say it.

        Parameters
        ----------
        name:
            The tensor.

        Returns
        -------
        list
            The shape.

        Raises
        ------
        popart_exception
            If there is no such tensor, or its shape is not known.
        """
        return list(self._value(name).tensor.shape)

    def getTensorDtypeString(self, name: str) -> str:
        """The type of a tensor, such as float32.

        Parameters
        ----------
        name:
            The tensor.

        Returns
        -------
        str
            The type in lower letters.

        Raises
        ------
        popart_exception
            As from `getTensorShape`.
        """
        return TensorInfo(NAMES[self._value(name).tensor.dtype], []).data_type_lcase()

    def _value(self, name: str) -> GraphValue:
        self._check(name)
        proto = self._proto([name])
        source = ModelSource.read(proto, Precision())
        given = {
            one.name: torch.empty(
                [size.dim_value for size in one.type.tensor_type.shape.dim],
                dtype=TORCH_TYPES[one.type.tensor_type.elem_type],
                device="meta",
            )
            for one in proto.graph.input
        }
        try:
            return Planner(source, given).plan().outputs[name]
        except PoplarError as problem:
            raise popart_exception(f"the shape of {name} is not known: {problem}") from None

    def getInputTensorIds(self) -> list[str]:
        """The names of inputs and weights, inputs first, each in their order."""
        return [one.name for one in (*self._graph.input, *self._graph.initializer)]

    def getOutputTensorIds(self) -> list[str]:
        """The names of the outputs that `addOutputTensor` has made such."""
        return [one.name for one in self._graph.output]

    def _proto(self, outputs: Sequence[str] | None = None) -> ModelProto:
        graph = GraphProto()
        graph.CopyFrom(self._graph)
        if outputs is not None:
            del graph.output[:]
            graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
        domains = {"": DEFAULT_OPSET, **self._opsets}
        return helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in domains.items()], ir_version=8)

    def getModelProto(self) -> bytes:
        """The model, as the bytes that a file of ONNX has."""
        return bytes(self._proto().SerializeToString())

    def saveModelProto(self, filename: str | os.PathLike[str]) -> None:
        """Write the model to a file.

        Parameters
        ----------
        filename:
            The file.
        """
        Path(filename).write_bytes(self.getModelProto())


def _hint(name: str, doc: str) -> Any:
    def method(self: Builder, *given: Any) -> AbstractContextManager[None]:
        logging.getLogger("popart").warning("Builder.%s changes nothing: it is about PopART's compiler", name)
        return nullcontext()

    method.__doc__ = HINT.format(doc)
    return method


HINT = """{}

Parameters
----------
given:
    Whatever PopART takes, which is not looked at.

Returns
-------
AbstractContextManager
    For a `with` statement.
"""
for _name, _doc in {
    "executionPhase": "Nodes that are added are of a phase, which changes nothing here.",
    "recomputeOutput": "What nodes make is computed again, which changes nothing here.",
    "recomputeOutputInBackwardPass": "What a node makes is computed again, which changes nothing here.",
    "setSerializeMatMul": "How a product is cut; it changes nothing here.",
    "setInplacePreferences": "Whether a node works in place; it changes nothing here.",
    "outlineAttributes": "What tells runs of nodes apart; it changes nothing here.",
}.items():
    setattr(Builder, _name, _hint(_name, _doc))


def _code(info: TensorInfo) -> int:
    return int(TensorProto.DataType.Value(info.name()))


def _opsets(given: Mapping[str, int]) -> dict[str, int]:
    """Opsets by domains, of which ONNX's own has two names."""
    if not isinstance(given, Mapping):
        raise popart_exception(f"Builder: opsets are a dict of numbers by domains, got {given!r}")
    chosen = {}
    for domain, opset in given.items():
        known = {"": OPSETS, "ai.onnx": OPSETS, "ai.onnx.ml": (1,), GRAPHCORE: (1,)}
        if domain not in known:
            raise popart_exception(f"Builder: there is no domain {domain!r}{nearest(str(domain), known)}")
        if opset not in known[domain]:
            raise popart_exception(f"Builder: {domain} has the opsets {', '.join(map(str, known[domain]))}, got {opset!r}")
        chosen["" if domain == "ai.onnx" else domain] = opset
    return chosen


def _numbers(given: Any, call: str) -> Any:
    """An array of numbers."""
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.asarray(given, object)
    if array.dtype.kind not in "fiub":
        raise popart_exception(f"{call} takes an array of numbers, got {given!r}")
    return array


def model_proto(given: Any) -> ModelProto:
    """A model from bytes, a ModelProto or a file."""
    if isinstance(given, ModelProto):
        return given
    if not isinstance(given, bytes | str | os.PathLike):
        raise popart_exception(f"a model is bytes, as getModelProto gives them, or the name of a file, got {given!r}")
    if not isinstance(given, bytes) and not Path(given).is_file():
        raise popart_exception(f"{given}: there is no such file")
    try:
        return ModelProto.FromString(given) if isinstance(given, bytes) else onnx.load(Path(given))
    except DecodeError:
        raise popart_exception(f"{'the bytes' if isinstance(given, bytes) else given}: this is no ONNX model, or cut off") from None
