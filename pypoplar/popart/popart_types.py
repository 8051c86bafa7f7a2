"""PopART's types of tensors, anchors, and what flows in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pypoplar.errors import PoplarError, PoplarTypeError
from pypoplar.popart.popart_enums import AnchorReturnTypeId
from pypoplar.spelling import nearest

DTYPES = {
    "FLOAT": "float32",
    "FLOAT16": "float16",
    "DOUBLE": "float64",
    "BOOL": "bool",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
}
FRAMEWORK_NAMES = {name.lower(): name for name in DTYPES} | {dtype: name for name, dtype in DTYPES.items()}


class popart_exception(PoplarError):
    """What PopART raises for a model or session that is wrong."""


def _type_name(given: Any) -> str | None:
    """A type as PopART calls it; None if there is no such type."""
    if isinstance(given, str):
        return given.upper() if given.upper() in DTYPES else FRAMEWORK_NAMES.get(given)
    try:
        return None if given is None else FRAMEWORK_NAMES.get(str(np.dtype(given)))
    except TypeError:
        return None


def _sizes(given: Any) -> list[int]:
    """A shape."""
    listed = [] if isinstance(given, str) or not hasattr(given, "__iter__") else list(given)
    whole = all(isinstance(one, int | np.integer) and not isinstance(one, bool) and one >= 0 for one in listed)
    if not whole or (not listed and (isinstance(given, str) or not hasattr(given, "__iter__"))):
        raise popart_exception(f"TensorInfo: a shape is a list of whole numbers from 0 on, got {given!r}")
    return [int(one) for one in listed]


def _named(call: str, what: str, given: Any) -> dict[str, Any]:
    """A dict of what there is by tensors."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise popart_exception(f"{call}: {what} are a dict by names of tensors, got {given!r}")
    return dict(given)


class TensorInfo:
    """A type and a shape: ``TensorInfo("FLOAT", [2, 3])``, or of an array."""

    def __init__(self, dtype: Any, shape: Sequence[int] | None = None) -> None:
        if isinstance(dtype, np.ndarray) and shape is None:
            dtype, shape = dtype.dtype, list(dtype.shape)
        name = _type_name(dtype)
        if name is None:
            raise popart_exception(f"TensorInfo: there is no type {dtype!r}{nearest(str(dtype).upper(), DTYPES)}")
        if shape is None:
            raise PoplarTypeError("TensorInfo: a shape is needed, such as TensorInfo('FLOAT', [2, 3])")
        self._name, self._shape = name, _sizes(shape)

    def data_type_lcase(self) -> str:
        """The type in lower letters, such as float32."""
        return {"FLOAT": "float32", "DOUBLE": "float64"}.get(self._name, self._name.lower())

    def shape(self) -> list[int]:
        """The shape."""
        return list(self._shape)

    def dtype(self) -> np.dtype[Any]:
        """The type of arrays."""
        return np.dtype(DTYPES[self._name])

    def name(self) -> str:
        """The type as PopART calls it, such as FLOAT."""
        return self._name

    def __repr__(self) -> str:
        return f"TensorInfo({self._name!r}, {self._shape})"


class AnchorReturnType:
    """Of which batches an anchor comes back: "Final", "EveryN" with a number, "All" or "Sum", in any case."""

    def __init__(self, kind: str, period: Any = None) -> None:
        names = {one.name.lower(): one for one in AnchorReturnTypeId}
        if str(kind).lower() not in names:
            raise popart_exception(
                f"AnchorReturnType: there is no {kind!r}{nearest(str(kind), [one.name for one in AnchorReturnTypeId])}"
            )
        self._kind = names[str(kind).lower()]
        if self._kind.name == "EveryN":
            if isinstance(period, bool) or not isinstance(period, int) or period < 1:
                raise popart_exception(f"AnchorReturnType: EveryN takes a whole number from 1 on, got {period!r}")
        elif period not in (None, 1):
            raise popart_exception(f"AnchorReturnType: {self._kind.name} has no period, got {period!r}; EveryN has one")
        self._period = 1 if period is None else int(period)

    def id(self) -> Any:
        """The kind."""
        return self._kind

    def rp(self) -> int:
        """The period of EveryN."""
        return self._period

    def __repr__(self) -> str:
        return f"AnchorReturnType({self._kind.name!r}{f', {self._period}' if self._kind.name == 'EveryN' else ''})"


class DataFlow:
    """How many batches a step has, and which tensors come back: a dict of anchors, or a list with one kind for all."""

    def __init__(
        self,
        batchesPerStep: Any,
        anchors: Mapping[str, AnchorReturnType] | Sequence[str] = (),
        anchorReturnType: AnchorReturnType | None = None,
    ) -> None:
        if isinstance(batchesPerStep, bool) or not isinstance(batchesPerStep, int) or batchesPerStep < 1:
            raise popart_exception(f"DataFlow: batchesPerStep is a whole number from 1 on, got {batchesPerStep!r}")
        kind = AnchorReturnType("All") if anchorReturnType is None else anchorReturnType
        listed = [] if isinstance(anchors, str) or not hasattr(anchors, "__iter__") else list(anchors)
        if isinstance(anchors, str) or not hasattr(anchors, "__iter__") or not all(isinstance(one, str) for one in listed):
            raise popart_exception(f"DataFlow: anchors are a list of tensors, which are names, or a dict by them, got {anchors!r}")
        self._batches = int(batchesPerStep)
        self._anchors = dict(anchors) if isinstance(anchors, Mapping) else dict.fromkeys(anchors, kind)
        for name, one in self._anchors.items():
            if not isinstance(one, AnchorReturnType):
                raise popart_exception(f"DataFlow: the anchor {name} has an AnchorReturnType, got {one!r}")
            if one.id().name == "EveryN" and batchesPerStep % one.rp():
                raise popart_exception(
                    f"DataFlow: {name} comes back of every {one.rp()} batches, which does not divide {batchesPerStep}"
                )

    def batchesPerStep(self) -> int:
        """How many batches a step has."""
        return self._batches

    def anchors(self) -> list[str]:
        """The tensors that come back."""
        return list(self._anchors)

    def art(self, name: str) -> AnchorReturnType:
        """Of which batches a tensor comes back."""
        return self._anchors[name]


class PyStepIO:
    """The arrays that a step reads, and those that it writes, by name."""

    def __init__(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        self.inputs, self.outputs = _named("PyStepIO", "inputs", inputs), _named("PyStepIO", "anchors", outputs)


class PyStepIOCallback:
    """Functions that give a step its arrays, batch by batch, and take what it makes."""

    def __init__(
        self, input_callback: Any, input_complete_callback: Any, output_callback: Any, output_complete_callback: Any
    ) -> None:
        for one in (input_callback, input_complete_callback, output_callback, output_complete_callback):
            if not callable(one):
                raise popart_exception(f"PyStepIOCallback takes four functions, got {one!r}")
        self.input, self.input_complete = input_callback, input_complete_callback
        self.output, self.output_complete = output_callback, output_complete_callback


class PyWeightsIO:
    """Arrays by name that weights are read into."""

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self.weights = _named("PyWeightsIO", "weights", weights)


class InputShapeInfo:
    """Shapes of inputs that a model's file leaves open."""

    def __init__(self) -> None:
        self.infos: dict[str, TensorInfo] = {}

    def add(self, name: str, info: TensorInfo) -> None:
        """Say what an input is."""
        if not isinstance(info, TensorInfo):
            raise popart_exception(f"InputShapeInfo.add takes a TensorInfo, got {info!r}")
        self.infos[name] = info


class InputSettings:
    """How an input is read, of which nothing changes anything here."""

    def __init__(self, *settings: Any) -> None:
        self.settings = settings
