"""Device code of popnn: losses, their gradients, and counting right answers.

A vertex takes some samples, rows of the model's outputs. A label that is no class, such as the masked one, counts for
nothing: its loss and gradient are 0, and no answer to it is right.
"""

import math
from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, InOut, Input, Output, Vector, VectorList, Vertex
from pypoplar.popnn.losses.loss_cycles import cross_entropy_estimate, joined_estimate, largest_estimate, sum_squared_estimate

T = TypeVar("T", FLOAT, HALF)
A = TypeVar("A", FLOAT, HALF, INT, UNSIGNED_INT)  # of what is compared
V = TypeVar("V", FLOAT, INT, UNSIGNED_INT)  # of the best of it


def largest(row):
    """The position of the largest element, the first of several."""
    best = row[0]
    place = 0
    for i in range(1, len(row)):
        if row[i] > best:
            best = row[i]
            place = i
    return place


def count_correct(rows, labels):
    """How many rows have their largest element at their label."""
    count = 0
    for sample in range(len(rows)):
        if largest(rows[sample]) == labels[sample]:
            count += 1
    return count


class CrossEntropy(Vertex, Generic[T], name="popnn::LossCrossEntropy", writes_all=("deltas", "loss")):
    """loss = -log p[label]; deltas = p - one_hot(label), the gradient by what went into the softmax that gave p.

    `smallest` keeps the logarithm finite where p is 0.
    """

    probs: Input[VectorList[T]]
    expected: Input[Vector[UNSIGNED_INT]]
    deltas: Output[VectorList[T]]
    loss: Output[Vector[T]]
    smallest: FLOAT

    def compute(self):
        self.differentiate(1.0, 1.0)

    def differentiate(self, scale, scaling):
        for sample in range(len(self.probs)):
            probs = self.probs[sample]
            deltas = self.deltas[sample]
            label = self.expected[sample]
            if label < len(probs):
                p = float(probs[label])  # which deltas in its place write over
                for i in range(len(probs)):
                    deltas[i] = scale * float(probs[i])
                deltas[label] = scale * (p - scaling)
                self.loss[sample] = math.log(scaling) - math.log(p + self.smallest)
            else:
                for i in range(len(deltas)):
                    deltas[i] = 0.0
                self.loss[sample] = 0.0

    def cycles(self, vertex):
        return cross_entropy_estimate(vertex)


class CrossEntropyScaled(CrossEntropy[T], Generic[T], name="popnn::LossCrossEntropyScaled"):
    """The same from probabilities times `modelOutputScaling`, with deltas times `deltasScale`."""

    deltasScale: Input[T]
    modelOutputScaling: Input[T]

    def compute(self):
        scaling = float(self.modelOutputScaling)
        self.differentiate(float(self.deltasScale) / scaling, scaling)


class SumSquared(Vertex, Generic[T], name="popnn::LossSumSquared", writes_all=("deltas", "loss")):
    """loss = sum (p - one_hot(label))^2 / 2; deltas = p - one_hot(label)."""

    probs: Input[VectorList[T]]
    expected: Input[Vector[UNSIGNED_INT]]
    deltas: Output[VectorList[T]]
    loss: Output[Vector[T]]

    def compute(self):
        for sample in range(len(self.probs)):
            probs = self.probs[sample]
            deltas = self.deltas[sample]
            label = self.expected[sample]
            total = 0.0
            for i in range(len(probs)):
                delta = float(probs[i])
                if i == label:
                    delta -= 1.0
                deltas[i] = delta
                total += 0.5 * delta * delta
            self.loss[sample] = total

    def cycles(self, vertex):
        return sum_squared_estimate(vertex)


class CountCorrect(Vertex, Generic[T], name="popnn::CountCorrect"):
    """Adds to numCorrect how many samples have the largest of `probs` at their label."""

    probs: Input[VectorList[T]]
    expected: Input[Vector[UNSIGNED_INT]]
    numCorrect: InOut[UNSIGNED_INT]

    def compute(self):
        self.numCorrect += count_correct(self.probs, self.expected)

    def cycles(self, vertex):
        return largest_estimate(vertex, "probs")


class PartCorrect(Vertex, Generic[T], name="popnn::PartCorrect"):
    """The same count of some of the samples."""

    probs: Input[VectorList[T]]
    expected: Input[Vector[UNSIGNED_INT]]
    correct: Output[UNSIGNED_INT]

    def compute(self):
        self.correct = count_correct(self.probs, self.expected)

    def cycles(self, vertex):
        return largest_estimate(vertex, "probs")


class AddCorrect(Vertex, name="popnn::AddCorrect"):
    """Adds the counts of all parts to numCorrect."""

    correct: Input[Vector[UNSIGNED_INT]]
    numCorrect: InOut[UNSIGNED_INT]

    def compute(self):
        for one in self.correct:
            self.numCorrect += one


class CrossEntropyPieces(Vertex, Generic[T], name="popnn::LossCrossEntropyPieces", writes_all=("deltas", "loss")):
    """The same of pieces of rows that have `width` classes; `first` says where each begins, and its loss is the row's part."""

    probs: Input[VectorList[T]]
    expected: Input[Vector[UNSIGNED_INT]]
    deltas: Output[VectorList[T]]
    loss: Output[Vector[FLOAT]]
    first: Vector[UNSIGNED_INT]
    width: UNSIGNED_INT
    smallest: FLOAT
    deltasScale: Input[T]
    modelOutputScaling: Input[T]

    def compute(self):
        scaling = float(self.modelOutputScaling)
        scale = float(self.deltasScale) / scaling
        for piece in range(len(self.probs)):
            self.differentiate(piece, self.probs[piece], self.deltas[piece], self.expected[piece], scale, scaling)

    def differentiate(self, piece, probs, deltas, label, scale, scaling):
        self.loss[piece] = 0.0
        place = len(probs)
        p = 0.0
        if label < self.width and label >= self.first[piece]:
            place = int(label - self.first[piece])
            if place < len(probs):
                p = float(probs[place])  # which deltas in its place write over
                self.loss[piece] = math.log(scaling) - math.log(p + self.smallest)
        for i in range(len(probs)):
            deltas[i] = scale * float(probs[i]) if label < self.width else 0.0
        if place < len(probs):
            deltas[place] = scale * (p - scaling)

    def cycles(self, vertex):
        return cross_entropy_estimate(vertex)


class SumSquaredPieces(Vertex, Generic[T], name="popnn::LossSumSquaredPieces", writes_all=("deltas", "loss")):
    """The squared differences of pieces of rows."""

    probs: Input[VectorList[T]]
    expected: Input[Vector[UNSIGNED_INT]]
    deltas: Output[VectorList[T]]
    loss: Output[Vector[FLOAT]]
    first: Vector[UNSIGNED_INT]

    def compute(self):
        for piece in range(len(self.probs)):
            self.differentiate(piece, self.probs[piece], self.deltas[piece], self.expected[piece])

    def differentiate(self, piece, probs, deltas, label):
        total = 0.0
        for i in range(len(probs)):
            delta = float(probs[i])
            if UNSIGNED_INT(i) + self.first[piece] == label:
                delta -= 1.0
            deltas[i] = delta
            total += 0.5 * delta * delta
        self.loss[piece] = total

    def cycles(self, vertex):
        return sum_squared_estimate(vertex)


class CountEqual(Vertex, name="popnn::CalcAccuracy"):
    """Adds to numCorrect how many rows have their largest element at their label."""

    maxPerBatch: Input[Vector[UNSIGNED_INT]]
    expected: Input[Vector[UNSIGNED_INT]]
    numCorrect: InOut[UNSIGNED_INT]

    def compute(self):
        for row in range(len(self.expected)):
            if self.maxPerBatch[row] == self.expected[row]:
                self.numCorrect += 1


def greater(left, right):
    return left > right


def less(left, right):
    return left < right


class _ClassGather(Vertex, Generic[A, V]):
    """The best element of each row, the first of several, and its place; `first` is that of the row's first element."""

    in_: Input[VectorList[A]]
    value: Output[Vector[V]]
    index: Output[Vector[UNSIGNED_INT]]
    first: Vector[UNSIGNED_INT]

    def compute(self):
        for row in range(len(self.in_)):
            self.search(row, self.in_[row])

    def search(self, row, elements):
        best = elements[0]
        place = 0
        for i in range(1, len(elements)):
            if self.better(elements[i], best):
                best = elements[i]
                place = i
        self.value[row] = V(best)
        self.index[row] = self.first[row] + UNSIGNED_INT(place)

    def cycles(self, vertex):
        return largest_estimate(vertex, "in")


class _ClassSparse(Vertex, Generic[V]):
    """The best of each row of values, the first of several, and its label."""

    in_: Input[VectorList[V]]
    labels: Input[VectorList[UNSIGNED_INT]]
    value: Output[Vector[V]]
    index: Output[Vector[UNSIGNED_INT]]

    def compute(self):
        for row in range(len(self.in_)):
            self.search(row, self.in_[row], self.labels[row])

    def search(self, row, elements, labels):
        best = elements[0]
        place = 0
        for i in range(1, len(elements)):
            if self.better(elements[i], best):
                best = elements[i]
                place = i
        self.value[row] = best
        self.index[row] = labels[place]

    def cycles(self, vertex):
        return joined_estimate(vertex)


def best_classes(which, comparison):
    """The codelets of the largest, or of the smallest element."""

    class Gather(_ClassGather[A, V], Generic[A, V], name=f"popnn::Reduce{which}ClassGather", writes_all=("value", "index")):
        better = staticmethod(comparison)

    class Sparse(_ClassSparse[V], Generic[V], name=f"popnn::Reduce{which}ClassSparse", writes_all=("value", "index")):
        better = staticmethod(comparison)

    return Gather, Sparse


MaxGather, MaxSparse = best_classes("Max", greater)
MinGather, MinSparse = best_classes("Min", less)
