"""Worker cycles of the splines' vertices: the rough estimates of popopsCycleEstimators of PopLibs."""

from __future__ import annotations

from pypoplar.types import FLOAT, ElementType

BASIS = 30  # for an element; of FLOATs twice that
WEIGHTING = 15  # for an element, an input channel and a spline; of FLOATs twice that


def basis_cycles(share: int, type: ElementType) -> int:
    """Of a worker that computes so many elements."""
    return BASIS * share * (2 if type is FLOAT else 1)


def weighting_cycles(share: int, channels: int, splines: int, type: ElementType) -> int:
    """Of a worker that computes so many elements of the output, each from all channels and splines."""
    return WEIGHTING * channels * splines * share * (2 if type is FLOAT else 1)
