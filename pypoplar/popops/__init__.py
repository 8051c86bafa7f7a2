"""Operations on the elements of tensors."""

from typing import TYPE_CHECKING, NoReturn

from pypoplar.popops.codelets import addCodelets
from pypoplar.popops.element_output import createOutputForElementWiseOp
from pypoplar.popops.element_wise import (
    add,
    addInPlace,
    addWithOutput,
    div,
    divInPlace,
    divWithOutput,
    max,
    maxInPlace,
    maxWithOutput,
    min,
    minInPlace,
    minWithOutput,
    mul,
    mulInPlace,
    mulWithOutput,
    sub,
    subInPlace,
    subWithOutput,
)
from pypoplar.popops.scaled_add import scaledAddTo
from pypoplar.poputil.absent_members import absent_member

__all__ = [
    "addCodelets",
    "createOutputForElementWiseOp",
    # a op b
    "add",
    "addInPlace",
    "addWithOutput",
    "div",
    "divInPlace",
    "divWithOutput",
    "max",
    "maxInPlace",
    "maxWithOutput",
    "min",
    "minInPlace",
    "minWithOutput",
    "mul",
    "mulInPlace",
    "mulWithOutput",
    "sub",
    "subInPlace",
    "subWithOutput",
    # a += s b
    "scaledAddTo",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise absent_member(__name__, name, __all__)
