"""popnn.experimental: boxes of images as fields of one size, and the gradient."""

import numpy as np
import pytest
from library_programs import MODES, new_graph, run, variable

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, Graph, InvalidTileMapping, PoplarTypeError, poputil
from pypoplar.errors import PoplarRuntimeError, UnknownVertexType
from pypoplar.popnn.experimental import roiAlignFwd, roiAlignInputGradient, roiAlignParams
from pypoplar.popnn.regions.roi_cycles import RoiWork
from pypoplar.popnn.regions.roi_plan import plan_regions
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence


def means(at, size):
    """Places and weights around a point of a dimension; none more than one place outside."""
    if not -1 <= at <= size:
        return []
    at = min(max(at, 0), size - 1)
    low = int(at)
    return [(low, 1 - (at - low)), (min(low + 1, size - 1), at - low)]


def sampled(data, rois, index, params):
    """What `roiAlignFwd` gives, sample by sample."""
    height, width = data.shape[2:]
    bins, many = np.array([params.alignedWidth_, params.alignedHeight_]), params.samplingRatio_
    result = np.zeros([len(rois), data.shape[1], *bins[::-1]])
    corners = rois * params.spatialScale_ - 0.5 * params.aligned_
    for place in np.ndindex(len(rois), *bins[::-1], many, many):
        box, bin, number = place[0], np.array(place[2:0:-1]), np.array(place[:2:-1])
        sizes = np.maximum(corners[box, 2:] - corners[box, :2], 0 if params.aligned_ else 1) / bins
        x, y = corners[box, :2] + (bin + (number + 0.5) / many) * sizes
        for row, of_row in means(y, height):
            for column, of_column in means(x, width):
                result[box, :, bin[1], bin[0]] += data[index[box], :, row, column] * of_row * of_column / many**2
    return result


def slope(data, rois, index, params, top, place):
    """The gradient of the sum of what is sampled times `top`, by a difference; what is sampled is linear in the data."""
    step = np.zeros(data.shape)
    step[place] = 1
    return ((sampled(data + step, rois, index, params) - sampled(data, rois, index, params)) * top).sum()


@pytest.mark.parametrize("tiles", [1, 16])
@pytest.mark.parametrize(
    ("type", "shape", "together", "boxes", "params"),
    [
        (FLOAT, [2, 3, 5, 6], 1, 3, roiAlignParams(2, 2, 3, True, 0.5)),
        (HALF, [1, 4, 4, 3], 2, 2, roiAlignParams(1, 3, 1, False, 0.5)),
        (FLOAT, [2, 2, 1, 5], 2, 4, roiAlignParams(3, 1, 2, False, 1)),
    ],
)
def test_boxes_are_sampled_and_gradients_go_back(tiles, type, shape, together, boxes, params):
    rng = np.random.default_rng(boxes)
    graph, device = new_graph(tiles)
    images, channels, height, width = shape
    lying = graph.addVariable(type, [images, channels // together, height, width, together])
    poputil.mapTensorLinearly(graph, lying, 0, together)
    data = lying.dimRoll(4, 2).reshape(shape)
    graph.createHostWrite("data", data)
    result = [boxes, channels, params.alignedHeight_, params.alignedWidth_]
    sizes = {"rois": (type, [boxes, 4]), "index": (INT, [boxes]), "top": (type, result)}
    rois, index, top = (variable(graph, kind, size, name) for name, (kind, size) in sizes.items())
    corners = np.sort(rng.uniform(-3, 2 * width + 3, (boxes, 2, 2)), 1)
    values = {"data": rng.normal(size=shape), "rois": corners.reshape(-1, 4), "top": rng.normal(size=result)}
    values = {name: value.astype(type.dtype) for name, value in values.items()}
    values["index"] = rng.integers(0, images, boxes).astype(np.int32)
    prog = Sequence()
    results = {
        "out": roiAlignFwd(graph, prog, data, rois, index, params),
        "back": roiAlignInputGradient(graph, prog, data, rois, index, top, params),
    }
    read = []
    for mode in MODES:
        tensors = {f"{name} {mode}": tensor for name, tensor in results.items()}
        arrays, engine = run(graph, device, prog, values, tensors, mode)
        read.append([*arrays.values(), np.array([step.cycles for step in engine.getReport().execution.steps])])
    assert all(native.tobytes() == interpreted.tobytes() for native, interpreted in zip(*read, strict=True))
    data, rois, top = (values[name].astype(float) for name in ("data", "rois", "top"))
    tolerance = 1e-5 if type is FLOAT else 2e-3
    np.testing.assert_allclose(read[0][0], sampled(data, rois, values["index"], params), tolerance, tolerance)
    for place in list(np.ndindex(*shape))[:: read[0][1].size // 8]:
        expected = slope(data, rois, values["index"], params, top, place)
        np.testing.assert_allclose(read[0][1][place], expected, tolerance, tolerance)


def small(boxes=1, type=FLOAT, tiles=2):
    graph, device = new_graph(tiles)
    sizes = {"data": (type, [2, 1, 2, 2]), "rois": (type, [boxes, 4]), "index": (INT, [boxes]), "top": (type, [boxes, 1, 1, 1])}
    return graph, device, {name: variable(graph, kind, size, name) for name, (kind, size) in sizes.items()}


@pytest.mark.parametrize("image", [-1, 2])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("back", [False, True])
def test_an_index_of_no_image_ends_the_run(image, mode, back):
    graph, device, tensors = small()
    prog, params = Sequence(), roiAlignParams(1, 1, 1, True, 1)
    top = tensors.pop("top")
    if back:
        roiAlignInputGradient(graph, prog, *tensors.values(), top, params)
    else:
        roiAlignFwd(graph, prog, *tensors.values(), params)
    values = {"data": np.ones((2, 1, 2, 2), np.float32), "rois": np.ones((1, 4), np.float32), "index": np.int32([image])}
    with pytest.raises(PoplarRuntimeError, match="bottomBatchIndex has an image that bottomData does not have"):
        run(graph, device, prog, values, {}, mode)


def test_a_box_that_is_not_a_number_gives_none():
    graph, device, tensors = small()
    prog, params = Sequence(), roiAlignParams(1, 1, 1, True, 1)
    out = roiAlignFwd(graph, prog, tensors["data"], tensors["rois"], tensors["index"], params)
    values = {"data": np.ones((2, 1, 2, 2)), "rois": np.full((1, 4), np.nan), "index": np.zeros(1)}
    values = {name: value.astype(np.int32 if name == "index" else np.float32) for name, value in values.items()}
    assert np.isnan(run(graph, device, prog, values, {"out": out})[0]["out"]).all()


def test_without_boxes_there_is_an_empty_result_and_no_gradient():
    graph, device, tensors = small(boxes=0)
    prog, params = Sequence(), roiAlignParams(1, 1, 1, True, 1)
    top = tensors.pop("top")
    assert roiAlignFwd(graph, prog, *tensors.values(), params).shape() == [0, 1, 1, 1]
    back = roiAlignInputGradient(graph, prog, *tensors.values(), top, params)
    np.testing.assert_array_equal(run(graph, device, prog, {}, {"back": back})[0]["back"], np.zeros((2, 1, 2, 2)))


@pytest.mark.parametrize("back", [False, True])
def test_work_of_a_real_size_is_divided_among_the_tiles_of_a_bow(back):
    target = new_graph(1472)[0].getTarget()
    work = RoiWork(2, 50, 50, 7, 7, 2, 1)
    plan = plan_regions(target, FLOAT, work, 256, 128, back)
    assert np.prod([len(ranges) for ranges in plan.bounds([256, 128, 100])]) > 1300
    assert plan.cycles < 300_000
    large = plan_regions(target, FLOAT, RoiWork(8, 200, 200, 7, 7, 2, 1), 256, 128, back)
    assert large.steps[0] * large.steps[2] * 200 * 4 < target.getBytesPerTile() / 2


def test_mistakes_name_the_argument():
    graph, _, tensors = small()
    other = small()[2]["rois"]
    data, rois, index, top = tensors.values()
    prog, params = Sequence(), roiAlignParams(1, 1, 1, True, 1)
    wide = variable(graph, FLOAT, [1, 5], "wide")
    halves = variable(graph, HALF, [1, 4], "halves")
    unsigned = variable(graph, UNSIGNED_INT, [1], "unsigned")
    nowhere = graph.addVariable(FLOAT, [2, 1, 2, 2])
    empty = variable(graph, FLOAT, [2, 1, 0, 2], "empty")
    bare = Graph(graph.getTarget())
    mistakes = [
        (PoplibsError, r"bottomData are FLOATs or HALFs \[images", (graph, prog, rois, rois, index, params)),
        (PoplibsError, r"bottomRois are FLOAT \[boxes, 4\]", (graph, prog, data, wide, index, params)),
        (PoplibsError, r"bottomRois are FLOAT \[boxes, 4\]", (graph, prog, data, halves, index, params)),
        (PoplibsError, "bottomBatchIndex has an INT for each of the 1 boxes", (graph, prog, data, rois, unsigned, params)),
        (PoplibsError, "1 boxes and no place to sample", (graph, prog, empty, rois, index, params)),
        (PoplarTypeError, "bottomRois = .* belongs to another graph", (graph, prog, data, other, index, params)),
        (PoplarTypeError, "params are popnn.experimental.roiAlignParams", (graph, prog, data, rois, index, None)),
        (InvalidTileMapping, "bottomData = .* have no tile", (graph, prog, nowhere, rois, index, params)),
        (UnknownVertexType, r"popnn.addCodelets\(graph\)", (bare, prog, data, rois, index, params)),
    ]
    for error, message, arguments in mistakes:
        with pytest.raises(error, match=message):
            roiAlignFwd(*arguments)
    with pytest.raises(PoplibsError, match=r"topDataGrad is FLOAT \[1, 1, 1, 1\], as roiAlignFwd's result"):
        roiAlignInputGradient(graph, prog, data, rois, index, data, params)
    roiAlignInputGradient(graph, prog, nowhere, rois, index, top, params)


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (PoplibsError, "samplingRatio is 1 at least", (0, 1, 1, True, 1)),
        (PoplibsError, "poolW is 1 at least", (1, 1, 0, True, 1)),
        (PoplarTypeError, "poolH is a whole number", (1, 1.0, 1, True, 1)),
        (PoplarTypeError, "aligned is True or False", (1, 1, 1, 1, 1)),
        (PoplibsError, "spatialScale is more than 0", (1, 1, 1, True, 0)),
        (PoplarTypeError, "spatialScale is a number", (1, 1, 1, True, "1")),
    ],
)
def test_parameters_are_checked(error, message, arguments):
    with pytest.raises(error, match=message):
        roiAlignParams(*arguments)


def test_parameters_have_poplibs_names():
    params = roiAlignParams(samplingRatio=2, poolH=3, poolW=4, aligned=False, spatialScale=0.25)
    fields = ("samplingRatio_", "alignedHeight_", "alignedWidth_", "aligned_", "spatialScale_")
    assert [getattr(params, name) for name in fields] == [2, 3, 4, False, 0.25]
