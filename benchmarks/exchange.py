"""Exchange: large regions against `np.copyto`, 4-byte pieces against NumPy's fancy indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Figure, Row, alternate
from pypoplar import FLOAT, Engine, Graph, IPUModel
from pypoplar.program import Copy, Repeat

Array = np.ndarray[Any, np.dtype[Any]]


def engine(tiles: int, words: int, order: Array | None, inner: int) -> Any:
    """Each tile sends its words to the next; with `order`, element k of the target comes from element ``order[k]``."""
    model = IPUModel()
    model.tilesPerIPU = tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    x = graph.addVariable(FLOAT, [tiles, words], "x")
    y = graph.addVariable(FLOAT, [tiles, words], "y")
    for tile in range(tiles):
        graph.setTileMapping(x[tile], tile)
        graph.setTileMapping(y[tile], tile)
    graph.createHostWrite("x", x)
    graph.createHostRead("y", y)
    if order is None:
        program = Copy(x, _shifted(y))
    else:
        from pypoplar import concat

        flat = x.flatten()
        program = Copy(concat([flat.slice(int(one), int(one) + 1) for one in order]), y.flatten())
    made = Engine(graph, Repeat(inner, program))
    made.load(device)
    return made


def _shifted(tensor: Any) -> Any:
    from pypoplar import concat

    return concat([tensor[1:], tensor[:1]])


def measure(smoke: bool) -> list[Figure]:
    return [large(smoke), small(smoke)]


def large(smoke: bool) -> Figure:
    tiles, words, inner = (8, 16, 2) if smoke else (1472, 16384, 5)
    made = engine(tiles, words, None, inner)
    x = np.random.default_rng(0).standard_normal((tiles, words), np.float32)
    y = np.empty_like(x)
    made.writeTensor("x", x)

    def copies() -> None:
        for _ in range(inner):
            np.copyto(y, x)

    ours, plain = alternate([made.run, copies], 2 if smoke else 7)
    np.testing.assert_array_equal(made.readTensor("y"), np.roll(x, 1, 0))
    details = {"bytes": x.nbytes, "seconds": ours / inner, "numpy_seconds": plain / inner}
    return Figure("every tile sends 64 KB to another, against np.copyto", ours / plain, "x", 2.0, details=details)


def small(smoke: bool) -> Figure:
    tiles, words, inner = (8, 4, 2) if smoke else (1472, 192, 20)
    order = np.random.default_rng(1).permutation(tiles * words)
    made = engine(tiles, words, order, inner)
    x = np.random.default_rng(0).standard_normal((tiles, words), np.float32)
    flat, y = x.reshape(-1), np.empty(tiles * words, np.float32)
    made.writeTensor("x", x)

    def gathers() -> None:
        for _ in range(inner):
            y[:] = flat[order]

    ours, plain = alternate([made.run, gathers], 2 if smoke else 9)
    np.testing.assert_array_equal(made.readTensor("y").reshape(-1), flat[order])
    details = {"pieces": len(order), "seconds": ours / inner, "numpy_seconds": plain / inner}
    return Figure(f"{len(order)} pieces of 4 bytes, against NumPy's fancy indexing", ours / plain, "x", 1.0, details=details)


ROW = Row("exchange", measure)
