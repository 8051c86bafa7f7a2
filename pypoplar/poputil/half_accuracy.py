"""What numbers become as a HALF of the device."""

from __future__ import annotations

import numpy as np

from pypoplar.errors import PoplarTypeError
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.target import Target
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType, check_type


@public
def castToDeviceHalfValue(target: Target, input: float) -> float:
    """The HALF nearest to a number, which is rounded to a FLOAT first.

    Parameters
    ----------
    target:
        The target; all give the same.
    input:
        The number.

    Returns
    -------
    float
        The value of the HALF; infinite beyond the largest one.

    Raises
    ------
    PoplarTypeError
        For what is no target or no number.
    """
    with np.errstate(over="ignore"):
        return float(np.float16(np.float32(_number("castToDeviceHalfValue", target, input))))


@public
def checkAccuracyWhenCast(target: Target, input: float, inputType: ElementType, outputType: ElementType, tolerance: float) -> bool:
    """Whether a number keeps its value in a cast but for a relative error below a tolerance.

    A HALF always does as a FLOAT, and so does what is a HALF exactly; infinities and NaN never do.

    Parameters
    ----------
    target:
        The target; all give the same.
    input:
        The number, a value of `inputType`.
    inputType, outputType:
        FLOAT and HALF, or HALF and FLOAT.
    tolerance:
        The relative error allowed, 0 at least.

    Returns
    -------
    bool
        Whether the error is 0 or below the tolerance.

    Raises
    ------
    PoplibsError
        For other types, and a negative tolerance.
    PoplarTypeError
        For what is no target or no number.
    """
    number = _number("checkAccuracyWhenCast", target, input)
    largest = _number("checkAccuracyWhenCast", target, tolerance)
    if not largest >= 0:
        raise PoplibsError(f"checkAccuracyWhenCast: the tolerance is 0 at least, got {tolerance!r}")
    check_type(inputType)
    check_type(outputType)
    if (inputType, outputType) == (HALF, FLOAT):
        return True
    if (inputType, outputType) != (FLOAT, HALF):
        raise PoplibsError(f"checkAccuracyWhenCast judges casts of FLOAT to HALF and back, got {inputType!r} to {outputType!r}")
    with np.errstate(over="ignore"):
        single = float(np.float32(number))
    error = abs(castToDeviceHalfValue(target, single) - single)
    return error == 0 or error < abs(single) * largest


def _number(call: str, target: object, value: object) -> float:
    if not isinstance(target, Target):
        raise PoplarTypeError(f"{call}: the first argument is a Target, got {target!r}; write graph.getTarget()")
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise PoplarTypeError(f"{call} takes numbers, got {value!r}")
    return float(value)
