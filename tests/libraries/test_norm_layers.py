"""popnn's norms of batches, groups, layers and instances against NumPy in float64, and what they refuse."""

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, InvalidOption, PoplarTypeError, popnn, poputil
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

EPS = 1e-3
RELATIVE = {FLOAT: 1e-5, HALF: 4e-3}
CONTIGUOUS = {"groupNormStridedChannelGrouping": False}


def grouping(shape, count, strided):
    """For each channel its group, or None for batch norm."""
    channels = np.arange(shape[1])
    return channels % count if strided else channels // (shape[1] // count)


def over(values, groups, function):
    """A function's results for each sample and group (or each channel), in the shape of `values`, and as a vector."""
    if groups is None:
        axes = (0, *range(2, values.ndim))
        return np.broadcast_to(function(values, axes), values.shape), function(values, axes).ravel()
    spread, vector = np.empty_like(values), []
    for sample in range(values.shape[0]):
        for group in range(groups.max() + 1):
            result = function(values[sample][groups == group], None)
            spread[sample][groups == group] = result
            vector.append(result)
    return spread, np.array(vector).ravel()


def expected(values, groups):
    """The layer and its gradients in float64."""
    acts, grads, gamma, beta = (values[name].astype(np.float64) for name in ("acts", "grads", "gamma", "beta"))
    gamma, beta = (vector.reshape([1, -1, *[1] * (acts.ndim - 2)]) for vector in (gamma, beta))
    mean, means = over(acts, groups, lambda part, axes: part.mean(axes, keepdims=True))
    deviation, deviations = over(acts, groups, lambda part, axes: 1 / np.sqrt(part.var(axes, keepdims=True) + EPS))
    whitened = (acts - mean) * deviation
    slopes = grads * gamma
    of_mean, of_power = (
        over(part, groups, lambda part, axes: part.mean(axes, keepdims=True))[0] for part in (slopes, slopes * whitened)
    )
    axes = (0, *range(2, acts.ndim))
    return {
        "mean": means,
        "deviation": deviations,
        "whitened": whitened,
        "result": whitened * gamma + beta,
        "of_gamma": (whitened * grads).sum(axes),
        "of_beta": grads.sum(axes),
        "of_acts": (slopes - of_mean - whitened * of_power) * deviation,
    }


def layer(graph, kind, tensors, prog, count, options=None):
    """A layer, forward and backward, some with both forms of the gradients."""
    module, prefix = {
        "bn": (popnn.bn, "batchNorm"),
        "gn": (popnn.gn, "groupNorm"),
        "ln": (popnn.ln, "layerNorm"),
        "in": (popnn.in_, "instanceNorm"),
    }[kind]
    function = {name: getattr(module, prefix + name) for name in ("Statistics", "Whiten", "alise", "ParamGradients", "Gradients")}
    acts, grads, gamma, beta = (tensors[name] for name in ("acts", "grads", "gamma", "beta"))
    sizes = {"numGroups": count} if kind == "gn" else {}
    mean, deviation = function["Statistics"](
        graph, acts, EPS, prog, unbiasedVarEstimate=False, stableAlgo=True, options=options, **sizes
    )
    result, whitened = function["alise"](graph, acts, gamma, beta, mean, deviation, prog, options=options)
    of_gamma, of_beta = function["ParamGradients"](graph, whitened, grads, prog, FLOAT, "wu", options)
    of_acts = function["Gradients"](graph, whitened, grads, deviation, gamma, prog, options=options)
    made = {
        "mean": mean,
        "deviation": deviation,
        "whitened": whitened,
        "result": result,
        "of_gamma": of_gamma,
        "of_beta": of_beta,
        "of_acts": of_acts,
    }
    if options is None and kind in ("bn", "gn"):
        made["of_gamma again"], _ = function["ParamGradients"](graph, acts, grads, mean, deviation, prog, options=options)
        made["of_acts again"] = function["Gradients"](graph, acts, grads, mean, deviation, gamma, prog, options=options)
        made["whitened again"] = function["Whiten"](graph, acts, mean, deviation, prog, options=options)
    return made


def drawn(shape, type):
    random = np.random.default_rng(len(shape))
    values = {"acts": random.standard_normal(shape) * 2 + 1, "grads": random.standard_normal(shape)}
    values |= {"gamma": random.uniform(0.5, 1.5, shape[1]), "beta": random.standard_normal(shape[1])}
    return {name: value.astype(type.dtype) for name, value in values.items()}


KINDS = {
    "bn": ("bn", None, None),
    "strided": ("gn", 2, None),
    "contiguous": ("gn", 2, CONTIGUOUS),
    "ln": ("ln", 1, CONTIGUOUS),
    "in": ("in", 6, None),
}


@pytest.mark.parametrize(("shape", "type", "tiles"), [([3, 6, 4, 2], HALF, 4), ([2, 6, 5], FLOAT, 16), ([3, 6], FLOAT, 1)])
def test_all_norms_are_those_of_float64_in_both_engines(shape, type, tiles):
    values, reads, cycles = drawn(shape, type), [], []
    graph, device = new_graph(tiles)
    prog = Sequence()
    tensors = {name: variable(graph, type, value.shape, name) for name, value in values.items()}
    results = {}
    for name, (kind, count, options) in KINDS.items():
        made = layer(graph, kind, tensors, prog, count, options)
        results |= {f"{name}: {part}": tensor for part, tensor in made.items()}
    for place, mode in enumerate(MODES):
        read, engine = run(graph, device, prog, values, {} if place else results, mode)
        reads.append(read or {name: engine.readTensor(f"result {name}") for name in results})
        cycles.append([step.cycles for step in engine.getReport().execution.steps])
    assert cycles[0] == cycles[1]
    assert all((reads[0][name].tobytes() == reads[1][name].tobytes()) for name in reads[0])
    for name, (_, count, options) in KINDS.items():
        groups = None if count is None else grouping(shape, count, options is None)
        for part, wanted in expected(values, groups).items():
            for read in (f"{name}: {part}", f"{name}: {part} again"):
                if read in reads[0]:
                    given = reads[0][read].astype(np.float64)
                    assert given.shape == wanted.shape
                    np.testing.assert_allclose(given, wanted, rtol=10 * RELATIVE[type], atol=10 * RELATIVE[type], err_msg=read)


def blocks(graph, type, shape, name, together):
    """Activations whose channels lie in blocks, as convolutions leave them: those of a block side by side for each place."""
    batch, channels, field = shape
    memory = graph.addVariable(type, [batch, channels // together, field, together], name)
    poputil.mapTensorLinearly(graph, memory, 1, together)
    tensor = memory.dimShuffle([0, 1, 3, 2]).reshape(shape)
    graph.createHostWrite(name, tensor)
    return tensor


def group_norm(graph, tensors, prog, count, strided, stable):
    """A group norm and its gradients."""
    options = {"groupNormStridedChannelGrouping": strided}
    acts, grads, gamma, beta = (tensors[name] for name in ("acts", "grads", "gamma", "beta"))
    mean, deviation = popnn.gn.groupNormStatistics(graph, acts, EPS, prog, count, False, stable, FLOAT, "s", options)
    result, whitened = popnn.gn.groupNormalise(graph, acts, gamma, beta, mean, deviation, prog, "n", options)
    of_acts = popnn.gn.groupNormGradients(graph, whitened, grads, deviation, gamma, prog, FLOAT, "g", options)
    of_gamma, of_beta = popnn.gn.groupNormParamGradients(graph, whitened, grads, prog, FLOAT, "p", options)
    results = {"mean": mean, "deviation": deviation, "whitened": whitened, "result": result}
    return results | {"of_acts": of_acts, "of_gamma": of_gamma, "of_beta": of_beta}


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize(("type", "stable"), [(FLOAT, True), (HALF, False), (HALF, True)])
@pytest.mark.parametrize(
    ("shape", "together", "of_grads", "count"),
    [([2, 24, 20], 8, 8, 2), ([3, 12, 9], 12, 4, 3), ([2, 16, 8], 4, 4, 2), ([2, 16, 8], 8, 8, 2)],
)
def test_groups_of_channels_that_lie_apart_have_the_norms_of_float64(shape, together, of_grads, count, type, stable, strided):
    values = drawn(shape, type)
    graph, device = new_graph(16)
    prog = Sequence()
    tensors = {"acts": blocks(graph, type, shape, "acts", together), "grads": blocks(graph, type, shape, "grads", of_grads)}
    tensors |= {name: variable(graph, type, values[name].shape, name) for name in ("gamma", "beta")}
    read, _ = run(graph, device, prog, values, group_norm(graph, tensors, prog, count, strided, stable))
    for name, wanted in expected(values, grouping(shape, count, strided)).items():
        np.testing.assert_allclose(read[name], wanted, rtol=10 * RELATIVE[type], atol=10 * RELATIVE[type], err_msg=name)


@pytest.mark.parametrize("strided", [False, True])
def test_a_group_norm_of_channels_in_blocks_has_few_vertices_and_not_some_for_each_place(strided):
    shape, tiles = [2, 24, 400], 64
    graph, _ = new_graph(tiles)
    tensors = {name: blocks(graph, HALF, shape, name, 8) for name in ("acts", "grads")}
    tensors |= {name: variable(graph, HALF, shape[1:2], name) for name in ("gamma", "beta")}
    group_norm(graph, tensors, Sequence(), 2, strided, False)
    frozen = graph.freeze()
    assert np.bincount(frozen.vertices.compute_set).max() <= 3 * tiles  # a place has three blocks, of which one is of both groups
    assert len(frozen.edges.vertex) < 20 * 3 * tiles


def test_batch_norm_takes_a_factor_and_a_summand_and_parameters_are_updated():
    graph, device = new_graph(4)
    prog, values = Sequence(), drawn([2, 6, 3], FLOAT)
    tensors = {name: variable(graph, FLOAT, value.shape, name) for name, value in values.items()}
    acts, gamma, beta = tensors["acts"], tensors["gamma"], tensors["beta"]
    result = popnn.bn.batchNormalise(graph, acts, gamma, beta, prog)
    scale = variable(graph, FLOAT, [], "scale")
    updates = (popnn.bn.batchNormParamUpdate, popnn.gn.groupNormParamUpdate, popnn.ln.layerNormParamUpdate)
    deltas = variable(graph, FLOAT, [6], "deltaGamma"), variable(graph, FLOAT, [6], "deltaBeta")
    for update, by in zip(updates, (0.5, scale, -1.0), strict=True):
        update(graph, *deltas, by, gamma, beta, prog)
    popnn.in_.instanceNormParamUpdate(graph, *deltas, scale, gamma, beta, prog)
    values |= {"scale": np.float32(2), "deltaGamma": np.arange(6, dtype=np.float32), "deltaBeta": np.ones(6, np.float32)}
    read, _ = run(graph, device, prog, values, {"result": result, "new gamma": gamma, "new beta": beta})
    spread = [values[name][None, :, None] for name in ("gamma", "beta")]
    np.testing.assert_allclose(read["result"], values["acts"] * spread[0] + spread[1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(read["new gamma"], values["gamma"] + 3.5 * np.arange(6), rtol=1e-6)
    np.testing.assert_allclose(read["new beta"], values["beta"] + 3.5, rtol=1e-6)


def test_parameters_lie_where_the_channels_lie_and_flops_are_those_of_poplibs():
    graph, _ = new_graph(4)
    acts = graph.addVariable(HALF, [2, 8], "acts")
    for channel in range(8):
        graph.setTileMapping(acts.slice(channel, channel + 1, 1), channel // 2)
    gamma, beta = popnn.createNormParams(graph, acts, "n")
    for vector in (gamma, beta, popnn.createNormGamma(graph, acts), popnn.createNormBeta(graph, acts)):
        assert (vector.shape(), vector.elementType()) == ([8], HALF)
        assert [sum(map(len, map(range, [i.end() - i.begin() for i in tile]))) for tile in graph.getTileMapping(vector)] == [2] * 4
    assert popnn.getNormFwdFlops(10, 1000) == 6050
    assert popnn.getNormFwdFlops(10, 1000, False) == 2000
    assert popnn.getNormBwdFlops(10, 1000) == popnn.in_.getBwdFlops(10, 100) == 8020
    assert popnn.getNormWuFlops(10, 1000) == popnn.in_.getWuFlops(10, 100) == 3040
    assert popnn.in_.getFwdFlops(10, 100, True) == 6050


@pytest.mark.parametrize("shape", [[0, 4, 3], [2, 4, 0], [2, 0]])
def test_activations_without_elements_have_norms_without_elements(shape):
    graph, device = new_graph(4)
    acts, prog = variable(graph, FLOAT, shape, "acts"), Sequence()
    gamma, beta = popnn.createNormParams(graph, acts)
    for kind, (name, count, options) in KINDS.items():
        made = layer(graph, name, {"acts": acts, "grads": acts, "gamma": gamma, "beta": beta}, prog, count or 1, options)
        assert made["of_acts"].shape() == made["result"].shape() == shape, kind
    run(graph, device, prog, {}, {})


def test_a_layer_norm_of_the_whole_machine_is_quick():
    shape, type = [256, 128], HALF
    values = drawn(shape, type)
    graph, device = new_graph(1472)
    prog = Sequence()
    tensors = {name: variable(graph, type, value.shape, name) for name, value in values.items()}
    made = layer(graph, "ln", tensors, prog, 1)
    read, engine = run(graph, device, prog, values, made)
    for part, wanted in expected(values, grouping(shape, 1, True)).items():
        np.testing.assert_allclose(read[part].astype(np.float64), wanted, rtol=8e-2, atol=8e-2, err_msg=part)
    assert sum(step.cycles for step in engine.getReport().execution.steps) < 10_000


def test_what_cannot_be_normalised_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    other, _ = new_graph(4)
    acts, four, prog = variable(graph, HALF, [2, 6, 4], "acts"), variable(graph, HALF, [4], "four"), Sequence()
    six, three, floats = (variable(graph, type, [n], f"v{n}") for type, n in ((HALF, 6), (HALF, 3), (FLOAT, 4)))
    whole, foreign = variable(graph, INT, [2, 6], "whole"), variable(other, HALF, [2, 6, 4], "foreign")
    grads = variable(graph, HALF, [2, 6, 5], "grads")
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    gn, bn = popnn.gn, popnn.bn
    refused = [
        (
            PoplibsError,
            lambda: gn.groupNormStatistics(graph, acts, EPS, prog, 4, False),
            "6 channels of .* in 4 groups of one size",
        ),
        (PoplarTypeError, lambda: gn.groupNormStatistics(graph, acts, EPS, prog, None, False), "numGroups is a whole number"),
        (PoplibsError, lambda: gn.groupNormStatistics(graph, acts, EPS, prog, 0, False), "numGroups is 1 at least, got 0"),
        (PoplarTypeError, lambda: gn.groupNormStatistics(graph, acts, EPS, prog, 2.0, False), "numGroups is a whole number"),
        (
            PoplibsError,
            lambda: popnn.ln.layerNormStatistics(graph, whole, EPS, prog, False),
            "popnn.ln.layerNormStat.*FLOAT or HALF",
        ),
        (PoplibsError, lambda: popnn.in_.instanceNormStatistics(graph, acts, -1.0, prog, False, False), "eps is added"),
        (PoplibsError, lambda: bn.batchNormStatistics(graph, acts, EPS, prog, False, False, INT), "partialsType is FLOAT or HALF"),
        (PoplarTypeError, lambda: bn.batchNormStatistics(graph, foreign, EPS, prog, False), "batchNormStatistics.*another graph"),
        (InvalidOption, lambda: bn.batchNormWhiten(graph, acts, six, six, prog, "", CONTIGUOUS), "batchNormWhiten has no option"),
        (InvalidOption, lambda: gn.groupNormWhiten(graph, acts, four, four, prog, "", {"groupNormStrided": True}), "Grouping"),
        (PoplibsError, lambda: gn.groupNormWhiten(graph, acts, three, three, prog), "mean has a HALF for each group .* 2 samples"),
        (PoplibsError, lambda: gn.groupNormWhiten(graph, acts, four, six, prog), "invStdDev has .* as many as mean, got .*'v6'"),
        (PoplibsError, lambda: gn.groupNormWhiten(graph, acts, four, floats, prog), "invStdDev has"),
        (PoplibsError, lambda: gn.groupNormalise(graph, acts, six, four, four, four, prog), "beta has an element of HALF"),
        (PoplibsError, lambda: bn.batchNormalise(graph, acts, six, six, six, four, prog), "popnn.bn.*invStdDev has an element"),
        (PoplibsError, lambda: bn.batchNormalise(graph, acts, six, four, prog), "addend has an element"),
        (PoplibsError, lambda: gn.groupNormParamGradients(graph, acts, grads, prog), "gradsIn has the shape and type"),
        (PoplibsError, lambda: gn.groupNormParamGradients(graph, acts, acts, four, six, prog), "iStdDev has"),
        (PoplibsError, lambda: gn.groupNormGradients(graph, acts, acts, four, four, four, prog), "gamma has"),
        (PoplibsError, lambda: gn.groupNormGradients(graph, acts, acts, four, three, six, prog), "invStdDev has"),
        (PoplibsError, lambda: gn.groupNormParamUpdate(graph, four, six, 1.0, six, six, prog), "gammaDelta is .*'four'"),
        (PoplibsError, lambda: gn.groupNormParamUpdate(graph, four, four, 1.0, four, floats, prog), "have one type"),
        (PoplibsError, lambda: gn.groupNormParamUpdate(graph, four, four, 1.0, four, four, prog), "cannot be written"),
        (PoplarTypeError, lambda: gn.groupNormParamUpdate(graph, four, four, "fast", four, four, prog), "scale is a number"),
        (PoplibsError, lambda: popnn.createNormGamma(graph, four), "popnn.createNormGamma: acts is FLOAT or HALF"),
        (PoplibsError, lambda: popnn.getNormFwdFlops(-1, 4), "statisticsSize is 0 at least"),
    ]
    for kind, refuse, words in refused:
        with pytest.raises(kind, match=words):
            refuse()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
