"""``Options.Precision``: number formats, rounding, and what is an error."""

from __future__ import annotations

from typing import ClassVar, Self

import torch

from pypoplar.errors import InvalidOption
from pypoplar.poptorch.enums import HalfFloatCastingBehavior
from pypoplar.poptorch.options import option_checks as checks
from pypoplar.poptorch.options.option_values import OptionValues
from pypoplar.poptorch.options.popart_options import PopartOptions
from pypoplar.tracebacks import public

PARTIALS = {torch.float32: "float", torch.float16: "half"}


@public
class PrecisionOptions(OptionValues):
    """Options of arithmetic, given by `Options.Precision`. They are kept by PopART's names."""

    _group: ClassVar[str] = "Precision"

    def __init__(self, popart: PopartOptions) -> None:
        self._popart_options = popart
        super().__init__()

    def halfFloatCasting(self, half_float_casting: HalfFloatCastingBehavior) -> Self:
        """What PopTorch has given up: a half and a float in one operation are floats, as in PyTorch.

        Parameters
        ----------
        half_float_casting:
            `HalfFloatCastingBehavior.FloatDowncastToHalf` is told to change nothing.

        Raises
        ------
        PoplarTypeError
            For what is no `HalfFloatCastingBehavior`.
        """
        behavior = checks.member(self._option("halfFloatCasting"), half_float_casting, HalfFloatCastingBehavior)
        self._tell("halfFloatCasting", behavior is HalfFloatCastingBehavior.FloatDowncastToHalf)
        return self

    def runningStatisticsAlwaysFloat(self, value: bool) -> Self:
        """What PopTorch has given up: running statistics have the type of the module's buffers, as in PyTorch.

        Parameters
        ----------
        value:
            True is told to change nothing.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        self._tell("runningStatisticsAlwaysFloat", checks.flag(self._option("runningStatisticsAlwaysFloat"), value))
        return self

    def enableFloatingPointExceptions(self, enabled: bool) -> Self:
        """Make an invalid operation, a division by zero and an overflow an error of the call.

        Parameters
        ----------
        enabled:
            Whether they are; at first they are not.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        checked = checks.flag(self._option("enableFloatingPointExceptions"), enabled)
        self._popart_options.put("enableFloatingPointChecks", checked)
        return self

    def enableStochasticRounding(self, enabled: bool) -> Self:
        """Round to halves up or down at random, so that the mean of many is right.

        Parameters
        ----------
        enabled:
            Whether it does; at first it rounds to the nearest.

        Raises
        ------
        PoplarTypeError
            For what is no bool.
        """
        self._popart_options.put("enableStochasticRounding", checks.flag(self._option("enableStochasticRounding"), enabled))
        return self

    def setPartialsType(self, dtype: torch.dtype) -> Self:
        """The type of partial sums of products of matrices and convolutions.

        Parameters
        ----------
        dtype:
            `torch.float` or `torch.half`.

        Raises
        ------
        InvalidOption
            For another type.
        """
        option = self._option("setPartialsType")
        if not isinstance(dtype, torch.dtype) or dtype not in PARTIALS:
            raise InvalidOption(f"{option} takes torch.float or torch.half, got {dtype!r}")
        self._popart_options.put("partialsTypeMatMuls", PARTIALS[dtype])
        self._popart_options.put("convolutionOptions", {"partialsType": PARTIALS[dtype]})
        return self
