"""PopART's sessions: a model of ONNX that infers or trains, step by step, with arrays in and out by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

from pypoplar.errors import GraphMemoryAllocationError, UnknownHandle
from pypoplar.onnx.graph_plan import Planner
from pypoplar.onnx.graph_training import TrainableGraph, plan_for_training
from pypoplar.onnx.model_problems import ModelError
from pypoplar.onnx.model_source import ModelSource
from pypoplar.onnx.onnx_types import Precision, dtype_name
from pypoplar.onnx.plan_steps import GraphPlan
from pypoplar.onnx.planned_module import PlannedModule
from pypoplar.popart.graph_builder import model_proto
from pypoplar.popart.node_places import PlacedPlan, placed_plan
from pypoplar.popart.popart_devices import DeviceInfo
from pypoplar.popart.popart_optimizers import PopartOptimizer
from pypoplar.popart.popart_types import DataFlow, InputShapeInfo, PyStepIO, PyStepIOCallback, PyWeightsIO, popart_exception
from pypoplar.popart.session_options import Patterns, SessionOptions
from pypoplar.poptorch.enums import OutputMode
from pypoplar.poptorch.enums import ReductionType as TorchReduction
from pypoplar.poptorch.executor import PoplarExecutor
from pypoplar.poptorch.models import inferenceModel, trainingModel
from pypoplar.poptorch.options import Options
from pypoplar.report.report import Report
from pypoplar.report.text.summary import summary
from pypoplar.spelling import nearest

Array = NDArray[Any]
GRADIENT = "Gradient___"
TORCH_REDUCTIONS = (TorchReduction.Sum, TorchReduction.Mean)  # by PopART's numbers


class OutOfMemoryException(popart_exception):
    """A model does not fit an IPU; `prepareDevice` raises it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self._message = message

    def getSummaryReport(self) -> str:
        """What takes how much, as the compiler tells it."""
        return self._message

    def getProfilePath(self) -> str:
        """Where a profile is: nowhere."""
        return ""


class _Session:
    """What sessions that infer and sessions that train have in common."""

    def __init__(
        self,
        model: Any,
        dataFlow: DataFlow,
        device: DeviceInfo,
        shapes: InputShapeInfo | None,
        patterns: Patterns | None,
        options: SessionOptions | None,
        loss: str | None,
        optimizer: PopartOptimizer | None,
    ) -> None:
        if not isinstance(dataFlow, DataFlow):
            raise popart_exception(f"a session takes a DataFlow, got {dataFlow!r}")
        if not isinstance(device, DeviceInfo):
            raise popart_exception(f"a session takes a device that DeviceManager gives, got {device!r}")
        self._proto = model_proto(model)
        if options is not None and not isinstance(options, SessionOptions):
            raise popart_exception(f"a session takes SessionOptions as userOptions, got {options!r}")
        if not isinstance(shapes, InputShapeInfo | None):
            raise popart_exception(f"a session takes an InputShapeInfo as inputShapeInfo, got {shapes!r}")
        if not isinstance(patterns, Patterns | None):
            raise popart_exception(f"a session takes Patterns as patterns, got {patterns!r}")
        if not isinstance(loss, str | None):
            raise popart_exception(f"TrainingSession: the loss is a tensor, which is a name, got {loss!r}")
        self._device = device
        self._flow, self._options = dataFlow, SessionOptions() if options is None else options
        self._shapes = {} if shapes is None else shapes.infos
        self._loss, self._optimizer = loss, deepcopy(optimizer)
        self._known = {one.name for one in (*self._proto.graph.input, *self._proto.graph.initializer)}
        self._known |= {name for node in self._proto.graph.node for name in node.output}
        self._check_anchors()
        self._executor: PoplarExecutor | None = None
        self._plan: GraphPlan | None = None
        self._source: ModelSource | None = None
        self._module: PlannedModule | None = None
        self._seed: int | None = None
        self._host: dict[str, torch.Tensor] = {}  # trained weights, as the host has them

    def _check_anchors(self) -> None:
        names = [*self._flow.anchors(), *([] if self._loss is None else [self._loss])]
        for name in names:
            plain = name.removeprefix(GRADIENT) if self._optimizer is not None else name
            if plain not in self._known:
                raise popart_exception(f"DataFlow: there is no tensor {name!r} to anchor{nearest(plain, self._known)}")

    @property
    def _accumulated(self) -> int:
        return int(self._options.accumulationFactor) if self._options.enableGradientAccumulation else 1

    @property
    def _batches(self) -> int:
        return self._flow.batchesPerStep() * self._accumulated

    def _ready(self, what: str) -> PoplarExecutor:
        if self._executor is None:
            raise popart_exception(f"{what}: the session is not prepared; call prepareDevice first")
        return self._executor

    # preparing

    def prepareDevice(self, loadEngine: bool = True) -> None:
        """Compile the model.

        Parameters
        ----------
        loadEngine:
            It is loaded in any case.

        Raises
        ------
        OutOfMemoryException
            If it does not fit.
        popart_exception
            For a model that is wrong.
        """
        try:
            self._prepare()
        except GraphMemoryAllocationError as problem:
            raise OutOfMemoryException(str(problem)) from problem
        except ModelError as problem:
            raise popart_exception(str(problem)) from problem
        except UnknownHandle as problem:
            wanted = [name for name in self._flow.anchors() if name.startswith(GRADIENT)]
            without = next((name for name in wanted if repr(self._gradient_name(name)) in str(problem)), None)
            if without is None:
                raise
            raise popart_exception(
                f"DataFlow: {without}: the loss does not depend on {without.removeprefix(GRADIENT)}"
            ) from problem

    def _prepare(self) -> None:
        proto = ModelProto()
        proto.CopyFrom(self._proto)
        del proto.graph.output[:]
        plain = [name for name in self._flow.anchors() if not name.startswith(GRADIENT)]
        names = list(dict.fromkeys([*plain, *([] if self._loss is None else [self._loss])]))
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        self._source = ModelSource.read(proto, Precision())
        given = {one.name: self._meta(one) for one in proto.graph.input if one.name not in self._source.initializers}
        if self._optimizer is None:
            placed = self._placed(Planner(self._source, given).plan())
            self._plan = placed.plan
            if all(value.known for value in self._plan.outputs.values()):
                raise popart_exception("all anchors are known without the device: nothing depends on inputs")
            self._module = PlannedModule(self._plan, self._source.initializers, placed.blocks)
            self._executor = inferenceModel(self._module.eval(), placed.of_options(self._torch_options()))
            self._executor.hold_weights()
        else:
            gradients = [name.removeprefix(GRADIENT) for name in self._flow.anchors() if name.startswith(GRADIENT)]
            placed = self._placed(plan_for_training(self._source, given, gradients))
            self._plan = placed.plan
            self._check_loss(self._plan)
            self._module = TrainableGraph(self._plan, self._source, self._loss, placed.blocks)
            self._host = {name: one.detach().clone() for name, one in self._module.weight_tensors().items()}
            options = placed.of_options(self._torch_options())
            for name in self._flow.anchors():
                if name.startswith(GRADIENT):
                    options.anchorTensor(name, self._gradient_name(name), OutputMode.All)
            self._executor = trainingModel(self._module, options, self._optimizer.for_torch(self._module.weight_tensors()))
        self._executor.compile(*(self._flat(one.name, None) for one in self._plan.inputs))
        if self._seed is not None:
            self.setRandomSeed(self._seed)

    def _check_loss(self, plan: GraphPlan) -> None:
        assert self._loss is not None
        shape, type = list(plan.outputs[self._loss].tensor.shape), plan.outputs[self._loss].tensor.dtype
        if plan.outputs[self._loss].tensor.numel() != 1 or not type.is_floating_point:
            raise popart_exception(
                f"TrainingSession: the loss {self._loss} is {dtype_name(type)} {shape}, and is to be one float: reduce it"
            )

    def _placed(self, plan: GraphPlan) -> PlacedPlan:
        batches = self._flow.batchesPerStep() if self._optimizer is None or self._accumulated == 1 else self._accumulated
        return placed_plan(plan, self._options, self._device.numIpus, batches)

    def _gradient_name(self, anchor: str) -> str:
        assert self._plan is not None
        assert self._module is not None
        name, places = anchor.removeprefix(GRADIENT), {**self._module.weight_names(), **self._module.probe_names()}
        if name not in places:
            raise popart_exception(f"DataFlow: {name} has no gradient: it is read as a number, or within a graph of a node")
        return f"{GRADIENT}{places[name]}"

    def _meta(self, one: onnx.ValueInfoProto) -> torch.Tensor:
        shape = [size.dim_value for size in one.type.tensor_type.shape.dim]
        if one.name in self._shapes:
            shape = self._shapes[one.name].shape()
        assert self._source is not None
        return torch.empty(shape, dtype=self._source.precision.dtype(one.type.tensor_type.elem_type), device="meta")

    def _torch_options(self) -> Options:
        own, options = self._options, Options()
        options.deviceIterations(self._flow.batchesPerStep()).outputMode(OutputMode.All)
        if self._optimizer is not None:
            options.Training.gradientAccumulation(self._accumulated)
            options.Training.accumulationAndReplicationReductionType(
                TORCH_REDUCTIONS[int(own.accumulationAndReplicationReductionType)]
            )
        options.Precision.enableStochasticRounding(bool(own.enableStochasticRounding))
        if own.engineOptions:
            options._Popart.setEngineOptions(own.engineOptions)
        for name in ("convolutionOptions", "matmulOptions", "lstmOptions"):
            if getattr(own, name):
                options._Popart.set(name, getattr(own, name))
        if own.partialsTypeMatMuls:
            options._Popart.set("partialsTypeMatMuls", own.partialsTypeMatMuls)
        options._Popart.set("autoRecomputation", int(own.autoRecomputation))
        if own.enableFloatingPointChecks:
            options.Precision.enableFloatingPointExceptions(True)
        return options

    # steps

    def initAnchorArrays(self) -> dict[str, Array]:
        """Arrays for all anchors, of their shapes, which `run` fills; `popart_exception` before `prepareDevice`."""
        self._ready("initAnchorArrays")
        return {name: np.zeros(self._anchor_shape(name), self._anchor_dtype(name)) for name in self._flow.anchors()}

    def _anchor_like(self, name: str) -> torch.Tensor:
        assert self._plan is not None
        if name.startswith(GRADIENT):
            return {**self._plan.weights, **self._plan.probes}[name.removeprefix(GRADIENT)].tensor
        return self._plan.outputs[name].tensor

    def _anchor_dtype(self, name: str) -> Any:
        return torch.empty(0, dtype=self._anchor_like(name).dtype).numpy().dtype

    def _anchor_shape(self, name: str) -> list[int]:
        kind = self._flow.art(name)
        batches = {"All": self._flow.batchesPerStep(), "EveryN": self._flow.batchesPerStep() // kind.rp()}.get(kind.id().name, 1)
        return [*(size for size in (batches, self._accumulated) if size != 1), *self._anchor_like(name).shape]

    def run(self, stepio: PyStepIO | PyStepIOCallback, debugName: str = "") -> None:
        """Run a step: so many batches as the DataFlow says.

        Parameters
        ----------
        stepio:
            Arrays of inputs, and of anchors, which are filled.
        debugName:
            What the step is called.

        Raises
        ------
        popart_exception
            Before `prepareDevice`, and for arrays that are missing or have other shapes.
        """
        executor = self._ready("run")
        assert self._plan is not None
        if isinstance(stepio, PyStepIOCallback):
            inputs = {one.name: self._called(one.name, stepio) for one in self._plan.inputs}
        elif isinstance(stepio, PyStepIO):
            names = [one.name for one in self._plan.inputs]
            unknown = [name for name in stepio.inputs if name not in names]
            if unknown:
                weight = "; it is a weight" if unknown[0] in self._weight_names() else nearest(unknown[0], names)
                raise popart_exception(f"run: the model has no input {unknown[0]!r}{weight}")
            others = [name for name in stepio.outputs if name not in self._flow.anchors()]
            if others:
                raise popart_exception(f"run: {others[0]!r} is no anchor of the DataFlow{nearest(others[0], self._flow.anchors())}")
            inputs = stepio.inputs
        else:
            raise popart_exception(f"run takes a PyStepIO or PyStepIOCallback, got {stepio!r}")
        for one in self._plan.inputs:
            if one.name not in inputs:
                raise popart_exception(f"run: the input {one.name} is missing")
        results = executor(*(self._flat(one.name, inputs[one.name]) for one in self._plan.inputs))
        self._hand_out(self._by_name(results, executor), stepio)

    def _called(self, name: str, stepio: PyStepIOCallback) -> Array:
        rows: list[Array] = []
        for _ in range(self._batches):
            row = np.array(stepio.input(name, False))
            if rows and row.shape != rows[0].shape:
                raise popart_exception(f"run: the input {name} has shape {list(rows[0].shape)}, and then {list(row.shape)}")
            rows.append(row)
            stepio.input_complete(name)
        return np.stack(rows)

    def _flat(self, name: str, given: Any) -> torch.Tensor:
        """An input's batches one behind the other, as poptorch takes them; zeros for None."""
        assert self._plan is not None
        like = next(one.tensor for one in self._plan.inputs if one.name == name)
        shape = list(like.shape)
        if not shape and self._batches > 1:
            raise popart_exception(f"the input {name} has no dimensions, and a step has {self._batches} batches: give it one")
        whole = [self._batches * shape[0], *shape[1:]] if shape else []
        if given is None:
            return torch.zeros(whole, dtype=like.dtype)
        array = np.asarray(given)
        steps = [self._flow.batchesPerStep(), self._accumulated]
        wanted = [*(size for size in steps if size != 1), *shape]
        if list(array.shape) not in (wanted, [*steps, *shape], [self._batches, *shape]):
            raise popart_exception(
                f"run: the input {name} has shape {wanted}, which is batchesPerStep, the accumulation factor and the tensor's "
                f"shape, without those of 1, got {list(array.shape)}"
            )
        tensor = torch.from_numpy(np.array(array.reshape(whole), order="C"))  # also of no dimensions
        if tensor.dtype != like.dtype:
            raise popart_exception(f"run: the input {name} is {dtype_name(like.dtype)}, got {array.dtype}")
        return tensor

    def _by_name(self, results: Any, executor: PoplarExecutor) -> dict[str, Array]:
        """What each anchor is in each batch: [batches, *shape]."""
        assert self._plan is not None
        names = [name for name, value in self._plan.outputs.items() if not value.known]
        if self._loss is not None:
            names = [*(name for name in names if name != self._loss), self._loss]
        found = dict(zip(names, results, strict=True))
        anchors = {}
        for name in self._flow.anchors():
            like = self._anchor_like(name)
            if name.startswith(GRADIENT):
                value = executor.getAnchoredTensor(name)
            else:
                value = found[name] if name in found else like.expand(self._batches, *like.shape)
            anchors[name] = value.to(like.dtype).reshape(self._batches, *like.shape).numpy()
        return anchors

    def _hand_out(self, values: Mapping[str, Array], stepio: PyStepIO | PyStepIOCallback) -> None:
        for name, value in values.items():
            batches = value.reshape(self._flow.batchesPerStep(), self._accumulated, *value.shape[1:])
            kind = self._flow.art(name)
            chosen = {
                "All": lambda rows, kind: rows,
                "EveryN": lambda rows, kind: rows[kind.rp() - 1 :: kind.rp()],
                "Final": lambda rows, kind: rows[-1:],
                "Sum": lambda rows, kind: rows.sum(0, keepdims=True, dtype=rows.dtype),
            }[kind.id().name](batches, kind)
            if isinstance(stepio, PyStepIOCallback):
                for row in chosen.reshape(-1, *value.shape[1:]):
                    target = stepio.output(name)
                    np.copyto(target, row.reshape(np.shape(target)))
                    stepio.output_complete(name)
                continue
            if name not in stepio.outputs:
                raise popart_exception(f"run: the anchor {name} has no array; initAnchorArrays makes them")
            target, shape = stepio.outputs[name], self._anchor_shape(name)
            if not isinstance(target, np.ndarray):
                raise popart_exception(f"run: the anchor {name} takes an array of NumPy, got {type(target).__name__}")
            if target.dtype != chosen.dtype:
                raise popart_exception(f"run: the anchor {name} is {chosen.dtype}, got an array of {target.dtype}")
            if [one for one in target.shape if one != 1] != [one for one in shape if one != 1]:
                raise popart_exception(f"run: the anchor {name} has shape {shape}, got an array of {list(np.shape(target))}")
            np.copyto(target, chosen.reshape(target.shape))

    # weights

    def weightsFromHost(self) -> None:
        """Give the device the weights; `popart_exception` before `prepareDevice`."""
        executor = self._ready("weightsFromHost")
        assert self._module is not None
        if self._host:
            executor.copyWeightsToHost()  # so that nothing newer is on the device
            with torch.no_grad():
                for name, tensor in self._module.weight_tensors().items():
                    tensor.copy_(self._host[name])
        executor.copyWeightsToDevice()

    def weightsToHost(self) -> None:
        """Take the weights from the device; `popart_exception` before `prepareDevice`."""
        self._ready("weightsToHost").copyWeightsToHost()
        assert self._module is not None
        self._host = {name: one.detach().clone() for name, one in self._module.weight_tensors().items()}

    def weights(self) -> dict[str, Array]:
        """The weights as they are on the host, by name: those of the model, or what `weightsToHost` took last."""
        self._ready("weights")
        assert self._source is not None
        return {name: self._host.get(name, tensor).numpy().copy() for name, tensor in self._source.initializers.items()}

    def _weight_names(self) -> list[str]:
        """The names of weights, trained or not."""
        return [one.name for one in self._proto.graph.initializer]

    def readWeights(self, weights: PyWeightsIO) -> None:
        """Copy weights, which `weightsToHost` has taken from the device, into arrays.

        Parameters
        ----------
        weights:
            Arrays by name.

        Raises
        ------
        popart_exception
            For names that are no weights, and arrays of other shapes.
        """
        if not isinstance(weights, PyWeightsIO):
            raise popart_exception(f"readWeights takes a PyWeightsIO, got {weights!r}")
        there = self.weights()
        for name, array in weights.weights.items():
            if name not in there:
                raise popart_exception(f"readWeights: there is no weight {name!r}{nearest(name, there)}")
            if np.shape(array) != there[name].shape:
                raise popart_exception(f"readWeights: {name} has shape {list(there[name].shape)}, got {list(np.shape(array))}")
            if not isinstance(array, np.ndarray) or array.dtype != there[name].dtype:
                kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
                raise popart_exception(f"readWeights: {name} takes an array of {there[name].dtype}, got {kind}")
            np.copyto(array, there[name])

    def modelToHost(self, filename: str | os.PathLike[str]) -> None:
        """Write the model with its weights as they are on the device.

        Parameters
        ----------
        filename:
            The file.
        """
        self.weightsToHost()
        there = self.weights()
        proto = ModelProto()
        proto.CopyFrom(self._proto)
        for one in proto.graph.initializer:
            one.CopyFrom(numpy_helper.from_array(there[one.name], one.name))
        try:
            Path(filename).write_bytes(proto.SerializeToString())
        except OSError as problem:
            raise popart_exception(f"modelToHost: {filename}: {problem.strerror or problem}") from None

    def setRandomSeed(self, seed: int) -> None:
        """Set the state of random numbers.

        Parameters
        ----------
        seed:
            A whole number.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise popart_exception(f"setRandomSeed takes a whole number, got {seed!r}")
        self._seed = int(seed)
        if self._executor is not None and self._executor.rng_state:
            self._executor.rng_state = [self._seed & 0xFFFFFFFF, 0]

    # what it costs

    def getCycleCount(self, debugName: str = "") -> int:
        """Tile cycles of the last step.

        Parameters
        ----------
        debugName:
            What the step is called.
        """
        return self._ready("getCycleCount").cycleCount()

    def getReport(self) -> Report:
        """The report of the last step; `popart_exception` before `prepareDevice`."""
        return self._ready("getReport").getReport()

    def getSummaryReport(self, resetProfile: bool = True) -> str:
        """The report in words.

        Parameters
        ----------
        resetProfile:
            The next step begins anew in any case.
        """
        return summary(self.getReport())

    def compileAndExport(self, filename: str | os.PathLike[str]) -> None:
        """Compile the model, and write its executable.

        Parameters
        ----------
        filename:
            The file.
        """
        if self._executor is None:
            self.prepareDevice()
        self._ready("compileAndExport").save(filename, export_model=False)


class InferenceSession(_Session):
    """Runs a model, in this order: ``prepareDevice``, ``initAnchorArrays``, ``run(PyStepIO(inputs, anchors))``.

    Parameters
    ----------
    fnModel:
        The model: bytes, as `Builder.getModelProto` gives them, or the name of a file.
    dataFlow:
        How many batches a step has, and which tensors come back.
    deviceInfo:
        A device that `DeviceManager` gives.
    inputShapeInfo:
        Shapes of inputs that the model leaves open.
    patterns:
        Which change nothing here.
    userOptions:
        `SessionOptions`; None: as they are at first.
    name:
        What the session is called.

    Raises
    ------
    popart_exception
        For arguments of other types, and anchors that the model does not have.
    """

    def __init__(
        self,
        fnModel: Any,
        dataFlow: DataFlow,
        deviceInfo: DeviceInfo,
        inputShapeInfo: InputShapeInfo | None = None,
        patterns: Any = None,
        userOptions: SessionOptions | None = None,
        name: str = "inference",
    ) -> None:
        super().__init__(fnModel, dataFlow, deviceInfo, inputShapeInfo, patterns, userOptions, None, None)


class TrainingSession(_Session):
    """Trains a model's weights: the initializers of floats, by the loss, which is a tensor.

    Parameters
    ----------
    fnModel:
        The model: bytes, as `Builder.getModelProto` gives them, or the name of a file.
    dataFlow:
        How many batches a step has, and which tensors come back.
    loss:
        The tensor that is minimised.
    optimizer:
        How weights are updated, such as ``ConstSGD(0.1)``.
    deviceInfo:
        A device that `DeviceManager` gives.
    inputShapeInfo:
        Shapes of inputs that the model leaves open.
    patterns:
        Which change nothing here.
    userOptions:
        `SessionOptions`; None: as they are at first.
    name:
        What the session is called.

    Raises
    ------
    popart_exception
        For arguments of other types, and anchors that the model does not have.
    """

    def __init__(  # noqa: PLR0913 (PopART's arguments)
        self,
        fnModel: Any,
        dataFlow: DataFlow,
        loss: str,
        optimizer: PopartOptimizer,
        deviceInfo: DeviceInfo,
        inputShapeInfo: InputShapeInfo | None = None,
        patterns: Any = None,
        userOptions: SessionOptions | None = None,
        name: str = "training",
    ) -> None:
        if not isinstance(optimizer, PopartOptimizer):
            raise popart_exception(f"TrainingSession takes an optimizer, such as ConstSGD(0.1), got {optimizer!r}")
        super().__init__(fnModel, dataFlow, deviceInfo, inputShapeInfo, patterns, userOptions, loss, optimizer)

    def updateOptimizerFromHost(self, optimizer: PopartOptimizer) -> None:
        """Take an optimiser's numbers from now on; nothing is compiled again.

        Parameters
        ----------
        optimizer:
            Of the session's kind.

        Raises
        ------
        popart_exception
            For one of another kind, and before `prepareDevice`.
        """
        executor = self._ready("updateOptimizerFromHost")
        if not isinstance(optimizer, PopartOptimizer):
            raise popart_exception(f"updateOptimizerFromHost takes an optimizer, such as ConstSGD(0.1), got {optimizer!r}")
        assert self._optimizer is not None
        optimizer.check_replaces(self._optimizer)
        assert self._module is not None
        optimizer = deepcopy(optimizer)
        executor.setOptimizer(optimizer.for_torch(self._module.weight_tensors()))
        self._optimizer = optimizer
