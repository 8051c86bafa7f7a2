"""Odd-even sort: blocks of keys, merged with the neighbours' until all are in order.

Each tile sorts a block of keys of its own. Then neighbours meet in pairs, at first tiles 0 and 1, 2 and 3, in the
next phase 1 and 2, 3 and 4: both see both blocks, one keeps the lower half of their keys and the other the upper.
After as many phases as there are tiles every key is in its place, wherever it began. The six workers of a tile merge
together: a binary search along the "merge path" tells each where its sixth of the merged keys begins. NumPy sorts the
same keys, and all must be equal.

    pypoplar tutorial gallery/odd_even_sort --picture sort.png

What it costs: a phase of 1472 tiles takes about 3,150 cycles, the sort of 70,656 keys 4.7 million, 2.5 ms. What a
tile receives is small, its neighbour's 48 keys in 48 cycles behind a sync of 126. A worker writes 8 keys at 36 slots
each, one slot every six cycles, and finding where they begin takes most of the other 200 slots. So larger blocks are
better: what is fixed in a phase is paid once, and fewer tiles need fewer phases.

Exercises
1. Sort keys that are in order already. Which cycles are saved? What would it take to stop early, and what does
   asking "is it sorted?" cost in each phase?
2. Half as many tiles with twice as many keys each: which parts become longer, which shorter?
"""

import argparse
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import colours, write_png

from pypoplar import INT, Engine, Graph, InOut, Input, MultiVertex, Output, Vector, Vertex, ipu
from pypoplar.program import Execute, Repeat, Sequence

ROWS = 64  # of the picture


class SortBlock(Vertex):
    """Shell's sort, by one worker."""

    keys: InOut[Vector[INT]]

    def compute(self):
        gap = len(self.keys) // 2
        while gap > 0:
            for i in range(gap, len(self.keys)):
                key = self.keys[i]
                place = i
                while place >= gap and self.keys[max(place - gap, 0)] > key:
                    self.keys[place] = self.keys[place - gap]
                    place -= gap
                self.keys[place] = key
            gap //= 2


class MergeHalf(MultiVertex):
    """Of the merged keys of two blocks those from `first` on, as many as `out` holds."""

    left: Input[Vector[INT]]
    right: Input[Vector[INT]]
    out: Output[Vector[INT]]
    first: INT

    def compute(self, worker):
        size = len(self.out)
        share = (size + ipu.worker_count() - 1) // ipu.worker_count()
        begin = min(worker * share, size)
        end = min(begin + share, size)
        before = self.first + begin  # of the merged keys so many go before this worker's: `i` of the left, `j` of the right
        i = max(0, before - len(self.right))
        most = min(before, len(self.left))
        while i < most:
            middle = (i + most) // 2
            if self.left[middle] <= self.right[before - 1 - middle]:
                i = middle + 1
            else:
                most = middle
        j = before - i
        for place in range(begin, end):
            if j >= len(self.right) or (i < len(self.left) and self.left[i] <= self.right[j]):
                self.out[place] = self.left[i]
                i += 1
            else:
                self.out[place] = self.right[j]
                j += 1


class Keep(Vertex):
    """A block at an end of the row of tiles, which has no neighbour in this phase."""

    block: Input[Vector[INT]]
    out: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = self.block[i]


def mergePairs(graph, blocks, out, first, name):
    """A superstep in which tiles `first` and `first` + 1, and every two after them, merge their blocks."""
    tiles = blocks.shape()[0]
    computeSet = graph.addComputeSet(name)
    paired = np.arange(first, tiles - (tiles - first) % 2)
    inner, innerOut = (tensor[first : paired[-1] + 1] for tensor in (blocks, out))
    left, right = inner.subSample(2, 0), inner[1:].subSample(2, 0)
    for side in (0, 1):
        upper = side * blocks.shape()[1]
        mine = innerOut[side:].subSample(2, 0)
        graph.add_vertices(computeSet, MergeHalf, {"left": left, "right": right, "out": mine, "first": upper}, paired[side::2])
    for tile in sorted(set(range(tiles)) - set(paired.tolist())):
        graph.setTileMapping(graph.addVertex(computeSet, Keep, {"block": blocks[tile], "out": out[tile]}), tile)
    return Execute(computeSet)


def build(graph, tiles, size):
    """The blocks [tiles, size], a program that sorts each, and one of two phases."""
    blocks, others = (graph.addVariable(INT, [tiles, size], name) for name in ("blocks", "others"))
    for tile in range(tiles):
        graph.setTileMapping(blocks[tile], tile)
        graph.setTileMapping(others[tile], tile)
    sortBlocks = graph.addComputeSet("sort blocks")
    graph.add_vertices(sortBlocks, SortBlock, {"keys": blocks}, np.arange(tiles))
    even = mergePairs(graph, blocks, others, 0, "even phase")
    odd = mergePairs(graph, others, blocks, 1, "odd phase")
    return blocks, Execute(sortBlocks), Sequence([even, odd])


def picture(path, history):
    """A PNG: downwards the phases, from left to right the tiles, as colours the mean key of a block."""
    means = np.array([blocks.mean(axis=1) for blocks in history])
    write_png(path, np.repeat(colours(means, -(2.0**31), 2.0**31), max(1, 736 // len(means)), axis=0))


def main(tiles=1472, size=48, path=None):
    device = bow(tiles)
    graph = Graph(device.getTarget())
    graph.addCodelets(SortBlock, MergeHalf, Keep)
    blocks, sortBlocks, phases = build(graph, tiles, size)
    graph.createHostWrite("keys", blocks)
    graph.createHostRead("keys", blocks)
    pairs = tiles // 2
    chunk = -(-pairs // ROWS)  # pairs of phases between two rows of the picture
    engine = Engine(graph, [sortBlocks, Repeat(chunk, phases), phases])
    engine.load(device)
    keys = np.random.default_rng(1).integers(-(2**31), 2**31, (tiles, size), np.int32)
    engine.writeTensor("keys", keys)
    history = [keys]
    for program in [0, *[1] * (pairs // chunk), *[2] * (pairs % chunk)]:
        engine.run(program)
        if program == 1:
            history.append(engine.readTensor("keys"))
    found = engine.readTensor("keys").ravel()
    wrong = int(np.count_nonzero(found != np.sort(keys, axis=None)))
    print(f"{keys.size:,} keys on {tiles:,} tiles, {2 * pairs:,} phases")
    print(f"check against numpy.sort: {wrong} keys differ")
    print_costs(engine, 1, "sort")
    if path:
        picture(path, history)
    return wrong == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sort keys by odd-even merging of blocks on a simulated IPU.")
    parser.add_argument("tiles", type=number(4, 2), nargs="?", default=1472, help="an even number (1472)")
    parser.add_argument("size", type=number(2), nargs="?", default=48, help="keys of a block (48)")
    parser.add_argument("--picture", dest="path", help="write the way of the keys to this PNG file")
    sys.exit(not main(**vars(parser.parse_args())))
