"""Game of life: 32 cells in a word, a row of cells on each tile.

Every cell of a torus lives or dies by how many of its eight neighbours live. A word holds 32 cells, and adders made
of `&`, `|` and `^` count the neighbours of all 32 at once. Each tile has a row; those above and below come from the
neighbouring tiles, simply because the vertex is connected to them. Two grids take turns, so that no cell is
overwritten before its neighbours have seen it. NumPy plays the same game cell by cell, and every cell must agree.

    pypoplar tutorial gallery/game_of_life --picture life.png

What it costs: a generation takes about 3,900 cycles, 2.1 us, for 2.3 million cells. A tile receives two rows of 192
bytes, at 4 bytes a cycle: 96 cycles behind a sync of 126. The rest is computing: each of the six workers has 8 words
of some 75 instructions, and its turn comes every sixth cycle. So larger grids cost what their cells cost, and the
exchange hardly shows; with a cell in a word of its own it would be 32 times the bytes, and about 11 times the work.

Exercises
1. Give a tile four rows, `5888 48`. Why does a generation take four times the computing, but no more exchange?
2. Cut the torus into blocks instead. Which pieces does a tile receive then, and what does each cost?
"""

import argparse
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import write_png

from pypoplar import UNSIGNED_INT, Engine, Graph, Input, MultiVertex, Output, Vector, concat, ipu
from pypoplar.program import Execute, Repeat, Sequence


class Generation(MultiVertex):
    """The next row, from a row and those above and below; bit b of word w is the cell in column 32 w + b."""

    above: Input[Vector[UNSIGNED_INT]]
    here: Input[Vector[UNSIGNED_INT]]
    below: Input[Vector[UNSIGNED_INT]]
    out: Output[Vector[UNSIGNED_INT]]

    def compute(self, worker):
        words = len(self.here)
        for i in ipu.worker_range(worker, self.out):
            before = i - 1 if i > 0 else words - 1
            after = i + 1 if i < words - 1 else 0
            ones_a, twos_a = three(self.above[before], self.above[i], self.above[after])
            ones_c, twos_c = three(self.below[before], self.below[i], self.below[after])
            left, right = beside(self.here[before], self.here[i], self.here[after])
            ones_b = left ^ right
            twos_b = left & right
            # Add the three rows' counts: ones and twos as bits, and whether there are four or more.
            ones = ones_a ^ ones_b ^ ones_c
            carry = (ones_a & ones_b) | (ones_c & (ones_a ^ ones_b))
            twos = twos_a ^ twos_b ^ twos_c ^ carry
            pairs = (twos_a & twos_b) | (twos_c & (twos_a ^ twos_b)) | (carry & (twos_a ^ twos_b ^ twos_c))
            self.out[i] = twos & ~pairs & (ones | self.here[i])  # 3 neighbours, or 2 and alive


def beside(before, word, after):
    """The left and the right neighbours of a word's 32 cells."""
    return (word << 1) | (before >> 31), (word >> 1) | (after << 31)


def three(before, word, after):
    """How many of the three cells in a neighbouring row live, beside each of a word's cells: ones and twos."""
    left, right = beside(before, word, after)
    return left ^ word ^ right, (left & word) | (right & (left ^ word))


def build(graph, rows, words, generations):
    """The grid [rows, words] and the program that takes it `generations` (an even number) further."""
    names = ("even", "odd")
    grids = [graph.addVariable(UNSIGNED_INT, [rows, words], name) for name in names]
    tiles = np.arange(rows) * graph.getTarget().getNumTiles() // rows
    for grid in grids:
        for row, tile in enumerate(tiles):
            graph.setTileMapping(grid[row], int(tile))
    body = Sequence()
    for name, now, after in zip(names, grids, grids[::-1], strict=True):
        computeSet = graph.addComputeSet(f"from the {name} grid")
        above, below = concat([now[-1:], now[:-1]]), concat([now[1:], now[:1]])
        graph.add_vertices(computeSet, Generation, {"above": above, "here": now, "below": below, "out": after}, tiles)
        body.add(Execute(computeSet))
    return grids[0], Repeat(generations // 2, body)


def reference(cells, generations):
    """NumPy's game: bool cells [rows, columns]."""
    cells = cells.astype(np.uint8)
    for _ in range(generations):
        three = cells + np.roll(cells, 1, 1) + np.roll(cells, -1, 1)
        nine = three + np.roll(three, 1, 0) + np.roll(three, -1, 0)
        cells = (nine == 3) | ((nine == 4) & (cells == 1))
        cells = cells.view(np.uint8)
    return cells.astype(bool)


def soup(rows, columns, seed):
    """Random cells in the middle of the grid, mirrored across and down, and emptiness around them."""
    quarter = np.random.default_rng(seed).random((rows // 2, columns // 2)) < 0.35
    quarter[: rows // 3], quarter[:, : columns // 3] = False, False
    half = np.concatenate([quarter, quarter[::-1]])
    return np.concatenate([half, half[:, ::-1]], axis=1)


def pack(cells):
    return np.packbits(cells, axis=1, bitorder="little").view("<u4")


def unpack(words):
    return np.unpackbits(words.astype("<u4").view(np.uint8), axis=1, bitorder="little").astype(bool)


def picture(path, cells):
    """A PNG of the middle of the grid with a pixel for each cell, the living ones dark."""
    rows, columns = cells.shape
    write_png(path, np.where(cells, 30, 250)[rows // 4 : rows - rows // 4, columns // 4 : columns - columns // 4])


def main(rows=1472, words=48, generations=500, tiles=1472, path=None):
    device = bow(tiles)
    graph = Graph(device.getTarget())
    graph.addCodelets(Generation)
    grid, program = build(graph, rows, words, generations)
    graph.createHostWrite("cells", grid)
    graph.createHostRead("cells", grid)
    engine = Engine(graph, program)
    engine.load(device)
    start = soup(rows, 32 * words, seed=1)
    engine.writeTensor("cells", pack(start))
    engine.run()
    cells = unpack(engine.readTensor("cells"))
    wrong = int(np.count_nonzero(cells != reference(start, generations)))
    print(f"{rows:,} x {32 * words:,} cells on {tiles:,} tiles, {generations:,} generations")
    print(f"{start.sum():,} living cells became {cells.sum():,}")
    print(f"check against NumPy: {wrong} cells differ")
    print_costs(engine, generations, "generation")
    if path:
        picture(path, cells)
    return wrong == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Conway's game of life on a simulated IPU.")
    parser.add_argument("rows", type=number(2, 2), nargs="?", default=1472)
    parser.add_argument("words", type=number(), nargs="?", default=48, help="words of 32 cells in a row (48)")
    parser.add_argument("generations", type=number(2, 2), nargs="?", default=500, help="an even number (500)")
    parser.add_argument("--tiles", type=number(), default=1472)
    parser.add_argument("--picture", dest="path", help="write the last generation to this PNG file")
    sys.exit(not main(**vars(parser.parse_args())))
