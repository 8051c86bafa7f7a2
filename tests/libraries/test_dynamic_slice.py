"""popops.dynamicSlice and dynamicUpdate, and the tensors that are made for them, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    Engine,
    Graph,
    InvalidOption,
    InvalidTileMapping,
    IPUModel,
    PoplarIndexError,
    PoplarTypeError,
    popops,
)
from pypoplar.popops.slicing.slice_cycles import dynamic_slice_1d_cycles, dynamic_slice_2d_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence
from pypoplar.testing import exchanged

TYPES = (FLOAT, HALF, INT, BOOL, UNSIGNED_CHAR, LONGLONG)


def values(type, shape, first=1):
    """Values that differ from element to element, as far as the type has them."""
    numbers = np.arange(first, first + int(np.prod(shape))).reshape(shape)
    return (numbers % 3 == 0) if type is BOOL else (numbers % 251).astype(type.dtype)


def places(shape, dims, sizes, offset):
    """The indices of a slice, which goes on at the beginning of a dimension after its end."""
    every = [np.arange(size) for size in shape]
    for dim, size, begin in zip(dims, sizes, offset, strict=True):
        every[dim] = (begin + np.arange(size)) % shape[dim]
    return np.ix_(*every)


def in_range(shape, dims, offset):
    return all(begin < shape[dim] for dim, begin in zip(dims, offset, strict=True))


def sliced(array, dims, sizes, offset):
    taken = array[places(array.shape, dims, sizes, offset)]
    return taken if in_range(array.shape, dims, offset) else np.zeros_like(taken)


def updated(array, slice, dims, sizes, offset):
    result = array.copy()
    if in_range(array.shape, dims, offset):
        result[places(array.shape, dims, sizes, offset)] = slice
    return result


def slice_and_update(type, case, tiles, layout, mode, options=None):
    """What a slice gives, and what an update leaves, with the engine that did it."""
    shape, dims, sizes, offset = case
    graph, device = new_graph(tiles)
    if layout == "sliceable":
        t = popops.createSliceableTensor(graph, type, shape, dims, sizes, 0, "t")
        graph.createHostWrite("t", t)
    elif layout == "turned":
        turned = variable(graph, type, shape[::-1], "stored")
        t = turned.dimShuffle(range(len(shape) - 1, -1, -1))
        graph.createHostWrite("t", t)
    else:
        t = variable(graph, type, shape, "t")
    where = variable(graph, UNSIGNED_INT, [len(dims)], "offset")
    s = popops.createSliceTensor(graph, t, dims, sizes, 1)
    graph.createHostWrite("s", s[0])
    prog = Sequence()
    slice = popops.dynamicSlice(graph, t, where, dims, sizes, prog, options=options)
    assert slice.shape() == s[0].shape()
    popops.dynamicUpdate(graph, t, s[0], where, dims, sizes, prog, options=options)
    given = {"t": values(type, shape), "s": values(type, slice.shape(), 77), "offset": np.array(offset, np.uint32)}
    read, engine = run(graph, device, prog, given, {"slice": slice, "t": t}, mode)
    return given, read, engine


CASES = [
    ([7], [0], [3], [5]),
    ([5, 6, 7], [1], [2], [5]),
    ([4, 9, 31], [2, 0], [3, 2], [30, 3]),
    ([6, 5, 4], [0, 1, 2], [6, 1, 3], [2, 4, 3]),
    ([9, 10], [0], [1], [9]),  # out of range
    ([9, 10], [0, 1], [2, 2], [3, 4_000_000_000]),
]


@pytest.mark.parametrize("tiles", [1, 4, 7])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_slice_goes_round_its_dimension_and_an_update_puts_it_back(number, tiles, mode):
    case = _, dims, sizes, offset = CASES[number]
    for place, layout in enumerate(("sliceable", "linear", "turned")):
        type = TYPES[(number + place + tiles) % len(TYPES)]
        given, read, _ = slice_and_update(type, case, tiles, layout, mode)
        np.testing.assert_array_equal(read["slice"], sliced(given["t"], dims, sizes, offset))
        np.testing.assert_array_equal(read["t"], updated(given["t"], given["s"], dims, sizes, offset))


@st.composite
def slices(draw):
    """A shape, what is sliced of it, and where."""
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    dims = draw(st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=len(shape)))
    sizes = [draw(st.integers(1, shape[dim])) for dim in dims]
    return shape, dims, sizes, [draw(st.integers(0, shape[dim])) for dim in dims]


@examples(25)
@given(slices(), st.sampled_from(TYPES), st.sampled_from([1, 3, 4]), st.sampled_from(["sliceable", "linear", "turned"]))
def test_slices_and_updates_are_those_of_numpy_in_both_engines(case, type, tiles, layout):
    _, dims, sizes, offset = case
    steps = []
    for mode in MODES:
        given, read, engine = slice_and_update(type, case, tiles, layout, mode)
        np.testing.assert_array_equal(read["slice"], sliced(given["t"], dims, sizes, offset))
        np.testing.assert_array_equal(read["t"], updated(given["t"], given["s"], dims, sizes, offset))
        steps.append([step.cycles for step in engine.getReport().execution.steps])
    assert steps[0] == steps[1]


def test_an_offset_out_of_range_is_taken_for_zero_where_that_is_wanted(mode):
    options = {"remapOutOfBoundIndices": "true"}
    given, read, _ = slice_and_update(HALF, ([5, 3], [0], [2], [5]), 4, "sliceable", mode, options)
    np.testing.assert_array_equal(read["slice"], given["t"][:2])
    np.testing.assert_array_equal(read["t"], updated(given["t"], given["s"], [0], [2], [0]))


@pytest.mark.no_cover
def test_slicing_what_is_made_to_be_sliced_exchanges_the_offset_alone():
    """On the whole machine: of 6 million bytes none moves, but four for each tile and dimension."""
    device = IPUModel().createDevice()
    tiles = device.getTarget().getNumTiles()
    graph = Graph(device.getTarget())
    popops.addCodelets(graph)
    shape, dims, sizes = [128, 4, 3000], [0, 1], [1, 2]
    t = popops.createSliceableTensor(graph, FLOAT, shape, dims, sizes, 0, "t")
    s = popops.createSliceTensor(graph, t, dims, sizes, 1)[0]
    offset = graph.addVariable(UNSIGNED_INT, [2], "offset")
    graph.setTileMapping(offset, 0)
    prog = Sequence()
    popops.dynamicSlice(graph, t, offset, dims, sizes, prog)
    popops.dynamicUpdate(graph, t, s, offset, dims, sizes, prog)
    engine = Engine(graph, prog)
    held = [sum(region.size() for region in regions) for regions in graph.getTileMapping(t)]
    assert len([elements for elements in held if elements]) == 1000
    assert max(held) == 128 * 4 * 3
    for exchange in engine.executable.exchanges:
        assert int(exchange.bytes_received.max()) <= 4
    assert sum(exchanged(engine).values()) <= 5 * 4 * tiles


def test_a_tensor_made_from_a_slice_is_sliced_on_the_same_tiles(mode):
    graph, device = new_graph(5)
    s = variable(graph, FLOAT, [3, 8], "s", tile=2)
    for tile in range(4):
        graph.setTileMapping(s.slice(2 * tile, 2 * tile + 2, 1), tile)
    t = popops.createSliceableTensorFromSlice(graph, s, [0, 1], [2, 3], "t")
    assert t.shape() == [6, 24]
    part = t.slice([3, 16], [6, 24])
    assert graph.getTileMapping(part) == graph.getTileMapping(s)
    graph.createHostWrite("t", t)
    offset = variable(graph, UNSIGNED_INT, [2], "offset", tile=4)
    prog = Sequence()
    slice = popops.dynamicSlice(graph, t, offset, [0, 1], [3, 8], prog)
    given = {"t": values(FLOAT, [6, 24]), "offset": np.array([3, 8], np.uint32)}
    read, _ = run(graph, device, prog, given, {"slice": slice}, mode)
    np.testing.assert_array_equal(read["slice"], given["t"][3:6, 8:16])


def test_a_slice_goes_into_a_given_tensor():
    graph, device = new_graph(4)
    t, out = variable(graph, INT, [6, 10], "t"), variable(graph, INT, [4, 3], "out")
    offset = variable(graph, UNSIGNED_INT, [2], "offset")
    prog = Sequence()
    like = popops.createDynamicSliceOutput(graph, t, offset, [1, 0], [3, 4])
    assert like.shape() == [4, 3]
    assert graph.getTileMapping(like) == popops.getSliceMapping(graph, t, [1, 0], [3, 4])
    for target in (out, like):
        popops.dynamicSliceWithOutput(graph, target, t, offset, [1, 0], [3, 4], prog)
    popops.dynamicUpdate(graph, t, t.slice([0, 0], [4, 3]), offset, [1, 0], [3, 4], prog)  # of what is updated itself
    given = {"t": values(INT, [6, 10]), "offset": np.array([9, 1], np.uint32)}
    read, _ = run(graph, device, prog, given, {"out": out, "like": like, "t": t})
    wanted = sliced(given["t"], [1, 0], [3, 4], [9, 1])
    np.testing.assert_array_equal(read["out"], wanted)
    np.testing.assert_array_equal(read["like"], wanted)
    np.testing.assert_array_equal(read["t"], updated(given["t"], given["t"][:4, :3], [1, 0], [3, 4], [9, 1]))


def test_empty_slices_and_slices_of_no_dimension_are_fine():
    graph, device = new_graph(4)
    t, s = variable(graph, FLOAT, [3, 4], "t"), variable(graph, FLOAT, [3, 4], "s")
    offset, none = variable(graph, UNSIGNED_INT, [1], "offset"), variable(graph, UNSIGNED_INT, [0], "none")
    prog = Sequence()
    empty = popops.dynamicSlice(graph, t, offset, [0], [0], prog)
    assert empty.shape() == [0, 4]
    popops.dynamicUpdate(graph, t, empty, offset, [0], [0], prog)
    whole = popops.dynamicSlice(graph, t, none, [], [], prog)
    popops.dynamicUpdate(graph, t, s, none, [], [], prog)
    given = {"t": values(FLOAT, [3, 4]), "s": values(FLOAT, [3, 4], 50), "offset": np.zeros(1, np.uint32)}
    read, _ = run(graph, device, prog, given, {"whole": whole, "t": t})
    np.testing.assert_array_equal(read["whole"], given["t"])
    np.testing.assert_array_equal(read["t"], given["s"])


def test_layouts_say_how_many_elements_a_tile_has():
    graph, _ = new_graph(16)
    t = popops.createSliceableTensor(graph, HALF, [10, 100], [0], [1], minGrainSize=9)
    held = sorted(sum(region.size() for region in regions) // 10 for regions in graph.getTileMapping(t) if regions)
    assert held == [10] * 10  # 9 of HALF would share words
    slices = popops.createSliceTensor(graph, t, [0], [1], 7)
    assert slices.shape() == [7, 1, 100]
    indices = popops.createIndicesTensor(graph, [0], 100, popops.SlicePlan(), {})
    assert (indices.shape(), indices.elementType()) == ([100, 1], UNSIGNED_INT)
    assert [sum(region.size() for region in regions) for regions in graph.getTileMapping(indices)][:4] == [33, 33, 34, 0]
    assert popops.createSliceTensor(graph, FLOAT, [4, 6], [1], [2], 3, popops.SlicePlan(), {}).shape() == [3, 4, 2]


def test_slices_cost_what_poplibs_says():
    target = IPUModel("ipu2").createDevice().getTarget()
    figures = [(FLOAT, 24, 3, 4 + 39 + 28 * 3), (HALF, 24, 1, 4 + 39 + 26), (BOOL, 240, 2, 4 + 76 + 92 * 2), (LONGLONG, 12, 1, 71)]
    for type, region, rows, cycles in figures:
        assert dynamic_slice_1d_cycles(target, type, region, rows) == cycles
    assert dynamic_slice_2d_cycles(target, FLOAT, [4, 5], 3, update=False) == 27 + (31 * 3 + 13) + (32 * 3 + 13)
    assert dynamic_slice_2d_cycles(target, BOOL, [4], 1, update=True) == 27 + 73 + 13


def test_what_does_not_fit_is_refused():
    graph, _ = new_graph(4)
    other = variable(new_graph(4)[0], FLOAT, [3, 4], "foreign")
    t, s, one = variable(graph, FLOAT, [3, 4], "t"), variable(graph, FLOAT, [2, 4], "s"), variable(graph, UNSIGNED_INT, [1], "one")
    signed, halves = variable(graph, INT, [1], "signed"), variable(graph, HALF, [2, 4], "halves")
    prog = Sequence()

    def slice(t=t, offset=one, dims=(0,), sizes=(2,), prog=prog, **more):
        return popops.dynamicSlice(graph, t, offset, dims, sizes, prog, **more)

    def update(t=t, s=s, offset=one, dims=(0,), sizes=(2,)):
        popops.dynamicUpdate(graph, t, s, offset, dims, sizes, prog)

    before = graph.numVertices(), graph.numComputeSets()
    refusals = [
        (PoplarIndexError, "dynamicSlice: dimension 2 of dims is out of range", lambda: slice(dims=[2])),
        (PoplibsError, "each of dims is a whole number of at least 0, got -1", lambda: slice(dims=[-1])),
        (PoplibsError, r"dims and sizes are of one length, got \[0\] and \[2, 2\]", lambda: slice(sizes=[2, 2])),
        (PoplibsError, "dims has dimension 0 twice", lambda: slice(dims=[0, 0], sizes=[1, 1])),
        (PoplibsError, "a slice of 4 of dimension 0 is larger", lambda: slice(sizes=[4])),
        (PoplarTypeError, "each of sizes is a whole number, got 1.5", lambda: slice(sizes=[1.5])),
        (PoplarTypeError, "dims is a list of whole numbers, got 0", lambda: slice(dims=0)),
        (PoplarTypeError, "a set has no order", lambda: slice(dims={0})),
        (PoplibsError, r"offsets are UNSIGNED_INT, got .*'signed'.*reinterpret", lambda: slice(offset=signed)),
        (PoplibsError, r"the offsets have the shape \[1\], one for each of dims", lambda: slice(offset=one.broadcast(2))),
        (PoplarTypeError, "takes a tensor, got 3", lambda: slice(offset=3)),
        (PoplarTypeError, "belongs to another graph", lambda: slice(t=other)),
        (PoplarTypeError, "prog", lambda: slice(prog=None)),
        (InvalidTileMapping, "have no tile", lambda: slice(t=graph.addVariable(FLOAT, [3, 4], "nowhere"))),
        (InvalidOption, "did you mean 'remapOutOfBoundIndices'", lambda: slice(options={"remapOutOfBoundIndex": "true"})),
        (PoplibsError, r"the slice of .* has the shape \[1, 4\], which .*'s'.* does not have", lambda: update(sizes=[1])),
        (PoplibsError, "t and s have one type", lambda: update(s=halves)),
        (PoplibsError, "dynamicUpdate cannot write .*twice, or a constant", lambda: update(t=t.slice(0, 1).broadcast(3))),
        (
            PoplibsError,
            r"dynamicSliceWithOutput: the slice has the shape \[1, 4\], which does not fit into .*'s'",
            lambda: popops.dynamicSliceWithOutput(graph, s, t, one, [0], [1], prog),
        ),
        (PoplarTypeError, "the plan is a SlicePlan", lambda: popops.createIndicesTensor(graph, [0], 4, None)),
        (
            PoplibsError,
            r"createGroupedSliceableTensor needs a plan of popops.embedding.plan, got the empty SlicePlan\(\)",
            lambda: popops.createGroupedSliceableTensor(graph, FLOAT, 2, [3, 4], [0], [1], popops.SlicePlan(), {}),
        ),
        (
            PoplarTypeError,
            "type is an element type, got 'float'",
            lambda: popops.createSliceableTensor(graph, "float", [], [], []),
        ),
        (PoplibsError, "minGrainSize is a whole number", lambda: popops.createSliceableTensor(graph, FLOAT, [3], [0], [1], -1)),
        (PoplibsError, "each of numSlices", lambda: popops.createSliceableTensorFromSlice(graph, s, [0], [0])),
    ]
    for error, text, call in refusals:
        with pytest.raises(error, match=text):
            call()
    assert (graph.numVertices(), graph.numComputeSets()) == before
