"""The types of the expressions of a tree, from those of the tensors that it is mapped over."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from attrs import define, field, frozen

from pypoplar.popops.elements.element_operations import ElementOperation
from pypoplar.popops.expr import Cast, Const, Expr, OperationOf, PlaceHolder, default_type, walk
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.types import BOOL, FLOAT, HALF, ElementType


@frozen
class TypedOperand:
    """An operand: the number of an earlier step, or a constant."""

    type: ElementType
    step: int = -1
    constant: int | float = 0


@frozen
class MapStep:
    """A step of a tree: an operation, a cast (without operation), or what a tensor holds (`placeholder`, counted from 1)."""

    type: ElementType
    placeholder: int = 0
    operation: ElementOperation | None = None
    operands: tuple[TypedOperand, ...] = ()

    @property
    def worked_type(self) -> ElementType:
        """The type of the operands: of a select what is selected from."""
        return self.operands[0].type


@define(eq=False)
class TypedTrees:
    """Trees as steps, equal ones once, operands before what works on them; and the steps that are the results."""

    call: str
    types: Sequence[ElementType]  # of the tensors
    steps: list[MapStep] = field(factory=list)
    results: list[TypedOperand] = field(factory=list)
    _places: dict[int, int] = field(factory=dict)  # by the id of the expression
    _equal: dict[Hashable, int] = field(factory=dict)  # by what the step is

    @staticmethod
    def of(call: str, trees: Sequence[Expr], types: Sequence[ElementType]) -> TypedTrees:
        """The types of all expressions; `PoplibsError` where operands do not go together."""
        typed = TypedTrees(call, types)
        for tree in trees:
            for node in walk(tree):
                if id(node) not in typed._places and not isinstance(node, Const):
                    typed._places[id(node)] = typed._place(typed._step(node))
            typed.results.append(typed._operand(tree, None))
        return typed

    @property
    def read(self) -> set[int]:
        """The placeholders of the tensors that are read."""
        return {step.placeholder for step in self.steps if step.placeholder}

    @property
    def operations(self) -> list[MapStep]:
        """The steps that compute something."""
        return [step for step in self.steps if not step.placeholder]

    def _place(self, step: MapStep) -> int:
        """The number of a step: an equal one is done once, so that trees of one text are one codelet."""
        name = step.operation.name if step.operation else ""
        operands = (*((operand.type, operand.step, repr(operand.constant)) for operand in step.operands),)  # 0.0 equals -0.0
        place = self._equal.setdefault((step.type, step.placeholder, name, operands), len(self.steps))
        if place == len(self.steps):
            self.steps.append(step)
        return place

    def _step(self, node: Expr) -> MapStep:
        match node:
            case PlaceHolder(number=number):
                if number > len(self.types):
                    raise PoplibsError(f"{self.call}: {node} is beyond the {len(self.types)} tensors that are mapped")
                return MapStep(self.types[number - 1], placeholder=number)
            case Cast(expression=inner, type=type):
                return MapStep(type, operands=(self._operand(inner, None),))
            case OperationOf(operation=row):
                operands = self._operands(node)
                return MapStep(row.result(operands[0].type), operation=row, operands=operands)
        raise PoplibsError(f"{self.call} takes trees of popops.expr, got {node!r}")

    def _operands(self, node: OperationOf) -> tuple[TypedOperand, ...]:
        """The operands of an operation, which have one type; a select's last is BOOL."""
        row, operands = node.operation, node.operands
        alike = operands[:2] if row.name == "SELECT" else operands
        known = [self._operand(operand, None).type for operand in alike if not _is_free(operand)]
        type = known[0] if known else self._operand(alike[0], None).type
        if any(other is not type for other in known):
            names = ", ".join(other.__name__ for other in known)
            raise PoplibsError(f"{self.call}: {node} takes operands of one type, got {names}; write Cast(...) around one")
        if type not in row.types:
            has = ", ".join(other.__name__ for other in row.types)
            raise PoplibsError(f"{self.call}: {row.function} has no {type.__name__}: its types are {has}")
        typed = [self._operand(operand, type) for operand in alike]
        if row.name == "SELECT":
            chooser = self._operand(operands[2], BOOL)
            if chooser.type is not BOOL:
                raise PoplibsError(f"{self.call}: {node} chooses by BOOL, got {chooser.type.__name__}")
            typed.append(chooser)
        return tuple(typed)

    def _operand(self, node: Expr, wanted: ElementType | None) -> TypedOperand:
        if not isinstance(node, Const):
            place = self._places[id(node)]
            return TypedOperand(self.steps[place].type, place)
        type = node.type or wanted or default_type(node)
        if not _fits(node.value, type):
            raise PoplibsError(f"{self.call}: the constant {node.value!r} is no {type.__name__}")
        return TypedOperand(type, constant=node.value)


def _is_free(node: Expr) -> bool:
    """Whether a node takes the type of what stands beside it."""
    return isinstance(node, Const) and node.type is None


def _fits(value: int | float, type: ElementType) -> bool:
    """Whether a type has the number: floats go into float types alone."""
    if isinstance(value, bool):
        return type is BOOL
    if type in (FLOAT, HALF):
        return True
    if type is BOOL or isinstance(value, float):
        return False
    limits = np.iinfo(type.dtype)
    return int(limits.min) <= value <= int(limits.max)
