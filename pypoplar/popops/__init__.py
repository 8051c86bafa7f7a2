"""Operations on the elements of tensors."""

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
