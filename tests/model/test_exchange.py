"""What exchange, copies on a tile, links between IPUs and syncs cost, rule by rule; see docs/model.md."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, HALF, Engine, Graph, Input, IPUModel, Output, Vector, VectorList, Vertex, concat
from pypoplar.compiler.exchange.exchange_costs import PRICES, link_cycles, pieces_of_copies, price_exchange, vertex_side_pieces
from pypoplar.compiler.exchange.message_account import Transfers, account
from pypoplar.compiler.exchange_plan import CopyShares, Pieces
from pypoplar.executable.exchange_account import MESSAGE
from pypoplar.program import Copy, Execute, Sequence, Sync, SyncType
from pypoplar.target import GlobalExchangeConstraint, GlobalExchangeFlow, RelativeSyncDelayType, Target, TargetType

TILES = 8


class Sum(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for value in self.x:
            total += value
        self.out = total


class SumRows(Vertex):
    rows: Input[VectorList[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for row in range(len(self.rows)):
            for value in self.rows[row]:
                total += value
        self.out = total


class Bench:
    def __init__(self, ipus=1, tiles=TILES, **fields):
        model = IPUModel("bow")
        model.numIPUs, model.tilesPerIPU = ipus, tiles
        for name, value in fields.items():
            setattr(model, name, value)
        self.device = model.createDevice()
        self.graph = Graph(self.device)
        self.graph.addCodelets(Sum, SumRows)

    def variable(self, size, tile, name="v", type=FLOAT):
        """A variable of zeros; `tile` is one, or one for each element."""
        tensor = self.graph.addVariable(type, [size], name)
        for element, one in enumerate(np.broadcast_to(tile, [size]).tolist()):
            self.graph.setTileMapping(tensor[element], one)
        self.graph.setInitialValue(tensor, np.zeros(size, type.dtype))
        return tensor

    def vertex(self, compute_set, codelet, tile, **fields):
        out = self.variable(1, tile, "out")
        vertex = self.graph.addVertex(compute_set, codelet.__name__, {**fields, "out": out[0]})
        self.graph.setTileMapping(vertex, tile)
        self.graph.setPerfEstimate(vertex, 0)

    def engine(self, program):
        engine = Engine(self.graph, program)
        engine.load(self.device)
        return engine

    def steps(self, program):
        return self.engine(program).executable.steps[1:]  # the first is for handles


def priced(target, source, destination, offset, size):
    made = account(
        target.getNumTiles(), Transfers(*(np.array(one) for one in (source, destination, [0] * len(size), offset, size)))
    )
    return price_exchange(target, made.exchange, made.offset, np.zeros(target.getNumTiles(), np.int64))


def target_of(ipus=1, tiles=TILES, **changes):
    return Target.of_preset("bow", TargetType.IPU_MODEL, num_ipus=ipus, tiles_per_ipu=tiles, **changes)


# Shared buses


def test_a_pair_that_receives_the_same_takes_half_as_long():
    to_a_pair = priced(target_of(), [0, 0], [2, 3], [0, 0], [4000, 4000]).cycles
    to_two_pairs = priced(target_of(), [0, 0], [3, 4], [0, 0], [4000, 4000]).cycles
    assert to_a_pair[[0, 2, 3]].tolist() == [1000, 500, 500]
    assert to_two_pairs[[0, 3, 4]].tolist() == [1000, 1000, 1000]


def test_a_pair_shares_what_both_receive_and_no_more():
    cycles = priced(target_of(), [0, 0], [2, 3], [0, 1600], [4000, 4000]).cycles
    assert cycles[[2, 3]].tolist() == [(4000 - 1200) // 4] * 2


@pytest.mark.parametrize("changes", [{"supports_super_tile_send_receive": False}, {"tiles_per_super_tile": 1}])
def test_without_shared_buses_each_tile_receives_for_itself(changes):
    cycles = priced(target_of(**changes), [0, 0], [2, 3], [0, 0], [4000, 4000]).cycles
    assert cycles[[2, 3]].tolist() == [1000, 1000]


def test_pairs_do_not_reach_from_one_ipu_to_the_next():
    cycles = priced(target_of(ipus=2, tiles=3), [0, 5], [2, 3], [0, 0], [400, 400]).cycles
    assert cycles.tolist() == [100, 0, 100, 100, 0, 100]


@given(st.lists(st.tuples(*[st.integers(0, TILES - 1)] * 2, st.integers(0, 40), st.integers(1, 30)), min_size=1, max_size=20))
def test_sharing_a_bus_never_costs_and_saves_at_most_half(rows):
    source, destination, offset, size = (list(column) for column in zip(*rows, strict=True))
    cross = [k for k in range(len(rows)) if source[k] != destination[k]]
    if not cross:
        return
    columns = [[one[k] for k in cross] for one in (source, destination, offset, size)]
    alone = priced(target_of(tiles_per_super_tile=1), *columns).cycles
    shared = priced(target_of(), *columns).cycles
    assert (shared <= alone).all()
    assert (2 * shared >= alone).all()


@pytest.mark.parametrize("ipus", [1, 2])
@given(st.lists(st.tuples(*[st.integers(0, TILES - 1)] * 2, st.integers(0, 40), st.integers(1, 30)), min_size=1, max_size=20))
def test_what_is_known_of_messages_and_how_many_are_looked_at_at_once_changes_no_price(ipus, rows):
    source, destination, offset, size = (np.array(column) for column in zip(*rows, strict=True))
    target = target_of(ipus=ipus, tiles=TILES // ipus)
    made = account(TILES, Transfers(source, destination, np.zeros(len(rows), np.int64), offset, size))
    given_messages = (target, made.exchange, made.offset, np.zeros(TILES, np.int64))
    plain = price_exchange(*given_messages)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.compiler.exchange.exchange_costs.AT_ONCE", 1)
        known = price_exchange(*given_messages, made.stretches)
    assert known.cycles.tolist() == plain.cycles.tolist()
    assert known.pieces.tolist() == plain.pieces.tolist()
    assert (known.global_cycles, known.crosses) == (plain.global_cycles, plain.crosses)


# Pieces, and copies on a tile


def test_a_tile_handles_a_piece_in_three_cycles():
    bench = Bench()
    x, y = bench.variable(100, 3), bench.variable(100, 6)
    (step,) = bench.steps(Copy(x.reverse(0), y))
    assert step.exchange_cycles[6] == 100 * PRICES.message_cycles  # contiguous at neither side: each element is a piece
    assert step.exchange_cycles[3] == 100  # the source sends one stretch
    assert not step.rearrange_cycles.any()


@pytest.mark.parametrize(("type", "skip", "rate"), [(FLOAT, 2, 8), (FLOAT, 1, 4), (HALF, 1, 2)])
def test_a_copy_on_a_tile_is_a_memcpy_by_the_size_of_its_atoms(type, skip, rate):
    bench = Bench()
    x, y = bench.variable(400, 3, "x", type), bench.variable(400, 3, "y", type)
    (step,) = bench.steps(Copy(x[skip : 200 + skip], y[0:200]))
    workers = bench.device.getTarget().getNumWorkerContexts()
    assert step.exchange_cycles.sum() == 0
    assert step.rearrange_cycles[3] == 200 * type.size // rate + 35 * workers  # 35: BroadcastSelectorSelectCycles
    assert step.rearrange_cycles.sum() == step.rearrange_cycles[3]
    assert step.fixed_cycles == step.rearrange_cycles[3]


def halo(*others):
    """The exchange before vertices on tile 2: one takes its row of ten and an element of each neighbour, `others` what they say."""
    bench = Bench()
    x = bench.variable(30, [1] * 10 + [2] * 10 + [3] * 10)
    compute_set = bench.graph.addComputeSet("halo")
    for view in (lambda x: x[9:21], *others):
        bench.vertex(compute_set, Sum, 2, x=view(x))
    return bench.steps(Execute(compute_set))[0]


def test_what_arrives_beside_a_stretch_of_its_tile_is_laid_there():
    exchange = halo()
    assert exchange.exchange_cycles[2] == 2 * PRICES.message_cycles
    assert not exchange.rearrange_cycles.any()


def test_what_lands_on_a_tile_is_no_piece_of_the_next_tile():
    tiles, offsets, sizes, buffered = np.array([0, 1]), np.array([0, 0]), np.array([8, 4]), np.array([True, True])
    arriving = Pieces(tiles + 2, offsets, tiles, offsets, sizes, ~buffered, buffered)
    gathered = Pieces(tiles[:1], offsets[:1], tiles[:1], offsets[:1], sizes[:1], buffered[:1], ~buffered[:1])
    assert vertex_side_pieces(4, arriving, gathered).tolist() == [1, 1, 0, 0]


def test_vertices_that_want_the_same_beside_a_stretch_share_it():
    assert not halo(lambda x: x[11:21], lambda x: x[9:15]).rearrange_cycles.any()


def test_constants_are_laid_where_they_are_needed():
    bench = Bench()
    x = bench.variable(20, [1] * 10 + [2] * 10)
    zeros = bench.graph.addConstant(FLOAT, [4], np.zeros(4, np.float32))
    bench.graph.setTileMapping(zeros, 2)
    compute_set = bench.graph.addComputeSet("edge")
    bench.vertex(compute_set, Sum, 2, x=concat([x[9:20], zeros[1:2]]))
    bench.vertex(compute_set, Sum, 2, x=zeros)
    exchange, _ = bench.steps(Execute(compute_set))
    assert exchange.exchange_cycles[2] == PRICES.message_cycles
    assert not exchange.rearrange_cycles.any()


def test_two_vertices_that_want_different_things_beside_a_stretch_copy_it_for_one():
    exchange = halo(lambda x: concat([x[12:20], x[25:27]]))
    assert exchange.rearrange_cycles[2] == 8 // 2 + PRICES.copy_slots * 6


def test_a_stretch_that_goes_on_where_something_should_arrive_is_copied():
    bench = Bench()
    x = bench.variable(30, [1] * 10 + [2] * 20)
    compute_set = bench.graph.addComputeSet("halo")
    compact = bench.graph.addComputeSet("compact")
    for one in (compute_set, compact):
        bench.vertex(one, Sum, 2, x=concat([x[10:20], x[0:1]]))
    bench.vertex(compute_set, Sum, 2, x=x[10:30])
    steps = [one for one in bench.steps(Sequence([Execute(compute_set), Execute(compact)])) if one.kind == "exchange"]
    assert [one.rearrange_cycles[2] for one in steps] == [10 // 2 + PRICES.copy_slots * 6, 0]


def test_elements_scattered_on_their_tile_are_copied_together():
    bench = Bench()
    x = bench.variable(20, 2)
    compute_set = bench.graph.addComputeSet("strided")
    bench.vertex(compute_set, Sum, 2, x=x.subSample(2, 0))
    exchange, _ = bench.steps(Execute(compute_set))
    assert exchange.rearrange_cycles[2] == 10 + PRICES.copy_slots * 6


def test_what_arrives_for_a_row_goes_straight_to_its_place():
    bench = Bench()
    x = bench.variable(20, 1)
    compute_set = bench.graph.addComputeSet("rows")
    bench.vertex(compute_set, SumRows, 2, rows=x.reshape([10, 2]).transpose())
    exchange, _ = bench.steps(Execute(compute_set))
    assert exchange.exchange_cycles[[1, 2]].tolist() == [20, 20 * PRICES.message_cycles]
    assert not exchange.rearrange_cycles.any()


# More than one IPU


def test_what_crosses_between_ipus_is_a_global_exchange_at_the_pace_of_the_link():
    bench = Bench(ipus=2)
    x, y = bench.variable(1000, 3), bench.variable(1000, TILES + 3)
    (step,) = bench.steps(Copy(x, y))
    target = bench.device.getTarget()
    link = math.ceil(2 * 4000 / target.ipu_link_bytes_per_second * target.getTileClockFrequency())
    assert step.global_exchange_cycles == max(link, 1000)
    assert not step.exchange_cycles.any()
    assert step.sync_cycles == target.getGlobalSyncCycles()
    assert step.fixed_cycles == step.global_exchange_cycles + step.sync_cycles


def test_the_fullest_link_decides_and_has_half_its_bandwidth_each_way():
    """From 1 to 2 it goes by 0, whose link to 2 is the fullest of 3 IPUs."""
    target = target_of(ipus=3, ipu_link_bytes_per_second=1e9)
    flows = np.array([[0, 1000, 900], [500, 0, 300], [0, 0, 0]])
    assert link_cycles(target, flows) == math.ceil(1200 / 0.5e9 * 1.85e9)


def test_two_ipus_of_a_machine_move_what_was_measured():
    """423 Gb/s both ways together, of a GC200 (M)."""
    target = Target.of_preset("ipu2", num_ipus=2)
    cycles = link_cycles(target, np.array([[0, 10**9], [10**9, 0]]))
    assert 8 * 2e9 / (cycles / target.getTileClockFrequency()) == pytest.approx(423e9, rel=0.1)


def test_a_ring_of_16_replicas_reduces_51_megabytes_in_3_milliseconds():
    """Links of 32 GB/s each way; two phases of 15 steps, of a sixteenth each, around the ladder."""
    target = target_of(ipus=16, ipu_link_bytes_per_second=64e9)
    ring = [*range(0, 16, 2), *range(15, 0, -2)]
    flows = np.zeros((16, 16), np.int64)
    flows[ring, [*ring[1:], ring[0]]] = 51_000_000 // 16
    assert 2 * 15 * link_cycles(target, flows) / target.getTileClockFrequency() == pytest.approx(3.0e-3, rel=0.1)


def test_what_several_tiles_of_an_ipu_receive_crosses_once():
    target = target_of(ipus=2, ipu_link_bytes_per_second=1e9)
    one = priced(target, [0], [TILES], [0], [4000])
    several = priced(target, [0] * 5, [TILES + k for k in range(5)], [0] * 5, [4000] * 5)
    assert one.global_cycles == several.global_cycles == 14800
    assert several.crosses


def test_a_constraint_stands_for_the_links_of_its_flows():
    flows = np.array([[0, 1000], [500, 0]])
    limits = (GlobalExchangeConstraint(8e6, [GlobalExchangeFlow(0, 1)]),)
    target = target_of(ipus=2, ipu_link_bytes_per_second=1e6, global_exchange_constraints=limits)
    assert link_cycles(target, flows) == round(1000 / 1e6 * 1.85e9)
    both = (GlobalExchangeConstraint(8e6, [GlobalExchangeFlow(0, 1), GlobalExchangeFlow(1, 0)]),)
    assert link_cycles(target.evolve(global_exchange_constraints=both), flows) == round(1500 / 1e6 * 1.85e9)
    more = (GlobalExchangeConstraint(8e6, [GlobalExchangeFlow(0, 1), GlobalExchangeFlow(0, 2), GlobalExchangeFlow(2, 1)]),)
    assert link_cycles(target.evolve(global_exchange_constraints=more), flows) == round(1000 / 1e6 * 1.85e9)
    wide = (GlobalExchangeConstraint(8e12, [GlobalExchangeFlow(0, 1)]),)
    assert link_cycles(target.evolve(global_exchange_constraints=wide), flows) == round(500 / 0.5e6 * 1.85e9)


def test_what_the_last_tile_sends_is_apart_from_what_the_first_one_does():
    """Each sends all that it has, to the other's IPU; the constraint stands for one of the ways."""
    limits = (GlobalExchangeConstraint(8e6, [GlobalExchangeFlow(0, 1)]),)
    target = target_of(ipus=2, ipu_link_bytes_per_second=1e12, global_exchange_constraints=limits)
    cost = priced(target, [2 * TILES - 1, 0], [0, TILES], [0, 0], [1000, 1000])
    assert cost.global_cycles == round(1000 / 1e6 * 1.85e9)


def test_what_stays_within_an_ipu_is_no_global_exchange():
    bench = Bench(ipus=2)
    x, y = bench.variable(100, TILES), bench.variable(100, TILES + 5)
    (step,) = bench.steps(Copy(x, y))
    assert (step.global_exchange_cycles, step.exchange_cycles[TILES]) == (0, 100)
    assert step.sync_cycles == bench.device.getTarget().getMaxIPUSyncDelay()


# Syncs


@pytest.mark.parametrize(("delay", "cycles"), [(RelativeSyncDelayType.AUTO, 86), (RelativeSyncDelayType.NO_DELAY, 50)])
def test_a_sync_takes_as_long_as_for_the_farthest_tile(delay, cycles):
    bench = Bench(minIPUSyncDelay=50, relativeSyncDelay=delay)
    x, y = bench.variable(4, 0), bench.variable(4, 1)
    assert [one.sync_cycles for one in bench.steps(Sequence([Copy(x, y), Sync(SyncType.INTERNAL)]))] == [cycles] * 2


# Streams


def streamed(bench, tensor, *, inward=True, optimiseMemory=False):
    if inward:
        stream = bench.graph.addHostToDeviceFIFO("in", FLOAT, tensor.numElements())
        return bench.steps(Copy(stream, tensor, optimiseMemory))
    stream = bench.graph.addDeviceToHostFIFO("out", FLOAT, tensor.numElements())
    return bench.steps(Copy(tensor, stream, optimiseMemory))


@pytest.mark.parametrize("inward", [True, False])
def test_a_stream_whose_order_is_that_of_the_tiles_is_not_rearranged(inward):
    bench = Bench()
    (step,) = streamed(bench, bench.variable(80, np.arange(80) // 20), inward=inward)
    assert (len(step.exchange_cycles), step.sync_cycles) == (0, 0)


@pytest.mark.parametrize("inward", [True, False])
def test_a_stream_of_another_order_lands_in_its_own_and_is_exchanged(inward):
    """Four tiles have every fourth row of ten: of each tile's part, a quarter is in its place already."""
    bench = Bench()
    (step,) = streamed(bench, bench.variable(400, np.arange(400) // 10 % 4), inward=inward)
    assert step.exchange_cycles.tolist() == pytest.approx([75] * 4 + [0] * 4, abs=5)
    assert step.sync_cycles == bench.device.getTarget().getMaxIPUSyncDelay()
    assert step.host_bytes == 1600


def test_a_stream_that_saves_memory_is_rearranged_by_the_host():
    bench = Bench()
    (step,) = streamed(bench, bench.variable(400, np.arange(400) // 10 % 4), optimiseMemory=True)
    assert (len(step.exchange_cycles), step.sync_cycles) == (0, 0)


@pytest.mark.parametrize("chip", ["ipu1", "ipu2", "bow"])
def test_a_stream_takes_its_bytes_over_the_host_link_and_a_host_sync(chip):
    device = IPUModel(chip).createDevice()
    target = device.getTarget()
    graph = Graph(device)
    x = graph.addVariable(FLOAT, [10000], "x")
    graph.setTileMapping(x, 7)
    program = Copy(graph.addHostToDeviceFIFO("in", FLOAT, 10000), x)
    step = Engine(graph, program).executable.steps[1]
    seconds = 40000 / target.host_write_bytes_per_second + target.host_sync_seconds
    assert step.host_cycles == round(seconds * target.getTileClockFrequency())


# Copies that are one step


def in_one(bench, copies):
    """The step of copies that are merged, and their steps where they are not."""
    (step,) = Engine(bench.graph, Sequence(copies)).executable.steps[1:]
    return step, Engine(bench.graph, Sequence(copies), {"pypoplar.merge_copies": False}).executable.steps[1:]


def test_a_thousand_rows_of_as_many_tiles_are_copied_in_the_time_of_one():
    bench = Bench(tiles=1472)
    x, y = (bench.graph.addVariable(FLOAT, [1000, 8], name) for name in "xy")
    for row in range(1000):
        bench.graph.setTileMapping(x[row], row)
        bench.graph.setTileMapping(y[row], (row + 400) % 1472)
    for tensor in (x, y):
        bench.graph.setInitialValue(tensor, np.zeros([1000, 8], np.float32))
    step, alone = in_one(bench, [Copy(x[row], y[row]) for row in range(1000)])
    assert sum(row.fixed_cycles for row in alone) == 134_000
    assert step.fixed_cycles == 134
    document = " ".join((Path(__file__).parents[2] / "docs" / "model.md").read_text(encoding="utf-8").split())
    assert "A thousand rows of eight FLOATs that go from as many tiles to as many others take 134 cycles, not 134,000." in document


def test_what_goes_between_the_same_tiles_adds_up_but_for_the_sync():
    bench = Bench()
    x, y = bench.variable(300, 3), bench.variable(300, 6)
    step, alone = in_one(bench, [Copy(x[100 * row : 100 * row + 100], y[100 * row : 100 * row + 100]) for row in range(3)])
    assert [row.exchange_cycles[6] for row in alone] == [100] * 3
    assert step.exchange_cycles.tolist() == [300 if tile in (3, 6) else 0 for tile in range(TILES)]
    assert step.sync_cycles == alone[0].sync_cycles == bench.device.getTarget().getMaxIPUSyncDelay()


def test_neighbours_in_both_memories_are_one_piece():
    """100 rows of a float, where a piece takes three cycles and a float one."""
    bench = Bench()
    x, y = bench.variable(100, 3), bench.variable(100, 6)
    step, alone = in_one(bench, [Copy(x[row], y[row]) for row in range(100)])
    assert [row.exchange_cycles[6] for row in alone] == [3] * 100
    assert step.exchange_cycles[6] == 100
    scattered, _ = in_one(bench, [Copy(x[row], y[99 - row]) for row in range(100)])
    assert scattered.exchange_cycles[6] == 300


def test_what_several_copies_bring_to_several_tiles_is_sent_once():
    bench = Bench()
    x = bench.variable(100, 0)
    targets = [bench.variable(100, tile) for tile in (2, 4, 6)]
    step, _ = in_one(bench, [Copy(x, target) for target in targets])
    assert step.exchange_cycles.tolist() == [100, 0, 100, 0, 100, 0, 100, 0]


def test_copies_on_a_tile_are_set_up_once_and_priced_each_by_its_own_atoms():
    """As one copy, the twelve bytes would go word by word."""
    bench = Bench()
    x, y = bench.variable(4, 3), bench.variable(4, 3)
    setup = PRICES.copy_slots * bench.device.getTarget().getNumWorkerContexts()
    step, alone = in_one(bench, [Copy(x[0:2], y[0:2]), Copy(x[2:3], y[2:3])])
    assert [row.rearrange_cycles[3] for row in alone] == [1 + setup, 1 + setup]
    assert step.rearrange_cycles[3] == 2 + setup
    (whole,) = bench.steps(Copy(x[0:3], y[0:3]))
    assert whole.rearrange_cycles[3] == 3 + setup
    assert step.sync_cycles == 0


def test_a_copy_on_a_tile_joins_an_exchange():
    bench = Bench()
    x, y, z = bench.variable(100, 3), bench.variable(100, 3), bench.variable(100, 6)
    step, (far, near) = in_one(bench, [Copy(x, z), Copy(x, y)])
    np.testing.assert_array_equal(step.exchange_cycles, far.exchange_cycles)
    np.testing.assert_array_equal(step.rearrange_cycles, near.rearrange_cycles)
    assert step.fixed_cycles == far.sync_cycles + 100 + near.rearrange_cycles[3]


def test_links_carry_what_copies_send_together_after_one_sync():
    bench = Bench(ipus=2)
    x, y = bench.variable(4000, 1), bench.variable(4000, TILES + 1)
    z = bench.variable(100, 2)
    step, alone = in_one(bench, [Copy(x[:2000], y[:2000]), Copy(x[2000:], y[2000:]), Copy(x[:100], z)])
    (whole,) = bench.steps(Copy(x, y))
    assert step.global_exchange_cycles == whole.global_exchange_cycles
    assert step.sync_cycles == bench.device.getTarget().getGlobalSyncCycles()
    np.testing.assert_array_equal(step.exchange_cycles, alone[2].exchange_cycles)
    assert step.fixed_cycles < sum(row.fixed_cycles for row in alone)


def test_pieces_from_another_ipu_count_as_in_each_copy_alone():
    """Five pieces of a copy come in one message over the link, and count for nothing; alone or not."""
    bench = Bench(ipus=2)
    far, near, here = bench.variable(5, TILES + 1), bench.variable(1, 2), bench.variable(10, 1)
    step, alone = in_one(bench, [Copy(far, here.subSample(2, 0)), Copy(near, here[1:2])])
    assert [row.exchange_cycles[1] for row in alone] == [0, 3]
    assert step.exchange_cycles[1] == 3
    twice, alone = in_one(bench, [Copy(concat([far[0:2], near]), concat([here[0:1], here[2:3], here[4:5]])), Copy(far, here[5:])])
    assert twice.exchange_cycles[1] == sum(row.exchange_cycles[1] for row in alone) == 6


def test_pieces_of_a_copy_that_crosses_count_on_its_machine():
    """Two machines of two IPUs; on the second one, something comes from the other IPU and something from a tile beside."""
    messages = np.array([(2, 1, 4, 0), (2, 1, 4, 0), (TILES + 1, 1, 4, 0)], MESSAGE)
    shares = CopyShares(messages, np.array([0, 1, 1]), np.array([4, 8]), np.array([1, 1, 1]), np.array([0, 1, 1]))
    arrived = np.zeros(4 * TILES, np.int64)
    arrived[[1, 2 * TILES + 1]] = 1, 2
    pieces = pieces_of_copies(target_of(ipus=2), shares, np.array([0, 1]), arrived)
    assert {int(tile): int(pieces[tile]) for tile in np.flatnonzero(pieces)} == {1: 1, 2 * TILES + 1: 1}


@pytest.mark.parametrize("turned", [False, True])
def test_pieces_within_an_ipu_count_beside_a_copy_that_crosses(turned):
    """One message becomes five pieces, on the tile to which another copy brings something from the other IPU."""
    bench = Bench(ipus=2)
    far, near, here, rows = (bench.variable(size, tile) for size, tile in ((5, TILES + 1), (5, 2), (5, 1), (10, 1)))
    copies = [Copy(far, here), Copy(near, rows.subSample(2, 0))]
    step, alone = in_one(bench, copies[::-1] if turned else copies)
    assert sorted(row.exchange_cycles[1] for row in alone) == [0, 15]
    assert step.exchange_cycles[1] == 15


@pytest.mark.parametrize("inward", [True, False])
def test_streams_take_their_bytes_and_one_host_sync(inward):
    bench = Bench()
    tensors = [bench.variable(size, number) for number, size in enumerate((100, 20_000, 0, 3))]
    add = bench.graph.addHostToDeviceFIFO if inward else bench.graph.addDeviceToHostFIFO
    streams = [add(f"stream {number}", FLOAT, tensor.numElements()) for number, tensor in enumerate(tensors)]
    pairs = zip(streams, tensors, strict=True) if inward else zip(tensors, streams, strict=True)
    step, alone = in_one(bench, [Copy(*pair) for pair in pairs])
    target = bench.device.getTarget()
    sync = target.host_sync_seconds * target.getTileClockFrequency()
    assert step.host_bytes == sum(stream.host_bytes for stream in alone) == 4 * 20_103
    assert step.host_cycles == pytest.approx(sum(stream.host_cycles for stream in alone) - 2 * sync, abs=2)


def test_rounding_does_not_make_streams_dearer_together():
    """Each takes a fraction of a cycle of a slow clock, all together most of one."""
    bench = Bench(tileClockFrequency=1e6)
    copies = [Copy(bench.graph.addHostToDeviceFIFO(str(n), FLOAT, 1040), bench.variable(1040, n)) for n in range(4)]
    step, alone = in_one(bench, copies)
    assert step.host_cycles == sum(stream.host_cycles for stream in alone) == 0
    assert Engine(bench.graph, copies[0]).executable.steps[1].host_cycles == 0


@pytest.mark.parametrize("inward", [True, False])
def test_streams_are_rearranged_in_one_exchange_after_one_sync(inward):
    bench = Bench()
    tensors = [bench.variable(400, np.arange(400) // 10 % 4) for _ in range(2)]
    add = bench.graph.addHostToDeviceFIFO if inward else bench.graph.addDeviceToHostFIFO
    streams = [add(str(number), FLOAT, 400) for number in range(2)]
    pairs = zip(streams, tensors, strict=True) if inward else zip(tensors, streams, strict=True)
    step, (first, second) = in_one(bench, [Copy(*pair) for pair in pairs])
    np.testing.assert_array_equal(step.exchange_cycles, first.exchange_cycles + second.exchange_cycles)
    assert step.sync_cycles == first.sync_cycles == bench.device.getTarget().getMaxIPUSyncDelay()
    setup = PRICES.copy_slots * bench.device.getTarget().getNumWorkerContexts()
    both = first.rearrange_cycles + second.rearrange_cycles
    np.testing.assert_array_equal(step.rearrange_cycles, np.where(both > 0, both - setup, 0))


def test_a_stream_that_saves_memory_is_not_rearranged_with_others():
    bench = Bench()
    tensors = [bench.variable(400, np.arange(400) // 10 % 4) for _ in range(2)]
    streams = [bench.graph.addHostToDeviceFIFO(str(number), FLOAT, 400) for number in range(2)]
    step, (_, second) = in_one(bench, [Copy(streams[0], tensors[0], True), Copy(streams[1], tensors[1])])
    np.testing.assert_array_equal(step.exchange_cycles, second.exchange_cycles)


# Reports


@pytest.mark.parametrize("between", [[], [Sync(SyncType.INTERNAL)]])
def test_the_report_has_what_goes_between_ipus_apart(between):
    bench = Bench(ipus=2)
    x, y = bench.variable(1000, 3), bench.variable(1000, TILES + 3)
    near = bench.variable(100, 5)
    engine = bench.engine(Sequence([Copy(x, y), *between, Copy(x[0:100], near)]))
    engine.run()
    report = engine.getReport().execution
    steps = engine.executable.steps[1:]
    assert len(steps) == 1 + 2 * len(between)
    assert report.tile_average.global_exchange == steps[0].global_exchange_cycles > 0
    assert report.tile_average.exchange == steps[-1].exchange_cycles.sum() / (2 * TILES) > 0
    assert report.totalCycles.total == sum(step.fixed_cycles for step in steps)
