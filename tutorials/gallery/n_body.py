"""N-body: two clusters of stars meet, and every star pulls every other.

Each tile has six stars, one for each worker, and in every step it needs to know where all the stars are. A worker
sums the pull of all of them on its own star; a second superstep moves the stars, which needs nothing from elsewhere.
The steps are leapfrog's: velocities are half a step behind the places, which keeps the energy. The pull is softened
near each star, as is usual, so that no pair takes shorter steps than the rest. At the end the forces are compared
with NumPy's, and the energy and momentum with those at the beginning.

    pypoplar tutorial gallery/n_body --picture stars.png

What it costs: with 3,072 stars on 512 tiles a step takes about 488,000 cycles, 264 us. All tiles receive all places,
36,864 bytes that each tile sends once and all receive: 4,600 cycles, 1% of the step. A worker takes 26 slots, 156
cycles, for each of the 3,072 pulls on its star, the root and the division most of them, and that is 99%. So it does
not pay to send less, as codes for other machines do; all tiles are equally busy, since all have as many stars.

Exercises
1. Pass blocks of stars around a ring of tiles instead. What does a tile then hold, and what do its syncs cost?
2. Give each tile 12 stars, on half as many tiles. What becomes of the exchange, of the computing?
"""

import argparse
import math
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import write_png

from pypoplar import FLOAT, Engine, Graph, InOut, Input, MultiVertex, Output, Vector, VectorList, ipu
from pypoplar.program import Execute, Repeat, Sequence

SOFTENING = 0.05  # in which the potential is -1 / sqrt(r^2 + softening^2)
STEP = 0.0125
PICTURES = 24  # moments that the picture shows


class Forces(MultiVertex):
    """The acceleration of this tile's stars, by all stars; all together have the mass 1."""

    x: Input[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]
    z: Input[Vector[FLOAT]]
    mine: Input[VectorList[FLOAT]]
    acceleration: Output[VectorList[FLOAT]]

    def compute(self, worker):
        mass = 1.0 / float(len(self.x))
        for star in range(worker, len(self.mine[0]), ipu.worker_count()):
            px = self.mine[0][star]
            py = self.mine[1][star]
            pz = self.mine[2][star]
            ax = 0.0
            ay = 0.0
            az = 0.0
            for i in range(len(self.x)):
                dx = self.x[i] - px
                dy = self.y[i] - py
                dz = self.z[i] - pz
                square = dx * dx + dy * dy + dz * dz + SOFTENING**2
                pull = 1.0 / (square * math.sqrt(square))  # itself, a star pulls by 0
                ax += pull * dx
                ay += pull * dy
                az += pull * dz
            self.acceleration[0][star] = ax * mass
            self.acceleration[1][star] = ay * mass
            self.acceleration[2][star] = az * mass


class Move(MultiVertex):
    """Leapfrog: velocities go from half a step before now to half a step after it, then places to the next step."""

    place: InOut[VectorList[FLOAT]]
    velocity: InOut[VectorList[FLOAT]]
    acceleration: Input[VectorList[FLOAT]]

    def compute(self, worker):
        for star in range(worker, len(self.place[0]), ipu.worker_count()):
            for axis in range(3):
                self.velocity[axis][star] += STEP * self.acceleration[axis][star]
                self.place[axis][star] += STEP * self.velocity[axis][star]


def build(graph, tiles, each):
    """Tensors [3, tiles, each] by name, and the two supersteps."""
    tensors = {name: graph.addVariable(FLOAT, [3, tiles, each], name) for name in ("place", "velocity", "acceleration")}
    for name, tensor in tensors.items():
        for tile in range(tiles):
            graph.setTileMapping(tensor[:, tile], tile)
        graph.createHostRead(name, tensor)
        graph.createHostWrite(name, tensor)
    forces, move = graph.addComputeSet("forces"), graph.addComputeSet("move")
    places = tensors["place"].reshape([3, tiles * each])
    for tile in range(tiles):
        mine = {name: tensor[:, tile] for name, tensor in tensors.items()}
        everyone = {"x": places[0], "y": places[1], "z": places[2]}
        fields = {**everyone, "mine": mine["place"], "acceleration": mine["acceleration"]}
        graph.setTileMapping(graph.addVertex(forces, Forces, fields), tile)
        graph.setTileMapping(graph.addVertex(move, Move, mine), tile)
    return Execute(forces), Execute(move)


def clusters(stars, seed):
    """Two Plummer spheres that come towards each other a little aside: places and velocities [3, stars], float64."""
    random = np.random.default_rng(seed)

    def ball():
        vectors = random.standard_normal((3, stars))
        return vectors / np.linalg.norm(vectors, axis=0)

    radius = 0.3 / np.sqrt(random.uniform(0.05, 0.95, stars) ** (-2 / 3) - 1)
    side = np.where(np.arange(stars) < stars // 2, -1.0, 1.0)
    speed = 0.5 * np.sqrt(0.5) * (radius**2 + 0.3**2) ** -0.25
    place = ball() * radius + side * np.array([[0.75], [0.3], [0.0]])
    velocity = ball() * speed - side * np.array([[0.4], [0.0], [0.0]])
    return place, velocity - velocity.mean(axis=1, keepdims=True)


def reference(place):
    """NumPy's accelerations [3, stars] in float64, and the potential energy."""
    stars = place.shape[1]
    acceleration, potential = np.zeros_like(place), 0.0
    for begin in range(0, stars, 256):
        apart = place[:, np.newaxis, :] - place[:, begin : begin + 256, np.newaxis]
        inverse = 1 / np.sqrt(np.einsum("aij,aij->ij", apart, apart) + SOFTENING**2)
        acceleration[:, begin : begin + 256] = np.einsum("ij,aij->ai", inverse**3, apart) / stars
        potential -= (inverse.sum() - len(inverse) / SOFTENING) / 2 / stars**2
    return acceleration, potential


def energy(velocity, potential):
    return (velocity**2).sum() / 2 / velocity.shape[1] + potential


def picture(path, history, size=600, width=1.8):
    """A PNG of all moments, the earlier ones paler; stars that began on the left are blue, the others red."""
    shown = np.full((size, size, 3), 255.0)
    half = history[0].shape[1] // 2
    inks = np.array([(20, 80, 170)] * half + [(205, 60, 30)] * (history[0].shape[1] - half), float)
    for moment, place in enumerate(history, 1):
        across, down = ((place[:2] * [[1], [-1]] + width) / (2 * width) * size).astype(int)
        inside = (across >= 0) & (across < size) & (down >= 0) & (down < size)
        where, part = (down[inside], across[inside]), 0.9 if moment == len(history) else 0.12
        shown[where] = (1 - part) * shown[where] + part * inks[inside]
    write_png(path, shown.round())


def main(tiles=512, steps=144, path=None):
    each = 6
    stars = tiles * each
    device = bow(tiles)
    graph = Graph(device.getTarget())
    graph.addCodelets(Forces, Move)
    forces, move = build(graph, tiles, each)
    chunk = max(1, steps // PICTURES)
    engine = Engine(graph, [Repeat(chunk, Sequence([forces, move])), forces])
    engine.load(device)
    place, velocity = clusters(stars, seed=1)
    acceleration, potential = reference(place)
    before = energy(velocity, potential)
    engine.writeTensor("place", place.reshape(3, tiles, each).astype(np.float32))
    engine.writeTensor("velocity", (velocity - STEP / 2 * acceleration).reshape(3, tiles, each).astype(np.float32))
    history = [place]
    for _ in range(steps // chunk):
        engine.run(0)
        history.append(engine.readTensor("place").reshape(3, stars).astype(np.float64))
    engine.run(1)
    found, velocity = (engine.readTensor(name).reshape(3, stars).astype(np.float64) for name in ("acceleration", "velocity"))
    acceleration, potential = reference(history[-1])
    error = np.abs(found - acceleration).max() / np.abs(acceleration).max()
    velocity += STEP / 2 * acceleration
    drift = abs(energy(velocity, potential) / before - 1)
    momentum = np.abs(velocity.mean(axis=1)).max()
    rounds = steps // chunk * chunk
    print(f"{stars:,} stars on {tiles:,} tiles, {rounds:,} steps of {STEP:g}")
    print(f"check against NumPy: forces differ by {error:.1e} of the largest; energy by {drift:.1e}, momentum {momentum:.1e}")
    print_costs(engine, rounds, "step")
    if path:
        picture(path, history)
    return bool(error < 1e-5 and drift < 1e-2 and momentum < 1e-5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Stars that pull each other, on a simulated IPU.")
    parser.add_argument("tiles", type=number(), nargs="?", default=512, help="of six stars each (512)")
    parser.add_argument("steps", type=number(), nargs="?", default=144)
    parser.add_argument("--picture", dest="path", help="write the ways of the stars to this PNG file")
    sys.exit(not main(**vars(parser.parse_args())))
