"""What the host connects with replicas: tensors, streams, callbacks, functions, remote buffers, each with its replica."""

import io

import numpy as np
import pytest
from engine_builder import Add, Bench, tiny

from pypoplar import (
    FLOAT,
    INT,
    UNSIGNED_INT,
    ApplicationRuntimeError,
    Engine,
    Executable,
    Graph,
    PoplarIndexError,
    PoplarTypeError,
    ReplicatedStreamMode,
    StreamCallback,
    StreamConnectionError,
    TensorIOStateError,
)
from pypoplar.poprand import addCodelets, uniform
from pypoplar.program import Call, Copy, PrintTensor, Repeat, Sequence


@pytest.fixture
def bench():
    return Bench(replicas=3)


def indexed(bench, name="index"):
    index = bench.graph.addReplicationIndexConstant()
    bench.graph.setTileMapping(index, 5)
    bench.graph.createHostRead(name, index)
    return index


def test_a_tensor_is_written_to_all_replicas_and_read_from_each(bench, mode):
    x = bench.variable("x", [0, 0])
    engine = bench.engine(bench.execute(Add, value=x[1], amount=1), mode)
    engine.writeTensor("x", np.array([4, 5], np.int32))
    engine.run()
    assert engine.readTensor("x").tolist() == [[4, 6]] * 3
    into = np.zeros((3, 2), np.int32)
    engine.readTensor("x", into)
    assert into.tolist() == [[4, 6]] * 3
    with pytest.raises(TensorIOStateError, match=r"expected 2 elements, got 6"):
        engine.writeTensor("x", into)
    with pytest.raises(TensorIOStateError, match=r"expected 6 elements, got 2"):
        engine.readTensor("x", np.zeros(2, np.int32))


def test_a_tensor_of_all_replicas_is_written_to_each_by_itself(bench, mode):
    x = bench.variable("x", [0, 0])
    whole = bench.graph.getNonReplicatedTensor(x)
    assert (whole.shape(), whole.rank(), whole.numElements(), whole.elementType()) == ((3, 2), 2, 6, INT)
    bench.graph.createHostWrite("whole", whole)
    bench.graph.createHostRead("all", whole)
    engine = bench.engine(bench.execute(Add, value=x[0], amount=10), mode)
    engine.writeTensor("whole", np.arange(6, dtype=np.int32).reshape(3, 2))
    engine.run()
    assert engine.readTensor("all").tolist() == [[10, 1], [12, 3], [14, 5]]
    with pytest.raises(TensorIOStateError, match="expected 6 elements"):
        engine.writeTensor("whole", np.zeros(2, np.int32))


def test_the_index_is_the_number_of_each_replica_and_no_known_value(bench, mode):
    index = indexed(bench)
    engine = bench.engine(Sequence(), mode)
    assert engine.readTensor("index").tolist() == [0, 1, 2]
    assert index.elementType() is UNSIGNED_INT
    assert bench.graph.isConstant(index)
    with pytest.raises(PoplarTypeError, match="is the number of the replica: each has another value"):
        bench.graph.getConstantValue(index)


def test_generators_start_alike_on_all_replicas(bench, mode):
    addCodelets(bench.graph)
    x = bench.graph.addVariable(FLOAT, [8], "x")
    bench.graph.setTileMapping(x, 0)
    program = Sequence()
    bench.graph.createHostRead("x", uniform(bench.graph, None, 0, x, FLOAT, 0.0, 1.0, program))
    engine = bench.engine(program, mode)
    engine.run()
    first, *others = engine.readTensor("x")
    assert len(set(first.tolist())) == 8
    assert all((other == first).all() for other in others)


def test_a_stream_has_an_array_with_an_axis_for_replicas_in_which_each_has_a_position_of_its_own(bench, mode):
    x = bench.variable("x", [0, 0])
    inward = bench.graph.addHostToDeviceFIFO("in", INT, 2)
    outward = bench.graph.addDeviceToHostFIFO("out", INT, 2)
    engine = bench.engine(Repeat(3, Sequence([Copy(inward, x), Copy(x, outward)])), mode)
    given, taken = np.arange(12, dtype=np.int32).reshape(3, 4), np.zeros((3, 3, 2), np.int32)
    engine.connectStream("in", given)
    engine.connectStream("out", taken)
    engine.run()
    assert taken.reshape(3, 6).tolist() == [[*row[:4], *row[:2]] for row in given.tolist()]


def test_a_stream_of_one_element_takes_one_for_each_replica(bench, mode):
    x = bench.variable("x", [0])
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", INT, 1), x), mode)
    engine.connectStream("in", np.array([7, 8, 9], np.int32))
    engine.run()
    assert engine.readTensor("x").tolist() == [[7], [8], [9]]


def test_a_broadcast_stream_brings_all_replicas_the_same_array(bench, mode):
    x = bench.variable("x", [0, 0])
    inward = bench.graph.addHostToDeviceFIFO("in", INT, 2, ReplicatedStreamMode.BROADCAST)
    engine = bench.engine(Repeat(2, Copy(inward, x)), mode)
    engine.connectStream("in", np.array([1, 2, 3, 4], np.int32))
    engine.run()
    assert engine.readTensor("x").tolist() == [[3, 4]] * 3


@pytest.mark.parametrize("shape", [(2,), (6,), (4, 2), (2, 3)])
def test_an_array_of_a_stream_without_the_axis_of_replicas_is_refused(bench, shape):
    x = bench.variable("x", [0, 0])
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", INT, 2), x))
    with pytest.raises(
        StreamConnectionError, match=r"stream 'in' has 3 replicas: expected an array whose first axis has one entry"
    ):
        engine.connectStream("in", np.zeros(shape, np.int32))
    with pytest.raises(StreamConnectionError, match="moves 2 elements at a time"):
        engine.connectStream("in", np.zeros((3, 1), np.int32))


def test_a_callback_is_of_one_replica_or_of_all_one_after_the_other(bench, mode):
    x = bench.variable("x", [0])
    engine = bench.engine(Repeat(2, Copy(bench.graph.addHostToDeviceFIFO("in", INT, 1), x)), mode)
    calls = []

    def of(name):
        def fill(chunk):
            calls.append(name)
            chunk[:] = len(calls)

        return fill

    engine.connectStreamToCallback("in", of("all"))
    engine.connectStreamToCallback("in", 1, of("one"))
    engine.run()
    assert calls == ["all", "one", "all"] * 2
    assert engine.readTensor("x").tolist() == [[4], [5], [6]]
    for wrong, error in ((3, PoplarIndexError), (-1, PoplarIndexError), ("1", PoplarTypeError)):
        with pytest.raises(error, match=f"replica {wrong} is out of range|the number of a replica"):
            engine.connectStreamToCallback("in", wrong, of("none"))


def test_a_stream_that_has_a_callback_on_some_replicas_alone_is_told_with_the_first_that_lacks_one(bench):
    x = bench.variable("x", [0])
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", INT, 1), x))
    engine.connectStreamToCallback("in", 0, lambda chunk: chunk.fill(1))
    with pytest.raises(StreamConnectionError, match="stream is not connected: 'in' of replica 1; use connectStream"):
        engine.run()


@pytest.mark.parametrize("kind", ["function", "returns", "iterator", "protocol"])
def test_a_callback_of_a_broadcast_stream_is_asked_once_for_all_replicas(bench, mode, kind):
    x = bench.variable("x", [0])
    inward = bench.graph.addHostToDeviceFIFO("in", INT, 1, ReplicatedStreamMode.BROADCAST)
    engine = bench.engine(Repeat(3, Copy(inward, x)), mode)
    numbers = iter(range(100, 200))

    class Numbers(StreamCallback):
        def fetch(self, chunk):
            chunk[:] = next(numbers)

    def fill(chunk):
        chunk[:] = next(numbers)

    forms = {
        "function": fill,
        "returns": lambda _: [next(numbers)],
        "iterator": ([number] for number in numbers),
        "protocol": Numbers(),
    }
    engine.connectStreamToCallback("in", forms[kind])
    engine.run()
    assert engine.readTensor("x").tolist() == [[102]] * 3
    engine.run()
    assert engine.readTensor("x").tolist() == [[105]] * 3


def test_what_a_broadcast_callback_gives_is_checked(bench):
    x = bench.variable("x", [0])
    inward = bench.graph.addHostToDeviceFIFO("in", INT, 1, ReplicatedStreamMode.BROADCAST)
    engine = bench.engine(Copy(inward, x))
    engine.connectStreamToCallback("in", lambda _: [1, 2])
    with pytest.raises(ApplicationRuntimeError, match="replica 0: stream 'in': from its callback expected 1 elements, got 2"):
        engine.run()


def test_a_host_function_is_of_one_replica_or_of_all(bench, mode):
    x = bench.variable("x", [1])
    function = bench.graph.addHostFunction("f", [(INT, 1)], [(INT, 1)])
    engine = bench.engine(Call(function, [x], [x]), mode)

    def adds(amount):
        def call(given, result):
            result[:] = given + amount

        return call

    engine.connectHostFunction("f", adds(1))
    engine.connectHostFunction("f", 2, adds(5))
    engine.connectHostFunction("f", adds(7), 0)
    engine.run()
    assert engine.readTensor("x").tolist() == [[8], [2], [6]]
    with pytest.raises(PoplarIndexError, match="connectHostFunction: replica 3 is out of range, the program has 3"):
        engine.connectHostFunction("f", adds(1), 3)


def test_each_replica_has_its_own_rows_of_a_remote_buffer(bench, mode):
    x = bench.variable("x", [0, 0])
    buffer = bench.graph.addRemoteBuffer("rows", INT, 2, 2)
    row = bench.graph.addConstant(INT, [1], [1])
    bench.graph.setTileMapping(row, 0)
    engine = bench.engine(Sequence([Copy(buffer, x), Copy(x, buffer, row)]), mode)
    for replica in range(3):
        engine.copyToRemoteBuffer([replica, 10 * replica], "rows", 0, replica)
    engine.run()
    found = np.zeros(2, np.int32)
    for replica in range(3):
        engine.copyFromRemoteBuffer("rows", found, 1, replica)
        assert found.tolist() == [replica, 10 * replica]
    for call in (engine.copyToRemoteBuffer, engine.copyFromRemoteBuffer):
        arguments = (found, "rows", 0, 3) if call == engine.copyToRemoteBuffer else ("rows", found, 0, 3)
        with pytest.raises(PoplarIndexError, match="RemoteBuffer: replica 3 is out of range"):
            call(*arguments)


def test_prints_say_of_which_replica_they_are(bench, mode):
    index = indexed(bench)
    engine = bench.engine(PrintTensor("number", index), mode)
    engine.setPrintStream(out := io.StringIO())
    engine.run()
    assert out.getvalue() == "replica 0, number: 0\nreplica 1, number: 1\nreplica 2, number: 2\n"


def test_a_callback_that_raises_stops_all_and_its_error_says_of_which_replica(bench, mode):
    x = bench.variable("x", [0])
    engine = bench.engine(Copy(bench.graph.addHostToDeviceFIFO("in", INT, 1), x), mode)

    def fail(chunk):
        raise KeyError("mine")

    engine.connectStream("in", np.zeros(3, np.int32))
    engine.connectStreamToCallback("in", 1, fail)
    with pytest.raises(KeyError, match="mine") as raised:
        engine.run()
    assert raised.value.__notes__ == ["in replica 1"]
    engine.connectStream("in", np.array([1, 2, 3], np.int32))
    engine.run()
    assert engine.readTensor("x").tolist() == [[1], [2], [3]]


def test_load_begins_anew_on_all_replicas(bench, mode):
    x = bench.variable("x", [1])
    engine = bench.engine(bench.execute(Add, value=x[0], amount=1), mode)
    engine.run()
    engine.load()
    assert engine.readTensor("x").tolist() == [[1]] * 3
    assert [replica.state.clock for replica in engine._replicas] == [0] * 3


def test_an_executable_of_replicas_runs_from_a_file_on_a_device_of_as_many_ipus(bench, mode, tmp_path):
    indexed(bench)
    x = bench.variable("x", [0])
    inward = bench.graph.addHostToDeviceFIFO("in", INT, 1, ReplicatedStreamMode.BROADCAST)
    bench.engine(Copy(inward, x)).executable.save(tmp_path / "three.npz")
    executable = Executable.load(tmp_path / "three.npz")
    assert executable.replicas == 3
    engine = Engine(executable, mode=mode)
    engine.connectStream("in", np.array([6], np.int32))
    with pytest.raises(ApplicationRuntimeError, match=r"has 1 IPUs .* was compiled for 3 of 16, 1 for each of 3 replicas"):
        engine.load(tiny())
    engine.loadAndRun(bench.device)
    assert engine.readTensor("x").tolist() == [[6]] * 3
    assert engine.readTensor("index").tolist() == [0, 1, 2]
    with pytest.raises(ApplicationRuntimeError, match=r"has 3 IPUs of 16 tiles, but the program was compiled for 1 of 16$"):
        Engine(Graph(tiny()), Sequence()).load(bench.device)


def test_reports_tell_of_the_replica_that_is_asked_for(bench, mode):
    x = bench.variable("x", [0])
    program = bench.execute(Add, value=x[0], amount=1)
    engine = bench.engine(program, mode, {"profiler.replicaToProfile": "2"})
    engine.run()
    with pytest.raises(PoplarIndexError, match="getReport: replica 3 is out of range"):
        engine.getReport(3)
    chosen = engine.getReport()
    assert chosen.compilation.target.numReplicas == 3
    assert chosen.compilation.target.numTiles == 16
    assert engine._auto_report is None
    assert engine._profiled(None) is engine._replicas[2].runs
    stream = io.StringIO()
    engine.printProfileSummary(stream)
    told = stream.getvalue()
    assert "Number of IPUs:        3" in told
    assert "Total Tiles:           48" in told
    assert "Tiles per Replica:     16" in told
    assert Bench().engine(Sequence(), mode, {"profiler.replicaToProfile": "2"}).getReport().compilation.target.numReplicas == 1
