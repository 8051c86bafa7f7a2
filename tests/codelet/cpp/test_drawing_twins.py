"""Codelets that draw numbers, sample boxes and search labels, in C++ with templates as bases: equal bits and cycles."""

import functools
import re

import numpy as np
import pytest

pytest.importorskip("clang")

from codelet_rig import module_from, run
from cpp_programs import codelets

from pypoplar.codelet.cpp.porting import _Module
from pypoplar.codelet.registry import collect
from pypoplar.popnn.ctc.logarithms import NEVER
from pypoplar.poputil.codelet_modules import codelet_module
from pypoplar.types import BY_SPELLING

TEXT = """
#include <algorithm>
#include <cassert>
#include <cmath>
#include <ipu_intrinsics>
#include <pypoplar/WorkerRange.hpp>
using pypoplar::workerRange;
using u64 = unsigned long long;
template <class T> using List = VectorList<T, VectorListLayout::DELTANELEMENTS>;

static u64 splitmix64(u64 start, u64 place) {
  u64 z = start + (place + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
template <int bits> static u64 rotated(u64 value) { return (value << bits) | (value >> (64 - bits)); }
static float centred(u64 bits, int width) {
  if (width == 16) return float(int(bits & 0xFFFF) - 0x8000) * 0x1p-16f;
  return float(int(unsigned(bits) ^ 0x80000000u)) * 0x1p-32f;
}
static bool chosen(u64 bits, int width, int prob) { return int((bits >> (width - 16)) & 0xFFFF) < prob; }
static float grand(u64 bits) {
  constexpr u64 ones = 0x0004010040100401ull, fives = 31 * ones;
  u64 pairs = (bits & fives) + ((bits >> 5) & fives);
  return float(int(((pairs * ones) >> 50) & 1023) - 186) * 0.03125f;
}

template <class T> struct Drawing : MultiVertex {
  Input<Vector<unsigned>> seed; unsigned seedModifier, tile; Output<Vector<T>> out;
  void begin(unsigned worker, u64 (&state)[2]) {
    if (seed.size() == 2) {
      u64 start = u64(seed[0]) | (u64(seed[1]) << 32);
      start = splitmix64(splitmix64(start, 0), seedModifier);
      u64 generator = u64(tile) * u64(pypoplar::workerCount()) + u64(worker);
      state[0] = splitmix64(start, generator * 2);
      state[1] = splitmix64(start, generator * 2 + 1);
    }
  }
  u64 draw(u64 (&state)[2]) {
    if (seed.size() != 2) return __builtin_ipu_urand64();
    u64 s0 = state[0], s1 = state[1];
    u64 either = s0 ^ s1, both = s0 & s1;
    state[0] = rotated<55>(s0) ^ either ^ (either << 14);
    state[1] = rotated<36>(either);
    return either ^ (rotated<1>(both) | rotated<2>(both));
  }
  u64 next_bits(int i, int width, u64 bits, u64 (&state)[2]) {
    if ((i & (64 / width - 1)) == 0) return draw(state);
    return bits >> width;
  }
};
template <class T> struct Uniform : Drawing<T> {
  int width; float scale, offset;
  bool compute(unsigned worker) {
    u64 state[2];
    this->begin(worker, state);
    int w = width;
    u64 bits = 0;
    for (int i : workerRange(worker, this->out)) {
      bits = this->next_bits(i, w, bits, state);
      this->out[i] = centred(bits, w) * scale + offset;
    }
    return true;
  }
};
template <class T> struct Normal : Drawing<T> {
  float mean, stdDev;
  bool compute(unsigned worker) {
    u64 state[2];
    this->begin(worker, state);
    for (int i : workerRange(worker, this->out)) this->out[i] = grand(this->draw(state)) * stdDev + mean;
    return true;
  }
};
template <class T> struct Bernoulli : Drawing<T> {
  int width, prob;
  bool compute(unsigned worker) {
    u64 state[2];
    this->begin(worker, state);
    int w = width;
    u64 bits = 0;
    for (int i : workerRange(worker, this->out)) {
      bits = this->next_bits(i, w, bits, state);
      this->out[i] = chosen(bits, w, prob) ? T(1) : T(0);
    }
    return true;
  }
};
template <class P> struct CTCSearchStart : Vertex {
  Output<Vector<P>> blanks, symbols, totals; Output<List<unsigned>> beams; Output<unsigned> alive, count;
  Input<unsigned> dataLength; unsigned maxTime;
  bool compute() {
    assert(*dataLength <= maxTime && "a data length is beyond the time steps");
    *alive = 1;
    *count = 0;
    for (unsigned beam = 0; beam < totals.size(); ++beam) {
      blanks[beam] = P(NEVER);
      symbols[beam] = P(NEVER);
      totals[beam] = P(NEVER);
    }
    blanks[0] = 0.0f;
    totals[0] = 0.0f;
    for (auto &field : beams)
      for (unsigned beam = 0; beam < field.size(); ++beam) field[beam] = 0;
    return true;
  }
};
"""
_SEED = {"seed": np.array([12, 34], np.uint32), "seedModifier": np.uint32(5), "tile": np.uint32(3)}
F, H = "float", "half"
DTYPES = {F: np.float32, H: np.float16, "int": np.int32}


def _twins():
    """File, class, type, fields."""
    for t in (F, H):
        d = DTYPES[t]
        width = np.int32(32 if t == F else 16)
        yield (
            "poprand_distributions",
            "Uniform",
            t,
            {**_SEED, "out": np.zeros(29, d), "width": width, "scale": np.float32(2.5), "offset": np.float32(1)},
        )
        yield (
            "poprand_distributions",
            "Normal",
            t,
            {**_SEED, "out": np.zeros(29, d), "mean": np.float32(2.5), "stdDev": np.float32(1.5)},
        )
        start = {name: np.ones(4, d) for name in ("blanks", "symbols", "totals")} | {
            "beams": [np.ones(3, np.uint32), np.ones(2, np.uint32)]
        }
        yield (
            "popnn_ctc_search",
            "CTCSearchStart",
            t,
            {**start, "alive": np.uint32(9), "count": np.uint32(9), "dataLength": np.uint32(3), "maxTime": np.uint32(4)},
        )
    for t in (F, H, "int"):
        width = np.int32(16 if t == H else 32)
        yield (
            "poprand_distributions",
            "Bernoulli",
            t,
            {**_SEED, "out": np.zeros(29, DTYPES[t]), "width": width, "prob": np.int32(30000)},
        )


TWINS = {f"{name}<{type}>": (file, name, type, values) for file, name, type, values in _twins()}


@functools.cache
def _in_cpp():
    """All of them, translated once."""
    made = "".join(f"template struct {name};\n" for name in TWINS)
    return {codelet.name: codelet for codelet in codelets(TEXT + made, f"-DNEVER={NEVER!r}f")}


@pytest.mark.parametrize("name", TWINS)
def test_a_codelet_of_ours_and_its_twin_compute_and_cost_the_same(name):
    file, cls, type, values = TWINS[name]
    (ours,) = collect(getattr(codelet_module(f"{file}.py"), cls)[BY_SPELLING[type]])
    twin = _in_cpp()[name]
    assert [(field.name, field.access, field.form, field.type) for field in twin.fields] == [
        (field.name, field.access, field.form, field.type) for field in ours.fields
    ]
    first, second = run(ours, **values), run(twin, **values)
    assert first.fault is second.fault is None
    assert [first[field] for field in values] == [second[field] for field in values]
    assert first.slots == second.slots
    module = _Module()
    module.add([twin])
    ported = run(module_from(module.text(["test.cpp"]))[re.sub(r"\W+", "_", name).strip("_")], **values)
    assert [ported[field] for field in values] == [first[field] for field in values]
    assert ported.slots == second.slots
