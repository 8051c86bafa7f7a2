"""Random numbers of a distribution, in the layout of a given tensor."""

from __future__ import annotations

import math

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops import expr
from pypoplar.popops.elements.cast import nearest_cast
from pypoplar.popops.elements.map_functions import mapInPlace
from pypoplar.poprand.drawing_call import DrawingCall, width_of
from pypoplar.poprand.drawn_intervals import DrawnInterval
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, ElementType

REALS = (FLOAT, HALF)
NUMBERS = (FLOAT, HALF, INT)
STEP = 1 / 32  # of normal numbers, in deviations
FARTHEST = 186 * STEP


@public
def uniform(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    reference: Tensor,
    outType: ElementType,
    minVal: float,
    maxVal: float,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor:
    """Random numbers, each as likely, from `minVal` to `maxVal`; `prog` is extended.

    No number lies outside the interval, which is narrowed to numbers that the type has. A FLOAT has 32 random bits before it is
    scaled, a HALF 16. INTs have both ends; unless their number is a power of 2 some are likelier by at most that number over
    2^32.

    Parameters
    ----------
    seed:
        UNSIGNED_INT [2], with which the result depends on seed, modifier and layout alone, and the generators of the workers
        stay as they are; with None they go on.
    seedModifier:
        32 bits that go with a seed, for several calls with one seed, or a tensor UNSIGNED_INT [1] that has them when the call runs;
        without a seed it means nothing.
    reference:
        A tensor with tiles, whose shape and mapping the result has.
    outType:
        FLOAT, HALF or INT.
    minVal, maxVal:
        The ends of the interval.

    Returns
    -------
    Tensor
        A new tensor of `outType`.

    Raises
    ------
    PoplibsError
        For another type, an interval without numbers of the type or beyond the type's, and another seed or modifier.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import INT, poprand, program, testing
    >>> def compute(graph, seed, like):
    ...     poprand.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"dice": poprand.uniform(graph, seed, 0, like, INT, 1, 6, prog)}
    >>> testing.run(compute, {"seed": np.uint32([7, 0]), "like": np.zeros(8, np.int32)})["dice"]
    array([1, 4, 2, 5, 1, 1, 5, 2], dtype=int32)
    """
    call = DrawingCall.of("uniform", graph, seed, seedModifier, reference, prog, debugContext)
    call.check_type("outType", outType, NUMBERS)
    interval = DrawnInterval.within(call.call, outType, call.number("minVal", minVal), call.number("maxVal", maxVal))
    if outType is INT:
        vertex, values = "UniformInteger", {"scale": interval.integer_scale(), "offset": interval.low}
    else:
        scale, offset = interval.scale_and_offset(call.call)
        vertex, values = "Uniform", {"scale": scale, "offset": offset, **width_of(outType)}
    out = call.output(outType)
    call.draw(vertex, out, values)
    return out


@public
def normal(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    reference: Tensor,
    outType: ElementType,
    mean: float,
    stdDev: float,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor:
    """Random numbers that are normal with a mean and a standard deviation, as the hardware makes them; `prog` is extended.

    Parameters
    ----------
    seed:
        UNSIGNED_INT [2], with which the result depends on seed, modifier and layout alone, and the generators of the workers
        stay as they are; with None they go on.
    seedModifier:
        32 bits that go with a seed, for several calls with one seed, or a tensor UNSIGNED_INT [1] that has them when the call runs;
        without a seed it means nothing.
    reference:
        A tensor with tiles, whose shape and mapping the result has.
    outType:
        FLOAT or HALF.
    mean:
        The mean.
    stdDev:
        The standard deviation, 0 at least.

    Returns
    -------
    Tensor
        A new tensor of `outType`.

    Raises
    ------
    PoplibsError
        For another type, a negative deviation, another seed or modifier, and where the type does not go that far.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Notes
    -----
    A number is the sum of twelve random ones of 5 bits, less 186, over 32, times `stdDev`, plus `mean`, computed in float, and
    rounded to a HALF at the end. So there are 373 different numbers, a 32nd of `stdDev` apart, none more than 5.8125 `stdDev`
    from the mean.
    """
    call = DrawingCall.of("normal", graph, seed, seedModifier, reference, prog, debugContext)
    call.check_type("outType", outType, REALS)
    values = {"mean": call.number("mean", mean), "stdDev": call.number("stdDev", stdDev)}
    call.check_spread(outType, values["mean"], values["stdDev"], FARTHEST)
    out = call.output(outType)
    call.draw("Normal", out, values)
    return out


@public
def truncatedNormal(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    reference: Tensor,
    outType: ElementType,
    mean: float,
    stdDev: float,
    alpha: float,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor:
    """Random numbers that are normal, but none more than `alpha` times `stdDev` from the mean; `prog` is extended.

    Parameters
    ----------
    seed:
        UNSIGNED_INT [2], with which the result depends on seed, modifier and layout alone, and the generators of the workers
        stay as they are; with None they go on.
    seedModifier:
        32 bits that go with a seed, for several calls with one seed, or a tensor UNSIGNED_INT [1] that has them when the call runs;
        without a seed it means nothing.
    reference:
        A tensor with tiles, whose shape and mapping the result has.
    outType:
        FLOAT or HALF.
    mean:
        The mean.
    stdDev:
        The standard deviation of the whole normal distribution, 0 at least.
    alpha:
        The largest distance from the mean in standard deviations, 1/32 at least: numbers are that far apart.

    Returns
    -------
    Tensor
        A new tensor of `outType`.

    Raises
    ------
    PoplibsError
        For another type, seed or modifier, a negative deviation, a smaller `alpha`, and where the type does not go as far.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Notes
    -----
    A number is the first of those of `normal` that is not too far. There are so many attempts that one of 10,000 numbers has
    none: it is the sum of two uniform ones from ``-alpha / 2`` to ``alpha / 2``.
    """
    call = DrawingCall.of("truncatedNormal", graph, seed, seedModifier, reference, prog, debugContext)
    call.check_type("outType", outType, REALS)
    values = {"mean": call.number("mean", mean), "stdDev": call.number("stdDev", stdDev), "alpha": call.number("alpha", alpha)}
    if alpha < STEP:
        raise PoplibsError(f"{call.call}: alpha is 1/32 at least, the distance of the numbers drawn, got {alpha!r}")
    values["alpha"] = min(values["alpha"], FARTHEST)
    call.check_spread(outType, values["mean"], values["stdDev"], values["alpha"])
    out = call.output(outType)
    call.draw("TruncatedNormal", out, {**values, "iterations": attempts(values["alpha"])})
    return out


def attempts(alpha: float) -> int:
    """How many normal numbers are drawn so that one of 10,000 results has none within alpha deviations."""
    return math.ceil(-4 / math.log10(math.erfc(alpha / math.sqrt(2))))


@public
def bernoulli(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    reference: Tensor,
    outType: ElementType,
    prob: float,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor:
    """Ones with a certain probability, and zeros; `prog` is extended.

    Parameters
    ----------
    seed:
        UNSIGNED_INT [2], with which the result depends on seed, modifier and layout alone, and the generators of the workers
        stay as they are; with None they go on.
    seedModifier:
        32 bits that go with a seed, for several calls with one seed, or a tensor UNSIGNED_INT [1] that has them when the call runs;
        without a seed it means nothing.
    reference:
        A tensor with tiles, whose shape and mapping the result has.
    outType:
        FLOAT, HALF or INT.
    prob:
        The probability of a one, 0 to 1, rounded down to a multiple of 2^-16.

    Returns
    -------
    Tensor
        A new tensor of `outType`.

    Raises
    ------
    PoplibsError
        For another type, seed, modifier or probability.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = DrawingCall.of("bernoulli", graph, seed, seedModifier, reference, prog, debugContext)
    call.check_type("outType", outType, NUMBERS)
    parts = call.probability("prob", prob)
    out = call.output(outType)
    call.draw("Bernoulli", out, {"prob": parts, **width_of(outType)})
    return out


@public
def logUniform(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    reference: Tensor,
    outType: ElementType,
    minVal: float,
    maxVal: float,
    prog: Sequence,
    base: float = math.e,
    debugContext: str | None = None,
) -> Tensor:
    """Random numbers from `minVal` to `maxVal` whose logarithms are uniform; `prog` is extended.

    The logarithms are drawn as FLOATs; their powers are held within the interval, narrowed to numbers that the type has, and
    cast to it: an INT is cut towards 0.

    Parameters
    ----------
    seed:
        UNSIGNED_INT [2], with which the result depends on seed, modifier and layout alone, and the generators of the workers
        stay as they are; with None they go on.
    seedModifier:
        32 bits that go with a seed, for several calls with one seed, or a tensor UNSIGNED_INT [1] that has them when the call runs;
        without a seed it means nothing.
    reference:
        A tensor with tiles, whose shape and mapping the result has.
    outType:
        FLOAT, HALF or INT.
    minVal, maxVal:
        The ends of the interval, ``1 <= minVal < maxVal``; those of INTs are whole.
    base:
        The base of the logarithms, above 1.

    Returns
    -------
    Tensor
        A new tensor of `outType`.

    Raises
    ------
    PoplibsError
        For another type, interval, base, seed or modifier, and an interval without numbers of the type, or beyond the type's.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = DrawingCall.of("logUniform", graph, seed, seedModifier, reference, prog, debugContext)
    call.check_type("outType", outType, NUMBERS)
    low, high, power = call.number("minVal", minVal), call.number("maxVal", maxVal), call.number("base", base)
    if not 1 <= low < high:
        raise PoplibsError(f"{call.call}: minVal is 1 at least and below maxVal, got [{minVal}, {maxVal}]")
    if power <= 1:
        raise PoplibsError(f"{call.call}: base is above 1, got {base!r}")
    held = DrawnInterval.within(call.call, outType, low, high)
    factor = float(np.float32(math.log(power)))
    first, last = (float(np.float32(math.log(end) / factor)) for end in (held.low, held.high))
    logs = uniform(graph, seed, seedModifier, reference, FLOAT, first, last, prog, call.debug)
    tree = expr.Clamp(expr.Exp(expr.Mul(expr._1, expr.Const(factor))), expr.Const(float(held.low)), expr.Const(float(held.high)))
    mapInPlace(graph, tree, [logs], prog, call.debug)
    return logs if outType is FLOAT else nearest_cast(graph, logs, outType, prog, call.debug)
