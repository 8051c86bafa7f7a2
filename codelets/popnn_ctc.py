"""Device code of popnn: the loss of connectionist temporal classification, and its gradient.

A label of L symbols has 2 L + 1 states: a blank before each symbol, the symbols, and a blank at the end. A piece of it has `width`
symbols and the blanks before them, from symbol `first` on; the last blank is the one before symbol L, which is nothing else. All
numbers are logarithms of probabilities.
"""

import math
from typing import Generic, TypeVar

from pypoplar import BOOL, FLOAT, HALF, UNSIGNED_INT, InOut, Input, Output, Vector, VectorList, Vertex, ipu
from pypoplar.popnn.ctc.ctc_cycles import gather_estimate, gradient_estimate, loss_estimate, recursion_estimate
from pypoplar.popnn.ctc.logarithms import NEVER, log_add, log_mul

T = TypeVar("T", FLOAT, HALF)  # of the probabilities
P = TypeVar("P", FLOAT, HALF)  # of partial results


class CTCGather(Vertex, Generic[T], name="popnn::CTCGather", writes_all="emissions"):
    """The probabilities of the blank and of the symbols of each piece, [steps][1 + width], of some steps of a sample.

    What the program cannot know before it runs is judged here.
    """

    logProbs: Input[Vector[T]]
    labels: Input[Vector[UNSIGNED_INT]]
    labelLength: Input[UNSIGNED_INT]
    dataLength: Input[UNSIGNED_INT]
    emissions: Output[VectorList[FLOAT]]
    numClasses: UNSIGNED_INT
    blankClass: UNSIGNED_INT
    maxTime: UNSIGNED_INT
    width: UNSIGNED_INT

    def compute(self):
        ipu.check(self.labelLength <= UNSIGNED_INT(len(self.labels)), "a label length is beyond the labels of a sample")
        ipu.check(self.dataLength <= self.maxTime, "a data length is beyond the time steps")
        for symbol in range(int(self.labelLength)):
            ipu.check(self.labels[symbol] < self.numClasses, "a label is beyond the classes")
        for piece in range(len(self.emissions)):
            self.gather(self.emissions[piece], piece * int(self.width))

    def gather(self, out, first):
        row = int(self.width) + 1
        for step in range(len(out) // row):
            classes = self.logProbs[step * int(self.numClasses) : (step + 1) * int(self.numClasses)]
            out[step * row] = float(classes[self.blankClass])
            for i in range(int(self.width)):
                place = step * row + 1 + i
                out[place] = 0.0
                if first + i < int(self.labelLength):
                    out[place] = float(classes[self.labels[first + i]])

    def cycles(self, vertex):
        return gather_estimate(vertex)


class CTCStart(Vertex, Generic[P], name="popnn::CTCStart", writes_all=("state", "count")):
    """Before the first step: state ``factor * labelLength`` of the label has probability 1, all others 0."""

    state: Output[Vector[P]]
    count: Output[UNSIGNED_INT]
    labelLength: Input[UNSIGNED_INT]
    factor: UNSIGNED_INT
    first: UNSIGNED_INT

    def compute(self):
        self.count = 0
        for i in range(len(self.state)):
            self.state[i] = 0.0 if UNSIGNED_INT(2) * self.first + UNSIGNED_INT(i) == self.factor * self.labelLength else NEVER


class _Recursion(Vertex, Generic[P]):
    """A step of a piece; `count` steps are behind it. `state` holds what the next one needs."""

    emissions: Input[Vector[FLOAT]]
    labels: Input[Vector[UNSIGNED_INT]]
    labelLength: Input[UNSIGNED_INT]
    dataLength: Input[UNSIGNED_INT]
    neighbour: Input[Vector[P]]
    state: InOut[Vector[P]]
    history: InOut[Vector[P]]
    count: InOut[UNSIGNED_INT]
    first: UNSIGNED_INT

    def cycles(self, vertex):
        return recursion_estimate(vertex)


class CTCAlpha(_Recursion[P], Generic[P], name="popnn::CTCAlpha"):
    """The probabilities of all beginnings that end in a state: `history` [steps][2 width].

    `labels` have the symbol before the piece first, `neighbour` is that symbol's state.
    """

    def compute(self):
        width = len(self.labels) - 1
        step = int(self.count)
        self.count += 1
        if step < int(self.dataLength) and self.first <= self.labelLength:
            emissions = self.emissions[step * (width + 1) : (step + 1) * (width + 1)]
            row = self.history[step * 2 * width : (step + 1) * 2 * width]
            for i in range(width - 1, -1, -1):
                self.advance(i, emissions, row)

    def advance(self, i, emissions, row):
        before = float(self.neighbour[0])
        if i > 0:
            before = float(self.state[2 * i - 1])
        blank = float(self.state[2 * i])
        both = log_add(before, blank)
        if int(self.first) + i < int(self.labelLength):
            others = blank if self.labels[i + 1] == self.labels[i] else both
            row[2 * i + 1] = log_mul(log_add(float(self.state[2 * i + 1]), others), emissions[1 + i])
            self.state[2 * i + 1] = row[2 * i + 1]
        row[2 * i] = log_mul(both, emissions[0])
        self.state[2 * i] = row[2 * i]


class CTCBeta(_Recursion[P], Generic[P], name="popnn::CTCBeta"):
    """The probabilities of all ends behind a state, that state's own left out: `history` [steps][2 width].

    `labels` have the symbol behind the piece last, `neighbour` are the states of the blank before it and of itself.
    """

    def compute(self):
        width = len(self.labels) - 1
        step = len(self.history) // (2 * width) - 1 - int(self.count)
        self.count += 1
        if step < int(self.dataLength) and self.first <= self.labelLength:
            emissions = self.emissions[step * (width + 1) : (step + 1) * (width + 1)]
            row = self.history[step * 2 * width : (step + 1) * 2 * width]
            for i in range(width):
                self.advance(i, width, emissions, row)

    def advance(self, i, width, emissions, row):
        own = float(self.state[2 * i + 1])
        row[2 * i] = log_add(float(self.state[2 * i]), own)
        self.state[2 * i] = log_mul(float(row[2 * i]), emissions[0])
        if int(self.first) + i < int(self.labelLength):
            behind = float(self.neighbour[0])
            symbol = float(self.neighbour[1])
            if i + 1 < width:
                behind = float(self.state[2 * i + 2])
                symbol = float(self.state[2 * i + 3])
            others = behind if self.labels[i + 1] == self.labels[i] else log_add(behind, symbol)
            row[2 * i + 1] = log_add(own, others)
            self.state[2 * i + 1] = log_mul(float(row[2 * i + 1]), emissions[1 + i])


class CTCLoss(Vertex, Generic[P], name="popnn::CTCLoss", writes_all=("total", "loss")):
    """The logarithm of a label's probability, from the states behind the last step, and the loss, 0 where it is below `bound`."""

    state: Input[Vector[P]]
    labelLength: Input[UNSIGNED_INT]
    total: Output[FLOAT]
    loss: Output[FLOAT]
    bound: FLOAT

    def compute(self):
        last = 2 * int(self.labelLength)
        total = float(self.state[last])
        if last > 0:
            total = log_add(total, float(self.state[last - 1]))
        self.total = total
        self.loss = 0.0 if total <= self.bound else -total

    def cycles(self, vertex):
        return loss_estimate(vertex)


class CTCGradient(Vertex, Generic[T, P], name="popnn::CTCGradient", writes_all="gradients"):
    """The gradient of some steps of a sample, from step `first` on: softmax less the share of paths through each class.

    Without `softmax` the gradient by the logarithms themselves; 0 behind the data, and where `total` is not above `bound`.
    """

    logProbs: Input[Vector[T]]
    labels: Input[Vector[UNSIGNED_INT]]
    labelLength: Input[UNSIGNED_INT]
    dataLength: Input[UNSIGNED_INT]
    alphas: Input[VectorList[P]]
    betas: Input[VectorList[P]]
    total: Input[FLOAT]
    gradients: Output[Vector[FLOAT]]
    numClasses: UNSIGNED_INT
    blankClass: UNSIGNED_INT
    width: UNSIGNED_INT
    first: UNSIGNED_INT
    softmax: BOOL
    bound: FLOAT

    def compute(self):
        classes = int(self.numClasses)
        for step in range(len(self.gradients) // classes):
            row = self.gradients[step * classes : (step + 1) * classes]
            counts = int(self.first) + step < int(self.dataLength) and self.total > self.bound
            for i in range(classes):
                row[i] = math.exp(float(self.logProbs[step * classes + i])) if self.softmax and counts else 0.0
            if counts:
                for symbol in range(int(self.labelLength) + 1):
                    self.subtract(row, step, symbol)

    def subtract(self, row, step, symbol):
        piece = symbol // int(self.width)
        place = 2 * (step * int(self.width) + symbol % int(self.width))
        alphas = self.alphas[piece]
        betas = self.betas[piece]
        row[self.blankClass] -= math.exp(float(alphas[place]) + float(betas[place]) - self.total)
        if symbol < int(self.labelLength):
            row[self.labels[symbol]] -= math.exp(float(alphas[place + 1]) + float(betas[place + 1]) - self.total)

    def cycles(self, vertex):
        return gradient_estimate(vertex)
