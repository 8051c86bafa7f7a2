"""popops: operations on elements, with broadcasting, in place, into a given tensor; scaled adds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import call, new_graph, run, variable

from pypoplar import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, InvalidOption, popops, poputil
from pypoplar.program import Copy, Sequence

OPERATIONS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}
TYPES = (FLOAT, HALF, INT, UNSIGNED_INT)


def numbers(type, shape, seed=0):
    """Values that make rounding and wrapping show."""
    random = np.random.default_rng(seed)
    if type in (FLOAT, HALF):
        return (random.standard_normal(shape) * 100).astype(type.dtype)
    return random.integers(0, 2**32, shape, dtype=np.uint64).astype(np.uint32).view(type.dtype)


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


CASES = [(name, type) for name in OPERATIONS for type in TYPES if name != "div" or type in (FLOAT, HALF)]


@pytest.mark.parametrize(("name", "type"), CASES)
def test_an_operation_is_numpys_to_the_bit(name, type, mode):
    a, b = numbers(type, [3, 50], 1), numbers(type, [3, 50], 2)
    result, _ = call(lambda graph, t, prog: getattr(popops, name)(graph, *t, prog), [type, type], [a, b], mode=mode)
    assert result.dtype == type.dtype
    assert (bits(result) == bits(OPERATIONS[name](a, b))).all()


@pytest.mark.parametrize("name", OPERATIONS)
def test_in_place_and_into_a_given_tensor_give_the_same(name):
    a, b = numbers(FLOAT, [4, 40], 1), numbers(FLOAT, [4, 40], 2)
    expected = OPERATIONS[name](a, b)

    def in_place(graph, t, prog):
        assert getattr(popops, f"{name}InPlace")(graph, *t, prog) is None
        return t[0]

    def with_output(graph, t, prog):
        out = graph.addVariable(FLOAT, [4, 40], "out")
        poputil.mapTensorLinearly(graph, out, 0, 4)
        getattr(popops, f"{name}WithOutput")(graph, *t, out, prog)
        return out

    for function in (in_place, with_output):
        result, _ = call(function, [FLOAT, FLOAT], [a, b])
        assert (bits(result) == bits(expected)).all()


SHAPES = st.sampled_from(
    [
        ([3, 4], [4]),
        ([4], [3, 4]),
        ([3, 1], [1, 4]),
        ([], [5]),
        ([5], []),
        ([1], [7]),
        ([2, 1, 3], [4, 1]),
        ([], []),
        ([6, 50], [6, 1]),
    ]
)


@examples(25)
@given(SHAPES, st.sampled_from(["add", "sub", "div", "max"]), st.integers(1, 9))
def test_shapes_are_broadcast_as_numpy_does(shapes, name, tiles):
    a, b = numbers(FLOAT, shapes[0], 3), numbers(FLOAT, shapes[1], 4)
    result, _ = call(lambda graph, t, prog: getattr(popops, name)(graph, *t, prog), [FLOAT, FLOAT], [a, b], tiles)
    assert result.shape == np.broadcast_shapes(a.shape, b.shape)
    assert (bits(result) == bits(OPERATIONS[name](a, b))).all()


@pytest.mark.parametrize("name", ["add", "sub", "div", "min"])
def test_an_operand_may_be_a_number(name, mode):
    a = numbers(FLOAT, [70], 5)
    right, _ = call(lambda graph, t, prog: getattr(popops, name)(graph, t[0], 2.5, prog), [FLOAT], [a], mode=mode)
    left, _ = call(lambda graph, t, prog: getattr(popops, name)(graph, 2.5, t[0], prog), [FLOAT], [a], mode=mode)
    assert (bits(right) == bits(OPERATIONS[name](a, np.float32(2.5)))).all()
    assert (bits(left) == bits(OPERATIONS[name](np.float32(2.5), a))).all()


def test_a_bias_is_added_to_every_row_in_place():
    a, b = numbers(FLOAT, [5, 30], 6), numbers(FLOAT, [30], 7)

    def function(graph, t, prog):
        popops.addInPlace(graph, *t, prog)
        return t[0]

    assert (call(function, [FLOAT, FLOAT], [a, b])[0] == a + b).all()


@examples(20)
@given(st.permutations(range(3)), st.integers(1, 8))
def test_operands_and_results_may_be_views_in_any_order(order, tiles):
    a, b = numbers(FLOAT, [4, 6, 10], 8), numbers(FLOAT, [4, 6, 10], 9).transpose(order)

    def function(graph, t, prog):
        popops.addInPlace(graph, t[0].dimShuffle(order), t[1], prog)
        return t[0]

    result, _ = call(function, [FLOAT, FLOAT], [a, b], tiles)
    assert (result.transpose(order) == a.transpose(order) + b).all()


def test_a_part_of_a_tensor_can_be_the_place_of_the_result():
    a, b = numbers(FLOAT, [8, 9], 10), numbers(FLOAT, [3, 4], 11)

    def function(graph, t, prog):
        popops.addInPlace(graph, t[0].slice([2, 1], [5, 5]), t[1], prog)
        return t[0]

    expected = a.copy()
    expected[2:5, 1:5] += b
    assert (call(function, [FLOAT, FLOAT], [a, b])[0] == expected).all()


def test_a_tensor_added_to_itself_is_doubled():
    a = numbers(FLOAT, [40], 12)
    assert (call(lambda graph, t, prog: popops.add(graph, t[0], t[0], prog), [FLOAT], [a])[0] == a + a).all()


OVERLAPS = {
    "the same tensor": (lambda t: t, lambda a: a),
    "another order": (lambda t: t.transpose(), lambda a: a.T),
    "its first row": (lambda t: t[0], lambda a: a[0]),
    "one element": (lambda t: t[1, 2], lambda a: a[1, 2]),
    "rows turned round": (lambda t: t.reverse(0), lambda a: a[::-1]),
}


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_an_operand_may_have_elements_of_the_result(overlap):
    view, of_array = OVERLAPS[overlap]
    a, b = numbers(FLOAT, [6, 6], 12), numbers(FLOAT, [6, 6], 13)

    def in_place(graph, t, prog):
        popops.subInPlace(graph, t[0], view(t[0]), prog)
        return t[0]

    def with_output(graph, t, prog):
        popops.subWithOutput(graph, t[1], view(t[0]), t[0], prog)
        return t[0]

    def scaled(graph, t, prog):
        popops.scaledAddTo(graph, t[0], poputil.broadcastToMatch(view(t[0]), [6, 6]), 2.0, prog)
        return t[0]

    assert (call(in_place, [FLOAT], [a])[0] == a - of_array(a)).all()
    assert (call(with_output, [FLOAT, FLOAT], [a, b])[0] == b - of_array(a)).all()
    assert (call(scaled, [FLOAT], [a])[0] == a + 2 * np.broadcast_to(of_array(a), a.shape)).all()


def test_an_operand_beside_the_result_is_not_copied():
    def function(graph, t, prog):
        popops.addInPlace(graph, t[0][0], t[0][1], prog)
        return t[0]

    _, engine = call(function, [FLOAT], [numbers(FLOAT, [2, 30])])
    assert all(one.phase != "copy" for one in engine.executable.exchanges)


def test_operands_of_one_mapping_exchange_nothing_and_a_tile_has_one_vertex():
    a = numbers(FLOAT, [3, 50], 13)
    _, engine = call(lambda graph, t, prog: popops.add(graph, *t, prog), [FLOAT, FLOAT], [a, a])
    assert all(len(one.messages) == 0 for one in engine.executable.exchanges)
    assert engine.getReport().compilation.graph.numVertices == 4  # 150 elements, at least 32 on a tile


def test_the_result_is_mapped_like_the_operand_that_is_spread_most():
    graph, _ = new_graph()
    narrow = variable(graph, FLOAT, [64], "narrow", tile=3)
    wide = variable(graph, FLOAT, [64], "wide")
    graph.setTileMapping(wide[0:32], 5)
    out = popops.add(graph, narrow, wide, Sequence())
    assert graph.getTileMapping(out) == graph.getTileMapping(wide)
    row = variable(graph, FLOAT, [1, 64], "row", tile=7)
    matrix = variable(graph, FLOAT, [3, 64], "matrix", tile=9)
    assert graph.getTileMapping(popops.add(graph, row, matrix, Sequence())) == graph.getTileMapping(matrix)


def test_half_results_are_rounded_once_and_overflow_to_infinity():
    a = np.array([1.0, 60000.0, 2048.0], np.float16)
    b = np.array([2.0**-11, 60000.0, 1.0], np.float16)
    result, _ = call(lambda graph, t, prog: popops.add(graph, *t, prog), [HALF, HALF], [a, b])
    with np.errstate(over="ignore"):
        assert (bits(result) == bits(a + b)).all()


def test_wrong_operands_are_refused_with_their_names():
    graph, _ = new_graph()
    a, b = variable(graph, FLOAT, [4], "first"), variable(graph, INT, [4], "second")
    flag = variable(graph, BOOL, [4], "flag")
    prog = Sequence()
    with pytest.raises(poputil.PoplibsError, match=r"one type.*'first'.*'second'"):
        popops.add(graph, a, b, prog)
    with pytest.raises(poputil.PoplibsError, match="no BOOL: its types are FLOAT, HALF, INT, UNSIGNED_INT"):
        popops.add(graph, flag, flag, prog)
    with pytest.raises(poputil.PoplibsError, match="no INT"):
        popops.atan2(graph, b, b, prog)
    with pytest.raises(poputil.PoplibsError, match="common shape"):
        popops.add(graph, a, variable(graph, FLOAT, [3], "third"), prog)
    with pytest.raises(poputil.PoplibsError, match=r"\[2, 4\], which does not fit into .*'first'"):
        popops.addInPlace(graph, a, variable(graph, FLOAT, [2, 4], "rows"), prog)
    with pytest.raises(poputil.PoplibsError, match=r"does not fit into .*'second'"):
        popops.addWithOutput(graph, a, a, b, prog)
    with pytest.raises(poputil.PoplibsError, match="holds an element twice"):
        popops.addInPlace(graph, a.broadcast(2, 0), 1.0, prog)
    with pytest.raises(poputil.PoplibsError, match="at least one operand"):
        popops.add(graph, 1.0, 2.0, prog)
    with pytest.raises(InvalidOption, match="enableGenerateCodelet"):
        popops.add(graph, a, a, prog, "sum", {"enableGenerateCodelets": "true"})
    assert len(prog) == 0


def test_the_functions_say_what_they_do():
    assert popops.subInPlace.__name__ == "subInPlace"
    assert popops.mul.__doc__.startswith("a * b for each element, as a new tensor")


def test_an_empty_tensor_needs_no_vertex():
    graph, device = new_graph()
    a = variable(graph, FLOAT, [0, 4], "a")
    prog = Sequence()
    out = popops.add(graph, a, a, prog)
    other = variable(graph, FLOAT, [1], "other")
    prog.add(Copy(other, graph.clone(other)))
    assert out.shape() == [0, 4]
    run(graph, device, prog, {}, {})
