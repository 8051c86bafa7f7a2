"""What PopLibs' popnn has as experiments."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.popnn.regions.roi_align import roiAlignFwd, roiAlignInputGradient
from pypoplar.popnn.regions.roi_params import roiAlignParams
from pypoplar.poputil.absent_members import absent_member

__all__ = ["roiAlignFwd", "roiAlignInputGradient", "roiAlignParams"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
