"""Connectionist temporal classification: the loss of labels of sequences. PopLibs' namespace of this name."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.popnn.ctc.ctc_loss import (
    calcCTCLossLogits,
    calcCTCLossLogProbabilities,
    calcLossAndGradientLogits,
    calcLossAndGradientLogProbabilities,
)
from pypoplar.popnn.ctc.ctc_plan import Plan, plan
from pypoplar.popnn.ctc.ctc_tensors import createDataInput, createLabelsInput
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "Plan",
    "calcCTCLossLogProbabilities",
    "calcCTCLossLogits",
    "calcLossAndGradientLogProbabilities",
    "calcLossAndGradientLogits",
    "createDataInput",
    "createLabelsInput",
    "plan",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
