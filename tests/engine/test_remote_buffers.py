"""Remote buffers: rows that the host and the device both read and write."""

import numpy as np
import pytest
from engine_builder import Add
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import INT, UNSIGNED_INT, ApplicationRuntimeError, Engine, PoplarIndexError, TensorIOStateError, UnknownHandle
from pypoplar.engine.remote_rows import PAGE_BYTES, RemoteRows
from pypoplar.program import Copy, Repeat, Sequence


@pytest.fixture
def bench(bench):
    bench.rows = bench.graph.addRemoteBuffer("rows", INT, 3, 4)
    bench.x = bench.variable("x", [1, 2, 3], [5, 0, 7])
    return bench


def row(*values):
    return np.array(values, np.int32)


def rows_of(engine):
    found = np.zeros((4, 3), np.int32)
    for number in range(4):
        engine.copyFromRemoteBuffer("rows", found[number], number)
    return found.tolist()


def test_rows_start_as_zeros_and_the_host_fills_them(bench, mode):
    engine = bench.engine(Sequence([Copy(bench.rows, bench.x)]), mode)
    engine.copyToRemoteBuffer(row(4, 5, 6), "rows", 2)
    engine.copyToRemoteBuffer([7, 8, 9], "rows")
    assert rows_of(engine) == [[7, 8, 9], [0] * 3, [4, 5, 6], [0] * 3]
    engine.run()
    assert engine.readTensor("x").tolist() == [7, 8, 9]


def test_an_offset_tensor_picks_the_row_when_the_copy_runs(bench, mode):
    offset = bench.variable("offset", 1, 9)
    step = Sequence([Copy(bench.x, bench.rows, offset), bench.execute(Add, value=offset, amount=2)])
    engine = bench.engine(Repeat(2, step), mode)
    engine.run()
    assert rows_of(engine) == [[0] * 3, [1, 2, 3], [0] * 3, [1, 2, 3]]


def test_several_rows_go_at_once_in_the_order_of_the_offsets(bench, mode):
    many = bench.variable("many", np.arange(6).reshape(2, 3), np.arange(6))
    back = bench.variable("back", np.zeros((3, 3), np.int32), 4)
    out, into = bench.variable("out", [3, 1], type=UNSIGNED_INT), bench.variable("into", [1, 3, 1], 2)
    engine = bench.engine(Sequence([Copy(many, bench.rows, out), Copy(bench.rows, back, into)]), mode)
    engine.run()
    assert rows_of(engine)[1] == [3, 4, 5]
    assert engine.readTensor("back").tolist() == [[3, 4, 5], [0, 1, 2], [3, 4, 5]]


def test_rows_stay_over_runs_and_loads(bench, mode):
    engine = bench.engine([Copy(bench.x, bench.rows), Copy(bench.rows, bench.x)], mode)
    engine.run(0)
    engine.load()
    engine.writeTensor("x", row(0, 0, 0))
    engine.run(1)
    assert engine.readTensor("x").tolist() == [1, 2, 3]


@pytest.mark.parametrize("offset", [4, -1])
def test_a_row_out_of_range_ends_the_run_and_the_engine_goes_on(bench, mode, offset):
    place = bench.variable("offset", offset)
    engine = bench.engine([Copy(bench.rows, bench.x, place), Copy(bench.x, bench.rows, place)], mode)
    for number in range(2):
        with pytest.raises(ApplicationRuntimeError, match=f"remote buffer 'rows': row {offset} is out of range for 4 rows"):
            engine.run(number)
    engine.writeTensor("offset", 3)
    engine.run(1)
    assert rows_of(engine)[3] == [1, 2, 3]


def test_bad_rows_of_the_host_are_refused(bench):
    engine = bench.engine(Copy(bench.rows, bench.x))
    with pytest.raises(UnknownHandle, match="no remote buffer is called 'row'; did you mean 'rows'"):
        engine.copyToRemoteBuffer(row(1, 2, 3), "row")
    with pytest.raises(PoplarIndexError, match="'rows': row 4 is out of range for 4 rows"):
        engine.copyToRemoteBuffer(row(1, 2, 3), "rows", 4)
    with pytest.raises(PoplarIndexError, match="'rows': row -1 is out of range"):
        engine.copyFromRemoteBuffer("rows", row(1, 2, 3), -1)
    with pytest.raises(TensorIOStateError, match="'rows': expected 3 elements, got 2"):
        engine.copyToRemoteBuffer(row(1, 2), "rows")
    with pytest.raises(TensorIOStateError, match="'rows': expected an array of int32, got float32"):
        engine.copyFromRemoteBuffer("rows", np.zeros(3, np.float32))
    with pytest.raises(TensorIOStateError, match="'rows': expected an array of int32, got list"):
        engine.copyFromRemoteBuffer("rows", [0, 0, 0])


def test_two_engines_have_buffers_of_their_own(bench, mode):
    first = bench.engine(Copy(bench.x, bench.rows), mode)
    second = Engine(first.executable, mode=mode)
    first.run()
    assert rows_of(first)[0] == [1, 2, 3]
    assert rows_of(second)[0] == [0, 0, 0]


@given(st.data())
def test_rows_in_pages_are_those_of_one_array(data):
    elements = data.draw(st.sampled_from([1, 3, PAGE_BYTES // 4 - 1, PAGE_BYTES // 4, PAGE_BYTES // 4 + 1]))
    repeats = data.draw(st.integers(1, 1 << 40))
    rows = RemoteRows(repeats, elements, INT)
    known = data.draw(st.lists(st.integers(0, repeats - 1), min_size=1, max_size=6, unique=True))
    expected = {number: np.zeros(elements, np.int32) for number in known}
    for value in range(data.draw(st.integers(0, 4))):
        numbers = np.array(data.draw(st.lists(st.sampled_from(known), max_size=6)), np.int64)
        values = (10 * value + np.arange(len(numbers), dtype=np.int32))[:, None] + np.zeros(elements, np.int32)
        rows.write(numbers, values)
        expected |= zip(numbers.tolist(), values, strict=True)
    read = np.full((len(known), elements), -1, np.int32)
    rows.read(np.array(known), read)
    assert (read == [expected[number] for number in known]).all()
    assert (rows.row(known[0]) == expected[known[0]]).all()
