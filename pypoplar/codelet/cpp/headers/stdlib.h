#pragma once
#include <stddef.h>
#include <cmath>
