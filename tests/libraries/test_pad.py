"""popops.pad against numpy.pad."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import new_graph, run, variable

from pypoplar import FLOAT, INT, PoplarIndexError, PoplarTypeError, popops
from pypoplar.popops.padding import MappingMethod, Type
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence

sizes_and_pads = st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=3)


def cut(array, pads):
    """The array without what negative padding cuts off."""
    return array[tuple(slice(max(-low, 0), size - max(-up, 0)) for size, (low, up) in zip(array.shape, pads, strict=True))]


def numpys(array, pads, **how):
    """Dimension by dimension, the lower end first, as PopLibs does it."""
    for dimension, (low, up) in enumerate(pads):
        for amounts in ((low, 0), (0, up)):
            here = [(0, 0)] * array.ndim
            here[dimension] = amounts
            array = np.pad(cut(array, here), [(max(a, 0), max(b, 0)) for a, b in here], **how)
    return array


def valid(sizes):
    return all(min(low, up, low + up) + size >= 0 for size, low, up in sizes)


@examples(25)
@given(sizes_and_pads.filter(valid), st.sampled_from([None, *Type]), st.sampled_from(list(MappingMethod)), st.booleans())
def test_padding_is_numpys(sizes, type, method, as_tensor):
    graph, device = new_graph(4)
    shape, pads = [size for size, _, _ in sizes], [(low, up) for _, low, up in sizes]
    t = variable(graph, INT, shape, "t")
    values = np.arange(t.numElements(), dtype=np.int32).reshape(shape)
    lower, upper = [low for low, _ in pads], [up for _, up in pads]
    val = variable(graph, INT, [1], "val", tile=0) if as_tensor else 7
    try:
        how = {"mode": {Type.EDGE: "edge", Type.REFLECT: "reflect"}[type]} if type else {"mode": "constant", "constant_values": 7}
        for _ in how:
            expected = numpys(values, pads, **how)
    except ValueError:  # nothing to repeat or reflect
        expected = None
    try:
        padded = popops.pad(t, lower, upper, type) if type else popops.pad(graph, t, lower, upper, val, method)
    except PoplibsError:
        reflecting = type is Type.REFLECT and any(max(low, up) > 0 for low, up in pads)
        assert expected is None or reflecting or 0 in cut(values, pads).shape
        return
    assert padded.shape() == list(expected.shape)
    if method is MappingMethod.NONE and type is None and not as_tensor:
        return
    given = {"t": values} | ({"val": np.array([7], np.int32)} if as_tensor else {})
    read, _ = run(graph, device, Sequence(), given, {"padded": padded})
    np.testing.assert_array_equal(read["padded"], expected)


def test_one_dimension_is_padded_with_values_by_default_on_tile_0():
    graph, device = new_graph(4)
    t = graph.addVariable(FLOAT, [2, 3], "t")
    graph.setTileMapping(t, 3)
    for row, tile in ((0, 3), (1, 2)):
        graph.setTileMapping(t[row], tile)
    plain = popops.pad(graph, t, 1, 2, 1)
    assert plain.shape() == [2, 6]
    assert [len(held) for held in graph.getTileMapping(plain[:, 4:])] == [1, 0, 0, 0]
    beside = popops.pad(graph, t, 1, 2, 1, 4.0, MappingMethod.EDGE)
    assert [tile for tile, held in enumerate(graph.getTileMapping(beside)) if held] == [2, 3]
    apart = popops.pad(graph, t, [0, 1], [0, 0], mappingMethod=MappingMethod.NONE)
    assert not graph.getTileMapping(apart, requireComplete=False).complete
    assert popops.pad(t, paddingLower=1, paddingUpper=0, dim=0, type=Type.EDGE)[0] == t[0]
    graph.createHostWrite("t", t)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    read, _ = run(graph, device, Sequence(), {"t": values}, {"plain": plain, "beside": beside})
    np.testing.assert_array_equal(read["plain"], np.pad(values, [(0, 0), (1, 2)]))
    np.testing.assert_array_equal(read["beside"], np.pad(values, [(0, 0), (1, 2)], constant_values=4))


def test_padding_that_does_not_fit_is_refused():
    graph, _ = new_graph(4)
    t, empty = variable(graph, INT, [2, 3], "t"), graph.addVariable(INT, [2, 0], "empty")
    refused = [
        (lambda: popops.pad(graph, t, [0], [0, 0]), "two numbers for each dimension of .*'t'"),
        (lambda: popops.pad(graph, t, -2, -2, 1), "cuts off more than dimension 1 of .*'t'"),
        (lambda: popops.pad(t, [0, 3], [0, 0], Type.REFLECT), "too few elements to reflect"),
        (lambda: popops.pad(empty, 1, 0, 1, Type.EDGE), "has no edge to repeat"),
        (lambda: popops.pad(graph, empty, 1, 0, 1, 0, MappingMethod.EDGE), "no elements beside which"),
        (lambda: popops.pad(graph, t, 1, 0, 1, graph.addVariable(FLOAT, [1], "f")), "val is one INT, as .*'t'.* got .*'f'"),
    ]
    for call, message in refused:
        with pytest.raises(PoplibsError, match=message):
            call()
    with pytest.raises(PoplarIndexError, match=r"dim is 2, and .*'t'"):
        popops.pad(graph, t, 1, 0, 2)
    with pytest.raises(PoplarTypeError, match=r"popops\.pad: "):
        popops.pad(graph, t, 1, 0, 1, "0")
    with pytest.raises(PoplarTypeError, match=r"popops\.pad: "):
        popops.pad(t, 1, 0)


def test_a_million_elements_are_padded_at_once():
    graph, _ = new_graph(1472)
    t = variable(graph, FLOAT, [1000, 1000], "t")
    padded = popops.pad(graph, t, [1, 1], [1, 1], 0.0, MappingMethod.EDGE)
    assert padded.shape() == [1002, 1002]
    assert graph.getTileMapping(padded).complete
