"""Device code of popops: adding a multiple of one tensor to another, or to a multiple of it.

A tile has one vertex, whose workers divide its elements. Sums of floats are computed in float and rounded once to the type of A.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, InOut, Input, MultiVertex, Vector, ipu
from pypoplar.popops.elements.scaled_add_cycles import ScaledForm, scaled_add_estimate

Real = TypeVar("Real", FLOAT, HALF)
Delta = TypeVar("Delta", FLOAT, HALF)
Scale = TypeVar("Scale", FLOAT, HALF)
Whole = TypeVar("Whole", INT, UNSIGNED_INT)


class ScaledSum(MultiVertex, Generic[Real, Delta]):
    """A scaled or not, and a multiple of B."""

    A: InOut[Vector[Real]]
    B: Input[Vector[Delta]]

    form = ScaledForm.ADD

    def accumulate(self, worker, scaleB):
        """A += scaleB B."""
        for i in ipu.worker_range(worker, self.A):
            self.A[i] = float(self.A[i]) + scaleB * float(self.B[i])

    def combine(self, worker, scaleA, scaleB):
        """A = scaleA A + scaleB B."""
        for i in ipu.worker_range(worker, self.A):
            self.A[i] = scaleA * float(self.A[i]) + scaleB * float(self.B[i])

    def shrink(self, worker, scaleA, scaleB):
        """A = A - scaleA A + scaleB B."""
        for i in ipu.worker_range(worker, self.A):
            x = float(self.A[i])
            self.A[i] = x - scaleA * x + scaleB * float(self.B[i])

    def cycles(self, vertex):
        return scaled_add_estimate(vertex, self.form)


class ScaledAdd(ScaledSum[Real, Delta], Generic[Real, Delta], name="popops::ScaledAdd"):
    scale: FLOAT

    def compute(self, worker):
        self.accumulate(worker, self.scale)


class ScaledAddTensor(ScaledSum[Real, Delta], Generic[Real, Delta, Scale], name="popops::ScaledAddTensor"):
    scaleB: Input[Scale]

    def compute(self, worker):
        self.accumulate(worker, float(self.scaleB))


class ScaledSubtractTensor(ScaledSum[Real, Delta], Generic[Real, Delta, Scale], name="popops::ScaledSubtractTensor"):
    scaleB: Input[Scale]

    form = ScaledForm.SUBTRACT

    def compute(self, worker):
        self.accumulate(worker, -float(self.scaleB))


class ScaledBoth(ScaledSum[Real, Delta], Generic[Real, Delta, Scale], name="popops::aXPlusbY"):
    scaleA: Scale
    scaleB: Scale

    form = ScaledForm.AXPLUSBY

    def compute(self, worker):
        self.combine(worker, float(self.scaleA), float(self.scaleB))


class ScaledBothTensor(ScaledSum[Real, Delta], Generic[Real, Delta, Scale], name="popops::aXPlusbYTensor"):
    scaleA: Input[Scale]
    scaleB: Input[Scale]

    form = ScaledForm.AXPLUSBY

    def compute(self, worker):
        self.combine(worker, float(self.scaleA), float(self.scaleB))


class ScaledDifferenceTensor(ScaledSum[Real, Delta], Generic[Real, Delta, Scale], name="popops::aXMinusbYTensor"):
    scaleA: Input[Scale]
    scaleB: Input[Scale]

    form = ScaledForm.AXMINUSBY

    def compute(self, worker):
        self.combine(worker, float(self.scaleA), -float(self.scaleB))


class Shrunk(ScaledSum[Real, Delta], Generic[Real, Delta, Scale], name="popops::XMinusaXPlusbY"):
    scaleA: Scale
    scaleB: Scale

    form = ScaledForm.XMINUSAXPLUSBY

    def compute(self, worker):
        self.shrink(worker, float(self.scaleA), float(self.scaleB))


class ShrunkTensor(ScaledSum[Real, Delta], Generic[Real, Delta, Scale], name="popops::XMinusaXPlusbYTensor"):
    scaleA: Input[Scale]
    scaleB: Input[Scale]

    form = ScaledForm.XMINUSAXPLUSBY

    def compute(self, worker):
        self.shrink(worker, float(self.scaleA), float(self.scaleB))


class WholeSum(MultiVertex, Generic[Whole]):
    """The same of integers, which wrap."""

    A: InOut[Vector[Whole]]
    B: Input[Vector[Whole]]

    form = ScaledForm.ADD

    def cycles(self, vertex):
        return scaled_add_estimate(vertex, self.form)


class WholeAdd(WholeSum[Whole], Generic[Whole], name="popops::ScaledAddInteger"):
    scale: Whole

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.A):
            self.A[i] += self.scale * self.B[i]


class WholeAddTensor(WholeSum[Whole], Generic[Whole], name="popops::ScaledAddIntegerTensor"):
    scaleB: Input[Whole]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.A):
            self.A[i] += self.scaleB * self.B[i]


class WholeSubtractTensor(WholeSum[Whole], Generic[Whole], name="popops::ScaledSubtractIntegerTensor"):
    scaleB: Input[Whole]

    form = ScaledForm.SUBTRACT

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.A):
            self.A[i] -= self.scaleB * self.B[i]
