"""popops.CircBuf: what was added last is found again."""

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, popops
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence


@pytest.mark.parametrize(("type", "shape"), [(FLOAT, [3, 5]), (HALF, [7]), (INT, []), (FLOAT, [8])])
@pytest.mark.parametrize("size", [1, 3])
def test_the_last_entries_are_in_the_buffer(type, shape, size):
    reads = []
    for mode in MODES:
        graph, device = new_graph(4)
        buffer = popops.CircBuf(graph, type, size, shape, "buffer")
        prog, results = Sequence(), {}
        entries = [variable(graph, type, shape, f"entry {number}") for number in range(5)]
        for number, entry in enumerate(entries):
            buffer.add(entry, prog)
            for i in range(min(size, number + 1)):
                results[f"{number} {i}"] = buffer.prev(i, prog)
        assert all(result.shape() == shape for result in results.values())
        results["index"] = buffer.getIndex()
        given = {f"entry {number}": np.full(shape, number + 1, type.dtype) for number in range(5)}
        read, engine = run(graph, device, prog, given, results, mode)
        for number in range(5):
            for i in range(min(size, number + 1)):
                np.testing.assert_array_equal(read[f"{number} {i}"], given[f"entry {number - i}"])
        assert read["index"] == 5 % size
        reads.append([step.cycles for step in engine.getReport().execution.steps])
    assert reads[0] == reads[1]


def test_entries_are_spread_over_the_tiles():
    graph, _ = new_graph(1472)
    buffer = popops.CircBuf(graph, FLOAT, 10, [100, 100])
    assert buffer.size() == 10
    held = [sum(interval.size() for interval in intervals) for intervals in buffer.getTileMapping()]
    assert sum(held) == 10_000
    assert max(held) == 8


def test_what_is_no_entry_is_refused():
    graph, _ = new_graph(4)
    buffer, prog = popops.CircBuf(graph, FLOAT, 3, [4]), Sequence()
    refused = [
        (lambda: buffer.prev(3, prog), "has the last 3 tensors, 0 to 2 before the newest, got 3"),
        (lambda: buffer.prev(-1, prog), "i is 0 at least, got -1"),
        (lambda: buffer.add(variable(graph, FLOAT, [5], "five"), prog), r"has tensors of FLOAT \[4\], got .*'five'"),
        (lambda: buffer.add(variable(graph, HALF, [4], "half"), prog), r"has tensors of FLOAT \[4\], got .*'half'"),
        (lambda: popops.CircBuf(graph, FLOAT, 0, [4]), "size is 1 at least, got 0"),
        (lambda: popops.CircBuf(graph, FLOAT, 2, [0]), r"the tensors have elements, got the shape \[0\]"),
    ]
    for call, message in refused:
        with pytest.raises(PoplibsError, match=message):
            call()
    assert len(prog) == 0
