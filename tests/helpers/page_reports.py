"""Small reports with known figures, for the tests of pages and insights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve
from engine_builder import tiny
from lowered_variables import with_one_life

from pypoplar import Engine, Graph
from pypoplar.program import Sequence as ProgramSequence
from pypoplar.report.execution import Execution, Run, Step, VertexTypeCycles
from pypoplar.report.memory_report import LoweredVariables, MemoryByTile
from pypoplar.report.program_nodes import ComputeSet, Program, VertexInstances
from pypoplar.report.report import Compilation, ExchangeReport, Report, ReportGraph, ReportTarget, Version, VertexType
from pypoplar.report.trace import Trace

LIMIT = 1000  # bytes of a tile


def memory(variables: list[int], code: Sequence[int] = (0, 0, 0, 0), gaps: Sequence[int] = (0, 0, 0, 0)) -> MemoryByTile:
    return MemoryByTile({"variables": np.array(variables), "code": np.array(code)}, np.array(gaps))


def leaf(name: str, step: int, kind: str = "OnTileExecute") -> Program:
    compute_set = ComputeSet(name, (VertexInstances("Work", 4),)) if kind == "OnTileExecute" else None
    return Program(name, kind, step=step, computeset=compute_set)


def compute(
    name: str, number: int, cycles: list[int], *, active: list[int] | None = None, times: int = 1, sync: int = 0, **more: Any
) -> Step:
    """A compute step; `cycles` by tile are those of all executions."""
    return Step(
        name=name,
        type="OnTileExecute",
        executions=times,
        number=number,
        sync_cycles=sync,
        compute_cycles=max(cycles),
        cyclesByTile=np.array(cycles),
        activeCyclesByTile=np.array(cycles if active is None else active),
        program=leaf(name, number),
        **more,
    )


def exchange(
    name: str,
    number: int,
    cycles: list[int],
    sent: list[int],
    received: list[int],
    *,
    times: int = 1,
    sync: int = 0,
    pieces: Sequence[int] = (),
) -> Step:
    return Step(
        name=name,
        type="DoExchange",
        executions=times,
        number=number,
        sync_cycles=sync,
        exchange_cycles=max(cycles),
        exchange_cycles_by_tile=np.array(cycles),
        bytesSentByTile=np.array(sent),
        bytesReceivedByTile=np.array(received),
        pieces_by_tile=np.array(pieces, np.int64),
        program=leaf(name, number, "DoExchange"),
    )


def report(
    *steps: Step,
    tile_memory: MemoryByTile | None = None,
    variables: LoweredVariables | None = None,
    trace: Trace | None = None,
    name: str = "small",
    peaks: dict[str, float] | None = None,
    types: dict[str, VertexTypeCycles] | None = None,
    exchanges: tuple[ExchangeReport, ...] = (),
) -> Report:
    """A report of four tiles; it has run if there are steps."""
    programs = tuple(step.program for step in steps if step.program is not None)
    target = ReportTarget("ipu2", 1, 4, LIMIT, 1e6, peak_flops_per_cycle=peaks or {}, memory_bytes_per_cycle=8)
    compilation = Compilation(
        target,
        ReportGraph(4, 8, 2, len(steps)),
        tile_memory if tile_memory is not None else memory([100, 200, 300, 400]),
        programs=(Program("main", "Sequence", programs),) if steps else (),
        step_programs=programs,
        vertex_types=(VertexType("Work", 4, 64, {"code": 4}),) if steps else (),
        loweredVariables=variables if variables is not None else LoweredVariables(),
        exchanges=exchanges,
    )
    execution = None
    if steps:
        by_type = types if types is not None else {"Work": VertexTypeCycles(4, 100)}
        runs = (Run("main", tuple(steps)),)
        execution = Execution(tuple(steps), by_type, ("main",), 4, runs, trace if trace is not None else Trace(), 1e6)
    return Report(compilation, execution, Version("0.1.0"), name)


def two_ipus() -> Report:
    """Two IPUs of two tiles: tile 0 sends 40 B to tile 2 and 4 B to its neighbour, tile 3 sends 10 B to tile 1, all twice.

    That takes 40 cycles between the IPUs, whose link carries 4 B in one.
    """
    over = evolve(exchange("over", 0, [2, 2, 0, 0], [88, 0, 0, 20], [0, 28, 80, 0], times=2), global_exchange_cycles=40)
    made = report(over, exchanges=(messages("over", 0, (0, 1, 4), (0, 2, 40), (3, 1, 10)),))
    target = evolve(made.compilation.target, numIPUs=2, tilesPerIpu=2, link_bytes_per_cycle=4.0)
    return evolve(made, compilation=evolve(made.compilation, target=target))


def variables(*rows: tuple[str, bool, int, int], places: Sequence[dict[int, int]]) -> LoweredVariables:
    """Variables of (name, always, begin, end); `places` has for each its {tile: bytes}."""
    names, always, begin, end = zip(*rows, strict=True)
    tiles = [list(sizes) for sizes in places]
    return with_one_life(
        names,
        np.array(always),
        np.array(begin),
        np.array(end),
        np.cumsum([0, *map(len, tiles)]),
        np.array([tile for homes in tiles for tile in homes]),
        np.array([size for sizes in places for size in sizes.values()]),
    )


def events(*rows: tuple[int, int]) -> Trace:
    """A trace of one run from (step, cycles), one after the other."""
    step, cycles = (np.array(column) for column in zip(*rows, strict=True))
    return Trace(step.astype(np.int32), np.zeros(len(step), np.int32), np.cumsum(cycles) - cycles, cycles)


def messages(name: str, step: int, *rows: tuple[int, int, int]) -> ExchangeReport:
    source, destination, size = (np.array(column) for column in zip(*rows, strict=True))
    return ExchangeReport(name, "copy", step, source, destination, size)


def ran_without_steps() -> Report:
    """The report of an empty program that has run."""
    device = tiny()
    engine = Engine(Graph(device.getTarget()), ProgramSequence())
    engine.load(device)
    engine.run()
    return engine.getReport()
