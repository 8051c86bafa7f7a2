"""Engine options: the table of all that are known, and the validated form that the engine reads.

Names and meanings are Poplar's; ours start with ``pypoplar.``. An option of Poplar without a meaning on a simulated machine is
accepted and checked, so that programs run unchanged. The environment variable ``POPLAR_ENGINE_OPTIONS`` (a JSON object)
overrides what the program says.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs
from attrs import evolve, field, frozen

from pypoplar.braces import OPTIONS as NAMED_VALUES
from pypoplar.braces import ordered
from pypoplar.errors import InvalidOption
from pypoplar.spelling import nearest_name

ENVIRONMENT = "POPLAR_ENGINE_OPTIONS"
NO_EFFECT = "accepted; changes nothing on a simulated machine"
COUNTED = "accepted; cycles and bytes are always counted, at no cost"

OptionValue = str | bool | int | float
Options: TypeAlias = "EngineOptions | Mapping[str, OptionValue] | Iterable[tuple[str, OptionValue]] | None"


@frozen
class Kind:
    """What an option's value may be.

    Parameters
    ----------
    allowed:
        In words, for messages: "an integer of at least 0".
    read:
        Turns the user's value into ours, or raises `ValueError`.
    """

    allowed: str
    read: Callable[[OptionValue], OptionValue]


def _read_bool(value: OptionValue) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError


def _read_number(value: OptionValue) -> int:
    if isinstance(value, bool):
        raise ValueError
    number = int(value, 0) if isinstance(value, str) else int(value.__index__()) if hasattr(value, "__index__") else -1
    if number < 0:
        raise ValueError
    return number


def _read_text(value: OptionValue) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def choice(*names: str) -> Kind:
    """The kind of an option that has one of several names, in any case.

    Parameters
    ----------
    names:
        What it may be.

    Returns
    -------
    Kind
        Whose `read` gives the name as it is written here.
    """

    def read(value: OptionValue) -> str:
        for name in names:
            if isinstance(value, str) and value.lower() == name.lower():
                return name
        raise ValueError

    return Kind(" or ".join(repr(name) for name in names), read)


FLAG = Kind("'true' or 'false'", _read_bool)
NUMBER = Kind("an integer of at least 0", _read_number)
TEXT = Kind("a text", _read_text)


UNLIMITED = "unlimited"


def _read_limit(value: OptionValue) -> OptionValue:
    return UNLIMITED if isinstance(value, str) and value.lower() == UNLIMITED else _read_number(value)


LIMIT = Kind(f"an integer of at least 0, or {UNLIMITED!r}", _read_limit)


@frozen
class Option:
    """A known option of engines.

    Parameters
    ----------
    name:
        As users write it: ``pypoplar.threads``.
    kind:
        What its value may be.
    meaning:
        What it does, for the documents; of many: that it has no effect.
    default:
        Its value if it is not set; None where nothing reads it.
    attribute:
        Its name in `EngineOptions`; empty where nothing reads it.
    """

    name: str
    kind: Kind
    meaning: str = NO_EFFECT
    default: OptionValue | None = None
    attribute: str = ""


def option(name: str, kind: Kind, default: OptionValue, meaning: str) -> Any:
    """A field of `EngineOptions` for an option that something reads.

    Parameters
    ----------
    name:
        As users write it.
    kind:
        What its value may be.
    default:
        Its value if it is not set.
    meaning:
        What it does, for the documents.

    Returns
    -------
    Any
        What attrs makes the field of.
    """
    return field(default=default, metadata={"option": Option(name, kind, meaning, default)})


def read_flag(name: str, value: OptionValue) -> bool:
    """The value of a true-or-false option.

    Parameters
    ----------
    name:
        That of the option, for the message.
    value:
        A bool, "true" or "false", in any case.

    Returns
    -------
    bool
        Which of the two.

    Raises
    ------
    InvalidOption
        For anything else.
    """
    return bool(_read(name, FLAG, value, ""))


@frozen(kw_only=True)
class EngineOptions:
    """The options of one Engine, validated, given by `EngineOptions.parse`; docs/options.md tells what each is and its default.

    `given` is what was set, by name, as it was read.
    """

    threads: int = option(
        "pypoplar.threads", NUMBER, 0, "host threads that run vertices; 0: one per processor; never changes a result"
    )
    races: str = option(
        "pypoplar.races",
        choice("regions", "elements"),
        "regions",
        "judge races by the connected regions when the Engine is built, or by the elements touched while it runs",
    )
    uninitialised: str = option(
        "pypoplar.uninitialised",
        choice("poison", "error"),
        "poison",
        "a device read of memory that nothing has written gives NaN or a fixed pattern, or (FLOAT, HALF, BOOL) is an error; "
        "with 'error' variables share no memory",
    )
    cycle_limit: int = option("pypoplar.cycle_limit", NUMBER, 100_000_000_000, "most cycles of one vertex; 0: no limit")
    codelet_cost: str = option(
        "pypoplar.codelet_cost",
        choice("compiled", "scalar"),
        "compiled",
        "what the code of codelets costs: as the vendor's compiler makes it, or the sum of its statements' prices; it decides "
        "cycles, ipu.cycle_count and the cycle limit",
    )
    run_out_of_memory: bool = option("pypoplar.run_out_of_memory", FLAG, False, "run even if a tile holds more than its memory")
    merge_copies: bool = option(
        "pypoplar.merge_copies",
        FLAG,
        True,
        "successive copies that do not depend on each other are one exchange, or share a sync with the host",
    )
    mpi_timeout: int = option(
        "pypoplar.mpi_timeout",
        NUMBER,
        300,
        "seconds after which an instance that waits for others says which of them have not come, and ends all",
    )
    mpi_checks: bool = option(
        "pypoplar.mpi_checks", FLAG, True, "compare what instances give streams and weights that all replicas have in common"
    )
    progress: str = option(
        "pypoplar.progress",
        choice("auto", "on", "off"),
        "auto",
        "bars on standard error for compilations and runs of more than a second, and a line while the driver is compiled; "
        "auto: if it is a terminal",
    )
    auto_report_all: bool = option(
        "autoReport.all", FLAG, False, "turn on outputGraphProfile and outputExecutionProfile where they are not set to false"
    )
    report_directory: str = option(
        "autoReport.directory",
        TEXT,
        ".",
        "where profile.pop goes; that of an engine with a name goes into a directory of that name",
    )
    output_graph_profile: bool = option(
        "autoReport.outputGraphProfile",
        FLAG,
        False,
        "write profile.pop when the engine is made, and when a tile's memory does not do",
    )
    output_execution_profile: bool = option(
        "autoReport.outputExecutionProfile",
        FLAG,
        False,
        "write profile.pop after the runs that are kept apart, and at the end of the engine or program, with cycles by source line",
    )
    profiled_runs: int = option(
        "autoReport.executionProfileProgramRunCount",
        NUMBER,
        2,
        "runs that the report keeps apart, with a trace of their steps; later ones are counted together",
    )
    floating_point_exceptions: bool = option(
        "debug.floatPointOpException",
        FLAG,
        False,
        "an invalid operation, a division by zero or an overflow of floating-point numbers in a vertex is an error",
    )
    worker_stack_bytes: int = option("debug.workerStackSizeInBytes", NUMBER, 512, "stack of each worker, counted in tile memory")
    supervisor_stack_bytes: int = option(
        "debug.supervisorStackSizeInBytes", NUMBER, 128, "stack of the supervisor, counted in tile memory"
    )
    enable_prefetch: bool = option(
        "exchange.enablePrefetch",
        FLAG,
        True,
        "ask callbacks for the next chunk ahead of time, unless buffers of streams may overlap",
    )
    stream_buffer_overlap: str = option(
        "exchange.streamBufferOverlap",
        choice("any", "none", "hostRearrangeOnly"),
        "any",
        "which buffers of streams may overlap; if not all may, callbacks can prefetch",
    )
    max_copy_merge_size: int | str = option(
        "opt.maxCopyMergeSize",
        LIMIT,
        UNLIMITED,
        "most bytes of successive stream copies that share a sync with the host; a larger copy has its own",
    )
    flop_estimates: bool = option(
        "profiler.includeFlopEstimates",
        FLAG,
        False,
        "count floating-point operations, the bytes that vertices load and store, and cycles by source line, as they run",
    )
    given: tuple[tuple[str, OptionValue], ...] = field(default=())

    @property
    def counts_blocks(self) -> bool:
        """Whether runs record which lines of codelets take their cycles, wherever a profile of the execution is asked for."""
        return self.output_execution_profile or self.flop_estimates

    @property
    def replica_to_profile(self) -> int | None:
        """The replica of which reports tell, if one is named."""
        value = str(dict(self.given).get("profiler.replicaToProfile", "all"))
        return None if value == "all" else int(value)

    @property
    def prefetches(self) -> bool:
        """Whether stream callbacks are asked for the next chunk ahead of time."""
        return self.enable_prefetch and self.stream_buffer_overlap != "any"

    @property
    def merged_stream_bytes(self) -> float:
        """Most bytes of stream copies that share a sync with the host."""
        return math.inf if self.max_copy_merge_size == UNLIMITED else int(self.max_copy_merge_size)

    @classmethod
    def parse(
        cls,
        options: Options = None,
        environment: Mapping[str, str] | None = None,
    ) -> EngineOptions:
        """Check options and what the environment variable ``POPLAR_ENGINE_OPTIONS`` adds to them.

        Parameters
        ----------
        options:
            By name: strings, as in Poplar, or Python's own bools and numbers. What is parsed already is given back.
        environment:
            Variables and their texts; None: those of the process.

        Returns
        -------
        EngineOptions
            With what is not set at its default.

        Raises
        ------
        InvalidOption
            For an unknown name, with the nearest, or an ill-formed value, with what is allowed.

        Examples
        --------
        >>> from pypoplar.options import EngineOptions
        >>> options = EngineOptions.parse({"pypoplar.threads": "2", "autoReport.all": "true"})
        >>> options.threads, options.output_graph_profile
        (2, True)
        """
        if isinstance(options, EngineOptions):
            return options
        ordered(options, "engine options", NAMED_VALUES)
        try:
            pairs = dict(options or {})
        except (TypeError, ValueError):
            raise InvalidOption(f"engine options are a dict of names and values, got {options!r}") from None
        merged: dict[str, tuple[OptionValue, str]] = {name: (value, "") for name, value in pairs.items()}
        merged.update((name, (value, f" (from {ENVIRONMENT})")) for name, value in _environment_options(environment).items())
        read = {name: _read(name, find_option(name, origin).kind, value, origin) for name, (value, origin) in merged.items()}
        return cls._of(read)

    @classmethod
    def _of(cls, given: Mapping[str, OptionValue]) -> EngineOptions:
        values: dict[str, Any] = {BY_NAME[name].attribute: value for name, value in given.items() if BY_NAME[name].attribute}
        if values.get("auto_report_all"):
            values = {"output_graph_profile": True, "output_execution_profile": True, **values}
        return cls(**values, given=tuple(sorted(given.items())))

    def to_json(self) -> dict[str, OptionValue]:
        """What was set, by name, as plain JSON values that `from_json` reads."""
        return dict(self.given)

    @classmethod
    def from_json(cls, values: Mapping[str, OptionValue]) -> EngineOptions:
        """The options that `to_json` wrote; the environment has no say.

        Parameters
        ----------
        values:
            What `to_json` gave.

        Returns
        -------
        EngineOptions
            Equal to those that were written.

        Raises
        ------
        InvalidOption
            As from `parse`.
        """
        return cls.parse(values, {})

    def changed(self, options: Mapping[str, OptionValue]) -> EngineOptions:
        """These options with some set anew; the environment has no say.

        Parameters
        ----------
        options:
            By name, as `parse` takes them.

        Returns
        -------
        EngineOptions
            A new object; this one stays as it is.

        Raises
        ------
        InvalidOption
            As from `parse`.
        """
        return self.parse({**dict(self.given), **options}, {})


def _with_effect() -> Iterator[Option]:
    for attribute in attrs.fields(EngineOptions):
        if "option" in attribute.metadata:
            yield evolve(attribute.metadata["option"], attribute=attribute.name)


# fmt: off
OPTIONS: tuple[Option, ...] = (
    *_with_effect(),
    Option("autoReport.outputLoweredVars", FLAG),
    Option("autoReport.outputSerializedGraph", FLAG),
    Option("autoReport.outputDebugInfo", FLAG),
    Option("autoReport.outputArchive", FLAG),
    Option("autoReport.streamAtEachRun", FLAG),
    Option("debug.instrument", FLAG, COUNTED),
    Option("debug.instrumentCompute", FLAG, COUNTED),
    Option("debug.instrumentControlFlow", FLAG, COUNTED),
    Option("debug.instrumentExternalExchange", FLAG, COUNTED),
    Option("debug.computeInstrumentationLevel", choice("vertex", "tile", "ipu", "device", "off"),
           "accepted; cycles are always counted by vertex type and tile, also with 'off'"),
    Option("debug.allowOutOfMemory", FLAG, "accepted; the error always carries the whole report"),
    Option("debug.retainDebugInformation", FLAG, "accepted; names are always kept"),
    Option("debug.nanOverflowMode", FLAG),
    Option("debug.loweredVarDumpFile", TEXT),
    Option("debug.trace", FLAG),
    Option("debug.traceFile", TEXT),
    Option("debug.verify", FLAG),
    Option("debug.runtimeVerify", FLAG),
    Option("debug.outputAllSymbols", FLAG),
    Option("debug.checkForUnprintableCharacters", FLAG),
    Option("target.hostSyncTimeout", NUMBER),
    Option("target.deterministicWorkers", choice("true", "false", "portable"), "accepted; workers always run in the same order"),
    Option("target.extendedMemory", FLAG),
    Option("target.syncReplicasIndependently", FLAG),
    Option("target.saveArchive", TEXT),
    Option("target.syncMethod", TEXT),
    Option("target.syncPollPeriodUs", NUMBER),
    Option("target.exceptionPollPeriodUs", NUMBER),
    Option("target.gatewayMode", FLAG),
    Option("streamCallbacks.multiThreadMode", choice("singleThread", "collaborative", "dedicated"),
           "accepted; callbacks run in the thread that runs the program"),
    Option("streamCallbacks.numWorkerThreads", choice("auto", *map(str, range(65)))),
    Option("streamCallbacks.maxLookahead", choice("unlimited", *map(str, range(65)))),
    Option("streamCallbacks.numaAware", FLAG),
    Option("opt.maxCompilationThreads", NUMBER),
    Option("opt.maxLinkerThreads", NUMBER),
    Option("opt.enableInlining", FLAG),
    Option("opt.useAutoloader", FLAG),
    Option("opt.enableMultiAccessCopies", FLAG),
    Option("opt.internalExchangeOptimisationTarget", choice("cycles", "balanced", "memory")),
    Option("opt.maxComputeSetsPerLoweredCopy", NUMBER),
    Option("profiler.includeCycleEstimates", FLAG, "accepted; the cycles of the report are those of the model"),
    Option("profiler.replicaToProfile", choice("all", *map(str, range(65))),
           "the replica of whose runs a report tells; all: the first"),
    Option("profiler.format", TEXT),
    Option("profiler.programs.filter", TEXT, "accepted; the report has all programs"),
    Option("profiler.blocks.filter", TEXT, "accepted; the report has all steps"),
    Option("profiler.blocks.tile", NUMBER, "accepted; the report has all tiles"),
)
# fmt: on
BY_NAME: dict[str, Option] = {option.name: option for option in OPTIONS}
RENAMED: dict[str, str] = {
    "target.workerStackSizeInBytes": "debug.workerStackSizeInBytes",
    "target.supervisorStackSizeInBytes": "debug.supervisorStackSizeInBytes",
}


def find_option(name: object, origin: str = "") -> Option:
    """The option of a name.

    Parameters
    ----------
    name:
        As users write it.
    origin:
        In the message: where the name is from, if not from the program.

    Returns
    -------
    Option
        What is known of it.

    Raises
    ------
    InvalidOption
        If there is none: with the nearest name, or the new name of a renamed one.
    """
    if isinstance(name, str) and name in BY_NAME:
        return BY_NAME[name]
    text = str(name)
    if text in RENAMED:
        raise InvalidOption(f"the option {text!r}{origin} is now called {RENAMED[text]!r}")
    known = {option.lower(): option for option in BY_NAME}
    known.update({option.rpartition(".")[2].lower(): option for option in BY_NAME})
    near = nearest_name(text.lower(), known) or nearest_name(text.rpartition(".")[2].lower(), known)
    hint = f"; did you mean {known[near]!r}?" if near else "; docs/options.md lists them"
    raise InvalidOption(f"there is no engine option {text!r}{origin}{hint}")


def _read(name: str, kind: Kind, value: OptionValue, origin: str) -> OptionValue:
    try:
        return kind.read(value)
    except ValueError:
        raise InvalidOption(f"the option {name!r}{origin} must be {kind.allowed}, got {value!r}") from None


def _environment_options(environment: Mapping[str, str] | None) -> dict[str, OptionValue]:
    text = (os.environ if environment is None else environment).get(ENVIRONMENT, "")
    if not text.strip():
        return {}
    import json  # few programs get here

    try:
        values = json.loads(text)
    except json.JSONDecodeError as problem:
        raise InvalidOption(f"the environment variable {ENVIRONMENT} is not JSON: {problem}") from None
    if not isinstance(values, dict):
        raise InvalidOption(f'{ENVIRONMENT} must be a JSON object such as {{"autoReport.all": "true"}}, got {text!r}')
    return values


def option_text(value: OptionValue) -> str:
    """A value as it is written in a dict of options: "true", not "True".

    Parameters
    ----------
    value:
        A bool, a number or a text.

    Returns
    -------
    str
        Lower case for a bool.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
