"""What vertices of pooling take: getPoolingCycles of PopLibs' popnn/PerformanceEstimation, for the busiest worker."""

from __future__ import annotations

from typing import Literal

import numpy as np

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.popops.elements.loop_cycles import loop_round
from pypoplar.poputil.cycles import ceiling, supervisor_slots
from pypoplar.types import ElementType

Kind = Literal["max", "sum", "max gradient", "scale"]
VECTOR = 8  # bytes of a load
START = 24  # vertex state, and how the initialisation is divided
BEFORE_ROWS = {"max": 16, "sum": 17, "max gradient": 26, "scale": 16}
ROW, RUN, CHANNELS = 15, 24, 4  # of a row, a run of places, and a vector of channels, beside the loop
FIRST, NEXT = {"max": 4, "sum": 5, "max gradient": 7, "scale": 4}, {"max": 3, "sum": 3, "max gradient": 5, "scale": 3}
UNPACKED = 2
SUPERVISOR = supervisor_slots(13)


def worker_slots(kind: Kind, vectors: int, places: Int64s, rows: Int64s, runs: Int64s, elements: Int64s) -> Int64s:
    """Slots of a worker for so many runs of `elements` places in all, in so many rows; a place has `vectors` of channels."""
    slots: Int64s = START + UNPACKED + 4 + places * vectors + 6 + UNPACKED + BEFORE_ROWS[kind] + ROW * rows
    slots = slots + runs * (RUN + vectors * (CHANNELS - 1 + FIRST[kind])) + vectors * NEXT[kind] * (elements - runs) + 1
    return slots


def pool_estimate(vertex: VertexIntrospector, kind: Kind) -> VertexPerfEstimate:
    """Of a vertex whose workers have runs of places; with a product of the gradients for those that are scaled."""
    out = vertex.getFieldInfo("out")
    channels, row = int(vertex.value("channels")), max(int(vertex.value("row")), 1)
    vectors = vectors_of(out.elementType(), channels)
    counts = np.asarray(vertex.value("work")).reshape(-1, 3)[:, 2].astype(np.int64)
    totals = np.append(0, np.cumsum(counts))
    runs = np.asarray(vertex.value("firstRun")).astype(np.int64)
    places = np.asarray(vertex.value("firstPlace")).astype(np.int64)
    begin, end = places[:-1], places[1:]
    rows = np.where(end > begin, (end - 1) // row - begin // row + 1, 0)
    slots = worker_slots(kind, vectors, end - begin, rows, np.diff(runs), np.diff(totals[runs]))
    if kind == "scale":
        products = loop_round("MULTIPLY", out.elementType().code, "plain")
        slots = slots + -(-(end - begin) * channels // products.elements) * products.cycles
    flops = int(totals[-1]) * channels + (out.size() if kind in ("sum", "scale") else 0)
    return VertexPerfEstimate(SUPERVISOR + int(slots.max()), flops)


def vectors_of(type: ElementType, channels: int) -> int:
    """Vectors of 8 bytes that hold the channels of a place."""
    return ceiling(channels * type.size, VECTOR)
