"""Native code stands on its own: it calls nothing that a process may lack, and is made for this machine's byte order."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, INT, Engine, Graph, IPUModel, Output, Vector, Vertex
from pypoplar.host_code import machine
from pypoplar.program import Execute

WIDE = """
define void @wide(i128* %a, i128* %b, i128* %out) {
  %x = load i128, i128* %a, align 8
  %y = load i128, i128* %b, align 8
  %q = udiv i128 %x, %y
  %r = urem i128 %x, %y
  %sq = sdiv i128 %x, %y
  %sr = srem i128 %x, %y
  store i128 %q, i128* %out, align 8
  %o1 = getelementptr i128, i128* %out, i64 1
  store i128 %r, i128* %o1, align 8
  %o2 = getelementptr i128, i128* %out, i64 2
  store i128 %sq, i128* %o2, align 8
  %o3 = getelementptr i128, i128* %out, i64 3
  store i128 %sr, i128* %o3, align 8
  ret void
}
"""
MASK = (1 << 128) - 1


@pytest.fixture(scope="module")
def divide():
    code = machine.load(machine.compile_text(WIDE))
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code.address("wide"))

    def called(a, b):
        words = [(ctypes.c_uint64 * 2)(one & (2**64 - 1), one >> 64) for one in (a, b)]
        out = (ctypes.c_uint64 * 8)()
        function(*words, out)
        return [out[2 * i] | out[2 * i + 1] << 64 for i in range(4)]

    yield called
    del code


def signed(value):
    return value - (1 << 128) if value >> 127 else value


@given(a=st.integers(0, MASK), b=st.integers(1, MASK), shift=st.integers(0, 127))
def test_numbers_of_128_bits_divide_as_pythons_do(divide, a, b, shift):
    b = (b >> shift) or 1
    x, y = signed(a), signed(b)
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    assert divide(a, b) == [a // b, a % b, quotient & MASK, (x - quotient * y) & MASK]


def test_code_is_optimised_for_the_byte_order_of_the_machine():
    little = "e-" if np.little_endian else "E-"
    assert str(machine.optimise(WIDE)).split('target datalayout = "')[1].startswith(little)


class Share(Vertex):
    """LLVM counts the rounds of its while loop, which has a cycle limit, in 128 bits."""

    out: Output[Vector[FLOAT]]
    n: INT
    share: INT

    def compute(self):
        begin = 0
        first = 0
        while first >= self.n:
            first -= self.n
            begin += self.share
        end = min(begin + self.share, 4)
        for row in range(first, 4, self.n):
            part = self.out[row * 4 + begin : row * 4 + end]
            for j in range(len(part)):
                part[j] = 0.0


def test_a_loop_whose_rounds_are_counted_in_128_bits_runs(mode):
    device = IPUModel("tiny").createDevice()
    graph = Graph(device)
    out = graph.addVariable(FLOAT, [16], "out")
    graph.setTileMapping(out, 0)
    graph.setInitialValue(out, np.ones(16))
    graph.createHostRead("out", out)
    compute_set = graph.addComputeSet("share")
    graph.setTileMapping(graph.addVertex(compute_set, Share, {"out": out, "n": 2, "share": 4}), 0)
    engine = Engine(graph, Execute(compute_set), mode=mode)
    engine.load(device)
    engine.run()
    assert engine.readTensor("out").reshape(4, 4).tolist() == [[0.0] * 4, [1.0] * 4, [0.0] * 4, [1.0] * 4]
