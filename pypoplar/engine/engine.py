"""`Engine`: compiles a graph with its programs, loads it onto a simulated device and runs it."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, Self, TextIO, TypeVar, cast, overload

import numpy as np
from attrs import evolve

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.braces import ordered
from pypoplar.device import Device, IPUModel
from pypoplar.engine.auto_report import AutoReport, report_path, save
from pypoplar.engine.checkpoint import Checkpoints
from pypoplar.engine.division import available_processors
from pypoplar.engine.faults import Fault, fault_error
from pypoplar.engine.loaded_codelets import translate_codelets
from pypoplar.engine.processes import instance_environment
from pypoplar.engine.replicas.crew import replicas_together
from pypoplar.engine.replicas.host_side import HostSide
from pypoplar.engine.replicas.replica import Replica, count_all, initialise_all, make_replicas, restart_all
from pypoplar.engine.runs import Runs
from pypoplar.engine.shown_engine import ShownEngine
from pypoplar.engine.streams import Callback, unknown_name
from pypoplar.errors import (
    ApplicationRuntimeError,
    GraphMemoryAllocationError,
    InvalidOption,
    PoplarIndexError,
    PoplarTypeError,
    StreamConnectionError,
)
from pypoplar.executable.executable import Executable
from pypoplar.executable.host_plans import HostTensor
from pypoplar.files import check_text_stream
from pypoplar.host_memory import resident_text
from pypoplar.interface.service_kinds import ServiceKind
from pypoplar.options import EngineOptions, Options, OptionValue, find_option, option_text
from pypoplar.program.assumptions import AssumedCount, AssumedShare, AssumedValue, Assumption
from pypoplar.progress import CompileBar, RunBar, wanted
from pypoplar.report.run_account import RunAccount, RunHistory
from pypoplar.signatures import misfit
from pypoplar.tracebacks import public
from pypoplar.types import BY_NAME
from pypoplar.watchers import watchers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pypoplar.compiler.compile import Progress
    from pypoplar.engine.cost.class_runs import Samples
    from pypoplar.engine.processes.mpi_meeting import MpiMeeting
    from pypoplar.engine.processes.spread_replicas import SpreadReplicas
    from pypoplar.executable.archive import Place
    from pypoplar.graph.graph import Graph
    from pypoplar.program import Program
    from pypoplar.report.report import Report

Result = TypeVar("Result")
Mode = Literal["native", "interpret", "cost"]
MODES = ("native", "interpret", "cost")


@public
def compileGraph(
    graph: Graph,
    programs: Program | Iterable[Program],
    options: Options = None,
    progress: Progress | None = None,
    *,
    name: str = "",
    mode: Literal["run", "cost"] = "run",
    assumptions: Iterable[Assumption] = (),
) -> Executable:
    """Check a graph and compile it with its programs; an `Engine` runs the result, here or in another process.

    Parameters
    ----------
    graph:
        A `Graph`; of a virtual graph the whole of which it is a part.
    programs:
        One program or a list of them; `Engine.run` takes their numbers in it.
    options:
        Engine options, as `Engine` takes them.
    progress:
        Called as ``progress(done, total)`` after every part of the work.
    name:
        The name of the engine, for the profile that is written where memory does not do.
    mode:
        ``"cost"`` for an executable that an engine of mode "cost" prices and none can run: it has no data, and no moves.
    assumptions:
        With mode "cost" what is assumed of control that data decide: see `assume`, `assume_count`, `assume_share`.

    Returns
    -------
    Executable
        What `Engine` takes in place of a graph and its programs; it refers to neither.

    Raises
    ------
    PoplarTypeError
        If `graph` is no `Graph`, `programs` has what is no program, or `progress` cannot be called with two numbers.
    InvalidOption
        For an unknown option, or a value that it cannot have.
    GraphConnectionError, InvalidTileMapping, GraphCycleError, GraphMemoryAllocationError
        When the graph is not a program of the machine, as from `Engine`.

    Examples
    --------
    >>> from pypoplar import Executable, Graph, IPUModel
    >>> from pypoplar.program import Sequence
    >>> device = IPUModel("tiny").createDevice()
    >>> compileGraph(Graph(device), Sequence()).save("program.npz")
    >>> engine = Engine(Executable.load("program.npz"))
    >>> engine.loadAndRun(device)
    """
    parsed, assumed = EngineOptions.parse(options), checked_assumptions(mode, assumptions)
    for watcher in watchers() if mode == "run" else ():
        watcher.compiles(graph, programs, options)
    wrong = "" if progress is None else misfit(progress, "done", "total")
    if wrong:
        raise PoplarTypeError(f"progress: expected a function of two numbers, done and total, got {wrong}")
    if not wanted(parsed.progress):
        return _compiled(graph, programs, parsed, progress, name, assumed)
    bar = CompileBar(progress, resident_text)
    try:
        return _compiled(graph, programs, parsed, bar, name, assumed)
    finally:
        bar.close()


def listed_assumptions(assumptions: Iterable[object]) -> tuple[object, ...]:
    """What was given as assumptions, each once, also if they come one by one; refused if it is one thing alone."""
    if not isinstance(assumptions, Iterable):
        raise PoplarTypeError(f"assumptions: expected a list, [a, b], got {assumptions!r}")
    return tuple(ordered(assumptions, "assumptions", "[a, b]"))


def checked_assumptions(mode: object, assumptions: Iterable[Assumption]) -> tuple[Assumption, ...] | None:
    """The assumptions for a compilation of a mode, "run" or "cost"; None where the result is to be run."""
    if mode not in ("run", "cost"):
        raise InvalidOption(f"mode is {mode!r}: expected 'run' or 'cost'")
    given = listed_assumptions(assumptions)
    wrong = [what for what in given if not isinstance(what, AssumedValue | AssumedCount | AssumedShare)]
    if wrong:
        raise PoplarTypeError(f"assumptions are made by assume, assume_count and assume_share, got {wrong[0]!r}")
    if given and mode == "run":
        raise InvalidOption("assumptions are for mode='cost': a run knows what its data decide")
    return None if mode == "run" else cast(tuple[Assumption, ...], given)


def _compiled(
    graph: Graph,
    programs: Program | Iterable[Program],
    options: EngineOptions,
    progress: Progress | None,
    name: str,
    assumptions: tuple[Assumption, ...] | None,
) -> Executable:
    from pypoplar.compiler.compile import compile_graph  # late: an engine of a saved executable compiles nothing

    try:
        return compile_graph(graph, programs, options, progress, assumptions=assumptions)
    except GraphMemoryAllocationError as error:
        from pypoplar.report.making.make_report import make_report, memory_report

        if isinstance(error.executable, Executable):
            report = make_report(error.executable)
        else:
            report = memory_report(*error.picture)  # type: ignore[arg-type]
        given = {option: option_text(value) for option, value in options.given}
        error.report = evolve(report, compilation=evolve(report.compilation, options=given), name=name, created=_now())
        if not options.output_graph_profile:
            raise
        path = report_path(options, name).absolute()
        try:
            save(error.report, path)
        except OSError as problem:
            error.args = (f"{error}\nThe profile could not be saved: {problem}",)
        else:
            error.args = (f"{error}\nProfile saved to: {path}",)
        raise


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


KEPT = ("pypoplar.uninitialised", "pypoplar.codelet_cost")  # as they were compiled, if they are not given again
DECIDED_WHEN_COMPILED = (
    "pypoplar.races",
    "pypoplar.merge_copies",
    "opt.maxCopyMergeSize",
    "debug.workerStackSizeInBytes",
    "debug.supervisorStackSizeInBytes",
)


@public
class Engine(ShownEngine):
    """Runs programs on a simulated IPU.

    Parameters
    ----------
    graph:
        A `Graph`, which is compiled here with `programs`, or an `Executable` that was compiled or loaded before.
    programs:
        One program or a list of them; `run(i)` runs the i-th.
    options:
        Engine options as Poplar has them, and ours (``pypoplar.*``); an unknown one raises `InvalidOption`.
    mode:
        ``"native"`` (default) runs compiled codelets on `pypoplar.threads` host threads. ``"interpret"`` runs every vertex as
        plain Python, where ``print`` and ``breakpoint()`` work. Both give the same results, cycles and errors, bit for bit.
        ``"cost"`` prices programs without running them: `run` finds what it would cost, streams need not be connected, and what
        needs data is refused; see the guide "What would it cost".
    progress:
        Called as ``progress(done, total)`` after every part of the compilation.
    name:
        Names the engine in its reports, and the directory that they are written to; see the option ``autoReport.directory``.
    sample:
        With mode "cost", for codelets whose cycles depend on data: by codelet and field the least and the largest value that is
        drawn, ``{"Search": {"keys": (0, 99)}}``. Each is priced with three seeds, and the largest price holds.
    assumptions:
        With mode "cost" what is assumed of control that data decide: see `assume`, `assume_count`, `assume_share`.
    comm:
        A communicator of mpi4py: its processes have equal shares of the graph's replicas, all of them make the engine, run the
        same programs, and meet where replicas do; the first one compiles. Under `poprun` that is so without it.

    Raises
    ------
    GraphConnectionError, InvalidTileMapping, GraphCycleError, GraphMemoryAllocationError
        When the graph is not a program of the machine; see `pypoplar.errors`.
    FileLoadError
        When a codelet of an executable from a file cannot be translated.
    """

    def __new__(  # noqa: PLR0913 (those of Poplar, and ours by name)
        cls,
        graph: Graph | Executable,
        programs: Program | Iterable[Program] | Options = None,
        options: Options = None,
        *,
        mode: Mode = "native",
        progress: Progress | None = None,
        name: str = "",
        sample: Samples | None = None,
        assumptions: Iterable[Assumption] = (),
        comm: object = None,
    ) -> Self:
        """An engine of a mode: one of mode "cost" is of a class of its own."""
        if mode == "cost" and cls is Engine:
            from pypoplar.engine.cost_engine import CostEngine  # late: most engines run

            return cast(Self, object.__new__(CostEngine))
        return super().__new__(cls)

    def __init__(  # noqa: PLR0913 (as of __new__)
        self,
        graph: Graph | Executable,
        programs: Program | Iterable[Program] | Options = None,
        options: Options = None,
        *,
        mode: Mode = "native",
        progress: Progress | None = None,
        name: str = "",
        sample: Samples | None = None,
        assumptions: Iterable[Assumption] = (),
        comm: object = None,
    ) -> None:
        if mode not in MODES:
            raise InvalidOption(f"mode is {mode!r}: expected 'native', 'interpret' or 'cost'")
        if sample is not None or assumptions:
            what = "sample" if sample is not None else "assumptions"
            raise InvalidOption(f"{what}: for mode='cost' only, which has no data; this engine has")
        self._spread = _spread(comm, graph, programs, options)
        self._name_and_compile(graph, programs, options, mode, progress, name, ())
        translate_codelets(self.executable)
        threads = 1 if mode == "interpret" or self.executable.options.races == "elements" else self.executable.options.threads
        self._replicas = make_replicas(self.executable, threads, None if self._spread is None else self._spread.ours)
        holders = None if self._spread is None else self._spread.peers.shares.of_replica
        self._host = HostSide(self.executable, self._replicas, holders)
        first = self._replicas[0]
        self._state, self._streams, self._services, self._runs = first.state, first.streams, first.services, first.runs
        self._all_runs = tuple(replica.runs for replica in self._replicas)
        self._mover: Runner = _make_runner(
            mode, self._replicas, threads
        )  # of what the host writes and reads, in this process alone
        self._runner: Runner = self._mover
        if self._spread is not None:
            self._runner = _make_runner(mode, self._replicas, threads, self._spread.meet(self.executable, first))
        self._loaded = False
        self._device: Device | None = None
        self._auto_report = self._writes_reports()

    def _writes_reports(self) -> AutoReport | None:
        """What writes the engine's profile by itself, if it is asked for; it does not hold the engine."""
        return _auto_report(self, self._profiled(None), self._report_maker())

    def _name_and_compile(
        self,
        graph: Graph | Executable,
        programs: Program | Iterable[Program] | Options,
        options: Options,
        mode: Mode,
        progress: Progress | None,
        name: str,
        assumptions: Iterable[Assumption],
    ) -> None:
        """What engines of all modes begin with."""
        if not isinstance(name, str):
            raise PoplarTypeError(f"the name of an Engine is a string, got {name!r}")
        self._mode: Mode = mode
        compiled: Literal["run", "cost"] = "cost" if mode == "cost" else "run"
        if isinstance(graph, Executable):
            if isinstance(programs, Mapping) and options is None:
                options, programs = programs, None
            if programs is not None:
                raise PoplarTypeError(f"an Executable has its programs already, got {programs!r} besides")
            if assumptions:
                raise InvalidOption("assumptions are decided when the graph is compiled; pass them to compileGraph")
            for watcher in watchers():
                watcher.takes(graph)
            if graph.mode != compiled:
                raise ApplicationRuntimeError(_other_mode(graph.mode, mode))
            self.executable = _with_options(graph, options)
            if self._spread is not None:
                self._spread.check_equal(self.executable)
        else:

            def compile() -> Executable:
                return compileGraph(
                    graph,
                    programs,  # type: ignore[arg-type]
                    options,
                    progress,
                    name=name,
                    mode=compiled,
                    assumptions=assumptions,
                )

            if self._spread is None:
                self.executable = compile()
            else:
                shared = self._spread.compiled(graph, programs, options, compile)
                self.executable = _with_options(shared, {} if options is None else options)
        if self._spread is not None:
            self.executable = evolve(self.executable, options=self._spread.own_options(self.executable.options))
        self._lock = threading.RLock()
        self._busy = False
        self._name, self._created = name, _now()

    # Loading and running

    def load(self, device: Device | None = None) -> None:
        """Put the program on a device: memory becomes uninitialised, then constants and initial values are written.

        Streams start again at the beginning of their arrays, random numbers and the cycle counter where they started, the
        report is empty.

        Parameters
        ----------
        device:
            A device whose target has the size, speed and timing that the program was compiled for; without one that of the last
            `prepare` or `load`.

        Raises
        ------
        PoplarTypeError
            If it is no `Device`.
        ApplicationRuntimeError
            If its target is another than the program's, if a `DeviceManager` gave it and it is not attached, or in a callback
            of a run.
        """
        self._choose_device(device, "load")
        self._alone(self._load)

    def _choose_device(self, device: Device | None, what: str) -> None:
        """The device for `what`, which all that follows needs attached; without one it stays the one before, if there is one."""
        if device is not None:
            _check_device(self.executable, device, self.executable.replicas if self._spread is None else len(self._spread.ours))
        chosen = self._device if device is None else device
        if chosen is not None:
            chosen.require_attached(what)
        self._device = chosen

    def _load(self) -> None:
        restart_all(self._replicas)
        self._host.rewind()
        if self._spread is not None:
            self._spread.load(self._replicas)
        self._loaded = True

    def _initialise(self) -> None:
        """Memory and streams as `load` leaves them."""
        initialise_all(self._replicas)
        self._host.rewind()

    def _alone(self, work: Callable[[], Result]) -> Result:
        """Do something with the engine's state: other threads wait meanwhile, and a callback of a run cannot do it at all."""
        with self._lock:
            if self._busy:
                raise ApplicationRuntimeError("the engine is running: a callback cannot load, run, read or write it")
            self._busy = True
            try:
                return work()
            finally:
                self._busy = False

    def _checkpoint(self, handles: Iterable[str]) -> Checkpoints:
        """For the tensors that the host writes by some handles: what `_return_to` takes, as of the last `Checkpoints.take`."""
        tensors = [self.executable.writes[handle] for handle in handles]
        return Checkpoints.of((replica.state for replica in self._replicas), tensors)

    def _return_to(self, checkpoint: Checkpoints) -> None:
        """Undo all that programs have done since: the tensors of the checkpoint are as they were, all else as `load` leaves it.

        The report stays, and tells of a run that failed.
        """

        def undo() -> None:
            self._initialise()
            checkpoint.put_back()

        self._alone(undo)

    def prepare(self, device: Device) -> None:
        """The first half of `load` in Poplar; here it only checks the device and keeps it for `deploy`.

        Parameters
        ----------
        device:
            A device, as `load` takes it.

        Raises
        ------
        PoplarTypeError, ApplicationRuntimeError
            As from `load`.
        """
        self._choose_device(device, "prepare")

    @public
    def deploy(self) -> None:
        """The second half of `load` in Poplar; here it loads onto the device of `prepare`."""
        self.load()

    def run(self, program: int = 0, name: str = "") -> None:
        """Run one of the engine's programs to its end.

        The engine can be used again after an error; a run that failed is in no figure of the report, which tells how far it
        came. Ctrl-C ends a run midway and leaves memory as it is then; `load` resets it.

        Parameters
        ----------
        program:
            Its number in the list of programs, from 0.
        name:
            Labels the run in reports; ``program 0`` and so on without one.

        Raises
        ------
        PoplarIndexError
            If there is no such program.
        ApplicationRuntimeError
            If nothing has been loaded, the device is no longer attached, or the program aborts.
        StreamConnectionError
            If the program uses a stream to which nothing is connected.
        CodeletRuntimeError
            The error of the first step in which a vertex failed, by its class, such as `CodeletIndexError`. What a callback
            raises comes out as it is.
        """
        entries = len(self.executable.entry_streams)
        try:
            program = operator.index(program)
        except TypeError:
            raise PoplarTypeError(f"run() takes the number of a program, got {program!r}") from None
        if not 0 <= program < entries:
            raise PoplarIndexError(f"program {program} is out of range: the engine has {entries}")
        self._require_load("run")
        self._choose_device(None, "run")
        self._require_streams(program)
        if self._spread is not None:
            self._alone(partial(self._spread.begin, program))
        entry, label = int(self.executable.entries[program]), name or f"program {program}"
        self._alone(lambda: count_all(self._all_runs, label, lambda: self._run_entry(entry, label)))
        if self._auto_report is not None:
            self._auto_report.after_run()

    def _require_streams(self, program: int) -> None:
        for replica in self._replicas:
            whose = f" of replica {replica.number}" if self.executable.replicas > 1 else ""
            replica.streams.require(self.executable.entry_streams[program], whose)

    def _run_entry(self, entry: int, name: str = "") -> None:
        for replica in self._replicas:
            replica.state.memory.marks[:] = 0
        bar = (
            RunBar(name, self._state.executed_steps, self._state.cycles)
            if name and wanted(self.executable.options.progress)
            else None
        )
        try:
            fault = (self._runner if name else self._mover).run(entry, bar)
        finally:
            if bar is not None:
                bar.close()
        if fault is not None:
            raise fault_error(self.executable, self._state.memory, fault)

    def loadAndRun(self, device: Device, program: int = 0) -> None:
        """`load` the programs on a device and `run` one of them.

        Parameters
        ----------
        device:
            A device, as `load` takes it.
        program:
            The number of the program, as `run` takes it.
        """
        self.load(device)
        self.run(program)

    def _require_load(self, what: str) -> None:
        if not self._loaded:
            raise ApplicationRuntimeError(f"{what}: the engine has not been loaded; call load(device) first")

    # Streams and host functions

    def connectStream(self, name: str, array: AnyArray) -> None:
        """Connect host memory to a stream. The array is held by reference, not copied.

        It is consumed chunk by chunk, in row-major order, and starts again at its end. The position is kept from run to run;
        connecting again and `load` reset it.

        Parameters
        ----------
        name:
            The handle of the stream.
        array:
            Of the stream's dtype, with a multiple of the elements of one transfer; C-contiguous, and writeable where a stream
            writes to it.

        Raises
        ------
        UnknownHandle
            If there is no such stream.
        StreamConnectionError
            If the array is none, or does not fit.
        """
        self._host.connect(str(name), array)

    @overload
    def connectStreamToCallback(self, name: str, replica: Callback, callback: None = None) -> None: ...

    @overload
    def connectStreamToCallback(self, name: str, replica: int | None, callback: Callback) -> None: ...

    @public
    def connectStreamToCallback(self, name: str, replica: int | Callback | None, callback: Callback | None = None) -> None:
        """Connect a callback to a stream: it gives or takes a chunk for each transfer.

        ``connectStreamToCallback(name, callback)`` is of all replicas: it is called for the chunk of one after the other, and of a
        stream that broadcasts once for all.

        Parameters
        ----------
        name:
            The handle of the stream.
        replica:
            The number of the replica to which it is connected; it may be left out.
        callback:
            A function of one array, of rank 1 with the elements of one transfer: it fills the array or returns the values, or
            reads it where the stream goes to the host. Or an iterator of chunks, or a `StreamCallback`.

        Raises
        ------
        UnknownHandle
            If there is no such stream.
        StreamConnectionError
            If it cannot be called so.
        PoplarIndexError
            If there is no such replica.

        Examples
        --------
        >>> from pypoplar import FLOAT, Engine, Graph, IPUModel
        >>> from pypoplar.program import Copy, Repeat
        >>> device = IPUModel("tiny").createDevice()
        >>> graph = Graph(device)
        >>> x = graph.addVariable(FLOAT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> graph.setInitialValue(x, [1.0, 2.0])
        >>> engine = Engine(graph, Repeat(2, Copy(x, graph.addDeviceToHostFIFO("out", FLOAT, 2))))
        >>> engine.connectStreamToCallback("out", lambda chunk: print(chunk.tolist()))
        >>> engine.loadAndRun(device)
        [1.0, 2.0]
        [1.0, 2.0]
        """
        if callback is None:
            replica, callback = None, replica
        self._host.connect_callback(str(name), replica, callback)  # type: ignore[arg-type]

    def connectHostFunction(
        self, name: str, function: Callable[..., object] | int, replica: int | Callable[..., object] | None = None
    ) -> None:
        """Connect a function of the host, which programs call by `program.Call`.

        Parameters
        ----------
        name:
            The handle of the host function, see `Graph.addHostFunction`.
        function:
            Called with the arrays of its inputs to read, then those of its outputs to fill, each of rank 1.
        replica:
            The number of the replica that calls it, before or behind the function; without it all replicas do, one after the
            other.

        Raises
        ------
        UnknownHandle
            If there is no such host function.
        StreamConnectionError
            If it cannot be called with as many arrays.
        PoplarIndexError
            If there is no such replica.

        Examples
        --------
        >>> from pypoplar import INT, Graph, IPUModel
        >>> from pypoplar.program import Call
        >>> device = IPUModel("tiny").createDevice()
        >>> graph = Graph(device)
        >>> x = graph.addVariable(INT, [2], "x")
        >>> graph.setTileMapping(x, 0)
        >>> graph.setInitialValue(x, [3, 4])
        >>> graph.createHostRead("x", x)
        >>> square = graph.addHostFunction("square", [(INT, 2)], [(INT, 2)])
        >>> engine = Engine(graph, Call(square, [x], [x]))
        >>> def squared(numbers, result):
        ...     result[:] = numbers**2
        >>> engine.connectHostFunction("square", squared)
        >>> engine.loadAndRun(device)
        >>> engine.readTensor("x").tolist()
        [9, 16]
        """
        services = [service for service in self.executable.services if service["kind"] == ServiceKind.HOST_FUNCTION]
        known = {service["name"]: (len(service["inputs"]), len(service["outputs"])) for service in services}
        if name not in known:
            raise unknown_name("host function", name, sorted(known))
        if callable(replica) and not callable(function):
            function, replica = replica, function
        if not callable(function):
            raise StreamConnectionError(f"host function {name!r}: expected a function, got {type(function).__name__}")
        inputs, outputs = known[name]
        wrong = misfit(function, *[""] * (inputs + outputs))
        if wrong:
            arrays = f"{inputs + outputs} array{'' if inputs + outputs == 1 else 's'}, {inputs} of inputs and {outputs} of outputs"
            raise StreamConnectionError(f"host function {name!r}: expected a function of {arrays}, got {wrong}")
        for chosen in self._host.chosen(replica, "connectHostFunction"):
            chosen.services.host_functions[name] = function

    # Tensors by handle

    def writeTensor(self, handle: str, array: ArrayLike) -> None:
        """Write host data to the tensor of a handle that `Graph.createHostWrite` made.

        Parameters
        ----------
        handle:
            The name of the host write.
        array:
            An array of the tensor's dtype with as many elements, or numbers, as lists or one, that its type can hold; shaped
            like the tensor or flat. All replicas are written the same values, unless the handle is of what
            `Graph.getNonReplicatedTensor` gave: then the first axis is the replicas'.

        Raises
        ------
        UnknownHandle
            If there is no such handle.
        TensorIOStateError
            If dtype, shape or a value does not fit.
        ApplicationRuntimeError
            If nothing has been loaded, or in a callback of a run.
        """
        tensor = self._find_handle(self.executable.writes, handle, "write")
        dtype = BY_NAME[tensor.type].dtype
        shape = self._host.written_shape(handle, tensor)
        values = self._services.check_host_array(f"handle {handle!r}", array, dtype, shape)
        self._require_load("writeTensor")
        of_each = self._host.of_each(handle, np.ascontiguousarray(values))
        self._alone(lambda: self._host.transfer(tensor, of_each, self._run_entry))

    def readTensor(self, handle: str, array: AnyArray | None = None) -> AnyArray:
        """Read the tensor of a handle that `Graph.createHostRead` made.

        Parameters
        ----------
        handle:
            The name of the host read.
        array:
            Where the values are written as well: an array of the tensor's dtype with as many elements.

        Returns
        -------
        AnyArray
            A new array of the tensor's shape and dtype; of several replicas, the first axis is theirs.

        Raises
        ------
        UnknownHandle
            If there is no such handle.
        TensorIOStateError
            If `array` does not fit or cannot be written to.
        ApplicationRuntimeError
            If nothing has been loaded, or in a callback of a run.
        """
        tensor = self._find_handle(self.executable.reads, handle, "read")
        dtype = BY_NAME[tensor.type].dtype
        self._require_load("readTensor")
        if array is not None:
            self._services.check_host_array(f"handle {handle!r}", array, dtype, self._host.read_shape(tensor), writes=True)
        values = self._alone(lambda: self._read(tensor))
        if array is not None:
            array[...] = values.reshape(array.shape)
        return values

    def _read(self, tensor: HostTensor) -> AnyArray:
        values = np.empty(self._host.read_shape(tensor), BY_NAME[tensor.type].dtype)
        self._host.transfer(tensor, self._host.rows(values), self._run_entry)
        return values

    def _find_handle(self, handles: Mapping[str, HostTensor], handle: str, kind: str) -> HostTensor:
        if handle not in handles:
            raise unknown_name(f"host {kind} handle", handle, list(handles))
        return handles[handle]

    def copyToRemoteBuffer(self, array: ArrayLike, name: str, row: int = 0, replica: int = 0) -> None:
        """Fill a row of a remote buffer with values of the host.

        Parameters
        ----------
        array:
            As many elements as a row has, in an array of the buffer's dtype or as numbers.
        name:
            The handle of the remote buffer, see `Graph.addRemoteBuffer`.
        row:
            Its number, from 0.
        replica:
            The number of the replica to which the rows belong: each has all rows of its own.

        Raises
        ------
        UnknownHandle
            If there is no such remote buffer.
        PoplarIndexError
            If it has no such row, or there is no such replica.
        TensorIOStateError
            If the array does not fit.
        """
        services = self._host.one(replica, "copyToRemoteBuffer").services
        number, target = services.find_remote(name, row)
        dtype = BY_NAME[self.executable.remotes[number].type].dtype
        target[:] = self._services.check_host_array(f"remote buffer {name!r}", array, dtype, target.shape).ravel()

    def copyFromRemoteBuffer(self, name: str, array: AnyArray, row: int = 0, replica: int = 0) -> None:
        """Read a row of a remote buffer into an array of the host.

        Parameters
        ----------
        name:
            The handle of the remote buffer, see `Graph.addRemoteBuffer`.
        array:
            An array of the buffer's dtype with as many elements as a row, which is written to.
        row:
            Its number, from 0.
        replica:
            The number of the replica to which the rows belong: each has all rows of its own.

        Raises
        ------
        UnknownHandle
            If there is no such remote buffer.
        PoplarIndexError
            If it has no such row, or there is no such replica.
        TensorIOStateError
            If the array does not fit or cannot be written to.
        """
        services = self._host.one(replica, "copyFromRemoteBuffer").services
        number, source = services.find_remote(name, row)
        dtype = BY_NAME[self.executable.remotes[number].type].dtype
        checked = self._services.check_host_array(f"remote buffer {name!r}", array, dtype, source.shape, writes=True)
        checked[...] = source.reshape(checked.shape)

    def setPrintStream(self, stream: TextIO) -> None:
        """Where `program.PrintTensor` and the prints of vertices write; standard error if it is never set.

        Parameters
        ----------
        stream:
            A text file that is open for writing.

        Raises
        ------
        PoplarTypeError
            If it is none.
        """
        check_text_stream(stream, "setPrintStream")
        for replica in self._replicas:
            replica.services.stream_out = stream

    # Reports

    def getReport(self, replica: int | None = None) -> Report:
        """What the program needs and what its runs since `load` or `resetExecutionProfile` cost.

        Parameters
        ----------
        replica:
            That of which the runs are told; without it that of the engine option ``profiler.replicaToProfile``, or the first.

        Returns
        -------
        Report
            Of one replica; memory is the same for all, and `Execution.replicas` has the cycles of each.

        Raises
        ------
        PoplarIndexError
            If there is no such replica.
        """
        report = self._report_maker()(self._profiled(replica).history())
        if self.executable.replicas == 1:
            return report
        from pypoplar.report.making.replica_totals import with_replicas  # late: many programs make no report

        return with_replicas(report, self.executable, self._accounts_of_replicas())

    def _accounts_of_replicas(self) -> dict[int, list[RunAccount]]:
        """The runs of the replicas of this process, by their numbers."""
        return {replica.number: replica.runs.accounts() for replica in self._host.replicas}

    def _profiled(self, replica: int | None) -> Runs:
        """The runs of which a report tells, those of a replica; where there is only one, the option changes nothing."""
        if replica is None and self.executable.replicas > 1:
            replica = self.executable.options.replica_to_profile
            if replica is not None and self._spread is not None and replica not in self._spread.ours:
                replica = None  # another process tells of it
        return self._runs if replica is None else self._host.one(replica, "getReport").runs

    def _report_maker(self, options: EngineOptions | None = None) -> Callable[[RunHistory | None], Report]:
        """Makes reports of this engine without holding it; with other `options` than its own."""
        executable, name, created = self.executable, self._name, self._created
        if options is not None:
            executable = evolve(executable, options=options)

        def make(history: RunHistory | None) -> Report:
            from pypoplar.report.making.make_report import make_report  # late: many programs make no report

            return evolve(make_report(executable, history), name=name, created=created)

        return make

    def printProfileSummary(self, stream: TextIO, options: Mapping[str, OptionValue] | None = None) -> None:
        """Write the summary of the report as text.

        Parameters
        ----------
        stream:
            A text file that is open for writing.
        options:
            Each ``"true"`` or ``"false"``, the default: ``showExecutionSteps`` adds the steps of the program,
            ``showVarStorage`` variables and when they live, ``showPerIpuMemoryUsage`` the memory of each IPU;
            ``showOptimizations`` adds nothing here.

        Raises
        ------
        InvalidOption
            For an unknown option or another value.
        PoplarTypeError
            If the stream is none.
        """
        from pypoplar.report.text.summary import summary

        check_text_stream(stream, "printProfileSummary")
        stream.write(summary(self.getReport(), options or {}))

    def enableExecutionProfiling(self) -> None:
        """Let runs count in the report, as they do from the start."""
        for runs in self._all_runs:
            runs.profiling = True

    def disableExecutionProfiling(self) -> None:
        """Leave the runs that follow out of the report, until `enableExecutionProfiling`. They cost as much either way."""
        for runs in self._all_runs:
            runs.profiling = False

    def resetExecutionProfile(self) -> None:
        """Forget what runs so far have cost: the report is as after `load`."""
        for runs in self._all_runs:
            runs.reset()

    def getTileClockFrequency(self) -> float:
        """The frequency of the tiles of the program's target, in Hz."""
        return self.executable.target.getTileClockFrequency()

    def serializeExecutable(self, stream: Place) -> None:
        """Write the executable as `Executable.save` does.

        Parameters
        ----------
        stream:
            A path, or a binary file that is open for writing.

        Raises
        ------
        PoplarTypeError
            As from `Executable.save`.
        """
        self.executable.save(stream)


def _other_mode(compiled: str, mode: Mode) -> str:
    """The message for an executable of one mode in an engine of another."""
    if compiled == "cost":
        return f"the executable was compiled with mode='cost': it has no data to run with mode={mode!r}; compile it without"
    return "the executable was compiled to be run: compile it with compileGraph(..., mode='cost') for an engine with mode='cost'"


def _with_options(executable: Executable, options: Options) -> Executable:
    """The executable with other engine options, where some are given, here or by the environment."""
    parsed = EngineOptions.parse(dict(executable.options.given) if options is None else options)
    given, kept = dict(parsed.given), dict(executable.options.given)
    for name in DECIDED_WHEN_COMPILED:
        attribute = find_option(name).attribute
        if name in given and getattr(parsed, attribute) != getattr(executable.options, attribute):
            raise InvalidOption(f"{name} is decided when the graph is compiled; pass it to compileGraph")
    if parsed.uninitialised == "error" and executable.shares_memory:
        raise InvalidOption(
            "pypoplar.uninitialised = 'error' needs a program whose variables share no memory; pass it to compileGraph"
        )
    decided = {name: kept[name] for name in (*DECIDED_WHEN_COMPILED, *KEPT) if name in kept and name not in given}
    return evolve(executable, options=parsed.changed(decided) if decided else parsed)


def _auto_report(engine: Engine, runs: Runs, make: Callable[[RunHistory | None], Report]) -> AutoReport | None:
    options = engine.executable.options
    if not (options.output_graph_profile or options.output_execution_profile):
        return None
    report = AutoReport(options, make(None).name, lambda: runs.told, lambda: make(None), lambda: make(runs.history()))
    report.attach(engine)
    return report


class Runner(Protocol):
    """Made with the engine, so that what cannot be compiled fails then and not in the middle of a run."""

    def run(self, entry: int, progress: Callable[[], None] | None = None) -> Fault | None:
        """Run the program from row `entry` on; the fault that ended it, if one did. `progress` is called now and then."""


def _spread(
    comm: object, graph: Graph | Executable, programs: Program | Iterable[Program] | Options, options: Options
) -> SpreadReplicas | None:
    """How the replicas of an engine are spread over processes; None where all are of this one."""
    if comm is None and not instance_environment.is_set():
        return None
    from pypoplar.engine.processes.spread_replicas import spread  # late: most engines are of one process
    from pypoplar.graph.graph import Graph as AnyGraph

    if isinstance(graph, Executable):
        given = programs if options is None and isinstance(programs, Mapping) else options
        return spread(comm, graph.replicas, dict(graph.options.given) if given is None else given)
    top: object = graph
    replicas = top.getTopLevelGraph().replicas().count if isinstance(top, AnyGraph) else 1
    return spread(comm, replicas, options)


def _make_runner(mode: Mode, replicas: Sequence[Replica], threads: int, meeting: MpiMeeting | None = None) -> Runner:
    first = replicas[0]
    several = first.state.executable.replicas > 1
    if mode == "native":
        from pypoplar.engine.native.runner import NativeRunner

        native = NativeRunner(first.state, first.services)
        others = [NativeRunner(replica.state, replica.services, native.codelets) for replica in replicas[1:]]
        return replicas_together(replicas, [native, *others], threads or available_processors(), meeting) if several else native
    from pypoplar.engine.interpreter.interpreter import InterpretingRunner

    interpreting = InterpretingRunner(first.state, first.services)
    more = [InterpretingRunner(replica.state, replica.services, interpreting.forms) for replica in replicas[1:]]
    return replicas_together(replicas, [interpreting, *more], 0, meeting) if several else interpreting


def _check_device(executable: Executable, device: object, here: int) -> None:
    if not isinstance(device, Device):
        hint = "; its createDevice() makes one" if isinstance(device, IPUModel) else ""
        raise PoplarTypeError(f"expected a Device, got {type(device).__name__}{hint}")
    target, compiled = device.getTarget(), executable.target
    speeds = target.getTileClockFrequency(), compiled.getTileClockFrequency()
    memories = target.getBytesPerTile(), compiled.getBytesPerTile()
    if speeds[0] != speeds[1] or memories[0] != memories[1]:
        raise ApplicationRuntimeError(
            f"the device's tiles have {memories[0]:,} bytes at {speeds[0] / 1e6:,.0f} MHz, "
            f"but the program was compiled for {memories[1]:,} bytes at {speeds[1] / 1e6:,.0f} MHz"
        )
    if target.timing != compiled.timing:
        raise ApplicationRuntimeError(
            f"the device has {target.timing} timing, but the program was compiled for {compiled.timing} timing; "
            f"compile for this device, or make one with timing={compiled.timing!r}"
        )
    links = target.getIpuLinkConfiguration(), compiled.getIpuLinkConfiguration()
    if links[0] != links[1]:
        raise ApplicationRuntimeError(
            f"the device has ipuLinkConfiguration {links[0]!r}, but the program was compiled for {links[1]!r}"
        )
    ipus = executable.replicas * compiled.getNumIPUs()
    fitting = (ipus, here * compiled.getNumIPUs())  # all of them, or those of this process
    if target.getNumIPUs() not in fitting or target.getTilesPerIPU() != compiled.getTilesPerIPU():
        each = f", {compiled.getNumIPUs()} for each of {executable.replicas} replicas" if executable.replicas > 1 else ""
        raise ApplicationRuntimeError(
            f"the device has {target.getNumIPUs()} IPUs of {target.getTilesPerIPU()} tiles, "
            f"but the program was compiled for {ipus} of {compiled.getTilesPerIPU()}{each}"
        )
