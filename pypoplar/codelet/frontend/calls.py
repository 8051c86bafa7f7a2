"""Calls in device code: builtins, `math`, `pypoplar.ipu`, and element types as conversions."""

from __future__ import annotations

import ast
import math
from abc import abstractmethod
from typing import NoReturn

from pypoplar.codelet.frontend.casts import Casts
from pypoplar.codelet.frontend.expressions import FALSE, TRUE
from pypoplar.codelet.frontend.inference import (
    NAMES,
    Mixed,
    Number,
    RowsView,
    SpanView,
    Text,
    Value,
    VertexValue,
    Weak,
    common_type,
)
from pypoplar.codelet.frontend.scratch_arrays import ScratchArrays
from pypoplar.codelet.frontend.vector_calls import VectorCalls
from pypoplar.codelet.frontend.vectors import SIZES, spans_of, table_name
from pypoplar.codelet.ir.typed import Breakpoint, Check, Operand, Special
from pypoplar.codelet.language.diagnostics import BUILTIN_HINTS, STARS
from pypoplar.codelet.language.environment import dotted_name
from pypoplar.codelet.language.source import Meaning
from pypoplar.codelet.operations.device_operation import TypedOperation
from pypoplar.codelet.operations.matrix_unit import vector_operation_called
from pypoplar.codelet.operations.registers import FLOATS, INTEGERS, REGISTERS, UNSIGNED
from pypoplar.codelet.operations.table import called, functions_of
from pypoplar.codelet.operations.tile_readings import reading_called
from pypoplar.spelling import nearest

_SCALARS = {
    "class float32": "FLOAT", "class float16": "HALF", "class float64": "FLOAT", "class int32": "INT", "class int64": "LONGLONG",
    "class uint32": "UNSIGNED_INT", "class int8": "SIGNED_CHAR", "class uint8": "UNSIGNED_CHAR", "class int16": "SHORT",
    "class uint16": "UNSIGNED_SHORT", "class uint64": "UNSIGNED_LONGLONG", "class bool": "BOOL",
}  # fmt: skip
"""NumPy's scalar types and ours."""
_NEW_ARRAYS = ("zeros", "ones", "empty", "full", "array")  # of NumPy


class Calls(Casts, ScratchArrays, VectorCalls):
    """Everything that is called but helper functions."""

    @abstractmethod
    def helper(self, node: ast.Call, number: int, first: Value | None) -> Value:
        """What a helper function or a method of the vertex gives."""

    def call(self, node: ast.Call) -> Value:
        meaning, first = self._callee(node.func)
        if meaning.sort in ("helper", "method"):
            return self.helper(node, int(meaning.value), first if meaning.sort == "method" else None)
        match meaning.sort:
            case "constant" | "table":
                what = "a number" if meaning.sort == "constant" else "a constant table"
                self.refuse_call(node.func, f"{ast.unparse(node.func)} is {what}, not a function")
            case "record":
                name = self.source.records[int(meaning.value)].name
                self.refuse_call(node.func, f"device code makes no records: assign the fields of one that is there, of {name}")
            case "missing":
                self.refuse_call(node.func, str(meaning.value))
            case "foreign":
                self.refuse_call(node.func, f"device code cannot use {self.foreign(str(meaning.value))}")
        for argument in (*node.args, *node.keywords):
            if isinstance(argument, ast.Starred) or (isinstance(argument, ast.keyword) and argument.arg is None):
                self.refuse(argument, STARS)
        if node.keywords and not vector_operation_called(f"{meaning.sort}.{meaning.value}"):
            self.refuse(node.keywords[0], f"{ast.unparse(node.func)} takes no keyword arguments in device code")
        name = str(meaning.value)
        match meaning.sort:
            case "type":
                return self.cast(node, name)
            case "math":
                return self._math(node, name)
            case "ipu":
                return self._ipu(node, name)
        return self._builtin(node, name)

    def refuse_call(self, func: ast.expr, message: str) -> NoReturn:
        """Refuse what is called; helper functions are called by many, so the codelet is named."""
        self.refuse(func, f"{self.source.name}: {message}")

    def _callee(self, func: ast.expr) -> tuple[Meaning, Value | None]:
        """What is called, and the vertex if it is one of its methods."""
        dotted = dotted_name(func)
        root = dotted.partition(".")[0] if dotted is not None else None
        if root is not None and root not in self.frame.names:
            missing = Meaning("missing", f"name '{root}' is not defined")
            return self.frame.source.names.get(dotted or "", missing), None
        if isinstance(func, ast.Attribute):
            owner = self.value(func.value)
            if isinstance(owner, VertexValue) and func.attr not in self.fields and func.attr in self.source.attributes:
                return self.source.attributes[func.attr], owner
            if isinstance(owner, VertexValue) and func.attr not in self.fields:
                hint = nearest(func.attr, self.source.attributes)
                self.refuse(func, f"{self.source.name} has no method '{func.attr}'{hint}")
            shown = ast.unparse(func.value)
            hint = f"; write len({shown})" if func.attr in SIZES else ""
            self.refuse_call(func, f"{shown} has no methods in device code{hint}")
        self.refuse_call(func, f"{ast.unparse(func)} is a value, not a function: call functions by their name")

    def foreign(self, described: str) -> str:
        if described in BUILTIN_HINTS:
            return BUILTIN_HINTS[described]
        function = described.removeprefix("numpy.")
        if described in _SCALARS:
            return f"numpy's {described.removeprefix('class ')}: write {_SCALARS[described]}(x)"
        if function != described and function in _NEW_ARRAYS:
            return f"{described}: write ipu.array(FLOAT, 16), and a loop that fills it"
        if function != described and called(f"math.{function}"):
            return f"{described}: write math.{function}"
        for module in ("numpy.random", "random", "numpy", "scipy", "torch", "time", "cmath"):
            if described.startswith((f"module {module}", f"{module}.", f"class {module}")):
                hint = "write ipu.random_float() or ipu.random_uint()" if "random" in module else "use math, pypoplar.ipu and loops"
                return f"{described}: {hint}"
        return described

    # builtins

    def _builtin(self, node: ast.Call, name: str) -> Value:
        match name:
            case "int":
                return self.int_cast(node)
            case "float":
                return self.float_cast(node)
            case "bool":
                (number,) = self.arguments(node, 1, "bool")
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
            case "range":
                self.refuse(node, "range stands in a for loop only: for i in range(...)")
        if not called(name):
            self.refuse_call(node.func, f"device code cannot use {self.foreign(name)}")
        return self._function(node, name)

    def _len(self, node: ast.Call) -> Number:
        if len(node.args) != 1:
            self.refuse(node, f"len takes 1 argument, got {len(node.args)}")
        vector = self.value(node.args[0])
        if not isinstance(vector, SpanView | RowsView):
            self.refuse(node, f"len is for vectors and row lists, {ast.unparse(node.args[0])} is {self.described(vector)}")
        whole = spans_of(vector).name
        known = next((table.shape[0] for number, table in enumerate(self.source.tables) if table_name(number) == whole), None)
        return self.length(vector, node) if known is None else Weak(known)

    def _abs(self, node: ast.Call) -> Number:
        (number,) = self.arguments(node, 1, "abs")
        if isinstance(number, Weak):
            return Weak(abs(number.value))
        return number if number.type in UNSIGNED else self.operate("abs", (number,), node)

    def _extreme(self, node: ast.Call, name: str) -> Number:
        if len(node.args) < 2:
            self.refuse(node, f"{name} takes two or more numbers: for the {name}imum of a vector write a loop")
        numbers = [self.number(argument) for argument in node.args]
        if all(isinstance(number, Weak) for number in numbers):
            values = [number.value for number in numbers if isinstance(number, Weak)]
            return Weak(min(values) if name == "min" else max(values))
        extreme, *others = self.together(numbers, node.args, node, f"{name}: ")
        for other in others:
            extreme = self.operate(name, (extreme, other), node)
        return extreme

    def _round(self, node: ast.Call) -> Number:
        (number,) = self.arguments(node, 1, "round")
        if isinstance(number, Weak):
            return Weak(float(round(number.value)) if math.isfinite(number.value) else number.value)
        return self.operate("round", self._floating([number], node.args, node, "round"), node)

    # math and ipu

    def _floating(self, numbers: list[Number], nodes: list[ast.expr], node: ast.AST, name: str) -> tuple[Operand, ...]:
        """Arguments of a function on floats: integers become FLOAT."""
        with self.at(node, f"{name}: "):
            kind = common_type(numbers)
            if kind in ("bool", "i64", "u64"):
                raise Mixed(f"expected FLOAT or HALF, got {NAMES[kind]}: write float(...)")
            if kind in INTEGERS:
                kind = "f32"
        return tuple(self.converted(number, kind, where) for number, where in zip(numbers, nodes, strict=True))

    def _math(self, node: ast.Call, name: str) -> Number:
        functions = functions_of("math")
        if name not in functions:
            self.refuse_call(node.func, f"device code has no math.{name}{nearest(name, functions)}")
        if name == "log" and len(node.args) == 2:
            self.refuse(node, "math.log with a base: write math.log(x) / math.log(base), math.log2 or math.log10")
        return self._function(node, f"math.{name}")

    def _ipu(self, node: ast.Call, name: str) -> Value:
        if name in ("debug_print", "check") or vector_operation_called(f"ipu.{name}"):
            self.refuse(node, f"{name} has no value: write it on a line of its own")
        if name in ("float2", "float4", "half2", "half4"):
            self.refuse(
                node, "write a, b = ipu.float2(x, y): a vector of the hardware is given to a target for each of its elements"
            )
        if name == "worker_range":
            self.refuse(node, "ipu.worker_range stands in a for loop only: for i in ipu.worker_range(worker, self.out)")
        if name == "bit_cast":
            return self.bit_cast(node)
        if name == "array":
            return self.scratch_array(node)
        if name == "view":
            return self.view(node)
        call = f"ipu.{name}"
        reading = reading_called(call)
        if reading is not None:
            self.arguments(node, 0, call)
            result = self.temporary(reading.result)
            self.emit(Special(result, reading.name, self.where(node)))
            return result
        if not called(call):
            self.refuse_call(node.func, f"pypoplar.ipu has no device function '{name}'{nearest(name, functions_of('ipu'))}")
        return self._function(node, call)

    def _function(self, node: ast.Call, call: str) -> Number:
        """A call of a function that is a device operation."""
        by_type = called(call)
        pattern = next(iter(by_type.values()))
        for type in (*pattern.arguments, pattern.result):
            if type not in REGISTERS:
                self.refuse(node, f"{call}: its row takes '{type}', and the translator has operations on scalars only")
        numbers = self.arguments(node, len(pattern.arguments), call)
        if call.startswith("math.") and all(isinstance(number, Weak) for number in numbers):
            return self._folded_call(node, call, [number.value for number in numbers if isinstance(number, Weak)])
        if "" in by_type:
            return self.apply(pattern.name, self._fixed(node, call, numbers, pattern), pattern.result, node)
        if set(by_type) <= set(FLOATS):
            return self.operate(call, self._floating(numbers, node.args, node, call), node)
        operands = tuple(self.together(numbers, node.args, node, f"{call}: "))
        if set(by_type) <= set(INTEGERS) and operands[0].type not in INTEGERS:
            self.refuse(node, f"{call} is for integers, got {NAMES[operands[0].type]}")
        return self.operate(call, operands, node)

    def _fixed(self, node: ast.Call, call: str, numbers: list[Number], operation: TypedOperation) -> tuple[Operand, ...]:
        """Arguments of an operation whose types its row gives; literals take them."""
        given = [
            type if isinstance(number, Weak) else number.type for number, type in zip(numbers, operation.arguments, strict=True)
        ]
        if tuple(given) != operation.arguments:
            wanted, got = (" and ".join(NAMES[type] for type in types) for types in (operation.arguments, given))
            self.refuse(node, f"{call} takes {wanted}, got {got}: convert what differs")
        pairs = zip(numbers, given, node.args, strict=True)
        return tuple(self.converted(number, type, where) for number, type, where in pairs)

    def _folded_call(self, node: ast.Call, call: str, values: list[int | float]) -> Number:
        """A function of literals alone."""
        try:
            result = getattr(math, call.removeprefix("math."))(*values)
        except (ArithmeticError, ValueError) as error:
            self.refuse(node, f"{ast.unparse(node)}: {error}")
        if isinstance(result, bool):
            return TRUE if result else FALSE
        return Weak(float(result))

    # statements that are calls

    def call_statement(self, node: ast.Call) -> bool:
        """A call on a line of its own; whether it does anything but compute a value."""
        meaning, _ = self._callee(node.func)
        row = vector_operation_called(f"{meaning.sort}.{meaning.value}")
        if row is not None:
            self.apply_to_vectors(node, row)
            return True
        match meaning.sort, meaning.value:
            case "ipu", "check":
                self._check(node)
            case "ipu", "debug_print":
                self.debug_print(node)
            case "builtin", "print":
                self.print_line(node)
            case "builtin", "breakpoint":
                if node.args or node.keywords:
                    self.refuse(node, "breakpoint takes no arguments in device code")
                self.emit(Breakpoint(self.where(node)))
            case _:
                self.value(node)
                random = meaning.sort == "ipu" and str(meaning.value).startswith("random_")  # the generator goes on
                return random or meaning.sort in ("helper", "method")
        return True

    def _check(self, node: ast.Call) -> None:
        if not 1 <= len(node.args) <= 2 or node.keywords:
            self.refuse(node, "write ipu.check(condition) or ipu.check(condition, message)")
        message = node.args[1] if len(node.args) == 2 else None
        self.check(node, node.args[0], message)

    def check(self, node: ast.AST, condition: ast.expr, message: ast.expr | None) -> None:
        """``ipu.check(condition, message)`` or ``assert condition, message``."""
        text = ast.unparse(condition)
        if message is not None:
            constant = self.value(message)
            if not isinstance(constant, Text):
                self.refuse(message, "the message of a check is a string constant")
            text = constant.value
        self.emit(Check(self.condition(condition), self.text(text), self.where(node)))
