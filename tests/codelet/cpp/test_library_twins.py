"""Codelets of the libraries and what they are in C++: equal bits and cycles in both engines, and so is what is ported."""

# ruff: noqa: E501 - fields of a codelet in a line
import functools
import re

import numpy as np
import pytest

pytest.importorskip("clang")

from codelet_rig import module_from, run
from cpp_programs import codelets
from tutorial_modules import tutorial_module

from pypoplar import Engine
from pypoplar.codelet.cpp.porting import _Module
from pypoplar.codelet.registry import collect
from pypoplar.popnn.ctc.logarithms import NEVER
from pypoplar.poputil.codelet_modules import codelet_module
from pypoplar.types import BY_SPELLING

TEXT = """
#include <algorithm>
#include <cmath>
template <class T> using List = VectorList<T, VectorListLayout::DELTANELEMENTS>;

template <class A, class B> static float dot(const A &a, const B &b) {
  float even = 0, odd = 0;
  for (int i = 0; i < int(a.size()) - 1; i += 2) {
    even += float(a[i]) * float(b[i]);
    odd += float(a[i + 1]) * float(b[i + 1]);
  }
  if (a.size() & 1) even += float(a[a.size() - 1]) * float(b[a.size() - 1]);
  return even + odd;
}
template <class R> static int largest(const R &row) {
  auto best = row[0];
  int place = 0;
  for (unsigned i = 1; i < row.size(); ++i)
    if (row[i] > best) { best = row[i]; place = i; }
  return place;
}
template <class R> static float largest_of(const R &row) {
  float value = row[0];
  for (unsigned i = 1; i < row.size(); ++i) value = std::max(value, float(row[i]));
  return value;
}
template <class A, class B, class C> static void slope(const A &out, const B &outGrad, C &inGrad, float scaling) {
  float total = 0;
  for (unsigned i = 0; i < out.size(); ++i) total += float(out[i]) * float(outGrad[i]);
  float mean = total / scaling;
  for (unsigned i = 0; i < out.size(); ++i) inGrad[i] = float(out[i]) * (float(outGrad[i]) - mean);
}

template <class T> struct ForLoopCounter : Vertex {
  InOut<T> count; Input<T> limit; Output<unsigned> comparisonResult; T increment;
  bool compute() {
    *count += increment;
    *comparisonResult = *count != *limit ? 1u : 0u;
    return true;
  }
};
struct CircBufIncrIndex : Vertex {
  InOut<unsigned> index; unsigned hSize;
  bool compute() { *index = (*index + 1) % hSize; return true; }
};
struct CircOffset : Vertex {
  Input<unsigned> indexIn; Output<unsigned> indexOut; unsigned hSize, offset;
  bool compute() { *indexOut = (*indexIn + offset) % hSize; return true; }
};
struct IndicesOutOfRange : Vertex {
  Input<List<unsigned>> indices; Vector<unsigned> bounds; Output<int> found;
  bool compute() {
    int any = 0;
    for (unsigned row = 0; row < indices.size(); ++row)
      for (auto index : indices[row])
        if (index >= bounds[row]) any = 1;
    *found = any;
    return true;
  }
};
struct AnyFound : Vertex {
  Input<Vector<int>> found; Output<int> any;
  bool compute() {
    int one_is = 0;
    for (auto one : found)
      if (one != 0) one_is = 1;
    *any = one_is;
    return true;
  }
};
template <class T> struct SumPartials : Vertex {
  Input<List<float>> partials; Output<Vector<T>> out;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i) {
      float total = 0;
      for (auto value : partials[i]) total += value;
      out[i] = total;
    }
    return true;
  }
};
template <class T> struct DotProducts : Vertex {
  Input<List<T>> a; Input<Vector<T>> b; Output<Vector<float>> out;
  bool compute() {
    for (unsigned row = 0; row < out.size(); ++row) out[row] = dot(a[row], b);
    return true;
  }
};
struct Cholesky : Vertex {
  InOut<Vector<float>> matrix; int size;
  bool compute() {
    for (int i = 0; i < size; ++i) {
      int row = i * size;
      for (int k = 0; k < i + 1; ++k) {
        int other = k * size;
        float total = matrix[row + k];
        for (int j = 0; j < k; ++j) total -= matrix[row + j] * matrix[other + j];
        if (i == k) matrix[row + k] = std::sqrt(total);
        else matrix[row + k] = total / matrix[other + k];
      }
    }
    return true;
  }
};
struct LUCore : Vertex {
  InOut<Vector<float>> matrix; int size;
  bool compute() {
    for (int i = 0; i < size; ++i) {
      int pivot = i * size;
      for (int y = i + 1; y < size; ++y) {
        int row = y * size;
        float factor = matrix[row + i] / matrix[pivot + i];
        matrix[row + i] = factor;
        for (int x = i + 1; x < size; ++x) matrix[row + x] -= factor * matrix[pivot + x];
      }
    }
    return true;
  }
};
struct AddCorrect : Vertex {
  Input<Vector<unsigned>> correct; InOut<unsigned> numCorrect;
  bool compute() {
    for (auto one : correct) *numCorrect += one;
    return true;
  }
};
struct CountEqual : Vertex {
  Input<Vector<unsigned>> maxPerBatch, expected; InOut<unsigned> numCorrect;
  bool compute() {
    for (unsigned row = 0; row < expected.size(); ++row)
      if (maxPerBatch[row] == expected[row]) *numCorrect += 1;
    return true;
  }
};
template <class T> struct SumSquared : Vertex {
  Input<List<T>> probs; Input<Vector<unsigned>> expected; Output<List<T>> deltas; Output<Vector<T>> loss;
  bool compute() {
    for (unsigned sample = 0; sample < probs.size(); ++sample) {
      auto &p = probs[sample];
      auto &d = deltas[sample];
      unsigned label = expected[sample];
      float total = 0;
      for (unsigned i = 0; i < p.size(); ++i) {
        float delta = p[i];
        if (i == label) delta -= 1;
        d[i] = delta;
        total += 0.5f * delta * delta;
      }
      loss[sample] = total;
    }
    return true;
  }
};
template <class T> struct CountCorrect : Vertex {
  Input<List<T>> probs; Input<Vector<unsigned>> expected; InOut<unsigned> numCorrect;
  bool compute() {
    int count = 0;
    for (unsigned sample = 0; sample < probs.size(); ++sample)
      if (largest(probs[sample]) == expected[sample]) count += 1;
    *numCorrect += count;
    return true;
  }
};
template <class T> struct PartCorrect : Vertex {
  Input<List<T>> probs; Input<Vector<unsigned>> expected; Output<unsigned> correct;
  bool compute() {
    int count = 0;
    for (unsigned sample = 0; sample < probs.size(); ++sample)
      if (largest(probs[sample]) == expected[sample]) count += 1;
    *correct = count;
    return true;
  }
};
template <class T> struct SumSquaredPieces : Vertex {
  Input<List<T>> probs; Input<Vector<unsigned>> expected; Output<List<T>> deltas; Output<Vector<float>> loss; Vector<unsigned> first;
  bool compute() {
    for (unsigned piece = 0; piece < probs.size(); ++piece) {
      auto &p = probs[piece];
      auto &d = deltas[piece];
      unsigned label = expected[piece];
      float total = 0;
      for (unsigned i = 0; i < p.size(); ++i) {
        float delta = p[i];
        if (first[piece] + i == label) delta -= 1;
        d[i] = delta;
        total += 0.5f * delta * delta;
      }
      loss[piece] = total;
    }
    return true;
  }
};
template <class T> struct SoftMax : Vertex {
  Input<List<T>> in; Output<List<T>> out; bool stable; float scaling;
  bool compute() {
    for (unsigned r = 0; r < in.size(); ++r) {
      auto &row = in[r];
      auto &to = out[r];
      float shift = 0;
      if (stable) shift = largest_of(row);
      float total = 0;
      for (unsigned i = 0; i < row.size(); ++i) {
        float power = std::exp(float(row[i]) - shift);
        total += power;
        to[i] = power * scaling;
      }
      float scale = 1 / total;
      for (unsigned i = 0; i < to.size(); ++i) to[i] = float(to[i]) * scale;
    }
    return true;
  }
};
template <class T> struct CTCStart : Vertex {
  Output<Vector<T>> state; Output<unsigned> count; Input<unsigned> labelLength; unsigned factor, first;
  bool compute() {
    *count = 0;
    for (int i = 0; i < int(state.size()); ++i) state[i] = 2u * first + unsigned(i) == factor * *labelLength ? 0.0f : NEVER;
    return true;
  }
};
template <class T> struct SoftMaxGrad : Vertex {
  Input<List<T>> out, outGrad; Output<List<T>> inGrad; float scaling;
  bool compute() {
    for (unsigned row = 0; row < out.size(); ++row) slope(out[row], outGrad[row], inGrad[row], scaling);
    return true;
  }
};
template <class T> struct LogSoftMax : Vertex {
  Input<List<T>> in; Output<List<T>> out;
  bool compute() {
    for (unsigned number = 0; number < in.size(); ++number) {
      auto &row = in[number];
      auto &to = out[number];
      float shift = largest_of(row);
      float total = 0;
      for (unsigned i = 0; i < row.size(); ++i) total += std::exp(float(row[i]) - shift);
      float logarithm = std::log(total);
      for (unsigned i = 0; i < row.size(); ++i) to[i] = float(row[i]) - shift - logarithm;
    }
    return true;
  }
};
static int first_row(unsigned offset, int rows, bool remap) {
  if (int(offset) < rows) return int(offset);
  return remap ? 0 : rows;
}
template <class T> struct DynamicSlice2D : Vertex {
  Input<unsigned> offset; int numBaseElements, numSubElements; bool remapOutOfBoundIndices;
  Input<List<T>> baseT; Output<List<T>> subT;
  bool compute() {
    int first = first_row(*offset, numBaseElements, remapOutOfBoundIndices);
    for (int place = 0; place < int(subT.size()); ++place) {
      int row = first + place % numSubElements;
      if (row >= numBaseElements) row -= numBaseElements;
      int source = place / numSubElements * numBaseElements + row;
      if (first == numBaseElements)
        for (unsigned i = 0; i < subT[place].size(); ++i) subT[place][i] = 0;
      else
        for (unsigned i = 0; i < subT[place].size(); ++i) subT[place][i] = baseT[source][i];
    }
    return true;
  }
};
struct DotProductVertex : Vertex {
  Input<Vector<float>> a, b; Output<float> out;
  bool compute() {
    float total = 0;
    for (unsigned i = 0; i < a.size(); ++i) total += a[i] * b[i];
    *out = total;
    return true;
  }
};
struct ReduceVertex : Vertex {
  Input<Vector<float>> in; Output<float> out;
  bool compute() {
    float total = 0;
    for (auto value : in) total += value;
    *out = total;
    return true;
  }
};
template <class T> struct DynamicUpdateSlice2D : Vertex {
  Input<unsigned> offset; int numBaseElements, numSubElements; bool remapOutOfBoundIndices;
  InOut<List<T>> baseT; Input<List<T>> subT;
  bool compute() {
    int first = first_row(*offset, numBaseElements, remapOutOfBoundIndices);
    if (first < numBaseElements) {
      for (int place = 0; place < int(subT.size()); ++place) {
        int row = first + place % numSubElements;
        if (row >= numBaseElements) row -= numBaseElements;
        int target = place / numSubElements * numBaseElements + row;
        for (unsigned i = 0; i < subT[place].size(); ++i) baseT[target][i] = subT[place][i];
      }
    }
    return true;
  }
};
"""


def _row(count, type=np.float32):
    return np.linspace(-1.5, 2, count).astype(type)


def _positive(count, type=np.float32):
    return (np.abs(_row(count)) + 0.125).astype(type)


def _square():
    root = np.tril(np.arange(1, 17).reshape(4, 4) / 8 + 1)
    return (root @ root.T + 4 * np.eye(4)).astype(np.float32).ravel()


def _whole(*values, type=np.uint32):
    return np.array(values, type)


_SLICE = {
    "offset": np.uint32(1),
    "numBaseElements": np.int32(2),
    "numSubElements": np.int32(1),
    "remapOutOfBoundIndices": np.bool_(1),
}
_INTEGERS = {"baseT": [_whole(1, 2, 3, type=np.int32), _whole(4, 5, 6, type=np.int32)], "subT": [_whole(7, 8, 9, type=np.int32)]}
FLOATS = {"float": np.float32, "half": np.float16}
TWINS = {  # the codelet, the file of ours that has it, its fields
    "ForLoopCounter<unsigned int>": ("popops_loops", {"count": np.uint32(3), "limit": np.uint32(9), "comparisonResult": np.uint32(0), "increment": np.uint32(2)}),
    "ForLoopCounter<int>": ("popops_loops", {"count": np.int32(-3), "limit": np.int32(-1), "comparisonResult": np.uint32(0), "increment": np.int32(2)}),
    "CircBufIncrIndex": ("popops_loops", {"index": np.uint32(6), "hSize": np.uint32(7)}),
    "CircOffset": ("popops_loops", {"indexIn": np.uint32(6), "indexOut": np.uint32(0), "hSize": np.uint32(7), "offset": np.uint32(5)}),
    "IndicesOutOfRange": ("popops_index_check", {"indices": [_whole(1, 2, 3), _whole(9, 4)], "bounds": _whole(4, 9), "found": np.int32(0)}),
    "AnyFound": ("popops_index_check", {"found": _whole(0, 0, 1, type=np.int32), "any": np.int32(0)}),
    "DynamicSlice2D<int>": ("popops_dynamic_slice", {**_SLICE, **_INTEGERS}),
    "DotProductVertex": ("tut6_matrix_vector_opt", {"a": _row(7), "b": _positive(7), "out": np.float32(0)}),
    "ReduceVertex": ("tut6_matrix_vector_opt", {"in": _row(6), "out": np.float32(0)}),
    "Cholesky": ("poplin_solvers", {"matrix": _square(), "size": np.int32(4)}),
    "LUCore": ("poplin_solvers", {"matrix": _square(), "size": np.int32(4)}),
    "AddCorrect": ("popnn_loss", {"correct": _whole(1, 2, 3), "numCorrect": np.uint32(4)}),
    "CountEqual": ("popnn_loss", {"maxPerBatch": _whole(1, 2, 3), "expected": _whole(1, 5, 3), "numCorrect": np.uint32(4)}),
}  # fmt: skip
for word, dtype in FLOATS.items():
    lists = {"probs": [_positive(5, dtype), _positive(4, dtype)], "expected": _whole(2, 7)}
    losses = {**lists, "deltas": [np.zeros(5, dtype), np.zeros(4, dtype)], "loss": np.zeros(2, dtype)}
    TWINS |= {
        f"SumPartials<{word}>": ("poplin_matmul", {"partials": [_row(5), _row(3)], "out": np.zeros(2, dtype)}),
        f"DotProducts<{word}>": ("poplin_matmul", {"a": [_row(5, dtype), _row(4, dtype)], "b": _positive(5, dtype), "out": np.zeros(2, np.float32)}),
        f"SumSquared<{word}>": ("popnn_loss", losses),
        f"CountCorrect<{word}>": ("popnn_loss", {**lists, "numCorrect": np.uint32(1)}),
        f"PartCorrect<{word}>": ("popnn_loss", {**lists, "correct": np.uint32(1)}),
        f"SumSquaredPieces<{word}>": ("popnn_loss", {**losses, "loss": np.zeros(2, np.float32), "first": _whole(1, 4)}),
        f"SoftMax<{word}>": ("popnn_nonlinearity", {"in": [_row(5, dtype), _row(3, dtype)], "out": [np.zeros(5, dtype), np.zeros(3, dtype)], "stable": np.bool_(1), "scaling": np.float32(2)}),
        f"CTCStart<{word}>": ("popnn_ctc", {"state": np.zeros(6, dtype), "count": np.uint32(9), "labelLength": np.uint32(2), "factor": np.uint32(2), "first": np.uint32(0)}),
        f"SoftMaxGrad<{word}>": ("popnn_nonlinearity", {"out": [_positive(5, dtype)], "outGrad": [_row(5, dtype)], "inGrad": [np.zeros(5, dtype)], "scaling": np.float32(2)}),
        f"LogSoftMax<{word}>": ("popnn_nonlinearity", {"in": [_row(5, dtype), _row(3, dtype)], "out": [np.zeros(5, dtype), np.zeros(3, dtype)]}),
        f"DynamicSlice2D<{word}>": ("popops_dynamic_slice", {
            "offset": np.uint32(2), "numBaseElements": np.int32(3), "numSubElements": np.int32(2), "remapOutOfBoundIndices": np.bool_(0),
            "baseT": [_row(3, dtype) for _ in range(3)], "subT": [_positive(3, dtype), _positive(3, dtype)],
        }),
        f"DynamicUpdateSlice2D<{word}>": ("popops_dynamic_slice", {
            "offset": np.uint32(2), "numBaseElements": np.int32(3), "numSubElements": np.int32(2), "remapOutOfBoundIndices": np.bool_(0),
            "baseT": [_row(3, dtype) for _ in range(3)], "subT": [_positive(3, dtype), _positive(3, dtype)],
        }),
    }  # fmt: skip


@functools.cache
def _in_cpp():
    """All of them, translated once."""
    made = "".join(f"template struct {name};\n" for name in TWINS if "<" in name)
    return {codelet.name: codelet for codelet in codelets(TEXT + made, f"-DNEVER={NEVER!r}f")}


def _ours(name, file):
    """The codelet in Python."""
    base, _, argument = name.rstrip(">").partition("<")
    module = tutorial_module(file) if file.startswith("tut") else codelet_module(f"{file}.py")
    found = getattr(module, base)
    (codelet,) = collect(found[BY_SPELLING[argument]] if argument else found)
    return codelet


@pytest.mark.parametrize("name", TWINS)
def test_a_codelet_of_ours_and_its_twin_compute_and_cost_the_same(name):
    file, values = TWINS[name]
    ours, twin = _ours(name, file), _in_cpp()[name]
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
    assert ported.slots == first.slots


def test_tutorial_5_computes_and_costs_the_same_in_both_languages(capsys):
    cycles = []
    for cpp in (False, True):
        module, engines = tutorial_module("tut5_matrix_vector"), []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "Engine", lambda *arguments: engines.append(Engine(*arguments)) or engines[-1])
            assert module.main(6, 7, cpp=cpp)
        cycles.append(engines[0]._state.clock)
    assert cycles[0] == cycles[1]
    assert capsys.readouterr().out.count("Multiplication result OK") == 2
