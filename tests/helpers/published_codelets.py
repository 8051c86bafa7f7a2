"""Codelets whose compiled code is published, as a user writes them here."""

from pypoplar import FLOAT, INT, LONGLONG, Input, Output, Vector, VectorList, Vertex
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.cost.compiled_code import CompiledCode, CompiledRun, compiled
from pypoplar.target import Target


class AlievPanfilov(Vertex):
    """A step of a reaction and diffusion: simehaa/IPU, AlievPanfilovModel."""

    e_in: Input[VectorList[FLOAT]]
    e_out: Output[VectorList[FLOAT]]
    r_in: Input[VectorList[FLOAT]]
    r_out: Output[VectorList[FLOAT]]
    height: INT
    width: INT
    delta: FLOAT
    epsilon: FLOAT
    my1: FLOAT
    my2: FLOAT
    h: FLOAT
    dt: FLOAT
    k: FLOAT
    a: FLOAT
    b: FLOAT

    def compute(self) -> bool:
        d_h2 = self.delta / (self.h * self.h)
        for i in range(self.height):
            for j in range(self.width):
                self.e_out[i][j] = self.e_in[i + 1][j + 1] + self.dt * (
                    d_h2
                    * (
                        -4.0 * self.e_in[i + 1][j + 1]
                        + self.e_in[i + 2][j + 1]
                        + self.e_in[i][j + 1]
                        + self.e_in[i + 1][j + 2]
                        + self.e_in[i + 1][j]
                    )
                    - self.k * self.e_in[i + 1][j + 1] * (self.e_in[i + 1][j + 1] - self.a) * (self.e_in[i + 1][j + 1] - 1.0)
                    - self.e_in[i + 1][j + 1] * self.r_in[i + 1][j + 1]
                )
                self.r_out[i][j] = self.r_in[i][j] + self.dt * (
                    -self.epsilon - self.my1 * self.r_in[i][j] / (self.my2 + self.e_in[i][j])
                ) * (self.r_in[i][j] + self.k * self.e_in[i][j] * (self.e_in[i][j] - self.b - 1.0))
        return True


class Squares(Vertex):
    """The load is one round ahead: the compiler's test of repeats."""

    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]
    n: INT

    def compute(self) -> None:
        t = self.x[0]
        for i in range(self.n & 0xFFF):
            square = t * t
            t = self.x[i + 1]
            self.out[i] = square


class Integers(Vertex):
    """One operation on 32-bit integers, with its loads and its store; those below are alike."""

    a: Input[Vector[INT]]
    b: Input[Vector[INT]]
    out: Output[Vector[INT]]

    def compute(self) -> None:
        self.out[0] = self.a[0] + self.b[0]


class Inverted(Vertex):
    a: Input[Vector[INT]]
    out: Output[Vector[INT]]

    def compute(self) -> None:
        self.out[0] = ~self.a[0]


class WideAnd(Vertex):
    a: Input[Vector[LONGLONG]]
    b: Input[Vector[LONGLONG]]
    out: Output[Vector[LONGLONG]]

    def compute(self) -> None:
        self.out[0] = self.a[0] & self.b[0]


class WideSum(Vertex):
    a: Input[Vector[LONGLONG]]
    b: Input[Vector[LONGLONG]]
    out: Output[Vector[LONGLONG]]

    def compute(self) -> None:
        self.out[0] = self.a[0] + self.b[0]


class WideProduct(Vertex):
    a: Input[Vector[LONGLONG]]
    b: Input[Vector[LONGLONG]]
    out: Output[Vector[LONGLONG]]

    def compute(self) -> None:
        self.out[0] = self.a[0] * self.b[0]


class WideInverted(Vertex):
    a: Input[Vector[LONGLONG]]
    out: Output[Vector[LONGLONG]]

    def compute(self) -> None:
        self.out[0] = ~self.a[0]


class WideShift(Vertex):
    a: Input[Vector[LONGLONG]]
    b: Input[Vector[LONGLONG]]
    out: Output[Vector[LONGLONG]]

    def compute(self) -> None:
        self.out[0] = self.a[0] << self.b[0]


def compiled_code(cls: type[Vertex], target: str) -> CompiledCode:
    return compiled(Codelet.of_class(cls).typed, Target.of_preset(target))


def inner_round(cls: type[Vertex], target: str) -> CompiledRun:
    """A round of the innermost loop."""
    return max(compiled_code(cls, target).runs, key=lambda run: run.depth)


def instructions(run: CompiledRun) -> int:
    return sum(len(bundle.instructions) for bundle in run.bundles)


def straight_slots(cls: type[Vertex], target: str = "ipu2") -> int:
    """Slots of a codelet without loops, less the loads of its pointers: a loop has them in registers."""
    return compiled_code(cls, target).runs[0].slots - len(Codelet.of_class(cls).fields)
