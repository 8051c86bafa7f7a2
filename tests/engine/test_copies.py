"""Copies between tensors: every element arrives at its place, and nothing else changes."""

import numpy as np
import pytest
from engine_builder import Bench, tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import BOOL, CHAR, FLOAT, HALF, INT, LONGLONG, SHORT, UNSIGNED_CHAR, IPUModel, concat, testing
from pypoplar.program import Copy, Repeat, Sequence, WriteUndef
from pypoplar.testing import strategies

TYPES = [BOOL, CHAR, UNSIGNED_CHAR, SHORT, HALF, INT, FLOAT, LONGLONG]
SCATTERED = np.arange(24) * 5 % 16


def copied(mode, source, target, view_source, view_target, type=INT, tile_source=SCATTERED, tile_target=SCATTERED[::-1]):
    """What a copy leaves in its target variable."""
    bench = Bench()
    x = bench.variable("x", source, tile_source, type)
    y = bench.variable("y", target, tile_target, type)
    engine = bench.engine(Copy(view_source(x), view_target(y)), mode)
    engine.run()
    np.testing.assert_array_equal(engine.readTensor("x"), np.asarray(source).astype(type.dtype))
    return engine.readTensor("y")


def whole(tensor):
    return tensor


@pytest.mark.parametrize("type", TYPES, ids=lambda one: one.__name__)
@pytest.mark.parametrize(("tile_source", "tile_target"), [(0, 0), (0, 9), (SCATTERED, 3), (3, SCATTERED), (SCATTERED, SCATTERED)])
def test_elements_of_every_size_are_copied_within_and_between_tiles(mode, type, tile_source, tile_target):
    source = np.random.default_rng(3).integers(0, 2 if type is BOOL else 100, 24)
    found = copied(mode, source, np.zeros(24), whole, whole, type, tile_source, tile_target)
    assert found.tolist() == source.tolist()


@pytest.mark.parametrize("type", [HALF, CHAR, LONGLONG], ids=lambda one: one.__name__)
@pytest.mark.parametrize(("tile_source", "tile_target"), [(0, 0), (0, 9), (SCATTERED, SCATTERED[::-1])])
def test_neighbours_of_what_is_written_stay(mode, type, tile_source, tile_target):
    def part(tensor):
        return tensor[3:20].subSample(3, 0)

    expected = np.full(24, 77)
    expected[3:20:3] = np.arange(24)[3:20:3]
    found = copied(mode, np.arange(24), np.full(24, 77), part, part, type, tile_source, tile_target)
    assert found.tolist() == expected.tolist()


def test_rows_columns_and_reversed_views_are_copied(mode):
    source = np.arange(24).reshape(4, 6)
    found = copied(mode, source, np.zeros((6, 4)), lambda x: x.reverse(1), lambda y: y.transpose().reverse(0))
    np.testing.assert_array_equal(found.T[::-1], source[:, ::-1])


def test_shapes_need_not_agree(mode):
    found = copied(mode, np.arange(24), np.zeros((2, 3, 4)), lambda x: x[0:6], lambda y: y[1, 0:2, 1:4])
    expected = np.zeros((2, 3, 4))
    expected[1, 0:2, 1:4] = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(found, expected)


def test_one_element_fills_a_tensor(mode):
    found = copied(mode, np.arange(24), np.zeros((4, 6)), lambda x: x[5:6].broadcast(24, 0).reshape([4, 6]), whole)
    assert found.tolist() == [[5] * 6] * 4


def test_a_broadcast_row_fills_all_rows(mode):
    found = copied(mode, np.arange(24), np.zeros((4, 6)), lambda x: x[6:12].expand([0]).broadcast(4, 0), whole)
    assert found.tolist() == [[6, 7, 8, 9, 10, 11]] * 4


def test_constants_and_variables_are_copied_together(mode):
    bench = Bench()
    x, y = bench.variable("x", [1.5, 2.5], 3), bench.variable("y", np.zeros(6), np.arange(6))
    constant = bench.graph.addConstant(FLOAT, [2], [8, 9])
    bench.graph.setTileMapping(constant, 7)
    engine = bench.engine(Copy(concat([constant.reverse(0), x, constant]), y), mode)
    engine.run()
    assert engine.readTensor("y").tolist() == [9, 8, 1.5, 2.5, 8, 9]


@pytest.mark.parametrize("size", [[0], [3, 0], [0, 0, 4]])
def test_a_copy_of_no_elements_does_nothing(mode, size):
    bench = Bench()
    x, y = bench.variable("x", np.zeros(size)), bench.variable("y", np.zeros(size))
    program = Sequence([Copy(x, y), WriteUndef(x)])
    bench.engine(program, mode).run()


def test_a_copy_of_a_tensor_to_itself_changes_nothing(mode):
    bench = Bench()
    x = bench.variable("x", np.arange(24), SCATTERED)
    engine = bench.engine(Sequence([Copy(x, x), Copy(x.reverse(0), x.reverse(0)), Copy(x[3:9], x[3:9])]), mode)
    engine.run()
    assert engine.readTensor("x").tolist() == list(range(24))


def test_parts_of_one_variable_are_copied_to_other_parts_of_it(mode):
    bench = Bench()
    x = bench.variable("x", np.arange(24), SCATTERED)
    engine = bench.engine(Repeat(3, Sequence([Copy(x[0:6], x[12:18]), Copy(x[12:24].reverse(0), x[0:12])])), mode)
    engine.run()
    expected = np.arange(24)
    for _ in range(3):
        expected[12:18] = expected[0:6]
        expected[0:12] = expected[12:24][::-1].copy()
    assert engine.readTensor("x").tolist() == expected.tolist()


def test_bits_of_nan_survive_a_copy(mode):
    bits = np.array([0x7FC00001, 0xFFFFFFFF, 0x7F800123, 0x80000000], np.uint32)
    bench = Bench()
    x, y = bench.variable("x", bits.view(np.float32), 2), bench.variable("y", np.zeros(4), [0, 5, 2, 2])
    engine = bench.engine(Copy(x, y), mode)
    engine.run()
    assert engine.readTensor("y").tobytes() == bits.tobytes()


def test_a_large_shuffle_over_all_tiles_of_a_bow():
    bench = Bench(IPUModel().createDevice())
    values = np.arange(1472 * 33, dtype=np.int32).reshape(1472, 33)
    x, y = bench.graph.addVariable(INT, [1472, 33], "x"), bench.graph.addVariable(INT, [33, 1472], "y")
    for tensor in (x, y):
        flat = tensor.flatten()
        bench.graph.setTileMapping(flat, [[(tile * 33, tile * 33 + 33)] for tile in range(1472)])
    bench.graph.setInitialValue(x, values)
    bench.handles("y", y)
    engine = bench.engine(Copy(x.transpose(), y), "native")
    engine.run()
    np.testing.assert_array_equal(engine.readTensor("y"), values.T)


@st.composite
def copies(draw, type):
    """Views of a source and a target with equally many elements, and mappings of both."""
    shape = draw(strategies.shapes(size=6))
    values = np.arange(int(np.prod(shape))) % (2 if type is BOOL else 100)
    source = draw(strategies.views(shape))
    count = source.of_array(values.reshape(shape)).size
    extra = draw(st.integers(0, 5))
    begin = draw(st.integers(0, extra))
    places = draw(st.permutations(range(count))) if count <= 12 and draw(st.booleans()) else range(count)
    mapping = {"x": draw(strategies.mappings(values.size, 16)), "y": draw(strategies.mappings(count + extra, 16))}
    return values.reshape(shape).astype(type.dtype), source, np.array(places) + begin, count + extra, mapping


@examples(80)
@given(st.data())
def test_any_view_arrives_at_any_places(data):
    type = data.draw(st.sampled_from(TYPES))
    values, source, places, size, mapping = data.draw(copies(type))
    before = np.full(size, 1).astype(type.dtype)

    def build(graph, x, y):
        target = concat([y[int(one)].expand([0]) for one in places]) if len(places) else y[0:0]
        return Copy(source.of(x).flatten(), target)

    result = testing.run(build, {"x": values, "y": before}, mapping=mapping, device=tiny())
    expected = before.copy()
    expected[places] = source.of_array(values).reshape(-1)
    testing.assert_same_bits(result["y"], expected, "y")
    testing.assert_same_bits(result["x"], values, "x")
