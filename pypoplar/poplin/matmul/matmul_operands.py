"""Tensors that lie where a product needs them, and operands put into such."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import overload

import numpy as np

from pypoplar.braces import ordered
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.variables import check_shape
from pypoplar.poplin.matmul.block_plan import BlockPlan
from pypoplar.poplin.matmul.block_product import blocks_of
from pypoplar.poplin.matmul.matmul_options import Options
from pypoplar.poplin.matmul.product_call import map_result, params_of, planned
from pypoplar.poplin.planning_cache import PlanningCache, check_cache
from pypoplar.poplin.splitting import bounds, equal_parts
from pypoplar.poputil.arguments import check_call, check_debug, check_graph, check_own
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.overloads import overloaded
from pypoplar.poputil.tile_mapping import mapTensorLinearly
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, ElementType, check_type


@overload
def createMatMulInputLHS(
    graph: Graph, dataType: ElementType, aShape: Iterable[int], bShape: Iterable[int], debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def createMatMulInputLHS(
    graph: Graph, inputType: ElementType, outputType: ElementType | None, aShape: Iterable[int], bShape: Iterable[int],
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.createMatMulInputLHS")
def createMatMulInputLHS(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    aShape: Iterable[int],
    bShape: Iterable[int],
    dataType: ElementType = FLOAT,
    inputType: ElementType | None = None,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor of shape `aShape` [m, k] that `matMul` takes as A with little exchange; `bShape` is [k, n].

    It is mapped as the plan of the product with the same types and options cuts it: the rows of a block that several tiles use
    are spread over these tiles.
    """
    type = inputType or dataType
    name = "poplin.createMatMulInputLHS"
    return _created(name, "left", graph, type, outputType, aShape, bShape, debugContext, options, cache)[0]


@public
def createMatMulGroupedInputLHS(
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor of shape `aShape` [g, m, k] that `matMulGrouped` takes as A with little exchange; see `createMatMulInputLHS`."""
    name = "poplin.createMatMulGroupedInputLHS"
    return _created(name, "left", graph, inputType, outputType, aShape, bShape, debugContext, options, cache, grouped=True)


@overload
def createMatMulInputRHS(
    graph: Graph, dataType: ElementType, aShape: Iterable[int], bShape: Iterable[int], debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def createMatMulInputRHS(
    graph: Graph, inputType: ElementType, outputType: ElementType | None, aShape: Iterable[int], bShape: Iterable[int],
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.createMatMulInputRHS")
def createMatMulInputRHS(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    aShape: Iterable[int],
    bShape: Iterable[int],
    dataType: ElementType = FLOAT,
    inputType: ElementType | None = None,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor of shape `bShape` [k, n] that `matMul` takes as B with little exchange; see `createMatMulInputLHS`."""
    type = inputType or dataType
    name = "poplin.createMatMulInputRHS"
    return _created(name, "right", graph, type, outputType, aShape, bShape, debugContext, options, cache)[0]


@public
def createMatMulGroupedInputRHS(
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor of shape `bShape` [g, k, n] that `matMulGrouped` takes as B with little exchange; see `createMatMulInputLHS`."""
    name = "poplin.createMatMulGroupedInputRHS"
    return _created(name, "right", graph, inputType, outputType, aShape, bShape, debugContext, options, cache, grouped=True)


@overload
def createMatMulOutput(
    graph: Graph, dataType: ElementType, aShape: Iterable[int], bShape: Iterable[int], debugContext: str | None = None,
    options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def createMatMulOutput(
    graph: Graph, inputType: ElementType, outputType: ElementType | None, aShape: Iterable[int], bShape: Iterable[int],
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.createMatMulOutput")
def createMatMulOutput(  # noqa: PLR0913 (PopLibs' arguments)
    graph: Graph,
    aShape: Iterable[int],
    bShape: Iterable[int],
    dataType: ElementType = FLOAT,
    inputType: ElementType | None = None,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor [m, n] of type `outputType` that `matMulWithOutput` writes where it computes.

    `aShape` is [m, k], `bShape` [k, n].
    """
    type = inputType or dataType
    name = "poplin.createMatMulOutput"
    return _created(name, "out", graph, type, outputType, aShape, bShape, debugContext, options, cache)[0]


@public
def createMatMulGroupedOutput(
    graph: Graph,
    inputType: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A new tensor [g, m, n] of type `outputType` that `matMulGroupedWithOutput` writes where it computes."""
    name = "poplin.createMatMulGroupedOutput"
    return _created(name, "out", graph, inputType, outputType, aShape, bShape, debugContext, options, cache, grouped=True)


@overload
def preArrangeMatMulInputRHS(
    graph: Graph, aShape: Iterable[int], B: Tensor, prog: Sequence, debugContext: str | None = None, options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overload
def preArrangeMatMulInputRHS(
    graph: Graph, aShape: Iterable[int], B: Tensor, prog: Sequence, outputType: ElementType | None,
    debugContext: str | None = None, options: Options = None, cache: PlanningCache | None = None,
) -> Tensor: ...  # fmt: skip
@overloaded("poplin.preArrangeMatMulInputRHS")
def preArrangeMatMulInputRHS(
    graph: Graph,
    aShape: Iterable[int],
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None = None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """A copy of B [k, n] that lies where products with matrices of shape `aShape` [m, k] need it; `prog` is extended by the copy.

    The option ``inputRHSIsPreArranged`` of `matMul` says that B is such a copy.
    """
    return _arranged("poplin.preArrangeMatMulInputRHS", graph, aShape, B, prog, outputType, debugContext, options, cache)


@public
def preArrangeMatMulGroupedInputRHS(
    graph: Graph,
    aShape: Iterable[int],
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None,
    debugContext: str | None = None,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """As `preArrangeMatMulInputRHS`, for B [g, k, n] and `aShape` [g, m, k]."""
    name = "poplin.preArrangeMatMulGroupedInputRHS"
    check_call(name, graph, prog, debugContext)
    return _arranged(name, graph, aShape, B, prog, outputType, debugContext, options, cache, grouped=True)


@public
def transposeGroupedMatrix(A: Tensor) -> Tensor:
    """A view of A [g, m, k] as [g, k, m]."""
    name = "poplin.transposeGroupedMatrix"
    check_own(name, getattr(A, "graph", None), A)
    if A.rank() != 3:
        raise PoplibsError(f"{name} takes [g, m, k], got {A!r}")
    return A.dimShuffle([0, 2, 1])


def _arranged(  # noqa: PLR0913 (PopLibs' arguments)
    name: str,
    graph: Graph,
    aShape: Iterable[int],
    B: Tensor,
    prog: Sequence,
    outputType: ElementType | None,
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
    grouped: bool = False,
) -> Tensor:
    check_own(name, graph, B)
    graph.getTileMapping(B)
    type = B.elementType()
    copy = _created(name, "right", graph, type, outputType, aShape, B.shape(), debugContext, options, cache, grouped)
    copy = copy.reshape(B.shape())
    if B.numElements():
        prog.add(Copy(B, copy))
    return copy


def _created(  # noqa: PLR0913 (PopLibs' arguments)
    name: str,
    which: str,
    graph: Graph,
    type: ElementType,
    outputType: ElementType | None,
    aShape: Iterable[int],
    bShape: Iterable[int],
    debugContext: str | None,
    options: Options,
    cache: PlanningCache | None,
    grouped: bool = False,
) -> Tensor:
    """A new grouped matrix: the left or right operand of a product, or its result."""
    check_graph(name, graph)
    check_cache(name, cache)
    check_debug(name, debugContext)
    a, b = (list(check_shape(ordered(shape, f"{what} of {name}"))) for what, shape in (("aShape", aShape), ("bShape", bShape)))
    params = params_of(name, a, b, check_type(type), outputType, options, grouped)
    shape = {"left": params.a_shape, "right": params.b_shape, "out": params.out_shape}[which]
    tensor = graph.addVariable(params.result if which == "out" else params.type, shape, debugContext or "")
    if params.empty:
        mapTensorLinearly(graph, tensor)
        return tensor
    plan = planned(graph.getTarget(), params, cache)
    if which == "out":
        map_result(graph, tensor, plan)
    else:
        _map_operand(graph, tensor, plan, which == "right")
    return tensor


def _map_operand(graph: Graph, matrix: Tensor, plan: BlockPlan, right: bool) -> None:
    """Spread each block over the tiles that use it, in whole rows."""
    tiles = graph.getTarget().getNumTiles()
    row_cuts, column_cuts = (plan.depth_bounds(), plan.column_bounds()) if right else (plan.row_bounds(), plan.depth_bounds())
    cuts = (plan.group_bounds(), row_cuts, column_cuts)
    for groups, rows, columns in product(*map(equal_parts, cuts)):
        blocks = blocks_of(matrix, groups, rows, columns)
        for number in np.ndindex(groups.count, rows.count, columns.count):
            firsts = (part.first + place for part, place in zip((groups, rows, columns), number, strict=True))
            group, row, column = (range(first, first + 1) for first in firsts)
            others = range(plan.row_parts if right else plan.column_parts)
            users = plan.tiles_of(tiles, group, *((others, row, column) if right else (row, column, others))).flatten()
            block = blocks[number].reshape([groups.size * rows.size, columns.size])
            parts = min(len(users), block.dim(0))
            cut = bounds(block.dim(0), parts)
            for part in range(parts):
                graph.setTileMapping(block.slice(cut[part], cut[part + 1]), int(users[part * len(users) // parts]))
