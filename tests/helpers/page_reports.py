"""Small reports with known figures, for the tests of pages and insights."""

import numpy as np

from pypoplar.report.execution import Execution, Run, Step, Trace, VertexTypeCycles
from pypoplar.report.memory_report import LoweredVariables, MemoryByTile
from pypoplar.report.program_nodes import ComputeSet, Program, VertexInstances
from pypoplar.report.report import Compilation, ExchangeReport, Report, ReportGraph, ReportTarget, Version, VertexType

LIMIT = 1000  # bytes of a tile


def memory(variables, code=(0, 0, 0, 0), gaps=(0, 0, 0, 0)):
    return MemoryByTile({"variables": np.array(variables), "code": np.array(code)}, np.array(gaps))


def leaf(name, step, kind="OnTileExecute"):
    held = ComputeSet(name, (VertexInstances("Work", 4),)) if kind == "OnTileExecute" else None
    return Program(name, kind, step=step, computeset=held)


def compute(name, number, cycles, *, active=None, times=1, sync=0, **more):
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


def exchange(name, number, cycles, sent, received, *, times=1, sync=0):
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
        program=leaf(name, number, "DoExchange"),
    )


def report(*steps, tile_memory=None, variables=None, trace=None, name="small", peaks=None, types=None, exchanges=()):
    """A report of four tiles; it has run if there are steps."""
    programs = tuple(one.program for one in steps)
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


def variables(*rows, places):
    """Variables of (name, always, begin, end); `places` has for each its {tile: bytes}."""
    names, always, begin, end = zip(*rows, strict=True)
    tiles = [list(one) for one in places]
    return LoweredVariables.with_one_life(
        names,
        np.array(always),
        np.array(begin),
        np.array(end),
        np.cumsum([0, *map(len, tiles)]),
        np.array([tile for one in tiles for tile in one]),
        np.array([size for one in places for size in one.values()]),
    )


def events(*rows):
    """A trace of one run from (step, cycles), one after the other."""
    step, cycles = (np.array(column) for column in zip(*rows, strict=True))
    return Trace(step.astype(np.int32), np.zeros(len(step), np.int32), np.cumsum(cycles) - cycles, cycles)


def messages(name, step, *rows):
    source, destination, size = (np.array(column) for column in zip(*rows, strict=True))
    return ExchangeReport(name, "copy", step, source, destination, size)
