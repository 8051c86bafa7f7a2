"""Long short-term memory. PopLibs' namespace of this name."""

from __future__ import annotations

from pypoplar.popnn.recurrent.lstm_backward import lstmBwd, lstmBwdWithWU, lstmWU
from pypoplar.popnn.recurrent.lstm_costs import (
    getBasicLstmCellBwdFlops,
    getBasicLstmCellFwdFlops,
    getBasicLstmCellWuFlops,
    getMatMulPrePlanParameters,
)
from pypoplar.popnn.recurrent.lstm_forward import lstmFwd
from pypoplar.popnn.recurrent.lstm_operands import (
    createInitialCellState,
    createInitialOutput,
    createInitialState,
    createInput,
    createWeights,
    createWeightsBiases,
    createWeightsKernel,
    zeroInitialState,
)
from pypoplar.popnn.recurrent.lstm_params import LstmParams, LstmState, LstmWeights, getDefaultBasicLstmCellOrder

__all__ = [
    "LstmParams",
    "LstmState",
    "LstmWeights",
    "createInitialCellState",
    "createInitialOutput",
    "createInitialState",
    "createInput",
    "createWeights",
    "createWeightsBiases",
    "createWeightsKernel",
    "getBasicLstmCellBwdFlops",
    "getBasicLstmCellFwdFlops",
    "getBasicLstmCellWuFlops",
    "getDefaultBasicLstmCellOrder",
    "getMatMulPrePlanParameters",
    "lstmBwd",
    "lstmBwdWithWU",
    "lstmFwd",
    "lstmWU",
    "zeroInitialState",
]
