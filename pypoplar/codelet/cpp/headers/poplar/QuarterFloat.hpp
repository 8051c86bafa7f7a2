// FP8 is declared, so that templates that have instances of it are parsed; a codelet that has it is refused by name.
#pragma once
namespace poplar {
struct quarter_metadata {
  enum class format { quarter143, quarter152 };
  format fmt;
  signed char scale;
};
struct quarter {
  unsigned char bits;
  static float toFloat(quarter value, quarter_metadata metadata);
  static quarter fromFloat(float value, quarter_metadata metadata);
};
float toFloat(quarter value, quarter_metadata metadata);
_Float16 toHalf(quarter value, quarter_metadata metadata);
} // namespace poplar
using poplar::quarter;
using poplar::quarter_metadata;
