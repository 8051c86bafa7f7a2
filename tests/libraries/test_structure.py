"""poputil: factored dimensions, groups of elements, tensors in partitions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, HALF, Graph, PoplarIndexError, Target, poputil

TARGET = Target.createIPUTarget(1, 8, "bow")


def ids(tensor):
    """The numbers of the tensor's elements, as an array of its shape."""
    runs = tensor.runs()
    numbers = [
        start + place * step for start, count, step in zip(runs.start, runs.count, runs.step, strict=True) for place in range(count)
    ]
    return np.array(numbers, np.int64).reshape(tensor.shape())


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=3), st.integers(0, 2), st.integers(0, 1))
def test_factored_dimensions_are_outer_parts_then_inner_ones_and_back(pairs, before, behind):
    graph = Graph(TARGET)
    shape = [*[2] * before, *(outer * inner for outer, inner in pairs), *[2] * behind]
    t = graph.addVariable(FLOAT, shape, "t")
    factored = poputil.factorDims(t, [inner for _, inner in pairs], before)
    split = ids(t).reshape([*[2] * before, *(size for pair in pairs for size in pair), *[2] * behind])
    places = range(before, before + 2 * len(pairs))
    order = [*range(before), *places[::2], *places[1::2], *range(before + 2 * len(pairs), split.ndim)]
    np.testing.assert_array_equal(ids(factored), split.transpose(order))
    assert poputil.unfactorDims(factored, len(pairs), before) == t


def test_factors_that_do_not_divide_are_refused():
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [4, 6], "t")
    assert poputil.factorDims(graph.addVariable(FLOAT, [4, 6, 4], "u"), [1, 2]).shape() == [4, 3, 1, 2, 4]
    for factors in ([3], [0]):
        with pytest.raises(poputil.PoplibsError, match=r"does not divide dimension 0 of .*'t'"):
            poputil.factorDims(t, factors)
    with pytest.raises(PoplarIndexError, match=r"dimensions \[1:3\) are out of range"):
        poputil.factorDims(t, [1, 1], 1)
    with pytest.raises(PoplarIndexError, match=r"dimensions \[0:4\) are out of range"):
        poputil.unfactorDims(t, 2)


def test_groups_are_what_lies_together_in_memory_and_on_a_tile():
    graph = Graph(TARGET)
    grouped = graph.addVariable(HALF, [4, 6, 8], "grouped")  # [groups, rows, group]
    graph.setTileMapping(grouped, 0)
    t = grouped.dimShuffle([1, 0, 2]).reshape([6, 32])
    assert poputil.detectInnermostGrouping(graph, t) == 8
    assert poputil.detectInnermostGrouping(graph, t.transpose()) == 6 // 6
    assert poputil.detectDimGroupings(graph, t) == [(1, 8), (0, 6), (1, 4)]
    plain = graph.addVariable(HALF, [6, 32], "plain")
    for column in range(4):
        graph.setTileMapping(plain.slice(8 * column, 8 * column + 8, 1), column)
    assert poputil.detectInnermostGrouping(graph, plain) == 8
    assert poputil.detectDimGroupings(graph, plain)[0] == (1, 8)
    assert poputil.detectInnermostGrouping(graph, graph.addVariable(HALF, [3, 0], "empty")) == 1
    scalar = graph.addVariable(FLOAT, [], "scalar")
    for call in (poputil.detectInnermostGrouping, poputil.detectDimGroupings):
        with pytest.raises(poputil.PoplibsError, match="is a scalar"):
            call(graph, scalar)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_the_groups_of_all_dimensions_together_lie_in_one_piece(sizes, random):
    graph = Graph(TARGET)
    rank = len(sizes)
    order = list(range(2 * rank))
    random.shuffle(order)
    variable = graph.addVariable(FLOAT, [sizes[place // 2][place % 2] for place in order], "t")
    graph.setTileMapping(variable, 0)
    t = variable.dimShuffle([order.index(place) for place in range(2 * rank)]).reshape([outer * inner for outer, inner in sizes])
    groupings = poputil.detectDimGroupings(graph, t)
    grouped = t
    for dimension, group in groupings:
        assert group > 1
        split = [grouped.dim(dimension) // group, group]
        grouped = grouped.reshapePartial(dimension, dimension + 1, split).dimRoll(dimension + 1, rank)
    piece = grouped[(0,) * rank]
    assert piece.numElements() == np.prod([group for _, group in groupings])
    assert piece.isContiguous()


sizes_and_counts = st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), max_size=3)


@given(sizes_and_counts)
def test_partitions_cover_a_tensor_and_lie_in_one_piece_each(pairs):
    graph = Graph(TARGET)
    shape, counts = [size for size, _ in pairs], [count for _, count in pairs]
    t = poputil.createPartitionableTensor(graph, FLOAT, shape, counts, "t")
    assert t.shape() == shape
    assert not t.containsAliases()
    visited = []
    poputil.iterateTensorPartitions(t, counts, lambda indices, partition: visited.append((indices, partition)))
    assert [indices for indices, _ in visited] == [
        list(place[::-1]) for place in product(*(range(count) for count in counts[::-1]))
    ]
    assert all(partition.isContiguous() for _, partition in visited)
    covered = np.concatenate([ids(partition).reshape(-1) for _, partition in visited])
    np.testing.assert_array_equal(np.sort(covered), np.sort(ids(t).reshape(-1)))
    for indices, partition in visited:
        each = [-(-size // count) for size, count in pairs]
        bounds = [(min(i * n, size), min((i + 1) * n, size)) for i, n, size in zip(indices, each, shape, strict=True)]
        assert partition.shape() == [high - low for low, high in bounds]


def test_partitions_go_with_dimensions():
    graph = Graph(TARGET)
    with pytest.raises(poputil.PoplibsError, match=r"nPartitions has a number .* of the shape \[3, 4\], got \[2\]"):
        poputil.createPartitionableTensor(graph, FLOAT, [3, 4], [2])
    with pytest.raises(poputil.PoplibsError, match=r"got \[2, 0\]"):
        poputil.iterateTensorPartitions(graph.addVariable(FLOAT, [3, 4], "t"), [2, 0], print)
