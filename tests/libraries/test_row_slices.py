"""popops.selectScalarFromRows, updateScalarInRows, sequenceSlice and the tensors for the host, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_CHAR, UNSIGNED_INT, Engine, IPUModel, PoplarTypeError, popops, program
from pypoplar.popops.slicing.slice_cycles import row_scalar_cycles, sequence_slice_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

MASKED = 2**32 - 1


def selected(params, indices):
    rows = zip(params, indices, strict=True)
    return [0 if index == MASKED else row[index] if index < len(row) else np.nan for row, index in rows]


def lessened(params, indices):
    result = params.copy()
    for row, index in zip(result, indices, strict=True):
        if index < len(row):
            row[index] -= 1
        elif index != MASKED:
            row[:] = np.nan
    return result


def scalars_of_rows(type, shape, indices, tiles, layout, mode):
    """What is selected, what an update leaves, and the cycles."""
    graph, device = new_graph(tiles)
    if layout == "columns":
        params = variable(graph, type, shape[::-1], "stored").transpose()
        graph.createHostWrite("params", params)
    else:
        params = variable(graph, type, shape, "params")
    places = variable(graph, UNSIGNED_INT, [shape[0]], "indices")
    prog = Sequence()
    found = popops.selectScalarFromRows(graph, params, places, prog)
    popops.updateScalarInRows(graph, params, places, prog)
    values = {
        "params": np.arange(1, 1 + shape[0] * shape[1]).reshape(shape).astype(type.dtype),
        "indices": np.array(indices, np.uint32),
    }
    read, engine = run(graph, device, prog, values, {"found": found, "params": params}, mode)
    np.testing.assert_array_equal(read["found"], np.array(selected(values["params"], indices), type.dtype))
    np.testing.assert_array_equal(read["params"], lessened(values["params"], indices))
    return [step.cycles for step in engine.getReport().execution.steps]


@examples(6)
@given(
    st.sampled_from([FLOAT, HALF]),
    st.integers(1, 9),
    st.integers(1, 80),
    st.sampled_from([1, 4, 7]),
    st.sampled_from(["rows", "columns"]),
    st.data(),
)
def test_numbers_of_rows_are_selected_and_lessened(type, rows, width, tiles, layout, data):
    indices = data.draw(
        st.lists(st.one_of(st.integers(0, width - 1), st.sampled_from([width, MASKED])), min_size=rows, max_size=rows)
    )
    cycles = [scalars_of_rows(type, (rows, width), indices, tiles, layout, mode) for mode in MODES]
    assert cycles[0] == cycles[1]


def test_rows_that_are_spread_over_many_tiles_are_found(mode):
    scalars_of_rows(HALF, (3, 700), [699, MASKED, 700], 16, "rows", mode)


def sequences(source, target, counts, first, place, zeroed):
    result = np.zeros_like(target) if zeroed else target.copy()
    for count, begin, to in zip(counts, first, place, strict=True):
        rows = min(count, len(source) - begin, len(target) - to)
        if rows > 0:
            result[to : to + rows] = source[begin : begin + rows].reshape(rows, *target.shape[1:])
    return result


@pytest.mark.parametrize("zeroed", [True, False])
@pytest.mark.parametrize(
    ("type", "rows", "inner"), [(FLOAT, (9, 6), (4,)), (HALF, (20, 5), (3, 5)), (UNSIGNED_CHAR, (4, 12), (7,))]
)
def test_sequences_of_rows_are_copied(type, rows, inner, zeroed, mode):
    graph, device = new_graph(5)
    source, target = (variable(graph, type, [count, *inner], name) for count, name in zip(rows, ("source", "target"), strict=True))
    names = ("counts", "first", "place")
    counts, first, place = (variable(graph, UNSIGNED_INT, [4], name) for name in names)
    prog = Sequence()
    popops.sequenceSlice(graph, source, target, counts, first, place, zeroed, prog)
    lists = [2, 1, 0, 9], [1, rows[0] - 1, 0, 2], [0, 2, 1, rows[1] - 1]
    values = {name: np.array(numbers, np.uint32) for name, numbers in zip(names, lists, strict=True)}
    values["source"] = (np.arange(rows[0] * np.prod(inner)) % 200 + 1).reshape(rows[0], *inner).astype(type.dtype)
    values["target"] = np.full([rows[1], *inner], 7, type.dtype)
    read, _ = run(graph, device, prog, values, {"target": target}, mode)
    np.testing.assert_array_equal(read["target"], sequences(values["source"], values["target"], *lists, zeroed))


def test_sequences_that_go_beyond_an_end_are_cut_off_and_empty_tensors_are_fine():
    graph, device = new_graph(4)
    t, out = variable(graph, INT, [3, 2], "t"), variable(graph, INT, [4, 2], "out")
    one, nothing = variable(graph, UNSIGNED_INT, [2], "one"), variable(graph, INT, [0, 2], "nothing")
    big = graph.addConstant(UNSIGNED_INT, [2], [1, MASKED])
    graph.setTileMapping(big, 0)
    prog = Sequence()
    popops.sequenceSlice(graph, t, out, one, big, big, False, prog)
    popops.sequenceSlice(graph, nothing, t, one, big, big, True, prog)
    read, _ = run(
        graph, device, prog, {"t": np.ones([3, 2], np.int32), "one": np.array([MASKED, 1], np.uint32)}, {"out": out, "t": t}
    )
    np.testing.assert_array_equal(read["out"][1:3], np.ones([2, 2]))
    np.testing.assert_array_equal(read["t"], np.zeros([3, 2]))


def test_tensors_for_the_host_are_spread_in_packets():
    graph, device = new_graph(4)
    sliced = popops.createHostSliceableTensor(graph, FLOAT, [3, 600], True, debugContext="rows")
    assert (sliced.tensor.shape(), sliced.indices.shape(), sliced.indices.elementType()) == ([3, 600], [3], UNSIGNED_INT)
    held = [sum(part.size() for part in parts) for parts in graph.getTileMapping(sliced.tensor)]
    assert held == [600, 512, 344, 344]  # packets of 256, 256 and 88 floats make a row
    moved = popops.createHostTransferableTensor(graph, HALF, [5, 300], False, 1500)
    assert moved.shape() == [5, 300]
    assert [sum(part.size() for part in parts) for parts in graph.getTileMapping(moved)] == [476, 0, 512, 512]
    buffer = graph.addRemoteBuffer("buffer", FLOAT, 600, 10)
    graph.createHostWrite("indices", sliced.indices)
    graph.createHostRead("rows", sliced.tensor)
    engine = Engine(graph, program.Copy(buffer, sliced.tensor, sliced.indices))
    engine.load(device)
    stored = np.arange(6000, dtype=np.float32).reshape(10, 600)
    for row in range(10):
        engine.copyToRemoteBuffer(stored[row], "buffer", row)
    engine.writeTensor("indices", np.array([7, 0, 9], np.uint32))
    engine.run()
    np.testing.assert_array_equal(engine.readTensor("rows"), stored[[7, 0, 9]])


def test_rows_cost_what_poplibs_says():
    target = IPUModel("ipu2").createDevice().getTarget()
    assert (row_scalar_cycles(FLOAT, 5), row_scalar_cycles(HALF, 5)) == (27 + 40, 27 + 60)
    assert sequence_slice_cycles(target, FLOAT, 120, 12) == 130 + 20 * 2
    assert sequence_slice_cycles(target, HALF, 120, 0) == 7


def test_what_does_not_fit_is_refused():
    graph, _ = new_graph(4)
    t, i = variable(graph, FLOAT, [4, 5], "t"), variable(graph, UNSIGNED_INT, [4], "i")
    whole, signed = variable(graph, INT, [4, 5], "whole"), variable(graph, INT, [4], "signed")
    prog = Sequence()

    def select(params=t, indices=i):
        popops.selectScalarFromRows(graph, params, indices, prog)

    def copy(source=t, target=whole, counts=i, first=i):
        popops.sequenceSlice(graph, source, target, counts, first, i, True, prog)

    before = graph.numVertices(), graph.numComputeSets()
    refusals = [
        (PoplibsError, "params is a matrix, got", lambda: select(t[0])),
        (PoplibsError, "rows have one column at least", lambda: select(t.slice(0, 0, 1))),
        (PoplibsError, "params is of FLOATs or HALFs, got", lambda: select(whole)),
        (PoplibsError, "offsets are UNSIGNED_INT", lambda: select(indices=signed)),
        (PoplibsError, r"the offsets have the shape \[4\], one for each row", lambda: select(indices=i.slice(0, 3))),
        (PoplibsError, "cannot write", lambda: popops.updateScalarInRows(graph, t.slice(0, 1).broadcast(4), i, prog)),
        (PoplibsError, "tIn and tOut have one type", copy),
        (PoplibsError, "two dimensions at least", lambda: copy(t[0], t)),
        (PoplibsError, "rows have as many elements in both", lambda: copy(t.slice(0, 2, 1), t.slice(2, 5, 1))),
        (PoplibsError, r"the offsets have the shape \[4\], one for each sequence", lambda: copy(t, t, first=i.slice(0, 2))),
        (PoplibsError, "has two dimensions, got the shape", lambda: popops.createHostSliceableTensor(graph, FLOAT, [3], True)),
        (
            PoplibsError,
            "offset is a whole number of at least 0",
            lambda: popops.createHostTransferableTensor(graph, FLOAT, [3], True, -1),
        ),
        (PoplarTypeError, "isRead is True or False", lambda: popops.createHostTransferableTensor(graph, FLOAT, [3], 1)),
    ]
    for error, text, call in refusals:
        with pytest.raises(error, match=text):
            call()
    assert (graph.numVertices(), graph.numComputeSets()) == before
