"""Tensors rearranged on tiles: transposed in blocks, so that elements lie in other groups."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.popops.rearrange.regroup_calls import regroupIfBeneficial, regroupIfPossible, regroupTensor
from pypoplar.popops.rearrange.transpose_calls import (
    addTransposeVertices,
    canUseFastTranspose,
    getMinimumRegroupGrainSize,
    partialTranspose,
)
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "addTransposeVertices",
    "canUseFastTranspose",
    "getMinimumRegroupGrainSize",
    "partialTranspose",
    "regroupIfBeneficial",
    "regroupIfPossible",
    "regroupTensor",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
