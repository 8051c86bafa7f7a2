"""What the vertices of solvers take, by poplinCycleEstimators of PopLibs."""

from __future__ import annotations

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poputil.cycles import ceiling, share_of_worker

UPDATE_START, UPDATE_DOT, UPDATE_SUBTRACTION = 80, 44, 32


def triangular_cycles(size: int) -> int:
    """TriangularSolve of a lower matrix of FLOATs and one column."""
    return 3 * size * size // 2 + 180 * size - 126


def triangular_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """As many columns as the busiest worker has."""
    rows = vertex.getFieldInfo("rows")
    size = rows.getSizeAtIndex(0)
    cycles = share_of_worker(rows.size(), vertex.target) * triangular_cycles(size)
    return VertexPerfEstimate(cycles, rows.size() * size * size)


def cholesky_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Cholesky of FLOATs."""
    size = int(vertex.value("size"))
    cycles = size**3 + 102 * size**2 + 101 * size + 102
    flops = size + (size + 1) * size + 2 * ((size + 1) * size * (size - 1) // 6)
    return VertexPerfEstimate(cycles, flops)


def lu_core_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """LUDCoreVertex with 4-byte alignment, by one worker."""
    size = int(vertex.value("size"))
    pairs = size * (size - 1) // 2
    triples = size * (size - 1) * (2 * size - 1) // 6
    return VertexPerfEstimate(5 + 5 * size + 16 * pairs + 7 * triples, 2 * (pairs + triples))


def reflection_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Update, whose workers each take rows of their own here, and the sum of squares that each of them takes."""
    rows, length = vertex.getFieldInfo("rows"), vertex.fieldSize("x")
    pairs = ceiling(length, 2)
    each = UPDATE_DOT + UPDATE_SUBTRACTION + 7 * pairs
    share = share_of_worker(rows.size(), vertex.target)
    return VertexPerfEstimate(UPDATE_START // 6 + 2 * pairs + share * each, (2 + 4 * rows.size()) * length)
