#pragma once
#include <poplar/HalfFloat.hpp>
#include <poplar/QuarterFloat.hpp>
#include <poplar/VectorTypes.hpp>
typedef unsigned int rptsize_t;
