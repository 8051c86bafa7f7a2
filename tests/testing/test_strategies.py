"""The strategies draw what they promise, and views of tensors are the views of arrays."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from law_examples import always, examples

from pypoplar import FLOAT, INT, Graph, testing
from pypoplar.target import Target
from pypoplar.testing import strategies
from pypoplar.testing.view_chains import ARRAY_FORMS, View

shapes = strategies.shapes()


def variable(shape):
    graph = Graph(Target.of_preset("tiny"))
    return graph.addVariable(INT, list(shape), "x")


def elements(tensor):
    """The element ids that a tensor refers to, in its own shape."""
    runs = tensor.runs()
    ids = [np.arange(count) * step + start for start, count, step in zip(runs.start, runs.count, runs.step, strict=True)]
    return np.concatenate([*ids, np.empty(0, np.int64)]).astype(np.int64).reshape(tensor.shape())


@given(st.data(), shapes, st.booleans(), st.booleans())
def test_a_view_of_a_tensor_is_that_of_an_array(data, shape, aliases, empty):
    view = data.draw(strategies.views(shape, 6, aliases, empty))
    array = view.of_array(np.arange(prod(shape)).reshape(shape))
    tensor = view.of(variable(shape))
    assert tuple(tensor.shape()) == array.shape
    np.testing.assert_array_equal(elements(tensor), array)
    assert tensor.containsAliases() == (len(np.unique(array)) < array.size)
    if not empty:
        assert array.size
    if not aliases:
        assert tensor.isParallelWriteable()


@examples(20)
@given(st.data())
def test_a_random_view_copies_what_numpy_copies(data):
    shape = data.draw(shapes)
    view = data.draw(strategies.views(shape))
    values = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    expected = view.of_array(values)

    def build(graph, x, y):
        from pypoplar.program import Copy

        return Copy(view.of(x), y)

    mapping = {
        "x": data.draw(strategies.mappings(values.size, 16)),
        "y": data.draw(strategies.mappings(expected.size, 16)),
    }
    result = testing.run(build, {"x": values, "y": np.zeros(expected.shape, np.float32)}, mapping=mapping, modes=["native"])
    testing.assert_same_bits(result["y"], expected)


def test_every_step_of_a_view_can_be_drawn():
    drawn = set()

    @always(400)  # of 120 that a commit drew, none had a transpose
    @given(shapes.flatmap(lambda shape: strategies.views(shape, 6)))
    def collect(view):
        drawn.update(name for name, _ in view.steps)

    collect()
    assert drawn == set(ARRAY_FORMS)


def test_a_view_shows_itself():
    assert str(View((("slice", (0, 2, 1)), ("flatten", ())))) == ".slice(0, 2, 1).flatten()"


@given(st.data(), st.integers(0, 40), st.integers(1, 16))
def test_a_mapping_places_every_element_once(data, size, tiles):
    mapping = data.draw(strategies.mappings(size, tiles))
    assert len(mapping) == tiles
    placed = sorted(element for intervals in mapping for begin, end in intervals for element in range(begin, end))
    assert placed == list(range(size))


@given(st.data(), st.integers(1, 40), st.integers(1, 6))
def test_cuts_divide_everything_into_parts_that_are_not_empty(data, size, most):
    cuts = data.draw(strategies.cuts(size, most))
    assert (cuts[0], cuts[-1]) == (0, size)
    assert list(cuts) == sorted(set(cuts))
    assert len(cuts) - 1 <= most


@given(strategies.small_graphs(tiles=4))
def test_small_graphs_know_what_they_leave_without_running(graph):
    inputs, expected = graph.inputs(), graph.expected()
    assert list(inputs) == list(expected)
    for name, array in inputs.items():
        assert expected[name].dtype == array.dtype
        np.testing.assert_array_equal(array, graph.values[name])


@examples(30)
@given(strategies.small_graphs())
def test_small_graphs_leave_what_numpy_says_in_both_engines(graph):
    result = testing.run(graph.build, graph.inputs(), mapping=graph.mapping)
    for name, array in graph.expected().items():
        testing.assert_same_bits(result[name], array, name, nan_bits=False)


def test_floats_are_float32():
    @given(strategies.floats)
    def check(value):
        assert np.isnan(value) or float(np.float32(value)) == value or abs(value) in (1e30, 1e-40)

    check()
    assert FLOAT.dtype == np.float32
