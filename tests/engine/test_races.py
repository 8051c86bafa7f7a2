"""`pypoplar.races = "elements"`: what vertices touch while they run is what is judged."""

import numpy as np
import pytest
from engine_builder import Bench, everywhere
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    AtomicStoreError,
    GraphCycleError,
    InOut,
    Input,
    Output,
    PoplarError,
    Vector,
    VectorList,
    Vertex,
    concat,
)
from pypoplar.program import Copy, Execute, PrintTensor, Repeat, Sequence

ELEMENTS = {"pypoplar.races": "elements"}


class Every(Vertex):
    """Doubles every `step`-th element from `start` on."""

    x: InOut[Vector[FLOAT]]
    start: INT
    step: INT

    def compute(self):
        for i in range(self.start, len(self.x), self.step):
            self.x[i] *= 2.0


class EveryHalf(Vertex):
    x: Output[Vector[HALF]]
    start: INT

    def compute(self):
        for i in range(self.start, len(self.x), 2):
            self.x[i] = HALF(i)


class EveryRow(Vertex):
    rows: InOut[VectorList[FLOAT]]
    start: INT

    def compute(self):
        for r in range(len(self.rows)):
            for i in range((self.start + r) % 2, len(self.rows[r]), 2):
                self.rows[r][i] += 1.0


class Touch(Vertex):
    """Reads and writes the listed elements of its region."""

    x: InOut[Vector[FLOAT]]
    reads: Input[Vector[INT]]
    writes: Input[Vector[INT]]
    total: Output[FLOAT]
    value: FLOAT

    def compute(self):
        total = 0.0
        for i in self.reads:
            total += self.x[i]
        for i in self.writes:
            self.x[i] = self.value
        self.total = total


class Pick(Vertex):
    x: Input[Vector[FLOAT]]
    where: Input[INT]
    out: Output[FLOAT]

    def compute(self):
        self.out = self.x[self.where]


def by_turns(bench, codelet, tensors, tiles, **more):
    """A compute set of two vertices that take even and odd elements of their tensors."""
    compute_set = bench.graph.addComputeSet("turns")
    for start, (tensor, tile) in enumerate(zip(tensors, tiles, strict=True)):
        field = "rows" if isinstance(tensor, list) else "x"
        bench.vertex(compute_set, codelet, tile, **{field: tensor}, start=start, **more)
    return Execute(compute_set)


@pytest.mark.parametrize("tiles", [(3, 3), (3, 9), (8, 9)])
@pytest.mark.parametrize("mapping", [3, [3, 9] * 5, [8] * 4 + [0] * 6])
def test_even_and_odd_elements_of_one_region_do_not_race(tiles, mapping):
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(10.0), mapping)
        program = by_turns(bench, Every, [x, x], tiles, step=2)
        engine = bench.engine(Repeat(2, program), mode, options)
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work, ELEMENTS).tolist() == [4.0 * i for i in range(10)]
    with pytest.raises(GraphCycleError):
        everywhere(work)


@pytest.mark.parametrize("tiles", [(3, 3), (8, 9)])
def test_halves_and_rows_may_be_shared_by_turns(tiles):
    def work(mode, options):
        bench = Bench()
        h = bench.variable("h", np.full(9, -1), [3, 3, 4, 4, 4, 3, 3, 3, 3], HALF)
        rows = bench.variable("rows", np.zeros((3, 5)), 4)
        lists = [rows[0], rows[1, 0:4], rows[2, 1:5]]
        programs = [by_turns(bench, EveryHalf, [h, h], tiles), by_turns(bench, EveryRow, [lists, lists], tiles)]
        engine = bench.engine(Sequence(programs), mode, options)
        engine.run()
        return engine.readTensor("h"), engine.readTensor("rows")

    h, rows = everywhere(work, ELEMENTS)
    assert h.tolist() == list(range(9))
    assert rows.tolist() == [[1] * 5, [1, 1, 1, 1, 0], [0, 1, 1, 1, 1]]


def test_regions_that_overlap_in_different_orders_share_by_turns():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.ones(10), np.arange(10) % 4)
        forward, backward = x[1:9], concat([x[9:10], x[0:8].reverse(0)])  # even places of both: 1 3 5 7, 9 6 4 2 0
        engine = bench.engine(by_turns(bench, Every, [forward, backward[1:]], (2, 5), step=2), mode, options)
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work, ELEMENTS).tolist() == [2, 2, 2, 2, 2, 2, 2, 2, 1, 1]


def race(tiles, mapping=3):
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(10.0), mapping)
        compute_set = bench.graph.addComputeSet("racing")
        bench.vertex(compute_set, Every, tiles[0], x=x, start=0, step=2)
        bench.vertex(compute_set, Every, tiles[1], x=x[4:10], start=2, step=3)
        bench.engine(Execute(compute_set), mode, options).run()

    return work


@pytest.mark.parametrize("tiles", [(3, 3), (3, 9)])
def test_an_element_that_two_vertices_write_is_named(tiles):
    with pytest.raises(GraphCycleError) as caught:
        everywhere(race(tiles), ELEMENTS)
    text = str(caught.value)
    assert "[6:7) of variable 'x'" in text
    assert "in same compute set 'racing'" in text
    assert text.count("Field Every.x") == 2
    assert "engine_builder.py:" in text


def test_a_race_is_found_in_the_round_in_which_it_happens():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(4.0), 3)
        where = bench.variable("where", 0, 5)
        picked = bench.variable("picked", 0.0, 5)
        compute_set = bench.graph.addComputeSet("picking")
        bench.vertex(compute_set, Pick, 5, x=x, where=where, out=picked)
        bench.vertex(compute_set, Every, 3, x=x, start=3, step=1)
        engine = bench.engine(Execute(compute_set), mode, options)
        engine.run()
        engine.run()
        engine.writeTensor("where", 3)
        with pytest.raises(GraphCycleError) as caught:
            engine.run()
        engine.writeTensor("where", 2)
        engine.run()
        return str(caught.value), engine.readTensor("picked")

    text, picked = everywhere(work, ELEMENTS)
    assert "[3:4) of variable 'x'" in text
    assert "Pick.x" in text
    assert picked == 2


def test_reads_alone_never_race():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(4.0), 3)
        where = bench.variable("where", [1, 1, 1], 5)
        out = bench.variable("out", np.zeros(3), 6)
        compute_set = bench.graph.addComputeSet("reading")
        for number in range(3):
            bench.vertex(compute_set, Pick, number, x=x, where=where[number], out=out[number])
        engine = bench.engine(Execute(compute_set), mode, options)
        engine.run()
        return engine.readTensor("out")

    assert everywhere(work, ELEMENTS).tolist() == [1, 1, 1]


def test_one_vertex_does_not_race_with_itself():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(6.0), 3)
        engine = bench.engine(Repeat(3, bench.execute(Every, 7, x=x, start=0, step=1)), mode, options)
        engine.run()
        return engine.readTensor("x")

    assert everywhere(work, ELEMENTS).tolist() == [8.0 * i for i in range(6)]


def test_sub_words_of_different_elements_are_fine_by_elements_only():
    def work(mode, options):
        bench = Bench()
        h = bench.variable("h", np.zeros(6), 3, HALF)
        compute_set = bench.graph.addComputeSet("halves")
        for number in range(2):
            bench.vertex(compute_set, EveryHalf, 3, x=h[3 * number : 3 * number + 3], start=number)
        engine = bench.engine(Execute(compute_set), mode, options)
        engine.run()
        return engine.readTensor("h")

    assert everywhere(work, ELEMENTS).tolist() == [0, 0, 2, 0, 1, 0]
    with pytest.raises(AtomicStoreError):
        everywhere(work)


REGIONS = st.tuples(st.integers(0, 7), st.integers(1, 8)).map(lambda one: (one[0], min(one[0] + one[1], 8)))


@st.composite
def touching(draw):
    """Vertices: region, elements read and written in it, tile."""
    vertices = []
    for _ in range(draw(st.integers(1, 4))):
        begin, end = draw(REGIONS)
        places = st.lists(st.integers(0, end - begin - 1), max_size=3)
        vertices.append((begin, end, draw(places), draw(places), draw(st.integers(0, 2))))
    return vertices, draw(st.lists(st.integers(0, 2), min_size=8, max_size=8))


def races_by_hand(vertices):
    """Elements that two vertices touch and one of them writes."""
    found = set()
    for i, (begin, _, _, writes, _) in enumerate(vertices):
        for j, (other_begin, _, other_reads, other_writes, _) in enumerate(vertices):
            if i != j:
                touched = {other_begin + one for one in (*other_reads, *other_writes)}
                found |= {begin + one for one in writes} & touched
    return found


@examples(60)
@given(touching())
def test_races_are_found_exactly(drawn):
    vertices, mapping = drawn

    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(8.0), mapping)
        total = bench.variable("total", np.zeros(len(vertices)), 5)
        compute_set = bench.graph.addComputeSet("touch")
        for number, (begin, end, reads, writes, tile) in enumerate(vertices):
            lists = {name: bench.variable(f"{name}{number}", one, 7, INT) for name, one in (("reads", reads), ("writes", writes))}
            bench.vertex(compute_set, Touch, tile, x=x[begin:end], total=total[number], value=100.0 + number, **lists)
        engine = bench.engine(Execute(compute_set), mode, options)
        engine.run()
        return engine.readTensor("x"), engine.readTensor("total")

    racing = races_by_hand(vertices)
    if racing:
        with pytest.raises(GraphCycleError) as caught:
            everywhere(work, ELEMENTS)
        assert f"[{min(racing)}:" in str(caught.value)
        return
    x, total = everywhere(work, ELEMENTS)
    expected = np.arange(8.0)
    for number, (begin, _, reads, writes, _) in enumerate(vertices):
        assert total[number] == sum(begin + one for one in reads)
        expected[[begin + one for one in writes]] = 100 + number
    assert x.tolist() == expected.tolist()


def test_copies_and_prints_touch_nothing(mode):
    bench = Bench()
    x, y = bench.variable("x", np.arange(4.0), 3), bench.variable("y", np.zeros(4), 4)
    double, again = bench.execute(Every, 3, x=x, start=0, step=1), bench.execute(Every, 4, x=y, start=1, step=1)
    engine = bench.engine(Sequence([double, Copy(x, y), PrintTensor(y), again]), mode, ELEMENTS)
    engine.run()
    assert engine.readTensor("y").tolist() == [0, 4, 8, 12]


def test_a_fault_is_raised_before_races_are_judged():
    def work(mode, options):
        bench = Bench()
        x = bench.variable("x", np.arange(4.0), 3)
        where, out = bench.variable("where", 9), bench.variable("out", 0.0)
        compute_set = bench.graph.addComputeSet("both")
        bench.vertex(compute_set, Every, 3, x=x, start=0, step=1)
        bench.vertex(compute_set, Every, 4, x=x, start=0, step=1)
        bench.vertex(compute_set, Pick, 4, x=x, where=where, out=out)
        engine = bench.engine(Execute(compute_set), mode, options)
        with pytest.raises(PoplarError) as caught:
            engine.run()
        return str(caught.value)

    assert "index 9 is out of range" in everywhere(work, ELEMENTS)
