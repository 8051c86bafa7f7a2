"""Where the memory of the machine does not suffice, the graph is as before and the message says who has most of it."""

import os
import subprocess
import sys
import warnings
from array import array

import numpy as np
import pytest

from pypoplar import FLOAT, HALF, Engine, Graph, InOut, Input, IPUModel, PoplarMemoryError, Vector, VectorList, Vertex, host_memory
from pypoplar.host_memory import MemoryWatch, available, resident
from pypoplar.program import Execute


class Gather(Vertex):
    rows: Input[VectorList[FLOAT]]
    by: Input[FLOAT]
    x: InOut[Vector[FLOAT]]
    n: FLOAT

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += self.rows[i][0] * self.by + self.n


class Full(array):
    """A table that has room for so many numbers more, and then for none: what fits of a row stays, as in `array.extend`."""

    room = 0

    def extend(self, values):
        for value in values:
            self.append(value)

    def frombytes(self, data):
        if len(data) > self.room * self.itemsize:
            raise MemoryError
        super().frombytes(data)

    def append(self, value):
        if self.room == 0:
            raise MemoryError("no room")
        self.room -= 1
        super().append(value)


class FullList(list):
    def append(self, value):
        raise MemoryError


TABLES = {
    "rows of vertices": ("_vertices", "rows"),
    "tiles of vertices": ("_vertices", "tile"),
    "edges": ("_vertices", "edges", "_runs"),
    "values on edges": ("_vertices", "constants", "_rows"),
    "plain fields": ("_vertices", "state", "_rows"),
    "mapping": ("_mapping", "_log"),
}


def started():
    graph = Graph(IPUModel("tiny").createDevice())
    x = graph.addVariable(FLOAT, [6, 6], "x")
    graph.setTileMapping(x, 0)
    return graph, x, graph.addComputeSet("part/first")


def single(graph, x, step):
    vertex = graph.addVertex(step, Gather, {"rows": x[0:3, 1:4], "by": 2.0, "x": x[3, 0:3], "n": 1.0})
    graph.setTileMapping(vertex, 0)


def by_fields(graph, x, step):
    vertex = graph.addVertex(step, Gather)
    for name, value in (("rows", [x[0, 1:4], x[2, 1:4]]), ("by", 2.0), ("x", x[3, 0:2]), ("n", 1.0)):
        graph.connect(vertex[name], value)
    graph.setInitialValue(vertex["n"], 3.0)


def many(graph, x, step):
    graph.add_vertices(step, Gather, {"rows": x[0:4].reshape([2, 2, 6]), "by": 2.0, "x": x[4:6, 0:2], "n": 1.0}, [0, 0])


def mapped(graph, x, step):
    graph.setTileMapping(x.slice(1, 4, 1), 3)
    graph.setTileMapping(x.transpose().flatten(), {1: [(0, 7)], 2: [(9, 20)]})
    graph.setTileMapping(x[5, 5], np.int64(7))


def frozen(graph):
    whole = graph.freeze()
    edges, mapping, vertices = whole.edges, whole.mapping, whole.vertices
    return [
        *(column.tolist() for column in (mapping.begin, mapping.end, mapping.tile, vertices.codelet, vertices.tile)),
        *(column.tolist() for column in (edges.vertex, edges.field, edges.row, edges.run_start, edges.run_count, edges.run_step)),
        *(column.tolist() for column in (whole.state.vertex, whole.state.field, whole.state.bits)),
        whole.variables.names,
        whole.compute_sets,
    ]


def holder(graph, path):
    for name in path[:-1]:
        graph = getattr(graph, name)
    return graph


class Retried:
    """A graph with a table that takes so many numbers more: a call that fails is made again with room for all."""

    def __init__(self, graph, table, room):
        self._graph, self._table, self._room = graph, table, room
        self.failures = []

    def __getattr__(self, name):
        method = getattr(self._graph, name)

        def call(*arguments):
            before = frozen(self._graph)
            self._replace(Full, self._room)
            try:
                return method(*arguments)
            except PoplarMemoryError as error:
                assert frozen(self._graph) == before
                self.failures.append(str(error))
                self._replace(array)
                return method(*arguments)

        return call

    def _replace(self, kind, *room):
        owner = self._graph
        for name in TABLES[self._table][:-1]:
            owner = getattr(owner, name)
        old = getattr(owner, TABLES[self._table][-1])
        setattr(owner, TABLES[self._table][-1], kind(old.typecode, old))
        for numbers in room:
            getattr(owner, TABLES[self._table][-1]).room = numbers


@pytest.mark.parametrize(
    ("build", "table"),
    [
        *((single, table) for table in TABLES if table != "mapping"),
        *((by_fields, table) for table in TABLES if table != "mapping"),
        *((many, table) for table in TABLES if table != "mapping"),
        (mapped, "mapping"),
    ],
)
def test_a_call_for_which_memory_does_not_suffice_leaves_the_graph_as_it_was_and_can_be_made_again(build, table):
    right = started()
    build(*right)
    failures = 0
    for room in range(24):
        graph, x, step = started()
        graph.freeze()
        retried = Retried(graph, table, room)
        build(retried, x, step)
        assert frozen(graph) == frozen(right[0])
        failures += len(retried.failures)
        assert all("the memory of this machine does not suffice" in message for message in retried.failures)
    assert failures


@pytest.mark.parametrize("column", ["names", "types", "shapes", "location", "first"])
def test_a_variable_for_which_memory_does_not_suffice_is_none(column):
    graph, _, _ = started()
    before = frozen(graph)
    variables = graph._variables
    whole = getattr(variables, column)
    setattr(variables, column, FullList(whole))
    with pytest.raises(PoplarMemoryError):
        graph.addVariable(HALF, [3], "y")
    setattr(variables, column, list(getattr(variables, column)))
    assert frozen(graph) == before
    y = graph.addVariable(HALF, [3], "y")
    assert variables.names == ["x", "y"]
    assert y.shape() == [3]


def test_questions_that_fail_lose_nothing_of_the_mapping(monkeypatch):
    """Wherever memory runs out while what was noted is sorted and painted, asking again gives the right answer."""
    from pypoplar.graph import mapping

    def made():
        graph, x, _ = started()
        y = graph.addVariable(FLOAT, [5], "y")
        graph.setTileMapping(y, 1)
        graph.getTileMapping(x), graph.getTileMapping(y)
        graph.setTileMapping(x[1:3], 2)
        graph.setTileMapping(x[2:4], 3)
        graph.setTileMapping(y[2:4], 4)
        return graph

    def lacking(*_):
        raise MemoryError

    right = made()
    for name in ("opens", "sorting_order", "paint", "join_touching"):
        graph = made()
        with monkeypatch.context() as patch:
            patch.setattr(mapping, name, lacking)
            with pytest.raises(MemoryError):
                graph.freeze()
        assert frozen(graph) == frozen(right)


def test_the_message_has_the_largest_tables_and_modules():
    graph, x, step = started()
    many(graph, x, step)
    single(graph, x, graph.addComputeSet("other/inner/second"))
    with pytest.raises(PoplarMemoryError) as caught:
        graph.getTileMapping(x.flatten().broadcast(1 << 45, 0).reverse(0))
    message = str(caught.value)
    assert "Unable to allocate" in message
    assert "runs of edges (10 rows, 0.0 MB)" in message
    assert message.endswith("most vertices are of 'part' (2), 'other/inner' (1)")


def test_tensors_that_do_not_fit_tell_of_their_graph():
    _, x, _ = started()
    whole = x.flatten().broadcast(1 << 45, 0)
    with pytest.raises(PoplarMemoryError, match=r"largest tables are .*variables \(1 rows"):
        whole.getContiguousRegions()


def compiled_with_an_exhausted(monkeypatch, name):
    from pypoplar.compiler import compile as compiler

    graph, x, step = started()
    many(graph, x, step)
    monkeypatch.setattr(compiler, name, exhausted)
    with pytest.raises(PoplarMemoryError) as caught:
        Engine(graph, Execute(step))
    monkeypatch.undo()
    engine = Engine(graph, Execute(step))
    engine.loadAndRun(IPUModel("tiny").createDevice())
    return str(caught.value)


def exhausted(*_):
    raise MemoryError("by a test")


def test_a_pass_for_which_memory_does_not_suffice_tells_what_the_passes_before_have_made(monkeypatch):
    message = compiled_with_an_exhausted(monkeypatch, "place_state")
    assert "(by a test)" in message
    assert "pieces of exchanges (" in message
    assert "most vertices are of 'part' (2)" in message
    assert "pieces of exchanges" not in compiled_with_an_exhausted(monkeypatch, "place_variables")


LIMITED = """
import resource
import numpy as np
from pypoplar import FLOAT, Engine, Graph, InOut, IPUModel, PoplarMemoryError, Vector, Vertex, poputil
from pypoplar.program import Execute

class Double(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] *= 2.0

device = IPUModel("tiny").createDevice()
graph = Graph(device)
n = 1 << 17
x = graph.addVariable(FLOAT, [n, 1], "x")
poputil.mapTensorLinearly(graph, x)
graph.createHostWrite("x", x)
graph.createHostRead("x", x)
step = graph.addComputeSet("many")
large = graph.addComputeSet("large/part")
whole = x.flatten().broadcast(1 << 5, 0).reshape([1 << 22, 1])
zeros = np.zeros(1 << 22, np.int64)

def limit(more):
    taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + more if more else resource.RLIM_INFINITY, resource.RLIM_INFINITY))

# Python itself does not stand a module that it cannot read to its end, so all is imported first.
small = Graph(device)
cs, y = small.addComputeSet("small"), small.addVariable(FLOAT, [1], "y")
small.setTileMapping(y, 0)
small.setTileMapping(small.addVertex(cs, Double, {"x": y}), 0)
Engine(small, Execute(cs))
graph.freeze()
limit(100 << 20)
before = graph.numVertices()
try:
    graph.add_vertices(large, Double, {"x": whole}, zeros)
except PoplarMemoryError as error:
    print(error)
assert graph.numVertices() == before
limit(0)
graph.add_vertices(step, Double, {"x": x}, np.arange(n) * 16 // n)
limit(6 << 20)
try:
    Engine(graph, Execute(step))
except PoplarMemoryError as error:
    print(error)
limit(0)
engine = Engine(graph, Execute(step))
engine.load(device)
engine.writeTensor("x", np.ones((n, 1), np.float32))
engine.run()
print(engine.readTensor("x").sum() / n)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space hold on Linux")
def test_a_graph_for_which_the_address_space_does_not_suffice_is_built_and_compiled_later(tmp_path):
    script = tmp_path / "limited.py"
    script.write_text(LIMITED, encoding="utf-8")
    plain = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 17)}  # else what is freed is kept, and suffices
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=plain)
    built, compiled, result = ran.stdout.splitlines()
    assert "does not suffice to build the graph" in built
    assert "vertices (131,072 rows" in compiled
    assert "'many' (131,072)" in compiled
    assert result == "2.0"


# the warning


@pytest.fixture
def little(monkeypatch):
    """A machine on which the process soon takes more than 80 %; its memory is what the test sets."""
    taken = [700]
    monkeypatch.setattr(host_memory, "resident", lambda: taken[0])
    monkeypatch.setattr(host_memory, "available", lambda: 1000)
    return taken


def test_a_build_that_takes_most_of_the_memory_is_warned_of_once(little):
    graph, x, step = started()
    many(graph, x, step)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(200):
            graph.addVariable(FLOAT, [1])
        assert told == []
        little[0] = 801
        for _ in range(200):
            graph.addVariable(FLOAT, [1])
        Engine(graph, Execute(step))
    (warning,) = told
    assert issubclass(warning.category, RuntimeWarning)
    assert "more than 80% of what there was when it began: the largest tables are" in str(warning.message)
    assert "most vertices are of 'part' (2)" in str(warning.message)
    assert warning.filename == __file__


def test_a_build_that_takes_most_of_the_memory_while_it_is_compiled_is_warned_of_at_the_next_pass(little):
    graph, x, step = started()
    many(graph, x, step)
    little[0] = 900
    with pytest.warns(RuntimeWarning, match="most vertices are of 'part'"):
        Engine(graph, Execute(step))


def test_many_vertices_at_once_count_as_much_work(little):
    graph, x, step = started()
    little[0] = 900
    with pytest.warns(RuntimeWarning):
        graph.add_vertices(step, Gather, {"x": x[0, 0:1].broadcast(1 << 16, 0).reshape([1 << 16, 1])}, np.zeros(1 << 16, int))


def test_where_the_system_does_not_say_what_there_is_nothing_is_warned_of(monkeypatch):
    monkeypatch.setattr(host_memory, "_STATUS", host_memory.Path("/no/such/file"))
    assert resident() is None
    assert available() is None
    MemoryWatch().look(lambda: pytest.fail("nothing to tell"))


def test_the_limit_of_a_container_counts_where_it_is_lower(tmp_path, monkeypatch):
    files = [tmp_path / "status", tmp_path / "machine", tmp_path / "memory.max"]
    files[0].write_bytes(b"9000 1000 7")
    files[1].write_text("MemTotal:  90000 kB\nMemAvailable:  50000 kB\n", encoding="ascii")
    files[2].write_text("max\n", encoding="ascii")
    for name, file in zip(("_STATUS", "_MACHINE"), files, strict=False):
        monkeypatch.setattr(host_memory, name, file)
    monkeypatch.setattr(host_memory, "_CONTAINER", (str(files[2]), str(tmp_path / "none")))
    own = 1000 * host_memory.os.sysconf("SC_PAGE_SIZE")
    assert resident() == own
    assert available() == own + 50000 * 1024
    files[2].write_text("1234567\n", encoding="ascii")
    assert available() == 1234567
