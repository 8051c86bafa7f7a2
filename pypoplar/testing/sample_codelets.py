"""The codelets of the random graphs: small, and with a meaning that NumPy can compute to the bit."""

from __future__ import annotations

from pypoplar.codelet.language.fields import InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex
from pypoplar.types import FLOAT, INT


class Scale(Vertex):
    """target = factor * source"""

    source: Input[Vector[FLOAT]]
    target: Output[Vector[FLOAT]]
    factor: FLOAT

    def compute(self):  # type: ignore[no-untyped-def]
        for i in range(len(self.source)):
            self.target[i] = self.factor * self.source[i]


class Add(Vertex):
    """target = left + right"""

    left: Input[Vector[FLOAT]]
    right: Input[Vector[FLOAT]]
    target: Output[Vector[FLOAT]]

    def compute(self):  # type: ignore[no-untyped-def]
        for i in range(len(self.target)):
            self.target[i] = self.left[i] + self.right[i]


class Shift(Vertex):
    """value += by, wrapping"""

    value: InOut[Vector[INT]]
    by: INT

    def compute(self):  # type: ignore[no-untyped-def]
        for i in range(len(self.value)):
            self.value[i] += self.by


class Reverse(Vertex):
    """target = source backwards"""

    source: Input[Vector[INT]]
    target: Output[Vector[INT]]

    def compute(self):  # type: ignore[no-untyped-def]
        last = len(self.source) - 1
        for i in range(len(self.source)):
            self.target[i] = self.source[last - i]


class Rectify(MultiVertex):
    """target = source where it is positive, else 0; each worker takes every sixth element"""

    source: Input[Vector[FLOAT]]
    target: Output[Vector[FLOAT]]

    def compute(self, worker):  # type: ignore[no-untyped-def]
        for i in range(worker, len(self.source), 6):
            if self.source[i] > 0.0:
                self.target[i] = self.source[i]
            else:
                self.target[i] = 0.0


class SumRows(Vertex):
    """target[i] = the sum of row i in order; rows may have any lengths"""

    rows: Input[VectorList[FLOAT]]
    target: Output[Vector[FLOAT]]

    def compute(self):  # type: ignore[no-untyped-def]
        for i in range(len(self.rows)):
            total = 0.0
            for value in self.rows[i]:
                total += value
            self.target[i] = total
