"""The Python form of a codelet: its typed form as an ordinary Python function, statement by statement.

This is the specification that native code answers to. The function is compiled with the user's file name and lines, so that
tracebacks, ``breakpoint()`` and coverage point at them; the user's locals keep their names, fields begin with an at sign, our
own names with a dot. Operations are those of `pypoplar.codelet.ir.operations`, and every access to memory goes through
`pypoplar.codelet.python.interpreted`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from pypoplar.codelet.ir import operations
from pypoplar.codelet.ir.typed import (
    Apply,
    Block,
    Break,
    Check,
    Continue,
    DebugPrint,
    For,
    HostCall,
    If,
    Leave,
    Length,
    Load,
    Local,
    Once,
    Operand,
    Price,
    Return,
    Row,
    Slice,
    Span,
    SpanList,
    Special,
    Statement,
    Store,
    TypedCodelet,
    While,
)
from pypoplar.codelet.python.interpreted import Array, Fields, Number, Rows, Vector
from pypoplar.codelet.python.interpreted import Fault as Fault
from pypoplar.codelet.python.interpreted import VertexContext as VertexContext
from pypoplar.interface.edge_rows import EdgeRow, edge_row
from pypoplar.interface.fault_codes import FaultCode
from pypoplar.interface.layout import NOTHING

Function = Callable[..., bool]


@define(eq=False)
class PythonForm:
    """A codelet as a Python function, made when it first runs.

    With `record_touches` edge rows and the row table have the words for touched elements.
    """

    codelet: TypedCodelet
    functions: Mapping[str, Callable[..., Any]] = operations.FUNCTIONS
    record_touches: bool = False
    count_flops: bool = False
    _made: dict[bool, Function] = field(factory=dict)  # without and with floating-point exceptions
    _edge_row: EdgeRow = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._edge_row = edge_row(self.codelet.fields, record_touches=self.record_touches)

    def run(self, memory: Array, words: Array, row: int, row_table: Array, context: VertexContext) -> tuple[int, bool]:
        """Run one vertex whose edge row begins at `words[row]`: its slots, and what compute returned (True if nothing).

        Of a MultiVertex, all workers in order: the slots of the slowest, and the AND. `memory` is uint8; an error is a `Fault`.
        With `count_flops`, the floating-point operations and bytes of all workers together are left in `context`.
        """
        guarded = context.floating_point_mask != 0
        if guarded not in self._made:
            self._made[guarded] = _Maker(self.codelet, guarded, self.count_flops).function(self.functions)
        views = self.views(memory, words, row, row_table, context.uninitialised_is_fault)
        context.flops = context.bytes = 0
        # A worker issues a slot in turn with the others, the supervisor one a cycle.
        context.slot_cycles = 1 if self.codelet.kind == "supervisor" else context.workers
        if self.codelet.kind != "multi":
            context.slots = 0
            result = self._made[guarded](context, views)
            return context.slots, result
        slowest, agreed = 0, True
        for worker in range(context.workers):
            context.slots = 0
            agreed = self._made[guarded](context, views, worker) and agreed
            slowest = max(slowest, context.slots)
        return slowest, agreed

    def views(self, memory: Array, words: Array, row: int, row_table: Array, checks: bool) -> dict[str, Vector | Rows]:
        """The fields of the vertex whose edge row begins at `words[row]`."""
        found: dict[str, Vector | Rows] = {}
        for one, place in zip(self.codelet.fields, self._edge_row.fields, strict=True):
            start = int(words[row + place.start])
            count = int(words[row + place.extent]) if place.extent != NOTHING else 1
            if one.form == "list":
                table = row_table.reshape(-1)
                found[one.name] = Rows(memory, one.element, table, start, count, self.record_touches, checks)
            else:
                touch = int(words[row + place.touch]) if place.touch != NOTHING else None
                found[one.name] = Vector(memory, one.element, start, count, touch, checks)
        return found


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _target(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


def _call(function: str, *arguments: ast.expr) -> ast.expr:
    """``function(*arguments)``; a dot after the first letter parts an object from its method."""
    owner, dot, method = function[1:].partition(".")
    called = ast.Attribute(_name(function[0] + owner), method, ast.Load()) if dot else _name(function)
    return ast.Call(called, list(arguments), [])


def _constant(value: Number | str) -> ast.expr:
    return ast.Constant(value)


def _operand(operand: Operand) -> ast.expr:
    return _name(operand.name) if isinstance(operand, Local) else _constant(operand.value)


class _Maker:
    """Writes the function of one codelet."""

    def __init__(self, codelet: TypedCodelet, guarded: bool, count_flops: bool) -> None:
        self.codelet = codelet
        self.guarded = guarded  # floating-point exceptions are looked for
        self.counted = ("slots", "flops", "bytes") if count_flops else ("slots",)
        self.fields = {one.name for one in codelet.fields}
        self.used: set[str] = set()  # operations
        first = codelet.locations[0] if codelet.locations else None
        self.file = first.file if first is not None else f"<codelet {codelet.name}>"
        self.line = first.line if first is not None else 1

    def function(self, functions: Mapping[str, Callable[..., Any]]) -> Function:
        first = self.line
        parameters = [".context", ".views", *([self.codelet.worker.name] if self.codelet.worker is not None else [])]
        body = [self._view(name) for name in sorted(self.fields)]
        if any(isinstance(one, HostCall) for one in _walk(self.codelet.body)):
            scalars = frozenset(one.name for one in self.codelet.fields if one.form == "scalar")
            body.append(self._assign("self", _call(".fields", _name(".views"), _name(".scalars"))))
        else:
            scalars = frozenset()
        body += self._block(self.codelet.body)
        body.append(self._at(ast.Return(_constant(True))))
        arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
        module = ast.parse("def compute(): pass")  # with whatever else a function has in this Python
        made = module.body[0]
        assert isinstance(made, ast.FunctionDef)
        made.args, made.body, made.lineno, made.end_lineno = arguments, body, first, first
        self._at(module)
        namespace: dict[str, Any] = {"." + one: functions[one] for one in self.used}
        namespace |= {".fault": Fault, ".rounds": _rounds, ".fields": Fields, ".scalars": scalars}
        namespace |= {".operands": _check_operands, ".float": _check_float, ".check": _check}
        exec(compile(module, self.file, "exec"), namespace)  # the tree above, made of the typed form alone
        return namespace["compute"]  # type: ignore[no-any-return]

    def _view(self, name: str) -> ast.stmt:
        return self._assign("@" + name, ast.Subscript(_name(".views"), _constant(name), ast.Load()))

    # lines

    def _go_to(self, where: int) -> None:
        """Statements from here on stand at a location; those of helper functions in other files at the call."""
        location = self.codelet.locations[where]
        if location.file == self.file:
            self.line = location.line

    def _at(self, node: Any) -> Any:
        one: Any
        for one in ast.walk(node):
            if "lineno" in one._attributes and not hasattr(one, "lineno"):
                one.lineno = one.end_lineno = self.line
                one.col_offset = one.end_col_offset = 0
        return node

    def _assign(self, name: str, value: ast.expr) -> ast.stmt:
        return self._at(ast.Assign([_target(name)], value))  # type: ignore[no-any-return]

    def _do(self, value: ast.expr) -> ast.stmt:
        return self._at(ast.Expr(value))  # type: ignore[no-any-return]

    # statements

    def _block(self, block: Block) -> list[ast.stmt]:
        made = [statement for one in block for statement in self._statement(one)]
        return made or [self._at(ast.Pass())]

    def _statement(self, one: Statement) -> list[ast.stmt]:
        where = getattr(one, "where", None)
        if where is not None:
            self._go_to(where)
        match one:
            case Price():
                return [self._count(name, getattr(one, name)) for name in self.counted]
            case Apply():
                return self._apply(one)
            case If():
                condition = _operand(one.condition)
                test = self._at(ast.If(condition, [], []))
                test.body, test.orelse = self._block(one.then), self._block(one.orelse) if one.orelse else []
                return [test]
            case While():
                return self._while(one)
            case For():
                rounds = _call(".rounds", _operand(one.start), _operand(one.stop), _operand(one.step), _constant(one.where))
                loop = self._at(ast.For(_target(one.variable.name), rounds, [], []))
                loop.body = self._block(one.body)
                return [loop]
            case Once():
                once = self._at(ast.While(_constant(True), [], []))
                once.body = [*self._block(one.body), self._at(ast.Break())]
                return [once]
            case Break() | Leave():
                return [self._at(ast.Break())]
            case Continue():
                return [self._at(ast.Continue())]
            case Return():
                return [self._at(ast.Return(_constant(True) if one.value is None else _operand(one.value)))]
        return [self._simple(one)]

    def _count(self, name: str, amount: int) -> ast.stmt:
        counter = ast.Attribute(_name(".context"), name, ast.Store())
        return self._at(ast.AugAssign(counter, ast.Add(), _constant(amount)))  # type: ignore[no-any-return]

    def _while(self, one: While) -> list[ast.stmt]:
        loop = self._at(ast.While(_constant(True), [], []))
        top = [self._do(_call(".context.check_limit", _constant(one.where))), *self._block(one.head)]
        stop = self._at(ast.If(ast.UnaryOp(ast.Not(), _operand(one.condition)), [ast.Break()], []))
        loop.body = [*top, stop, *self._block(one.body)]
        return [loop]

    def _apply(self, one: Apply) -> list[ast.stmt]:
        arguments = [_operand(argument) for argument in one.arguments]
        if one.operation.startswith("copy_"):
            return [self._assign(one.target.name, arguments[0])]
        self.used.add(one.operation)
        result = _call("." + one.operation, *arguments)
        made = []
        if one.operation in operations.FAULTS:
            made.append(self._do(_call(".operands", _constant(one.operation), _constant(one.where), arguments[-1])))
        if self.guarded and one.target.type in operations.FLOATS:
            made.append(self._assign(".result", result))
            mask = ast.Attribute(_name(".context"), "floating_point_mask", ast.Load())
            checked = _call(".float", _constant(one.operation), _constant(one.where), mask, _name(".result"), *arguments)
            return [*made, self._do(checked), self._assign(one.target.name, _name(".result"))]
        return [*made, self._assign(one.target.name, result)]

    def _span(self, span: Span | SpanList) -> str:
        return "@" + span.name if span.name in self.fields else span.name

    def _simple(self, one: Statement) -> ast.stmt:
        match one:
            case Load():
                load = _call(self._span(one.span) + ".load", _operand(one.index), _constant(one.where))
                return self._assign(one.target.name, load)
            case Store():
                where = _constant(one.where)
                return self._do(_call(self._span(one.span) + ".store", _operand(one.index), _operand(one.value), where))
            case Length():
                return self._assign(one.target.name, ast.Attribute(_name(self._span(one.span)), "length", ast.Load()))
            case Row():
                return self._assign(
                    one.target.name, _call(self._span(one.rows) + ".row", _operand(one.index), _constant(one.where))
                )
            case Slice():
                bounds = _operand(one.begin), _operand(one.end), _constant(one.where)
                return self._assign(one.target.name, _call(self._span(one.span) + ".slice", *bounds))
            case Check():
                return self._do(_call(".check", _operand(one.condition), _constant(one.where), _constant(one.message)))
            case DebugPrint():
                values = ast.Tuple([_operand(value) for value in one.arguments], ast.Load())
                return self._do(_call(".context.record", _constant(one.where), _constant(one.text), values))
            case Special():
                return self._assign(one.target.name, _call(f".context.{one.name}"))
            case HostCall(name="print"):
                text = ast.Attribute(_constant(one.text), "format", ast.Load())
                return self._do(_call("print", ast.Call(text, [_operand(value) for value in one.arguments], [])))
            case HostCall():
                return self._do(_call("breakpoint"))
        raise AssertionError(f"unknown statement {one}")


def _walk(block: Block) -> list[Statement]:
    found: list[Statement] = []
    for one in block:
        found.append(one)
        for inner in ("then", "orelse", "head", "body"):
            found += _walk(getattr(one, inner, ()))
    return found


# What the function calls besides operations


def _rounds(start: int, stop: int, step: int, where: int) -> range:
    if step == 0:
        raise Fault(FaultCode.RANGE_STEP, where)
    return range(start, stop, step)


def _check(condition: bool, where: int, message: int) -> None:
    if not condition:
        raise Fault(FaultCode.CHECK, where, message)


def _check_operands(operation: str, where: int, last: int) -> None:
    """An integer operation whose last argument may make it an error."""
    fault = operations.FAULTS[operation]
    if fault(last):
        raise Fault(fault.code, where, last - 2**64 if last >= 2**63 else last, fault.bound)


def _check_float(operation: str, where: int, mask: int, result: float, *arguments: float) -> None:
    code = operations.floating_fault(operation, mask, result, *arguments)
    if code:
        raise Fault(code, where)
