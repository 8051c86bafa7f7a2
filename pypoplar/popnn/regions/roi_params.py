"""`roiAlignParams`: how boxes are sampled."""

from __future__ import annotations

import math

from attrs import field, frozen

from pypoplar.errors import PoplarTypeError
from pypoplar.poputil.arguments import check_flag, check_float, whole_number
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.tracebacks import public


@public
@frozen
class roiAlignParams:
    """What a box becomes: bins, each the mean of some samples, for `roiAlignFwd`.

    Its fields are `samplingRatio_`, `alignedHeight_`, `alignedWidth_`, `aligned_` and `spatialScale_`.

    Parameters
    ----------
    samplingRatio:
        A bin has this number squared of samples, 1 at least.
    poolH:
        How many bins a box has from top to bottom, 1 at least.
    poolW:
        How many it has from left to right, 1 at least.
    aligned:
        Whether half a place is subtracted from coordinates, so that whole numbers are the corners of places, not their middles;
        else boxes are one place wide and high at least.
    spatialScale:
        What the coordinates of boxes are multiplied by, which makes places of them; above 0.

    Raises
    ------
    PoplibsError
        For smaller numbers, and a scale that is not finite.
    PoplarTypeError
        For other classes.
    """

    samplingRatio_: int = field(alias="samplingRatio")
    alignedHeight_: int = field(alias="poolH")
    alignedWidth_: int = field(alias="poolW")
    aligned_: bool = field(alias="aligned")
    spatialScale_: float = field(alias="spatialScale")

    def __attrs_post_init__(self) -> None:
        call = "popnn.experimental.roiAlignParams"
        for name, value in (
            ("samplingRatio", self.samplingRatio_),
            ("poolH", self.alignedHeight_),
            ("poolW", self.alignedWidth_),
        ):
            whole_number(call, name, value, 1)
        check_flag(call, "aligned", self.aligned_)
        scale = self.spatialScale_
        if isinstance(scale, bool) or not isinstance(scale, int | float):
            raise PoplarTypeError(f"{call}: spatialScale is a number, got {scale!r}")
        check_float(call, "spatialScale", scale)
        if not 0 < scale < math.inf:
            raise PoplibsError(f"{call}: spatialScale is more than 0 and finite, got {scale!r}")
