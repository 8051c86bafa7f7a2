"""Races between the workers of a MultiVertex that are certain when the Engine is made, and those that are not."""

import functools
import re
from pathlib import Path

import numpy as np
import pytest
from codelet_rig import vertex
from engine_builder import Bench
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from worker_oracle import connected, worker_codelet, worker_values

from pypoplar import (
    HALF,
    AtomicStoreError,
    Device,
    GraphCycleError,
    IPUModel,
    compileGraph,
)
from pypoplar.codelet.codelet import Codelet
from pypoplar.compiler.check.certain_races import _KEPT_SHAPES, MOST_SHAPES, _race_free
from pypoplar.program import Execute, Sequence

FIELDS = """
x: Input[Vector[INT]]
y: InOut[Vector[INT]]
halves: InOut[Vector[HALF]]
rows: InOut[VectorList[INT]]
total: InOut[INT]
n: INT
factor: FLOAT
count: INT
"""
PRELUDE = """
TABLE = (0, 2, 4, 6, 8, 10)
RACED = 3


def last(part, value):
    part[len(part) - 1] = value


def limited(value, most):
    if value < most:
        return value
    return most
"""


@functools.cache
def codelet_class(body):
    """One class for all vertices of this device code, so that what is known of some is there when others are judged."""
    return vertex(body, fields=FIELDS, prelude=PRELUDE, base="MultiVertex", head="self, worker")


def compiled(body, *, n=5, count=0, length=40, device=None, options=None):
    """Compile a vertex of this device code. Its `y` has `length` elements, its rows 3, 7 and 1."""
    bench = Bench(device)
    codelet = codelet_class(body)
    rows = bench.variable("rows", np.zeros(11, np.int32), 0)
    fields = {
        "x": bench.variable("x", np.zeros(8, np.int32), 0),
        "y": bench.variable("y", np.zeros(length, np.int32), 0),
        "halves": bench.variable("halves", np.zeros(length), 0, HALF),
        "rows": [rows[0:3], rows[3:10], rows[10:11]],
        "total": bench.variable("total", 0, 0),
    }
    return compileGraph(bench.graph, bench.execute(codelet, 0, **fields, n=n, factor=2.0, count=count), options)


CERTAIN = {
    "one element": ("self.y[0] = worker", "worker 1 writes element 0 of field 'y', which worker 0 has written"),
    "a scalar": ("self.total = worker", "worker 1 writes field 'total', which worker 0 has written"),
    "a plain field": ("self.count += 1", "worker 1 reads field 'count', which worker 0 has written"),
    "what another reads": (
        "self.y[worker] = self.y[(worker + 1) % 6]",
        "worker 5 reads element 0 of field 'y', which worker 0 has written",
    ),
    "two workers of six": (
        "if worker >= 4:\n    self.y[3] = 1",
        "worker 5 writes element 3 of field 'y', which worker 4 has written",
    ),
    "unequal shares": (
        "for i in range(worker, len(self.y), 5):\n    self.y[i] = 1",
        "worker 5 writes element 5 of field 'y', which worker 0 has written",
    ),
    "a share too long": (
        "for i in range(worker * self.n, min(worker * self.n + self.n + 1, len(self.y))):\n    self.y[i] = 1",
        "worker 1 writes element 5 of field 'y', which worker 0 has written",
    ),
    "a condition on worker and round": (
        "for i in range(len(self.y)):\n    if i // 2 % 5 == worker or i == 33 and worker == 5:\n        self.y[i] = 1",
        "worker 5 writes element 33 of field 'y', which worker 1 has written",
    ),
    "a row": (
        "self.rows[1][worker] = 1\nself.rows[worker % 3][0] = 2",
        "worker 3 writes element 0 of row 0 of field 'rows', which worker 0 has written",
    ),
    "a slice of a slice of a row": (
        "part = self.rows[1:][0][2:][worker // 2:]\npart[0] = 1",
        "worker 1 writes element 2 of row 1 of field 'rows', which worker 0 has written",
    ),
    "helper functions": (
        "last(self.y[:limited(worker + 1, RACED)], worker)",
        "worker 3 writes element 2 of field 'y', which worker 2 has written",
    ),
    "after what the data decide": (
        "k = 0\nif self.x[0] > 0:\n    k = 1\nelse:\n    self.y[worker] = 1\nself.y[7] = k",
        "worker 1 writes element 7 of field 'y', which worker 0 has written",
    ),
    "the first round of a while": (
        "i = 0\nwhile i < 3:\n    self.y[i] = 1\n    i += 1",
        "worker 1 writes element 0 of field 'y', which worker 0 has written",
    ),
    "before the first way out": (
        "for i in range(9):\n    self.y[i] = 1\n    if self.x[i] > 0:\n        break",
        "worker 1 writes element 0 of field 'y', which worker 0 has written",
    ),
    "a return that the worker decides": (
        "if worker < 4:\n    return\nself.y[0] = 1",
        "worker 5 writes element 0 of field 'y', which worker 4 has written",
    ),
    "a round that the worker decides": (
        "for i in range(9):\n    if i == worker:\n        break\n    self.y[i] = 1",
        "worker 2 writes element 0 of field 'y', which worker 1 has written",
    ),
    "downwards": (
        "for i in range(30, worker, -7):\n    self.y[i] = 1",
        "worker 1 writes element 2 of field 'y', which worker 0 has written",
    ),
    "nested": (
        "for i in range(3):\n    for j in range(worker, 8 + i, 6):\n        self.y[8 * i + j] = 1",
        "worker 2 writes element 16 of field 'y', which worker 0 has written",
    ),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_what_is_a_race_whatever_the_data_is_refused(name):
    body, message = CERTAIN[name]
    with pytest.raises(GraphCycleError, match=message) as caught:
        compiled(body)
    assert not isinstance(caught.value, AtomicStoreError)


OPEN = {
    "one worker": "if worker == 0:\n    self.y[0] = 1",
    "elements by turns": "for i in range(worker, len(self.y), 6):\n    self.y[i] += self.x[0]",
    "shares": "for i in range(worker * 7, min(worker * 7 + 7, len(self.y))):\n    self.y[i] += 1",
    "all read": "for i in range(len(self.x)):\n    self.y[worker] += self.x[i]",
    "an index from the data": "self.y[self.x[worker]] = 1",
    "an index from a plain field that the code writes": (
        "if worker == 0:\n    self.count = 1\nif worker > 3:\n    self.y[worker * self.n] = 1"
    ),
    "a condition on the data": "if self.x[0] > 0:\n    self.y[0] = 1",
    "a float": "if self.factor > 1.0:\n    self.y[0] = 1",
    "a bound from the data": "for i in range(self.x[0]):\n    self.y[i] = 1",
    "after a way out that the data decide": "if self.x[worker] > 0:\n    return\nself.y[0] = 1",
    "after a break that the data decide": "for i in range(9):\n    if self.x[0] > 0:\n        break\n    self.y[i] = 1",
    "a round after a break that the data decide": (
        "for i in range(9):\n    if i == 3:\n        self.y[0] = 1\n    if self.x[0] > 0:\n        break"
    ),
    "rounds that continue by the data": "for i in range(9):\n    if self.x[i] > 0:\n        continue\n    self.y[i] = 1",
    "a local that rounds carry on": "k = worker\nfor i in range(3):\n    self.y[k] = 1\n    k += 6",
    "a local that the data change": "k = worker\nif self.x[0] > 0:\n    k = 0\nself.y[k] = 1",
    "a row that the data choose": (
        "row = self.rows[1]\nif self.x[0] > 0:\n    row = self.rows[0]\nif worker < 3 and len(row) > 5:\n    row[0] = 1"
    ),
    "a worker that returns": "if worker != 3:\n    return\nself.y[0] = 1",
    "no rounds": "for i in range(self.n, 5):\n    self.y[i] = 1",
    "scratch": "part = ipu.array(INT, 4)\npart[0] = 1\nself.y[worker] = part[0]",
    "tables": "self.y[worker] = TABLE[0] + TABLE[worker]",
    "a vertex that fails": "self.y[worker + 36] = 1\nself.y[0] = 1",
    "a slice that fails": "part = self.y[30:50]\nself.y[0] = 1",
    "a row that fails": "self.rows[worker][0] = 1\nself.y[0] = 1",
    "a check that fails": "ipu.check(worker < 3, 'no')\nself.y[0] = 1",
    "two words of halves": "self.halves[2 * worker] = HALF(1)\nself.halves[2 * worker + 1] = HALF(1)",
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_what_is_none_or_is_left_to_the_data_is_accepted(name):
    compiled(OPEN[name])


@pytest.mark.parametrize(("n", "raced"), [(7, False), (-7, False), (0, True), (4, True), (-13, False), (20, True)])
def test_values_of_plain_fields_decide(n, raced):
    body = "self.y[(worker * self.n) % 40] = 1"
    if not raced:
        compiled(body, n=n)
        return
    with pytest.raises(GraphCycleError, match=r"worker \d writes element \d+ of"):
        compiled(body if n != 4 else "self.y[worker // self.n] = 1", n=n)


@pytest.mark.parametrize(
    ("body", "first", "second"),
    [
        ("for i in range(worker, len(self.halves), 6):\n    self.halves[i] += HALF(1)", (0, 0), (1, 1)),
        ("self.halves[3 * worker] = HALF(1)\nself.halves[3 * worker + 2] = HALF(1)", (0, 2), (1, 3)),
        ("if worker > 3:\n    self.halves[worker] = HALF(1)", (4, 4), (5, 5)),
    ],
)
def test_two_workers_that_surely_store_into_one_word_are_refused(body, first, second):
    names = [f"worker {worker} element {index} of field 'halves'" for worker, index in (first, second)]
    with pytest.raises(AtomicStoreError, match=f"two workers store into one 32-bit word.*{names[0]} and {names[1]}"):
        compiled(body)


def test_the_message_names_line_vertex_and_how_many_there_are():
    bench = Bench()
    codelet = vertex("self.y[0] = worker", fields=FIELDS, base="MultiVertex", head="self, worker")
    rows = bench.variable("rows", np.zeros((5, 4), np.int32), 0)
    y, total = bench.variable("y", np.zeros((5, 9), np.int32), 0), bench.variable("total", np.zeros(5, np.int32), 0)
    x, halves = bench.variable("x", [1], 0), bench.variable("halves", np.zeros((5, 2)), 0, HALF)
    compute_set = bench.graph.addComputeSet("raced")
    for number in range(5):
        fields = {"x": x, "y": y[number], "halves": halves[number], "rows": [rows[number]], "total": total[number]}
        bench.vertex(compute_set, codelet, number, **fields, n=number // 4, factor=0.5 * number, count=0)
    with pytest.raises(GraphCycleError) as caught:
        compileGraph(bench.graph, Execute(compute_set))
    text = str(caught.value)
    assert re.match(
        r"<codelet test \d+>:\d+: Test.compute: worker 1 writes element 0 of field 'y', which worker 0 has written: ", text
    )
    assert "the workers of a MultiVertex run at once, so what is read or left there depends on their timing" in text
    assert "\n    self.y[0] = worker\n  vertex 0 (Test) on tile 0 in compute set 'raced', added at " in text
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    line = next(number for number, line in enumerate(lines, 1) if line.endswith('addComputeSet("raced")'))
    assert "; the same holds for 3 more vertices (4 in all, on tiles 0-3); " in text
    assert text.endswith(f"; the compute set was made at {__file__}:{line}")


@pytest.mark.parametrize("mode", ["elements", "regions"])
def test_one_tensor_on_an_input_and_an_output_is_one(mode):
    bench = Bench()
    body = "self.y[worker] = self.x[worker + 1] + 1"
    codelet = vertex(body, fields="x: Input[Vector[INT]]\ny: Output[Vector[INT]]", base="MultiVertex", head="self, worker")
    x, y = bench.variable("x", np.zeros(8, np.int32), 0), bench.variable("y", np.zeros(8, np.int32), 0)
    apart, together = bench.execute(codelet, 0, x=x, y=y), bench.execute(codelet, 0, x=x, y=x)
    compileGraph(bench.graph, apart)
    if mode == "elements":
        compileGraph(bench.graph, Sequence([apart, together]), {"pypoplar.races": "elements"})
        return
    with pytest.raises(GraphCycleError, match="worker 1 writes element 1 of field 'y', which worker 0 has read"):
        compileGraph(bench.graph, Sequence([apart, together]))


def test_the_ends_of_very_long_loops_are_looked_at():
    body = "for i in range(worker * self.n, min(worker * self.n + self.n{}, len(self.y))):\n    self.y[i] = 1"
    compiled(body.format(""), n=10000, length=60000)
    with pytest.raises(GraphCycleError, match="worker 1 writes element 10000 of field 'y', which worker 0 has written"):
        compiled(body.format(" + 1"), n=10000, length=60000)
    with pytest.raises(GraphCycleError, match="writes element"):
        compiled("for i in range(2000000000):\n    for j in range(2000000000):\n        self.y[0] = 1")


def test_a_single_worker_does_not_race():
    compiled("self.y[0] = worker", device=Device.createCPUDevice())


def test_what_no_program_runs_and_what_is_judged_as_it_runs_is_not_refused():
    bench = Bench()
    codelet = vertex("self.y[0] = worker", fields="y: Output[Vector[INT]]", base="MultiVertex", head="self, worker")
    raced = bench.execute(codelet, 0, y=bench.variable("y", [0, 0], 0))
    compileGraph(bench.graph, Sequence())
    compileGraph(bench.graph, raced, {"pypoplar.races": "elements"})
    with pytest.raises(GraphCycleError):
        compileGraph(bench.graph, raced)


RECORDS = """
class Ray(Record):
    kind: UNSIGNED_CHAR
    origin: Array[FLOAT, 3]
    hit: INT


class Pair(Record):
    low: CHAR
    high: CHAR
"""
OF_RECORDS = {
    "a member": (
        "self.rays[worker // 2].hit = 1",
        *(GraphCycleError, "worker 1 writes byte 16 of record 0 of field 'rays', which worker 0 has written"),
    ),
    "an element of an array": (
        "part = self.rays[3:]\npart[0].origin[worker % 3] += 1.0",
        *(GraphCycleError, "worker 3 reads byte 4 of record 3 of field 'rays', which worker 0 has written"),
    ),
    "a view": (
        "view = ipu.view(self.bytes[4:24], Ray)\nif worker > 3:\n    view[0].origin[1] = 1.0",
        *(GraphCycleError, "worker 5 writes element 12 of field 'bytes', which worker 4 has written"),
    ),
    "bytes of a view": (
        "view = ipu.view(self.bytes[20:40], Ray)\nif worker == 0:\n    view[0].hit = 1\nif worker == 1:\n    self.bytes[39] = 1",
        *(GraphCycleError, "worker 1 writes element 39 of field 'bytes', which worker 0 has written"),
    ),
    "half words": (
        "self.pairs[worker].high = 1",
        *(AtomicStoreError, "worker 0 byte 1 of record 0 of field 'pairs' and worker 1 byte 1 of record 1 of field 'pairs'"),
    ),
    "records of their own": (
        "self.rays[worker].hit = int(self.rays[worker].origin[2])\nself.pairs[2 * worker].low = 1",
        *(None, ""),
    ),
    "members of their own": (
        "if worker < 3:\n    self.rays[0].origin[worker] = 1.0\nelif worker == 3:\n    self.rays[0].hit = 1",
        *(None, ""),
    ),
    "a view of no whole records": ("view = ipu.view(self.bytes[0:21], Ray)\nself.pairs[0].low = 1", None, ""),
    "a record that is not there": ("self.pairs[0].low = 1\nself.rays[worker + 1].hit = 1", None, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_RECORDS)
def test_records_are_judged_by_their_bytes(name):
    body, error, message = OF_RECORDS[name]
    fields = "rays: InOut[Vector[Ray]]\nbytes: InOut[Vector[UNSIGNED_CHAR]]\npairs: InOut[Vector[Pair]]"
    prelude = "from pypoplar import Array, Record\n" + RECORDS
    codelet = vertex(body, fields=fields, prelude=prelude, base="MultiVertex", head="self, worker")
    bench = Bench()
    tensors = {
        name: bench.variable(name, np.zeros(size, np.uint8), 0) for name, size in (("rays", 120), ("bytes", 40), ("pairs", 24))
    }
    program = bench.execute(codelet, 0, **tensors)
    if error is None:
        compileGraph(bench.graph, program)
        return
    with pytest.raises(error, match=message):
        compileGraph(bench.graph, program)
    with pytest.raises(error, match=message):
        bench.engine(program, "interpret", {"pypoplar.races": "elements"}).run()


@pytest.mark.parametrize("raced", [0, 1, 17, MOST_SHAPES - 1, MOST_SHAPES])
def test_vertices_of_other_sizes_are_judged_too_but_for_those_of_very_many(raced):
    bench = Bench()
    fields = "y: Output[Vector[INT]]\nlist: InOut[VectorList[INT]]\nn: INT"
    body = "if worker < 2 and len(self.list[1]) > 1:\n    self.y[min(len(self.y) - 1, worker)] = 1"
    codelet = vertex(body, fields=fields, base="MultiVertex", head="self, worker")
    compute_set = bench.graph.addComputeSet("many")
    for number in range(MOST_SHAPES + 1):
        y = bench.variable(f"y{number}", np.zeros(1 if number == raced else 2 + number, np.int32), 0)
        rows = bench.variable(f"rows{number}", np.zeros(4, np.int32), 0)
        bench.vertex(compute_set, codelet, 0, y=y, list=[rows[0:1], rows[1:3]], n=number)
    if raced == MOST_SHAPES:
        compileGraph(bench.graph, Execute(compute_set))
        return
    with pytest.raises(GraphCycleError, match=rf"vertex {raced} \(Test\) on tile 0"):
        compileGraph(bench.graph, Execute(compute_set))


def refused(written, values):
    """Whether the default refuses a codelet of the oracle, and how."""
    bench = Bench()
    try:
        compileGraph(bench.graph, bench.execute(written.codelet(), 3, **connected(bench, values)))
    except AtomicStoreError:
        return "word"
    except GraphCycleError:
        return "race"
    return ""


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_where_the_data_decide_nothing_races_are_found_exactly(seed):
    written, values = worker_codelet(seed, settled=True), worker_values(0)
    log, left = written.log(values)
    if left is not None:
        assert refused(written, values) == log.verdict


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(0, 5))
def test_nothing_is_refused_that_does_without_a_race_on_any_data(seed, count):
    written = worker_codelet(seed)
    if refused(written, {**worker_values(0), "count": count}):
        for data in range(20):
            log, left = written.log({**worker_values(data), "count": count})
            assert left is None or log.verdict


def test_vertices_of_equal_sizes_are_judged_by_what_else_tells_them_apart():
    """Vertices that are known to have no race vouch for no others of their codelet, in another graph."""
    body = "self.y[self.n * worker] = 1\nself.halves[worker * 2] = 1.0"
    for n in (1, 2, 1):
        compiled(body, n=n)
        for _ in range(2):  # an error is found again
            with pytest.raises(GraphCycleError, match="worker 1 writes element 0 of field 'y', which worker 0 has written"):
                compiled(body, n=0)
    compiled("self.y[worker * len(self.y) // 40] = 1")
    with pytest.raises(GraphCycleError):
        compiled("self.y[worker * len(self.y) // 40] = 1", length=20)


def test_vertices_are_judged_for_the_workers_of_their_target():
    body = "self.y[worker % 3] = 1"
    model = IPUModel("tiny")
    model.numWorkerContexts = 3
    few = model.createDevice()
    compiled(body, device=few)
    with pytest.raises(GraphCycleError, match="worker 3 writes element 0 of field 'y', which worker 0 has written"):
        compiled(body)
    compiled(body, device=few)


def test_vertices_are_judged_by_what_they_work_on_in_place():
    """An Input and an Output that are one tensor meet where two tensors do not."""
    codelet = vertex(
        "self.y[worker] = self.x[worker + 1]", fields="x: Input[Vector[INT]]\ny: Output[Vector[INT]]", base="MultiVertex",
        head="self, worker",
    )  # fmt: skip
    for shared in (False, True, False):
        bench = Bench()
        x = bench.variable("x", np.zeros(7, np.int32), 0)
        y = x if shared else bench.variable("y", np.zeros(7, np.int32), 0)
        program = bench.execute(codelet, 0, x=x, y=y)
        if shared:
            with pytest.raises(GraphCycleError, match="worker 1 writes element 1 of field 'y', which worker 0 has read"):
                compileGraph(bench.graph, program)
        else:
            compileGraph(bench.graph, program)


def test_which_of_several_vertices_works_in_place_is_told_apart():
    codelet = vertex(
        "self.y[worker] = self.x[worker + self.n]", fields="x: Input[Vector[INT]]\ny: Output[Vector[INT]]\nn: INT",
        base="MultiVertex", head="self, worker",
    )  # fmt: skip
    for in_place in (0, 1, 0):
        bench = Bench()
        compute_set = bench.graph.addComputeSet("both")
        for n in (0, 1):
            x, y = (bench.variable(f"{name}{n}", np.zeros(7, np.int32), n) for name in "xy")
            made = bench.graph.addVertex(compute_set, codelet, {"x": x, "y": x if n == in_place else y, "n": n})
            bench.graph.setTileMapping(made, n)
        if in_place == 1:  # where its neighbour writes is what a worker reads
            with pytest.raises(GraphCycleError, match="field 'y', which worker 0 has read"):
                compileGraph(bench.graph, Execute(compute_set))
        else:
            compileGraph(bench.graph, Execute(compute_set))


def test_no_more_is_kept_of_vertices_without_a_race_than_there_is_room_for():
    body = "self.y[self.n + worker] = 1"
    for n in range(_KEPT_SHAPES + 5):
        compiled(body, n=n, length=200)
        free = _race_free(Codelet.of_class(codelet_class(body)).typed)
        assert len(free) == n % _KEPT_SHAPES + 1


def test_nothing_is_kept_of_vertices_that_it_takes_much_to_tell_apart():
    codelet = vertex(
        "self.y[worker] = len(self.rows)", fields="rows: Input[VectorList[INT]]\ny: Output[Vector[INT]]", base="MultiVertex",
        head="self, worker",
    )  # fmt: skip
    for count in (2, 200):
        bench = Bench()
        rows, y = bench.variable("rows", np.zeros(count, np.int32), 0), bench.variable("y", np.zeros(6, np.int32), 0)
        compileGraph(bench.graph, bench.execute(codelet, 0, rows=[rows[number : number + 1] for number in range(count)], y=y))
        assert len(_race_free(Codelet.of_class(codelet).typed)) == 1
