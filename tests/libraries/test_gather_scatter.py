"""popops.gather and popops.scatter against NumPy's take and XLA's definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, PoplarIndexError, PoplarTypeError, popops
from pypoplar.popops import GatherParams
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence


def numbers(type, shape, first=1):
    return (np.arange(first, first + int(np.prod(shape))) % 97).reshape(shape).astype(type.dtype)


def vectors(indices, along):
    """The vectors of indices, in order, and the shape of the other dimensions."""
    every = indices[..., None] if along == indices.ndim else np.moveaxis(indices, along, -1)
    return every.reshape(-1, every.shape[-1]), every.shape[:-1]


def window(shape, starts, begin, sizes):
    """The places of a window, which goes on at the beginning of a dimension; None if it begins out of range."""
    if any(place >= shape[dim] for dim, place in zip(starts, begin, strict=True)):
        return None
    where = dict(zip(starts, begin, strict=True))
    return np.ix_(*((where.get(dim, 0) + np.arange(size)) % shape[dim] for dim, size in enumerate(sizes)))


def xla_gather(array, indices, along, offsets, sizes, collapsed, starts):
    every, batch = vectors(indices, along)
    slices = []
    for begin in every:
        where = window(array.shape, starts, begin, sizes)
        slice = np.zeros(sizes, array.dtype) if where is None else array[where]
        slices.append(slice.squeeze(tuple(collapsed)))
    whole = np.stack(slices).reshape(*batch, *slices[0].shape)
    others = [dim for dim in range(whole.ndim) if dim not in offsets]
    return np.moveaxis(whole, range(whole.ndim), [*others, *offsets])


def xla_scatter(array, indices, updates, along, windows, inserted, starts, combine):
    every, _ = vectors(indices, along)
    others = [dim for dim in range(updates.ndim) if dim not in windows]
    rows = updates.transpose(*others, *sorted(windows)).reshape(len(every), *(updates.shape[dim] for dim in sorted(windows)))
    result = array.copy()
    for begin, row in zip(every, rows, strict=True):
        slice = np.expand_dims(row, tuple(inserted))
        where = window(array.shape, starts, begin, slice.shape)
        if where is not None:
            result[where] = combine(result[where], slice)
    return result


def gathered(shape, indices, arguments, mode, type=FLOAT, tiles=4, laid_out=None, options=None):
    """What gather gives, and the values of the input."""
    graph, device = new_graph(tiles)
    if laid_out is None:
        t = variable(graph, type, shape, "t")
    else:
        t = popops.createGatherInput(graph, type, shape, *laid_out)
        graph.createHostWrite("t", t)
    where = variable(graph, UNSIGNED_INT, np.shape(indices), "indices")
    prog = Sequence()
    found = popops.gather(graph, t, where, *arguments[:-1], prog, *arguments[-1:], optionFlags=options)
    values = {"t": numbers(type, shape), "indices": np.array(indices, np.uint32)}
    return values["t"], run(graph, device, prog, values, {"found": found}, mode)[0]["found"]


@examples(6)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.lists(st.integers(0, 4), max_size=2),
    st.sampled_from([FLOAT, HALF, INT]),
    st.sampled_from([1, 4, 5]),
    st.booleans(),
    st.data(),
)
def test_gather_along_an_axis_is_numpys_take(shape, batch, type, tiles, laid_out, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    indices = np.arange(int(np.prod(batch)), dtype=np.uint32).reshape(batch) * 5 % shape[axis]
    for mode in MODES:
        place = (axis,) if laid_out else None
        array, found = gathered(shape, indices, (axis, GatherParams()), mode, type, tiles, place)
        np.testing.assert_array_equal(found, np.take(array, indices, axis))


@pytest.mark.parametrize("rows", [13, 16])
def test_a_long_axis_is_spread_and_gathered_all_the_same(rows, mode):
    indices = [[0, rows - 1], [5, 2], [rows, 7]]
    for options in (None, {"remapOutOfBoundIndices": "true"}):
        params = GatherParams(4)
        array, found = gathered([3, rows], indices, (1, params), mode, laid_out=(1, params), options=options)
        outside = array[:, :1] if options else np.zeros([3, 1], np.float32)
        np.testing.assert_array_equal(found, np.take(np.concatenate([array, outside], 1), indices, 1))


def test_a_long_axis_takes_more_tiles():
    graph, _ = new_graph(16)
    held = {}
    for most in (4, 1000):
        t = popops.createGatherInput(graph, FLOAT, [16, 3], 0, GatherParams(most))
        held[most] = sorted(sum(part.size() for part in parts) for parts in graph.getTileMapping(t) if parts)
    assert held == {4: [4] * 12, 1000: [16] * 3}


GATHERS = [
    ([3, 3], [[1, 1], [2, 1]], (1, [], [1, 1], [0, 1], [0, 1])),  # PopLibs' example
    ([5, 6, 4], [[4, 0], [2, 5], [1, 1], [3, 5]], (1, [1, 2], [2, 1, 3], [1], [0, 1])),
    ([5, 6, 4], [[4, 2, 9], [0, 3, 1]], (2, [0, 2], [5, 1, 4], [1], [1])),
    ([5, 6], [[3, 1, 4, 0], [2, 0, 5, 1]], (0, [1, 2], [3, 2], [], [0, 1])),
    ([5, 6], [[3, 1, 4, 0], [2, 0, 5, 1]], (0, [0], [1, 2], [0], [1, 0])),
    ([4, 3], 2, (0, [0], [1, 3], [0], [0])),
]


@pytest.mark.parametrize("case", range(len(GATHERS)))
def test_gather_is_xlas(case, mode):
    shape, indices, form = GATHERS[case]
    along, offsets, sizes, collapsed, starts = form
    for laid_out in (None, (sizes, starts)):
        array, found = gathered(shape, indices, (along, offsets, sizes, collapsed, starts, None), mode, INT, laid_out=laid_out)
        np.testing.assert_array_equal(found, xla_gather(array, np.array(indices), along, offsets, sizes, collapsed, starts))


SCATTERS = [
    ([7, 3], [2, 5, 2, 9, 0], [5, 3], (1, [1], [0], [0])),  # rows; of two for one place the last stays
    ([7, 3], [[2], [5]], [2, 3], (1, [1], [0], [0])),
    ([5, 6, 4], [[4, 0], [2, 5], [1, 1], [3, 5]], [2, 4, 3], (1, [0, 2], [1], [0, 1])),
    ([4, 5], [[1, 3], [0, 4], [3, 3]], [3], (1, [], [0, 1], [0, 1])),
    ([4, 5], [[1, 0, 3], [3, 4, 3]], [3], (0, [], [0, 1], [0, 1])),
    ([4, 5], 2, [5], (0, [0], [0], [0])),
]


@pytest.mark.parametrize("case", range(len(SCATTERS)))
@pytest.mark.parametrize("added", [False, True])
def test_scatter_is_xlas(case, added, mode):
    shape, indices, rows, (along, windows, inserted, starts) = SCATTERS[case]
    graph, device = new_graph(4)
    t, updates = variable(graph, FLOAT, shape, "t"), variable(graph, FLOAT, rows, "updates")
    where = variable(graph, UNSIGNED_INT, np.shape(indices), "indices")
    prog = Sequence()

    def compute(graph, there, row, prog):
        return popops.sub(graph, there, row, prog)

    popops.scatter(graph, t, where, updates, along, windows, inserted, starts, *([compute] if added else []), prog)
    values = {"t": numbers(FLOAT, shape), "updates": numbers(FLOAT, rows, 50), "indices": np.array(indices, np.uint32)}
    read, _ = run(graph, device, prog, values, {"t": t}, mode)
    combine = np.subtract if added else lambda there, row: row
    wanted = xla_scatter(values["t"], np.array(indices), values["updates"], along, windows, inserted, starts, combine)
    np.testing.assert_array_equal(read["t"], wanted)


@pytest.mark.parametrize(("options", "remaps"), [({"remapOutOfBoundIndices": "true"}, True), ({}, False)])
def test_a_number_out_of_its_dimension_is_0_where_that_is_asked_for_and_else_gives_zeros(options, remaps, mode):
    """PopLibs' own test of numbers out of range, large and negative, has the option."""
    begins = np.array([[1, 2], [0, 9], [2**31 - 1, 3], [-4, 1], [2, -(2**31)], [7, 8]])
    graph, device = new_graph(4)
    t = popops.createGatherInput(graph, INT, [3, 4], [1, 1], [0, 1])
    graph.createHostWrite("t", t)
    indices, prog = variable(graph, UNSIGNED_INT, [6, 2], "indices"), Sequence()
    out = popops.gather(graph, t, indices, 1, [1, 2], [1, 1], [], [0, 1], prog, optionFlags=options)
    values = numbers(INT, [3, 4], 11)
    given = {"t": values, "indices": begins.astype(np.int64).astype(np.uint32)}
    read, _ = run(graph, device, prog, given, {"out": out}, mode)
    inside = (begins >= 0) & (begins < [3, 4])
    row, column = np.where(inside, begins, 0).T
    wanted = np.where(inside.all(1) | remaps, values[row, column], 0)
    assert read["out"].reshape(-1).tolist() == wanted.tolist()


def test_rows_that_are_scattered_may_be_those_of_the_operand():
    graph, device = new_graph(4)
    t, where = variable(graph, INT, [4, 3], "t"), variable(graph, UNSIGNED_INT, [2], "indices")
    prog = Sequence()
    popops.scatter(graph, t, where, t.slice(0, 2), 1, [1], [0], [0], prog)
    values = {"t": numbers(INT, [4, 3]), "indices": np.array([1, 0], np.uint32)}
    read, _ = run(graph, device, prog, values, {"t": t})
    np.testing.assert_array_equal(read["t"], values["t"][[1, 0, 2, 3]])


def test_what_does_not_fit_is_refused():
    graph, _ = new_graph(4)
    t, i = variable(graph, FLOAT, [4, 5], "t"), variable(graph, UNSIGNED_INT, [3, 2], "i")
    signed, rows = variable(graph, INT, [3, 2], "signed"), variable(graph, FLOAT, [3, 2], "rows")
    prog = Sequence()

    def gather(indices=i, along=1, offsets=(1, 2), sizes=(2, 3), collapsed=(), starts=(0, 1)):
        popops.gather(graph, t, indices, along, offsets, sizes, collapsed, starts, prog)

    def scatter(updates=rows, along=1, windows=(1,), inserted=(0,), starts=(0, 1), operand=t, **more):
        popops.scatter(graph, operand, i, updates, along, windows, inserted, starts, prog=prog, **more)

    before = graph.numVertices(), graph.numComputeSets()
    refusals = [
        (PoplibsError, "popops.gather: offsets are UNSIGNED_INT, got .*'signed'", lambda: gather(signed)),
        (PoplarIndexError, "indexVectorDim 3 is out of range", lambda: gather(along=3)),
        (PoplibsError, "sliceSizes has a size for each dimension", lambda: gather(sizes=[1])),
        (PoplibsError, r"a slice of \[5, 3\] is larger", lambda: gather(sizes=[5, 3])),
        (PoplibsError, "dimensions that are left out have size 1", lambda: gather(collapsed=[0])),
        (PoplibsError, "offsetDims has the 2 dimensions of a slice that are kept, got", lambda: gather(offsets=[1])),
        (PoplarIndexError, "dimension 4 of offsetDims is out of range", lambda: gather(offsets=[1, 4])),
        (PoplibsError, "startIndexMap has a dimension for each of the 2 numbers", lambda: gather(starts=[0])),
        (PoplibsError, "startIndexMap has dimension 0 twice", lambda: gather(starts=[0, 0])),
        (PoplarIndexError, "axis 2 is out of range", lambda: popops.gather(graph, t, i, 2, prog, GatherParams())),
        (PoplarTypeError, "params is a GatherParams", lambda: popops.gather(graph, t, i, 1, prog, 7)),
        (PoplibsError, "maxElementsPerTile is a whole number of at least 1, got 0", lambda: GatherParams(0)),
        (PoplarIndexError, "axis 2 is out of range", lambda: popops.createGatherInput(graph, FLOAT, [4, 5], 2)),
        (PoplarIndexError, "dimension 2 of startIndexMap", lambda: popops.createGatherInput(graph, FLOAT, [4, 5], [1, 1], [2])),
        (PoplarIndexError, "dimension 2 of updateWindowDims is out of range", lambda: scatter(windows=[2])),
        (PoplibsError, "updateWindowDims and insertWindowDims are the dimensions of", lambda: scatter(inserted=[])),
        (PoplibsError, "scatterDimsToOperandDims has the 2 dimensions of an index", lambda: scatter(starts=[0])),
        (PoplibsError, r"that are no windows are those of the indices, \[3, 2\]", lambda: scatter(along=2, starts=[0])),
        (PoplibsError, "operand and updates have one type", lambda: scatter(updates=signed)),
        (PoplibsError, "cannot write .*twice, or a constant", lambda: scatter(operand=t.slice(0, 1).broadcast(4))),
        (PoplarTypeError, "updateComputation is a function, got 3", lambda: scatter(updateComputation=3)),
    ]
    for error, text, call in refusals:
        with pytest.raises(error, match=text):
            call()
    assert (graph.numVertices(), graph.numComputeSets()) == before
