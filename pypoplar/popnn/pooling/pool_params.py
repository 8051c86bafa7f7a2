"""`PoolParams`: which windows are pooled, and how."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from collections.abc import Sequence as SequenceOf
from enum import Enum
from typing import Any

from attrs import frozen

from pypoplar.braces import NUMBERS, ordered
from pypoplar.errors import PoplarTypeError
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, ElementType


class PoolingType(Enum):
    """What is taken of a window; padding counts for nothing.

    Attributes
    ----------
    MAX:
        The largest element.
    AVG:
        The mean.
    SUM:
        The sum.
    """

    MAX = "MAX"
    AVG = "AVG"
    SUM = "SUM"


def _number(name: str, value: Any, least: int | None) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise PoplarTypeError(f"PoolParams: {name} is a whole number, got {value!r}") from None
    if least is not None and number < least:
        raise PoplibsError(f"PoolParams: {name} is {least} at least, got {number}")
    return number


def _numbers(name: str, values: Any, least: int | None) -> tuple[int, ...]:
    ordered(values, f"{name} of PoolParams", NUMBERS)
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise PoplarTypeError(f"PoolParams: {name} is a list of whole numbers, got {values!r}")
    return tuple(_number(f"each of {name}", value, least) for value in values)


@public
@frozen
class PoolParams:
    """What `pool` computes: windows over a field, with what is taken of each.

    What is added at the ends counts for nothing: it is not the largest, and means are taken of the other places alone.

    Parameters
    ----------
    poolingType:
        What is taken of a window.
    inputFieldShape:
        The sizes of the field.
    kernelShape:
        The size of a window in each dimension, 1 at least.
    stride:
        How far windows are apart in each dimension, 1 at least.
    inputTruncationOrPaddingLower, inputTruncationOrPaddingUpper:
        How many places are added before the first and behind the last one of each dimension; negative numbers cut off.
    numChannels:
        How many channels there are.
    batchSize:
        How many samples there are.
    dType:
        The type of tensors, FLOAT or HALF.

    Raises
    ------
    PoplibsError
        For lists of different lengths, another type, smaller numbers, more cut off than there is, and windows larger than the
        field.
    PoplarTypeError
        For fields of another class.
    """

    poolingType: PoolingType
    inputFieldShape: SequenceOf[int]
    kernelShape: SequenceOf[int]
    stride: SequenceOf[int]
    inputTruncationOrPaddingLower: SequenceOf[int]
    inputTruncationOrPaddingUpper: SequenceOf[int]
    numChannels: int
    batchSize: int
    dType: ElementType

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.poolingType, PoolingType):
            raise PoplarTypeError(f"PoolParams: poolingType is a popnn.PoolingType such as MAX, got {self.poolingType!r}")
        if not isinstance(self.dType, ElementType):
            raise PoplarTypeError(f"PoolParams: dType is an element type, FLOAT or HALF, got {self.dType!r}")
        if self.dType not in (FLOAT, HALF):
            raise PoplibsError(f"PoolParams: dType is FLOAT or HALF, got {self.dType!r}")
        for name, least in LISTS.items():
            object.__setattr__(self, name, _numbers(name, getattr(self, name), least))
        for name in ("numChannels", "batchSize"):
            object.__setattr__(self, name, _number(name, getattr(self, name), 0))
        lists = {name: len(getattr(self, name)) for name in LISTS}
        if len(set(lists.values())) > 1:
            sizes = ", ".join(f"{name} has {size}" for name, size in lists.items())
            raise PoplibsError(f"PoolParams: all lists have a number for each dimension of the field; {sizes}")
        for dimension in range(self.getNumFieldDims()):
            self._check_dimension(dimension)

    def _check_dimension(self, dimension: int) -> None:
        size, lower, upper = self.inputFieldShape[dimension], *self.padding(dimension)
        if min(lower, 0) + min(upper, 0) + size < 0:
            raise PoplibsError(
                f"PoolParams: dimension {dimension} of the field has {size} places, of which {-min(lower, 0)} and "
                f"{-min(upper, 0)} are to be cut off"
            )
        if size + lower + upper < self.kernelShape[dimension]:
            raise PoplibsError(
                f"PoolParams: the kernel has {self.kernelShape[dimension]} places in dimension {dimension}, and the field "
                f"{size + lower + upper}, with padding ({lower}, {upper})"
            )

    def padding(self, dimension: int) -> tuple[int, int]:
        """How many places are added at both ends of a dimension.

        Parameters
        ----------
        dimension:
            The dimension of the field.

        Returns
        -------
        tuple[int, int]
            Before the first place and behind the last; negative where places are cut off.
        """
        return self.inputTruncationOrPaddingLower[dimension], self.inputTruncationOrPaddingUpper[dimension]

    def getNumFieldDims(self) -> int:
        """How many dimensions the field and the windows have."""
        return len(self.inputFieldShape)

    def getOutputFieldShape(self) -> list[int]:
        """How many windows there are in each dimension of the field."""
        return [
            (size + sum(self.padding(dimension)) - self.kernelShape[dimension]) // self.stride[dimension] + 1
            for dimension, size in enumerate(self.inputFieldShape)
        ]


LISTS = {  # the least number of each
    "inputFieldShape": 0,
    "kernelShape": 1,
    "stride": 1,
    "inputTruncationOrPaddingLower": None,
    "inputTruncationOrPaddingUpper": None,
}


@public
def getOutputFieldShape(params: PoolParams) -> list[int]:
    """How many windows there are in each dimension of the field.

    Parameters
    ----------
    params:
        The parameters of the pooling.

    Returns
    -------
    list[int]
        A number for each dimension.
    """
    check_params("popnn.pooling.getOutputFieldShape", params)
    return params.getOutputFieldShape()


def check_params(call: str, params: object) -> None:
    """`PoplarTypeError` for what are no `PoolParams`."""
    if not isinstance(params, PoolParams):
        raise PoplarTypeError(f"{call}: params are popnn.pooling.PoolParams, got {params!r}")
