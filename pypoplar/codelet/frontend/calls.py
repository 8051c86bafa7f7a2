"""Calls in device code: builtins, `math`, `pypoplar.ipu`, and element types as conversions."""

from __future__ import annotations

import ast
import math
import re
import string

from pypoplar.codelet.frontend.expressions import FALSE, TRUE
from pypoplar.codelet.frontend.inference import (
    FLOATS,
    INTEGERS,
    NAMES,
    RANGES,
    Mixed,
    Number,
    RowsView,
    SpanView,
    Text,
    Value,
    Vertex,
    Weak,
    common_type,
    literal,
    register_of,
)
from pypoplar.codelet.frontend.vectors import SIZES, Spans
from pypoplar.codelet.ir.typed import Check, DebugPrint, HostCall, Literal, Local, Operand, Special
from pypoplar.codelet.language.diagnostics import BUILTIN_HINTS, STARS
from pypoplar.codelet.language.environment import dotted_name
from pypoplar.codelet.language.source import Meaning
from pypoplar.spelling import nearest
from pypoplar.types import BY_NAME

_UNARY = (
    "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "erf", "erfc", "floor", "ceil", "trunc", "fabs", "isnan", "isinf", "isfinite",
)  # fmt: skip
_BINARY = ("atan2", "fmod", "hypot", "copysign", "pow")
MATH: dict[str, int] = dict.fromkeys(_UNARY, 1) | dict.fromkeys(_BINARY, 2)
"""The functions of `math` that device code has, and how many arguments they take. floor, ceil and trunc give floats."""

IPU: dict[str, int] = dict.fromkeys(("sqrt", "rsqrt", "exp", "exp2", "log", "log2", "tanh", "sigmoid"), 1)
"""The functions of `pypoplar.ipu` on floats."""
_SCALARS = {
    "class float32": "FLOAT", "class float16": "HALF", "class float64": "FLOAT", "class int32": "INT", "class int64": "LONGLONG",
    "class uint32": "UNSIGNED_INT", "class int8": "SIGNED_CHAR", "class uint8": "UNSIGNED_CHAR", "class int16": "SHORT",
    "class uint16": "UNSIGNED_SHORT", "class uint64": "UNSIGNED_LONGLONG", "class bool": "BOOL",
}  # fmt: skip
"""NumPy's scalar types and ours."""
_PREDICATES = ("isnan", "isinf", "isfinite")


class Calls(Spans):
    """Everything that is called but helper functions."""

    def helper(self, node: ast.Call, number: int, first: Value | None) -> Value:
        raise NotImplementedError

    def call(self, node: ast.Call) -> Value:
        meaning, first = self._callee(node.func)
        if meaning.sort in ("helper", "method"):
            return self.helper(node, int(meaning.value), first if meaning.sort == "method" else None)
        if meaning.sort in ("missing", "foreign", "constant"):
            if meaning.sort == "constant":
                self.refuse(node.func, f"{ast.unparse(node.func)} is a number, not a function")
            self.meant(node.func, meaning)
        for one in (*node.args, *node.keywords):
            if isinstance(one, ast.Starred) or (isinstance(one, ast.keyword) and one.arg is None):
                self.refuse(one, STARS)
        if node.keywords:
            self.refuse(node.keywords[0], f"{ast.unparse(node.func)} takes no keyword arguments in device code")
        name = str(meaning.value)
        match meaning.sort:
            case "type":
                return self._cast(node, name)
            case "math":
                return self._math(node, name)
            case "ipu":
                return self._ipu(node, name)
        return self._builtin(node, name)

    def _callee(self, func: ast.expr) -> tuple[Meaning, Value | None]:
        """What is called, and the vertex if it is one of its methods."""
        dotted = dotted_name(func)
        root = dotted.partition(".")[0] if dotted is not None else None
        if root is not None and root not in self.frame.names:
            missing = Meaning("missing", f"name '{root}' is not defined")
            return self.frame.source.names.get(dotted or "", missing), None
        if isinstance(func, ast.Attribute):
            owner = self.value(func.value)
            if isinstance(owner, Vertex) and func.attr not in self.fields and func.attr in self.source.attributes:
                return self.source.attributes[func.attr], owner
            if isinstance(owner, Vertex) and func.attr not in self.fields:
                hint = nearest(func.attr, self.source.attributes)
                self.refuse(func, f"{self.source.name} has no method '{func.attr}'{hint}")
            shown = ast.unparse(func.value)
            hint = f"; write len({shown})" if func.attr in SIZES else ""
            self.refuse(func, f"{shown} has no methods in device code{hint}")
        self.refuse(func, f"{ast.unparse(func)} is a value, not a function: call functions by their name")

    def foreign(self, described: str) -> str:
        if described in BUILTIN_HINTS:
            return BUILTIN_HINTS[described]
        function = described.removeprefix("numpy.")
        if described in _SCALARS:
            return f"numpy's {described.removeprefix('class ')}: write {_SCALARS[described]}(x)"
        if function in MATH and function != described:
            return f"{described}: write math.{function}"
        for module in ("numpy", "scipy", "torch", "random", "time", "cmath"):
            if described.startswith((f"module {module}", f"{module}.", f"class {module}")):
                hint = "use pypoplar.ipu's random numbers" if module == "random" else "use math, pypoplar.ipu and loops"
                return f"{described}: {hint}"
        return described

    def _arguments(self, node: ast.Call, count: int, name: str) -> list[Number]:
        if len(node.args) != count:
            self.refuse(node, f"{name} takes {count} argument{'s' * (count != 1)}, got {len(node.args)}")
        return [self.number(one) for one in node.args]

    # conversions

    def _cast(self, node: ast.Call, name: str) -> Number:
        """``HALF(x)`` and the like; integers narrower than 32 bits wrap and stay INT."""
        (number,) = self._arguments(node, 1, name)
        code = BY_NAME[name].code
        kind = register_of(code)
        if isinstance(number, Weak):
            if kind == "bool":
                return self.truth(number, node)
            value = int(number.value) if code in RANGES and math.isfinite(number.value) else number.value
            with self.at(node):
                return Literal(literal(value, code).value, kind)
        result = self.converted(number, kind, node)
        return result if code == kind else self.apply(f"wrap_{code}", (result,), kind, node)

    def _int(self, node: ast.Call) -> Number:
        (number,) = self._arguments(node, 1, "int")
        if isinstance(number, Weak):
            if not math.isfinite(number.value):
                self.refuse(node, f"int({number.value}) has no value")
            return Weak(int(number.value))
        return self.converted(number, "i32", node)

    def _float(self, node: ast.Call) -> Number:
        (number,) = self._arguments(node, 1, "float")
        return Weak(float(number.value)) if isinstance(number, Weak) else self.converted(number, "f32", node)

    # builtins

    def _builtin(self, node: ast.Call, name: str) -> Value:
        match name:
            case "int":
                return self._int(node)
            case "float":
                return self._float(node)
            case "bool":
                (number,) = self._arguments(node, 1, "bool")
                return self.truth(number, node)
            case "len":
                return self._len(node)
            case "abs":
                return self._abs(node)
            case "min" | "max":
                return self._extreme(node, name)
            case "round":
                return self._round(node)
            case "print" | "breakpoint":
                self.refuse(node, f"{name} has no value: write it on a line of its own")
        self.refuse(node, "range stands in a for loop only: for i in range(...)")

    def _len(self, node: ast.Call) -> Number:
        if len(node.args) != 1:
            self.refuse(node, f"len takes 1 argument, got {len(node.args)}")
        found = self.value(node.args[0])
        if not isinstance(found, SpanView | RowsView):
            self.refuse(node, f"len is for vectors and row lists, {ast.unparse(node.args[0])} is {self.described(found)}")
        return self.length(found, node)

    def _abs(self, node: ast.Call) -> Number:
        (number,) = self._arguments(node, 1, "abs")
        if isinstance(number, Weak):
            return Weak(abs(number.value))
        if number.type == "bool":
            self.refuse(node, "abs of a BOOL: write int(...) around it")
        return number if number.type in ("u32", "u64") else self.apply(f"abs_{number.type}", (number,), number.type, node)

    def _extreme(self, node: ast.Call, name: str) -> Number:
        if len(node.args) < 2:
            self.refuse(node, f"{name} takes two or more numbers: for the {name}imum of a vector write a loop")
        numbers = [self.number(one) for one in node.args]
        if all(isinstance(one, Weak) for one in numbers):
            values = [one.value for one in numbers if isinstance(one, Weak)]
            return Weak(min(values) if name == "min" else max(values))
        first, *rest = self.together(numbers, node.args, node, f"{name}: ")
        if first.type == "bool":
            self.refuse(node, f"{name} of BOOLs: write 'and' or 'or'")
        for one in rest:
            first = self.apply(f"{name}_{first.type}", (first, one), first.type, node)
        return first

    def _round(self, node: ast.Call) -> Number:
        (number,) = self._arguments(node, 1, "round")
        if isinstance(number, Weak):
            return Weak(float(round(number.value)) if math.isfinite(number.value) else number.value)
        operand = self._floating([number], node.args, node, "round")[0]
        return self.apply(f"round_{operand.type}", (operand,), operand.type, node)

    # math and ipu

    def _floating(self, numbers: list[Number], nodes: list[ast.expr], node: ast.AST, name: str) -> list[Operand]:
        """Arguments of a function on floats: integers become FLOAT."""
        with self.at(node, f"{name}: "):
            kind = common_type(numbers)
            if kind in ("bool", "i64", "u64"):
                raise Mixed(f"expected FLOAT or HALF, got {NAMES[kind]}: write float(...)")
            if kind in INTEGERS:
                kind = "f32"
        return [self.converted(number, kind, where) for number, where in zip(numbers, nodes, strict=True)]

    def _math(self, node: ast.Call, name: str) -> Number:
        if name not in MATH:
            self.refuse(node.func, f"device code has no math.{name}{nearest(name, MATH)}")
        if name == "log" and len(node.args) == 2:
            self.refuse(node, "math.log with a base: write math.log(x) / math.log(base), math.log2 or math.log10")
        numbers = self._arguments(node, MATH[name], f"math.{name}")
        if all(isinstance(one, Weak) for one in numbers):
            return self._folded_call(node, name, [one.value for one in numbers if isinstance(one, Weak)])
        arguments = self._floating(numbers, node.args, node, f"math.{name}")
        kind = arguments[0].type
        result = "bool" if name in _PREDICATES else kind
        return self.apply(f"{name}_{kind}", tuple(arguments), result, node)

    def _folded_call(self, node: ast.Call, name: str, values: list[int | float]) -> Number:
        """A function of literals alone."""
        try:
            result = getattr(math, name)(*values)
        except (ArithmeticError, ValueError) as error:
            self.refuse(node, f"{ast.unparse(node)}: {error}")
        if isinstance(result, bool):
            return TRUE if result else FALSE
        return Weak(float(result))

    def _ipu(self, node: ast.Call, name: str) -> Value:
        match name:
            case "debug_print" | "check":
                self.refuse(node, f"{name} has no value: write it on a line of its own")
            case "cycle_count" | "random_uint" | "random_float":
                self._arguments(node, 0, f"ipu.{name}")
                special, kind = {
                    "cycle_count": ("cycle_count", "u32"),
                    "random_uint": ("random_u32", "u32"),
                    "random_float": ("random_f32", "f32"),
                }[name]
                result = self.temporary(kind)
                self.emit(Special(result, special, self.where(node)))  # type: ignore[arg-type]
                return result
            case "popcount" | "clz":
                operand = self.operand(self._arguments(node, 1, f"ipu.{name}")[0], node)
                if operand.type not in INTEGERS:
                    self.refuse(node, f"ipu.{name} is for integers, got {NAMES[operand.type]}")
                return self.apply(f"{name}_{operand.type}", (operand,), operand.type, node)
        if name not in IPU:
            self.refuse(node.func, f"pypoplar.ipu has no device function '{name}'{nearest(name, IPU)}")
        (operand,) = self._floating(self._arguments(node, 1, f"ipu.{name}"), node.args, node, f"ipu.{name}")
        return self.apply(f"{name}_{operand.type}", (operand,), operand.type, node)

    # statements that are calls

    def call_statement(self, node: ast.Call) -> None:
        """A call on a line of its own."""
        meaning, _ = self._callee(node.func)
        match meaning.sort, meaning.value:
            case "ipu", "check":
                self._check(node)
            case "ipu", "debug_print":
                text, arguments = self._message(node, node.args)
                self.emit(DebugPrint(self.text(text), arguments, self.where(node)))
            case "builtin", "print":
                text, arguments = self._message(node, node.args)
                self.emit(HostCall("print", text, arguments, self.where(node)))
            case "builtin", "breakpoint":
                self.emit(HostCall("breakpoint", "", (), self.where(node)))
            case _:
                self.value(node)

    def _check(self, node: ast.Call) -> None:
        if not 1 <= len(node.args) <= 2 or node.keywords:
            self.refuse(node, "write ipu.check(condition) or ipu.check(condition, message)")
        message = node.args[1] if len(node.args) == 2 else None
        self.check(node, node.args[0], message)

    def check(self, node: ast.AST, condition: ast.expr, message: ast.expr | None) -> None:
        """``ipu.check(condition, message)`` or ``assert condition, message``."""
        text = ast.unparse(condition)
        if message is not None:
            said = self.value(message)
            if not isinstance(said, Text):
                self.refuse(message, "the message of a check is a string constant")
            text = said.value
        self.emit(Check(self.condition(condition), self.text(text), self.where(node)))

    def _message(self, node: ast.Call, arguments: list[ast.expr]) -> tuple[str, tuple[Operand, ...]]:
        """A text with ``{}`` for each value, as str.format reads it, and the values."""
        if node.keywords:
            self.refuse(node.keywords[0], "no keywords here in device code: give the text and the values")
        pieces: list[str] = []
        values: list[Operand] = []
        for one in arguments:
            pieces.append(self._piece(one, values))
        return " ".join(pieces), tuple(values)

    def _piece(self, node: ast.expr, values: list[Operand]) -> str:
        if isinstance(node, ast.JoinedStr):
            return "".join(self._piece(one, values) for one in node.values)
        if isinstance(node, ast.FormattedValue):
            values.append(self.operand(self.number(node.value), node))
            spec = self._format(node, values[-1].type)
            return "{:" + spec + "}" if spec else "{}"
        found = self.value(node)
        if isinstance(found, Text):
            return found.value.replace("{", "{{").replace("}", "}}")
        if not isinstance(found, Weak | Literal | Local):
            self.refuse(node, f"only numbers and strings can be printed, {ast.unparse(node)} is {self.described(found)}")
        values.append(self.operand(found, node))
        return "{}"

    def _format(self, node: ast.FormattedValue, type: str) -> str:
        """A format specification, tried out here so that it cannot fail on the device."""
        parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
        if node.conversion != -1 or not all(isinstance(one, ast.Constant) for one in parts):
            self.refuse(node, "only a constant format can stand here: {x:.3f}")
        spec = "".join(str(one.value) for one in parts if isinstance(one, ast.Constant))
        if re.search(r"\d{3}", spec):
            self.refuse(node, f"format {spec!r}: widths and precisions have at most two digits")
        try:
            string.Formatter().format_field(1.0 if type in FLOATS else 1, spec)
        except ValueError as error:
            self.refuse(node, f"format {spec!r}: {error}")
        return spec
