"""poplin's norms against NumPy in float64, their gradients also against differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, InvalidTileMapping, PoplarTypeError, concat, poplin, poputil
from pypoplar.poplin.norms.norm_cycles import CHANNEL_WORK, channel_slots, inner_slots
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

EPS = 1e-3
RELATIVE = {FLOAT: 1e-5, HALF: 4e-3}


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


LAYOUTS = ("rows", "groups", "channels last", "batch last")


def activations(graph, type, shape, name, layout="rows"):
    """A tensor [N, C, ...field] that lies in memory by rows, with (groups of) channels or the batch innermost, or in blocks.

    Blocks are as products of matrices leave them, with a part of the batch innermost and each channel on several tiles.
    """
    batch, channels, *field = shape
    layout = "rows" if layout == "blocks" and batch % 4 else layout
    together = {"groups": next(size for size in (4, 3, 2, 1) if channels % size == 0), "channels last": channels}.get(layout)
    if layout == "rows":
        return variable(graph, type, shape, name)
    if layout == "blocks":
        blocks = graph.addVariable(type, [batch // 4, channels, *field, 4], name)
        tensor = blocks.dimRoll(len(field) + 2, 1).reshape(shape)
    elif layout == "batch last":
        tensor = graph.addVariable(type, [channels, *field, batch], name).dimRoll(len(field) + 1, 0)
    else:
        grouped = graph.addVariable(type, [channels // together, batch, *field, together], name)
        tensor = grouped.dimRoll(len(field) + 2, 1).dimRoll(2, 0).reshape(shape)
    poputil.mapTensorLinearly(graph, graph.reorderToSimplify(tensor)[0])
    graph.createHostWrite(name, tensor)
    return tensor


def over_channel(values):
    return tuple(place for place in range(values.ndim) if place != 1)


def along(vector, like):
    return vector.reshape([1, -1, *[1] * (like.ndim - 2)])


def moments(values, unbiased=False):
    values = values.astype(np.float64)
    count = values.size // values.shape[1]
    variance = values.var(over_channel(values)) * (count / (count - 1) if unbiased and count > 1 else 1)
    return values.mean(over_channel(values)), 1 / np.sqrt(variance + EPS)


def close(result, wanted, type, scale=1.0):
    np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=RELATIVE[type], atol=RELATIVE[type] * scale)


@examples(8)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.sampled_from((FLOAT, HALF)),
    st.sampled_from(LAYOUTS),
    st.booleans(),
    st.booleans(),
    st.sampled_from((1, 4, 16)),
)
def test_statistics_are_those_of_float64_in_both_engines(shape, type, layout, unbiased, stable, tiles):
    values = (np.random.default_rng(sum(shape)).standard_normal(shape) + 0.5).astype(type.dtype)
    reads = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        acts, prog = activations(graph, type, shape, "acts", layout), Sequence()
        mean, deviation = poplin.normStatistics(graph, acts, EPS, prog, unbiased, stable)
        assert [mean.elementType(), deviation.elementType()] == [type, type]
        read, engine = run(graph, device, prog, {"acts": values}, {"mean": mean, "deviation": deviation}, mode)
        reads.append((read, [step.cycles for step in engine.getReport().execution.steps]))
    wanted_mean, wanted_deviation = moments(values, unbiased)
    close(reads[0][0]["mean"], wanted_mean, type)
    close(reads[0][0]["deviation"], wanted_deviation, type, 8)
    assert reads[0][1] == reads[1][1]
    assert all((reads[0][0][name] == reads[1][0][name]).all() for name in reads[0][0])


def test_the_stable_algorithm_is_right_where_the_mean_is_large():
    values = (np.random.default_rng(0).standard_normal((4, 3, 50)) + 3000).astype(np.float32)
    results = {}
    for stable in (False, True):
        graph, device = new_graph(4)
        acts, prog = variable(graph, FLOAT, [4, 3, 50], "acts"), Sequence()
        _, deviation = poplin.normStatistics(graph, acts, EPS, prog, False, stable)
        results[stable] = run(graph, device, prog, {"acts": values}, {"deviation": deviation})[0]["deviation"]
    close(results[True], moments(values)[1], FLOAT)
    assert abs(results[False] / moments(values)[1] - 1).max() > 1e-2


def layer(graph, acts, grads, prog):
    """A layer of batch norm, forward and backward."""
    gamma, beta = poplin.createNormParams(graph, acts)
    mean, deviation = poplin.normStatistics(graph, acts, EPS, prog, False, True)
    whitened = poplin.normWhiten(graph, acts, mean, deviation, prog)
    result = poplin.normalise(graph, whitened, gamma, beta, prog)
    of_gamma, of_beta = poplin.normParamGradients(graph, whitened, grads, prog)
    of_whitened = poplin.normGradients(graph, grads, gamma, prog)
    of_acts = poplin.normStatisticsGradients(graph, whitened, of_whitened, deviation, prog)
    for name, tensor in (("gamma", gamma), ("beta", beta)):
        graph.createHostWrite(name, tensor)
    return {"result": result, "of_gamma": of_gamma, "of_beta": of_beta, "of_acts": of_acts}


def expected(values):
    """The same in float64, the gradient of the activations as the adjoint of the derivative."""
    acts, grads, gamma, beta = (values[name].astype(np.float64) for name in ("acts", "grads", "gamma", "beta"))
    mean, deviation = (along(vector, acts) for vector in moments(acts))
    whitened = (acts - mean) * deviation
    of_whitened = grads * along(gamma, acts)
    means = [part.mean(over_channel(acts), keepdims=True) for part in (of_whitened, of_whitened * whitened)]
    return {
        "result": whitened * along(gamma, acts) + along(beta, acts),
        "of_gamma": (whitened * grads).sum(over_channel(acts)),
        "of_beta": grads.sum(over_channel(acts)),
        "of_acts": (of_whitened - means[0] - whitened * means[1]) * deviation,
    }


def drawn(shape, type, seed=0):
    random = np.random.default_rng(seed)
    values = {"acts": random.standard_normal(shape) * 2 + 1, "grads": random.standard_normal(shape)}
    values |= {"gamma": random.uniform(0.5, 1.5, shape[1]), "beta": random.standard_normal(shape[1])}
    return {name: value.astype(type.dtype) for name, value in values.items()}


@pytest.mark.parametrize("type", [FLOAT, HALF])
@pytest.mark.parametrize(
    ("shape", "layout", "of_grads", "tiles"),
    [
        ([3, 4, 5, 2], "rows", "rows", 4),
        ([2, 8, 3], "groups", "groups", 4),
        ([2, 8, 5, 3], "groups", "rows", 16),
        ([7, 6], "channels last", "channels last", 3),
        ([4, 5, 6], "batch last", "channels last", 1),
        ([12, 10], "blocks", "blocks", 7),
        ([8, 9, 3], "blocks", "rows", 5),
        ([9, 5], "channels last", "blocks", 4),
        ([9, 36], "channels last", "channels last", 4),
    ],
)
def test_a_layer_and_its_gradients_are_those_of_float64(shape, layout, of_grads, tiles, type, mode):
    values = drawn(shape, type)
    graph, device = new_graph(tiles)
    acts, grads = activations(graph, type, shape, "acts", layout), activations(graph, type, shape, "grads", of_grads)
    prog = Sequence()
    results = layer(graph, acts, grads, prog)
    read, _ = run(graph, device, prog, values, results, mode)
    for name, wanted in expected(values).items():
        close(read[name], wanted, type, 10)


def test_both_engines_agree_about_blocks_and_vertices_take_what_follows_in_memory():
    shape, values, reads = [16, 12], drawn([16, 12], HALF), []
    for mode in MODES:
        graph, device = new_graph(5)
        acts, grads = (activations(graph, HALF, shape, name, "blocks") for name in ("acts", "grads"))
        for tensor in (acts, grads):  # 40 elements of the 48 that a block has
            (memory, _) = graph.reorderToSimplify(tensor)
            graph.setTileMapping(memory, [[(low, min(low + 40, 192))] for low in range(0, 192, 40)])
        prog = Sequence()
        read, engine = run(graph, device, prog, values, layer(graph, acts, grads, prog), mode)
        reads.append((read, [step.cycles for step in engine.getReport().execution.steps]))
    assert reads[0][1] == reads[1][1]
    assert all((reads[0][0][name] == reads[1][0][name]).all() for name in reads[0][0])
    frozen = graph.freeze()
    whitening = [name.startswith("normWhiten") for name in frozen.compute_sets].index(True)
    tile = frozen.vertices.tile[frozen.vertices.compute_set == whitening]
    assert np.bincount(tile).tolist() == [1, 1, 1, 1, 1]  # of two blocks, too


def joined(graph, type, shape, name, layouts=("pairs", "channels last", "channels last", "batch last")):
    """A concatenation of activations that lie in different ways, each with as many channels; pairs are two channels of a place."""
    batch, channels, *field = shape
    part, parts = [batch, channels // len(layouts), *field], []
    for number, layout in enumerate(layouts):
        if layout == "pairs":
            pairs = graph.addVariable(type, [batch, part[1] // 2, *field, 2], f"{name}{number}")
            poputil.mapTensorLinearly(graph, pairs)
            parts.append(pairs.dimRoll(len(field) + 2, 2).reshape(part))
            graph.createHostWrite(f"{name}{number}", parts[-1])
        else:
            parts.append(activations(graph, type, part, f"{name}{number}", layout))
    return concat(parts, 1)


def test_what_a_concatenation_joins_is_normalised_each_part_in_its_own_order(mode):
    shape, values = [4, 32, 16], drawn([4, 32, 16], FLOAT)
    graph, device = new_graph(20)
    acts, grads = (joined(graph, FLOAT, shape, name) for name in ("acts", "grads"))
    given = {name: values[name] for name in ("gamma", "beta")}
    given |= {f"{name}{k}": part for name in ("acts", "grads") for k, part in enumerate(np.split(values[name], 4, 1))}
    read, _ = run(graph, device, (prog := Sequence()), given, layer(graph, acts, grads, prog), mode)
    for name, wanted in expected(values).items():
        close(read[name], wanted, FLOAT, 10)
    frozen = graph.freeze()
    for name in ("normWhiten", "normalise", "normGradients", "normStatisticsGradients"):
        tile = frozen.vertices.tile[frozen.vertices.compute_set == frozen.compute_sets.index(name)]
        assert np.bincount(tile).tolist() == [6] * 16, name  # pairs one, what has channels or the batch innermost the others


def test_gradients_are_those_of_differences():
    shape, values = [4, 3, 6], drawn([4, 3, 6], FLOAT, 3)
    graph, device = new_graph(4)
    acts, grads, prog = variable(graph, FLOAT, shape, "acts"), variable(graph, FLOAT, shape, "grads"), Sequence()
    results = layer(graph, acts, grads, prog)
    read, engine = run(graph, device, prog, values, results)

    def loss(**changed):
        for name, value in {**values, **changed}.items():
            engine.writeTensor(name, value)
        engine.run()
        return float((engine.readTensor("result result").astype(np.float64) * values["grads"]).sum())

    random = np.random.default_rng(5)
    for name, of in (("acts", "of_acts"), ("gamma", "of_gamma"), ("beta", "of_beta")):
        step = (random.standard_normal(values[name].shape) / 64).astype(np.float32)
        difference = loss(**{name: values[name] + step}) - loss(**{name: values[name] - step})
        assert difference == pytest.approx(2 * float((read[of].astype(np.float64) * step).sum()), rel=2e-2, abs=1e-3)


def test_the_whole_machine_normalises():
    shape, type = [2, 32, 28, 28], HALF
    values = drawn(shape, type)
    graph, device = new_graph(1472)
    acts, grads = activations(graph, type, shape, "acts", "groups"), activations(graph, type, shape, "grads", "groups")
    prog = Sequence()
    read, engine = run(graph, device, prog, values, layer(graph, acts, grads, prog))
    for name, wanted in expected(values).items():
        close(read[name], wanted, type, 30)
    assert sum(step.cycles for step in engine.getReport().execution.steps) < 15_000


def test_vectors_of_channels_lie_where_the_channels_lie():
    graph, _ = new_graph(4)
    acts = graph.addVariable(HALF, [2, 8, 3], "acts")
    for channel in range(8):
        graph.setTileMapping(acts.slice(channel, channel + 1, 1), channel // 2)
    gamma, beta = poplin.createNormGamma(graph, acts, FLOAT, "g"), poplin.createNormBeta(graph, acts)
    assert (gamma.shape(), gamma.elementType(), beta.elementType()) == ([8], FLOAT, HALF)
    mean, _ = poplin.normStatistics(graph, acts, EPS, Sequence(), False)
    for vector in (gamma, beta, mean):
        sizes = [sum(interval.size() for interval in intervals) for intervals in graph.getTileMapping(vector)]
        assert sizes == [2, 2, 2, 2]


@pytest.mark.parametrize("shape", [[0, 3, 2], [2, 3, 0], [2, 0, 3], [0, 0]])
def test_channels_without_elements_have_a_mean_of_zero(shape):
    graph, device = new_graph(4)
    acts, prog = variable(graph, FLOAT, shape, "acts"), Sequence()
    grads = variable(graph, FLOAT, shape, "grads")
    mean, deviation = poplin.normStatistics(graph, acts, 0.25, prog, True, True)
    whitened = poplin.normWhiten(graph, acts, mean, deviation, prog)
    assert poplin.normStatisticsGradients(graph, whitened, grads, deviation, prog).shape() == shape
    of_gamma, of_beta = poplin.normParamGradients(graph, whitened, grads, prog)
    results = {"mean": mean, "deviation": deviation, "gamma": of_gamma, "beta": of_beta}
    read, _ = run(graph, device, prog, {}, results)
    assert read["mean"].tolist() == [0] * shape[1]
    assert read["deviation"].tolist() == [2] * shape[1]
    assert read["gamma"].tolist() == read["beta"].tolist() == [0] * shape[1]


def test_one_element_has_its_own_mean_and_half_partials_are_rounded():
    graph, device = new_graph(4)
    acts, prog = variable(graph, HALF, [1, 5, 1], "acts"), Sequence()
    mean, deviation = poplin.normStatistics(graph, acts, 1.0, prog, True, False, HALF)
    read, _ = run(graph, device, prog, {"acts": np.full((1, 5, 1), 7, np.float16)}, {"mean": mean, "deviation": deviation})
    assert read["mean"].tolist() == [7] * 5
    assert read["deviation"].tolist() == [1] * 5


def test_views_with_repeated_and_constant_elements_are_normalised():
    graph, device = new_graph(4)
    row = variable(graph, FLOAT, [1, 3, 4], "row")
    constant = graph.addConstant(FLOAT, [1, 3, 4], np.arange(12.0), "constant")
    graph.setTileMapping(constant, 1)
    acts, prog = concat([row.broadcast(2), constant]), Sequence()
    mean, deviation = poplin.normStatistics(graph, acts, EPS, prog, False)
    whitened = poplin.normWhiten(graph, acts, mean, deviation, prog)
    values = np.random.default_rng(1).standard_normal((1, 3, 4)).astype(np.float32)
    read, _ = run(graph, device, prog, {"row": values}, {"whitened": whitened})
    whole = np.concatenate([values, values, np.arange(12.0).reshape(1, 3, 4)])
    wanted_mean, wanted_deviation = (along(vector, whole) for vector in moments(whole))
    close(read["whitened"], (whole - wanted_mean) * wanted_deviation, FLOAT, 8)


def test_vertices_cost_what_poplibs_says():
    assert inner_slots("MULTIPLY", FLOAT, 16, 5) == 1 + 1 + 5 + 16 * (3 + 2 * 5 + 5)
    assert inner_slots("MULTIPLY", HALF, 16, 5) == 1 + 2 + 2 + 2 + 2 + 3 + 4 * (6 + 5 + 3) + 1
    assert inner_slots("MULTIPLY", HALF, 5, 3) == 1 + 2 + 4 + 5 * (5 + 3 * 9) + 1
    assert inner_slots("ADD", HALF, 16, 5) == 1 + 2 + 2 + 2 + 4 + 2 * (8 + 2 * 4 + 7) + 1
    assert inner_slots("ADD", HALF, 12, 5) == 1 + 2 + 2 + 2 + 2 + 5 + 3 * (7 + 2 * 1 + 1 + 1 + 5) + 1


def test_a_vertex_takes_what_its_loops_of_elements_take():
    target = new_graph(1)[0].getTarget()
    work = CHANNEL_WORK["NormWhiten"]
    assert channel_slots(target, FLOAT, work, 512, 512, 1) == 2 + 29 + 2 * 43 * 3
    assert channel_slots(target, HALF, work, 512, 512, 1) == 2 + 26 + 2 * 22 * 3
    assert channel_slots(target, FLOAT, work, 48, 1, 48) == 2 + 20 + 2 * 4 * 2
    assert channel_slots(target, FLOAT, work, 48, 3, 16) == 2 + 15 + 2 * (2 * 7 + 4 * 2)
    assert channel_slots(target, FLOAT, work, 48, 16, 1) == 2 + 17 + 2 * inner_slots("ADD", FLOAT, 16, 1)


def test_what_cannot_be_normalised_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    other, _ = new_graph(4)
    acts, vector, prog = variable(graph, HALF, [2, 3, 4], "acts"), variable(graph, HALF, [3], "vector"), Sequence()
    floats, short = variable(graph, FLOAT, [3], "floats"), variable(graph, HALF, [2], "short")
    whole, flat = variable(graph, INT, [2, 3], "whole"), variable(graph, HALF, [6], "flat")
    shuffled, unmapped = acts.dimShuffle([0, 2, 1]), graph.addVariable(HALF, [2, 3], "unmapped")
    foreign = variable(other, HALF, [2, 3, 4], "foreign")
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    refused = [
        (PoplibsError, lambda: poplin.normStatistics(graph, whole, EPS, prog, False), "FLOAT or HALF \\[N, C.*'whole'"),
        (PoplibsError, lambda: poplin.normStatistics(graph, flat, EPS, prog, False), "batch, channels and field, got .*'flat'"),
        (PoplibsError, lambda: poplin.normStatistics(graph, acts, -1.0, prog, False), "eps is added to a variance.* got -1.0"),
        (PoplibsError, lambda: poplin.normStatistics(graph, acts, float("nan"), prog, False), "got nan"),
        (PoplarTypeError, lambda: poplin.normStatistics(graph, acts, 1e300, prog, False), "eps of .* is FLOAT, which cannot hold"),
        (PoplarTypeError, lambda: poplin.normStatistics(graph, acts, "small", prog, False), "eps is a number, got 'small'"),
        (PoplarTypeError, lambda: poplin.normStatistics(graph, acts, EPS, prog, 1), "unbiasedVarEstimate is True or False"),
        (PoplibsError, lambda: poplin.normStatistics(graph, acts, EPS, prog, False, False, INT), "partialsType is FLOAT, or HALF"),
        (PoplarTypeError, lambda: poplin.normStatistics(graph, foreign, EPS, prog, False), "actsUngrouped = .* another graph"),
        (InvalidTileMapping, lambda: poplin.normStatistics(graph, unmapped, EPS, prog, False), "unmapped"),
        (
            PoplibsError,
            lambda: poplin.normWhiten(graph, acts, short, vector, prog),
            "mean has an element of HALF for each of the 3",
        ),
        (PoplibsError, lambda: poplin.normWhiten(graph, acts, vector, floats, prog), "iStdDev has .* got .*'floats'"),
        (PoplibsError, lambda: poplin.normalise(graph, acts, vector, short, prog), "beta has"),
        (PoplibsError, lambda: poplin.normGradients(graph, acts, floats, prog), "gamma has"),
        (PoplibsError, lambda: poplin.normParamGradients(graph, acts, shuffled, prog), "gradsIn has the shape and type"),
        (PoplibsError, lambda: poplin.normStatisticsGradients(graph, acts, acts, floats, prog), "invStdDev has"),
        (PoplarTypeError, lambda: poplin.normGradients(graph, acts, vector, [prog]), "prog is the Sequence"),
        (PoplibsError, lambda: poplin.createNormGamma(graph, acts, INT), "makes a FLOAT or HALF vector, got the type INT"),
    ]
    for kind, refuse, words in refused:
        with pytest.raises(kind, match=words):
            refuse()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
