"""Recurrences: loops with a body of the caller's, and layers without gates. PopLibs' namespace of this name."""

from __future__ import annotations

from pypoplar.popnn.recurrent.plain_layer import (
    createBwdState,
    createFwdState,
    createInput,
    createWeightsFeedback,
    createWeightsInput,
    getBwdFlops,
    getFwdFlops,
    getMatMulPrePlanParameters,
    getOutputFromFwdState,
    getWuFlops,
)
from pypoplar.popnn.recurrent.recurrent_calls import (
    backwardGradientStep,
    forwardIterate,
    forwardWeightInput,
    paramDeltaUpdate,
    rnnBwdSequence,
    rnnFwdSequence,
)
from pypoplar.popnn.recurrent.rnn_call import Rnn
from pypoplar.popnn.recurrent.rnn_params import RnnParams
from pypoplar.popnn.recurrent.rnn_tensors import (
    RnnBatchwiseFlags,
    RnnSlice,
    StateSequence,
    TimeStepState,
    createInitialState,
    createInputTensor,
    createOutputTensor,
    createRecurrentTensor,
    shiftRnnTensor,
)

__all__ = [
    "Rnn",
    "RnnBatchwiseFlags",
    "RnnParams",
    "RnnSlice",
    "StateSequence",
    "TimeStepState",
    "backwardGradientStep",
    "createBwdState",
    "createFwdState",
    "createInitialState",
    "createInput",
    "createInputTensor",
    "createOutputTensor",
    "createRecurrentTensor",
    "createWeightsFeedback",
    "createWeightsInput",
    "forwardIterate",
    "forwardWeightInput",
    "getBwdFlops",
    "getFwdFlops",
    "getMatMulPrePlanParameters",
    "getOutputFromFwdState",
    "getWuFlops",
    "paramDeltaUpdate",
    "rnnBwdSequence",
    "rnnFwdSequence",
    "shiftRnnTensor",
]
