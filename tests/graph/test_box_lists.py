"""Views that are lists of boxes are those of the same elements as runs, whatever is asked of them or made of them."""

from itertools import accumulate, pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from small_graphs import new_graph

from pypoplar import FLOAT, UNSIGNED_INT, concat
from pypoplar.arrays.box_lists import MOST_BOXES
from pypoplar.graph.cloning import TensorCloneMethod
from pypoplar.poplin.matmul.block_layout import blocked


def in_parts(data, graph):
    """A tensor whose dimensions are cut; each part is a stretch of a variable, in a drawn order of parts and of dimensions."""
    rank = data.draw(st.integers(1, 3))
    sizes = [data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)) for _ in range(rank)]
    parts = np.empty([len(own) for own in sizes], object)
    variables = [graph.addVariable(FLOAT, [prod(map(sum, sizes))], name) for name in "ab"[: data.draw(st.integers(1, 2))]]
    begin = 0
    for index in data.draw(st.permutations(list(np.ndindex(parts.shape)))):
        shape = [own[part] for own, part in zip(sizes, index, strict=True)]
        inside = data.draw(st.permutations(range(rank)))
        flat = data.draw(st.sampled_from(variables)).slice(begin, begin + prod(shape))
        view = flat.reshape([shape[dimension] for dimension in inside]).dimShuffle(np.argsort(inside).tolist())
        parts[index] = view.reverse(0) if data.draw(st.booleans()) else view
        begin += prod(shape)
    for dimension in reversed(range(rank)):
        joined = np.empty(parts.shape[:-1], object)
        for index in np.ndindex(joined.shape):
            joined[index] = concat(list(parts[index]), dimension)
        parts = joined
    return parts.item()


def in_blocks(data, graph):
    """A matrix in blocks of several sizes, each a stretch."""
    bounds = [
        list(accumulate(data.draw(st.sampled_from([(1,), (2, 2), (1, 1, 1)]))
                        + data.draw(st.sampled_from([(), (1,), (3, 3)])), initial=0))
        for _ in range(3)
    ]  # fmt: skip
    return blocked(graph, FLOAT, bounds, "blocks").matrix


def changed(data, tensor):
    """A function that makes another view."""
    shape = tensor.shape()
    axis = data.draw(st.integers(0, len(shape) - 1))
    begin = data.draw(st.integers(0, shape[axis]))
    end = data.draw(st.integers(begin, shape[axis]))
    times = data.draw(st.integers(1, 3))
    factor = data.draw(
        st.sampled_from([one for one in range(1, tensor.numElements() + 1) if tensor.numElements() % one == 0] or [1])
    )
    order = data.draw(st.permutations(range(len(shape))))
    several = [
        lambda view: view.slice(begin, end, axis),
        lambda view: view.dimShuffle(order),
        lambda view: view.reverse(axis),
        lambda view: view.subSample(times, axis),
        lambda view: view.broadcast(times, axis),
        lambda view: view.upsample(times, axis),
        lambda view: view.reshape([factor, view.numElements() // factor]),
        lambda view: view.flatten(),
        lambda view: concat(view, view.reverse(axis), axis),
        lambda view: view.reinterpret(UNSIGNED_INT).reinterpret(FLOAT),
    ]
    return data.draw(st.sampled_from(several))


def in_one_stretch(ids, regions):
    """Whether the elements of each region follow each other, and how many all of them have."""
    alike = all(
        ids[region.begin() : region.end()] == [*range(ids[region.begin()], ids[region.begin()] + region.size())]
        for region in regions
    )
    return alike, sum(region.size() for region in regions)


def elements_of(regions):
    return [(region.variable, place) for region in regions for place in range(region.interval.begin(), region.interval.end())]


def told(tensor):
    """All that a tensor says of itself."""
    runs = tensor.runs()
    ids = [
        start + step * place for start, count, step in zip(runs.start, runs.count, runs.step, strict=True) for place in range(count)
    ]
    return (
        tensor.shape(), ids, tensor._ids().reshape(-1).tolist(), tensor.variable_numbers(), tensor.getDebugStr(),
        tensor.containsAliases(), tensor.containsConstant(), tensor.isParallelWriteable(), tensor.isContiguous(),
        in_one_stretch(ids, tensor.getContiguousRegions()), elements_of(tensor.getVarRegions()), hash(tensor), repr(tensor),
    )  # fmt: skip


def made_of(graph, tensor):
    """What calls of a graph make of a tensor, or say of it."""
    count = len(tensor.variable_numbers())
    graph.setTileMapping(tensor, 3)
    flat = tensor.flatten()
    for begin, end in pairwise((0, flat.numElements() // 3, flat.numElements())):
        graph.setTileMapping(flat.slice(begin, end), begin % 16)
    made = [count, graph.getTileMapping(tensor), [view._ids().tolist() for view in simplified(graph, tensor)]]
    for method in TensorCloneMethod:
        clone = graph.clone(tensor, "clone", method)
        made.append((clone.shape(), (clone._ids() - clone._ids().min(initial=1 << 40)).tolist(), graph.getTileMapping(clone)))
    return made


def simplified(graph, tensor):
    ordered, others = graph.reorderToSimplify(tensor, [tensor, tensor.flatten().reverse(0)])
    return [ordered, *others]


@examples(200)
@given(st.data(), st.sampled_from([in_parts, in_blocks]))
def test_a_list_of_boxes_is_the_run_list_of_the_same_elements(data, start):
    graph = new_graph()
    graph.addVariable(FLOAT, [3], "before")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.graph.views.FEW_RUNS", 0)
        tensor = start(data, graph)
        for _ in range(data.draw(st.integers(0, 5))):
            change = changed(data, tensor)
            plain = change(tensor._of_ids(tensor._ids()))
            if plain.numElements() > 3000 or plain.rank() == 0:
                break
            tensor = change(tensor)
            assert tensor == plain
            assert told(tensor) == told(plain._of_ids(plain._ids()))
    if tensor.numElements():
        assert made_of(graph, tensor) == made_of(graph, tensor._of_ids(tensor._ids()))


def test_a_matrix_of_parts_of_two_sizes_is_as_many_boxes_as_it_has_parts_of_a_size_whatever_is_made_of_it():
    matrix = blocked(new_graph(), FLOAT, [[0, 1], [*range(0, 96, 16), 100], [*range(0, 60, 12), 67]], "m").matrix.squeeze([0])
    turned = matrix.transpose()
    views = [
        matrix, turned, matrix.flatten(), turned.flatten(), matrix.reverse(1), matrix.broadcast(3), turned.broadcast(2, 1),
        turned.flatten().reshape([67, 25, 4]).dimShuffle([1, 2, 0]), turned.upsample(2), matrix.subSample(2),
        concat(matrix, matrix, 1), concat(turned.flatten(), matrix.flatten()),
    ]  # fmt: skip
    for view in views:
        assert view._boxes is not None
        assert len(view._boxes.boxes) <= 8
        assert len(view.runs().start) > MOST_BOXES
    assert matrix[:90, 1:50]._boxes is not None
    assert matrix[:80, :48]._boxes is None  # one box
    assert turned.transpose() == matrix


def test_more_boxes_than_a_view_may_have_are_runs():
    graph = new_graph()
    columns = [graph.addVariable(FLOAT, [9], f"v{number}").expand([1]) for number in range(MOST_BOXES + 1)]
    few, many = concat(columns[1:], 1), concat(columns, 1)
    assert few._boxes is not None
    assert many._boxes is None
    assert many._ids().tolist() == np.arange(9 * (MOST_BOXES + 1)).reshape(-1, 9).T.tolist()
    assert concat(few, few, 1)._boxes is None
    cut = few.flatten().slice(5, 5 + 3 * MOST_BOXES)
    assert cut._ids().tolist() == few._ids().reshape(-1)[5 : 5 + 3 * MOST_BOXES].tolist()


def test_a_clone_of_a_list_of_boxes_is_one():
    graph = new_graph()
    matrix = blocked(graph, FLOAT, [[0, 1], [0, 48, 96, 100], [0, 32, 64, 67]], "m").matrix
    graph.setTileMapping(matrix, 0)
    clone = graph.clone(matrix.dimShuffle([2, 0, 1]))
    assert clone._boxes is not None
    ids = clone._ids()
    assert (ids - ids.min()).tolist() == matrix._ids().transpose(2, 0, 1).tolist()


def test_boxes_do_not_join_variables_that_lie_side_by_side():
    graph = new_graph()
    first, second = (graph.addVariable(FLOAT, [2, 70], name) for name in "ab")
    view = concat(first.transpose(), second.transpose(), 1)
    assert view.variable_names() == ["a", "b"]
    assert len(view._boxes.boxes) == 2
    assert view.flatten().slice(60, 80).variable_names() == ["a", "b"]
    assert view.reverse(1).variable_names() == ["a", "b"]
