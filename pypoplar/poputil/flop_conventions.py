"""What the libraries' estimators of floating-point operations have in common: the conventions of PopLibs' FlopEstimation.

They give a vertex's operations, those of all workers of a MultiVertex together. See `pypoplar.codelet.ir.flops` for what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poputil.cycles import Estimator
from pypoplar.target import Target

MULTIPLY_ADD = 2  # flopsForMAC


@frozen
class WithFlops:
    """An estimator of cycles and one of flops as one."""

    cycles: Estimator
    flops: Estimator

    def __call__(self, vertex: VertexIntrospector, target: Target) -> VertexPerfEstimate:
        return VertexPerfEstimate(self.cycles(vertex, target), self.flops(vertex, target))


def with_flops(cycles: Mapping[str, Estimator], flops: Mapping[str, Estimator]) -> dict[str, Callable[..., Any]]:
    """Estimators by vertex type, with flops where there are some; the code counts those of the others."""
    return {name: WithFlops(cycle, flops[name]) if name in flops else cycle for name, cycle in cycles.items()}


@frozen
class OfElements:
    """So many for each element of a field."""

    field: str
    each: int

    def __call__(self, vertex: VertexIntrospector, target: Target) -> int:
        return self.each * vertex.fieldSize(self.field)


def sum_flops(count: int) -> int:
    """A sum of so many numbers; the largest of them takes as many comparisons."""
    return max(count - 1, 0)
