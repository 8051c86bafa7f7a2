"""Device code of popops: whether a tensor has a NaN, or an infinity."""

import math
from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, UNSIGNED_INT, Input, MultiVertex, Output, Vector, ipu
from pypoplar.popops.reduction.nan_cycles import nan_estimate

Real = TypeVar("Real", FLOAT, HALF)


class HasNaN(MultiVertex, Generic[Real], name="popops::HasNaNOrInf<false>", writes_all="out"):
    """out, an element for each worker, is 1 where in has a NaN."""

    in_: Input[Vector[Real]]
    out: Output[Vector[UNSIGNED_INT]]

    def compute(self, worker):
        count = 0
        for i in ipu.worker_range(worker, self.in_):
            count += int(math.isnan(self.in_[i]))
        self.out[worker] = UNSIGNED_INT(min(count, 1))

    def cycles(self, vertex):
        return nan_estimate(vertex, infinities=False)


class HasNaNOrInf(MultiVertex, Generic[Real], name="popops::HasNaNOrInf<true>", writes_all="out"):
    """out, an element for each worker, is 1 where in has a NaN or an infinity."""

    in_: Input[Vector[Real]]
    out: Output[Vector[UNSIGNED_INT]]

    def compute(self, worker):
        count = 0
        for i in ipu.worker_range(worker, self.in_):
            count += int(not math.isfinite(self.in_[i]))
        self.out[worker] = UNSIGNED_INT(min(count, 1))

    def cycles(self, vertex):
        return nan_estimate(vertex, infinities=True)
