"""Operations on elements: each gives an expression, and neighbours whose results nothing else needs become one `popops.map`.

An entry is a function of expressions and numbers. Operands get the type that PyTorch computes in, the result that of the node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from pypoplar.graph.tensor import Tensor
from pypoplar.popops import expr
from pypoplar.poptorch.lowering.lowering import GraphLowering
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.poptorch.lowering.values import Constant, Pending
from pypoplar.types import BOOL, FLOAT, HALF, ElementType

aten = torch.ops.aten
MOST_OPERANDS = 6  # of one expression: each is a pointer of the vertices

Tree = Callable[..., Any]
ELEMENTS: set[Any] = set()  # operations that give expressions


def element(*operations: Any, own: int = 0, wide: bool = False) -> Callable[[Tree], Tree]:
    """Enter operations on elements; the first `own` operands keep their own type (such as the condition of a choice).

    Where `wide`, as of a formula of several steps, halves are computed in float and rounded once, and numbers stay as they are.
    """

    def enter(tree: Tree) -> Tree:
        def entry(at: GraphLowering, *args: Any, **kwargs: Any) -> Any:
            return _expression(at, tree, own, args, kwargs, wide)

        ELEMENTS.update(operations)
        lowers(*operations)(entry)
        return tree

    return enter


def _expression(at: GraphLowering, tree: Tree, own: int, args: tuple[Any, ...], kwargs: dict[str, Any], wide: bool = False) -> Any:
    """What an operation gives: pending where its only user can take it in, else computed."""
    type = _computed_in(at, args)
    if wide and type is HALF:
        type = FLOAT
    leaves = _Leaves(at, type)
    given = [
        one if wide and not isinstance(one, fx.Node) else leaves.operand(one, keep=number < own) for number, one in enumerate(args)
    ]
    result = expr.expression(tree(*given, **kwargs))
    relation = at.type is BOOL
    if not relation and at.type is not type:
        result = expr.Cast(result, at.type)
    pending = Pending(result, tuple(leaves.tensors), at.type)
    return pending if _waits(at, at.node, len(leaves.tensors)) else at.compute(pending)


def _computed_in(at: GraphLowering, args: tuple[Any, ...]) -> ElementType:
    """The type in which PyTorch computes: the result's, or what a relation's operands have in common."""
    if at.type is not BOOL:
        return at.type
    values = [one.meta["val"] if isinstance(one, fx.Node) else one for one in args if isinstance(one, fx.Node | bool | int | float)]
    if not any(isinstance(value, torch.Tensor) for value in values):
        return FLOAT
    common = values[0] if isinstance(values[0], torch.Tensor) else torch.tensor(values[0])
    for value in values[1:]:
        common = (
            torch.empty((), dtype=torch.result_type(common, value))
            if isinstance(value, torch.Tensor)
            else torch.empty_like(common, dtype=torch.result_type(common, value), device="meta")
        )
    return ELEMENT_TYPES[common.dtype]


class _Leaves:
    """Operands of an expression that is being made: tensors, each once, and what was pending."""

    def __init__(self, at: GraphLowering, type: ElementType) -> None:
        self.at, self.type = at, type
        self.tensors: list[Tensor] = []

    def operand(self, given: Any, keep: bool) -> Any:
        if not isinstance(given, fx.Node):
            return self._number(given, keep)
        value = self.at.values[given]
        if isinstance(value, Constant) and value.number is not None:
            number = value.number
            return expr.Const(number, self.at.type_of(given) if keep else self.type)
        if isinstance(value, Pending):
            tree, type = self._renumbered(value), value.type
        else:
            tensor = self.at.tensor(given)
            tree, type = self._placeholder(tensor), tensor.elementType()
        return tree if keep or type is self.type else expr.Cast(tree, self.type)

    def _number(self, given: Any, keep: bool) -> Any:
        number = isinstance(given, bool | int | float) and not keep
        return expr.Const(given, self.type) if number else given

    def _placeholder(self, tensor: Tensor) -> expr.Expr:
        if tensor not in self.tensors:
            self.tensors.append(tensor)
        return expr.PlaceHolder(self.tensors.index(tensor) + 1)

    def _renumbered(self, pending: Pending) -> expr.Expr:
        return _replaced(pending.tree, [self._placeholder(tensor) for tensor in pending.operands])


def _replaced(tree: expr.Expr, leaves: list[expr.Expr]) -> expr.Expr:
    """An expression with other placeholders."""
    match tree:
        case expr.PlaceHolder():
            return leaves[tree.number - 1]
        case expr.Cast():
            return expr.Cast(_replaced(tree.parts[0], leaves), tree.type)
        case expr.OperationOf():
            return expr.operation(tree.operation.name, *(_replaced(part, leaves) for part in tree.parts))
    return tree


def _waits(at: GraphLowering, node: fx.Node, tensors: int) -> bool:
    """Whether an expression's only user computes elements of the same shape, and has room for its operands."""
    users = list(node.users)
    if len(users) != 1 or users[0].target not in ELEMENTS or at.shape_of(users[0]) != at.shape_of(node):
        return False
    others = [before for before in users[0].all_input_nodes if before is not node]
    return tensors + len(others) <= MOST_OPERANDS and list(users[0].all_input_nodes).count(node) == 1


@element(aten.add.Tensor, aten.add.Scalar)
def add(a: Any, b: Any, alpha: float = 1) -> Any:
    return a + (b if alpha == 1 else b * alpha)


@element(aten.sub.Tensor, aten.sub.Scalar)
def subtract(a: Any, b: Any, alpha: float = 1) -> Any:
    return a - (b if alpha == 1 else b * alpha)


@element(aten.mul.Tensor, aten.mul.Scalar)
def multiply(a: Any, b: Any) -> Any:
    return a * b


@element(aten.div.Tensor, aten.div.Scalar)
def divide(a: Any, b: Any) -> Any:
    return a / b


@element(aten._to_copy.default)
def cast(a: Any, **_: Any) -> Any:
    return a


@element(aten.neg.default)
def negate(a: Any) -> Any:
    return -a
