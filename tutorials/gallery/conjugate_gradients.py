"""Conjugate gradients: Poisson's equation on a grid in three dimensions, until the residual is small.

The grid is cut into lines along z, and each tile has a block of 3 x 2 of them, a line for each worker. The stencil
of 7 points needs the four neighbours of a line, which lie on the tile or come from the tiles around it; lines beyond
the walls are zeros. Each vertex also leaves its part of a scalar product, `popops.reduce` adds these up, and whoever
needs the sum is connected to it. `RepeatWhileTrue` goes on until the residual is 1e-5 of the right-hand side's. The
same grid has a closed solution by sine transforms, which NumPy multiplies out, and the two must agree.

    pypoplar tutorial gallery/conjugate_gradients --picture residual.svg

What it costs: with 565,248 points on 1472 tiles an iteration takes about 16,900 cycles, 9.2 us, and there are 199.
The stencil takes 7,500 of them, of which 640 receive the 10 lines of 64 points around a block; the two steps along
the lines, with nothing to receive but scalars, 6,600. The two scalar products take three supersteps each, 1,050
cycles, though there is next to nothing to add: syncs and single vertices. That part hardly shrinks with the grid, and
neither do 212 cycles wherever a scalar is copied. A tile's six lines keep its six workers equally busy.

Exercises
1. Where do the cycles of one iteration go, with `16 16 64` and with the default? Which part never becomes shorter?
2. Join the two reductions in one, as in "pipelined" conjugate gradients. What does it save in an iteration?
"""

import argparse
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import write_chart

from pypoplar import BOOL, FLOAT, INT, Engine, Graph, InOut, Input, Output, Vector, Vertex, popops
from pypoplar.program import Copy, Execute, RepeatWhileTrue, Sequence

BLOCK = (3, 2)  # lines of a tile, in x and y
TOLERANCE = 1e-5
MOST = 1000  # iterations that `history` has room for


class Stencil(Vertex):
    """out = 6 p - the six neighbours, along a line; and the line's part of the scalar product of p and out."""

    p: Input[Vector[FLOAT]]
    west: Input[Vector[FLOAT]]
    east: Input[Vector[FLOAT]]
    south: Input[Vector[FLOAT]]
    north: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]
    part: Output[FLOAT]

    def compute(self):
        last = len(self.p) - 1
        part = 0.0
        below = 0.0
        for k in range(last + 1):
            here = self.p[k]
            above = self.p[k + 1] if k < last else 0.0
            value = 6.0 * here - below - above - self.west[k] - self.east[k] - self.south[k] - self.north[k]
            self.out[k] = value
            part += here * value
            below = here
        self.part = part


class Step(Vertex):
    """x += alpha p, r -= alpha q, and the line's part of the scalar product of r with itself."""

    x: InOut[Vector[FLOAT]]
    r: InOut[Vector[FLOAT]]
    p: Input[Vector[FLOAT]]
    q: Input[Vector[FLOAT]]
    rr: Input[FLOAT]
    pq: Input[FLOAT]
    part: Output[FLOAT]

    def compute(self):
        alpha = self.rr / self.pq
        part = 0.0
        for k in range(len(self.x)):
            self.x[k] += alpha * self.p[k]
            r = self.r[k] - alpha * self.q[k]
            self.r[k] = r
            part += r * r
        self.part = part


class Direction(Vertex):
    """p = r + beta p"""

    p: InOut[Vector[FLOAT]]
    r: Input[Vector[FLOAT]]
    new: Input[FLOAT]
    old: Input[FLOAT]

    def compute(self):
        beta = self.new / self.old
        for k in range(len(self.p)):
            self.p[k] = self.r[k] + beta * self.p[k]


class Judge(Vertex):
    """Whether to go on; keeps the square of each iteration's residual."""

    rr: Input[FLOAT]
    first: Input[FLOAT]
    history: InOut[Vector[FLOAT]]
    count: InOut[INT]
    again: Output[BOOL]

    def compute(self):
        self.history[self.count] = self.rr
        self.count += 1
        self.again = self.rr > TOLERANCE * TOLERANCE * self.first and self.count < len(self.history)


def build(graph, nx, ny, nz):
    """Tensors by name and the program that solves A x = b, for a grid of `nx` x `ny` lines of `nz` points."""
    tiles = [x // BLOCK[0] * (ny // BLOCK[1]) + y // BLOCK[1] for x in range(nx) for y in range(ny)]
    lines = {name: graph.addVariable(FLOAT, [nx * ny, nz], name) for name in "bxrpq"}
    parts = graph.addVariable(FLOAT, [nx * ny], "parts")
    for line, tile in enumerate(tiles):
        for tensor in (*lines.values(), parts):
            graph.setTileMapping(tensor[line], tile)
    types = {"rr": (FLOAT, []), "first": (FLOAT, []), "history": (FLOAT, [MOST]), "count": (INT, []), "again": (BOOL, [])}
    scalars = {name: graph.addVariable(type, shape, name) for name, (type, shape) in types.items()}
    for tensor in scalars.values():
        graph.setTileMapping(tensor, 0)
    for name, tensor in {"x": lines["x"], "count": scalars["count"], "history": scalars["history"]}.items():
        graph.setInitialValue(tensor, 0)
        graph.createHostRead(name, tensor)
    graph.createHostWrite("b", lines["b"])

    def taken(names):
        return {name: lines[name] for name in names}

    def every(scalar):
        return scalar.reshape([1]).broadcast(nx * ny)

    def superstep(name, codelet, fields, program):
        computeSet = graph.addComputeSet(name)
        graph.add_vertices(computeSet, codelet, fields, np.array(tiles))
        program.add(Execute(computeSet))

    def total(program, name):
        return popops.reduce(graph, parts, [0], popops.Operation.ADD, program, name)

    rr, old = scalars["rr"], graph.addVariable(FLOAT, [], "old")
    graph.setTileMapping(old, 0)
    start = Sequence([Copy(lines["b"], lines["r"]), Copy(lines["b"], lines["p"])])
    start.add(Copy(popops.reduce(graph, lines["b"], [0, 1], popops.Operation.SQUARE_ADD, start, "b b"), rr))
    start.add(Copy(rr, scalars["first"]))

    body = Sequence([stencil(graph, lines, parts, (nx, ny, nz), tiles)])
    pq = total(body, "p q")
    superstep("step", Step, {**taken("xrpq"), "rr": every(rr), "pq": every(pq), "part": parts}, body)
    body.add(Copy(rr, old))
    body.add(Copy(total(body, "r r"), rr))
    superstep("direction", Direction, {**taken("pr"), "new": every(rr), "old": every(old)}, body)
    judge = graph.addComputeSet("judge")
    graph.setTileMapping(graph.addVertex(judge, Judge, scalars), 0)
    return Sequence([start, RepeatWhileTrue(Execute(judge), scalars["again"], body)])


def stencil(graph, lines, parts, shape, tiles):
    """The superstep q = A p, whose vertices are connected to the lines around their own, or to zeros beyond a wall."""
    nx, ny, nz = shape
    computeSet, wall = graph.addComputeSet("stencil"), [0.0] * nz
    p = [lines["p"][line] for line in range(nx * ny)]
    for line, tile in enumerate(tiles):
        x, y = divmod(line, ny)
        fields = {"p": p[line], "out": lines["q"][line], "part": parts[line]}
        fields["west"] = p[line - ny] if x > 0 else wall
        fields["east"] = p[line + ny] if x < nx - 1 else wall
        fields["south"] = p[line - 1] if y > 0 else wall
        fields["north"] = p[line + 1] if y < ny - 1 else wall
        graph.setTileMapping(graph.addVertex(computeSet, Stencil, fields), tile)
    return Execute(computeSet)


def solution(b):
    """The solution of A x = b in float64: A's eigenvectors are products of sines."""
    sines, sums = [], 0.0
    for axis, n in enumerate(b.shape):
        k = np.arange(1, n + 1)
        sines.append(np.sqrt(2 / (n + 1)) * np.sin(np.pi / (n + 1) * np.outer(k, k)))
        shape = [n if other == axis else 1 for other in range(3)]
        sums = sums + (2 - 2 * np.cos(np.pi * k / (n + 1))).reshape(shape)

    def transform(values):
        for axis, sine in enumerate(sines):
            values = np.moveaxis(np.tensordot(sine, values, (1, axis)), 0, axis)
        return values

    return transform(transform(b.astype(np.float64)) / sums)


def picture(path, history):
    """An SVG: the residual by iterations."""
    residual = np.log10(np.sqrt(history / history[0]))
    axes = ("iteration", "residual, power of ten")
    write_chart(path, "Conjugate gradients on a Bow", axes, [("|r| / |b|", np.arange(len(history)), residual)])


def main(nx=96, ny=92, nz=64, path=None):
    tiles = nx // BLOCK[0] * (ny // BLOCK[1])
    device = bow(tiles)
    graph = Graph(device.getTarget())
    graph.addCodelets(Stencil, Step, Direction, Judge)
    popops.addCodelets(graph)
    engine = Engine(graph, build(graph, nx, ny, nz))
    engine.load(device)
    b = np.random.default_rng(1).standard_normal((nx, ny, nz), np.float32)
    engine.writeTensor("b", b.reshape(nx * ny, nz))
    engine.run()
    x = engine.readTensor("x").reshape(nx, ny, nz).astype(np.float64)
    history = engine.readTensor("history")[: int(engine.readTensor("count"))]
    applied = 6 * x
    for axis in range(3):
        inside = np.moveaxis(applied, axis, 0)
        inside[1:] -= np.moveaxis(x, axis, 0)[:-1]
        inside[:-1] -= np.moveaxis(x, axis, 0)[1:]
    residual = np.linalg.norm(b - applied) / np.linalg.norm(b)
    exact = solution(b)
    error = np.linalg.norm(x - exact) / np.linalg.norm(exact)
    iterations = len(history) - 1
    print(f"{nx} x {ny} x {nz} points on {tiles:,} tiles: {iterations} iterations")
    print(f"check against NumPy: residual {residual:.1e} of b, solution differs by {error:.1e} from that by sine transforms")
    print_costs(engine, iterations, "iteration")
    if path:
        picture(path, history)
    return bool(residual < 3 * TOLERANCE and error < 1e-3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Poisson's equation by conjugate gradients on a simulated IPU.")
    parser.add_argument("nx", type=number(3, BLOCK[0]), nargs="?", default=96, help="lines, a multiple of 3 (96)")
    parser.add_argument("ny", type=number(2, BLOCK[1]), nargs="?", default=92, help="lines, a multiple of 2 (92)")
    parser.add_argument("nz", type=number(2), nargs="?", default=64, help="points of a line (64)")
    parser.add_argument("--picture", dest="path", help="write the residual by iterations to this SVG file")
    sys.exit(not main(**vars(parser.parse_args())))
