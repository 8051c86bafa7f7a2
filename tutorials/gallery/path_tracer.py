"""Path tracer: light found by chance, on all workers of all tiles.

From the eye paths go through every pixel, are thrown back by spheres, in any direction by dull ones, and end in the
sky, whose light they bring home, dimmed by each sphere on their way. Each pixel is the mean of many such paths, drawn by
the random numbers that each worker has of its own. Paths are of different lengths, so pixels are dealt out like cards,
one to each tile in turn: all tiles then have some sky and some of the spheres. The check is a scene with one dull
sphere, of which the light that each place sends back is known in closed form.

    pypoplar tutorial gallery/path_tracer --picture spheres.png

What it costs: 384 x 230 pixels with 96 paths each take about 4.5 million cycles, 2.4 ms, and the check 2.6 million. All
of that is computing: the scene, 192 bytes, goes to all tiles in 48 cycles. A worker has ten pixels, and the slowest
worker of the slowest tile decides; the mean tile works 79% of the time. With blocks it is 32%, as tiles with nothing
but sky have long been done, and the picture takes twice as long. The width matters, too: 368 pixels divide the number
of tiles, so that all pixels of a tile are in one column, and its share is 70%.

Exercises
1. `--blocks` gives each tile neighbouring pixels. Which tile is the slowest then, and why?
2. Four times the samples: what becomes of the cycles, what of the check's error?
"""

import argparse
import math
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import write_png

from pypoplar import FLOAT, INT, Engine, Graph, Input, MultiVertex, Output, Vector, VectorList, ipu
from pypoplar.program import Execute

DEPTH = 8  # spheres that a path may meet; what is longer brings no light
FAR = 1e9
EYE = (0.0, 1.1, 5.0)
DOWN = 0.13  # how far the eye looks down
ZOOM = 1.9
SKY = np.array([[1.0, 0.95, 0.88], [0.35, 0.55, 1.0]], np.float32)  # colours below and above; in between by height

# Spheres: the middle, the radius, the share of red, green and blue that comes back, and 1 for a mirror.
SCENE = np.array(
    [
        (0.0, -1000.0, 0.0, 1000.0, 0.62, 0.6, 0.55, 0.0),
        (-1.9, 0.8, -0.4, 0.8, 0.85, 0.25, 0.2, 0.0),
        (0.0, 1.0, -1.2, 1.0, 0.95, 0.95, 0.95, 1.0),
        (1.7, 0.7, 0.2, 0.7, 0.2, 0.5, 0.85, 0.0),
        (-0.5, 0.35, 1.1, 0.35, 0.95, 0.75, 0.2, 0.0),
        (0.6, 0.3, 1.5, 0.3, 0.9, 0.9, 0.92, 1.0),
    ],
    np.float32,
)
ONE_SPHERE = np.zeros_like(SCENE)
ONE_SPHERE[0] = (0.0, 0.75, 0.0, 1.4, 0.9, 0.6, 0.3, 0.0)


def nearest(scene, ox, oy, oz, dx, dy, dz):
    """The first sphere that a ray meets, -1 for none, and how far away."""
    found = -1
    distance = FAR
    for k in range(len(scene) // 8):
        x = scene[8 * k] - ox
        y = scene[8 * k + 1] - oy
        z = scene[8 * k + 2] - oz
        along = x * dx + y * dy + z * dz
        aside = x * x + y * y + z * z - along * along
        square = scene[8 * k + 3] * scene[8 * k + 3] - aside
        if along > 0.0 and square > 0.0:
            to = along - math.sqrt(square)
            if 0.0 < to < distance:
                distance = to
                found = k
    return found, distance


def unit(x, y, z):
    scale = 1.0 / math.sqrt(x * x + y * y + z * z)
    return x * scale, y * scale, z * scale


def anywhere():
    """A random direction: points of a cube are drawn until one is in the ball."""
    x = 1.0
    y = 1.0
    z = 1.0
    while x * x + y * y + z * z > 1.0:
        x = 2.0 * ipu.random_float() - 1.0
        y = 2.0 * ipu.random_float() - 1.0
        z = 2.0 * ipu.random_float() - 1.0
    return unit(x, y, z)


class Trace(MultiVertex):
    """Pixels `first`, `first` + `step` and so on, of a picture of `width` x `height`."""

    scene: Input[Vector[FLOAT]]
    colour: Output[VectorList[FLOAT]]
    first: INT
    step: INT
    width: INT
    height: INT
    samples: INT
    blur: FLOAT  # 1.0: paths go through all of the pixel; 0.0: through its middle

    def compute(self, worker):
        for i in range(worker, len(self.colour[0]), ipu.worker_count()):
            pixel = self.first + i * self.step
            row = pixel // self.width
            for channel in range(3):
                self.colour[channel][i] = 0.0
            for _sample in range(self.samples):
                across = float(pixel - row * self.width) + 0.5 + self.blur * (ipu.random_float() - 0.5)
                down = float(row) + 0.5 + self.blur * (ipu.random_float() - 0.5)
                scale = 2.0 / float(self.height)
                self.path(i, scale * across - scale * 0.5 * float(self.width), 1.0 - scale * down - DOWN)

    def path(self, i, dx, dy):
        """Add to pixel `i` the light of a path that leaves the eye in a direction."""
        ox = EYE[0]
        oy = EYE[1]
        oz = EYE[2]
        dx, dy, dz = unit(dx, dy, -ZOOM)
        red = 1.0
        green = 1.0
        blue = 1.0
        for _bounce in range(DEPTH):
            k, distance = nearest(self.scene, ox, oy, oz, dx, dy, dz)
            if k < 0:
                high = 0.5 + 0.5 * dy
                self.colour[0][i] += red * (SKY[0, 0] + high * (SKY[1, 0] - SKY[0, 0]))
                self.colour[1][i] += green * (SKY[0, 1] + high * (SKY[1, 1] - SKY[0, 1]))
                self.colour[2][i] += blue * (SKY[0, 2] + high * (SKY[1, 2] - SKY[0, 2]))
                break
            ox += distance * dx
            oy += distance * dy
            oz += distance * dz
            nx, ny, nz = unit(ox - self.scene[8 * k], oy - self.scene[8 * k + 1], oz - self.scene[8 * k + 2])
            red *= self.scene[8 * k + 4]
            green *= self.scene[8 * k + 5]
            blue *= self.scene[8 * k + 6]
            if self.scene[8 * k + 7] > 0.0:
                twice = 2.0 * (dx * nx + dy * ny + dz * nz)
                dx, dy, dz = unit(dx - twice * nx, dy - twice * ny, dz - twice * nz)
            else:  # more often straight up than along the surface: by the cosine, as light is thrown back
                rx, ry, rz = anywhere()
                dx, dy, dz = unit(nx + rx, ny + ry, nz + rz)
            ox += 0.001 * nx  # so that it does not meet the same sphere at once
            oy += 0.001 * ny
            oz += 0.001 * nz


def build(graph, shape, tiles, samples, blocks):
    """Two programs: of the scene and, without blur, of the check's; handles "scene" and "colour" of the host."""
    height, width = shape
    each = height * width // tiles
    scene, colour = graph.addVariable(FLOAT, [SCENE.size], "scene"), graph.addVariable(FLOAT, [3, tiles, each], "colour")
    graph.setTileMapping(scene, 0)
    for tile in range(tiles):
        graph.setTileMapping(colour[:, tile], tile)
    programs = []
    for name, blur in (("trace", 1.0), ("check", 0.0)):
        computeSet = graph.addComputeSet(name)
        for tile in range(tiles):
            fields = {"scene": scene, "colour": colour[:, tile], "width": width, "height": height, "samples": samples}
            fields |= {"first": tile * each if blocks else tile, "step": 1 if blocks else tiles, "blur": blur}
            graph.setTileMapping(graph.addVertex(computeSet, Trace, fields), tile)
        programs.append(Execute(computeSet))
    graph.createHostWrite("scene", scene)
    graph.createHostRead("colour", colour)
    return programs


def one_sphere(shape):
    """Where the check's sphere is seen, bool [height, width], and the light that comes from there, [height, width, 3]."""
    height, width = shape
    row, column = np.mgrid[:height, :width] + 0.5
    way = np.stack([2 * column / height - width / height, 1 - 2 * row / height - DOWN, np.full(shape, -ZOOM)], axis=-1)
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    middle = ONE_SPHERE[0, :3].astype(float) - EYE
    along = way @ middle
    square = float(ONE_SPHERE[0, 3]) ** 2 - (middle @ middle - along**2)
    normal = ((along - np.sqrt(np.maximum(square, 0)))[..., np.newaxis] * way - middle) / float(ONE_SPHERE[0, 3])
    high = 0.5 + 0.5 * (2 / 3 * normal[..., 1:2])  # the mean height, by the cosine: two thirds of the normal's
    return square > 0, ONE_SPHERE[0, 4:7] * (SKY[0] + high * (SKY[1] - SKY[0]))


def picture(path, light):
    """A PNG of the light, [height, width, 3], which eyes see by its root."""
    write_png(path, np.round(255 * np.clip(light, 0, 1) ** (1 / 2.2)))


def main(height=230, width=384, samples=96, tiles=1472, blocks=False, path=None):
    if height * width % tiles:
        raise SystemExit(f"{height} x {width} pixels cannot be dealt out to {tiles} tiles: there has to be a multiple of {tiles}")
    device = bow(tiles)
    graph = Graph(device.getTarget())
    graph.addCodelets(Trace)
    engine = Engine(graph, build(graph, (height, width), tiles, samples, blocks))
    engine.load(device)
    lights = []
    for program, scene in enumerate((SCENE, ONE_SPHERE)):
        engine.writeTensor("scene", scene.ravel())
        engine.run(program)
        light = engine.readTensor("colour").reshape(3, tiles, -1) / samples
        lights.append((light if blocks else light.transpose(0, 2, 1)).reshape(3, height, width).transpose(1, 2, 0))
    seen, expected = one_sphere((height, width))
    apart = (lights[1] - expected)[seen]
    mean = float(np.abs(apart.mean(axis=0)).max())
    spread = float(apart.std())
    print(f"{width} x {height} pixels, {samples} paths through each, on {tiles:,} tiles")
    print(f"check against the closed form: light differs by {mean:.1e} in the mean, by {spread:.1e} from pixel to pixel")
    print_costs(engine, 1, "picture with its check")
    if path:
        picture(path, lights[0])
    return mean < 5 * spread / math.sqrt(seen.sum()) + 1e-4


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Spheres under a sky, by paths of light on a simulated IPU.")
    parser.add_argument("height", type=number(), nargs="?", default=230)
    parser.add_argument("width", type=number(), nargs="?", default=384)
    parser.add_argument("samples", type=number(), nargs="?", default=96, help="paths through each pixel (96)")
    parser.add_argument("--tiles", type=number(), default=1472)
    parser.add_argument("--blocks", action="store_true", help="give each tile neighbouring pixels")
    parser.add_argument("--picture", dest="path", help="write the spheres to this PNG file")
    sys.exit(not main(**vars(parser.parse_args())))
