"""A tile holds as much as its memory: what counts, who is named, and what the error's report has."""

from unittest.mock import patch

import numpy as np
import pytest

from pypoplar import FLOAT, Engine, Graph, GraphMemoryAllocationError, Input, IPUModel, Output, Vector, Vertex, compileGraph
from pypoplar.codelet.cost import pricing
from pypoplar.codelet.cost.scalar_prices import PRICES, AddedPrices, StatementPrices
from pypoplar.program import Copy, Execute, Sequence

MEMORY = 16384
WORDS = MEMORY // 4


class First(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[FLOAT]

    def compute(self):
        self.y = self.x[0]


@pytest.fixture
def device():
    model = IPUModel("tiny")
    model.memoryBytesPerTile = MEMORY
    return model.createDevice()


@pytest.fixture
def graph(device):
    return Graph(device)


def variable(graph, elements, name, tile):
    tensor = graph.addVariable(FLOAT, [elements], name)
    graph.setTileMapping(tensor, tile)
    return tensor


def reader(graph, x, tile):
    """A compute set with a vertex on `tile` that reads all of x."""
    compute_set = graph.addComputeSet("read")
    vertex = graph.addVertex(compute_set, First, {"x": x, "y": variable(graph, 1, "y", tile)[0]})
    graph.setTileMapping(vertex, tile)
    return Execute(compute_set)


def test_a_tile_holds_its_memory_and_not_a_word_more(graph, mode):
    x, y, z = variable(graph, WORDS, "x", 3), variable(graph, WORDS, "y", 4), variable(graph, 1, "z", 3)
    Engine(graph, Copy(x, y), mode=mode)  # z is not part of this program
    with pytest.raises(GraphMemoryAllocationError, match=r"1 of 16 tiles") as caught:
        Engine(graph, Sequence([Copy(x, y), Copy(x[0:1], z)]), mode=mode)
    assert "tile 3: 16,392 bytes, 8 too many: variable 'x' 16,384, variable 'z' 4" in str(caught.value)


def test_what_arrives_in_exchange_counts_where_it_arrives(graph, mode):
    x = variable(graph, WORDS - 512, "x", 3)
    Engine(graph, reader(graph, x[0:256], 4), mode=mode)
    with pytest.raises(GraphMemoryAllocationError, match=r"tile 4: .* too many: exchange buffers 14,336, stack 3,200, code"):
        Engine(graph, reader(graph, x, 4), mode=mode)


def test_the_largest_variables_are_named_and_the_rest_summed_up(graph):
    one = variable(graph, WORDS, "large", 2)
    several = [variable(graph, size, f"v{size}", 2) for size in (10, 20, 30, 40)]
    into = variable(graph, WORDS, "into", 7)
    with pytest.raises(GraphMemoryAllocationError) as caught:
        Engine(graph, Sequence([Copy(one, into), *(Copy(each, into[0 : each.numElements()]) for each in several)]))
    assert "variable 'large' 16,384, variable 'v40' 160, variable 'v30' 120, 2 more variables 120" in str(caught.value)


def test_the_report_has_every_tile_and_category(graph):
    x, y, z = variable(graph, WORDS + 10, "x", 3), variable(graph, WORDS + 10, "y", 4), variable(graph, 5, "z", 6)
    with pytest.raises(GraphMemoryAllocationError, match="2 of 16 tiles") as caught:
        Engine(graph, Sequence([Copy(x, y), Copy(x[0:5], z)]))
    memory = caught.value.report.compilation.memory
    assert memory.categories["variables"].tolist() == [0, 0, 0, 4 * WORDS + 40, 4 * WORDS + 40, 0, 20, *[0] * 9]
    assert caught.value.report.execution is None


def test_a_program_that_is_too_large_runs_if_it_is_told_to(graph, device, mode):
    x, y = variable(graph, 2 * WORDS, "x", 3), variable(graph, 2 * WORDS, "y", 4)
    graph.setInitialValue(x, np.arange(2 * WORDS))
    graph.createHostRead("y", y)
    engine = Engine(graph, Copy(x, y), {"pypoplar.run_out_of_memory": "true"}, mode=mode)
    engine.loadAndRun(device)
    assert engine.readTensor("y").tolist() == list(range(2 * WORDS))


def test_the_code_of_a_codelet_is_counted_as_it_is_priced_now(device):
    """Instructions are counted once for all graphs, but anew where prices are others: without one, its block has no beginning."""

    def code_bytes():
        graph = Graph(device)
        return compileGraph(graph, reader(graph, variable(graph, 1, "x", 3), 3)).memory.code[3]

    free = AddedPrices("bow", StatementPrices(entry_and_exit=0, load=0, store=0))
    whole = code_bytes()
    with patch.dict(PRICES, {device.getTarget().architecture: free}), patch.object(pricing, "bytes_of", lambda statement: 0):
        assert code_bytes() == whole - device.getTarget().instruction_bytes
    assert code_bytes() == whole
