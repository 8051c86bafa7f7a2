"""popops.normaliseImage and createNormaliseImageInput against NumPy."""

import math

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_CHAR, PoplarTypeError, Target, popops
from pypoplar.popops.images.normalise_image import normalise_cycles
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence


def normalised(values, scale, offsets, scales, type):
    """Each operation rounds to the type of the result."""
    dtype = type.dtype
    pixels = ((values.astype(dtype) * dtype.type(scale)).astype(dtype) - offsets).astype(dtype) * scales
    return np.concatenate((pixels.astype(dtype), np.zeros((*values.shape[:-1], 1), dtype)), -1)


@pytest.mark.parametrize("shape", [(2, 3), (2, 5, 7, 3), (1, 3), (0, 4, 3)])
@pytest.mark.parametrize("type", [FLOAT, HALF, UNSIGNED_CHAR])
@pytest.mark.parametrize("tiles", [1, 4, 7])
def test_pixels_are_scaled_and_get_a_fourth_channel(shape, type, tiles):
    out = HALF if type is UNSIGNED_CHAR else type
    random = np.random.default_rng(3)
    values = random.integers(0, 256, shape).astype(type.dtype)
    offsets, scales = random.random(3).astype(out.dtype), (random.random(3) + 1).astype(out.dtype)
    reads = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        t = popops.createNormaliseImageInput(graph, type, shape, "t")
        graph.createHostWrite("t", t)
        others = [variable(graph, out, [3], name) for name in ("offsets", "scales")]
        prog = Sequence()
        result = popops.normaliseImage(graph, prog, t, 1 / 128, *others, "image")
        assert result.elementType() is out
        read, engine = run(graph, device, prog, {"t": values, "offsets": offsets, "scales": scales}, {"result": result}, mode)
        np.testing.assert_array_equal(read["result"], normalised(values, 1 / 128, offsets, scales, out))
        reads.append([step.cycles for step in engine.getReport().execution.steps])
    assert reads[0] == reads[1]


def test_pixels_in_several_pieces_on_a_tile_are_scaled_where_they_are():
    graph, device = new_graph(4)
    t = graph.addVariable(FLOAT, [8, 3], "t")
    for pixel in range(8):
        graph.setTileMapping(t[pixel], pixel % 2)
    graph.createHostWrite("t", t)
    scale = graph.addConstant(FLOAT, [3], [1.0, 2.0, 3.0], "scale")
    graph.setTileMapping(scale, 0)
    prog = Sequence()
    result = popops.normaliseImage(graph, prog, t, 2.0, scale, scale)
    assert [tile for tile, held in enumerate(graph.getTileMapping(result)) if held] == [0, 1]
    values = np.random.default_rng(0).random((8, 3), np.float32)
    read, _ = run(graph, device, prog, {"t": values}, {"result": result})
    np.testing.assert_array_equal(read["result"][:, :3], (2 * values - [1, 2, 3]).astype(np.float32) * np.float32([1, 2, 3]))


def test_an_image_on_the_whole_machine():
    graph, device = new_graph(1472)
    shape = (4, 56, 56, 3)
    t = popops.createNormaliseImageInput(graph, UNSIGNED_CHAR, shape)
    graph.createHostWrite("t", t)
    others = [variable(graph, HALF, [3], name) for name in ("offsets", "scales")]
    prog = Sequence()
    result = popops.normaliseImage(graph, prog, t, 1 / 256, *others)
    values = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    ones = np.ones(3, np.float16)
    read, _ = run(graph, device, prog, {"t": values, "offsets": ones, "scales": ones}, {"result": result})
    np.testing.assert_array_equal(read["result"], normalised(values, 1 / 256, ones, ones, HALF))


def test_pixels_cost_what_poplibs_says():
    target = Target.createIPUTarget(1, 4, "bow")
    assert [normalise_cycles(target, 13, type) for type in (UNSIGNED_CHAR, HALF, FLOAT)] == [28 + 24 + 1, 51 + 33 + 1, 51 + 51 + 1]


def test_what_is_no_image_is_refused_before_the_graph_changes():
    graph, _ = new_graph(4)
    t, three, half = (
        variable(graph, FLOAT, [4, 3], "t", tile=0),
        variable(graph, FLOAT, [3], "three"),
        variable(graph, HALF, [3], "half"),
    )
    cut = graph.addVariable(FLOAT, [4, 3], "cut")
    graph.setTileMapping(cut, [[(0, 4)], [(4, 12)]])
    prog = Sequence()
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    refused = [
        (
            lambda: popops.normaliseImage(graph, prog, three, 1.0, three, three),
            "the last of two dimensions at least .* got the shape .3.",
        ),
        (lambda: popops.normaliseImage(graph, prog, t, 1.0, half, three), "offsets has 3 elements of FLOAT, .* got .*'half'"),
        (lambda: popops.normaliseImage(graph, prog, t, 0.0, three, three), "inScale is a number other than 0, got 0.0"),
        (lambda: popops.normaliseImage(graph, prog, t, math.nan, three, three), "inScale is a number other than 0, got nan"),
        (lambda: popops.normaliseImage(graph, prog, t, "1", three, three), "inScale is a number other than 0, got '1'"),
        (lambda: popops.normaliseImage(graph, prog, cut, 1.0, three, three), "'cut'.* has pixels that lie on two tiles"),
        (lambda: popops.createNormaliseImageInput(graph, INT, [4, 3]), "an image is FLOAT, HALF or UNSIGNED_CHAR, got INT"),
        (lambda: popops.createNormaliseImageInput(graph, FLOAT, [4, 4]), "got the shape .4, 4."),
    ]
    for call, message in refused:
        with pytest.raises(PoplibsError, match=message):
            call()
    with pytest.raises(PoplarTypeError, match=r"popops\.normaliseImage: the argument prog is the Sequence"):
        popops.normaliseImage(graph, t, t, 1.0, three, three)
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert len(prog) == 0
