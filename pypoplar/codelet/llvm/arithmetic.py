"""The operations of device code as LLVM instructions: one meaning for both engines.

`emit(builder, name, arguments)` writes an operation of `pypoplar.codelet.ir.operations` where the builder stands. Registers
are LLVM's ``float`` (for f32, and for f16 as the float32 of the same value), ``i32``, ``i64`` and ``i1``; signs are in the
operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from pypoplar.codelet.ir.operations import (
    FLOATS,
    INTEGERS,
    POLES,
    REGISTERS,
    SIGNATURES,
    WIDTH,
)
from pypoplar.codelet.llvm import halves, machine
from pypoplar.codelet.llvm.halves import alike, constant
from pypoplar.interface.fault_codes import NO_FAULT, FaultCode, FloatingPoint

FLOAT, DOUBLE, BOOL = ir.FloatType(), ir.DoubleType(), ir.IntType(1)
REGISTER_FORMS: dict[str, Any] = {
    "f32": FLOAT, "f16": FLOAT, "i32": ir.IntType(32), "u32": ir.IntType(32), "i64": ir.IntType(64), "u64": ir.IntType(64),
    "bool": BOOL,
}  # fmt: skip
Emitter = Callable[..., Any]
SIGNED = ("i32", "i64")


def _call(builder: Any, name: str, *arguments: Any) -> Any:
    """An intrinsic of LLVM, overloaded on the type of its first argument."""
    form = arguments[0].type
    type = ir.FunctionType(form, [one.type for one in arguments])
    if not isinstance(form, ir.VectorType):
        return builder.call(builder.module.declare_intrinsic(name, [form], type), arguments)
    name = f"{name}.v{form.count}{form.element.intrinsic_name}"
    function = builder.module.globals.get(name) or ir.Function(builder.module, type, name)
    return builder.call(function, arguments)


def _library(builder: Any, name: str, *arguments: Any) -> Any:
    """A float64 function of the C library. It has no effects, so LLVM may move it out of loops."""
    symbol = machine.SYMBOL_PREFIX + name
    function = builder.module.globals.get(symbol)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(DOUBLE, [DOUBLE] * len(arguments)), symbol)
        function.attributes.add("nounwind")
        function.attributes.add("readnone")
    return builder.call(function, arguments)


def _widen(builder: Any, value: Any) -> Any:
    return builder.fpext(value, DOUBLE)


def _narrow(builder: Any, value: Any, to: str) -> Any:
    """A float64 rounded once to a float type."""
    return builder.fptrunc(value, FLOAT) if to == "f32" else halves.narrow_double(builder, value)


def _rounded(emitter: Emitter, to: str) -> Emitter:
    """The operation with its float32 result rounded to `to`.

    For add, sub, mul, div and sqrt of halves this rounds once in effect: float32 has more than twice the bits of a half.
    """
    if to == "f32":
        return emitter
    return lambda builder, *arguments: halves.round_to_half(builder, emitter(builder, *arguments))


def _in_double(emitter: Emitter, to: str) -> Emitter:
    """The operation done in float64 and rounded once."""

    def emit_in_double(builder: Any, *arguments: Any) -> Any:
        return _narrow(builder, emitter(builder, *(_widen(builder, one) for one in arguments)), to)

    return emit_in_double


def _builder_method(name: str) -> Emitter:
    return lambda builder, *arguments: getattr(builder, name)(*arguments)


# Floats


def _remainder(builder: Any, a: Any, b: Any) -> Any:
    """fmod, which is exact in any format, on the host's float64 function."""
    if a.type == DOUBLE:
        return _library(builder, "fmod", a, b)
    return builder.fptrunc(_library(builder, "fmod", _widen(builder, a), _widen(builder, b)), a.type)


def _signs_differ(builder: Any, a: Any, b: Any) -> Any:
    zero = constant(a.type, 0.0)
    return builder.xor(builder.fcmp_ordered("<", a, zero), builder.fcmp_ordered("<", b, zero))


def _float_mod(builder: Any, a: Any, b: Any) -> Any:
    """As Python's and NumPy's: the divisor's sign, also on a zero; NaN for a zero divisor."""
    zero = constant(a.type, 0.0)
    rest = _remainder(builder, a, b)
    moved = builder.select(_signs_differ(builder, rest, b), builder.fadd(rest, b), rest)
    return builder.select(builder.fcmp_ordered("==", rest, zero), _call(builder, "llvm.copysign", zero, b), moved)


def _float_floordiv(builder: Any, a: Any, b: Any) -> Any:
    """As Python's and NumPy's; a zero divisor gives what / gives."""
    zero, one, half = (constant(a.type, value) for value in (0.0, 1.0, 0.5))
    rest = _remainder(builder, a, b)
    plain = builder.fdiv(a, b)
    quotient = builder.fdiv(builder.fsub(a, rest), b)
    shift = builder.and_(builder.fcmp_unordered("!=", rest, zero), _signs_differ(builder, rest, b))
    quotient = builder.select(shift, builder.fsub(quotient, one), quotient)
    floored = _call(builder, "llvm.floor", quotient)
    up = builder.fcmp_ordered(">", builder.fsub(quotient, floored), half)
    floored = builder.select(up, builder.fadd(floored, one), floored)
    signed_zero = _call(builder, "llvm.copysign", zero, plain)
    result = builder.select(builder.fcmp_ordered("==", quotient, zero), signed_zero, floored)
    return builder.select(builder.fcmp_ordered("==", b, zero), plain, result)


def _float_power(builder: Any, a: Any, b: Any) -> Any:
    return _library(builder, "pow", a, b)


def _copysign(builder: Any, a: Any, b: Any) -> Any:
    """A NaN's sign is not defined, so it counts as positive."""
    sign = builder.select(builder.fcmp_unordered("uno", b, b), constant(b.type, 1.0), b)
    return _call(builder, "llvm.copysign", a, sign)


def _is_infinite(builder: Any, a: Any) -> Any:
    return builder.fcmp_ordered("==", _call(builder, "llvm.fabs", a), constant(a.type, float("inf")))


def _is_finite(builder: Any, a: Any) -> Any:
    return builder.fcmp_ordered("<", _call(builder, "llvm.fabs", a), constant(a.type, float("inf")))


def _sigmoid(builder: Any, a: Any) -> Any:
    one = constant(a.type, 1.0)
    return builder.fdiv(one, builder.fadd(one, _library(builder, "exp", builder.fneg(a))))


def _reciprocal_root(builder: Any, a: Any) -> Any:
    return builder.fdiv(constant(a.type, 1.0), _call(builder, "llvm.sqrt", a))


def _float_emitters(one: str) -> dict[str, Emitter]:
    found: dict[str, Emitter] = {
        "copy": lambda builder, a: a,
        "neg": _builder_method("fneg"),
        "abs": lambda builder, a: _call(builder, "llvm.fabs", a),
        "min": lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), b, a),
        "max": lambda builder, a, b: builder.select(builder.fcmp_ordered(">", b, a), b, a),
        "mod": _float_mod if one == "f32" else _in_double(_float_mod, one),
        "floordiv": _float_floordiv if one == "f32" else _in_double(_float_floordiv, one),
        "power": _in_double(_float_power, one),
        "pow": _in_double(_float_power, one),
        "less": lambda builder, a, b: builder.fcmp_ordered("<", a, b),
        "less_equal": lambda builder, a, b: builder.fcmp_ordered("<=", a, b),
        "equal": lambda builder, a, b: builder.fcmp_ordered("==", a, b),
        "not_equal": lambda builder, a, b: builder.fcmp_unordered("!=", a, b),
        "isnan": lambda builder, a: builder.fcmp_unordered("uno", a, a),
        "isinf": _is_infinite,
        "isfinite": _is_finite,
        "copysign": _copysign,
        "fmod": _remainder,
        "sigmoid": _in_double(_sigmoid, one),
        "rsqrt": _in_double(_reciprocal_root, one),
        "sqrt": _rounded(lambda builder, a: _call(builder, "llvm.sqrt", a), one),
    }
    for name, method in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("div", "fdiv")):
        found[name] = _rounded(_builder_method(method), one)
    for name, intrinsic in (("fabs", "fabs"), ("floor", "floor"), ("ceil", "ceil"), ("trunc", "trunc"), ("round", "rint")):
        found[name] = functools.partial(_unary_intrinsic, "llvm." + intrinsic)
    for name in machine.LIBRARY_FUNCTIONS:
        if name not in found:
            found[name] = _in_double(functools.partial(_library_function, name), one)
    return found


def _unary_intrinsic(intrinsic: str, builder: Any, a: Any) -> Any:
    return _call(builder, intrinsic, a)


def _library_function(name: str, builder: Any, *arguments: Any) -> Any:
    return _library(builder, name, *arguments)


# Integers


def _signed_floordiv(builder: Any, a: Any, b: Any) -> Any:
    quotient, rest = _divide(builder, a, b)
    zero = constant(a.type, 0)
    below = builder.and_(builder.icmp_signed("!=", rest, zero), builder.icmp_signed("<", builder.xor(rest, b), zero))
    return builder.sub(quotient, builder.zext(below, a.type))


def _signed_mod(builder: Any, a: Any, b: Any) -> Any:
    _, rest = _divide(builder, a, b)
    zero = constant(a.type, 0)
    below = builder.and_(builder.icmp_signed("!=", rest, zero), builder.icmp_signed("<", builder.xor(rest, b), zero))
    return builder.add(rest, builder.select(below, b, zero))


def _divide(builder: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Quotient and rest towards zero. -2**31 // -1 wraps; a zero divisor, an error before, divides by 1 rather than trap."""
    zero, one, minus_one = (constant(a.type, value) for value in (0, 1, -1))
    negated = builder.icmp_signed("==", b, minus_one)
    harmless = builder.or_(negated, builder.icmp_signed("==", b, zero))
    divisor = builder.select(harmless, one, b)
    quotient = builder.sdiv(a, divisor)
    rest = builder.srem(a, divisor)
    return builder.select(negated, builder.sub(zero, a), quotient), rest


def _unsigned_divisor(builder: Any, b: Any) -> Any:
    return builder.select(builder.icmp_unsigned("==", b, constant(b.type, 0)), constant(b.type, 1), b)


def _integer_power(builder: Any, base: Any, exponent: Any) -> Any:
    """By squaring; wraps. The exponent counts as unsigned: a negative one is an error before."""
    form = base.type
    zero, one = constant(form, 0), constant(form, 1)
    before = builder.block
    loop = builder.append_basic_block("power")
    after = builder.append_basic_block("power.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    result, square, left = (builder.phi(form) for _ in range(3))
    odd = builder.icmp_unsigned("!=", builder.and_(left, one), zero)
    next_result = builder.select(odd, builder.mul(result, square), result)
    next_square = builder.mul(square, square)
    next_left = builder.lshr(left, one)
    for phi, start, following in ((result, one, next_result), (square, base, next_square), (left, exponent, next_left)):
        phi.add_incoming(start, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("==", next_left, zero), after, loop)
    builder.position_at_end(after)
    return next_result


def _shift(method: str) -> Emitter:
    def emit_shift(builder: Any, a: Any, amount: Any) -> Any:
        return getattr(builder, method)(a, builder.and_(amount, constant(a.type, a.type.width - 1)))

    return emit_shift


def _compare(relation: str, *, signed: bool) -> Emitter:
    if signed:
        return lambda builder, a, b: builder.icmp_signed(relation, a, b)
    return lambda builder, a, b: builder.icmp_unsigned(relation, a, b)


def _choose(relation: str, *, signed: bool) -> Emitter:
    compare = _compare(relation, signed=signed)
    return lambda builder, a, b: builder.select(compare(builder, b, a), b, a)


def _integer_abs(builder: Any, a: Any) -> Any:
    zero = constant(a.type, 0)
    return builder.select(builder.icmp_signed("<", a, zero), builder.sub(zero, a), a)


def _comparisons(signed: bool) -> dict[str, Emitter]:
    relations = (("less", "<"), ("less_equal", "<="), ("equal", "=="), ("not_equal", "!="))
    return {name: _compare(relation, signed=signed) for name, relation in relations}


def _integer_emitters(one: str) -> dict[str, Emitter]:
    signed = one in SIGNED
    found: dict[str, Emitter] = {
        "copy": lambda builder, a: a,
        "neg": lambda builder, a: builder.sub(constant(a.type, 0), a),
        "abs": _integer_abs if signed else lambda builder, a: a,
        "min": _choose("<", signed=signed),
        "max": _choose(">", signed=signed),
        "floordiv": _signed_floordiv if signed else lambda builder, a, b: builder.udiv(a, _unsigned_divisor(builder, b)),
        "mod": _signed_mod if signed else lambda builder, a, b: builder.urem(a, _unsigned_divisor(builder, b)),
        "power": _integer_power,
        "invert": lambda builder, a: builder.xor(a, constant(a.type, -1)),
        "shift_left": _shift("shl"),
        "shift_right": _shift("ashr" if signed else "lshr"),
        "popcount": lambda builder, a: _call(builder, "llvm.ctpop", a),
        "clz": lambda builder, a: _call(builder, "llvm.ctlz", a, constant(BOOL, 0)),
    }
    for name in ("add", "sub", "mul"):
        found[name] = _builder_method(name)
    for name, method in (("and", "and_"), ("or", "or_"), ("xor", "xor")):
        found[name] = _builder_method(method)
    return found | _comparisons(signed)


def _bool_emitters() -> dict[str, Emitter]:
    return {
        "copy": lambda builder, a: a,
        "not": lambda builder, a: builder.xor(a, constant(a.type, 1)),
        "and": _builder_method("and_"),
        "or": _builder_method("or_"),
        "xor": _builder_method("xor"),
    } | _comparisons(signed=False)


# Conversions


def _saturate(builder: Any, value: Any, target: str) -> Any:
    """float32 to integer: cut, held at the ends of the range; NaN gives 0."""
    form = REGISTER_FORMS[target]
    kind = "fptosi" if target in SIGNED else "fptoui"
    function = builder.module.declare_intrinsic(f"llvm.{kind}.sat", [form, FLOAT], ir.FunctionType(form, [FLOAT]))
    return builder.call(function, [value])


def _convert(source: str, target: str) -> Emitter:
    if source == target or (source, target) == ("f16", "f32"):
        return lambda builder, a: a
    if target == "bool":
        if source in FLOATS:
            return lambda builder, a: builder.fcmp_unordered("!=", a, constant(a.type, 0.0))
        return lambda builder, a: builder.icmp_unsigned("!=", a, constant(a.type, 0))
    if source in FLOATS:
        if target == "f16":
            return halves.round_to_half
        return lambda builder, a: _saturate(builder, a, target)
    to_float = "sitofp" if source in SIGNED else "uitofp"
    if target == "f32":
        return lambda builder, a: getattr(builder, to_float)(a, alike(a.type, FLOAT))
    if target == "f16":  # float64 holds every integer below the largest half exactly
        return lambda builder, a: halves.narrow_double(builder, getattr(builder, to_float)(a, DOUBLE))
    if source == "bool" or WIDTH[source] < WIDTH[target]:
        extend = "sext" if source in SIGNED else "zext"
        return lambda builder, a: getattr(builder, extend)(a, alike(a.type, REGISTER_FORMS[target]))
    if WIDTH[source] > WIDTH[target]:
        return lambda builder, a: builder.trunc(a, alike(a.type, REGISTER_FORMS[target]))
    return lambda builder, a: a


def _wrap(width: int, *, signed: bool) -> Emitter:
    def emit_wrap(builder: Any, a: Any) -> Any:
        narrow = builder.trunc(a, alike(a.type, ir.IntType(width)))
        return builder.sext(narrow, a.type) if signed else builder.zext(narrow, a.type)

    return emit_wrap


@functools.cache
def emitters() -> dict[str, Emitter]:
    """How to write each operation of `SIGNATURES`."""
    found = {f"wrap_{sign}{width}": _wrap(width, signed=sign == "i") for sign in "iu" for width in (8, 16)}
    for one in FLOATS:
        found |= {f"{name}_{one}": emitter for name, emitter in _float_emitters(one).items()}
    for one in INTEGERS:
        found |= {f"{name}_{one}": emitter for name, emitter in _integer_emitters(one).items()}
    found |= {f"{name}_bool": emitter for name, emitter in _bool_emitters().items()}
    found |= {f"{target}_from_{source}": _convert(source, target) for source in REGISTERS for target in REGISTERS}
    assert found.keys() == SIGNATURES.keys(), found.keys() ^ SIGNATURES.keys()
    return found


def emit(builder: Any, name: str, arguments: Sequence[Any]) -> Any:
    """Write the operation `name` and return its result."""
    return emitters()[name](builder, *arguments)


def emit_floating_fault(builder: Any, name: str, mask: Any, result: Any, arguments: Sequence[Any]) -> Any:
    """`pypoplar.codelet.ir.operations.floating_fault` as instructions: the fault's code as an ``i64``, `NO_FAULT` for none."""
    word = ir.IntType(64)

    def code(condition: Any, raised: int, fault: int) -> Any:
        asked = builder.icmp_unsigned("!=", builder.and_(mask, constant(word, raised)), constant(word, 0))
        return builder.select(builder.and_(condition, asked), constant(word, fault), constant(word, NO_FAULT))

    numbers = finite = constant(BOOL, 1)
    for one in arguments:
        if one.type == FLOAT:
            numbers = builder.and_(numbers, builder.fcmp_ordered("ord", one, one))
            finite = builder.and_(finite, _is_finite(builder, one))
    invalid = builder.and_(numbers, builder.fcmp_unordered("uno", result, result))
    infinite = builder.and_(finite, _is_infinite(builder, result))
    pole = constant(BOOL, 0)
    if (kind := name.rpartition("_")[0]) in POLES:
        argument, point = POLES[kind]
        pole = builder.fcmp_ordered("==", arguments[argument], constant(FLOAT, point))
    by_zero = code(builder.and_(infinite, pole), FloatingPoint.DIVISION_BY_ZERO, FaultCode.DIVISION_BY_ZERO)
    beyond = code(builder.and_(infinite, builder.not_(pole)), FloatingPoint.OVERFLOW, FaultCode.OVERFLOW)
    return builder.or_(code(invalid, FloatingPoint.INVALID, FaultCode.INVALID), builder.or_(by_zero, beyond))


def is_lanewise(name: str) -> bool:
    """Whether an operation may be written for vectors as it is for single values: it needs no loop and no library."""
    kind, _, type = name.rpartition("_")
    if kind.endswith("_from"):
        return not (type in FLOATS and kind[:3] in ("i32", "u32", "i64", "u64")) and not (kind[:3] == "f16" and type != "f32")
    if type in INTEGERS:
        return kind not in ("floordiv", "mod", "power", "popcount", "clz")
    return kind not in machine.LIBRARY_FUNCTIONS and kind not in ("floordiv", "mod", "power", "sigmoid", "rsqrt")


def module_of(name: str) -> str:
    """LLVM's text of a module with one function: the operation, called by its name from C."""
    arguments, result = SIGNATURES[name]
    module = ir.Module(name)
    forms = [ir.IntType(8) if one == "bool" else REGISTER_FORMS[one] for one in (*arguments, result)]
    function = ir.Function(module, ir.FunctionType(forms[-1], forms[:-1]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    values = [builder.trunc(one, BOOL) if kind == "bool" else one for one, kind in zip(function.args, arguments, strict=True)]
    made = emit(builder, name, values)
    builder.ret(builder.zext(made, ir.IntType(8)) if result == "bool" else made)
    return str(module)
