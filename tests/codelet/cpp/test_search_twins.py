"""Codelets of the libraries that reduce, search, look up and sample, and what they are in C++: equal bits and cycles, also ported."""

# ruff: noqa: E501 - fields of a codelet in a line
import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("clang")

from cpp_programs import codelets
from cpp_twins import check_twin

from pypoplar.codelet.registry import collect
from pypoplar.popnn.ctc.logarithms import NEVER
from pypoplar.poputil.codelet_modules import codelet_module
from pypoplar.types import BY_SPELLING

TEXT = """
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <pypoplar/WorkerRange.hpp>
using pypoplar::workerCount;
using pypoplar::workerRange;
template <class T> using List = VectorList<T, VectorListLayout::DELTANELEMENTS>;
constexpr unsigned NOTHING = 0xFFFFFFFFu, MIXED = 0x9E3779B1u;

template <class A> struct Sum {
  static A taken(A x) { return x; }
  static A combine(A left, A right) { return left + right; }
};
template <class A> struct SquareSum {
  static A taken(A x) { return x * x; }
  static A combine(A left, A right) { return left + right; }
};
template <class A> struct Largest {
  static A taken(A x) { return x; }
  static A combine(A left, A right) { return std::max(left, right); }
};
template <class T, class A, class R, class Operation> struct Reduction : MultiVertex {
  Input<List<T>> partials; unsigned inner, share;
  template <class X> A load(X x) { return Operation::taken(A(x)); }
  template <class Row> A along(const Row &row) {
    int count = row.size();
    A total = load(row[0]);
    if (count < 8) {
      for (int i = 1; i < count; ++i) total = Operation::combine(total, load(row[i]));
    } else {
      A second = load(row[1]), third = load(row[2]), fourth = load(row[3]);
      for (int i = 4; i < count - 3; i += 4) {
        total = Operation::combine(total, load(row[i]));
        second = Operation::combine(second, load(row[i + 1]));
        third = Operation::combine(third, load(row[i + 2]));
        fourth = Operation::combine(fourth, load(row[i + 3]));
      }
      total = Operation::combine(Operation::combine(total, second), Operation::combine(third, fourth));
      for (int i = count / 4 * 4; i < count; ++i) total = Operation::combine(total, load(row[i]));
    }
    return total;
  }
};
template <class T, class A, class R, class Operation> struct ReducePieces : Reduction<T, A, R, Operation> {
  Output<Vector<R>> out;
  bool compute(unsigned worker) {
    int begin = int(worker) * int(this->share);
    for (int output = begin; output < std::min(begin + int(this->share), int(out.size())); ++output)
      out[output] = R(this->along(this->partials[output]));
    return true;
  }
};
template <class T, class A, class R> struct AddPieces : ReducePieces<T, A, R, Sum<A>> {};
template <class T, class A, class R> struct SquareAddPieces : ReducePieces<T, A, R, SquareSum<A>> {};
template <class T, class A, class R> struct LargestPieces : ReducePieces<T, A, R, Largest<A>> {};

template <class T> struct ROIAlign : MultiVertex {
  Input<Vector<T>> rois; Input<Vector<int>> batchIndex;
  int images, height, width, binRows, binColumns, samples, channels, firstRow, rows; float scale, shift, leastSize;
  int image(int box) {
    int found = batchIndex[box];
    assert(0 <= found && found < images && "bottomBatchIndex has an image that bottomData does not have");
    return found;
  }
  float begin_of(int box, int axis) { return float(rois[4 * box + axis]) * scale - shift; }
  float size_of_bin(int box, int axis, int bins) {
    float size = float(rois[4 * box + 2 + axis]) * scale - shift - begin_of(box, axis);
    if (size < leastSize) size = leastSize;
    return size / bins;
  }
  float sample(float begin, float sizeOfBin, int bin, int number) { return begin + bin * sizeOfBin + (number + 0.5f) * (sizeOfBin / samples); }
  bool outside(float at, int size) { return at < -1.0f || at > size; }
  float inside(float at, int size) {
    if (at < 0.0f) at = 0.0f;
    if (at > size - 1) at = float(size - 1);
    return at;
  }
};
template <class T> struct ROIAlignForward : ROIAlign<T> {
  Input<Vector<T>> in; Output<Vector<float>> out;
  bool compute(unsigned worker) {
    int bins = this->binRows * this->binColumns, boxes = this->batchIndex.size(), places = int(out.size()) / this->channels;
    int share = (places + workerCount() - 1) / workerCount();
    for (int place = std::min(int(worker) * share, places); place < std::min(int(worker + 1) * share, places); ++place) {
      int box = place / bins % boxes;
      for (int channel = 0; channel < this->channels; ++channel) out[place * this->channels + channel] = 0.0f;
      add_samples(place, box, place / bins / boxes, place % bins);
      for (int channel = 0; channel < this->channels; ++channel)
        out[place * this->channels + channel] = out[place * this->channels + channel] / (this->samples * this->samples);
    }
    return true;
  }
  void add_samples(int place, int box, int group, int bin) {
    int top = this->image(box) * this->height - this->firstRow;
    float binHeight = this->size_of_bin(box, 1, this->binRows), binWidth = this->size_of_bin(box, 0, this->binColumns);
    for (int row = 0; row < this->samples; ++row) {
      float y = this->sample(this->begin_of(box, 1), binHeight, bin / this->binColumns, row);
      if (!this->outside(y, this->height)) {
        y = this->inside(y, this->height);
        int low = int(y), high = std::min(low + 1, this->height - 1);
        for (int column = 0; column < this->samples; ++column) {
          float x = this->sample(this->begin_of(box, 0), binWidth, bin % this->binColumns, column);
          if (!this->outside(x, this->width)) {
            x = this->inside(x, this->width);
            add_row(place, group, top + low, x, 1.0f - (y - low));
            add_row(place, group, top + high, x, y - low);
          }
        }
      }
    }
  }
  void add_row(int place, int group, int row, float x, float weight) {
    if (0 <= row && row < this->rows) {
      int left = int(x), right = std::min(left + 1, this->width - 1);
      int line = (group * this->rows + row) * this->width;
      for (int channel = 0; channel < this->channels; ++channel) {
        float first = float(in[(line + left) * this->channels + channel]);
        float second = float(in[(line + right) * this->channels + channel]);
        float mean = first * (1.0f - (x - left)) + second * (x - left);
        out[place * this->channels + channel] += mean * weight;
      }
    }
  }
};
template <class T> struct ROIAlignBackward : ROIAlign<T> {
  Input<Vector<T>> in; Output<Vector<float>> out;
  bool compute(unsigned worker) {
    int line = this->width * this->channels, lines = int(out.size()) / line;
    int share = (lines + workerCount() - 1) / workerCount();
    int begin = std::min(int(worker) * share, lines), end = std::min(begin + share, lines);
    for (int i = begin * line; i < end * line; ++i) out[i] = 0.0f;
    if (begin < end)
      for (int group = begin / this->rows; group < (end - 1) / this->rows + 1; ++group) {
        int first = group * this->rows;
        for (int box = 0; box < int(this->batchIndex.size()); ++box)
          add_box(box, group, std::max(begin, first) - first, std::min(end, first + this->rows) - first);
      }
    return true;
  }
  void add_box(int box, int group, int begin, int end) {
    int top = this->image(box) * this->height - this->firstRow;
    float binHeight = this->size_of_bin(box, 1, this->binRows);
    for (int number = 0; number < this->binRows * this->samples; ++number) {
      int bin = number / this->samples;
      float y = this->sample(this->begin_of(box, 1), binHeight, bin, number % this->samples);
      if (!this->outside(y, this->height)) {
        y = this->inside(y, this->height);
        int low = int(y), high = std::min(low + 1, this->height - 1);
        int first = (group * int(this->batchIndex.size()) + box) * this->binRows + bin;
        int lower = top + low, higher = top + high;
        if (begin <= lower && lower < end) add_row(first * this->binColumns, box, group * this->rows + top + low, 1.0f - (y - low));
        if (begin <= higher && higher < end) add_row(first * this->binColumns, box, group * this->rows + top + high, y - low);
      }
    }
  }
  void add_row(int first, int box, int row, float weight) {
    float binWidth = this->size_of_bin(box, 0, this->binColumns);
    for (int number = 0; number < this->binColumns * this->samples; ++number) {
      int bin = number / this->samples;
      float x = this->sample(this->begin_of(box, 0), binWidth, bin, number % this->samples);
      if (!this->outside(x, this->width)) {
        x = this->inside(x, this->width);
        int left = int(x), right = std::min(left + 1, this->width - 1);
        for (int channel = 0; channel < this->channels; ++channel) {
          float gradient = float(in[(first + bin) * this->channels + channel]) * (weight / (this->samples * this->samples));
          out[(row * this->width + left) * this->channels + channel] += gradient * (1.0f - (x - left));
          out[(row * this->width + right) * this->channels + channel] += gradient * (x - left);
        }
      }
    }
  }
};

static float log_add(float a, float b) {
  float high = std::max(a, b);
  return high <= NEVER ? high : high + std::log(1.0f + std::exp(std::min(a, b) - high));
}
template <class P> struct CTCLoss : Vertex {
  Input<Vector<P>> state; Input<unsigned> labelLength; Output<float> total, loss; float bound;
  bool compute() {
    int last = 2 * int(*labelLength);
    float sum = float(state[last]);
    if (last > 0) sum = log_add(sum, float(state[last - 1]));
    *total = sum;
    *loss = sum <= bound ? 0.0f : -sum;
    return true;
  }
};
template <class P> struct CTCSelect : Vertex {
  Input<List<float>> candidateBlanks, candidateSymbols, candidateTotals; Input<List<unsigned>> parents, added; Input<Vector<unsigned>> found;
  Output<Vector<P>> blanks, symbols, totals; InOut<List<unsigned>> beams; Output<List<unsigned>> before; Output<Vector<unsigned>> taken;
  Output<Vector<float>> scores; InOut<Vector<unsigned>> nodeParent, nodeSymbol; InOut<unsigned> alive, count; Input<unsigned> dataLength;
  bool compute() {
    if (*count < *dataLength) {
      for (unsigned field = 0; field < beams.size(); ++field) copy(before[field], beams[field]);
      for (int group = 0; group < int(taken.size()); ++group) {
        taken[group] = 0;
        look(group);
      }
      int beam = 0, group = best_list();
      while (group >= 0 && beam < int(totals.size())) {
        become(beam, group, int(taken[group]));
        taken[group] += 1;
        look(group);
        beam += 1;
        group = best_list();
      }
      *alive = unsigned(beam);
    }
    *count += 1;
    return true;
  }
  template <class To, class From> void copy(To &target, const From &source) {
    for (int beam = 0; beam < int(*alive); ++beam) target[beam] = source[beam];
  }
  void look(int group) {
    unsigned place = taken[group];
    scores[group] = place < found[group] ? candidateTotals[group][place] : NEVER;
  }
  int best_list() {
    float best = NEVER;
    int which = -1;
    for (int group = 0; group < int(scores.size()); ++group)
      if (scores[group] > best) {
        best = scores[group];
        which = group;
      }
    return which;
  }
  void become(int beam, int group, int place) {
    blanks[beam] = candidateBlanks[group][place];
    symbols[beam] = candidateSymbols[group][place];
    totals[beam] = scores[group];
    unsigned parent = parents[group][place], symbol = added[group][place];
    if (symbol == NOTHING) {
      for (int field = 0; field < int(beams.size()); ++field) beams[field][beam] = before[field][parent];
    } else {
      unsigned node = unsigned(1 + beam) + *count * unsigned(totals.size());
      unsigned whole = before[3][parent];
      nodeParent[node] = before[2][parent];
      nodeSymbol[node] = symbol;
      beams[0][beam] = symbol;
      beams[1][beam] = before[1][parent] + 1;
      beams[2][beam] = node;
      beams[3][beam] = (whole ^ (symbol + 1)) * MIXED;
      beams[4][beam] = whole;
    }
  }
};

#define UPDATE                                                                                                        \\
  Input<Vector<unsigned>> offsets; unsigned baseOffset, numBaseElements; int regionSize, elementsPerWorker, offsetsInRangePerWorker; \\
  bool indicesAreSorted; InOut<Vector<T>> baseT; Input<Vector<T>> subT;                                               \\
  int row_of_worker(int worker, int place) {                                                                          \\
    unsigned row = offsets[place] - baseOffset;                                                                       \\
    if (row >= numBaseElements) return -1;                                                                            \\
    int own = int(row) - worker * elementsPerWorker;                                                                  \\
    return 0 <= own && own < elementsPerWorker ? int(row) : -1;                                                       \\
  }
template <class T> struct MultiUpdate : MultiVertex {
  UPDATE
  bool compute(unsigned worker) {
    for (int place = 0; place < int(offsets.size()); ++place) {
      int row = row_of_worker(worker, place);
      if (row >= 0)
        for (int i = 0; i < regionSize; ++i) baseT[row * regionSize + i] = subT[place * regionSize + i];
    }
    return true;
  }
};
template <class T> struct MultiUpdateMul : MultiVertex {
  UPDATE
  bool compute(unsigned worker) {
    for (int place = 0; place < int(offsets.size()); ++place) {
      int row = row_of_worker(worker, place);
      if (row >= 0)
        for (int i = 0; i < regionSize; ++i) baseT[row * regionSize + i] *= subT[place * regionSize + i];
    }
    return true;
  }
};

template <class T> struct SelectFromIntervals : MultiVertex {
  Input<Vector<unsigned>> indices; Vector<int> firstColumns; int width; Input<List<T>> params; Output<Vector<T>> output;
  bool compute(unsigned worker) {
    for (int piece : workerRange(worker, output)) {
      unsigned index = indices[piece];
      if (index == 0xFFFFFFFFu) output[piece] = 0.0f;
      else if (index >= unsigned(width)) output[piece] = std::numeric_limits<float>::quiet_NaN();
      else {
        int column = int(index) - firstColumns[piece];
        auto &row = params[piece];
        if (column >= 0 && column < int(row.size())) output[piece] = row[column];
        else output[piece] = 0.0f;
      }
    }
    return true;
  }
};
template <class T> struct SequenceSlice : MultiVertex {
  Input<Vector<T>> srcT; InOut<Vector<T>> dstT; Input<Vector<unsigned>> srcOffsetT, dstOffsetT, nElementsT;
  unsigned numSrcElements, numDstElements; int regionSize; bool divides;
  bool compute(unsigned worker) {
    if (divides) {
      for (int sequence : workerRange(worker, nElementsT.size())) copy(sequence);
    } else if (worker == 0) {
      for (int sequence = 0; sequence < int(nElementsT.size()); ++sequence) copy(sequence);
    }
    return true;
  }
  void copy(int sequence) {
    unsigned first = srcOffsetT[sequence], target = dstOffsetT[sequence];
    if (first < numSrcElements && target < numDstElements) {
      unsigned rows = std::min(std::min(nElementsT[sequence], numSrcElements - first), numDstElements - target);
      int source = int(first) * regionSize, place = int(target) * regionSize;
      for (int i = 0; i < int(rows) * regionSize; ++i) dstT[place + i] = srcT[source + i];
    }
  }
};

template <class T> struct LinearBasis : MultiVertex {
  Input<Vector<T>> pseudo; Input<Vector<int>> kernelSize; Input<Vector<unsigned char>> isOpenSpline; Output<List<T>> basis;
  Output<List<int>> weightIndex; Input<Vector<unsigned>> offsets; int numSplines, edgeOffset;
  static constexpr int degree = 1;
  T forward(T v, int turn) { return T(1) - v - T(turn) + T(2) * v * T(turn); }
  bool compute(unsigned worker) {
    int dimensions = kernelSize.size();
    for (unsigned r = 0; r < basis.size(); ++r) {
      auto &row = basis[r];
      auto &places = weightIndex[r];
      for (int j : workerRange(worker, row)) {
        int number = j + int(offsets[r]), edge = number / numSplines - edgeOffset, k = number % numSplines, index = 0, stride = 1;
        T product = 1;
        for (int d = 0; d < dimensions; ++d) {
          int turn = k % (degree + 1);
          k /= degree + 1;
          int size = kernelSize[d];
          T v = pseudo[edge * dimensions + d] * T(size - degree * int(isOpenSpline[d]));
          index += (int(v) + turn) % size * stride;
          stride *= size;
          product *= forward(v - T(std::floor(v)), turn);
        }
        row[j] = product;
        places[j] = index;
      }
    }
    return true;
  }
};

#define CARRYING(NAME, SWAPS)                                                                                         \\
  template <class K, class V> struct NAME : MultiVertex {                                                             \\
    Input<Vector<K>> lower, upper; Input<Vector<V>> lowerValues, upperValues;                                         \\
    Output<Vector<K>> first, second; Output<Vector<V>> firstValues, secondValues;                                     \\
    bool swapped(K low, K high, V value, V other) { SWAPS }                                                           \\
    bool compute(unsigned worker) {                                                                                   \\
      for (int i : workerRange(worker, first)) {                                                                      \\
        K low = lower[i], high = upper[i];                                                                            \\
        V value = lowerValues[i], other = upperValues[i];                                                             \\
        bool swaps = swapped(low, high, value, other);                                                                \\
        first[i] = swaps ? high : low;                                                                                \\
        second[i] = swaps ? low : high;                                                                               \\
        firstValues[i] = swaps ? other : value;                                                                       \\
        secondValues[i] = swaps ? value : other;                                                                      \\
      }                                                                                                               \\
      return true;                                                                                                    \\
    }                                                                                                                 \\
  };
CARRYING(CompareAndSwapKeyVal, return !(high <= low) && low == low;)
CARRYING(CompareAndSwapBothUp, if (!(high <= low)) return low == low || (high != high && other < value); return high == low && other < value;)
"""


def _row(count, type=np.float32):
    return np.linspace(-1.5, 2, count).astype(type)


def _zeros(count, type=np.float32):
    return np.zeros(count, type)


def _whole(*values, type=np.uint32):
    return np.array(values, type)


def _numbers(**values):
    return {name: np.int32(value) for name, value in values.items()}


def _some_nan():
    values = _row(29)
    values[[3, 17]] = np.nan, np.inf
    return values


F, H, U, S = "float", "half", "unsigned int", "int"
DTYPES = {F: np.float32, H: np.float16, U: np.uint32, S: np.int32}
_UPDATE = {
    "offsets": _whole(3, 9, 5, 3), "baseOffset": np.uint32(3), "numBaseElements": np.uint32(4), "regionSize": np.int32(2),
    "elementsPerWorker": np.int32(3), "offsetsInRangePerWorker": np.int32(1), "indicesAreSorted": np.bool_(0),
}  # fmt: skip
_BOXES = {
    "batchIndex": _whole(1, 0, type=np.int32),
    **_numbers(images=2, height=3, width=4, binRows=2, binColumns=1, samples=2, channels=2, firstRow=1, rows=4),
    "scale": np.float32(0.5), "shift": np.float32(0.25), "leastSize": np.float32(0.5),
}  # fmt: skip


def _beams():
    """Two beams of lists of candidates, of which two become beams."""
    return {
        "candidateBlanks": [_row(2), _row(2)], "candidateSymbols": [_row(2) + 1, _row(2)], "candidateTotals": [np.array([-1, -3], np.float32), np.array([-2, -4], np.float32)],
        "parents": [_whole(0, 1), _whole(1, 0)], "added": [_whole(2, 0xFFFFFFFF), _whole(0xFFFFFFFF, 1)], "found": _whole(2, 1),
        "beams": [_whole(*range(i, i + 3)) for i in range(5)], "before": [_zeros(3, np.uint32) for _ in range(5)], "taken": _zeros(2, np.uint32),
        "scores": _zeros(2), "nodeParent": _zeros(20, np.uint32), "nodeSymbol": _zeros(20, np.uint32), "alive": np.uint32(2), "count": np.uint32(1),
        "dataLength": np.uint32(4),
    }  # fmt: skip


def _twins():
    """File, class, types, fields."""
    for t in (F, H):
        d = DTYPES[t]
        for name in ("AddPieces", "SquareAddPieces", "LargestPieces"):
            for length in (13, 5):
                yield "popops_reduce", name, (t, F, t), {
                    "partials": [_row(length, d), _row(length + 1, d), _row(3, d)], "inner": np.uint32(1), "share": np.uint32(1), "out": _zeros(3, d),
                }  # fmt: skip
        boxes = {"rois": np.array([0, 1, 4, 5, 2, 0, 7, 3], d), **_BOXES}
        yield "popnn_roi_align", "ROIAlignForward", (t,), {**boxes, "in": _row(32, d), "out": _zeros(8)}
        yield "popnn_roi_align", "ROIAlignBackward", (t,), {**boxes, "in": _row(8, d), "out": _zeros(32)}
        yield "popnn_ctc", "CTCLoss", (t,), {
            "state": _row(7, d), "labelLength": np.uint32(3), "total": np.float32(0), "loss": np.float32(0), "bound": np.float32(NEVER),
        }  # fmt: skip
        yield (
            "popnn_ctc_search",
            "CTCSelect",
            (t,),
            {**_beams(), "blanks": _zeros(3, d), "symbols": _zeros(3, d), "totals": _zeros(3, d)},
        )
        yield "popops_multi_slice", "MultiUpdate", (t,), {**_UPDATE, "baseT": _row(8, d), "subT": _row(8, d)}
        yield "popops_multi_slice", "MultiUpdateMul", (t,), {**_UPDATE, "baseT": _row(8, d), "subT": _row(8, d)}
        yield "popops_rows", "SelectFromIntervals", (t,), {
            "indices": _whole(2, 0xFFFFFFFF, 9, 1), "firstColumns": _whole(1, 0, 0, 3, type=np.int32), "width": np.int32(5),
            "params": [_row(3, d), _row(2, d), _row(4, d), _row(2, d)], "output": _zeros(4, d),
        }  # fmt: skip
        for divides in (0, 1):
            yield "popops_rows", "SequenceSlice", (t,), {
                "srcT": _row(10, d), "dstT": _zeros(8, d), "srcOffsetT": _whole(1, 3, 9), "dstOffsetT": _whole(2, 0, 0), "nElementsT": _whole(2, 5, 1),
                "numSrcElements": np.uint32(5), "numDstElements": np.uint32(4), "regionSize": np.int32(2), "divides": np.bool_(divides),
            }  # fmt: skip
        yield "popops_splines", "LinearBasis", (t,), {
            "pseudo": np.array([0.25, 0.5, 0.75, 0.125], d), "kernelSize": _whole(3, 2, type=np.int32), "isOpenSpline": _whole(1, 0, type=np.uint8),
            "basis": [_zeros(3, d), _zeros(5, d)], "weightIndex": [_zeros(3, np.int32), _zeros(5, np.int32)], "offsets": _whole(0, 3),
            "numSplines": np.int32(4), "edgeOffset": np.int32(0),
        }  # fmt: skip
    for name in ("CompareAndSwapKeyVal", "CompareAndSwapBothUp"):
        for value in (U, F):
            yield "popops_topk", name, (F, value), {
                "lower": _some_nan(), "upper": _row(29)[::-1].copy(), "first": _zeros(29), "second": _zeros(29),
                "lowerValues": np.arange(29).astype(DTYPES[value]), "upperValues": np.arange(29)[::-1].astype(DTYPES[value]),
                "firstValues": _zeros(29, DTYPES[value]), "secondValues": _zeros(29, DTYPES[value]),
            }  # fmt: skip


TWINS = {
    f"{name}<{','.join(types)}>{number}": (file, name, types, values) for number, (file, name, types, values) in enumerate(_twins())
}


def _cpp_name(name, types):
    return f"{name}<{','.join(types)}>"


@functools.cache
def _in_cpp():
    """All of them, translated once."""
    made = sorted({f"template struct {_cpp_name(name, types)};\n" for _, name, types, _ in TWINS.values()})
    return {codelet.name: codelet for codelet in codelets(TEXT + "".join(made), f"-DNEVER={NEVER!r}f")}


def _parameters():
    """One of each class in the usual run, those of other types in the whole one."""
    seen = set()
    for key, (_, name, _, _) in TWINS.items():
        yield pytest.param(key, marks=[pytest.mark.slow] if name in seen else [])
        seen.add(name)


@pytest.mark.parametrize("key", list(_parameters()))
def test_a_codelet_of_ours_and_its_twin_compute_and_cost_the_same(key):
    file, name, types, values = TWINS[key]
    found = getattr(codelet_module(f"{file}.py"), name)
    arguments = tuple(BY_SPELLING[type] for type in types)
    (ours,) = collect(found[arguments if len(arguments) > 1 else arguments[0]])
    check_twin(ours, _in_cpp()[_cpp_name(name, types)], values)


ONE = {"popops_fill", "popops_images", "popops_rearrange", "poptorch_integers", "poplin_convolution"}
"""Files with one twin: all but the last have one codelet, and those of convolutions use the matrix unit and slices, which C++ has not."""


def _twins_of(module):
    """The table of another file of tests."""
    spec = importlib.util.spec_from_file_location(module, Path(__file__).with_name(f"{module}.py"))
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found.TWINS


def test_each_file_of_codelets_has_two_twins_at_least_and_all_have_sixty():
    tables = [TWINS, *map(_twins_of, ("test_drawing_twins", "test_library_twins", "test_worker_twins"))]
    twins = {(twin[0], name.partition("<")[0]) for table in tables for name, twin in table.items()}
    files = [path.stem for path in (Path(__file__).parents[3] / "codelets").glob("*.py")]
    counts = {file: sum(of == file for of, _ in twins) for file in files}
    assert {file for file, count in counts.items() if count < 2} == ONE
    assert all(counts.values())
    assert sum(counts.values()) >= 60
