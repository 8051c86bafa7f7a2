"""Calls of operations on vectors: ``ipu.multiply_accumulate(self.out, self.a, self.b, rows, depth, columns)``."""

from __future__ import annotations

import ast

from pypoplar.codelet.frontend.expressions import Expressions
from pypoplar.codelet.frontend.inference import NAMES, SpanView, Weak
from pypoplar.codelet.ir.product_loops import product_loops
from pypoplar.codelet.ir.typed import ApplyToVectors, Operand, Span
from pypoplar.codelet.language.diagnostics import STARS
from pypoplar.codelet.operations.vector_operation import VectorOperation
from pypoplar.spelling import nearest


class VectorCalls(Expressions):
    """Their operands, by place or by name, and what they mean."""

    def apply_to_vectors(self, node: ast.Call, row: VectorOperation) -> None:
        if self.source.kind == "supervisor":
            self.refuse(node, f"{row.call} is an instruction of workers, not of the supervisor: write a Vertex or a MultiVertex")
        given = self._operands_of(node, row)
        vectors = tuple(self._operand_vector(given[name], name, row) for name in row.vectors)
        types = tuple(span.element for span in vectors)
        if types not in row.types:
            allowed = ", or ".join(_shown(row.vectors, known) for known in row.types)
            self.refuse(node, f"{row.call} takes {allowed}, got {_shown(row.vectors, types)}")
        counts = {name: self._count(given[name], name, row) for name in row.counts}
        strides = [
            self._count(given[name], name, row) if name in given else counts[natural] for name, natural in row.strides.items()
        ]
        numbers = (*counts.values(), *strides)
        where = self.where(node)
        self.emit(ApplyToVectors(row.name, vectors, numbers, product_loops(vectors, numbers, where, self.temporary), where))

    def _operands_of(self, node: ast.Call, row: VectorOperation) -> dict[str, ast.expr]:
        """What each parameter is given, in the order of the call."""
        if len(node.args) > len(row.parameters):
            self.refuse(node.args[len(row.parameters)], f"{row.call} takes at most {len(row.parameters)} arguments")
        given = dict(zip(row.parameters, node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(keyword.value, STARS)
            if keyword.arg not in row.parameters:
                self.refuse(keyword, f"{row.call} has no parameter '{keyword.arg}'{nearest(keyword.arg, row.parameters)}")
            if keyword.arg in given:
                self.refuse(keyword, f"{row.call} gets '{keyword.arg}' twice")
            given[keyword.arg] = keyword.value
        for argument in given.values():
            if isinstance(argument, ast.Starred):
                self.refuse(argument, STARS)
        missing = [name for name in (*row.vectors, *row.counts) if name not in given]
        if missing:
            usual = ", ".join((*row.vectors, *row.counts))
            self.refuse(node, f"{row.call} needs a value for '{missing[0]}': write {row.call}({usual})")
        return given

    def _operand_vector(self, node: ast.expr, name: str, row: VectorOperation) -> Span:
        vector, shown = self.value(node), ast.unparse(node)
        if not isinstance(vector, SpanView):
            hint = "; give it a flat Vector and the stride of its rows" if hasattr(vector, "rows") else ""
            self.refuse(node, f"{row.call}: '{name}' is a vector, {shown} is {self.described(vector)}{hint}")
        if vector.layout is not None:
            self.refuse(node, f"{row.call}: '{name}' is a vector of FLOATs or HALFs, {shown} has records")
        if name == row.vectors[0] and not vector.writable:
            why = "a constant table" if vector.is_table else "an Input"
            self.refuse(node, f"{row.call} writes '{name}', and {shown} is {why}, which device code only reads")
        return vector.span

    def _count(self, node: ast.expr, name: str, row: VectorOperation) -> Operand:
        number = self.number(node)
        kind = number.alone if isinstance(number, Weak) else number.type
        if kind != "i32":
            self.refuse(node, f"{row.call}: '{name}' is an INT, got {NAMES[kind]}: write int(...)")
        if isinstance(number, Weak) and number.value < 0:
            self.refuse(node, f"{row.call}: '{name}' is {number.value}, which is below 0")
        return self.converted(number, "i32", node)


def _shown(names: tuple[str, ...], types: tuple[str, ...]) -> str:
    return ", ".join(f"{name} of {NAMES[type]}s" for name, type in zip(names, types, strict=True))
