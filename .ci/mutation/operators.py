"""What is changed in the code: Cosmic Ray's operators that seldom make the same program, and some of bugs that people write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import Keyword

# Of the hundreds that replace one operator by another, those that are near to each other: a sum by a power is found by any test.
BINARY = (
    *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "Mul_Add", "Div_Mul", "FloorDiv_Mul", "FloorDiv_Div", "Mod_FloorDiv", "Pow_Mul"),
    *("RShift_LShift", "LShift_RShift", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitOr"),
)
COMPARISONS = (
    *("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
    *("Is_IsNot", "IsNot_Is"),
)
UNARY = ("Delete_USub", "Delete_Invert", "Delete_Not")
OTHERS = (
    *("AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue"),
    *("ReplaceContinueWithBreak", "NumberReplacer", "RemoveDecorator", "ZeroIterationForLoop"),
)
CHAINS = ("arith_expr", "term", "expr", "and_expr", "and_test", "or_test")
BOUNDS = ("max", "min", "Max", "Min", "maximum", "minimum", "abs", "clip")


class RemoveOperand(Operator):  # type: ignore[misc]
    """One of the operands of a sum, a product or a condition is left out."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """The operands; the first only where what is left is no other operation."""
        if getattr(node, "type", "") in CHAINS:
            for operand in node.children[_first(node) :: 2]:
                yield operand.start_pos, operand.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Take out the operand and its operator."""
        place = _first(node) + 2 * index
        prefix = node.get_first_leaf().prefix
        del node.children[max(place - 1, 0) : max(place + 1, 2)]
        node.get_first_leaf().prefix = prefix
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """What it does."""
        return (Example("x = a + b", "x = b"), Example("x = a + b", "x = a", 1), Example("x = a - b", "x = a"))


def _first(node: Any) -> int:
    """The first child that may be left out: not the one from which something is taken, or which is divided."""
    return 0 if node.children[1].get_code().strip() in ("+", "*", "|", "&", "^", "and", "or") else 2


class RemoveBound(Operator):  # type: ignore[misc]
    """The largest, smallest or absolute of something is that itself."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """Calls with positional arguments."""
        if getattr(node, "type", "") in ("power", "atom_expr") and _bound(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Replace the call by its first argument."""
        kept = parso.parse(f"({_bound(node)})").children[0]
        kept.get_first_leaf().prefix = node.get_first_leaf().prefix
        return kept

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """What it does."""
        return (Example("x = max(a - b, 0)", "x = (a - b)"),)


def _bound(node: Any) -> str:
    """The first argument of a call of a bound; nothing of other nodes."""
    *named, call = node.children
    name = named[-1].get_last_leaf().value if named else ""
    if name not in BOUNDS or call.type != "trailer" or call.children[0].value != "(" or len(call.children) < 3:
        return ""
    arguments = call.children[1]
    first = arguments.children[0] if arguments.type == "arglist" else arguments
    return "" if first.type == "argument" else str(first.get_code()).strip()


class RemoveStatement(Operator):  # type: ignore[misc]
    """A call whose result nobody takes, or a change of a variable, is not made."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """Statements of their own."""
        if getattr(node, "type", "") == "simple_stmt" and _does_something(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Put `pass` in its place."""
        node.children[0] = Keyword("pass", node.start_pos, node.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """What it does."""
        return (Example("f(x)\n", "pass\n"), Example("x += 1\n", "pass\n"))


def _does_something(statement: Any) -> bool:
    changes = statement.type == "expr_stmt" and statement.children[1].type == "operator" and statement.children[1].value != "="
    changes = changes or (statement.type == "expr_stmt" and statement.children[0].type in ("power", "atom_expr"))
    return changes or statement.type in ("power", "atom_expr", "await", "yield_expr")


def operators() -> dict[str, Operator]:
    """All, by name."""
    names = [f"ReplaceBinaryOperator_{each}" for each in BINARY] + [f"ReplaceComparisonOperator_{each}" for each in COMPARISONS]
    names += [f"ReplaceUnaryOperator_{each}" for each in UNARY] + list(OTHERS)
    provider = OperatorProvider()
    own = {operator.__name__: operator() for operator in (RemoveOperand, RemoveBound, RemoveStatement)}
    return {name: provider[name]() for name in names} | own
