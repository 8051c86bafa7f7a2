"""What the operations on elements mean, in NumPy and SciPy: functions of arrays of one type."""

import math
from typing import Any

import numpy as np

from pypoplar.popops.elements.element_operations import OPERATIONS
from pypoplar.types import FLOAT, HALF


def _each(function: Any) -> Any:
    return np.vectorize(function, otypes=[np.float64])


def _cut(a: Any, b: Any) -> Any:
    """The quotient of integers cut towards 0."""
    quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    return np.array([quotient if quotient <= np.iinfo(a.dtype).max else np.iinfo(a.dtype).min for quotient in quotients], a.dtype)


def _zeros(a: Any) -> Any:
    return np.array([32 - int(x % 2**32).bit_length() for x in a.tolist()])


REFERENCES = {  # in float64 for floats, in Python's integers or the type's own for integers
    "ABSOLUTE": np.abs,
    "ASIN": np.arcsin,
    "BITWISE_NOT": np.invert,
    "CBRT": np.cbrt,
    "CEIL": np.ceil,
    "COS": np.cos,
    "COUNT_LEADING_ZEROS": _zeros,
    "ERF": _each(math.erf),
    "EXPONENT": np.exp,
    "EXPONENT_MINUS_ONE": np.expm1,
    "EXPONENT2": np.exp2,
    "FLOOR": np.floor,
    "GELU_ERF": lambda a: 0.5 * a * (1 + _each(math.erf)(a / math.sqrt(2))),
    "INVERSE": lambda a: 1 / a,
    "IS_FINITE": np.isfinite,
    "IS_INF": np.isinf,
    "IS_NAN": np.isnan,
    "LOGARITHM": np.log,
    "LOGARITHM_ONE_PLUS": np.log1p,
    "LOGICAL_NOT": np.logical_not,
    "NEGATE": np.negative,
    "NEARBY_INT": np.rint,
    "POPCOUNT": lambda a: np.array([int(x % 2**32).bit_count() for x in a.tolist()]),
    "RELU": lambda a: np.maximum(a, 0),
    "ROUND": lambda a: np.trunc(a) + np.where(np.abs(a - np.trunc(a)) >= 0.5, np.copysign(1.0, a), 0.0),
    "RSQRT": lambda a: 1 / np.sqrt(a),
    "SIGMOID": lambda a: 1 / (1 + np.exp(-a)),
    "SIGNUM": np.sign,
    "SIN": np.sin,
    "SQRT": lambda a: np.sqrt(a.astype(np.float64)),
    "SQUARE": np.square,
    "TAN": np.tan,
    "TANH": np.tanh,
    "TRUNC": np.trunc,
    "ADD": np.add,
    "ATAN2": np.arctan2,
    "BITWISE_AND": np.bitwise_and,
    "BITWISE_OR": np.bitwise_or,
    "BITWISE_XOR": np.bitwise_xor,
    "BITWISE_XNOR": lambda a, b: np.invert(a ^ b),
    "DIVIDE": lambda a, b: a / b if a.dtype.kind == "f" else _cut(a, b),
    "EQUAL": np.equal,
    "GREATER_THAN_EQUAL": np.greater_equal,
    "GREATER_THAN": np.greater,
    "INV_STD_DEV_TO_VARIANCE": lambda a, b: 1 / (a * a) - b,
    "LESS_THAN_EQUAL": np.less_equal,
    "LESS_THAN": np.less,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MULTIPLY": np.multiply,
    "NOT_EQUAL": np.not_equal,
    "POWER": np.power,
    "REMAINDER": np.fmod,
    "SHIFT_LEFT": np.left_shift,
    "SHIFT_RIGHT": lambda a, b: (a.view(f"u{a.itemsize}") >> b.view(f"u{b.itemsize}")).view(a.dtype),
    "SHIFT_RIGHT_SIGN_EXTEND": np.right_shift,
    "SUBTRACT": np.subtract,
    "VARIANCE_TO_INV_STD_DEV": lambda a, b: 1 / np.sqrt(a + b),
    "CLAMP": lambda a, b, c: np.minimum(np.maximum(a, b), c),
    "SELECT": lambda a, b, c: np.where(c, a, b),
}
assert REFERENCES.keys() == OPERATIONS.keys()
TOLERANCE = {FLOAT: 3e-6, HALF: 2.0**-10}  # relative, of one rounding and the function; PopLibs' own are 1e-5 and more
STEPS = {"INV_STD_DEV_TO_VARIANCE": 8, "VARIANCE_TO_INV_STD_DEV": 4, "GELU_ERF": 4}  # several roundings


POSITIVE = ("LOGARITHM", "SQRT", "RSQRT", "LOGARITHM_ONE_PLUS", "POWER", "VARIANCE_TO_INV_STD_DEV", "INV_STD_DEV_TO_VARIANCE")
CLASSES = ("IS_FINITE", "IS_INF", "IS_NAN")
DIVISIONS = ("DIVIDE", "INVERSE", "REMAINDER")


def operands(row: Any, type: Any, size: Any, random: Any) -> Any:
    """Values on which an operation is defined, of every operand."""
    make = {"f": _floats, "b": _bools}.get(type.dtype.kind, _integers)
    values = [np.asarray(value).astype(type.dtype) for value in make(row, type.dtype, size, random)]
    if row.relation and row.operands == 2:
        values[1][::2] = values[0][::2]
    if row.name == "SELECT":
        values[2] = random.integers(0, 2, size).astype(bool)
    return values


def _bools(row: Any, dtype: Any, size: Any, random: Any) -> Any:
    return [random.integers(0, 2, size) for _ in range(row.operands)]


def _floats(row: Any, dtype: Any, size: Any, random: Any) -> Any:
    values = [random.standard_normal(size) * 3 for _ in range(row.operands)]
    if row.name == "ASIN":
        values = [np.tanh(value) for value in values]
    if row.name in POSITIVE:
        values = [np.abs(value) + 0.25 for value in values]
    if row.name in DIVISIONS:
        values[-1] = np.copysign(np.abs(values[-1]) + 0.25, values[-1])
    if row.name in CLASSES:
        values[0][::3], values[0][1::3] = np.inf, np.nan
    return values


def _integers(row: Any, dtype: Any, size: Any, random: Any) -> Any:
    if row.name == "POWER":
        return [random.integers(-9, 10, size), random.integers(0, 8, size)]
    if row.name == "SQRT":
        return [random.integers(0, 10**6, size)]
    limits = np.iinfo(dtype)
    values = [random.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True) for _ in range(row.operands)]
    if row.name.startswith("SHIFT"):
        values[1] = random.integers(0, 8 * dtype.itemsize, size)
    if row.name in DIVISIONS:
        values[1][values[1] == 0] = 1
        values[1][::2] = random.integers(1, 9, len(values[1][::2]))
    return values


def expected(row: Any, type: Any, values: Any) -> Any:
    """What an operation gives, before it is rounded to the type for floats."""
    with np.errstate(all="ignore"):
        wide = [value.astype(np.float64) if value.dtype.kind == "f" else value for value in values]
        result = REFERENCES[row.name](*wide)
        if type in (FLOAT, HALF) or row.relation:
            return result
        return np.asarray(result).astype(np.float64 if row.name == "SQRT" else type.dtype).astype(type.dtype)
