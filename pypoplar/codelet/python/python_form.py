"""The Python form of a codelet: its typed form as an ordinary Python function, statement by statement.

This is the specification that native code answers to. The function is compiled with the user's file name and lines, so that
tracebacks, ``breakpoint()`` and coverage point at them. The user's locals keep their names; those of fields begin with an at
sign, of operations with a colon, or a percent sign where they round at random, of readings of the tile with a question mark, our
own with a dot. Operations mean what their rows say (`pypoplar.codelet.operations`), and every access to memory goes through
`pypoplar.codelet.python.interpreted`.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Callable
from typing import Any, assert_never

from attrs import astuple, define, field

from pypoplar.arrays.dtypes import Bytes, Int64s
from pypoplar.codelet.ir.block_numbers import numbered
from pypoplar.codelet.ir.loop_limits import is_even, round_slots, rounds_of
from pypoplar.codelet.ir.typed import (
    Apply,
    ApplyToVectors,
    Block,
    Break,
    Breakpoint,
    Check,
    Continue,
    DebugPrint,
    For,
    IfElse,
    Leave,
    Length,
    Load,
    Local,
    Member,
    Once,
    Operand,
    Price,
    PricedCodelet,
    Return,
    RoundsPrice,
    Row,
    Scratch,
    Slice,
    Span,
    SpanList,
    Special,
    Statement,
    Store,
    Straight,
    ViewAs,
    While,
    check_priced,
)
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.operations.conversions import COPY
from pypoplar.codelet.operations.device_operation import Meaning
from pypoplar.codelet.operations.float_exceptions import floating_fault
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.codelet.operations.tile_readings import reading
from pypoplar.codelet.python.interpreted import (
    Fields,
    MemoryRows,
    MemoryVector,
    Number,
    VertexContext,
    VertexFault,
    scratch_view,
    table_view,
)
from pypoplar.codelet.python.vector_statements import begin_vector_operation
from pypoplar.interface.edge_rows import EdgeRow, edge_row
from pypoplar.interface.fault_codes import EXCEPTIONS, FaultCode, FloatingPoint
from pypoplar.interface.layout import NOTHING

Function = Callable[..., bool]
Views = dict[str, MemoryVector | MemoryRows]


def meaning_of(name: str) -> Meaning:
    """What an operation does with Python's numbers; `LookupError` if there is none of that name."""
    return typed_operation(name).compute


@define(eq=False)
class PythonForm:
    """A codelet as a Python function, made when it first runs.

    With `record_touches` edge rows and the row table have the words for touched elements.
    """

    codelet: PricedCodelet
    meaning_of: Callable[[str], Meaning] = meaning_of
    record_touches: bool = False
    count_flops: bool = False
    count_blocks: bool = False
    _functions: dict[tuple[bool, bool], Function] = field(factory=dict)  # with exceptions of floats or without; rounding at random
    _edge_row: EdgeRow = field(init=False)
    _tables: dict[str, MemoryVector | MemoryRows] = field(init=False)

    def __attrs_post_init__(self) -> None:
        check_priced(self.codelet)
        if self.count_blocks:
            self.codelet = numbered(self.codelet)
        self._edge_row = edge_row(self.codelet.fields, record_touches=self.record_touches)
        self._tables = {table.name: table_view(table) for table in self.codelet.tables}

    def run(self, memory: Bytes, words: Int64s, row: int, row_table: Int64s, context: VertexContext) -> tuple[int, bool]:
        """Run one vertex whose edge row begins at `words[row]`: its slots, and what compute returned (True if nothing).

        Of a MultiVertex, all workers in order: the slots of the slowest, and the AND. What the others wait for it is left in
        `context`. `memory` is uint8. An error is a `VertexFault`. With `count_flops` its work is left in `context`: floating-point
        operations and bytes of all workers together, and the largest of their bounds. With `count_blocks` the executions of each
        block are, of a MultiVertex those of the worker that takes longest, of the first if several do.
        """
        guarded = context.floating_point_mask & EXCEPTIONS != 0
        at_random = context.floating_point_mask & FloatingPoint.STOCHASTIC != 0 and not self.codelet.always_nearest
        if (guarded, at_random) not in self._functions:
            writer = _FunctionWriter(self.codelet, guarded, at_random, self.count_flops)
            self._functions[guarded, at_random] = writer.function(self.meaning_of)
        function = self._functions[guarded, at_random]
        views = self.views(memory, words, row, row_table, context)
        context.flops = context.bytes = context.bound = context.waited = 0
        context.blocks = Counter()
        # A worker issues a slot in turn with the others; a supervisor's is a cycle.
        context.slot_cycles = 1 if self.codelet.kind == "supervisor" else context.workers
        context.written = set() if self.codelet.writes_all else None
        slots, result = self._run(function, context, views)
        if context.written is not None:
            self._keep_promises(views, context.written)
        return slots, result

    def _keep_promises(self, views: Views, written: set[int]) -> None:
        """A fault where an element of an Output was not stored to that was promised to be written in full."""
        for number, declared in enumerate(self.codelet.fields):
            if declared.name in self.codelet.writes_all:
                view = views[declared.name]
                rows = [view] if isinstance(view, MemoryVector) else [view[row] for row in range(len(view))]
                for row, vector in enumerate(rows):
                    element = vector.left_out(written)
                    if element is not None:
                        raise VertexFault(FaultCode.UNWRITTEN, 0, number, row << 32 | element)

    def _run(self, function: Function, context: VertexContext, views: Views) -> tuple[int, bool]:
        if self.codelet.kind != "multi":
            context.slots = 0
            context.generator = 0 if self.codelet.kind == "supervisor" else context.number % context.workers
            result = function(context, views)
            return context.slots, result
        slowest, whole, bound, agreed, blocks = -1, 0, 0, True, context.blocks
        for worker in range(context.workers):
            context.slots, context.bound, context.blocks = 0, 0, Counter()
            context.worker = context.generator = worker
            agreed = function(context, views, worker) and agreed
            if context.slots > slowest:
                slowest, blocks = context.slots, context.blocks
            whole, bound = whole + context.slots, max(bound, context.bound)
        context.bound, context.blocks = bound, blocks
        context.waited = slowest * context.workers - whole
        return slowest, agreed

    def views(self, memory: Bytes, words: Int64s, row: int, row_table: Int64s, context: VertexContext) -> Views:
        """The fields of the vertex whose edge row begins at `words[row]`, the constant tables, and the scratch arrays."""
        views = self._tables | {array.name: scratch_view(array, context) for array in self.codelet.arrays}
        for declared, place in zip(self.codelet.fields, self._edge_row.fields, strict=True):
            start = int(words[row + place.start])
            count = int(words[row + place.extent]) if place.extent != NOTHING else 1
            given = declared.access == "input"
            if declared.form == "list":
                table = row_table.reshape(-1)
                views[declared.name] = MemoryRows(
                    memory, declared.element, table, start, count, self.record_touches, context, given
                )
            else:
                touch = int(words[row + place.touch]) if place.touch != NOTHING else None
                element, unit = declared.element, declared.unit
                vector = MemoryVector(memory, element, start, count // unit, touch, context, given, unit, unit > 1)
                views[declared.name] = vector
        return views


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _target(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


def _call(function: str, *arguments: ast.expr) -> ast.expr:
    """``function(*arguments)``; a dot after the first letter parts an object from its method."""
    owner, dot, method = function[1:].partition(".")
    called = ast.Attribute(_name(function[0] + owner), method, ast.Load()) if dot else _name(function)
    return ast.Call(called, list(arguments), [])


def _constant(value: Number | str | None) -> ast.expr:
    return ast.Constant(value)


def _operand(operand: Operand) -> ast.expr:
    return _name(operand.name) if isinstance(operand, Local) else _constant(operand.value)


class _FunctionWriter:
    """Writes the function of one codelet."""

    def __init__(self, codelet: PricedCodelet, guarded: bool, at_random: bool, count_flops: bool) -> None:
        self.codelet = codelet
        self.guarded = guarded  # floating-point exceptions are looked for
        self.at_random = at_random  # halves are rounded at random
        self.counted = ("slots", "flops", "bytes", "bound") if count_flops else ("slots",)
        self.fields = set(codelet.wholes)
        self.used: set[str] = set()  # operations
        self.rounding: set[str] = set()  # those whose results are rounded at random
        self.readings: set[str] = set()
        self.begun: dict[str, Callable[..., None]] = {}  # what begins operations on vectors
        first = codelet.locations[0] if codelet.locations else None
        self.file = first.file if first is not None else f"<codelet {codelet.name}>"
        self.line = first.line if first is not None else 1

    def function(self, meaning_of: Callable[[str], Meaning]) -> Function:
        first = self.line
        parameters = [".context", ".views", *([self.codelet.worker.name] if self.codelet.worker is not None else [])]
        body = [self._view(name) for name in sorted(self.fields)]
        if any(isinstance(statement, Breakpoint) for statement in walk(self.codelet.body)):
            scalars = frozenset(declared.name for declared in self.codelet.fields if declared.form == "scalar")
            body.append(self._assign("self", _call(".fields", _name(".views"), _name(".scalars"))))
        else:
            scalars = frozenset()
        body += self._block(self.codelet.body)
        body.append(self._at(ast.Return(_constant(True))))
        arguments = ast.arguments([], [ast.arg(name) for name in parameters], None, [], [], None, [])
        module = ast.parse("def compute(): pass")  # with whatever else a function has in this Python
        compute = module.body[0]
        assert isinstance(compute, ast.FunctionDef)
        compute.args, compute.body, compute.lineno, compute.end_lineno = arguments, body, first, first
        self._at(module)
        namespace: dict[str, Any] = {":" + name: meaning_of(name) for name in self.used}
        namespace |= {"%" + name: typed_operation(name).unrounded for name in self.rounding}
        namespace |= {"?" + name: reading(name).meaning for name in self.readings}
        namespace |= {".rounds": _rounds, ".rounds_together": _rounds_together, ".fields": Fields, ".scalars": scalars}
        namespace |= self.begun
        namespace |= {".overflow": _tell_overflow, ".operands": _check_operands, ".float": _check_float, ".check": _check}
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

    def _at(self, tree: Any) -> Any:
        node: Any
        for node in ast.walk(tree):
            if "lineno" in node._attributes and not hasattr(node, "lineno"):
                node.lineno = node.end_lineno = self.line
                node.col_offset = node.end_col_offset = 0
        return tree

    def _assign(self, name: str, value: ast.expr) -> ast.stmt:
        return self._at(ast.Assign([_target(name)], value))  # type: ignore[no-any-return]

    def _do(self, value: ast.expr) -> ast.stmt:
        return self._at(ast.Expr(value))  # type: ignore[no-any-return]

    # statements

    def _block(self, block: Block) -> list[ast.stmt]:
        written = [line for statement in block for line in self._statement(statement)]
        return written or [self._at(ast.Pass())]

    def _statement(self, statement: Statement) -> list[ast.stmt]:
        where = getattr(statement, "where", None)
        if where is not None:
            self._go_to(where)
        match statement:
            case Price(block=block):
                executions = [] if block == NOTHING else [self._count_block(block)]
                return [*(self._count(name, getattr(statement, name)) for name in self.counted), *executions]
            case IfElse():
                test = self._at(ast.If(_operand(statement.condition), [], []))
                test.body, test.orelse = self._block(statement.then), self._block(statement.orelse) if statement.orelse else []
                return [test]
            case While():
                return self._while(statement)
            case For():
                return [self._for(statement)]
            case Once():
                once = self._at(ast.While(_constant(True), [], []))
                once.body = [*self._block(statement.body), self._at(ast.Break())]
                return [once]
            case ApplyToVectors():
                return [self._begin(statement), *self._block(statement.loops)]
            case Break() | Leave() | Continue():
                return [self._at(ast.Continue() if isinstance(statement, Continue) else ast.Break())]
            case Return(value=value):
                return [self._at(ast.Return(_constant(True) if value is None else _operand(value)))]
            case Apply():
                return self._apply(statement)
            case _:
                return [self._simple(statement)]

    def _count(self, name: str, amount: int) -> ast.stmt:
        counter = ast.Attribute(_name(".context"), name, ast.Store())
        return self._at(ast.AugAssign(counter, ast.Add(), _constant(amount)))  # type: ignore[no-any-return]

    def _count_block(self, number: int) -> ast.stmt:
        counters = ast.Attribute(_name(".context"), "blocks", ast.Load())
        counter = ast.Subscript(counters, _constant(number), ast.Store())
        return self._at(ast.AugAssign(counter, ast.Add(), _constant(1)))  # type: ignore[no-any-return]

    def _for(self, statement: For) -> ast.stmt:
        even, price = is_even(statement), statement.price
        bounds = _operand(statement.start), _operand(statement.stop), _operand(statement.step)
        if price is None:
            costs = [_constant(round_slots(statement) if even else None)]
        else:
            costs = [_constant(part) for part in astuple(price)]
        name = ".rounds" if price is None else ".rounds_together"
        rounds = _call(name, _name(".context"), *bounds, _constant(statement.where), *costs)
        loop = self._at(ast.For(_target(statement.variable.name), rounds, [], []))
        top = [] if even else [self._check_limit(statement)]
        loop.body = [*top, *self._block(statement.body)]
        return loop  # type: ignore[no-any-return]

    def _check_limit(self, loop: For | While) -> ast.stmt:
        return self._do(_call(".context.check_limit", _constant(loop.where)))

    def _while(self, statement: While) -> list[ast.stmt]:
        loop = self._at(ast.While(_constant(True), [], []))
        top = [self._check_limit(statement), *self._block(statement.head)]
        stop = self._at(ast.If(ast.UnaryOp(ast.Not(), _operand(statement.condition)), [ast.Break()], []))
        loop.body = [*top, stop, *self._block(statement.body)]
        return [loop]

    def _apply(self, statement: Apply) -> list[ast.stmt]:
        arguments = [_operand(argument) for argument in statement.arguments]
        name, target, where = _constant(statement.operation), statement.target.name, _constant(statement.where)
        if typed_operation(statement.operation).row is COPY:
            return [self._assign(target, arguments[0])]
        if self.at_random and typed_operation(statement.operation).rounds_to_half:
            self.rounding.add(statement.operation)
            result = _call(".context.half_at_random", _call("%" + statement.operation, *arguments))
        else:
            self.used.add(statement.operation)
            result = _call(":" + statement.operation, *arguments)
        checks = []
        if typed_operation(statement.operation).fault is not None:
            checks.append(self._do(_call(".operands", name, where, arguments[-1])))
        if self.guarded and statement.target.type in FLOATS:
            checks.append(self._assign(".result", result))
            mask = ast.Attribute(_name(".context"), "floating_point_mask", ast.Load())
            checked = _call(".float", name, where, mask, _name(".result"), *arguments)
            return [*checks, self._do(checked), self._assign(target, _name(".result"))]
        if self.codelet.overflow_is_undefined and statement.operation in _OVERFLOWS:
            checks.append(self._assign(".result", result))
            checked = _call(".overflow", _name(".context"), name, where, _name(".result"), *arguments)
            return [*checks, self._do(checked), self._assign(target, _name(".result"))]
        return [*checks, self._assign(target, result)]

    def _begin(self, statement: ApplyToVectors) -> ast.stmt:
        """Judge an operation on vectors, and pay for it."""
        name = f".{statement.operation}{len(self.begun)}"
        self.begun[name] = functools.partial(begin_vector_operation, statement)
        vectors = (_name(self._span(vector)) for vector in statement.vectors)
        return self._do(_call(name, _name(".context"), *vectors, *map(_operand, statement.numbers)))

    def _span(self, span: Span | SpanList) -> str:
        return "@" + span.name if span.name in self.fields else span.name

    def _simple(self, statement: Straight) -> ast.stmt:  # noqa: C901, PLR0911, PLR0912 - an arm for each statement
        match statement:
            case Load(target=target, span=span, index=index):
                return self._assign(target.name, _call(self._span(span) + ".load", _operand(index), _constant(statement.where)))
            case Store(span=span, index=index, value=value):
                stored = _operand(index), _operand(value), _constant(statement.where)
                return self._do(_call(self._span(span) + ".store", *stored))
            case Length(target=target, span=length_of):
                return self._assign(target.name, ast.Attribute(_name(self._span(length_of)), "length", ast.Load()))
            case Row(target=row, rows=rows, index=index):
                return self._assign(row.name, _call(self._span(rows) + ".row", _operand(index), _constant(statement.where)))
            case Slice(target=slice, span=span, begin=begin, end=end):
                bounds = _operand(begin), _operand(end), _constant(statement.where)
                return self._assign(slice.name, _call(self._span(span) + ".slice", *bounds))
            case Scratch(target=target, array=array):
                return self._assign(target.name, _call(f"@{array}.unwritten"))
            case Member(target=member, span=span, index=index, offset=offset, length=length):
                form = (_constant(part) for part in (offset, length, member.element, member.unit, statement.where))
                return self._assign(member.name, _call(self._span(span) + ".member", _operand(index), *form))
            case ViewAs(target=view, span=span, alignment=alignment):
                form = (_constant(part) for part in (view.unit, alignment, statement.where))
                return self._assign(view.name, _call(self._span(span) + ".view_as", *form))
            case Check(condition=condition, message=message):
                return self._do(_call(".check", _operand(condition), _constant(statement.where), _constant(message)))
            case DebugPrint(text=number, arguments=arguments):
                values = ast.Tuple([_operand(value) for value in arguments], ast.Load())
                return self._do(_call(".context.record", _constant(statement.where), _constant(number), values))
            case Special(target=target, name=name):
                self.readings.add(name)
                return self._assign(target.name, _call("?" + name, _name(".context")))
            case Breakpoint():
                return self._do(_call("breakpoint"))
            case Apply():
                raise AssertionError("operations are written by _apply")
            case _:
                assert_never(statement)


# What the function calls besides operations


def _rounds(context: VertexContext, start: int, stop: int, step: int, where: int, slots: int | None) -> range:
    """The rounds of a loop; those of an even one, of so many slots each, are judged by the cycle limit together."""
    if step == 0:
        raise VertexFault(FaultCode.RANGE_STEP, where)
    rounds = rounds_of(start, stop, step)
    if rounds and slots is not None:
        context.check_rounds(rounds, slots, where)
    return range(start, stop, step)


def _rounds_together(context: VertexContext, start: int, stop: int, step: int, where: int, *price: int) -> range:
    """The rounds of a loop that are paid for together, as it begins; `price` has the parts of its `RoundsPrice`."""
    rounds = _rounds(context, start, stop, step, where, None)
    if rounds:
        together = RoundsPrice(*price)
        total = together.total(len(rounds))
        context.check_rounds(1, total, where)
        context.slots += total
        context.bound += together.total_bound(len(rounds))
        if together.block != NOTHING:
            several, left_over = divmod(len(rounds), together.width)
            context.blocks += Counter({together.block: several, together.block + 1: left_over})
    return rounds


def _check(condition: bool, where: int, message: int) -> None:
    if not condition:
        raise VertexFault(FaultCode.CHECK, where, message)


def _check_operands(name: str, where: int, last: int) -> None:
    """An integer operation whose last argument may make it an error."""
    fault = typed_operation(name).fault
    assert fault is not None
    if fault(last):
        raise VertexFault(fault.code, where, last - 2**64 if last >= 2**63 else last, fault.bound)


_OVERFLOWS = {
    f"{name}_{type}": shown
    for name, shown in {
        "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "neg": "-({})", "abs": "abs({})", "quotient": "{} / {}",
        "remainder": "{} % {}", "shift_left": "{} << {}",
    }.items()
    for type in ("i32", "i64")
}  # fmt: skip
"""Operations on signed integers that C++ leaves undefined where the type does not hold the result, and how they are written."""


def _tell_overflow(context: VertexContext, name: str, where: int, result: int, *arguments: int) -> None:
    """Say that a result has wrapped, where that is undefined."""
    operation, _, type = name.rpartition("_")
    if operation == "shift_left":  # the sign may be shifted into, and not beyond
        wraps = not 0 <= arguments[0] << arguments[1] < 2 ** int(type[1:])
    else:
        exactly: Any = typed_operation(name).row.meaning  # of whole numbers, however large
        quotient = operation == "remainder" and arguments[1] == -1 and -arguments[0] > arguments[0]  # it has overflowed
        wraps = quotient or exactly(*arguments) != result
    if context.undefined is not None and wraps:
        shown, written = _OVERFLOWS[name].format(*arguments), "int" if type == "i32" else "long long"
        context.undefined(where, f"{shown} is beyond {written}, which C++ leaves undefined; here it gives {result}")


def _check_float(name: str, where: int, mask: int, result: float, *arguments: float) -> None:
    code = floating_fault(name, mask, result, *arguments)
    if code:
        raise VertexFault(code, where)
