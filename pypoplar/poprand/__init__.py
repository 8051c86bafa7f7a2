"""Random numbers in the layout of a tensor, and masks of them."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.poprand.codelets import addCodelets
from pypoplar.poprand.distributions import bernoulli, logUniform, normal, truncatedNormal, uniform
from pypoplar.poprand.dropouts import dropout, shapedDropout
from pypoplar.poprand.master_seed import setSeed
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "addCodelets",
    "setSeed",
    # distributions
    "bernoulli",
    "logUniform",
    "normal",
    "truncatedNormal",
    "uniform",
    # masks
    "dropout",
    "shapedDropout",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
