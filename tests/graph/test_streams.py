"""Streams, remote buffers, host handles and functions: what they say of themselves, and what is refused."""

import pytest

from pypoplar.errors import (
    InvalidOption,
    PoplarTypeError,
    StreamMemoryAllocationError,
    TensorIOStateError,
    TensorShapeError,
    TensorWriteError,
    TypeNotSupportedError,
)
from pypoplar.graph.host_links import ReplicatedStreamMode
from pypoplar.program import Sequence
from pypoplar.types import DOUBLE, FLOAT, HALF, INT


def test_a_stream_tells_name_type_count_and_direction(graph):
    inward = graph.addHostToDeviceFIFO("in", FLOAT, 10, ReplicatedStreamMode.BROADCAST, {"bufferingDepth": "2"})
    outward = graph.addDeviceToHostFIFO("out", HALF, 3)
    assert (inward.handle(), inward.elementType(), inward.numElements()) == ("in", FLOAT, 10)
    assert inward.replicatedMode() is ReplicatedStreamMode.BROADCAST
    assert (inward.direction, outward.direction) == ("to device", "to host")
    assert repr(outward) == "<DataStream 'out' to host, HALF [3]>"
    assert list(graph.host().streams) == ["in", "out"]
    assert inward.location.file == __file__


def test_a_remote_buffer_has_rows(graph):
    buffer = graph.addRemoteBuffer("remote", INT, 8, 100)
    assert (buffer.handle(), buffer.elementType(), buffer.numElements(), buffer.getRepeats()) == ("remote", INT, 8, 100)
    assert graph.addRemoteBuffer("one", INT, 8).getRepeats() == 1
    assert repr(buffer) == "<RemoteBuffer 'remote' INT [100, 8]>"
    with pytest.raises(TensorShapeError, match="at least 1 rows, got 0"):
        graph.addRemoteBuffer("none", INT, 8, 0)


def test_a_name_serves_once(graph):
    graph.addHostToDeviceFIFO("x", FLOAT, 1)
    graph.addRemoteBuffer("x", FLOAT, 1)
    x = graph.addVariable(FLOAT, [1], "x")
    graph.createHostWrite("x", x)
    graph.createHostRead("x", x)  # a write and a read may have one name
    graph.addHostFunction("x", [], [])
    for again in (
        lambda: graph.addDeviceToHostFIFO("x", FLOAT, 1),
        lambda: graph.addRemoteBuffer("x", FLOAT, 1),
        lambda: graph.addHostFunction("x", [], []),
        lambda: graph.createHostWrite("x", x),
        lambda: graph.createHostRead("x", x),
    ):
        with pytest.raises(TensorIOStateError, match="'x' already"):
            again()
    for again, what in (
        (lambda: graph.addHostToDeviceFIFO("x", FLOAT, 1), "stream"),
        (lambda: graph.createHostWrite("x", x), "host write"),
        (lambda: graph.createHostRead("x", x), "host read"),
    ):
        with pytest.raises(ValueError, match=rf"{what} 'x' already, made at .*test_streams\.py:\d+"):
            again()
    with pytest.raises(PoplarTypeError):
        graph.addHostToDeviceFIFO(3, FLOAT, 1)


def test_a_transfer_beyond_128_megabytes_is_refused_by_name(graph):
    limit = 128 * 1024 * 1024 // 4
    graph.addHostToDeviceFIFO("fits", FLOAT, limit)
    graph.addRemoteBuffer("rows", FLOAT, limit, 10)  # the limit is for one row
    for add in (graph.addHostToDeviceFIFO, graph.addDeviceToHostFIFO, graph.addRemoteBuffer):
        with pytest.raises(StreamMemoryAllocationError, match=r"'big' transfers 33554433 elements .* \(128 MB\)"):
            add("big", FLOAT, limit + 1)
    assert issubclass(StreamMemoryAllocationError, MemoryError)


def test_options_of_streams_are_checked(graph):
    stream = graph.addHostToDeviceFIFO("in", FLOAT, 1, options={"bufferingDepth": "2", "splitLimit": 0})
    assert stream.options == {"bufferingDepth": "2", "splitLimit": "0"}
    with pytest.raises(InvalidOption, match=r"stream 'x' has no option 'buferingDepth'; did you mean 'bufferingDepth'\?"):
        graph.addHostToDeviceFIFO("x", FLOAT, 1, options={"buferingDepth": "2"})
    with pytest.raises(InvalidOption, match="'splitLimit' is a whole number of at least 0, got 'big'"):
        graph.addDeviceToHostFIFO("x", FLOAT, 1, {"splitLimit": "big"})
    graph.addDeviceToHostFIFO("x", FLOAT, 1)  # what was refused is not there


def test_types_and_counts_of_streams_are_checked(graph):
    with pytest.raises(TypeNotSupportedError):
        graph.addHostToDeviceFIFO("x", DOUBLE, 1)
    with pytest.raises(PoplarTypeError, match="whole number of elements"):
        graph.addHostToDeviceFIFO("x", FLOAT, 1.5)
    with pytest.raises(TensorShapeError):
        graph.addHostToDeviceFIFO("x", FLOAT, -1)
    with pytest.raises(PoplarTypeError, match="pairs"):
        graph.addHostFunction("f", [FLOAT], [])
    assert graph.host().streams == {}


def test_the_host_writes_neither_constants_nor_aliases(graph):
    x = graph.addVariable(FLOAT, [2], "x")
    constant = graph.addConstant(FLOAT, [2], 1.0, "c")
    graph.createHostRead("constant", constant)
    graph.createHostRead("alias", x.broadcast(2, 0))
    with pytest.raises(TensorWriteError, match=r"'c'.*constant"):
        graph.createHostWrite("constant", constant)
    with pytest.raises(TensorWriteError, match=r"'x'.*more than once"):
        graph.createHostWrite("alias", x.broadcast(2, 0))
    with pytest.raises(PoplarTypeError):
        graph.createHostWrite("text", "x")
    assert graph.host().writes == {}


def test_functions_are_numbered_and_keep_their_program(graph):
    first, second = graph.addFunction(Sequence()), graph.addFunction(Sequence())
    assert (first.number, second.number) == (0, 1)
    assert graph.host().functions == [first, second]
    host = graph.addHostFunction("f", [(FLOAT, 3)], [(INT, 1), (INT, 2)])
    assert (host.inputs, host.outputs) == (((FLOAT, 3),), ((INT, 1), (INT, 2)))
