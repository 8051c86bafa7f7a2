"""Expressions of device code: operators, comparisons, conditions. Vectors are in `spans`, calls in `calls`."""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from pypoplar.codelet.frontend.inference import (
    NAMES,
    Mixed,
    Number,
    RecordView,
    SpanView,
    Text,
    TupleValue,
    Value,
    VertexValue,
    Weak,
    common_type,
    conversion,
    literal,
)
from pypoplar.codelet.frontend.translator_state import Translation
from pypoplar.codelet.ir.typed import Apply, IfElse, Literal, Load, Local, Operand, Span
from pypoplar.codelet.language.diagnostics import unsupported
from pypoplar.codelet.language.environment import dotted_name
from pypoplar.codelet.language.source import Meaning
from pypoplar.codelet.operations.device_operation import TypedOperation
from pypoplar.codelet.operations.table import called, refused

_SYMBOLS: dict[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = {  # and what it does with literals
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul), ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod), ast.Pow: ("**", operator.pow),
    ast.BitAnd: ("&", operator.and_), ast.BitOr: ("|", operator.or_), ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift), ast.RShift: (">>", operator.rshift),
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
}  # fmt: skip
_SWAPPED = {">": "<", ">=": "<="}  # comparisons that are done with their operands exchanged
_LONGEST = 4096  # bits of a folded integer; nothing longer can be meant

TRUE, FALSE = Literal(True, "bool"), Literal(False, "bool")


def operation_on(call: str, type: str) -> TypedOperation:
    """The operation that users write as `call`, on operands of one type; `Mixed` if there is none."""
    by_type = called(call)
    if type not in by_type:
        words = refused(call, type) or f"{call} is not for {{type}}"
        raise Mixed(words.format(type=NAMES[type]))
    return by_type[type]


class Expressions(Translation, ABC):
    """Values of expressions. Typed operands are simple: what takes an operation has been emitted into a temporary."""

    @abstractmethod
    def call(self, node: ast.Call) -> Value:
        """What a call gives."""

    @abstractmethod
    def subscript(self, node: ast.Subscript) -> Value:
        """What an index or a slice gives."""

    @abstractmethod
    def field_value(self, node: ast.Attribute) -> Value:
        """What an attribute is: a field of the vertex or of a record."""

    @abstractmethod
    def table(self, number: int, shown: str) -> Value:
        """A constant table."""

    @abstractmethod
    def local_value(self, node: ast.Name, unique: str) -> Value:
        """What a local holds."""

    # kinds of value

    def value(self, node: ast.expr) -> Value:
        """The value of any expression."""
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name() | ast.Attribute():
                return self._named(node)
            case ast.BinOp():
                if isinstance(node.op, ast.MatMult):
                    self.refuse(node, "device code has no @: write the loops out")
                return self.binary(node, node.op, self.number(node.left), lambda: self.number(node.right))
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare():
                return self._comparison(node)
            case ast.BoolOp():
                return self._boolean(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.Call():
                return self.call(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Tuple():
                return TupleValue(tuple(self.kept(element) for element in node.elts))
        self.refuse(node, unsupported(node))

    def kept(self, node: ast.expr) -> Value:
        """The value of an expression, safe from later assignments to locals."""
        value = self.value(node)
        if isinstance(value, Local) and value.name in self.taken:
            return self.apply("copy_" + value.type, (value,), value.type, node)
        return value

    def number(self, node: ast.expr) -> Number:
        """The value of an expression that must be a number."""
        return self.as_number(self.value(node), node)

    def as_number(self, value: Value, node: ast.AST) -> Number:
        if isinstance(value, Weak | Local | Literal):
            return value
        self.refuse(node, f"expected a number, got {self.described(value)}")

    def described(self, value: Value) -> str:
        match value:
            case VertexValue():
                return "the vertex itself"
            case Text():
                return "a string"
            case TupleValue():
                return "several values" if value.values else "nothing, for it returns no value"
            case Weak() | Local() | Literal():
                return "a number"
            case RecordView():
                return f"a record, {value.origin.rstrip(',')}; name a field of it"
            case _:
                hint = "a row list" if hasattr(value, "rows") else "a vector"
                hint += " of records" if isinstance(value, SpanView) and value.layout is not None else ""
                return f"{hint}, {value.origin.rstrip(',')}; index it"

    def operand(self, number: Number, node: ast.AST) -> Operand:
        """A typed operand; a literal alone counts as FLOAT or INT."""
        return self.converted(number, number.alone, node) if isinstance(number, Weak) else number

    def converted(self, number: Number, type: str, node: ast.AST) -> Operand:
        """`number` in the register type `type`."""
        if isinstance(number, Weak):
            with self.at(node):
                return literal(number.value, type)
        operation = conversion(number.type, type)
        return number if operation is None else self.apply(operation, (number,), type, node)

    def apply(self, operation: str, arguments: tuple[Operand, ...], type: str, node: ast.AST) -> Local:
        result = self.temporary(type)
        self.emit(Apply(result, operation, arguments, self.where(node)))
        return result

    def operate(self, call: str, arguments: tuple[Operand, ...], node: ast.AST) -> Local:
        """The operation that users write as `call`, on operands of one type."""
        with self.at(node):
            operation = operation_on(call, arguments[0].type)
        return self.apply(operation.name, arguments, operation.result, node)

    def copy(self, operand: Operand, target: Local, node: ast.AST) -> None:
        """``target = operand``; what has just made the operand makes the target instead."""
        if operand != target and not (isinstance(operand, Local) and self.retarget(operand, target)):
            self.emit(Apply(target, f"copy_{target.type}", (operand,), self.where(node)))

    def together(self, numbers: list[Number], nodes: list[ast.expr], node: ast.AST, about: str) -> list[Operand]:
        """All in their common type."""
        with self.at(node, about):
            type = common_type(numbers)
        return [self.converted(number, type, where) for number, where in zip(numbers, nodes, strict=True)]

    # names and constants

    def _constant(self, node: ast.Constant) -> Value:
        match node.value:
            case bool():
                return Literal(node.value, "bool")
            case int() | float():
                return Weak(node.value)
            case str():
                return Text(node.value)
            case None:
                self.refuse(node, "device code has no None; use a number or a bool that says so")
        self.refuse(node, f"device code has no {type(node.value).__name__}; its numbers are FLOAT, HALF, INT and the other types")

    def _named(self, node: ast.Name | ast.Attribute) -> Value:
        dotted = dotted_name(node)
        root = dotted.partition(".")[0] if dotted is not None else None
        if root is not None and root not in self.frame.names:
            return self.meant(node, self.frame.source.names.get(dotted or "", Meaning("missing", f"name '{root}' is not defined")))
        if isinstance(node, ast.Attribute):
            of_class = self._class_attribute(dotted)
            return self.field_value(node) if of_class is None else self.meant(node, of_class)
        if node.id in self.frame.bound:
            return self.frame.bound[node.id]
        return self.local_value(node, self.frame.names[node.id])

    def _class_attribute(self, dotted: str | None) -> Meaning | None:
        """What ``self.Kind.WALL`` means, if `dotted` is such a name."""
        root, _, path = (dotted or "").partition(".")
        if "." not in path or not isinstance(self.frame.bound.get(root), VertexValue):
            return None
        return self.source.attributes.get(path)

    def meant(self, node: ast.expr, meaning: Meaning) -> Value:
        """The value of a name from outside the function."""
        match meaning.sort:
            case "constant":
                if isinstance(meaning.value, bool):
                    return Literal(meaning.value, "bool")
                return Text(meaning.value) if isinstance(meaning.value, str) else Weak(meaning.value)
            case "table":
                return self.table(int(meaning.value), ast.unparse(node))
            case "record":
                name = self.source.records[int(meaning.value)].name
                self.refuse(node, f"{name} is a record's name: the second argument of ipu.view(self.bytes[begin:end], {name})")
            case "missing":
                self.refuse(node, str(meaning.value))
            case "foreign":
                self.refuse(node, f"device code cannot use {self.foreign(str(meaning.value))}")
            case "type":
                self.refuse(node, f"{meaning.value} is a type; write {meaning.value}(x) to convert x")
        shown = ast.unparse(node)
        self.refuse(node, f"{shown} is a function; call it: {shown}(...)")

    @abstractmethod
    def foreign(self, described: str) -> str:
        """What a name that device code cannot use means, with what to write instead where that is known."""

    # operators

    def binary(
        self,
        node: ast.BinOp,
        symbol: ast.operator,
        left: Number,
        right_of: Callable[[], Number],
    ) -> Number:
        """``left symbol right``; `node` is refused where they do not go together."""
        right = right_of()
        call, _ = _SYMBOLS[type(symbol)]
        if isinstance(left, Weak) and isinstance(right, Weak):
            return self._folded(node, symbol, left, right)
        if call in ("<<", ">>"):
            return self._shift(node, call, left, right)
        with self.at(node, f"{call}: "):
            kind = common_type([left, right])
            if kind in ("i32", "u32") and kind not in called(call) and "f32" in called(call):
                kind = "f32"  # INT / INT is FLOAT
            operation = operation_on(call, kind)
        if call == "**" and isinstance(right, Weak) and right.value == 2:
            same = self.converted(left, kind, node)
            return self.operate("*", (same, same), node)
        arguments = (self.converted(left, kind, node.left), self.converted(right, kind, node.right))
        return self.apply(operation.name, arguments, operation.result, node)

    def _shift(self, node: ast.BinOp, call: str, left: Number, right: Number) -> Number:
        with self.at(node, f"{call}: "):
            kind = common_type([left, right]) if isinstance(left, Weak) or isinstance(right, Weak) else left.type
            for number in (left, right):
                operation_on(call, number.alone if isinstance(number, Weak) else number.type)
            if kind in ("i32", "u32") and not isinstance(right, Weak) and right.type in ("i64", "u64"):
                raise Mixed(f"the shift count is wider than the value: write int(...) around the {NAMES[right.type]}")
        arguments = (self.converted(left, kind, node.left), self.converted(right, kind, node.right))
        return self.operate(call, arguments, node)

    def _folded(self, node: ast.expr, symbol: ast.AST, left: Weak, right: Weak) -> Number:
        a, b = left.value, right.value
        whole = isinstance(a, int) and isinstance(b, int)
        if whole and isinstance(symbol, ast.LShift | ast.Pow) and b > 0 and abs(a) > 1:
            growth = b if isinstance(symbol, ast.LShift) else b * abs(int(a)).bit_length()
            if growth > _LONGEST:
                self.refuse(node, "this number is too large for any type of the device")
        try:
            result = _SYMBOLS[type(symbol)][1](a, b)
        except (ArithmeticError, ValueError, TypeError) as error:
            self.refuse(node, f"{ast.unparse(node)}: {error}")
        if isinstance(result, bool):
            return Literal(result, "bool")
        if isinstance(result, int) and result.bit_length() > _LONGEST:
            self.refuse(node, "this number is too large for any type of the device")
        if not isinstance(result, int | float):
            self.refuse(node, f"{ast.unparse(node)} is a {type(result).__name__}; the device has no such numbers")
        return Weak(result)

    def _unary(self, node: ast.UnaryOp) -> Number:
        if isinstance(node.op, ast.Not):
            condition = self.condition(node.operand)
            if isinstance(condition, Literal):
                return FALSE if condition.value else TRUE
            return self.operate("not x", (condition,), node)
        number = self.number(node.operand)
        if isinstance(number, Weak):
            value = number.value
            if isinstance(node.op, ast.Invert):
                if isinstance(value, float):
                    self.refuse(node, "~ is for integers")
                return Weak(~value)
            return Weak(-value if isinstance(node.op, ast.USub) else value)
        if isinstance(node.op, ast.UAdd):
            if number.type == "bool":
                self.refuse(node, "arithmetic on BOOL: write int(...) around it")
            return number
        return self.operate("-x" if isinstance(node.op, ast.USub) else "~x", (number,), node)

    # conditions

    def condition(self, node: ast.expr) -> Operand:
        """A bool: numbers are true if not zero, as in Python."""
        if isinstance(node, ast.BoolOp):
            return self._short_circuit(node)
        return self.truth(self.number(node), node)

    def truth(self, number: Number, node: ast.AST) -> Operand:
        if isinstance(number, Weak):
            return TRUE if number.value else FALSE
        return number if number.type == "bool" else self.apply(f"bool_from_{number.type}", (number,), "bool", node)

    def _short_circuit(self, node: ast.BoolOp) -> Operand:
        """``a and b``, ``a or b`` as a bool."""
        wanted = isinstance(node.op, ast.And)
        first, *others = node.values
        condition = self.condition(first)
        for other in others:
            if isinstance(condition, Literal):
                if condition.value != wanted:
                    return condition
                condition = self.condition(other)
                continue
            condition = self._continued(condition, wanted, other)
        return condition

    def _continued(self, condition: Operand, wanted: bool, node: ast.expr) -> Operand:
        """``condition and node`` if `wanted`, else ``condition or node``."""
        with self.block() as inner:
            other = self.condition(node)
        return self._unless(condition, wanted, inner, other, node)

    def _unless(self, condition: Operand, wanted: bool, inner: list[Any], other: Operand, node: ast.AST) -> Operand:
        """`condition` where it is not `wanted`, else `other`, which the statements `inner` compute."""
        if isinstance(other, Literal) and not inner:
            return condition if other.value == wanted else other
        result = self.temporary("bool")
        with self.block(inner):
            self.copy(other, result, node)
        self.copy(condition, result, node)
        then, orelse = (tuple(inner), ()) if wanted else ((), tuple(inner))
        self.emit(IfElse(result, then, orelse, self.where(node)))
        return result

    def _comparison(self, node: ast.Compare) -> Number:
        return self._links(node, 0, self._compared_number(node, node.left))

    def _compared_number(self, node: ast.Compare, part: ast.expr) -> Number:
        """A part of a comparison."""
        value = self.value(part)
        if isinstance(value, Text):
            self.refuse(
                node, f"{ast.unparse(part)} is a string, and device code has none to compare: use numbers, or members of an IntEnum"
            )
        return self.as_number(value, part)

    def _links(self, node: ast.Compare, position: int, left: Number) -> Number:
        """``left < b < c`` from the comparison at `position` on: what is to the right is evaluated only if that one holds."""
        symbol, right_node = node.ops[position], node.comparators[position]
        left_node = node.comparators[position - 1] if position else node.left
        if type(symbol) not in _SYMBOLS:
            self.refuse(node, f"device code has no '{_shown(symbol)}': compare numbers with == and !=")
        right = self._compared_number(node, right_node)
        link = self._compared(node, symbol, left, right, left_node, right_node)
        if position + 1 == len(node.ops) or (isinstance(link, Literal) and not link.value):
            return link
        if isinstance(link, Literal):
            return self._links(node, position + 1, right)
        with self.block() as inner:
            rest = self.truth(self._links(node, position + 1, right), node)
        return self._unless(self.truth(link, node), True, inner, rest, node)

    def _compared(
        self, node: ast.expr, symbol: ast.cmpop, left: Number, right: Number, left_node: ast.expr, right_node: ast.expr
    ) -> Number:
        if isinstance(left, Weak) and isinstance(right, Weak):
            return self._folded(node, symbol, left, right)
        call, _ = _SYMBOLS[type(symbol)]
        first, second = self.together([left, right], [left_node, right_node], node, "comparison: ")
        arguments = (second, first) if call in _SWAPPED else (first, second)
        return self.operate(_SWAPPED.get(call, call), arguments, node)

    # values chosen at run time

    def _conditional(self, node: ast.IfExp) -> Value:
        condition = self.condition(node.test)
        if isinstance(condition, Literal):
            return self.value(node.body if condition.value else node.orelse)
        with self.block() as then:
            yes = self._choice(node.body)
        with self.block() as orelse:
            no = self._choice(node.orelse)
        return self._either(node, condition, (then, yes, node.body), (orelse, no, node.orelse))

    def _choice(self, node: ast.expr) -> Number:
        """What a conditional expression gives if its condition is known at run time only."""
        value = self.value(node)
        if isinstance(value, Weak | Local | Literal):
            return value
        self.refuse(node, f"a conditional expression chooses between numbers, got {self.described(value)}, or write if and else")

    def _boolean(self, node: ast.BoolOp) -> Number:
        """``a and b`` as a value: the operand at which Python would stop."""
        first = self.number(node.values[0])
        for value in node.values[1:]:
            condition = self.truth(first, node)
            wanted = isinstance(node.op, ast.And)
            if isinstance(condition, Literal):
                if condition.value == wanted:
                    first = self.number(value)
                continue
            with self.block() as inner:
                second = self.number(value)
            kept: tuple[list[Any], Number, ast.expr] = ([], first, node.values[0])
            other = (inner, second, value)
            first = self._either(node, condition, *((other, kept) if wanted else (kept, other)))
        return first

    def _either(
        self,
        node: ast.expr,
        condition: Operand,
        yes: tuple[list[Any], Number, ast.expr],
        no: tuple[list[Any], Number, ast.expr],
    ) -> Number:
        with self.at(node):
            type = common_type([yes[1], no[1]])
        result = self.temporary(type)
        for statements, number, where in (yes, no):
            with self.block(statements):
                self.copy(self.converted(number, type, where), result, where)
        self.emit(IfElse(condition, tuple(yes[0]), tuple(no[0]), self.where(node)))
        return result

    def load(self, span: Span, type: str, index: Operand, node: ast.AST, checked: bool = True) -> Local:
        result = self.temporary(type)
        self.emit(Load(result, span, index, self.where(node), checked))
        return result


def _shown(symbol: ast.cmpop) -> str:
    return {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}.get(type(symbol), type(symbol).__name__)
