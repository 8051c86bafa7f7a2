#include <poplar/Vertex.hpp>

using namespace poplar;

class DotProductVertex : public Vertex {
public:
  Input<Vector<float>> a;
  Input<Vector<float>> b;
  Output<float> out;

  bool compute() {
    float total = 0;
    for (unsigned i = 0; i < a.size(); ++i)
      total += a[i] * b[i];
    *out = total;
    return true;
  }
};
