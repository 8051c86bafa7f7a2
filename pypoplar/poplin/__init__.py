"""Linear algebra: products of matrices."""

from pypoplar.poplin.codelets import addCodelets
from pypoplar.poplin.mat_mul import createMatMulInputLHS, createMatMulInputRHS, matMul

__all__ = [
    "addCodelets",
    "createMatMulInputLHS",
    "createMatMulInputRHS",
    "matMul",
]
