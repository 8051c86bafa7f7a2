"""The floating-point exceptions of device code: what makes one, in terms of an operation's operands and result."""

from __future__ import annotations

import math

from pypoplar.codelet.operations.table import typed_operation
from pypoplar.interface.fault_codes import NO_FAULT, FaultCode, FloatingPoint


def floating_fault(name: str, mask: int, result: float, *arguments: float) -> int:
    """The code of the floating-point exception that an operation raised, or `NO_FAULT`; `mask` says which ones are faults.

    Invalid: NaN from operands that are not NaN. Division by zero: infinity from finite operands at a pole. Overflow: infinity
    from finite operands elsewhere. Only for operations whose result is a float.
    """
    if math.isnan(result):
        raised, code = FloatingPoint.INVALID, FaultCode.INVALID if not any(map(math.isnan, arguments)) else NO_FAULT
    elif math.isinf(result) and all(map(math.isfinite, arguments)):
        pole = typed_operation(name).row.pole
        if pole is not None and arguments[pole[0]] == pole[1]:
            raised, code = FloatingPoint.DIVISION_BY_ZERO, FaultCode.DIVISION_BY_ZERO
        else:
            raised, code = FloatingPoint.OVERFLOW, FaultCode.OVERFLOW
    else:
        return NO_FAULT
    return code if mask & raised else NO_FAULT
