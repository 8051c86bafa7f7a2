"""Small graphs for the tests of the engine: variables with values that can be read back, and vertices in one line each."""

from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import numpy as np

from pypoplar import (
    BOOL,
    FLOAT,
    INT,
    ComputeSet,
    Device,
    Engine,
    Graph,
    InOut,
    Input,
    IPUModel,
    Output,
    PoplarError,
    Tensor,
    Vector,
    Vertex,
    VertexRef,
)
from pypoplar.engine import division
from pypoplar.program import Execute
from pypoplar.report.trace import Trace
from pypoplar.types import type_of_dtype

Options = Mapping[str, Any]
LOG_ENTRIES = 200


class Add(Vertex):
    """value += amount"""

    value: InOut[INT]
    amount: INT

    def compute(self) -> None:
        self.value += self.amount


class Less(Vertex):
    """out = value < limit"""

    value: Input[INT]
    out: Output[BOOL]
    limit: INT

    def compute(self) -> None:
        self.out = self.value < self.limit


class Enter(Vertex):
    """Appends a number to a log, whose first element counts."""

    log: InOut[Vector[INT]]
    number: INT

    def compute(self) -> None:
        self.log[0] += 1
        self.log[self.log[0]] = self.number


def tiny(tiles: int = 16, timing: str = "model", ipus: int = 1) -> Device:
    """A device of so many tiles on each IPU."""
    model = IPUModel("tiny", timing)
    model.tilesPerIPU = tiles
    model.numIPUs = ipus
    return model.createDevice()


class Bench:
    """A graph whose variables have values after `load`, and can be read by name."""

    def __init__(self, device: Device | None = None, replicas: int = 1) -> None:
        self.device = device or tiny(ipus=replicas)
        self.graph = Graph(self.device, replicas)

    def variable(self, name: str, values: Any, tile: Any = 0, type: Any = None) -> Tensor:
        """A variable with initial values; `tile` is one, or one for each element of the flattened variable."""
        array = np.asarray(values)
        if type is None:
            type = {np.dtype(np.int64): INT, np.dtype(np.float64): FLOAT}.get(array.dtype) or type_of_dtype(array.dtype)
        array = array.astype(type.dtype)
        tensor = self.graph.addVariable(type, list(array.shape), name)
        if np.ndim(tile):
            for number, home in zip(range(array.size), tile, strict=True):
                self.graph.setTileMapping(tensor.flatten()[number], int(home))
        else:
            self.graph.setTileMapping(tensor, tile)
        self.graph.setInitialValue(tensor, array)
        self.handles(name, tensor)
        return tensor

    def handles(self, name: str, tensor: Tensor) -> None:
        self.graph.createHostRead(name, tensor)
        self.graph.createHostWrite(name, tensor)

    def vertex(self, compute_set: ComputeSet, codelet: type[Vertex] | str, tile: int = 0, **fields: Any) -> VertexRef:
        vertex = self.graph.addVertex(compute_set, codelet, fields)
        self.graph.setTileMapping(vertex, tile)
        return vertex

    def execute(self, codelet: type[Vertex] | str, tile: int = 0, result: Tensor | None = None, **fields: Any) -> Execute:
        """A compute set of one vertex."""
        compute_set = self.graph.addComputeSet(codelet if isinstance(codelet, str) else codelet.__name__)
        self.vertex(compute_set, codelet, tile, **fields)
        return Execute(compute_set, result)

    def log(self) -> None:
        """A variable that `enter` writes to."""
        self.entries = self.variable("log", np.zeros(LOG_ENTRIES, np.int32), tile=1)

    def enter(self, number: int) -> Execute:
        """A program that appends a number to the log."""
        return self.execute(Enter, 1, log=self.entries, number=number)

    def engine(self, program: Any, mode: Any = "native", options: Options | None = None) -> Engine:
        """An engine on which the program is loaded."""
        engine = Engine(self.graph, program, options, mode=mode)
        engine.load(self.device)
        return engine


def logged(engine: Engine) -> list[int]:
    """The numbers in the log of an engine's `Bench`."""
    log = engine.readTensor("log")
    numbers: list[int] = log[1 : 1 + log[0]].tolist()
    return numbers


def ran(bench: Bench, program: Any, mode: Any) -> list[int]:
    """The numbers that a program has put into the log of its `Bench`."""
    engine = bench.engine(program, mode)
    engine.run()
    return logged(engine)


WAYS = (("interpret", 1), ("native", 1), ("native", 2), ("native", 3))


def everywhere(work: Callable[[Any, dict[str, Any]], Any], options: Options | None = None) -> Any:
    """`work(mode, options)` in both engines, natively on one, two and three threads: the outcome must be the same.

    Returns it, or raises it if it is an error. All steps are divided among the threads, small ones too.
    """
    outcomes: list[Any] = []
    for mode, threads in WAYS:
        with patch.object(division, "SERIAL", 0):
            try:
                outcomes.append(work(mode, {**(options or {}), "pypoplar.threads": threads}))
            except PoplarError as error:
                outcomes.append(error)
    for way, outcome in zip(WAYS[1:], outcomes[1:], strict=True):
        assert shown(outcome) == shown(outcomes[0]), way
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]
    return outcomes[0]


def shown(outcome: Any, nan_bits: bool = True) -> Any:
    """An outcome as something that is equal where every bit is, those of NaN possibly excepted."""
    if isinstance(outcome, np.ndarray):
        if not nan_bits and outcome.dtype.kind == "f":
            outcome = np.where(np.isnan(outcome), outcome.dtype.type(np.nan), outcome)
        return outcome.dtype, outcome.shape, outcome.tobytes()
    if isinstance(outcome, dict):
        return {name: shown(value, nan_bits) for name, value in outcome.items()}
    if isinstance(outcome, list | tuple):
        return [shown(value, nan_bits) for value in outcome]
    return (type(outcome), str(outcome)) if isinstance(outcome, Exception) else outcome


def counted(engine: Engine) -> list[Any]:
    """Flops and bytes by step, flops and bytes by codelet, as the engine has counted them."""
    runs = engine._runs
    accounts = [*runs.history().runs, runs._run_account("none", 0, engine._state.new_account())]
    names = ("step_flops", "step_bytes", "codelet_flops", "codelet_bytes")
    return [np.sum([getattr(account, name) for account in accounts], 0) for name in names]


def traced(trace: Trace) -> list[Any]:
    """A trace as arrays and numbers to compare."""
    return [trace.step, trace.run, trace.begin, trace.cycles, trace.missed]
