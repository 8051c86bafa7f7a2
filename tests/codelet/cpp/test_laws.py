"""What the machine's own C++ compiler makes of a text is what a codelet of the same text computes, to the bit."""

# ruff: noqa: E501 - lines of C++ as they are
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

pytest.importorskip("clang")

from cpp_programs import COMPILER, LENGTH, TYPES, Drawn, compare

compiled = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler on this machine")


def _values(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    values = {}
    for name, type in TYPES.items():
        if name == "float":
            values[f"{name}s"] = random.choice(np.array([0.5, -1.25, 3.0, 1e6, -0.0, 7.75, 1e-3], type), LENGTH)
        else:
            limits = np.iinfo(type)
            values[f"{name}s"] = random.integers(limits.min, limits.max, LENGTH, dtype=type, endpoint=True)
    return values


def _law(data: st.DataObject, depth: int, count: int) -> None:
    drawn = Drawn(lambda options: data.draw(st.sampled_from(list(options))))
    compare(drawn.statements(depth, count), _values(data.draw(st.integers(0, 1000))))


@compiled
@pytest.mark.no_cover
@examples(40)
@given(st.data())
def test_expressions_and_assignments_are_those_of_cpp(data):
    _law(data, 0, 4)


@compiled
@pytest.mark.slow
@examples(60)
@given(st.data())
def test_loops_branches_and_lambdas_are_those_of_cpp(data):
    _law(data, 2, 4)


ENDS = (  # of loops, which another name than their own changes
    "int n = 3, c = 0; int &r = n; for (int i = 0; i < n; ++i) { if (i == 1) r = 5; ++c; } int32_ts[0] = c;",
    "int n = 3, c = 0; int *p = &n; for (int i = 0; i < n; ++i) { *p = 5; ++c; } int32_ts[0] = c;",
    "int n = 3, c = 0; auto f = [&] { n = 5; }; for (int i = 0; i < n; ++i) { f(); ++c; } int32_ts[0] = c;",
    "int n = 5, c = 0; auto f = [&n](int by) { n -= by; }; for (int i = 0; i < n; ++i) { f(1); ++c; } int32_ts[0] = c;",
)


@compiled
@pytest.mark.parametrize("body", ENDS)
def test_a_loop_whose_end_is_changed_by_another_name_has_the_rounds_of_cpp(body):
    compare(body, _values(0))


NAMED = """int twice(int x) { return 2 * x; } template <class T> T thrice(T x) { return 3 * x; }
int apply(int (*f)(int), int x) { return f(x) + 1; }
template <class F> int branch(F f, int x) { if (x > 3) return f(x); return f(x) - 1; }
void add(int *p, int n) { *p += n; }
"""
POINTERS = (  # to functions, always the same ones
    "const auto f = thrice<int>; int32_ts[0] = f(4); int (*g)(int) = &twice; int32_ts[1] = g(g(4));",
    "int32_ts[0] = apply(twice, 3) + apply(thrice<int>, 3); int32_ts[1] = branch(twice, 3) + branch(thrice<int>, 5);",
    "auto g = add; g(&int32_ts[1], 3); for (int i = 0; i < 3; ++i) g(&int32_ts[i], i);",
)


@compiled
@pytest.mark.parametrize("body", POINTERS)
def test_pointers_to_one_function_are_its_name(body):
    compare(body, _values(0), NAMED)


@compiled
def test_bits_of_a_word_are_counted_as_cpp_counts_them():
    compare(
        "uint32_ts[0] = __builtin_popcount(uint32_ts[1]) * 100 + __builtin_clz(uint32_ts[3] | 1) + __builtin_ctz(int32_ts[1] | 64);",
        _values(1),
    )


POINTED = """#include <utility>
struct It { int *p; void step(int n) { p += n; } };
struct Held { int *p; Held(int *q) : p(q) {} void step(int n) { p += n; } };
struct Pair { int *keys; float *values; void increment(int n) { keys += n; values += n; }
  void swapped(int d) { if (keys[0] > keys[d]) { std::swap(keys[0], keys[d]); std::swap(values[0], values[d]); } } };
"""
CALLS = (  # that change what other parts of an expression, or copies, are made of
    "int n = 0; auto f = [&] { n += 1; return n; }; int32_ts[3] = f() * 10 + f();",
    "int n = 0; auto f = [&] { n += 1; return int32_ts[n]; }; int32_ts[3] = (f() & 255) * 3 + (f() & 255);",
    "It a{&int32_ts[0]}; auto f = [&](int n) { a.step(n); return *a.p & 255; }; int32_ts[3] = f(1) * 10 + f(1);",
    "It a{&int32_ts[0]}; It b = a; b.p++; *a.p = 5; *b.p = 6; a.step(2); *a.p = 7; It c = a; c.step(1); *c.p = 8; *a.p += 1;",
    "It a{&int32_ts[0]}, b{&int32_ts[2]}; a = b; a.step(1); *a.p = 4; *b.p = 5;",
    "int *q = &int32_ts[0]; Held a(q), b(q); a.step(1); *a.p = 5; *b.p = 6; *q += 3; Held c = a; c.step(1); *c.p = 8; *a.p += 1;",
    "Pair t{&int32_ts[0], &floats[0]}; t.increment(1); t.swapped(2); t.increment(1); t.swapped(1); *t.values *= 2; *t.keys |= 3;",
)


@compiled
@pytest.mark.parametrize("body", CALLS)
def test_calls_of_lambdas_and_pointers_in_structs_are_those_of_cpp(body):
    compare(body, _values(0), POINTED)


VECTORS = """
#include <cstring>
typedef float float2 __attribute__((vector_size(8)));
typedef int int2 __attribute__((vector_size(8)));
typedef unsigned int uint2 __attribute__((vector_size(8)));
typedef short short2 __attribute__((vector_size(4)));
typedef unsigned char uchar4 __attribute__((vector_size(4)));
union Both { float f; unsigned u; };
struct Both16 { unsigned short low, high; };
"""
KINDS = {"float2": "float", "int2": "int32_t", "uint2": "uint32_t", "short2": "int16_t"}


def _vectors(choose):
    """A statement with vectors, casts of pointers or bits."""
    kind, at, to = choose(tuple(KINDS)), choose((0, 1, 2)), choose((0, 1, 2))
    field, symbol = f"{KINDS[kind]}s", choose("+-*") if kind == "float2" else choose("+-*&|^")
    load, store = f"*({kind} *)&{field}[{at}]", f"*({kind} *)&{field}[{to}]"
    match choose(("arithmetic", "compound", "choice", "bits", "union", "memcpy", "halves", "bytes", "lambda", "array")):
        case "arithmetic":
            return f"{{ {kind} v = {load}, w = {store}; v = v {symbol} w; v[{choose((0, 1))}] = 3; {store} = v; }}\n"
        case "compound":
            return f"{{ {kind} *p = ({kind} *)&{field}[0]; p[1] {symbol}= p[0]; ++p; (*p)[1] += (*p)[0]; }}\n"
        case "choice":
            less = choose(("<", ">=", "==", "!="))
            return f"{{ {kind} v = {load}, w = {store}; {store} = v {less} w ? v : -w; }}\n"
        case "bits":
            return f"{{ uint2 u = (uint2)*(float2 *)&floats[{at}]; u ^= 0x80000000u; *(float2 *)&floats[{to}] = (float2)u; }}\n"
        case "union":
            return f"{{ Both b; b.f = floats[{at}]; b.u ^= 0x00400000u; floats[{to}] = b.f; uint32_ts[{to}] = b.u; }}\n"
        case "memcpy":
            return f"{{ unsigned u; memcpy(&u, &floats[{at}], 4); uint32_ts[{to}] += u; memcpy(&floats[{to}], &u, sizeof u); }}\n"
        case "halves":
            return f"{{ Both16 *p = (Both16 *)&uint16_ts[{choose((0, 2))}]; p->low += p->high; Both16 q = *p; uint16_ts[{to}] = q.low; }}\n"
        case "bytes":
            return f"{{ uchar4 v = *(uchar4 *)&uint8_ts[0]; v += uchar4{{1, 200, 3, {at}}}; *(uchar4 *)&uint8_ts[0] = v; }}\n"
        case "lambda":
            return f"{{ int n = {at}; auto f = [n](int x) {{ return x + n; }}; n = 9; int32_ts[{to}] = f(int32_ts[{at}] & 255) + n; }}\n"
    return f"{{ {kind} a[2] = {{{load}, {store}}}; a[0] = a[1] {symbol} a[0]; {store} = a[{choose((0, 1))}]; }}\n"


@compiled
@pytest.mark.no_cover
@examples(40)
@given(st.data())
def test_vectors_and_casts_of_bits_are_those_of_cpp(data):
    def choose(options):
        return data.draw(st.sampled_from(list(options)))

    body = "".join(_vectors(choose) for _ in range(5))
    compare(body, _values(data.draw(st.integers(0, 1000))), VECTORS)
