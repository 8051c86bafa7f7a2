#pragma once
#include <stddef.h>
extern "C" void *memcpy(void *target, const void *source, size_t bytes);
extern "C" void *memset(void *target, int value, size_t bytes);
