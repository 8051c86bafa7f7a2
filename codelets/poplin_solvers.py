"""Device code of poplin: blocks of triangular systems and of factorisations, of FLOATs."""

import math

from pypoplar import FLOAT, INT, UNSIGNED_INT, InOut, Input, MultiVertex, Vector, VectorList, Vertex, ipu
from pypoplar.poplin.solvers.solver_cycles import (
    cholesky_estimate,
    lu_core_estimate,
    reflection_estimate,
    triangular_estimate,
)


class _TriangularSolve(MultiVertex):
    """Each row x becomes the solution of a x' = x; of the matrix a, row by row, what is below the diagonal is read."""

    a: Input[Vector[FLOAT]]
    rows: InOut[VectorList[FLOAT]]

    def compute(self, worker):
        for number in ipu.worker_range(worker, len(self.rows)):
            x = self.rows[number]
            for i in range(len(x)):
                first = i * len(x)
                total = x[i]
                for j in range(i):
                    total -= self.a[first + j] * x[j]
                x[i] = self.divided(total, first + i)

    def cycles(self, vertex):
        return triangular_estimate(vertex)


class TriangularSolve(_TriangularSolve, name="poplin::TriangularSolve<false>"):
    def divided(self, total, place):
        return total / self.a[place]


class UnitTriangularSolve(_TriangularSolve, name="poplin::TriangularSolve<true>"):
    """The diagonal is taken to be ones."""

    def divided(self, total, place):
        return total


class Cholesky(Vertex, name="poplin::Cholesky"):
    """The lower triangle of a matrix, row by row, becomes its factor; what is above it stays."""

    matrix: InOut[Vector[FLOAT]]
    size: INT

    def compute(self):
        for i in range(self.size):
            row = i * self.size
            for k in range(i + 1):
                other = k * self.size
                total = self.matrix[row + k]
                for j in range(k):
                    total -= self.matrix[row + j] * self.matrix[other + j]
                if i == k:
                    self.matrix[row + k] = math.sqrt(total)
                else:
                    self.matrix[row + k] = total / self.matrix[other + k]

    def cycles(self, vertex):
        return cholesky_estimate(vertex)


class LUCore(Vertex, name="poplin::experimental::LUDCoreVertex"):
    """A matrix becomes its factors, row by row: the upper one, and below the diagonal the lower one."""

    matrix: InOut[Vector[FLOAT]]
    size: INT

    def compute(self):
        for i in range(self.size):
            pivot = i * self.size
            for y in range(i + 1, self.size):
                row = y * self.size
                factor = self.matrix[row + i] / self.matrix[pivot + i]
                self.matrix[row + i] = factor
                for x in range(i + 1, self.size):
                    self.matrix[row + x] -= factor * self.matrix[pivot + x]

    def cycles(self, vertex):
        return lu_core_estimate(vertex)


class QRUpdate(MultiVertex, name="poplin::experimental::Update"):
    """The reflection that leaves of x, from `step` on, one element, applied to rows.

    Rows are numbered from `first` on, those of Q behind those of A. Number `step` is x itself; rows before it are done.
    """

    rows: InOut[VectorList[FLOAT]]
    x: Input[Vector[FLOAT]]
    step: Input[UNSIGNED_INT]
    first: INT

    def compute(self, worker):
        step = int(self.step)
        total = 0.0
        for i in range(step, len(self.x)):
            total += self.x[i] * self.x[i]
        if total > 0.0:
            norm = math.sqrt(total)
            corner = self.x[step]
            left = -norm if corner >= 0.0 else norm
            pivot = corner - left
            scale = 1.0 / (total + abs(corner) * norm)
            for number in ipu.worker_range(worker, len(self.rows)):
                row = self.rows[number]
                place = self.first + number
                if place == step:
                    row[step] = left
                    for i in range(step + 1, len(row)):
                        row[i] = 0.0
                elif place > step:
                    dot = row[step] * pivot
                    for i in range(step + 1, len(row)):
                        dot += row[i] * self.x[i]
                    dot *= scale
                    row[step] -= dot * pivot
                    for i in range(step + 1, len(row)):
                        row[i] -= dot * self.x[i]

    def cycles(self, vertex):
        return reflection_estimate(vertex)
