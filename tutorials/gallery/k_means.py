"""K-means: Lloyd's algorithm until no point changes its cluster.

The points lie on all tiles and stay there; only the centres travel. In a round every worker finds the nearest centre
of each of its points and adds the point to that cluster's sums, of which it has its own, so that no two workers write
the same. `popops.reduce` adds up the sums of all workers of all tiles, one vertex divides them, and the loop goes on
while any point has changed its cluster. Points are whole numbers, so the order in which they are added changes
nothing: NumPy's Lloyd takes as many rounds and puts every single point into the same cluster.

    pypoplar tutorial gallery/k_means --picture clusters.svg

What it costs: 141,312 points and 16 clusters take about 28,100 cycles a round, 15 us. A worker compares each of its 16
points with 16 centres, at 15 slots each: 23,500 cycles, for all tiles alike. The rest is adding up: 8,832 rows of 49
sums come together in three stages, on ever fewer tiles, 1,900 cycles with their syncs, and one worker on one tile
needs 2,100 more to divide, while 1,471 tiles wait. What travels is little: 128 bytes of centres to every tile.

Exercises
1. Let half of the tiles have twice as many points. What is the mean tile's share of the slowest then?
2. From which number of clusters on do the sums, which grow with them, cost more than the points?
"""

import argparse
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import COLOURS, write_svg

from pypoplar import BOOL, FLOAT, INT, Engine, Graph, InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex, ipu, popops
from pypoplar.program import Execute, RepeatWhileTrue, Sequence

EXTENT = 4096  # coordinates are whole numbers below it
SUMS = 3  # of a cluster: x, y and how many points


class Assign(MultiVertex):
    """The nearest centre of each point, and each worker's row of sums, with the number of changes at its end."""

    x: Input[Vector[INT]]
    y: Input[Vector[INT]]
    cluster: InOut[Vector[INT]]
    centres: Input[Vector[FLOAT]]
    sums: Output[VectorList[INT]]

    def compute(self, worker):
        sums = self.sums[worker]
        for i in range(len(sums)):
            sums[i] = 0
        for i in range(worker, len(self.x), ipu.worker_count()):
            x = float(self.x[i])
            y = float(self.y[i])
            nearest = 0
            least = 4.0 * EXTENT * EXTENT
            for k in range(len(self.centres) // 2):
                dx = x - self.centres[2 * k]
                dy = y - self.centres[2 * k + 1]
                square = dx * dx + dy * dy
                if square < least:
                    least = square
                    nearest = k
            sums[SUMS * nearest] += self.x[i]
            sums[SUMS * nearest + 1] += self.y[i]
            sums[SUMS * nearest + 2] += 1
            if self.cluster[i] != nearest:
                self.cluster[i] = nearest
                sums[len(sums) - 1] += 1


class Centre(Vertex):
    """The means of the clusters; a cluster without points keeps its centre. `again` says whether any point changed."""

    sums: Input[Vector[INT]]
    centres: InOut[Vector[FLOAT]]
    rounds: InOut[INT]
    again: Output[BOOL]

    def compute(self):
        for k in range(len(self.centres) // 2):
            count = self.sums[SUMS * k + 2]
            if count > 0:
                self.centres[2 * k] = float(self.sums[SUMS * k]) / float(count)
                self.centres[2 * k + 1] = float(self.sums[SUMS * k + 1]) / float(count)
        self.rounds += 1
        self.again = self.sums[len(self.sums) - 1] > 0


def build(graph, tiles, each, clusters):
    """Points [2, tiles, each] and the program that finds their clusters."""
    workers = graph.getTarget().getNumWorkerContexts()
    points = graph.addVariable(INT, [2, tiles, each], "points")
    cluster = graph.addVariable(INT, [tiles, each], "cluster")
    sums = graph.addVariable(INT, [tiles, workers, SUMS * clusters + 1], "sums")
    for tile in range(tiles):
        for tensor in (points[:, tile], cluster[tile], sums[tile]):
            graph.setTileMapping(tensor, tile)
    centres = graph.addVariable(FLOAT, [2 * clusters], "centres")
    rounds, again = graph.addVariable(INT, [], "rounds"), graph.addVariable(BOOL, [], "again")
    for tensor in (centres, rounds, again):
        graph.setTileMapping(tensor, 0)
    graph.setInitialValue(cluster, np.full((tiles, each), -1))
    graph.setInitialValue(rounds, 0)

    assign, centre = graph.addComputeSet("assign"), graph.addComputeSet("centre")
    for tile in range(tiles):
        fields = {"x": points[0, tile], "y": points[1, tile], "cluster": cluster[tile], "centres": centres, "sums": sums[tile]}
        graph.setTileMapping(graph.addVertex(assign, Assign, fields), tile)
    step = Sequence([Execute(assign)])
    total = popops.reduce(graph, sums, [0, 1], popops.Operation.ADD, step, "sum")
    vertex = graph.addVertex(centre, Centre, {"sums": total, "centres": centres, "rounds": rounds, "again": again})
    graph.setTileMapping(vertex, 0)
    step.add(Execute(centre))
    for name, tensor in {"points": points, "cluster": cluster, "centres": centres, "rounds": rounds}.items():
        graph.createHostWrite(name, tensor)
        graph.createHostRead(name, tensor)
    return RepeatWhileTrue(step, again, Sequence())


def reference(points, centres):
    """NumPy's Lloyd: clusters of points [2, n], centres [clusters, 2] and rounds."""
    x, y = points.astype(np.float32)
    centres, cluster, rounds, changed = centres.copy(), np.full(len(x), -1), 0, True
    while changed:
        rounds += 1
        least, before = np.full(len(x), np.inf, np.float32), cluster
        cluster = np.zeros(len(x), int)
        for k, (cx, cy) in enumerate(centres):
            square = (x - cx) ** 2 + (y - cy) ** 2
            cluster[square < least] = k
            np.minimum(least, square, out=least)
        counts = np.bincount(cluster, minlength=len(centres))
        for axis in range(2):
            sums = np.bincount(cluster, points[axis], len(centres)).astype(np.int32)
            centres[counts > 0, axis] = sums[counts > 0].astype(np.float32) / counts[counts > 0].astype(np.float32)
        changed = not np.array_equal(cluster, before)
    return cluster, centres, rounds


def clouds(count, clusters, seed):
    """Points [2, count] in clouds of different widths, and points of theirs to begin with, [clusters, 2]."""
    random = np.random.default_rng(seed)
    middles = random.uniform(0.12, 0.88, (2, clusters))
    cloud = random.integers(clusters, size=count)
    widths = random.uniform(0.02, 0.07, clusters)[cloud]
    points = middles[:, cloud] + widths * random.standard_normal((2, count))
    points = (np.clip(points, 0, 1) * (EXTENT - 1)).astype(np.int32)
    return points, points[:, random.choice(count, clusters, replace=False)].T.astype(np.float32)


def picture(path, points, cluster, centres, start, size=560):
    """An SVG of some of the points in the colour of their cluster, and of the ways from the first centres to the last."""
    scale = size / EXTENT
    dots = []
    for k in range(len(centres)):
        x, y = points[:, cluster == k][:, :250] * scale
        drawn = "".join(f"M{a:.0f} {b:.0f}h2" for a, b in zip(x, y, strict=True))
        dots.append(f'<path d="{drawn}" stroke="{COLOURS[k % len(COLOURS)]}" stroke-width="2" fill="none"/>')
    for (a, b), (c, d) in zip(start * scale, centres * scale, strict=True):
        dots.append(f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" stroke="#222222"/><circle cx="{c:.1f}" cy="{d:.1f}" r="5"/>')
    write_svg(path, size, size, dots)


def main(tiles=1472, each=96, clusters=16, path=None):
    if tiles * each * EXTENT > 2**31:
        raise SystemExit(f"sums of {tiles * each:,} points may not fit into an INT: there can be {2**31 // EXTENT:,}")
    device = bow(tiles)
    graph = Graph(device.getTarget())
    graph.addCodelets(Assign, Centre)
    popops.addCodelets(graph)
    engine = Engine(graph, build(graph, tiles, each, clusters))
    engine.load(device)
    points, start = clouds(tiles * each, clusters, seed=5)
    engine.writeTensor("points", points.reshape(2, tiles, each))
    engine.writeTensor("centres", start.ravel())
    engine.run()
    cluster, centres = engine.readTensor("cluster").ravel(), engine.readTensor("centres").reshape(-1, 2)
    rounds = int(engine.readTensor("rounds"))
    expected, means, needed = reference(points, start)
    wrong = int(np.count_nonzero(cluster != expected))
    error = float(np.abs(centres - means).max())
    print(f"{tiles * each:,} points on {tiles:,} tiles, {clusters} clusters: {rounds} rounds")
    print(f"check against NumPy: {needed} rounds, {wrong} points in other clusters, centres differ by {error:g}")
    print_costs(engine, rounds, "round")
    if path:
        picture(path, points, cluster, centres, start)
    return wrong == 0 and error == 0 and rounds == needed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="K-means on a simulated IPU.")
    parser.add_argument("tiles", type=number(), nargs="?", default=1472)
    parser.add_argument("each", type=number(), nargs="?", default=96, help="points of a tile (96)")
    parser.add_argument("clusters", type=number(2), nargs="?", default=16)
    parser.add_argument("--picture", dest="path", help="write the clusters to this SVG file")
    sys.exit(not main(**vars(parser.parse_args())))
