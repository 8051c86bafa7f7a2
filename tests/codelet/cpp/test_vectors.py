"""Vectors of the hardware, bits seen as other types, structs in memory: what C++ computes, in both engines."""

# ruff: noqa: E501 - a line of C++ each
import numpy as np
import pytest

pytest.importorskip("clang")

from codelet_rig import module_from, run
from cpp_programs import codelet

from pypoplar import CodeletError
from pypoplar.codelet.cpp.porting import _Module

HEAD = """
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <ipu_intrinsics>
#include <ipu_memory_intrinsics>
#include <ipu_vector_math>
struct Point { int a; float b[2]; };
struct Pair { unsigned short first, second; };
union Bits { float f; unsigned u; };
union Words { float2 v; unsigned u[2]; half h[4]; };
static float2 sum2(float2 a, const float2 &b) { a += b; return a; }
static float2 sign(float2 a) { if (a[0] < 0) return -a; return a; }
template <class F> void each(F &&f, int n) { for (int i = 0; i < n; ++i) f(i); }
template <class F> float twice(F f, float x) { return f(f(x)); }
static void both(const int *p, int *least, int *most) { *least = p[0] < p[1] ? p[0] : p[1]; *most = p[0] < p[1] ? p[1] : p[0]; }
struct Complex {
  float2 v;
  Complex(float re, float im) : v{re, im} {}
  Complex operator*(const Complex &o) const { return Complex(v[0] * o.v[0] - v[1] * o.v[1], v[0] * o.v[1] + v[1] * o.v[0]); }
};
"""
FIELDS = "InOut<Vector<float>> x; InOut<Vector<int>> k; InOut<Vector<half>> h; InOut<Vector<unsigned short>> s; InOut<Vector<signed char>> c;"
X = np.array([1.5, -2.0, 0.25, 8.0, -0.5, 3.0, 7.0, 0.0], np.float32)
K = np.array([3, -7, 100, 0, 2**31 - 1, 5, -1, 9], np.int32)
H = np.array([0.5, -1.5, 2.0, 4.0, -0.25, 1.0, 3.0, 10.0], np.float16)
S = np.array([1, 65535, 3, 40000, 5, 6, 7, 8], np.uint16)
C = np.array([127, -128, 3, -1, 50, 100, 7, 8], np.int8)


def _bits(value):
    return np.float32(value).view(np.uint32)


# what is written, the field that shows it, and what its first elements are then
BODIES = {
    "literals": ("float2 v = {1, 2}; float2 w = {}; v[0] = 3; x[0] = v[0] + w[0]; x[1] = v[1];", "x", [3, 2]),
    "arithmetic": ("float2 v = {x[0], x[1]}; v = v * 2.0f + v; v -= float2{1, 1}; x[0] = v[0]; x[1] = v[1];", "x", [3.5, -7]),
    "a scalar for all": ("float k2 = x[2]; float2 v = {x[0], x[1]}; v = v * k2; v *= 2; x[0] = v[0]; x[1] = v[1];", "x", [0.75, -1]),
    "elements swapped": ("float2 v = {x[0], x[1]}; v = float2{v[1], v[0]}; x[0] = v[0]; x[1] = v[1];", "x", [-2, 1.5]),
    "an index at run time": ("int4 v = {1, 2, 3, 4}; int sum = 0; for (int i = 0; i < 4; ++i) { v[i] += i; sum += v[i]; } k[0] = sum;", "k", [16]),
    "pointers": ("float2 *p = reinterpret_cast<float2 *>(&x[2]); *p = -*p; p[1] = p[0]; ++p; (*p)[1] = 9;", "x", [1.5, -2, -0.25, -8, -0.25, 9]),
    "pointers of a field": ("half4 *p = (half4 *)&h[0]; p[1] += p[0]; *p++ = half4{1, 2, 3, 4};", "h", [1, 2, 3, 4, 0.25, -0.5, 5, 14]),
    "overlapping stores": ("float2 *p = (float2 *)&x[0], *q = (float2 *)&x[1]; *q = *p;", "x", [1.5, 1.5, -2, 8]),
    "comparisons": ("float4 v = {1, 2, 3, 4}; int4 m = v < float4{2, 2, 4, 4}; for (int i = 0; i < 4; ++i) k[i] = m[i];", "k", [-1, 0, -1, 0]),
    "choices": ("float2 a = {1, 5}, b = {3, 2}; float2 v = a < b ? a : b; float2 w = k[0] > 2 ? v : a; x[0] = w[0]; x[1] = w[1];", "x", [1, 2]),
    "narrow elements wrap": ("char4 *p = (char4 *)&c[0]; *p = *p + char4{1, -1, 1, 1}; ushort2 *q = (ushort2 *)&s[0]; c[4] = (*q + ushort2{1, 1})[1];", "c", [-128, 127, 4, 0, 0]),
    "integers": ("int2 v = {k[0], k[1]}; v = (v << 2) | 1; v = ~v; v = v / int2{2, 2} % 5; k[0] = v[0]; k[1] = v[1];", "k", [-2, 3]),
    "functions": ("float2 v = sum2(float2{1, 2}, float2{3, 4}); v = sum2(v, v); x[0] = v[0]; x[1] = v[1]; v = sign(v * -1.0f); x[2] = v[1];", "x", [8, 12, 12]),
    "conversions": ("float2 v = {1.75f, -2.5f}; int2 n = __builtin_convertvector(v, int2); k[0] = n[0]; k[1] = n[1]; half2 q = __builtin_convertvector(v, half2); k[2] = int(q[0] * 4);", "k", [1, -2, 7]),
    "bits of a vector": ("uint2 u = (uint2)float2{1.0f, -2.0f}; k[0] = u[0] >> 16; k[1] = u[1] >> 16; half2 q = {1, -2}; unsigned w = (unsigned)q; k[2] = w == 0xc0003c00u;", "k", [0x3F80, 0xC000, 1]),
    "shuffles": ("int2 a = {1, 2}, b = {3, 4}; int4 v = __builtin_shufflevector(a, b, 3, 1, 0, 2); k[0] = v[0]; k[1] = v[1]; k[2] = v[2];", "k", [4, 2, 1]),
    "members": ("Complex a(1, 2), b(3, -1); Complex d = a * b; x[0] = d.v[0]; x[1] = d.v[1];", "x", [5, 5]),
    "references": ("float4 v = {1, 2, 3, 4}; float4 &r = v; r[2] = 8; v[1] = 9; x[0] = v[1] + v[2];", "x", [17]),
    "math": ("float2 v = ipu::fmax(ipu::fabs(float2{x[0], x[1]}), float2{1, 3}); v = ipu::sqrt(v * v); x[0] = v[0]; x[1] = v[1]; half2 q = ipu::min(half2{1, 2}, half2{2, 1}); x[2] = q[0] + q[1]; x[3] = half2_fmax(q, half2{5, 0})[0];", "x", [1.5, 3, 2, 5]),
    "intrinsics": ("float2 v = {x[1], x[0]}; x[0] = __builtin_ipu_f32absadd(x[0], x[1]); v = __builtin_ipu_f32v2absmax(v, v); v = ipu::clamp(v, float2{0, 1.75f}); x[1] = v[0]; x[2] = v[1]; v = __builtin_ipu_roll32(float2{1, 2}, float2{3, 4}); x[3] = v[0] * 10 + v[1]; x[4] = __builtin_ipu_f16v2sum(half2{1, 2});", "x", [3.5, 1.75, 1.5, 23, 3]),
    "bytes by intrinsics": ("k[0] = __builtin_ipu_shuf8x8lo(0x04030201u, 0x14131211u); k[1] = __builtin_ipu_sort8x8hi(0x04030201u, 0x14131211u); k[2] = __builtin_ipu_shuf8x8hi(0x04030201u, 0x14131211u);", "k", [0x12021101, 0x14120402, 0x14041303]),
    "masks": ("x[0] = __builtin_ipu_andc_f32(x[1], -0.0f); float2 v = __builtin_ipu_or_v2f32(float2{x[0], x[2]}, float2{-0.0f, -0.0f}); x[1] = v[0]; x[2] = v[1];", "x", [2, -2, -0.25]),
    "loads that step": ("const float2 *p = (const float2 *)&x[0]; float2 *q = (float2 *)&x[4]; float2 v = ipu::load_postinc(&p, 2); ipu::store_postinc(&q, v, 1); ipu::store_postinc(&q, v + 1.0f, 1);", "x", [1.5, -2, 0.25, 8, 1.5, -2, 2.5, -1]),
    "a union": ("Bits b; b.f = x[0]; k[0] = b.u; b.u = 0x40000000u; x[0] = b.f; Words w; w.v = float2{1, 2}; w.u[1] ^= 0x80000000u; x[1] = w.v[1]; k[1] = w.h[1] > 1;", "k", [0x3FC00000, 1]),
    "a union written by parts": ("Words w = {float2{0, 0}}; w.h[3] = 2.0f; w.u[0] = 0x3f800000u; k[0] = w.u[1]; k[1] = int(w.v[0]);", "k", [0x40000000, 1]),
    "memcpy of bits": ("float f = x[0]; unsigned u; memcpy(&u, &f, 4); k[0] = u; u = 0x40400000u; memcpy(&f, &u, sizeof f); k[1] = int(f); float2 v; memcpy(&v, &x[0], 8); k[2] = int(v[1]);", "k", [0x3FC00000, 3, -2]),
    "casts of bits": ("float f = x[0]; k[0] = *(int *)&f; k[1] = *reinterpret_cast<const int *>(&x[1]); k[2] = __builtin_bit_cast(int, 1.0f); k[3] = std::bit_cast<int>(f); unsigned &u = reinterpret_cast<unsigned &>(x[2]); u ^= 0x80000000u; k[4] = int(x[2] * 4);", "k", [0x3FC00000, -0x40000000, 0x3F800000, 0x3FC00000, -1]),
    "wide numbers in narrow ones": ("unsigned *p = reinterpret_cast<unsigned *>(&s[0]); k[0] = p[1] >> 4; p[1] = 0x00050006u; k[1] = s[2]; k[2] = s[3]; p += 1; ++*p; k[3] = s[2];", "k", [(40000 * 65536 + 3) >> 4, 6, 5, 7]),
    "structs in a vector": ("const Pair *p = reinterpret_cast<const Pair *>(&s[0]); k[0] = p[1].first; k[1] = p->second; p += 2; Pair q = *p; k[2] = (*p).second + q.first;", "k", [3, 65535, 11]),
    "arrays of structs": ("Point p[3]; for (int i = 0; i < 3; ++i) { p[i].a = i; p[i].b[0] = i * 0.5f; p[i].b[1] = 7; } Point *q = &p[1]; q->b[1] = 2; ++q; (*q).a += 5; Point r = p[1]; p[0] = p[2]; k[0] = p[0].a; k[1] = int(r.b[1] + p[2].b[0]); k[2] = r.a;", "k", [7, 3, 1]),
    "arrays of structs with values": ("Pair p[3] = {{1, 2}, {3, 4}}; unsigned sum = 0; for (int i = 0; i < 3; ++i) sum += p[i].first * 10 + p[i].second; k[0] = sum;", "k", [46]),
    "addresses of locals": ("int least, most; both(&k[0], &least, &most); k[2] = least; k[3] = most; float part, whole; part = std::modf(x[0], &whole); k[4] = int(part * 10 + whole * 100);", "k", [3, -7, -7, 3, 105]),
    "lambdas given on": ("int sum = 0; each([&](int i) { sum += k[i]; }, 3); k[0] = sum; float a = 2; auto f = [=](float v) { return v * a; }; x[0] = twice(f, x[0]); k[1] = int(x[0]); std::for_each(&k[2], &k[4], [](int &v) { v = v + 1; });", "k", [96, 6, 101, 1]),
    "cmath": ("k[0] = int(std::round(2.5f)); k[1] = int(std::round(-2.5f)); k[2] = std::lround(0.49999997f); k[3] = std::signbit(-0.0f); k[4] = int(std::fdim(5.0f, 3.0f) + std::fdim(1.0f, 3.0f)); k[5] = int(std::ldexp(x[0], 5)); k[6] = int(std::round(std::cbrt(x[3])));", "k", [3, -3, 0, 1, 2, 48, 2]),
    "algorithms": ("k[0] = std::max_element(&k[0], &k[8]) - &k[0]; k[1] = *std::min_element(&k[2], &k[8]); std::reverse(&k[5], &k[8]); k[2] = std::count(&k[0], &k[8], 0);", "k", [4, -1, 1, 0, 2**31 - 1, 9, -1, 5]),
    "pointers that are chosen": ("const int *p = k[0] > 2 ? &k[1] : &k[2]; k[0] = *p;", "k", [-7]),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_what_cpp_computes_is_computed_here_and_by_what_is_ported(name):
    body, field, expected = BODIES[name]
    values = {"x": X, "k": K, "h": H, "s": S, "c": C}
    ours = codelet(body, FIELDS, HEAD)
    ran = run(ours, **values)
    assert ran.fault is None
    assert ran[field][: len(expected)] == expected
    module = _Module()
    module.add([ours])
    ported = run(module_from(module.text(["test.cpp"]))["Test"], **values)
    assert [ported[one] for one in values] == [ran[one] for one in values]
    assert ported.slots == ran.slots


REFUSED = {
    "float2 v = {1, 2}; x[0] = v[2];": "element 2 of a vector of 2",
    "float2 v = {1, 2}; x[0] = (v + v)[k[0]];": "in a variable of its own",
    "float2 v = __builtin_ipu_f32v2axpy(float2{1, 2}, float2{3, 4}); x[0] = v[0];": "registers of the accumulator",
    "__builtin_ipu_put(1, 2);": "control registers",
    "x[0] = __builtin_ipu_cmplt(x[0], x[1]);": "compare with <",
    "x[0] = __builtin_ipu_and_f32(x[0], x[1]);": "constant that is no NaN",
    "k[0] = __builtin_ipu_get_worker_id();": "compute of a MultiVertex",
    "const unsigned short *p = (const unsigned short *)&k[0]; k[1] = *p;": "smaller ones",
    "float f; memcpy(&f, &x[0], k[0]);": "known here",
    "x[0] = std::fma(x[0], x[1], x[2]);": r"write x \* y \+ z",
    "x[0] = std::round(x[0] * 0.1);": "computed in double",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_has_no_form_is_refused(body):
    with pytest.raises(CodeletError, match=REFUSED[body]):
        codelet(body, FIELDS, HEAD)
