"""Norms over the batches of several replicas are those of one with all samples, but for the order of sums."""

import numpy as np
import pytest
from engine_builder import tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, HALF, Engine, Graph, PoplarTypeError, gcl, poplin, popnn
from pypoplar.gcl import CollectiveOperator, CommGroup, CommGroupType
from pypoplar.popnn import bn
from pypoplar.poputil import PoplibsError, mapTensorLinearly
from pypoplar.program import Sequence

EPS = 0.01


def add_up(graph, tensors, prog, replicas, name, options):
    group = CommGroup(CommGroupType.CONSECUTIVE, replicas)
    return gcl.allReduceCrossReplica(graph, tensors, CollectiveOperator.ADD, prog, group, name, options)


class Replicas:
    """A graph of some replicas in which tensors are written for each."""

    def __init__(self, count, type=FLOAT):
        self.count, self.type, self.device = count, type, tiny(8, ipus=count)
        self.graph, self.prog, self.given = Graph(self.device, count), Sequence(), {}
        for library in (gcl, popnn, poplin):
            library.addCodelets(self.graph)

    def tensor(self, name, values):
        tensor = self.graph.addVariable(self.type, list(values.shape[1:]), name)
        mapTensorLinearly(self.graph, tensor)
        self.graph.createHostWrite(name, self.graph.getNonReplicatedTensor(tensor))
        self.given[name] = values.astype(self.type.dtype)
        return tensor

    def read(self, *tensors):
        for number, tensor in enumerate(tensors):
            self.graph.createHostRead(f"r{number}", tensor)
        engine = Engine(self.graph, self.prog)
        engine.load(self.device)
        for name, values in self.given.items():
            engine.writeTensor(name, values)
        engine.run()
        return [engine.readTensor(f"r{number}") for number in range(len(tensors))]


@examples(20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(2, 1), (2, 2), (4, 2), (6, 3)]), st.booleans(), st.booleans())
def test_statistics_are_those_of_all_samples_of_a_group(seed, sizes, stable, unbiased):
    (count, together), chosen = sizes, np.random.default_rng(seed)
    acts = chosen.normal(3.0, 2.0, (count, 2, 3, 5)).astype(np.float32)
    replicas = Replicas(count)
    x = replicas.tensor("x", acts)
    pairs = [
        poplin.distributedNormStatistics(replicas.graph, x, EPS, replicas.prog, unbiased, add_up, 2 * together, stable),
        bn.distributedBatchNormStatistics(replicas.graph, x, EPS, replicas.prog, unbiased, add_up, 2 * together, stable),
    ]
    found = replicas.read(*pairs[0], *pairs[1])
    for first in range(0, count, together):
        whole = acts[first : first + together].transpose(2, 0, 1, 3).reshape(3, -1).astype(np.float64)
        deviation = 1 / np.sqrt(whole.var(1, ddof=int(unbiased)) + EPS)
        for replica in range(first, first + together):
            for mean, inverse in (found[:2], found[2:]):
                np.testing.assert_allclose(mean[replica], whole.mean(1), rtol=1e-5)
                np.testing.assert_allclose(inverse[replica], deviation, rtol=1e-4)


@pytest.mark.parametrize("whitened", [False, True])
def test_gradients_go_through_the_statistics_of_all_samples(whitened):
    chosen, count = np.random.default_rng(3), 3
    acts, grads = (chosen.normal(size=(count, 2, 4, 5)) for _ in range(2))
    gamma = np.tile(chosen.normal(size=4), (count, 1))
    replicas = Replicas(count)
    graph, prog = replicas.graph, replicas.prog
    x, slopes, factors = (replicas.tensor(name, values) for name, values in (("x", acts), ("g", grads), ("gamma", gamma)))
    mean, deviation = bn.distributedBatchNormStatistics(graph, x, EPS, prog, False, add_up, 6)
    before = (bn.batchNormWhiten(graph, x, mean, deviation, prog),) if whitened else (x,)
    after = (slopes, deviation, factors) if whitened else (slopes, mean, deviation, factors)
    result = bn.distributedBatchNormGradients(graph, *before, *after, prog, add_up, 6)
    (found,) = replicas.read(result)
    whole, slope = (values.transpose(2, 0, 1, 3).reshape(4, -1) for values in (acts, grads * gamma[0][:, None]))
    inverse = 1 / np.sqrt(whole.var(1) + EPS)[:, None]
    white = (whole - whole.mean(1, keepdims=True)) * inverse
    expected = (slope - slope.mean(1, keepdims=True) - white * (white * slope).mean(1, keepdims=True)) * inverse
    np.testing.assert_allclose(found, expected.reshape(4, count, 2, 5).transpose(1, 2, 0, 3), rtol=1e-3, atol=1e-5)


def test_halves_are_summed_in_the_type_of_the_partials():
    acts = np.random.default_rng(1).normal(size=(2, 2, 3, 4))
    replicas = Replicas(2, HALF)
    types = []

    def watched(graph, tensors, *others):
        types.extend(tensor.elementType() for tensor in tensors)
        return add_up(graph, tensors, *others)

    x = replicas.tensor("x", acts)
    mean, deviation = poplin.distributedNormStatistics(replicas.graph, x, EPS, replicas.prog, False, watched, 4)
    assert types == [FLOAT, FLOAT]
    found = replicas.read(mean, deviation)
    whole = acts.astype(np.float16).transpose(2, 0, 1, 3).reshape(3, -1).astype(np.float64)
    np.testing.assert_allclose(found[0][1], whole.mean(1), atol=2e-3)
    np.testing.assert_allclose(found[1][0], 1 / np.sqrt(whole.var(1) + EPS), rtol=2e-3)


def test_what_distributed_norms_cannot_take_is_refused():
    replicas = Replicas(2)
    graph, prog, x = replicas.graph, replicas.prog, replicas.tensor("x", np.zeros((2, 2, 3, 4)))
    for samples in (3, 0, 1, "4"):
        with pytest.raises(PoplibsError, match=f"a multiple of the 2 samples of each, got {samples!r}"):
            poplin.distributedNormStatistics(graph, x, EPS, prog, False, add_up, samples)
    for reduce in (None, lambda tensors: tensors):
        with pytest.raises(
            PoplarTypeError, match="what adds up statistics is a function of graph, tensors, prog, replicas, name, options"
        ):
            bn.distributedBatchNormStatistics(graph, x, EPS, prog, False, reduce, 4)
    for wrong in (lambda *_: None, lambda graph, tensors, *_: tensors[:1], lambda graph, tensors, *_: [x, x]):
        with pytest.raises(PoplarTypeError, match="gives tensors like those that it gets"):
            poplin.distributedNormStatistics(graph, x, EPS, prog, False, wrong, 4)
