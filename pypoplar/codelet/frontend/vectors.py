"""Vectors of device code: fields, rows and slices, and the locals that stand for them."""

from __future__ import annotations

import ast

from attrs import evolve

from pypoplar.codelet.frontend.expressions import Expressions
from pypoplar.codelet.frontend.inference import NAMES, RowsView, SpanView, Value, VertexValue, Weak, register_of
from pypoplar.codelet.frontend.locals import LocalContent, SpanContent
from pypoplar.codelet.ir.typed import Length, Literal, Local, Operand, Row, Slice, Span, SpanList
from pypoplar.codelet.operations.registers import INTEGERS
from pypoplar.spelling import nearest

_ZERO = Literal(0, "i32")
SIZES = ("size", "shape", "length")  # what people write for len


class Spans(Expressions):
    """Field access, subscripts, slices, lengths."""

    def field_value(self, node: ast.Attribute) -> Value:
        if not isinstance(self.value(node.value), VertexValue):
            shown = ast.unparse(node.value)
            hint = f"write len({shown})" if node.attr in SIZES else "only the vertex has fields"
            self.refuse(node, f"{shown} has no attributes in device code; {hint}")
        if node.attr not in self.fields:
            if node.attr in self.source.attributes:
                return self.meant(node, self.source.attributes[node.attr])
            names = [*self.fields, *self.source.attributes]
            hint = nearest(node.attr, names) or (f"; it has {', '.join(self.fields)}" if self.fields else "")
            self.refuse(node, f"{self.source.name} has no field '{node.attr}'{hint}")
        view = self.field_view(node.attr)
        if isinstance(view, SpanView) and self.fields[node.attr].form == "scalar":
            return self.load(view.span, register_of(view.span.element), _ZERO, node, checked=False)
        return view

    def field_view(self, attribute: str) -> SpanView | RowsView:
        """The memory of a field; a scalar field is a span of one element."""
        field = self.fields[attribute]
        writable, origin = field.access != "input", f"self.{attribute}"
        if field.form == "list":
            return RowsView(SpanList(field.name, field.type.code), writable, origin)
        return SpanView(Span(field.name, field.type.code), writable, origin)

    def local_value(self, node: ast.Name, unique: str) -> Value:
        if self.locals.assigned is not None and unique not in self.locals.assigned:
            known = unique in self.locals.contents or (self.locals.before is not None and unique in self.locals.before)
            reason = "on some path to here it has no value" if known else "it has no value yet"
            self.refuse(node, f"'{node.id}' may be unassigned here: {reason}")
        held = self.locals.holds_span(unique)
        if held is not None:
            name, origin = self.span_name(unique), f"{node.id}, a view,"
            if held.is_list:
                return RowsView(SpanList(name, held.element), held.writable, origin, stable=False)
            view = SpanView(Span(name, held.element), held.writable, origin, stable=False)
            return evolve(view, is_table=held.is_table, depth=held.depth)
        type = self.locals.type(unique)
        if type is None:
            self.refuse(node, f"'{node.id}' may be unassigned here")
        return Local(unique, type)

    def kept(self, node: ast.expr) -> Value:
        value = super().kept(node)
        if isinstance(value, SpanView | RowsView) and not value.stable:
            return self.bind_slice(value, _ZERO, self.length(value, node), value.origin, node)
        return value

    def subscript(self, node: ast.Subscript) -> Value:
        vector = self.value(node.value)
        match vector:
            case RowsView() | SpanView() if isinstance(node.slice, ast.Slice):
                return self.slice(vector, node, node.slice)
            case RowsView() if vector.is_table and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
                row, column = node.slice.elts
                span = self.bind_row(vector, self.index(row), ast.unparse(node), node).span
                return self.load(span, register_of(span.element), self.index(column), node)
            case RowsView():
                return self.bind_row(vector, self.index(node.slice), ast.unparse(node), node)
            case SpanView():
                index = self.index(node.slice)
                return self.load(vector.span, register_of(vector.span.element), index, node)
        self.refuse(node, f"{ast.unparse(node.value)} is {self.described(vector)}, not a vector: it has no elements")

    def index(self, node: ast.expr) -> Operand:
        """The value of an index: an integer, not below zero."""
        if isinstance(node, ast.Tuple):
            self.refuse(node, "a list field is indexed row by row: self.rows[r][c]")
        number = self.number(node)
        if isinstance(number, Weak):
            if isinstance(number.value, float):
                self.refuse(node, f"an index is an integer, got {number.value}")
            if number.value < 0:
                self.refuse(node, f"index {number.value}: device code has no negative indices; write len(...) - {-number.value}")
            return self.operand(number, node)
        if number.type not in INTEGERS:
            hint = "int(...)" if number.type != "bool" else "int(...), or a conditional expression"
            self.refuse(node, f"an index is an integer, got {NAMES[number.type]}: write {hint}")
        return number

    def bind_row(self, view: RowsView, index: Operand, origin: str, node: ast.AST) -> SpanView:
        span = Span(self.fresh("row"), view.rows.element)
        self.emit(Row(span, view.rows, index, self.where(node)))
        return SpanView(span, view.writable, origin, is_table=view.is_table)

    def _refuse_table_rows(self, view: SpanView | RowsView, node: ast.AST) -> None:
        if isinstance(view, RowsView) and view.is_table:
            self.refuse(node, f"{view.origin} is a table of two dimensions, which is used under its own name: {view.origin}[r][c]")

    def slice(self, vector: SpanView | RowsView, node: ast.Subscript, slice: ast.Slice) -> SpanView | RowsView:
        """Bind a slice."""
        self._refuse_table_rows(vector, node)
        if slice.step is not None:
            step = self.number(slice.step)
            if not isinstance(step, Weak) or step.value != 1:
                self.refuse(slice.step, "a slice in device code has step 1: write a loop over range(begin, end, step)")
        begin = self.index(slice.lower) if slice.lower is not None else _ZERO
        end = self.index(slice.upper) if slice.upper is not None else self.length(vector, node)
        return self.bind_slice(vector, begin, end, ast.unparse(node), node)

    def bind_slice(
        self, view: SpanView | RowsView, begin: Operand, end: Operand, origin: str, node: ast.AST
    ) -> SpanView | RowsView:
        whole = spans_of(view)
        part = evolve(whole, name=self.fresh("slice"))
        self.emit(Slice(part, whole, begin, end, self.where(node)))
        if isinstance(part, Span):
            depth = view.depth if isinstance(view, SpanView) else 0
            return SpanView(part, view.writable, origin, is_table=view.is_table, depth=depth)
        return RowsView(part, view.writable, origin, is_table=view.is_table)

    def length(self, view: SpanView | RowsView, node: ast.AST) -> Local:
        result = self.temporary("i32")
        self.emit(Length(result, spans_of(view), self.where(node)))
        return result

    def table(self, number: int, shown: str) -> SpanView | RowsView:
        """A constant table."""
        name, table = table_name(number), self.source.tables[number]
        if len(table.shape) == 2:
            return RowsView(SpanList(name, table.type.code), False, shown, is_table=True)
        return SpanView(Span(name, table.type.code), False, shown, is_table=True)

    # locals that stand for vectors and rows

    def assign_span(self, unique: str, view: SpanView | RowsView, node: ast.AST, shown: str) -> None:
        """Bind a local to a vector, or to rows."""
        whole = spans_of(view)
        self._refuse_table_rows(view, node)
        with self.at(node, f"'{shown}': "):
            depth = view.depth if isinstance(view, SpanView) else 0
            held = SpanContent(whole.element, view.writable, isinstance(view, RowsView), view.is_table, depth)
            self.locals.add(unique, LocalContent(span=held))
        target = evolve(whole, name=self.span_name(unique))
        if whole != target and not self.retarget(whole, target):
            copy = self.bind_slice(view, _ZERO, self.length(view, node), view.origin, node)
            self.retarget(spans_of(copy), target)
        self.locals.assign(unique)


def spans_of(view: SpanView | RowsView) -> Span | SpanList:
    """What a view is of."""
    return view.span if isinstance(view, SpanView) else view.rows


def table_name(number: int) -> str:
    """A table's name in the typed form: none that a field or a local may have."""
    return f"#{number}"
