"""Records in programs: bytes that lie anywhere arrive where records may lie, and come back with all that was not written."""

import io
import re

import numpy as np
import pytest
from engine_builder import Bench, everywhere
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
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    Array,
    AtomicStoreError,
    CodeletIndexError,
    CodeletRuntimeError,
    Executable,
    GraphConnectionError,
    GraphCycleError,
    InOut,
    Input,
    MultiVertex,
    Output,
    PoplarTypeError,
    Record,
    TensorShapeError,
    UninitialisedReadError,
    Vector,
    VectorList,
    Vertex,
    compileGraph,
    ipu,
    testing,
)
from pypoplar.engine.engine import Engine
from pypoplar.program import Execute, Sequence

ELEMENTS = {"pypoplar.races": "elements"}


class Ray(Record):
    kind: UNSIGNED_CHAR
    origin: Array[FLOAT, 3]
    hit: INT


class Wide(Record):
    flag: BOOL
    sum: LONGLONG
    half: HALF


class Pair(Record):
    low: CHAR
    high: CHAR


class Advance(Vertex):
    rays: InOut[Vector[Ray]]

    def compute(self):
        for i in range(len(self.rays)):
            ray = self.rays[i]
            ray.origin[1] += ray.origin[0]
            ray.hit = ray.hit * 2 + int(ray.kind)


class Count(Vertex):
    wide: InOut[Vector[Wide]]

    def compute(self):
        for one in self.wide:
            one.sum += 1 if one.flag else 2
            one.half = 0.5


class Collect(Vertex):
    given: Input[Vector[Ray]]
    made: Output[Vector[Pair]]
    total: Output[INT]

    def compute(self):
        self.total = 0
        for i in range(len(self.given)):
            self.total += self.given[i].hit
            self.made[i].high = self.given[i].kind


class Parts(Vertex):
    bytes: InOut[Vector[UNSIGNED_CHAR]]
    first: INT
    end: INT

    def compute(self):
        view = ipu.view(self.bytes[self.first : self.end], Ray)
        for ray in view:
            ray.hit += 1


def rays(count):
    """Records whose padding has values, too."""
    raw = np.random.default_rng(count).integers(0, 100, count * Ray.dtype.itemsize, np.uint8)
    raw.view(Ray.dtype)["hit"] = np.arange(count) + 3
    raw.view(Ray.dtype)["origin"] = np.arange(3 * count).reshape(count, 3)
    return raw


def advanced(raw):
    array = raw.copy().view(Ray.dtype)
    array["origin"][:, 1] += array["origin"][:, 0]
    array["hit"] = array["hit"] * np.int32(2) + array["kind"]
    return array.view(np.uint8)


@pytest.mark.parametrize("type", [UNSIGNED_CHAR, CHAR, SIGNED_CHAR], ids=repr)
@pytest.mark.parametrize("home", [3, 4])
def test_records_lie_in_tensors_of_chars(type, home):
    raw = rays(5)

    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("rays", raw.view(type.dtype), home, type)
        engine = bench.engine(bench.execute(Advance, 3, rays=bytes), mode, options)
        engine.run()
        return engine.readTensor("rays")

    assert everywhere(work).view(np.uint8).tolist() == advanced(raw).tolist()


@examples(40)
@given(st.integers(0, 9), st.integers(0, 3), st.lists(st.integers(2, 4), min_size=1, max_size=4), st.integers(0, 5), st.booleans())
def test_records_may_begin_at_any_byte_of_any_variable(before, count, tiles, behind, reads_all):
    """The vertex is on tile 3; what lies there or elsewhere, aligned or not, comes and goes as it does in NumPy."""
    raw = rays(count)
    whole = np.concatenate((np.full(before, 7, np.uint8), raw, np.full(behind, 9, np.uint8)))
    tile = np.repeat(tiles, -(-max(len(whole), 1) // len(tiles)))[: len(whole)]

    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("bytes", whole, tile if len(whole) else 3, UNSIGNED_CHAR)
        part = bytes[before : before + len(raw)]
        engine = bench.engine(bench.execute(Advance, 3, rays=part), mode, options | (ELEMENTS if reads_all else {}))
        engine.run()
        return engine.readTensor("bytes")

    expected = np.concatenate((whole[:before], advanced(raw), whole[before + len(raw) :]))
    assert everywhere(work).tolist() == expected.tolist()


@pytest.mark.parametrize("before", [0, 4, 12, 1])
@pytest.mark.parametrize("home", [3, 5])
def test_records_with_long_numbers_are_aligned_to_eight(before, home):
    array = np.zeros(3, Wide.dtype)
    array["flag"], array["sum"] = [True, False, True], [1 << 40, -3, 5]

    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("w", np.concatenate((np.zeros(before, np.uint8), array.view(np.uint8))), home, UNSIGNED_CHAR)
        engine = bench.engine(bench.execute(Count, 3, wide=bytes[before:]), mode, options)
        engine.run()
        return engine.readTensor("w")[before:]

    result = everywhere(work).view(Wide.dtype)
    assert result["sum"].tolist() == [(1 << 40) + 1, -1, 6]
    assert result["half"].tolist() == [0.5] * 3


def collecting(bench, home=2, vertex=2, before=0):
    raw = rays(4)
    given = bench.variable("given", np.concatenate((np.zeros(before, np.uint8), raw)), home, UNSIGNED_CHAR)
    made = bench.variable("made", np.full(8, 77), home, UNSIGNED_CHAR)
    total = bench.variable("total", 0, home)
    return raw, bench.execute(Collect, vertex, given=given[before:], made=made, total=total)


@pytest.mark.parametrize(("home", "before"), [(2, 0), (2, 3), (6, 0), (6, 1)])
def test_an_output_keeps_what_is_not_written(home, before):
    def work(mode, options):
        bench = Bench()
        _, program = collecting(bench, home, before=before)
        engine = bench.engine(program, mode, options)
        engine.run()
        return engine.readTensor("made"), engine.readTensor("total")

    made, total = everywhere(work)
    array = rays(4).view(Ray.dtype)
    assert made.tolist() == [value for kind in array["kind"] for value in (77, kind)]
    assert total == array["hit"].sum()


class Longer(Vertex):
    """Writes as many numbers as there are records; the bytes of one are more."""

    rays: Input[Vector[Ray]]
    y: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.rays)):
            self.y[i] = 1


def test_how_many_records_there_are_is_no_number_of_elements_that_are_written():
    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("rays", rays(1), 1, UNSIGNED_CHAR)
        y = bench.variable("y", np.arange(20), 2)
        other = bench.variable("other", np.zeros(20), 2)
        first = bench.execute(Longer, 2, rays=bytes, y=y)
        engine = bench.engine(Sequence([first, first]), mode, options)
        engine.run()
        del other
        return engine.readTensor("y")

    assert everywhere(work).tolist() == [1, *range(1, 20)]


class OneTensor(Vertex):
    before: Input[Vector[Ray]]
    after: Output[Vector[Ray]]

    def compute(self):
        for i in range(len(self.before)):
            self.after[i].hit = self.before[i].hit + 1


class ReadsBack(Vertex):
    before: Input[Vector[UNSIGNED_CHAR]]
    after: Output[Vector[Ray]]

    def compute(self):
        self.after[1].hit = 5
        self.after[0].hit = int(self.before[2 * len(self.before) // 2 - 1])


@pytest.mark.parametrize(("home", "first"), [(3, 0), (3, 2), (5, 0), (5, 2)])
def test_an_input_and_an_output_of_one_tensor_work_in_place_wherever_it_lies(home, first):
    def work(codelet):
        def inner(mode, options):
            bench = Bench()
            bytes = bench.variable("rays", np.concatenate((np.zeros(first, np.uint8), rays(2))), home, UNSIGNED_CHAR)
            program = bench.execute(codelet, 3, before=bytes[first:], after=bytes[first:])
            engine = bench.engine(program, mode, options)
            engine.run()
            return engine.readTensor("rays")[first:]

        return inner

    array = rays(2).view(Ray.dtype)
    assert everywhere(work(OneTensor)).view(Ray.dtype)["hit"].tolist() == (array["hit"] + 1).tolist()
    assert everywhere(work(OneTensor), ELEMENTS).view(Ray.dtype)["hit"].tolist() == (array["hit"] + 1).tolist()
    assert everywhere(work(ReadsBack)).view(Ray.dtype)["hit"].tolist() == [0, 5]
    with pytest.raises(CodeletRuntimeError, match="element 39 of an Input is read after the vertex has written it"):
        everywhere(work(ReadsBack), ELEMENTS)


class Even(Vertex):
    rays: InOut[Vector[Ray]]
    which: INT

    def compute(self):
        self.rays[self.which].hit = self.which


class ReadKind(Vertex):
    rays: Input[Vector[Ray]]
    out: Output[INT]
    field: INT

    def compute(self):
        self.out = int(self.rays[0].kind) if self.field == 0 else self.rays[0].hit


def racing(codelets, options=ELEMENTS):
    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("bytes", rays(2), 1, UNSIGNED_CHAR)
        out = bench.variable("out", 0, 1)
        compute_set = bench.graph.addComputeSet("race")
        for tile, (codelet, number) in enumerate(codelets):
            fields = {"which": number} if codelet is Even else {"field": number, "out": out}
            bench.vertex(compute_set, codelet, tile + 1, rays=bytes, **fields)
        engine = bench.engine(Execute(compute_set), mode, options)
        engine.run()
        return engine.readTensor("bytes")

    return everywhere(work, options)


def test_races_are_judged_by_bytes():
    expected = rays(2).view(Ray.dtype)
    expected["hit"] = [0, 1]
    assert racing([(Even, 0), (Even, 1)]).tolist() == expected.view(np.uint8).tolist()
    racing([(Even, 0), (ReadKind, 0)])
    with pytest.raises(GraphCycleError, match=re.escape("[16:20) of variable 'bytes'")):
        racing([(Even, 0), (ReadKind, 1)])
    with pytest.raises(GraphCycleError):
        racing([(Even, 0), (Even, 1)], {})


class SetPair(Vertex):
    pairs: InOut[Vector[Pair]]

    def compute(self):
        for pair in self.pairs:
            pair.low += 1


def test_records_of_two_vertices_in_one_word_are_sub_word_stores():
    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("pairs", np.zeros(8), 1, CHAR)
        compute_set = bench.graph.addComputeSet("set")
        for begin, end in ((0, 2), (2, 8)) if options.pop("near") else ((0, 4), (4, 8)):
            bench.vertex(compute_set, SetPair, 1, pairs=bytes[begin:end])
        engine = bench.engine(Execute(compute_set), mode, options)
        engine.run()
        return engine.readTensor("pairs")

    assert everywhere(work, {"near": False}).tolist() == [1, 0] * 4
    with pytest.raises(AtomicStoreError):
        everywhere(work, {"near": True})


def test_unwritten_bytes_are_no_numbers():
    def work(mode, options):
        bench = Bench()
        bytes = bench.graph.addVariable(UNSIGNED_CHAR, [40], "rays")
        bench.graph.setTileMapping(bytes, 1)
        engine = bench.engine(bench.execute(Advance, 1, rays=bytes), mode, options)
        engine.run()

    with pytest.raises(UninitialisedReadError, match=r"element 1 is read|element 0 is read"):
        everywhere(work, {"pypoplar.uninitialised": "error"})
    everywhere(work)


FAULTS = [
    (0, 20, None),
    (20, 40, None),
    (0, 40, None),
    (8, 8, None),
    (
        1,
        21,
        "a view of bytes as records begins 1 byte behind a multiple of 4, where such a record may lie: cut the bytes at multiples",
    ),
    (2, 40, "a view of bytes as records begins 2 bytes behind a multiple of 4"),
    (4, 40, "a view of 36 bytes as records of 20: they are no whole number of records"),
]


@pytest.mark.parametrize(("begin", "end", "message"), FAULTS)
def test_a_view_begins_at_its_alignment_and_holds_whole_records(begin, end, message):
    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("bytes", rays(2), 1, UNSIGNED_CHAR)
        engine = bench.engine(bench.execute(Parts, 1, bytes=bytes, first=begin, end=end), mode, options)
        engine.run()
        return engine.readTensor("bytes")

    if message is None:
        expected = rays(2)
        expected[begin:end].view(Ray.dtype)["hit"] += 1
        assert everywhere(work).tolist() == expected.tolist()
        return
    with pytest.raises(CodeletRuntimeError, match=re.escape(message)) as caught:
        everywhere(work)
    assert "view = ipu.view(self.bytes[self.first : self.end], Ray)" in str(caught.value)
    assert "vertex 0 on tile 1" in str(caught.value)


@pytest.mark.parametrize("home", [1, 6])
@pytest.mark.parametrize("before", [0, 1, 6])
def test_bytes_with_views_are_aligned_wherever_they_lie(home, before):
    raw = np.concatenate((np.zeros(before, np.uint8), rays(2)))

    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("bytes", raw, home, UNSIGNED_CHAR)
        row = bench.variable("row", raw.view(np.int8), home, CHAR)
        total = bench.variable("total", 0, 1)
        programs = [bench.execute(Parts, 1, bytes=bytes[before:], first=20, end=40)]
        programs.append(bench.execute(Rows, 1, rows=[row[before:]], total=total))
        engine = bench.engine(Sequence(programs), mode, options)
        engine.run()
        return engine.readTensor("bytes"), engine.readTensor("total")

    expected = raw.copy()
    expected[before + 20 :].view(Ray.dtype)["hit"] += 1
    bytes, total = everywhere(work)
    assert bytes.tolist() == expected.tolist()
    assert total == 7


class Stated(Vertex):
    small: CHAR
    buffer: Vector[UNSIGNED_CHAR]
    out: Output[INT]

    def compute(self):
        ray = ipu.view(self.buffer, Ray)[1]
        ray.hit += 1
        self.out = ray.hit


def test_plain_vectors_of_bytes_have_views():
    def work(mode, options):
        bench = Bench()
        out = bench.variable("out", 0, 1)
        engine = bench.engine(bench.execute(Stated, 1, small=1, buffer=rays(2), out=out), mode, options)
        engine.run()
        engine.run()
        return engine.readTensor("out")

    assert everywhere(work) == 6


class Shares(MultiVertex):
    rays: InOut[Vector[Ray]]
    pairs: InOut[Vector[Pair]]
    field: INT

    def compute(self, worker):
        for i in range(worker, len(self.rays), 6):
            if self.field == 0:
                self.rays[i].kind = worker
                self.rays[i].hit += 1
            elif self.field == 1:
                self.rays[0].hit = 1
            else:
                self.pairs[i].low = 1


def shared(field, options=ELEMENTS):
    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("rays", np.concatenate((np.zeros(2, np.uint8), rays(8))), 2, UNSIGNED_CHAR)
        pairs = bench.variable("pairs", np.zeros(18), 2, CHAR)
        engine = bench.engine(bench.execute(Shares, 1, rays=bytes[2:], pairs=pairs[2:], field=field), mode, options)
        engine.run()
        return engine.readTensor("rays")[2:]

    return everywhere(work, options)


def test_workers_that_share_records_do_not_race_but_for_their_bytes_and_words():
    expected = rays(8).view(Ray.dtype)
    expected["kind"], expected["hit"] = np.arange(8) % 6, expected["hit"] + 1
    assert shared(0).tolist() == expected.view(np.uint8).tolist()
    with pytest.raises(GraphCycleError, match="worker 1 writes byte 16 of record 0 of field 'rays', which worker 0 has written"):
        shared(1)
    with pytest.raises(AtomicStoreError, match="two workers store into one 32-bit word"):
        shared(2)


def test_an_index_beyond_the_records_is_an_error_of_the_run():
    class Beyond(Vertex):
        rays: InOut[Vector[Ray]]
        n: INT

        def compute(self):
            self.rays[self.n].hit = 1

    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("bytes", rays(2), 1, UNSIGNED_CHAR)
        engine = bench.engine(bench.execute(Beyond, 1, rays=bytes, n=2), mode, options)
        engine.run()

    with pytest.raises(CodeletIndexError, match="index 2 is out of range for a length of 2"):
        everywhere(work)


def connected(value):
    bench = Bench()
    compute_set = bench.graph.addComputeSet("set")
    bench.vertex(compute_set, Advance, rays=value(bench))


FIELD = r"field 'rays' \(records of Ray\) of Advance, vertex 0 of compute set 'set', added at .*:\d+"
CONNECTIONS = [  # what is connected, message
    (
        lambda bench: bench.variable("v", np.zeros(30), 0, UNSIGNED_CHAR),
        r": 30 bytes are no whole number of Ray records of 20, got .*v.*; make it 20 or 40",
    ),
    (
        lambda bench: bench.variable("v", np.zeros(19), 0, UNSIGNED_CHAR),
        r": 19 bytes are no whole number of Ray records of 20, got .*v.*; make it 20$",
    ),
    (
        lambda bench: bench.variable("v", np.zeros(40)),
        r" takes a tensor of UNSIGNED_CHARs or CHARs, 20 bytes for each Ray; got .*v",
    ),
    (
        lambda bench: bench.variable("v", np.zeros((2, 20)), 0, CHAR),
        r" needs a tensor of rank 1, got .* of rank 2; use flatten\(\)",
    ),
    (lambda bench: rays(2), r" takes a tensor of UNSIGNED_CHARs or CHARs, 20 bytes for each Ray; got array"),
    (lambda bench: 3, r" takes a tensor of UNSIGNED_CHARs or CHARs, 20 bytes for each Ray; got 3"),
    (lambda bench: Bench().variable("v", np.zeros(20), 0, CHAR), r": .*v.* belongs to another graph"),
]


@pytest.mark.parametrize(("value", "message"), CONNECTIONS, ids=[message for _, message in CONNECTIONS])
def test_only_the_bytes_of_whole_records_are_connected(value, message):
    with pytest.raises(GraphConnectionError, match=FIELD + message):
        connected(value)


def test_an_empty_tensor_has_no_records():
    connected(lambda bench: bench.variable("v", np.zeros(0), 0, CHAR))


def test_braces_are_refused():
    with pytest.raises(PoplarTypeError, match="a set has no order"):
        connected(lambda bench: {1, 2})


def test_many_vertices_get_a_row_of_bytes_each():
    raw = rays(6)

    def work(mode, options):
        bench = Bench()
        bytes = bench.variable("bytes", raw.reshape(3, 40), 1, UNSIGNED_CHAR)
        compute_set = bench.graph.addComputeSet("set")
        bench.graph.add_vertices(compute_set, Advance, {"rays": bytes}, tiles=[1, 2, 3])
        engine = bench.engine(Execute(compute_set), mode, options)
        engine.run()
        return engine.readTensor("bytes")

    assert everywhere(work).ravel().tolist() == advanced(raw).tolist()
    bench = Bench()
    for name, shape, message in (
        ("a", (3, 30), "field 'rays' of 3 vertices: 30 bytes are no whole number of Ray records of 20"),
        ("b", (60,), "field 'rays' of 60 vertices needs a tensor of rank 2"),
    ):
        bytes = bench.variable(name, np.zeros(shape), 1, UNSIGNED_CHAR)
        with pytest.raises(GraphConnectionError, match=message):
            bench.graph.add_vertices(bench.graph.addComputeSet("set"), Advance, {"rays": bytes}, tiles=0)


def test_estimators_see_how_many_records_there_are():
    class Estimated(Vertex):
        rays: Input[Vector[Ray]]
        bytes: Input[Vector[CHAR]]

        def compute(self):
            pass

        def cycles(self, vertex):
            return 100 * vertex.fieldSize("rays") + vertex.fieldSize("bytes")

    bench = Bench()
    bytes = bench.variable("bytes", np.zeros(60), 1, CHAR)
    program = bench.execute(Estimated, 1, rays=bytes, bytes=bytes)
    assert compileGraph(bench.graph, program).computes.estimate.tolist() == [360]


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_a_saved_executable_has_its_records(mode):
    bench = Bench()
    raw = rays(3)
    bytes = bench.variable("rays", np.concatenate((np.zeros(1, np.uint8), raw)), 4, UNSIGNED_CHAR)
    programs = [bench.execute(Advance, 3, rays=bytes[1:]), bench.execute(Parts, 2, bytes=bytes[1:], first=20, end=60)]
    file = io.BytesIO()
    compileGraph(bench.graph, Sequence(programs)).serialize(file)
    file.seek(0)
    engine = Engine(Executable.deserialize(file), mode=mode)
    engine.load(bench.device)
    engine.run()
    expected = advanced(raw)
    expected[20:].view(Ray.dtype)["hit"] += 1
    assert engine.readTensor("rays")[1:].tolist() == expected.tolist()


class Rows(Vertex):
    rows: InOut[VectorList[CHAR]]
    total: Output[INT]

    def compute(self):
        self.total = 0
        for row in self.rows:
            for ray in ipu.view(row, Ray):
                self.total += ray.hit
                ray.hit = 0


def test_rows_of_bytes_are_seen_as_records():
    def work(mode, options):
        bench = Bench()
        rows = [bench.variable(f"row{count}", rays(count).view(np.int8), 3, CHAR) for count in (1, 3, 0)]
        total = bench.variable("total", 0, 3)
        engine = bench.engine(bench.execute(Rows, 3, rows=rows, total=total), mode, options)
        engine.run()
        return engine.readTensor("total"), engine.readTensor("row3")

    total, row = everywhere(work, ELEMENTS)
    assert total == rays(1).view(Ray.dtype)["hit"].sum() + rays(3).view(Ray.dtype)["hit"].sum()
    assert row.view(Ray.dtype)["hit"].tolist() == [0, 0, 0]


def test_a_vertex_is_tested_with_arrays_of_records():
    array = np.zeros(3, Ray.dtype)
    array["hit"], array["kind"] = [1, 2, 3], 1
    result = testing.run_vertex(Advance, {"rays": array})["rays"]
    assert result.dtype == Ray.dtype
    assert result["hit"].tolist() == [3, 5, 7]
    assert testing.run_vertex(Advance, {"rays": [(1, (0, 0, 0), 5)]})["rays"]["hit"].tolist() == [11]
    with pytest.raises(PoplarTypeError, match=r"field 'rays' takes an array of Ray.dtype"):
        testing.run_vertex(Advance, {"rays": ["a"]})
    with pytest.raises(TensorShapeError, match=r"takes a sequence of records, got an array of shape \[1, 1\]"):
        testing.run_vertex(Advance, {"rays": array[:1].reshape(1, 1)})
