"""FFT: a long Fourier transform as two rounds of short ones, with transpositions between them.

The n x n points of a signal are a matrix, a row on each of n tiles. A tile receives a column, which has a point on
every tile, and transforms it; multiplied by roots of unity and transposed once more it becomes rows, which are
transformed in the same way, and a last transposition brings the spectrum into its order. A short transform has
log2(n) supersteps of butterflies that the workers share ("Stockham": each writes in the order that the next one reads
in, so that no bits are reversed), and roots that every tile has of its own. The spectrum must be that of numpy.fft.

    pypoplar tutorial gallery/fft --picture spectrum.svg

What it costs: a million points on 1024 tiles take about 299,000 cycles, 161 us. Each of 20 stages takes 13,600: a worker
has 86 butterflies of 26 slots. The three transpositions send 8 bytes from every tile to every other, and what counts
is not the bytes but the pieces: 1,023 at 3 cycles each, 3,069 cycles, where the bytes alone would take 2,046. In all
they are 3% of the time. With `%` in place of `&` in `Stage` the whole would take ten times as long: tiles have no
instruction that divides whole numbers.

Exercises
1. Let a superstep do two of these stages, with butterflies of four points. What is saved?
2. Leave the last transposition away: for a convolution, which comes back again, nobody needs the order.
"""

import argparse
import math
import sys

import numpy as np
from _gallery import bow, number, print_costs
from _pictures import write_chart

from pypoplar import FLOAT, INT, Engine, Graph, InOut, Input, MultiVertex, Output, Vector, ipu
from pypoplar.program import Copy, Execute, Sequence


class Stage(MultiVertex):
    """Butterflies of one stage: numbers are pairs of a real and an imaginary part."""

    before: Input[Vector[FLOAT]]
    after: Output[Vector[FLOAT]]
    roots: Input[Vector[FLOAT]]  # exp(-2 pi i k / n) for k below n / 2
    stride: INT  # of what is transformed already

    def compute(self, worker):
        half = len(self.before) // 4
        for i in ipu.worker_range(worker, half):
            q = i & (self.stride - 1)  # the remainder of a power of two: `%` would be a subroutine
            k = i - q
            j = 2 * i - q
            a = self.before[2 * i]
            b = self.before[2 * i + 1]
            c = self.before[2 * (i + half)]
            d = self.before[2 * (i + half) + 1]
            real = a - c
            imaginary = b - d
            self.after[2 * j] = a + c
            self.after[2 * j + 1] = b + d
            self.after[2 * (j + self.stride)] = real * self.roots[2 * k] - imaginary * self.roots[2 * k + 1]
            self.after[2 * (j + self.stride) + 1] = real * self.roots[2 * k + 1] + imaginary * self.roots[2 * k]


class Turn(MultiVertex):
    """Multiply by roots of unity of the whole transform."""

    values: InOut[Vector[FLOAT]]
    roots: Input[Vector[FLOAT]]

    def compute(self, worker):
        for i in ipu.worker_range(worker, len(self.values) // 2):
            a = self.values[2 * i]
            b = self.values[2 * i + 1]
            self.values[2 * i] = a * self.roots[2 * i] - b * self.roots[2 * i + 1]
            self.values[2 * i + 1] = a * self.roots[2 * i + 1] + b * self.roots[2 * i]


def pairs(numbers):
    """Complex numbers as FLOATs: the last dimension becomes twice as long."""
    return np.ascontiguousarray(numbers, np.complex64).view(np.float32)


def transposed(tensor):
    """[n, 2 n] FLOATs as a matrix of n x n complex numbers, transposed."""
    n = tensor.shape()[0]
    return tensor.reshape([n, n, 2]).dimShuffle([1, 0, 2]).reshape([n, 2 * n])


def transforms(graph, rows, buffers, name, program):
    """Transform each of `rows` [n, 2 n], of which row r is wanted on tile r; returns the buffer with the result."""
    n = rows.shape()[0]
    roots = pairs(np.exp(-2j * np.pi * np.arange(n // 2) / n))
    for stage in range(int(math.log2(n))):
        computeSet = graph.addComputeSet(f"{name}, {'transposed, stage 1' if stage == 0 else 'stages 2 and on'}")
        out = buffers[stage % 2]
        for tile in range(n):
            fields = {"before": rows[tile], "after": out[tile], "roots": roots, "stride": 2**stage}
            graph.setTileMapping(graph.addVertex(computeSet, Stage, fields), tile)
        program.add(Execute(computeSet))
        rows = out
    return rows


def build(graph, n):
    """The signal and the spectrum [n, 2 n], and the program."""
    names = ("signal", "one", "other", "third", "fourth", "turns", "spectrum")
    tensors = {name: graph.addVariable(FLOAT, [n, 2 * n], name) for name in names}
    for tensor in tensors.values():
        for tile in range(n):
            graph.setTileMapping(tensor[tile], tile)
    product = np.outer(np.arange(n), np.arange(n))
    graph.setInitialValue(tensors["turns"], pairs(np.exp(-2j * np.pi * product / n**2)))
    program = Sequence()
    columns = transforms(graph, transposed(tensors["signal"]), (tensors["one"], tensors["other"]), "columns", program)
    turn = graph.addComputeSet("turn")
    graph.add_vertices(turn, Turn, {"values": columns, "roots": tensors["turns"]}, np.arange(n))
    program.add(Execute(turn))
    rows = transforms(graph, transposed(columns), (tensors["third"], tensors["fourth"]), "rows", program)
    program.add(Copy(transposed(rows), tensors["spectrum"], name="last transposition"))
    graph.createHostWrite("signal", tensors["signal"])
    graph.createHostRead("spectrum", tensors["spectrum"])
    return program


def sound(points, seed):
    """Three tones, one of which becomes higher, and noise: complex64."""
    time = np.arange(points) / points
    waves = 1.0 * np.exp(2j * np.pi * 0.11 * points * time) + 0.5 * np.exp(2j * np.pi * 0.37 * points * time)
    waves += np.exp(2j * np.pi * points * (0.55 + 0.1 * time) * time)
    noise = np.random.default_rng(seed).standard_normal((2, points))
    return (waves + 0.3 * (noise[0] + 1j * noise[1])).astype(np.complex64)


def picture(path, spectrum, bars=512):
    """An SVG: the loudest of neighbouring frequencies, in decibels."""
    power = np.abs(spectrum) ** 2 / len(spectrum)
    loudest = power[: len(power) // bars * bars].reshape(bars, -1).max(axis=1) if len(power) >= bars else power
    place = np.arange(len(loudest)) / len(loudest)
    axes = ("frequency, by that of the sampling", "power, dB")
    write_chart(path, f"Spectrum of {len(spectrum):,} points", axes, [("on the IPU", place, 10 * np.log10(loudest))])


def main(power=10, path=None):
    n = 2**power
    device = bow(n)
    graph = Graph(device.getTarget())
    graph.addCodelets(Stage, Turn)
    engine = Engine(graph, build(graph, n))
    engine.load(device)
    signal = sound(n * n, seed=1)
    engine.writeTensor("signal", pairs(signal).reshape(n, 2 * n))
    engine.run()
    spectrum = engine.readTensor("spectrum").reshape(-1).view(np.complex64)
    expected = np.fft.fft(signal.astype(np.complex128))
    error = float(np.linalg.norm(spectrum - expected) / np.linalg.norm(expected))
    print(f"{n * n:,} points on {n:,} tiles")
    print(f"check against numpy.fft: differs by {error:.1e}")
    print_costs(engine, 1, "transform")
    if path:
        picture(path, spectrum)
    return error < 1e-6


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A long Fourier transform on a simulated IPU.")
    parser.add_argument("power", type=number(2), nargs="?", default=10, help="2 to this power tiles, and points of each (10)")
    parser.add_argument("--picture", dest="path", help="write the spectrum to this SVG file")
    sys.exit(not main(**vars(parser.parse_args())))
