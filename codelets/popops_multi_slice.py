"""Device code of popops: many slices of a table, and updates of many of its entries.

A tile has `numBaseElements` entries, from `baseOffset` on, of `regionSize` elements each, and sees all offsets. Where cycles depend
on how many of a worker's offsets are among its entries, `offsetsInRangePerWorker` says how many are expected.
"""

from typing import Generic, TypeVar

from pypoplar import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, InOut, Input, MultiVertex, Output, Vector, ipu
from pypoplar.popops.slicing.slice_cycles import multi_slice_cycles, select_part_cycles, update_op_cycles
from pypoplar.poputil.cycles import share_of_worker
from pypoplar.types import SUPPORTED

T = TypeVar("T", *SUPPORTED)
Number = TypeVar("Number", FLOAT, HALF, INT, UNSIGNED_INT)
Scale = TypeVar("Scale", FLOAT, HALF, INT, UNSIGNED_INT)


class _Lookup(MultiVertex):
    offsets: Input[Vector[UNSIGNED_INT]]
    baseOffset: UNSIGNED_INT
    numBaseElements: UNSIGNED_INT
    regionSize: INT
    offsetsInRangePerWorker: INT

    def cycles(self, vertex):
        sub, region, offsets = vertex.getFieldInfo("subT"), int(vertex.value("regionSize")), vertex.fieldSize("offsets")
        in_range = int(vertex.value("offsetsInRangePerWorker"))
        share = share_of_worker(offsets, vertex.target)
        divided = offsets == 1 and region * sub.elementType().size % 4 == 0
        return multi_slice_cycles(vertex.target, sub.elementType(), region, share, min(share, in_range), divided=divided)


class MultiSlice(_Lookup, Generic[T], name="popops::MultiSlice", writes_all="subT"):
    """Row o of subT is the entry at offset o, zeros where there is none."""

    baseT: Input[Vector[T]]
    subT: Output[Vector[T]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.subT):
            row = self.offsets[i // self.regionSize] - self.baseOffset
            if row < self.numBaseElements:
                self.subT[i] = self.baseT[int(row) * self.regionSize + i % self.regionSize]
            else:
                self.subT[i] = T(0)


class MultiSlicePart(_Lookup, Generic[T], name="popops::MultiSlicePart"):
    """Row o of subT is the entry at offset o; where the tile does not have it, nothing is written."""

    baseT: Input[Vector[T]]
    subT: Output[Vector[T]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.subT):
            row = self.offsets[i // self.regionSize] - self.baseOffset
            if row < self.numBaseElements:
                self.subT[i] = self.baseT[int(row) * self.regionSize + i % self.regionSize]


class MultiSliceSelect(MultiVertex, Generic[T], name="popops::MultiSliceSelect", writes_all="subT"):
    """Of the rows that several parts of a table gave for each offset that of the part which has the entry; zeros if none has."""

    offsets: Input[Vector[UNSIGNED_INT]]
    parts: Input[Vector[T]]
    subT: Output[Vector[T]]
    numEntries: UNSIGNED_INT
    entriesOfPart: UNSIGNED_INT
    regionSize: INT

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.subT):
            offset = self.offsets[i // self.regionSize]
            if offset < self.numEntries:
                self.subT[i] = self.parts[int(offset // self.entriesOfPart) * len(self.subT) + i]
            else:
                self.subT[i] = T(0)

    def cycles(self, vertex):
        share = share_of_worker(vertex.fieldSize("offsets"), vertex.target)
        type = vertex.getFieldInfo("subT").elementType()
        return select_part_cycles(vertex.target, type, int(vertex.value("regionSize")), share)


class _Update(MultiVertex):
    """Each worker updates `elementsPerWorker` of the tile's entries, in the order of the offsets."""

    offsets: Input[Vector[UNSIGNED_INT]]
    baseOffset: UNSIGNED_INT
    numBaseElements: UNSIGNED_INT
    regionSize: INT
    elementsPerWorker: INT
    offsetsInRangePerWorker: INT
    indicesAreSorted: BOOL

    def row_of_worker(self, worker, place):
        """The entry of the worker at an offset, or -1."""
        row = self.offsets[place] - self.baseOffset
        if row >= self.numBaseElements:
            return -1
        own = int(row) - worker * self.elementsPerWorker
        return int(row) if 0 <= own < self.elementsPerWorker else -1


class MultiUpdate(_Update, Generic[T], name="popops::MultiUpdate"):
    """The entry at offset o becomes row o of subT; of several rows for an entry the last one stays."""

    baseT: InOut[Vector[T]]
    subT: Input[Vector[T]]

    def compute(self, worker):
        for place in range(len(self.offsets)):
            row = self.row_of_worker(worker, place)
            if row >= 0:
                for i in range(self.regionSize):
                    self.baseT[row * self.regionSize + i] = self.subT[place * self.regionSize + i]

    def cycles(self, vertex):
        type, region = vertex.getFieldInfo("subT").elementType(), int(vertex.value("regionSize"))
        in_range = int(vertex.value("offsetsInRangePerWorker"))
        return multi_slice_cycles(vertex.target, type, region, vertex.fieldSize("offsets"), in_range, update=True)


class _UpdateOp(_Update, Generic[Number]):
    """Rows are combined with entries one after the other."""

    baseT: InOut[Vector[Number]]
    subT: Input[Vector[Number]]

    def cycles(self, vertex):
        return update_op_estimate(vertex)


class MultiUpdateMax(_UpdateOp[Number], Generic[Number], name="popops::MultiUpdateOp<max>"):
    """The entry at offset o becomes the larger of it and row o of subT, element by element."""

    def compute(self, worker):
        for place in range(len(self.offsets)):
            row = self.row_of_worker(worker, place)
            if row >= 0:
                for i in range(self.regionSize):
                    at = row * self.regionSize + i
                    self.baseT[at] = max(self.baseT[at], self.subT[place * self.regionSize + i])


class MultiUpdateMul(_UpdateOp[Number], Generic[Number], name="popops::MultiUpdateOp<mul>"):
    """The entry at offset o is multiplied by row o of subT, element by element."""

    def compute(self, worker):
        for place in range(len(self.offsets)):
            row = self.row_of_worker(worker, place)
            if row >= 0:
                for i in range(self.regionSize):
                    self.baseT[row * self.regionSize + i] *= self.subT[place * self.regionSize + i]


class ScaledMultiUpdateAdd(_UpdateOp[Number], Generic[Number, Scale], name="popops::ScaledMultiUpdateOp<add>"):
    """A multiple of row o of subT is added to the entry at offset o; halves are computed in float, and rounded once."""

    scale: Input[Scale]

    def compute(self, worker):
        for place in range(len(self.offsets)):
            row = self.row_of_worker(worker, place)
            if row >= 0:
                for i in range(self.regionSize):
                    self.add(row * self.regionSize + i, place * self.regionSize + i)

    def add(self, at, of):
        """Add a multiple of element `of` of subT to element `at` of baseT."""
        self.baseT[at] = Number(float(self.baseT[at]) + float(self.scale) * float(self.subT[of]))


class AddWhole(ScaledMultiUpdateAdd[Number, Scale], Generic[Number, Scale], name="popops::ScaledMultiUpdateOp<add-whole>"):
    """The same of whole numbers, which wrap."""

    def add(self, at, of):
        self.baseT[at] += self.scale * self.subT[of]


def update_op_estimate(vertex):
    """The estimate of a vertex that combines rows with entries."""
    type, operation = vertex.getFieldInfo("subT").elementType(), vertex.templateArguments()[0]
    scaled = operation.startswith("add")
    return update_op_cycles(
        type,
        int(vertex.value("regionSize")),
        vertex.fieldSize("offsets"),
        int(vertex.value("offsetsInRangePerWorker")),
        scaled=scaled,
        scale_is_wider=scaled and vertex.getFieldInfo("scale").elementType().size > type.size,
        in_order=bool(vertex.value("indicesAreSorted")),
    )
