"""Device code of popops: one slice of a tile's part of a tensor, at an offset that is known when the program runs.

The dimension that is sliced has `numBaseElements` rows, of which a slice takes `numSubElements`, going on with row 0 after the last
one. An offset that is no row is taken for 0 with `remapOutOfBoundIndices`; without it a slice is zeros, and an update does nothing.
"""

from typing import Generic, TypeVar

from pypoplar import BOOL, INT, UNSIGNED_INT, InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex, ipu
from pypoplar.popops.slicing.slice_cycles import dynamic_slice_1d_cycles, dynamic_slice_2d_cycles
from pypoplar.types import SUPPORTED

T = TypeVar("T", *SUPPORTED)


def first_row(offset, rows, remap):
    """The row at an offset, `rows` if there is none."""
    if offset < rows:
        return int(offset)
    return 0 if remap else rows


class _OneRegion(MultiVertex):
    """The rows lie one behind the other, each of `regionSize` elements."""

    offset: Input[UNSIGNED_INT]
    numBaseElements: INT
    numSubElements: INT
    regionSize: INT
    remapOutOfBoundIndices: BOOL

    def cycles(self, vertex):
        region, rows = vertex.value("regionSize"), vertex.value("numSubElements")
        return dynamic_slice_1d_cycles(vertex.target, vertex.getFieldInfo("baseT").elementType(), int(region), int(rows))


class DynamicSlice1D(_OneRegion, Generic[T], name="popops::DynamicSlice1D", writes_all="subT"):
    """subT is the slice of baseT."""

    baseT: Input[Vector[T]]
    subT: Output[Vector[T]]

    def compute(self, worker):
        first = first_row(self.offset, self.numBaseElements, self.remapOutOfBoundIndices)
        if first == self.numBaseElements:
            for i in ipu.worker_range(worker, self.subT):
                self.subT[i] = T(0)
        else:
            for i in ipu.worker_range(worker, self.subT):
                row = first + i // self.regionSize
                if row >= self.numBaseElements:
                    row -= self.numBaseElements
                self.subT[i] = self.baseT[row * self.regionSize + i % self.regionSize]


class DynamicUpdateSlice1D(_OneRegion, Generic[T], name="popops::DynamicUpdateSlice1D"):
    """subT replaces the slice of baseT; each worker takes `elementsPerWorker` of every row."""

    baseT: InOut[Vector[T]]
    subT: Input[Vector[T]]
    elementsPerWorker: INT

    def compute(self, worker):
        begin = min(worker * self.elementsPerWorker, self.regionSize)
        end = min(begin + self.elementsPerWorker, self.regionSize)
        row = first_row(self.offset, self.numBaseElements, self.remapOutOfBoundIndices)
        if row < self.numBaseElements:
            for sub in range(self.numSubElements):
                for i in range(begin, end):
                    self.baseT[row * self.regionSize + i] = self.subT[sub * self.regionSize + i]
                row += 1
                if row == self.numBaseElements:
                    row = 0


class _SeveralRegions(Vertex):
    """Of each region all rows of the base, and all of the slice, stand in the lists."""

    offset: Input[UNSIGNED_INT]
    numBaseElements: INT
    numSubElements: INT
    remapOutOfBoundIndices: BOOL


class DynamicSlice2D(_SeveralRegions, Generic[T], name="popops::DynamicSlice2D", writes_all="subT"):
    """subT is the slice of baseT."""

    baseT: Input[VectorList[T]]
    subT: Output[VectorList[T]]

    def compute(self):
        first = first_row(self.offset, self.numBaseElements, self.remapOutOfBoundIndices)
        for place in range(len(self.subT)):
            row = first + place % self.numSubElements
            if row >= self.numBaseElements:
                row -= self.numBaseElements
            source = place // self.numSubElements * self.numBaseElements + row
            if first == self.numBaseElements:
                for i in range(len(self.subT[place])):
                    self.subT[place][i] = T(0)
            else:
                for i in range(len(self.subT[place])):
                    self.subT[place][i] = self.baseT[source][i]

    def cycles(self, vertex):
        return several_regions_cycles(vertex, update=False)


class DynamicUpdateSlice2D(_SeveralRegions, Generic[T], name="popops::DynamicUpdateSlice2D"):
    """subT replaces the slice of baseT."""

    baseT: InOut[VectorList[T]]
    subT: Input[VectorList[T]]

    def compute(self):
        first = first_row(self.offset, self.numBaseElements, self.remapOutOfBoundIndices)
        if first < self.numBaseElements:
            for place in range(len(self.subT)):
                row = first + place % self.numSubElements
                if row >= self.numBaseElements:
                    row -= self.numBaseElements
                target = place // self.numSubElements * self.numBaseElements + row
                for i in range(len(self.subT[place])):
                    self.baseT[target][i] = self.subT[place][i]

    def cycles(self, vertex):
        return several_regions_cycles(vertex, update=True)


def several_regions_cycles(vertex, update):
    """The estimate of a vertex with lists."""
    rows, sub = int(vertex.value("numSubElements")), vertex.getFieldInfo("subT")
    regions = (sub.getSizeAtIndex(place) for place in range(0, sub.size(), rows))
    return dynamic_slice_2d_cycles(vertex.target, sub.elementType(), regions, rows, update)
