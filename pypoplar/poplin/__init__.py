"""Linear algebra: products of matrices, convolutions."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.poplin.codelets import addCodelets
from pypoplar.poplin.convolution.calls.conv_biases import addBias, convolutionBiasUpdate
from pypoplar.poplin.convolution.calls.conv_call import convolution, convolutionWithOutput
from pypoplar.poplin.convolution.calls.conv_gradients import (
    calculateWeightDeltas,
    convolutionWeightUpdate,
    getGradientParams,
    getWeightUpdateParams,
)
from pypoplar.poplin.convolution.calls.conv_indices import (
    getDilatedSize,
    getInputIndex,
    getInputRange,
    getKernelIndex,
    getKernelRange,
    getOutputRangeForInputIndex,
    getOutputRangeForInputRange,
    getOutputRangeForKernelIndex,
    getOutputRangeForKernelRange,
)
from pypoplar.poplin.convolution.calls.conv_operands import createBiases, createConvOutput, createInput, createWeights
from pypoplar.poplin.convolution.calls.conv_reports import (
    PlanCosts,
    convolutionValidateOptions,
    getBwdFlops,
    getBwdPerfectCycleCount,
    getFwdFlops,
    getFwdPerfectCycleCount,
    getWuFlops,
    getWuPerfectCycleCount,
    preplanConvolutions,
    reportPlanEstimatedCosts,
    reportPlanInfo,
    reportWeightUpdatePlanInfo,
)
from pypoplar.poplin.convolution.calls.conv_weights import fullyConnectedWeightTranspose, weightsTransposeChansFlipXY
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.mat_mul import createMatMulInputLHS, createMatMulInputRHS, matMul
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "addCodelets",
    "ConvParams",
    "PlanCosts",
    "PlanningCache",
    "addBias",
    "calculateWeightDeltas",
    "convolution",
    "convolutionBiasUpdate",
    "convolutionValidateOptions",
    "convolutionWeightUpdate",
    "convolutionWithOutput",
    "createBiases",
    "createConvOutput",
    "createInput",
    "createWeights",
    "fullyConnectedWeightTranspose",
    "getBwdFlops",
    "getBwdPerfectCycleCount",
    "getDilatedSize",
    "getFwdFlops",
    "getFwdPerfectCycleCount",
    "getGradientParams",
    "getInputIndex",
    "getInputRange",
    "getKernelIndex",
    "getKernelRange",
    "getOutputRangeForInputIndex",
    "getOutputRangeForInputRange",
    "getOutputRangeForKernelIndex",
    "getOutputRangeForKernelRange",
    "getWeightUpdateParams",
    "getWuFlops",
    "getWuPerfectCycleCount",
    "preplanConvolutions",
    "reportPlanEstimatedCosts",
    "reportPlanInfo",
    "reportWeightUpdatePlanInfo",
    "weightsTransposeChansFlipXY",
    "createMatMulInputLHS",
    "createMatMulInputRHS",
    "matMul",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
