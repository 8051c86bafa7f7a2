"""Floating-point operations of the libraries' vertices: PopLibs' counts, and those of the vertices' code beside them."""

import numpy as np
import pytest
from engine_builder import counted
from library_programs import new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, InOut, Vector, Vertex, poplin, popops
from pypoplar.graph import freezing
from pypoplar.graph.vertex_introspector import VertexIntrospector
from pypoplar.poplin.matmul import matmul_cycles
from pypoplar.popnn.losses import loss_cycles
from pypoplar.popnn.nonlinearities import nonlinearity_cycles
from pypoplar.program import Execute, Sequence

SIZES = (1, 64, 1024, 4096)
TARGET = new_graph()[0].getTarget()
ON = {"profiler.includeFlopEstimates": "true"}
ESTIMATES = {
    "poplin::OuterProduct<float,float>": matmul_cycles.outer_product_estimate,
    "poplin::DotProducts<half>": matmul_cycles.dot_products_estimate,
    "poplin::SumPartials<float>": matmul_cycles.sum_partials_estimate,
    "poplin::ReduceAdd<float,float>": matmul_cycles.reduce_add_estimate,
    "poplin::BlockProduct<half,float>": matmul_cycles.block_product_estimate,
    "popnn::NonLinearity1D<TANH,half>": lambda vertex: nonlinearity_cycles.non_linearity_estimate(vertex, in_place=False),
    "popnn::NonLinearityGrad1D<GELU,float>": nonlinearity_cycles.gradient_estimate,
    "popnn::SoftMax<float>": nonlinearity_cycles.softmax_estimate,
    "popnn::LossCrossEntropy<float>": loss_cycles.cross_entropy_estimate,
    "popnn::LossSumSquared<float>": loss_cycles.sum_squared_estimate,
    "popnn::ReduceMaxClassGather<float,float>": lambda vertex: loss_cycles.largest_estimate(vertex, "in"),
}


class Fields:
    """A vertex of which an estimator sees some fields: numbers of elements, or of those of each row."""

    def __init__(self, sizes, values=()):
        self.codelet = type("Codelet", (), {"fields": [Field(name, size) for name, size in sizes.items()], "name": "fields"})
        self.sizes = {number: np.atleast_1d(size) for number, size in enumerate(sizes.values())}
        self.values = {len(sizes) + number: value for number, value in enumerate(dict(values).values())}
        self.codelet.fields += [Field(name, 1, plain=True) for name in dict(values)]

    def flops(self, vertex):
        self.codelet.name = vertex
        return ESTIMATES[vertex](VertexIntrospector(self.codelet, self.sizes, self.values, TARGET)).flops


class Field:
    unit = 1  # its elements are numbers, not records
    type = FLOAT

    def __init__(self, name, size, plain=False):
        self.name, self.form = name, "list" if np.ndim(size) else "scalar" if plain else "vector"


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("vertex", "fields", "flops"),
    [
        ("poplin::OuterProduct<float,float>", lambda n: {"b": n, "out": n}, lambda n: n),
        ("poplin::DotProducts<half>", lambda n: {"out": 3, "b": n}, lambda n: 6 * n),
        ("poplin::SumPartials<float>", lambda n: {"partials": [n, 1]}, lambda n: n - 1),
        ("poplin::ReduceAdd<float,float>", lambda n: {"out": n, "partials": [n] * 8}, lambda n: 7 * n),
        ("popnn::NonLinearity1D<TANH,half>", lambda n: {"data": n}, lambda n: n),
        ("popnn::NonLinearityGrad1D<GELU,float>", lambda n: {"inGrad": n}, lambda n: 15 * n),
        ("popnn::LossCrossEntropy<float>", lambda n: {"probs": [n]}, lambda n: 7 * n + 1),
        ("popnn::LossSumSquared<float>", lambda n: {"probs": [n]}, lambda n: 4 * n - 1),
        ("popnn::ReduceMaxClassGather<float,float>", lambda n: {"in": [n, n]}, lambda n: 2 * n),
    ],
)
def test_flops_are_those_of_poplibs(vertex, fields, flops, n):
    assert Fields(fields(n)).flops(vertex) == flops(n)


@pytest.mark.parametrize("n", SIZES)
def test_a_block_product_multiplies_and_adds_for_each_element_of_the_depth(n):
    values = {"groups": 1, "depth": 7, "columns": 16, "stride": 16, "rowGroups": 6, "columnShare": 16}
    assert Fields({"a": 7 * n, "out": 16 * n}, values).flops("poplin::BlockProduct<half,float>") == 2 * 16 * 7 * n


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("call", "types", "flops"),
    [
        (popops.add, [FLOAT, FLOAT], 1),
        (popops.div, [HALF, HALF], 1),
        (popops.add, [INT, INT], 0),
        (popops.maxInPlace, [FLOAT, FLOAT], 1),
        (popops.rem, [FLOAT, FLOAT], 3),
        (lambda graph, a, b, prog: popops.scaledAddTo(graph, a, b, 0.5, prog), [FLOAT, HALF], 2),
    ],
)
def test_flops_of_an_element_are_those_of_poplibs(call, types, flops, n):
    graph, device = new_graph()
    tensors = [variable(graph, type, [n], name) for type, name in zip(types, "ab", strict=True)]
    program = Sequence()
    call(graph, *tensors, program)
    _, engine = run(
        graph, device, program, {name: np.ones(n, type.dtype) for type, name in zip(types, "ab", strict=True)}, {}, options=ON
    )
    assert sum(counted(engine)[2].tolist()) == flops * n


@pytest.mark.parametrize("n", SIZES)
def test_a_softmax_is_the_steps_that_it_consists_of(n):
    plain, stable = (Fields({"in": [n]}, {"stable": one}).flops("popnn::SoftMax<float>") for one in (False, True))
    assert plain == n + (n - 1) + 1 + n
    assert stable == (n - 1) + n + plain


def both(work, types, shapes, fill=1.0):
    """Flops and bytes of a library call by vertex type, as its estimators have them and as its code counts."""
    found = []
    for by_code in (False, True):
        graph, device = new_graph()
        tensors = [variable(graph, type, shape, f"t{i}") for i, (type, shape) in enumerate(zip(types, shapes, strict=True))]
        program = Sequence()
        work(graph, tensors, program)
        for name in graph.getVertexTypes() if by_code else ():
            graph.registerPerfEstimator(name, lambda vertex, target: 10)
        values = {f"t{i}": np.full(shape, fill, type.dtype) for i, (type, shape) in enumerate(zip(types, shapes, strict=True))}
        _, engine = run(graph, device, program, values, {}, options=ON)
        _, _, flops, moved = counted(engine)
        names = [one.name for one in engine.executable.codelets]
        rows = zip(names, flops.tolist(), moved.tolist(), strict=True)
        found.append({name: (one, other) for name, one, other in rows if other})
    return found


@pytest.mark.parametrize("types", [[FLOAT, FLOAT], [HALF, HALF], [INT, INT]])
@pytest.mark.parametrize("operation", [popops.add, popops.sub, popops.mul])
def test_the_code_of_element_wise_operations_counts_what_poplibs_says(operation, types):
    given, derived = both(lambda graph, t, prog: operation(graph, *t, prog), types, [[100], [100]])
    assert given == derived
    ((flops, moved),) = given.values()
    assert flops == 100 * types[0].is_floating
    shares = moved - 3 * 100 * types[0].size  # each worker reads how many elements it takes
    assert shares in range(0, 4 * 6 * 16 + 1, 4 * 6)


def test_the_code_of_a_scaled_addition_counts_what_poplibs_says():
    given, derived = both(lambda graph, t, prog: popops.scaledAddTo(graph, *t, 0.5, prog), [FLOAT, HALF], [[33], [33]])
    assert [flops for flops, _ in given.values()] == [66]
    assert given == derived


@pytest.mark.parametrize(("m", "k", "n"), [(10, 100, 1), (10, 1, 100), (32, 16, 24)])
def test_the_code_of_products_counts_at_most_an_addition_more_for_each_sum(m, k, n):
    given, derived = both(lambda graph, t, prog: poplin.matMul(graph, *t, prog), [FLOAT, FLOAT], [[m, k], [k, n]])
    assert given.keys() == derived.keys()
    for name, (flops, moved) in given.items():
        more = derived[name][0] - flops
        assert derived[name][1] == moved
        assert 0 <= more <= m * n * 16, name
    products = sum(flops for name, (flops, _) in given.items() if "Partials" not in name and "Reduce" not in name)
    assert products == (1 if k == 1 else 2) * m * k * n


@pytest.mark.parametrize("work", [
    lambda graph, t, prog: popops.add(graph, *t, prog),
    lambda graph, t, prog: popops.scaledAddTo(graph, *t, 0.5, prog),
    lambda graph, t, prog: poplin.matMul(graph, *t, prog),
])  # fmt: skip
@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_estimators_decide_the_cycles_and_those_of_the_code_stand_beside_them(work, type, monkeypatch):
    found = []
    for estimated in (True, False):
        graph, device = new_graph()
        tensors, program = [variable(graph, type, [32, 32], name) for name in ("a", "b")], Sequence()
        work(graph, tensors, program)
        if not estimated:
            monkeypatch.setattr(freezing, "estimators_of", lambda codelets, registered: {})
        values = {name: np.ones((32, 32), type.dtype) for name in ("a", "b")}
        _, engine = run(graph, device, program, values, {}, options=ON)
        types = engine.getReport().execution.cycles_by_vertex_type
        found.append({name: cost for name, cost in types.items() if cost.instances})
    assert found[0].keys() == found[1].keys()
    assert found[0]
    for name, cost in found[0].items():
        bare = found[1][name]
        assert bare.cycles == bare.compiled_cycles == cost.compiled_cycles != cost.cycles
        assert 0 < cost.bound_cycles == min(bare.bound_cycles, cost.cycles) <= cost.compiled_cycles


class Halved(Vertex):
    data: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.data)):
            self.data[i] = 0.5 * self.data[i] + 1.0

    def cycles(self, vertex):
        return 10


def test_vertices_without_an_estimate_of_flops_are_counted_by_their_code():
    def work(graph, t, prog):
        graph.addCodelets(Halved)
        cs = graph.addComputeSet()
        graph.setTileMapping(graph.addVertex(cs, Halved, {"data": t[0]}), 0)
        prog.add(Execute(cs))

    ((flops, _),) = both(work, [FLOAT], [[50]])[0].values()
    assert flops == 2 * 50
