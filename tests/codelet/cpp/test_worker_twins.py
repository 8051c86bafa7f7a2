"""Codelets of the libraries whose workers share their work, and what they are in C++: equal bits and cycles in both engines, also ported."""

# ruff: noqa: E501 - fields of a codelet in a line
import functools

import numpy as np
import pytest

pytest.importorskip("clang")

from cpp_programs import codelets
from cpp_twins import check_twin

from pypoplar.codelet.registry import collect
from pypoplar.poputil.codelet_modules import codelet_module
from pypoplar.types import BY_SPELLING

TEXT = """
#include <algorithm>
#include <cassert>
#include <cmath>
#include <pypoplar/WorkerRange.hpp>
using pypoplar::workerRange;
template <class T> using List = VectorList<T, VectorListLayout::DELTANELEMENTS>;

template <class T> struct Fill : MultiVertex {
  T in; Output<Vector<T>> out;
  bool compute(unsigned worker) { for (int i : workerRange(worker, out)) out[i] = in; return true; }
};
template <class T> struct HasNaN : MultiVertex {
  Input<Vector<T>> in; Output<Vector<unsigned>> out;
  bool compute(unsigned worker) {
    int count = 0;
    for (int i : workerRange(worker, in)) count += std::isnan(in[i]);
    out[worker] = std::min(count, 1);
    return true;
  }
};
template <class T> struct HasNaNOrInf : MultiVertex {
  Input<Vector<T>> in; Output<Vector<unsigned>> out;
  bool compute(unsigned worker) {
    int count = 0;
    for (int i : workerRange(worker, in)) count += !std::isfinite(in[i]);
    out[worker] = std::min(count, 1);
    return true;
  }
};
template <class T> struct Iota : MultiVertex {
  Output<List<T>> out; Input<Vector<T>> offsets;
  bool compute(unsigned worker) {
    for (unsigned r = 0; r < out.size(); ++r) {
      auto &row = out[r];
      T offset = offsets[r];
      for (int i : workerRange(worker, row)) row[i] = offset + T(i);
    }
    return true;
  }
};
template <class I, class O> struct EncodeOneHot : MultiVertex {
  Input<Vector<I>> indices; Output<Vector<O>> out; Input<O> On, Off; int offset, sliceLength;
  bool compute(unsigned worker) {
    O off = *Off;
    int begin = 0, end = 0;
    for (int i : workerRange(worker, out)) {
      out[i] = off;
      if (end == 0) begin = i;
      end = i + 1;
    }
    if (end > 0)
      for (int row = (begin + offset) / sliceLength; row < (end - 1 + offset) / sliceLength + 1; ++row) {
        int index = indices[row];
        if (index >= 0 && index < sliceLength) {
          int place = row * sliceLength - offset + index;
          if (begin <= place && place < end) out[place] = *On;
        }
      }
    return true;
  }
};
template <class T> struct Transpose : MultiVertex {
  Input<Vector<T>> src; Output<Vector<T>> dst; int numSrcRows, numSrcColumns;
  bool compute(unsigned worker) {
    int rows = numSrcRows, columns = numSrcColumns, size = rows * columns;
    for (int i : workerRange(worker, dst)) {
      int place = i % size;
      dst[i] = src[i - place + place % rows * columns + place / rows];
    }
    return true;
  }
};
struct NarrowChecked : MultiVertex {
  Input<Vector<long long>> in; Output<Vector<int>> out;
  bool compute(unsigned worker) {
    for (int i : workerRange(worker, in)) {
      long long value = in[i];
      int narrow = int(value);
      assert((long long)(narrow) == value);
      out[i] = narrow;
    }
    return true;
  }
};
template <class T, class L> static bool between(T x, const L &limits, int place) {
  if (place > 0 && x < limits[place - 1]) return false;
  return place == int(limits.size()) || x < limits[place];
}
template <class T> struct HistogramByLimit : MultiVertex {
  Input<Vector<T>> data, limits; Output<Vector<float>> histogram;
  bool compute(unsigned worker) {
    for (int place : workerRange(worker, histogram)) {
      float count = 0;
      for (T x : data) if (between(x, limits, place)) count += 1;
      histogram[place] = count;
    }
    return true;
  }
};
template <class T> struct HistogramByData : MultiVertex {
  Input<Vector<T>> data, limits; Output<Vector<float>> histogram;
  bool compute(unsigned worker) {
    int first = int(worker) * (int(limits.size()) + 1);
    for (int place = 0; place < int(limits.size()) + 1; ++place) {
      float count = 0;
      for (int i : workerRange(worker, data)) if (between(data[i], limits, place)) count += 1;
      histogram[first + place] = count;
    }
    return true;
  }
};
#define BINARY(NAME, OPERATOR)                                                        \\
  template <class T> struct NAME : MultiVertex {                                      \\
    Input<Vector<T>> in1, in2; Output<Vector<T>> out;                                 \\
    bool compute(unsigned worker) {                                                   \\
      if (in2.size() == out.size()) {                                                 \\
        for (int i : workerRange(worker, out)) out[i] = in1[i] OPERATOR in2[i];       \\
      } else {                                                                        \\
        T other = in2[0];                                                             \\
        for (int i : workerRange(worker, out)) out[i] = in1[i] OPERATOR other;        \\
      }                                                                               \\
      return true;                                                                    \\
    }                                                                                 \\
  };
BINARY(Add, +)
BINARY(Multiply, *)
template <class T> struct SumPieces : MultiVertex {
  Input<List<T>> pieces; Output<Vector<T>> output;
  bool compute(unsigned worker) {
    for (int row : workerRange(worker, output)) {
      float total = 0;
      for (T piece : pieces[row]) total += float(piece);
      output[row] = total;
    }
    return true;
  }
};
template <class T> struct CompareAndSwap : MultiVertex {
  Input<Vector<T>> lower, upper; Output<Vector<T>> first, second;
  bool compute(unsigned worker) {
    for (int i : workerRange(worker, first)) {
      T low = lower[i], high = upper[i];
      bool swaps = !(high <= low) && low == low;
      first[i] = swaps ? high : low;
      second[i] = swaps ? low : high;
    }
    return true;
  }
};
template <class A, class B> struct NormaliseImage : MultiVertex {
  Input<Vector<A>> in; Output<Vector<B>> out; Input<Vector<B>> scales, offsets; B inScale;
  bool compute(unsigned worker) {
    for (int pixel : workerRange(worker, int(out.size()) / 4)) {
      for (int channel = 0; channel < 3; ++channel) {
        B value = B(in[3 * pixel + channel]) * inScale;
        out[4 * pixel + channel] = (value - offsets[channel]) * scales[channel];
      }
      out[4 * pixel + 3] = B(0);
    }
    return true;
  }
};
template <class T, class D> struct ScaledAdd : MultiVertex {
  InOut<Vector<T>> A; Input<Vector<D>> B; float scale;
  bool compute(unsigned worker) {
    float by = scale;
    for (int i : workerRange(worker, A)) A[i] = float(A[i]) + by * float(B[i]);
    return true;
  }
};
template <class T> struct WholeAdd : MultiVertex {
  InOut<Vector<T>> A; Input<Vector<T>> B; T scale;
  bool compute(unsigned worker) { for (int i : workerRange(worker, A)) A[i] += scale * B[i]; return true; }
};
template <class T> struct MultiSlice : MultiVertex {
  Input<Vector<unsigned>> offsets; unsigned baseOffset, numBaseElements; int regionSize, offsetsInRangePerWorker;
  Input<Vector<T>> baseT; Output<Vector<T>> subT;
  bool compute(unsigned worker) {
    for (int i : workerRange(worker, subT)) {
      unsigned row = offsets[i / regionSize] - baseOffset;
      if (row < numBaseElements) subT[i] = baseT[int(row) * regionSize + i % regionSize];
      else subT[i] = 0;
    }
    return true;
  }
};
template <class T> struct SplineWeighting : MultiVertex {
  Input<Vector<T>> input, weight, basis; Input<Vector<int>> weightIndex; Output<Vector<T>> output; int offset, numInCh, numOutCh, numSplines;
  bool compute(unsigned worker) {
    for (int j : workerRange(worker, output)) {
      int edge = (j + offset) / numOutCh, channel = (j + offset) % numOutCh;
      T total = 0;
      for (int s = 0; s < numSplines; ++s) {
        T share = basis[edge * numSplines + s];
        int first = weightIndex[edge * numSplines + s] * numInCh;
        for (int c = 0; c < numInCh; ++c) total += weight[(first + c) * numOutCh + channel] * (share * input[edge * numInCh + c]);
      }
      output[j] = total;
    }
    return true;
  }
};
template <class M, class P, class T> struct InverseStdDeviationOfVariance : MultiVertex {
  Input<Vector<M>> mean; Input<Vector<P>> power; Output<Vector<T>> iStdDev; float scaleVar, eps;
  bool compute(unsigned worker) {
    for (int i : workerRange(worker, iStdDev)) iStdDev[i] = 1.0f / std::sqrt(float(power[i]) * scaleVar + eps);
    return true;
  }
};
template <class M, class P, class T> struct InverseStdDeviationOfSquares : MultiVertex {
  Input<Vector<M>> mean; Input<Vector<P>> power; Output<Vector<T>> iStdDev; float scaleVar, eps;
  bool compute(unsigned worker) {
    for (int i : workerRange(worker, iStdDev)) {
      float one = mean[i];
      iStdDev[i] = 1.0f / std::sqrt(std::max(float(power[i]) - one * one, 0.0f) * scaleVar + eps);
    }
    return true;
  }
};
template <class P, class R> struct ConvConversion : MultiVertex {
  Input<Vector<P>> partials; Output<Vector<R>> out;
  bool compute(unsigned worker) { for (int i : workerRange(worker, out)) out[i] = partials[i]; return true; }
};
#define POOLING(NAME, FIELDS, MEET)                                                   \\
  template <class T> struct NAME : MultiVertex {                                      \\
    Output<Vector<T>> out; Input<Vector<T>> in; Vector<unsigned> work, firstRun, firstPlace; \\
    unsigned channels, outStride, inStride, row; FIELDS                               \\
    void meet(int i, int j, int place) { MEET }                                       \\
    bool compute(unsigned worker) {                                                   \\
      const int begin = int(firstPlace[worker] * channels), end = int(firstPlace[worker + 1] * channels); \\
      for (int i = begin; i < end; ++i) out[i] = 0.0f;                                \\
      const int first = int(firstRun[worker]), last = int(firstRun[worker + 1]);      \\
      for (int run = first; run < last; ++run) {                                      \\
        int place = int(work[3 * run]), other = int(work[3 * run + 1]);               \\
        const int count = int(work[3 * run + 2]);                                     \\
        for (int k = 0; k < count; ++k) {                                             \\
          const int wide = int(channels);                                             \\
          for (int c = 0; c < wide; ++c) meet(place * int(channels) + c, other * int(channels) + c, place); \\
          place += int(outStride);                                                    \\
          other += int(inStride);                                                     \\
        }                                                                             \\
      }                                                                               \\
      return true;                                                                    \\
    }                                                                                 \\
  };
#define SCALES Vector<float> scales;
#define ACTS Input<Vector<T>> fwdActsIn, fwdActsOut;
POOLING(SumPooling, SCALES, float scale = scales[std::min(place, int(scales.size()) - 1)]; out[i] = float(out[i]) + float(in[j]) * scale;)
POOLING(MaxPoolingGrad, ACTS, if (fwdActsIn[i] == fwdActsOut[j]) out[i] = out[i] + in[j];)
"""


def _row(count, type=np.float32):
    return np.linspace(-1.5, 2, count).astype(type)


def _zeros(count, type=np.float32):
    return np.zeros(count, type)


def _whole(*values, type=np.uint32):
    return np.array(values, type)


def _some_nan(type):
    values = _row(29, type)
    values[[3, 17]] = np.nan, np.inf
    return values


F, H, U, S = "float", "half", "unsigned int", "int"
DTYPES = {F: np.float32, H: np.float16, U: np.uint32, S: np.int32, "unsigned char": np.uint8}
_LOOKUP = {
    "offsets": _whole(3, 9, 5),
    "baseOffset": np.uint32(3),
    "numBaseElements": np.uint32(4),
    "regionSize": np.int32(2),
    "offsetsInRangePerWorker": np.int32(1),
}
_RUNS = {
    "work": _whole(0, 1, 2, 1, 0, 1, 2, 2, 1), "firstRun": _whole(0, 1, 2, 3, 3, 3, 3), "firstPlace": _whole(0, 1, 2, 3, 3, 3, 3),
    "channels": np.uint32(2), "outStride": np.uint32(0), "inStride": np.uint32(1), "row": np.uint32(3),
}  # fmt: skip


def _twins():
    """File, class, types, fields."""
    for t in (F, H):
        d = DTYPES[t]
        yield "popops_fill", "Fill", (t,), {"in": d(2.5), "out": _zeros(29, d)}
        yield "popops_nan", "HasNaN", (t,), {"in": _some_nan(d), "out": _zeros(6, np.uint32)}
        yield "popops_nan", "HasNaNOrInf", (t,), {"in": _some_nan(d), "out": _zeros(6, np.uint32)}
        yield (
            "popops_rearrange",
            "Transpose",
            (t,),
            {"src": _row(30, d), "dst": _zeros(30, d), "numSrcRows": np.int32(3), "numSrcColumns": np.int32(5)},
        )
        yield (
            "popops_histogram",
            "HistogramByLimit",
            (t,),
            {"data": _row(9, d), "limits": np.array([-1, 0.5, 1], d), "histogram": _zeros(4)},
        )
        yield (
            "popops_histogram",
            "HistogramByData",
            (t,),
            {"data": _row(9, d), "limits": np.array([-1, 0.5, 1], d), "histogram": _zeros(24)},
        )
        for name in ("Add", "Multiply"):
            yield "popops_elementwise", name, (t,), {"in1": _row(29, d), "in2": _row(29, d)[::-1].copy(), "out": _zeros(29, d)}
            yield "popops_elementwise", name, (t,), {"in1": _row(29, d), "in2": _row(1, d), "out": _zeros(29, d)}
        yield "popops_rows", "SumPieces", (t,), {"pieces": [_row(3, d), _row(5, d)], "output": _zeros(2, d)}
        yield (
            "popops_images",
            "NormaliseImage",
            (t, t),
            {"in": _row(15, d), "out": _zeros(20, d), "scales": _row(3, d), "offsets": _row(3, d), "inScale": d(0.5)},
        )
        for other in (F, H):
            yield (
                "popops_scaled_add",
                "ScaledAdd",
                (t, other),
                {"A": _row(29, d), "B": _row(29, DTYPES[other]), "scale": np.float32(0.3)},
            )
            yield "poplin_convolution", "ConvConversion", (t, other), {"partials": _row(29, d), "out": _zeros(29, DTYPES[other])}
        yield "popops_multi_slice", "MultiSlice", (t,), {**_LOOKUP, "baseT": _row(8, d), "subT": _zeros(6, d)}
        yield "popops_splines", "SplineWeighting", (t,), {
            "input": _row(6, d), "weight": _row(24, d), "basis": _row(6, d), "weightIndex": _whole(0, 1, 2, 0, 1, 2, type=np.int32),
            "output": _zeros(8, d), "offset": np.int32(2), "numInCh": np.int32(2), "numOutCh": np.int32(4), "numSplines": np.int32(2),
        }  # fmt: skip
        for name in ("InverseStdDeviationOfVariance", "InverseStdDeviationOfSquares"):
            yield (
                "poplin_norms",
                name,
                (t, F, t),
                {
                    "mean": _row(7, d),
                    "power": np.abs(_row(7)) + 3,
                    "iStdDev": _zeros(7, d),
                    "scaleVar": np.float32(0.5),
                    "eps": np.float32(0.25),
                },
            )
        yield "popnn_pooling", "SumPooling", (t,), {"out": _zeros(6, d), "in": _row(8, d), **_RUNS, "scales": _row(1)}
        yield (
            "popnn_pooling",
            "MaxPoolingGrad",
            (t,),
            {"out": _zeros(6, d), "in": _row(8, d), **_RUNS, "fwdActsIn": _row(6, d), "fwdActsOut": _row(8, d)},
        )
    for t in (S, U):
        d = DTYPES[t]
        yield "popops_encoding", "Iota", (t,), {"out": [_zeros(7, d), _zeros(2, d)], "offsets": _whole(5, 9, type=d)}
        yield (
            "popops_encoding",
            "EncodeOneHot",
            (t, F),
            {
                "indices": _whole(1, 7, 0, type=d),
                "out": _zeros(11),
                "On": np.float32(1),
                "Off": np.float32(0),
                "offset": np.int32(1),
                "sliceLength": np.int32(4),
            },
        )
        yield (
            "popops_topk",
            "CompareAndSwap",
            (t,),
            {"lower": _whole(1, 5, 3, type=d), "upper": _whole(2, 4, 3, type=d), "first": _zeros(3, d), "second": _zeros(3, d)},
        )
        yield "popops_scaled_add", "WholeAdd", (t,), {"A": _whole(1, 2, 3, type=d), "B": _whole(4, 5, 6, type=d), "scale": d(7)}
    yield (
        "popops_topk",
        "CompareAndSwap",
        (F,),
        {"lower": _some_nan(np.float32), "upper": _row(29)[::-1].copy(), "first": _zeros(29), "second": _zeros(29)},
    )
    yield "poptorch_integers", "NarrowChecked", (), {"in": _whole(1, -5, 7, type=np.int64), "out": _zeros(3, np.int32)}


TWINS = {
    f"{name}<{','.join(types)}>{number}": (file, name, types, values) for number, (file, name, types, values) in enumerate(_twins())
}


def _cpp_name(name, types):
    return f"{name}<{','.join(types)}>" if types else name


@functools.cache
def _in_cpp():
    """All of them, translated once."""
    made = {f"template struct {_cpp_name(name, types)};\n" for _, name, types, _ in TWINS.values() if types}
    return {codelet.name: codelet for codelet in codelets(TEXT + "".join(sorted(made)))}


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
    if types:
        arguments = tuple(BY_SPELLING[type] for type in types)
        found = found[arguments if len(arguments) > 1 else arguments[0]]
    (ours,) = collect(found)
    check_twin(ours, _in_cpp()[_cpp_name(name, types)], values)
