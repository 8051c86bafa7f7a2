"""Device code of poprand: random numbers of a tile's elements, and masks of them.

Every worker draws 64 bits for each word of 8 bytes of its piece, the lowest bits for the first number; for each number of a normal
distribution it draws anew. It draws from its own generator, or, where the call has a seed, from one that it begins itself, as
`setSeed` would begin its own.
"""

from typing import Generic, TypeVar

from pypoplar import FLOAT, HALF, INT, UNSIGNED_INT, UNSIGNED_LONGLONG, Input, MultiVertex, Output, Vector, ipu
from pypoplar.poprand.random_cycles import (
    MULTIPLY_ADD_OF_DRAW,
    MULTIPLY_OF_DRAW,
    bernoulli_loop,
    dropout_loop,
    loop_slots,
    normal_loop,
    random_flops,
    random_slots,
    truncated_normal_loop,
    uniform_int_cycles,
    uniform_loop,
)

Number = TypeVar("Number", FLOAT, HALF, INT)
Real = TypeVar("Real", FLOAT, HALF)
Whole = TypeVar("Whole", INT, UNSIGNED_INT)

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


def centred(bits, width):
    """The number of the lowest bits, 16 or 32, less one half: in [-0.5, 0.5]."""
    if width == 16:
        return float(INT(bits & 0xFFFF) - 0x8000) * 2.0**-16
    return float(INT(UNSIGNED_INT(bits) ^ 0x80000000)) * 2.0**-32


def chosen(bits, width, prob):
    """Whether the upper 16 of the lowest bits, 16 or 32, are below `prob`."""
    return INT((bits >> (width - 16)) & 0xFFFF) < prob


def grand(bits):
    """The sum of twelve numbers of 5 bits, less its mean, over 32: nearly normal, with a deviation of nearly 1."""
    pairs = (bits & FIVES) + ((bits >> 5) & FIVES)
    return float(INT(((pairs * ONES) >> 50) & 1023) - MIDDLE) * 0.03125


class Drawing(MultiVertex, Generic[Number], rounding="nearest"):
    """A vertex with a seed of two elements, or none: then `seedModifier` and `tile` mean nothing.

    Its numbers do not depend on how the program rounds.
    """

    seed: Input[Vector[UNSIGNED_INT]]
    seedModifier: UNSIGNED_INT
    tile: UNSIGNED_INT
    out: Output[Vector[Number]]

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

    def next_bits(self, i, width, bits, state):
        """Bits whose lowest `width` are for element `i`, after those of the element before it."""
        if i & (64 // width - 1) == 0:
            return self.draw(state)
        return bits >> width


class Uniform(Drawing[Real], Generic[Real], name="poprand::Uniform"):
    """A random number from -1/2 to 1/2, times scale, plus offset."""

    width: INT  # bits of a number
    scale: FLOAT
    offset: FLOAT

    def compute(self, worker):
        state = ipu.array(UNSIGNED_LONGLONG, 2)
        self.begin(worker, state)
        width = self.width
        bits = UNSIGNED_LONGLONG(0)
        for i in ipu.worker_range(worker, self.out):
            bits = self.next_bits(i, width, bits, state)
            self.out[i] = Real(centred(bits, width) * self.scale + self.offset)

    def cycles(self, vertex):
        return loop_slots(vertex, uniform_loop(vertex.getFieldInfo("out").elementType()))

    def flops(self, vertex):
        return random_flops(vertex, MULTIPLY_ADD_OF_DRAW)


class UniformInteger(Drawing[Whole], Generic[Whole], name="poprand::UniformInteger"):
    """offset, plus a random number of 32 bits times scale / 2**32; a scale of 0 stands for 2**32."""

    scale: UNSIGNED_INT
    offset: Whole

    def compute(self, worker):
        state = ipu.array(UNSIGNED_LONGLONG, 2)
        self.begin(worker, state)
        bits = UNSIGNED_LONGLONG(0)
        for i in ipu.worker_range(worker, self.out):
            bits = self.next_bits(i, 32, bits, state)
            number = UNSIGNED_INT(bits)
            if self.scale != 0:
                number = UNSIGNED_INT((UNSIGNED_LONGLONG(self.scale) * UNSIGNED_LONGLONG(number)) >> 32)
            self.out[i] = Whole(number) + self.offset

    def cycles(self, vertex):
        elements, workers = vertex.fieldSize("out"), vertex.target.getNumWorkerContexts()
        return random_slots(vertex, uniform_int_cycles(elements, vertex.value("scale"), workers))


class Normal(Drawing[Real], Generic[Real], name="poprand::Normal"):
    """Nearly normal numbers: see `grand`."""

    mean: FLOAT
    stdDev: FLOAT

    def compute(self, worker):
        state = ipu.array(UNSIGNED_LONGLONG, 2)
        self.begin(worker, state)
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = Real(grand(self.draw(state)) * self.stdDev + self.mean)

    def cycles(self, vertex):
        return loop_slots(vertex, normal_loop(vertex.getFieldInfo("out").elementType()))

    def flops(self, vertex):
        return random_flops(vertex, MULTIPLY_ADD_OF_DRAW)


class TruncatedNormal(Drawing[Real], Generic[Real], name="poprand::TruncatedNormal"):
    """The first of some normal numbers that is not farther from 0 than alpha; if there is none, the sum of two uniform numbers."""

    mean: FLOAT
    stdDev: FLOAT
    alpha: FLOAT
    iterations: INT

    def within(self, state):
        for _ in range(self.iterations):
            number = grand(self.draw(state))
            if abs(number) <= self.alpha:
                return number
        bits = self.draw(state)
        return self.alpha * (centred(bits, 16) + centred(bits >> 16, 16))

    def compute(self, worker):
        state = ipu.array(UNSIGNED_LONGLONG, 2)
        self.begin(worker, state)
        for i in ipu.worker_range(worker, self.out):
            self.out[i] = Real(self.within(state) * self.stdDev + self.mean)

    def cycles(self, vertex):
        return loop_slots(vertex, truncated_normal_loop(vertex.getFieldInfo("out").elementType(), vertex.value("iterations")))

    def flops(self, vertex):
        return random_flops(vertex, MULTIPLY_ADD_OF_DRAW)


class Bernoulli(Drawing[Number], Generic[Number], name="poprand::Bernoulli"):
    """1 where the upper 16 bits of an element's are below prob, else 0."""

    width: INT  # bits of a number
    prob: INT  # in parts of 2**16

    def compute(self, worker):
        state = ipu.array(UNSIGNED_LONGLONG, 2)
        self.begin(worker, state)
        width = self.width
        bits = UNSIGNED_LONGLONG(0)
        for i in ipu.worker_range(worker, self.out):
            bits = self.next_bits(i, width, bits, state)
            self.out[i] = Number(1) if chosen(bits, width, self.prob) else Number(0)

    def cycles(self, vertex):
        return loop_slots(vertex, bernoulli_loop(vertex.getFieldInfo("out").elementType()))

    def flops(self, vertex):
        return random_flops(vertex, 1)


class Dropout(Drawing[Real], Generic[Real], name="poprand::Dropout"):
    """in times scale where the upper 16 bits of an element's are below prob, else 0."""

    in_: Input[Vector[Real]]
    width: INT  # bits of a number
    scale: Real
    prob: INT  # in parts of 2**16

    def compute(self, worker):
        state = ipu.array(UNSIGNED_LONGLONG, 2)
        self.begin(worker, state)
        width = self.width
        bits = UNSIGNED_LONGLONG(0)
        for i in ipu.worker_range(worker, self.out):
            bits = self.next_bits(i, width, bits, state)
            self.out[i] = self.in_[i] * self.scale if chosen(bits, width, self.prob) else Real(0)

    def cycles(self, vertex):
        return loop_slots(vertex, dropout_loop(vertex.getFieldInfo("out").elementType()))

    def flops(self, vertex):
        return random_flops(vertex, MULTIPLY_OF_DRAW)


class _Modified(Drawing[Number], Generic[Number]):
    """A vertex that reads the modifier of its seed, where others have it as a constant: another for each call of a function."""

    modifier: Input[Vector[UNSIGNED_INT]]  # of one element, in the place of `seedModifier`

    def begin(self, worker, state):
        start = UNSIGNED_LONGLONG(self.seed[0]) | (UNSIGNED_LONGLONG(self.seed[1]) << 32)
        start = splitmix64(splitmix64(start, UNSIGNED_LONGLONG(0)), UNSIGNED_LONGLONG(self.modifier[0]))
        generator = UNSIGNED_LONGLONG(self.tile) * UNSIGNED_LONGLONG(ipu.worker_count()) + UNSIGNED_LONGLONG(worker)
        state[0] = splitmix64(start, generator * 2)
        state[1] = splitmix64(start, generator * 2 + 1)


class ModifiedUniform(_Modified[Real], Uniform[Real], Generic[Real], name="poprand::Uniform<modifier>"):
    """`Uniform` with a modifier that is read."""


class ModifiedUniformInteger(_Modified[Whole], UniformInteger[Whole], Generic[Whole], name="poprand::UniformInteger<modifier>"):
    """`UniformInteger` with a modifier that is read."""


class ModifiedNormal(_Modified[Real], Normal[Real], Generic[Real], name="poprand::Normal<modifier>"):
    """`Normal` with a modifier that is read."""


class ModifiedTruncatedNormal(_Modified[Real], TruncatedNormal[Real], Generic[Real], name="poprand::TruncatedNormal<modifier>"):
    """`TruncatedNormal` with a modifier that is read."""


class ModifiedBernoulli(_Modified[Number], Bernoulli[Number], Generic[Number], name="poprand::Bernoulli<modifier>"):
    """`Bernoulli` with a modifier that is read."""


class ModifiedDropout(_Modified[Real], Dropout[Real], Generic[Real], name="poprand::Dropout<modifier>"):
    """`Dropout` with a modifier that is read."""
