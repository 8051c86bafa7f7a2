"""Device code of popops: elements compared in pairs, the larger of each put first. NaN is larger than all else."""

from typing import Generic, TypeVar

from pypoplar import FLOAT, INT, UNSIGNED_INT, Input, MultiVertex, Output, Vector, ipu
from pypoplar.popops.ordering.topk_cycles import Companions, swap_cycles
from pypoplar.poputil.cycles import share_of_worker

Key = TypeVar("Key", FLOAT, INT, UNSIGNED_INT)
Value = TypeVar("Value", FLOAT, INT, UNSIGNED_INT)


class CompareAndSwap(MultiVertex, Generic[Key], name="popops::CompareAndSwapAtDistance"):
    """first is the larger of lower and upper, second the other."""

    lower: Input[Vector[Key]]
    upper: Input[Vector[Key]]
    first: Output[Vector[Key]]
    second: Output[Vector[Key]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.first):
            lower = self.lower[i]
            upper = self.upper[i]
            swaps = not upper <= lower and lower == lower  # of numbers upper > lower
            self.first[i] = upper if swaps else lower
            self.second[i] = lower if swaps else upper

    def cycles(self, vertex):
        field = vertex.getFieldInfo("first")
        return swap_cycles(share_of_worker(field.size(), vertex.target), field.elementType(), Companions.NONE)


class _Carrying(MultiVertex, Generic[Key, Value]):
    """The same, and values go with their keys."""

    lower: Input[Vector[Key]]
    upper: Input[Vector[Key]]
    lowerValues: Input[Vector[Value]]
    upperValues: Input[Vector[Value]]
    first: Output[Vector[Key]]
    second: Output[Vector[Key]]
    firstValues: Output[Vector[Value]]
    secondValues: Output[Vector[Value]]

    companions = Companions.SECONDARY

    def compute(self, worker):
        for i in ipu.worker_range(worker, self.first):
            lower = self.lower[i]
            upper = self.upper[i]
            value = self.lowerValues[i]
            other = self.upperValues[i]
            swaps = self.swaps(lower, upper, value, other)
            self.first[i] = upper if swaps else lower
            self.second[i] = lower if swaps else upper
            self.firstValues[i] = other if swaps else value
            self.secondValues[i] = value if swaps else other

    def cycles(self, vertex):
        field = vertex.getFieldInfo("first")
        return swap_cycles(share_of_worker(field.size(), vertex.target), field.elementType(), self.companions)


class CompareAndSwapKeyVal(_Carrying[Key, Value], Generic[Key, Value], name="popops::CompareAndSwapAtDistanceKeyVal<false,false>"):
    """Of equal keys the lower stays first."""

    companions = Companions.CARRIED

    def swaps(self, lower, upper, value, other):
        return not upper <= lower and lower == lower


class CompareAndSwapBothUp(_Carrying[Key, Value], Generic[Key, Value], name="popops::CompareAndSwapAtDistanceKeyVal<true,false>"):
    """Of equal keys the one with the smaller value comes first."""

    def swaps(self, lower, upper, value, other):
        if not upper <= lower:
            return lower == lower or (upper != upper and other < value)
        return upper == lower and other < value


class CompareAndSwapBothDown(_Carrying[Key, Value], Generic[Key, Value], name="popops::CompareAndSwapAtDistanceKeyVal<true,true>"):
    """Of equal keys the one with the larger value comes first."""

    def swaps(self, lower, upper, value, other):
        if not upper <= lower:
            return lower == lower or (upper != upper and other > value)
        return upper == lower and other > value
