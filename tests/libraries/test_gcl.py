"""Collectives against NumPy: every operator, type, method, group and stride, odd and empty sizes, 1 to 16 replicas."""

import random

import numpy as np
import pytest
from collective_values import COMBINE, values
from engine_builder import tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    Engine,
    Graph,
    InvalidOption,
    InvalidTileMapping,
    PoplarAttributeError,
    PoplarTypeError,
    compileGraph,
    gcl,
)
from pypoplar.gcl import CollectiveOperator, CommGroup, CommGroupType
from pypoplar.gcl.collective_operator import ROWS
from pypoplar.gcl.comm_group import replica_groups
from pypoplar.gcl.methods import METHODS, automatic_method
from pypoplar.gcl.ring import ring_order
from pypoplar.poputil import PoplibsError, mapTensorLinearly
from pypoplar.program import Copy, Sequence

SEEDS = st.integers(0, 2**32 - 1)
TYPES = (FLOAT, HALF, INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG, BOOL)


class Replicas:
    """A graph of some replicas, whose tensors are written for each and read from each."""

    def __init__(self, count, tiles=3):
        self.count, self.device = count, tiny(tiles, ipus=count)
        self.graph, self.prog, self.given = Graph(self.device, count), Sequence(), {}
        gcl.addCodelets(self.graph)

    def tensor(self, values, type):
        name = f"x{len(self.given)}"
        tensor = self.graph.addVariable(type, list(values.shape[1:]), name)
        mapTensorLinearly(self.graph, tensor)
        self.graph.createHostWrite(name, self.graph.getNonReplicatedTensor(tensor))
        self.given[name] = values
        return tensor

    def read(self, *tensors, mode="native", threads=1):
        for number, tensor in enumerate(tensors):
            self.graph.createHostRead(f"r{number}", tensor)
        self.engine = Engine(self.graph, self.prog, {"pypoplar.threads": threads}, mode=mode)
        self.engine.load(self.device)
        for name, array in self.given.items():
            self.engine.writeTensor(name, array)
        self.engine.run()
        return [self.engine.readTensor(f"r{number}").reshape(self.count, *tensor.shape()) for number, tensor in enumerate(tensors)]


def group_of(chosen, count):
    """A random group, and the replicas of each, said in another way."""
    sizes = [size for size in range(1, count + 1) if count % size == 0]
    size = chosen.choice(sizes)
    kind = chosen.randrange(3)
    if kind == 0:
        return chosen.choice([None, CommGroup(), CommGroup(CommGroupType.ALL, 7)]), [list(range(count))]
    if kind == 1:
        apart = count // size
        return CommGroup(CommGroupType.ORTHOGONAL, size), [list(range(first, count, apart)) for first in range(apart)]
    stride = chosen.choice([stride for stride in range(1, count + 1) if count % (size * stride) == 0])
    block = size * stride
    groups = [[begin + first + stride * i for i in range(size)] for begin in range(0, count, block) for first in range(stride)]
    return CommGroup(CommGroupType.CONSECUTIVE, size, stride), groups


@examples(60)
@given(SEEDS, st.integers(1, 16), st.sampled_from(TYPES), st.sampled_from(METHODS), st.integers(0, 37))
def test_an_all_reduce_is_what_numpy_makes_of_each_group(seed, count, type, method, size):
    chosen = random.Random(seed)
    op = chosen.choice([op for op, row in ROWS.items() if type in row.types])
    group, groups = group_of(chosen, count)
    given_to = values(seed, type, count, size)
    expected = np.empty_like(given_to)
    for members in groups:
        with np.errstate(over="ignore"):
            expected[members] = COMBINE[op](given_to[members].astype(np.float64 if type in (FLOAT, HALF) else type.dtype)).astype(
                type.dtype
            )
    replicas = Replicas(count, chosen.choice([1, 3]))
    options, form = {"method": method}, chosen.choice(["new", "in place", "destination"])
    x = replicas.tensor(given_to, type)
    if form == "new":
        result = gcl.allReduceCrossReplica(replicas.graph, x, op, replicas.prog, group, "reduce", options)
    elif form == "in place":
        result = x
        gcl.allReduceInPlaceCrossReplica(replicas.graph, x, op, replicas.prog, group, None, options)
    else:
        result = replicas.graph.clone(x)
        gcl.allReduceToDestinationCrossReplica(replicas.graph, x, result, op, replicas.prog, group, options=options)
    (found,) = replicas.read(result, threads=chosen.choice([1, 2]))
    if op is CollectiveOperator.MEAN:
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)
        for members in groups:
            assert len({found[member].tobytes() for member in members}) == 1
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", [*METHODS])
@pytest.mark.parametrize("shape", [(5, 9), (7, 11), (3, 2)])
def test_a_sum_has_the_same_bits_in_whatever_order_its_tensor_lies_in_memory(method, shape):
    given_to = np.random.default_rng(3).normal(size=(5, *shape)).astype(np.float16)
    replicas, op = Replicas(5), CollectiveOperator.ADD
    x = replicas.tensor(given_to, HALF)
    turned = replicas.tensor(given_to.transpose(0, 2, 1).copy(), HALF).transpose()
    target = replicas.graph.addVariable(HALF, shape[::-1], "target")
    mapTensorLinearly(replicas.graph, target)
    sums = [
        gcl.allReduceCrossReplica(replicas.graph, tensor, op, replicas.prog, options={"method": method}) for tensor in (x, turned)
    ]
    gcl.allReduceToDestinationCrossReplica(replicas.graph, x, target.transpose(), op, replicas.prog, options={"method": method})
    in_order, *others = replicas.read(*sums, target.transpose())
    for other in others:
        assert other.tobytes() == in_order.tobytes()


@pytest.mark.parametrize("method", ["clockwise_ring", "quad_directional_ring", "broadcast"])
@pytest.mark.parametrize("in_place", [False, True])
def test_what_lies_together_in_memory_is_rearranged_as_one_piece(method, in_place):
    rows, columns, ranks = 96, 64, 4
    replicas = Replicas(ranks)
    x = replicas.tensor(np.zeros((ranks, columns, rows), np.float32), FLOAT).transpose()
    reduce = gcl.allReduceInPlaceCrossReplica if in_place else gcl.allReduceCrossReplica
    reduce(replicas.graph, x, CollectiveOperator.ADD, replicas.prog, options={"method": method})
    copies = [program for program in replicas.prog.programs if isinstance(program, Copy) and "rearrange" in program.name]
    assert len(copies) == 2
    for copy in copies:
        for end in (copy.source, copy.destination):
            assert int(np.where(end.runs().step == 1, 1, end.runs().count).sum()) <= 4 * ranks * columns  # of 6,144 elements


@examples(20)
@given(SEEDS, st.integers(2, 9), st.sampled_from(METHODS), st.sampled_from([FLOAT, HALF]))
def test_all_replicas_of_a_group_get_the_same_bits(seed, count, method, type):
    chosen = random.Random(seed)
    group, groups = group_of(chosen, count)
    given_to = np.random.default_rng(seed).normal(size=(count, 11)).astype(type.dtype)
    replicas = Replicas(count)
    result = gcl.allReduceCrossReplica(
        replicas.graph, replicas.tensor(given_to, type), CollectiveOperator.ADD, replicas.prog, group, options={"method": method}
    )
    (found,) = replicas.read(result)
    for members in groups:
        assert len({found[member].tobytes() for member in members}) == 1
        total = given_to[members].astype(np.float64).sum(0)
        np.testing.assert_allclose(
            found[members[0]], total, rtol=1e-2 if type is HALF else 1e-5, atol=1e-2 if type is HALF else 1e-5
        )


@examples(30)
@given(SEEDS, st.integers(1, 12), st.sampled_from(METHODS), st.integers(0, 30))
def test_a_reduce_scatter_gives_each_rank_its_fragment_padded_with_zeros(seed, count, method, size):
    chosen = random.Random(seed)
    op = chosen.choice([*(op for op in ROWS if INT in ROWS[op].types), CollectiveOperator.LOCAL])
    group, groups = group_of(chosen, count)
    given_to = values(seed, INT, count, size)
    ranks = len(groups[0])
    fragment = -(-size // ranks)
    expected = np.zeros((count, fragment), np.int32)
    for members in groups:
        for rank, member in enumerate(members):
            rows = given_to[[member]] if op is CollectiveOperator.LOCAL else given_to[members]
            whole = rows[0] if op is CollectiveOperator.LOCAL else COMBINE[op](rows)
            expected[member] = np.pad(whole, (0, fragment * ranks - size))[rank * fragment : (rank + 1) * fragment]
    replicas = Replicas(count)
    x, options = replicas.tensor(given_to, INT), {"method": method}
    if chosen.random() < 0.5:
        result = gcl.reduceScatterCrossReplica(replicas.graph, x, op, replicas.prog, group, options=options)
    else:
        result = replicas.graph.addVariable(INT, [fragment])
        mapTensorLinearly(replicas.graph, result)
        gcl.reduceScatterToDestinationCrossReplica(replicas.graph, x, result, op, replicas.prog, group, options=options)
    (found,) = replicas.read(result)
    np.testing.assert_array_equal(found, expected)


@examples(30)
@given(SEEDS, st.integers(1, 12), st.sampled_from(METHODS), st.sampled_from(TYPES), st.integers(0, 9))
def test_gathers_broadcasts_and_all_to_all_move_what_numpy_would(seed, count, method, type, size):
    chosen = random.Random(seed)
    group, groups = group_of(chosen, count)
    ranks, options = len(groups[0]), {"method": method}
    given_to, rows = values(seed, type, count, size, 2), values(seed + 1, type, count, ranks, size)
    replicas = Replicas(count)
    graph, prog, x = replicas.graph, replicas.prog, replicas.tensor(given_to, type)
    if chosen.random() < 0.5:
        gathered = gcl.allGatherCrossReplica(graph, x, prog, group, options=options)
    else:
        gathered = graph.addVariable(type, [ranks, size, 2])
        mapTensorLinearly(graph, gathered)
        gcl.allGatherToDestinationCrossReplica(graph, x, gathered, prog, group, options=options)
    first = gcl.broadcastCrossReplica(graph, x, prog, group, options=options)
    dealt = gcl.allToAllCrossReplica(graph, replicas.tensor(rows, type), prog, group, options=options)
    for tensor in (gathered, first, dealt):
        if not tensor.numElements():
            mapTensorLinearly(graph, tensor)
    found = replicas.read(gathered, first, dealt)
    for members in groups:
        for rank, member in enumerate(members):
            np.testing.assert_array_equal(found[0][member], given_to[members])
            np.testing.assert_array_equal(found[1][member], given_to[members[0]])
            np.testing.assert_array_equal(found[2][member], rows[members, rank])


def test_tensors_of_several_types_are_reduced_together_in_as_few_collectives_as_there_are_types(mode):
    replicas = Replicas(3)
    floats, ints = values(1, FLOAT, 3, 4), values(2, INT, 3, 2, 3)
    more = values(3, FLOAT, 3, 1)
    data = [replicas.tensor(floats, FLOAT), replicas.tensor(ints, INT), replicas.tensor(more, FLOAT)]
    ring = {"method": "clockwise_ring"}
    sums = gcl.allReduceCrossReplica(replicas.graph, data, CollectiveOperator.ADD, replicas.prog, options=ring)
    assert [tuple(total.shape()) for total in sums] == [(4,), (2, 3), (1,)]
    found = replicas.read(*sums, mode=mode)
    for given_to, total in zip((floats, ints, more), found, strict=True):
        np.testing.assert_array_equal(total, [given_to.sum(0)] * 3)
    services = [service for service in replicas.engine.executable.services if service["kind"] == "exchange"]
    assert len(services) == 2 * 2  # of each type one for the reduction and one for the gather


def test_a_replica_alone_moves_nothing(mode):
    replicas = Replicas(1)
    x = replicas.tensor(np.array([[2.0, 3.0]], np.float32), FLOAT)
    squares = gcl.allReduceCrossReplica(replicas.graph, x, CollectiveOperator.SQUARE_ADD, replicas.prog)
    (found,) = replicas.read(squares, mode=mode)
    assert found.tolist() == [[4.0, 9.0]]
    assert replicas.engine.executable.services == ()


@pytest.mark.parametrize("ranks", range(1, 10))
def test_the_ring_goes_forth_by_every_other_rank_and_back_by_the_rest(ranks):
    order = ring_order(ranks)
    assert sorted(order) == list(range(ranks))
    assert all(abs(a - b) <= 2 for a, b in zip(order, (*order[1:], order[0]), strict=True))


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize(("method", "factor"), [("clockwise_ring", 2), ("quad_directional_ring", 2), ("broadcast", None)])
def test_a_rank_sends_as_many_bytes_as_its_method_says(count, method, factor):
    replicas = Replicas(count)
    x = replicas.tensor(values(0, FLOAT, count, 8 * count + 1), FLOAT)
    total = gcl.allReduceCrossReplica(replicas.graph, x, CollectiveOperator.ADD, replicas.prog, options={"method": method})
    replicas.read(total)
    executable = replicas.engine.executable
    phases = [int(exchange.bytes_sent.sum()) for exchange in executable.exchanges if exchange.phase == "replicas"]
    padded = 4 * 9 * count
    sent = sum((count - 1) * bytes for bytes in phases)
    assert sent == (2 * (count - 1) * padded // count if factor else (count - 1) * 4 * (8 * count + 1))


@pytest.mark.parametrize(
    ("ranks", "ipus", "bytes", "reduces", "gathers"),
    [
        (2, 1, 8, "clockwise_ring", "clockwise_ring"),
        (9, 2, 8, "clockwise_ring", "clockwise_ring"),
        (3, 1, 622_591, "meet_in_middle_ring", "meet_in_middle_ring"),
        (3, 1, 622_592, "meet_in_middle_ring", "bidirectional_ring_pair"),
        (4, 1, 1_245_184, "bidirectional_ring_pair", "bidirectional_ring_pair"),
        (5, 1, 4_980_735, "meet_in_middle_ring", "bidirectional_ring_pair"),
        (8, 1, 4_980_736, "bidirectional_ring_pair", "bidirectional_ring_pair"),
        (9, 1, 19_922_943, "meet_in_middle_ring", "meet_in_middle_ring"),
        (16, 1, 39_845_888, "bidirectional_ring_pair", "bidirectional_ring_pair"),
        (17, 1, 10**9, "meet_in_middle_ring", "meet_in_middle_ring"),
    ],
)
def test_auto_chooses_by_ranks_and_bytes(ranks, ipus, bytes, reduces, gathers):
    assert automatic_method(ranks, ipus, bytes, gathers=False) == reduces
    assert automatic_method(ranks, ipus, bytes, gathers=True) == gathers


@pytest.mark.parametrize(("elements", "same"), [(40, "meet_in_middle_ring"), (400_000, "bidirectional_ring_pair")])
def test_auto_is_the_method_that_it_chooses(elements, same):
    made = []
    for method in ("auto", same, "clockwise_ring"):
        graph, prog = Graph(tiny(3, ipus=3), 3), Sequence()
        x = graph.addVariable(FLOAT, [elements], "x")
        mapTensorLinearly(graph, x)
        gcl.addCodelets(graph)
        gcl.allReduceCrossReplica(graph, x, CollectiveOperator.ADD, prog, options={"method": method})
        executable = compileGraph(graph, prog, {"pypoplar.run_out_of_memory": True}, mode="cost")
        made.append((graph.numVertices(), [int(one.bytes_sent.sum()) for one in executable.exchanges if one.phase == "replicas"]))
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_fragments_that_meet_in_the_middle_take_as_many_turns_and_come_from_both_sides(count):
    replicas = Replicas(count)
    x = replicas.tensor(values(0, FLOAT, count, 8 * count + 1), FLOAT)
    options = {"method": "meet_in_middle_ring"}
    total = gcl.allReduceCrossReplica(replicas.graph, x, CollectiveOperator.ADD, replicas.prog, options=options)
    replicas.read(total)
    turns = [step.executions for step in replicas.engine.getReport().execution.steps if step.name.endswith("/toNext")]
    assert sum(turns) == 2 * (count - 1)
    services = [service for service in replicas.engine.executable.services if service["kind"] == "exchange"]
    ways = {tuple(service["receivers"]) for service in services}
    back = {tuple(int(replica) for replica in np.argsort(way)) for way in ways}
    assert len(ways) == (1 if count == 2 else 2)
    assert ways == back


def test_collectives_of_a_nested_graph_are_within_each_replica_of_the_top_level_graph():
    device = tiny(3, ipus=6)
    graph = Graph(device, 2).createReplicatedGraph(3)
    gcl.addCodelets(graph)
    index, prog = graph.addReplicationIndexConstant(), Sequence()
    graph.setTileMapping(index, 0)
    graph.createHostRead("all", gcl.allGatherCrossReplica(graph, index, prog))
    engine = Engine(graph, prog)
    engine.loadAndRun(device)
    assert engine.readTensor("all").tolist() == [[0, 1, 2]] * 3 + [[3, 4, 5]] * 3
    assert replica_groups("gcl", graph, CommGroup(CommGroupType.ORTHOGONAL, 3)) == ((0, 1, 2), (3, 4, 5))


@pytest.mark.parametrize(
    ("group", "error", "text"),
    [
        (CommGroup(CommGroupType.CONSECUTIVE, 4), InvalidOption, "6 replicas cannot be divided into groups of 4"),
        (CommGroup(CommGroupType.CONSECUTIVE, 0), InvalidOption, "6 replicas cannot be divided into groups of 0"),
        (CommGroup(CommGroupType.CONSECUTIVE, 2, 2), InvalidOption, "groups of 2 with a stride of 2"),
        (CommGroup(CommGroupType.CONSECUTIVE, 2, 0), InvalidOption, "groups of 2 with a stride of 0"),
        (CommGroup(CommGroupType.ORTHOGONAL, 3, 2), InvalidOption, "an ORTHOGONAL group has its own stride, got 2"),
        (6, PoplarTypeError, "a group is a CommGroup, got 6"),
    ],
)
def test_groups_that_do_not_divide_the_replicas_are_refused(group, error, text):
    replicas = Replicas(6)
    x = replicas.tensor(values(0, FLOAT, 6, 4), FLOAT)
    with pytest.raises(error, match=f"gcl.allGatherCrossReplica: .*{text}"):
        gcl.allGatherCrossReplica(replicas.graph, x, replicas.prog, group)
    for wrong in (("ALL",), (CommGroupType.ALL, 2.0), (CommGroupType.ALL, True)):
        with pytest.raises(PoplarTypeError, match="of a CommGroup"):
            CommGroup(*wrong)


def test_what_collectives_cannot_take_is_refused():
    replicas = Replicas(2)
    graph, prog, add = replicas.graph, replicas.prog, CollectiveOperator.ADD
    x, flags = replicas.tensor(values(0, FLOAT, 2, 4), FLOAT), replicas.tensor(values(0, BOOL, 2, 4), BOOL)
    unmapped = graph.addVariable(FLOAT, [4])
    constant = graph.addConstant(FLOAT, [4], 1.0)
    graph.setTileMapping(constant, 0)
    with pytest.raises(InvalidTileMapping, match="4 of 4 elements"):
        gcl.allReduceCrossReplica(graph, unmapped, add, prog)
    for tensor in (constant, x[0].broadcast(4, 0) if x[0].rank() else x[:1].broadcast(4, 0)):
        with pytest.raises(PoplibsError, match="cannot be written: it holds an element twice, or a constant"):
            gcl.allReduceInPlaceCrossReplica(graph, tensor, add, prog)
        with pytest.raises(PoplibsError, match="cannot be written"):
            gcl.allReduceToDestinationCrossReplica(graph, x, tensor, add, prog)
    with pytest.raises(PoplibsError, match=r"the destination is FLOAT \[4\], got"):
        gcl.allReduceToDestinationCrossReplica(graph, x, x[:2], add, prog)
    with pytest.raises(PoplibsError, match=r"the destination is FLOAT \[4\], got"):
        gcl.allReduceToDestinationCrossReplica(graph, x, flags, add, prog)
    with pytest.raises(PoplibsError, match="1 tensors have 2 destinations"):
        gcl.allReduceToDestinationCrossReplica(graph, [x], [x, x], add, prog)
    with pytest.raises(PoplibsError, match=r"the destination is FLOAT \[2, 4\]"):
        gcl.allGatherToDestinationCrossReplica(graph, x, x, prog)
    with pytest.raises(PoplibsError, match=r"the destination is FLOAT \[2\]"):
        gcl.reduceScatterToDestinationCrossReplica(graph, x, x, add, prog)
    with pytest.raises(PoplibsError, match="ADD takes FLOAT, HALF, INT, LONGLONG, UNSIGNED_LONGLONG, got BOOL"):
        gcl.allReduceCrossReplica(graph, flags, add, prog)
    with pytest.raises(PoplibsError, match="an operator is a CollectiveOperator, got 'ADD'"):
        gcl.reduceScatterCrossReplica(graph, x, "ADD", prog)
    with pytest.raises(PoplibsError, match="takes a row for each of 2 replicas"):
        gcl.allToAllCrossReplica(graph, x, prog)
    with pytest.raises(InvalidOption, match="the option 'method' is one of auto, clockwise_ring"):
        gcl.allReduceCrossReplica(graph, x, add, prog, options={"method": "ring"})


def test_what_lists_cannot_hold_is_refused_before_the_program_is_extended():
    replicas = Replicas(2)
    graph, prog, add = replicas.graph, replicas.prog, CollectiveOperator.ADD
    x, y = (replicas.tensor(values(0, FLOAT, 2, 4), FLOAT) for _ in range(2))
    with pytest.raises(PoplibsError, match=r"InPlaceCrossReplica: .*'x0'.* and .*'x0'.* cannot both be written"):
        gcl.allReduceInPlaceCrossReplica(graph, [x[:3], y, x[2:]], add, prog)
    with pytest.raises(PoplibsError, match=r"ToDestinationCrossReplica: .*'x1'.* cannot both be written: they share elements"):
        gcl.allReduceToDestinationCrossReplica(graph, [x, x], [y, y], add, prog)
    with pytest.raises(PoplarTypeError, match=r"gcl.allReduceCrossReplica takes a tensor, or a list of them, got None"):
        gcl.allReduceCrossReplica(graph, None, add, prog)
    with pytest.raises(PoplibsError, match="an operator is a CollectiveOperator, got 'ADD'"):
        gcl.allReduceInPlaceCrossReplica(graph, [], "ADD", prog)
    assert prog.programs == []
    first, again = gcl.allReduceCrossReplica(graph, [x, x], add, prog)  # reading twice is fine
    found = replicas.read(first, again)
    np.testing.assert_array_equal(*found)


def test_names_that_there_are_not_are_told():
    with pytest.raises(PoplarAttributeError, match=r"has no 'allReduce'"):
        _ = gcl.allReduce
    assert not hasattr(gcl, "_private")
