// The indices that one worker of a MultiVertex takes, as ipu.worker_range has them in Python: for (int i : pypoplar::workerRange(worker, out)).
// How many workers a tile has is workerCount(), which is ipu.worker_count.
// It is C++ that Poplar's compiler takes as well: copy the file to where it finds its headers.
#pragma once
#include <poplar/Vertex.hpp>

namespace pypoplar {

inline int workerCount() { return CTXT_WORKERS; }

struct WorkerRange {
  struct Place {
    int at;
    int operator*() const { return at; }
    Place &operator++() { ++at; return *this; }
    bool operator!=(const Place &other) const { return at != other.at; }
  };
  int first, last;
  Place begin() const { return {first}; }
  Place end() const { return {last}; }
};

inline WorkerRange __shares(int worker, int count, int grain) {
  int unit = CTXT_WORKERS * grain, share = (count + unit - 1) / unit * grain;
  int first = worker * share < count ? worker * share : count;
  return {first, first + share < count ? first + share : count};
}

// Of a number, and of a vector, of which each worker takes whole words of 8 bytes.
inline WorkerRange workerRange(unsigned worker, int count) { return __shares(worker, count, 1); }
inline WorkerRange workerRange(unsigned worker, unsigned count) { return __shares(worker, count, 1); }
template <class V> auto workerRange(unsigned worker, const V &of) -> decltype(of.size(), WorkerRange()) {
  return __shares(worker, of.size(), sizeof(of[0]) < 8 ? 8 / sizeof(of[0]) : 1);
}

} // namespace pypoplar
