#pragma once
#include <cmath>
using std::isnan; using std::isinf; using std::isfinite;
