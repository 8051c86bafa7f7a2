"""Device code of poprand: random numbers of a tile's elements, and masks of them.

Every worker draws 64 bits for each word of 8 bytes of its piece, the lowest bits for the first number; for each number of a normal
distribution it draws anew. It draws from its own generator, or, where the call has a seed, from one that it begins itself, as
`setSeed` would begin its own.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, UNSIGNED_LONGLONG, Input, MultiVertex, Output, Vector, ipu
from pypoplar.poprand.random_cycles import (
    MULTIPLY_ADD_OF_DRAW,
    loop_slots,
    random_flops,
    random_slots,
    uniform_int_cycles,
    uniform_loop,
)

T = TypeVar("T", FLOAT, HALF, INT)

FIVES = 31 * sum(1 << 10 * k for k in range(6))  # every second one of the twelve groups of 5 bits
ONES = sum(1 << 10 * k for k in range(6))
MIDDLE = 6 * 31  # of a sum of twelve numbers of 5 bits


def splitmix64(start, place):
    """Number `place` of the splitmix64 generator that begins at `start`."""
    z = start + (place + 1) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


def rotated(value, bits):
    return (value << bits) | (value >> (64 - bits))


def grand(bits):
    """The sum of twelve numbers of 5 bits, less its mean, over 32: nearly normal, with a deviation of nearly 1."""
    pairs = (bits & FIVES) + ((bits >> 5) & FIVES)
    return float(INT(((pairs * ONES) >> 50) & 1023) - MIDDLE) * 0.03125


class Drawing(MultiVertex, Generic[T]):
    """A vertex with a seed of two elements, or none: then `seedModifier` and `tile` mean nothing."""

    seed: Input[Vector[UNSIGNED_INT]]
    seedModifier: UNSIGNED_INT
    tile: UNSIGNED_INT
    out: Output[Vector[T]]

    numbers = 2  # of a draw

    def begin(self, worker, state):
        """The state of xoroshiro128aox with which setSeed would begin."""
        if len(self.seed) == 2:
            start = UNSIGNED_LONGLONG(self.seed[0]) | (UNSIGNED_LONGLONG(self.seed[1]) << 32)
            start = splitmix64(splitmix64(start, UNSIGNED_LONGLONG(0)), UNSIGNED_LONGLONG(self.seedModifier))
            generator = UNSIGNED_LONGLONG(self.tile) * UNSIGNED_LONGLONG(ipu.worker_count()) + UNSIGNED_LONGLONG(worker)
            state[0] = splitmix64(start, generator * 2)
            state[1] = splitmix64(start, generator * 2 + 1)

    def draw(self, state):
        """The next 64 bits."""
        if len(self.seed) != 2:
            return ipu.random_ulonglong()
        s0 = state[0]
        s1 = state[1]
        either = s0 ^ s1
        both = s0 & s1
        state[0] = rotated(s0, 55) ^ either ^ (either << 14)
        state[1] = rotated(either, 36)
        return either ^ (rotated(both, 1) | rotated(both, 2))

    def next_bits(self, i, bits, state):
        """Bits whose lowest ones are for element `i`, after those of the element before it."""
        if i % self.numbers == 0:
            return self.draw(state)
        return bits >> (64 // self.numbers)

    def centred(self, bits):
        """The number of the lowest bits, less one half: in [-0.5, 0.5]."""
        if self.numbers == 2:
            return float(INT(UNSIGNED_INT(bits) ^ 0x80000000)) * 2.0**-32
        return float(INT(bits & 0xFFFF) - 0x8000) * 2.0**-16

    def chosen(self, bits, prob):
        """Whether the upper 16 bits of an element's are below `prob`."""
        if self.numbers == 2:
            return INT((bits >> 16) & 0xFFFF) < prob
        return INT(bits & 0xFFFF) < prob


class UniformDrawing(Drawing[T], Generic[T]):
    """A random number from -1/2 to 1/2, times scale, plus offset."""

    scale: FLOAT
    offset: FLOAT

    def compute(self, worker):
        state = ipu.array(UNSIGNED_LONGLONG, 2)
        self.begin(worker, state)
        bits = UNSIGNED_LONGLONG(0)
        for i in ipu.worker_range(worker, self.out):
            bits = self.next_bits(i, bits, state)
            self.out[i] = T(self.centred(bits) * self.scale + self.offset)

    def cycles(self, vertex):
        return loop_slots(vertex, uniform_loop(vertex.getFieldInfo("out").elementType()))

    def flops(self, vertex):
        return random_flops(vertex, MULTIPLY_ADD_OF_DRAW)


class UniformFloat(UniformDrawing[FLOAT], name="poprand::Uniform<float>"):
    numbers = 2


class UniformHalf(UniformDrawing[HALF], name="poprand::Uniform<half>"):
    numbers = 4


class UniformInt(Drawing[INT], name="poprand::Uniform<int>"):
    """offset, plus a random number of 32 bits times scale / 2**32; a scale of 0 stands for 2**32."""

    scale: UNSIGNED_INT
    offset: INT

    def compute(self, worker):
        state = ipu.array(UNSIGNED_LONGLONG, 2)
        self.begin(worker, state)
        bits = UNSIGNED_LONGLONG(0)
        for i in ipu.worker_range(worker, self.out):
            bits = self.next_bits(i, bits, state)
            number = UNSIGNED_INT(bits)
            if self.scale != 0:
                number = UNSIGNED_INT((UNSIGNED_LONGLONG(self.scale) * UNSIGNED_LONGLONG(number)) >> 32)
            self.out[i] = INT(number) + self.offset

    def cycles(self, vertex):
        elements, workers = vertex.fieldSize("out"), vertex.target.getNumWorkerContexts()
        return random_slots(vertex, uniform_int_cycles(elements, vertex.value("scale"), workers))
