"""Views against NumPy: whatever chain of views is taken, the elements and the shape are those of the same chain on an array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from small_graphs import new_graph

from pypoplar.arrays.intervals import Interval, VariableInterval
from pypoplar.errors import PoplarIndexError, PoplarTypeError, TensorShapeError
from pypoplar.graph.tensor import Tensor, UpsampleMethod
from pypoplar.graph.views import append, concat, concat_slices, stack
from pypoplar.types import FLOAT, HALF, INT, SHORT, UNSIGNED_INT


def ids(tensor):
    """The element ids as an array of the tensor's shape, by way of the runs that the compiler reads."""
    runs = tensor.runs()
    parts = [start + np.arange(count) * step for start, count, step in zip(runs.start, runs.count, runs.step, strict=True)]
    flat = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return flat.reshape(tensor.shape())


@pytest.fixture
def matrix(graph):
    return graph.addVariable(FLOAT, [4, 6], "matrix")


MATRIX = np.arange(24).reshape(4, 6)


# -- random chains ------------------------------------------------------------------------------------------------------------


def take_slice(data, tensor, array):
    axis = data.draw(st.integers(0, array.ndim - 1))
    begin = data.draw(st.integers(0, array.shape[axis]))
    end = data.draw(st.integers(begin, array.shape[axis]))
    return tensor.slice(begin, end, axis), array[(slice(None),) * axis + (slice(begin, end),)]


def take_box(data, tensor, array):
    bounds = [sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size)))) for size in array.shape]
    bounds = bounds[: data.draw(st.integers(0, array.ndim))]
    return tensor.slice([low for low, _ in bounds], [high for _, high in bounds]), array[tuple(slice(*pair) for pair in bounds)]


def take_index(data, tensor, array):
    if array.shape[0] == 0:
        return tensor, array
    index = data.draw(st.integers(-array.shape[0], array.shape[0] - 1))
    return tensor[index], np.asarray(array[index])


def take_reshape(data, tensor, array):
    sizes = [one for one in range(1, array.size + 1) if array.size % one == 0] or [1]
    first = data.draw(st.sampled_from(sizes))
    shape = (first, array.size // first)
    return tensor.reshape(shape), array.reshape(shape)


def take_flatten(data, tensor, array):
    return tensor.flatten(), array.reshape(-1)


def take_shuffle(data, tensor, array):
    order = data.draw(st.permutations(range(array.ndim)))
    return tensor.dimShuffle(order), array.transpose(order)


def take_reverse(data, tensor, array):
    axis = data.draw(st.integers(0, array.ndim - 1))
    return tensor.reverse(axis), np.flip(array, axis)


def take_sub_sample(data, tensor, array):
    axis, stride = data.draw(st.integers(0, array.ndim - 1)), data.draw(st.integers(1, 4))
    return tensor.subSample(stride, axis), array[(slice(None),) * axis + (slice(None, None, stride),)]


def take_broadcast(data, tensor, array):
    axis, times = data.draw(st.integers(0, array.ndim - 1)), data.draw(st.integers(0, 3))
    reps = [1] * array.ndim
    reps[axis] = times
    return tensor.broadcast(times, axis), np.tile(array, reps)


def take_upsample(data, tensor, array):
    axis, scale = data.draw(st.integers(0, array.ndim - 1)), data.draw(st.integers(0, 3))
    return tensor.upsample(scale, axis, UpsampleMethod.REPEAT), np.repeat(array, scale, axis)


def take_expand(data, tensor, array):
    places = data.draw(st.lists(st.integers(0, array.ndim), max_size=2))
    for one in sorted(places, reverse=True):
        array = np.expand_dims(array, one)
    return tensor.expand(places), array


def take_squeeze(data, tensor, array):
    axes = [axis for axis, size in enumerate(array.shape) if size == 1]
    return tensor.squeeze(axes), array.squeeze(tuple(axes))


def take_concat_with_itself(data, tensor, array):
    axis = data.draw(st.integers(0, array.ndim - 1))
    other, other_array = take_reverse(data, tensor, array)
    return concat(tensor, other, axis), np.concatenate([array, other_array], axis)


def take_stack(data, tensor, array):
    axis = data.draw(st.integers(0, array.ndim))
    return stack([tensor, tensor], axis), np.stack([array, array], axis)


ANY_RANK = [take_reshape, take_flatten, take_shuffle, take_expand, take_squeeze, take_stack]
RANK_ONE = [
    take_slice, take_box, take_index, take_reverse, take_sub_sample, take_broadcast, take_upsample, take_concat_with_itself,
]  # fmt: skip


def drawn_view(data, most):
    """A chain of at most so many views of variables and a constant, and the numbers of its elements."""
    graph = new_graph()
    graph.addVariable(FLOAT, [3], "before")
    shape = data.draw(st.lists(st.integers(0, 5), max_size=3))
    parts = [graph.addVariable(FLOAT, shape, f"part{number}") for number in range(data.draw(st.integers(1, 3)))]
    if data.draw(st.booleans()):
        parts.append(graph.addConstant(FLOAT, shape, 1.0, "constant"))
    first = 3 + np.arange(len(parts) * int(np.prod(shape)))
    array = first.reshape(len(parts), *shape)
    tensor = stack(parts)
    for _ in range(data.draw(st.integers(0, most))):
        view = data.draw(st.sampled_from(ANY_RANK + RANK_ONE if array.ndim else ANY_RANK))
        new_tensor, new_array = view(data, tensor, array)
        if new_array.size > 2000 or new_array.ndim > 6:
            continue
        tensor, array = new_tensor, new_array
    return tensor, array


@examples(300)
@given(data=st.data())
def test_a_chain_of_views_holds_the_elements_that_numpy_gives(data):
    tensor, array = drawn_view(data, 6)
    assert tensor.shape() == list(array.shape)
    assert ids(tensor).tolist() == array.tolist()
    assert tensor.numElements() == array.size
    assert tensor.containsAliases() == (len(np.unique(array)) < array.size)
    assert tensor == tensor.reshape(tensor.shape())


@examples(100)
@given(data=st.data())
def test_runs_are_as_the_compiler_expects_them(data):
    graph = new_graph()
    variables = [graph.addVariable(FLOAT, [data.draw(st.integers(1, 6))]) for _ in range(4)]
    picked = data.draw(st.lists(st.sampled_from([one[index] for one in variables for index in range(len(one))]), min_size=1))
    runs = concat([one.expand([0]) for one in picked]).runs()
    assert (runs.count >= 1).all()
    assert (runs.step[runs.count == 1] == 1).all()
    first = np.cumsum([0] + [len(one) for one in variables])
    last = runs.start + (runs.count - 1) * runs.step
    assert (np.searchsorted(first, runs.start, "right") == np.searchsorted(first, last, "right")).all()  # of one variable


@examples(60)
@given(data=st.data())
def test_many_slices_at_once_are_the_slices_one_after_the_other(data):
    tensor, array = drawn_view(data, 4)
    if array.ndim == 0:
        tensor, array = tensor.flatten(), array.reshape(-1)
    places = st.integers(0, len(array))
    pairs = data.draw(st.lists(st.tuples(places, places).map(sorted), max_size=12))
    begin, end = np.array(pairs, np.int64).reshape(-1, 2).T
    joined = concat_slices(tensor, begin, end)
    assert ids(joined).tolist() == np.concatenate([array[:0], *(array[low:high] for low, high in pairs)]).tolist()
    if pairs:
        one_by_one = concat(tensor.slices(pairs))
        assert joined == one_by_one
        if len(pairs) > 1:  # one slice of all is the view itself, whose runs may be others: of 3, 3, 4 either two are a run
            assert len(joined.runs().start) == len(one_by_one.runs().start)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_equal_elements_make_equal_tensors_whatever_the_way(order):
    graph = new_graph()
    x = graph.addVariable(FLOAT, [31])
    slow = concat([x[index].expand([0]) for index in order])
    fast = x._of_ids(np.array(order, np.int64))
    assert slow == fast
    assert hash(slow) == hash(fast)
    assert ids(slow).tolist() == order


# -- one by one ---------------------------------------------------------------------------------------------------------------


def test_indexing_drops_the_dimension_and_slicing_keeps_it(matrix):
    assert matrix[1].shape() == [6]
    assert matrix[1][2].shape() == []
    assert matrix[1:3].shape() == [2, 6]
    assert (
        ids(
            matrix[
                1,
                :,
            ]
        ).tolist()
        == MATRIX[1].tolist()
    )
    assert ids(matrix[-1]).tolist() == MATRIX[-1].tolist()
    assert ids(matrix[np.int64(2)]).tolist() == MATRIX[2].tolist()
    assert ids(matrix[1:3, -2]).tolist() == MATRIX[1:3, -2].tolist()
    assert ids(matrix[..., 2:4]).tolist() == MATRIX[..., 2:4].tolist()
    assert ids(matrix[-3:-1]).tolist() == MATRIX[-3:-1].tolist()


def test_slice_takes_numbers_lists_and_intervals(matrix):
    assert ids(matrix.slice(1, 3)).tolist() == MATRIX[1:3].tolist()
    assert ids(matrix.slice(1, 3, 1)).tolist() == MATRIX[:, 1:3].tolist()
    assert ids(matrix.slice([1, 1], [2, 4])).tolist() == MATRIX[1:2, 1:4].tolist()
    assert ids(matrix.slice([1], [2], [1])).tolist() == MATRIX[:, 1:2].tolist()
    assert ids(matrix.slice([np.int32(1), 1], [2, np.int64(4)])).tolist() == MATRIX[1:2, 1:4].tolist()
    assert ids(matrix.slice(Interval(1, 3))).tolist() == MATRIX[1:3].tolist()
    assert ids(matrix.slice(Interval(1, 3), 1)).tolist() == MATRIX[:, 1:3].tolist()
    assert matrix.slice(2, 2).shape() == [0, 6]


def test_slices_gives_one_slice_for_each_interval_pair_or_index(matrix):
    parts = matrix.slices([Interval(0, 2), (3, 5), 5], 1)
    wanted = [MATRIX[:, 0:2], MATRIX[:, 3:5], MATRIX[:, 5:6]]
    assert [ids(one).tolist() for one in parts] == [one.tolist() for one in wanted]


def test_index_follows_a_list_of_indices(matrix):
    assert ids(matrix.index([1, 2])).tolist() == 8
    assert ids(matrix.index([3])).tolist() == MATRIX[3].tolist()


@pytest.mark.parametrize("bad", [
    lambda t: t[4], lambda t: t[-5], lambda t: t[0, 6], lambda t: t[0:5], lambda t: t[3:2], lambda t: t[0, 0, 0], lambda t: t[::2],
    lambda t: t.slice(0, 5), lambda t: t.slice(3, 2), lambda t: t.slice(-1, 2), lambda t: t.slice(0, 1, 2), lambda t: t.dim(2),
    lambda t: t[0].slice(2, 7), lambda t: t.slice([0, 0], [1, 7]), lambda t: t.slice([0, 3], [1, 2]), lambda t: t.slice([-1], [2]),
    lambda t: t.expand([3]), lambda t: t.flatten(1, 3),
    lambda t: t.index([1, 9]), lambda t: t.reverse(2), lambda t: t.broadcast(2, 5), lambda t: Interval(3, 1),
])  # fmt: skip
def test_what_lies_beyond_the_end_raises_and_never_clips(matrix, bad):
    with pytest.raises(PoplarIndexError):
        bad(matrix)


def test_an_index_error_names_the_tensor_and_its_shape(matrix):
    with pytest.raises(PoplarIndexError, match=r"index 4 .* size 4 of 'matrix' FLOAT \[4, 6\]"):
        matrix[4]
    with pytest.raises(IndexError, match=r"slice \[2:9\) .* dimension 1 of size 6 of 'matrix'"):
        matrix.slice(2, 9, 1)


def test_an_error_of_many_slices_names_the_first_that_does_not_fit(matrix):
    wanted = r"slice number 1, \[2:9\) is out of range for dimension 0 of size 4 of 'matrix'"
    with pytest.raises(PoplarIndexError, match=wanted):
        concat_slices(matrix, [0, 2, 8], [1, 9, 9])
    with pytest.raises(PoplarIndexError, match="begins after its end"):
        concat_slices(matrix[0], [3], [2])
    with pytest.raises(PoplarIndexError, match="scalar"):
        concat_slices(matrix[0][0], [0], [1])
    for begin, end in (([0, 1], [1]), ([0.5], [1]), (0, 1)):
        with pytest.raises(PoplarTypeError, match="two arrays"):
            concat_slices(matrix, begin, end)


@pytest.mark.parametrize("bad", [
    lambda t: t.reshape([5, 5]), lambda t: t.reshapePartial(0, 1, [3]), lambda t: t.dimShuffle([0, 0]), lambda t: t.dimShuffle([0]),
    lambda t: t.dimShufflePartial([0, 1], [0]), lambda t: t[0].transpose(), lambda t: t.squeeze([0]), lambda t: t.subSample(0, 0),
    lambda t: t.broadcast(-1, 0), lambda t: concat(t, t[0]), lambda t: concat(t, t[0:2], 1), lambda t: stack([t, t[0:2]]),
    lambda t: append(t, t), lambda t: concat([]), lambda t: t.slice([0, 0], [1]), lambda t: t.reshape([-1, 7]),
])  # fmt: skip
def test_shapes_that_do_not_fit_raise(matrix, bad):
    with pytest.raises(TensorShapeError):
        bad(matrix)


@pytest.mark.parametrize("bad", [
    lambda t: t[1.0], lambda t: t["x"], lambda t: t.slice("a", "b"), lambda t: t.reinterpret(HALF),
    lambda t: t.reinterpret("float"),
    lambda t: np.asarray(t), lambda t: np.add(t, 1), lambda t: np.ones(2) * t, lambda t: concat([t, 3]), lambda t: len(t[0][0]),
    lambda t: bool(t), lambda t: concat(t, t.reinterpret(INT)), lambda t: t[None], lambda t: t.upsample(2, 0, "REPEAT"),
    lambda t: concat(t, new_graph().addVariable(FLOAT, [4, 6])),
])  # fmt: skip
def test_things_of_the_wrong_kind_raise_type_errors(matrix, bad):
    with pytest.raises(TypeError):
        bad(matrix)


def test_an_array_of_a_tensor_is_refused_with_a_hint(matrix):
    with pytest.raises(PoplarTypeError, match=r"createHostRead.*readTensor"):
        np.asarray(matrix)


def test_dimensions_are_moved_as_moveaxis_does(graph):
    t = graph.addVariable(FLOAT, [2, 3, 4, 5])
    array = np.arange(120).reshape(2, 3, 4, 5)
    assert ids(t.dimRoll(2)).tolist() == np.moveaxis(array, 2, 0).tolist()
    assert ids(t.dimRoll(0, 3)).tolist() == np.moveaxis(array, 0, 3).tolist()
    assert ids(t.dimShufflePartial([3, 0], [0, 2])).tolist() == np.moveaxis(array, [3, 0], [0, 2]).tolist()
    assert ids(t.flatten(1, 3)).tolist() == array.reshape(2, 12, 5).tolist()
    assert ids(t.reshapePartial(1, 3, [6, 2])).tolist() == array.reshape(2, 6, 2, 5).tolist()
    assert ids(t.reshape([-1, 5])).tolist() == array.reshape(-1, 5).tolist()


def test_expand_inserts_before_the_named_dimensions(matrix):
    assert matrix.expand([0]).shape() == [1, 4, 6]
    assert matrix.expand([1, 2]).shape() == [4, 1, 6, 1]
    assert matrix.expand([0, 0, 1]).shape() == [1, 1, 4, 1, 6]
    assert matrix.expand([1]).squeeze([1]) == matrix


def test_broadcast_repeats_the_whole_and_upsample_each_index(graph):
    x = graph.addVariable(FLOAT, [2])
    assert ids(x.broadcast(3, 0)).tolist() == [0, 1, 0, 1, 0, 1]
    assert ids(x.upsample(3, 0)).tolist() == [0, 0, 0, 1, 1, 1]
    assert x.upsample(0, 0).numElements() == 0
    assert x.upsample(1, 0) == x


def test_append_adds_one_element_of_a_dimension(matrix):
    assert ids(append(matrix, matrix[0])).tolist() == [*MATRIX.tolist(), MATRIX[0].tolist()]
    assert append(matrix, matrix[:, 0], 1).shape() == [4, 7]


def test_concat_takes_a_list_or_single_tensors(graph):
    a, b = graph.addVariable(FLOAT, [2, 2]), graph.addVariable(FLOAT, [2, 2])
    assert concat([a, b]) == concat(a, b)
    assert concat([a, b], 1) == concat(a, b, dimension=1)
    assert ids(concat(a, b, 1)).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert concat([a]) is a
    assert concat([a[0], a[1]]).runs().start.tolist() == [0]  # what touches is one run again
    assert len(concat(a, b).runs().start) == 2  # but not across variables


def test_reinterpret_changes_the_type_and_not_the_elements(graph):
    x = graph.addVariable(FLOAT, [3], "x")
    bits = x.reinterpret(UNSIGNED_INT)
    assert bits.elementType() is UNSIGNED_INT
    assert bits[1].elementType() is UNSIGNED_INT
    assert x.elementType() is FLOAT
    assert ids(bits).tolist() == ids(x).tolist()
    assert bits != x
    assert concat(x, x[0:1]).reinterpret(INT).elementType() is INT
    with pytest.raises(PoplarTypeError, match="4 bytes against 2"):
        x.reinterpret(SHORT)


def test_length_and_iteration_go_over_dimension_0(matrix):
    assert len(matrix) == 4
    assert [ids(row).tolist() for row in matrix] == MATRIX.tolist()
    assert [ids(one).tolist() for one in concat(matrix, matrix)[4]] == MATRIX[0].tolist()


def test_geometry_comes_from_calls(matrix):
    assert (matrix.shape(), matrix.rank(), matrix.dim(1), matrix.dim(-2), matrix.numElements()) == ([4, 6], 2, 6, 4, 24)
    assert matrix[0][0].numElements() == 1
    assert matrix.elementType() is FLOAT
    assert matrix.valid()


def test_the_repr_shows_name_type_and_shape(graph, matrix):
    other = graph.addVariable(FLOAT, [6], "other")
    assert repr(matrix) == "<Tensor 'matrix' FLOAT [4, 6]>"
    assert repr(concat(matrix[0], other)) == "<Tensor 'matrix', 'other' FLOAT [12]>"
    assert matrix[2:2].shape() == [0, 6]
    assert "FLOAT [0, 6]" in repr(matrix[2:2])
    assert matrix[1].getDebugStr() == "matrix"


def test_the_null_tensor_is_empty_and_invalid():
    null = Tensor()
    assert not null.valid()
    assert null.numElements() == 0
    assert repr(null) == "Tensor()"
    assert null == Tensor()
    assert null.getVarRegions() == []
    with pytest.raises(PoplarTypeError):
        null.graph


def test_equality_compares_elements_shape_and_type(graph, matrix):
    assert matrix[1] == matrix[1]
    assert matrix[1] != matrix[2]
    assert matrix != matrix.flatten()
    assert matrix.transpose().transpose() == matrix
    assert matrix != graph.addVariable(FLOAT, [4, 6])
    assert matrix != "matrix"


def test_aliases_and_constants_make_a_view_not_writeable(graph, matrix):
    constant = graph.addConstant(FLOAT, [6], 1.0)
    assert matrix.isParallelWriteable()
    assert matrix.transpose().isParallelWriteable()
    assert not matrix.broadcast(2, 0).isParallelWriteable()
    assert matrix.broadcast(2, 0).containsAliases()
    assert concat(matrix[0], matrix[0]).containsAliases()
    assert not concat(matrix[0], matrix[1]).containsAliases()
    assert concat(matrix[0], matrix[2]).isParallelWriteable()
    assert constant.containsConstant()
    assert concat(matrix[0], constant).containsConstant()
    assert not concat(matrix[0], constant).isParallelWriteable()
    assert not concat(matrix[0], constant).containsAliases()


def test_contiguous_regions_follow_memory(graph, matrix):
    other = graph.addVariable(FLOAT, [2], "other")
    assert matrix.isContiguous()
    assert matrix[1].isContiguous()
    assert not matrix.transpose().isContiguous()
    assert not concat(matrix[3], other).isContiguous()
    assert matrix[:, 1:3].getContiguousRegions() == [Interval(begin, begin + 2) for begin in range(0, 8, 2)]
    assert concat(matrix[3][4:6], other).getVarRegions() == [
        VariableInterval("matrix", Interval(22, 24)),
        VariableInterval("other", Interval(0, 2)),
    ]
    assert matrix[0:2].getVarRegions() == [VariableInterval("matrix", Interval(0, 12))]


def test_a_view_knows_its_graph(graph, matrix):
    assert matrix[1].graph is graph
