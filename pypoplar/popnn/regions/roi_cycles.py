"""What vertices of ROI alignment take. PopLibs gives 10 cycles for any of its own; these count the steps of a worker's loops."""

from __future__ import annotations

from attrs import fields, frozen

from pypoplar.graph.vertex_introspector import VertexIntrospector, VertexPerfEstimate
from pypoplar.poputil.cycles import Count, ceiling, share_of_worker

START = 30  # the vertex's state, and the share of the worker
PLACE = 24  # of a bin: its numbers, the box and its size
AXIS = 14  # of a sample in a dimension: where it is, whether that is outside, both neighbours and their weights
CORNERS = 8  # their addresses and the products of weights
READ, WRITTEN = 8, 12  # of four corners, for 8 bytes of channels: loads and products; the same with stores
BOX = 16  # of a box whose rows are looked at
VECTOR = 8  # bytes
BYTES_OF_SUM = 4  # sums are floats


@frozen
class RoiWork:
    """Sizes that are the same for all vertices of a call."""

    images: int
    height: int
    width: int
    binRows: int
    binColumns: int
    samples: int
    channels: int

    @property
    def bins(self) -> int:
        """Of a box."""
        return self.binRows * self.binColumns

    @property
    def rows(self) -> int:
        """Of all images."""
        return self.images * self.height

    @property
    def vectors(self) -> int:
        """Of 8 bytes that hold the sums of a place."""
        return ceiling(self.channels * BYTES_OF_SUM, VECTOR)


def forward_slots(work: RoiWork, places: Count, rows: Count) -> Count:
    """Of a worker that has so many bins, where samples are spread evenly over all rows and the vertex has `rows` of them."""
    sample = work.samples * work.samples * (AXIS + (CORNERS + READ * work.vectors) * rows // work.rows)
    slots: Count = START + places * (PLACE + work.samples * AXIS + sample + 3 * work.vectors)
    return slots


def backward_slots(work: RoiWork, groups: Count, boxes: Count, lines: Count) -> Count:
    """Of a worker that has so many rows in so many groups, where samples are spread evenly over all rows; a sample meets two."""
    looked_at = boxes * (BOX + work.binRows * work.samples * AXIS)
    sample = work.samples * (AXIS + CORNERS // 2 + WRITTEN // 2 * work.vectors)
    met = ceiling(boxes * 2 * work.binRows * work.samples * lines, work.rows)
    slots: Count = START + lines * work.width * work.vectors + groups * looked_at + met * (BOX + work.binColumns * sample)
    return slots


def forward_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of the busiest worker; a sample is 4 products and 3 sums for each channel."""
    work = _work(vertex)
    places = vertex.fieldSize("out") // work.channels
    slots = forward_slots(work, share_of_worker(places, vertex.target), int(vertex.value("rows")))
    return VertexPerfEstimate(slots, _flops(work, places, int(vertex.value("rows"))))


def backward_estimate(vertex: VertexIntrospector) -> VertexPerfEstimate:
    """Of the busiest worker; a sample is 4 products and 4 sums for each channel."""
    work = _work(vertex)
    rows = int(vertex.value("rows"))
    lines = share_of_worker(vertex.fieldSize("out") // (work.width * work.channels), vertex.target)
    slots = backward_slots(work, ceiling(lines, rows), vertex.fieldSize("batchIndex"), lines)
    return VertexPerfEstimate(slots, _flops(work, vertex.fieldSize("in") // work.channels, rows))


def _flops(work: RoiWork, places: int, rows: int) -> int:
    return places * work.samples * work.samples * work.channels * 8 * rows // work.rows


def _work(vertex: VertexIntrospector) -> RoiWork:
    return RoiWork(**{name: int(vertex.value(name)) for name in (field.name for field in fields(RoiWork))})
