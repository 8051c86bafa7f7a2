"""What vertices of connectionist temporal classification take: alphaCycles and its kin of PopLibs' PerformanceEstimation.

The vertices that gather and those of gradients are not PopLibs': they are counted from the same parts.
"""

from __future__ import annotations

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poputil.cycles import Count

ENTRY = 12  # slots of entry and exit
EXP, LOG_ADD, LOG_MUL = 3, 16, 1  # logAddCycles, logMulCycles
PAIR = 2 * (1 + 3) + 2 * LOG_ADD + 2 * LOG_MUL + 2  # alphaCycles of a symbol and the blank before it
LOG_ADD_FLOPS, LOG_MUL_FLOPS = 6, 1  # flopsForLogAdd, flopsForLogMultiply
GATHERED = 6  # label, its place, element and store of an emission
CLASS = 1 + EXP + 1  # exp of a class: load and store
STATE = 2 + 2 + EXP + 4  # of a state: alpha and beta, two sums, exp, and its class's gradient changed


def pair_slots(symbols: Count) -> Count:
    """A step of a vertex with so many symbols and the blanks before them."""
    slots: Count = ENTRY + PAIR * symbols
    return slots


def recursion_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """CTCAlpha and CTCBeta."""
    symbols = vertex.getFieldInfo("labels").size() - 1
    return VertexPerfEstimate(pair_slots(symbols), symbols * 2 * (LOG_ADD_FLOPS + LOG_MUL_FLOPS))


def gather_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Each emission of each step."""
    pieces = vertex.getFieldInfo("emissions")
    return VertexPerfEstimate(ENTRY + GATHERED * sum(pieces.getSizeAtIndex(row) for row in range(pieces.size())))


def gradient_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Each class and each state of each step."""
    classes = vertex.getFieldInfo("logProbs").size()
    steps = classes // int(vertex.value("numClasses"))
    states = steps * (2 * vertex.getFieldInfo("labels").size() + 1)
    return VertexPerfEstimate(ENTRY + CLASS * classes + STATE * states, classes + 4 * states)


def loss_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """The sum of the last two states."""
    return VertexPerfEstimate(ENTRY + LOG_ADD, LOG_ADD_FLOPS + 1)
