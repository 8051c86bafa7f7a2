"""Products of matrices, and operands that lie where a product needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from pypoplar.braces import OPTIONS as NAMED_VALUES
from pypoplar.braces import ordered
from pypoplar.errors import MissingFeature
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poplin.block_plan import BlockPlan, plan_blocks
from pypoplar.poplin.block_product import block_product
from pypoplar.poplin.outer_product import outer_product
from pypoplar.poplin.vector_product import plan_vector_product, vector_product
from pypoplar.poputil.arguments import check_prog
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
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


@public
def matMul(graph: Graph, A: Tensor, B: Tensor, prog: Sequence, *arguments: Any, **keywords: Any) -> Tensor:
    """A new tensor with the product of A [m, k] and B [k, n], both FLOAT or both HALF; `prog` is extended.

        matMul(graph, A, B, prog[, outputType][, debugContext][, options])

    The result has A's type unless `outputType` says another. Sums are taken in float. How the work is split is chosen
    by estimated cycles: a matrix times a vector is computed where the matrix lives, a column times a row where the
    result will live, all else in blocks.

    Options: `availableMemoryProportion` (0.6) bounds the blocks of a tile where it can; ``partialsType`` is ``"float"``;
    `fullyConnectedPass`, `use128BitConvUnitLoad`, `enableMultiStageReduce`, `enableFastReduce` and `remapOutputTensor` are accepted
    and change nothing.
    """
    check_prog("poplin.matMul", prog)
    outputType, debugContext, options = _arranged(arguments, keywords)
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


@public
def createMatMulInputLHS(graph: Graph, inputType: ElementType, *arguments: Any, **keywords: Any) -> Tensor:
    """A new tensor that `matMul` takes as A with little exchange.

        createMatMulInputLHS(graph, inputType, [outputType,] aShape, bShape[, debugContext][, options])

    It is mapped as the blocks of the product of [m, k] and [k, n] are; a block that several tiles use lives on the first of them.
    """
    plan, debugContext = _planned(graph, "createMatMulInputLHS", inputType, arguments, keywords)
    left = graph.addVariable(inputType, [plan.rows, plan.depth], debugContext or "")
    tiles = graph.getTarget().getNumTiles()
    for i, (top, bottom) in enumerate(pairwise(plan.row_bounds())):
        for p, (begin, end) in enumerate(pairwise(plan.depth_bounds())):
            graph.setTileMapping(left.slice([top, begin], [bottom, end]), plan.tile(i, p, 0, tiles))
    return left


@public
def createMatMulInputRHS(graph: Graph, inputType: ElementType, *arguments: Any, **keywords: Any) -> Tensor:
    """A new tensor that `matMul` takes as B with little exchange; see `createMatMulInputLHS`."""
    plan, debugContext = _planned(graph, "createMatMulInputRHS", inputType, arguments, keywords)
    matrix = graph.addVariable(inputType, [plan.depth, plan.columns], debugContext or "")
    tiles = graph.getTarget().getNumTiles()
    for p, (begin, end) in enumerate(pairwise(plan.depth_bounds())):
        for j, (left, right) in enumerate(pairwise(plan.column_bounds())):
            graph.setTileMapping(matrix.slice([begin, left], [end, right]), plan.tile(j % plan.row_parts, p, j, tiles))
    return matrix


def _planned(
    graph: Graph, call: str, inputType: ElementType, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[BlockPlan, str | None]:
    """The plan of a product whose operands' types and shapes are given, and the debug name."""
    given = list(arguments)
    outputType = given.pop(0) if given and isinstance(given[0], ElementType) else None
    shapes = [_shape(call, given.pop(0) if given else keywords.pop(name, None)) for name in ("aShape", "bShape")]
    outputType, debugContext, options = _arranged(tuple(given), {"outputType": outputType} | keywords)
    if check_type(inputType) not in (FLOAT, HALF):
        raise PoplibsError(f"poplin.{call} makes FLOAT or HALF tensors, got {inputType!r}")
    (rows, depth), (inner, columns) = shapes
    if depth != inner or 0 in (rows, depth, columns):
        raise PoplibsError(f"poplin.{call}: matMul multiplies [m, k] by [k, n], got the shapes {shapes[0]} and {shapes[1]}")
    result = _result_type(outputType, inputType)
    plan = plan_blocks(graph.getTarget(), rows, depth, columns, inputType, result, _memory(f"poplin.{call}", options))
    return plan, debugContext


def _shape(call: str, given: Any) -> list[int]:
    shape = list(ordered(given, f"a shape of poplin.{call}")) if isinstance(given, Iterable) else []
    if len(shape) != 2:
        raise PoplibsError(f"poplin.{call} takes two shapes of two sizes each, got {given!r}")
    return shape


def _arranged(
    arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[ElementType | None, str | None, Mapping[str, object] | None]:
    """outputType, debugContext and options, given by place (each may be left out) or by name."""
    options: dict[str, Any] = {"outputType": None, "debugContext": None, "options": None} | dict(keywords)
    if len(options) > 3:
        unknown = sorted(options.keys() - {"outputType", "debugContext", "options"})
        raise TypeError(f"unexpected argument {unknown[0]!r}")
    for argument in arguments:
        ordered(argument, "the options of a product", NAMED_VALUES)
        if isinstance(argument, ElementType):
            options["outputType"] = argument
        elif isinstance(argument, str):
            options["debugContext"] = argument
        elif isinstance(argument, Mapping):
            options["options"] = argument
        elif argument is not None:
            raise TypeError(f"expected an output type, a debug name or options, got {argument!r}")
    return options["outputType"], options["debugContext"], options["options"]


def _memory(call: str, options: Mapping[str, object] | None) -> float:
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
