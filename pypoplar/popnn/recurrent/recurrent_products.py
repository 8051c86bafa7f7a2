"""Products over all steps of a backward pass: gradients of weights, of biases and of the input."""

from __future__ import annotations

from itertools import pairwise

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.poplin.matmul.mat_mul import matMul
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.popnn.recurrent.recurrent_operands import all_steps, by_rows, one_by_one, side_by_side
from pypoplar.popnn.recurrent.recurrent_options import RecurrentOptions
from pypoplar.popnn.recurrent.step_layout import StepLayout
from pypoplar.popops.reduction.reduce_call import reduce, reduceWithOutput
from pypoplar.popops.reduction.reduce_params import Operation, ReduceParams
from pypoplar.poputil.naming import below
from pypoplar.program import Sequence
from pypoplar.types import FLOAT


def input_gradients(
    graph: Graph,
    slopes: Tensor,
    weights: Tensor,
    prog: Sequence,
    options: RecurrentOptions,
    cache: PlanningCache | None,
    debug: str,
) -> Tensor:
    """The gradient [steps, batch, in] of the input, from those [steps, units, batch, out] of what goes into the units."""
    left, right = by_rows(graph, all_steps(slopes), prog, debug), side_by_side(weights).transpose()
    product = matMul(graph, left, right, prog, debug, options.of_pass("TRAINING_BWD"), cache)
    return product.reshape([slopes.dim(0), slopes.dim(2), -1])


def weight_products(
    graph: Graph,
    read: list[Tensor],
    slopes: Tensor,
    prog: Sequence,
    options: RecurrentOptions,
    cache: PlanningCache | None,
    debug: str,
) -> list[Tensor]:
    """The gradients of the weights [units, in, out] that each tensor [steps, batch, in] is multiplied by, in one product."""
    units = slopes.dim(1)
    rows = [tensor.reshape([-1, tensor.dim(2)]) for tensor in read]
    left = by_rows(graph, concat(rows, 1), prog, debug).transpose()
    right = by_rows(graph, all_steps(slopes), prog, debug)
    product = matMul(graph, left, right, prog, debug, options.of_pass("TRAINING_WU"), cache)
    ends = [0]
    for matrix in rows:
        ends.append(ends[-1] + matrix.dim(1))
    return [one_by_one(product.slice(low, high), units) for low, high in pairwise(ends)]


def bias_gradients(graph: Graph, slopes: Tensor, prog: Sequence, debug: str) -> Tensor:
    """The sums [units, out] over steps and samples: first over steps, which lie on one tile, in FLOAT."""
    _, units, batch, size = slopes.shape()
    layout = StepLayout.of(graph, units, batch, size)
    sums = layout.create(graph, FLOAT, 1, debug)
    add = ReduceParams(Operation.ADD)
    reduceWithOutput(graph, layout.rows(slopes), sums.flatten(), [0], add, prog, below(debug, "steps"))
    return reduce(graph, layout.shaped(sums)[0], slopes.elementType(), [1], add, prog, debug)
