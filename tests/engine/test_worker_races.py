"""Races between the workers of a MultiVertex, by what they touch while they run (`pypoplar.races = "elements"`)."""

import re

import numpy as np
import pytest
from engine_builder import Bench, everywhere, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from worker_oracle import PLAIN, connected, worker_codelet, worker_values

from pypoplar import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    AtomicStoreError,
    GraphCycleError,
    InOut,
    Input,
    InvalidOption,
    IPUModel,
    MultiVertex,
    Output,
    PoplarError,
    Vector,
    VectorList,
    popops,
)
from pypoplar.program import Repeat, Sequence

ELEMENTS = {"pypoplar.races": "elements"}


class Alike(MultiVertex):
    """All workers store into the element, if the data say so."""

    y: Output[Vector[FLOAT]]
    at: Input[Vector[INT]]

    def compute(self, worker):
        self.y[self.at[worker]] = float(worker)


class Rows(MultiVertex):
    """A worker reads what another has written to a slice of a row."""

    rows: InOut[VectorList[FLOAT]]
    reader: INT

    def compute(self, worker):
        part = self.rows[1][2:]
        if worker == 2:
            part[3] = 1.0
        if worker == self.reader:
            self.rows[0][worker] = part[3]


class Counted(MultiVertex):
    """Workers share plain fields."""

    out: Output[Vector[INT]]
    count: INT
    seen: Vector[INT]

    def compute(self, worker):
        self.out[worker] = self.count
        if self.count > 0:
            self.seen[worker % self.count] = worker


class Flags(MultiVertex):
    """Each worker stores its own elements, which are smaller than a word."""

    flags: Output[Vector[BOOL]]
    rows: Output[VectorList[HALF]]
    begin: Input[INT]

    def compute(self, worker):
        if worker == 4:
            self.flags[self.begin] = True
        if worker == 5:
            self.flags[self.begin + 1] = True
        self.rows[worker][0] = HALF(worker)


class Single(MultiVertex):
    first: Output[CHAR]
    second: Output[CHAR]

    def compute(self, worker):
        if worker == 1:
            self.first = 1
        if worker == 2:
            self.second = 2


class PlainChars(MultiVertex):
    """Two plain fields that lie in one word."""

    out: Output[INT]
    first: CHAR
    second: CHAR

    def compute(self, worker):
        if worker == 1:
            self.first = 1
        if worker == 2:
            self.second = 2


def test_what_two_workers_write_is_named_with_the_line_and_both_workers():
    def work(mode, options):
        bench = Bench()
        y, at = bench.variable("y", np.zeros(6), 2), bench.variable("at", [4, 3, 5, 1, 3, 0], 2)
        bench.engine(bench.execute(Alike, 2, y=y, at=at), mode, options).run()

    with pytest.raises(GraphCycleError) as caught:
        everywhere(work, ELEMENTS)
    text = str(caught.value)
    assert "test_worker_races.py:" in text
    assert (
        "Alike.compute: worker 4 writes element 3 of field 'y', which worker 1 has written: the workers of a MultiVertex run"
        in text
    )
    assert "self.y[self.at[worker]] = float(worker)" in text
    assert "vertex 0 on tile 2 in compute set 'Alike', added at" in text
    assert re.search(r"added at \S*engine_builder.py:\d+; the compute set was made at \S*engine_builder.py:\d+$", text)


def test_a_race_of_workers_is_found_in_the_round_in_which_it_happens_and_the_engine_goes_on():
    def work(mode, options):
        bench = Bench()
        y, at = bench.variable("y", np.zeros(7), 2), bench.variable("at", [5, 4, 3, 2, 1, 0], 5)
        engine = bench.engine(Repeat(2, bench.execute(Alike, 2, y=y, at=at)), mode, options)
        engine.run()
        engine.writeTensor("at", [1, 2, 3, 4, 5, 5])
        with pytest.raises(GraphCycleError, match="worker 5 writes element 5 of field 'y', which worker 4 has written"):
            engine.run()
        engine.writeTensor("at", [1, 2, 3, 4, 5, 6])
        engine.run()
        return engine.readTensor("y")

    assert everywhere(work, ELEMENTS).tolist() == [5, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("reader", [0, 1, 2, 5])
def test_what_a_worker_writes_and_another_reads_is_a_race(reader):
    def work(mode, options):
        bench = Bench()
        rows = bench.variable("rows", np.arange(16.0).reshape(2, 8), 2)
        bench.engine(bench.execute(Rows, 2, rows=[rows[0], rows[1]], reader=reader), mode, options).run()

    if reader == 2:
        everywhere(work, ELEMENTS)
        return
    second, first = ("writes", "read") if reader < 2 else ("reads", "written")
    what = rf"worker {max(2, reader)} {second} element 5 of row 1 of field 'rows', which worker {min(2, reader)} has {first}:"
    with pytest.raises(GraphCycleError, match=what):
        everywhere(work, ELEMENTS)


@pytest.mark.parametrize(("count", "raced"), [(0, None), (6, None), (4, 4)])
def test_plain_fields_are_judged_as_well(count, raced):
    def work(mode, options):
        bench = Bench()
        out = bench.variable("out", np.zeros(6, np.int32), 2)
        engine = bench.engine(bench.execute(Counted, 2, out=out, count=count, seen=[0] * 6), mode, options)
        engine.run()
        return engine.readTensor("out").tolist()

    if raced is None:
        assert everywhere(work, ELEMENTS) == [count] * 6
        return
    with pytest.raises(GraphCycleError, match=r"worker 4 writes element 0 of field 'seen', which worker 0 has written"):
        everywhere(work, ELEMENTS)


@pytest.mark.parametrize("tile", [2, 5])
@pytest.mark.parametrize("begin", range(6))
def test_two_workers_must_not_store_into_one_word(begin, tile):
    def work(mode, options):
        bench = Bench()
        flags = bench.variable("flags", np.zeros(9, bool), 2)
        rows = bench.variable("rows", np.zeros((6, 3)), 2, HALF)
        at = bench.variable("at", begin, 2)
        # They begin with a word for the vertex, wherever they lie.
        fields = {"flags": flags[1:9], "rows": list(rows), "begin": at}
        bench.engine(bench.execute(Flags, tile, **fields), mode, options).run()

    if begin == 3:
        everywhere(work, ELEMENTS)
        return
    with pytest.raises(AtomicStoreError) as caught:
        everywhere(work, ELEMENTS)
    text = str(caught.value)
    assert "test_worker_races.py:" in text
    first, second = f"worker 4 element {begin} of field 'flags'", f"worker 5 element {begin + 1} of field 'flags'"
    assert (
        f"Flags.compute: two workers store into one 32-bit word, and one of the stores would be lost: {first} and {second}" in text
    )
    assert f"vertex 0 on tile {tile} in compute set 'Flags', added at" in text
    assert re.search(r"; the compute set was made at \S*engine_builder.py:\d+$", text)


def test_scalars_of_two_workers_are_laid_into_words_of_their_own():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", [0, 0, 0, 0], 2, CHAR)
        engine = bench.engine(bench.execute(Single, 2, first=x[1], second=x[2]), mode, options)
        engine.run()
        return engine.readTensor("x").tolist()

    assert everywhere(work, ELEMENTS) == everywhere(work) == [0, 1, 2, 0]


def test_two_plain_fields_in_one_word_are_found():
    def work(mode, options):
        bench = Bench()
        out = bench.variable("out", 0, 2)
        bench.engine(bench.execute(PlainChars, 2, out=out, first=0, second=0), mode, options).run()

    with pytest.raises(AtomicStoreError, match="worker 1 field 'first' and worker 2 field 'second'"):
        everywhere(work, ELEMENTS)


@pytest.mark.parametrize("begin", range(5))
@pytest.mark.parametrize("tiles", [[2] * 300, [2] * 151 + [4] * 149])
def test_the_workers_of_popops_store_words_of_their_own_wherever_a_view_begins(begin, tiles):
    def work(mode, options):
        bench = Bench()
        x, y = bench.variable("x", np.arange(300.0), tiles, HALF), bench.variable("y", np.ones(300), 3, HALF)
        program = Sequence()
        popops.addCodelets(bench.graph)
        popops.addInPlace(bench.graph, x[begin:290], y[0 : 290 - begin], program)
        engine = bench.engine(program, mode, options)
        engine.run()
        return engine.readTensor("x")

    expected = np.arange(300.0)
    expected[begin:290] += 1
    np.testing.assert_array_equal(everywhere(work, ELEMENTS), expected)


def test_more_workers_than_marks_tell_apart_are_refused():
    model = IPUModel("tiny")
    model.numWorkerContexts = 65
    bench = Bench(model.createDevice())
    y, at = bench.variable("y", np.zeros(6), 2), bench.variable("at", [4, 3, 5, 1, 3, 0], 2)
    with pytest.raises(InvalidOption, match="'elements' tells 64 workers of a tile apart, the target has 65"):
        bench.engine(bench.execute(Alike, 2, y=y, at=at), "native", ELEMENTS)


def raced(log):
    """What the message says of the first race of a log."""
    name, row, index, worker, earlier = log.race
    element = "" if name in (*PLAIN, "total") else f"element {index} of "
    place = f"{element}{f'row {row} of ' if name in ('rows', 'halves') else ''}field '{name}'"
    return f"worker {worker} ", f" {place}, which worker {earlier} has "


@examples(25)
@given(st.integers(0, 2**32 - 1), st.integers(0, 9), st.booleans())
def test_races_of_workers_are_found_exactly_where_a_log_of_every_access_has_them(seed, data, settled):
    written, values = worker_codelet(seed, settled=settled), worker_values(data)
    log, left = written.log(values)
    codelet = written.codelet()

    def work(mode, options):
        bench = Bench(tiny())
        engine = bench.engine(bench.execute(codelet, 3, **connected(bench, values)), mode, options)
        engine.run()
        return [engine.readTensor(name).tolist() for name in ("y", "chars", "total")]

    if log.race:
        with pytest.raises(GraphCycleError) as caught:
            everywhere(work, ELEMENTS)
        assert not isinstance(caught.value, AtomicStoreError)
        assert all(part in str(caught.value) for part in raced(log))
    elif left is None:
        with pytest.raises(PoplarError) as failed:
            everywhere(work, ELEMENTS)
        assert not isinstance(failed.value, GraphCycleError)
    elif log.shared_word:
        with pytest.raises(AtomicStoreError):
            everywhere(work, ELEMENTS)
    else:
        assert everywhere(work, ELEMENTS) == [left["y"], left["chars"], *left["total"]]
