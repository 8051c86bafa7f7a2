"""Vectors of device code: fields, rows and slices, and the locals that stand for them."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from attrs import evolve

from pypoplar.codelet.frontend.inference import NAMES, RecordView, RowsView, SpanView, Value, VertexValue, View, Weak, register_of
from pypoplar.codelet.frontend.locals import LocalContent, SpanContent
from pypoplar.codelet.frontend.record_access import RecordAccess, span_of_records
from pypoplar.codelet.ir.typed import Length, Literal, Local, Operand, Row, Slice, Span, SpanList
from pypoplar.codelet.operations.registers import INTEGERS
from pypoplar.spelling import nearest

Bound = TypeVar("Bound", bound=View)

_ZERO = Literal(0, "i32")
SIZES = ("size", "shape", "length")  # what people write for len


class Spans(RecordAccess):
    """Field access, subscripts, slices, lengths."""

    def field_value(self, node: ast.Attribute) -> Value:
        owner = self.value(node.value)
        if isinstance(owner, RecordView):
            return self.member_value(owner, node)
        if isinstance(owner, SpanView) and owner.layout is not None and node.attr not in SIZES:
            shown, first = owner.origin.rstrip(","), owner.layout.fields[0].name
            self.refuse(node, f"{shown} are records: name one of them, and its field, as in {ast.unparse(node.value)}[i].{first}")
        if not isinstance(owner, VertexValue):
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
        if field.record is not None:
            return SpanView(span_of_records(field.name, field.record), writable, origin, layout=field.record)
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
            span = Span(name, held.element, held.unit, held.by_byte)
            if held.is_record and held.layout is not None:
                return RecordView(span, held.layout, held.writable, node.id, stable=False, depth=held.depth)
            view = SpanView(span, held.writable, origin, stable=False, layout=held.layout)
            return evolve(view, is_table=held.is_table, depth=held.depth)
        type = self.locals.type(unique)
        if type is None:
            self.refuse(node, f"'{node.id}' may be unassigned here")
        return Local(unique, type)

    def kept(self, node: ast.expr) -> Value:
        value = super().kept(node)
        if isinstance(value, View) and not value.stable:
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
                return self.loaded(vector, self.index(node.slice), node)
        self.refuse(node, f"{ast.unparse(node.value)} is {self.described(vector)}, not a vector: it has no elements")

    def loaded(self, view: SpanView, index: Operand, node: ast.AST) -> Value:
        if view.layout is not None:
            return self.record_at(view, index, ast.unparse(node), node)
        return self.load(view.span, register_of(view.span.element), index, node)

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

    def _refuse_table_rows(self, view: View, node: ast.AST) -> None:
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

    def bind_slice(self, view: Bound, begin: Operand, end: Operand, origin: str, node: ast.AST) -> Bound:
        whole = spans_of(view)
        part = evolve(whole, name=self.fresh("slice"))
        self.emit(Slice(part, whole, begin, end, self.where(node)))
        renamed: Any = {"rows": part} if isinstance(view, RowsView) else {"span": part}
        return evolve(view, origin=origin, stable=True, **renamed)

    def length(self, view: View, node: ast.AST) -> Local:
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

    def assign_span(self, unique: str, view: View, node: ast.AST, shown: str) -> None:
        """Bind a local to a vector, to rows, or to a record."""
        whole = spans_of(view)
        self._refuse_table_rows(view, node)
        if unique in self.locals.declared:
            declared = NAMES[self.locals.declared[unique]]
            what = "a vector" if isinstance(view, SpanView) else "rows"
            self.refuse(node, f"'{shown}' is declared {declared} and gets {what}, {view.origin}: leave the annotation out")
        with self.at(node, f"'{shown}': "):
            self.locals.add(unique, LocalContent(span=_content(view)))
        target = evolve(whole, name=self.span_name(unique))
        if whole != target and not self.retarget(whole, target):
            copy = self.bind_slice(view, _ZERO, self.length(view, node), view.origin, node)
            self.retarget(spans_of(copy), target)
        self.locals.assign(unique)


def spans_of(view: View) -> Span | SpanList:
    """What a view is of."""
    return view.rows if isinstance(view, RowsView) else view.span


def _content(view: View) -> SpanContent:
    """What a local holds that stands for a view."""
    if isinstance(view, RowsView):
        return SpanContent(view.rows.element, view.writable, is_list=True, is_table=view.is_table)
    span, is_record = view.span, isinstance(view, RecordView)
    is_table = isinstance(view, SpanView) and view.is_table
    held = SpanContent(span.element, view.writable, False, is_table, view.depth)
    return evolve(held, unit=span.unit, by_byte=span.by_byte, layout=view.layout, is_record=is_record)


def table_name(number: int) -> str:
    """A table's name in the typed form: none that a field or a local may have."""
    return f"#{number}"
