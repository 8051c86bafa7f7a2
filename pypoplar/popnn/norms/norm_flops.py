"""Floating point operations of norm layers, as PopLibs counts them."""

from __future__ import annotations

from pypoplar.poputil.arguments import check_flag, whole_number
from pypoplar.tracebacks import public


@public
def getNormFwdFlops(statisticsSize: int, numActsElements: int, computeStats: bool = True) -> int:
    """Operations of a norm of `numActsElements` elements with as many means as `statisticsSize` says.

    With `computeStats` they are 6 for each element (sum, sum of squares, whitening, scale and shift) and 5 for each mean, without
    2 for each element; square roots do not count.
    """
    statistics, elements = _sizes("popnn.getNormFwdFlops", statisticsSize=statisticsSize, numActsElements=numActsElements)
    check_flag("popnn.getNormFwdFlops", "computeStats", computeStats)
    return 6 * elements + 5 * statistics if computeStats else 2 * elements


@public
def getNormBwdFlops(statisticsSize: int, numActsElements: int) -> int:
    """Operations of the gradient of the activations: 8 for each element and 2 for each mean."""
    statistics, elements = _sizes("popnn.getNormBwdFlops", statisticsSize=statisticsSize, numActsElements=numActsElements)
    return 8 * elements + 2 * statistics


@public
def getNormWuFlops(paramsSize: int, numActsElements: int) -> int:
    """Operations of the gradients of the parameters, 3 for each element, and their update, 4 for each of `paramsSize` channels."""
    parameters, elements = _sizes("popnn.getNormWuFlops", paramsSize=paramsSize, numActsElements=numActsElements)
    return 3 * elements + 4 * parameters


def _sizes(call: str, **sizes: int) -> tuple[int, ...]:
    return tuple(whole_number(call, name, size) for name, size in sizes.items())
