"""``builder.aiOnnx.relu([x])``: operators of a domain as methods, by their names in lower letters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, defs, helper, numpy_helper

from pypoplar.errors import MissingFeature
from pypoplar.onnx import families  # noqa: F401 (the table's entries)
from pypoplar.onnx.operator_table import MANY, all_operators, find_operator
from pypoplar.popart.popart_types import popart_exception
from pypoplar.spelling import nearest

if TYPE_CHECKING:
    from pypoplar.popart.graph_builder import Builder

GRAPHCORE = "ai.graphcore"
OWN_NAMES = {"l1loss": "L1", "nllloss": "Nll", "identityloss": "IdentityLoss", "ctcloss": "Ctc", "call": "Call"}
OWN_NAMES["normalize_image"] = "NormalizeImage"
MISSING = ("abort", "copyvarupdate", "packedDataBlock")
CONVOLUTION = {"dilations": "dilations", "pads": "pads", "strides": "strides"}  # of a multiconv, and of Conv
PLANNING = (
    "availableMemoryProportions",
    "partialsTypes",
    "planType",
    "perConvReservedTiles",
    "cycleBackOff",
    "enableConvDithering",
)
COUNTED = ("If", "Loop", "Scan", "Split", "Call")  # which take the number of their outputs behind the tensors
COUNTED_BY_NUMBERS = ("BatchNormalization", "Dropout", "MaxPool")  # whose first attribute is none
OUTPUTS = {"CtcBeamSearchDecoder": 3, "GroupNormalization": 3, "LSTM": 2, "ReduceMedian": 2, "Sort": 2, "SplineBasis": 2}
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
        if self._domain == GRAPHCORE and name in MISSING:
            raise MissingFeature(f"aiGraphcore.{name} is not there yet")
        if name == "constant":
            return self._constant
        if name == "multiconv" and self._domain == GRAPHCORE:
            return self._multiconv
        if name not in self._names:
            called = "ai.onnx" if self._domain == "" else self._domain
            raise popart_exception(f"{called} of opset {self._opset} has no operator {name!r} here{nearest(name, self._names)}")
        return lambda inputs=(), *given, **attributes: self._call(name, inputs, given, attributes)

    def _constant(self, value: Any, is_value_sparse: bool = False, debugContext: str = "") -> str:
        if is_value_sparse:
            raise MissingFeature("constant: sparse values are not there")
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise popart_exception(f"constant takes numbers, got {value!r}")
        tensor = numpy_helper.from_array(array, "value")
        return str(self._builder.add_node(self._domain, self._opset, "Constant", [], {"value": tensor}, 1, debugContext)[0])

    def _multiconv(self, args: Sequence[Sequence[str]], debugContext: str = "", **settings: Any) -> list[str]:
        """Convolutions, each by itself: whether they run at the same time is the compiler's to say."""
        for name, value in settings.items():
            if name in ("inDilations", "outPads"):
                if any(one != default for row in value for one in row for default in [1 if name == "inDilations" else 0]):
                    raise MissingFeature(f"multiconv: {name} is not there, got {value!r}")
            elif name in PLANNING:
                logging.getLogger("popart").warning("multiconv: %s changes nothing here", name)
            elif name not in CONVOLUTION:
                raise popart_exception(f"multiconv has no attribute {name!r}{nearest(name, [*CONVOLUTION, *PLANNING])}")
            elif len(value) != len(args):
                raise popart_exception(f"multiconv: {name} has a row for each of {len(args)} convolutions, got {len(value)}")
        calls = self._builder.aiOnnx
        rows = [
            {one: list(settings[name][number]) for name, one in CONVOLUTION.items() if name in settings}
            for number in range(len(args))
        ]
        return [calls.conv(list(one), debugContext=debugContext, **row) for one, row in zip(args, rows, strict=True)]

    def _call(self, name: str, inputs: Sequence[str], given: Sequence[Any], attributes: dict[str, Any]) -> Any:
        operator = self._names[name]
        if isinstance(inputs, str) or not all(isinstance(one, str) for one in inputs):
            raise popart_exception(f"{name} takes a list of tensors, which are names, got {inputs!r}")
        context = attributes.pop("debugContext", attributes.pop("debugPrefix", ""))
        outputs = attributes.pop("num_outputs", None)
        if given and (operator in COUNTED or (operator in COUNTED_BY_NUMBERS and type(given[0]) is int)):
            outputs, given = given[0], given[1:]
        attributes |= self._positional(operator, given)
        if outputs is not None and (isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1):
            raise popart_exception(f"{operator}: the number of outputs is at least 1, got {outputs!r}")
        count = int(outputs) if outputs is not None else self._outputs(operator)
        attributes = self._checked(attributes, operator, len(inputs))
        made = self._builder.add_node(self._domain, self._opset, operator, list(inputs), _plain(attributes), count, context)
        return made[0] if len(made) == 1 else made

    def _positional(self, operator: str, given: Sequence[Any]) -> dict[str, Any]:
        """Attributes that are given by position, in the order in which PopART has them."""
        needed, others = self._attributes(operator)
        order = (*needed, *others)
        if len(given) > len(order):
            raise popart_exception(f"{operator}: give attributes by name, got {list(given)!r}")
        return dict(zip(order, given, strict=False))

    def _attributes(self, operator: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The attributes that an operator has to have, and the others, in the order of PopART's arguments."""
        if operator == "Call" and self._domain != "":
            return ("callee",), ()
        if self._domain == "":
            found = defs.get_schema(operator, self._opset, "").attributes
            names = sorted(found)
            return tuple(one for one in names if found[one].required), tuple(one for one in names if not found[one].required)
        entry = find_operator(self._domain, operator, self._opset)
        assert entry is not None
        return entry.needed, entry.attributes or ()

    def _checked(self, attributes: dict[str, Any], operator: str, inputs: int) -> dict[str, Any]:
        """The attributes, all of which the operator has, and numbers of tensors that it takes."""
        needed, others = self._attributes(operator)
        known = (*needed, *others)
        for name in attributes:
            if name not in known:
                near = nearest(name, known) or f"; it has {', '.join(known) or 'none'}"
                raise popart_exception(f"{operator} of opset {self._opset} has no attribute {name!r}{near}")
        for name in needed:
            if attributes.get(name) is None and operator not in ("If", "Loop", "Scan"):
                raise popart_exception(f"{operator} of opset {self._opset}: the attribute {name} is missing")
        if self._domain == "":
            _check_kinds(attributes, operator, self._opset)
        least, most = self._operands(operator)
        if not least <= inputs <= most:
            wanted = str(least) if least == most else f"{least} or more" if most > MANY // 2 else f"{least} to {most}"
            raise popart_exception(f"{operator} of opset {self._opset} takes {wanted} tensors, got {inputs}")
        return _with_codes(attributes, operator)

    def _operands(self, operator: str) -> tuple[int, int]:
        if operator == "Call" and self._domain != "":
            return 0, MANY
        if self._domain == "":
            schema = defs.get_schema(operator, self._opset, "")
            return schema.min_input, schema.max_input
        entry = find_operator(self._domain, operator, self._opset)
        assert entry is not None
        return entry.operands

    def _outputs(self, operator: str) -> int:
        if self._domain == "":
            return int(defs.get_schema(operator, self._opset, "").min_output)
        return OUTPUTS.get(operator, 1)


def _check_kinds(attributes: dict[str, Any], operator: str, opset: int) -> None:
    """`popart_exception` for an attribute that is of another kind than ONNX's schema says."""
    kinds: dict[Any, tuple[tuple[type, ...], str]] = {
        defs.OpSchema.AttrType.INT: ((int, np.integer, Enum), "a whole number"),
        defs.OpSchema.AttrType.FLOAT: ((int, float, np.number), "a number"),
        defs.OpSchema.AttrType.STRING: ((str, bytes), "a text"),
        defs.OpSchema.AttrType.INTS: ((list, tuple, np.ndarray), "a list of whole numbers"),
        defs.OpSchema.AttrType.FLOATS: ((list, tuple, np.ndarray), "a list of numbers"),
    }
    schema = defs.get_schema(operator, opset, "").attributes
    for name, value in attributes.items():
        types, words = kinds.get(schema[name].type, ((object,), ""))
        if value is not None and not isinstance(value, types) and not (operator == "Cast" and isinstance(value, str)):
            raise popart_exception(f"{operator} of opset {opset}: {name} is {words}, got {value!r}")


def _with_codes(attributes: dict[str, Any], operator: str) -> dict[str, Any]:
    """Attributes, in which types are numbers."""
    name = {"Cast": "to", "Init": "data_type"}.get(operator, "")
    if isinstance(attributes.get(name), str):
        text, names = attributes[name].upper(), list(TensorProto.DataType.keys())
        if text not in names:
            raise popart_exception(f"{operator}: there is no type {attributes[name]!r}{nearest(text, names)}")
        attributes = {**attributes, name: TensorProto.DataType.Value(text)}
    return attributes


def _plain(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as ONNX takes them; None is what is left out."""
    plain = {}
    for name, value in attributes.items():
        if value is None:
            continue
        if isinstance(value, Enum):
            value = int(value.value)
        plain[name] = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        if isinstance(plain[name], bool) or (isinstance(plain[name], int) and not isinstance(plain[name], bool)):
            plain[name] = int(plain[name])
    return plain


make_node = helper.make_node
