"""`roiAlignFwd` and `roiAlignInputGradient`: boxes of images as fields of one size."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod
from typing import Literal

import numpy as np
from attrs import asdict, frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popnn.regions.roi_cycles import RoiWork
from pypoplar.popnn.regions.roi_params import roiAlignParams
from pypoplar.popnn.regions.roi_plan import plan_regions
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.elements.fill import fill
from pypoplar.popops.reduction.reduce_call import reduce
from pypoplar.popops.reduction.reduce_params import Operation
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands, check_own
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.kept_layouts import channels_together
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.structure.box_rows import Bounds, box_rows
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT

Way = Literal["forward", "backward"]
Kind = Literal["range", "part", "all"]
RANGE: Kind = "range"
PART: Kind = "part"
ALL: Kind = "all"


@public
def roiAlignFwd(
    graph: Graph,
    prog: Sequence,
    bottomData: Tensor,
    bottomRois: Tensor,
    bottomBatchIndex: Tensor,
    params: roiAlignParams,
    debugContext: str | None = None,
) -> Tensor:
    """What boxes have of images, as fields of one size; `prog` is extended.

    An index of no image ends the run with an error. A sample more than one place outside of its image counts as 0, as in ONNX
    and in PopLibs' own tests (its codelet takes the first place instead where a sample is before it). Samples are summed in
    float, HALFs are rounded once.

    Parameters
    ----------
    bottomData:
        The images, FLOAT or HALF [images, channels, height, width].
    bottomRois:
        The boxes [boxes, 4], each (x1, y1, x2, y2), of the type of `bottomData`.
    bottomBatchIndex:
        Which image each box is of, INT [boxes].
    params:
        What a box becomes.

    Returns
    -------
    Tensor
        A new tensor [boxes, channels, alignedHeight, alignedWidth] of the type of `bottomData`.

    Raises
    ------
    PoplibsError
        For other shapes and types, and boxes of images without places.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popnn.experimental.roiAlignFwd"
    check_call(call, graph, prog, debugContext)
    _check_boxes(call, graph, bottomData, bottomRois, bottomBatchIndex, params)
    check_operands(call, graph, bottomData=bottomData)
    debug = below(debugContext, "roiAlignFwd")
    boxes, channels = bottomRois.dim(0), bottomData.dim(1)
    shape = [boxes, channels, params.alignedHeight_, params.alignedWidth_]
    if not boxes * channels:
        return graph.addVariable(bottomData.elementType(), shape, debug)
    vertices = _RoiVertices(graph, "forward", channels_together(graph, bottomData), params, bottomData, debug)
    sums = vertices.add(prog, vertices.of_images(bottomData), bottomRois, bottomBatchIndex)  # [rows' parts, groups, boxes, bins, C]
    return vertices.summed(sums, prog).dimShuffle([1, 0, 3, 2]).reshape(shape)


@public
def roiAlignInputGradient(
    graph: Graph,
    prog: Sequence,
    bottomData: Tensor,
    bottomRois: Tensor,
    bottomBatchIndex: Tensor,
    topDataGrad: Tensor,
    params: roiAlignParams,
    debugContext: str | None = None,
) -> Tensor:
    """The gradient by the images, from that by what `roiAlignFwd` gave; `prog` is extended.

    Parameters
    ----------
    bottomData:
        The images, of which nothing is read but shape and type; they may have no tiles.
    bottomRois, bottomBatchIndex:
        As for `roiAlignFwd`.
    topDataGrad:
        The gradient, [boxes, channels, alignedHeight, alignedWidth].
    params:
        What a box becomes.

    Returns
    -------
    Tensor
        A new tensor of the shape and type of `bottomData`.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    call = "popnn.experimental.roiAlignInputGradient"
    check_call(call, graph, prog, debugContext)
    _check_boxes(call, graph, bottomData, bottomRois, bottomBatchIndex, params)
    check_operands(call, graph, topDataGrad=topDataGrad)
    images, channels, height, width = bottomData.shape()
    type, shape = bottomData.elementType(), [bottomRois.dim(0), channels, params.alignedHeight_, params.alignedWidth_]
    if topDataGrad.shape() != shape or topDataGrad.elementType() is not type:
        raise PoplibsError(f"{call}: topDataGrad is {type!r} {shape}, as roiAlignFwd's result, got {topDataGrad!r}")
    debug = below(debugContext, "roiAlignInputGradient")
    if not topDataGrad.numElements():
        gradient = graph.addVariable(type, bottomData.shape(), debug)
        mapTensorLinearly(graph, gradient)
        fill(graph, gradient, prog, 0, debug)
        return gradient
    vertices = _RoiVertices(graph, "backward", channels_together(graph, topDataGrad), params, bottomData, debug)
    sums = vertices.add(prog, vertices.of_boxes(topDataGrad), bottomRois, bottomBatchIndex)  # [boxes' parts, groups, rows, W, C]
    gradient = vertices.summed(sums, prog)  # [groups, images x height, width, C]
    return gradient.reshape([-1, images, height, width, gradient.dim(3)]).dimShuffle([1, 0, 4, 2, 3]).reshape(bottomData.shape())


def _check_boxes(call: str, graph: Graph, data: Tensor, rois: Tensor, indices: Tensor, params: roiAlignParams) -> None:
    if not isinstance(params, roiAlignParams):
        raise PoplarTypeError(f"{call}: params are popnn.experimental.roiAlignParams, got {params!r}")
    check_codelet(call, graph, "popnn::ROIAlignForward<float>")
    check_own(call, graph, bottomData=data)
    check_operands(call, graph, bottomRois=rois, bottomBatchIndex=indices)
    if data.rank() != 4 or data.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{call}: bottomData are FLOATs or HALFs [images, channels, height, width], got {data!r}")
    if rois.rank() != 2 or rois.dim(1) != 4 or rois.elementType() is not data.elementType():
        raise PoplibsError(f"{call}: bottomRois are {data.elementType()!r} [boxes, 4], as bottomData, got {rois!r}")
    if indices.shape() != [rois.dim(0)] or indices.elementType() is not INT:
        raise PoplibsError(f"{call}: bottomBatchIndex has an INT for each of the {rois.dim(0)} boxes, got {indices!r}")
    if rois.dim(0) and not data.dim(0) * data.dim(2) * data.dim(3):
        raise PoplibsError(f"{call}: there are {rois.dim(0)} boxes and no place to sample, got {data!r} for bottomData")


@frozen(eq=False)
class _RoiVertices:
    """The vertices of a call, which have `channels` channels side by side."""

    graph: Graph
    way: Way
    channels: int
    params: roiAlignParams
    data: Tensor
    debug: str

    @property
    def work(self) -> RoiWork:
        images, _, height, width = self.data.shape()
        params = self.params
        return RoiWork(images, height, width, params.alignedHeight_, params.alignedWidth_, params.samplingRatio_, self.channels)

    def of_images(self, data: Tensor) -> Tensor:
        """[images, channels, height, width] as [groups, 1, rows, elements of a row]."""
        images, channels, height, width = data.shape()
        view = data.reshape([images, channels // self.channels, self.channels, height, width]).dimShuffle([1, 0, 3, 4, 2])
        return view.reshape([channels // self.channels, 1, images * height, width * self.channels])

    def of_boxes(self, gradient: Tensor) -> Tensor:
        """[boxes, channels, height, width] as [groups, boxes, 1, elements of a box]."""
        boxes, channels, height, width = gradient.shape()
        view = gradient.reshape([boxes, channels // self.channels, self.channels, height * width]).dimShuffle([1, 0, 3, 2])
        return view.reshape([channels // self.channels, boxes, 1, height * width * self.channels])

    def add(self, prog: Sequence, read: Tensor, rois: Tensor, indices: Tensor) -> Tensor:
        """Add the vertices; what they write, [parts, groups, boxes, bins, channels] or [parts, groups, rows, width, channels]."""
        work, boxes = self.work, rois.dim(0)
        plan = plan_regions(self.graph.getTarget(), self.data.elementType(), work, read.dim(0), boxes, self.way == "backward")
        bounds = plan.bounds([read.dim(0), boxes, work.rows])
        numbers = np.arange(prod(map(len, bounds))).reshape([len(ranges) for ranges in bounds])
        out, view = self._new_result(numbers, bounds)
        by_vertex = {
            "in": (read, (RANGE, ALL, RANGE) if self.way == "forward" else (RANGE, RANGE, ALL)),
            "out": (view, (RANGE, RANGE, PART) if self.way == "forward" else (RANGE, PART, RANGE)),
            "rois": (rois.reshape([1, boxes, 1, 4]), (ALL, RANGE, ALL)),
            "batchIndex": (indices.reshape([1, boxes, 1, 1]), (ALL, RANGE, ALL)),
        }
        cs = self.graph.addComputeSet(self.debug)
        vertex = templateVertex(f"popnn::ROIAlign{self.way.capitalize()}", self.data.elementType())
        half_place = 0.5 if self.params.aligned_ else 0.0
        same = {"scale": self.params.spatialScale_, "shift": half_place, "leastSize": 1 - 2 * half_place}
        repeated = 1 if self.way == "forward" else 2  # over which all read the same: call by call, since views of copies are slow
        classes = [_by_length(ranges) for ranges in bounds]
        classes[repeated] = [[number] for number in range(len(bounds[repeated]))]
        rows = cache(lambda name, ranges: box_rows(by_vertex[name][0], ranges))  # also of what those calls have in common
        for alike in product(*classes):
            chosen = numbers[np.ix_(*alike)].ravel()
            first_rows = np.array([bounds[2][number][0] for number in alike[2]])
            first_row, last_row = bounds[2][alike[2][0]]
            fields: dict[str, object] = {**asdict(work), **same, "rows": last_row - first_row}
            fields["firstRow"] = np.tile(first_rows, len(chosen) // len(first_rows))
            for name, (_, kinds) in by_vertex.items():
                fields[name] = rows(name, tuple(tuple(_ranges(*place)) for place in zip(kinds, bounds, alike, strict=True)))
            self.graph.add_vertices(cs, vertex, fields, chosen)
        prog.add(Execute(cs))
        return out

    def _new_result(self, numbers: Int64s, bounds: list[Bounds]) -> tuple[Tensor, Tensor]:
        """A new tensor of what is written, each part on the tile of its vertex; and as [groups, boxes, rows, elements]."""
        work, back = self.work, self.way == "backward"
        groups, boxes, rows = (np.repeat(np.arange(len(ranges)), [end - begin for begin, end in ranges]) for ranges in bounds)
        parts = np.arange(len(bounds[1 if back else 2]))
        shape = [work.width, self.channels] if back else [work.bins, self.channels]
        if back:
            tiles = numbers[np.ix_(groups, parts, rows)].transpose(1, 0, 2)
        else:
            tiles = numbers[np.ix_(groups, boxes, parts)].transpose(2, 0, 1)
        out = self.graph.addVariable(FLOAT, [*tiles.shape, *shape], self.debug)
        place_on(self.graph, out, np.repeat(tiles[..., None], prod(shape), -1))
        view = out.reshape([*tiles.shape, prod(shape)])
        return out, view.dimShuffle([1, 0, 2, 3] if back else [1, 2, 0, 3])

    def summed(self, sums: Tensor, prog: Sequence) -> Tensor:
        """The sums of the parts, rounded once to the type of the data."""
        type = self.data.elementType()
        if sums.dim(0) > 1:
            return reduce(self.graph, sums, type, [0], Operation.ADD, prog, below(self.debug, "sum"))
        return cast(self.graph, sums[0], type, prog, self.debug) if type is HALF else sums[0]


def _by_length(ranges: Bounds) -> list[list[int]]:
    """The numbers of ranges, those of one length together."""
    alike: dict[int, list[int]] = {}
    for number, (begin, end) in enumerate(ranges):
        alike.setdefault(end - begin, []).append(number)
    return list(alike.values())


def _ranges(kind: Kind, ranges: Bounds, numbers: list[int]) -> Bounds:
    """What the vertices with these numbers in a dimension have of a tensor in it: a range, one place each, or all that there is."""
    of_kind = {RANGE: ranges, PART: [(number, number + 1) for number in range(len(ranges))], ALL: [(0, 1)] * len(ranges)}
    return [of_kind[kind][number] for number in numbers]
