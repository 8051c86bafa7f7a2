"""From the driver's functions to LLVM's text.

They are written in a small part of Python (`pypoplar.engine.native.unit`): 64-bit integers that wrap, bools, locals of one type,
``if``, ``while``, ``for`` over ``range``, ``return``, calls of parts and operations by name, and integers of their modules by name.
Anything else is a `NotImplementedError` with its line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

from attrs import define, field
from llvmlite import ir

from pypoplar.engine.native.unit import INLINED, OPERATIONS, PARTS, SELDOM

WORD, BOOL = ir.IntType(64), ir.IntType(1)
_RESULTS = {"int": WORD, "bool": BOOL, "None": ir.VoidType()}
_ARITHMETIC = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "shl",
    ast.RShift: "ashr",
}  # fmt: skip
_COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}

Value = Any
"""An ``i64`` or ``i1`` of LLVM."""
Part = Callable[..., Any]


def unit_text(entry: Part, symbol: str) -> str:
    """A unit in LLVM's language, before LLVM works on it; its entry is called `symbol`."""
    unit = UnitWriter(ir.Module(symbol))
    unit.write(entry, symbol)
    return str(unit.module)


@define(eq=False)
class UnitWriter:
    """A unit, each of whose parts is written once."""

    module: Any
    functions: dict[Part, Any] = field(factory=dict)

    def function(self, part: Part) -> Any:
        """The LLVM function of a part."""
        if part not in self.functions:
            self.write(part, self.module.get_unique_name(part.__name__)).linkage = "internal"
        return self.functions[part]

    def write(self, part: Part, symbol: str) -> Any:
        tree = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        assert tree.returns is not None
        result = _RESULTS[ast.unparse(tree.returns)]
        function = ir.Function(self.module, ir.FunctionType(result, [WORD] * len(tree.args.args)), symbol)
        function.attributes.add("nounwind")
        for attribute in ("noinline", "cold") if part in SELDOM else ("alwaysinline",) if part in INLINED else ():
            function.attributes.add(attribute)
        self.functions[part] = function
        PartWriter(self, part, function).body(tree)
        return function


class PartWriter:
    """The body of a part."""

    def __init__(self, unit: UnitWriter, part: Part, function: Any) -> None:
        self.unit, self.part, self.function = unit, part, function
        self.allocations = ir.IRBuilder(function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(function.append_basic_block("start"))
        self.locals: dict[str, Any] = {}  # stack slots, of which LLVM makes registers

    def refuse(self, node: ast.AST, reason: str) -> NoReturn:
        code = self.part.__code__
        line = code.co_firstlineno + getattr(node, "lineno", 1) - 1
        raise NotImplementedError(f"{code.co_filename}:{line}: {reason}: {ast.unparse(node)}")

    def body(self, tree: ast.FunctionDef) -> None:
        for parameter, value in zip(tree.args.args, self.function.args, strict=True):
            self.assign(parameter.arg, value, tree)
        start = self.builder.block
        self.block(tree.body)
        if not self.builder.block.is_terminated:
            if self.function.function_type.return_type != _RESULTS["None"]:
                self.refuse(tree, "it may end without a value")
            self.builder.ret_void()
        self.allocations.branch(start)

    # statements

    def block(self, statements: list[ast.stmt]) -> None:
        """Statements up to the first that goes elsewhere."""
        for statement in statements:
            if self.builder.block.is_terminated:
                self.refuse(statement, "nothing comes here")
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Expr(value=ast.Call() as call):
                self.call(call)
            case ast.Assign(targets=[target], value=value):
                self.assign_all(target, value)
            case ast.AugAssign(target=ast.Name(id=name)):
                left = self.value(ast.Name(name, ast.Load()))
                self.assign(name, self.arithmetic(node, node.op, left, self.value(node.value)), node)
            case ast.If():
                self.branch(node)
            case ast.While(orelse=[]):
                self.while_loop(node)
            case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name(id="range")), orelse=[]):
                self.for_loop(node)
            case ast.Return(value=None):
                self.builder.ret_void()
            case ast.Return(value=ast.expr() as value):
                self.builder.ret(self.result(value))
            case _:
                self.refuse(node, "the driver has no such statement")

    def result(self, node: ast.expr) -> Value:
        value, form = self.value(node), self.function.function_type.return_type
        if value.type != form:
            self.refuse(node, f"its type is {value.type}, not {form}")
        return value

    def assign_all(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id=name), _:
                self.assign(name, self.value(value), target)
            case ast.Tuple(elts=names), ast.Tuple(elts=parts) if len(names) == len(parts):
                for place, part in zip(names, [self.value(part) for part in parts], strict=True):
                    if not isinstance(place, ast.Name):
                        self.refuse(target, "the driver has no such target")
                    self.assign(place.id, part, target)
            case _:
                self.refuse(target, "the driver has no such target")

    def assign(self, name: str, value: Value, node: ast.AST) -> None:
        if name not in self.locals:
            self.locals[name] = self.allocations.alloca(value.type)
        if self.locals[name].type.pointee != value.type:
            self.refuse(node, f"'{name}' changes its type")
        self.builder.store(value, self.locals[name])

    def go(self, block: Any) -> None:
        if not self.builder.block.is_terminated:
            self.builder.branch(block)

    def branch(self, node: ast.If) -> None:
        builder = self.builder
        then, orelse = builder.append_basic_block("then"), builder.append_basic_block("else")
        builder.cbranch(self.condition(node.test), then, orelse)
        ends = []
        for block, statements in ((then, node.body), (orelse, node.orelse)):
            builder.position_at_end(block)
            self.block(statements)
            ends.append(builder.block)
        if not all(block.is_terminated for block in ends):
            after = builder.append_basic_block("after")
            for block in ends:
                builder.position_at_end(block)
                self.go(after)
            builder.position_at_end(after)

    def while_loop(self, node: ast.While) -> None:
        builder = self.builder
        top, body = builder.append_basic_block("while"), builder.append_basic_block("round")
        builder.branch(top)
        builder.position_at_end(top)
        endless = isinstance(node.test, ast.Constant) and node.test.value is True
        after = None
        if endless:
            builder.branch(body)
        else:
            condition, after = self.condition(node.test), builder.append_basic_block("after")
            builder.cbranch(condition, body, after)
        builder.position_at_end(body)
        self.block(node.body)
        self.go(top)
        if after is not None:
            builder.position_at_end(after)

    def for_loop(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        bounds = [self.word(argument) for argument in node.iter.args]
        if not 1 <= len(bounds) <= 2:
            self.refuse(node.iter, "the driver counts in steps of one")
        first, end = bounds if len(bounds) == 2 else [WORD(0), *bounds]
        builder, before = self.builder, self.builder.block
        top, body, after = (builder.append_basic_block(name) for name in ("for", "round", "after"))
        builder.branch(top)
        builder.position_at_end(top)
        number = builder.phi(WORD)
        number.add_incoming(first, before)
        builder.cbranch(builder.icmp_signed("<", number, end), body, after)
        builder.position_at_end(body)
        self.assign(node.target.id, number, node)
        self.block(node.body)
        if not builder.block.is_terminated:
            number.add_incoming(builder.add(number, WORD(1), flags=("nsw",)), builder.block)
            builder.branch(top)
        builder.position_at_end(after)

    # expressions

    def value(self, node: ast.expr) -> Value:  # noqa: C901, PLR0911 - an arm for each expression
        match node:
            case ast.Constant(value=bool(value)):
                return BOOL(int(value))
            case ast.Constant(value=int(value)):
                return WORD(value)
            case ast.Name(id=name) if name in self.locals:
                return self.builder.load(self.locals[name])
            case ast.Name() | ast.Attribute():
                constant = self.named(node)
                if not isinstance(constant, int):
                    self.refuse(node, "it is no integer")
                return WORD(int(constant))
            case ast.BinOp(left=left, op=symbol, right=right):
                return self.arithmetic(node, symbol, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.builder.not_(self.condition(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.builder.neg(self.word(operand))
            case ast.Compare(left=left, ops=[symbol], comparators=[right]) if type(symbol) in _COMPARISONS:
                return self.builder.icmp_signed(_COMPARISONS[type(symbol)], self.word(left), self.word(right))
            case ast.BoolOp(op=symbol, values=parts):
                return self.short_circuit(isinstance(symbol, ast.And), parts)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.chosen(self.condition(test), lambda: self.value(body), lambda: self.value(orelse), node)
            case ast.Call():
                return self.call(node)
        self.refuse(node, "the driver has no such expression")

    def named(self, node: ast.expr) -> Any:
        """What a name of the part's module means, or an attribute of it."""
        match node:
            case ast.Name(id=name) if name in self.part.__globals__:
                return self.part.__globals__[name]
            case ast.Attribute(value=owner, attr=name):
                return getattr(self.named(owner), name)
        self.refuse(node, "nothing is called so")

    def word(self, node: ast.expr) -> Value:
        return self.widened(self.value(node))

    def widened(self, value: Value) -> Value:
        return self.builder.zext(value, WORD) if value.type == BOOL else value

    def condition(self, node: ast.expr) -> Value:
        return self.truth(self.value(node))

    def truth(self, value: Value) -> Value:
        return value if value.type == BOOL else self.builder.icmp_signed("!=", value, WORD(0))

    def arithmetic(self, node: ast.AST, symbol: ast.operator, left: Value, right: Value) -> Value:
        left, right = self.widened(left), self.widened(right)
        match symbol:
            case ast.FloorDiv():
                return self.divided(left, right)[0]
            case ast.Mod():
                return self.divided(left, right)[1]
            case _ if type(symbol) in _ARITHMETIC:
                return getattr(self.builder, _ARITHMETIC[type(symbol)])(left, right)
        self.refuse(node, "the driver has no such operation")

    def divided(self, left: Value, right: Value) -> tuple[Value, Value]:
        """Quotient, rounded down, and rest; 0 and 0 where the divisor is 0."""
        builder, zero = self.builder, WORD(0)
        fine = builder.icmp_signed("!=", right, zero)
        divisor = builder.select(fine, right, WORD(1))
        quotient, rest = builder.sdiv(left, divisor), builder.srem(left, divisor)
        other_sign = builder.icmp_signed("<", builder.xor(rest, divisor), zero)
        down = builder.and_(builder.icmp_signed("!=", rest, zero), other_sign)
        quotient = builder.select(down, builder.sub(quotient, WORD(1)), quotient)
        rest = builder.select(down, builder.add(rest, divisor), rest)
        return builder.select(fine, quotient, zero), builder.select(fine, rest, zero)

    def short_circuit(self, conjunction: bool, parts: list[ast.expr]) -> Value:
        first, *others = parts
        if not others:
            return self.condition(first)
        decided = BOOL(int(not conjunction))
        rest, known = lambda: self.short_circuit(conjunction, others), lambda: decided
        return self.chosen(self.condition(first), *((rest, known) if conjunction else (known, rest)), first)

    def chosen(self, condition: Value, yes: Callable[[], Value], no: Callable[[], Value], node: ast.AST) -> Value:
        builder = self.builder
        then, orelse, after = (builder.append_basic_block(name) for name in ("yes", "no", "either"))
        builder.cbranch(condition, then, orelse)
        incoming = []
        for block, value_of in ((then, yes), (orelse, no)):
            builder.position_at_end(block)
            incoming.append((value_of(), builder.block))
            builder.branch(after)
        builder.position_at_end(after)
        if incoming[0][0].type != incoming[1][0].type:
            self.refuse(node, "it has two types")
        result = builder.phi(incoming[0][0].type)
        for value, block in incoming:
            result.add_incoming(value, block)
        return result

    # calls

    def call(self, node: ast.Call) -> Value:
        if node.keywords:
            self.refuse(node, "arguments have their places")
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        match name:
            case "bool":
                return self.condition(node.args[0])
            case "int":
                return self.word(node.args[0])
            case "min" | "max":
                return self.extreme("<" if name == "min" else ">", *map(self.word, node.args))
        called, arguments = self.named(node.func), [self.word(argument) for argument in node.args]
        if called in OPERATIONS:
            return called(self.builder, *arguments)
        if called in PARTS:
            return self.builder.call(self.unit.function(called), arguments)
        self.refuse(node, "it is neither a part nor an operation")

    def extreme(self, wanted: str, left: Value, right: Value) -> Value:
        return self.builder.select(self.builder.icmp_signed(wanted, left, right), left, right)
