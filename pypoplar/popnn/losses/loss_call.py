"""Losses of a classifier with their gradients, and the count of right answers."""

from __future__ import annotations

from enum import Enum
from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popnn.row_vertices import RowGroups, add_row_vertices, group_rows, row_tiles
from pypoplar.popops.elements.element_output import first_tile
from pypoplar.poputil.arguments import check_prog
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Program, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT, ElementType

SMALLEST: dict[ElementType, float] = {FLOAT: 1.17549435e-38, HALF: 5.9605e-8}  # added to a probability before its logarithm


class LossType(Enum):
    """What a loss measures: the sum of squared differences over 2, or the cross entropy of probabilities."""

    SUM_SQUARED_LOSS = "SUM_SQUARED_LOSS"
    CROSS_ENTROPY_LOSS = "CROSS_ENTROPY_LOSS"


@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    lossType: LossType,
    debugContext: str | None = None,
) -> Program: ...
@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    numCorrect: Tensor,
    lossType: LossType,
    debugContext: str | None = None,
) -> Program: ...
@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    deltasScale: Tensor,
    modelOutputScaling: Tensor,
    lossType: LossType,
    debugContext: str | None = None,
) -> Program: ...
@overload
def calcLoss(
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    deltasScale: Tensor,
    modelOutputScaling: Tensor,
    numCorrect: Tensor,
    lossType: LossType,
    debugContext: str | None = None,
) -> Program: ...
@overloaded("popnn.calcLoss")
def calcLoss(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    lossType: LossType,
    deltasScale: Tensor | None = None,
    modelOutputScaling: Tensor | None = None,
    numCorrect: Tensor | None = None,
    debugContext: str | None = None,
) -> Program:
    """The program that computes each sample's loss and gradient, and counts right answers.

    `modelOutputs` [samples, classes] (FLOAT or HALF) are probabilities, `expected` [samples] (UNSIGNED_INT or INT)
    labels. The program writes `loss` [samples] and `deltas` [samples, classes], for CROSS_ENTROPY_LOSS the gradient
    by what went into the softmax, and *adds* to `numCorrect` (one UNSIGNED_INT or INT) how many rows have their
    largest output at their label. Where `loss` or `deltas` have no tiles yet, they get those of the outputs.

    For CROSS_ENTROPY_LOSS, `modelOutputScaling` says by how much the probabilities are scaled, and deltas are times
    `deltasScale`; both have one element of the outputs' type. A label that is no class, such as the mask 0xffffffff
    (-1), has loss and deltas of 0 and is never right. Everything is computed in float.
    """
    given = {"deltasScale": deltasScale, "modelOutputScaling": modelOutputScaling}
    scales = {name: scale for name, scale in given.items() if scale is not None}
    _check(modelOutputs, expected, loss, deltas, scales, numCorrect, lossType)
    prog = Sequence()
    if modelOutputs.dim(0) == 0:
        return prog
    _complete_mapping(graph, loss, deltas, modelOutputs)
    type = modelOutputs.elementType()
    groups = group_rows(graph, deltas)
    cs = graph.addComputeSet(below(debugContext, lossType.value))
    samples = {"probs": modelOutputs, "expected": expected.reinterpret(UNSIGNED_INT)}
    rows = samples | {"deltas": deltas, "loss": loss}
    if lossType is LossType.SUM_SQUARED_LOSS:
        add_row_vertices(graph, cs, templateVertex("popnn::LossSumSquared", type), groups, rows)
    else:
        vertex = templateVertex("popnn::LossCrossEntropyScaled" if scales else "popnn::LossCrossEntropy", type)
        add_row_vertices(graph, cs, vertex, groups, rows, shared={**scales, "smallest": SMALLEST[type]})
    prog.add(Execute(cs))
    if numCorrect is not None:
        _count_correct(graph, cs, samples, groups, _counter(numCorrect), prog, debugContext)
    return prog


@public
def calcAccuracy(
    graph: Graph, modelOutputs: Tensor, expected: Tensor, numCorrect: Tensor, debugContext: str | None = None
) -> Program:
    """The program that adds to `numCorrect` how many rows of `modelOutputs` have their largest element at their label.

    Shapes and types are those of `calcLoss`.
    """
    _check_samples(modelOutputs, expected)
    _check_count(numCorrect)
    prog = Sequence()
    if modelOutputs.dim(0):
        cs = graph.addComputeSet(below(debugContext, "Accuracy"))
        prog.add(Execute(cs))
        samples = {"probs": modelOutputs, "expected": expected.reinterpret(UNSIGNED_INT)}
        _count_correct(graph, cs, samples, group_rows(graph, modelOutputs), _counter(numCorrect), prog, debugContext)
    return prog


@public
def argMax(graph: Graph, input: Tensor, prog: Sequence, debugContext: str | None = None) -> Tensor:
    """For each row of the matrix `input` (FLOAT or HALF) the position of its largest element, the first of several.

    UNSIGNED_INT [rows]; `prog` is extended.
    """
    check_prog("popnn.argMax", prog)
    _check_matrix("argMax", input)
    groups = group_rows(graph, input)
    result = graph.addVariable(UNSIGNED_INT, [input.dim(0)], below(debugContext, "argMax"))
    place_on(graph, result, row_tiles(graph, input))
    cs = graph.addComputeSet(below(debugContext, "argMax"))
    vertex = templateVertex("popnn::ArgMax", input.elementType())
    add_row_vertices(graph, cs, vertex, groups, {"in": input, "out": result})
    prog.add(Execute(cs))
    return result


def _counter(numCorrect: Tensor) -> Tensor:
    return numCorrect.reinterpret(UNSIGNED_INT).flatten()[0]


def _count_correct(
    graph: Graph,
    cs: ComputeSet,
    samples: dict[str, Tensor],
    groups: RowGroups,
    numCorrect: Tensor,
    prog: Sequence,
    debug: str | None,
) -> None:
    """Count in the compute set `cs`; the counts of several vertices are added up in another step."""
    type = samples["probs"].elementType()
    if len(groups) == 1:
        add_row_vertices(graph, cs, templateVertex("popnn::CountCorrect", type), groups, samples, shared={"numCorrect": numCorrect})
        return
    correct = graph.addVariable(UNSIGNED_INT, [len(groups)], below(debug, "correct"))
    place_on(graph, correct, groups.tile)
    add_row_vertices(graph, cs, templateVertex("popnn::PartCorrect", type), groups, samples, {"correct": correct})
    total = graph.addComputeSet(below(debug, "addCorrect"))
    home = first_tile(graph, numCorrect)
    vertex = graph.addVertex(total, "popnn::AddCorrect", {"correct": correct, "numCorrect": numCorrect})
    graph.setTileMapping(vertex, home)
    prog.add(Execute(total))


def _complete_mapping(graph: Graph, loss: Tensor, deltas: Tensor, modelOutputs: Tensor) -> None:
    """Results without tiles go where the outputs are."""
    if not graph.getTileMapping(deltas, False).complete:
        graph.setTileMapping(deltas, graph.getTileMapping(modelOutputs))
    if not graph.getTileMapping(loss, False).complete:
        place_on(graph, loss, row_tiles(graph, deltas))


def _check(
    modelOutputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    scales: dict[str, Tensor],
    numCorrect: Tensor | None,
    lossType: LossType,
) -> None:
    _check_samples(modelOutputs, expected)
    type = modelOutputs.elementType()
    for name, tensor, shape in (("loss", loss, modelOutputs.shape()[:1]), ("deltas", deltas, modelOutputs.shape())):
        if tensor.shape() != shape or tensor.elementType() is not type:
            raise PoplibsError(f"calcLoss: {name} is {type!r} {shape} for these outputs, got {tensor!r}")
    if scales and lossType is not LossType.CROSS_ENTROPY_LOSS:
        raise PoplibsError(f"calcLoss: only CROSS_ENTROPY_LOSS takes scales, not {lossType.value}")
    for name, tensor in scales.items():
        if tensor.numElements() != 1 or tensor.elementType() is not type:
            raise PoplibsError(f"calcLoss: {name} has one element of {type!r}, got {tensor!r}")
    if numCorrect is not None:
        _check_count(numCorrect)


def _check_samples(modelOutputs: Tensor, expected: Tensor) -> None:
    _check_matrix("calcLoss", modelOutputs)
    if expected.shape() != modelOutputs.shape()[:1] or expected.elementType() not in (UNSIGNED_INT, INT):
        raise PoplibsError(f"expected has a label, UNSIGNED_INT or INT, for each row of {modelOutputs!r}; got {expected!r}")


def _check_matrix(name: str, matrix: Tensor) -> None:
    if matrix.rank() != 2 or matrix.dim(1) == 0 or matrix.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{name} takes a FLOAT or HALF matrix with a row for each sample, got {matrix!r}")


def _check_count(numCorrect: Tensor) -> None:
    if numCorrect.numElements() != 1 or numCorrect.elementType() not in (UNSIGNED_INT, INT):
        raise PoplibsError(f"numCorrect has one element, UNSIGNED_INT or INT, got {numCorrect!r}")
