"""poplin's solvers and factorisations against NumPy in float64, within PopLibs' tolerances or tighter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, call, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, InvalidOption, InvalidTileMapping, MissingFeature, PoplarTypeError, TensorShapeError, poplin
from pypoplar.errors import PoplarError
from pypoplar.poplin import experimental
from pypoplar.poplin.solvers.solver_cycles import triangular_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

CLOSE = {FLOAT: {"rtol": 1e-3, "atol": 1e-4}, HALF: {"rtol": 1e-2, "atol": 0.02}}


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


def triangular(shape, type, seed=0):
    """Matrices whose triangles are both well-conditioned; nothing of the other triangle may be read."""
    random = np.random.default_rng(seed)
    size = shape[-1]
    a = random.standard_normal(shape) / max(size, 1)
    index = np.arange(size)
    a[..., index, index] = random.uniform(1, 2, (*shape[:-2], size)) * random.choice((-1, 1), (*shape[:-2], size))
    return a.astype(type.dtype)


def masked(a, lower, unit):
    a = np.tril(a) if lower else np.triu(a)
    if unit:
        a = a - np.einsum("...ii->...i", a)[..., None] * np.eye(a.shape[-1], dtype=a.dtype) + np.eye(a.shape[-1], dtype=a.dtype)
    return a


@examples(6)
@given(
    st.integers(1, 12), st.integers(1, 5), st.sampled_from(([], [2], [2, 3])), st.tuples(*[st.booleans()] * 3),
    st.sampled_from((FLOAT, HALF)), st.integers(1, 6), st.sampled_from((1, 4, 16)),
)  # fmt: skip
def test_triangular_systems_are_solved_in_both_engines(size, columns, batch, sides, type, block, tiles):
    left, lower, unit = sides
    a = triangular([*batch, size, size], type, size)
    b = np.random.default_rng(columns).standard_normal([*batch, *((size, columns) if left else (columns, size))]).astype(type.dtype)
    unread = ~(np.tri(size, k=-unit, dtype=bool) if lower else np.tri(size, k=-unit, dtype=bool).T)
    given = np.where(unread, np.nan, a).astype(type.dtype)

    def solve(graph, t, prog):
        return poplin.triangularSolve(graph, *t, *sides, prog, "solve", {"blockSize": block})

    (result, engine), (other, interpreted) = (call(solve, [type, type], [given, b], tiles, mode) for mode in MODES)
    matrix = masked(a.astype(np.float64), lower, unit)
    product = matrix @ result.astype(np.float64) if left else result.astype(np.float64) @ matrix
    np.testing.assert_allclose(product, b.astype(np.float64), **CLOSE[type])
    assert (result == other).all()
    assert engine.getReport().execution.totalCycles.total == interpreted.getReport().execution.totalCycles.total


@pytest.mark.parametrize(("lower", "unit"), [(True, False), (False, False), (True, True), (False, True)])
def test_a_mask_leaves_a_triangle(lower, unit):
    a = triangular([2, 5, 5], FLOAT)
    result, _ = call(lambda graph, t, prog: poplin.triangularMask(graph, t[0], lower, unit, prog), [FLOAT], [a])
    np.testing.assert_array_equal(result, masked(a, lower, unit))


def positive(shape, type, seed=0):
    random = np.random.default_rng(seed)
    root = random.standard_normal(shape) / np.sqrt(max(shape[-1], 1))
    return (root @ np.swapaxes(root, -1, -2) + np.eye(shape[-1])).astype(type.dtype)


@examples(8)
@given(st.integers(1, 20), st.sampled_from(([], [3])), st.booleans(), st.sampled_from((FLOAT, HALF)), st.sampled_from((None, 3)))
def test_cholesky_factors_give_the_matrix(size, batch, lower, type, block):
    a = positive([*batch, size, size], type, size)
    given = (np.tril(a) if lower else np.triu(a)).astype(type.dtype)
    options = {} if block is None else {"blockSize": block}
    results = [
        call(lambda graph, t, prog: poplin.cholesky(graph, t[0], lower, prog, None, options), [type], [given], 4, mode)[0]
        for mode in MODES
    ]
    factor = results[0].astype(np.float64)
    assert (results[0] == results[1]).all()
    assert (factor == masked(factor, lower, False)).all()
    product = factor @ np.swapaxes(factor, -1, -2) if lower else np.swapaxes(factor, -1, -2) @ factor
    np.testing.assert_allclose(product, a.astype(np.float64), **CLOSE[type])


def test_cholesky_in_place_replaces_an_input_made_for_it():
    graph, device = new_graph(4)
    a, prog = poplin.createCholeskyInput(graph, FLOAT, [2, 11, 11], False, "a", {"blockSize": 4}), Sequence()
    graph.createHostWrite("a", a)
    assert poplin.choleskyInPlace(graph, a, False, prog, None, {"blockSize": 4}) is None
    values = positive([2, 11, 11], FLOAT)
    read, _ = run(graph, device, prog, {"a": values}, {"factor": a})
    np.testing.assert_allclose(read["factor"], np.swapaxes(np.linalg.cholesky(values.astype(float)), -1, -2), **CLOSE[FLOAT])


def test_odd_matrices_of_halves_share_words_without_harm():
    graph, device = new_graph(1)
    a, prog = variable(graph, HALF, [3, 3, 3], "a"), Sequence()
    poplin.choleskyInPlace(graph, a, True, prog, None, {"blockSize": 1})
    values = positive([3, 3, 3], HALF)
    read, _ = run(graph, device, prog, {"a": values}, {"factor": a})
    np.testing.assert_allclose(read["factor"], np.linalg.cholesky(values.astype(float)), **CLOSE[HALF])


@pytest.mark.parametrize(("rows", "columns", "many"), [(1, 1, 32), (7, 7, 3), (9, 4, 32), (6, 1, 1), (5, 0, 2)])
def test_reflections_give_an_orthogonal_and_a_triangular_factor(rows, columns, many, mode):
    graph, device = new_graph(4)
    prog = Sequence()
    a, q = experimental.createQRFactorizationMatrices(graph, FLOAT, rows, columns, "qr")
    graph.createHostWrite("a", a)
    graph.createHostWrite("q", q)
    experimental.QRFactorization(graph, a, q, prog, "qr", {"rowsPerIteration": many})
    values = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    read, _ = run(graph, device, prog, {"a": values, "q": np.eye(rows, dtype=np.float32)}, {"r": a, "q": q}, mode)
    r, orthogonal = read["r"].astype(float), read["q"].astype(float)
    np.testing.assert_allclose(orthogonal @ r, values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(orthogonal @ orthogonal.T, np.eye(rows), rtol=1e-4, atol=1e-5)
    assert (np.tril(r, -1) == 0).all()
    if columns:
        np.testing.assert_allclose(
            r[:columns], np.linalg.qr(values.astype(float))[1] if rows > columns else r, rtol=1e-3, atol=1e-4
        )


def test_a_column_of_zeros_has_no_reflection():
    graph, device = new_graph(2)
    a, q, prog = variable(graph, FLOAT, [3, 2], "a"), variable(graph, FLOAT, [3, 3], "q"), Sequence()
    experimental.QRFactorization(graph, a, q, prog)
    values = np.array([[0, 1], [0, 2], [0, 2]], np.float32)
    read, _ = run(graph, device, prog, {"a": values, "q": np.eye(3, dtype=np.float32)}, {"r": a, "q": q})
    np.testing.assert_allclose(read["q"] @ read["r"], values, atol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (16, 16), (20, 20), (35, 18), (18, 35), (3, 0)])
@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_lower_and_upper_factors_give_the_matrix(rows, columns, type, mode):
    values = np.random.default_rng(rows).uniform(-1, 1, (rows, columns))
    values[np.arange(min(rows, columns)), np.arange(min(rows, columns))] += 6
    values = values.astype(type.dtype)
    graph, device = new_graph(4)
    a, prog = variable(graph, type, [rows, columns], "a"), Sequence()
    lower, upper = experimental.LUFactorization(graph, a, prog)
    read, _ = run(graph, device, prog, {"a": values}, {"L": lower, "U": upper, "a": a}, mode)
    assert [read["L"].shape, read["U"].shape] == [(rows, rows), (rows, columns)]
    assert (np.triu(read["L"], 1) == 0).all()
    assert (np.diag(read["L"]) == 1).all()
    assert (np.tril(read["U"], -1) == 0).all()
    np.testing.assert_allclose(read["L"].astype(float) @ read["U"].astype(float), values.astype(float), rtol=1e-4, atol=1e-4)
    assert (read["a"] == values).all()


def test_the_whole_machine_solves():
    size, columns = 130, 200
    a, b = triangular([size, size], FLOAT), np.random.default_rng(1).standard_normal((size, columns)).astype(np.float32)
    graph, device = new_graph(1472)
    prog, shapes = Sequence(), ([size, size], [size, columns])
    left = poplin.createTriangularSolveInputLHS(graph, FLOAT, FLOAT, *shapes, True, "a")
    right = poplin.createTriangularSolveInputRHS(graph, FLOAT, FLOAT, *shapes, True, "b")
    for name, tensor in (("a", left), ("b", right)):
        graph.createHostWrite(name, tensor)
    x = poplin.triangularSolve(graph, left, right, True, True, False, prog)
    read, _ = run(graph, device, prog, {"a": a, "b": b}, {"x": x})
    np.testing.assert_allclose(np.tril(a.astype(float)) @ read["x"], b, **CLOSE[FLOAT])


def test_products_of_solvers_are_known_beforehand():
    shapes = [3, 150, 150], [3, 150, 7]
    wanted = [((3, 22, 128), (3, 128, 7)), ((3, 64, 64), (3, 64, 7))]
    products = poplin.getTriangularSolveMatMulPrePlanParameters(FLOAT, FLOAT, *shapes, True, True, {"partialsType": "float"})
    assert [(params.aShape, params.bShape) for params, _ in products] == wanted
    assert products[0][1] == {"partialsType": "float"}
    of_factor = poplin.getCholeskyMatMulPrePlanParameters(HALF, [20, 20], True, {})
    assert [params.aShape for params, _ in of_factor] == [(1, 4, 8), (1, 12, 8)]


def test_grids_are_made_of_evenly_spaced_numbers():
    graph, device = new_graph(4)
    numbers = {"five": poplin.linspace(graph, FLOAT, -1, 2.5, 5), "one": poplin.linspace(graph, HALF, 3, 4, 1)}
    numbers["none"] = poplin.linspace(graph, FLOAT, 0, 1, 0)
    x, y = variable(graph, INT, [3], "x"), variable(graph, INT, [2], "y")
    across, down = poplin.meshgrid2d(graph, x, y)
    values = {"x": np.arange(3, dtype=np.int32), "y": np.arange(10, 12, dtype=np.int32)}
    read, _ = run(graph, device, Sequence(), values, {**numbers, "across": across, "down": down})
    np.testing.assert_array_equal(read["five"], np.linspace(-1, 2.5, 5).astype(np.float32))
    assert (read["one"].tolist(), read["none"].tolist()) == ([3], [])
    for name, grid in zip(("across", "down"), np.meshgrid(values["x"], values["y"]), strict=True):
        np.testing.assert_array_equal(read[name], grid)


def test_what_has_no_solution_is_not_finite():
    zeros, one = np.zeros((2, 2)), np.ones((2, 1))
    x, _ = call(lambda g, t, p: poplin.triangularSolve(g, *t, True, True, False, p), [FLOAT, FLOAT], [zeros, one])
    assert np.isinf(x[0, 0])
    assert np.isnan(x[1, 0])
    factor, _ = call(lambda g, t, p: poplin.cholesky(g, t[0], True, p), [FLOAT], [np.array([[1, 2], [2, 1]])])
    assert factor[0].tolist() == [1, 0]
    assert np.isnan(factor[1, 1])
    lower, _ = call(lambda g, t, p: experimental.LUFactorization(g, t[0], p)[0], [FLOAT], [np.array([[0, 1], [1, 0]])])
    assert np.isinf(lower[1, 0])


@pytest.mark.parametrize("shape", [[0, 4, 4], [0, 0], [2, 0, 0]])
def test_systems_without_elements_have_solutions_without_elements(shape):
    graph, _ = new_graph(4)
    a, b, prog = variable(graph, FLOAT, shape, "a"), variable(graph, FLOAT, [*shape[:-1], 3], "b"), Sequence()
    assert poplin.triangularSolve(graph, a, b, True, False, False, prog).shape() == [*shape[:-1], 3]
    assert poplin.cholesky(graph, a, True, prog).shape() == poplin.triangularMask(graph, a, True, True, prog).shape() == shape


def test_a_column_costs_what_poplibs_says():
    assert triangular_cycles(64) == 3 * 64 * 64 // 2 + 180 * 64 - 126


def test_what_cannot_be_solved_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    a, b, long = (variable(graph, FLOAT, shape, name) for shape, name in (([3, 3], "a"), ([3, 2], "b"), ([4, 2], "long")))
    half, whole, cube = (
        variable(graph, type, shape, name)
        for type, shape, name in ((HALF, [3, 2], "half"), (INT, [3, 3], "whole"), (FLOAT, [3], "row"))
    )
    unmapped, constant = graph.addVariable(FLOAT, [3, 3], "unmapped"), graph.addConstant(FLOAT, [3, 3], np.eye(3), "constant")
    graph.setTileMapping(constant, 0)
    prog, sides = Sequence(), (True, True, False)
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    solve, lu, qr = poplin.triangularSolve, experimental.LUFactorization, experimental.QRFactorization
    refused = [
        (PoplibsError, lambda: solve(graph, b, b, *sides, prog), r"A is \[..., n, n\] = \[3, 2\]"),
        (
            PoplibsError,
            lambda: solve(graph, a, long, *sides, prog),
            r"A is \[..., n, n\] = \[3, 3\], B is \[..., n, k\] = \[4, 2\]",
        ),
        (PoplibsError, lambda: solve(graph, a, b, False, True, False, prog), r"B is \[..., k, n\] = \[3, 2\]"),
        (PoplibsError, lambda: solve(graph, a, half, *sides, prog), "one type, got .*'a'.*'half'"),
        (PoplibsError, lambda: solve(graph, whole, b, *sides, prog), "for FLOAT and HALF, got .*'whole'"),
        (InvalidTileMapping, lambda: solve(graph, unmapped, b, *sides, prog), "unmapped"),
        (PoplarTypeError, lambda: solve(graph, a, b, 1, True, False, prog), "leftSide is True or False"),
        (PoplibsError, lambda: solve(graph, a, b, *sides, prog, None, {"blockSize": 0}), "'blockSize' is 1 at least"),
        (InvalidOption, lambda: solve(graph, a, b, *sides, prog, None, {"blocksize": 4}), "no option 'blocksize'"),
        (PoplarTypeError, lambda: solve(graph, a, b, *sides, prog, None, {"partialsType", "half"}), "options"),
        (PoplarTypeError, lambda: solve(graph, a, b, *sides, prog, None, {}, {}), "cache is a poplin.PlanningCache"),
        (PoplibsError, lambda: poplin.triangularMask(graph, cube, True, True, prog), "last two dimensions have one size"),
        (PoplibsError, lambda: poplin.cholesky(graph, b, True, prog), r"a is \[..., n, n\] = \[3, 2\]"),
        (PoplibsError, lambda: poplin.choleskyInPlace(graph, constant, True, prog), "cannot be written"),
        (PoplibsError, lambda: poplin.createCholeskyInput(graph, INT, [3, 3], True), "for FLOAT and HALF, got INT"),
        (PoplarTypeError, lambda: poplin.createCholeskyInput(graph, FLOAT, {3}, True), "order"),
        (
            PoplarTypeError,
            lambda: poplin.createCholeskyInput(graph, "f", [3, 3], True),
            "createCholeskyInput: expected an element",
        ),
        (PoplibsError, lambda: qr(graph, b, a, prog, None, {"rowsPerIteration": 0}), "'rowsPerIteration' is 1 at least"),
        (PoplibsError, lambda: qr(graph, b.transpose(), b[0:2], prog), r"A is \[m, n\] = \[2, 3\]"),
        (PoplibsError, lambda: qr(graph, a, a, prog), "share elements"),
        (PoplibsError, lambda: qr(graph, a, b, prog), r"Q FLOAT \[m, m\], got .*'b'"),
        (PoplibsError, lambda: experimental.createQRFactorizationMatrices(graph, HALF, 3, 2), "FLOAT matrices, got HALF"),
        (PoplibsError, lambda: experimental.createQRFactorizationMatrices(graph, FLOAT, 2, 3), "as many rows as columns"),
        (PoplibsError, lambda: lu(graph, cube, prog), r"a matrix \[m, n\], got .*'row'"),
        (PoplibsError, lambda: lu(graph, whole, prog), "for FLOAT and HALF"),
        (PoplibsError, lambda: poplin.linspace(graph, INT, 0, 1, 3), "FLOAT or HALF numbers, got INT"),
        (PoplibsError, lambda: poplin.linspace(graph, FLOAT, 0, float("inf"), 3), "right is a finite number"),
        (PoplarTypeError, lambda: poplin.linspace(graph, FLOAT, 0, 10**400, 3), "right of poplin.linspace is FLOAT, which cannot"),
        (TensorShapeError, lambda: poplin.linspace(graph, FLOAT, 0, 1, 10**30), "poplin.linspace: a shape of"),
        (PoplarTypeError, lambda: poplin.linspace(graph, FLOAT, 0, 1, 2.5), "count is a whole number"),
        (PoplibsError, lambda: poplin.meshgrid2d(graph, a, cube), "two vectors of one type"),
        (MissingFeature, lambda: solve(graph, a, b, *sides, prog, None, {"gatherOutput": True}), "gatherOutput"),
    ]
    for kind, refuse, words in refused:
        with pytest.raises(kind, match=words):
            refuse()
    assert issubclass(kind, PoplarError)
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
