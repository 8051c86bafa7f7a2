"""Tensors that the host reads and writes by handle."""

import numpy as np
import pytest
from engine_builder import Bench, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    ApplicationRuntimeError,
    Engine,
    PoplarTypeError,
    TensorIOStateError,
    TensorWriteError,
    UnknownHandle,
    concat,
)
from pypoplar.program import Sequence
from pypoplar.testing import strategies

TYPES = [
    BOOL, CHAR, FLOAT, HALF, INT, LONGLONG, SHORT, SIGNED_CHAR,
    UNSIGNED_CHAR, UNSIGNED_INT, UNSIGNED_LONGLONG, UNSIGNED_SHORT,
]  # fmt: skip


@pytest.mark.parametrize("type", TYPES, ids=lambda one: one.__name__)
def test_what_is_written_is_read_back_in_every_type(mode, type):
    bench = Bench()
    values = np.arange(30).reshape(5, 6).astype(type.dtype)
    bench.variable("x", np.zeros((5, 6)), np.arange(30) % 11, type)
    engine = bench.engine(Sequence(), mode)
    engine.writeTensor("x", values)
    back = engine.readTensor("x")
    assert (back.dtype, back.shape) == (type.dtype, (5, 6))
    assert back.tobytes() == values.tobytes()


def test_views_of_variables_on_many_tiles_are_read_and_written(mode):
    bench = Bench()
    x = bench.variable("x", np.arange(12).reshape(3, 4), np.arange(12) % 5)
    y = bench.variable("y", [[100, 101]] * 3, [9, 8, 7, 6, 5, 4])
    bench.handles("both", concat([x.reverse(1), y], 1).transpose())
    engine = bench.engine(Sequence(), mode)
    expected = np.hstack([np.arange(12).reshape(3, 4)[:, ::-1], [[100, 101]] * 3]).T
    np.testing.assert_array_equal(engine.readTensor("both"), expected)
    engine.writeTensor("both", -expected.astype(np.int32))
    np.testing.assert_array_equal(engine.readTensor("x"), -np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(engine.readTensor("y"), [[-100, -101]] * 3)


@examples(40)
@given(st.data())
def test_any_view_reads_and_writes_what_numpy_would(data):
    shape = data.draw(strategies.shapes())
    view = data.draw(strategies.views(shape, aliases=data.draw(st.booleans())))
    values = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    mapping = data.draw(strategies.mappings(values.size, 16))
    for mode in ("interpret", "native"):
        bench = Bench()
        x = bench.variable("x", values)
        bench.graph.setTileMapping(x, mapping)
        bench.graph.createHostRead("view", view.of(x))
        writes = view.of(x).isParallelWriteable()
        if writes:
            bench.graph.createHostWrite("view", view.of(x))
        engine = bench.engine(Sequence(), mode)
        expected = values.copy()
        np.testing.assert_array_equal(engine.readTensor("view"), view.of_array(expected))
        if writes:
            new = np.arange(view.of_array(expected).size, dtype=np.int32).reshape(view.of_array(expected).shape) + 1000
            ids = view.of_array(np.arange(values.size).reshape(shape))
            expected.reshape(-1)[ids.reshape(-1)] = new.reshape(-1)
            engine.writeTensor("view", new)
            np.testing.assert_array_equal(engine.readTensor("x"), expected)


def test_an_array_is_filled_where_one_is_given(mode):
    bench = Bench()
    bench.variable("x", [1, 2, 3, 4], [0, 1, 0, 1])
    engine = bench.engine(Sequence(), mode)
    array = np.zeros((2, 2), np.int32)
    assert engine.readTensor("x", array).tolist() == [1, 2, 3, 4]
    assert array.tolist() == [[1, 2], [3, 4]]
    strided = np.zeros(8, np.int32)
    engine.readTensor("x", strided[::2])
    assert strided.tolist() == [1, 0, 2, 0, 3, 0, 4, 0]


def test_arrays_that_are_read_are_the_readers_own(mode):
    bench = Bench()
    bench.variable("x", [1, 2])
    engine = bench.engine(Sequence(), mode)
    first = engine.readTensor("x")
    first[:] = 9
    assert engine.readTensor("x").tolist() == [1, 2]
    engine.writeTensor("x", np.array([3, 4], np.int32)[::-1])
    assert engine.readTensor("x").tolist() == [4, 3]
    assert first.tolist() == [9, 9]


def test_scalars_and_empty_tensors_have_handles(mode):
    bench = Bench()
    bench.variable("scalar", 2.5, 7)
    bench.variable("empty", np.zeros((0, 3), np.float16))
    engine = bench.engine(Sequence(), mode)
    engine.writeTensor("scalar", np.float32(1.5))
    assert engine.readTensor("scalar") == 1.5
    assert engine.readTensor("scalar").shape == ()
    assert engine.readTensor("empty").shape == (0, 3)


def test_what_nothing_has_written_is_nan_or_all_bits_set(mode):
    bench = Bench()
    for name, type in (("f", FLOAT), ("h", HALF), ("i", INT), ("u", UNSIGNED_SHORT)):
        tensor = bench.graph.addVariable(type, [2], name)
        bench.graph.setTileMapping(tensor, 3)
        bench.handles(name, tensor)
    engine = bench.engine(Sequence(), mode)
    assert np.isnan(engine.readTensor("f")).all()
    assert np.isnan(engine.readTensor("h")).all()
    assert engine.readTensor("i").tolist() == [-1, -1]
    assert engine.readTensor("u").tolist() == [65535, 65535]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3, np.int32), r"handle 'x': expected 4 elements, got 3 \(shape \(3,\)\)"),
        (np.zeros(4), "handle 'x': expected an array of int32, got float64"),
        (np.zeros(4, np.uint32), "handle 'x': expected an array of int32, got uint32"),
        ([1, 2, 3], "handle 'x': expected 4 elements, got 3"),
        ([1, 2.5, 3, 4], "handle 'x': expected an array of int32, got 2.5"),
        ([[1, 2], [3]], "handle 'x': expected an array of int32, got rows of unequal length"),
        ("1234", "handle 'x': expected an array of int32, got '1234'"),
        ([2**40, 0, 0, 0], "handle 'x': expected an array of int32, got 1099511627776"),
        (None, "handle 'x': expected an array of int32, got None"),
    ],
)
def test_host_data_that_does_not_fit_is_refused(mode, array, message):
    bench = Bench()
    bench.variable("x", [1, 2, 3, 4])
    engine = bench.engine(Sequence(), mode)
    with pytest.raises(TensorIOStateError, match=message):
        engine.writeTensor("x", array)
    assert engine.readTensor("x").tolist() == [1, 2, 3, 4]


def test_numbers_that_would_become_infinite_are_refused(mode):
    bench = Bench()
    bench.variable("x", np.zeros(2, np.float16))
    engine = bench.engine(Sequence(), mode)
    with pytest.raises(TensorIOStateError, match=r"handle 'x': expected an array of float16, got 70000.0 at index 1"):
        engine.writeTensor("x", [np.inf, 7e4])
    engine.writeTensor("x", [np.inf, 65519])
    assert engine.readTensor("x").tolist() == [np.inf, 65504]


def test_lists_and_numbers_stand_for_arrays(mode):
    bench = Bench()
    bench.variable("x", [0.0, 0.0])
    bench.variable("n", 0)
    bench.variable("b", [False, False])
    engine = bench.engine(Sequence(), mode)
    engine.writeTensor("x", [1, 2.5])
    engine.writeTensor("n", 7)
    engine.writeTensor("b", [True, False])
    assert engine.readTensor("x").tolist() == [1, 2.5]
    assert engine.readTensor("n") == 7
    assert engine.readTensor("b").tolist() == [True, False]


def test_reading_into_something_else_than_a_fitting_array_is_refused(mode):
    bench = Bench()
    bench.variable("x", [1, 2])
    engine = bench.engine(Sequence(), mode)
    locked = np.zeros(2, np.int32)
    locked.flags.writeable = False
    for array, message in (
        (locked, "read-only"),
        (np.zeros(3, np.int32), "expected 2 elements, got 3"),
        (np.zeros(2, np.int64), "expected an array of int32, got int64"),
        ([0, 0], "expected an array of int32, got list"),
    ):
        with pytest.raises(TensorIOStateError, match=message):
            engine.readTensor("x", array)


def test_unknown_handles_get_the_nearest_name():
    bench = Bench()
    x = bench.variable("weights", [1, 2])
    bench.graph.createHostRead("weights-out", x)
    engine = bench.engine(Sequence())
    with pytest.raises(UnknownHandle, match="no host read handle is called 'weight'; did you mean 'weights'"):
        engine.readTensor("weight")
    with pytest.raises(KeyError, match="no host write handle is called 'weights-out'; did you mean 'weights'"):
        engine.writeTensor("weights-out", [1, 2])


def test_handles_are_taken_once_for_each_direction_and_of_writeable_tensors():
    bench = Bench()
    x = bench.variable("x", [1, 2])
    with pytest.raises(TensorIOStateError, match="'x'"):
        bench.graph.createHostRead("x", x)
    with pytest.raises(TensorIOStateError, match="'x'"):
        bench.graph.createHostWrite("x", x)
    with pytest.raises(TensorWriteError, match="'x'"):
        bench.graph.createHostWrite("twice", x.broadcast(2, 0))
    bench.graph.createHostRead("twice", x.broadcast(2, 0))


def test_nothing_is_read_written_or_run_before_load(mode):
    bench = Bench()
    bench.variable("x", [1, 2])
    engine = Engine(bench.graph, Sequence(), mode=mode)
    for misuse in (engine.run, lambda: engine.readTensor("x"), lambda: engine.writeTensor("x", [1, 2])):
        with pytest.raises(ApplicationRuntimeError, match="has not been loaded"):
            misuse()


def test_an_engine_is_loaded_on_a_device_of_its_size():
    bench = Bench()
    engine = Engine(bench.graph, Sequence())
    with pytest.raises(ApplicationRuntimeError, match="1 IPUs of 4 tiles, but the program was compiled for 1 of 16"):
        engine.load(tiny(4))
    with pytest.raises(PoplarTypeError, match="expected a Device, got Target"):
        engine.load(bench.graph.getTarget())
    engine.loadAndRun(bench.device)


def test_an_engine_is_loaded_on_a_device_of_its_timing():
    for compiled, other in (("model", "hardware"), ("hardware", "model")):
        bench = Bench(tiny(timing=compiled))
        engine = Engine(bench.graph, Sequence())
        said = f"the device has {other} timing, but the program was compiled for {compiled} timing; .*timing='{compiled}'"
        with pytest.raises(ApplicationRuntimeError, match=said):
            engine.load(tiny(timing=other))
        engine.loadAndRun(tiny(timing=compiled))


@pytest.mark.parametrize("at_once", [1 << 16, 64])
def test_weights_whose_order_on_the_host_is_not_that_on_tiles_come_and_go_through_any_handle(mode, at_once, monkeypatch):
    """Where there are many, they move in the order of the tiles' memories, and what is read goes the way of what was written."""
    monkeypatch.setattr("pypoplar.compiler.flattening.move_tables.FOLDED_AT_ONCE", at_once)
    bench = Bench()
    values = np.arange(40 * 6 * 9, dtype=np.int32).reshape(9, 6, 40)
    kept = bench.variable("kept", -values, np.arange(values.size) // 40 % 7)
    weights = kept.dimShuffle([2, 1, 0])
    for handle, view in (("weights", weights), ("some", weights.slice(3, 39).reverse(2)), ("again", weights)):
        bench.handles(handle, view)
    engine = bench.engine(Sequence(), mode)
    expected = -values.transpose(2, 1, 0)
    for handle, written in (("weights", 1), ("some", 2), ("again", 3), ("kept", 4)):
        for other in ("weights", "some", "again", "kept"):
            shown = {"some": expected[3:39, :, ::-1], "kept": expected.transpose(2, 1, 0)}.get(other, expected)
            np.testing.assert_array_equal(engine.readTensor(other), shown, err_msg=f"{other} before {handle} is written")
        new = (written * 10_000 + np.arange(expected.size)).astype(np.int32).reshape(expected.shape)
        if handle == "some":
            expected = np.concatenate((expected[:3], new[3:39], expected[39:]))
            engine.writeTensor("some", expected[3:39, :, ::-1])
        else:
            expected = new
            engine.writeTensor(handle, expected.transpose(2, 1, 0) if handle == "kept" else expected)
    np.testing.assert_array_equal(engine.readTensor("weights"), expected)


def test_load_brings_initial_values_back(mode):
    bench = Bench()
    x = bench.variable("x", np.arange(6), np.arange(6))
    bench.graph.setInitialValue(x[2:4], [70, 80])
    engine = bench.engine(Sequence(), mode)
    assert engine.readTensor("x").tolist() == [0, 1, 70, 80, 4, 5]
    engine.writeTensor("x", [9] * 6)
    engine.load()
    assert engine.readTensor("x").tolist() == [0, 1, 70, 80, 4, 5]
