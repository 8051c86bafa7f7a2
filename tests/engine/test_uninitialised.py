"""Memory that nothing has written: NaN or all bits set, and an error to read where asked for."""

import io

import numpy as np
import pytest
from engine_builder import Bench, everywhere

from pypoplar import BOOL, FLOAT, HALF, INT, InOut, Input, Output, UninitialisedReadError, Vector, VectorList, Vertex
from pypoplar.program import Copy, If, PrintTensor, Sequence, WriteUndef

STRICT = {"pypoplar.uninitialised": "error"}


class Sum(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]
    count: INT

    def compute(self):
        total = 0.0
        for i in range(self.count):
            total += self.x[i]
        self.out = total


class SumRows(Vertex):
    rows: Input[VectorList[HALF]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for row in self.rows:
            for value in row:
                total += value
        self.out = total


class Fill(Vertex):
    x: Output[Vector[FLOAT]]
    count: INT

    def compute(self):
        for i in range(self.count):
            self.x[i] = 1.0


class Flip(Vertex):
    flag: InOut[BOOL]

    def compute(self):
        self.flag = not self.flag


class Increment(Vertex):
    x: InOut[INT]

    def compute(self):
        self.x += 1


def empty(bench, name, type, shape, tile=3):
    tensor = bench.graph.addVariable(type, shape, name)
    bench.graph.setTileMapping(tensor, tile)
    bench.handles(name, tensor)
    return tensor


def summed(count, prepare=None, options=STRICT, codelet=Sum):
    def work(mode, options):
        bench = Bench()
        x, out = empty(bench, "x", FLOAT, [4]), empty(bench, "out", FLOAT, [], 5)
        before = [] if prepare is None else [prepare(bench, x)]
        engine = bench.engine(Sequence([*before, bench.execute(codelet, 7, x=x, out=out, count=count)]), mode, options)
        engine.run()
        return engine.readTensor("out")

    return everywhere(work, options)


def test_reading_what_nothing_has_written_is_an_error():
    with pytest.raises(UninitialisedReadError) as caught:
        summed(3, lambda bench, x: bench.execute(Fill, 2, x=x, count=2))
    text = str(caught.value)
    assert "element 2 is read, but nothing has written it (option pypoplar.uninitialised)" in text
    assert "total += self.x[i]" in text
    assert "vertex 1 on tile 7" in text


def test_what_is_written_may_be_read_wherever_it_comes_from():
    assert summed(2, lambda bench, x: bench.execute(Fill, 2, x=x, count=2)) == 2
    assert summed(4, lambda bench, x: Copy(bench.variable("y", [1.0, 2.0, 3.0, 4.0]), x)) == 10


def test_what_is_not_read_may_be_unwritten():
    assert summed(0) == 0


def test_a_copy_brings_unwritten_memory_along():
    with pytest.raises(UninitialisedReadError):
        summed(1, lambda bench, x: Copy(empty(bench, "y", FLOAT, [4], 9), x))


def test_write_undef_makes_memory_unwritten():
    def prepare(bench, x):
        return Sequence([bench.execute(Fill, 2, x=x, count=4), WriteUndef(x[1:3])])

    assert summed(1, prepare) == 1
    with pytest.raises(UninitialisedReadError, match="element 1 is read"):
        summed(4, prepare)


def test_otherwise_it_is_nan():
    assert np.isnan(summed(1, options=None))
    assert np.isnan(summed(4, lambda bench, x: bench.execute(Fill, 2, x=x, count=3), options=None))


def test_rows_bools_and_halves_are_judged_too():
    def rows(mode, options):
        bench = Bench()
        h, out = empty(bench, "h", HALF, [2, 2]), empty(bench, "out", FLOAT, [])
        program = Sequence([Copy(bench.variable("one", [1, 1], type=HALF), h[0]), bench.execute(SumRows, 1, rows=h, out=out)])
        bench.engine(program, mode, options).run()

    with pytest.raises(UninitialisedReadError, match="element 0 is read"):
        everywhere(rows, STRICT)

    def flag(mode, options):
        bench = Bench()
        bench.engine(bench.execute(Flip, 1, flag=empty(bench, "flag", BOOL, [])), mode, options).run()

    with pytest.raises(UninitialisedReadError, match=r"self\.flag"):
        everywhere(flag, STRICT)


def test_integers_have_no_pattern_of_their_own_and_are_not_judged():
    def work(mode, options):
        bench = Bench()
        engine = bench.engine(bench.execute(Increment, 1, x=empty(bench, "x", INT, [])), mode, options)
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work, STRICT) == 0


def test_copies_prints_branches_and_the_host_may_read_unwritten_memory(mode):
    bench = Bench()
    x, flag = empty(bench, "x", FLOAT, [2]), empty(bench, "flag", BOOL, [])
    bench.log()
    engine = bench.engine(Sequence([PrintTensor("x", x), If(flag, bench.enter(1)), Copy(x.reverse(0), x.reverse(0))]), mode, STRICT)
    out = io.StringIO()
    engine.setPrintStream(out)
    engine.run()
    assert out.getvalue() == "x: [nan nan]\n"
    assert np.isnan(engine.readTensor("x")).all()


def test_what_the_host_writes_is_written(mode):
    bench = Bench()
    x, out = empty(bench, "x", FLOAT, [4]), empty(bench, "out", FLOAT, [])
    engine = bench.engine(bench.execute(Sum, 1, x=x, out=out, count=4), mode, STRICT)
    with pytest.raises(UninitialisedReadError):
        engine.run()
    engine.writeTensor("x", [1, 2, 3, np.nan])
    engine.run()
    assert np.isnan(engine.readTensor("out"))
    engine.load()
    with pytest.raises(UninitialisedReadError):
        engine.run()
