"""Device code of popops: a number of each row of a matrix, and sequences of rows.

A tile has pieces of rows; `firstColumns` says where in its row each begins, which has `width` columns in all.
"""

import math
from typing import Generic, TypeVar

from pypoplar import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, InOut, Input, MultiVertex, Output, Vector, VectorList, ipu
from pypoplar.popops.slicing.slice_cycles import row_scalar_cycles, sequence_slice_cycles
from pypoplar.poputil.cycles import share_of_worker
from pypoplar.types import SUPPORTED

T = TypeVar("T", FLOAT, HALF)
Any = TypeVar("Any", *SUPPORTED)

MASKED = 0xFFFFFFFF


class _RowScalars(MultiVertex):
    indices: Input[Vector[UNSIGNED_INT]]
    firstColumns: Vector[INT]
    width: INT

    def cycles(self, vertex):
        rows = share_of_worker(vertex.fieldSize("indices"), vertex.target)
        return row_scalar_cycles(vertex.getFieldInfo("params").elementType(), rows)


class SelectFromIntervals(_RowScalars, Generic[T], name="popops::SelectFromIntervals"):
    """Of each piece the element at its row's index, 0 if another piece has it or the row is masked, NaN if the row has none."""

    params: Input[VectorList[T]]
    output: Output[Vector[T]]

    def compute(self, worker):
        for piece in ipu.worker_range(worker, self.output):
            index = self.indices[piece]
            if index == MASKED:
                self.output[piece] = 0.0
            elif index >= self.width:
                self.output[piece] = math.nan
            else:
                column = int(index) - self.firstColumns[piece]
                row = self.params[piece]
                if column >= 0 and column < len(row):
                    self.output[piece] = row[column]
                else:
                    self.output[piece] = 0.0


class UpdateIntervalsDEC(_RowScalars, Generic[T], name="popops::UpdateIntervalsDEC"):
    """1 is taken from the element at each row's index; a row that has none becomes NaN, a masked one stays as it is."""

    params: InOut[VectorList[T]]
    divides: BOOL

    def compute(self, worker):
        if self.divides:
            for piece in ipu.worker_range(worker, len(self.params)):
                self.update(piece)
        elif worker == 0:
            for piece in range(len(self.params)):
                self.update(piece)

    def update(self, piece):
        index = self.indices[piece]
        row = self.params[piece]
        if index < self.width:
            column = int(index) - self.firstColumns[piece]
            if column >= 0 and column < len(row):
                row[column] = row[column] - 1.0
        elif index != MASKED:
            for column in range(len(row)):
                row[column] = math.nan


class SumPieces(MultiVertex, Generic[T], name="popops::SumPieces"):
    """Each element of `output` is the sum of a row of `pieces`, of which one at most is not 0, or all are NaN."""

    pieces: Input[VectorList[T]]
    output: Output[Vector[T]]

    def compute(self, worker):
        for row in ipu.worker_range(worker, self.output):
            total = 0.0
            for piece in self.pieces[row]:
                total += float(piece)
            self.output[row] = total


class SequenceSlice(MultiVertex, Generic[Any], name="popops::SequenceSlice"):
    """Sequences of rows are copied, each by one worker; what goes beyond either end is left out."""

    srcT: Input[Vector[Any]]
    dstT: InOut[Vector[Any]]
    srcOffsetT: Input[Vector[UNSIGNED_INT]]
    dstOffsetT: Input[Vector[UNSIGNED_INT]]
    nElementsT: Input[Vector[UNSIGNED_INT]]
    numSrcElements: UNSIGNED_INT
    numDstElements: UNSIGNED_INT
    regionSize: INT
    divides: BOOL

    def compute(self, worker):
        if self.divides:
            for sequence in ipu.worker_range(worker, len(self.nElementsT)):
                self.copy(sequence)
        elif worker == 0:
            for sequence in range(len(self.nElementsT)):
                self.copy(sequence)

    def copy(self, sequence):
        first = self.srcOffsetT[sequence]
        target = self.dstOffsetT[sequence]
        if first < self.numSrcElements and target < self.numDstElements:
            rows = min(self.nElementsT[sequence], self.numSrcElements - first, self.numDstElements - target)
            source = int(first) * self.regionSize
            place = int(target) * self.regionSize
            for i in range(int(rows) * self.regionSize):
                self.dstT[place + i] = self.srcT[source + i]

    def cycles(self, vertex):
        region = int(vertex.value("regionSize"))
        elements = min(vertex.fieldSize("srcT"), vertex.fieldSize("dstT"))
        type = vertex.getFieldInfo("dstT").elementType()
        return sequence_slice_cycles(vertex.target, type, elements, vertex.fieldSize("nElementsT")) if region else 0
