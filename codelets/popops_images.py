"""Device code of popops: images as networks take them."""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, UNSIGNED_CHAR, Input, MultiVertex, Output, Vector, VertexPerfEstimate, ipu
from pypoplar.popops.images.normalise_image import FLOPS_OF_A_PIXEL, normalise_cycles

In = TypeVar("In", FLOAT, HALF, UNSIGNED_CHAR)
Out = TypeVar("Out", FLOAT, HALF)


class NormaliseImage(MultiVertex, Generic[In, Out], name="popops::NormaliseImage", writes_all="out"):
    """Pixels of three channels, scaled, as pixels of four."""

    in_: Input[Vector[In]]
    out: Output[Vector[Out]]
    scales: Input[Vector[Out]]
    offsets: Input[Vector[Out]]
    inScale: Out

    def compute(self, worker):
        for pixel in ipu.worker_range(worker, len(self.out) // 4):
            for channel in range(3):
                value = Out(self.in_[3 * pixel + channel]) * self.inScale
                self.out[4 * pixel + channel] = (value - self.offsets[channel]) * self.scales[channel]
            self.out[4 * pixel + 3] = Out(0.0)

    def cycles(self, vertex):
        pixels = vertex.fieldSize("out") // 4
        slots = normalise_cycles(vertex.target, pixels, vertex.getFieldInfo("in").elementType())
        return VertexPerfEstimate(slots, pixels * FLOPS_OF_A_PIXEL)
