"""poprand: distributions, masks and seeds; the same bits in both engines."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import run, variable

from pypoplar import (
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    Engine,
    Graph,
    IPUModel,
    PoplarError,
    PoplarTypeError,
    UnknownVertexType,
    poprand,
    poputil,
    setStochasticRounding,
    stack,
)
from pypoplar.poprand.distributions import attempts
from pypoplar.poprand.drawn_intervals import DrawnInterval
from pypoplar.poprand.random_cycles import (
    bernoulli_loop,
    dropout_loop,
    normal_loop,
    seeding_cycles,
    truncated_normal_loop,
    uniform_int_cycles,
    uniform_loop,
)
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

SEED = (0x12345678, 0x9ABCDEF0)


def seed_of(graph, values=SEED):
    seed = graph.addConstant(UNSIGNED_INT, [2], values, "seed")
    graph.setTileMapping(seed, 0)
    return seed


def machine(tiles=4):
    """A graph with the device code of poprand, and its machine."""
    model = IPUModel("tiny")
    model.tilesPerIPU = tiles
    device = model.createDevice()
    graph = Graph(device.getTarget())
    poprand.addCodelets(graph)
    return graph, device


def drawn_by_all(calls, shape=(1000,), tiles=4, seed=SEED, mode="native", options=None, tile=None):
    """What each ``call(graph, seed, reference, prog)`` draws for a reference, mapped linearly or on one tile; and the engine."""
    graph, device = machine(tiles)
    reference = variable(graph, FLOAT, shape, "reference", tile)
    prog, tensor = Sequence(), seed_of(graph, seed) if seed else None
    results = {name: call(graph, tensor, reference, prog) for name, call in calls.items()}
    return run(graph, device, prog, {}, results, mode, options)


def drawn(call, shape=(1000,), tiles=4, seed=SEED, mode="native", options=None, tile=None):
    """The same of one call."""
    read, engine = drawn_by_all({"out": call}, shape, tiles, seed, mode, options, tile)
    return read["out"], engine


def uniform(type=FLOAT, low=0.0, high=1.0, modifier=1):
    return lambda graph, seed, reference, prog: poprand.uniform(graph, seed, modifier, reference, type, low, high, prog)


def normal(type=FLOAT, mean=0.0, deviation=1.0):
    return lambda graph, seed, reference, prog: poprand.normal(graph, seed, 1, reference, type, mean, deviation, prog)


def truncated(type=FLOAT, mean=0.0, deviation=1.0, alpha=1.5):
    return lambda graph, seed, reference, prog: poprand.truncatedNormal(
        graph, seed, 1, reference, type, mean, deviation, alpha, prog
    )


def log_uniform(type=FLOAT, low=1, high=1000, *base):
    return lambda graph, seed, reference, prog: poprand.logUniform(graph, seed, 1, reference, type, low, high, prog, *base)


def bernoulli(type=FLOAT, probability=0.3):
    return lambda graph, seed, reference, prog: poprand.bernoulli(graph, seed, 1, reference, type, probability, prog)


def ones(graph, type, shape, tile=None):
    tensor = graph.addConstant(type, shape, 1.0)
    poputil.mapTensorLinearly(graph, tensor) if tile is None else graph.setTileMapping(tensor, tile)
    return tensor


def dropout(type=FLOAT, probability=0.75, scale=3.0, modifier=1):
    def call(graph, seed, reference, prog):
        return poprand.dropout(graph, seed, modifier, ones(graph, type, reference.shape()), reference, probability, scale, prog)

    return call


def shaped_dropout(graph, seed, reference, prog):
    first = reference.flatten().slice(0, reference.shape()[-1])
    return poprand.shapedDropout(graph, seed, 1, ones(graph, HALF, reference.shape()), first, 0.5, 2.0, prog)


CALLS = {
    "uniform float": uniform(FLOAT, -3, 5),
    "uniform half": uniform(HALF, -3, 5),
    "uniform int": uniform(INT, -10, 10),
    "uniform all ints": uniform(INT, -(2**31), 2**31 - 1),
    "normal float": normal(FLOAT, 2, 3),
    "normal half": normal(HALF, 2, 3),
    "truncated normal float": truncated(FLOAT, 2, 3, 0.1),
    "truncated normal half": truncated(HALF, 2, 3, 1.5),
    "log uniform float": log_uniform(),
    "log uniform half": log_uniform(HALF, 1.5, 60000, 10),
    "log uniform int": log_uniform(INT, 1, 2**31 - 1),
    "bernoulli float": bernoulli(),
    "bernoulli half": bernoulli(HALF),
    "bernoulli int": bernoulli(INT),
    "dropout float": dropout(),
    "dropout half": dropout(HALF),
    "shaped dropout": shaped_dropout,
}


def test_numbers_do_not_depend_on_how_the_program_rounds():
    calls = {name: call for name, call in CALLS.items() if "half" in name}

    def rounded_at_random(graph, seed, reference, prog):
        setStochasticRounding(graph, prog, True)
        return reference

    for seed in (SEED, None):
        nearest, _ = drawn_by_all(calls, seed=seed, shape=(100,))
        mode = "native" if seed else "interpret"
        random, _ = drawn_by_all({"": rounded_at_random, **calls}, seed=seed, shape=(100,), mode=mode)
        for name in calls:
            assert random[name].tobytes() == nearest[name].tobytes(), (name, seed)


def step_cycles(engine):
    return [step.cycles for step in engine.getReport().execution.steps]


# seeds


@pytest.mark.no_cover
def test_a_result_is_that_of_its_seed_modifier_and_layout_in_both_engines_at_any_number_of_threads():
    first, engine = drawn_by_all(CALLS, (3, 41), 5)
    again, other = drawn_by_all(CALLS, (3, 41), 5, mode="interpret")
    others = [drawn_by_all(CALLS, (3, 41), 5, options={"pypoplar.threads": threads})[0] for threads in (1, 3)]
    assert step_cycles(engine) == step_cycles(other)
    for name in CALLS:
        assert {read[name].tobytes() for read in (again, *others)} == {first[name].tobytes()}, name


def twice(call):
    return lambda graph, seed, reference, prog: stack([call(graph, seed, reference, prog), call(graph, seed, reference, prog)])


def test_without_a_seed_the_generators_go_on_in_both_engines():
    calls = {name: twice(call) for name, call in CALLS.items()}
    native, interpreted = (drawn_by_all(calls, (3, 41), seed=None, mode=mode)[0] for mode in ("native", "interpret"))
    for name in CALLS:
        assert native[name].tobytes() == interpreted[name].tobytes(), name
        assert (native[name][0] != native[name][1]).any(), name


def test_a_seed_draws_what_the_generators_draw_after_set_seed_and_leaves_them_as_they_are():
    def around(call):
        def several(graph, seed, reference, prog):
            poprand.setSeed(graph, seed, 1, prog)
            seeded = call(graph, seed, reference, prog)
            return stack([call(graph, None, reference, prog), seeded, call(graph, None, reference, prog)])

        return several

    read, _ = drawn_by_all({name: around(call) for name, call in CALLS.items()}, (7, 43), 6)
    for name, (first, seeded, later) in read.items():
        assert first.tobytes() == seeded.tobytes(), name
        assert (first != later).any(), name


def test_another_seed_or_modifier_or_layout_draws_other_numbers():
    base = drawn(uniform(), (64,))[0]
    others = [drawn(uniform(), (64,), seed=seed)[0] for seed in ((SEED[0] + 1, SEED[1]), (SEED[0], SEED[1] + 1))]
    others += drawn_by_all({modifier: uniform(modifier=modifier) for modifier in (0, 2, 2**32 - 1)}, (64,))[0].values()
    for other in (*others, drawn(uniform(), (64,), tile=2)[0]):
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


def sums_of_twelve():
    """Probabilities of the sums of twelve numbers of 5 bits."""
    weights = np.ones(1)
    for _ in range(12):
        weights = np.convolve(weights, np.full(32, 1 / 32))
    return weights


def gaussian(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2


def spread(values):
    """Normal numbers, which come in steps of 1/32, as numbers of a density."""
    return values + np.random.default_rng(1).uniform(-1 / 64, 1 / 64, values.shape)


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_normal_numbers_are_normal(type):
    values = drawn(normal(type), (20000,))[0].astype(np.float64)
    assert abs(values).max() <= 186 / 32
    assert smirnov(spread(values), gaussian) > 0.001
    assert abs(values.mean()) < 4 / np.sqrt(20000)
    assert abs(values.std() - 1) < 0.02
    assert abs(np.mean(values**4) - 3) < 0.25
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03
    moved = drawn(normal(type, -7, 0.5), (20000,))[0].astype(np.float64)
    np.testing.assert_allclose(moved, values / 2 - 7, rtol=2e-3 if type is HALF else 0)


def test_normal_numbers_are_sums_of_twelve():
    values, _ = drawn(normal(), (20000,))
    sums = values * 32 + 186
    assert (sums == np.round(sums)).all()
    cumulative = np.cumsum(sums_of_twelve())
    counts = np.bincount(sums.astype(int), minlength=373)
    assert abs(np.cumsum(counts) / 20000 - cumulative).max() < 1.95 / np.sqrt(20000)
    assert set(drawn(normal(FLOAT, 3, 0), (50,))[0]) == {3}


@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize("alpha", [0.25, 1.5, 3.0, 100.0])
def test_truncated_normal_numbers_are_normal_within_their_bounds(type, alpha):
    values = drawn(truncated(type, 0, 1, alpha), (8000,))[0].astype(np.float64)
    assert abs(values).max() <= alpha
    end = min(alpha, 186 / 32) + 1 / 64
    share = gaussian(end) - gaussian(-end)
    assert smirnov(spread(values), lambda x: (gaussian(min(x, end)) - gaussian(-end)) / share) > 0.001
    moved = drawn(truncated(type, 10, 2, alpha), (8000,))[0].astype(np.float64)
    np.testing.assert_allclose(moved, 10 + 2 * values, atol=0.02 if type is HALF else 1e-5)


def test_attempts_at_a_truncated_number_are_those_of_poplibs():
    assert [attempts(alpha) for alpha in (1 / 32, 0.5, 1, 2, 5)] == [365, 20, 9, 3, 1]


@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize("base", [(), (10,), (1.5,)])
def test_logarithms_of_log_uniform_numbers_are_uniform(type, base):
    values = drawn(log_uniform(type, 2, 5000, *base), (10000,))[0].astype(np.float64)
    assert values.min() >= 2
    assert values.max() <= 5000
    logarithms = np.log(values)
    if type is FLOAT:
        assert smirnov(logarithms, linear(math.log(2), math.log(5000))) > 0.001
    assert abs(logarithms.mean() - math.log(10000) / 2) < 0.1


def test_log_uniform_numbers_stay_in_narrow_and_wide_intervals():
    spans = [(FLOAT, 1e30, 1.0000002e30), (HALF, 2049, 4098), (INT, 1, 2), (INT, 1, 2**31 - 1), (FLOAT, 1, 3e38)]
    read, _ = drawn_by_all({span: log_uniform(*span) for span in spans}, (500,))
    for (_, low, high), values in read.items():
        assert (values.astype(np.float64) >= low).all()
        assert (values.astype(np.float64) <= high).all()


@pytest.mark.parametrize("type", [FLOAT, HALF, INT])
def test_bernoulli_gives_ones_as_often_as_asked(type):
    read, _ = drawn_by_all({prob: bernoulli(type, prob) for prob in (0, 2.0**-17, 0.25, 0.9, 1)}, (10000,))
    for probability, values in read.items():
        assert values.dtype == type.dtype
        assert set(np.unique(values)) <= {0, 1}
        assert abs(values.astype(np.float64).mean() - probability) <= 4 * np.sqrt(probability * (1 - probability) / 10000)
    assert not read[2.0**-17].any()  # rounded down


# dropout


@pytest.mark.parametrize("type", [FLOAT, HALF])
def test_dropout_repeats_its_mask_in_the_backward_pass(type):
    def both(graph, seed, reference, prog):
        gradient = ones(graph, type, reference.shape(), tile=1)
        forward = dropout(type)(graph, seed, reference, prog)
        backward = poprand.dropout(graph, seed, 1, gradient, reference, 0.75, 0.5, prog)
        return stack([forward, backward, dropout(type, modifier=2)(graph, seed, reference, prog)])

    forward, backward, other = drawn(both, (50, 40))[0]
    assert set(np.unique(forward)) == {0, 3}
    assert set(np.unique(backward)) == {0, 0.5}
    np.testing.assert_array_equal(forward != 0, backward != 0)
    assert (forward != other).any()
    assert abs((forward != 0).mean() - 0.75) < 0.04


def test_dropout_scales_what_it_keeps_and_drops_what_is_no_number():
    graph, device = machine()
    x, reference = variable(graph, FLOAT, [200], "x", tile=3), variable(graph, FLOAT, [200], "reference")
    prog = Sequence()
    seed = seed_of(graph)
    out = poprand.dropout(graph, seed, 1, x, reference, 0.5, 1.5, prog)
    mask = poprand.bernoulli(graph, seed, 1, reference, INT, 0.5, prog)
    values = np.linspace(-5, 5, 200).astype(np.float32)
    read, _ = run(graph, device, prog, {"x": values}, {"out": out, "mask": mask})
    np.testing.assert_array_equal(read["out"], np.where(read["mask"] != 0, values * np.float32(1.5), 0))
    engine = Engine(graph, prog)
    engine.load(device)
    engine.writeTensor("x", np.full(200, np.nan, np.float32))
    engine.run()
    np.testing.assert_array_equal(np.isnan(engine.readTensor("result out")), read["mask"] != 0)


def test_the_output_of_dropout_is_laid_out_as_reference_or_input():
    graph, device = machine()
    x, reference = variable(graph, HALF, [9, 5], "x", tile=3), variable(graph, FLOAT, [9, 5], "reference")
    prog, seed = Sequence(), seed_of(graph)
    like_reference = poprand.dropout(graph, seed, 1, x, reference, 0.5, 1, prog)
    like_input = poprand.dropout(graph, seed, 1, x, reference, 0.5, 1, False, prog, "here")
    same = poprand.dropout(graph, seed, 1, x, reference, keepProbability=0.5, scale=1, outputClonesRef=True, prog=prog)
    assert graph.getTileMapping(like_reference) == graph.getTileMapping(reference) == graph.getTileMapping(same)
    assert graph.getTileMapping(like_input) == graph.getTileMapping(x)
    results = {"first": like_reference, "second": like_input, "third": same}
    read, _ = run(graph, device, prog, {"x": np.ones([9, 5], np.float16)}, results)
    assert read["first"].tobytes() == read["second"].tobytes() == read["third"].tobytes()


@pytest.mark.parametrize("scale", [1, 3])
def test_what_is_kept_for_certain_is_scaled_all_the_same(scale):
    def all_three(graph, seed, reference, prog):
        x = ones(graph, FLOAT, reference.shape())
        first = poprand.dropout(graph, seed, 1, x, reference, 1, scale, prog)
        second = poprand.shapedDropout(graph, seed, 1, x, reference[0], 1, scale, prog)
        return stack([first, second, poprand.dropout(graph, None, 1, x, reference, 1, scale, False, prog)])

    assert set(drawn(all_three, (5, 6))[0].ravel()) == {scale}


def test_shaped_dropout_drops_whole_rows_or_columns():
    def rows_and_columns(graph, seed, reference, prog):
        x = ones(graph, FLOAT, reference.shape())
        rows = poprand.shapedDropout(graph, seed, 1, x, reference.slice(0, 1, 1), 0.5, 2, prog)
        return stack([rows, poprand.shapedDropout(graph, seed, 1, x, reference[0], 0.5, 2, prog)])

    rows, columns = drawn(rows_and_columns, (40, 60))[0]
    assert set(rows.ravel()) == set(columns.ravel()) == {0, 2}
    assert (rows == rows[:, :1]).all()
    assert (columns == columns[:1]).all()
    assert 5 < (rows[:, 0] == 0).sum() < 35


bounds = st.floats(-60000, 60000) | st.floats(-1e-6, 1e-6) | st.floats(-1e-44, 1e-44)
intervals = st.tuples(bounds, bounds).map(sorted)


@examples(200)
@given(st.sampled_from([FLOAT, HALF]), intervals, st.floats(-0.5, 0.5, width=32))
def test_scales_and_offsets_keep_numbers_within_the_interval(type, interval, number):
    low, high = interval
    try:
        scale, offset = (np.float32(x) for x in DrawnInterval.within("f", type, low, high).scale_and_offset("f"))
    except PoplibsError:
        assert not low <= float(type.dtype.type((low + high) / 2)) <= high
        return
    for u in (number, -0.5, 0.5):
        value = float(type.dtype.type(np.float32(u) * scale + offset))
        assert low <= value <= high
    assert float(scale) >= (high - low) * 0.99 - 4 * max(float(np.spacing(type.dtype.type(abs(end)))) for end in interval)


def test_no_number_lies_outside_its_interval():
    spans = [(0, 1e-7), (-1e-44, 1e-44), (1000, 1000.0001), (1e-30, 1), (-65504, 65504), (3, 3.002), (2047.5, 2050), (5, 5)]
    calls = {(type, low, high): uniform(type, low, high) for type in (FLOAT, HALF) for low, high in spans}
    read, _ = drawn_by_all(calls, (500,), 2)
    for (_, low, high), values in read.items():
        assert (low <= values.astype(np.float64)).all()
        assert (values.astype(np.float64) <= high).all()


# layouts


@examples(6)
@given(st.lists(st.integers(0, 7), max_size=3), st.sampled_from([1, 4, 13]))
def test_results_have_the_shape_and_the_mapping_of_the_reference_empty_ones_as_well(shape, tiles):
    graph, device = machine(tiles)
    reference, prog, results = variable(graph, HALF, shape, "reference"), Sequence(), {}
    for name, call in CALLS.items():
        if name.endswith("half"):
            results[name] = call(graph, None, reference, prog)
            assert results[name].shape() == shape
            assert graph.getTileMapping(results[name]) == graph.getTileMapping(reference)
    read, _ = run(graph, device, prog, {}, results)
    assert (abs(read["uniform half"] - 1) <= 4).all()


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


def test_drawing_costs_what_poplibs_says():
    sizes = (1, 64, 1024, 4096)
    assert [normal_loop(FLOAT).cycles(n, FLOAT, 6) for n in sizes] == [143, 266, 2186, 8330]
    assert [dropout_loop(FLOAT).cycles(n, FLOAT, 6) for n in sizes] == [153, 215, 1175, 4247]
    assert [uniform_loop(FLOAT).cycles(n, FLOAT, 6) for n in sizes] == [144, 266, 2186, 8330]
    assert [uniform_loop(HALF).cycles(n, HALF, 6) for n in sizes] == [164, 215, 1175, 4247]
    assert [bernoulli_loop(HALF).cycles(n, HALF, 6) for n in sizes] == [140, 146, 386, 1154]
    assert [bernoulli_loop(INT).cycles(n, INT, 6) for n in sizes] == [144, 174, 654, 2190]
    assert [uniform_int_cycles(n, 5, 6) for n in sizes] == [138, 328, 3208, 12424]
    assert [uniform_int_cycles(n, 0, 6) for n in sizes] == [136, 168, 648, 2184]
    assert truncated_normal_loop(FLOAT, 3).cycles(64, FLOAT, 6) == 4 + 26 * 6 + 38 * 65 // 2
    assert truncated_normal_loop(HALF, 3).cycles(63, HALF, 6) == 4 + 28 * 6 + 41 * 66 // 4 + 46
    assert seeding_cycles(6) == 176


@pytest.mark.parametrize(("seed", "cycles"), [(SEED, 2186 + 176), (None, 2186)])
def test_a_call_is_charged_what_its_codelet_says(seed, cycles):
    _, engine = drawn(normal(), (1024,), seed=seed, tile=2)
    charged = sum(step.compute_cycles for step in engine.getReport().execution.steps if "normal" in step.name)
    assert abs(charged - cycles) <= 3


# refusals


def test_what_does_not_fit_is_refused_before_the_graph_changes():
    (graph, _), (other, _) = machine(), machine()
    reference, seed, prog = variable(graph, FLOAT, [4], "reference"), seed_of(graph), Sequence()
    whole = variable(graph, INT, [2], "whole")
    three = graph.addConstant(UNSIGNED_INT, [3], [1, 2, 3], "three")
    unmapped, modifier = graph.addVariable(FLOAT, [3], "unmapped"), graph.addVariable(UNSIGNED_INT, [1], "modifier")
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
        ({"seedModifier": three}, PoplibsError, r"a seedModifier that is a tensor is UNSIGNED_INT \[1\], got .*'three'"),
        ({"seedModifier": modifier}, PoplarError, "seedModifier = .*'modifier'.* no tile"),
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


OF_MODIFIERS = {
    "uniform": lambda graph, like, prog, *drawn: poprand.uniform(graph, *drawn, like, FLOAT, -3, 5, prog),
    "integers": lambda graph, like, prog, *drawn: poprand.uniform(graph, *drawn, like, INT, -10, 10, prog),
    "normal": lambda graph, like, prog, *drawn: poprand.normal(graph, *drawn, like, HALF, 1, 2, prog),
    "truncated": lambda graph, like, prog, *drawn: poprand.truncatedNormal(graph, *drawn, like, FLOAT, 0, 1, 1.5, prog),
    "bernoulli": lambda graph, like, prog, *drawn: poprand.bernoulli(graph, *drawn, like, HALF, 0.3, prog),
    "logarithms": lambda graph, like, prog, *drawn: poprand.logUniform(graph, *drawn, like, FLOAT, 1, 9, prog),
    "dropout": lambda graph, like, prog, *drawn: poprand.dropout(
        graph, *drawn, ones(graph, FLOAT, like.shape()), like, 0.7, 2, prog
    ),
    "shaped": lambda graph, like, prog, *drawn: poprand.shapedDropout(
        graph, *drawn, ones(graph, HALF, like.shape()), like[0], 0.7, 2, prog
    ),
}


@pytest.mark.parametrize("mode", ["native", "interpret"])
@pytest.mark.parametrize("name", OF_MODIFIERS)
def test_a_modifier_that_is_a_tensor_draws_what_the_number_draws(name, mode):
    def call(modifier, seeded=True):
        def drawing(graph, seed, reference, prog):
            given = modifier
            if isinstance(modifier, list):
                given = graph.addConstant(UNSIGNED_INT, [1], modifier, "modifier")
                graph.setTileMapping(given, 2)
            return OF_MODIFIERS[name](graph, reference, prog, seed if seeded else None, given)

        return drawing

    (number, plain), (tensor, read) = (drawn(call(one), (7, 30), mode=mode) for one in (4_000_000_007, [4_000_000_007]))
    other, _ = drawn(call([8]), (7, 30), mode=mode)
    np.testing.assert_array_equal(number, tensor)
    assert (tensor != other).any()
    charged = [sum(step.compute_cycles for step in engine.getReport().execution.steps) for engine in (plain, read)]
    assert charged[0] == charged[1]
    unseeded = [drawn(call(one, seeded=False), (7, 30), mode=mode)[0] for one in (4, [5])]
    np.testing.assert_array_equal(*unseeded)


def test_a_graph_without_the_codelets_is_told_where_to_get_them():
    graph = Graph(IPUModel("tiny").createDevice().getTarget())
    reference, prog = variable(graph, FLOAT, [4], "reference"), Sequence()
    for call in (uniform(), normal(), log_uniform(), bernoulli()):
        with pytest.raises(UnknownVertexType, match=r"poprand\..*call poprand\.addCodelets\(graph\) first"):
            call(graph, None, reference, prog)
    assert (graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names)) == (0, 0, 1)


@pytest.mark.filterwarnings("error")
def test_numpys_numbers_are_numbers():
    def numbers(graph, seed, reference, prog):
        first = poprand.uniform(graph, seed, np.uint32(1), reference, FLOAT, np.float32(0), np.float16(2), prog)
        return stack([first, poprand.uniform(graph, seed, 1, reference, FLOAT, 0, np.int64(2), prog)])

    first, second = drawn(numbers, (20,))[0]
    np.testing.assert_array_equal(first, second)


def test_dropout_of_a_virtual_graph_is_that_of_its_tiles():
    def on_virtual(call):
        def inner(graph, seed, reference, prog):
            virtual = graph.createVirtualGraph(2, 4)
            mapped = virtual.addVariable(FLOAT, reference.shape(), "mapped")
            virtual.setTileMapping(mapped, 1)
            x = virtual.addConstant(FLOAT, reference.shape(), 1.0)
            virtual.setTileMapping(x, 0)
            return call(virtual, seed, 1, x, mapped, 0.5, 2, prog)

        return inner

    calls = {"whole": on_virtual(poprand.dropout), "shaped": on_virtual(poprand.shapedDropout)}
    read, _ = drawn_by_all(calls, (30,))
    expected, _ = drawn(dropout(FLOAT, 0.5, 2), (30,), tile=3)
    for name in calls:
        np.testing.assert_array_equal(read[name], expected, err_msg=name)


def test_arguments_of_distributions_are_judged():
    graph, _ = machine()
    reference, prog = variable(graph, FLOAT, [4], "reference"), Sequence()
    before = graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names)

    def normal_of(*arguments):
        poprand.normal(graph, None, 0, reference, *arguments, prog)

    def truncated_of(*arguments):
        poprand.truncatedNormal(graph, None, 0, reference, *arguments, prog)

    def log_of(type, low, high, base=math.e):
        poprand.logUniform(graph, None, 0, reference, type, low, high, prog, base)

    def bernoulli_of(*arguments):
        poprand.bernoulli(graph, None, 0, reference, *arguments, prog)

    wrong = [
        (normal_of, (INT, 0, 1), PoplibsError, "poprand.normal draws FLOAT or HALF, got outType INT"),
        (normal_of, (FLOAT, 0, -1), PoplibsError, "stdDev is 0 at least, got -1"),
        (normal_of, (FLOAT, None, 1), PoplarTypeError, "mean is a number, got None"),
        (normal_of, (FLOAT, 0, math.inf), PoplibsError, "stdDev is a finite number, got inf"),
        (normal_of, (FLOAT, 0, 10**400), PoplibsError, "stdDev is a finite number"),
        (
            normal_of,
            (HALF, 0, 20000),
            PoplibsError,
            "HALF ends at 65504, and with mean 0.0 and stdDev 20000.0 there are numbers of 116250",
        ),
        (truncated_of, (HALF, 0, 20000, 4), PoplibsError, "there are numbers of 80000"),
        (truncated_of, (FLOAT, 0, 1, 0), PoplibsError, "alpha is 1/32 at least, the distance of the numbers drawn, got 0"),
        (truncated_of, (FLOAT, 0, 1, math.nan), PoplibsError, "alpha is a finite number, got nan"),
        (truncated_of, (INT, 0, 1, 1), PoplibsError, "draws FLOAT or HALF, got outType INT"),
        (log_of, (FLOAT, 0.5, 2), PoplibsError, r"minVal is 1 at least and below maxVal, got \[0.5, 2\]"),
        (log_of, (FLOAT, 2, 2), PoplibsError, r"minVal is 1 at least and below maxVal, got \[2, 2\]"),
        (log_of, (FLOAT, 1, 2, 1), PoplibsError, "base is above 1, got 1"),
        (log_of, (INT, 1.5, 4), PoplibsError, "minVal of INTs is a whole number, got 1.5"),
        (log_of, (INT, 1, 2**31), PoplibsError, "INT goes from"),
        (log_of, (HALF, 28392, 28393), PoplibsError, "there is no HALF in the interval"),
        (log_of, (HALF, 1, 70000), PoplibsError, "HALF ends at 65504"),
        (bernoulli_of, (FLOAT, 1.5), PoplibsError, "prob is from 0 to 1, got 1.5"),
        (bernoulli_of, (FLOAT, -0.1), PoplibsError, "prob is from 0 to 1, got -0.1"),
        (bernoulli_of, (FLOAT, math.nan), PoplibsError, "prob is a finite number, got nan"),
        (bernoulli_of, (UNSIGNED_INT, 0.5), PoplibsError, "draws FLOAT, HALF or INT, got outType UNSIGNED_INT"),
    ]
    for call, arguments, error, message in wrong:
        with pytest.raises(error, match=message):
            call(*arguments)
    assert (graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names)) == before


@pytest.mark.parametrize("call", [poprand.dropout, poprand.shapedDropout])
def test_arguments_of_dropout_are_judged(call):
    (graph, _), (other, _) = machine(), machine()
    x, reference, whole = (variable(graph, type, [4], name) for type, name in ((HALF, "x"), (FLOAT, "reference"), (INT, "whole")))
    column, prog = variable(graph, FLOAT, [4, 1], "column"), Sequence()
    foreign, seed, unmapped = variable(other, FLOAT, [4], "foreign"), seed_of(graph), graph.addVariable(FLOAT, [4], "unmapped")
    before = graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names)
    right = {
        "graph": graph,
        "seed": seed,
        "seedModifier": 1,
        "input": x,
        "reference": reference,
        "keepProbability": 0.5,
        "scale": 2,
    }
    wrong = [
        ({"input": whole}, PoplibsError, "opout draws FLOAT or HALF, got input of INT"),
        ({"input": [1]}, PoplarTypeError, "opout takes a tensor"),
        ({"input": foreign}, PoplarTypeError, "belongs to another graph"),
        ({"input": unmapped}, PoplarError, "unmapped"),
        ({"reference": column}, PoplibsError, "reference.*'column'"),
        ({"seed": whole}, PoplibsError, "the seed is UNSIGNED_INT"),
        ({"keepProbability": 1.01}, PoplibsError, "keepProbability is from 0 to 1, got 1.01"),
        ({"keepProbability": math.nan}, PoplibsError, "keepProbability is a finite number"),
        ({"scale": math.inf}, PoplibsError, "scale is a finite number, got inf"),
        ({"scale": 1e6}, PoplibsError, "HALF ends at 65504, and the scale is 1000000"),
        ({"prog": None}, PoplarTypeError, "argument prog is the Sequence"),
    ]
    for change, error, message in wrong:
        with pytest.raises(error, match=message):
            call(**{**right, "prog": prog, **change})
    assert (graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names)) == before
