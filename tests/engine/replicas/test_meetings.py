"""What replicas do together: copies from each to another, and claims that a value is equal; and what it is when they part."""

import math
import random
from unittest.mock import patch

import numpy as np
import pytest
from engine_builder import Add, Bench, tiny
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
    ApplicationRuntimeError,
    CodeletIndexError,
    ControlProgramError,
    Engine,
    Graph,
    InOut,
    Input,
    PoplarTypeError,
    TensorShapeError,
    TensorWriteError,
    Vector,
    Vertex,
    concat,
)
from pypoplar.engine import branch_log, division
from pypoplar.engine.faults import Fault
from pypoplar.engine.replicas.meeting import FAULT, Failure, OneProcess
from pypoplar.interface.driver_records import BranchLogHead
from pypoplar.interface.header_slots import Slot
from pypoplar.program import (
    AssumeEqualAcrossReplicas,
    Call,
    Copy,
    CrossReplicaCopy,
    If,
    Repeat,
    RepeatWhileTrue,
    Sequence,
    Switch,
)

SEEDS = st.integers(0, 2**32 - 1)
WAYS = (("interpret", 1), ("native", 1), ("native", 2), ("native", 5))


class At(Vertex):
    """Reads an element behind the end where the number of the replica is 1 or more."""

    replica: Input[UNSIGNED_INT]
    value: InOut[Vector[INT]]

    def compute(self) -> None:
        self.value[0] = self.value[self.replica]


class Spend(Vertex):
    """Takes longer on higher replicas."""

    replica: Input[UNSIGNED_INT]
    value: InOut[INT]

    def compute(self) -> None:
        for _ in range(100 * int(self.replica)):
            self.value += 1


@pytest.fixture
def bench():
    return Bench(replicas=3)


def index_of(bench, name="index"):
    index = bench.graph.addReplicationIndexConstant()
    bench.graph.setTileMapping(index, 0)
    bench.graph.createHostRead(name, index)
    return index


def ring(count):
    return {replica: (replica + 1) % count for replica in range(count)}


def permutation(chosen, count):
    """A random map in which nobody sends to itself."""
    while True:
        receivers = chosen.sample(range(count), count)
        if all(sender != receiver for sender, receiver in enumerate(receivers)):
            return dict(enumerate(receivers))


@examples(40)
@given(SEEDS, st.integers(2, 16), st.sampled_from([FLOAT, HALF, INT, BOOL, LONGLONG]), st.integers(0, 40))
def test_a_copy_across_replicas_is_what_numpy_makes_of_the_map(seed, replicas, type, size):
    chosen = random.Random(seed)
    moves, tiles = permutation(chosen, replicas), chosen.choice([1, 3])
    values = np.random.default_rng(seed).integers(0, 2, (replicas, size)).astype(type.dtype)
    expected = np.empty_like(values)
    for sender, receiver in moves.items():
        expected[receiver] = values[sender]
    for mode, threads in WAYS[: 4 if size < 8 else 2]:
        graph = Graph(tiny(tiles, ipus=replicas), replicas)
        one, other = (graph.addVariable(type, [size], name) for name in ("one", "other"))
        for tensor in (one, other):
            cut = chosen.randint(0, size)
            graph.setTileMapping(tensor[:cut], chosen.randrange(tiles))
            graph.setTileMapping(tensor[cut:], chosen.randrange(tiles))
        graph.createHostWrite("one", graph.getNonReplicatedTensor(one))
        graph.createHostRead("other", other)
        ends = (one.reverse(0), other.reverse(0)) if chosen.random() < 0.5 else (one, other)
        copy = CrossReplicaCopy(*ends, moves)
        engine = Engine(graph, copy, {"pypoplar.threads": threads}, mode=mode)
        engine.load(tiny(tiles, ipus=replicas))
        engine.writeTensor("one", values)
        engine.run()
        np.testing.assert_array_equal(engine.readTensor("other"), expected)


def test_a_tensor_goes_round_the_ring_in_place(bench, mode):
    x = bench.variable("x", [0, 0])
    bench.graph.createHostWrite("each", bench.graph.getNonReplicatedTensor(x))
    engine = bench.engine(Repeat(4, CrossReplicaCopy(x, x, ring(3))), mode)
    engine.writeTensor("each", np.arange(6, dtype=np.int32))
    engine.run()
    assert engine.readTensor("x").tolist() == [[4, 5], [0, 1], [2, 3]]


def test_all_replicas_wait_for_the_last_and_the_report_has_the_waiting(bench, mode):
    index, x = index_of(bench), bench.variable("x", [0])
    work = bench.execute(Spend, replica=index, value=x[0])
    engine = bench.engine(Sequence([work, CrossReplicaCopy(x, x, ring(3)), work]), mode)
    engine.run()
    clocks = [replica.state.clock for replica in engine._replicas]
    assert clocks[0] < clocks[1] < clocks[2]
    spent = [engine.getReport(replica).execution.steps for replica in range(3)]
    assert [sum(step.cycles for step in steps) for steps in spent] == clocks
    copies = [next(step for step in steps if step.name == "CrossReplicaCopy") for steps in spent]
    waited = [copy.sync_cycles - copies[2].sync_cycles for copy in copies]
    assert waited[0] > waited[1] > waited[2] == 0
    alone = engine.executable.target.getGlobalSyncCycles()
    assert copies[2].sync_cycles == alone
    assert copies[2].compute_cycles == copies[0].compute_cycles == 0


def test_what_crosses_is_in_the_account_of_the_exchange():
    bench = Bench(replicas=2)
    x, y = bench.variable("x", np.zeros(8), tile=2), bench.variable("y", np.zeros(8), tile=2)
    engine = bench.engine(CrossReplicaCopy(x, y, {0: 1, 1: 0}, "swap"))
    (exchange,) = engine.executable.exchanges
    assert (exchange.name, exchange.phase) == ("swap", "replicas")
    assert exchange.messages.tolist() == [(2, 2, 32, "x")]
    assert exchange.bytes_sent.tolist() == exchange.bytes_received.tolist() == [0, 0, 32, *[0] * 13]


@pytest.mark.parametrize(
    ("ipus", "moves", "flows"),
    [
        (2, {0: 1, 1: 0}, 1),  # each direction by itself
        (4, {0: 1, 1: 0, 2: 3, 3: 2}, 1),
        (3, {0: 1, 1: 2, 2: 0}, 1),  # from 1 to 2 by 0
        (6, {0: 4, 2: 5, 1: 3, 3: 1, 4: 0, 5: 2}, 2),  # from 0 to 4 and from 2 to 5 both go from 2 to 4
    ],
)
def test_a_link_carries_all_flows_whose_way_it_is_on(ipus, moves, flows):
    bench = Bench(replicas=ipus)
    x = bench.variable("x", np.zeros(50_000), tile=0)
    for tile in range(16):
        bench.graph.setTileMapping(x[tile * 3125 : (tile + 1) * 3125], tile)
    device = bench.device.getTarget()
    step = bench.engine(CrossReplicaCopy(x, x, moves)).executable.steps[-1]
    by_port = -(-200_000 // 16 // device.getExchangeBytesPerCycle())
    by_link = math.ceil(2 * flows * 200_000 * device.getTileClockFrequency() / device.ipu_link_bytes_per_second)
    assert step.global_exchange_cycles == by_link > by_port


@pytest.mark.parametrize(
    ("moves", "error", "text"),
    [
        ({0: 1, 1: 0}, ControlProgramError, "of 3 replicas has each of 0 to 2 once among its senders; missing: 2"),
        ({0: 1, 1: 0, 2: 1}, ControlProgramError, "once among its receivers; missing: 2; several times: 1"),
        ({0: 1, 1: 2, 2: 3}, ControlProgramError, "once among its receivers; unknown: 3; missing: 0"),
        ({0: 1, 1: 0, 2: 2}, ControlProgramError, "replica 2 sends to itself"),
        ([1, 2, 0], PoplarTypeError, "a dict from each replica to its receiver"),
        ({0: "1", 1: 2, 2: 0}, PoplarTypeError, "numbers of replicas"),
        ({False: True, True: 2, 2: False}, PoplarTypeError, "numbers of replicas"),
    ],
)
def test_a_map_that_is_no_permutation_or_sends_to_itself_is_refused(bench, moves, error, text):
    x = bench.variable("x", [0])
    with pytest.raises(error, match=text):
        CrossReplicaCopy(x, x, moves)


def test_what_a_copy_across_replicas_takes_is_what_a_copy_takes(bench):
    x, y = bench.variable("x", [0, 0]), bench.variable("y", [0.0, 0.0])
    with pytest.raises(PoplarTypeError, match="one element type"):
        CrossReplicaCopy(x, y, ring(3))
    with pytest.raises(TensorShapeError, match="as many elements"):
        CrossReplicaCopy(x, x[0], ring(3))
    with pytest.raises(TensorWriteError, match="holds a constant"):
        CrossReplicaCopy(x[0], bench.graph.addReplicationIndexConstant().reinterpret(INT), ring(3))
    with pytest.raises(TensorWriteError, match="at different positions"):
        CrossReplicaCopy(x, x.reverse(0), ring(3))


def test_a_graph_of_one_replica_has_nobody_to_send_to(mode):
    bench = Bench()
    x = bench.variable("x", [3])
    with pytest.raises(ControlProgramError, match="replica 0 sends to itself"):
        CrossReplicaCopy(x, x, {0: 0})
    engine = bench.engine(AssumeEqualAcrossReplicas(x), mode)
    assert engine.executable.services == ()
    engine.run()


# Parting


def parted(bench, program, mode, values):
    """The error of a program in which replicas part; `values` are what each has in `x`."""
    engine = bench.engine(program, mode)
    engine.writeTensor("each", np.array(values, np.int32))
    with pytest.raises(ApplicationRuntimeError) as raised:
        engine.run()
    engine.writeTensor("each", np.full(len(values), values[0], np.int32))
    engine.run()
    return str(raised.value)


def predicate(bench):
    x = bench.variable("x", [0])
    bench.graph.createHostWrite("each", bench.graph.getNonReplicatedTensor(x))
    return x, bench.variable("y", [0])


def test_a_branch_that_differs_before_a_meeting_is_named_with_its_values(bench, mode):
    x, y = predicate(bench)
    choice = If(x[0], CrossReplicaCopy(y, y, ring(3), "away"), Sequence())
    line = choice.location.line
    text = parted(bench, choice, mode, [0, 0, 6])
    assert "replica 0 has come to the end of the program, replica 2 to the exchange away [" in text
    assert f"at If on 'x' INT [], made at {choice.location.file}:{line}:" in text
    assert text.endswith("the value is 0 on replica 0, and 6 on replica 2")


def test_a_loop_that_ends_sooner_is_named_with_its_values(bench, mode):
    x, y = predicate(bench)
    less = bench.variable("less", np.array([False]))
    count = bench.execute(Add, value=y[0], amount=1)

    class Below(Vertex):
        value: Input[INT]
        limit: Input[INT]
        out: InOut[BOOL]

        def compute(self) -> None:
            self.out = self.value < self.limit

    test = bench.execute(Below, value=y[0], limit=x[0], out=less[0])
    rounds = RepeatWhileTrue(test, less[0], count)
    program = Sequence([rounds, If(x[0], CrossReplicaCopy(x, x, ring(3)), Sequence())])
    text = parted(bench, program, mode, [0, 700, 300])
    assert "at RepeatWhileTrue on" in text
    assert text.endswith("the value is 0 on replica 0, and 1 on replica 1")


def test_a_case_that_differs_is_named_with_its_values(bench, mode):
    x, y = predicate(bench)
    to = [CrossReplicaCopy(y, y, ring(3), f"case {number}") for number in range(2)]
    text = parted(bench, Switch(x[0], [(0, to[0]), (7, to[1])], Sequence()), mode, [7, 7, 0])
    assert "replica 0 has come to the exchange case 1" in text
    assert "replica 2 to the exchange case 0" in text
    assert "at Switch on" in text
    assert text.endswith("the value is 7 on replica 0, and 0 on replica 2")


def test_ways_that_differ_between_meetings_are_no_matter(bench, mode):
    x, y = predicate(bench)
    copy = bench.graph.addFunction(CrossReplicaCopy(y, y, ring(3)))
    add = bench.execute(Add, value=y[0], amount=5)
    engine = bench.engine(Repeat(3, If(x[0], Sequence([add, Call(copy)]), Call(copy))), mode)
    engine.writeTensor("each", np.array([0, 1, 0], np.int32))
    engine.run()
    assert sorted(engine.readTensor("y").ravel().tolist()) == [5, 5, 5]


def test_a_log_that_is_full_says_that_it_does_not_know(mode):
    bench = Bench(replicas=2)
    x, y = predicate(bench)
    flips = Sequence([If(x[0], Sequence(), Sequence()), If(y[0], Sequence(), Sequence())])
    program = Sequence([Repeat(20, flips), If(x[0], CrossReplicaCopy(y, y, ring(2)), Sequence())])
    with patch.object(branch_log, "MOST_BRANCHES", 16):
        first = parted(bench, Sequence([flips, program]), mode, [3, 0])
        engine = bench.engine(Sequence([Repeat(20, flips), bench.execute(Add, value=y[0], amount=1), program]), mode)
    assert first.endswith("the value is 3 on replica 0, and 0 on replica 1")
    engine.run()
    log = engine._replicas[0].state.tables[Slot.BRANCHES]
    assert (log[BranchLogHead.COUNT], log[BranchLogHead.FULL]) == (16, 1)


def test_where_replicas_part_behind_a_full_log_is_not_known(mode):
    bench = Bench(replicas=2)
    x, y = predicate(bench)
    index = index_of(bench)
    z = bench.variable("z", [1])
    alternate = Repeat(20, Sequence([If(y[0], Sequence(), Sequence()), If(z[0], Sequence(), Sequence())]))
    with patch.object(branch_log, "MOST_BRANCHES", 16):
        engine = bench.engine(Sequence([alternate, If(index, CrossReplicaCopy(x, x, ring(2)), Sequence())]), mode)
    with pytest.raises(ApplicationRuntimeError, match="where they went different ways is not known"):
        engine.run()


def test_the_log_of_an_engine_is_that_of_the_interpreter():
    logs = []
    for mode in ("interpret", "native"):
        bench = Bench(replicas=2)
        x, y = predicate(bench)
        engine = bench.engine(Repeat(3, Sequence([If(x[0], Sequence(), Sequence()), If(y[0], Sequence(), Sequence())])), mode)
        engine.writeTensor("each", np.array([-3, 2], np.int32))
        engine.run()
        logs.append([list(branch_log.decisions(replica.state.tables[Slot.BRANCHES])) for replica in engine._replicas])
    assert logs[0] == logs[1]
    assert [decision.value for decision in logs[0][0][:4]] == [-3, 0, -3, 0]


def test_values_that_are_claimed_to_be_equal_and_are_not_end_the_run(bench, mode):
    x, y = predicate(bench)
    claim = AssumeEqualAcrossReplicas(x)
    program = Sequence([claim, If(x[0], CrossReplicaCopy(y, y, ring(3)), Sequence())])
    text = parted(bench, program, mode, [4, 4, 5])
    assert (
        "'x' INT [1] is not equal across replicas, as AssumeEqualAcrossReplicas says: it is 4 on replica 0, and 5 on replica 2"
        in text
    )
    assert text.endswith(f"[{claim.location.file}:{claim.location.line}]")


def test_a_claim_that_holds_costs_nothing(bench, mode):
    index, x = index_of(bench), bench.variable("x", [0])
    work = bench.execute(Spend, replica=index, value=x[0])
    clocks = []
    for program in (
        Repeat(2, work),
        Repeat(2, Sequence([work, AssumeEqualAcrossReplicas(bench.variable(f"y{len(clocks)}", [1]))])),
    ):
        engine = bench.engine(program, mode)
        engine.run()
        clocks.append([replica.state.clock for replica in engine._replicas])
    assert clocks[0] == clocks[1]


def test_what_is_claimed_to_be_equal_is_an_integer_or_bool_of_one_element(bench):
    with pytest.raises(PoplarTypeError, match="AssumeEqualAcrossReplicas is of type BOOL or an integer type"):
        AssumeEqualAcrossReplicas(bench.variable("x", [1.0]))
    with pytest.raises(TensorShapeError, match="has one element"):
        AssumeEqualAcrossReplicas(bench.variable("y", [1, 2]))


# Faults


def test_the_first_fault_is_told_once_with_its_replica_and_all_stop(bench, mode):
    index, x = index_of(bench), bench.variable("x", [5, 6])
    fails = bench.execute(At, replica=index, value=x[:1])
    after = bench.variable("after", [0])
    program = Sequence([fails, CrossReplicaCopy(after, after, ring(3)), bench.execute(Add, value=after[0], amount=1)])
    engine = bench.engine(program, mode)
    with pytest.raises(CodeletIndexError, match=r"vertex \d+ on tile 0 of replica 1 in compute set 'At'"):
        engine.run()
    assert engine.readTensor("after").tolist() == [[0]] * 3
    assert len(engine.getReport().failed_runs) == 1


def test_the_replica_that_fails_first_in_time_is_told():
    def first(failures):
        faults = {replica: Fault(0, 0, 0, 0, 0, 0, 0, replica) for replica in failures}
        return meeting.failed([Failure(1, FAULT, clock, replica, faults[replica]) for replica, clock in failures.items()]).replica

    meeting = OneProcess(4)
    assert first({3: 50, 1: 70}) == 3
    assert first({3: 50, 1: 50}) == 1
    assert list(meeting.ours) == [0, 1, 2, 3]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_many_meetings_are_the_same_on_any_number_of_threads(threads):
    with patch.object(division, "SERIAL", 0):
        bench = Bench(replicas=4)
        index, x = index_of(bench), bench.variable("x", [0])
        work = bench.execute(Spend, replica=index, value=x[0])
        engine = bench.engine(
            Repeat(50, Sequence([work, CrossReplicaCopy(x, x, ring(4))])), "native", {"pypoplar.threads": threads}
        )
        engine.run()
    expected = np.zeros(4, np.int64)
    for _ in range(50):
        expected = np.roll(expected + 100 * np.arange(4), 1)
    assert engine.readTensor("x").ravel().tolist() == expected.tolist()


def test_a_program_with_callbacks_runs_in_a_thread_of_its_own():
    import threading

    bench = Bench(replicas=2)
    x = bench.variable("x", [1, 2])
    stream = bench.graph.addDeviceToHostFIFO("out", INT, 2)
    engine = bench.engine(Repeat(3, Sequence([CrossReplicaCopy(x, x, ring(2)), Copy(x, stream)])))
    seen = []
    engine.connectStreamToCallback("out", lambda chunk: seen.append((threading.current_thread(), chunk.tolist())))
    other = threading.Thread(target=engine.run)
    other.start()
    other.join()
    assert seen == [(other, [1, 2])] * 6


def test_copies_across_replicas_of_several_ipus_cross_between_their_ipus(mode):
    device = tiny(4, ipus=4)
    bench = Bench(device, replicas=2)
    x = bench.variable("x", np.arange(8), tile=range(8))
    bench.graph.createHostWrite("each", bench.graph.getNonReplicatedTensor(x))
    y = bench.variable("y", np.zeros(8, np.int32), tile=range(7, -1, -1))
    engine = bench.engine(CrossReplicaCopy(x, y, {0: 1, 1: 0}), mode)
    assert bench.graph.getTarget().getNumIPUs() == 2
    engine.writeTensor("each", np.arange(16, dtype=np.int32))
    engine.run()
    assert engine.readTensor("y").tolist() == [list(range(8, 16)), list(range(8))]
    engine.run()
    replicas = engine.getReport(1).execution.replicas
    assert [one.replica for one in replicas] == [0, 1]
    assert [one.totalCycles for one in replicas] == [engine.getReport(number).execution.totalCycles for number in range(2)]
    assert replicas[0].totalCycles.total > 0


def test_parts_of_several_variables_cross_together(bench, mode):
    x, y = bench.variable("x", [0, 0]), bench.variable("y", [0, 0], tile=3)
    whole = concat([x, y])
    bench.graph.createHostWrite("each", bench.graph.getNonReplicatedTensor(whole))
    engine = bench.engine(CrossReplicaCopy(whole, whole, ring(3)), mode)
    engine.writeTensor("each", np.arange(12, dtype=np.int32))
    engine.run()
    assert engine.readTensor("y").tolist() == [[10, 11], [2, 3], [6, 7]]
