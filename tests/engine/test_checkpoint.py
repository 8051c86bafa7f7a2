"""What a checkpoint has copied aside is there again after a run that fails midway, and streams begin again."""

import numpy as np
import pytest
from engine_builder import tiny

from pypoplar import FLOAT, INT, Engine, Graph, popops
from pypoplar.interface.header_slots import Slot
from pypoplar.program import Call, Copy, Repeat, Sequence


def numbers(size, type=FLOAT):
    return np.arange(1, size + 1, dtype=type.dtype)


@pytest.mark.parametrize("width", [1, 3, 40])
def test_a_run_that_fails_midway_is_undone(width):
    """Elements lie on several tiles, and the host sees those of one tensor in another order."""
    device = tiny(4)
    graph = Graph(device.getTarget())
    popops.addCodelets(graph)
    kept = graph.addVariable(FLOAT, [width * 4], "kept")
    other = graph.addVariable(FLOAT, [width * 4], "other")
    for tile in range(4):
        graph.setTileMapping(kept.slice(tile * width, tile * width + width), tile)
        graph.setTileMapping(other.slice(tile * width, tile * width + width), 3 - tile)
    graph.setInitialValue(other, numbers(width * 4))
    seen = kept.reshape([width, 4]).transpose().flatten()
    for name, tensor in (("kept", seen), ("other", other)):
        graph.createHostWrite(name, tensor)
        graph.createHostRead(name, tensor)
    stop = graph.addHostFunction("stop", [(FLOAT, width * 4)], [])
    stream = graph.addHostToDeviceFIFO("in", FLOAT, width * 4)
    body = Sequence()
    arrived = graph.clone(kept, "arrived")
    body.add(Copy(stream, arrived))
    popops.addInPlace(graph, kept, arrived, body)
    popops.addInPlace(graph, other, arrived, body)
    body.add(Call(stop, [kept], []))
    engine = Engine(graph, Repeat(2, Repeat(3, body)))
    engine.load(device)
    given = np.arange(6 * width * 4, dtype=np.float32)
    engine.connectStream("in", given)
    calls = []

    def count(_):
        calls.append(0)
        if len(calls) == 5:
            raise ValueError("enough")

    engine.connectHostFunction("stop", count)
    engine.writeTensor("kept", numbers(width * 4))
    checkpoint = engine._checkpoint(["kept"])
    checkpoint.take()
    assert checkpoint.loops_left(0, 2) == [-1, -1]
    with pytest.raises(ValueError, match="enough"):
        engine.run()
    assert checkpoint.loops_left(0, 2) == [1, 2]
    assert not np.array_equal(engine.readTensor("kept"), numbers(width * 4))
    engine._return_to(checkpoint)
    np.testing.assert_array_equal(engine.readTensor("kept"), numbers(width * 4))
    np.testing.assert_array_equal(engine.readTensor("other"), numbers(width * 4))
    assert [run.name for run in engine.getReport().failed_runs] == ["program 0"]
    engine.run()
    added = given.reshape(6, -1).sum(0)
    wanted = numbers(width * 4) + added.reshape(width, 4).T.reshape(-1)
    np.testing.assert_allclose(engine.readTensor("kept"), wanted)
    np.testing.assert_allclose(engine.readTensor("other"), numbers(width * 4) + added)


def test_random_numbers_are_drawn_again():
    device = tiny(2)
    graph = Graph(device.getTarget())
    x = graph.addVariable(INT, [2], "x")
    graph.setTileMapping(x, 0)
    graph.createHostWrite("x", x)
    engine = Engine(graph, Copy(x.slice(0, 1), x.slice(1, 2)))
    engine.load(device)
    checkpoint = engine._checkpoint([])
    before = engine._state.tables[Slot.RANDOM].copy()
    checkpoint.take()
    engine._state.seed(7)
    engine._return_to(checkpoint)
    np.testing.assert_array_equal(engine._state.tables[Slot.RANDOM], before)
