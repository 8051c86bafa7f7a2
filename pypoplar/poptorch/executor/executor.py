"""The wrapper of a module that users call: it compiles at the first call and keeps weights of host and device equal."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Container, Iterable, Mapping
from datetime import timedelta
from typing import Any, SupportsIndex

import torch

from pypoplar.engine.cost.class_runs import Samples
from pypoplar.errors import InvalidOption, PoplarRuntimeError, PoplarTypeError, UnknownHandle
from pypoplar.poptorch.asserted_errors import AssertedState
from pypoplar.poptorch.capture.capturing import unflatten
from pypoplar.poptorch.enums import MeanReductionStrategy, OutputMode, ReductionType
from pypoplar.poptorch.executor.building import Built, build
from pypoplar.poptorch.executor.call_arguments import (
    CallArguments,
    in_order,
    optional_arguments,
    outside_inference_mode,
    tell_of_gradients,
)
from pypoplar.poptorch.executor.compile_hooks import POST_COMPILE, PRE_COMPILE, call_hooks
from pypoplar.poptorch.executor.kept_model import KeptModel
from pypoplar.poptorch.executor.model_file import ExportedModel, ModelFile, pack, read_model, write_model
from pypoplar.poptorch.executor.model_prediction import predicted
from pypoplar.poptorch.executor.model_settings import ModelSettings
from pypoplar.poptorch.executor.module_state import ModuleState, changed_values, tensors_of
from pypoplar.poptorch.executor.replicated_parameter import ReplicatedParameter
from pypoplar.poptorch.executor.transfer_times import NONE, Counters, TransferTimes, latency
from pypoplar.poptorch.explicit_backward import refuse_backward
from pypoplar.poptorch.optim import Optimizer
from pypoplar.poptorch.optim.optimizer_kinds import tell_of_own_code
from pypoplar.poptorch.options import Options, ShardedExecution
from pypoplar.poptorch.user_log import logger
from pypoplar.prediction.prediction import Prediction
from pypoplar.program.assumptions import Assumption
from pypoplar.report.report import Report
from pypoplar.spelling import nearest_or_all
from pypoplar.tracebacks import public
from pypoplar.watchers import unwatched, watchers

MIXING = 0x9E3779B1  # odd, so that no two high words are mixed alike


@public
class PoplarExecutor:
    """A module on the simulated IPU, made by `trainingModel` or `inferenceModel`. Call it as you would the module.

    The first call compiles for the shapes of its arguments. After a training call the module has the new weights; weights that
    change on the host go to the device with the next call. What is no method here is the module's, such as `state_dict` and
    `parameters`.

    Raises
    ------
    CaptureError
        From the first call: for a module that cannot become a graph, with every line.
    UnsupportedOperation
        From the first call: for operations that are not there, all of them.
    PoplarRuntimeError
        From calls of a model that was made for no device.
    """

    def __init__(
        self, model: torch.nn.Module, options: Options | None = None, optimizer: torch.optim.Optimizer | None = None
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise PoplarTypeError(f"a model is a torch.nn.Module, got {model!r}")
        if not isinstance(options, Options | None):
            raise PoplarTypeError(f"options are poptorch.Options, got {options!r}")
        if not isinstance(optimizer, torch.optim.Optimizer | None):
            raise PoplarTypeError(f"an optimizer is one of torch.optim or poptorch.optim, got {optimizer!r}")
        chosen = Options() if options is None else options.clone()
        if chosen.defaultOutputMode():
            chosen.outputMode(OutputMode.All if optimizer is None else OutputMode.Final)
        if optimizer is None and chosen.Training.gradient_accumulation != 1:
            raise InvalidOption(_not_accumulated(chosen))
        if optimizer is not None:
            _average_as_they_come(chosen, optimizer)
            tell_of_own_code(optimizer)
        for taken in filter(None, (chosen, options)):  # what changes there later would not reach the model
            taken._freeze()
        self._user_model, self._options, self._optimizer = model, chosen, optimizer
        self._module = copy.copy(model)  # `train()` and `eval()` of the user's module do not reach it later
        self._settings = ModelSettings.of(chosen, optimizer is not None)
        self._built: Built | None = None
        self._given: CallArguments | None = None  # what it was compiled for
        self._state: ModuleState | None = None
        self._attached = False
        self._seconds = 0.0
        self._on_device: dict[str, torch.Tensor] = {}  # the values that parameters and buffers have there; empty: any
        self._held = False  # whether nobody changes the module's weights
        self._before: dict[str, torch.Tensor] = {}  # the same when the call began that runs, or the last one
        self._reading = False  # whether that call has begun to give the module the device's values
        for watcher in watchers():
            watcher.makes(self)

    @property
    def model(self) -> torch.nn.Module:
        """The module itself, which training changes in place."""
        return self._user_model

    @property
    def options(self) -> Options:
        """What the model was made with, a copy of the caller's `Options` that cannot change."""
        return self._options

    def __repr__(self) -> str:
        return repr(self._user_model)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_user_model" not in self.__dict__:
            raise AttributeError(name)
        found = getattr(self.__dict__["_user_model"], name)
        replicated = isinstance(found, torch.nn.Parameter) and self._options.replication_factor > 1
        return ReplicatedParameter(name, found) if replicated else found

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if self._built is not None:
            raise PoplarTypeError(
                "a compiled model cannot be copied or pickled: take its module, which is its `model`, or that one's state_dict(); "
                "save() writes the executable, too"
            )
        return super().__reduce_ex__(protocol)

    # calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One call: as many batches as `deviceIterations` and gradient accumulation say. The first one compiles."""
        if not self._settings.runs:
            raise AssertedState(
                "Trying to run a model on an offline device (ConnectionType.Never): compile() it, or make it for a device"
            )
        if self._given is not None and self._given.lacks(optional_arguments(self._module, args, kwargs)):
            logger.warning("%s is compiled anew: other optional tensors are given", type(self._user_model).__name__)
            self._let_go()
        if self._built is None:
            self.compile(*args, **kwargs)
        self._part_groups(args, kwargs)
        built = self._compiled("a call")
        assert self._given is not None
        assert self._state is not None
        given = in_order(self._module, args, kwargs)
        leaves = self._given.check(given, built.compiled.arguments)
        tell_of_gradients(leaves, built.update is not None)
        if not self._held:
            self._state.check(self._module)
        if not self._attached:
            self.attachToDevice()
        self._write_changed()
        if built.states is not None and self._optimizer is not None:
            built.states.update.tell_changes(self._optimizer)
            built.states.write_changed(self._optimizer)
            built.states.begin()
        self._before, self._reading = self._on_device, False
        try:
            outputs = built.compiled.run(leaves)
            if built.states is not None or built.facts.buffers:
                self._read(built, tensors_of(self._module))
            results = unflatten(built.facts.structure, outputs)
            refuse_backward(results)
            if built.states is not None:
                built.states.stepped()
            built.compiled.change(leaves)
            built.compiled.end()
        except BaseException as problem:
            if built.compiled.begun:
                place = built.compiled.where()
                problem.add_note(f"The call failed in {place}. Weights and states are as before; the model can be called again.")
            self._settle()
            raise
        if self._options._Popart.options["instrumentWithHardwareCycleCounter"]:
            logger.debug("the call took %d cycles", self.cycleCount())
        return results

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for arguments like these, and run nothing. A model that is compiled stays as it is.

        Parameters
        ----------
        args, kwargs:
            Arguments of a call, of which shapes and types count.

        Raises
        ------
        CaptureError
            For a module that cannot become a graph.
        UnsupportedOperation
            For operations that are not there.
        """
        if self._built is not None:
            logger.warning("compile(): the model is compiled already, and stays as it is")
            return
        self._compile(args, kwargs, None)

    def predict(
        self, *args: Any, sample: Samples | None = None, assumptions: Iterable[Assumption] = (), **kwargs: Any
    ) -> Prediction:
        """Find what a call would cost, without running it: nothing is loaded, and model and module stay as they are.

        Tensors of the device "meta", which have no elements, do for the module and for arguments, so that weights need not fit
        the host. Where the model does not fit the IPU, it is priced all the same, and `Prediction.does_not_fit` says so.

        Parameters
        ----------
        args:
            Arguments of a call, of which shapes and types count. The rows of the first of them are the call's items.
        sample, assumptions:
            As of `Engine`, for codelets and control that data decide.
        kwargs:
            Further arguments of the call, by name.

        Returns
        -------
        Prediction
            Items in a second, and where the time goes.

        Raises
        ------
        CaptureError
            For a module that cannot become a graph.
        UnsupportedOperation
            For operations that are not there.
        ControlProgramError
            Where data decide what it costs, and nobody has said which.
        """
        args, kwargs = in_order(self._module, args, kwargs, devices=("cpu", "meta"))
        return predicted(self._module, args, kwargs, self._settings, self._optimizer, sample, assumptions)

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any], saved: KeptModel | None) -> None:
        for watcher in watchers():
            watcher.calls(self, args, kwargs)
        start = time.perf_counter()
        args, kwargs = in_order(self._module, args, kwargs)
        call_hooks(PRE_COMPILE)
        try:
            with torch.inference_mode(False):  # in which PyTorch's export would fail, and with tensors that were made in it, too
                args, kwargs = outside_inference_mode((args, kwargs))
                with unwatched():  # who watches was told of the model: its engine is none of the program's
                    self._built = build(self._module, args, kwargs, self._settings, self._optimizer, saved)
            call_hooks(POST_COMPILE)
            self._given, self._on_device, self._attached = (
                CallArguments.of((args, kwargs), optional_arguments(self._module, args, kwargs)),
                {},
                self._settings.runs,
            )
            self._begin(self._built)
        except BaseException:
            self._let_go()
            raise
        self._seconds = time.perf_counter() - start

    def _begin(self, built: Built) -> None:
        """Make ready for the first call."""
        used = [one.name for one in built.compiled.state]
        updated = None if built.update is None else built.update.groups
        self._state = ModuleState.of(self._module, used, updated, built.facts.buffers)
        if built.states is not None:
            built.states.settle = self._settle
        seed = self._options.random_seed if self._options.exists("random_seed") else torch.initial_seed()
        built.compiled.random_state = [_word(seed), 0]
        if self._optimizer is not None:
            self.setOptimizer(self._optimizer)

    def _let_go(self) -> None:
        """Be as before the compilation. The optimiser keeps the states."""
        if self._built is not None and self._built.states is not None:
            self._built.states.detach()
        self._built, self._given, self._attached = None, None, False

    def _part_groups(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Compile anew with a group for each parameter, if those of one group have been given numbers of their own."""
        optimizer, states = self._optimizer, None if self._built is None else self._built.states
        whole = None if states is None or not isinstance(optimizer, Optimizer) else states.in_parts(optimizer)
        if whole is None:
            return
        assert isinstance(optimizer, Optimizer)
        logger.warning("the model is compiled anew: the optimiser's state has other numbers for each parameter of a group")
        optimizer._state_dict, optimizer.ipu_state_is_dirty = whole, True  # by which the groups are parted
        self._let_go()
        self.compile(*args, **kwargs)
        optimizer._state_dict, optimizer.ipu_state_is_dirty = whole, True

    def isCompiled(self) -> bool:
        """Whether the model has an executable, from its first call, `compile` or `loadExecutable` on."""
        return self._built is not None

    def compilationTime(self) -> timedelta:
        """How long capture, lowering and compilation took; `PoplarRuntimeError` before the model is compiled."""
        if self._built is None:
            raise PoplarRuntimeError("Please compile the model before obtaining compilation time.")
        return timedelta(seconds=self._seconds)

    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Give the device an optimiser's numbers, such as another learning rate; nothing is compiled again.

        Parameters
        ----------
        optimizer:
            The model's, or another object of the same kind for the same parameters. Its states go to the device, if it has some;
            else the device's stay.

        Raises
        ------
        InvalidOption
            For an inference model, and for settings that are constants of the program.
        PoplarTypeError
            For what is no optimiser.
        """
        if self._optimizer is None:
            raise InvalidOption("setOptimizer: an inference model has no optimizer")
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise PoplarTypeError(f"setOptimizer takes an optimizer of torch.optim or poptorch.optim, got {optimizer!r}")
        if optimizer is not self._optimizer:
            tell_of_own_code(optimizer)
        if self._built is not None and self._built.states is not None:
            self._settle()
            for handle, number in self._built.states.update.numbers(optimizer).items():
                self._built.compiled.write_number(handle, number)
            self._built.states.leave_numbers(optimizer)
            if self._settings.runs:  # else there is no device that has states
                self._built.states.attach(optimizer)
        self._optimizer = optimizer

    # weights

    def copyWeightsToDevice(self) -> None:
        """Give the device the module's parameters and buffers. A call does so by itself where they changed."""
        compiled, tensors = self._compiled("copyWeightsToDevice").compiled, self._tensors()
        self._on_device = {}
        compiled.write(tensors)
        self._note(tensors)

    def copyWeightsToHost(self) -> None:
        """Give the module the parameters and buffers of the device. A training call does so by itself."""
        built = self._compiled("copyWeightsToHost")
        if not self._on_device:  # nothing has been written to the device yet
            self.copyWeightsToDevice()
        self._read(built, self._tensors())

    def copyWeightsToHostIfNeeded(self) -> bool:
        """Whether the module lacked the device's weights: False, since it has them after each call."""
        return False

    def copyNamedBuffersToDevice(self) -> None:
        """Give the device the module's buffers, and its parameters with them.

        Raises
        ------
        PoplarRuntimeError
            Unless `Options.updatableNamedBuffers` names one.
        """
        if not self._settings.named_buffers:
            raise PoplarRuntimeError(
                "copyNamedBuffersToDevice: Options.updatableNamedBuffers names no buffer; name those that the program writes, or "
                "leave the call out: values that change on the host go to the device with the next call of the model"
            )
        self.copyWeightsToDevice()

    def load_state_dict(self, state_dict: Mapping[str, torch.Tensor], strict: bool = True) -> Any:
        """Load the module's state; it goes to the device with the next call.

        Parameters
        ----------
        state_dict:
            Tensors by name.
        strict:
            Whether the names have to be those of the module.

        Returns
        -------
        NamedTuple
            What PyTorch's `load_state_dict` returns: names that were missing, and names that were not expected.
        """
        return self._user_model.load_state_dict(state_dict, strict)

    # the device

    def isAttachedToDevice(self) -> bool:
        """Whether the model has its device, which calls need and take by themselves."""
        return self._attached

    def detachFromDevice(self) -> None:
        """Give the device free for other models. The module has the weights; a call attaches again.

        Raises
        ------
        PoplarRuntimeError
            If the model is not compiled, or not attached.
        """
        self._compiled("detachFromDevice")
        if not self._attached:
            raise PoplarRuntimeError("detachFromDevice: the model is not attached to a device")
        self._attached = False

    def attachToDevice(self) -> None:
        """Take the device again, with the module's weights.

        Raises
        ------
        PoplarRuntimeError
            If the model is not compiled, attached already, or made for no device (`ConnectionType.Never`).
        """
        self._compiled("attachToDevice")
        if self._attached:
            raise PoplarRuntimeError("attachToDevice: the model is attached to its device already")
        if not self._settings.runs:
            raise PoplarRuntimeError("attachToDevice: the model was made for no device (ConnectionType.Never)")
        self._attached = True
        self._on_device = {}

    def destroy(self) -> None:
        """Let go of the executable and the device. The module stays, and the next call compiles anew, for other arguments too."""
        self._let_go()

    # what calls cost and what they made inside

    def cycleCount(self) -> int:
        """Tile cycles of the last call; `PoplarRuntimeError` before the first. It needs no option."""
        execution = None if self._built is None else self.getReport().execution
        if execution is None:
            raise PoplarRuntimeError("Please run the model at least once before obtaining cycle count.")
        return int(execution.totalCycles.total)

    def getReport(self) -> Report:
        """The `pva.Report` of the last call: cycles, memory and exchange, by the module's paths and lines."""
        return self._compiled("getReport").compiled.engine.getReport()

    def getTensorNames(self) -> list[str]:
        """The names that `Options.anchorTensor` takes: parameters, ``Gradient___PARAMETER``, and ``module/path/operation:N``."""
        return list(self._compiled("getTensorNames").names)

    def getAnchoredTensor(self, short_name: str) -> torch.Tensor:
        """An anchor's value in the last call.

        Parameters
        ----------
        short_name:
            The name that `Options.anchorTensor` gave it.

        Returns
        -------
        torch.Tensor
            As many batches of it as the anchor's output mode says.

        Raises
        ------
        UnknownHandle
            If there is no anchor of that name.
        """
        anchors = self._compiled("getAnchoredTensor").compiled.anchored()
        if short_name not in anchors:
            raise UnknownHandle(f"getAnchoredTensor: there is no anchor {short_name!r}{nearest_or_all(short_name, anchors)}")
        return anchors[short_name]

    @property
    def rng_state(self) -> list[int]:
        """The state of the device's random numbers: a seed and a count of batches; empty where nothing is random."""
        return self._compiled("rng_state").compiled.random_state

    @rng_state.setter
    def rng_state(self, state: Any) -> None:
        """The state of the device's random numbers: a seed and a count of batches; empty where nothing is random.

        It can be set to what it was. `PoplarTypeError` for anything else, `InvalidOption` where the model has no such state.
        """
        built, given = self._compiled("rng_state"), state if isinstance(state, list) else [None]
        if len(given) not in (0, 2) or any(type(word) is not int for word in given):
            raise PoplarTypeError(f"rng_state takes what rng_state was, a list of two whole numbers, got {state!r}")
        if bool(state) != built.compiled.seeded:
            has = "random numbers" if built.compiled.seeded else "no random numbers"
            raise InvalidOption(f"rng_state: the model has {has}, got the state {state}")
        built.compiled.random_state = list(state)

    def getPerfCounters(self) -> Counters:
        """When the last call moved its arguments and results, by the simulated clock.

        Returns
        -------
        dict
            For ``"input"``, ``"input_complete"``, ``"output"`` and ``"output_complete"`` a list for each tensor of the seconds at
            which its transfer began, or was done, in each batch that has one; replicas one after the other. Transfers that share a
            host sync begin and end together. Nothing before the model is compiled.

        Raises
        ------
        PoplarRuntimeError
            For a call of more steps than the report records (65,536).
        """
        if self._built is None:
            return dict(NONE)
        compiled = self._built.compiled
        outputs = [output.name for output in compiled.outputs if output.buffer is not None]
        inputs = [f"input/{name}" for name in compiled.inputs]
        return TransferTimes(compiled.engine.executable, self.getReport()).counters(
            inputs, outputs, compiled.batches.groups.replicas
        )

    def getLatency(self) -> tuple[float, float, float]:
        """Seconds from the first argument's request until the last result is on the host: least, most and mean of all batches."""
        return latency(self.getPerfCounters(), "input", min, "output_complete", max)

    def getHostIpuLatency(self) -> tuple[float, float, float]:
        """Seconds from the first argument's request until the last one is on the device: least, most and mean of all batches."""
        return latency(self.getPerfCounters(), "input", min, "input_complete", max)

    def getComputeLatency(self) -> tuple[float, float, float]:
        """Seconds from the last argument's arrival until the last result is there: least, most and mean of all batches."""
        return latency(self.getPerfCounters(), "input_complete", max, "output", max)

    def getIpuHostLatency(self) -> tuple[float, float, float]:
        """Seconds from the first result until the last one is on the host: least, most and mean of all batches."""
        return latency(self.getPerfCounters(), "output", min, "output_complete", max)

    # files

    def save(self, filename: str | os.PathLike[str], export_model: bool = True, save_rng_state: bool = True) -> None:
        """Write the executable to a file that `loadExecutable` reads.

        Parameters
        ----------
        filename:
            The file; in a directory it is ``model.poptorch``. Directories on the way are made.
        export_model:
            Whether the module, the optimiser and the options go with it, pickled, as `poptorch.load` needs them.
        save_rng_state:
            Whether the state of random numbers goes with it.

        Raises
        ------
        PoplarRuntimeError
            If the model is not compiled.
        """
        built = self._compiled("save")
        if built.states is not None:
            built.states.fetch()
        assert self._given is not None
        given, kept = self._given.like, built.kept.serialize()
        state = self.rng_state if save_rng_state else None
        exported = pack(ExportedModel(self._user_model, self._optimizer, self._options)) if export_model else None
        write_model(filename, ModelFile(kept, given, exported, state))

    def compileAndExport(self, filename: str | os.PathLike[str], *args: Any, export_model: bool = True, **kwargs: Any) -> None:
        """`compile` for arguments like these, and `save`.

        Parameters
        ----------
        filename:
            The file, as `save` takes it.
        args:
            Arguments of a call.
        export_model:
            Whether the module goes with it.
        kwargs:
            Arguments of a call, by name.
        """
        self.compile(*args, **kwargs)
        self.save(filename, export_model)

    def loadExecutable(self, filename: str | os.PathLike[str]) -> None:
        """Take the executable of a file that `save` wrote for the same module and options. Nothing that the file says is run.

        Parameters
        ----------
        filename:
            The file.

        Raises
        ------
        FileLoadError
            If it is no file of a model, or one of another module or options.
        """
        self._take(read_model(filename))

    def _take(self, file: ModelFile) -> None:
        args, kwargs = file.arguments
        self._compile(args, kwargs, KeptModel.deserialize(file.kept))
        if file.random_state is not None:
            self.rng_state = file.random_state

    # within

    def _compiled(self, what: str) -> Built:
        if self._built is None:
            raise AssertedState(
                f"Model has not been compiled or has been destroyed. {what}: call it, or its compile(), with a batch first"
            )
        self._settle()
        return self._built

    def _tensors(self) -> dict[str, torch.Tensor]:
        """The module's parameters and buffers, which are still those that it was compiled with."""
        if self._state is not None:
            self._state.check_tensors(self._module)
        return tensors_of(self._module)

    def _settle(self) -> None:
        """Undo the last call if it failed; what interrupts that, or Ctrl-C, leaves it to whatever needs the device next."""
        built = self._built
        if built is None or not built.compiled.begun:
            return
        built.compiled.restore()
        if self._reading:
            built.compiled.give(self._before, tensors_of(self._module))
        self._on_device = self._before if built.compiled.parted else {}
        if built.states is not None:
            built.states.undo()
        built.compiled.end()

    def _read(self, built: Built, tensors: Mapping[str, torch.Tensor]) -> None:
        """Give the module's parameters and buffers what the device has."""
        values = {name: value.reshape(tensors[name].shape).to(tensors[name].dtype) for name, value in built.compiled.read().items()}
        self._reading = True
        built.compiled.give(values, tensors)
        self._note({**tensors, **values}, values)

    def _note(self, tensors: Mapping[str, torch.Tensor], own: Container[str] = ()) -> None:
        """Keep what the device has, to see what changes on the host, in whatever way. Nobody else has those that are `own`."""
        self._on_device = {name: tensor if name in own else tensor.clone() for name, tensor in tensors.items()}

    def hold_weights(self) -> None:
        """Let calls look no more for what has changed in the module: for one of inference that only its maker has."""
        self._held = True

    def _write_changed(self) -> None:
        if self._held and self._on_device:
            return
        tensors, before = tensors_of(self._module), self._on_device
        changed = changed_values(tensors, before)
        if changed is None:
            self.copyWeightsToDevice()
        elif changed:
            compiled, tensors = self._compiled("a call").compiled, self._tensors()
            self._on_device = {}  # until all of them are there
            compiled.write(tensors, changed)
            self._on_device = {**before, **{name: tensors[name].clone() for name in changed}}


def _word(seed: int) -> int:
    """A seed of 64 bits as one of 32: itself where it fits, and others apart from it."""
    low, high = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    return (low ^ high * MIXING) & 0xFFFFFFFF


def _not_accumulated(options: Options) -> str:
    """Why an inference model refuses its options, in PopTorch's words."""
    told = (
        "You must set poptorch.Options().Training.gradientAccumulation to 1 or leave it as its default value (1) when running a "
        "poptorch.inferenceModel()."
    )
    stages = not isinstance(options._execution_strategy, ShardedExecution)
    instead = " Use poptorch.Options().deviceIterations to process a sufficient number of batches each run for pipelined execution"
    return f"{told}{instead} instead." if stages else told


def _average_as_they_come(options: Options, optimizer: torch.optim.Optimizer) -> None:
    """As PopTorch: gradients that are accumulated in halves are averaged as they come, so that their sum is not too large."""
    halves = getattr(optimizer, "accum_type", None) is torch.float16 and not getattr(optimizer, "use_combined_accum", False)
    training = options.Training
    if halves and training.accumulation_and_replication_reduction_type is ReductionType.Mean:
        training.setMeanAccumulationAndReplicationReductionStrategy(MeanReductionStrategy.Running)
