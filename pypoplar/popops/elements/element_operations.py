"""The operations on elements, a row for each: names, types, device code, flops. Functions, codelets and costs are made from it.

Names are PopLibs': that of the enum (``"EXPONENT"``), of the function (``exp``) and of the class in `popops.expr` (``Exp``).
Device code is an expression of ``{a}``, ``{b}`` and ``{c}``, operands of one type that is ``{T}``; each result is one of that type,
rounded or wrapped, so that a fused tree gives the bits of the calls that it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pypoplar.types import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    ElementType,
)

Types = tuple[ElementType, ...]
FLOATS: Types = (FLOAT, HALF)
BASIC: Types = (FLOAT, HALF, INT, UNSIGNED_INT)
SIGNED: Types = (FLOAT, HALF, INT, LONGLONG)
NUMBERS: Types = (FLOAT, HALF, INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG)
INTEGERS: Types = (INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG)
BITS: Types = (*INTEGERS, SHORT, UNSIGNED_SHORT)
WORDS: Types = (INT, UNSIGNED_INT)
ORDERED: Types = (*NUMBERS, BOOL)
EVERY: Types = (*ORDERED, SHORT, UNSIGNED_SHORT)
SELECTED: Types = (*EVERY, SIGNED_CHAR, UNSIGNED_CHAR)


@frozen
class ElementOperation:
    """A row. `by_type` has the device code of types for which it differs; a `relation` gives BOOL.

    `in_file` are the types for which codelets/popops_elementwise.py has the vertices `popops::BinaryOp1D` and `BinaryOp1DInPlace`.
    """

    name: str
    function: str
    symbol: str
    operands: int
    types: Types
    code: str
    meaning: str
    by_type: Mapping[ElementType, str] = {}
    relation: bool = False
    flops: int = 1
    commutes: bool = False
    in_file: Types = ()

    def result(self, type: ElementType) -> ElementType:
        """The type of the result for operands of a type."""
        return BOOL if self.relation else type

    def text(self, type: ElementType, operands: tuple[str, ...]) -> str:
        """Device code for operands of a type, each an expression that is a name or stands in brackets."""
        names = dict(zip("abc", operands, strict=False))
        text = self.by_type.get(type, self.code).format(T=type.__name__, **names)
        narrow = type in (SHORT, UNSIGNED_SHORT) and not self.relation
        return f"{type.__name__}({text})" if narrow else text


def _unary(name: str, function: str, symbol: str, types: Types, code: str, meaning: str, **more: object) -> ElementOperation:
    return ElementOperation(name, function, symbol, 1, types, code, meaning, **more)  # type: ignore[arg-type]


def _binary(name: str, function: str, symbol: str, types: Types, code: str, meaning: str, **more: object) -> ElementOperation:
    return ElementOperation(name, function, symbol, 2, types, code, meaning, **more)  # type: ignore[arg-type]


def _same(code: str, *types: ElementType) -> dict[ElementType, str]:
    return dict.fromkeys(types, code)


def _helper(function: str) -> dict[str, object]:
    """A unary function on floats of `HELPERS`, which takes and gives FLOAT."""
    return {"code": f"{function}({{a}})", "by_type": {HALF: f"HALF({function}(float({{a}})))"}}


UNARY = (
    _unary("ABSOLUTE", "abs", "Abs", SIGNED, "abs({a})", "|a|"),
    _unary("ASIN", "asin", "Asin", FLOATS, "math.asin({a})", "the arc sine of a"),
    _unary("BITWISE_NOT", "bitwiseNot", "BitwiseNot", BITS, "~{a}", "the bits of a inverted", flops=0),
    _unary("CBRT", "cbrt", "Cbrt", FLOATS, meaning="the cube root of a", **_helper("cube_root")),  # type: ignore[arg-type]
    _unary("CEIL", "ceil", "Ceil", FLOATS, "math.ceil({a})", "a rounded up"),
    _unary("COS", "cos", "Cos", FLOATS, "math.cos({a})", "the cosine of a"),
    _unary("COUNT_LEADING_ZEROS", "countLeadingZeros", "", WORDS, "ipu.clz({a})", "the leading zero bits of a", flops=0),
    _unary("ERF", "erf", "Erf", FLOATS, "math.erf({a})", "the error function of a"),
    _unary("EXPONENT", "exp", "Exp", FLOATS, "math.exp({a})", "e to the a"),
    _unary("EXPONENT_MINUS_ONE", "expm1", "Expm1", FLOATS, "math.expm1({a})", "e to the a, minus 1"),
    _unary("EXPONENT2", "exp2", "Exp2", FLOATS, "ipu.exp2({a})", "2 to the a"),
    _unary("FLOOR", "floor", "Floor", FLOATS, "math.floor({a})", "a rounded down"),
    _unary("GELU_ERF", "geluErf", "GeluErf", FLOATS, meaning="a times the normal distribution's share below a",
           **_helper("gelu_erf")),  # type: ignore[arg-type]
    _unary("INVERSE", "inv", "Inv", FLOATS, "{T}(1.0) / {a}", "1 / a"),
    _unary("IS_FINITE", "isFinite", "IsFinite", FLOATS, "math.isfinite({a})", "whether a is finite", relation=True),
    _unary("IS_INF", "isInf", "IsInf", FLOATS, "math.isinf({a})", "whether a is infinite", relation=True),
    _unary("IS_NAN", "isNaN", "IsNaN", FLOATS, "math.isnan({a})", "whether a is NaN", relation=True),
    _unary("LOGARITHM", "log", "Log", FLOATS, "math.log({a})", "the natural logarithm of a"),
    _unary("LOGARITHM_ONE_PLUS", "log1p", "Log1p", FLOATS, "math.log1p({a})", "the natural logarithm of 1 + a"),
    _unary("LOGICAL_NOT", "logicalNot", "Not", (BOOL,), "not {a}", "not a", relation=True, flops=0),
    _unary("NEGATE", "neg", "Neg", SIGNED, "-{a}", "-a"),
    _unary("NEARBY_INT", "nearbyint", "NearbyInt", FLOATS, "round({a})", "a rounded to the nearest integer, halves to even"),
    _unary("POPCOUNT", "popcount", "", WORDS, "ipu.popcount({a})", "how many bits of a are set", flops=0),
    _unary("RELU", "relu", "", FLOATS, "max({a}, {T}(0.0))", "a, or 0 where it is negative"),
    _unary("ROUND", "round", "Round", FLOATS, meaning="a rounded to the nearest integer, halves away from 0",
           **_helper("rounded_away")),  # type: ignore[arg-type]
    _unary("RSQRT", "rsqrt", "Rsqrt", FLOATS, "ipu.rsqrt({a})", "1 over the square root of a"),
    _unary("SIGMOID", "sigmoid", "Sigmoid", FLOATS, "ipu.sigmoid({a})", "1 / (1 + exp(-a))"),
    _unary("SIGNUM", "signum", "Signum", (FLOAT, HALF, INT), meaning="-1, 0 or 1: the sign of a", code="signum({a})",
           by_type={HALF: "HALF(signum(float({a})))", INT: "signum_of_int({a})"}),
    _unary("SIN", "sin", "Sin", FLOATS, "math.sin({a})", "the sine of a"),
    _unary("SQRT", "sqrt", "Sqrt", (FLOAT, HALF, INT), "math.sqrt({a})", "the square root of a",
           by_type={INT: "int(math.sqrt(float({a})))"}),
    _unary("SQUARE", "square", "Square", BASIC, "{a} * {a}", "a * a"),
    _unary("TAN", "tan", "Tan", FLOATS, "math.tan({a})", "the tangent of a"),
    _unary("TANH", "tanh", "Tanh", FLOATS, "math.tanh({a})", "the hyperbolic tangent of a"),
    _unary("TRUNC", "trunc", "Trunc", FLOATS, "math.trunc({a})", "a rounded towards 0"),
)  # fmt: skip
BINARY = (
    _binary("ADD", "add", "Add", NUMBERS, "{a} + {b}", "a + b", commutes=True, in_file=BASIC),
    _binary("ATAN2", "atan2", "Atan2", FLOATS, "math.atan2({a}, {b})", "the angle of the point (b, a)"),
    _binary("BITWISE_AND", "bitwiseAnd", "BitwiseAnd", BITS, "{a} & {b}", "the bits set in both a and b", flops=0, commutes=True),
    _binary("BITWISE_OR", "bitwiseOr", "BitwiseOr", BITS, "{a} | {b}", "the bits set in a or b", flops=0, commutes=True),
    _binary("BITWISE_XOR", "bitwiseXor", "BitwiseXor", BITS, "{a} ^ {b}", "the bits in which a and b differ", flops=0,
            commutes=True),
    _binary("BITWISE_XNOR", "bitwiseXnor", "BitwiseXnor", BITS, "~({a} ^ {b})", "the bits in which a and b agree", flops=0,
            commutes=True),
    _binary("DIVIDE", "div", "Divide", NUMBERS, "{a} / {b}", "a / b, of integers cut towards 0", in_file=FLOATS,
            by_type=_same("quotient({a}, {b})", INT, LONGLONG) | _same("{a} // {b}", UNSIGNED_INT, UNSIGNED_LONGLONG)),
    _binary("EQUAL", "eq", "Equal", EVERY, "{a} == {b}", "whether a is b", relation=True, commutes=True),
    _binary("GREATER_THAN_EQUAL", "gteq", "Gte", ORDERED, "{a} >= {b}", "whether a is at least b", relation=True,
            by_type={BOOL: "{a} or not {b}"}),
    _binary("GREATER_THAN", "gt", "Gt", ORDERED, "{a} > {b}", "whether a is more than b", relation=True,
            by_type={BOOL: "{a} and not {b}"}),
    _binary("INV_STD_DEV_TO_VARIANCE", "invStdDevToVariance", "InvStdDevToVariance", FLOATS, "{T}(1.0) / ({a} * {a}) - {b}",
            "1 / a^2 - b", flops=2),
    _binary("LESS_THAN_EQUAL", "lteq", "Lte", ORDERED, "{a} <= {b}", "whether a is at most b", relation=True,
            by_type={BOOL: "{b} or not {a}"}),
    _binary("LESS_THAN", "lt", "Lt", ORDERED, "{a} < {b}", "whether a is less than b", relation=True,
            by_type={BOOL: "{b} and not {a}"}),
    _binary("LOGICAL_AND", "logicalAnd", "And", (BOOL,), "{a} and {b}", "whether both a and b hold", relation=True, commutes=True),
    _binary("LOGICAL_OR", "logicalOr", "Or", (BOOL,), "{a} or {b}", "whether a or b holds", relation=True, commutes=True),
    _binary("MAXIMUM", "max", "Max", NUMBERS, "max({a}, {b})", "the larger of a and b; a unless b is larger", in_file=BASIC),
    _binary("MINIMUM", "min", "Min", NUMBERS, "min({a}, {b})", "the smaller of a and b; a unless b is smaller", in_file=BASIC),
    _binary("MULTIPLY", "mul", "Mul", NUMBERS, "{a} * {b}", "a * b", commutes=True, in_file=BASIC),
    _binary("NOT_EQUAL", "neq", "NotEqual", EVERY, "{a} != {b}", "whether a differs from b", relation=True, commutes=True),
    _binary("POWER", "pow", "Pow", (FLOAT, HALF, INT), "{a} ** {b}", "a to the b"),
    _binary("REMAINDER", "rem", "Rem", NUMBERS, "math.fmod({a}, {b})", "what is left of a, with its sign, after the division by b",
            by_type=_same("remainder({a}, {b})", INT, LONGLONG) | _same("{a} % {b}", UNSIGNED_INT, UNSIGNED_LONGLONG), flops=3),
    _binary("SHIFT_LEFT", "shiftLeft", "Shl", INTEGERS, "{a} << {b}", "the bits of a moved up by b", flops=0),
    _binary("SHIFT_RIGHT", "shiftRight", "Shr", INTEGERS, "{a} >> {b}", "the bits of a moved down by b, zeros behind them", flops=0,
            by_type={INT: "INT(UNSIGNED_INT({a}) >> {b})", LONGLONG: "LONGLONG(UNSIGNED_LONGLONG({a}) >> {b})"}),
    _binary("SHIFT_RIGHT_SIGN_EXTEND", "shiftRightSignExtend", "ShrSE", (INT, LONGLONG), "{a} >> {b}",
            "the bits of a moved down by b, the sign behind them", flops=0),
    _binary("SUBTRACT", "sub", "Sub", NUMBERS, "{a} - {b}", "a - b", in_file=BASIC),
    _binary("VARIANCE_TO_INV_STD_DEV", "varianceToInvStdDev", "VarianceToInvStdDev", FLOATS, "ipu.rsqrt({a} + {b})",
            "1 over the square root of a + b", flops=2),
)  # fmt: skip
TERNARY = (
    ElementOperation("CLAMP", "clamp", "Clamp", 3, BASIC, "min(max({a}, {b}), {c})",
                     "a held between b and c", flops=2),
    ElementOperation("SELECT", "select", "Select", 3, SELECTED, "{a} if {c} else {b}", "a where c holds, else b", flops=0),
)  # fmt: skip
OPERATIONS: Mapping[str, ElementOperation] = {row.name: row for row in (*UNARY, *BINARY, *TERNARY)}

HELPERS: Mapping[str, str] = {
    "cube_root": """
def cube_root(x):
    size = abs(x)
    if size == 0.0 or not math.isfinite(size):
        return x
    root = size ** 0.33333334
    root = root - (root * root * root - size) / (3.0 * root * root)
    return math.copysign(root, x)
""",
    "gelu_erf": """
def gelu_erf(x):
    return 0.5 * x * math.erfc(x * -0.7071067811865475)
""",
    "quotient": """
def quotient(a, b):
    whole = a // b
    if whole < 0 and whole * b != a:
        whole += 1
    return whole
""",
    "remainder": """
def remainder(a, b):
    rest = a % b
    if rest != 0 and (a < 0) != (b < 0):
        rest -= b
    return rest
""",
    "rounded_away": """
def rounded_away(x):
    whole = math.trunc(x)
    if abs(x - whole) >= 0.5:
        whole += math.copysign(1.0, x)
    return whole
""",
    "signum": """
def signum(x):
    if x > 0.0:
        return 1.0
    if x < 0.0:
        return -1.0
    return 0.0
""",
    "signum_of_int": """
def signum_of_int(x):
    if x > 0:
        return 1
    if x < 0:
        return -1
    return 0
""",
}
"""Device functions that the operations' code calls, by name."""
