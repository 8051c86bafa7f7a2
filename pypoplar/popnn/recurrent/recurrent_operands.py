"""What recurrent layers have in common: checks of their operands, and units side by side in products."""

from __future__ import annotations

from pypoplar.errors import PoplarTypeError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.poputil.arguments import check_operands, check_own
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Copy, Sequence
from pypoplar.types import ElementType


def check_shaped(call: str, graph: Graph, name: str, tensor: object, type: ElementType, shape: list[int], what: str) -> Tensor:
    """The argument `name`; `PoplibsError` unless it has the shape, which `what` says in words, and the type of the layer."""
    if tensor is None:
        raise PoplarTypeError(f"{call}: {name} is missing: {what} = {type!r} {shape}")
    check_own(call, graph, **{name: tensor})
    assert isinstance(tensor, Tensor)
    if (tensor.shape(), tensor.elementType()) != (shape, type):
        raise PoplibsError(f"{call}: {name} is {what} = {type!r} {shape}, got {tensor!r}")
    check_operands(call, graph, **{name: tensor})
    return tensor


def side_by_side(units: Tensor) -> Tensor:
    """The matrices of units [units, rows, size] as one [rows, units * size]."""
    return units.dimRoll(0, 1).reshape([units.dim(1), -1])


def one_by_one(matrix: Tensor, units: int) -> Tensor:
    """A matrix [rows, units * size] as [units, rows, size]."""
    return matrix.reshape([matrix.dim(0), units, -1]).dimRoll(1, 0)


def all_steps(sequence: Tensor) -> Tensor:
    """The units of all steps, [steps, units, batch, size], as one matrix [steps * batch, units * size]."""
    steps, units, batch, size = sequence.shape()
    return sequence.dimRoll(1, 2).reshape([steps * batch, units * size])


def by_rows(graph: Graph, matrix: Tensor, prog: Sequence, debug: str) -> Tensor:
    """A copy of a matrix over all steps, whose rows lie one after the other over all tiles.

    Products take their operands from it in long pieces, and not grain by grain.
    """
    copy = graph.addVariable(matrix.elementType(), matrix.shape(), debug)
    mapTensorLinearly(graph, copy)
    prog.add(Copy(matrix, copy))
    return copy


def copied(graph: Graph, layout: StepLayout, source: Tensor, prog: Sequence, debug: str) -> Tensor:
    """Rows of a layout with the values of a tensor [steps, multiple, batch, size]; `prog` is extended by the copy."""
    rows = layout.create(graph, source.elementType(), source.dim(0), debug)
    prog.add(Copy(source, layout.shaped(rows)))
    return rows


def previous_steps(initial: Tensor, sequence: Tensor) -> Tensor:
    """Of each step what the one before gave: of the first one the initial value."""
    return concat(initial.expand([0]), sequence.slice(0, sequence.dim(0) - 1))
