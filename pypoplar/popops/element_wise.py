"""Operations on the elements of two tensors: add, sub, mul, div, max, min, each as a new tensor, in place, or into a given one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.element_output import createOutputForElementWiseOp
from pypoplar.popops.element_vertices import add_element_vertices
from pypoplar.popops.operations import BINARY_OPERATIONS, BinaryOperation
from pypoplar.poputil.arguments import check_call, check_tensor
from pypoplar.poputil.broadcast import broadcast_shape, broadcastToMatch
from pypoplar.poputil.call_options import Kind, read_options
from pypoplar.poputil.copies import apart
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.program import Execute, Sequence
from pypoplar.tracebacks import public
from pypoplar.types import ElementType

MAP_OPTIONS: dict[str, Kind] = {  # of PopLibs' map; there is one way to do it here, so they change nothing
    "enableGenerateCodelet": bool,
    "forceGenerateCodelet": bool,
    "enableVectorBroadcastOptimisations": bool,
    "enableExpressionOptimizations": bool,
}
Operand = Tensor | float  # a number stands for a constant of the other operand's type


class Plain(Protocol):
    """An operation with a new tensor as result."""

    def __call__(
        self,
        graph: Graph,
        a: Operand,
        b: Operand,
        prog: Sequence,
        debugContext: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> Tensor: ...


class InPlace(Protocol):
    """An operation whose result replaces the first operand."""

    def __call__(
        self,
        graph: Graph,
        a: Tensor,
        b: Operand,
        prog: Sequence,
        debugContext: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None: ...


class WithOutput(Protocol):
    """An operation whose result goes into a given tensor."""

    def __call__(
        self,
        graph: Graph,
        a: Operand,
        b: Operand,
        out: Tensor,
        prog: Sequence,
        debugContext: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None: ...


def family(name: str, operation: BinaryOperation) -> tuple[Plain, InPlace, WithOutput]:
    """The three functions of an operation: `name`, `nameInPlace` and `nameWithOutput`."""

    def plain(
        graph: Graph,
        a: Operand,
        b: Operand,
        prog: Sequence,
        debugContext: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> Tensor:
        check_call(f"popops.{name}", graph, prog, debugContext)
        read_options(f"popops.{name}", options, MAP_OPTIONS)
        left, right = _operands(graph, name, operation, a, b, debugContext)
        shape = _common_shape(name, left, right)
        wide = [broadcastToMatch(operand, shape) for operand in (left, right)]
        out = createOutputForElementWiseOp(graph, wide, left.elementType(), below(debugContext, name))
        _into(graph, operation, left, right, out, prog, below(debugContext, name))
        return out

    def in_place(
        graph: Graph,
        a: Tensor,
        b: Operand,
        prog: Sequence,
        debugContext: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        check_call(f"popops.{name}InPlace", graph, prog, debugContext)
        check_tensor(f"popops.{name}InPlace", a)
        read_options(f"popops.{name}InPlace", options, MAP_OPTIONS)
        left, right = _operands(graph, name, operation, a, b, debugContext)
        _check_result(f"{name}InPlace", _common_shape(name, left, right), left.elementType(), a)
        right = apart(graph, right, a, prog, below(debugContext, name, "copy"))
        if right.numElements() != 1:
            right = broadcastToMatch(right, a.shape())
        cs = graph.addComputeSet(below(debugContext, name))
        add_element_vertices(graph, cs, operation.vertex(a.elementType(), True), "in1Out", {"in1Out": a, "in2": right})
        prog.add(Execute(cs))

    def with_output(
        graph: Graph,
        a: Operand,
        b: Operand,
        out: Tensor,
        prog: Sequence,
        debugContext: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        check_call(f"popops.{name}WithOutput", graph, prog, debugContext)
        check_tensor(f"popops.{name}WithOutput", out)
        read_options(f"popops.{name}WithOutput", options, MAP_OPTIONS)
        left, right = _operands(graph, name, operation, a, b, debugContext)
        _check_result(f"{name}WithOutput", _common_shape(name, left, right), left.elementType(), out)
        _into(graph, operation, left, right, out, prog, below(debugContext, name))

    for function, suffix, where in (
        (plain, "", "as a new tensor, mapped like an operand"),
        (in_place, "InPlace", "in the place of a, whose shape b fits"),
        (with_output, "WithOutput", "in `out`, which has the operands' common shape and their type"),
    ):
        _describe(function, name + suffix, operation, where)
    return public(plain), public(in_place), public(with_output)


def _describe(function: Any, name: str, operation: BinaryOperation, where: str) -> None:
    """Give a function its name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{operation.meaning} for each element, {where}; `prog` is extended.\n\n"
        "Shapes are broadcast as NumPy does; an operand may be a number. Operands have one type, of "
        f"{', '.join(type.__name__ for type in operation.types)}."
    )


def _operands(
    graph: Graph, name: str, operation: BinaryOperation, a: Operand, b: Operand, debug: str | None
) -> tuple[Tensor, Tensor]:
    """Both operands as tensors of one type that the operation has."""
    _check_operands(name, (a, b))
    tensors = [operand for operand in (a, b) if isinstance(operand, Tensor)]
    if not tensors:
        raise PoplibsError(f"popops.{name} needs a tensor for at least one operand, got {a!r} and {b!r}")
    type = tensors[0].elementType()
    if any(tensor.elementType() is not type for tensor in tensors):
        raise PoplibsError(f"popops.{name} takes operands of one type, got {tensors[0]!r} and {tensors[1]!r}")
    if type not in operation.types:
        known = ", ".join(known.__name__ for known in operation.types)
        raise PoplibsError(f"popops.{name} has no {type!r}: its types are {known}")
    left, right = (
        operand if isinstance(operand, Tensor) else constant_beside(graph, type, operand, tensors[0], below(debug, name))
        for operand in (a, b)
    )
    return left, right


def _check_operands(name: str, operands: tuple[object, ...]) -> None:
    for operand in operands:
        if not isinstance(operand, Tensor | float | int | np.generic):
            check_tensor(f"popops.{name}", operand)


def constant_beside(graph: Graph, type: ElementType, value: float, beside: Tensor, debug: str) -> Tensor:
    """A constant on the first tile of another tensor."""
    constant = graph.addConstant(type, [], value, below(debug, "constant"))
    tiles = [tile for tile, regions in enumerate(graph.getTileMapping(beside, False)) if regions]
    graph.setTileMapping(constant, tiles[0] if tiles else 0)
    return constant


def _common_shape(name: str, a: Tensor, b: Tensor) -> list[int]:
    shape = broadcast_shape(a.shape(), b.shape())
    if shape is None:
        raise PoplibsError(f"popops.{name} cannot broadcast {a!r} and {b!r} to a common shape")
    return shape


def _check_result(name: str, shape: list[int], type: ElementType, out: Tensor) -> None:
    if out.shape() != shape or out.elementType() is not type:
        raise PoplibsError(f"popops.{name} gives {type!r} {shape}, which does not fit into {out!r}")


def _into(graph: Graph, operation: BinaryOperation, a: Tensor, b: Tensor, out: Tensor, prog: Sequence, debug: str) -> None:
    """Add out = a op b to the program. A second operand of one element is read as such, every other one is broadcast."""
    if a.numElements() == 1 != b.numElements() and operation.name not in ("SUBTRACT", "DIVIDE"):
        a, b = b, a
    a, b = (apart(graph, operand, out, prog, f"{debug}/copy") for operand in (a, b))
    left = broadcastToMatch(a, out.shape())
    right = b if b.numElements() == 1 else broadcastToMatch(b, out.shape())
    cs = graph.addComputeSet(debug)
    add_element_vertices(graph, cs, operation.vertex(out.elementType(), False), "out", {"in1": left, "in2": right, "out": out})
    prog.add(Execute(cs))


add, addInPlace, addWithOutput = family("add", BINARY_OPERATIONS["ADD"])
sub, subInPlace, subWithOutput = family("sub", BINARY_OPERATIONS["SUBTRACT"])
mul, mulInPlace, mulWithOutput = family("mul", BINARY_OPERATIONS["MULTIPLY"])
div, divInPlace, divWithOutput = family("div", BINARY_OPERATIONS["DIVIDE"])
max, maxInPlace, maxWithOutput = family("max", BINARY_OPERATIONS["MAXIMUM"])
min, minInPlace, minWithOutput = family("min", BINARY_OPERATIONS["MINIMUM"])
