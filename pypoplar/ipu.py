"""What device code has besides Python and `math`: functions of the hardware, the cycle counter, random numbers, debugging.

    from pypoplar import ipu

    class Dropout(Vertex):
        x: InOut[Vector[FLOAT]]
        rate: FLOAT

        def compute(self):
            for i in range(len(self.x)):
                if ipu.random_float() < self.rate:
                    self.x[i] = 0.0

In a codelet these are the device's. Called on the host, for instance in a test of a helper function, they compute in
Python's numbers; `cycle_count` alone needs the device.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence, Sized
from typing import Any, TypeVar

import numpy as np

from pypoplar.errors import ApplicationRuntimeError, CodeletRuntimeError, PoplarTypeError, TensorShapeError

RecordType = TypeVar("RecordType")

WORD = 8  # bytes that a worker loads at once


def debug_print(text: object, *values: object) -> None:
    """Print a text and numbers, at no cost in cycles. In device code ``print`` does the same.

    Parameters
    ----------
    text:
        A constant, an f-string or a number.
    values:
        What follows it, with spaces between.
    """
    print(text, *values)


def check(condition: object, message: str = "check failed") -> None:
    """Stop the vertex if a condition is false.

    Parameters
    ----------
    condition:
        Anything that is true or false.
    message:
        A constant: what the error says.

    Raises
    ------
    CodeletRuntimeError
        If the condition is false; in device code `Engine.run` raises it.
    """
    if not condition:
        raise CodeletRuntimeError(message)


def cycle_count() -> int:
    """The cycle counter of the model, an UNSIGNED_INT that wraps: cycles since `Engine.load`, those of this vertex included.

    Every vertex counts from where its compute set's vertices start, after sync and exchange, also one that waits for a free worker.
    """
    raise ApplicationRuntimeError("ipu.cycle_count() counts the device's cycles: call it in a codelet")


def worker_count() -> int:
    """The worker threads of the tile: 6 on every chip, 1 on a CPU. On the host it is 6."""
    return 6


def worker_range(worker: int, of: int | Sized) -> range:
    """The indices that one worker takes of a vector, or of so many: ``for i in ipu.worker_range(worker, self.out):``.

    The workers of a MultiVertex together take all of them, each one piece, of equal sizes but for the end. In device code it
    stands in a ``for`` only.

    Parameters
    ----------
    worker:
        The worker's number, which ``compute`` has as parameter.
    of:
        A vector, of which each worker takes whole words of 8 bytes, 2 FLOATs or 4 HALFs, so that no two workers write into one
        word; or a number.

    Returns
    -------
    range
        Indices of the vector, or numbers below `of`, ascending.

    Examples
    --------
    >>> from pypoplar import ipu
    >>> [ipu.worker_range(worker, 8) for worker in (0, 1, 3, 4)]
    [range(0, 2), range(2, 4), range(6, 8), range(8, 8)]
    """
    count = int(of) if isinstance(of, int | np.integer) else len(of)
    grain = max(WORD // of.dtype.itemsize, 1) if isinstance(of, np.ndarray) else 1
    share = -(-count // (worker_count() * grain)) * grain
    return range(worker * share, min((worker + 1) * share, count))


def random_uint() -> int:
    """A random UNSIGNED_INT: the upper half of the next 64 bits of the worker's xoroshiro128aox; see `pypoplar.setSeed`."""
    return random.getrandbits(32)


def random_ulonglong() -> int:
    """A random UNSIGNED_LONGLONG: the next 64 bits of the worker's generator."""
    return random.getrandbits(64)


def random_float() -> float:
    """A random FLOAT, uniform in [0, 1): the upper 24 of the next 64 bits of the worker's generator, over 2**24."""
    return random.getrandbits(24) * 2.0**-24


def bit_cast(x: Any, type: Any) -> Any:
    """The bits of a number as a number of another type of the same size: ``ipu.bit_cast(x, INT)`` of a FLOAT, and back.

    FLOAT goes with INT and UNSIGNED_INT, HALF with SHORT and UNSIGNED_SHORT, an integer with that of the other sign.

    Parameters
    ----------
    x:
        A number. On the host a float has the size of `type`.
    type:
        The type of the result.

    Returns
    -------
    Any
        The number that has the bits of `x`; of a NaN 0x7FC00000, or 0x7E00 for a HALF, whatever its bits.

    Raises
    ------
    PoplarTypeError
        On the host, if no float has the size of `type`; in device code other sizes are a `CodeletError`.

    Examples
    --------
    >>> from pypoplar import INT, ipu
    >>> hex(ipu.bit_cast(1.0, INT))
    '0x3f800000'
    """
    wanted = type.dtype
    bits = np.dtype(f"u{wanted.itemsize}")
    if not isinstance(x, float | np.floating):
        pattern = np.array([int(x) % (1 << 8 * bits.itemsize)], bits)
    elif bits.itemsize in (2, 4):
        pattern = np.array([math.nan if x != x else x], f"f{bits.itemsize}").view(bits)
    else:
        raise PoplarTypeError(f"ipu.bit_cast takes types of one size: no float has the {bits.itemsize} bytes of {type!r}")
    return pattern.view(wanted)[0].item()


def array(type: Any, length: int) -> Any:
    """Working memory for as long as the function runs that declares it: ``ipu.array(FLOAT, 16)``.

    It lies on the worker's stack and holds nothing yet: floats are NaN, integers have all bits set.

    Parameters
    ----------
    type:
        The type of its elements.
    length:
        Their number, a constant of at least 1.

    Returns
    -------
    Any
        In device code a vector, on the host a NumPy array.

    Raises
    ------
    TensorShapeError
        If the length is less than 1.
    """
    if length < 1:
        raise TensorShapeError(f"a scratch array has at least 1 element, got {length}")
    return np.full(length * type.dtype.itemsize, 0xFF, np.uint8).view(type.dtype)


def view(vector: Any, record: type[RecordType]) -> Sequence[RecordType]:
    """The bytes of a vector of chars as records: ``ipu.view(self.bytes[begin:end], Ray)``.

    On the host NumPy does it: ``array.view(Ray.dtype)``.

    Parameters
    ----------
    vector:
        Whole records, which begin where such a record may lie, at a multiple of its alignment.
    record:
        A class of records, see `Record`.

    Returns
    -------
    Sequence[RecordType]
        In device code a vector of records over the same bytes.

    Raises
    ------
    ApplicationRuntimeError
        On the host.
    CodeletRuntimeError
        At the end of the run, if the bytes are no whole records or begin elsewhere.
    """
    raise ApplicationRuntimeError("ipu.view() sees a tile's memory: call it in a codelet; on the host write array.view(Ray.dtype)")


def multiply_accumulate(  # noqa: PLR0913 - a product of matrices has three sizes and three strides
    out: Any,
    a: Any,
    b: Any,
    rows: int,
    depth: int,
    columns: int,
    out_stride: int | None = None,
    a_stride: int | None = None,
    b_stride: int | None = None,
) -> None:
    """The matrix unit: ``out[r][j] += sum over p of a[r][p] * b[p][j]``, for `rows` times `columns` elements.

    The matrices lie row by row in vectors; a part of a vector, ``self.out[begin:]``, is one that begins later. On the host the
    vectors are NumPy's arrays.

    Products and sums are taken in FLOAT, and each element's products are added in order of p to what it holds: products of
    halves are exact, those of floats are rounded before they are added, and where `out` has HALFs the sum is rounded once.
    Elements are done row by row; where `out` shares some with `a` or `b`, later ones see what earlier ones have become.

    Parameters
    ----------
    out:
        FLOATs, or HALFs if `a` and `b` have HALFs.
    a:
        FLOATs or HALFs.
    b:
        Elements of the type of `a`.
    rows:
        Rows of `out` and `a`; where a count is 0, nothing changes.
    depth:
        Columns of `a`, and rows of `b`.
    columns:
        Columns of `out` and `b`.
    out_stride:
        Elements from the begin of a row of `out` to the next, at least `columns`, which is the default.
    a_stride:
        The same of `a`, by default `depth`.
    b_stride:
        The same of `b`, by default `columns`.

    Raises
    ------
    CodeletIndexError
        In device code, at the end of the run: for what lies outside of a vector, a negative count or stride, and an
        `out_stride` below `columns`.
    """
    far, of_a, of_b = (
        natural if stride is None else stride for stride, natural in ((out_stride, columns), (a_stride, depth), (b_stride, columns))
    )
    for r in range(rows if columns else 0):
        for j in range(columns):
            total = np.float32(out[r * far + j])
            for p in range(depth):
                total += np.float32(a[r * of_a + p]) * np.float32(b[p * of_b + j])
            out[r * far + j] = total


def sqrt(x: float) -> float:
    """The square root of a number; in device code NaN of a negative one.

    Parameters
    ----------
    x:
        A FLOAT or HALF.

    Returns
    -------
    float
        Of its type, rounded once.

    Raises
    ------
    ValueError
        On the host, of a negative number.
    """
    return math.sqrt(x)


def rsqrt(x: float) -> float:
    """One over the square root of a number; in device code infinity of 0, NaN of a negative one.

    Parameters
    ----------
    x:
        A FLOAT or HALF.

    Returns
    -------
    float
        Of its type, computed in float64 and rounded once.

    Raises
    ------
    ValueError, ZeroDivisionError
        On the host, of a negative number and of 0.
    """
    return 1.0 / math.sqrt(x)


def exp(x: float) -> float:
    """e to the power of a number; in device code infinity where that is too large.

    Parameters
    ----------
    x:
        A FLOAT or HALF.

    Returns
    -------
    float
        Of its type, computed in float64 and rounded once.

    Raises
    ------
    OverflowError
        On the host, where float64 cannot hold it.
    """
    return math.exp(x)


def exp2(x: float) -> float:
    """2 to the power of a number; in device code infinity where that is too large.

    Parameters
    ----------
    x:
        A FLOAT or HALF.

    Returns
    -------
    float
        Of its type, computed in float64 and rounded once.

    Raises
    ------
    OverflowError
        On the host, where float64 cannot hold it.
    """
    return math.exp2(x)


def log(x: float) -> float:
    """The natural logarithm; in device code minus infinity of 0, NaN of a negative number.

    Parameters
    ----------
    x:
        A FLOAT or HALF.

    Returns
    -------
    float
        Of its type, computed in float64 and rounded once.

    Raises
    ------
    ValueError
        On the host, of a number that is not positive.
    """
    return math.log(x)


def log2(x: float) -> float:
    """The logarithm to base 2; in device code minus infinity of 0, NaN of a negative number.

    Parameters
    ----------
    x:
        A FLOAT or HALF.

    Returns
    -------
    float
        Of its type, computed in float64 and rounded once.

    Raises
    ------
    ValueError
        On the host, of a number that is not positive.
    """
    return math.log2(x)


def tanh(x: float) -> float:
    """The hyperbolic tangent of a number, from -1 to 1.

    Parameters
    ----------
    x:
        A FLOAT or HALF.

    Returns
    -------
    float
        Of its type, computed in float64 and rounded once.
    """
    return math.tanh(x)


def sigmoid(x: float) -> float:
    """The logistic function, ``1 / (1 + exp(-x))``, from 0 to 1.

    Parameters
    ----------
    x:
        A FLOAT or HALF.

    Returns
    -------
    float
        Of its type, computed in float64 and rounded once.
    """
    return 1.0 / (1.0 + math.exp(-x)) if x > -700.0 else 0.0


def quotient(a: int, b: int) -> int:
    """The quotient of two integers, cut towards zero: ``/`` of C and C++, where ``//`` of Python floors.

    Parameters
    ----------
    a:
        What is divided, an integer.
    b:
        By what, another one.

    Returns
    -------
    int
        Of their type; in device code it wraps.

    Raises
    ------
    ZeroDivisionError
        For a division by 0; in device code a `CodeletArithmeticError` of the run.
    """
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def remainder(a: int, b: int) -> int:
    """The rest that goes with `quotient`, which has the sign of `a`: ``%`` of C and C++.

    Parameters
    ----------
    a:
        What is divided, an integer.
    b:
        By what, another one.

    Returns
    -------
    int
        Of their type.

    Raises
    ------
    ZeroDivisionError
        For a division by 0; in device code a `CodeletArithmeticError` of the run.
    """
    return a - b * quotient(a, b)


def popcount(x: int) -> int:
    """How many bits of an integer are set.

    Parameters
    ----------
    x:
        An integer; on the host its lower 32 bits count.

    Returns
    -------
    int
        Of its type.
    """
    return (x & 0xFFFFFFFF).bit_count()


def clz(x: int) -> int:
    """How many zero bits lead an integer.

    Parameters
    ----------
    x:
        An integer; on the host its lower 32 bits count.

    Returns
    -------
    int
        Of its type: all of its bits for 0.
    """
    return 32 - (x & 0xFFFFFFFF).bit_length()


def float2(a: float, b: float) -> tuple[float, ...]:
    """A vector of the hardware: ``a, b = ipu.float2(x, y)``, whose elements are loaded, computed and stored together.

    In device code each element is given to a target of its own, and what is done alike for all of them costs one instruction
    where the machine has one: sums, products, extremes and signs. Elements beside each other in memory are loaded and
    stored at once; on the tile they begin at a multiple of 8 bytes then.

    Parameters
    ----------
    a, b:
        FLOATs.

    Returns
    -------
    tuple[float, ...]
        The elements; on the host as FLOATs.

    Examples
    --------
    ::

        self.out[i], self.out[i + 1] = ipu.float2(self.x[i] * s, self.x[i + 1] * s)
    """
    return tuple(np.array([a, b], np.float32).tolist())


def float4(a: float, b: float, c: float, d: float) -> tuple[float, ...]:
    """A vector of the hardware: ``a, b, c, d = ipu.float4(x, y, z, w)``, whose elements are loaded, computed and stored together.

    In device code each element is given to a target of its own, and what is done alike for all of them costs one instruction
    where the machine has one: sums, products, extremes and signs, of two FLOATs each. Elements beside each
    other in memory are loaded and stored at once; on the tile they begin at a multiple of 8 bytes then.

    Parameters
    ----------
    a, b, c, d:
        FLOATs.

    Returns
    -------
    tuple[float, ...]
        The elements; on the host as FLOATs.

    Examples
    --------
    ::

        a, b, c, d = ipu.float4(a * s, b * s, c * s, d * s)
    """
    return tuple(np.array([a, b, c, d], np.float32).tolist())


def half2(a: float, b: float) -> tuple[float, ...]:
    """A vector of the hardware: ``a, b = ipu.half2(x, y)``, whose elements are loaded, computed and stored together.

    In device code each element is given to a target of its own, and what is done alike for all of them costs one instruction
    where the machine has one: sums, products, extremes and signs. Elements beside each other in memory are loaded and
    stored at once; on the tile they begin at a multiple of 4 bytes then.

    Parameters
    ----------
    a, b:
        HALFs.

    Returns
    -------
    tuple[float, ...]
        The elements; on the host as HALFs.

    Examples
    --------
    ::

        self.out[i], self.out[i + 1] = ipu.half2(self.x[i] * s, self.x[i + 1] * s)
    """
    return tuple(np.array([a, b], np.float16).tolist())


def half4(a: float, b: float, c: float, d: float) -> tuple[float, ...]:
    """A vector of the hardware: ``a, b, c, d = ipu.half4(x, y, z, w)``, whose elements are loaded, computed and stored together.

    In device code each element is given to a target of its own, and what is done alike for all of them costs one instruction
    where the machine has one: sums, products, extremes and signs. Elements beside each other in memory are loaded and
    stored at once; on the tile they begin at a multiple of 8 bytes then.

    Parameters
    ----------
    a, b, c, d:
        HALFs.

    Returns
    -------
    tuple[float, ...]
        The elements; on the host as HALFs.

    Examples
    --------
    ::

        a, b, c, d = ipu.half4(a * s, b * s, c * s, d * s)
    """
    return tuple(np.array([a, b, c, d], np.float16).tolist())
