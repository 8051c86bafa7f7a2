"""poprand: distributions, masks and seeds; the same bits in both engines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library_programs import new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, Engine, Graph, IPUModel, PoplarError, PoplarTypeError, poprand, stack
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

SEED = (0x12345678, 0x9ABCDEF0)


def seed_of(graph, values=SEED):
    seed = graph.addConstant(UNSIGNED_INT, [2], values, "seed")
    graph.setTileMapping(seed, 0)
    return seed


def drawn(call, shape=(1000,), tiles=4, seed=SEED, mode="native", options=None, tile=None):
    """What ``call(graph, seed, reference, prog)`` draws for a reference, mapped linearly or on one tile; and the engine."""
    graph, device = new_graph(tiles)
    poprand.addCodelets(graph)
    reference = variable(graph, FLOAT, shape, "reference", tile)
    prog = Sequence()
    out = call(graph, seed_of(graph, seed) if seed else None, reference, prog)
    read, engine = run(graph, device, prog, {}, {"out": out}, mode, options)
    return read["out"], engine


def uniform(type=FLOAT, low=0.0, high=1.0, modifier=1):
    return lambda graph, seed, reference, prog: poprand.uniform(graph, seed, modifier, reference, type, low, high, prog)


CALLS = {
    "uniform float": uniform(FLOAT, -3, 5),
    "uniform half": uniform(HALF, -3, 5),
    "uniform int": uniform(INT, -10, 10),
    "uniform all ints": uniform(INT, -(2**31), 2**31 - 1),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def step_cycles(engine):
    return [step.cycles for step in engine.getReport().execution.steps]


# seeds


@calls
def test_a_result_is_that_of_its_seed_modifier_and_layout_in_both_engines_at_any_number_of_threads(call):
    first, engine = drawn(call, (3, 41), 5)
    again, other = drawn(call, (3, 41), 5, mode="interpret")
    assert first.tobytes() == again.tobytes()
    assert step_cycles(engine) == step_cycles(other)
    for threads in (1, 3):
        assert drawn(call, (3, 41), 5, options={"pypoplar.threads": threads})[0].tobytes() == first.tobytes()


@calls
def test_without_a_seed_the_generators_go_on(call):
    def twice(graph, seed, reference, prog):
        first, second = call(graph, None, reference, prog), call(graph, None, reference, prog)
        return stack([first, second])

    native, interpreted = (drawn(twice, (300,), mode=mode)[0] for mode in ("native", "interpret"))
    assert native.tobytes() == interpreted.tobytes()
    assert (native[0] != native[1]).mean() > 0.1


@calls
def test_a_seed_draws_what_the_generators_draw_after_set_seed_and_leaves_them_as_they_are(call):
    def several(graph, seed, reference, prog):
        poprand.setSeed(graph, seed, 1, prog)
        seeded = call(graph, seed, reference, prog)
        return stack([call(graph, None, reference, prog), seeded, call(graph, None, reference, prog)])

    first, seeded, later = drawn(several, (7, 43), 6)[0]
    np.testing.assert_array_equal(first, seeded)
    assert (first != later).any()


def test_another_seed_or_modifier_or_layout_draws_other_numbers():
    base = drawn(uniform(), (64,))[0]
    others = [
        drawn(uniform(), (64,), seed=(SEED[0] + 1, SEED[1]))[0],
        drawn(uniform(), (64,), seed=(SEED[0], SEED[1] + 1))[0],
        drawn(uniform(modifier=2), (64,))[0],
        drawn(uniform(modifier=2**32 - 1), (64,))[0],
        drawn(uniform(), (64,), tile=2)[0],
    ]
    for other in others:
        assert len(np.intersect1d(base, other)) <= 64 // 4  # what lies on tile 2 in both


def test_no_two_workers_and_tiles_draw_the_same_numbers():
    numbers = drawn(uniform(INT, -(2**31), 2**31 - 1), (16 * 6 * 8,), 16)[0].reshape(16, 6, 8)
    assert len(np.unique(numbers)) == numbers.size
    for a in range(16 * 6):
        streams = numbers.reshape(16 * 6, 8)
        assert not (streams[a] == np.roll(streams, 1, axis=0)[a]).any()


def test_tiles_of_a_virtual_graph_draw_as_tiles_of_the_machine():
    def on_virtual(graph, seed, reference, prog):
        virtual = graph.createVirtualGraph(2, 4)
        inner = virtual.addVariable(FLOAT, [40], "inner")
        virtual.setTileMapping(inner, 1)
        return poprand.uniform(virtual, seed, 1, inner, FLOAT, 0, 1, prog)

    np.testing.assert_array_equal(drawn(on_virtual)[0], drawn(uniform(), (40,), tile=3)[0])


# distributions


def smirnov(values, cumulative):
    """How probable it is that a sample of a distribution is as far from it: the Kolmogorov-Smirnov test, for many numbers."""
    ordered = np.sort(values.astype(np.float64).ravel())
    count, expected = len(ordered), np.array([cumulative(x) for x in ordered])
    farthest = max((np.arange(1, count + 1) / count - expected).max(), (expected - np.arange(count) / count).max())
    return 2 * sum((-1) ** (k - 1) * np.exp(-2 * k * k * count * farthest**2) for k in range(1, 100))


def linear(low, high):
    return lambda x: (x - low) / (high - low)


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_uniform_numbers_are_uniform(type):
    values, _ = drawn(uniform(type, -3, 5), (20000,))
    assert values.dtype == type.dtype
    assert values.min() >= -3
    assert values.max() <= 5
    if type is FLOAT:
        assert smirnov(values, linear(-3, 5)) > 0.001
    wide = values.astype(np.float64)
    assert abs(wide.mean() - 1) < 4 * 8 / np.sqrt(12 * 20000)
    assert abs(wide.std() - 8 / np.sqrt(12)) < 0.03
    assert abs(np.corrcoef(wide[:-1], wide[1:])[0, 1]) < 0.03


def test_uniform_integers_have_both_ends_equally_often():
    values, _ = drawn(uniform(INT, -3, 4), (16000,))
    numbers, counts = np.unique(values, return_counts=True)
    assert list(numbers) == list(range(-3, 5))
    assert (abs(counts - 2000) < 4 * np.sqrt(2000)).all()
    assert set(drawn(uniform(INT, 7, 7))[0]) == {7}
    whole, _ = drawn(uniform(INT, -(2**31), 2**31 - 1), (20000,))
    assert smirnov(whole / 2**31, linear(-1, 1)) > 0.001


bounds = st.floats(-60000, 60000) | st.floats(-1e-6, 1e-6)


@settings(max_examples=40)
@given(st.sampled_from([FLOAT, HALF]), bounds, bounds, st.integers(1, 200))
def test_no_number_lies_outside_its_interval(type, a, b, elements):
    low, high = min(a, b), max(a, b)
    try:
        values, _ = drawn(uniform(type, low, high), (elements,), 2)
    except PoplibsError:
        assert not (low <= float(type.dtype.type((low + high) / 2)) <= high)
        return
    assert (low <= values.astype(np.float64)).all()
    assert (values.astype(np.float64) <= high).all()


# layouts


@settings(max_examples=20)
@given(st.lists(st.integers(0, 7), max_size=3), st.sampled_from([1, 4, 13]), st.sampled_from([FLOAT, HALF, INT]))
def test_the_result_has_the_shape_and_the_mapping_of_the_reference(shape, tiles, type):
    graph, device = new_graph(tiles)
    poprand.addCodelets(graph)
    reference = variable(graph, HALF, shape, "reference")
    prog = Sequence()
    out = poprand.uniform(graph, None, 0, reference, type, 5, 9, prog)
    assert (out.shape(), out.elementType()) == (shape, type)
    assert graph.getTileMapping(out) == graph.getTileMapping(reference)
    read, _ = run(graph, device, prog, {}, {"out": out})
    assert ((read["out"] >= 5) & (read["out"] <= 9)).all()


def test_numbers_are_drawn_in_the_order_of_memory_whatever_the_view():
    def transposed(graph, seed, reference, prog):
        return uniform()(graph, seed, reference.transpose(), prog).transpose()

    np.testing.assert_array_equal(drawn(transposed, (6, 8))[0], drawn(uniform(), (6, 8))[0])


# prices


def test_a_million_numbers_use_the_tiles_of_the_machine():
    device = IPUModel("ipu2").createDevice()
    graph = Graph(device.getTarget())
    poprand.addCodelets(graph)
    reference = variable(graph, FLOAT, [10**6], "reference")
    prog = Sequence()
    out = poprand.uniform(graph, seed_of(graph), 0, reference, FLOAT, 0, 1, prog)
    graph.createHostRead("out", out)
    used = sum(map(bool, graph.getTileMapping(out)))
    assert used >= 0.99 * device.getTarget().getNumTiles()
    engine = Engine(graph, prog)
    engine.load(device)
    engine.run()
    values = engine.readTensor("out")
    assert len(np.unique(values)) > 0.9 * 10**6
    assert abs(values.mean() - 0.5) < 0.002


# refusals


def test_what_does_not_fit_is_refused_before_the_graph_changes():
    (graph, _), (other, _) = new_graph(4), new_graph(4)
    poprand.addCodelets(graph)
    reference, seed, prog = variable(graph, FLOAT, [4], "reference"), seed_of(graph), Sequence()
    whole = variable(graph, INT, [2], "whole")
    three = graph.addConstant(UNSIGNED_INT, [3], [1, 2, 3], "three")
    unmapped = graph.addVariable(FLOAT, [3], "unmapped")
    before = graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names)
    right = {"graph": graph, "seed": seed, "seedModifier": 1, "reference": reference, "prog": prog}
    right |= {"outType": FLOAT, "minVal": 0, "maxVal": 1}
    wrong = [
        ({"graph": None}, PoplarTypeError, "poprand.uniform: the first argument is the graph, got None"),
        ({"prog": None}, PoplarTypeError, "poprand.uniform: the argument prog is the Sequence"),
        ({"debugContext": 3}, PoplarTypeError, "a debug name is a string, got 3"),
        ({"seed": 42}, PoplarTypeError, r"poprand.uniform: the seed is a tensor UNSIGNED_INT \[2\] or None, got 42"),
        ({"seed": whole}, PoplibsError, r"the seed is UNSIGNED_INT \[2\], 64 bits, got .*'whole'"),
        ({"seed": three}, PoplibsError, r"the seed is UNSIGNED_INT \[2\], 64 bits, got .*'three'"),
        ({"seed": seed_of(other)}, PoplarTypeError, "belongs to another graph"),
        ({"seedModifier": 1.5}, PoplarTypeError, "seedModifier is a whole number, got 1.5"),
        ({"seedModifier": -1}, PoplibsError, "seedModifier is 0 at least, got -1"),
        ({"seedModifier": 2**32}, PoplibsError, "seedModifier is 32 bits, 4294967295 at most, got 4294967296"),
        ({"reference": [1, 2]}, PoplarTypeError, "poprand.uniform takes a tensor"),
        ({"reference": unmapped}, PoplarError, "unmapped"),
        ({"reference": variable(other, FLOAT, [4], "foreign")}, PoplarTypeError, "belongs to another graph"),
        ({"outType": float}, PoplarTypeError, "outType is an element type such as FLOAT"),
        ({"outType": UNSIGNED_INT}, PoplibsError, "poprand.uniform draws FLOAT, HALF or INT, got outType UNSIGNED_INT"),
        ({"minVal": "0"}, PoplarTypeError, "minVal is a number, got '0'"),
        ({"maxVal": float("nan")}, PoplibsError, "maxVal is a finite number, got nan"),
        ({"minVal": 2}, PoplibsError, r"poprand.uniform: minVal is above maxVal: \[2.0, 1.0\]"),
        ({"maxVal": 1e39}, PoplibsError, r"FLOAT ends at 3.402823e\+38, and the interval is \[0.0, 1e\+39\]"),
        ({"minVal": -3e38, "maxVal": 3e38}, PoplibsError, "wider than the largest FLOAT"),
        ({"outType": HALF, "maxVal": 65505}, PoplibsError, "HALF ends at 65504"),
        ({"outType": HALF, "minVal": 2049, "maxVal": 2049.5}, PoplibsError, r"there is no HALF in the interval \[2049.0, 2049.5\]"),
        ({"outType": INT, "minVal": 0.5}, PoplibsError, "minVal of INTs is a whole number, got 0.5"),
        ({"outType": INT, "maxVal": 2**31}, PoplibsError, "INT goes from -2147483648 to 2147483647"),
    ]
    for change, error, message in wrong:
        with pytest.raises(error, match=message):
            poprand.uniform(**{**right, **change})
    assert (graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names)) == before
    for masterSeed, error in ((whole, PoplibsError), (None, PoplarTypeError)):
        with pytest.raises(error, match=r"poprand\.setSeed: the seed is"):
            poprand.setSeed(graph, masterSeed, 0, prog)
    with pytest.raises(PoplibsError, match="seedModifier"):
        poprand.setSeed(graph, seed, -1, prog)
