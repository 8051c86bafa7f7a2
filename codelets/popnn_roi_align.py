"""Device code of popnn: boxes of images, sampled between places, and the gradient.

A vertex has some boxes, and of some groups of `channels` channels, which lie side by side, `rows` rows from `firstRow` on; rows are
numbered through all images. A sample is the mean of the four places around it, weighted by how near they are. One that is more than
a place outside of its image counts for nothing.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, Input, MultiVertex, Output, Vector, ipu
from pypoplar.popnn.regions.roi_cycles import backward_estimate, forward_estimate

T = TypeVar("T", FLOAT, HALF)


class _ROIAlign(MultiVertex, Generic[T]):
    rois: Input[Vector[T]]
    batchIndex: Input[Vector[INT]]
    images: INT
    height: INT
    width: INT
    binRows: INT
    binColumns: INT
    samples: INT
    channels: INT
    firstRow: INT
    rows: INT
    scale: FLOAT
    shift: FLOAT
    leastSize: FLOAT

    def image(self, box):
        image = self.batchIndex[box]
        ipu.check(0 <= image < self.images, "bottomBatchIndex has an image that bottomData does not have")
        return image

    def begin(self, box, axis):
        """Where a box begins, in places; axis 0 is x, axis 1 is y."""
        return float(self.rois[4 * box + axis]) * self.scale - self.shift

    def size_of_bin(self, box, axis, bins):
        size = float(self.rois[4 * box + 2 + axis]) * self.scale - self.shift - self.begin(box, axis)
        if size < self.leastSize:
            size = self.leastSize
        return size / bins

    def sample(self, begin, size_of_bin, bin, number):
        """Where a sample is; a box that is not a number has samples that are none."""
        return begin + bin * size_of_bin + (number + 0.5) * (size_of_bin / self.samples)

    def outside(self, at, size):
        return at < -1.0 or at > size

    def inside(self, at, size):
        """The nearest point between the first and the last place."""
        if at < 0.0:
            at = 0.0
        if at > size - 1:
            at = float(size - 1)
        return at


class ROIAlignForward(_ROIAlign[T], Generic[T], name="popnn::ROIAlignForward", writes_all="out"):
    """out [groups, boxes, bins, channels] = the means of the samples of bins, from `in` [groups, rows, width, channels]."""

    in_: Input[Vector[T]]
    out: Output[Vector[FLOAT]]

    def compute(self, worker):
        bins = self.binRows * self.binColumns
        boxes = len(self.batchIndex)
        places = len(self.out) // self.channels
        share = (places + ipu.worker_count() - 1) // ipu.worker_count()
        for place in range(min(worker * share, places), min((worker + 1) * share, places)):
            box = place // bins % boxes
            for channel in range(self.channels):
                self.out[place * self.channels + channel] = 0.0
            self.add_samples(place, box, place // bins // boxes, place % bins)
            for channel in range(self.channels):
                self.out[place * self.channels + channel] = self.out[place * self.channels + channel] / (
                    self.samples * self.samples
                )

    def add_samples(self, place, box, group, bin):
        top = self.image(box) * self.height - self.firstRow
        bin_height = self.size_of_bin(box, 1, self.binRows)
        bin_width = self.size_of_bin(box, 0, self.binColumns)
        for row in range(self.samples):
            y = self.sample(self.begin(box, 1), bin_height, bin // self.binColumns, row)
            if not self.outside(y, self.height):
                y = self.inside(y, self.height)
                low = int(y)
                high = min(low + 1, self.height - 1)
                for column in range(self.samples):
                    x = self.sample(self.begin(box, 0), bin_width, bin % self.binColumns, column)
                    if not self.outside(x, self.width):
                        x = self.inside(x, self.width)
                        self.add_row(place, group, top + low, x, 1.0 - (y - low))
                        self.add_row(place, group, top + high, x, y - low)

    def add_row(self, place, group, row, x, weight):
        """What a row brings to a sample."""
        if 0 <= row < self.rows:
            left = int(x)
            right = min(left + 1, self.width - 1)
            line = (group * self.rows + row) * self.width
            for channel in range(self.channels):
                first = float(self.in_[(line + left) * self.channels + channel])
                second = float(self.in_[(line + right) * self.channels + channel])
                mean = first * (1.0 - (x - left)) + second * (x - left)
                self.out[place * self.channels + channel] += mean * weight

    def cycles(self, vertex):
        return forward_estimate(vertex)


class ROIAlignBackward(_ROIAlign[T], Generic[T], name="popnn::ROIAlignBackward", writes_all="out"):
    """out [groups, rows, width, channels] = the gradient by what was sampled, `in` [groups, boxes, bins, channels] by bins.

    A worker has some of the rows, of which it sums up what all boxes bring.
    """

    in_: Input[Vector[T]]
    out: Output[Vector[FLOAT]]

    def compute(self, worker):
        line = self.width * self.channels
        lines = len(self.out) // line
        share = (lines + ipu.worker_count() - 1) // ipu.worker_count()
        begin = min(worker * share, lines)
        end = min(begin + share, lines)
        for i in range(begin * line, end * line):
            self.out[i] = 0.0
        if begin < end:
            for group in range(begin // self.rows, (end - 1) // self.rows + 1):
                first = group * self.rows
                for box in range(len(self.batchIndex)):
                    self.add_box(box, group, max(begin, first) - first, min(end, first + self.rows) - first)

    def add_box(self, box, group, begin, end):
        """What a box brings to the rows of the worker in a group."""
        top = self.image(box) * self.height - self.firstRow
        bin_height = self.size_of_bin(box, 1, self.binRows)
        for number in range(self.binRows * self.samples):
            bin = number // self.samples
            y = self.sample(self.begin(box, 1), bin_height, bin, number % self.samples)
            if not self.outside(y, self.height):
                y = self.inside(y, self.height)
                low = int(y)
                high = min(low + 1, self.height - 1)
                first = (group * len(self.batchIndex) + box) * self.binRows + bin
                if begin <= top + low < end:
                    self.add_row(first * self.binColumns, box, group * self.rows + top + low, 1.0 - (y - low))
                if begin <= top + high < end:
                    self.add_row(first * self.binColumns, box, group * self.rows + top + high, y - low)

    def add_row(self, first, box, row, weight):
        """What the samples of a row of bins, the place `first` and those that follow, bring to a row."""
        bin_width = self.size_of_bin(box, 0, self.binColumns)
        for number in range(self.binColumns * self.samples):
            bin = number // self.samples
            x = self.sample(self.begin(box, 0), bin_width, bin, number % self.samples)
            if not self.outside(x, self.width):
                x = self.inside(x, self.width)
                left = int(x)
                right = min(left + 1, self.width - 1)
                for channel in range(self.channels):
                    gradient = float(self.in_[(first + bin) * self.channels + channel]) * (weight / (self.samples * self.samples))
                    self.out[(row * self.width + left) * self.channels + channel] += gradient * (1.0 - (x - left))
                    self.out[(row * self.width + right) * self.channels + channel] += gradient * (x - left)

    def cycles(self, vertex):
        return backward_estimate(vertex)
