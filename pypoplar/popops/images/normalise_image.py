"""`popops.normaliseImage`: pixels of three channels, scaled, as pixels of four."""

from __future__ import annotations

from collections.abc import Iterable

from pypoplar.arrays.intervals import Interval
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poputil.arguments import (
    check_call,
    check_codelet,
    check_debug,
    check_graph,
    check_operands,
    check_own,
    element_type,
    shape_of,
)
from pypoplar.poputil.cycles import ceiling
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import fits
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, UNSIGNED_CHAR, ElementType

CHANNELS, OUT_CHANNELS = 3, 4
TYPES = (FLOAT, HALF, UNSIGNED_CHAR)
# NormaliseImage, by popopsCycleEstimators of PopLibs: what a worker begins with, and a pixel
START: dict[ElementType, int] = {UNSIGNED_CHAR: 28, HALF: 51, FLOAT: 51}
PIXEL: dict[ElementType, int] = {UNSIGNED_CHAR: 8, HALF: 11, FLOAT: 17}
FLOPS_OF_A_PIXEL = 3 * 3


def normalise_cycles(target: Target, pixels: int, type: ElementType) -> int:
    """Of the busiest worker."""
    return START[type] + ceiling(pixels, target.getNumWorkerContexts()) * PIXEL[type] + 1


@public
def createNormaliseImageInput(graph: Graph, type: ElementType, shape: Iterable[int], debugContext: str | None = None) -> Tensor:
    """A new tensor of pixels, mapped as `normaliseImage` takes it.

    Parameters
    ----------
    type:
        FLOAT, HALF or UNSIGNED_CHAR.
    shape:
        Two dimensions at least, of which the last are 3 channels.

    Returns
    -------
    Tensor
        Spread over the tiles in whole pixels and whole words.

    Raises
    ------
    PoplibsError
        For another type, or another last dimension.
    """
    call = "popops.createNormaliseImageInput"
    check_graph(call, graph)
    check_debug(call, debugContext)
    sizes = shape_of(call, shape)
    _check_image(call, element_type(call, type), list(sizes))
    t = graph.addVariable(type, sizes, below(debugContext, "createNormaliseImageInput"))
    grain = CHANNELS * (4 // graph.getTarget().getTypeSize(type))
    mapTensorLinearly(graph, t, grain * graph.getTarget().getNumWorkerContexts(), grain)
    return t


@public
def normaliseImage(
    graph: Graph,
    seq: Sequence,
    tIn: Tensor,
    inScale: float,
    offsets: Tensor,
    scales: Tensor,
    debugContext: str | None = None,
) -> Tensor:
    """The pixels of `tIn` normalised, with a fourth channel of zeros: ``(tIn * inScale - offsets) * scales``; `seq` is extended.

    Each tile works on the pixels that it holds.

    Parameters
    ----------
    seq:
        The Sequence that is extended.
    tIn:
        FLOAT, HALF or UNSIGNED_CHAR ``[..., 3]``.
    inScale:
        A number other than 0.
    offsets, scales:
        One for each channel, [3], of the type of the result, in which is computed.

    Returns
    -------
    Tensor
        A new tensor ``[..., 4]``, HALF for UNSIGNED_CHARs, else of their type.

    Raises
    ------
    PoplibsError
        For other types and shapes, an `inScale` that is 0 or no FLOAT, and where a pixel is on two tiles:
        `createNormaliseImageInput` makes a tensor whose pixels are not.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popops.normaliseImage"
    check_call(call, graph, seq, debugContext)
    check_own(call, graph, tIn=tIn, offsets=offsets, scales=scales)
    inType = tIn.elementType()
    _check_image(call, inType, tIn.shape())
    outType = HALF if inType is UNSIGNED_CHAR else inType
    for name, tensor in (("offsets", offsets), ("scales", scales)):
        if tensor.shape() != [CHANNELS] or tensor.elementType() is not outType:
            raise PoplibsError(f"{call}: {name} has {CHANNELS} elements of {outType!r}, as the result has, got {tensor!r}")
    if not fits(inScale, float) or not 0 < abs(inScale) <= FLOAT.limits[1]:
        raise PoplibsError(f"{call}: inScale is a number other than 0, got {inScale!r}, which is no such FLOAT")
    check_operands(call, graph, tIn, offsets, scales)
    check_codelet(call, graph, templateVertex("popops::NormaliseImage", inType, outType))
    mapping = graph.getTileMapping(tIn.flatten())
    for intervals in mapping:
        for begin, end in intervals:
            if begin % CHANNELS or end % CHANNELS:
                raise PoplibsError(
                    f"{call}: {tIn!r} has pixels that lie on two tiles; createNormaliseImageInput makes tensors that have none"
                )
    out = graph.addVariable(outType, [*tIn.shape()[:-1], OUT_CHANNELS], below(debugContext, "normalise"))
    cs = graph.addComputeSet(below(debugContext, "normaliseImage"))
    name = templateVertex("popops::NormaliseImage", inType, outType)
    for tile, intervals in enumerate(mapping):
        if not intervals:
            continue
        placed = [Interval(begin // CHANNELS * OUT_CHANNELS, end // CHANNELS * OUT_CHANNELS) for begin, end in intervals]
        pixels = concat(tIn.flatten().slices(intervals)), concat(out.flatten().slices(placed))
        graph.setTileMapping(pixels[1], tile)
        edges = {"in": pixels[0], "out": pixels[1], "scales": scales, "offsets": offsets}
        graph.setTileMapping(graph.addVertex(cs, name, {**edges, "inScale": inScale}), tile)
    seq.add(Execute(cs))
    return out


def _check_image(call: str, type: ElementType, shape: list[int]) -> None:
    if type not in TYPES:
        raise PoplibsError(f"{call}: an image is FLOAT, HALF or UNSIGNED_CHAR, got {type!r}")
    if len(shape) < 2 or shape[-1] != CHANNELS:
        raise PoplibsError(f"{call}: the last of two dimensions at least are the {CHANNELS} channels, got the shape {shape}")
