"""Linear algebra: products of matrices, convolutions."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.poplin.codelets import addCodelets
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
from pypoplar.poplin.planning_cache import PlanningCache
from pypoplar.poplin.preplanning import preplan
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "MatMulParams",
    "PlanningCache",
    "addCodelets",
    "ConvParams",
    "createMatMulGroupedInputLHS",
    "createMatMulGroupedInputRHS",
    "createMatMulGroupedOutput",
    "createMatMulInputLHS",
    "createMatMulInputRHS",
    "createMatMulOutput",
    "matMul",
    "matMulAcc",
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
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
