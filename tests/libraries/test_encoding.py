"""popops.iota and popops.encodeOneHot against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, Interval, PoplarTypeError, popops
from pypoplar.popops.encoding.encoding_cycles import iota_cycles, one_hot_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence


def one_hot(indices, columns, type, on=1, off=0):
    """Rows with `on` at their index, if it is a column."""
    table = np.full((len(indices), columns), off, type.dtype)
    for row, index in enumerate(indices):
        if 0 <= index < columns:
            table[row, index] = on
    return table


def cycles(engine):
    return [step.cycles for step in engine.getReport().execution.steps]


@pytest.mark.parametrize("tiles", [1, 4, 7])
@pytest.mark.parametrize(("type", "start"), [(INT, -3), (UNSIGNED_INT, 2**32 - 100)])
def test_a_range_counts_up_from_its_start(tiles, type, start):
    reads = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        t = variable(graph, type, [100], "t")
        prog = Sequence()
        popops.iota(graph, t, start, prog, "range")
        read, engine = run(graph, device, prog, {}, {"t": t}, mode)
        np.testing.assert_array_equal(read["t"], np.arange(start, start + 100).astype(type.dtype))
        reads.append(
            engine.executable.cycles
            if hasattr(engine.executable, "cycles")
            else engine.getTotalCycles()
            if hasattr(engine, "getTotalCycles")
            else 0
        )
    assert reads[0] == reads[1]


def test_a_range_fills_a_view_in_pieces():
    graph, device = new_graph(4)
    table = graph.addVariable(INT, [6, 5], "table")
    graph.setTileMapping(table, [[Interval(0, 3), Interval(20, 24)], [Interval(3, 20)], [Interval(24, 30)], []])
    prog = Sequence()
    popops.iota(graph, table.transpose().flatten(), 10, prog)
    popops.iota(graph, graph.addVariable(INT, [0], "empty"), 10, prog)
    read, _ = run(graph, device, prog, {}, {"t": table})
    np.testing.assert_array_equal(read["t"], np.arange(10, 40).reshape(5, 6).T)


def test_a_range_on_the_whole_machine():
    graph, device = new_graph(1472)
    t = variable(graph, UNSIGNED_INT, [100_000], "t")
    prog = Sequence()
    popops.iota(graph, t, 5, prog)
    read, _ = run(graph, device, prog, {}, {"t": t})
    np.testing.assert_array_equal(read["t"], np.arange(5, 100_005))


@examples(12)
@given(
    st.lists(st.integers(-1, 12), max_size=9),
    st.integers(0, 11),
    st.sampled_from((FLOAT, HALF, INT, UNSIGNED_INT)),
    st.sampled_from((INT, UNSIGNED_INT)),
    st.booleans(),
    st.sampled_from((1, 4, 7)),
)
def test_rows_are_one_at_their_index(indices, columns, type, index_type, custom, tiles):
    reads = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        place = variable(graph, index_type, [len(indices)], "indices")
        encoded = variable(graph, type, [columns, len(indices)] if custom else [len(indices), columns], "encoded")
        encoded = encoded.transpose() if custom else encoded
        prog = Sequence()
        values = [variable(graph, type, [], name, tile=0) for name in ("on", "off")] if custom else []
        popops.encodeOneHot(graph, place, encoded, prog, *values)
        given = {"indices": np.array(indices, np.int64).astype(index_type.dtype)}
        given |= {"on": np.array(5, type.dtype), "off": np.array(3, type.dtype)} if custom else {}
        read, _ = run(graph, device, prog, given, {"encoded": encoded}, mode, {"pypoplar.races": "elements"})
        np.testing.assert_array_equal(read["encoded"], one_hot(indices, columns, type, *((5, 3) if custom else ())))
        reads.append(read["encoded"])
    assert reads[0].tobytes() == reads[1].tobytes()


@pytest.mark.parametrize("shape", [(2000, 10), (10, 5000)])
def test_rows_are_encoded_on_the_whole_machine(shape):
    graph, device = new_graph(1472)
    rows, columns = shape
    indices, encoded = variable(graph, UNSIGNED_INT, [rows], "indices"), variable(graph, HALF, shape, "encoded")
    prog = Sequence()
    popops.encodeOneHot(graph, indices, encoded, prog, "labels")
    labels = np.random.default_rng(1).integers(0, columns, rows).astype(np.uint32)
    labels[3] = popops.MASKED_LABEL_CODE
    read, _ = run(graph, device, prog, {"indices": labels}, {"encoded": encoded})
    np.testing.assert_array_equal(read["encoded"], one_hot(labels, columns, HALF))


def test_indices_may_lie_in_what_is_encoded():
    graph, device = new_graph(4)
    t = variable(graph, INT, [3, 3], "t")
    prog = Sequence()
    popops.encodeOneHot(graph, t[0], t, prog)
    read, _ = run(graph, device, prog, {"t": np.array([[2, 0, 1], [0, 0, 0], [0, 0, 0]], np.int32)}, {"t": t})
    np.testing.assert_array_equal(read["t"], one_hot([2, 0, 1], 3, INT))


def test_what_cannot_be_encoded_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    indices, encoded, prog = variable(graph, INT, [3], "indices"), variable(graph, FLOAT, [3, 4], "encoded"), Sequence()
    constant = graph.addConstant(FLOAT, [3, 4], 0.0, "constant")
    graph.setTileMapping(constant, 0)
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    refused = [
        (lambda: popops.encodeOneHot(graph, indices.slice(0, 2), encoded, prog), "takes indices .*'indices' INT .2.*'encoded'"),
        (lambda: popops.encodeOneHot(graph, encoded[:, 0], encoded, prog), "indices are INT or UNSIGNED_INT, got .*'encoded'"),
        (lambda: popops.encodeOneHot(graph, indices, constant, prog), "cannot be written: .* a constant"),
        (
            lambda: popops.encodeOneHot(graph, indices, encoded, prog, encoded[0, 0], indices[0]),
            "off is one FLOAT, .* got .*'indices'",
        ),
        (lambda: popops.iota(graph, encoded[0], 0, prog), "vector of INT or UNSIGNED_INT, got .*'encoded'"),
        (lambda: popops.iota(graph, encoded, 0, prog), "fills a vector, got .*'encoded'.* of rank 2"),
        (lambda: popops.iota(graph, indices, 2**31 - 2, prog), "INT has no 3 numbers from 2147483646 on"),
        (lambda: popops.iota(graph, indices, 1.5, prog), r"INT has no 3 numbers from 1\.5 on"),
        (lambda: popops.iota(graph, indices.broadcast(2, 0), 1, prog), "holds an element twice"),
    ]
    for call, message in refused:
        with pytest.raises(PoplibsError, match=message):
            call()
    with pytest.raises(PoplarTypeError, match=r"popops\.encodeOneHot.*prog"):
        popops.encodeOneHot(graph, indices, encoded, None)
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert len(prog) == 0


def test_encoding_costs_what_poplibs_says():
    assert iota_cycles([8, 3], 2) == 2 + 10 + (4 + 3 * 4) + (4 + 3 * 2)
    assert one_hot_cycles(8, 3, INT, FLOAT) == 2 + (23 + 4) + 300
    assert one_hot_cycles(8, 3, UNSIGNED_INT, HALF) == 2 + (26 + 2) + 3 * 12
