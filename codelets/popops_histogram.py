"""Device code of popops: how many elements lie between levels."""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, Input, MultiVertex, Output, Vector, VertexPerfEstimate, ipu
from pypoplar.popops.statistics.histogram_cycles import by_data_cycles, by_limit_cycles, histogram_flops

T = TypeVar("T", FLOAT, HALF)


def itself(x):
    return x


def magnitude(x):
    return abs(x)


def between(x, limits, place):
    """Whether a number belongs to a place: not below the limit before it, and below the one at it; a NaN to the last place."""
    if place > 0 and x < limits[place - 1]:
        return False
    return place == len(limits) or x < limits[place]


class _Counting(MultiVertex, Generic[T]):
    data: Input[Vector[T]]
    limits: Input[Vector[T]]
    histogram: Output[Vector[FLOAT]]

    of = staticmethod(itself)
    absolute = False
    estimate = staticmethod(by_limit_cycles)

    def cycles(self, vertex):
        data, limits = vertex.getFieldInfo("data"), vertex.fieldSize("limits")
        slots = self.estimate(vertex.target, data.size(), limits, data.elementType(), self.absolute)
        return VertexPerfEstimate(slots, histogram_flops(data.size(), self.absolute))


class _ByLimit(_Counting[T], Generic[T]):
    """The workers divide the limits."""

    def compute(self, worker):
        for place in ipu.worker_range(worker, self.histogram):
            count = 0.0
            for x in self.data:
                if between(self.of(x), self.limits, place):
                    count += 1.0
            self.histogram[place] = count


class _ByData(_Counting[T], Generic[T], writes_all="histogram"):
    """The workers divide the elements: each counts in a row of its own."""

    estimate = staticmethod(by_data_cycles)

    def compute(self, worker):
        first = worker * (len(self.limits) + 1)
        for place in range(len(self.limits) + 1):
            count = 0.0
            for i in ipu.worker_range(worker, self.data):
                if between(self.of(self.data[i]), self.limits, place):
                    count += 1.0
            self.histogram[first + place] = count


class HistogramByLimit(_ByLimit[T], Generic[T], name="popops::Histogram1D<false,true>"):
    pass


class HistogramByData(_ByData[T], Generic[T], name="popops::Histogram1D<false,false>", writes_all="histogram"):
    pass


class AbsoluteHistogramByLimit(_ByLimit[T], Generic[T], name="popops::Histogram1D<true,true>"):
    of = staticmethod(magnitude)
    absolute = True


class AbsoluteHistogramByData(_ByData[T], Generic[T], name="popops::Histogram1D<true,false>", writes_all="histogram"):
    of = staticmethod(magnitude)
    absolute = True
