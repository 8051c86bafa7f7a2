"""Variables, constants, clones, initial values and debug names."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import new_graph

from pypoplar.arrays.element_runs import RunList
from pypoplar.arrays.intervals import Interval
from pypoplar.device import IPUModel
from pypoplar.errors import PoplarTypeError, TensorShapeError, TensorWriteError, TypeNotSupportedError
from pypoplar.graph.cloning import TensorCloneMethod
from pypoplar.graph.graph import Graph
from pypoplar.graph.views import concat, stack
from pypoplar.types import BOOL, CHAR, DOUBLE, FLOAT, HALF, INT, LONGLONG, UNSIGNED_CHAR, UNSIGNED_INT, UNSIGNED_LONGLONG


def test_elements_are_numbered_through_all_variables(graph):
    graph.addVariable(FLOAT, [2, 3], "a")
    graph.addVariable(INT, [], "b")
    graph.addVariable(HALF, [0, 5], "c")
    graph.addConstant(BOOL, [4], True, "d")
    variables = graph.freeze().variables
    assert variables.names == ("a", "b", "c", "d")
    assert variables.types == (FLOAT, INT, HALF, BOOL)
    assert variables.shapes == ((2, 3), (), (0, 5), (4,))
    assert variables.first.tolist() == [0, 6, 7, 7, 11]
    assert list(variables.constants) == [3]


def test_a_graph_takes_a_device_or_a_target():
    device = IPUModel("tiny").createDevice()
    assert Graph(device).getTarget() == Graph(device.getTarget()).getTarget()
    assert Graph(device, 1).getReplicationFactor() == 1
    with pytest.raises(PoplarTypeError):
        Graph("tiny")


def test_names_are_readable_and_unique(graph):
    names = ["x", "x", "x_1", "", "x", ""]
    for name in names:
        graph.addVariable(FLOAT, [1], name)
    found = graph.freeze().variables.names
    assert found == ("x", "x_1", "x_1_1", "variable", "x_2", "variable_1")
    with pytest.raises(PoplarTypeError, match="debug name"):
        graph.addVariable(FLOAT, [1], name=3)


def test_trace_puts_its_name_before_those_given_inside(graph):
    with graph.trace("layer"), graph.trace("first"):
        x = graph.addVariable(FLOAT, [1], "x")
        compute = graph.addComputeSet("add")
    y = graph.addVariable(FLOAT, [1], "x")
    assert x.getDebugStr() == "layer/first/x"
    assert compute.name == "layer/first/add"
    assert y.getDebugStr() == "x"
    with pytest.raises(ZeroDivisionError), graph.trace("broken"):
        raise ZeroDivisionError
    assert graph.addVariable(FLOAT, [1], "z").getDebugStr() == "z"


def test_the_line_that_added_a_variable_is_known(graph):
    graph.addVariable(FLOAT, [1], "x")
    (location,) = graph.freeze().variables.locations
    assert location.file == __file__
    assert location.function == "test_the_line_that_added_a_variable_is_known"
    with open(__file__, encoding="utf-8") as source:
        assert 'graph.addVariable(FLOAT, [1], "x")' in source.read().splitlines()[location.line - 1]


def test_shapes_and_types_that_cannot_be_are_refused(graph):
    with pytest.raises(TensorShapeError, match="negative"):
        graph.addVariable(FLOAT, [2, -1])
    with pytest.raises(PoplarTypeError):
        graph.addVariable(FLOAT, [2.5])
    with pytest.raises(PoplarTypeError):
        graph.addVariable("float", [2])
    with pytest.raises(TypeNotSupportedError):
        graph.addVariable(DOUBLE, [2])
    assert graph.freeze().variables.names == ()


def test_constants_take_a_value_a_list_or_an_array(graph):
    fill = graph.addConstant(FLOAT, [2, 2], 1.5)
    listed = graph.addConstant(INT, [2, 2], [[1, 2], [3, 4]])
    array = graph.addConstant(HALF, [3], np.array([1.0, 2.0, 0.1]))
    assert graph.getConstantValue(fill).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert graph.getConstantValue(listed.transpose()).tolist() == [[1, 3], [2, 4]]
    assert graph.getConstantValue(array).dtype == np.float16
    assert graph.getConstantValue(concat(array, array[0:1])).tolist() == np.float16([1.0, 2.0, 0.1, 1.0]).tolist()
    assert graph.getConstantValue(graph.addConstant(FLOAT, [], 1.0).reinterpret(UNSIGNED_INT)) == 0x3F800000
    assert graph.isConstant(fill[0])
    variable = graph.addVariable(FLOAT, [2], "v")
    assert not graph.isConstant(variable)
    assert not graph.isConstant(concat(fill[0], variable))
    with pytest.raises(PoplarTypeError, match="'v'"):
        graph.getConstantValue(variable)


def test_a_constant_keeps_its_values_when_the_array_changes(graph):
    values = np.zeros(3, np.float32)
    constant = graph.addConstant(FLOAT, [3], values)
    values[:] = 9
    assert graph.getConstantValue(constant).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("type", "shape", "value", "error"), [
    (FLOAT, [3], [1, 2], TensorShapeError),
    (FLOAT, [2, 2], [[1, 2], [3]], TensorShapeError),
    (FLOAT, [1], "x", PoplarTypeError),
    (FLOAT, [1], None, PoplarTypeError),
    (INT, [1], 1.5, PoplarTypeError),
    (INT, [1], float("nan"), PoplarTypeError),
    (INT, [1], 1 << 31, PoplarTypeError),
    (UNSIGNED_INT, [1], -1, PoplarTypeError),
    (UNSIGNED_CHAR, [2], [0, 256], PoplarTypeError),
    (BOOL, [1], 2, PoplarTypeError),
])  # fmt: skip
def test_values_that_do_not_fit_a_constant_are_refused(graph, type, shape, value, error):
    with pytest.raises(error, match="constant 'c'"):
        graph.addConstant(type, shape, value, "c")


def test_whole_floats_fit_integers(graph):
    assert graph.getConstantValue(graph.addConstant(CHAR, [2], [1.0, -128.0])).tolist() == [1, -128]
    assert graph.getConstantValue(graph.addConstant(LONGLONG, [], -(1 << 63))) == -(1 << 63)


def test_initial_values_are_kept_in_the_order_of_the_calls(graph):
    x = graph.addVariable(FLOAT, [2, 3], "x")
    graph.setInitialValue(x, 1.0)
    graph.setInitialValue(x.transpose()[1], [5, 6])
    memory = np.zeros(6)
    for runs, values in graph.freeze().variables.initial:
        place = 0
        for start, count, step in zip(runs.start, runs.count, runs.step, strict=True):
            memory[start + np.arange(count) * step] = values[place : place + count]
            place += count
        assert values.dtype == np.float32
    assert memory.tolist() == [1, 5, 1, 1, 6, 1]


def test_initial_values_that_cannot_be_are_refused(graph):
    x = graph.addVariable(INT, [3], "x")
    with pytest.raises(TensorShapeError, match=r"'x' INT \[3\] has 3 elements, got 2 values"):
        graph.setInitialValue(x, [1, 2])
    with pytest.raises(PoplarTypeError, match=r"cannot hold 0.5"):
        graph.setInitialValue(x, [1, 2, 0.5])
    with pytest.raises(TensorWriteError):
        graph.setInitialValue(graph.addConstant(INT, [1], 1), 2)
    with pytest.raises(TensorWriteError):
        graph.setInitialValue(x.broadcast(2, 0), 2)


@pytest.mark.parametrize(("type", "values"), [
    (UNSIGNED_LONGLONG, [0, 2**64 - 1]),
    (LONGLONG, [2**53 + 1, 1.0]),
    (LONGLONG, [-(2**63), 2**63 - 1]),
    (UNSIGNED_LONGLONG, [True, 2.0**63]),
    (UNSIGNED_LONGLONG, [True, False]),
    (UNSIGNED_INT, np.array([1, 2], np.float16)),
    (FLOAT, [2**70, 1]),
    (HALF, [65504, -math.inf]),
])  # fmt: skip
def test_host_values_arrive_exactly(graph, type, values):
    assert graph.getConstantValue(graph.addConstant(type, [2], values)).tolist() == list(values)


@pytest.mark.parametrize(("type", "value"), [
    (UNSIGNED_LONGLONG, 2**64),
    (UNSIGNED_LONGLONG, np.array([2.0**64])),
    (LONGLONG, [2.0**63]),
    (LONGLONG, np.array([2.0**63])),
    (LONGLONG, np.array([2**63], np.uint64)),
    (INT, [2**70]),
    (INT, np.array([math.nan])),
])  # fmt: skip
def test_host_values_out_of_a_types_range_are_refused(graph, type, value):
    with pytest.raises(PoplarTypeError, match=f"is {type!r}, which cannot hold"):
        graph.addConstant(type, [1], value)


HALF_RANGE, FLOAT_RANGE = "HALF goes from -65504 to 65504", r"FLOAT goes from -3.4028235e\+38 to 3.4028235e\+38"


@pytest.mark.parametrize(("type", "shape", "values", "text"), [
    (HALF, [3], [1, 70000, 80000], f"HALF, which cannot hold 70000 at index 1: {HALF_RANGE}"),
    (HALF, [2], np.array([1.0, -65520.0]), f"HALF, which cannot hold -65520.0 at index 1: {HALF_RANGE}"),
    (HALF, [2], np.array([65504, 65520], np.int32), f"HALF, which cannot hold 65520 at index 1: {HALF_RANGE}"),
    (HALF, [], 70000, f"HALF, which cannot hold 70000: {HALF_RANGE}"),
    (FLOAT, [2, 2], [[1, 2], [1e300, 4]], rf"FLOAT, which cannot hold 1e\+300 at index \[1, 0\]: {FLOAT_RANGE}"),
    (FLOAT, [2], [0, 10**400], f"FLOAT, which cannot hold 10+ at index 1: {FLOAT_RANGE}"),
    (INT, [2], [0, 2**31], "INT, which cannot hold 2147483648 at index 1: INT goes from -2147483648 to 2147483647"),
    (INT, [2], np.array([0.0, 0.5]), "INT, which cannot hold 0.5 at index 1: INT goes from .* in whole numbers"),
    (INT, [2], np.array([0.0, math.nan]), "INT, which cannot hold nan at index 1"),
    (INT, [2], [0, math.inf], "INT, which cannot hold inf at index 1"),
    (UNSIGNED_INT, [2], [0, -1], "UNSIGNED_INT, which cannot hold -1 at index 1: UNSIGNED_INT goes from 0 to 4294967295"),
    (CHAR, [1, 2], np.array([[-128, 128]]), r"CHAR, which cannot hold 128 at index \[0, 1\]: CHAR goes from -128 to 127"),
    (BOOL, [2], [True, 2], "BOOL, which cannot hold 2 at index 1: BOOL goes from 0 to 1"),
])  # fmt: skip
def test_the_first_value_that_does_not_fit_is_named_with_the_largest_that_would(graph, type, shape, values, text):
    with pytest.raises(PoplarTypeError, match=f"^constant 'c' is {text}"):
        graph.addConstant(type, shape, values, "c")
    with pytest.raises(PoplarTypeError, match=f"'x' {type!r} .* is {text}"):
        graph.setInitialValue(graph.addVariable(type, shape, "x"), values)


@pytest.mark.parametrize("type", [HALF, FLOAT])
def test_floats_round_to_their_type_and_infinities_and_nan_pass(graph, type):
    least, most = type.limits
    given = [0.1, 1e-300, math.inf, -math.inf, math.nan, most, np.nextafter(np.float64(most), np.inf), least]
    for values in (given, np.array(given)):
        constant = graph.getConstantValue(graph.addConstant(type, [8], values))
        np.testing.assert_array_equal(constant, np.array(given).astype(type.dtype))
    assert np.isfinite(constant).sum() == 5


@given(st.sampled_from([HALF, FLOAT]), st.floats(width=64))
def test_a_value_is_refused_exactly_where_rounding_makes_it_infinite(type, value):
    graph = new_graph()
    with np.errstate(over="ignore"):
        rounded = np.float64(value).astype(type.dtype)
    if math.isinf(rounded) and not math.isinf(value):
        for values in (value, [value], np.array([value])):
            with pytest.raises(PoplarTypeError, match="cannot hold"):
                graph.addConstant(type, [1], values)
    else:
        np.testing.assert_array_equal(graph.getConstantValue(graph.addConstant(type, [1], [value])), rounded)


# -- clones -------------------------------------------------------------------------------------------------------------------

VIEWS = [
    lambda t: t,
    lambda t: t.transpose(),
    lambda t: t.reverse(0),
    lambda t: t.slice(1, 3, 1),
    lambda t: concat(t[2], t[0]),
    lambda t: t.broadcast(2, 1),
    lambda t: t[1][2],
    lambda t: t[0:0],
]


def order_of(tensor):
    """The element ids as ranks: what lies before what in memory, and what is the same element."""
    return np.unique(tensor._ids(), return_inverse=True)[1].reshape(-1).tolist()


@given(st.sampled_from(VIEWS), st.sampled_from(list(TensorCloneMethod)), st.integers(1, 3))
def test_clones_have_the_form_the_order_and_the_tiles_of_the_original(view, method, copies):
    graph = new_graph()
    x = graph.addVariable(FLOAT, [3, 4], "x")
    for row in range(3):
        graph.setTileMapping(x[row], 2 - row)
    original = view(x)
    clones = graph.cloneN(original, copies, "", method)
    assert clones.shape() == [copies, *original.shape()]
    elements = np.unique(clones._ids())
    assert len(elements) == (elements.max() - elements.min() + 1 if len(elements) else 0)  # the new variable has no holes
    for clone in clones:
        assert graph.getTileMapping(clone) == graph.getTileMapping(original)
        keeps = method is TensorCloneMethod.PRESERVE_ORDER_AND_ALIASES or (
            method is TensorCloneMethod.PRESERVE_ORDER_UNLESS_ALIASES and not original.containsAliases()
        )
        if keeps:
            assert order_of(clone) == order_of(original)
        elif method is TensorCloneMethod.GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES:
            assert len(set(order_of(clone))) == len(set(order_of(original)))
        else:
            assert order_of(clone) == list(range(original.numElements()))
    assert clones.isParallelWriteable() == (not clones.containsAliases())


@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=5),
    places=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=12),
    tiles=st.lists(st.integers(-1, 3), min_size=30, max_size=30),
    copies=st.integers(1, 2),
)
def test_clones_of_parts_of_several_variables_lie_in_their_order_on_their_tiles(sizes, places, tiles, copies):
    graph = new_graph()
    variables = [graph.addVariable(FLOAT, [size]) for size in sizes]
    told = iter(tiles)
    for variable in variables:
        for element in variable:
            if (tile := next(told)) >= 0:
                graph.setTileMapping(element, tile)
    chosen = [variables[number % len(sizes)][place % sizes[number % len(sizes)]] for number, place in places]
    original = concat([element.reshape([1]) for element in chosen] or [variables[0][:0]])
    clones = graph.cloneN(original, copies, "", TensorCloneMethod.PRESERVE_ORDER_AND_ALIASES)
    for clone in clones:
        assert order_of(clone) == order_of(original)
        assert graph.getTileMapping(clone, False) == graph.getTileMapping(original, False)
    assert len(np.unique(clones._ids())) == copies * len(np.unique(original._ids()))


@given(
    shapes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=5),
    order=st.randoms(use_true_random=False),
    between=st.booleans(),
)
def test_clones_of_whole_variables_in_any_order_are_told_without_a_look_at_their_elements(shapes, order, between):
    def cloned():
        graph = new_graph()
        views = []
        for number, shape in enumerate(shapes):
            one = graph.addVariable(FLOAT, list(shape), f"v{number}")
            for row in range(shape[0]):
                graph.setTileMapping(one[row], (number + row) % 4)
            if between:
                graph.addVariable(FLOAT, [2], f"between{number}")
            views.append((one.transpose() if number % 2 else one).flatten())
        original = concat([views[number] for number in chosen])
        clone = graph.clone(original, "clone")
        return original, clone, graph.getTileMapping(clone) == graph.getTileMapping(original)

    chosen = list(range(len(shapes)))
    order.shuffle(chosen)
    original, clone, mapped = cloned()
    with patch.object(RunList, "surely_distinct", lambda self: False):
        _, other, other_mapped = cloned()
    assert mapped
    assert other_mapped
    assert clone._ids().tolist() == other._ids().tolist()
    assert order_of(clone) == order_of(original)


def test_gathering_puts_the_elements_of_a_tile_together():
    graph = new_graph()
    x = graph.addVariable(FLOAT, [6], "x")
    for index in range(6):
        graph.setTileMapping(x[index], index % 2)
    clone = graph.clone(x, "y", TensorCloneMethod.GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES)
    assert order_of(clone) == [0, 3, 1, 4, 2, 5]
    assert [len(one) for one in graph.getTileMapping(clone)[:2]] == [3, 3]


def test_clone_takes_another_type_and_a_name(graph):
    x = graph.addVariable(FLOAT, [3], "x")
    graph.setTileMapping(x, 4)
    half = graph.clone(HALF, x, "y")
    assert half.elementType() is HALF
    assert half.getDebugStr() == "y"
    assert graph.getTileMapping(half)[4] == [Interval(0, 3)]
    assert graph.clone(x).getDebugStr() == "x_clone"
    assert graph.clone(x, name="z").getDebugStr() == "z"
    with pytest.raises(PoplarTypeError):
        graph.clone("x")
    with pytest.raises(PoplarTypeError):
        graph.clone()


def test_cloning_a_partly_mapped_tensor_maps_as_much(graph):
    x = graph.addVariable(FLOAT, [4], "x")
    graph.setTileMapping(x[1:3], 5)
    mapping = graph.getTileMapping(graph.clone(x), requireComplete=False)
    assert mapping[5] == [Interval(1, 3)]
    assert not mapping.complete


def test_the_replication_index_is_0(graph):
    assert graph.getConstantValue(graph.addReplicationIndexConstant()) == 0


def test_a_method_of_cloning_that_is_none_is_refused(graph):
    with pytest.raises(PoplarTypeError, match=r"the method of cloning 'x' FLOAT \[3\] is a TensorCloneMethod such as .*, got 3"):
        graph.clone(graph.addVariable(FLOAT, [3], "x"), "y", 3)


def test_clones_of_stacked_variables_are_one_variable(graph):
    parts = [graph.addVariable(FLOAT, [4]) for _ in range(3)]
    clone = graph.clone(stack(parts))
    assert clone.isContiguous()
    assert clone.shape() == [3, 4]


@pytest.mark.parametrize("value", [3, np.broadcast_to(np.float32(3), (4, 5)), np.broadcast_to(np.int64([[3]]), (4, 5))])
def test_one_value_for_many_elements_is_kept_once(graph, value):
    constant = graph.addConstant(FLOAT, [4, 5], value)
    x = graph.addVariable(FLOAT, [4, 5])
    graph.setInitialValue(x, value)
    variables = graph.freeze().variables
    for values in (*variables.constants.values(), *(values for _, values in variables.initial)):
        assert (values.strides, values.dtype, values.tolist()) == ((0,), np.float32, [3] * 20)
    assert graph.holdings().tables[0].bytes == 2 * 4
    assert graph.getConstantValue(constant).tolist() == [[3] * 5] * 4


def test_one_value_that_was_broadcast_is_checked_like_all_others(graph):
    with pytest.raises(PoplarTypeError, match=r"cannot hold 3\.5"):
        graph.addConstant(INT, [4], np.broadcast_to(3.5, (4,)))
    with pytest.raises(TensorShapeError, match="has 20 elements, got 4 values"):
        graph.setInitialValue(graph.addVariable(INT, [4, 5]), np.broadcast_to(3, (4,)))
    with pytest.raises(TensorShapeError, match="transpose it"):
        graph.setInitialValue(graph.addVariable(INT, [4, 5]), np.broadcast_to(3, (5, 4)))
