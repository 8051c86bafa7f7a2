"""Conversions of device code: ``HALF(x)`` and other types, ``int`` and ``float``, and the bits of a number as another type."""

from __future__ import annotations

import ast
import math

from pypoplar.codelet.frontend.inference import NAMES, RANGES, Number, Weak, literal, register_of
from pypoplar.codelet.frontend.prints import Prints
from pypoplar.codelet.ir.memory_types import SIZES
from pypoplar.codelet.ir.typed import Apply, Literal, Load, Operand
from pypoplar.codelet.language.environment import dotted_name
from pypoplar.codelet.operations.registers import FLOATS
from pypoplar.types import BY_NAME


class Casts(Prints):
    """A number as another type."""

    def arguments(self, node: ast.Call, count: int, name: str) -> list[Number]:
        if len(node.args) != count:
            self.refuse(node, f"{name} takes {count} argument{'s' * (count != 1)}, got {len(node.args)}")
        return [self.number(argument) for argument in node.args]

    def cast(self, node: ast.Call, name: str) -> Number:
        """``HALF(x)`` and the like; integers narrower than 32 bits wrap and stay INT."""
        (number,) = self.arguments(node, 1, name)
        code = BY_NAME[name].code
        kind = register_of(code)
        if isinstance(number, Weak):
            if kind == "bool":
                return self.truth(number, node)
            value = int(number.value) if code in RANGES and math.isfinite(number.value) else number.value
            with self.at(node):
                return literal(value, code)
        result = self.converted(number, kind, node)
        return result if code == kind else self.apply(f"wrap_{code}", (result,), kind, node)

    def int_cast(self, node: ast.Call) -> Number:
        (number,) = self.arguments(node, 1, "int")
        if isinstance(number, Weak):
            if not math.isfinite(number.value):
                self.refuse(node, f"int({number.value}) has no value")
            return Weak(int(number.value))
        return self.converted(number, "i32", node)

    def float_cast(self, node: ast.Call) -> Number:
        (number,) = self.arguments(node, 1, "float")
        return Weak(float(number.value)) if isinstance(number, Weak) else self.converted(number, "f32", node)

    # the same bits

    def bit_cast(self, node: ast.Call) -> Number:
        """``ipu.bit_cast(x, INT)``: the bits of a number as a type of the same size."""
        if len(node.args) != 2:
            self.refuse(node, "write ipu.bit_cast(x, INT): a number and the type that its bits are to be")
        named = self.frame.source.names.get(dotted_name(node.args[1]) or "")
        if named is None or named.sort != "type":
            self.refuse(node.args[1], f"{ast.unparse(node.args[1])} is no type; write ipu.bit_cast(x, INT), or another type")
        name = str(named.value)
        code, shown = BY_NAME[name].code, ast.unparse(node.args[0])
        number = self.number(node.args[0])
        source = self._pattern(number, code, node.args[0]) if isinstance(number, Weak) else number
        if "bool" in (source.type, code):
            self.refuse(node, "ipu.bit_cast is for numbers, not for BOOLs")
        size = SIZES[code] if isinstance(number, Weak) and isinstance(number.value, int) else self._bytes_of(source, code)
        if size != SIZES[code]:
            hint = f"; write ipu.bit_cast(SHORT({shown}), HALF)" if code == "f16" and source.type == "i32" else ""
            got = f"{shown} is {'an' if NAMES[source.type][0] in 'AEIOU' else 'a'} {NAMES[source.type]} of {size} bytes"
            self.refuse(node, f"ipu.bit_cast takes types of one size: {got}, {name} has {SIZES[code]}{hint}")
        return self._of_pattern(source, code, node)

    def _of_pattern(self, source: Operand, code: str, node: ast.Call) -> Operand:
        register = register_of(code)
        if source.type in FLOATS and code not in FLOATS:
            source = self.apply(f"bits_{source.type}", (source,), "i32", node)
        elif source.type not in FLOATS and code in FLOATS:
            return self.apply(f"of_bits_{code}", (self.converted(source, "i32", node),), code, node)
        source = self.converted(source, register, node)
        return source if code == register else self.apply(f"wrap_{code}", (source,), register, node)

    def _pattern(self, number: Weak, code: str, node: ast.AST) -> Operand:
        """A literal as a number of the size of a type: a float if it is one, and else an integer."""
        if isinstance(number.value, float):
            with self.at(node):
                return literal(number.value, "f16" if SIZES[code] == 2 else "f32")
        bits = 8 * SIZES[code]
        with self.at(node):
            return literal(number.value, f"{'i' if number.value < 2 ** (bits - 1) else 'u'}{bits}")

    def _bytes_of(self, number: Operand, code: str) -> int:
        """The size of a number's type in memory: of an INT that has just been loaded, or wrapped, that of the narrower type."""
        if number.type != "i32":
            return SIZES[number.type]
        if isinstance(number, Literal):  # SHORT(3)
            fits = code == "f16" and RANGES["i16"][0] <= number.value <= RANGES["u16"][1]
            return SIZES[code] if fits else SIZES["i32"]
        last = self.blocks[-1][-1] if self.blocks[-1] else None
        if isinstance(last, Load) and last.target == number:
            return SIZES[last.span.element]
        if isinstance(last, Apply) and last.target == number and last.operation.startswith("wrap_"):
            return SIZES[last.operation.removeprefix("wrap_")]
        return SIZES["i32"]
