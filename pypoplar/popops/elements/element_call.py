"""A call of a named function on elements: its operands, of which some may be numbers, and the call of map that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.host_values import values_of
from pypoplar.popops.elements.element_operations import ElementOperation
from pypoplar.popops.elements.element_output import first_tile
from pypoplar.popops.elements.map_call import MapCall, check_result, common_shape, read_fusing
from pypoplar.popops.expr import PlaceHolder, operation
from pypoplar.poputil.arguments import check_call, check_codelet, check_operands, check_tensor
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.vertex_templates import templateVertex
from pypoplar.program import Sequence
from pypoplar.types import BOOL, ElementType

Operand = Tensor | float
Options = Mapping[str, object] | None


def plain_result(
    name: str, row: ElementOperation, graph: Graph, operands: list[Any], prog: Sequence, debug: str | None, options: Options
) -> Tensor:
    """The result as a new tensor."""
    (result,) = element_call(name, row, graph, operands, prog, debug, options).plain()
    return result


def replace_first(
    name: str, row: ElementOperation, graph: Graph, operands: list[Any], prog: Sequence, debug: str | None, options: Options
) -> None:
    """The result in the place of the first operand."""
    check_tensor(f"popops.{name}", operands[0])
    element_call(name, row, graph, operands, prog, debug, options, operands[0]).in_place()


def write_result(
    name: str,
    row: ElementOperation,
    graph: Graph,
    operands: list[Any],
    out: Tensor,
    prog: Sequence,
    debug: str | None,
    options: Options,
) -> None:
    """The result in a given tensor."""
    check_tensor(f"popops.{name}", out)
    element_call(name, row, graph, operands, prog, debug, options, out).into(out)


def element_call(
    name: str,
    row: ElementOperation,
    graph: Graph,
    operands: list[Any],
    prog: Sequence,
    debug: str | None,
    options: Options,
    written: Tensor | None = None,
) -> MapCall:
    """The call as one of map, once all is checked; numbers become constants of the type of the tensors beside them."""
    call = f"popops.{name}"
    check_call(call, graph, prog, debug)
    fuses = read_fusing(call, options)
    tensors, types = _operands(call, row, operands)
    shape = common_shape(call, tensors)
    for operand, type in zip(operands, types, strict=True):
        if not isinstance(operand, Tensor):
            values_of(type, operand, 1, f"an operand of {call}")
    if written is not None:
        check_result(call, written, shape, row.result(types[0]))
    check_operands(call, graph, *tensors, *([] if written is None else [written]))
    if types[0] in row.in_file:
        check_codelet(call, graph, templateVertex("popops::BinaryOp1D", row.name, types[0]))
    debug = below(debug, row.function)
    filled = [
        operand if isinstance(operand, Tensor) else _constant(graph, type, operand, tensors[0], debug)
        for operand, type in zip(operands, types, strict=True)
    ]
    if row.commutes and written is not operands[0] and filled[0].numElements() == 1 != filled[1].numElements():
        filled.reverse()  # codelets take a single element as the second operand
    tree = operation(row.name, *(PlaceHolder(number + 1) for number in range(row.operands)))
    return MapCall.of(call, graph, [tree], filled, prog, debug, fuses)


def _operands(call: str, row: ElementOperation, operands: list[Any]) -> tuple[list[Tensor], list[ElementType]]:
    """The tensors among the operands, and the type that each operand has; a select's last is BOOL."""
    for operand in operands:
        if not isinstance(operand, Tensor | bool | float | int | np.generic):
            check_tensor(call, operand)
    function = f"popops.{row.function}"
    alike = [operand for operand in (operands[:2] if row.name == "SELECT" else operands) if isinstance(operand, Tensor)]
    if not alike:
        raise PoplibsError(f"{function} needs a tensor for at least one operand, got {' and '.join(map(repr, operands))}")
    type = alike[0].elementType()
    if any(tensor.elementType() is not type for tensor in alike):
        raise PoplibsError(f"{function} takes operands of one type, got {' and '.join(map(repr, alike))}")
    if type not in row.types:
        raise PoplibsError(f"{function} has no {type!r}: its types are {', '.join(known.__name__ for known in row.types)}")
    types = [BOOL if row.name == "SELECT" and place == 2 else type for place in range(len(operands))]
    return [operand for operand in operands if isinstance(operand, Tensor)], types


def _constant(graph: Graph, type: ElementType, value: float, beside: Tensor, debug: str) -> Tensor:
    """A constant on the first tile of another tensor."""
    tile = first_tile(graph, beside)
    constant = graph.addConstant(type, [], value, below(debug, "constant"))
    graph.setTileMapping(constant, tile)
    return constant
