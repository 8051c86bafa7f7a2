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
    """A type and a shape: ``TensorInfo("FLOAT", [2, 3])``, or those of an array.

    Parameters
    ----------
    dtype:
        A type as PopART or NumPy calls it, or an array of NumPy.
    shape:
        Whole numbers; None for an array.

    Raises
    ------
    popart_exception
        For a type that there is not, and for what is no shape.
    """

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
        """The type as PopART writes it in lower letters, such as float32 or int32."""
        return {"FLOAT": "float32", "DOUBLE": "float64"}.get(self._name, self._name.lower())

    def shape(self) -> list[int]:
        """The shape, as a list of whole numbers, one for each dimension."""
        return list(self._shape)

    def dtype(self) -> np.dtype[Any]:
        """The type that arrays of NumPy have for such a tensor."""
        return np.dtype(DTYPES[self._name])

    def name(self) -> str:
        """The type as PopART calls it, such as FLOAT."""
        return self._name

    def __repr__(self) -> str:
        return f"TensorInfo({self._name!r}, {self._shape})"


class AnchorReturnType:
    """Of which batches an anchor comes back: "Final", "EveryN" with a number, "All" or "Sum", in any case.

    Parameters
    ----------
    kind:
        Which of them.
    period:
        Of EveryN: every how many batches.

    Raises
    ------
    popart_exception
        For another kind, and for a period that EveryN does not have or others have.
    """

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
        """The kind, as an `AnchorReturnTypeId`, whatever case it was given in."""
        return self._kind

    def rp(self) -> int:
        """Every how many batches an anchor of the kind EveryN comes back."""
        return self._period

    def __repr__(self) -> str:
        return f"AnchorReturnType({self._kind.name!r}{f', {self._period}' if self._kind.name == 'EveryN' else ''})"


class DataFlow:
    """How many batches a step has, and which tensors come back: a dict of anchors, or a list with one kind for all.

    Parameters
    ----------
    batchesPerStep:
        At least 1.
    anchors:
        Kinds by tensors, or tensors.
    anchorReturnType:
        The kind of all anchors in a list; None: All.

    Raises
    ------
    popart_exception
        For other types, and where a period does not divide the batches.
    """

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
        """How many batches a step has before gradient accumulation multiplies them."""
        return self._batches

    def anchors(self) -> list[str]:
        """The names of the tensors that come back, in their order."""
        return list(self._anchors)

    def art(self, name: str) -> AnchorReturnType:
        """Of which batches a tensor comes back, one of the anchors.

        Parameters
        ----------
        name:
            The tensor.

        Returns
        -------
        AnchorReturnType
            Its kind.
        """
        return self._anchors[name]


class PyStepIO:
    """The arrays that a step reads, and those that it writes, by name.

    Parameters
    ----------
    inputs:
        Arrays of the inputs: [batchesPerStep, accumulationFactor, *shape], without those of 1.
    outputs:
        Arrays for the anchors, as `initAnchorArrays` makes them.

    Raises
    ------
    popart_exception
        For what is no dict by names.
    """

    def __init__(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        self.inputs, self.outputs = _named("PyStepIO", "inputs", inputs), _named("PyStepIO", "anchors", outputs)


class PyStepIOCallback:
    """Functions that give a step its arrays, batch by batch, and take what it makes.

    Parameters
    ----------
    input_callback:
        Called with an input's name and whether it is fetched ahead; gives the array of a batch.
    input_complete_callback:
        Called with the name when the array was read.
    output_callback:
        Called with an anchor's name; gives the array that is written.
    output_complete_callback:
        Called with the name when it is written.

    Raises
    ------
    popart_exception
        For what is no function.
    """

    def __init__(
        self, input_callback: Any, input_complete_callback: Any, output_callback: Any, output_complete_callback: Any
    ) -> None:
        for one in (input_callback, input_complete_callback, output_callback, output_complete_callback):
            if not callable(one):
                raise popart_exception(f"PyStepIOCallback takes four functions, got {one!r}")
        self.input, self.input_complete = input_callback, input_complete_callback
        self.output, self.output_complete = output_callback, output_complete_callback


class PyWeightsIO:
    """Arrays by name, which `readWeights` of a session fills with its weights.

    Parameters
    ----------
    weights:
        Arrays of the weights' types and shapes.

    Raises
    ------
    popart_exception
        For what is no dict by names.
    """

    def __init__(self, weights: Mapping[str, Any]) -> None:
        self.weights = _named("PyWeightsIO", "weights", weights)


class InputShapeInfo:
    """Shapes of inputs that a model's file leaves open."""

    def __init__(self) -> None:
        self.infos: dict[str, TensorInfo] = {}

    def add(self, name: str, info: TensorInfo) -> None:
        """Say what type and shape an input has that the model leaves open.

        Parameters
        ----------
        name:
            The input.
        info:
            Its type and shape.

        Raises
        ------
        popart_exception
            For what is no `TensorInfo`.
        """
        if not isinstance(info, TensorInfo):
            raise popart_exception(f"InputShapeInfo.add takes a TensorInfo, got {info!r}")
        self.infos[name] = info


class InputSettings:
    """How an input is read, of which nothing changes anything here.

    Parameters
    ----------
    settings:
        Whatever PopART takes.
    """

    def __init__(self, *settings: Any) -> None:
        self.settings = settings
