"""Streams connected to arrays: what moves, from where on, and what is refused."""

import numpy as np
import pytest
from engine_builder import Bench

from pypoplar import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    StreamConnectionError,
    TensorIOStateError,
    UnknownHandle,
)
from pypoplar.program import Call, Copy, Repeat, Sequence

TYPES = [BOOL, CHAR, FLOAT, HALF, INT, LONGLONG, SHORT, UNSIGNED_CHAR, UNSIGNED_INT, UNSIGNED_LONGLONG, UNSIGNED_SHORT]


def through(bench, type=INT, size=4, times=1, tile=0):
    """A program that takes chunks of stream "in" and gives them to stream "out"."""
    x = bench.variable("x", np.zeros(size), tile, type)
    stream_in = bench.graph.addHostToDeviceFIFO("in", type, size)
    stream_out = bench.graph.addDeviceToHostFIFO("out", type, size)
    return Repeat(times, Sequence([Copy(stream_in, x), Copy(x, stream_out)]))


def connected(bench, program, mode, given, taken):
    engine = bench.engine(program, mode)
    engine.connectStream("in", given)
    engine.connectStream("out", taken)
    return engine


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize("type", TYPES, ids=lambda one: one.__name__)
def test_every_type_goes_both_ways_bit_by_bit(mode, type):
    bench = Bench()
    bits = np.random.default_rng(1).integers(0, 256, 48 * type.size, np.uint8)
    given = bits.astype(bool)[:48] if type is BOOL else bits.view(type.dtype)
    taken = np.zeros_like(given)
    tiles = np.arange(48) % 16
    connected(bench, through(bench, type, 48, tile=tiles), mode, given, taken).run()
    assert taken.tobytes() == given.tobytes()


def test_arrays_are_held_by_reference(mode):
    bench = Bench()
    given, taken = ints(1, 2, 3, 4), ints(0, 0, 0, 0)
    engine = connected(bench, through(bench), mode, given, taken)
    given[:] = 5, 6, 7, 8
    engine.run()
    assert taken.tolist() == [5, 6, 7, 8]


def test_a_longer_array_is_consumed_chunk_by_chunk_and_wraps(mode):
    bench = Bench()
    given, taken = np.arange(6, dtype=np.int32), np.zeros((5, 2), np.int32)
    connected(bench, through(bench, size=2, times=4), mode, given, taken).run()
    assert taken.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1], [0, 0]]


def test_the_position_stays_from_run_to_run_for_each_stream(mode):
    bench = Bench()
    given, taken = np.arange(6, dtype=np.int32), np.zeros(4, np.int32)
    engine = connected(bench, through(bench, size=2), mode, given, taken)
    for expected in ([0, 1, 0, 0], [0, 1, 2, 3], [4, 5, 2, 3], [4, 5, 0, 1]):
        engine.run()
        assert taken.tolist() == expected


def test_connecting_and_loading_start_at_the_beginning(mode):
    bench = Bench()
    given, taken = np.arange(6, dtype=np.int32), np.zeros(2, np.int32)
    engine = connected(bench, through(bench, size=2), mode, given, taken)
    engine.run()
    engine.connectStream("in", given)
    engine.run()
    assert taken.tolist() == [0, 1]
    engine.run()
    engine.load()
    engine.run()
    assert taken.tolist() == [0, 1]


def test_two_copies_of_a_stream_in_one_program_share_its_position(mode):
    bench = Bench()
    x, y = bench.variable("x", ints(0, 0), 3), bench.variable("y", ints(0, 0), 5)
    stream = bench.graph.addHostToDeviceFIFO("in", INT, 2)
    engine = bench.engine([Sequence([Copy(stream, x), Copy(stream, y)]), Copy(stream, y)], mode)
    engine.connectStream("in", np.arange(6, dtype=np.int32))
    engine.run(0)
    engine.run(1)
    assert engine.readTensor("x").tolist() == [0, 1]
    assert engine.readTensor("y").tolist() == [4, 5]


def test_any_view_can_be_streamed(mode):
    bench = Bench()
    x = bench.variable("x", np.arange(24, dtype=np.float32).reshape(4, 6), np.arange(24) % 7)
    y = bench.variable("y", np.zeros((4, 6), np.float32), np.arange(24) % 5)
    view_in, view_out = y.reverse(1).transpose(), x.transpose()[1:5].reverse(0)
    stream_in = bench.graph.addHostToDeviceFIFO("in", FLOAT, 24)
    stream_out = bench.graph.addDeviceToHostFIFO("out", FLOAT, 16)
    given, taken = np.random.default_rng(2).random((6, 4), np.float32), np.zeros(16, np.float32)
    engine = connected(
        bench, Sequence([Copy(stream_in, view_in), Copy(x.transpose()[1:5].reverse(0), stream_out)]), mode, given, taken
    )
    engine.run()
    assert view_out.shape() == [4, 4]
    np.testing.assert_array_equal(taken.reshape(4, 4), np.arange(24).reshape(4, 6).T[1:5][::-1])
    np.testing.assert_array_equal(engine.readTensor("y")[:, ::-1].T, given)


def test_a_view_that_repeats_elements_can_be_streamed_out(mode):
    bench = Bench()
    x = bench.variable("x", ints(1, 2), [3, 4])
    stream = bench.graph.addDeviceToHostFIFO("out", INT, 6)
    taken = np.zeros(6, np.int32)
    engine = bench.engine(Copy(x.broadcast(3, 0), stream), mode)
    engine.connectStream("out", taken)
    engine.run()
    assert taken.tolist() == [1, 2] * 3


def test_streams_of_no_elements_do_nothing(mode):
    bench = Bench()
    connected(bench, through(bench, size=0), mode, ints(), ints()).run()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([1, 2, 3, 4], "expected a NumPy array of int32, got list"),
        (np.zeros(4), "carries INT: expected an array of int32, got float64"),
        (np.zeros(4, np.uint32), "expected an array of int32, got uint32"),
        (np.zeros(4, ">i4"), "expected an array of int32, got >i4"),
        (np.zeros(8, np.int32)[::2], "C-contiguous"),
        (np.zeros((4, 4), np.int32).T, "C-contiguous"),
        (np.zeros(6, np.int32), "4 elements at a time: the array has 6"),
        (np.zeros(0, np.int32), "4 elements at a time: the array has 0"),
        (np.zeros(2, np.int32), "4 elements at a time: the array has 2"),
    ],
)
@pytest.mark.parametrize("name", ["in", "out"])
def test_arrays_that_do_not_fit_are_refused(name, array, message):
    bench = Bench()
    engine = bench.engine(through(bench))
    with pytest.raises(StreamConnectionError, match=message) as caught:
        engine.connectStream(name, array)
    assert repr(name) in str(caught.value)


def test_an_output_array_has_to_be_writeable_and_an_input_need_not_be():
    bench = Bench()
    engine = bench.engine(through(bench))
    array = ints(1, 2, 3, 4)
    array.flags.writeable = False
    engine.connectStream("in", array)
    with pytest.raises(StreamConnectionError, match="'out' writes to the host, but the array is read-only"):
        engine.connectStream("out", array)


def test_streams_that_are_not_connected_are_named_before_anything_runs(mode):
    bench = Bench()
    bench.log()
    engine = bench.engine([Sequence([bench.enter(1), through(bench)]), bench.enter(2)], mode)
    engine.connectStream("out", ints(0, 0, 0, 0))
    with pytest.raises(StreamConnectionError, match="stream is not connected: 'in'"):
        engine.run(0)
    engine.run(1)  # which uses no stream
    assert engine.readTensor("log")[:2].tolist() == [1, 2]


def test_streams_that_functions_use_are_missed_in_every_program(mode):
    bench = Bench()
    inner = bench.graph.addFunction(through(bench))
    outer = bench.graph.addFunction(Call(inner))
    engine = bench.engine([Call(outer), Sequence([Call(outer)]), Call(inner)], mode)
    for number in range(3):
        with pytest.raises(StreamConnectionError, match="streams are not connected: 'in', 'out'"):
            engine.run(number)


def test_an_unknown_stream_gets_the_nearest_name():
    bench = Bench()
    engine = bench.engine(through(bench))
    with pytest.raises(UnknownHandle, match="no stream is called 'outt'; did you mean 'out'"):
        engine.connectStream("outt", ints(1, 2, 3, 4))
    with pytest.raises(KeyError, match="no stream is called 'internal 0'"):
        engine.connectStream("internal 0", ints(1, 2, 3, 4))


def test_a_stream_name_is_taken_once():
    bench = Bench()
    through(bench)
    with pytest.raises(TensorIOStateError, match="'in'"):
        bench.graph.addDeviceToHostFIFO("in", INT, 4)


def test_nothing_leaks_around_an_output_array(mode):
    bench = Bench()
    backing = np.full(12, -7, np.int32)
    connected(bench, through(bench), mode, ints(1, 2, 3, 4), backing[4:8]).run()
    assert backing.tolist() == [-7] * 4 + [1, 2, 3, 4] + [-7] * 4
