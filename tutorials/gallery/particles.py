"""Particles that fly from cell to cell, and so from tile to tile.

A torus is cut into cells, six for each tile, a cell for each worker, and a cell has room for so many particles. Those
that leave it are copied into a buffer for the cell that they enter, which takes them in before it moves on: at first
across, then down, so that four neighbours do for all eight. An exchange is made before the program runs and cannot
know how many will come: it sends whole buffers, and a count with each. If a cell or a buffer is full the particle is
counted as lost, and the script says so. Places are whole numbers, so that all others must be where NumPy's are.

    pypoplar tutorial gallery/particles --picture caustics.png

What it costs: 141,312 particles on 1472 tiles take about 24,500 cycles a step, 13 us. A tile receives three buffers
of 480 bytes from each side in one superstep and two in the other, 726 and 484 cycles, though a buffer for 24 holds a
third of a particle in the mean: that is the price of not knowing. Computing takes 11,500 for each superstep, by the
fullest cell, which has 118 particles in the end where the mean cell has 16: the mean tile works 42% of the time.
Cells of equal size are easy to find and, where particles gather, badly balanced.

Exercises
1. Make buffers and cells as small as can be without a loss. Which cycles follow the buffers, which the particles?
2. `--capacity 20`: which cells are the first to overflow, and what would a program do that may not lose any?
"""

import argparse
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import write_png

from pypoplar import INT, UNSIGNED_CHAR, Array, Engine, Graph, InOut, Input, Output, Record, Vector, Vertex, concat
from pypoplar.program import Execute, Repeat, Sequence

CELL = 65536  # the extent of a cell; a particle moves by less than that in a step
BLOCK = (3, 2)  # cells of a tile


class Particle(Record):
    place: Array[INT, 2]  # within its cell
    velocity: Array[INT, 2]
    number: INT


def assign(to, particle):
    """Records are assigned field by field."""
    to.place[0] = particle.place[0]
    to.place[1] = particle.place[1]
    to.velocity[0] = particle.velocity[0]
    to.velocity[1] = particle.velocity[1]
    to.number = particle.number


class Settle(Vertex):
    """Take in what the two neighbours have sent."""

    particles: InOut[Vector[Particle]]
    count: InOut[INT]
    lost: InOut[INT]
    fromBefore: Input[Vector[Particle]]
    fromAfter: Input[Vector[Particle]]
    numBefore: Input[INT]
    numAfter: Input[INT]

    def compute(self):
        self.settle()

    def settle(self):
        self.take(self.fromBefore, self.numBefore)
        self.take(self.fromAfter, self.numAfter)

    def take(self, arriving, number):
        for i in range(number):
            if self.count < len(self.particles):
                assign(self.particles[self.count], arriving[i])
                self.count += 1
            else:
                self.lost += 1


class Fly(Settle):
    """Take in what came along the other axis, then move along this one; those that leave go into the buffers."""

    toBefore: Output[Vector[Particle]]
    toAfter: Output[Vector[Particle]]
    leftBefore: Output[INT]
    leftAfter: Output[INT]
    axis: INT

    def compute(self):
        self.settle()
        kept = 0
        before = 0
        after = 0
        for i in range(self.count):
            particle = self.particles[i]
            place = particle.place[self.axis] + particle.velocity[self.axis]
            particle.place[self.axis] = place & (CELL - 1)
            if place < 0:
                if before < len(self.toBefore):
                    assign(self.toBefore[before], particle)
                    before += 1
                else:
                    self.lost += 1
            elif place >= CELL:
                if after < len(self.toAfter):
                    assign(self.toAfter[after], particle)
                    after += 1
                else:
                    self.lost += 1
            else:
                if kept < i:
                    assign(self.particles[kept], particle)
                kept += 1
        self.count = kept
        self.leftBefore = before
        self.leftAfter = after


def neighbours(tensor, axis, hop):
    """[nx, ny, ...] around the torus: a cell gets what belongs to the cell `hop` places before it along an axis."""
    split = -hop % tensor.dim(axis)
    return concat([tensor.slice(split, tensor.dim(axis), axis), tensor.slice(0, split, axis)], axis)


def build(graph, nx, ny, capacity, room, steps):
    """The program; handles "particles", "count" and "lost" of the host."""
    cells, size = nx * ny, Particle.dtype.itemsize
    across, down = np.divmod(np.arange(cells), ny)
    tiles = across // BLOCK[0] * (ny // BLOCK[1]) + down // BLOCK[1]

    def variable(type, width, name):
        tensor = graph.addVariable(type, [cells, width] if width else [cells], name)
        for cell, tile in enumerate(tiles.tolist()):
            graph.setTileMapping(tensor[cell], tile)
        return tensor

    own = {"particles": variable(UNSIGNED_CHAR, capacity * size, "particles")}
    own |= {name: variable(INT, 0, name) for name in ("count", "lost")}
    buffers = [[variable(UNSIGNED_CHAR, room * size, f"buffer {axis} {side}") for side in "ab"] for axis in "xy"]
    counts = [[variable(INT, 0, f"count {axis} {side}") for side in "ab"] for axis in "xy"]
    for tensor in (own["lost"], *counts[0], *counts[1]):
        graph.setInitialValue(tensor, 0)

    def arriving(axis):
        """What the neighbours along an axis have sent: the one before its buffer for the cell after it, and so on."""
        fields = {}
        for name, side, hop in (("Before", 1, 1), ("After", 0, -1)):
            sent, number = buffers[axis][side].reshape([nx, ny, room * size]), counts[axis][side].reshape([nx, ny])
            fields[f"from{name}"] = neighbours(sent, axis, hop).reshape([cells, room * size])
            fields[f"num{name}"] = neighbours(number, axis, hop).reshape([cells])
        return fields

    body = Sequence()
    for axis, name in enumerate(("across", "down")):
        computeSet = graph.addComputeSet(name)
        sent = dict(zip(("toBefore", "toAfter", "leftBefore", "leftAfter"), (*buffers[axis], *counts[axis]), strict=True))
        graph.add_vertices(computeSet, Fly, {**own, **arriving(1 - axis), **sent, "axis": axis}, tiles)
        body.add(Execute(computeSet))
    settle = graph.addComputeSet("settle")
    graph.add_vertices(settle, Settle, {**own, **arriving(1)}, tiles)
    for name, tensor in own.items():
        graph.createHostWrite(name, tensor)
        graph.createHostRead(name, tensor)
    return Sequence([Repeat(steps, body), Execute(settle)])


def swarm(nx, ny, each, steps, seed):
    """Places [2, n] on the torus and velocities, which make waves that break."""
    random = np.random.default_rng(seed)
    extent = np.array([[nx], [ny]]) * CELL
    place = (random.random((2, nx * ny * each)) * extent).astype(np.int64)
    waves = np.sin(2 * np.pi * (place / extent)[::-1] * [[2], [1]]) + np.sin(2 * np.pi * (place / extent) * [[1], [2]])
    velocity = ((0.055 * waves + 0.014 * random.standard_normal(place.shape)) * extent.min() / steps).astype(np.int64)
    return place, np.clip(velocity, 1 - CELL, CELL - 1)


def packed(place, velocity, nx, ny, capacity):
    """The particles by cell [cells, capacity], and how many there are in each."""
    cell = place[0] // CELL * ny + place[1] // CELL
    order = np.argsort(cell, kind="stable")
    count = np.bincount(cell, minlength=nx * ny)
    if count.max() > capacity:
        raise SystemExit(f"a cell begins with {count.max()} particles: give it more room than --capacity {capacity}")
    within = np.arange(len(cell)) - np.repeat(np.cumsum(count) - count, count)
    particles = np.zeros((nx * ny, capacity), Particle.dtype)
    where = (cell[order], within)
    particles["place"][where], particles["velocity"][where] = (place[:, order] % CELL).T, velocity[:, order].T
    particles["number"][where] = order
    return particles, count.astype(np.int32)


def picture(path, place, extent, size=560):
    """A PNG: the more particles at a place, the darker."""
    across, down = (place * size // extent.min()).astype(int)
    shape = (extent.ravel()[::-1] * size // extent.min()).astype(int)
    density = np.bincount(down * shape[1] + across, minlength=shape.prod()).reshape(shape)
    write_png(path, np.round(250 - 235 * np.minimum(1, density / 4) ** 0.7))


def main(nx=96, ny=92, each=16, steps=100, capacity=128, room=24, path=None):
    device = bow(nx * ny // (BLOCK[0] * BLOCK[1]))
    graph = Graph(device.getTarget())
    graph.addCodelets(Settle, Fly)
    engine = Engine(graph, build(graph, nx, ny, capacity, room, steps))
    engine.load(device)
    place, velocity = swarm(nx, ny, each, steps, seed=1)
    particles, count = packed(place, velocity, nx, ny, capacity)
    engine.writeTensor("particles", particles.view(np.uint8))
    engine.writeTensor("count", count)
    engine.run()
    particles = engine.readTensor("particles").view(Particle.dtype)
    count, lost = engine.readTensor("count"), int(engine.readTensor("lost").sum())
    extent = np.array([[nx], [ny]]) * CELL
    cell, within = np.nonzero(np.arange(capacity) < count[:, np.newaxis])
    there = particles[cell, within]
    found = there["place"].T + np.stack(np.divmod(cell, ny)) * CELL
    wrong = int(np.count_nonzero((found != ((place + steps * velocity) % extent)[:, there["number"]]).any(axis=0)))
    whole = len(np.unique(there["number"])) == len(there) == place.shape[1] - lost
    print(f"{place.shape[1]:,} particles in {nx} x {ny} cells on {nx * ny // 6:,} tiles, {steps} steps; fullest cell {count.max()}")
    print(f"check against free flight: {wrong} in other places, {lost} lost, {'all' if whole else 'not all'} the others there once")
    if lost:
        print("cells or buffers overflowed: give them more room with --capacity and --room")
    print_costs(engine, steps, "step")
    if path:
        picture(path, found, extent)
    return wrong == lost == 0 and whole


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Particles that move between tiles of a simulated IPU.")
    parser.add_argument("nx", type=number(6, BLOCK[0]), nargs="?", default=96, help="cells, a multiple of 3 (96)")
    parser.add_argument("ny", type=number(4, BLOCK[1]), nargs="?", default=92, help="cells, a multiple of 2 (92)")
    parser.add_argument("each", type=number(), nargs="?", default=16, help="particles for each cell (16)")
    parser.add_argument("steps", type=number(), nargs="?", default=100)
    parser.add_argument("--capacity", type=number(), default=128, help="particles that a cell has room for (128)")
    parser.add_argument("--room", type=number(), default=24, help="particles that a buffer has room for (24)")
    parser.add_argument("--picture", dest="path", help="write where the particles are to this PNG file")
    sys.exit(not main(**vars(parser.parse_args())))
