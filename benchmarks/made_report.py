"""A report as a large program would have, made without running one: for the page's tests and benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypoplar.arrays.groups import opens
from pypoplar.report.execution import Execution, Run, Step, Trace, VertexTypeCycles, summed
from pypoplar.report.line_profile import (
    CodeletText,
    FieldSize,
    LinePart,
    LineProfile,
    SlowestVertex,
    SourceLine,
    VertexGroup,
)
from pypoplar.report.memory_report import LoweredVariables, MemoryByTile
from pypoplar.report.program_nodes import ComputeSet, Program, VertexInstances
from pypoplar.report.report import Compilation, ExchangeReport, Report, ReportGraph, ReportTarget, Version, VertexType

KINDS = ("DoExchange", "OnTileExecute", "OnTileExecute", "DoExchange", "OnTileExecute", "Sync")
LAYERS = ("conv1", "conv2", "fc1", "fc2", "loss", "update")
VERTEX_TYPES = (
    "poplin::ConvPartialnx1<half,half,true,false,16>",
    "popops::BinaryOp2D<ADD,float>",
    "popops::Reduce<popops::ReduceAdd,float,float>",
    "popnn::NonLinearity1D<float,RELU>",
    "poputil::Transpose<half>",
)
CLOCK = 1.85e9


def made_report(
    *,
    tiles: int = 1472,
    ipus: int = 1,
    steps: int = 60,
    events: int = 10_000,
    runs: int = 2,
    variables: int = 400,
    seed: int = 0,
    rename: Callable[[str], str] = str,
) -> Report:
    """A report of `ipus` times `tiles` tiles, `steps` static steps, and a trace of `events` executions in `runs` runs.

    `rename` is applied to every name that a user could choose.
    """
    random = np.random.default_rng(seed)
    count = tiles * ipus
    leaves = [_leaf(number, steps, rename) for number in range(steps)]
    run_reports = tuple(_run(random, f"train {number}", leaves, count, events // runs // steps + 1, ipus) for number in range(runs))
    total = tuple(summed(list(same)) for same in zip(*(one.steps for one in run_reports), strict=True))
    held = _variables(random, variables, steps, count, rename)
    memory = _memory(random, count)
    compilation = Compilation(
        target=ReportTarget(
            "ipu21",
            ipus,
            tiles,
            638_976,
            CLOCK,
            system="bow",
            peak_flops_per_cycle={"half": 128.0, "float": 32.0},
            memory_bytes_per_cycle=16,
            link_bytes_per_cycle=28.6,
        ),
        graph=ReportGraph(numVertices=312_480, numEdges=1_048_211, numVars=variables, numComputeSets=steps // 2),
        memory=memory,
        programs=(_tree(leaves, rename),),
        step_programs=tuple(leaves),
        vertex_types=tuple(
            VertexType(
                rename(name), 1000 * (number + 1), 64_000 * (number + 3), {"estimator": 900, "code": 1000 * (number + 1) - 900}
            )
            for number, name in enumerate(VERTEX_TYPES)
        ),
        loweredVariables=held,
        exchanges=_exchanges(random, leaves, count),
        options={rename("profiler.includeFlopEstimates"): "true", "debug.workerStackSizeInBytes": rename("512")},
    )
    flops = sum(one.flops for one in total)
    by_type = {
        rename(name): VertexTypeCycles(
            1000 * (number + 1),
            91_000_000 // (number + 1),
            flops // (number + 2),
            flops // (3 * number + 4),
            80_000_000 // (number + 1),
            60_000_000 // (number + 1),
        )
        for number, name in enumerate(VERTEX_TYPES)
    }
    trace, lines = _trace(random, run_reports, events), _lines(random, leaves, count, rename)
    execution = Execution(total, by_type, (rename("train"),) * runs, count, run_reports, trace, CLOCK, lines=lines)
    return Report(compilation, execution, Version("0.1.0"), rename("digits"), "2026-11-01T12:00:00")


def _leaf(number: int, steps: int, rename: Callable[[str], str]) -> Program:
    name = rename(f"{LAYERS[number * len(LAYERS) // steps]}/step{number}")
    if number in (0, steps - 1):
        return Program(rename("images" if number == 0 else "losses"), "StreamCopy", step=number)
    kind = KINDS[number % len(KINDS)]
    if kind != "OnTileExecute":
        return Program(name, kind, step=number)
    chosen = [VERTEX_TYPES[number % len(VERTEX_TYPES)], VERTEX_TYPES[(number * 7 + 3) % len(VERTEX_TYPES)]]
    vertices = tuple(VertexInstances(rename(one), 1472 * (place + 1)) for place, one in enumerate(dict.fromkeys(chosen)))
    return Program(name, kind, step=number, computeset=ComputeSet(name, vertices))


def _tree(leaves: list[Program], rename: Callable[[str], str]) -> Program:
    inner = leaves[1:-1]
    size = max(1, len(inner) // len(LAYERS))
    layers = tuple(
        Program(rename(LAYERS[min(place, len(LAYERS) - 1)]), "Sequence", tuple(inner[place * size : (place + 1) * size]))
        for place in range(-(-len(inner) // size))
    )
    loop = Program("", "Repeat", (Program("", "Sequence", layers),), detail="83 times")
    return Program(rename("train"), "Sequence", (leaves[0], loop, leaves[-1]))


def _run(random: np.random.Generator, name: str, leaves: list[Program], tiles: int, times: int, ipus: int) -> Run:
    return Run(name, tuple(_step(random, one, tiles, times, ipus) for one in leaves))


def _step(random: np.random.Generator, leaf: Program, tiles: int, times: int, ipus: int) -> Step:
    common: dict[str, Any] = {
        "name": leaf.name,
        "type": leaf.type,
        "executions": times,
        "number": leaf.step,
        "program": leaf,
        "depth": 2,
    }
    if leaf.type == "StreamCopy":
        common |= {"depth": 0, "executions": 1}
        return Step(**common, sync_cycles=500, host_exchange_cycles=40_000, host_bytes=200_704)
    if leaf.type == "Sync":
        return Step(**common, sync_cycles=150 * times)
    if leaf.type == "DoExchange":
        sent = random.integers(0, 4096, tiles) * times
        received = random.permutation(sent)
        cycles = (30 * times + received // 4).astype(np.int64)
        return Step(
            **common,
            sync_cycles=150 * times,
            exchange_cycles=int(cycles.max()),
            exchange_cycles_by_tile=cycles,
            copy_cycles=40 * times,
            global_exchange_cycles=900 * times if ipus > 1 else 0,
            copy_cycles_by_tile=cycles[::-1] // 5,
            bytesSentByTile=sent,
            bytesReceivedByTile=received,
        )
    # Neighbours do about the same; the last layers use fewer tiles, and one tile is always late.
    used = tiles if leaf.step % 5 else tiles // 3
    cycles = np.zeros(tiles, np.int64)
    wave = 900 + 300 * np.sin(np.arange(used) / tiles * 9 + leaf.step)
    cycles[:used] = ((wave + random.integers(0, 120, used)) * times).astype(np.int64)
    cycles[used // 2] = int(cycles.max() * 1.3)
    active = (cycles * random.uniform(0.5, 1.0, tiles)).astype(np.int64)
    flops = int(cycles.sum()) * (2 + leaf.step % 17)
    return Step(
        **common,
        sync_cycles=30 * times,
        compute_cycles=int(cycles.max()),
        cyclesByTile=cycles,
        activeCyclesByTile=active,
        flops=flops,
        memory_bytes=int(flops / (0.1 + leaf.step % 13)),
    )


def _trace(random: np.random.Generator, runs: tuple[Run, ...], events: int) -> Trace:
    step: list[np.ndarray[Any, Any]] = []
    run: list[np.ndarray[Any, Any]] = []
    cycles: list[np.ndarray[Any, Any]] = []
    for number, one in enumerate(runs):
        share = events // len(runs)
        looped = np.arange(1, len(one.steps) - 1, dtype=np.int32)
        order = np.concatenate(([0], np.resize(looped, share - 2), [len(one.steps) - 1])).astype(np.int32)
        mean = np.array([each.cycles / max(1, each.executions) for each in one.steps])
        step.append(order)
        run.append(np.full(share, number, np.int32))
        cycles.append(np.maximum(1, mean[order] * random.uniform(0.9, 1.1, share)).astype(np.int64))
    lengths = np.concatenate(cycles)
    return Trace(np.concatenate(step), np.concatenate(run), np.cumsum(lengths) - lengths, lengths, missed=1234)


def _lines(random: np.random.Generator, leaves: list[Program], tiles: int, rename: Callable[[str], str]) -> LineProfile:
    """Codelets of 40 lines and 12 blocks, of which each compute set runs some."""
    texts = tuple(
        CodeletText(
            rename(name),
            1,
            tuple(
                SourceLine("compute", f"codelets/{number}.py", 10 + line, rename(f"{'    ' * (line % 4)}x[{line}] += 1"))
                for line in range(40)
            ),
            tuple((LinePart(3 * block, 2, 1), LinePart(3 * block + 1, block % 3 + 1, 1)) for block in range(12)),
        )
        for number, name in enumerate(VERTEX_TYPES)
    )
    groups, slowest = [], []
    for leaf in leaves:
        for vertices in leaf.computeset.vertices if leaf.computeset is not None else ():
            executions = tuple(random.integers(0, 1 << 20, 12).tolist())
            slots = sum(times * (3 + block % 3) for block, times in enumerate(executions))
            groups.append(VertexGroup(leaf.name, vertices.name, vertices.count, slots, executions))
        if leaf.computeset is not None:
            sizes = (FieldSize("in1Out", int(random.integers(1, 999))), FieldSize("rows", 12, 3))
            tile, cycles = int(random.integers(0, tiles)), int(random.integers(1, 9999))
            slowest.append(SlowestVertex(leaf.name, leaf.computeset.vertices[0].name, tile, cycles, sizes))
    return LineProfile(True, texts, tuple(groups), tuple(slowest))


def _variables(random: np.random.Generator, count: int, steps: int, tiles: int, rename: Callable[[str], str]) -> LoweredVariables:
    names = tuple(rename(f"{LAYERS[number % len(LAYERS)]}/variable{number}") for number in range(count))
    always = random.random(count) < 0.3
    begin = np.where(always, -1, random.integers(0, max(1, steps - 1), count))
    end = np.where(always, -1, np.minimum(steps, begin + 1 + random.integers(0, max(1, steps // 4), count)))
    spread = random.integers(1, max(2, tiles // 4), count)
    first = np.concatenate(([0], np.cumsum(spread)))
    tile = np.concatenate([(random.integers(0, tiles) + np.arange(size)) % tiles for size in spread])
    lives = np.flatnonzero(~always)  # each of the others has one
    first_life = np.concatenate(([0], np.cumsum(~always)))
    sizes = random.integers(1, 500, len(tile)) * 4
    order = np.argsort(tile, kind="stable")  # on each tile one behind the other
    before = np.cumsum(sizes[order]) - sizes[order]
    offset = np.empty_like(before)
    begins = np.flatnonzero(opens(tile[order]))
    offset[order] = before - np.repeat(before[begins], np.diff(np.append(begins, len(tile))))
    return LoweredVariables(names, always, first_life, begin[lives], end[lives], first, tile, sizes, offset=offset, span=sizes)


def _memory(random: np.random.Generator, tiles: int) -> MemoryByTile:
    place = np.arange(tiles)
    categories = {
        "variables": (180_000 + 90_000 * (place % 5 == 0) + random.integers(0, 30_000, tiles)).astype(np.int64),
        "constants": random.integers(0, 20_000, tiles),
        "exchange_buffers": random.integers(0, 60_000, tiles),
        "vertex_state": random.integers(1_000, 40_000, tiles),
        "edge_pointers": random.integers(1_000, 20_000, tiles),
        "code": np.full(tiles, 24_000),
        "stack": np.full(tiles, 3_200),
    }
    categories["variables"][tiles // 2] += 330_000
    whole = sum(categories.values())
    gaps = random.integers(0, 900, tiles)
    always = (np.asarray(whole) * 0.6).astype(np.int64)
    data = {"internal_vertex_state": 20_000_000, "edge_pointers": 14_000_000}
    return MemoryByTile(categories, gaps, data, {}, always, np.asarray(whole) - always)


def _exchanges(random: np.random.Generator, leaves: list[Program], tiles: int) -> tuple[ExchangeReport, ...]:
    made = []
    for leaf in leaves:
        if leaf.type != "DoExchange":
            continue
        shift = int(random.integers(1, tiles)) if tiles > 1 else 0
        source = np.repeat(np.arange(tiles), 3).astype(np.int32)
        destination = ((source + shift * (1 + np.arange(len(source)) % 3)) % tiles).astype(np.int32)
        phase = "copy" if leaf.step % 2 else "before"
        made.append(ExchangeReport(leaf.name, phase, leaf.step, source, destination, random.integers(1, 300, len(source)) * 4))
    return tuple(made)
