"""Running a program in both engines and comparing what came of it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from attrs import field, frozen

from pypoplar.arrays.dtypes import AnyArray
from pypoplar.braces import CONNECTIONS, OPTIONS, ordered
from pypoplar.device import Device, IPUModel
from pypoplar.engine.engine import Engine, Mode
from pypoplar.engine.streams import unknown_name
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.program import Execute, Program
from pypoplar.testing.comparing import assert_same_bits
from pypoplar.tracebacks import public
from pypoplar.types import type_of_dtype

if TYPE_CHECKING:
    from pypoplar.engine.streams import Callback
    from pypoplar.graph.tensor import Tensor
    from pypoplar.graph.vertices import ComputeSet
    from pypoplar.options import OptionValue
    from pypoplar.report.report import Report

MODES: tuple[Mode, ...] = ("interpret", "native")
Built: TypeAlias = "Program | ComputeSet | tuple[Program | ComputeSet, Mapping[str, Tensor]]"
Mappings = Mapping[str, int | Sequence[Sequence[Any]]]


@public
@frozen(eq=False)
class Result:
    """What a run left behind, given by `run` or `run_vertex`: ``result["x"]`` is an array.

    Attributes
    ----------
    arrays:
        By name what each array, and each further tensor, holds.
    streams:
        By name the arrays that were connected to streams, with what was written to them.
    printed:
        What was printed, by the last mode.
    engine:
        That of the last mode; it can be run again, and the assertions on exchange take it or the result.
    """

    arrays: Mapping[str, AnyArray | list[AnyArray]]
    streams: Mapping[str, AnyArray]
    printed: str
    engine: Engine = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        if name not in self.arrays:
            raise unknown_name("array of the result", name, list(self.arrays))
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    @property
    def report(self) -> Report:
        """The report of the run, as `Engine.getReport` gives it."""
        return self.engine.getReport()


@public
def run(
    build: Callable[..., Built],
    arrays: Mapping[str, AnyArray],
    *,
    streams: Mapping[str, AnyArray | Callback] | None = None,
    mapping: Mappings | None = None,
    device: Device | None = None,
    options: Mapping[str, OptionValue] | None = None,
    modes: Sequence[Mode] = MODES,
    runs: int = 1,
) -> Result:
    """Run a program on arrays in both engines, fail unless they agree in every bit, and return what it left in them.

    Compared are all arrays, what was printed, and cycles and bytes of every step.

    Parameters
    ----------
    build:
        Called as ``build(graph, **tensors)`` with a variable for each array, of its shape and type. It returns a program, a
        compute set, or a pair of one of these and a dict of further tensors to read back; it may map the variables.
    arrays:
        What the variables hold at first, by name.
    streams:
        By name of a stream an array, of which a copy is connected, or a callback.
    mapping:
        By name of an array a tile, or a list of intervals per tile; without it elements are spread evenly over the tiles.
    device:
        What to run on; None: ``IPUModel("tiny")``, with 16 tiles.
    options:
        Engine options.
    modes:
        The modes of `Engine` that are compared.
    runs:
        How often the program runs.

    Returns
    -------
    Result
        Of the last mode.

    Raises
    ------
    AssertionError
        If the engines do not agree.
    PoplarTypeError
        If `build` returns something else, or an array has a type that the device does not have.
    UnknownHandle
        If `mapping` or `streams` name what there is not. Other errors of the program are raised here as they are, once both
        engines have raised them.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import testing
    >>> from pypoplar.program import Copy
    >>> arrays = {"x": np.float32([1, 2]), "y": np.float32([0, 0])}
    >>> testing.run(lambda graph, x, y: Copy(x, y), arrays)["y"].tolist()
    [1.0, 2.0]
    """
    for what, names in (("the arrays", arrays), ("the streams", streams), ("the mapping", mapping)):
        ordered(names, what, CONNECTIONS)
    for name, values in (*arrays.items(), *(streams or {}).items()):
        ordered(values, f"array {name!r}", "[1.0, 2.0]")
    ordered(options, "the options", OPTIONS)
    given = {name: np.asarray(array) for name, array in arrays.items()}
    for name in mapping or {}:
        if name not in given:
            raise unknown_name("array to map", name, list(given))
    chosen = device if device is not None else IPUModel("tiny").createDevice()
    case = _Case(build, given, streams or {}, mapping or {}, chosen, dict(options or {}), runs)
    outcomes = [case.attempt(mode) for mode in ordered(modes, "the modes", '["interpret", "native"]')]
    for outcome in outcomes[1:]:
        _compare(outcomes[0], outcome)
    last = outcomes[-1]
    if last.error is not None:
        raise last.error
    assert last.result is not None
    if last.result.printed:
        sys.stderr.write(last.result.printed)
    return last.result


@frozen(eq=False)
class _Outcome:
    mode: str
    result: Result | None
    error: Exception | None


@frozen(eq=False)
class _Case:
    """What each engine runs."""

    build: Callable[..., Any]
    arrays: Mapping[str, AnyArray]
    streams: Mapping[str, Any]
    mapping: Mappings
    device: Device
    options: dict[str, Any]
    runs: int

    def attempt(self, mode: Mode) -> _Outcome:
        try:
            return _Outcome(mode, self.run(mode), None)
        except Exception as error:
            return _Outcome(mode, None, error)

    def run(self, mode: Mode) -> Result:
        graph = Graph(self.device.getTarget())
        tensors = {name: _variable(graph, name, array, self.mapping.get(name)) for name, array in self.arrays.items()}
        program, further = _built(self.build(graph, **tensors))
        read = {**tensors, **further}
        for name, tensor in tensors.items():
            graph.createHostWrite(_write(name), tensor)
        for name, tensor in read.items():
            graph.createHostRead(_read(name), tensor)
        engine = Engine(graph, program, self.options, mode=mode)
        engine.load(self.device)
        printed = io.StringIO()
        engine.setPrintStream(printed)
        connected = {name: np.array(value) for name, value in self.streams.items() if not callable(value)}
        for name, value in self.streams.items():
            if name in connected:
                engine.connectStream(name, connected[name])
            else:
                engine.connectStreamToCallback(name, value)
        for name, array in self.arrays.items():
            engine.writeTensor(_write(name), array)
        for _ in range(self.runs):
            engine.run(0)
        values = {name: engine.readTensor(_read(name)) for name in read}
        return Result(values, connected, printed.getvalue(), engine)


def _variable(graph: Graph, name: str, array: AnyArray, mapping: int | Sequence[Sequence[Any]] | None) -> Any:
    try:
        tensor = graph.addVariable(type_of_dtype(array.dtype), list(array.shape), name)
    except PoplarTypeError as error:
        raise PoplarTypeError(f"array {name!r}: {error}") from None
    if mapping is not None:
        graph.setTileMapping(tensor, mapping)
    else:
        flat, tiles = tensor.flatten(), graph.getTarget().getNumTiles()
        share = -(-array.size // tiles)
        for tile, begin in enumerate(range(0, array.size, max(share, 1))):
            graph.setTileMapping(flat.slice(begin, min(begin + share, array.size)), tile)
    return tensor


def _built(built: Any) -> tuple[Program, dict[str, Any]]:
    program, further = built if isinstance(built, tuple) else (built, {})
    if not isinstance(program, Program):
        try:
            program = Execute(program)
        except PoplarTypeError:
            raise PoplarTypeError(f"build must return a program or a compute set, got {program!r}") from None
    return program, dict(further)


def _write(name: str) -> str:
    return f"write {name} (pypoplar.testing)"


def _read(name: str) -> str:
    return f"read {name} (pypoplar.testing)"


def _compare(first: _Outcome, second: _Outcome) -> None:
    of = (first.mode, second.mode)
    if first.error is not None or second.error is not None:
        texts = [f"{type(each.error).__name__}: {each.error}" if each.error is not None else "no error" for each in (first, second)]
        if texts[0] != texts[1]:
            raise AssertionError(f"the engines disagree: {of[0]} gives {texts[0]}; {of[1]} gives {texts[1]}") from (
                first.error or second.error
            )
        return
    assert first.result is not None
    assert second.result is not None
    for name in first.result:
        assert_same_bits(first.result[name], second.result[name], name, of)
    for name in first.result.streams:
        assert_same_bits(first.result.streams[name], second.result.streams[name], f"stream {name}", of)
    if first.result.printed != second.result.printed:
        raise AssertionError(f"the engines print differently: {of[0]} {first.result.printed!r}, {of[1]} {second.result.printed!r}")
    _compare_accounts(first.result, second.result, of)


def _compare_accounts(first: Result, second: Result, of: tuple[str, str]) -> None:
    left, right = first.report.execution, second.report.execution
    if left is None or right is None:  # of no runs
        return
    if [step.name for step in left.steps] != [step.name for step in right.steps]:
        raise AssertionError("the engines went through different steps")
    for a, b in zip(left.steps, right.steps, strict=True):
        for what in ("executions", "sync_cycles", "exchange_cycles", "compute_cycles", "host_bytes", "cyclesByTile"):
            assert_same_bits(np.asarray(getattr(a, what)), np.asarray(getattr(b, what)), f"{what} of step {a.name!r}", of)
