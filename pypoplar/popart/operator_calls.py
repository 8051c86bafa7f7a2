"""``builder.aiOnnx.relu([x])``: operators of a domain as methods, by their names in lower letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, defs, helper, numpy_helper

from pypoplar.onnx.operator_table import all_operators
from pypoplar.popart.popart_types import popart_exception
from pypoplar.spelling import nearest

if TYPE_CHECKING:
    from pypoplar.popart.graph_builder import Builder

GRAPHCORE = "ai.graphcore"
OWN_NAMES = {"l1loss": "L1", "nllloss": "Nll", "identityloss": "IdentityLoss"}
COUNTED = ("If", "Loop", "Scan", "Split")  # which take the number of their outputs behind the tensors
COLLECTIVES = ("replicatedallreduce", "replicatedreducescatter", "replicatedallgather")


def onnx_names(opset: int) -> dict[str, str]:
    """The operators of an opset of ai.onnx by their names in lower letters."""
    found = {}
    for one in defs.get_all_schemas_with_history():
        if one.domain == "" and one.since_version <= opset:
            found[one.name.lower()] = one.name
    return {**found, "logical_if": "If", "logical_and": "And", "logical_or": "Or", "logical_not": "Not"}


def graphcore_names() -> dict[str, str]:
    """The operators of ai.graphcore that are there."""
    found = {one.name.lower(): one.name for one in all_operators() if one.domain == GRAPHCORE}
    return {**found, **OWN_NAMES}


class OperatorCalls:
    """The operators of a domain and opset, as methods that take a list of tensors and give names."""

    def __init__(self, builder: Builder, domain: str, opset: int) -> None:
        self._builder, self._domain, self._opset = builder, domain, opset
        self._names = onnx_names(opset) if domain == "" else graphcore_names()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in COLLECTIVES:
            raise popart_exception(f"{name}: replicas are not there for PopART's sessions")
        if name == "constant":
            return self._constant
        if name not in self._names:
            called = "ai.onnx" if self._domain == "" else self._domain
            raise popart_exception(f"{called} of opset {self._opset} has no operator {name!r} here{nearest(name, self._names)}")
        return lambda inputs=(), *given, **attributes: self._call(name, inputs, given, attributes)

    def _constant(self, value: Any, debugContext: str = "", **_: Any) -> str:
        array = np.asarray(value)
        tensor = numpy_helper.from_array(array, "value")
        return str(self._builder.add_node(self._domain, self._opset, "Constant", [], {"value": tensor}, 1, debugContext)[0])

    def _call(self, name: str, inputs: Sequence[str], given: Sequence[Any], attributes: dict[str, Any]) -> Any:
        operator = self._names[name]
        context = attributes.pop("debugContext", attributes.pop("debugPrefix", ""))
        outputs = attributes.pop("num_outputs", None)
        if given and operator in COUNTED:
            outputs, given = given[0], given[1:]
        attributes |= self._positional(operator, given)
        count = int(outputs) if outputs is not None else self._outputs(operator)
        if self._domain == "":
            attributes = _renamed(attributes, operator, self._opset)
        made = self._builder.add_node(self._domain, self._opset, operator, list(inputs), _plain(attributes), count, context)
        return made[0] if len(made) == 1 else made

    def _positional(self, operator: str, given: Sequence[Any]) -> dict[str, Any]:
        """Attributes that are given by position, in the order in which PopART has them."""
        order = {
            "L1": ("lambda", "reduction"),
            "Nll": ("reduction", "ignoreIndex", "inputIsLogProbability"),
            "IdentityLoss": ("reduction",),
            "Scale": ("scale",),
            "Cast": ("to",),
        }.get(operator, ())
        if not order and self._domain == "":
            schema = defs.get_schema(operator, self._opset, "")
            order = tuple(sorted(schema.attributes, key=lambda one: (not schema.attributes[one].required, one)))
        if len(given) > len(order):
            raise popart_exception(f"{operator}: give attributes by name, got {list(given)!r}")
        return dict(zip(order, given, strict=False))

    def _outputs(self, operator: str) -> int:
        if self._domain == "":
            return int(defs.get_schema(operator, self._opset, "").min_output)
        return 3 if operator == "GroupNormalization" else 2 if operator == "ReduceMedian" else 1


def _renamed(attributes: dict[str, Any], operator: str, opset: int) -> dict[str, Any]:
    known = defs.get_schema(operator, opset, "").attributes
    for name in attributes:
        if name not in known:
            raise popart_exception(f"{operator} of opset {opset} has no attribute {name!r}{nearest(name, known)}")
    if operator == "Cast" and isinstance(attributes.get("to"), str):
        attributes = {**attributes, "to": TensorProto.DataType.Value(attributes["to"].upper())}
    return attributes


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as ONNX takes them; None is what is left out."""
    plain = {}
    for name, value in attributes.items():
        if value is None:
            continue
        plain[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        if isinstance(plain[name], bool) or (isinstance(plain[name], int) and not isinstance(plain[name], bool)):
            plain[name] = int(plain[name])
    return plain


make_node = helper.make_node
