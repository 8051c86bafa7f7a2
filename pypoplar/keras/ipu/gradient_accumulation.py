"""What becomes of gradients that are accumulated."""

from __future__ import annotations

from enum import Enum


class GradientAccumulationReductionMethod(Enum):
    """Their sum, their mean, or the mean of those so far."""

    SUM = 0
    MEAN = 1
    RUNNING_MEAN = 2

    @classmethod
    def parse(cls, value: object) -> GradientAccumulationReductionMethod | None:
        """A method by itself or by its name; None for what is none.

        Parameters
        ----------
        value:
            A member, or its name in letters of any case.
        """
        if isinstance(value, cls):
            return value
        return cls.__members__.get(str(value).upper())
