"""The steps of samples in chunks, each of which one worker has; probabilities and gradients lie by chunk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from pypoplar.arrays.dtypes import Int64s
from pypoplar.graph.tensor import Tensor
from pypoplar.poputil.cycles import ceiling
from pypoplar.target import Target


def spread(count: int, tiles: int) -> Int64s:
    """Tiles for so many things in order: a tile each, or equally many on all."""
    places: Int64s = np.arange(count)
    return places if count <= tiles else places * tiles // count


@frozen
class TimeChunks:
    """The steps of `batch` samples, `length` at a time; `tiles` is how many the machine has."""

    batch: int
    time: int
    length: int
    tiles: int

    @staticmethod
    def of(target: Target, batch: int, time: int) -> TimeChunks:
        """As many chunks as there are workers, or steps."""
        tiles = target.getNumTiles()
        count = min(max(tiles * target.getNumWorkerContexts() // batch, 1), time)
        return TimeChunks(batch, time, ceiling(time, count), tiles)

    @property
    def count(self) -> int:
        """Chunks of a sample."""
        return ceiling(self.time, self.length)

    @property
    def tile(self) -> Int64s:
        """[samples, chunks]: the tile of each."""
        return spread(self.batch * self.count, self.tiles).reshape(self.batch, self.count)

    def tile_of_steps(self) -> Int64s:
        """[steps, samples]: the tile of each."""
        tiles: Int64s = np.repeat(self.tile, self.length, 1)[:, : self.time].T
        return tiles

    def alike(self) -> Iterator[tuple[int, int, Int64s]]:
        """The chunks that are equally long: first and last step, and tiles [samples, chunks]."""
        whole = self.time // self.length
        if whole:
            yield 0, whole * self.length, self.tile[:, :whole]
        if self.time % self.length:
            yield whole * self.length, self.time, self.tile[:, whole:]

    def cut(self, tensor: Tensor, begin: int, end: int) -> Tensor:
        """[samples, steps, ...] as [chunks, elements of each]."""
        length = min(self.length, end - begin)
        count = (end - begin) // length
        return tensor.slice(begin, end, 1).reshape([self.batch * count, length * tensor.numElements() // (self.batch * self.time)])

    def cut_pieces(self, tensor: Tensor, begin: int, end: int) -> Tensor:
        """[samples, pieces, steps, elements] as [chunks, pieces, elements of each]."""
        _, pieces, _, elements = tensor.shape()
        length = min(self.length, end - begin)
        count = (end - begin) // length
        view = tensor.slice(begin, end, 2).reshape([self.batch, pieces, count, length * elements])
        return view.dimShuffle([0, 2, 1, 3]).reshape([self.batch * count, pieces, length * elements])
