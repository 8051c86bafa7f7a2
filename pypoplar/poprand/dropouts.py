"""Masks of random zeros over a tensor."""

from __future__ import annotations

from typing import overload

import numpy as np

from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.popops.elements.element_functions import mul, mulInPlace
from pypoplar.poprand.distributions import REALS, bernoulli
from pypoplar.poprand.drawing_call import DrawingCall, width_of
from pypoplar.poputil.arguments import check_operands
from pypoplar.poputil.broadcast import broadcast_shape
from pypoplar.poputil.copies import duplicate
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.naming import below
from pypoplar.poputil.overloads import overloaded
from pypoplar.program import Copy, Sequence
from pypoplar.tracebacks import public

CERTAIN = 2**16  # a probability of 1


@overload
def dropout(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    input: Tensor,
    reference: Tensor,
    keepProbability: float,
    scale: float,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor: ...
@overload
def dropout(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    input: Tensor,
    reference: Tensor,
    keepProbability: float,
    scale: float,
    outputClonesRef: bool,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor: ...
@overloaded("poprand.dropout")
def dropout(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    input: Tensor,
    reference: Tensor,
    keepProbability: float,
    scale: float,
    prog: Sequence,
    outputClonesRef: bool = True,
    debugContext: str | None = None,
) -> Tensor:
    """The elements of a tensor times a scale, each kept with a certain probability, or 0 instead; `prog` is extended.

    The mask depends on seed, modifier, probability and the layout of `reference`: with a seed it is the same in the backward
    pass. Where all elements are kept and the scale is 1 the result is a copy of `input`.

    Parameters
    ----------
    seed:
        UNSIGNED_INT [2], with which the result depends on seed, modifier and layout alone, and the generators of the workers
        stay as they are; with None they go on.
    seedModifier:
        32 bits that go with a seed, for several calls with one seed, or a tensor UNSIGNED_INT [1] that has them when the call runs;
        without a seed it means nothing.
    input:
        FLOAT or HALF of any shape.
    reference:
        A tensor of the shape of `input`, with tiles.
    keepProbability:
        The probability that an element is kept, 0 to 1, rounded down to a multiple of 2^-16.
    scale:
        What is kept is multiplied by it, ``1 / keepProbability`` as a rule.
    outputClonesRef:
        Whether the result is laid out as `reference`, else as `input`.

    Returns
    -------
    Tensor
        A new tensor of the type and shape of `input`.

    Raises
    ------
    PoplibsError
        For another shape, type, seed, modifier or probability, and a scale that the type does not have.
    InvalidTileMapping
        If an element of a tensor has no tile.

    Examples
    --------
    >>> import numpy as np
    >>> from pypoplar import poprand, program, testing
    >>> def compute(graph, seed, x):
    ...     poprand.addCodelets(graph)
    ...     prog = program.Sequence()
    ...     return prog, {"y": poprand.dropout(graph, seed, 0, x, x, 0.5, 2.0, prog)}
    >>> testing.run(compute, {"seed": np.uint32([7, 0]), "x": np.ones(8, np.float32)})["y"]
    array([2., 0., 2., 0., 2., 2., 0., 2.], dtype=float32)
    """
    call = DrawingCall.of("dropout", graph, seed, seedModifier, reference, prog, debugContext)
    kept = _kept(call, input, keepProbability, scale)
    if input.shape() != reference.shape():
        raise PoplibsError(f"{call.call}: input and reference have one shape, got {input!r} and {reference!r}")
    if kept == CERTAIN and scale == 1:
        return duplicate(graph, input, prog, below(call.debug, "out"))
    type = input.elementType()
    masked = call.output(type)
    call.draw("Dropout", masked, {"prob": kept, "scale": scale, **width_of(type)}, {"in": input})
    if outputClonesRef:
        return masked
    out = graph.clone(input, below(call.debug, "out"))
    prog.add(Copy(masked, out, call.debug))
    return out


@public
def shapedDropout(
    graph: Graph,
    seed: Tensor | None,
    seedModifier: int | Tensor,
    input: Tensor,
    reference: Tensor,
    keepProbability: float,
    scale: float,
    prog: Sequence,
    debugContext: str | None = None,
) -> Tensor:
    """`dropout` of whole rows, columns or other parts of a tensor; `prog` is extended.

    The mask is what `bernoulli` draws for `reference`, and is broadcast to the shape of `input`.

    Parameters
    ----------
    seed:
        UNSIGNED_INT [2], with which the result depends on seed, modifier and layout alone, and the generators of the workers
        stay as they are; with None they go on.
    seedModifier:
        32 bits that go with a seed, for several calls with one seed, or a tensor UNSIGNED_INT [1] that has them when the call runs;
        without a seed it means nothing.
    input:
        FLOAT or HALF of any shape.
    reference:
        A tensor of the shape of the mask, with tiles.
    keepProbability:
        The probability that a part is kept, 0 to 1, rounded down to a multiple of 2^-16.
    scale:
        What is kept is multiplied by it, ``1 / keepProbability`` as a rule.

    Returns
    -------
    Tensor
        A new tensor of the type and shape of `input`.

    Raises
    ------
    PoplibsError
        For a shape that is not broadcast to that of `input`, another type, seed, modifier or probability, and a scale that the
        type does not have.
    InvalidTileMapping
        If an element of a tensor has no tile.
    """
    call = DrawingCall.of("shapedDropout", graph, seed, seedModifier, reference, prog, debugContext)
    kept = _kept(call, input, keepProbability, scale)
    if broadcast_shape(input.shape(), reference.shape()) != input.shape():
        raise PoplibsError(
            f"{call.call}: the shape of reference can be broadcast to that of input, got {reference!r} and {input!r}"
        )
    if kept == CERTAIN and scale == 1:
        return duplicate(graph, input, prog, below(call.debug, "out"))
    mask = bernoulli(graph, seed, seedModifier, reference, input.elementType(), keepProbability, prog, call.debug)
    if scale != 1:
        mulInPlace(graph, mask, float(scale), prog, call.debug)
    return mul(graph, input, mask, prog, call.debug)


def _kept(call: DrawingCall, input: Tensor, keepProbability: float, scale: float) -> int:
    """The probability that an element is kept, in parts of 2**16; refuses arguments that both calls refuse."""
    check_operands(call.call, call.graph, input=input)
    call.check_type("input of", input.elementType(), REALS)
    kept = call.probability("keepProbability", keepProbability)
    largest = float(np.finfo(input.elementType().dtype).max)
    if abs(call.number("scale", scale)) > largest:
        raise PoplibsError(f"{call.call}: {input.elementType()!r} ends at {largest:.7g}, and the scale is {scale!r}")
    return kept
