"""Collectives over the IPUs of one replica, tiles set aside, and the order of parts of a tensor that replicas share."""

import numpy as np
import pytest
from collective_values import COMBINE, values
from engine_builder import tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import BOOL, FLOAT, HALF, INT, Engine, Graph, InvalidOption, InvalidTileMapping, PoplarTypeError, gcl
from pypoplar.gcl import Chunk, Chunks, CollectiveBalancedReorder, CollectiveOperator
from pypoplar.poputil import PoplibsError, mapTensorLinearly
from pypoplar.program import Copy, Sequence

TILES = 3
ADD = CollectiveOperator.ADD


class Ipus:
    """A graph of several IPUs, and a tensor with a row on each."""

    def __init__(self, ipus, elements, type=FLOAT):
        self.device = tiny(TILES, ipus=ipus)
        self.graph, self.prog = Graph(self.device), Sequence()
        gcl.addCodelets(self.graph)
        self.rows = self.graph.addVariable(type, [ipus, elements], "rows")
        for ipu in range(ipus):
            mapTensorLinearly(self.graph.createVirtualGraph(ipu * TILES, (ipu + 1) * TILES), self.rows[ipu])
        self.graph.createHostWrite("rows", self.rows)

    def places(self, tensor):
        """The IPUs on which a tensor lies."""
        return {tile // TILES for tile, intervals in enumerate(self.graph.getTileMapping(tensor)) if intervals}

    def read(self, given, *tensors, mode="native"):
        for number, tensor in enumerate(tensors):
            self.graph.createHostRead(f"r{number}", tensor)
        engine = Engine(self.graph, self.prog, mode=mode)
        engine.load(self.device)
        engine.writeTensor("rows", given)
        engine.run()
        self.cycles = engine.getReport().execution.totalCycles.total
        return [engine.readTensor(f"r{number}").reshape(tensor.shape()) for number, tensor in enumerate(tensors)]


@given(
    ipus=st.integers(1, 6),
    elements=st.integers(0, 13),
    op=st.sampled_from([*COMBINE]),
    method=st.sampled_from(["auto", "anticlockwise_ring"]),
    mode=st.sampled_from(["native", "interpret"]),
    seed=st.integers(0, 2**32 - 1),
)
@examples(60)
def test_rows_of_ipus_are_reduced_and_gathered_as_numpy_does_it(ipus, elements, op, method, mode, seed):
    type = BOOL if op.name.startswith("LOGICAL") else FLOAT
    case, given = Ipus(ipus, elements, type), values(seed, type, ipus, elements)
    options = {"method": method}
    chunks = gcl.reduceScatterWithinReplica(case.graph, case.rows, op, case.prog, options=options)
    gathered = gcl.allGatherWithinReplica(case.graph, chunks, case.prog, options=options)
    reduced = gcl.allReduceWithinReplica(case.graph, case.rows, op, case.prog, options=options)
    parts = [chunk.tensor for chunk in chunks.chunks]
    *scattered, of_all, at_once, before = case.read(given, *parts, gathered, reduced, case.rows, mode=mode)
    wanted = COMBINE[op](given)
    if op is CollectiveOperator.MEAN:  # of whole numbers, whose sums are exact: what is rounded is one product
        wanted = given.sum(0) * np.float32(1.0 / ipus)
    np.testing.assert_array_equal(np.concatenate(scattered), wanted)
    np.testing.assert_array_equal(of_all, np.tile(wanted, (ipus, 1)))
    np.testing.assert_array_equal(at_once, of_all)
    np.testing.assert_array_equal(before, given)  # what is reduced stays as it was
    for ipu in range(ipus):
        assert case.places(parts[ipu]) <= {ipu}
        assert case.places(gathered[ipu]) <= {ipu}
        assert case.places(reduced[ipu]) <= {ipu}
    assert [chunk.index for chunk in chunks.chunks] == [*range(ipus)]
    assert chunks.originalInput is case.rows


def test_each_ipu_sends_all_fragments_but_one_and_sums_go_round_the_ring():
    case = Ipus(4, 40)
    gcl.allReduceWithinReplica(case.graph, case.rows, CollectiveOperator.ADD, case.prog)
    engine = Engine(case.graph, case.prog)
    sent = np.zeros(4, np.int64)
    for exchange in engine.executable.exchanges:
        messages = exchange.messages
        across = messages["source"] // TILES != messages["destination"] // TILES
        np.add.at(sent, messages["source"][across] // TILES, messages["bytes"][across])
    assert sent.tolist() == [2 * 3 * 10 * 4] * 4


def test_with_local_an_ipu_has_its_own():
    case, given = Ipus(3, 7), values(1, FLOAT, 3, 7)
    chunks = gcl.reduceScatterWithinReplica(case.graph, case.rows, CollectiveOperator.LOCAL, case.prog)
    reduced = gcl.allReduceWithinReplica(case.graph, case.rows, CollectiveOperator.LOCAL, case.prog)
    *scattered, all_of_them = case.read(given, *(chunk.tensor for chunk in chunks.chunks), reduced)
    np.testing.assert_array_equal(np.concatenate(scattered), np.concatenate([given[0, :2], given[1, 2:4], given[2, 4:]]))
    np.testing.assert_array_equal(all_of_them, given)


def test_chunks_of_ones_own_are_gathered_in_the_order_of_their_ipus():
    case, given = Ipus(2, 5), values(3, FLOAT, 2, 5)
    chunks = Chunks([Chunk(case.rows[1, :2], 1), Chunk(case.rows[0], 0)])
    gathered = gcl.allGatherWithinReplica(case.graph, chunks, case.prog)
    (found,) = case.read(given, gathered)
    np.testing.assert_array_equal(found, np.tile(np.concatenate([given[0], given[1, :2]]), (2, 1)))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda c: gcl.allReduceWithinReplica(c.graph, c.rows[0], ADD, c.prog), PoplibsError, "a row for each of 2 IPUs"),
        (lambda c: gcl.allReduceWithinReplica(c.graph, c.rows[0:1], ADD, c.prog), PoplibsError, "a row for each of 2 IPUs"),
        (lambda c: gcl.allReduceWithinReplica(c.graph, c.rows.reverse(0), ADD, c.prog), PoplibsError, "row 0 has to lie on IPU 0"),
        (
            lambda c: gcl.reduceScatterWithinReplica(c.graph, c.rows, CollectiveOperator.LOGICAL_OR, c.prog),
            PoplibsError,
            "LOGICAL_OR takes",
        ),
        (lambda c: gcl.reduceScatterWithinReplica(c.graph, c.rows, "ADD", c.prog), PoplibsError, "a CollectiveOperator"),
        (lambda c: gcl.allGatherWithinReplica(c.graph, c.rows, c.prog), PoplarTypeError, "takes Chunks"),
        (
            lambda c: gcl.allGatherWithinReplica(c.graph, Chunks([Chunk(c.rows[0], 0)]), c.prog),
            PoplibsError,
            "a chunk for each of 2 IPUs, got those of",
        ),
        (
            lambda c: gcl.allGatherWithinReplica(c.graph, Chunks([Chunk(c.rows[1], 0), Chunk(c.rows[0], 1)]), c.prog),
            PoplibsError,
            "chunk 0 has to lie on IPU 0",
        ),
        (
            lambda c: gcl.allReduceWithinReplica(c.graph, c.rows, ADD, c.prog, options={"method": "quick"}),
            InvalidOption,
            "quick",
        ),
    ],
)
def test_what_is_no_row_for_each_ipu_is_refused(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong(Ipus(2, 4))


def test_chunks_of_two_types_are_refused():
    case = Ipus(2, 4)
    half = case.graph.addVariable(HALF, [3], "half")
    case.graph.setTileMapping(half, TILES)
    with pytest.raises(PoplibsError, match="chunks are of one type"):
        gcl.allGatherWithinReplica(case.graph, Chunks([Chunk(case.rows[0], 0), Chunk(half, 1)]), case.prog)


@given(ipus=st.integers(1, 3), tiles=st.integers(1, 9), data=st.data())
@examples(30)
def test_tiles_of_io_and_of_compute_are_all_tiles_once(ipus, tiles, data):
    graph = Graph(tiny(tiles, ipus=ipus))
    io = data.draw(st.integers(0, tiles))
    both = gcl.perIPUTiles(graph, 0, io) + gcl.perIPUTiles(graph, io, tiles - io)
    assert sorted(both) == [*range(ipus * tiles)]
    if io:
        assert graph.createVirtualGraph(gcl.perIPUTiles(graph, 0, io)).getTarget().getNumTiles() == io * ipus


def test_tiles_that_an_ipu_does_not_have_are_refused():
    graph = Graph(tiny(6))
    assert gcl.getMinIoTiles(graph) == 6
    assert gcl.perIPUTiles(graph, 2, 4, tilePairs=True) == [2, 3, 4, 5]
    for wrong in (lambda: gcl.perIPUTiles(graph, 4, 3), lambda: gcl.perIPUTiles(graph, 1, 2, tilePairs=True)):
        with pytest.raises(PoplibsError):
            wrong()
    with pytest.raises(InvalidOption, match="offset"):
        gcl.perIPUTiles(graph, -1, 2)


class Shared:
    """A tensor of one replica on tiles as drawn, and its order for some replicas."""

    def __init__(self, data, replicas):
        self.device = tiny(4)
        self.graph = Graph(self.device)
        shape = data.draw(st.sampled_from([(1,), (5,), (3, 4), (2, 3, 3)]))
        self.tensor = self.graph.addVariable(FLOAT, shape, "weights")
        flat = self.tensor.flatten()
        for element in range(flat.numElements()):
            self.graph.setTileMapping(flat[element], data.draw(st.integers(0, 3)))
        self.order = CollectiveBalancedReorder(self.graph, self.tensor, replicas, "cbr")


@given(data=st.data(), replicas=st.integers(1, 5))
@examples(40)
def test_an_order_for_replicas_moves_nothing_between_tiles_and_is_undone(data, replicas):
    case = Shared(data, replicas)
    host = case.order.getHostRearrangement()
    together, part = case.order.createCollectivesTensor(FLOAT), case.order.createReplicaSlice(HALF)
    size = host.totalElementsPerReplica
    assert (host.replicationFactor, together.shape(), part.shape()) == (replicas, [replicas * size], [size])
    assert host.getNumRearrangedTensorElems() == replicas * size
    assert part.elementType() == HALF
    view = case.order.undoRearrangeForCollective(together)
    assert view.shape() == case.tensor.shape()
    assert case.graph.getTileMapping(view) == case.graph.getTileMapping(case.tensor)
    for row in range(replicas):  # equal parts of what each tile holds
        assert case.graph.getTileMapping(together[row * size : (row + 1) * size]) == case.graph.getTileMapping(part)

    weights = np.arange(1, case.tensor.numElements() + 1, dtype=np.float32)
    arranged = host.rearrangeForCollective(weights.reshape(case.tensor.shape()))
    assert arranged.shape == (replicas, size)
    assert (arranged == 0).sum() == replicas * size - len(weights)
    np.testing.assert_array_equal(host.undoRearrangeForCollective(arranged), weights)

    case.graph.createHostWrite("together", together)
    case.graph.createHostRead("weights", case.tensor)
    engine = Engine(case.graph, Copy(view, case.tensor))
    engine.load(case.device)
    engine.writeTensor("together", arranged)
    engine.run()
    np.testing.assert_array_equal(engine.readTensor("weights").reshape(-1), weights)
    assert not any(len(exchange.messages) for exchange in engine.executable.exchanges)


def test_what_is_no_tensor_to_be_shared_is_refused():
    graph = Graph(tiny(2))
    x = graph.addVariable(INT, [4], "x")
    with pytest.raises(InvalidTileMapping, match="'x'"):
        CollectiveBalancedReorder(graph, x, 2).getHostRearrangement()
    mapTensorLinearly(graph, x)
    order = CollectiveBalancedReorder(graph, x, 2)
    with pytest.raises(InvalidOption, match="replicationFactor"):
        CollectiveBalancedReorder(graph, x, 0)
    with pytest.raises(PoplibsError, match="nothing to order"):
        CollectiveBalancedReorder(graph, x[0:0], 2)
    with pytest.raises(PoplibsError, match="expected a tensor of 4 elements"):
        order.undoRearrangeForCollective(x[:3])
    for wrong in (order.getHostRearrangement().rearrangeForCollective, order.getHostRearrangement().undoRearrangeForCollective):
        with pytest.raises(PoplibsError, match="expected an array of 4 elements, got one of 3"):
            wrong(np.zeros(3))
