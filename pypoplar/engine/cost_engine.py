"""The engine of mode "cost": it prices programs without running them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NoReturn, TextIO, cast

import numpy as np
from attrs import evolve, frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.engine.cost.class_runs import Samples
from pypoplar.engine.cost.cost_state import CostState
from pypoplar.engine.cost.samples import check_samples
from pypoplar.engine.engine import Engine, Mode, listed_assumptions
from pypoplar.engine.loaded_codelets import translate_codelets
from pypoplar.engine.replicas.host_side import replica_number
from pypoplar.engine.runs import Runs
from pypoplar.engine.streams import check_stream_array, unknown_name
from pypoplar.errors import ApplicationRuntimeError, InvalidOption
from pypoplar.executable.executable import Executable
from pypoplar.executable.host_plans import StreamPlan
from pypoplar.options import EngineOptions, Options
from pypoplar.program.assumptions import Assumption
from pypoplar.report.run_account import RunAccount, RunHistory
from pypoplar.tracebacks import public

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pypoplar.compiler.compile import Progress
    from pypoplar.graph.graph import Graph
    from pypoplar.program import Program
    from pypoplar.report.report import Report


@public
class CostEngine(Engine):
    """Prices programs without running them: what `Engine` makes with ``mode="cost"``."""

    def __init__(  # noqa: PLR0913 (as of Engine)
        self,
        graph: Graph | Executable,
        programs: Program | Iterable[Program] | Options = None,
        options: Options = None,
        *,
        mode: Mode = "cost",
        progress: Progress | None = None,
        name: str = "",
        sample: Samples | None = None,
        assumptions: Iterable[Assumption] = (),
        comm: object = None,
    ) -> None:
        if comm is not None:
            raise InvalidOption("comm: mode='cost' prices all replicas in each process, and none of them meets another")
        self._spread = None
        given = cast(tuple[Assumption, ...], listed_assumptions(assumptions))
        self._name_and_compile(graph, programs, options, "cost", progress, name, given)
        translate_codelets(self.executable)
        self._cost = CostState(self.executable, check_samples(self.executable, sample), _control_of(self.executable))
        self._loaded, self._device = False, None
        self._runs = Runs(self._cost, self.executable.options.profiled_runs)
        self._all_runs = (self._runs,)
        self._auto_report = self._writes_reports()

    def _report_maker(self, options: EngineOptions | None = None) -> Callable[[RunHistory | None], Report]:
        make, cost = super()._report_maker(options), self._cost
        return lambda history: evolve(make(history), cost=cost.basis())

    def _profiled(self, replica: int | None) -> Runs:
        """Those of one replica, which are like those of every other."""
        if replica is not None:
            replica_number(replica, self.executable.replicas, "getReport")
        return self._runs

    def _accounts_of_replicas(self) -> dict[int, list[RunAccount]]:
        return dict.fromkeys(range(self.executable.replicas), self._runs.accounts())

    def _load(self) -> None:
        self._cost.restart()
        self._runs.reset()
        self._loaded = True

    def _run_entry(self, entry: int, name: str = "") -> None:
        self._cost.run(entry)

    def _require_streams(self, program: int) -> None:
        """None of them: nothing is moved."""

    # What has no data

    def connectStream(self, name: str, array: AnyArray) -> None:
        """Nothing is read from the array or written to it, which is checked as if there were."""
        check_stream_array(self._require_stream(name), array)

    def connectStreamToCallback(self, name: str, replica: object, callback: object = None) -> None:
        """Refused: callbacks give and take data."""
        self._require_stream(name)
        _refuse(f"a callback of stream {name!r} would never be called", "leave the stream unconnected")

    def connectHostFunction(self, name: str, function: object, replica: object = None) -> None:
        """Refused: host functions compute with data."""
        _refuse(f"host function {name!r} would never be called", "price the programs around it")

    def writeTensor(self, handle: str, array: ArrayLike) -> None:
        """Refused: there is no memory to write."""
        _refuse(f"writeTensor({handle!r}) has no memory to write to", "leave it out")

    def readTensor(self, handle: str, array: AnyArray | None = None) -> NoReturn:
        """Refused: there is no memory to read."""
        _refuse(f"readTensor({handle!r}) has no memory to read from", "read what the run costs, from getReport()")

    def copyToRemoteBuffer(self, array: ArrayLike, name: str, row: int = 0, replica: int = 0) -> None:
        """Refused: remote buffers have no memory."""
        _refuse(f"remote buffer {name!r} has no memory to write to", "leave copyToRemoteBuffer out")

    def copyFromRemoteBuffer(self, name: str, array: AnyArray, row: int = 0, replica: int = 0) -> None:
        """Refused: remote buffers have no memory."""
        _refuse(f"remote buffer {name!r} has no memory to read from", "leave copyFromRemoteBuffer out")

    def setPrintStream(self, stream: TextIO) -> None:
        """Refused: nothing is printed."""
        _refuse("nothing is printed", "leave setPrintStream out")

    def _require_stream(self, name: str) -> StreamPlan:
        known = {stream.name: stream for stream in self.executable.streams if stream.kind != "internal"}
        if str(name) not in known:
            raise unknown_name("stream", name, list(known))
        return known[str(name)]


@frozen(eq=False)
class _ControlEngine:
    """An engine that computes values that decide, in another program."""

    engine: Engine

    def restart(self) -> None:
        """As a program has them that has just been loaded."""
        self.engine.load()

    def run(self, operation: int) -> None:
        """Do an operation that computes some of them."""
        self.engine.run(operation)

    def value(self, number: int) -> int:
        """One of them, as it is now; an unsigned number of 32 bits as the signed one that programs compare with."""
        value = self.engine.readTensor(str(number)).ravel()[0]
        return int(value.view(np.int32) if value.dtype == np.uint32 else value)


def _control_of(executable: Executable) -> _ControlEngine | None:
    """What computes values that decide in an executable, if anything does."""
    assert executable.cost is not None
    if not len(executable.cost.control):
        return None
    engine = Engine(Executable.deserialize(executable.cost.control.tobytes()), options=EngineOptions())
    engine.disableExecutionProfiling()
    engine.load()
    return _ControlEngine(engine)


def _refuse(what: str, way: str) -> NoReturn:
    raise ApplicationRuntimeError(f"{what}, as mode='cost' has no data: {way}, or run the program with mode='native'")
