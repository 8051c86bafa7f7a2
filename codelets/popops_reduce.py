"""Device code of popops: reductions, in parts and as a whole.

What is reduced is taken as A(x), its square for SQUARE_ADD, combined in A, and stored as R.
"""

import math
from typing import Generic, TypeVar

from pypoplar import FLOAT, UNSIGNED_INT, InOut, Input, MultiVertex, Output, Vector, VectorList
from pypoplar.popops.reduction.reduce_cycles import pieces_estimate, reduce_estimate, reduce_in_parts_estimate

T = TypeVar("T")  # of what is reduced
A = TypeVar("A")  # in which it is combined
R = TypeVar("R")  # of the result


def itself(x):
    return x


def squared(x):
    return x * x


def add(left, right):
    return left + right


def multiply(left, right):
    return left * right


def least(left, right):
    return min(left, right)


def largest(left, right):
    return max(left, right)


def both(left, right):
    return left and right


def either(left, right):
    return left or right


def add_logarithms(left, right):
    """The logarithm of a sum, of the logarithms of its terms."""
    high = max(float(left), float(right))
    if high == -math.inf:
        return high
    return high + math.log(1.0 + math.exp(min(float(left), float(right)) - high))


class _Reduction(MultiVertex, Generic[T, A, R]):
    """Each row of partials holds elements of all outputs: of shape [a, r, inner] for outputs of shape [a, inner]."""

    partials: Input[VectorList[T]]
    inner: UNSIGNED_INT
    share: UNSIGNED_INT

    def load(self, x):
        return A(self.taken(A(x)))

    def join(self, left, right):
        return A(self.combine(left, right))

    def along(self, row):
        """The elements of a row together: every fourth one, then these four, then what is left."""
        count = len(row)
        total = self.load(row[0])
        if count < 8:
            for i in range(1, count):
                total = self.join(total, self.load(row[i]))
        else:
            second = self.load(row[1])
            third = self.load(row[2])
            fourth = self.load(row[3])
            for i in range(4, count - 3, 4):
                total = self.join(total, self.load(row[i]))
                second = self.join(second, self.load(row[i + 1]))
                third = self.join(third, self.load(row[i + 2]))
                fourth = self.join(fourth, self.load(row[i + 3]))
            total = self.join(self.join(total, second), self.join(third, fourth))
            for i in range(count // 4 * 4, count):
                total = self.join(total, self.load(row[i]))
        return total

    def part(self, row, output, outputs, begin, end):
        """What a row has in its places [begin, end) for an output."""
        inner = int(self.inner)
        places = len(row) // outputs
        if inner == 1:
            first = output * places
            return self.along(row[first + begin : first + end])
        first = output // inner * places * inner + output % inner
        total = self.load(row[first + begin * inner])
        for place in range(begin + 1, end):
            total = self.join(total, self.load(row[first + place * inner]))
        return total

    def whole(self, output, outputs):
        total = A(0)
        for number in range(len(self.partials)):
            row = self.partials[number]
            part = self.part(row, output, outputs, 0, len(row) // outputs)
            total = part if number == 0 else self.join(total, part)
        return total


class _Reduce(_Reduction[T, A, R], Generic[T, A, R]):
    """out = the reduction; a worker has `share` outputs."""

    out: Output[Vector[R]]

    def compute(self, worker):
        begin = worker * int(self.share)
        for output in range(begin, min(begin + int(self.share), len(self.out))):
            self.out[output] = R(self.whole(output, len(self.out)))

    def cycles(self, vertex):
        return reduce_estimate(vertex)


class _ReduceInParts(_Reduction[T, A, R], Generic[T, A, R]):
    """out = a part of the reduction for each worker, which has `share` places of the rows taken together."""

    out: Output[Vector[R]]
    outputs: UNSIGNED_INT

    def compute(self, worker):
        outputs = int(self.outputs)
        begin = worker * int(self.share)
        end = begin + int(self.share)
        if worker * outputs < len(self.out):
            for output in range(outputs):
                self.out[worker * outputs + output] = R(self.between(output, outputs, begin, end))

    def between(self, output, outputs, begin, end):
        before = 0
        empty = True
        total = A(0)
        for row in self.partials:
            places = len(row) // outputs
            low = max(begin - before, 0)
            high = min(end - before, places)
            if low < high:
                part = self.part(row, output, outputs, low, high)
                total = part if empty else self.join(total, part)
                empty = False
            before += places
        return total

    def cycles(self, vertex):
        return reduce_in_parts_estimate(vertex)


class _ReducePieces(_Reduction[T, A, R], Generic[T, A, R]):
    """Each element of out = the reduction of a row of partials; a worker has `share` rows."""

    out: Output[Vector[R]]

    def compute(self, worker):
        begin = worker * int(self.share)
        for output in range(begin, min(begin + int(self.share), len(self.out))):
            self.out[output] = R(self.along(self.partials[output]))

    def cycles(self, vertex):
        return pieces_estimate(vertex)


class _ReduceScaled(_Reduce[T, A, R], Generic[T, A, R]):
    """out = the reduction, scaled."""

    scale: Input[FLOAT]

    def compute(self, worker):
        begin = worker * int(self.share)
        for output in range(begin, min(begin + int(self.share), len(self.out))):
            self.out[output] = R(A(self.scale_by(self.whole(output, len(self.out)), A(self.scale))))


class _ReduceUpdate(_Reduction[T, A, R], Generic[T, A, R]):
    """What out holds and the reduction together."""

    out: InOut[Vector[R]]

    def compute(self, worker):
        begin = worker * int(self.share)
        for output in range(begin, min(begin + int(self.share), len(self.out))):
            self.out[output] = R(self.join(A(self.out[output]), self.whole(output, len(self.out))))

    def cycles(self, vertex):
        return reduce_estimate(vertex, update=True)


class _ReduceScaledUpdate(_Reduction[T, A, R], Generic[T, A, R]):
    """What out holds and the reduction, scaled, together."""

    out: InOut[Vector[R]]
    scale: Input[FLOAT]

    def compute(self, worker):
        begin = worker * int(self.share)
        for output in range(begin, min(begin + int(self.share), len(self.out))):
            total = A(self.scale_by(self.whole(output, len(self.out)), A(self.scale)))
            self.out[output] = R(self.join(A(self.out[output]), total))

    def cycles(self, vertex):
        return reduce_estimate(vertex, update=True)


def reductions(operation, combined, taken_as=itself):
    """The codelets of an operation: the whole, a part for each worker, the elements of pieces."""

    class Reduce(_Reduce[T, A, R], Generic[T, A, R], name=f"popops::Reduce<{operation}>", writes_all="out"):
        combine = staticmethod(combined)
        taken = staticmethod(taken_as)

    class ReduceInParts(_ReduceInParts[T, A, R], Generic[T, A, R], name=f"popops::ReduceInParts<{operation}>", writes_all="out"):
        combine = staticmethod(combined)
        taken = staticmethod(taken_as)

    class ReducePieces(_ReducePieces[T, A, R], Generic[T, A, R], name=f"popops::ReducePieces<{operation}>", writes_all="out"):
        combine = staticmethod(combined)
        taken = staticmethod(taken_as)

    return Reduce, ReduceInParts, ReducePieces


def scaled_reductions(operation, combined, scaled_by, taken_as=itself):
    """The codelets of an operation whose result may be scaled, and combined with what is there."""

    class Scaled(_ReduceScaled[T, A, R], Generic[T, A, R], name=f"popops::ScaledReduce<{operation}>", writes_all="out"):
        combine = staticmethod(combined)
        taken = staticmethod(taken_as)
        scale_by = staticmethod(scaled_by)

    class Update(_ReduceUpdate[T, A, R], Generic[T, A, R], name=f"popops::ReduceUpdate<{operation}>"):
        combine = staticmethod(combined)
        taken = staticmethod(taken_as)

    class ScaledUpdate(_ReduceScaledUpdate[T, A, R], Generic[T, A, R], name=f"popops::ScaledReduceUpdate<{operation}>"):
        combine = staticmethod(combined)
        taken = staticmethod(taken_as)
        scale_by = staticmethod(scaled_by)

    return Scaled, Update, ScaledUpdate


Add, AddInParts, AddPieces = reductions("ADD", add)
SquareAdd, SquareAddInParts, SquareAddPieces = reductions("SQUARE_ADD", add, squared)
LogAdd, LogAddInParts, LogAddPieces = reductions("LOG_ADD", add_logarithms)
Multiply, MultiplyInParts, MultiplyPieces = reductions("MUL", multiply)
Least, LeastInParts, LeastPieces = reductions("MIN", least)
Largest, LargestInParts, LargestPieces = reductions("MAX", largest)
Both, BothInParts, BothPieces = reductions("LOGICAL_AND", both)
Either, EitherInParts, EitherPieces = reductions("LOGICAL_OR", either)
ScaledAdd, AddUpdate, ScaledAddUpdate = scaled_reductions("ADD", add, multiply)
ScaledSquareAdd, SquareAddUpdate, ScaledSquareAddUpdate = scaled_reductions("SQUARE_ADD", add, multiply, squared)
ScaledLogAdd, LogAddUpdate, ScaledLogAddUpdate = scaled_reductions("LOG_ADD", add_logarithms, add)
