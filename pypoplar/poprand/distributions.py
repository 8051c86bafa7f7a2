"""Random numbers of a distribution, in the layout of a given tensor."""

from __future__ import annotations

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.poprand.drawing_call import DrawingCall
from pypoplar.poprand.drawn_intervals import DrawnInterval
from pypoplar.program import Sequence
from pypoplar.tracebacks import public
from pypoplar.types import FLOAT, HALF, INT, ElementType

REALS = (FLOAT, HALF)
NUMBERS = (FLOAT, HALF, INT)


@public
def uniform(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int,
    reference: Tensor,
    outType: ElementType,
    minVal: float,
    maxVal: float,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor:
    """Random numbers of `outType` (FLOAT, HALF, INT), each as likely, from `minVal` to `maxVal`; `prog` is extended.

    The result has the shape and the mapping of `reference`. With a `seed` (UNSIGNED_INT [2]) it depends on the seed, the modifier
    and the layout alone, and the workers' generators stay as they are; with None they go on, and the modifier means nothing.

    No number lies outside the interval, which is narrowed to numbers that the type has. A FLOAT has 32 random bits before it is
    scaled, a HALF 16. INTs have both ends; unless their number is a power of 2 some are likelier by at most that number over 2**32.
    `PoplibsError` for an interval without numbers of the type, or beyond the type's.
    """
    call = DrawingCall.of("uniform", graph, seed, seedModifier, reference, prog, debugContext)
    call.check_type("outType", outType, NUMBERS)
    interval = DrawnInterval.within(call.call, outType, call.number("minVal", minVal), call.number("maxVal", maxVal))
    scale, offset = (interval.integer_scale(), interval.low) if outType is INT else interval.scale_and_offset(call.call)
    out = call.output(outType)
    call.draw("Uniform", out, {"scale": scale, "offset": offset})
    return out
