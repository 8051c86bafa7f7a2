"""What programs ask about hardware: there is none."""

from __future__ import annotations

from typing import NoReturn

from pypoplar.errors import ApplicationRuntimeError
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.tracebacks import public


@public
def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """Whether there are so many IPUs of silicon: no, a model runs on simulated ones."""
    checks.whole_number("ipuHardwareIsAvailable", num_ipus, 1)
    return False


def ipuHardwareVersion() -> NoReturn:
    """The version of the hardware, of which there is none: `ApplicationRuntimeError`."""
    raise ApplicationRuntimeError("ipuHardwareVersion: there is no hardware; models run on a simulated Bow")
