"""Small programs around library calls, for the tests of the libraries."""

import numpy as np

from pypoplar import Engine, Graph, IPUModel, poplin, popnn, popops, poputil
from pypoplar.program import Sequence

MODES = ("native", "interpret")


def new_graph(tiles=16):
    """A graph for a small machine, with the device code of all libraries, and the machine."""
    model = IPUModel("tiny")
    model.tilesPerIPU = tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    for library in (popops, poplin, popnn):
        library.addCodelets(graph)
    return graph, device


def variable(graph, type, shape, name, tile=None):
    """A variable mapped linearly, or on one tile, with a write and a read handle of its name."""
    tensor = graph.addVariable(type, shape, name)
    if tile is None:
        poputil.mapTensorLinearly(graph, tensor)
    else:
        graph.setTileMapping(tensor, tile)
    graph.createHostWrite(name, tensor)
    return tensor


def run(graph, device, program, values, results, mode="native", options=None):
    """Run `program` on `values` (handle to array); arrays of `results` (name to tensor), and the engine."""
    for name, tensor in results.items():
        graph.createHostRead(f"result {name}", tensor)
    engine = Engine(graph, program, options or {}, mode=mode)
    engine.load(device)
    for name, value in values.items():
        engine.writeTensor(name, value)
    engine.run()
    return {name: engine.readTensor(f"result {name}") for name in results}, engine


def call(function, types, arrays, tiles=16, mode="native"):
    """What ``function(graph, tensors, prog)`` returns, as an array, for variables of these types and values; and the engine."""
    graph, device = new_graph(tiles)
    values = {f"t{place}": np.asarray(array, type.dtype) for place, (type, array) in enumerate(zip(types, arrays, strict=True))}
    tensors = [variable(graph, type, value.shape, name) for type, (name, value) in zip(types, values.items(), strict=True)]
    program = Sequence()
    result = function(graph, tensors, program)
    read, engine = run(graph, device, program, values, {"result": result}, mode)
    return read["result"], engine
