"""`ipu.worker_range`: the workers of a MultiVertex divide a vector, a list of rows or a number among themselves."""

from typing import Generic, TypeVar

import numpy as np
import pytest
from codelet_rig import codelet_of, vertex

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED_INT,
    CodeletError,
    Device,
    Engine,
    Graph,
    InOut,
    IPUModel,
    MultiVertex,
    Output,
    Target,
    Vector,
    VectorList,
    ipu,
)
from pypoplar.codelet.registry import collect
from pypoplar.compiler.liveness.full_writes import surely_stored_fields
from pypoplar.program import Execute

T = TypeVar("T", FLOAT, HALF, INT, SHORT, SIGNED_CHAR, LONGLONG)
SIZES = (1, 2, 5, 6, 7, 12, 13, 47, 48, 49, 100)


class Owners(MultiVertex, Generic[T]):
    """Who takes which element, plus 1."""

    out: Output[Vector[T]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = T(worker + 1)


class RowOwners(MultiVertex):
    rows: Output[VectorList[UNSIGNED_INT]]
    counts: InOut[Vector[INT]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.rows):
            row = self.rows[i]
            for j in range(len(row)):
                row[j] = worker + 1
        for i in ipu.worker_range(worker, len(self.counts) - 1):
            self.counts[i] = worker + 1


def ran(device, mode, codelet, **fields):
    """What a vertex on tile 0 leaves in its fields, each given as (type, shape)."""
    graph = Graph(device)
    connected = {name: graph.addVariable(type, shape, name) for name, (type, shape) in fields.items()}
    for name, tensor in connected.items():
        graph.setTileMapping(tensor, 0)
        graph.setInitialValue(tensor, np.zeros(tensor.shape(), tensor.elementType().dtype))
        graph.createHostRead(name, tensor)
    compute_set = graph.addComputeSet("share")
    graph.setTileMapping(graph.addVertex(compute_set, codelet, connected), 0)
    engine = Engine(graph, Execute(compute_set), mode=mode)
    engine.load(device)
    engine.run()
    return {name: engine.readTensor(name) for name in fields}


def tiny():
    return IPUModel("tiny").createDevice()


@pytest.mark.parametrize("mode", ["native", "interpret"])
@pytest.mark.parametrize("type", [FLOAT, HALF, INT, SHORT, SIGNED_CHAR, LONGLONG])
def test_each_worker_takes_a_piece_of_whole_words_of_a_vector(mode, type):
    for size in SIZES:
        owners = ran(tiny(), mode, Owners[type], out=(type, [size]))["out"]
        shares = [ipu.worker_range(worker, np.zeros(size, type.dtype)) for worker in range(6)]
        assert owners.tolist() == [worker + 1 for worker, share in enumerate(shares) for _ in share]
        assert all(share.start * type.dtype.itemsize % 8 == 0 for share in shares)


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_rows_and_numbers_are_divided_into_equal_pieces_of_any_size(mode):
    for size in SIZES:
        left = ran(tiny(), mode, RowOwners, rows=(UNSIGNED_INT, [size, 2]), counts=(INT, [size + 1]))
        owners = [worker + 1 for worker in range(6) for _ in ipu.worker_range(worker, size)]
        assert left["rows"].tolist() == [[owner, owner] for owner in owners]
        assert left["counts"].tolist() == [*owners, 0]


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_the_one_worker_of_a_cpu_takes_all(mode):
    device = Device.createCPUDevice()
    assert isinstance(device.getTarget(), Target)
    assert ran(device, mode, Owners[HALF], out=(HALF, [9]))["out"].tolist() == [1] * 9


def test_what_all_workers_share_is_written_in_full():
    owners, rows = collect([Owners[HALF], RowOwners])
    assert surely_stored_fields(owners.typed, 6) == {"out": "out"}
    assert surely_stored_fields(rows.typed, 6) == {"rows": ""}


MIXED = """
if worker < 3:
    for i in {}:
        self.out[i] = 1.0
else:
    for i in {}:
        self.out[i] = 2.0
"""
WAYS = ("ipu.worker_range(worker, self.out)", "ipu.worker_range(worker, len(self.out))", "range(worker, len(self.out), 6)")


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_workers_that_divide_a_vector_in_different_ways_may_leave_elements_out(first, second):
    mixed = vertex(MIXED.format(first, second), fields="out: Output[Vector[HALF]]", base="MultiVertex", head="self, worker")
    assert surely_stored_fields(codelet_of(mixed).typed, 6) == ({"out": "out"} if first == second else {})


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("for i in ipu.worker_range(worker):\n    pass", r"write ipu\.worker_range\(worker, self\.out\): the worker's number, and"),
        ("for i in ipu.worker_range(worker, of=self.out):\n    pass", r"write ipu\.worker_range\(worker, self\.out\)"),
        ("for i in ipu.worker_range(worker, 2.5):\n    pass", "ipu.worker_range takes INT, got FLOAT: write int"),
        ("for i in ipu.worker_range(self.out[0], self.out):\n    pass", "ipu.worker_range takes INT, got HALF"),
        ("for i in ipu.worker_range(worker, self):\n    pass", "expected a number, got the vertex itself"),
        ("n = ipu.worker_range(worker, self.out)", "ipu.worker_range stands in a for loop only"),
        ("for i in ipu.worker_rang(worker, self.out):\n    pass", "did you mean 'worker_range'"),
    ],
)
def test_other_forms_are_refused(body, text):
    with pytest.raises(CodeletError, match=text):
        codelet_of(vertex(body, fields="out: Output[Vector[HALF]]", base="MultiVertex", head="self, worker"))
