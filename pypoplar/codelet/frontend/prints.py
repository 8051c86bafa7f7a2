"""What device code prints: ``print`` and ``ipu.debug_print``, with texts, numbers and f-strings."""

from __future__ import annotations

import ast
import re
import string

from pypoplar.codelet.frontend.inference import Text, Weak
from pypoplar.codelet.frontend.vectors import Spans
from pypoplar.codelet.ir.typed import DebugPrint, Literal, Local, Operand
from pypoplar.codelet.operations.registers import FLOATS


class Prints(Spans):
    """Texts with ``{}`` for each value, as str.format reads them, and the values."""

    def debug_print(self, node: ast.Call) -> None:
        """``ipu.debug_print(text, *values)``."""
        if node.keywords:
            self.refuse(node.keywords[0], "no keywords here in device code: give the text and the values")
        self._print(node, " ", "\n")

    def print_line(self, node: ast.Call) -> None:
        r"""``print(*values, sep=" ", end="\n")``."""
        ends = {"sep": " ", "end": "\n"}
        for keyword in node.keywords:
            if keyword.arg not in ends:
                given = "**" if keyword.arg is None else keyword.arg
                self.refuse(
                    keyword, f"print has no '{given}' in device code, only sep and end; it prints to Engine.setPrintStream's stream"
                )
            if not isinstance(keyword.value, ast.Constant) or keyword.value.value is not None:
                text = self.value(keyword.value)
                if not isinstance(text, Text):
                    self.refuse(keyword.value, f"'{keyword.arg}' of print is a string constant, got {self.described(text)}")
                ends[keyword.arg] = text.value
        self._print(node, ends["sep"], ends["end"])

    def _print(self, node: ast.Call, separator: str, end: str) -> None:
        values: list[Operand] = []
        text = _escaped(separator).join([self._piece(argument, values) for argument in node.args]) + _escaped(end)
        self.emit(DebugPrint(self.text(text), tuple(values), self.where(node)))

    def _piece(self, node: ast.expr, values: list[Operand]) -> str:
        if isinstance(node, ast.JoinedStr):
            return self._joined(node, values)
        value = self.value(node)
        if isinstance(value, Text):
            return _escaped(value.value)
        if not isinstance(value, Weak | Literal | Local):
            self.refuse(node, f"only numbers and strings can be printed, {ast.unparse(node)} is {self.described(value)}")
        values.append(self.operand(value, node))
        return "{}"

    def _joined(self, node: ast.JoinedStr, values: list[Operand]) -> str:
        """An f-string; ``{x=}`` comes as the text ``x=`` and the value with ``!r``."""
        pieces: list[str] = []
        names_value = False
        for part in node.values:
            if not isinstance(part, ast.FormattedValue):
                pieces.append(self._piece(part, values))
                names_value = pieces[-1].rstrip().endswith("=")
                continue
            if part.conversion != -1 and not (names_value and part.conversion == ord("r")):
                self.refuse(part, "only a constant format can stand here: {x:.3f}")
            value = self._formatted(part, values)
            pieces.append(value)
            names_value = False
        return "".join(pieces)

    def _formatted(self, node: ast.FormattedValue, values: list[Operand]) -> str:
        shown = self.value(node.value)
        if isinstance(shown, Text) and node.format_spec is None:
            return _escaped(shown.value)
        values.append(self.operand(self.as_number(shown, node.value), node))
        spec = self._format(node, values[-1].type)
        return "{:" + spec + "}" if spec else "{}"

    def _format(self, node: ast.FormattedValue, type: str) -> str:
        """A format specification, tried out here so that it cannot fail on the device."""
        parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
        if not all(isinstance(part, ast.Constant) for part in parts):
            self.refuse(node, "only a constant format can stand here: {x:.3f}")
        spec = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
        if re.search(r"\d{3}", spec):
            self.refuse(node, f"format {spec!r}: widths and precisions have at most two digits")
        if spec.endswith("c"):
            self.refuse(node, f"format {spec!r}: a number is no character in device code")
        try:
            string.Formatter().format_field(1.0 if type in FLOATS else 1, spec)
        except ValueError as error:
            self.refuse(node, f"format {spec!r}: {error}")
        return spec


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
