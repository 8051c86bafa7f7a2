"""What neural networks are made of: non-linearities and losses."""

from pypoplar.popnn.codelets import addCodelets
from pypoplar.popnn.loss import LossType, argMax, calcAccuracy, calcLoss
from pypoplar.popnn.nonlinearity import NonLinearityType, nonLinearity, nonLinearityInPlace

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
