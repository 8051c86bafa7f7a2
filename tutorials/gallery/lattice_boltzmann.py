"""Lattice Boltzmann: a flow from nine numbers for each place, which hop and collide.

At each place of a torus there are nine populations of a fluid, one that rests and eight on their way to a neighbour.
In a step each hops one place on, and those that meet collide: they approach the equilibrium of their density and
velocity, the faster the thinner the fluid. Each tile has a row of places; three populations come from the row above
and three from the row below, simply because the vertex is connected to them, and two grids take turns. Vortices
of Taylor and Green, which must decay at a rate that has a closed form, check the viscosity and the velocities; then a
shear layer, which rolls up, makes the picture.

    pypoplar tutorial gallery/lattice_boltzmann --picture flow.png

What it costs: a step of 256 x 256 places on as many tiles takes about 102,000 cycles, 55 us. A tile receives six
populations of 256 places, 6,144 bytes in 1,536 cycles; a worker does 43 places, at some 390 slots, 100,000 cycles.
So the exchange takes a part in sixty, and six workers on all tiles are equally busy. What would help is a shorter
`compute`: its two loops over populations, written out, need no tables and no multiplications by zero and one.

Exercises
1. Connect all nine populations of the three rows instead. What becomes of the exchange?
2. Keep the populations as HALFs around their weights, f - w. How far does the check get?
"""

import argparse
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import colours, write_png

from pypoplar import FLOAT, Engine, Graph, Input, MultiVertex, Output, VectorList, concat, ipu
from pypoplar.program import Execute, Repeat, Sequence

VX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1], np.int32)  # columns that a population hops in a step
VY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1], np.int32)  # rows
WEIGHTS = np.array([16, 4, 4, 4, 4, 1, 1, 1, 1], np.float32) / np.float32(36)
VISCOSITY = 0.01  # squares of places in a step
RATE = 1 / (3 * VISCOSITY + 0.5)  # of the collisions
SPEED = 0.15  # places in a step; those of sound are 0.58


class Collide(MultiVertex):
    """A row after the next step: `arriving` has population i of the row that it comes from, whose columns it then hops."""

    arriving: Input[VectorList[FLOAT]]
    out: Output[VectorList[FLOAT]]

    def compute(self, worker):
        here = ipu.array(FLOAT, 9)
        width = len(self.out[0])
        for x in ipu.worker_range(worker, self.out[0]):
            density = 0.0
            jx = 0.0
            jy = 0.0
            for i in range(9):
                source = x - VX[i]
                if source < 0:
                    source = width - 1
                elif source == width:
                    source = 0
                value = self.arriving[i][source]
                here[i] = value
                density += value
                jx += float(VX[i]) * value
                jy += float(VY[i]) * value
            ux = jx / density
            uy = jy / density
            rest = 1.0 - 1.5 * (ux * ux + uy * uy)
            for i in range(9):
                along = 3.0 * (float(VX[i]) * ux + float(VY[i]) * uy)
                equilibrium = WEIGHTS[i] * density * (rest + along + 0.5 * along * along)
                self.out[i][x] = here[i] + RATE * (equilibrium - here[i])


def moved(populations, hop):
    """Rows [rows, columns] around the torus: row r is that which was `hop` before it."""
    split = -hop % populations.dim(0)
    return concat([populations[split:], populations[:split]])


def build(graph, rows, columns, steps):
    """The populations [9, rows, columns] and a program of `steps` (an even number)."""
    names = ("even", "odd")
    grids = [graph.addVariable(FLOAT, [9, rows, columns], name) for name in names]
    for grid in grids:
        for row in range(rows):
            graph.setTileMapping(grid[:, row], row)
    body = Sequence()
    for name, now, after in zip(names, grids, grids[::-1], strict=True):
        arriving = [moved(now[i], int(hop)) for i, hop in enumerate(VY)]
        computeSet = graph.addComputeSet(f"from the {name} grid")
        fields = {"arriving": arriving, "out": [after[i] for i in range(9)]}
        graph.add_vertices(computeSet, Collide, fields, np.arange(rows))
        body.add(Execute(computeSet))
    graph.createHostWrite("populations", grids[0])
    graph.createHostRead("populations", grids[0])
    return Repeat(steps // 2, body)


def equilibrium(density, ux, uy):
    """The populations [9, rows, columns] in equilibrium."""
    along = 3 * (VX.reshape(9, 1, 1) * ux + VY.reshape(9, 1, 1) * uy)
    return (WEIGHTS.reshape(9, 1, 1) * density * (1 + along + along**2 / 2 - 1.5 * (ux**2 + uy**2))).astype(np.float32)


def velocity(populations):
    """The velocities (ux, uy) in float64, in columns and rows of a step."""
    populations = populations.astype(np.float64)
    density = populations.sum(axis=0)
    return tuple(np.tensordot(v, populations, 1) / density for v in (VX, VY))


def taylor_green(rows, columns, time, speed):
    """Density and velocities of the vortices after some time."""
    kx, ky = 2 * np.pi / columns, 2 * np.pi / rows
    y, x = np.mgrid[:rows, :columns]
    now = speed * np.exp(-VISCOSITY * (kx**2 + ky**2) * time)
    ux = -now * np.sqrt(ky / kx) * np.cos(kx * x) * np.sin(ky * y)
    uy = now * np.sqrt(kx / ky) * np.sin(kx * x) * np.cos(ky * y)
    pressure = -(now**2) / 4 * (ky / kx * np.cos(2 * kx * x) + kx / ky * np.cos(2 * ky * y))
    return 1 + 3 * pressure, ux, uy


def shear_layer(rows, columns):
    """Two layers of fluid that slide along each other, a little disturbed."""
    y, x = np.mgrid[:rows, :columns] / np.array([rows, columns]).reshape(2, 1, 1)
    ux = SPEED * np.tanh(40 * np.where(y < 0.5, y - 0.25, 0.75 - y))
    return 1.0, ux, 0.05 * SPEED * np.sin(2 * np.pi * (x + 0.25))


def picture(path, populations):
    """A PNG of the vorticity: which way the fluid turns, and how fast."""
    ux, uy = velocity(populations)
    turning = np.roll(uy, -1, 1) - np.roll(uy, 1, 1) - np.roll(ux, -1, 0) + np.roll(ux, 1, 0)
    most = np.abs(turning).max()
    write_png(path, colours(turning, -most, most).repeat(2, axis=0).repeat(2, axis=1))


def main(rows=256, columns=256, steps=1000, path=None):
    device = bow(rows)
    graph = Graph(device.getTarget())
    graph.addCodelets(Collide)
    engine = Engine(graph, build(graph, rows, columns, steps))
    engine.load(device)
    engine.writeTensor("populations", equilibrium(*taylor_green(rows, columns, 0, SPEED / 4)))
    engine.run()
    found = np.array(velocity(engine.readTensor("populations")))
    expected = np.array(taylor_green(rows, columns, steps, SPEED / 4)[1:])
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    print(f"{rows} x {columns} places on {rows:,} tiles, {steps:,} steps")
    print(f"check against Taylor and Green: velocities differ by {error:.1e}")
    rounds = steps
    if path:
        engine.writeTensor("populations", equilibrium(*shear_layer(rows, columns)))
        engine.run()
        engine.run()
        picture(path, engine.readTensor("populations"))
        rounds *= 3
    print_costs(engine, rounds, "step")
    return bool(error < 1e-2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A flow by lattice Boltzmann on a simulated IPU.")
    parser.add_argument("rows", type=number(3), nargs="?", default=256, help="and tiles (256)")
    parser.add_argument("columns", type=number(3), nargs="?", default=256)
    parser.add_argument("steps", type=number(2, 2), nargs="?", default=1000, help="an even number (1000)")
    parser.add_argument("--picture", dest="path", help="write the turning of the shear layer to this PNG file")
    sys.exit(not main(**vars(parser.parse_args())))
