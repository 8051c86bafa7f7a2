"""Device code of popnn: losses, their gradients, and counting right answers.

A vertex takes one sample, a row of the model's outputs. A label that is no class, such as the masked one, counts for
nothing: its loss and gradient are 0, and no answer to it is right.
"""

import math
from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, UNSIGNED_INT, InOut, Input, Output, Vector, Vertex

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


class CrossEntropy(Vertex, Generic[T], name="popnn::LossCrossEntropy"):
    """loss = -log p[label]; deltas = p - one_hot(label), which is the gradient by what went into the softmax that gave p.

    `smallest` keeps the logarithm finite where p is 0.
    """

    probs: Input[Vector[T]]
    expected: Input[UNSIGNED_INT]
    deltas: Output[Vector[T]]
    loss: Output[T]
    smallest: FLOAT

    def compute(self):
        self.differentiate(1.0, 1.0)

    def differentiate(self, scale, scaling):
        label = self.expected
        for i in range(len(self.probs)):
            self.deltas[i] = scale * float(self.probs[i])
        if label < len(self.probs):
            p = float(self.probs[label])
            self.deltas[label] = scale * (p - scaling)
            self.loss = math.log(scaling) - math.log(p + self.smallest)
        else:
            for i in range(len(self.deltas)):
                self.deltas[i] = 0.0
            self.loss = 0.0


class CrossEntropyScaled(CrossEntropy[T], Generic[T], name="popnn::LossCrossEntropyScaled"):
    """The same from probabilities times `modelOutputScaling`, with deltas times `deltasScale`."""

    deltasScale: Input[T]
    modelOutputScaling: Input[T]

    def compute(self):
        scaling = float(self.modelOutputScaling)
        self.differentiate(float(self.deltasScale) / scaling, scaling)


class SumSquared(Vertex, Generic[T], name="popnn::LossSumSquared"):
    """loss = sum (p - one_hot(label))^2 / 2; deltas = p - one_hot(label)."""

    probs: Input[Vector[T]]
    expected: Input[UNSIGNED_INT]
    deltas: Output[Vector[T]]
    loss: Output[T]

    def compute(self):
        label = self.expected
        total = 0.0
        for i in range(len(self.probs)):
            delta = float(self.probs[i])
            if i == label:
                delta -= 1.0
            self.deltas[i] = delta
            total += 0.5 * delta * delta
        self.loss = total


class CountCorrect(Vertex, Generic[T], name="popnn::CountCorrect"):
    """Adds 1 to numCorrect if the largest of `probs` is that of the label."""

    probs: Input[Vector[T]]
    expected: Input[UNSIGNED_INT]
    numCorrect: InOut[UNSIGNED_INT]

    def compute(self):
        if largest(self.probs) == self.expected:
            self.numCorrect += 1


class IsCorrect(Vertex, Generic[T], name="popnn::IsCorrect"):
    """1 if the largest of `probs` is that of the label, else 0."""

    probs: Input[Vector[T]]
    expected: Input[UNSIGNED_INT]
    correct: Output[UNSIGNED_INT]

    def compute(self):
        self.correct = 0
        if largest(self.probs) == self.expected:
            self.correct = 1


class AddCorrect(Vertex, name="popnn::AddCorrect"):
    """Adds the answers of a batch to numCorrect."""

    correct: Input[Vector[UNSIGNED_INT]]
    numCorrect: InOut[UNSIGNED_INT]

    def compute(self):
        for one in self.correct:
            self.numCorrect += one


class ArgMax(Vertex, Generic[T], name="popnn::ArgMax"):
    """The position of a row's largest element, the first of several."""

    in_: Input[Vector[T]]
    out: Output[UNSIGNED_INT]

    def compute(self):
        self.out = largest(self.in_)
