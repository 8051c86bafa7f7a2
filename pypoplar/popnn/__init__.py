"""What neural networks are made of: non-linearities and losses."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.popnn.codelets import addCodelets
from pypoplar.popnn.losses.loss_call import LossType, argMax, calcAccuracy, calcLoss
from pypoplar.popnn.nonlinearities.nonlinearity_calls import NonLinearityType, nonLinearity, nonLinearityInPlace
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "addCodelets",
    # non-linearities
    "NonLinearityType",
    "nonLinearity",
    "nonLinearityInPlace",
    # losses
    "LossType",
    "argMax",
    "calcAccuracy",
    "calcLoss",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
