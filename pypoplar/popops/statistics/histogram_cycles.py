"""Worker cycles of the vertices that count elements between levels: HistogramPerformanceEstimation of PopLibs."""

from __future__ import annotations

from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target
from pypoplar.types import HALF, ElementType

PAIR = 3  # a vector of elements against a limit; one more to make it absolute


def _rest(elements: int, type: ElementType, absolute: bool) -> int:
    """Of the elements that are no whole vector, against one limit."""
    if type is HALF:
        return (elements & 1) * (3 + absolute) + (elements >> 1 & 1) * (3 + absolute)
    return (elements & 1) * (2 + absolute)


def by_limit_cycles(target: Target, elements: int, limits: int, type: ElementType, absolute: bool) -> int:
    """Of a worker that goes over all elements for its share of the limits."""
    loop = (17 if type is HALF else 11) + _rest(elements, type, absolute)
    loop += (PAIR + absolute) * (elements // target.getVectorWidth(type))
    return 19 + 3 + loop * ceiling(limits, target.getNumWorkerContexts()) + 8 + 2 * limits


def by_data_cycles(target: Target, elements: int, limits: int, type: ElementType, absolute: bool) -> int:
    """Of a worker that goes over its share of the elements for all limits."""
    share = ceiling(elements // target.getVectorWidth(type), target.getNumWorkerContexts())
    loop = (19 if type is HALF else 17) + _rest(elements, type, absolute) + (PAIR + absolute) * share
    return 23 + (5 if type is HALF else 4) + loop * limits + 10


def histogram_flops(elements: int, absolute: bool) -> int:
    """A comparison of each element, and what makes it absolute."""
    return elements * (1 + absolute)
