"""Streams connected to callbacks, and host functions: when they are called, with what, and what goes wrong."""

import functools
import itertools
import operator

import numpy as np
import pytest
from engine_builder import Add

from pypoplar import (
    FLOAT,
    INT,
    ApplicationRuntimeError,
    StreamCallback,
    StreamConnectionError,
    TensorIOStateError,
    UnknownHandle,
)
from pypoplar.program import Call, Copy, Repeat, Sequence


@pytest.fixture
def bench(bench):
    bench.x = bench.variable("x", [0, 0], [3, 4])
    bench.stream_in = bench.graph.addHostToDeviceFIFO("in", INT, 2)
    bench.stream_out = bench.graph.addDeviceToHostFIFO("out", INT, 2)
    return bench


def take_in(bench, mode, callback, times=1):
    engine = bench.engine(Repeat(times, Copy(bench.stream_in, bench.x)), mode)
    engine.connectStreamToCallback("in", callback)
    return engine


def value(engine):
    return engine.readTensor("x").tolist()


def test_a_function_fills_the_array_it_gets(bench, mode):
    shapes = []

    def fill(chunk):
        shapes.append((chunk.shape, chunk.dtype))
        chunk[:] = 7, len(shapes)

    engine = take_in(bench, mode, fill, times=3)
    engine.run()
    assert value(engine) == [7, 3]
    assert shapes == [((2,), np.int32)] * 3


@pytest.mark.parametrize("given", [[5, 6], (5, 6), np.array([5, 6], np.int32), np.array([[5], [6]], np.int32)])
def test_a_function_may_return_the_chunk(bench, mode, given):
    engine = take_in(bench, mode, lambda chunk: given)
    engine.run()
    assert value(engine) == [5, 6]


def test_an_iterator_gives_chunk_after_chunk_over_several_runs(bench, mode):
    engine = take_in(bench, mode, ([n, n * n] for n in range(10)), times=2)
    engine.run()
    assert value(engine) == [1, 1]
    engine.run()
    assert value(engine) == [3, 9]


def test_an_exhausted_iterator_ends_the_run_and_the_engine_goes_on(bench, mode):
    engine = take_in(bench, mode, iter([[1, 2], [3, 4], [5, 6]]), times=2)
    engine.run()
    with pytest.raises(ApplicationRuntimeError, match="stream 'in': its callback is exhausted after 3 chunks"):
        engine.run()
    assert value(engine) == [5, 6]
    engine.connectStream("in", np.array([8, 9], np.int32))
    engine.run()
    assert value(engine) == [8, 9]


def test_a_function_says_with_stop_iteration_that_it_is_exhausted(bench, mode):
    source = iter([[1, 2]])
    engine = take_in(bench, mode, lambda chunk: next(source), times=2)
    with pytest.raises(ApplicationRuntimeError, match="'in': its callback is exhausted after 1 chunk"):
        engine.run()


class Counting(StreamCallback):
    def __init__(self):
        self.calls = []

    def fetch(self, chunk):
        self.calls.append("fetch")
        chunk[:] = len(self.calls)

    def complete(self):
        self.calls.append("complete")


def test_a_stream_callback_is_fetched_and_completed(bench, mode):
    callback = Counting()
    engine = take_in(bench, mode, callback, times=2)
    engine.run()
    assert callback.calls == ["fetch", "complete"] * 2
    assert value(engine) == [3, 3]


class Fill(StreamCallback):
    """Fills chunks with a value, ahead of time as long as `ready` says so."""

    def __init__(self, calls, value, ready=lambda: True):
        self.calls, self.value, self.ready = calls, value, ready

    def prefetch(self, chunk):
        self.calls.append(f"prefetch {self.value}")
        chunk[:] = self.value
        return self.Result.Success if self.ready() else self.Result.NotAvailable

    def fetch(self, chunk):
        self.calls.append(f"fetch {self.value}")
        chunk[:] = self.value

    def complete(self):
        self.calls.append(f"complete {self.value}")

    def invalidatePrefetched(self):
        self.calls.append(f"invalidate {self.value}")


PREFETCH = {"exchange.streamBufferOverlap": "none"}


def test_a_chunk_is_prefetched_after_the_one_before_and_thrown_away_with_its_callback(bench, mode):
    engine = bench.engine(Repeat(2, Copy(bench.stream_in, bench.x)), mode, PREFETCH)
    calls, before, seen = [], None, []
    for number in (1, 3, 3, 9, 9):
        if number != before:
            engine.connectStreamToCallback("in", Fill(calls, number))
        engine.run()
        seen.append(value(engine)[0])
        before = number
    assert seen == [1, 3, 3, 9, 9]
    turn = ["complete {0}", "prefetch {0}"]
    first = ["fetch {0}", *turn, *turn]
    expected = [[1, first], [1, ["invalidate {0}"]], [3, first], [3, turn * 2], [3, ["invalidate {0}"]], [9, first], [9, turn * 2]]
    assert calls == [text.format(number) for number, texts in expected for text in texts]
    engine.load()
    assert calls[-1] == "invalidate 9"


def test_what_cannot_be_prefetched_is_fetched(bench, mode):
    engine = bench.engine(Repeat(3, Copy(bench.stream_in, bench.x)), mode, PREFETCH)
    calls, answers = [], iter([False, True])
    engine.connectStreamToCallback("in", Fill(calls, 5, lambda: next(answers)))  # the third time nothing is left
    engine.run()
    fetched, kept = ["fetch 5", "complete 5", "prefetch 5"], ["complete 5", "prefetch 5"]
    assert calls == [*fetched, *fetched, *kept]


@pytest.mark.parametrize("options", [{}, {**PREFETCH, "exchange.enablePrefetch": "false"}])
def test_nothing_is_prefetched_unless_the_options_say_so(bench, mode, options):
    engine = bench.engine(Repeat(2, Copy(bench.stream_in, bench.x)), mode, options)
    calls = []
    engine.connectStreamToCallback("in", Fill(calls, 5))
    engine.run()
    assert calls == ["fetch 5", "complete 5"] * 2


def test_prefetch_says_whether_it_has_filled_the_chunk(bench, mode):
    class Silent(Fill):
        def prefetch(self, chunk):
            pass

    engine = bench.engine(Copy(bench.stream_in, bench.x), mode, PREFETCH)
    engine.connectStreamToCallback("in", Silent([], 5))
    with pytest.raises(ApplicationRuntimeError, match=r"'in': prefetch returns a StreamCallback\.Result, got None"):
        engine.run()


def test_a_function_reads_what_the_device_sends(bench, mode):
    seen = []
    step = Sequence([bench.execute(Add, 9, value=bench.x[1], amount=5), Copy(bench.x, bench.stream_out)])
    engine = bench.engine(Repeat(3, step), mode)
    engine.connectStreamToCallback("out", lambda chunk: seen.append(chunk.tolist()))
    engine.run()
    assert seen == [[0, 5], [0, 10], [0, 15]]


def test_what_an_output_callback_returns_is_ignored(bench, mode):
    engine = bench.engine(Copy(bench.x, bench.stream_out), mode)
    engine.connectStreamToCallback("out", lambda chunk: "anything")
    engine.run()


def test_callbacks_see_the_order_of_the_program(bench, mode):
    calls = []

    def fill(chunk):
        calls.append("in")
        chunk[:] = len(calls)

    engine = bench.engine(Repeat(2, Sequence([Copy(bench.stream_in, bench.x), Copy(bench.x, bench.stream_out)])), mode)
    engine.connectStreamToCallback("in", fill)
    engine.connectStreamToCallback("out", lambda chunk: calls.append(chunk.tolist()))
    engine.run()
    assert calls == ["in", [1, 1], "in", [3, 3]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros(2), "expected an array of int32, got float64"),
        ([1, 2, 3], r"expected 2 elements, got 3 \(shape \(3,\)\)"),
        (np.zeros(1, np.int32), "expected 2 elements, got 1"),
        ([0.5, 1], "expected an array of int32, got 0.5"),
        ("no", "expected an array of int32, got 'no'"),
        ([[1], [2, 3]], "expected an array of int32, got rows of unequal length"),
        ([2**31, 0], "expected an array of int32, got 2147483648"),
    ],
)
def test_chunks_that_do_not_fit_are_refused(bench, mode, given, message):
    engine = take_in(bench, mode, lambda chunk: given)
    with pytest.raises(ApplicationRuntimeError, match="stream 'in': from its callback " + message):
        engine.run()
    assert value(engine) == [0, 0]


def test_what_a_callback_raises_comes_out_of_run_and_the_engine_goes_on(bench, mode):
    def fail(chunk):
        raise ZeroDivisionError("mine")

    engine = bench.engine(Sequence([bench.execute(Add, value=bench.x[0], amount=1), Copy(bench.stream_in, bench.x)]), mode)
    engine.connectStreamToCallback("in", fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        engine.run()
    assert value(engine) == [1, 0]
    engine.connectStreamToCallback("in", lambda chunk: [4, 5])
    engine.run()
    assert value(engine) == [4, 5]


def test_a_callback_cannot_start_another_run_of_its_engine(bench, mode):
    def again(chunk):
        engine.run()

    engine = take_in(bench, mode, again)
    with pytest.raises(ApplicationRuntimeError, match="is running"):
        engine.run()
    engine.connectStreamToCallback("in", lambda chunk: engine.readTensor("x"))
    with pytest.raises(ApplicationRuntimeError, match="is running"):
        engine.run()
    engine.connectStreamToCallback("in", lambda chunk: [1, 2])
    engine.run()
    assert value(engine) == [1, 2]


def test_something_that_is_no_callback_is_refused(bench):
    engine = bench.engine(Copy(bench.stream_in, bench.x))
    with pytest.raises(
        StreamConnectionError, match="'in': expected a function of one array, an iterator or a StreamCallback, got list"
    ):
        engine.connectStreamToCallback("in", [1, 2])
    with pytest.raises(UnknownHandle, match="no stream is called 'it'"):
        engine.connectStreamToCallback("it", print)


class Fetching(StreamCallback):
    def fetch(self, chunk):
        chunk[:] = 1, 2


class FetchesNothing(StreamCallback):
    pass


class FetchesTwo(StreamCallback):
    def fetch(self, chunk, index):
        chunk[:] = index


class CompletesSomething(Fetching):
    def complete(self, chunk):
        pass


class PrefetchesNothing(Fetching):
    def prefetch(self):
        return self.Result.NotAvailable


def chunks():
    yield [1, 2]


@pytest.mark.parametrize(
    ("callback", "expected", "got"),
    [
        (lambda: [1, 2], "a function of one array, an iterator or a StreamCallback", r"<lambda>\(\), .*test_callbacks\.py:\d+$"),
        (lambda chunk, index: None, "a function of one array", r"<lambda>\(chunk, index\), "),
        (lambda *, chunk: None, "a function of one array", r"<lambda>\(\*, chunk\), "),
        (chunks, "a function of one array", r"chunks\(\), .*test_callbacks\.py:\d+; call it for its iterator"),
        (Fetching, "a function of one array", r"Fetching\(\)"),
        (FetchesTwo(), r"a method fetch\(chunk\)", r"fetch\(chunk, index\), .*test_callbacks\.py:\d+"),
        (CompletesSomething(), r"a method complete\(\)", r"complete\(chunk\), "),
        (PrefetchesNothing(), r"a method prefetch\(chunk\)", r"prefetch\(\), "),
    ],
)
def test_a_callback_that_cannot_be_called_with_a_chunk_is_refused_when_it_is_connected(bench, callback, expected, got):
    engine = bench.engine(Copy(bench.stream_in, bench.x))
    with pytest.raises(StreamConnectionError, match=f"stream 'in': expected {expected}.* got {got}"):
        engine.connectStreamToCallback("in", callback)


def test_a_stream_callback_without_fetch_is_refused(bench):
    engine = bench.engine(Copy(bench.stream_in, bench.x))
    with pytest.raises(StreamConnectionError, match=r"'in': expected a method fetch\(chunk\), FetchesNothing has none"):
        engine.connectStreamToCallback("in", FetchesNothing())


class Called:
    def __call__(self, chunk, more=None):
        chunk[:] = 3, 4


@pytest.mark.parametrize(
    "callback",
    [
        Called(),
        Called().__call__,
        functools.partial(lambda value, chunk: chunk.fill(value), 3),
        lambda *arrays: [3, 4],
        operator.methodcaller("fill", 3),
        itertools.repeat([1, 2]),
        Fetching(),
    ],
)
def test_what_can_be_called_with_a_chunk_is_connected(bench, mode, callback):
    engine = take_in(bench, mode, callback)
    engine.run()
    assert value(engine) in ([3, 4], [3, 3], [1, 2])


# Host functions


def half_sum(bench):
    """A program that asks the host for x[0] + x[1] and a half of it."""
    bench.total = bench.variable("total", 0, 8)
    bench.half = bench.variable("half", 0.0, 2)
    function = bench.graph.addHostFunction("half sum", [(INT, 1), (INT, 1)], [(INT, 1), (FLOAT, 1)])
    return Call(function, [bench.x[0], bench.x[1].reshape([1])], [bench.total, bench.half])


def test_a_host_function_reads_its_inputs_and_fills_its_outputs(bench, mode):
    def compute(left, right, total, half):
        total[:] = left + right
        half[0] = total[0] / 2

    engine = bench.engine(Sequence([bench.execute(Add, value=bench.x[1], amount=5), Repeat(2, half_sum(bench))]), mode)
    engine.connectHostFunction("half sum", compute)
    engine.run()
    assert (engine.readTensor("total"), engine.readTensor("half")) == (5, 2.5)


def test_a_host_function_that_is_not_connected_or_not_known_is_named(bench, mode):
    engine = bench.engine(half_sum(bench), mode)
    with pytest.raises(StreamConnectionError, match="host function 'half sum' is not connected; use connectHostFunction"):
        engine.run()
    with pytest.raises(UnknownHandle, match="no host function is called 'half'; did you mean 'half sum'"):
        engine.connectHostFunction("half", print)
    with pytest.raises(StreamConnectionError, match="expected a function, got int"):
        engine.connectHostFunction("half sum", 3)
    expected = r"'half sum': expected a function of 4 arrays, 2 of inputs and 2 of outputs, got <lambda>\(left, right\), .*\.py:\d+"
    with pytest.raises(StreamConnectionError, match=expected):
        engine.connectHostFunction("half sum", lambda left, right: left + right)


def test_what_a_host_function_raises_comes_out_of_run(bench, mode):
    engine = bench.engine(half_sum(bench), mode)
    engine.connectHostFunction("half sum", lambda *arrays: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.run()
    engine.connectHostFunction("half sum", lambda left, right, total, half: total.fill(3))
    engine.run()
    assert engine.readTensor("total") == 3


def test_handles_of_host_functions_are_taken_once(bench):
    half_sum(bench)
    with pytest.raises(TensorIOStateError, match="half sum"):
        bench.graph.addHostFunction("half sum", [], [])
