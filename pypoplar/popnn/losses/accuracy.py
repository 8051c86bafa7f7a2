"""How many samples have their largest output at their label."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.vertices import ComputeSet
from pypoplar.popnn.losses.best_classes import best_of_rows
from pypoplar.popnn.losses.class_pieces import plan_pieces
from pypoplar.popnn.row_vertices import RowGroups, add_row_vertices, group_rows
from pypoplar.popops.elements.cast import cast
from pypoplar.popops.elements.element_functions import eq
from pypoplar.popops.elements.element_output import first_tile
from pypoplar.popops.reduction.reduce_call import reduceWithOutput
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.poputil.arguments import check_codelet, check_debug, check_operands, check_writeable
from pypoplar.poputil.copies import shares_elements
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.placement.tiles_of_elements import place_on
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Execute, Program, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT

MANY = 32  # counts that one worker does not add up


@public
def calcAccuracy(
    graph: Graph, modelOutputs: Tensor, expected: Tensor, numCorrect: Tensor, debugContext: str | None = None
) -> Program:
    """The program that counts for how many samples the largest output is the label's; of several the first one counts.

    Parameters
    ----------
    modelOutputs:
        FLOAT or HALF [samples, classes].
    expected:
        Labels, UNSIGNED_INT or INT [samples].
    numCorrect:
        What the program adds to: one UNSIGNED_INT or INT.

    Returns
    -------
    Program
        To be added to a program.

    Raises
    ------
    PoplibsError
        For other shapes and types, and if `numCorrect` cannot be written or is part of another operand.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = "popnn.calcAccuracy"
    check_samples(call, graph, modelOutputs, expected, debugContext)
    check_count(call, graph, numCorrect)
    check_apart(call, graph, {"numCorrect": numCorrect}, {"modelOutputs": modelOutputs, "expected": expected})
    prog = Sequence()
    if modelOutputs.dim(0) == 0:
        return prog
    labels = expected.reinterpret(UNSIGNED_INT)
    rows, classes = modelOutputs.shape()
    if not plan_pieces(graph.getTarget(), rows, classes, modelOutputs.elementType().size).whole:
        count_best(graph, modelOutputs, labels, numCorrect, prog, below(debugContext, "Accuracy"))
        return prog
    cs = graph.addComputeSet(below(debugContext, "Accuracy"))
    prog.add(Execute(cs))
    samples = {"probs": modelOutputs, "expected": labels}
    count_in_set(graph, cs, samples, group_rows(graph, modelOutputs), counter(numCorrect), prog, debugContext)
    return prog


def counter(numCorrect: Tensor) -> Tensor:
    """The element that counts, as vertices take it."""
    return numCorrect.reinterpret(UNSIGNED_INT).flatten()[0]


def count_best(graph: Graph, modelOutputs: Tensor, labels: Tensor, numCorrect: Tensor, prog: Sequence, debug: str | None) -> None:
    """Count by the places of the largest elements, which are found first."""
    _, places = best_of_rows(graph, modelOutputs, prog, "Max", below(debug, "Accuracy"))
    if labels.numElements() > MANY:
        right = cast(graph, eq(graph, places, labels, prog, debug), UNSIGNED_INT, prog, debug)
        add_up(graph, right, counter(numCorrect), prog, below(debug, "Accuracy"))
        return
    cs = graph.addComputeSet(below(debug, "Accuracy", "CalcAccuracy"))
    fields = {"maxPerBatch": places, "expected": labels, "numCorrect": counter(numCorrect)}
    graph.setTileMapping(graph.addVertex(cs, "popnn::CalcAccuracy", fields), first_tile(graph, numCorrect))
    prog.add(Execute(cs))


def add_up(graph: Graph, counts: Tensor, numCorrect: Tensor, prog: Sequence, debug: str) -> None:
    """Add counts to the counter."""
    params = ReduceParams(Operation.ADD, update=True)
    reduceWithOutput(graph, counts.reinterpret(INT), numCorrect.reinterpret(INT), [0], params, prog, debug)


def count_in_set(
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
    if len(groups) > MANY:
        add_up(graph, correct, numCorrect, prog, below(debug, "addCorrect"))
        return
    total = graph.addComputeSet(below(debug, "addCorrect"))
    vertex = graph.addVertex(total, "popnn::AddCorrect", {"correct": correct, "numCorrect": numCorrect})
    graph.setTileMapping(vertex, first_tile(graph, numCorrect))
    prog.add(Execute(total))


def check_samples(call: str, graph: Graph, modelOutputs: Tensor, expected: Tensor, debugContext: object) -> None:
    """Whether there is a row of outputs and a label for each sample."""
    check_operands(call, graph, modelOutputs=modelOutputs, expected=expected)
    check_debug(call, debugContext)
    if modelOutputs.rank() != 2 or modelOutputs.dim(1) == 0 or modelOutputs.elementType() not in (FLOAT, HALF):
        raise PoplibsError(f"{call} takes a FLOAT or HALF matrix with a row for each sample, got {modelOutputs!r}")
    if expected.shape() != modelOutputs.shape()[:1] or expected.elementType() not in (UNSIGNED_INT, INT):
        raise PoplibsError(f"{call}: expected has a label, UNSIGNED_INT or INT, for each row of {modelOutputs!r}; got {expected!r}")
    check_codelet(call, graph, "popnn::CountCorrect<float>")


def check_count(call: str, graph: Graph, numCorrect: Tensor) -> None:
    """Whether there is one element that counts."""
    check_operands(call, graph, numCorrect=numCorrect)
    if numCorrect.numElements() != 1 or numCorrect.elementType() not in (UNSIGNED_INT, INT):
        raise PoplibsError(f"{call}: numCorrect has one element, UNSIGNED_INT or INT, got {numCorrect!r}")
    check_writeable(call, numCorrect)


def check_apart(call: str, graph: Graph, written: dict[str, Tensor], read: dict[str, Tensor]) -> None:
    """What is written has no elements of what is read, nor of the other, but deltas may be the outputs themselves."""
    for name, tensor in written.items():
        others = {**read, **{other: value for other, value in written.items() if other != name}}
        for other, operand in others.items():
            whole = name == "deltas" and other == "modelOutputs" and tensor == operand
            if not whole and shares_elements(graph, tensor, operand):
                raise PoplibsError(f"{call}: {name}, {tensor!r}, has elements of {other}, {operand!r}")
