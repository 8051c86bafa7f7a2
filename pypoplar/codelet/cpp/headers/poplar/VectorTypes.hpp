#pragma once
#include <poplar/HalfFloat.hpp>
#define PYPOPLAR_VECTORS(NAME, TYPE)                                                             \
  typedef TYPE NAME##2 __attribute__((vector_size(2 * sizeof(TYPE))));                           \
  typedef TYPE NAME##4 __attribute__((vector_size(4 * sizeof(TYPE))));
PYPOPLAR_VECTORS(float, float) PYPOPLAR_VECTORS(half, half) PYPOPLAR_VECTORS(int, int) PYPOPLAR_VECTORS(uint, unsigned int)
PYPOPLAR_VECTORS(short, short) PYPOPLAR_VECTORS(ushort, unsigned short) PYPOPLAR_VECTORS(char, signed char)
PYPOPLAR_VECTORS(uchar, unsigned char) PYPOPLAR_VECTORS(longlong, long long) PYPOPLAR_VECTORS(ulonglong, unsigned long long)
#undef PYPOPLAR_VECTORS
typedef long long2 __attribute__((vector_size(8)));
typedef unsigned long ulong2 __attribute__((vector_size(8)));
// What libclang's tree has no names for is called as a function.
template <class T, class V> T __pypoplar_convert(V value);
template <class T, class V> T __pypoplar_bits(V value);
#define __builtin_convertvector(value, type) __pypoplar_convert<type>(value)
#define __builtin_bit_cast(type, value) __pypoplar_bits<type>(value)
