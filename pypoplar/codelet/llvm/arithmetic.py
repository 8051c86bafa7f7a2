"""Device operations as LLVM instructions: what their recipes work with, and the checks of floating-point exceptions.

`emit(builder, name, arguments)` writes an operation of `pypoplar.codelet.operations` where the builder stands. Registers are
LLVM's ``float`` (for f32, and for f16 as the float32 of the same value), ``i32``, ``i64`` and ``i1``; signs are in the operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen
from llvmlite import ir

from pypoplar.codelet.llvm import halves
from pypoplar.codelet.llvm.halves import alike, constant
from pypoplar.codelet.llvm.symbols import library_symbol
from pypoplar.codelet.operations.c_library import arguments_of
from pypoplar.codelet.operations.device_operation import TypedOperation
from pypoplar.codelet.operations.registers import SIGNED, WIDTH
from pypoplar.codelet.operations.table import typed_operation
from pypoplar.interface.fault_codes import NO_FAULT, FaultCode, FloatingPoint

FLOAT, DOUBLE, BOOL = ir.FloatType(), ir.DoubleType(), ir.IntType(1)
REGISTER_FORMS: dict[str, Any] = {
    "f32": FLOAT, "f16": FLOAT, "i32": ir.IntType(32), "u32": ir.IntType(32), "i64": ir.IntType(64), "u64": ir.IntType(64),
    "bool": BOOL,
}  # fmt: skip


@frozen(eq=False)
class LlvmEmitter:
    """The `Emitter` of recipes."""

    builder: Any
    operation: TypedOperation
    type: str
    bits: Any = None  # an ``i64`` of random ones, where halves are rounded at random

    @property
    def width(self) -> int:
        return WIDTH[self.type]

    @property
    def signed(self) -> bool:
        return self.type in SIGNED

    @property
    def double(self) -> Any:
        return DOUBLE

    def register(self, type: str, like: Any) -> Any:
        return alike(like.type, REGISTER_FORMS[type])

    def integer(self, width: int, like: Any) -> Any:
        return alike(like.type, ir.IntType(width))

    def constant(self, like: Any, value: float) -> Any:
        return constant(like.type, value)

    def flag(self, value: bool) -> Any:
        return constant(BOOL, value)

    def intrinsic(self, name: str, *arguments: Any) -> Any:
        if not name.startswith("llvm."):
            raise self.refusal(f"calls '{name}', which is no intrinsic of LLVM: their names begin with llvm.")
        return _call(self.builder, name, *arguments)

    def library(self, name: str, *arguments: Any) -> Any:
        """It has no effects, so LLVM may move it out of loops. What the row does not name is refused: no address would be known."""
        if name not in self.operation.row.library:
            named = ", ".join(self.operation.row.library) or "none"
            raise self.refusal(f"calls '{name}' of the C library; the functions that its row names in `library` are: {named}")
        if len(arguments) != arguments_of(name) or any(argument.type != DOUBLE for argument in arguments):
            given = ", ".join(str(argument.type) for argument in arguments)
            raise self.refusal(f"calls '{name}' of the C library with ({given}), which takes {arguments_of(name)} of type double")
        symbol, module = library_symbol(name), self.builder.module
        function = module.globals.get(symbol)
        if function is None:
            function = ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE] * len(arguments)), symbol)
            function.attributes.add("nounwind")
            function.attributes.add("readnone")
        return self.builder.call(function, arguments)

    def saturated(self, value: Any, type: str) -> Any:
        form = REGISTER_FORMS[type]
        kind = "fptosi" if type in SIGNED else "fptoui"
        function = self.builder.module.declare_intrinsic(f"llvm.{kind}.sat", [form, FLOAT], ir.FunctionType(form, [FLOAT]))
        return self.builder.call(function, [value])

    def widened(self, value: Any) -> Any:
        return self.builder.fpext(value, DOUBLE)

    def half_bits(self, value: Any) -> Any:
        return halves.to_half(self.builder, value)

    def of_half_bits(self, bits: Any) -> Any:
        return halves.from_half(self.builder, bits)

    def rounded(self, value: Any, type: str = "") -> Any:
        if (type or self.type) == "f32":
            return value
        if self.bits is not None:
            return halves.round_at_random(self.builder, value, self.bits)
        return halves.round_to_half(self.builder, value)

    def narrowed(self, value: Any, type: str = "") -> Any:
        if (type or self.type) == "f32":
            return self.builder.fptrunc(value, FLOAT)
        if self.bits is not None:
            return halves.round_at_random(self.builder, self.builder.fptrunc(value, FLOAT), self.bits)
        return halves.narrow_double(self.builder, value)

    def refusal(self, does: str) -> ValueError:
        """The error of a recipe that does what it may not."""
        return ValueError(f"device operation {self.operation.name}: its recipe {does}")


def _call(builder: Any, name: str, *arguments: Any) -> Any:
    """An intrinsic of LLVM, overloaded on the type of its first argument."""
    form = arguments[0].type
    type = ir.FunctionType(form, [argument.type for argument in arguments])
    if not isinstance(form, ir.VectorType):
        return builder.call(builder.module.declare_intrinsic(name, [form], type), arguments)
    name = f"{name}.v{form.count}{form.element.intrinsic_name}"
    function = builder.module.globals.get(name) or ir.Function(builder.module, type, name)
    return builder.call(function, arguments)


def emit(builder: Any, name: str, arguments: Sequence[Any], bits: Any = None) -> Any:
    """Write the operation `name` and return its result; `LookupError` if there is none.

    With random `bits`, an ``i64``, a half is rounded by them.
    """
    called = typed_operation(name)
    for type in (*called.arguments, called.result):
        if type not in REGISTER_FORMS:
            raise NotImplementedError(
                f"device operation {name} has '{type}' in its signature: machine code operates on scalars only"
            )
    assert called.row.llvm is not None
    emitter = LlvmEmitter(builder, called, called.type or called.result, bits)
    return _of_form(emitter, called.row.llvm(emitter, *arguments), alike(arguments[0].type, REGISTER_FORMS[called.result]))


def emit_operand_fault(builder: Any, name: str, last: Any) -> Any:
    """Whether an operation's last argument makes it an error, as an ``i1``."""
    called = typed_operation(name)
    assert called.fault is not None
    emitter = LlvmEmitter(builder, called, called.arguments[-1])
    return _of_form(emitter, called.fault.llvm(emitter, last), BOOL)


def _of_form(emitter: LlvmEmitter, value: Any, form: Any) -> Any:
    """A value that a recipe gave, which must be one of LLVM's and of this type."""
    if getattr(value, "type", None) != form:
        given = f"a value of type {value.type}" if isinstance(value, ir.Value) else repr(value)
        raise emitter.refusal(f"gives {given}, expected {form}")
    return value


def emit_floating_fault(builder: Any, name: str, mask: Any, result: Any, arguments: Sequence[Any]) -> Any:
    """`pypoplar.codelet.operations.float_exceptions` as instructions: the fault's code as an ``i64``, `NO_FAULT` for none."""
    word = ir.IntType(64)

    def code(condition: Any, raised: int, fault: int) -> Any:
        asked = builder.icmp_unsigned("!=", builder.and_(mask, constant(word, raised)), constant(word, 0))
        return builder.select(builder.and_(condition, asked), constant(word, fault), constant(word, NO_FAULT))

    numbers = finite = constant(BOOL, 1)
    for argument in arguments:
        if argument.type == FLOAT:
            numbers = builder.and_(numbers, builder.fcmp_ordered("ord", argument, argument))
            finite = builder.and_(finite, _compared_with_infinity(builder, "<", argument))
    invalid = builder.and_(numbers, builder.fcmp_unordered("uno", result, result))
    infinite = builder.and_(finite, _compared_with_infinity(builder, "==", result))
    at_pole = constant(BOOL, 0)
    pole = typed_operation(name).row.pole
    if pole is not None:
        position, point = pole
        at_pole = builder.fcmp_ordered("==", arguments[position], constant(FLOAT, point))
    by_zero = code(builder.and_(infinite, at_pole), FloatingPoint.DIVISION_BY_ZERO, FaultCode.DIVISION_BY_ZERO)
    beyond = code(builder.and_(infinite, builder.not_(at_pole)), FloatingPoint.OVERFLOW, FaultCode.OVERFLOW)
    return builder.or_(code(invalid, FloatingPoint.INVALID, FaultCode.INVALID), builder.or_(by_zero, beyond))


def _compared_with_infinity(builder: Any, relation: str, value: Any) -> Any:
    return builder.fcmp_ordered(relation, _call(builder, "llvm.fabs", value), constant(value.type, float("inf")))
