"""Scratch arrays of device code: ``ipu.array(FLOAT, 16)``, memory on the stack of the worker that runs.

An array lasts as long as the function that declares it: compute, or one call of a helper function. The arrays of calls that follow
each other take the same memory where they have the same type and length.
"""

from __future__ import annotations

import ast

from pypoplar.codelet.frontend.expressions import Expressions
from pypoplar.codelet.frontend.inference import RecordView, SpanView, TupleValue, Value, Weak
from pypoplar.codelet.ir.typed import Literal, Local, Scratch, Span, TypedArray
from pypoplar.codelet.language.environment import dotted_name
from pypoplar.codelet.language.source import Meaning
from pypoplar.types import BY_NAME

MOST_BYTES = 1 << 17  # of a codelet's arrays; they lie on the stack of the process, too
_BUILTINS = {"float": "FLOAT", "int": "INT", "bool": "BOOL"}


class ScratchArrays(Expressions):
    """Their declaration, and that none is used beyond its end."""

    def scratch_array(self, node: ast.Call) -> SpanView:
        if len(node.args) != 2:
            self.refuse(node, "write ipu.array(FLOAT, 16): the type of its elements, and how many there are")
        element, length = self._element(node.args[0]), self._length(node.args[1])
        if self.frame.loops:
            self.refuse(node, "a scratch array in a loop: declare it before the loop; all rounds can use the same memory")
        array = self._reserved(element, length, node)
        self.frame.arrays.append(array)
        span = Span(self.fresh("array"), element)
        self.emit(Scratch(span, array.name, self.where(node)))
        return SpanView(span, True, ast.unparse(node), depth=len(self.frames) - 1)

    def _element(self, node: ast.expr) -> str:
        meaning = self.frame.source.names.get(dotted_name(node) or "", Meaning("missing", ""))
        shown = ast.unparse(node)
        match meaning.sort:
            case "type":
                return BY_NAME[str(meaning.value)].code
            case "builtin" if meaning.value in _BUILTINS:
                name = _BUILTINS[str(meaning.value)]
                self.refuse(node, f"{shown} is no type of the device: write ipu.array({name}, ...)")
            case "record":
                layout = self.source.records[int(meaning.value)]
                given = f"ipu.view(ipu.array(UNSIGNED_CHAR, {layout.size}), {shown})"
                self.refuse(node, f"{shown} is a record; an array of bytes holds one: write {given}")
            case "missing" if meaning.value:
                self.refuse(node, str(meaning.value))
            case "foreign":
                self.refuse(node, f"device code cannot use {self.foreign(str(meaning.value))}")
        self.refuse(node, f"{shown} is no type: write ipu.array(FLOAT, 16), or another element type")

    def _length(self, node: ast.expr) -> int:
        number, shown = self.value(node), ast.unparse(node)
        if isinstance(number, Local):
            known = f"{shown} is known only when the vertex runs: write the largest that is needed"
            self.refuse(node, f"the length of a scratch array is a constant, and {known}")
        if not isinstance(number, Weak) or isinstance(number.value, float):
            got = shown if isinstance(number, Weak | Literal) else self.described(number)
            self.refuse(node, f"the length of a scratch array is an integer, got {got}")
        if number.value < 1:
            self.refuse(node, f"a scratch array has at least 1 element, got {shown}")
        return number.value

    def _reserved(self, element: str, length: int, node: ast.Call) -> TypedArray:
        """Memory that no other array has that still lasts."""
        for array in self.spare:
            if (array.element, array.length) == (element, length):
                self.spare.remove(array)
                return array
        array = TypedArray(f"%{len(self.arrays)}", element, length)
        self.arrays.append(array)
        size = sum(array.bytes for array in self.arrays)
        if size > MOST_BYTES:
            shown = f"with {ast.unparse(node)} they take {size:,}"
            self.refuse(
                node, f"scratch arrays of a codelet take at most {MOST_BYTES:,} bytes, {shown}: use a plain field, Vector[...]"
            )
        return array

    def refuse_ended(self, result: Value, node: ast.expr) -> None:
        """Refuse what a helper function returns, if it is a piece of an array that ends with the call."""
        values = result.values if isinstance(result, TupleValue) else (result,)
        for value in values:
            if isinstance(value, SpanView | RecordView) and value.depth == len(self.frames) - 1:
                name = self.frame.source.name
                self.refuse(
                    node, f"{name} returns a scratch array of its own, which ends with the call: give it to {name} as an argument"
                )
