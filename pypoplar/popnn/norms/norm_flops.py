"""Floating point operations of norm layers, as PopLibs counts them."""

from __future__ import annotations

from pypoplar.poputil.arguments import check_flag, whole_number
from pypoplar.tracebacks import public


@public
def getNormFwdFlops(statisticsSize: int, numActsElements: int, computeStats: bool = True) -> int:
    """The operations of a norm's forward pass; square roots do not count.

    Parameters
    ----------
    statisticsSize:
        How many means there are.
    numActsElements:
        How many elements the activations have.
    computeStats:
        Whether the statistics are computed.

    Returns
    -------
    int
        With statistics 6 for each element (sum, sum of squares, whitening, scale and shift) and 5 for each mean, without 2 for
        each element.
    """
    statistics, elements = _sizes("popnn.getNormFwdFlops", statisticsSize=statisticsSize, numActsElements=numActsElements)
    check_flag("popnn.getNormFwdFlops", "computeStats", computeStats)
    return 6 * elements + 5 * statistics if computeStats else 2 * elements


@public
def getNormBwdFlops(statisticsSize: int, numActsElements: int) -> int:
    """The operations of the gradient of a norm's activations.

    Parameters
    ----------
    statisticsSize:
        How many means there are.
    numActsElements:
        How many elements the activations have.

    Returns
    -------
    int
        8 for each element and 2 for each mean.
    """
    statistics, elements = _sizes("popnn.getNormBwdFlops", statisticsSize=statisticsSize, numActsElements=numActsElements)
    return 8 * elements + 2 * statistics


@public
def getNormWuFlops(paramsSize: int, numActsElements: int) -> int:
    """The operations of the gradients of a norm's parameters, and of their update.

    Parameters
    ----------
    paramsSize:
        How many channels there are.
    numActsElements:
        How many elements the activations have.

    Returns
    -------
    int
        3 for each element and 4 for each channel.
    """
    parameters, elements = _sizes("popnn.getNormWuFlops", paramsSize=paramsSize, numActsElements=numActsElements)
    return 3 * elements + 4 * parameters


def _sizes(call: str, **sizes: int) -> tuple[int, ...]:
    return tuple(whole_number(call, name, size) for name, size in sizes.items())
