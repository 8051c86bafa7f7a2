"""Factorisations that PopLibs has as experiments."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.poplin.solvers.lu_factorization import LUFactorization
from pypoplar.poplin.solvers.qr_factorization import QRFactorization, createQRFactorizationMatrices
from pypoplar.poputil.absent_members import absent_member

__all__ = ["LUFactorization", "QRFactorization", "createQRFactorizationMatrices"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
