"""Loops of device code, and what leaves them: break, continue, return."""

from __future__ import annotations

import ast

from pypoplar.codelet.frontend.expressions import FALSE, TRUE
from pypoplar.codelet.frontend.inference import NAMES, Mixed, Number, RowsView, SpanView, Value, Weak, common_type
from pypoplar.codelet.frontend.locals import LocalContent, both
from pypoplar.codelet.frontend.translator_state import LoopPaths
from pypoplar.codelet.frontend.worker_shares import WORKER_RANGE, WorkerShares
from pypoplar.codelet.ir.typed import (
    Apply,
    Block,
    Break,
    Continue,
    For,
    IfElse,
    Leave,
    Literal,
    Local,
    Operand,
    Return,
    Statement,
    While,
    WorkerShare,
)
from pypoplar.codelet.language.source import Meaning
from pypoplar.codelet.operations.registers import INTEGERS

RANGE = Meaning("builtin", "range")
_ZERO, _ONE = Literal(0, "i32"), Literal(1, "i32")


class Loops(WorkerShares):
    """while, for over range, for over vectors and rows."""

    def guarded(self, node: ast.expr) -> Operand:
        """A condition; if it is refused, the statements that depend on it are still looked at."""
        condition: Operand = Local("", "bool")
        with self.recovering():
            condition = self.condition(node)
        return condition

    def while_loop(self, node: ast.While) -> None:
        self._refuse_else(node)
        with self.block() as head:
            condition = self.guarded(node.test)
        if condition == FALSE:
            return
        before = self.locals.assigned
        inner, loop = self._loop_body(node.body)
        after = None if condition == TRUE else before
        for assigned in loop.breaks:
            after = both(after, assigned)
        self.emit(While(tuple(head), condition, inner, self.where(node)))
        self._end_loop(node, after)

    def for_loop(self, node: ast.For) -> None:
        self._refuse_else(node)
        called = self._callee(node.iter.func)[0] if isinstance(node.iter, ast.Call) else None
        vector = None if called in (RANGE, WORKER_RANGE) else self._iterated(node)
        if not isinstance(node.target, ast.Name):
            self.refuse(node.target, "a for loop in device code has one variable, a local")
        match vector:
            case None if called == WORKER_RANGE:
                self._for_share(node, node.target, node.iter)
            case None:
                self._for_range(node, node.target, node.iter)
            case SpanView():
                self._for_elements(node, node.target, vector)
            case RowsView():
                self._for_rows(node, node.target, vector)
            case _:
                hint = f"; write range({ast.unparse(node.iter)})" if isinstance(vector, Weak | Literal | Local) else ""
                self.refuse(node.iter, f"for loops run over range(...), vectors and row lists, not {self.described(vector)}{hint}")

    def _iterated(self, node: ast.For) -> Value:
        """What a loop runs over; a local that its body assigns is kept as it is now."""
        assigned = (name.id for name in ast.walk(node) if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load))
        return self.kept(node.iter) if isinstance(node.iter, ast.Name) and node.iter.id in assigned else self.value(node.iter)

    # the three kinds of for

    def _for_range(self, node: ast.For, target: ast.Name, call: ast.expr) -> None:
        assert isinstance(call, ast.Call)
        if call.keywords:
            self.refuse(call.keywords[0], "range takes no keyword arguments")
        numbers: list[Number] = []
        kind = "i32"
        with self.recovering():
            if not 1 <= len(call.args) <= 3:
                self.refuse(call, f"range takes 1 to 3 arguments, got {len(call.args)}")
            numbers = [self.number(argument) for argument in call.args]
            kind = self._range_type(numbers, call)
        rounds = self._known_rounds(numbers)
        if rounds == 0:
            return
        operands = [self.converted(number, kind, where) for number, where in zip(numbers, call.args, strict=False)]
        zero, unit = Literal(0, kind), Literal(1, kind)
        start = operands[0] if len(operands) > 1 else zero
        stop = operands[1] if len(operands) > 1 else operands[0] if operands else zero
        step = operands[2] if len(operands) > 2 else unit
        variable, first = self._variable(target, kind)
        with self.block() as beginning:
            if first:
                self.assign_name(target, variable, target)
        end = call.args[min(1, len(call.args) - 1)] if call.args else call
        self._for(node, target, (variable, start, stop, step), beginning, rounds is not None, end_kept=isinstance(end, ast.Name))

    def _for_share(self, node: ast.For, target: ast.Name, call: ast.expr) -> None:
        assert isinstance(call, ast.Call)
        start, stop, share = self.worker_share(call)
        variable, first = self._variable(target, "i32")
        with self.block() as beginning:
            if first:
                self.assign_name(target, variable, target)
        self._for(node, target, (variable, start, stop, _ONE), beginning, False, share)

    def _range_type(self, numbers: list[Number], call: ast.Call) -> str:
        with self.at(call, "range: "):
            for number in numbers:
                kind = number.alone if isinstance(number, Weak) else number.type
                if kind not in INTEGERS:
                    raise Mixed(f"expected integers, got {NAMES[kind]}: write int(...)")
            kind = common_type(numbers)
            if len(numbers) == 3 and isinstance(numbers[2], Weak) and numbers[2].value == 0:
                raise Mixed("a step of zero would never end")
        return kind

    @staticmethod
    def _known_rounds(numbers: list[Number]) -> int | None:
        """The rounds of a range of literals."""
        values = [int(number.value) for number in numbers if isinstance(number, Weak)]
        if not values or len(values) < len(numbers) or values[2:] == [0]:
            return None
        return len(range(*values))

    def _variable(self, target: ast.Name, kind: str) -> tuple[Local, bool]:
        """The loop's variable: the user's local, or one of our own to be assigned to it if that has another type."""
        unique = self.frame.names[target.id]
        if unique not in self.locals.declared:
            with self.at(target, f"'{target.id}': "):
                self.locals.add(unique, LocalContent(kind))
                if self.locals.type(unique) is None:
                    raise Mixed("it is a vector elsewhere; use two names")
        if self.locals.type(unique) == kind:
            return Local(unique, kind), False
        return self.temporary(kind), True

    def _for_elements(self, node: ast.For, target: ast.Name, vector: SpanView) -> None:
        length = self.length(vector, node.iter)
        index = self.temporary("i32")
        with self.block() as beginning:
            self.assign_name(target, self.loaded(vector, index, node.iter), target)
        self._for(node, target, (index, _ZERO, length, _ONE), beginning, False)

    def _for_rows(self, node: ast.For, target: ast.Name, rows: RowsView) -> None:
        length = self.length(rows, node.iter)
        index = self.temporary("i32")
        with self.block() as beginning:
            row = self.bind_row(rows, index, target.id, node.iter)
            self.assign_span(self.frame.names[target.id], row, target, target.id)
        self._for(node, target, (index, _ZERO, length, _ONE), beginning, False)

    def _for(
        self,
        node: ast.For,
        target: ast.Name,
        counted: tuple[Local, Operand, Operand, Operand],
        beginning: list[Statement],
        runs: bool,
        share: WorkerShare | None = None,
        *,
        end_kept: bool = False,
    ) -> None:
        """Emit the loop; `beginning` sets the user's variable, and the body `runs` at least once or may not."""
        before = self.locals.assigned
        self.locals.assign(self.frame.names[target.id])
        inner, paths = self._loop_body(node.body)
        after = before
        if runs:
            after = None
            for assigned in (*paths.continues, *paths.breaks):
                after = both(after, assigned)
        variable, start, stop, step = counted
        body = (*beginning, *inner)
        self.emit(For(variable, start, stop, step, body, self.where(node), share=share, end_kept=end_kept))
        self._end_loop(node, after)

    def _loop_body(self, statements: list[ast.stmt]) -> tuple[Block, LoopPaths]:
        loop = LoopPaths()
        self.frame.loops.append(loop)
        with self.block() as inner:
            self.body(statements)
        self.frame.loops.pop()
        if self.locals.assigned is not None:
            loop.continues.append(self.locals.assigned)
        return tuple(inner), loop

    def _end_loop(self, node: ast.For | ast.While, after: frozenset[str] | None) -> None:
        """What holds after a loop; a helper that returned inside it goes on leaving."""
        self.locals.assigned = after
        if self.frame.returned is not None and any(isinstance(inner, ast.Return) for inner in ast.walk(node)):
            leave = Break() if self.frame.loops else Leave()
            self.emit(IfElse(Local(self.frame.returned, "bool"), (leave,), (), self.where(node)))

    def _refuse_else(self, node: ast.While | ast.For) -> None:
        if node.orelse:
            self.refuse(node.orelse[0], "a loop's else: set a bool before break and test it after the loop")

    # leaving

    def jump(self, node: ast.Break | ast.Continue) -> None:
        if not self.frame.loops:
            self.refuse(node, "outside a loop")
        loop = self.frame.loops[-1]
        if self.locals.assigned is not None:
            (loop.breaks if isinstance(node, ast.Break) else loop.continues).append(self.locals.assigned)
        self.locals.assigned = None
        self.emit(Break() if isinstance(node, ast.Break) else Continue())

    def give_back(self, node: ast.Return) -> None:
        """return, from compute or from a helper function."""
        frame = self.frame
        if len(self.frames) == 1:
            self._end_vertex(node)
        else:
            self.return_from_helper(node, frame)
            if frame.loops and frame.returned is not None:
                self.emit(Apply(Local(frame.returned, "bool"), "copy_bool", (TRUE,), self.where(node)))
                self.emit(Break())
            else:
                self.emit(Leave())
        self.locals.assigned = None

    def _end_vertex(self, node: ast.Return) -> None:
        frame = self.frame
        frame.ended = True
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.emit(Return(None, self.where(node)))
            return
        number = self.number(node.value)
        if isinstance(number, Weak) or number.type != "bool":
            self.refuse(node.value, "compute returns nothing or a BOOL: write a comparison, bool(...), True or False")
        self.emit(Return(number, self.where(node)))
