"""Linear algebra: products of matrices, convolutions."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.poplin.codelets import addCodelets
from pypoplar.poplin.convolution.conv_params import ConvParams
from pypoplar.poplin.mat_mul import createMatMulInputLHS, createMatMulInputRHS, matMul
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "addCodelets",
    "ConvParams",
    "createMatMulInputLHS",
    "createMatMulInputRHS",
    "matMul",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
