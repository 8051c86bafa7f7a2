"""popops.cast, castWithOutput, fill and zero: every pair of types, every type, against NumPy."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import new_graph, run, variable

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    Graph,
    Interval,
    IPUModel,
    PoplarError,
    PoplarTypeError,
    popops,
    poputil,
)
from pypoplar.popops.elements.cast_cycles import cast_cycles
from pypoplar.popops.elements.fill import fill_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Execute, Sequence
from pypoplar.types import SUPPORTED

TYPES = tuple({type.code: type for type in SUPPORTED}.values())
VALUES = np.array([0, 1, 2, 3, 100, 127, -1, -3, -128], np.float64)


def given_values(type):
    """Values that every type has; the negative ones wrap in unsigned types."""
    return (VALUES != 0) if type is BOOL else VALUES.astype(np.int64).astype(type.dtype)


def expected(values, type):
    """Floats are held at the ends of the range, integers wrap."""
    if type is BOOL:
        return values != 0
    if values.dtype.kind == "f" and type.dtype.kind in "iu":
        wide = np.trunc(values.astype(np.float64))
        limits = np.iinfo(type.dtype)
        return np.clip(wide, float(limits.min), float(limits.max)).astype(np.int64).astype(type.dtype)
    with np.errstate(over="ignore"):
        return values.astype(type.dtype)


@pytest.mark.no_cover
def test_every_type_is_cast_to_every_other(mode):
    graph, device = new_graph(4)
    prog, values, results = Sequence(), {}, {}
    for source, target in product(TYPES, TYPES):
        name = f"{source.code} to {target.code}"
        tensor = variable(graph, source, [len(VALUES)], name)
        values[name], results[name] = given_values(source), popops.cast(graph, tensor, target, prog, name)
        assert results[name].elementType() is target
    read, _ = run(graph, device, prog, values, results, mode)
    for source, target in product(TYPES, TYPES):
        name = f"{source.code} to {target.code}"
        np.testing.assert_array_equal(read[name], expected(values[name], target), err_msg=name)


def test_a_cast_goes_into_a_given_tensor_or_into_a_program_of_its_own():
    graph, device = new_graph(4)
    x = variable(graph, FLOAT, [3, 5], "x")
    first, second = (variable(graph, HALF, [3, 5], name) for name in ("first", "second"))
    prog = Sequence()
    assert popops.castWithOutput(graph, x, first, prog) is None
    prog.add(popops.cast(graph, x, second))
    values = np.linspace(-3, 3, 15).reshape(3, 5).astype(np.float32)
    read, _ = run(graph, device, prog, {"x": values}, {"first": first, "second": second})
    np.testing.assert_array_equal(read["first"], values.astype(np.float16))
    np.testing.assert_array_equal(read["second"], values.astype(np.float16))


def test_casts_into_a_compute_set_are_done_in_one(mode):
    graph, device = new_graph(4)
    x, whole = variable(graph, FLOAT, [3, 50], "x"), variable(graph, INT, [3, 50], "whole")
    cs = graph.addComputeSet("both")
    assert popops.cast(graph, x, whole, cs) is None
    half = popops.cast(graph, x.transpose(), HALF, cs)
    assert graph.numComputeSets() == 1
    assert half.shape() == [50, 3]
    values = np.linspace(-300, 300, 150).reshape(3, 50).astype(np.float32)
    read, engine = run(graph, device, Execute(cs), {"x": values}, {"whole": whole, "half": half}, mode)
    np.testing.assert_array_equal(read["whole"], np.trunc(values).astype(np.int32))
    np.testing.assert_array_equal(read["half"], values.T.astype(np.float16))
    assert sum(step.type == "OnTileExecute" for step in engine.getReport().execution.steps) == 1


@pytest.mark.parametrize(("source", "target"), [(HALF, HALF), (INT, UNSIGNED_INT), (UNSIGNED_LONGLONG, LONGLONG)])
def test_a_cast_that_keeps_the_bits_is_a_copy(source, target):
    graph, device = new_graph(4)
    x, out = variable(graph, source, [7], "x"), variable(graph, target, [7], "out")
    prog = Sequence()
    result = popops.cast(graph, x, target, prog)
    popops.castWithOutput(graph, x, out, prog)
    assert graph.numComputeSets() == 0
    values = np.array([0, 1, 5, 2, 3, 4, 100]).astype(source.dtype)
    if source.dtype.kind in "iu":
        values = ~values
    read, _ = run(graph, device, prog, {"x": values}, {"result": result, "out": out})
    np.testing.assert_array_equal(read["result"], values.astype(target.dtype))
    np.testing.assert_array_equal(read["out"], values.astype(target.dtype))


@examples(15)
@given(
    st.lists(st.integers(0, 9), max_size=3),
    st.sampled_from([(FLOAT, HALF), (HALF, FLOAT), (FLOAT, INT), (UNSIGNED_CHAR, HALF), (BOOL, INT), (HALF, BOOL)]),
    st.sampled_from([1, 4, 7]),
    st.booleans(),
)
def test_casts_of_any_shape_agree_in_both_engines(shape, types, tiles, turned):
    source, target = types
    turned = turned and len(shape) == 2
    steps = []
    for mode in ("native", "interpret"):
        graph, device = new_graph(tiles)
        x, prog = variable(graph, source, shape, "x"), Sequence()
        x = x.transpose() if turned else x
        result = popops.cast(graph, x, target, prog)
        values = np.resize(given_values(source), shape) if np.prod(shape) else np.zeros(shape, source.dtype)
        read, engine = run(graph, device, prog, {"x": values} if np.prod(shape) else {}, {"result": result}, mode)
        np.testing.assert_array_equal(read["result"], expected(values.T if turned else values, target))
        steps.append([step.cycles for step in engine.getReport().execution.steps])
    assert steps[0] == steps[1]


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_the_device_tells_which_floats_are_halves_as_the_host_does(mode):
    numbers, tolerance = [0.0, 1.0, -0.3, 0.3, 65504.0, 70000.0, 1e-9, np.inf, np.nan], 2e-4
    graph, device = new_graph(4)
    prog, values, results = Sequence(), {}, {}
    for place, number in enumerate(numbers):
        values[f"x{place}"] = np.array([number], np.float32)
        x = variable(graph, FLOAT, [1], f"x{place}")
        results[str(place)] = popops.checkAccuracyWhenCast(graph, x, HALF, tolerance, prog)
    half = variable(graph, HALF, [], "half")
    values["half"] = np.array(0.3, np.float16)
    results["half"] = popops.checkAccuracyWhenCast(graph, half, FLOAT, 0.0, prog)
    read, _ = run(graph, device, prog, values, results, mode)
    target = graph.getTarget()
    wanted = [poputil.checkAccuracyWhenCast(target, number, FLOAT, HALF, tolerance) for number in numbers]
    assert [bool(read[str(place)]) for place in range(len(numbers))] == wanted
    assert True in wanted[2:6]
    assert False in wanted[2:6]
    assert read["half"]
    with pytest.raises(PoplibsError, match=r"judges the cast of one FLOAT to HALF or back, got .*'half'.* to HALF"):
        popops.checkAccuracyWhenCast(graph, half, HALF, 0.1, prog)
    with pytest.raises(PoplibsError, match=r"tolerance is a number, 0 at least, got -1"):
        popops.checkAccuracyWhenCast(graph, half, FLOAT, -1, prog)


def test_a_cast_costs_what_poplibs_says():
    figures = [  # worker cycles and 12 of the supervisor, which are 2 slots
        (FLOAT, HALF, 1, 43),
        (FLOAT, HALF, 8, 45),
        (FLOAT, HALF, 11, 49),
        (HALF, FLOAT, 8, 44),
        (HALF, FLOAT, 9, 46),
        (INT, FLOAT, 10, 59),
        (INT, LONGLONG, 4, 43),
        (UNSIGNED_INT, LONGLONG, 4, 39),
        (UNSIGNED_CHAR, HALF, 9, 59),
        (HALF, SIGNED_CHAR, 8, 65),
    ]
    for source, target, elements, cycles in figures:
        assert cast_cycles(elements, source, target) == cycles


def test_a_million_elements_are_cast_and_filled_on_all_tiles_of_the_bow():
    graph = Graph(IPUModel("bow").createDevice())
    popops.addCodelets(graph)
    x = graph.addVariable(FLOAT, [1000, 1000], "x")
    poputil.mapTensorLinearly(graph, x)
    prog, cs = Sequence(), graph.addComputeSet("set")
    half = popops.cast(graph, x, HALF, prog)
    popops.fill(graph, half, prog, 1.0)
    popops.zero(graph, x, graph.getTileMapping(x), cs)
    tiles = graph.freeze().vertices
    for number in range(graph.numComputeSets()):
        assert len(set(tiles.tile[tiles.compute_set == number].tolist())) >= 0.99 * 1472


def test_a_compute_set_fills_where_it_is_told(mode):
    graph, device = new_graph(4)
    x = variable(graph, INT, [4, 5], "x")
    cs = graph.addComputeSet("fill")
    popops.fill(graph, x, [Interval(0, 3), Interval(7, 8)], 1, cs, 7)
    popops.zero(graph, x.transpose(), [Interval(16, 20)], 3, cs)  # the last column
    whole, parts = variable(graph, HALF, [10], "whole"), variable(graph, BOOL, [6], "parts")
    popops.fill(graph, whole, 2, cs, 1.5)
    popops.fill(graph, parts, [[], [Interval(4, 6)], [Interval(0, 1)]], cs, True)
    values = {"x": np.arange(20).reshape(4, 5).astype(np.int32), "parts": np.zeros(6, bool)}
    read, _ = run(graph, device, Execute(cs), values, {"x": x, "whole": whole, "parts": parts}, mode)
    wanted = values["x"].copy()
    wanted.reshape(-1)[[0, 1, 2, 7]] = 7
    wanted[:, 4] = 0
    np.testing.assert_array_equal(read["x"], wanted)
    assert (read["whole"] == 1.5).all()
    assert read["parts"].tolist() == [True, False, False, False, True, True]
    tiles = graph.freeze().vertices.tile.tolist()
    assert sorted(tiles) == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (lambda g, x, cs: popops.fill(g, x, [Interval(3, 9)], 0, cs, 1), r"the region \[3:9\) is beyond the 8 elements of .*'x'"),
        (lambda g, x, cs: popops.zero(g, x, [Interval(0, 2), Interval(1, 3)], 0, cs), "have an element of .*'x'.* twice"),
        (lambda g, x, cs: popops.zero(g, x, [[Interval(0, 2)]] * 2, cs), "have an element of .*'x'.* twice"),
        (lambda g, x, cs: popops.zero(g, x, 4, cs), "tile 4 is beyond the 4 tiles of the target"),
        (lambda g, x, cs: popops.zero(g, x, [[]] * 5, cs), "a mapping to 5 tiles is beyond the 4 tiles"),
        (lambda g, x, cs: popops.fill(g, x, 0, cs, float("nan")), "value of popops.fill is INT, which cannot hold nan"),
        (lambda g, x, cs: popops.fill(g, x, 0, cs, 2**31), "value of popops.fill is INT, which cannot hold 2147483648"),
        (lambda g, x, cs: popops.fill(g, x, -1, cs, 1), "tile is 0 at least, got -1"),
        (lambda g, x, cs: popops.cast(g, x, x.reverse(0), cs), "'x'.* has elements of .*'x'.*, which is written in the same"),
        (lambda g, x, cs: popops.cast(g, x, x.slice(0, 4), cs), r"popops.cast gives INT \[8\], which does not fit into"),
        (
            lambda g, x, cs: popops.cast(g, x[0:4], g.addConstant(HALF, [4], 1.0, "one"), cs),
            "cast: .*'one'.*cannot be written",
        ),
    ],
)
def test_mistakes_leave_the_compute_set_as_it_is(mistake, text):
    graph, _ = new_graph(4)
    x, cs = variable(graph, INT, [8], "x"), graph.addComputeSet("set")
    with pytest.raises(PoplarError, match=text):
        mistake(graph, x, cs)
    assert graph.numVertices() == 0


@pytest.mark.parametrize("value", [0, 1, 77])
def test_every_type_is_filled(value, mode):
    graph, device = new_graph(4)
    prog, results = Sequence(), {}
    for type in TYPES:
        for name, call in (("fill", popops.fill), ("zero", popops.zero)):
            tensor = variable(graph, type, [5, 7], f"{name} {type.code}")
            call(graph, tensor, prog, *([bool(value) if type is BOOL else value] if name == "fill" else []))
            results[f"{name} {type.code}"] = tensor
    read, _ = run(graph, device, prog, {}, results, mode)
    for name, array in read.items():
        wanted = 0 if name.startswith("zero") else bool(value) if name.endswith("bool") else value
        np.testing.assert_array_equal(array, np.full([5, 7], wanted, array.dtype), err_msg=name)


def test_filling_costs_what_poplibs_says():
    figures = [(FLOAT, 1, 24), (FLOAT, 2, 24), (FLOAT, 4, 25), (HALF, 1, 15), (HALF, 2, 21), (HALF, 8, 28), (LONGLONG, 9, 14)]
    for type, elements, cycles in figures:
        assert fill_cycles(elements, type) == cycles
    assert fill_cycles(64, BOOL) == 47


def test_what_does_not_fit_is_refused():
    graph, _ = new_graph(4)
    x, other = variable(graph, FLOAT, [4], "x"), variable(graph, INT, [3], "other")
    prog = Sequence()
    with pytest.raises(PoplibsError, match=r"popops.castWithOutput gives INT \[4\], which does not fit into .*'other'"):
        popops.castWithOutput(graph, x, other, prog)
    with pytest.raises(PoplarTypeError, match=r"popops.cast: dstType is an element type, got 'half'"):
        popops.cast(graph, x, "half", prog)
    with pytest.raises(PoplarTypeError, match=r"popops.cast: .*prog.* got None"):
        popops.cast(graph, x, HALF, None)
    with pytest.raises(PoplarTypeError, match=r"popops.cast takes a tensor, got 3"):
        popops.cast(graph, 3, HALF, prog)
    with pytest.raises(PoplarTypeError, match=r"popops.fill: fillValue is a number or True or False, got 'one'"):
        popops.fill(graph, x, prog, "one")
    with pytest.raises(PoplibsError, match="holds an element twice"):
        popops.zero(graph, x.broadcast(2, 0), prog)
    with pytest.raises(PoplarError, match=r"1\.5"):
        popops.fill(graph, variable(graph, UNSIGNED_INT, [2], "count"), prog, 1.5)
