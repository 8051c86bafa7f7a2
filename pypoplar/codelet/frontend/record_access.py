"""Records of device code: one of several, the fields of one, and bytes that are seen as records."""

from __future__ import annotations

import ast
from abc import abstractmethod

from attrs import evolve

from pypoplar.codelet.frontend.expressions import Expressions
from pypoplar.codelet.frontend.inference import NAMES, RecordView, SpanView, Value, VertexValue
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import Literal, Member, Operand, Span, ViewAs
from pypoplar.codelet.language.environment import dotted_name
from pypoplar.codelet.language.record_layout import RecordLayout
from pypoplar.codelet.language.source import Meaning
from pypoplar.spelling import nearest
from pypoplar.types import ElementType

_FIRST = Literal(0, "i32")
_BYTES = ("u8", "i8")


def span_of_records(name: str, layout: RecordLayout) -> Span:
    """A span whose elements are records."""
    return Span(name, "u8", layout.size, True)


class RecordAccess(Expressions):
    """What is read of records, and bound to a part of one."""

    def record_at(self, records: SpanView, index: Operand, origin: str, node: ast.AST) -> RecordView:
        """One of several records."""
        assert records.layout is not None
        span = evolve(records.span, name=self.fresh("record"))
        self.emit(Member(span, records.span, index, 0, 1, self.where(node)))
        return RecordView(span, records.layout, records.writable, origin, depth=records.depth)

    def member(self, record: RecordView, node: ast.Attribute) -> tuple[SpanView | RecordView, bool]:
        """A field of a record, and whether it is one number, the first element of its span."""
        layout = record.layout
        field = next((field for field in layout.fields if field.name == node.attr), None)
        if field is None:
            names = [field.name for field in layout.fields]
            hint = nearest(node.attr, names) or f"; it has {', '.join(names)}"
            self.refuse(node, f"{layout.name} has no field '{node.attr}'{hint}")
        name, origin = self.fresh("member"), ast.unparse(node)
        if isinstance(field.type, ElementType):
            span = Span(name, field.type.code, by_byte=SIZES[field.type.code] > 1)
        else:
            span = span_of_records(name, field.type)
        self.emit(Member(span, record.span, _FIRST, layout.offsets[field.name], field.count or 1, self.where(node)))
        if isinstance(field.type, ElementType):
            return SpanView(span, record.writable, origin, depth=record.depth), field.count is None
        if field.count is None:
            return RecordView(span, field.type, record.writable, origin, depth=record.depth), False
        return SpanView(span, record.writable, origin, depth=record.depth, layout=field.type), False

    def view(self, node: ast.Call) -> SpanView:
        """``ipu.view(self.bytes[begin:end], Ray)``: bytes as records."""
        if len(node.args) != 2:
            self.refuse(node, "write ipu.view(self.bytes[begin:end], Ray): a vector of chars, and the record that its bytes are")
        meaning, shown = self._meaning_of(node.args[1]), ast.unparse(node.args[1])
        if meaning is None or meaning.sort != "record":
            self.refuse(node.args[1], f"{shown} is no record; write a class {shown.rpartition('.')[2]}(Record) with its fields")
        layout = self.source.records[int(meaning.value)]
        view, given = self.value(node.args[0]), ast.unparse(node.args[0])
        if not isinstance(view, SpanView):
            self.refuse(node.args[0], f"ipu.view takes a vector of chars, {given} is {self.described(view)}")
        if view.layout is not None:
            self.refuse(node.args[0], f"{given} are records of {view.layout.name} already; a view is of a vector of chars")
        if view.is_table:
            self.refuse(node.args[0], f"{given} may be a constant table, whose bytes have no view: read its elements")
        if view.span.element not in _BYTES:
            type = NAMES[view.span.element]
            self.refuse(node.args[0], f"ipu.view takes a vector of chars, {given} is one of {type}: make it UNSIGNED_CHAR")
        span = span_of_records(self.fresh("view"), layout)
        self.emit(ViewAs(span, view.span, layout.alignment, self.where(node)))
        return SpanView(span, view.writable, ast.unparse(node), depth=view.depth, layout=layout)

    def _meaning_of(self, node: ast.expr) -> Meaning | None:
        """What a name from outside the function means, also one of the class."""
        dotted = dotted_name(node) or ""
        root, _, path = dotted.partition(".")
        if isinstance(self.frame.bound.get(root), VertexValue):
            return self.source.attributes.get(path)
        return self.frame.source.names.get(dotted)

    def member_value(self, record: RecordView, node: ast.Attribute) -> Value:
        """What a field of a record is: a number is loaded."""
        view, is_number = self.member(record, node)
        if not is_number:
            return view
        assert isinstance(view, SpanView)
        return self.loaded(view, _FIRST, node)

    @abstractmethod
    def loaded(self, view: SpanView, index: Operand, node: ast.AST) -> Value:
        """What stands at an index: a number or a record."""
