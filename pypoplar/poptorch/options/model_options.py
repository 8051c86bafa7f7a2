"""`Options`: all that a model and a data loader are told beside the module and the optimiser."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Self

import torch

from pypoplar.errors import InvalidOption, MissingFeature, PoplarError, PoplarTypeError
from pypoplar.poptorch import enums
from pypoplar.poptorch.enums import CommGroupType, ConnectionType, OutputMode, SyncPattern
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.options.config_file import apply_call, read_calls
from pypoplar.poptorch.options.distributed_options import DistributedOptions, JitOptions
from pypoplar.poptorch.options.execution_strategies import ExecutionStrategy, PipelinedExecution
from pypoplar.poptorch.options.option_values import OptionValues
from pypoplar.poptorch.options.popart_options import PopartOptions
from pypoplar.poptorch.options.precision_options import PrecisionOptions
from pypoplar.poptorch.options.replica_groups import check_divides
from pypoplar.poptorch.options.tensor_locations import TensorLocationOptions
from pypoplar.poptorch.options.training_options import TrainingOptions
from pypoplar.poptorch.user_log import logger, say_once
from pypoplar.spelling import nearest
from pypoplar.tracebacks import public

DEFAULTS_VARIABLE = "POPTORCH_DEFAULT_OPTIONS"
CACHE_VARIABLE = "POPTORCH_CACHE_DIR"
ENGINE_VARIABLE = "POPLAR_ENGINE_OPTIONS"
ENGINE_PROFILING = ("debug.allowOutOfMemory", "autoReport.directory", "autoReport.all")
UNLIMITED = (1 << 64) - 1
SEEDS = (-(1 << 63), (1 << 64) - 1)
TARGETS = {1: "ipu1", 2: "ipu2"}
"""The chips of `Options.useOfflineIpuTarget`."""


@public
class Options(OptionValues):
    """How a model is compiled and run. Each option is a method, which gives back the options, so that calls chain.

    Values are read as attributes: ``options.device_iterations``, ``options.Training.gradient_accumulation``. Groups of options are
    `Training`, `Precision`, `TensorLocations`, `Distributed`, `Jit` and `_Popart`. Two environment variables set options of every
    `Options`: ``POPTORCH_CACHE_DIR`` that of `enableExecutableCaching`, ``POPTORCH_DEFAULT_OPTIONS`` any, as `from_json` takes
    them.

    Raises
    ------
    PoplarTypeError
        From a method: for a value of another type.
    InvalidOption
        From a method: for a value out of its range.
    MissingFeature
        From a method: for what pypoplar does not have.
    PoplarAttributeError
        From a method: if a model or data loader has the options already.

    Examples
    --------
    >>> from pypoplar import poptorch
    >>> options = poptorch.Options().deviceIterations(4).outputMode(poptorch.OutputMode.All)
    >>> options.Training.gradientAccumulation(2).gradient_accumulation
    2
    >>> options.device_iterations
    4
    """

    _group: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__(
            replication_factor=1,
            input_group_size=1,
            input_cgt=CommGroupType.Consecutive,
            broadcast_buffers=True,
            device_iterations=1,
            log_dir=".",
            max_repeat_logs=4,
            auto_round_num_ipus=False,
            anchored_tensors={},
            output_mode=OutputMode.Default,
            output_return_period=1,
            connection_type=ConnectionType.Always,
            sync_pattern=SyncPattern.Full,
            available_memory_proportion={},
        )
        self._popart = PopartOptions()
        self._precision = PrecisionOptions(self._popart)
        self._training = TrainingOptions(self._popart)
        self._tensor_locations = TensorLocationOptions()
        self._distributed = DistributedOptions()
        self._jit = JitOptions()
        self._execution_strategy: ExecutionStrategy = PipelinedExecution()
        self._source_location_excludes: list[str] = []
        self._relax_optimizer_checks = False
        self._module_namescope_enabled = True
        self._show_compilation_progress_bar = True
        self._from_environment()

    def _from_environment(self) -> None:
        if path := os.environ.get(CACHE_VARIABLE, ""):
            logger.info("%s is set: executables are kept in %s", CACHE_VARIABLE, path)
            self.enableExecutableCaching(path)
        if defaults := os.environ.get(DEFAULTS_VARIABLE, ""):
            try:
                self.from_json(defaults)
            except PoplarError as error:
                error.add_note(f"in the environment variable {DEFAULTS_VARIABLE}")
                raise

    @property
    def Training(self) -> TrainingOptions:
        """Options of training models: how gradients become an update."""
        return self._training

    @property
    def Precision(self) -> PrecisionOptions:
        """Options of arithmetic: number formats, rounding, what is an error."""
        return self._precision

    @property
    def TensorLocations(self) -> TensorLocationOptions:
        """Options of where tensors are, which change nothing."""
        return self._tensor_locations

    @property
    def Distributed(self) -> DistributedOptions:
        """Options of models that are spread over processes."""
        return self._distributed

    @property
    def Jit(self) -> JitOptions:
        """Options that PopTorch has given up."""
        return self._jit

    @property
    def _Popart(self) -> PopartOptions:
        """Options by PopART's names."""
        return self._popart

    @property
    def execution_strategy(self) -> ExecutionStrategy:
        """What `setExecutionStrategy` has set: `PipelinedExecution` by the blocks' IPUs at first."""
        return self._execution_strategy

    def deviceIterations(self, device_iterations: int) -> Self:
        """Let the device make several steps, each with its own batch, before it returns.

        Parameters
        ----------
        device_iterations:
            How many, at least 1; a call takes a batch so many times as large.
        """
        return self._keep(device_iterations=checks.whole_number("Options.deviceIterations", device_iterations, 1))

    def outputMode(self, output_mode: OutputMode, output_return_period: int | None = None) -> Self:
        """Which results of a run's micro-batches a model returns.

        Parameters
        ----------
        output_mode:
            Without this call, inference returns all, and training those of the last micro-batch.
        output_return_period:
            The N of `OutputMode.EveryN`.

        Raises
        ------
        InvalidOption
            For `OutputMode.EveryN` without an N.
        """
        mode = checks.member("Options.outputMode", output_mode, OutputMode)
        return self._keep(output_mode=mode, output_return_period=_period("Options.outputMode", mode, output_return_period))

    def defaultOutputMode(self) -> bool:
        """Whether `outputMode` has not been set on these options."""
        return bool(self.output_mode is OutputMode.Default)

    def anchorTensor(
        self,
        short_name: str,
        long_name: str,
        output_mode: OutputMode | None = None,
        output_return_period: int | None = 1,
    ) -> Self:
        """Return an inner tensor of the compiled model too, by `PoplarExecutor.getAnchoredTensor`.

        Parameters
        ----------
        short_name:
            The name that it is asked for by.
        long_name:
            Its name in the model, one of `PoplarExecutor.getTensorNames`.
        output_mode:
            Which batches of it come back; None: those of which results do.
        output_return_period:
            The N of `OutputMode.EveryN`.
        """
        call = "Options.anchorTensor"
        short, long = checks.text(f"{call}: short_name", short_name), checks.text(f"{call}: long_name", long_name)
        mode = None if output_mode is None else checks.member(call, output_mode, OutputMode)
        period = 1 if mode is None else _period(call, mode, output_return_period)
        return self._keep(anchored_tensors={**self.anchored_tensors, short: [long, mode is None, mode, period]})

    def randomSeed(self, random_seed: int) -> Self:
        """Seed PyTorch's generator now, and the device's when a model is made with these options.

        Parameters
        ----------
        random_seed:
            A whole number of 64 bits, with or without a sign.
        """
        seed = checks.whole_number("Options.randomSeed", random_seed, *SEEDS)
        self._keep(random_seed=seed)
        torch.manual_seed(seed)
        return self

    def setExecutionStrategy(self, strategy: ExecutionStrategy) -> Self:
        """How the blocks of a model form stages, and whether stages overlap.

        Parameters
        ----------
        strategy:
            A `PipelinedExecution`, `ShardedExecution`, `SerialPhasedExecution` or `ParallelPhasedExecution`.

        Raises
        ------
        PoplarTypeError
            For what is none.
        """
        self.checkIsFrozen()
        if not isinstance(strategy, ExecutionStrategy):
            raise PoplarTypeError(
                "Options.setExecutionStrategy takes a strategy such as poptorch.PipelinedExecution() or "
                f"poptorch.ShardedExecution(), got {strategy!r}"
            )
        self._execution_strategy = strategy
        return self

    def setAvailableMemoryProportion(self, available_memory_proportion: Mapping[Any, Any]) -> Self:
        """How much of an IPU's memory plans of convolutions and products of matrices may take.

        Parameters
        ----------
        available_memory_proportion:
            Shares from 0 to 1 by IPU: ``{"IPU0": 0.5}``.
        """
        call = "Options.setAvailableMemoryProportion"
        if not isinstance(available_memory_proportion, Mapping):
            raise PoplarTypeError(f'{call} takes a dict such as {{"IPU0": 0.5}}, got {available_memory_proportion!r}')
        shares = {}
        for name, share in available_memory_proportion.items():
            if not isinstance(name, str) or not name.startswith("IPU") or not name[3:].isdecimal():
                raise InvalidOption(f'{call} takes a dict such as {{"IPU0": 0.5}}, got the key {name!r}')
            shares[int(name[3:])] = checks.fraction(f"{call}: {name}", share)
        return self._keep(available_memory_proportion=shares)

    def autoRoundNumIPUs(self, auto_round_num_ipus: bool = True) -> Self:
        """Take the next power of two of IPUs where a model needs another number, which is an error otherwise.

        Parameters
        ----------
        auto_round_num_ipus:
            Whether it does.
        """
        return self._keep(auto_round_num_ipus=checks.flag("Options.autoRoundNumIPUs", auto_round_num_ipus))

    def connectionType(self, connection_type: ConnectionType) -> Self:
        """When a model takes its IPUs.

        Parameters
        ----------
        connection_type:
            At first `ConnectionType.Always`.
        """
        return self._keep(connection_type=checks.member("Options.connectionType", connection_type, ConnectionType))

    def useIpuModel(self, use_model: bool) -> Self:
        """Run on a simulated Bow, as everything does here.

        Parameters
        ----------
        use_model:
            False, for hardware, is told once and changes nothing.
        """
        if not checks.flag("Options.useIpuModel", use_model):
            say_once("Options.useIpuModel(False): there is no hardware; the model runs on a simulated Bow")
        return self._keep(use_model=use_model)

    def useIpuId(self, ipu_id: int) -> Self:
        """Run on a certain device. All are alike, so it changes nothing.

        Parameters
        ----------
        ipu_id:
            The number of the device.
        """
        number = checks.whole_number("Options.useIpuId", ipu_id)
        self._tell("useIpuId")
        return self._keep(ipu_id=number)

    def useOfflineIpuTarget(self, ipu_version: int = 2) -> Self:
        """Compile for a chip without running: the connection is `ConnectionType.Never`.

        Parameters
        ----------
        ipu_version:
            1 for a Mk1, 2 for a Mk2.

        Raises
        ------
        MissingFeature
            For 21, a chip with FP8.
        """
        version = checks.whole_number("Options.useOfflineIpuTarget", ipu_version)
        if version == 21:
            raise MissingFeature("Options.useOfflineIpuTarget(21): pypoplar does not have FP8 yet; 1 is a Mk1, 2 a Mk2")
        if version not in TARGETS:
            raise InvalidOption(f"Options.useOfflineIpuTarget takes 1 for a Mk1 or 2 for a Mk2, got {version}")
        return self.connectionType(ConnectionType.Never)._keep(ipu_version=version)

    def syncPattern(self, sync_pattern: SyncPattern) -> Self:
        """Which IPUs wait for each other when one speaks with the host. It changes nothing: they wait where data needs it.

        Parameters
        ----------
        sync_pattern:
            Which ones.
        """
        pattern = checks.member("Options.syncPattern", sync_pattern, SyncPattern)
        self._tell("syncPattern", pattern is not SyncPattern.Full)
        return self._keep(sync_pattern=pattern)

    def replicationFactor(self, replication_factor: int) -> Self:
        """How many replicas of the model there are, each on IPUs of its own.

        Each takes batches of its own and has the same weights; the gradients of all of them are added up, once for each update.

        Parameters
        ----------
        replication_factor:
            How many, at least 1; a call takes a batch so many times as large.
        """
        return self._keep(replication_factor=checks.whole_number("Options.replicationFactor", replication_factor, 1))

    def inputReplicaGrouping(self, input_group_size: int, input_group_type: CommGroupType) -> Self:
        """Give the replicas of a group the same batches. Call it after `replicationFactor`, as in PopTorch.

        Parameters
        ----------
        input_group_size:
            How many replicas a group has, which divides their number; at first 1: each replica has batches of its own.
        input_group_type:
            `CommGroupType.Consecutive` for neighbours, `CommGroupType.Orthogonal` for replicas at equal distances;
            `CommGroupType.NoGrouping` for groups of 1.

        Raises
        ------
        InvalidOption
            For `CommGroupType.All`, and for groups that do not divide the replicas.
        """
        call = "Options.inputReplicaGrouping"
        size = checks.whole_number(call, input_group_size, 1)
        kind = checks.member(call, input_group_type, CommGroupType)
        if kind is CommGroupType.All:
            raise InvalidOption(f"{call} takes no CommGroupType.All")
        if kind is CommGroupType.NoGrouping:
            size, kind = 1, CommGroupType.Consecutive
        check_divides(call, size, self.replication_factor)
        return self._keep(input_group_size=size, input_cgt=kind)

    def broadcastBuffers(self, broadcast_buffers: bool = True) -> Self:
        """Whether replicas have to have the same buffers.

        Parameters
        ----------
        broadcast_buffers:
            With True, as at first, a model with replicas that changes buffers is refused, as in PopTorch. With False each replica
            changes its own, and the module gets those of the first.
        """
        return self._keep(broadcast_buffers=checks.flag("Options.broadcastBuffers", broadcast_buffers))

    def logDir(self, log_dir: str | os.PathLike[str]) -> Self:
        """Where PopTorch's files of logs go; here there are none.

        Parameters
        ----------
        log_dir:
            A directory.
        """
        directory = checks.path("Options.logDir", log_dir)
        self._tell("logDir", directory != ".")
        return self._keep(log_dir=directory)

    def maxRepeatLogs(self, max_lines: int | None) -> Self:
        """How often PopTorch repeats a line of its log; here none is repeated.

        Parameters
        ----------
        max_lines:
            How often; None: without a limit.
        """
        lines = UNLIMITED if max_lines is None else checks.whole_number("Options.maxRepeatLogs", max_lines)
        self._tell("maxRepeatLogs", max_lines is not None and lines != 4)
        return self._keep(max_repeat_logs=lines)

    def modelName(self, name: str) -> Self:
        """The directory of the model's profile in that of profiles: "training" or "inference" at first.

        Parameters
        ----------
        name:
            Its name.
        """
        return self._keep(model_name=checks.text("Options.modelName", name))

    def enableExecutableCaching(self, path: str | os.PathLike[str] | None) -> Self:
        """Keep executables in a directory for later processes.

        Parameters
        ----------
        path:
            The directory; None keeps none.
        """
        if path is not None:
            self._popart.put("cachePath", checks.path("Options.enableExecutableCaching", path))
        self._popart.put("enableEngineCaching", path is not None)
        return self

    def enableStableNorm(self, enabled: bool) -> Self:
        """Let norms sum the squares of differences from the mean, which takes longer and is more exact.

        Parameters
        ----------
        enabled:
            Whether they do; at first they do not.
        """
        self._popart.put("enableStableNorm", checks.flag("Options.enableStableNorm", enabled))
        return self

    def enableSyntheticData(self, enabled: bool | int) -> Self:
        """Let the device make random data, and copy none from or to the host.

        Parameters
        ----------
        enabled:
            Whether it does; or PopART's number of the kind of data, 0 for none.
        """
        if not isinstance(enabled, bool):  # programs give PopART's number of the kind of data
            enabled = checks.whole_number("Options.enableSyntheticData", enabled, 0, 2) > 0
        self._popart.put("syntheticDataMode", 2 if enabled else 0)
        return self

    def logCycleCount(self, log_cycle_count: bool) -> Self:
        """Tell the cycles of every call in a message at the level DEBUG; `PoplarExecutor.cycleCount` has them in any case.

        Parameters
        ----------
        log_cycle_count:
            Whether they are told.
        """
        self._popart.put("instrumentWithHardwareCycleCounter", checks.flag("Options.logCycleCount", log_cycle_count))
        return self

    def enableProfiling(self, profile_dir: str | os.PathLike[str] | None = None) -> Self:
        """Write profiles of the model into a directory.

        The environment variable ``POPLAR_ENGINE_OPTIONS`` overrides it.

        Parameters
        ----------
        profile_dir:
            The directory; None: the working directory.
        """
        directory = "." if profile_dir is None else checks.path("Options.enableProfiling", profile_dir)
        if any(name in os.environ.get(ENGINE_VARIABLE, "") for name in ENGINE_PROFILING):
            say_once(f"Options.enableProfiling: the environment variable {ENGINE_VARIABLE} overrides it")
        profiling = dict(zip(ENGINE_PROFILING, ("true", directory, "true"), strict=True))
        self._popart.setEngineOptions({**self._popart.options.get("engineOptions", {}), **profiling})
        return self

    def relaxOptimizerAttributesChecks(self, relax: bool = True) -> Self:
        """How loudly PopTorch tells unknown attributes of an optimiser; here none is unknown.

        Parameters
        ----------
        relax:
            True is told to change nothing.
        """
        self.checkIsFrozen()
        self._tell("relaxOptimizerAttributesChecks", relax)
        self._relax_optimizer_checks = checks.flag("Options.relaxOptimizerAttributesChecks", relax)
        return self

    def showCompilationProgressBar(self, show: bool = True) -> Self:
        """Whether PopTorch shows a bar; those of pypoplar are an option of its Engine, ``pypoplar.progress``.

        Parameters
        ----------
        show:
            Changes nothing.
        """
        self.checkIsFrozen()
        self._show_compilation_progress_bar = checks.flag("Options.showCompilationProgressBar", show)
        return self

    def disableModuleNamescope(self) -> Self:
        """Have names without the path of their module; it changes nothing, names have it."""
        self.checkIsFrozen()
        self._module_namescope_enabled = False
        self._tell("disableModuleNamescope")
        return self

    def sourceLocationExcludes(self, excludes: Sequence[str]) -> Self:
        """Which files are not named as the place of an operation. It changes nothing: files of PyTorch and pypoplar are not.

        Parameters
        ----------
        excludes:
            Parts of paths.
        """
        self.checkIsFrozen()
        self._source_location_excludes = checks.texts("Options.sourceLocationExcludes", excludes)
        self._tell("sourceLocationExcludes")
        return self

    def appendToLocationExcludes(self, *excludes: str) -> Self:
        """Further files that are not named as the place of an operation; it changes nothing.

        Parameters
        ----------
        excludes:
            Parts of paths.
        """
        self.checkIsFrozen()
        self._source_location_excludes += checks.texts("Options.appendToLocationExcludes", excludes)
        self._tell("appendToLocationExcludes")
        return self

    def updatableNamedBuffers(self, buffers: Sequence[str]) -> Self:
        """Which buffers can be written while the model is on the device: here all. Others than the model's are refused there.

        Parameters
        ----------
        buffers:
            Names of buffers.
        """
        self._popart.put("updatableNamedBuffers", checks.texts("Options.updatableNamedBuffers", buffers))
        self._tell("updatableNamedBuffers")
        return self

    def from_json(self, string: str) -> Self:
        """Set options from a JSON object of calls: ``{"deviceIterations": 4, "_Popart.set": ["enableStableNorm", true]}``.

        Parameters
        ----------
        string:
            The object's text. A list has several arguments; ``"OutputMode.All"`` is a member of an enum.

        Raises
        ------
        InvalidOption
            For what is no such object, and an unknown option, with the nearest.
        """
        try:
            calls = json.loads(string)
            if not isinstance(calls, dict):
                raise ValueError
        except (TypeError, ValueError):
            raise InvalidOption(f"options as JSON are an object of names and arguments, got {string!r}") from None
        for name, given in calls.items():
            arguments = [_enum_member(value) for value in (given if isinstance(given, list) else [given])]
            apply_call(self, name, arguments, {})
        return self

    def loadFromFile(self, filepath: str | os.PathLike[str]) -> Self:
        """Make the calls of a file, one in each line and written as in a program without ``options.``: ``deviceIterations(4)``.

        Parameters
        ----------
        filepath:
            The file. Empty lines and comments are left out.

        Raises
        ------
        ConfigFileError
            For a line that is no such call; none has been made then.
        FileLoadError
            If the file cannot be read.
        InvalidOption
            For an unknown option.
        """
        path = checks.path("Options.loadFromFile", filepath)
        for call in read_calls(path):
            try:
                apply_call(self, call.name, call.arguments, call.keywords)
            except PoplarError as error:
                error.add_note(f"in line {call.line} of {path}")
                raise
        return self

    def toDict(self) -> dict[str, Any]:
        """The values of all groups but `Precision`, `Jit` and the execution strategy, by the names of their attributes."""
        values = dict(self._popart.options)
        for part in (self._values, self._training.toDict(), self._distributed.toDict(), self._tensor_locations.toDict()):
            values.update(part)
        return values

    def clone(self) -> Self:
        """A copy that can be changed, also of options that a model has."""
        import copy

        return copy.deepcopy(self)

    def _parts(self) -> dict[str, Any]:
        groups = ("Training", "Precision", "TensorLocations", "Distributed", "_Popart", "execution_strategy")
        return {**self._values, **{name: getattr(self, name) for name in groups}}

    def _freeze(self) -> None:
        self._distributed.check_supported()
        super()._freeze()


def _period(call: str, mode: OutputMode, period: int | None) -> int:
    """The N of `OutputMode.EveryN`; 1 for other modes, which take none."""
    if mode is not OutputMode.EveryN:
        if period not in (None, 1):
            say_once(f"{call}: output_return_period belongs to OutputMode.EveryN, and is left out with OutputMode.{mode.name}")
        return 1
    if period is None:
        raise InvalidOption(f"{call}: OutputMode.EveryN takes an output_return_period")
    return checks.whole_number(f"{call}: output_return_period", period, 1)


def _enum_member(value: object) -> object:
    """The member of an enum that ``"OutputMode.All"`` names; other values are themselves."""
    kind, dot, name = value.partition(".") if isinstance(value, str) else ("", "", "")
    choices = getattr(enums, kind, None) if dot and kind.isidentifier() else None
    if not isinstance(choices, type) or not issubclass(choices, Enum):
        return value
    if name not in choices.__members__:
        raise InvalidOption(f"{kind} has no {name!r}{nearest(name, choices.__members__)}")
    return choices[name]
