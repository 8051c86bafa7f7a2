"""A halo stencil on 64 IPUs, 94,208 tiles: building the graph call by call, and the Engine; and what it costs to price it."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from benchmarks.measure import Figure, Row, in_new_process, peak_bytes
from benchmarks.stencil import Stencil
from pypoplar import FLOAT, Engine, Graph, IPUModel, Tensor
from pypoplar.program import Execute, Repeat, Sequence

SIDE = 8  # of the square that a tile has
COLUMNS = 32  # of tiles


def build(ipus: int, tiles_per_ipu: int) -> dict[str, float]:
    """Seconds of both parts, and the most memory held."""
    begin = time.perf_counter()
    graph, repeat = program(ipus, tiles_per_ipu)
    middle = time.perf_counter()
    Engine(graph, repeat)
    return {"graph": middle - begin, "engine": time.perf_counter() - middle, "bytes": peak_bytes()}


def price(ipus: int, tiles_per_ipu: int) -> dict[str, float]:
    """Processor seconds of the graph, of the engine of mode "cost", and of a run, which prices it."""
    times = [time.process_time()]
    graph, repeat = program(ipus, tiles_per_ipu)
    times.append(time.process_time())
    engine = Engine(graph, repeat, mode="cost")
    times.append(time.process_time())
    engine.load()
    engine.run()
    times.append(time.process_time())
    return dict(zip(("graph", "engine", "run"), np.diff(times).tolist(), strict=True))


def program(ipus: int, tiles_per_ipu: int) -> tuple[Graph, Repeat]:
    """Two fields with a border, each step from one to the other: a vertex reads its tile's square and what lies around it."""
    model = IPUModel()
    model.numIPUs, model.tilesPerIPU = ipus, tiles_per_ipu
    graph = Graph(model.createDevice())
    squares = [divmod(tile, COLUMNS) for tile in range(ipus * tiles_per_ipu)]
    height, width = len(squares) // COLUMNS * SIDE, COLUMNS * SIDE
    fields = [graph.addVariable(FLOAT, [height + 2, width + 2], name) for name in ("even", "odd")]
    for field in fields:
        graph.setTileMapping(field, 0)
        for tile, (row, column) in enumerate(squares):
            graph.setTileMapping(square(field, row, column, 0), tile)
    steps = []
    for source, target in (fields, fields[::-1]):
        compute_set = graph.addComputeSet("step")
        for tile, (row, column) in enumerate(squares):
            ends = {"x": square(source, row, column, 1), "y": square(target, row, column, 0)}
            graph.setTileMapping(graph.addVertex(compute_set, Stencil, ends), tile)
        steps.append(Execute(compute_set))
    return graph, Repeat(3, Sequence(steps))


def square(field: Tensor, row: int, column: int, border: int) -> Tensor:
    """The elements of a tile, with a border around them."""
    top, left = 1 + row * SIDE, 1 + column * SIDE
    return field.slice([top - border, left - border], [top + SIDE + border, left + SIDE + border])


def measure(smoke: bool) -> list[Figure]:
    ipus, tiles = (2, 64) if smoke else (64, 1472)
    taken = in_new_process(f"from benchmarks import many_ipus; many_ipus.main({ipus}, {tiles})")
    one, many = (
        in_new_process(f"from benchmarks import many_ipus; many_ipus.main({number}, {tiles}, 'price')") for number in (1, ipus)
    )
    priced = [
        Figure(f"  in mode cost, against one IPU: {part}", many[part] / one[part], "x", 2.0 if part == "run" else None)
        for part in ("graph", "engine", "run")
    ]
    what = f"halo stencil on {ipus * tiles} tiles of {ipus} IPUs: graph and Engine"
    return [
        Figure(what, taken["graph"] + taken["engine"], "s", 20.0, details=taken),
        Figure("  the most memory held", taken["bytes"] / 1e9, "GB"),
        *priced,
    ]


def main(ipus: int, tiles: int, does: str = "build") -> None:
    json.dump((price if does == "price" else build)(ipus, tiles), sys.stdout)


ROW = Row("many_ipus", measure)
