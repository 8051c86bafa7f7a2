"""Small programs around library calls, for the tests of the libraries."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pypoplar import Device, Engine, Graph, IPUModel, Tensor, poplin, popnn, popops, poputil
from pypoplar import program as programs

Array = NDArray[Any]
MODES = ("native", "interpret")


def new_graph(tiles: int = 16) -> tuple[Graph, Device]:
    """A graph for a small machine, with the device code of all libraries, and the machine."""
    model = IPUModel("tiny")
    model.tilesPerIPU = tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    for library in (popops, poplin, popnn):
        library.addCodelets(graph)
    return graph, device


def variable(graph: Graph, type: Any, shape: Sequence[int], name: str, tile: int | None = None) -> Tensor:
    """A variable mapped linearly, or on one tile, with a write and a read handle of its name."""
    tensor = graph.addVariable(type, shape, name)
    if tile is None:
        poputil.mapTensorLinearly(graph, tensor)
    else:
        graph.setTileMapping(tensor, tile)
    graph.createHostWrite(name, tensor)
    return tensor


def run(
    graph: Graph,
    device: Device,
    program: programs.Program,
    values: Mapping[str, Array],
    results: Mapping[str, Tensor],
    mode: Any = "native",
    options: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Array], Engine]:
    """Run `program` on `values` (handle to array); arrays of `results` (name to tensor), and the engine."""
    for name, tensor in results.items():
        graph.createHostRead(f"result {name}", tensor)
    engine = Engine(graph, program, options or {}, mode=mode)
    engine.load(device)
    for name, value in values.items():
        engine.writeTensor(name, value)
    engine.run()
    return {name: engine.readTensor(f"result {name}") for name in results}, engine


def call(
    function: Callable[[Graph, list[Tensor], programs.Sequence], Tensor],
    types: Sequence[Any],
    arrays: Sequence[Any],
    tiles: int = 16,
    mode: Any = "native",
) -> tuple[Array, Engine]:
    """What ``function(graph, tensors, prog)`` returns, as an array, for variables of these types and values; and the engine."""
    graph, device = new_graph(tiles)
    values = {f"t{place}": np.asarray(array, type.dtype) for place, (type, array) in enumerate(zip(types, arrays, strict=True))}
    tensors = [variable(graph, type, value.shape, name) for type, (name, value) in zip(types, values.items(), strict=True)]
    program = programs.Sequence()
    result = function(graph, tensors, program)
    read, engine = run(graph, device, program, values, {"result": result}, mode)
    return read["result"], engine
