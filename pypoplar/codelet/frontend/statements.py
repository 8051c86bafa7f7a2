"""Statements of device code: assignments, branches, loops, returns."""

from __future__ import annotations

import ast
from types import EllipsisType

from pypoplar.codelet.frontend.inference import (
    NAMES,
    Mixed,
    Number,
    RecordView,
    RowsView,
    SpanView,
    TupleValue,
    Value,
    VertexValue,
    Weak,
    check_store,
    literal,
    register_of,
)
from pypoplar.codelet.frontend.inlining import content_of
from pypoplar.codelet.frontend.locals import both
from pypoplar.codelet.frontend.translator_state import FunctionScope, nodes_of
from pypoplar.codelet.frontend.vector_assignments import VectorAssignments
from pypoplar.codelet.ir.typed import IfElse, Literal, Local, Operand, Store
from pypoplar.codelet.language.diagnostics import unsupported, without_effect
from pypoplar.codelet.language.environment import dotted_name
from pypoplar.spelling import nearest
from pypoplar.types import BY_NAME

_ZERO = Literal(0, "i32")
READ_ONLY = "{} is a constant table, which device code only reads: keep what changes in a plain field"


class Statements(VectorAssignments):
    """Statements in order. What no path reaches is passed over, and so are the branches that a constant rules out."""

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.locals.assigned is None:
                return
            with self.recovering():
                self.statement(statement)

    def statement(self, node: ast.stmt) -> None:  # noqa: C901, PLR0912 - an arm for each statement
        match node:
            case ast.Assign(value=ast.Call(func=func)) if self.vector_called(func) is not None:
                self.assign_vector(node)
            case ast.Assign():
                value = self.value(node.value) if len(node.targets) == 1 else self.pin(self.kept(node.value))
                for target in node.targets:
                    self.assign(target, value, node.value)
            case ast.AugAssign():
                self._augmented(node)
            case ast.AnnAssign():
                self._annotated(node)
            case ast.Expr():
                self._expression(node)
            case ast.If():
                self._if(node)
            case ast.While():
                self.while_loop(node)
            case ast.For():
                self.for_loop(node)
            case ast.Break() | ast.Continue():
                self.jump(node)
            case ast.Return():
                self.give_back(node)
            case ast.Assert():
                self.check(node, node.test, node.msg)
            case ast.Pass():
                pass
            case _:
                self.refuse(node, unsupported(node))

    def _expression(self, statement: ast.Expr) -> None:
        node = statement.value
        match node:
            case ast.Constant(value=str() | EllipsisType()):  # a docstring, a body to come
                return
            case ast.Call() if self.call_statement(node):
                return
            case ast.Call() | ast.BoolOp() | ast.IfExp():
                pass
            case _:
                self.value(node)  # what is wrong in it comes first
        ends_helper = len(self.frames) > 1 and statement is self.frame.tree.body[-1]
        self.refuse(node, without_effect(node, ends_helper=ends_helper))

    # assignment

    def assign(self, target: ast.expr, value: Value, node: ast.expr) -> None:
        match target:
            case ast.Name():
                self.assign_name(target, value, node)
            case ast.Tuple() | ast.List():
                self._unpack(target, value, node)
            case ast.Attribute() | ast.Subscript():
                self._check_declared(target, value)
                view, index, checked = self.place(target)
                self.store(view, index, self.as_number(value, node), node, checked)
            case _:
                self.refuse(target, unsupported(target))

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, node: ast.expr) -> None:
        if not isinstance(value, TupleValue):
            self.refuse(node, f"cannot unpack {self.described(value)}: write the values out, a, b = x, y")
        if len(target.elts) != len(value.values):
            self.refuse(target, f"{len(target.elts)} targets for {len(value.values)} values")
        nodes = node.elts if isinstance(node, ast.Tuple) else [node] * len(value.values)
        for element, part, where in zip(target.elts, value.values, nodes, strict=True):
            self.assign(element, part, where)

    def assign_name(self, target: ast.Name, value: Value, node: ast.expr) -> None:
        if target.id in self.frame.bound:
            self.refuse(target, f"'{target.id}' cannot be assigned: it is the vertex")
        unique = self.frame.names[target.id]
        match value:
            case SpanView() | RowsView() | RecordView():
                self.assign_span(unique, value, node, target.id)
            case VertexValue():
                self.refuse(node, f"a local holds a number, a vector or rows, not {self.described(value)}")
            case _:
                self.assign_number(unique, self.as_number(value, node), node, target.id)

    def assign_number(self, unique: str, number: Number, node: ast.AST, shown: str, flexible: bool = False) -> None:
        """Set a local, `shown` to the user; a `flexible` one is a helper's result, where a literal takes the others' type."""
        declared = self.locals.declared.get(unique)
        self.locals.assign(unique)
        if declared is not None:
            operand = self.stored(number, declared, f"'{shown}'", node)
        else:
            with self.at(node, f"'{shown}': "):
                self.locals.add(unique, content_of(number, flexible))
                type = self.locals.type(unique)
                if type is None:
                    raise Mixed("it is a vector elsewhere; use two names")
            operand = self.converted(number, type, node)
        self.copy(operand, Local(unique, operand.type), node)

    def place(self, target: ast.Attribute | ast.Subscript) -> tuple[SpanView, Operand, bool]:
        """The span and index that an assignment writes, and whether the index has to be checked."""
        if isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            if isinstance(owner, VertexValue) and target.attr in self.fields:
                view = self.field_view(target.attr)
                if self.fields[target.attr].form != "scalar":
                    kind = "list of rows: assign its elements, self.rows[r][c]" if isinstance(view, RowsView) else None
                    self.refuse(target, f"self.{target.attr} is a {kind or 'vector: assign its elements in a loop'}")
                assert isinstance(view, SpanView)
                return self.writable(view, target), _ZERO, False
            if isinstance(owner, RecordView):
                return self.writable(self._assigned_member(owner, target), target), _ZERO, True
            self.field_value(target)  # refuses what is not a field, with the nearest name
            self.refuse(target, f"{ast.unparse(target)} is not a field; only fields can be assigned")
        vector = self.value(target.value)
        if isinstance(target.slice, ast.Slice):
            self.refuse(target, "a slice cannot be assigned: write a loop over its elements")
        if isinstance(vector, RowsView) and not vector.is_table:
            self.refuse(target, f"{ast.unparse(target)} is a row: assign its elements in a loop")
        if isinstance(vector, RowsView):
            self.refuse(target, READ_ONLY.format(vector.origin))
        if not isinstance(vector, SpanView):
            self.refuse(target.value, f"{ast.unparse(target.value)} is {self.described(vector)}: it has no elements")
        if vector.layout is not None:
            self.refuse(target, f"{ast.unparse(target)} is a whole record: assign its fields one by one")
        return self.writable(vector, target), self.index(target.slice), True

    def _assigned_member(self, record: RecordView, target: ast.Attribute) -> SpanView:
        """The field of a record that an assignment writes."""
        view, is_number = self.member(record, target)
        if isinstance(view, RecordView):
            self.refuse(target, f"{ast.unparse(target)} is a whole record: assign its fields one by one")
        if not is_number:
            self.refuse(target, f"{ast.unparse(target)} is an array: assign its elements in a loop")
        return view

    def _check_declared(self, target: ast.Attribute | ast.Subscript, value: Value) -> None:
        """Refuse the assignment of a number to a field that the class does not have, with how to declare it."""
        if not isinstance(target, ast.Attribute) or target.attr in (*self.fields, *self.source.attributes):
            return
        owner = self.frame.bound.get(target.value.id) if isinstance(target.value, ast.Name) else None
        if isinstance(value, Weak | Local | Literal) and isinstance(owner, VertexValue):
            type = NAMES[value.alone if isinstance(value, Weak) else value.type]
            zero = {"FLOAT": "0.0", "HALF": "0.0", "BOOL": "False"}.get(type, "0")
            near = nearest(target.attr, self.fields)
            declared = f"{'' if near else ';'} {'T' if near else 't'}o keep a value in the vertex, declare it in the class"
            self.refuse(target, f"{self.source.name} has no field '{target.attr}'{near}{declared}: {target.attr}: {type} = {zero}")

    def writable(self, view: SpanView, node: ast.AST) -> SpanView:
        if view.is_table and not view.writable:
            self.refuse(node, READ_ONLY.format(view.origin))
        if not view.writable:
            self.refuse(node, f"{view.origin} is an Input, which a vertex only reads: make the field an Output or InOut")
        return view

    def stored(self, number: Number, memory: str, what: str, node: ast.AST) -> Operand:
        """`number` as it is stored to `memory`: converted where that loses no more than a rounding, else refused."""
        register = register_of(memory)
        if isinstance(number, Weak):
            with self.at(node, f"{what}: "):
                return literal(number.value, memory)
        with self.at(node):
            check_store(number.type, memory, what)
        operand = self.converted(number, register, node)
        return operand if register == memory else self.apply(f"wrap_{memory}", (operand,), register, node)

    def store(self, view: SpanView, index: Operand, number: Number, node: ast.AST, checked: bool) -> None:
        operand = self.stored(number, view.span.element, view.origin, node)
        self.emit(Store(view.span, index, operand, self.where(node), checked))

    def _augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            left = self.number(node.target)
            whole = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            result = self.binary(whole, node.op, left, lambda: self.number(node.value))
            self.assign_name(node.target, result, whole)
            return
        if isinstance(node.target, ast.Attribute):
            with self.block():
                self._check_declared(node.target, self.value(node.value))
        view, index, checked = self.place(node.target)
        whole = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
        left = self.load(view.span, register_of(view.span.element), index, node.target, checked)
        self.store(view, index, self.binary(whole, node.op, left, lambda: self.number(node.value)), node, checked)

    def declare(self, frame: FunctionScope) -> None:
        """Note the types that a function's annotations give to its locals."""
        self.frames.append(frame)
        for node in nodes_of(frame.tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                type, unique = self._declared_type(node.annotation), frame.names[node.target.id]
                if self.locals.declared.setdefault(unique, type) != type:
                    self.refuse(node, f"'{node.target.id}' is declared {NAMES[self.locals.declared[unique]]} elsewhere")
        self.frames.pop()

    def _declared_type(self, node: ast.expr) -> str:
        meaning = self.frame.source.names.get(dotted_name(node) or "")
        if meaning is not None and meaning.sort == "builtin" and meaning.value in ("int", "float", "bool"):
            return {"int": "i32", "float": "f32", "bool": "bool"}[str(meaning.value)]
        if meaning is not None and meaning.sort == "type":
            code = BY_NAME[str(meaning.value)].code
            if code == register_of(code):
                return code
        self.refuse(node, "a local is FLOAT, HALF, INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG or BOOL")

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.refuse(node, "only locals can be annotated in compute; fields are annotated in the class")
        if node.value is not None:
            self.assign_name(node.target, self.value(node.value), node.value)

    # branches

    def _if(self, node: ast.If) -> None:
        condition = self.guarded(node.test)
        if isinstance(condition, Literal):
            self.body(node.body if condition.value else node.orelse)
            return
        before = self.locals.assigned
        with self.block() as then:
            self.body(node.body)
        after, self.locals.assigned = self.locals.assigned, before
        with self.block() as orelse:
            self.body(node.orelse)
        self.locals.assigned = both(after, self.locals.assigned)
        self.emit(IfElse(condition, tuple(then), tuple(orelse), self.where(node)))
