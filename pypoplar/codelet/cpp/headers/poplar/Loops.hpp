// The type of a hardware repeat's count.
#pragma once
namespace poplar {
using rptsize_t = unsigned;
} // namespace poplar
