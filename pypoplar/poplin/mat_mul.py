"""Products of matrices, and operands that lie where a product needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import overload

from pypoplar.errors import MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.block_plan import BlockPlan, plan_blocks
from pypoplar.poplin.block_product import block_product
from pypoplar.poplin.outer_product import outer_product
from pypoplar.poplin.vector_product import plan_vector_product, vector_product
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Sequence
from pypoplar.types import FLOAT, HALF, ElementType, check_type

PASSES = ("NONE", "INFERENCE_FWD", "TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU")
OPTIONS: dict[str, Kind] = {
    "availableMemoryProportion": float,
    "fullyConnectedPass": PASSES,
    "inputRHSIsPreArranged": bool,
    "use128BitConvUnitLoad": bool,
    "enableMultiStageReduce": bool,
    "enableFastReduce": bool,
    "remapOutputTensor": bool,
    "partialsType": ("half", "float"),
}
MEMORY = 0.6  # of a tile, for the blocks of a product
Options = Mapping[str, object]


@overload
def matMul(
    graph: Graph, A: Tensor, B: Tensor, prog: Sequence, debugContext: str | None = None, options: Options | None = None
) -> Tensor: ...
@overload
def matMul(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None,
    debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor: ...
@overloaded("poplin.matMul")
def matMul(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor:
    """A new tensor with the product of A [m, k] and B [k, n], both FLOAT or both HALF; `prog` is extended.

    The result has A's type unless `outputType` says another. Sums are taken in float. How the work is split is chosen
    by estimated cycles: a matrix times a vector is computed where the matrix lives, a column times a row where the
    result will live, all else in blocks.

    Options: `availableMemoryProportion` (0.6) bounds the blocks of a tile where it can; ``partialsType`` is ``"float"``;
    `fullyConnectedPass`, `use128BitConvUnitLoad`, `enableMultiStageReduce`, `enableFastReduce` and `remapOutputTensor` are accepted
    and change nothing.
    """
    memory = _memory("poplin.matMul", options)
    if A.rank() != 2 or B.rank() != 2 or A.dim(1) != B.dim(0):
        raise PoplibsError(f"poplin.matMul multiplies [m, k] by [k, n], got {A!r} and {B!r}")
    type = A.elementType()
    if type not in (FLOAT, HALF) or B.elementType() is not type:
        raise PoplibsError(f"poplin.matMul takes matrices of one type, FLOAT or HALF, got {A!r} and {B!r}")
    result = _result_type(outputType, type)
    (rows, depth), columns = A.shape(), B.dim(1)
    if 0 in (rows, depth, columns):
        raise PoplibsError(f"poplin.matMul needs at least one element in each dimension, got {A!r} and {B!r}")
    if depth == 1 and (result is FLOAT or columns % 2 == 0):  # the rows of an odd number of halves do not begin with a word
        return outer_product(graph, A, B, result, prog, debugContext)
    plan = plan_blocks(graph.getTarget(), rows, depth, columns, type, result, memory)
    if 1 in (rows, columns):
        left, right = (A, B) if columns == 1 else (B.transpose(), A.transpose())
        in_place = plan_vector_product(graph, left)
        if in_place is not None and in_place.cycles <= plan.cycles:
            product = vector_product(graph, left, right, result, in_place, prog, debugContext)
            return product if columns == 1 else product.transpose()
    return block_product(graph, A, B, result, plan, prog, debugContext)


@overload
def createMatMulInputLHS(
    graph: Graph,
    dataType: ElementType,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor: ...
@overload
def createMatMulInputLHS(
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor: ...
@overloaded("poplin.createMatMulInputLHS")
def createMatMulInputLHS(
    graph: Graph,
    aShape: Iterable[int],
    bShape: Iterable[int],
    dataType: ElementType = FLOAT,
    inputType: ElementType | None = None,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor:
    """A new tensor that `matMul` takes as A with little exchange.

    It is mapped as the blocks of the product of [m, k] and [k, n] are; a block that several tiles use lives on the first of them.
    """
    type = inputType or dataType
    plan = _planned(graph, "poplin.createMatMulInputLHS", type, outputType, aShape, bShape, options)
    left = graph.addVariable(type, [plan.rows, plan.depth], debugContext or "")
    tiles = graph.getTarget().getNumTiles()
    for i, (top, bottom) in enumerate(pairwise(plan.row_bounds())):
        for p, (begin, end) in enumerate(pairwise(plan.depth_bounds())):
            graph.setTileMapping(left.slice([top, begin], [bottom, end]), plan.tile(i, p, 0, tiles))
    return left


@overload
def createMatMulInputRHS(
    graph: Graph,
    dataType: ElementType,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor: ...
@overload
def createMatMulInputRHS(
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor: ...
@overloaded("poplin.createMatMulInputRHS")
def createMatMulInputRHS(
    graph: Graph,
    aShape: Iterable[int],
    bShape: Iterable[int],
    dataType: ElementType = FLOAT,
    inputType: ElementType | None = None,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options | None = None,
) -> Tensor:
    """A new tensor that `matMul` takes as B with little exchange; see `createMatMulInputLHS`."""
    type = inputType or dataType
    plan = _planned(graph, "poplin.createMatMulInputRHS", type, outputType, aShape, bShape, options)
    matrix = graph.addVariable(type, [plan.depth, plan.columns], debugContext or "")
    tiles = graph.getTarget().getNumTiles()
    for p, (begin, end) in enumerate(pairwise(plan.depth_bounds())):
        for j, (left, right) in enumerate(pairwise(plan.column_bounds())):
            graph.setTileMapping(matrix.slice([begin, left], [end, right]), plan.tile(j % plan.row_parts, p, j, tiles))
    return matrix


def _planned(
    graph: Graph,
    call: str,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    options: Options | None,
) -> BlockPlan:
    """The plan of a product whose operands' types and shapes are given."""
    shapes = [_shape(call, aShape), _shape(call, bShape)]
    if check_type(inputType) not in (FLOAT, HALF):
        raise PoplibsError(f"{call} makes FLOAT or HALF tensors, got {inputType!r}")
    (rows, depth), (inner, columns) = shapes
    if depth != inner or 0 in (rows, depth, columns):
        raise PoplibsError(f"{call}: matMul multiplies [m, k] by [k, n], got the shapes {shapes[0]} and {shapes[1]}")
    result = _result_type(outputType, inputType)
    return plan_blocks(graph.getTarget(), rows, depth, columns, inputType, result, _memory(call, options))


def _shape(call: str, given: Iterable[int]) -> list[int]:
    shape = list(given)
    if len(shape) != 2:
        raise PoplibsError(f"{call} takes two shapes of two sizes each, got {given!r}")
    return shape


def _memory(call: str, options: Options | None) -> float:
    """The part of a tile's memory that a product may take; checks all options."""
    chosen = read_options(call, options, OPTIONS)
    if chosen.get("inputRHSIsPreArranged"):
        raise MissingFeature(f"{call}: pypoplar has no preArrangeMatMulInputRHS, so no input is pre-arranged")
    if chosen.get("partialsType") == "half":
        raise MissingFeature(f"{call}: partial sums are float in pypoplar, partialsType half is not there yet")
    return float(chosen.get("availableMemoryProportion", MEMORY))


def _result_type(outputType: ElementType | None, type: ElementType) -> ElementType:
    result = type if outputType is None else check_type(outputType)
    if result not in (FLOAT, HALF):
        raise PoplibsError(f"a product of matrices is FLOAT or HALF, got the output type {result!r}")
    return result
