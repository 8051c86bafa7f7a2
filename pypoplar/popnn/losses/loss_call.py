"""Losses of a classifier with their gradients, and the count of right answers."""

from __future__ import annotations

from enum import Enum
from typing import overload

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popnn.losses.accuracy import check_apart, check_count, check_samples, count_best, count_in_set, counter
from pypoplar.popnn.losses.class_pieces import ClassPieces, plan_pieces
from pypoplar.popnn.losses.loss_cycles import loss_slots
from pypoplar.popnn.row_vertices import RowGroups, add_row_vertices, group_rows, row_tiles
from pypoplar.popops.reduction.reduce_call import reduceWithOutput
from pypoplar.popops.reduction.reduce_params import Operation
from pypoplar.poputil.arguments import check_operands, check_own, check_writeable
from pypoplar.poputil.copies import shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.placement.tiles_of_elements import mapped_pieces, place_as, place_on
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Program, Sequence
from pypoplar.types import FLOAT, HALF, UNSIGNED_INT, ElementType

WORD = 4  # bytes that two workers must not share
SMALLEST: dict[ElementType, float] = {FLOAT: 1.17549435e-38, HALF: 5.9605e-8}  # added to a probability before its logarithm


class LossType(Enum):
    """What `calcLoss` measures of a sample.

    Attributes
    ----------
    SUM_SQUARED_LOSS:
        The sum of squared differences of outputs and the one-hot label, over 2.
    CROSS_ENTROPY_LOSS:
        The negative logarithm of the label's probability.
    """

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

    A label that is no class, such as `popops.MASKED_LABEL_CODE` (0xffffffff, or -1), has loss and deltas of 0 and is never
    right; for SUM_SQUARED_LOSS its one-hot vector is 0, as of PopLibs. Everything is computed in float.

    Parameters
    ----------
    modelOutputs:
        FLOAT or HALF [samples, classes]. For CROSS_ENTROPY_LOSS they are probabilities, as a softmax gives them, and not what
        goes into it: no softmax is computed here.
    expected:
        Labels, UNSIGNED_INT or INT [samples].
    loss:
        What the losses are written to: [samples] of the type of the outputs. If it has no tiles yet, it gets those of the
        outputs.
    deltas:
        What the gradients are written to: [samples, classes] of the type of the outputs. For SUM_SQUARED_LOSS they are those of
        the loss by `modelOutputs`; for CROSS_ENTROPY_LOSS by what went into the softmax whose probabilities `modelOutputs` are,
        so that no gradient of the softmax is to be computed. If it has no tiles yet, it gets those of the outputs.
    lossType:
        What a loss measures.
    deltasScale:
        What deltas are multiplied by: one element of the type of the outputs, for CROSS_ENTROPY_LOSS.
    modelOutputScaling:
        By how much the probabilities are scaled: one element of the type of the outputs, for CROSS_ENTROPY_LOSS.
    numCorrect:
        What the program adds to how many rows have their largest output at their label: one UNSIGNED_INT or INT.

    Returns
    -------
    Program
        To be added to a program.

    Raises
    ------
    PoplibsError
        For other shapes and types, for scales of SUM_SQUARED_LOSS, and if what is written cannot be, or is part of another
        operand.
    InvalidTileMapping
        If an element of `modelOutputs`, `expected`, `numCorrect` or a scale has no tile.

    Notes
    -----
    Rows of many classes are cut into pieces, for several workers and tiles.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import popnn, testing
    >>> def compute(graph, outputs, labels, loss, deltas):
    ...     popnn.addCodelets(graph)
    ...     return popnn.calcLoss(graph, outputs, labels, loss, deltas, popnn.LossType.SUM_SQUARED_LOSS)
    >>> outputs, zeros = np.float32([[0.5, 0.5], [0, 1]]), np.zeros((2, 2), np.float32)
    >>> arrays = {"outputs": outputs, "labels": np.uint32([0, 1]), "loss": zeros[0], "deltas": zeros}
    >>> result = testing.run(compute, arrays)
    >>> result["loss"].tolist(), result["deltas"].tolist()
    ([0.25, 0.0], [[-0.5, 0.5], [0.0, 0.0]])
    """
    call = "popnn.calcLoss"
    given = {"deltasScale": deltasScale, "modelOutputScaling": modelOutputScaling}
    scales = {name: scale for name, scale in given.items() if scale is not None}
    check_samples(call, graph, modelOutputs, expected, debugContext)
    _check(graph, modelOutputs, loss, deltas, scales, lossType)
    if numCorrect is not None:
        check_count(call, graph, numCorrect)
    written = {"loss": loss, "deltas": deltas} | ({} if numCorrect is None else {"numCorrect": numCorrect})
    check_apart(call, graph, written, {"modelOutputs": modelOutputs, "expected": expected, **scales})
    prog = Sequence()
    if modelOutputs.dim(0) == 0:
        return prog
    _complete_mapping(graph, loss, deltas, modelOutputs)
    labels = expected.reinterpret(UNSIGNED_INT)
    pieces = loss_pieces(graph, modelOutputs, deltas)
    debug = below(debugContext, lossType.value)
    samples = {"probs": modelOutputs, "expected": labels}
    if pieces.whole:
        groups = group_rows(graph, deltas)
        cs = graph.addComputeSet(debug)
        in_place = shares_elements(graph, deltas, modelOutputs)
        if numCorrect is not None and in_place:  # counted before the outputs are written over
            first = graph.addComputeSet(below(debugContext, "Accuracy"))
            prog.add(Execute(first))
            count_in_set(graph, first, samples, groups, counter(numCorrect), prog, debugContext)
        prog.add(Execute(cs))
        _add_rows(graph, cs, groups, {**samples, "deltas": deltas, "loss": loss}, scales, lossType)
        if numCorrect is not None and not in_place:
            count_in_set(graph, cs, samples, groups, counter(numCorrect), prog, debugContext)
        return prog
    if numCorrect is not None:
        count_best(graph, modelOutputs, labels, numCorrect, prog, debugContext)
    _add_pieces(graph, prog, pieces, {**samples, "deltas": deltas}, loss, scales, lossType, debug)
    return prog


def _add_rows(
    graph: Graph, cs: ComputeSet, groups: RowGroups, rows: dict[str, Tensor], scales: dict[str, Tensor], lossType: LossType
) -> None:
    """A worker for each row."""
    type = rows["probs"].elementType()
    if lossType is LossType.SUM_SQUARED_LOSS:
        add_row_vertices(graph, cs, templateVertex("popnn::LossSumSquared", type), groups, rows)
        return
    vertex = templateVertex("popnn::LossCrossEntropyScaled" if scales else "popnn::LossCrossEntropy", type)
    add_row_vertices(graph, cs, vertex, groups, rows, shared={**scales, "smallest": SMALLEST[type]})


def _add_pieces(
    graph: Graph,
    prog: Sequence,
    pieces: ClassPieces,
    samples: dict[str, Tensor],
    loss: Tensor,
    scales: dict[str, Tensor],
    lossType: LossType,
    debug: str,
) -> None:
    """A worker for each piece of a row, then the sums of the pieces' losses."""
    type = loss.elementType()
    cs = graph.addComputeSet(debug)
    parts = graph.addVariable(FLOAT, [pieces.rows, pieces.count], below(debug, "parts"))
    squares = lossType is LossType.SUM_SQUARED_LOSS
    vertex = templateVertex("popnn::LossSumSquaredPieces" if squares else "popnn::LossCrossEntropyPieces", type)
    shared: dict[str, Tensor | float | bool] = {}
    if not squares:
        one = graph.addConstant(type, [], 1, below(debug, "one"))
        graph.setTileMapping(one, 0)
        shared = {"deltasScale": one, "modelOutputScaling": one, **scales, "smallest": SMALLEST[type], "width": pieces.classes}
    whole = type is FLOAT or _begin_with_words(graph, samples["deltas"])  # two halves of a word are one worker's
    workers = graph.getTarget().getNumWorkerContexts() if whole else 1
    for numbers in pieces.alike():
        deltas = pieces.cut(samples["deltas"], numbers)
        part = pieces.chosen(parts, numbers)
        groups = pieces.groups(graph, deltas, workers)
        place_on(graph, part, groups.tile_of_rows())
        rows = {"probs": pieces.cut(samples["probs"], numbers), "deltas": deltas, "loss": part}
        rows["expected"] = pieces.of_rows(samples["expected"], numbers)
        add_row_vertices(graph, cs, vertex, groups, rows, shared=shared, numbers={"first": pieces.first_columns(numbers)})
    prog.add(Execute(cs))
    reduceWithOutput(graph, parts, loss, [1], Operation.ADD, prog, debug)


def loss_pieces(graph: Graph, modelOutputs: Tensor, deltas: Tensor) -> ClassPieces:
    """The pieces of rows; halves of a word must be in one piece, so rows of an odd number of them are not cut.

    Nor are rows that would have pieces of two lengths, which are vertices apart, where words may begin within a piece.
    """
    rows, classes = modelOutputs.shape()
    size = modelOutputs.elementType().size
    pieces = plan_pieces(graph.getTarget(), rows, classes, size, loss_slots)
    if size == WORD or pieces.whole:
        return pieces
    even = pieces.length + pieces.length % 2
    pieces = ClassPieces(rows, classes, -(-classes // even), even)
    if classes % 2 or (len(pieces.alike()) > 1 and not _begin_with_words(graph, deltas)):
        return ClassPieces(rows, classes, 1, classes)
    return pieces


def _begin_with_words(graph: Graph, halves: Tensor) -> bool:
    """Whether even places of a matrix of halves begin words of memory: it is the beginning of a variable, cut at even places."""
    regions = halves.getVarRegions()
    begins, _, _ = mapped_pieces(graph, halves)
    return len(regions) == 1 and regions[0].interval.begin() == 0 and not bool((begins % 2).any())


def _complete_mapping(graph: Graph, loss: Tensor, deltas: Tensor, modelOutputs: Tensor) -> None:
    """Results without tiles go where the outputs are."""
    if graph.elements_without_tile(deltas):
        place_as(graph, deltas, modelOutputs)
    if graph.elements_without_tile(loss):
        place_on(graph, loss, row_tiles(graph, deltas))


def _check(graph: Graph, modelOutputs: Tensor, loss: Tensor, deltas: Tensor, scales: dict[str, Tensor], lossType: LossType) -> None:
    type = modelOutputs.elementType()
    for name, tensor, shape in (("loss", loss, modelOutputs.shape()[:1]), ("deltas", deltas, modelOutputs.shape())):
        check_own("popnn.calcLoss", graph, **{name: tensor})
        if tensor.shape() != shape or tensor.elementType() is not type:
            raise PoplibsError(f"popnn.calcLoss: {name} is {type!r} {shape} for these outputs, got {tensor!r}")
        check_writeable("popnn.calcLoss", tensor)
    if scales and lossType is not LossType.CROSS_ENTROPY_LOSS:
        raise PoplibsError(f"popnn.calcLoss: only CROSS_ENTROPY_LOSS takes scales, not {lossType.value}")
    for name, tensor in scales.items():
        check_operands("popnn.calcLoss", graph, **{name: tensor})
        if tensor.numElements() != 1 or tensor.elementType() is not type:
            raise PoplibsError(f"popnn.calcLoss: {name} has one element of {type!r}, got {tensor!r}")
