"""Device code of popnn: losses, their gradients, and counting right answers.

A vertex takes some samples, rows of the model's outputs. A label that is no class, such as the masked one, counts for
nothing: its loss and gradient are 0, and no answer to it is right.
"""

import math
from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, UNSIGNED_INT, InOut, Input, Output, Vector, VectorList, Vertex
from pypoplar.popnn.losses.loss_cycles import cross_entropy_estimate, largest_estimate, sum_squared_estimate

T = TypeVar("T", FLOAT, HALF)


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
                for i in range(len(probs)):
                    deltas[i] = scale * float(probs[i])
                p = float(probs[label])
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


class ArgMax(Vertex, Generic[T], name="popnn::ArgMax", writes_all="out"):
    """The position of each row's largest element, the first of several."""

    in_: Input[VectorList[T]]
    out: Output[Vector[UNSIGNED_INT]]

    def compute(self):
        for row in range(len(self.in_)):
            self.out[row] = largest(self.in_[row])

    def cycles(self, vertex):
        return largest_estimate(vertex, "in")
