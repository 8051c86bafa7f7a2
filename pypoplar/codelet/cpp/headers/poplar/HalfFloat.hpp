#pragma once
typedef _Float16 half;
namespace poplar { using ::half; }
