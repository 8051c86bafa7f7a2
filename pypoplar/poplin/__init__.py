"""Linear algebra: products of matrices, convolutions, norms of activations, solvers."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.poplin import experimental, fc, multiconv
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
from pypoplar.poplin.matmul.mat_mul import (
    matMul,
    matMulAcc,
    matMulGrouped,
    matMulGroupedAcc,
    matMulGroupedWithOutput,
    matMulWithOutput,
)
from pypoplar.poplin.matmul.matmul_operands import (
    createMatMulGroupedInputLHS,
    createMatMulGroupedInputRHS,
    createMatMulGroupedOutput,
    createMatMulInputLHS,
    createMatMulInputRHS,
    createMatMulOutput,
    preArrangeMatMulGroupedInputRHS,
    preArrangeMatMulInputRHS,
    transposeGroupedMatrix,
)
from pypoplar.poplin.matmul.matmul_options import matmulValidateOptions
from pypoplar.poplin.matmul.matmul_params import MatMulParams, matMulGroupedReportPlan, matMulReportPlan, preplanMatMuls
from pypoplar.poplin.norms.batch_share import DistributedNormReduceCallback
from pypoplar.poplin.norms.norm_gradients import (
    distributedNormStatisticsGradients,
    normGradients,
    normParamGradients,
    normStatisticsGradients,
)
from pypoplar.poplin.norms.norm_parameters import createNormBeta, createNormGamma, createNormParams
from pypoplar.poplin.norms.norm_statistics import distributedNormStatistics, normStatistics
from pypoplar.poplin.norms.norm_whitening import normalise, normWhiten
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.poplin.preplanning import matMulGetConvPlanParams, preplan
from pypoplar.poplin.solvers.cholesky_call import (
    cholesky,
    choleskyInPlace,
    createCholeskyInput,
    getCholeskyMatMulPrePlanParameters,
)
from pypoplar.poplin.solvers.mesh_grid import linspace, meshgrid2d
from pypoplar.poplin.solvers.triangular_solve import getTriangularSolveMatMulPrePlanParameters, triangularSolve
from pypoplar.poplin.solvers.triangular_tensors import (
    createTriangularSolveInputLHS,
    createTriangularSolveInputRHS,
    triangularMask,
)
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "MatMulParams",
    "PlanningCache",
    "DistributedNormReduceCallback",
    "addCodelets",
    "fc",
    "multiconv",
    "ConvParams",
    "createMatMulGroupedInputLHS",
    "createMatMulGroupedInputRHS",
    "createMatMulGroupedOutput",
    "PlanCosts",
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
    "createMatMulOutput",
    "matMul",
    "matMulAcc",
    "matMulGetConvPlanParams",
    "matMulGrouped",
    "matMulGroupedAcc",
    "matMulGroupedReportPlan",
    "matMulGroupedWithOutput",
    "matMulReportPlan",
    "matMulWithOutput",
    "matmulValidateOptions",
    "preArrangeMatMulGroupedInputRHS",
    "preArrangeMatMulInputRHS",
    "preplan",
    "preplanMatMuls",
    "transposeGroupedMatrix",
    "createNormBeta",
    "createNormGamma",
    "createNormParams",
    "distributedNormStatistics",
    "distributedNormStatisticsGradients",
    "normGradients",
    "normParamGradients",
    "normStatistics",
    "normStatisticsGradients",
    "normWhiten",
    "normalise",
    "cholesky",
    "choleskyInPlace",
    "createCholeskyInput",
    "createTriangularSolveInputLHS",
    "createTriangularSolveInputRHS",
    "experimental",
    "getCholeskyMatMulPrePlanParameters",
    "getTriangularSolveMatMulPrePlanParameters",
    "linspace",
    "meshgrid2d",
    "triangularMask",
    "triangularSolve",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
