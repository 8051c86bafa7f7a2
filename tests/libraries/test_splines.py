"""popops.splineBasis and splineWeighting against NumPy."""

from itertools import product

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_CHAR, popops
from pypoplar.popops.splines.spline_cycles import basis_cycles, weighting_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

FUNCTIONS = {
    1: (lambda v: 1 - v, lambda v: v),
    2: (lambda v: 0.5 * v * v - v + 0.5, lambda v: -v * v + v + 0.5, lambda v: 0.5 * v * v),
    3: (
        lambda v: (1 - v) ** 3 / 6,
        lambda v: (3 * v**3 - 6 * v**2 + 4) / 6,
        lambda v: (-3 * v**3 + 3 * v**2 + 3 * v + 1) / 6,
        lambda v: v**3 / 6,
    ),
}


def expected(pseudo, sizes, opened, degree):
    """The basis functions of all splines, and their weights' places."""
    basis, places = [], []
    for turns in product(range(degree + 1), repeat=len(sizes)):
        turns = turns[::-1]  # the first dimension's change fastest
        value, place, stride = np.ones(len(pseudo)), np.zeros(len(pseudo), int), 1
        for dimension, (size, turn) in enumerate(zip(sizes, turns, strict=True)):
            v = pseudo[:, dimension].astype(float) * (size - degree * opened[dimension])
            place += (np.trunc(v).astype(int) + turn) % size * stride
            stride *= size
            value *= FUNCTIONS[degree][turn](v - np.floor(v))
        basis.append(value)
        places.append(place)
    return np.stack(basis, 1), np.stack(places, 1)


@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize(
    ("degree", "dimensions", "edges", "tiles"), [(1, 1, 5, 1), (1, 3, 9, 4), (2, 2, 20, 7), (3, 1, 33, 4), (3, 2, 3, 4)]
)
def test_edges_are_weighted_by_splines(degree, dimensions, edges, tiles, type):
    random = np.random.default_rng(degree)
    sizes, opened = np.array([5, 3, 4][:dimensions], np.int32), np.array([1, 0, 1][:dimensions], np.uint8)
    pseudo = (random.integers(0, 16, (edges, dimensions)) / 16).astype(type.dtype)  # what halves have exactly
    inputs, weights = random.random((edges, 4)).astype(type.dtype), random.random((int(sizes.prod()), 4, 6)).astype(type.dtype)
    values = {"pseudo": pseudo, "kernelSize": sizes, "isOpenSpline": opened, "input": inputs, "weight": weights}
    types = {"kernelSize": INT, "isOpenSpline": UNSIGNED_CHAR}
    splines = (degree + 1) ** dimensions
    reads = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        given = {name: variable(graph, types.get(name, type), value.shape, name) for name, value in values.items()}
        basis, places = variable(graph, type, [edges, splines], "basis"), variable(graph, INT, [edges, splines], "places")
        prog = Sequence()
        operands = [given[name] for name in ("pseudo", "kernelSize", "isOpenSpline")]
        popops.splineBasis(graph, *operands, basis, places, degree, prog, "splines")
        output = popops.splineWeighting(graph, given["input"], given["weight"], basis, places, prog, "splines")
        read, engine = run(
            graph, device, prog, values, {"basis": basis, "places": places, "output": output}, mode, {"pypoplar.races": "elements"}
        )
        wanted, wanted_places = expected(pseudo, sizes, opened, degree)
        tolerance = 1e-5 if type is FLOAT else 1e-2
        np.testing.assert_array_equal(read["places"], wanted_places)
        np.testing.assert_allclose(read["basis"], wanted, rtol=tolerance, atol=tolerance)
        sums = np.einsum("esio,es,ei->eo", weights[wanted_places].astype(float), wanted, inputs.astype(float))
        np.testing.assert_allclose(read["output"], sums, rtol=tolerance, atol=tolerance)
        reads.append(([array.tobytes() for array in read.values()], [step.cycles for step in engine.getReport().execution.steps]))
    assert reads[0] == reads[1]


def test_no_edges_have_no_output():
    graph, device = new_graph(4)
    none, weight = graph.addVariable(FLOAT, [0, 2], "none"), variable(graph, FLOAT, [3, 2, 5], "weight")
    indices, prog = graph.addVariable(INT, [0, 2], "indices"), Sequence()
    sizes, opened = variable(graph, INT, [1], "sizes"), variable(graph, UNSIGNED_CHAR, [1], "opened")
    popops.splineBasis(graph, none[:, :1], sizes, opened, none, indices, 1, prog)
    assert popops.splineWeighting(graph, none, weight, none, indices, prog).shape() == [0, 5]
    run(graph, device, prog, {}, {})


def test_splines_cost_what_poplibs_says():
    assert [basis_cycles(4, type) for type in (FLOAT, HALF)] == [240, 120]
    assert [weighting_cycles(4, 3, 2, type) for type in (FLOAT, HALF)] == [720, 360]


def test_what_are_no_splines_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    pseudo, sizes, opened = (
        variable(graph, FLOAT, [5, 2], "pseudo"),
        variable(graph, INT, [2], "sizes"),
        variable(graph, UNSIGNED_CHAR, [2], "opened"),
    )
    basis, places = variable(graph, FLOAT, [5, 4], "basis"), variable(graph, INT, [5, 4], "places")
    weight, prog = variable(graph, FLOAT, [7, 2, 3], "weight"), Sequence()
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    refused = [
        (lambda: popops.splineBasis(graph, pseudo, sizes, opened, basis, places, 4, prog), "degree is 1, 2 or 3, got 4"),
        (
            lambda: popops.splineBasis(graph, pseudo, sizes, opened, basis, places, 2, prog),
            r"basis is FLOAT \[5, 9\], got .*'basis'",
        ),
        (
            lambda: popops.splineBasis(graph, pseudo, opened, opened, basis, places, 1, prog),
            r"kernelSize is INT \[2\], got .*'opened'",
        ),
        (
            lambda: popops.splineBasis(graph, sizes, sizes, opened, basis, places, 1, prog),
            "pseudo is FLOAT or HALF of 2 dimensions, got",
        ),
        (
            lambda: popops.splineWeighting(graph, pseudo, basis, basis, places, prog),
            "weight is FLOAT or HALF of 3 dimensions, got .*'basis'",
        ),
        (lambda: popops.splineWeighting(graph, basis, weight, basis, places, prog), r"weight is FLOAT \[7, 4, 3\], got .*'weight'"),
        (lambda: popops.splineWeighting(graph, pseudo, weight, basis, basis, prog), r"weightIndex is INT \[5, 4\], got .*'basis'"),
    ]
    for call, message in refused:
        with pytest.raises(PoplibsError, match=message):
            call()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert len(prog) == 0
