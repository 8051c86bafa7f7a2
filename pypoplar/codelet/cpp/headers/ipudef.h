#pragma once
#include <poplar/HalfFloat.hpp>
#include <poplar/VectorTypes.hpp>
