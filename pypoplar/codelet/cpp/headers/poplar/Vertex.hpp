// What codelets of Poplar include, declared for pypoplar: names and meanings are Poplar's, the text is ours.
#pragma once
#include <poplar/VectorTypes.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ipu_intrinsics>
#include <limits>
#include <type_traits>
#include <utility>

#include <tileimplconsts.h>
#define WORKER_ALIGN

namespace poplar {

enum class VectorLayout { ONE_PTR, SPAN, DELTAN, SCALED_PTR32, SCALED_PTR64, SCALED_PTR128, SHORT_SPAN, COMPACT_PTR, NOT_APPLICABLE };
enum class VectorListLayout { ONE_PTR, SCALED_PTR32, SCALED_PTR64, SCALED_PTR128, DELTAN, DELTANELEMENTS, COMPACT_DELTAN, NOT_APPLICABLE };

template <class T, VectorLayout Layout = VectorLayout::SPAN, unsigned Alignment = alignof(T), bool Interleaved = false>
struct Vector {
  using value_type = T;
  T &operator[](unsigned index) const;
  unsigned size() const;
  T *begin() const;
  T *end() const;
  T *data() const;
};

template <class T, VectorListLayout Layout = VectorListLayout::DELTAN, unsigned Alignment = alignof(T), bool Interleaved = false>
struct VectorList {
  struct Row {
    T &operator[](unsigned index) const;
    unsigned size() const;
    T *begin() const;
    T *end() const;
    T *data() const;
  };
  Row &operator[](unsigned index) const;
  unsigned size() const;
  Row *begin() const;
  Row *end() const;
};

struct EdgeOf {};

template <class T> struct Input : EdgeOf {
  operator const T &() const;
  const T &operator*() const;
  const T *operator->() const;
};
template <class T> struct Output : EdgeOf {
  operator T &() const;
  T &operator*() const;
  T *operator->() const;
  T &operator=(const T &value);
};
template <class T> struct InOut : EdgeOf {
  operator T &() const;
  T &operator*() const;
  T *operator->() const;
  T &operator=(const T &value);
  T &operator+=(const T &value);
  T &operator-=(const T &value);
  T &operator*=(const T &value);
  T &operator/=(const T &value);
};

#define PYPOPLAR_VECTOR_EDGE(EDGE, ELEMENT)                                                      \
  template <class T, VectorLayout Layout, unsigned Alignment, bool Interleaved>                  \
  struct EDGE<Vector<T, Layout, Alignment, Interleaved>> : EdgeOf {                              \
    using value_type = T;                                                                        \
    ELEMENT &operator[](unsigned index) const;                                                   \
    unsigned size() const;                                                                       \
    ELEMENT *begin() const;                                                                      \
    ELEMENT *end() const;                                                                        \
    ELEMENT *data() const;                                                                       \
  };                                                                                             \
  template <class T, unsigned Alignment, bool Interleaved>                                       \
  struct EDGE<Vector<T, VectorLayout::ONE_PTR, Alignment, Interleaved>> : EdgeOf {               \
    using value_type = T;                                                                        \
    template <class I> ELEMENT &operator[](I index) const;                                       \
    ELEMENT *begin() const;                                                                      \
    ELEMENT *data() const;                                                                       \
    operator ELEMENT *() const;                                                                  \
  };                                                                                             \
  template <class T, unsigned Alignment, bool Interleaved>                                       \
  struct EDGE<Vector<T, VectorLayout::COMPACT_PTR, Alignment, Interleaved>> : EdgeOf {           \
    using value_type = T;                                                                        \
    template <class I> ELEMENT &operator[](I index) const;                                       \
    ELEMENT *begin() const;                                                                      \
    ELEMENT *data() const;                                                                       \
    operator ELEMENT *() const;                                                                  \
  };                                                                                             \
  template <class T, VectorListLayout Layout, unsigned Alignment, bool Interleaved>              \
  struct EDGE<VectorList<T, Layout, Alignment, Interleaved>> : EdgeOf {                          \
    using value_type = T;                                                                        \
    struct Row {                                                                                 \
      ELEMENT &operator[](unsigned index) const;                                                 \
      unsigned size() const;                                                                     \
      ELEMENT *begin() const;                                                                    \
      ELEMENT *end() const;                                                                      \
      ELEMENT *data() const;                                                                     \
    };                                                                                           \
    Row &operator[](unsigned index) const;                                                       \
    unsigned size() const;                                                                       \
    Row *begin() const;                                                                          \
    Row *end() const;                                                                            \
  };

PYPOPLAR_VECTOR_EDGE(Input, const T)
PYPOPLAR_VECTOR_EDGE(Output, T)
PYPOPLAR_VECTOR_EDGE(InOut, T)
#undef PYPOPLAR_VECTOR_EDGE

// A list of rows is written as a vector of edges, too.
template <template <class> class Edge, class T> struct RowsOfEdges {
  Edge<T> &operator[](unsigned index) const;
  unsigned size() const;
  Edge<T> *begin() const;
  Edge<T> *end() const;
};
template <class T, VectorLayout Layout, unsigned Alignment, bool Interleaved>
struct Vector<Input<T>, Layout, Alignment, Interleaved> : RowsOfEdges<Input, T> {};
template <class T, VectorLayout Layout, unsigned Alignment, bool Interleaved>
struct Vector<Output<T>, Layout, Alignment, Interleaved> : RowsOfEdges<Output, T> {};
template <class T, VectorLayout Layout, unsigned Alignment, bool Interleaved>
struct Vector<InOut<T>, Layout, Alignment, Interleaved> : RowsOfEdges<InOut, T> {};

struct VertexBase {};
struct Vertex : VertexBase {
  static constexpr bool isExternalCodelet = false;
};
struct MultiVertex : VertexBase {
  static constexpr unsigned numWorkers() { return CTXT_WORKERS; }
};
struct SupervisorVertex : VertexBase {};

template <bool Condition> struct SupervisorVertexIf : Vertex {};
template <> struct SupervisorVertexIf<true> : SupervisorVertex {};
template <bool Condition> struct MultiVertexIf : Vertex {};
template <> struct MultiVertexIf<true> : MultiVertex {};

template <class T> using ReadOnly = const T;

} // namespace poplar
