"""Pooling of fields, and its gradients. PopLibs' namespace of this name."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.popnn.pooling.pool_call import pool
from pypoplar.popnn.pooling.pool_flops import getBwdFlops, getBwdPerfectCycleCount, getFwdFlops, getFwdPerfectCycleCount
from pypoplar.popnn.pooling.pool_gradient import poolInputGradient
from pypoplar.popnn.pooling.pool_params import PoolParams, getOutputFieldShape
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "PoolParams",
    "getBwdFlops",
    "getBwdPerfectCycleCount",
    "getFwdFlops",
    "getFwdPerfectCycleCount",
    "getOutputFieldShape",
    "pool",
    "poolInputGradient",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
