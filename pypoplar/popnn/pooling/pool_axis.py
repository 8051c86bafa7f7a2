"""A dimension of pooling: which places of what is pooled meet in which places of the result."""

from __future__ import annotations

from attrs import frozen

from pypoplar.poputil.cycles import ceiling


@frozen
class PlaceRun:
    """Places of the result from the `first` on, with the places from `other` on that they meet; the steps are the axis'."""

    first: int
    other: int
    count: int


@frozen
class PoolAxis:
    """Windows over places: window w has the places ``w stride + k - lower`` for each element k of the kernel.

    Forward the results are the windows; of a gradient that is turned `back` they are the places.
    """

    places: int
    windows: int
    kernel: int = 1
    stride: int = 1
    lower: int = 0
    back: bool = False

    @property
    def size(self) -> int:
        """Places of the result."""
        return self.places if self.back else self.windows

    @property
    def steps(self) -> tuple[int, int]:
        """From one element of a run to the next, in the result and in what is pooled."""
        return (self.stride, 1) if self.back else (1, self.stride)

    def run(self, element: int, begin: int, end: int) -> PlaceRun:
        """What an element of the kernel brings to the results from `begin` to `end`."""
        shift = self.lower - element  # place = window * stride - shift
        low, high = (begin, end) if self.back else (0, self.places)
        first = max(ceiling(low + shift, self.stride), 0 if self.back else begin)
        last = min((high - 1 + shift) // self.stride, (self.windows if self.back else end) - 1)
        place = first * self.stride - shift
        return PlaceRun(*((place, first) if self.back else (first, place)), max(last - first + 1, 0))

    def runs(self, begin: int, end: int) -> list[PlaceRun]:
        """What all elements of the kernel bring."""
        return [run for run in (self.run(element, begin, end) for element in range(self.kernel)) if run.count]

    def others(self, begin: int, end: int) -> tuple[int, int]:
        """The places that are pooled into the results from `begin` to `end`, as far as one range has all of them."""
        step, runs = self.steps[1], self.runs(begin, end)
        if not runs:
            return 0, 0
        return min(run.other for run in runs), max(run.other + (run.count - 1) * step for run in runs) + 1

    def meeting(self, begin: int, end: int) -> list[list[int]]:
        """For each result the places that it meets."""
        step, other_step = self.steps
        met: list[list[int]] = [[] for _ in range(begin, end)]
        for run in self.runs(begin, end):
            for number in range(run.count):
                met[run.first - begin + number * step].append(run.other + number * other_step)
        return met

    def used(self) -> list[int]:
        """How many places of each window are there, and not padding."""
        forward = PoolAxis(self.places, self.windows, self.kernel, self.stride, self.lower)
        return [len(met) for met in forward.meeting(0, self.windows)]
