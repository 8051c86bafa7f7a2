"""Made-up reports for the tests of profile files and traces, and what it means that two are equal."""

from typing import Any

import numpy as np
from attrs import evolve, fields, has
from hypothesis import strategies as st
from lowered_variables import with_one_life
from numpy.typing import NDArray

from pypoplar.presets import TIMINGS
from pypoplar.report.execution import BY_IPU, Execution, Run, Step, VertexTypeCycles, summed
from pypoplar.report.line_profile import (
    CodeletText,
    FieldSize,
    LinePart,
    LineProfile,
    LoopHint,
    SlowestVertex,
    SourceLine,
    VertexGroup,
)
from pypoplar.report.memory_report import LoweredVariables, MemoryByTile
from pypoplar.report.program_nodes import ComputeSet, Program, VertexInstances
from pypoplar.report.report import Compilation, ExchangeReport, HostLink, Report, ReportGraph, ReportTarget, Version, VertexType
from pypoplar.report.tile_vertices import FieldSizes, SizedVertices, VerticesByTile
from pypoplar.report.trace import RecordedTiles, Trace

PLAIN = (bool, int, float, str, type(None))


Pair = tuple[str, Any, Any]  # where in the reports, and the two things that are there


def differences(report: Any, twin: Any, path: str = "report") -> list[str]:
    """Where two reports differ, attribute by attribute; nothing where they are equal, types and order included."""
    pending: list[Pair] = [(path, report, twin)]
    lines: list[str] = []
    compared: set[tuple[int, int]] = set()
    while pending:
        place, left, right = pending.pop()
        if (id(left), id(right)) in compared:  # a program that is there in several places
            continue
        if has(type(left)):
            compared.add((id(left), id(right)))
        if isinstance(left, (np.ndarray, *PLAIN)):
            if not _same_value(left, right):
                lines.append(f"{place}: {left!r} != {right!r}")
        else:
            difference, parts = _parts(place, left, right)
            lines += difference
            pending += parts
    return lines


def _same_value(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    return bool(left == right) and (type(left) is type(right) or {type(left), type(right)} == {int, float})


def _parts(place: str, left: Any, right: Any) -> tuple[list[str], list[Pair]]:
    """How two containers differ, and what is in both of them."""
    if isinstance(left, dict):
        if list(left) != list(right):
            return [f"{place}: {list(left)} != {list(right)}"], []
        return [], [(f"{place}[{key!r}]", value, right[key]) for key, value in left.items()]
    if has(type(left)) and type(left) is type(right):
        names = [field.name for field in fields(type(left))]
        return [], [(f"{place}.{name}", getattr(left, name), getattr(right, name)) for name in names]
    # a tuple, or something that reads as one
    lengths = [f"{place} has {len(left)} != {len(right)} entries"] if len(left) != len(right) else []
    return lengths, [(f"{place}[{number}]", *both) for number, both in enumerate(zip(left, right, strict=False))]


counts = st.integers(0, 1 << 40)
names = st.text(max_size=5)
floats = st.floats(0, 1e12)


def arrays(draw: st.DrawFn, length: int, dtype: Any = np.int64, most: int = 1 << 40) -> NDArray[Any]:
    """Numbers, half of them 0."""
    values = draw(st.lists(st.one_of(st.just(0), st.integers(0, most - 1)), min_size=length, max_size=length))
    return np.array(values, dtype)


@st.composite
def program_trees(draw: st.DrawFn, steps: int) -> tuple[tuple[Program, ...], tuple[Program, ...]]:
    """Program trees and the leaves that are the static steps; a part may be there in several places, once or twice over."""
    sets = st.builds(ComputeSet, names, st.lists(st.builds(VertexInstances, names, counts), max_size=3).map(tuple), names)
    kinds = st.sampled_from(["OnTileExecute", "DoExchange", "StreamCopy", "Sync"])
    known: dict[ComputeSet, ComputeSet] = {}  # equal ones are one object, as in every report of a run
    one_set = sets.map(lambda compute_set: known.setdefault(compute_set, compute_set))
    leaves = [
        draw(st.builds(Program, names, kinds, st.just(()), st.just(step), names, st.none() | one_set, names))
        for step in range(steps)
    ]
    programs = [*leaves, Program("", "Sequence")]
    for _ in range(draw(st.integers(0, 5))):
        children = tuple(draw(st.lists(st.sampled_from(programs), max_size=4)))
        programs.append(
            Program(draw(names), draw(st.sampled_from(["Sequence", "Repeat", "If", "Call"])), children, -1, draw(names))
        )
    return tuple(draw(st.lists(st.sampled_from(programs), max_size=3))), tuple(leaves)


@st.composite
def lowered_variables(draw: st.DrawFn, tiles: int, steps: int) -> LoweredVariables:
    rows = draw(st.lists(st.integers(0, 3 if tiles else 0), max_size=4))
    first = np.concatenate(([0], np.cumsum(rows))).astype(np.int64)
    always = [draw(st.booleans()) for _ in rows]
    lives = [0 if lives_always else draw(st.integers(0, 2)) for lives_always in always]
    first_life = np.concatenate(([0], np.cumsum(lives))).astype(np.int64)
    bounds = [sorted((draw(st.integers(0, steps)), draw(st.integers(0, steps)))) for _ in range(sum(lives))]
    begin, end = np.array(bounds, np.int64).reshape(-1, 2).T.copy()
    total = int(first[-1])
    tile = arrays(draw, total, most=tiles) if tiles else np.zeros(0, np.int64)
    bytes = arrays(draw, total) if tiles else np.zeros(0, np.int64)
    places = tuple(draw(names) for _ in rows)
    made_at = places if any(places) else ()
    known = len(tile) if draw(st.booleans()) else 0
    offset, span = arrays(draw, known), arrays(draw, known)
    return LoweredVariables(
        tuple(draw(names) for _ in rows), np.array(always, bool), first_life, begin, end, first, tile, bytes, made_at, offset, span
    )


@st.composite
def exchange_reports(draw: st.DrawFn, tiles: int, steps: int) -> ExchangeReport:
    length = draw(st.integers(0, 4)) if tiles else 0
    source, destination = (arrays(draw, length, np.int32, max(tiles, 1)) for _ in range(2))
    name, phase, step = draw(names), draw(st.sampled_from(["before", "copy"])), draw(st.integers(0, steps - 1))
    return ExchangeReport(name, phase, step, source, destination, arrays(draw, length))


@st.composite
def vertices_by_tile(draw: st.DrawFn, tiles: int, types: tuple[str, ...]) -> VerticesByTile:
    """Vertices of some types on some tiles."""
    places = [(tile, number) for tile in range(tiles) for number in range(len(types)) if draw(st.booleans())]
    tile, number = np.array(places, np.int64).reshape(-1, 2).T.copy()
    return VerticesByTile(types if places else (), tile, number, arrays(draw, len(places)), arrays(draw, len(places)))


sized_fields = st.builds(lambda name, least, more: FieldSizes(name or "x", least, least + more), names, counts, counts)


@st.composite
def sized_vertices(draw: st.DrawFn) -> tuple[SizedVertices, ...]:
    """Vertices of different types."""
    types = draw(st.lists(names, unique=True, min_size=1, max_size=3))
    return tuple(SizedVertices(name, draw(counts), tuple(draw(st.lists(sized_fields, max_size=2)))) for name in types)


@st.composite
def compilations(draw: st.DrawFn) -> Compilation:
    ipus, tiles_per_ipu = draw(st.integers(1, 2)), draw(st.integers(0, 4))
    target = ReportTarget(
        draw(names), ipus, tiles_per_ipu, draw(counts), draw(floats), draw(counts), draw(st.integers(1, 3)), draw(names),
        draw(st.dictionaries(names, floats, max_size=2)), draw(counts), draw(st.sampled_from(sorted(TIMINGS))),
        host_link=draw(st.none() | st.builds(HostLink, floats, floats, floats)),
    )  # fmt: skip
    tiles, steps = target.numTiles, draw(st.integers(0, 5))
    roots, leaves = draw(program_trees(steps))
    by_name = st.dictionaries(names, counts, max_size=3)
    always, rest = (arrays(draw, tiles if draw(st.booleans()) else 0) for _ in range(2))
    categories = {name: arrays(draw, tiles) for name in draw(st.lists(names, unique=True, max_size=3))}
    types = tuple(draw(st.lists(st.builds(VertexType, names, counts, counts, by_name, names, st.just(("float",))), max_size=2)))
    vertices = draw(vertices_by_tile(tiles, tuple(kind.name for kind in types)))
    memory = MemoryByTile(categories, arrays(draw, tiles), draw(by_name), draw(by_name), always, rest, vertices)
    return Compilation(
        target,
        draw(st.builds(ReportGraph, counts, counts, counts, counts)),
        memory,
        roots,
        leaves,
        types,
        draw(lowered_variables(tiles, steps)),
        tuple(draw(st.lists(exchange_reports(tiles, steps), max_size=2))) if steps else (),
        draw(st.dictionaries(names, names, max_size=2)),
    )


@st.composite
def codelet_texts(draw: st.DrawFn, name: str) -> CodeletText:
    lines = tuple(draw(st.lists(st.builds(SourceLine, names, names, counts, names), min_size=1, max_size=3)))
    block = st.lists(st.integers(0, len(lines) - 1), unique=True, max_size=2)
    blocks = []
    for places in draw(st.lists(block, max_size=3)):
        pairs = [sorted((draw(counts), draw(counts))) for _ in places]
        blocks.append(tuple(LinePart(place, slots, bound) for place, (bound, slots) in zip(places, pairs, strict=True)))
    ranges = [
        sorted((draw(st.integers(0, len(blocks))), draw(st.integers(0, len(blocks))))) for _ in range(draw(st.integers(0, 2)))
    ]
    fields = st.lists(st.sampled_from(("x", "y_1")), max_size=2).map(tuple)
    loops = tuple(
        LoopHint(draw(st.integers(0, len(lines) - 1)), ends[0], ends[1], draw(names), draw(counts), draw(fields)) for ends in ranges
    )
    return CodeletText(name, draw(st.integers(1, 6)), lines, tuple(blocks), loops)


@st.composite
def line_profiles(draw: st.DrawFn, tiles: int) -> LineProfile:
    texts = tuple(draw(codelet_texts(name)) for name in draw(st.lists(names, unique=True, max_size=2)))
    groups = []
    for text in texts:
        for name in draw(st.lists(names, max_size=2)):
            executions = tuple(draw(counts) for _ in text.blocks)
            groups.append(VertexGroup(name, text.vertex_type, draw(counts), draw(counts), executions))
    sizes = st.lists(st.builds(FieldSize, names, counts, st.none() | counts), max_size=2).map(tuple)
    vertex = st.builds(SlowestVertex, names, names, st.integers(0, max(tiles, 1) - 1), counts, sizes)
    slowest = draw(st.lists(vertex, max_size=2 if tiles else 0))
    return LineProfile(draw(st.booleans()), texts, tuple(groups), tuple(slowest))


@st.composite
def executions(draw: st.DrawFn, compilation: Compilation) -> Execution:
    tiles, leaves = compilation.target.numTiles, compilation.step_programs
    described: dict[int, dict[str, Any]] = {
        number: {"name": leaf.name, "type": leaf.type, "number": number, "depth": draw(st.integers(0, 3)), "num_ipus": 2}
        | ({"program": leaf} if draw(st.booleans()) else {})
        for number, leaf in enumerate(leaves)
    }
    parts = {number: [name for group in ARRAYS if draw(st.booleans()) for name in group] for number in described}

    def step(number: int) -> Step:
        costs: dict[str, Any] = {name: draw(counts) for name in COSTS}
        by_tile: dict[str, Any] = {name: arrays(draw, tiles) for name in parts[number]}
        return Step(**described[number], executions=draw(st.integers(1, 9)), **costs, **by_tile)

    numbers = st.lists(st.sampled_from(range(len(leaves))), unique=True) if leaves else st.just([])
    runs = tuple(Run(draw(names), tuple(map(step, draw(numbers))), draw(st.integers(1, 9))) for _ in range(draw(st.integers(0, 3))))
    ran = sorted({step.number for run in runs for step in run.steps})
    if draw(st.booleans()):
        steps = tuple(summed([step for run in runs for step in run.steps if step.number == number]) for number in ran)
    else:  # runs one by one are not known
        steps, runs = tuple(map(step, draw(numbers))), ()
    events = draw(st.integers(0, 4)) if ran and runs else 0
    cycles = arrays(draw, events)
    trace = Trace(
        np.array([draw(st.sampled_from(ran)) for _ in range(events)], np.int32),
        np.sort(arrays(draw, events, np.int32, max(len(runs), 1))),
        np.cumsum(cycles) - cycles,
        cycles,
        draw(counts),
    )
    by_type = draw(st.dictionaries(names, st.builds(VertexTypeCycles, counts, counts, counts, counts), max_size=2))
    ran_names = tuple(draw(st.lists(names, max_size=2)))
    slowest = {step.number: draw(sized_vertices()) for step in steps if draw(st.booleans())}
    lines = draw(st.none() | line_profiles(tiles))
    return Execution(
        steps, by_type, ran_names, draw(st.integers(0, 9)), runs, trace, draw(floats), slowest_vertices=slowest, lines=lines
    )


ARRAYS = (  # what a step has by tile, or has not
    ("cyclesByTile", "activeCyclesByTile"),
    ("exchange_cycles_by_tile",),
    ("copy_cycles_by_tile",),
    ("bytesSentByTile", "bytesReceivedByTile"),
    ("pieces_by_tile",),
)
COSTS = (
    *("sync_cycles", "exchange_cycles", "copy_cycles", "global_exchange_cycles", "compute_cycles", "host_exchange_cycles"),
    *("host_bytes", "flops", "memory_bytes"),
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """Reports of any form that a report can have."""
    compilation = draw(compilations())
    execution = draw(executions(compilation)) if draw(st.booleans()) else None
    return Report(compilation, execution, Version(draw(names)), draw(names), draw(names))


def full_lines() -> LineProfile:
    """Lines of the vertices of the full report: "Multiply<float>" at 3 lines, and "Zero" which an estimate decides."""
    multiply = CodeletText(
        "Multiply<float>",
        1,
        (
            SourceLine("compute", "codelets/multiply.py", 7, "    def compute(self):"),
            SourceLine("compute", "codelets/multiply.py", 8, "        for i in range(len(self.x)):"),
            SourceLine("compute", "codelets/multiply.py", 9, "            self.x[i] *= self.k"),
        ),
        ((LinePart(0, 12, 12), LinePart(1, 4, 2)), (), (LinePart(1, 1, 0), LinePart(2, 3, 2))),
        (LoopHint(1, 2, 3, "", 1, ("x",)),),
    )
    zero = CodeletText("Zero", 6, (SourceLine("compute", "zero.py", 3, "    def compute(self, worker):"),), ((LinePart(0, 3, 3),),))
    groups = (
        VertexGroup("multiply", "Multiply<float>", 8, 9000, (18 * 8, 0, 1674)),
        VertexGroup("multiply", "Zero", 1, 7, (18,)),
    )
    sizes = (FieldSize("x", 93), FieldSize("rows", 12, 3))
    return LineProfile(True, (multiply, zero), groups, (SlowestVertex("multiply", "Multiply<float>", 2, 400, sizes),))


HOST_LIMIT = "the host link of machine 0"


def full_report(name: str = "engine") -> Report:
    """A report with rows in every table of a profile file: 4 tiles, 3 steps, 2 runs and the rest of them."""
    tiles = 4
    multiply = ComputeSet("multiply", (VertexInstances("Multiply<float>", 8), VertexInstances("Zero", 1)), "model.py:12")
    leaves = (
        Program("gather", "DoExchange", (), 0),
        Program("multiply", "OnTileExecute", (), 1, "", multiply, "model.py:20"),
        Program("out", "StreamCopy", (), 2),
    )
    shared = Program("step", "Sequence", leaves[:2])
    root = Program("", "Sequence", (Program("", "Repeat", (shared,), -1, "10 times"), Program("", "Call", (shared,)), leaves[2]))

    def steps(times: int) -> tuple[Step, ...]:
        return tuple(evolve(step, cycles_by_ipu=of_one_ipu(step)) for step in plain_steps(times))

    def of_one_ipu(step: Step) -> NDArray[np.int64]:
        return np.array([[getattr(step, name)] for name in BY_IPU[:-1]] + [[0]])

    def plain_steps(times: int) -> tuple[Step, ...]:
        def by_tile(*values: int) -> NDArray[np.int64]:
            return np.array(values, np.int64) * times

        common: list[dict[str, Any]] = [
            {"name": leaf.name, "type": leaf.type, "number": leaf.step, "program": leaf, "executions": times} for leaf in leaves
        ]
        exchanged: dict[str, Any] = {
            "exchange_cycles": 30 * times,
            "exchange_cycles_by_tile": by_tile(30, 20, 0, 10),
            "copy_cycles_by_tile": by_tile(0, 10, 0, 3),
        }
        sent: dict[str, Any] = {"bytesSentByTile": by_tile(0, 0, 64, 0), "bytesReceivedByTile": by_tile(32, 0, 0, 32)}
        sent["pieces_by_tile"] = by_tile(4, 0, 8, 4)
        computed: dict[str, Any] = {
            "compute_cycles": 400 * times,
            "cyclesByTile": by_tile(400, 300, 200, 0),
            "activeCyclesByTile": by_tile(350, 300, 90, 0),
        }
        return (
            Step(**common[0], depth=1, sync_cycles=20 * times, **exchanged, **sent),
            Step(**common[1], depth=1, sync_cycles=20 * times, **computed, flops=1000 * times, memory_bytes=4000 * times),
            Step(
                **common[2],
                sync_cycles=50 * times,
                host_exchange_cycles=5000 * times,
                host_bytes=256 * times,
                host_limit=HOST_LIMIT,
            ),
        )

    nothing = np.zeros(1, np.int64)
    runs = (Run("main", steps(2), 1, nothing), Run("main", steps(2), 1, nothing), Run("main", steps(10), 5, nothing))
    totals = tuple(summed([run.steps[step] for run in runs]) for step in range(3))
    events = [(run, step) for run in range(2) for _ in range(2) for step in range(3)]
    cycles = np.array([{0: 50, 1: 420, 2: 5050}[step] for _, step in events])
    trace = Trace(
        np.array([step for _, step in events], np.int32),
        np.array([run for run, _ in events], np.int32),
        np.cumsum(cycles) - cycles,
        cycles,
        missed=30,
        recorded=10,
        tiles=RecordedTiles(
            np.array([1, 1], np.int32),
            np.array([0, 0], np.int32),
            np.array([0, 1]),
            np.array([0, 2, 5]),
            np.array([0, 1, 0, 1, 2], np.int32),
            np.array([400, 250, 400, 350, 400]),
        ),
        unrecorded=3,
    )
    memory = MemoryByTile(
        {"variables": np.array([400, 300, 0, 100]), "code": np.array([64, 64, 64, 0])},
        np.array([8, 0, 0, 4]),
        {"edge_pointers": 100},
        {"Multiply<float>": 90, "Zero": 10},
        np.array([300, 300, 64, 50]),
        np.array([164, 64, 0, 50]),
        VerticesByTile(("Multiply<float>", "Zero"), *map(np.array, ([0, 0, 1, 2], [0, 1, 0, 0], [4, 1, 3, 1], [45, 10, 34, 11]))),
    )
    variables = with_one_life(
        ("x", "temporary"),
        np.array([True, False]),
        np.array([-1, 0]),
        np.array([-1, 2]),
        np.array([0, 3, 4]),
        np.array([0, 1, 3, 0]),
        np.array([300, 300, 100, 100]),
    )
    variables = evolve(variables, made_at=("model.py:3", ""), offset=np.array([0, 0, 0, 304]), span=np.array([300, 300, 100, 120]))
    exchange = ExchangeReport("gather", "copy", 0, np.array([2, 2], np.int32), np.array([0, 3], np.int32), np.array([32, 32]))
    compilation = Compilation(
        ReportTarget("ipu2", 1, tiles, 1 << 19, 1e9, 6, 1, "tiny", {"float": 16.0}, 16, host_link=HostLink(8.0, 4.0, 100.0)),
        ReportGraph(9, 12, 2, 1),
        memory,
        (root,),
        leaves,
        (VertexType("Multiply<float>", 8, 90, {"code": 8}, "float", ("float",)), VertexType("Zero", 1, 10)),
        variables,
        (exchange,),
        {"profiler.includeFlopEstimates": "true"},
    )
    by_type = {"Zero": VertexTypeCycles(1, 7), "Multiply<float>": VertexTypeCycles(8, 9000, 14000, 56000, 8000, 6000)}
    slowest = {
        1: (SizedVertices("Multiply<float>", 4, (FieldSizes("x", 10, 12), FieldSizes("y", 10, 10))), SizedVertices("Zero", 1))
    }
    execution = Execution(totals, by_type, ("main",), tiles, runs, trace, 1e9, slowest_vertices=slowest, lines=full_lines())
    return Report(compilation, execution, Version("0.1.0"), name, "2026-01-02T03:04:05")


DEEPEST = 5000  # programs in each other, as many as there may be
KINDS = ("Repeat", "If", "Call", "Sequence", "Switch")


def deepest_report(root: str = "main") -> Report:
    """The full report with its steps below `DEEPEST` programs."""
    report = full_report()
    program = Program("body", "Sequence", report.compilation.step_programs)
    for number in range(DEEPEST):
        program = Program("", KINDS[number % len(KINDS)], (program,))
    programs = (Program(root, "Sequence", (program,)),)
    return evolve(report, compilation=evolve(report.compilation, programs=programs))
