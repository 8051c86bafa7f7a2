"""Operations on elements: each gives an expression, and neighbours whose results nothing else needs become one `popops.map`.

An entry is a function of expressions and numbers. Operands get the type that PyTorch computes in, the result that of the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from attrs import frozen

from pypoplar import poputil
from pypoplar.graph.tensor import Tensor
from pypoplar.popops import expr
from pypoplar.poptorch.lowering.entry_context import EntryContext, Operand
from pypoplar.poptorch.lowering.lowering_table import lowers
from pypoplar.poptorch.lowering.shared_expressions import FLOATS
from pypoplar.poptorch.lowering.torch_types import ELEMENT_TYPES
from pypoplar.poptorch.lowering.values import Constant, Pending
from pypoplar.types import BOOL, FLOAT, HALF, INT, SHORT, SIGNED_CHAR, UNSIGNED_CHAR, ElementType

MOST_OF_HALF = 65504.0
MOST_OPERANDS = 6  # of one expression: each is a pointer of the vertices
MOST_OPERATIONS = 40  # of one expression: its code lies on every tile
NARROW = (SHORT, SIGNED_CHAR, UNSIGNED_CHAR)  # integers that are computed in 32 bits, and cut

Tree = Callable[..., Any]
Joined = Callable[[EntryContext, tuple[Any, ...], dict[str, Any]], Tensor | None]
ELEMENTS: set[Any] = set()  # operations that give expressions


@frozen
class ElementEntry:
    """What an operation on elements is: its tree, and the types that it computes in."""

    tree: Tree
    own: tuple[int, ...] = ()  # operands that keep their own type
    conditions: tuple[int, ...] = ()  # operands that are BOOL
    relation: bool = False  # whether it compares: operands have the type that they have in common
    logical: bool = False  # whether it computes in BOOL
    wide: bool = False  # a formula: halves are computed in FLOAT and rounded once, as PyTorch does; numbers stay numbers
    cast: bool = False  # whether it computes in the type that its last tensor has
    typed: bool = False  # whether the tree is told the type that it computes in
    joined: Joined | None = None  # gives the result where its elements need no computing


def element(
    *operations: Any,
    own: int = 0,
    conditions: tuple[int, ...] = (),
    relation: bool = False,
    logical: bool = False,
    wide: bool = False,
    cast: bool = False,
    typed: bool = False,
    joined: Joined | None = None,
) -> Callable[[Tree], Tree]:
    """Enter operations on elements; the first `own` operands keep their own type. See `ElementEntry`."""

    def enter(tree: Tree) -> Tree:
        row = ElementEntry(tree, tuple(range(own)), conditions, relation, logical, wide, cast, typed, joined)

        def entry(ctx: EntryContext, *args: Any, **kwargs: Any) -> Any:
            return _expression(ctx, row, args, kwargs)

        entry.__doc__, entry.__module__ = tree.__doc__, tree.__module__
        ELEMENTS.update(operations)
        lowers(*operations)(entry)
        return tree

    return enter


def _expression(ctx: EntryContext, row: ElementEntry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operation gives: pending where its only user can take it in, else computed."""
    if row.joined is not None and (joined := row.joined(ctx, args, kwargs)) is not None:
        return joined
    brought = _brought_to(ctx, row, (*args, *kwargs.values()))
    type = _computed_in(ctx, row, brought, (*args, *kwargs.values()))
    leaves = _Leaves(ctx, type, brought)
    kinds = [BOOL if number in row.conditions else None if number in row.own else type for number in range(len(args))]
    given = [leaves.operand(one, None if row.wide and _is_number(one) else kind) for one, kind in zip(args, kinds, strict=True)]
    named = {name: leaves.operand(one, type if isinstance(one, Operand) else None) for name, one in kwargs.items()}
    if row.typed:
        named["type"] = type
    result = expr.expression(row.tree(*given, **named))
    if not row.relation and not row.logical:
        result = _as_type(result, type, ctx.type)
    elif ctx.type is not BOOL:
        result = expr.Cast(result, ctx.type)
    pending = Pending(result, leaves.of_shape(ctx.shape), ctx.type)
    return pending if _waits(ctx, pending) else ctx.compute(pending)


def _is_number(given: Any) -> bool:
    return isinstance(given, bool | int | float)


def _as_type(tree: expr.Expr, type: ElementType, wanted: ElementType) -> expr.Expr:
    """A tree of a type as another type."""
    if type is wanted:
        return tree
    if wanted is BOOL:
        return _as_type(tree, type, INT) != expr.Const(0, INT) if type in NARROW else tree != expr.Const(0, type)
    return expr.Cast(tree, wanted)


def _brought_to(ctx: EntryContext, row: ElementEntry, args: tuple[Any, ...]) -> ElementType:
    """The type that PyTorch brings operands to: the result's, or what a relation's operands have in common."""
    if row.logical:
        return BOOL
    if row.cast:
        return [one for one in args if isinstance(one, Operand)][-1].type
    if row.relation:
        return _common_type([one.like if isinstance(one, Operand) else one for one in args if one is not None])
    return ctx.type


def _computed_in(ctx: EntryContext, row: ElementEntry, brought: ElementType, args: tuple[Any, ...]) -> ElementType:
    """The type in which operands of a type are computed here."""
    if row.logical or row.cast or row.relation:
        return INT if brought in NARROW else brought
    numbers = [one for one in args if isinstance(one, int | float)]
    if ctx.type in NARROW or ctx.type is BOOL:
        return ctx.type if row.conditions and not row.own else INT
    exact = all(number != number or float(np.float16(number)) == number for number in numbers if abs(number) < MOST_OF_HALF)
    beyond = any(MOST_OF_HALF <= abs(number) < float("inf") for number in numbers)
    return FLOAT if ctx.type is HALF and (row.wide or beyond or not exact) else ctx.type


def _common_type(values: list[Any]) -> ElementType:
    """The type that tensors and numbers are brought to before they are compared."""
    common = values[0]
    dtype = common.dtype if isinstance(common, torch.Tensor) else torch.result_type(common, common)
    if len(values) > 1:
        dtype = torch.result_type(values[0], values[1])
    return ELEMENT_TYPES[dtype]


class _Leaves:
    """Operands of an expression that is being made: tensors, each once, and what was pending."""

    def __init__(self, ctx: EntryContext, type: ElementType, brought: ElementType) -> None:
        self.ctx, self.type = ctx, type
        self.narrow = brought if brought in NARROW else None  # the integers that operands are cut to
        self.tensors: list[Tensor] = []
        self.trees: dict[Operand, tuple[expr.Expr, ElementType]] = {}

    def operand(self, given: Any, type: ElementType | None) -> Any:
        """An operand or a number as a tree of a type, or of its own; what else there may be is left as it is."""
        if not isinstance(given, Operand):
            number = self._cut(given)
            return _constant(number, type) if type is not None and _is_number(given) else number
        tree, own = self._of_operand(given)
        if type is None:
            return tree
        if self.narrow is not None and own in (INT, *NARROW) and own is not self.narrow and type is not BOOL:
            tree, own = expr.Cast(tree, self.narrow), self.narrow
        return _as_type(tree, own, type)

    def _cut(self, given: Any) -> Any:
        """A whole number as the narrow integer that PyTorch makes of it."""
        if self.narrow is None or type(given) is not int:
            return given
        return int(np.array(given).astype(self.narrow.dtype))

    def of_shape(self, shape: list[int]) -> tuple[Tensor, ...]:
        """The tensors; one of them has the shape of the result, where constants alone had all its dimensions."""
        if not self.tensors:
            constant = self.ctx.graph.addConstant(self.type, [1], 0, self.ctx.name)
            self.ctx.graph.setTileMapping(constant, 0)
            self.tensors.append(constant)
        if list(np.broadcast_shapes(*(tensor.shape() for tensor in self.tensors))) != shape:
            self.tensors[0] = poputil.broadcastToMatch(self.tensors[0], shape)
        return tuple(self.tensors)

    def _of_operand(self, operand: Operand) -> tuple[expr.Expr, ElementType]:
        if operand in self.trees:
            return self.trees[operand]
        value, type = operand.value, operand.type
        if isinstance(value, Constant) and value.number is not None:
            tree: expr.Expr = _constant(value.number, type)
        elif isinstance(value, Pending):
            tree = _replaced(value.tree, [self._placeholder(tensor) for tensor in value.operands], {})
        else:
            tree = self._placeholder(operand.placed())
        self.trees[operand] = tree, type
        return tree, type

    def _placeholder(self, tensor: Tensor) -> expr.Expr:
        if tensor not in self.tensors:
            self.tensors.append(tensor)
        return expr.PlaceHolder(self.tensors.index(tensor) + 1)


def _constant(number: Any, type: ElementType) -> expr.Const:
    if type is BOOL:
        return expr.Const(bool(number), BOOL)
    return expr.Const(float(number) if type in FLOATS else int(number), type)


def _replaced(tree: expr.Expr, leaves: list[expr.Expr], known: dict[int, expr.Expr]) -> expr.Expr:
    """An expression with other placeholders; parts that are one part in several places stay one."""
    if id(tree) not in known:
        match tree:
            case expr.PlaceHolder():
                known[id(tree)] = leaves[tree.number - 1]
            case expr.Cast():
                known[id(tree)] = expr.Cast(_replaced(tree.parts[0], leaves, known), tree.type)
            case expr.OperationOf():
                parts = (_replaced(part, leaves, known) for part in tree.parts)
                known[id(tree)] = expr.operation(tree.operation.name, *parts)
            case _:
                known[id(tree)] = tree
    return known[id(tree)]


def _waits(ctx: EntryContext, pending: Pending) -> bool:
    """Whether an expression's only user computes elements of the same shape, on the same IPU, and has room for it."""
    uses = ctx.uses
    if len(uses) != 1 or uses[0].operation not in ELEMENTS or uses[0].shape != ctx.shape or uses[0].ipu != ctx.ipu:
        return False
    others = uses[0].operands - 1
    size = sum(1 for _ in expr.walk(pending.tree))
    return len(pending.operands) + others <= MOST_OPERANDS and size <= MOST_OPERATIONS
