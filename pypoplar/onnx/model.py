"""A model of ONNX on the simulated IPU: what `pypoplar.onnx.load` gives."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from attrs import frozen
from numpy.typing import NDArray
from onnx import ModelProto, ValueInfoProto

from pypoplar.errors import PoplarError, PoplarRuntimeError, PoplarTypeError, TensorShapeError
from pypoplar.onnx.graph_plan import Planner
from pypoplar.onnx.model_problems import MissingValue, ModelError
from pypoplar.onnx.model_source import ModelSource
from pypoplar.onnx.onnx_types import DEVICE_TYPES, FLOATS, Precision, dtype_name, from_array, type_name, type_problem
from pypoplar.onnx.plan_steps import GraphPlan
from pypoplar.onnx.planned_module import PlannedModule
from pypoplar.poptorch.executor import PoplarExecutor
from pypoplar.poptorch.models import inferenceModel
from pypoplar.poptorch.options import Options
from pypoplar.report.report import Report
from pypoplar.spelling import nearest, nearest_or_all

Array = NDArray[Any]
Size = int | str | None  # of a dimension: a number, a name, or not known
Shapes = Mapping[str, int | Sequence[int]]


@frozen
class ModelTensor:
    """An input or output of a model, given by `Model.inputs` and `Model.outputs`.

    Attributes
    ----------
    name:
        Its name.
    type:
        Its type as ONNX calls it.
    shape:
        Its shape, in which a name stands for a size; None if it is not known.
    """

    name: str
    type: str
    shape: tuple[Size, ...] | None


@frozen(eq=False)
class _Compiled:
    plan: GraphPlan
    executor: PoplarExecutor | None  # None if all outputs are known
    names: tuple[str, ...]  # of the inputs that the device is given


def load(
    model: str | os.PathLike[str] | ModelProto | bytes,
    shapes: Shapes | None = None,
    precision: str | None = None,
    options: Options | None = None,
) -> Model:
    """Read a model of ONNX for the simulated IPU; its first call compiles it, or `Model.compile`.

    Parameters
    ----------
    model:
        The file, or what it has: a ModelProto or bytes. External data lies in the file's directory.
    shapes:
        Sizes of dimensions that the model names, ``{"batch": 8}``, or shapes of inputs, ``{"image": (8, 3, 224, 224)}``. What is
        left open is taken from the first call's inputs.
    precision:
        "float" or "half" computes all floats in this type, also double and bfloat16, which the device does not have. None: as the
        model says.
    options:
        As of `poptorch.inferenceModel`.

    Returns
    -------
    Model
        Not compiled yet.

    Raises
    ------
    FileLoadError
        For what is no model, is cut off, or has external data that is missing or outside of its directory.
    ModelError
        For nodes that are wrong, and for operators and types that are not there, all of them.
    """
    return Model(ModelSource.read(model, Precision.of(precision)), shapes, options)


class Model:
    """A model of ONNX on the simulated IPU, made by `load`.

    A call takes arrays of NumPy by name, ``model(image=array)``, as a list in the order of the inputs, or as a dict, and gives a
    dict of arrays. Integers of 64 bits are 32 bits wide on the device; those that do not fit are an error.

    Raises
    ------
    TensorShapeError
        From a call: for inputs of other shapes than the model was compiled for.
    PoplarTypeError
        From a call: for inputs of other types, and for those that are missing or not the model's.
    ModelError
        From the first call: for nodes whose shapes or types do not fit, and for what depends on data.
    """

    def __init__(self, source: ModelSource, shapes: Shapes | None, options: Options | None) -> None:
        if not isinstance(options, Options | None):
            raise PoplarTypeError(f"options are poptorch.Options, got {options!r}")
        self._source, self._options = source, Options() if options is None else options.clone()
        graph = source.graph
        self._infos = [one for one in graph.input if one.name not in source.initializers]
        self._declared = {one.name: _tensor_info(one, source) for one in self._infos}
        self._results = [_result_info(one, source) for one in graph.output]
        self._dtypes = {one.name: source.precision.dtype(one.type.tensor_type.elem_type) for one in self._infos}
        self._sizes: dict[str, int] = {}  # of named dimensions
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._wanted: set[str] = set()  # inputs whose values the model is compiled for
        self._compiled: dict[tuple[Any, ...], _Compiled] = {}
        self._last: _Compiled | None = None
        self._take_shapes(shapes or {})

    def __repr__(self) -> str:
        return f"<model {self._source.name}: {', '.join(self._declared)} -> {', '.join(one.name for one in self._results)}>"

    @property
    def name(self) -> str:
        """The model's name in messages: that of its file."""
        return self._source.name

    @property
    def inputs(self) -> list[ModelTensor]:
        """The inputs that a call gives."""
        return [ModelTensor(name, one.type, self._shapes.get(name, self._known_shape(one))) for name, one in self._declared.items()]

    @property
    def outputs(self) -> list[ModelTensor]:
        """The outputs; their shapes are whole once the model is compiled."""
        if self._last is None:
            return list(self._results)
        found = self._last.plan.outputs
        return [
            ModelTensor(one.name, dtype_name(found[one.name].tensor.dtype), tuple(found[one.name].tensor.shape))
            for one in self._results
        ]

    def _known_shape(self, one: ModelTensor) -> tuple[Size, ...] | None:
        if one.shape is None:
            return None
        return tuple(self._sizes.get(size, size) if isinstance(size, str) else size for size in one.shape)

    # shapes

    def _take_shapes(self, shapes: Shapes) -> None:
        if not isinstance(shapes, Mapping):
            raise PoplarTypeError(f"shapes are a dict by names of dimensions and inputs, such as {{'batch': 8}}, got {shapes!r}")
        names = {size for one in self._declared.values() for size in one.shape or () if isinstance(size, str)}
        for name, given in shapes.items():
            if name in self._declared:
                sizes = (given,) if isinstance(given, int) else tuple(given)
                self._fix(name, tuple(_size(one, name) for one in sizes))
            elif name in names:
                if not isinstance(given, int):
                    raise PoplarTypeError(f"shapes: {name} is the size of a dimension, got {given!r}")
                self._sizes[name] = _size(given, name)
            else:
                known = [*names, *self._declared]
                raise PoplarTypeError(f"shapes: {self.name} has no dimension or input {name!r}{nearest_or_all(name, known)}")

    def _fix(self, name: str, shape: tuple[int, ...]) -> None:
        """Take the shape of an input, which is that of all calls from now on."""
        if name in self._shapes:
            if self._shapes[name] != shape:
                raise TensorShapeError(
                    f"{self.name}: the input {name} was compiled with shape {list(self._shapes[name])}, got {list(shape)}; "
                    "load the model anew for another"
                )
            return
        declared = self._declared[name].shape
        if declared is not None and len(declared) != len(shape):
            raise TensorShapeError(f"{self.name}: the input {name} has shape {_told(declared)}, got {list(shape)}")
        for wanted, size in zip(declared or (), shape, strict=False):
            known = self._sizes.get(wanted, size) if isinstance(wanted, str) else wanted
            if known not in (None, size):
                by = f", and {wanted} is {known}" if isinstance(wanted, str) else ""
                raise TensorShapeError(f"{self.name}: the input {name} has shape {_told(declared)}{by}, got {list(shape)}")
        for wanted, size in zip(declared or (), shape, strict=False):
            if isinstance(wanted, str):
                self._sizes.setdefault(wanted, size)
        self._shapes[name] = shape

    # calls

    def __call__(self, inputs: Sequence[Any] | Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Array]:
        """The outputs for inputs, by name, which may be any, also "inputs"."""
        tensors = self._tensors(self._by_name(inputs, named))
        for name, tensor in tensors.items():
            self._fix(name, self._of_batch(name, tuple(tensor.shape)))
        compiled = self._find(tensors)
        results: tuple[torch.Tensor, ...] = ()
        if compiled.executor is not None:
            with self._told_by_nodes(compiled):
                results = compiled.executor(*(tensors[name] for name in compiled.names))
        computed = iter(results)
        return {
            name: (value.tensor.clone() if value.known else next(computed).to(value.tensor.dtype)).numpy()
            for name, value in compiled.plan.outputs.items()
        }

    def compile(self, inputs: Sequence[Any] | Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Compile for inputs like these, and run nothing.

        Parameters
        ----------
        inputs:
            Arrays, as a call takes them. They can be left out where the shapes are known and do not depend on their values.
        named:
            Inputs by name.

        Raises
        ------
        ModelError
            For what is wrong in the graph; `MissingValue` of these where shapes depend on the values of inputs.
        """
        self._find(self._sized(self._by_name(inputs, named, whole=False)))

    def _sized(self, given: dict[str, Any]) -> dict[str, torch.Tensor]:
        """Tensors of inputs; the shapes of all others are known from then on. `TensorShapeError` for one that is not."""
        tensors = self._tensors(given)
        for name, tensor in tensors.items():
            self._fix(name, self._of_batch(name, tuple(tensor.shape)))
        for name in self._declared:
            if name not in tensors and name not in self._shapes:
                shape = self._known_shape(self._declared[name])
                if shape is None or not all(isinstance(one, int) for one in shape):
                    raise TensorShapeError(
                        f"{self.name}: the shape of the input {name}, {_told(shape)}, is not known: give load shapes=, or an array"
                    )
                self._fix(name, tuple(one for one in shape if isinstance(one, int)))
        return tensors

    def cycleCount(self) -> int:
        """Tile cycles of the last call; 0 where nothing runs on the device. `PoplarRuntimeError` before the first."""
        last = self._require("cycleCount")
        return 0 if last.executor is None else last.executor.cycleCount()

    def getReport(self) -> Report:
        """The report of the last call; `PoplarRuntimeError` before the model is compiled, and where nothing runs on the device."""
        last = self._require("getReport")
        if last.executor is None:
            raise PoplarRuntimeError(f"getReport: all outputs of {self.name} are known without the device, so there is no report")
        return last.executor.getReport()

    def node_paths(self) -> dict[str, str]:
        """What messages call the node of each module's path in the report."""
        last = self._require("node_paths")
        return {} if last.executor is None else dict(last.executor.model.paths)

    def save(self, filename: str | os.PathLike[str]) -> None:
        """Write the executable to a file that `loadExecutable` reads.

        Parameters
        ----------
        filename:
            The file; directories on the way are made.

        Raises
        ------
        PoplarRuntimeError
            If the model is not compiled.
        """
        last = self._require("save")
        if last.executor is None:
            raise PoplarRuntimeError(f"save: all outputs of {self.name} are known without the device, so there is no executable")
        last.executor.save(filename, export_model=False)

    def loadExecutable(self, filename: str | os.PathLike[str], inputs: Sequence[Any] | Mapping[str, Any] | None = None) -> None:
        """Take the executable of a file that `save` wrote for the same model, shapes and options.

        Parameters
        ----------
        filename:
            The file.
        inputs:
            Arrays, where shapes or values are needed, as `compile` takes them.

        Raises
        ------
        FileLoadError
            If it is no such file, or one of another model.
        """
        tensors = self._sized(self._by_name(inputs, {}, whole=False))
        plan = self._plan(tensors)
        executor, names = self._executor(plan)
        if executor is not None:
            executor.loadExecutable(filename)
        self._last = self._compiled[self._key(tensors)] = _Compiled(plan, executor, names)

    def _require(self, what: str) -> _Compiled:
        if self._last is None:
            raise PoplarRuntimeError(f"{what}: {self.name} is not compiled yet; call it, or its compile()")
        return self._last

    # within

    def _by_name(self, inputs: Any, named: dict[str, Any], whole: bool = True) -> dict[str, Any]:
        """What a call gives, by name; all inputs, if it is `whole`."""
        given: dict[str, Any] = {}
        if inputs is None and "inputs" not in self._declared:
            inputs = named.pop("inputs", None)  # which may have its name
        if isinstance(inputs, Mapping):
            given |= inputs
        elif isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes):
            if len(inputs) > len(self._declared):
                raise PoplarTypeError(f"{self.name} takes {len(self._declared)} inputs, got {len(inputs)}")
            given |= dict(zip(self._declared, inputs, strict=False))
        elif inputs is not None:
            raise PoplarTypeError(f"{self.name} takes a list of arrays, or arrays by name, got {type(inputs).__name__}")
        for name in named:
            if name in given:
                raise PoplarTypeError(f"{self.name}: the input {name} was given twice")
        given |= named
        for name in given:
            if name not in self._declared:
                raise PoplarTypeError(f"{self.name} has no input {name!r}{nearest(name, self._declared)}; it has {self._listed()}")
        missing = [name for name in self._declared if name not in given]
        if whole and missing:
            raise PoplarTypeError(f"{self.name}: {', '.join(missing)} was not given; its inputs are {self._listed()}")
        return {name: given[name] for name in self._declared if name in given}

    def _listed(self) -> str:
        return ", ".join(f"{one.name} ({one.type} {_told(one.shape)})" for one in self._declared.values()) or "none"

    def _tensors(self, given: dict[str, Any]) -> dict[str, torch.Tensor]:
        return {name: self._tensor(name, value) for name, value in given.items()}

    def _tensor(self, name: str, value: Any) -> torch.Tensor:
        wanted = self._dtypes[name]
        if isinstance(value, torch.Tensor):
            tensor = value.detach()
        else:
            try:
                array = np.asarray(value)
            except ValueError as problem:
                told = f"{self.name}: the input {name} is {self._declared[name].type}, got what is no array: {problem}"
                raise PoplarTypeError(told) from None
            if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
                raise PoplarTypeError(f"{self.name}: the input {name} is {self._declared[name].type}, got {array.dtype}")
            tensor = from_array(array, torch.bfloat16 if array.dtype.name == "bfloat16" else torch.float32)
        if self._source.precision.floats is not None and tensor.dtype in FLOATS and wanted in FLOATS:
            return tensor.to(wanted)
        if tensor.dtype != wanted:
            raise PoplarTypeError(
                f"{self.name}: the input {name} is {dtype_name(wanted)}, got {dtype_name(tensor.dtype)} {list(tensor.shape)}: "
                f"call astype({_numpy_name(wanted)})"
            )
        return tensor

    def _of_batch(self, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of one batch, of which a call gives as many as its options say."""
        count = int(self._options.device_iterations) * int(self._options.replication_factor)
        if count == 1 or name in self._wanted:
            return shape
        if not shape or shape[0] % count:
            raise TensorShapeError(f"{self.name}: a call has {count} batches, in which {name} {list(shape)} cannot be shared out")
        return (shape[0] // count, *shape[1:])

    def _key(self, tensors: Mapping[str, torch.Tensor]) -> tuple[Any, ...]:
        return tuple((name, tensors[name].numpy().tobytes()) for name in sorted(self._wanted) if name in tensors)

    def _find(self, tensors: Mapping[str, torch.Tensor]) -> _Compiled:
        """What is compiled for the values of inputs, or is compiled now."""
        found = self._compiled.get(self._key(tensors))
        if found is None:
            plan = self._plan(tensors)
            executor, names = self._executor(plan)
            found = _Compiled(plan, executor, names)
            if executor is not None:
                with self._told_by_nodes(found):
                    executor.compile(*(self._like(name, tensors) for name in names))
            self._compiled[self._key(tensors)] = found
        self._last = found
        return found

    def _like(self, name: str, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        if name in tensors:
            return tensors[name]
        count = int(self._options.device_iterations) * int(self._options.replication_factor)
        shape = self._shapes[name]
        whole = (shape[0] * count, *shape[1:]) if count > 1 and shape else shape
        try:
            return torch.zeros(whole, dtype=self._dtypes[name])
        except (RuntimeError, MemoryError):
            size = math.prod(whole) * self._dtypes[name].itemsize
            raise ModelError(f"{self.name}: the input {name} {list(whole)} takes {size:,} bytes, more than the host has") from None

    def _plan(self, tensors: Mapping[str, torch.Tensor]) -> GraphPlan:
        while True:
            given = {}
            for name in self._declared:
                known = name in self._wanted and name in tensors
                dtype = self._dtypes[name]
                given[name] = tensors[name] if known else torch.empty(self._shapes[name], dtype=dtype, device="meta")
                if not known and dtype not in DEVICE_TYPES and name not in self._wanted:
                    raise ModelError(f"{self.name}: the input {name}: {type_problem(dtype)}")
            try:
                return Planner(self._source, given).plan()
            except MissingValue as missing:
                if not set(missing.names) <= tensors.keys() or set(missing.names) <= self._wanted:
                    raise
                self._wanted |= set(missing.names)
                for name in missing.names:
                    self._shapes[name] = tuple(tensors[name].shape)

    def _executor(self, plan: GraphPlan) -> tuple[PoplarExecutor | None, tuple[str, ...]]:
        names = tuple(one.name for one in plan.inputs)
        if all(value.known for value in plan.outputs.values()):
            return None, names
        module = PlannedModule(plan, self._source.initializers)
        executor = inferenceModel(module.eval(), self._options)
        executor.hold_weights()
        return executor, names

    @contextmanager
    def _told_by_nodes(self, compiled: _Compiled) -> Iterator[None]:
        """Errors name the model's nodes where PyTorch's would name modules."""
        try:
            yield
        except PoplarError as problem:
            assert compiled.executor is not None
            text = _by_nodes(str(problem), compiled.executor.model, self.name)
            if text == str(problem):
                raise
            raise ModelError(text) from problem


def _by_nodes(text: str, module: Any, name: str) -> str:
    labels: dict[str, str] = module.paths
    for path in sorted(labels, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.])(\w+ of )?{re.escape(path)}(?![\w.])", lambda _, path=path: labels[path], text)  # type: ignore[misc]
    return text.replace("PlannedModule", name)


def _size(given: Any, name: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise PoplarTypeError(f"shapes: sizes of {name} are whole numbers from 0 on, got {given!r}")
    return int(given)


def _told(shape: tuple[Size, ...] | None) -> str:
    return "of any rank" if shape is None else f"[{', '.join('?' if one is None else str(one) for one in shape)}]"


def _numpy_name(dtype: torch.dtype) -> str:
    return f"np.{str(dtype).removeprefix('torch.')}" if dtype is not torch.bool else "bool"


def _result_info(info: ValueInfoProto, source: ModelSource) -> ModelTensor:
    """An output, whose type need not be told."""
    return _tensor_info(info, source) if info.HasField("type") else ModelTensor(info.name, "", None)


def _tensor_info(info: ValueInfoProto, source: ModelSource) -> ModelTensor:
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        raise ModelError(f"{source.name}: {info.name} is a {(kind or 'nothing').removesuffix('_type')}; models have tensors here")
    tensor = info.type.tensor_type
    shape: tuple[Size, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(int(one.dim_value) if one.HasField("dim_value") else one.dim_param or None for one in tensor.shape.dim)
    try:
        name = dtype_name(source.precision.dtype(tensor.elem_type))
    except KeyError:
        raise ModelError(f"{source.name}: {info.name} is {type_name(tensor.elem_type)}, which has no form here") from None
    return ModelTensor(info.name, name, shape)
