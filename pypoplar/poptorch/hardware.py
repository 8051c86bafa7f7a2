"""What programs ask about hardware: there is none."""

from __future__ import annotations

from typing import NoReturn

from pypoplar.errors import ApplicationRuntimeError, PoplarError
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.tracebacks import public


class RecoverableError(PoplarError):
    """A fault of hardware after which a reset helps. A simulated machine has none; programs name it in `except`."""


class UnrecoverableError(PoplarError):
    """A fault of hardware after which nothing helps. A simulated machine has none; programs name it in `except`."""


@public
def ipuHardwareIsAvailable(num_ipus: int = 1) -> bool:
    """Whether there are so many IPUs of silicon: no, a model runs on simulated ones.

    Parameters
    ----------
    num_ipus:
        How many, at least 1.

    Returns
    -------
    bool
        False.

    Raises
    ------
    InvalidOption
        For fewer than one.
    """
    checks.whole_number("ipuHardwareIsAvailable", num_ipus, 1)
    return False


def ipuHardwareVersion() -> NoReturn:
    """The version of the hardware, of which there is none: `ApplicationRuntimeError`."""
    raise ApplicationRuntimeError("ipuHardwareVersion: there is no hardware; models run on a simulated Bow")
