"""`popops.splineBasis` and `popops.splineWeighting`: the two steps of a SplineCNN's convolution."""

from __future__ import annotations

from typing import Any

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands, check_own, check_writeable, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_CHAR, ElementType

DEGREES = (1, 2, 3)


@public
def splineBasis(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    pseudo: Tensor,
    kernelSize: Tensor,
    isOpenSpline: Tensor,
    basis: Tensor,
    weightIndex: Tensor,
    degree: int,
    prog: Sequence,
    debugContext: str | None = None,
) -> None:
    """Write the B-spline basis functions of edges, and which weights they go with; `prog` is extended.

    Each tile computes what it holds of `basis`.

    Parameters
    ----------
    pseudo:
        The coordinates of the edges, 0 to 1: FLOAT or HALF [edges, dimensions].
    kernelSize:
        How many weights there are in each dimension: INT [dimensions].
    isOpenSpline:
        Whether the spline of a dimension is open, else closed: UNSIGNED_CHAR [dimensions].
    basis:
        What the functions are written to: of the type of `pseudo`, ``[edges, (degree + 1) ** dimensions]``.
    weightIndex:
        What the numbers of weights are written to: INT of the shape of `basis`.
    degree:
        That of the splines: 1, 2 or 3.

    Raises
    ------
    PoplibsError
        For other shapes, types or degrees, and what cannot be written.

    Notes
    -----
    The first step of the convolution of SplineCNN (Fey et al. 2018, "SplineCNN: Fast Geometric Deep Learning with Continuous
    B-Spline Kernels").
    """
    call = "popops.splineBasis"
    check_call(call, graph, prog, debugContext)
    names = {"pseudo": pseudo, "kernelSize": kernelSize, "isOpenSpline": isOpenSpline, "basis": basis, "weightIndex": weightIndex}
    check_own(call, graph, **names)
    type = _real(call, "pseudo", pseudo, 2)
    edges, dimensions = pseudo.shape()
    if whole_number(call, "degree", degree) not in DEGREES:
        raise PoplibsError(f"{call}: degree is 1, 2 or 3, got {degree}")
    splines = (degree + 1) ** dimensions
    _check(call, "kernelSize", kernelSize, INT, [dimensions])
    _check(call, "isOpenSpline", isOpenSpline, UNSIGNED_CHAR, [dimensions])
    _check(call, "basis", basis, type, [edges, splines])
    _check(call, "weightIndex", weightIndex, INT, [edges, splines])
    for tensor in (basis, weightIndex):
        check_writeable(call, tensor)
    check_operands(call, graph, **names)
    check_codelet(call, graph, templateVertex("popops::SplineBasis", 1, type))
    mapping = graph.getTileMapping(basis.flatten())
    if basis.numElements() == 0:
        return
    cs = graph.addComputeSet(below(debugContext, "SplineBasis"))
    name = templateVertex("popops::SplineBasis", degree, type)
    for tile, intervals in enumerate(mapping):
        if not intervals:
            continue
        first, last = intervals[0].begin() // splines, -(-intervals[-1].end() // splines)
        fields: dict[str, Any] = {
            "pseudo": pseudo.slice(first, last).flatten(),
            "kernelSize": kernelSize,
            "isOpenSpline": isOpenSpline,
            "basis": basis.flatten().slices(intervals),
            "weightIndex": weightIndex.flatten().slices(intervals),
            "offsets": [interval.begin() for interval in intervals],
            "numSplines": splines,
            "edgeOffset": first,
        }
        graph.setTileMapping(graph.addVertex(cs, name, fields), tile)
    prog.add(Execute(cs))


@public
def splineWeighting(
    graph: Graph,
    input: Tensor,
    weight: Tensor,
    basis: Tensor,
    weightIndex: Tensor,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor:
    """The features of edges weighted by a B-spline kernel, as a new tensor; `prog` is extended.

    Element ``[e, o]`` of the result is the sum over splines s and input channels i of ``weight[weightIndex[e, s], i, o] *
    basis[e, s] * input[e, i]``, in the type of `input`.

    Parameters
    ----------
    input:
        FLOAT or HALF [edges, input channels].
    weight:
        Of its type, [kernel, input channels, output channels]. Every tile reads all weights.
    basis, weightIndex:
        Those of `splineBasis`, [edges, splines].

    Returns
    -------
    Tensor
        Of the type of `input`, [edges, output channels], spread over all tiles.

    Raises
    ------
    PoplibsError
        For other shapes and types.
    """
    call = "popops.splineWeighting"
    check_call(call, graph, prog, debugContext)
    check_own(call, graph, input=input, weight=weight, basis=basis, weightIndex=weightIndex)
    type = _real(call, "input", input, 2)
    if _real(call, "weight", weight, 3) is not type or _real(call, "basis", basis, 2) is not type:
        raise PoplibsError(f"{call}: input, weight and basis have one type, got {input!r}, {weight!r} and {basis!r}")
    edges, channels = input.shape()
    splines, outputs = basis.dim(1), weight.dim(2)
    _check(call, "weight", weight, type, [weight.dim(0), channels, outputs])
    _check(call, "basis", basis, type, [edges, splines])
    _check(call, "weightIndex", weightIndex, INT, [edges, splines])
    check_operands(call, graph, input, weight, basis, weightIndex)
    check_codelet(call, graph, templateVertex("popops::SplineWeighting", type))
    output = graph.addVariable(type, [edges, outputs], below(debugContext, "output"))
    mapTensorLinearly(graph, output)
    if output.numElements() == 0:
        return output
    cs = graph.addComputeSet(below(debugContext, "SplineWeighting"))
    name = templateVertex("popops::SplineWeighting", type)
    for tile, intervals in enumerate(graph.getTileMapping(output)):
        for begin, end in intervals:
            first, last = begin // outputs, -(-end // outputs)
            rows = {"input": input, "basis": basis, "weightIndex": weightIndex}
            fields: dict[str, Any] = {
                **{field: tensor.slice(first, last).flatten() for field, tensor in rows.items()},
                "weight": weight.flatten(),
                "output": output.flatten().slice(begin, end),
                "offset": begin - first * outputs,
                "numInCh": channels,
                "numOutCh": outputs,
                "numSplines": splines,
            }
            graph.setTileMapping(graph.addVertex(cs, name, fields), tile)
    prog.add(Execute(cs))
    return output


def _real(call: str, name: str, tensor: Tensor, rank: int) -> ElementType:
    if tensor.elementType() not in (FLOAT, HALF) or tensor.rank() != rank:
        raise PoplibsError(f"{call}: {name} is FLOAT or HALF of {rank} dimensions, got {tensor!r}")
    return tensor.elementType()


def _check(call: str, name: str, tensor: Tensor, type: ElementType, shape: list[int]) -> None:
    if tensor.elementType() is not type or tensor.shape() != shape:
        raise PoplibsError(f"{call}: {name} is {type!r} {shape}, got {tensor!r}")
