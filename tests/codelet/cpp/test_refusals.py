"""What device code cannot do is refused with file, line and what to write instead."""

# ruff: noqa: E501 - lines of C++ as they are

import re

import pytest

pytest.importorskip("clang")

from cpp_programs import codelet, codelets

from pypoplar import CodeletError

FIELDS = "Input<Vector<float>> in; Output<Vector<float>> out; float x; int n;"
BODIES = {
    "int *p = new int[4]; n = *p;": "no heap",
    "goto end; end: n = 1;": "goto",
    "throw 3;": "cannot use 'throw'|no exceptions",
    'asm volatile("add $m0, $m1, $m2");': "inline assembler",
    "out[0] = in[0] * 0.1;": r"double.*0\.5f",
    "double d = in[0]; out[0] = d;": "is a double",
    "const float *p = n ? &in[0] : &out[0]; out[1] = *p;": "write if and else",
    "const float *p = &in[0]; p = &out[0]; out[1] = *p;": "use two pointers",
    "static int count = 0; n = ++count;": "static",
    "switch (n) { case 0: n = 1; case 1: n = 2; break; }": "end it with break",
    "int k; if (x > 0) k = 1; n = k;": "may be unassigned",
    "out[-1] = 1;": "before the first element",
    "const int *p = nullptr; n = *p;": "null pointer",
    "const char *p = (const char *)&in[0]; n = *p;": "read the elements as they are",
    "in.nothing();": "no member named 'nothing'",
}


@pytest.mark.parametrize("body", BODIES)
def test_statements_without_a_form_are_refused_at_their_line(body):
    with pytest.raises(CodeletError, match=BODIES[body]) as raised:
        codelet(f"n = 0;\n{body}", FIELDS)
    assert "<text>:9:" in str(raised.value)


MEMBERS = {
    "float *p;": "is a pointer.*Vector",
    "float taps[4];": "is an array.*Vector",
    "double d;": "is a double",
    "struct P { int a; } p;": "fields are numbers",
}


@pytest.mark.parametrize("member", MEMBERS)
def test_fields_without_a_form_are_refused_at_their_line(member):
    with pytest.raises(CodeletError, match=MEMBERS[member]) as raised:
        codelet("", member)
    assert "<text>:6" in str(raised.value)


FUNCTIONS = {
    "int f(int k) { return k ? f(k - 1) : 0; }": "recursion",
    "int f(int k);": "has no body",
    "struct B { virtual int g() { return 1; } }; int f(int k) { B b; return b.g(); }": "virtual",
    "int g(int k) { return k; } int f(int k) { int (*h)(int) = g; if (k) h = f; return h(k); }": "pointer to a function that may be another",
    "int g(int k) { return k; } int h(int (*p)(int), int k) { if (k) p = g; return p(k); } int f(int k) { return h(g, k); }": "may be another",
}


@pytest.mark.parametrize("before", FUNCTIONS)
def test_functions_without_a_form_are_refused(before):
    with pytest.raises(CodeletError, match=FUNCTIONS[before]):
        codelet("n = f(n);", "int n;", before)


WORKERS = {
    'asm volatile("setzi $m1, entry\\n runall $m1, $m0, 0\\n" :: :"memory");': "workers started by assembler: write a MultiVertex",
    'asm volatile("run $m1, $m0, 0");': "workers started by assembler: write a MultiVertex",
    'asm volatile("sync 1\\n" :::"memory");': "a wait for workers in assembler: write a MultiVertex",
    "n = __builtin_ipu_get_worker_id();": "bool compute\\(unsigned worker\\)",
}


@pytest.mark.parametrize("body", WORKERS)
def test_a_supervisor_that_starts_workers_is_told_to_be_a_multivertex(body):
    text = f'struct Start : SupervisorVertex {{\nint n;\n__attribute__((target("supervisor"))) bool compute() {{\n{body}\nreturn true;\n}}\n}};'
    with pytest.raises(CodeletError, match=WORKERS[body]) as raised:
        codelets(text)
    assert "<text>:6:" in str(raised.value)


def test_a_supervisor_that_starts_no_workers_is_a_codelet():
    text = 'struct One : SupervisorVertex { InOut<int> n; __attribute__((target("supervisor"))) bool compute() { *n += 1; return true; } };'
    (found,) = codelets(text)
    assert found.kind == "supervisor"


def test_a_class_without_compute_is_refused():
    with pytest.raises(CodeletError, match=r"no codelets|no compute"):
        codelets("class A : public Vertex { public: int n; };\n")


def test_a_refusal_shows_the_line_and_a_caret():
    with pytest.raises(CodeletError) as raised:
        codelet("out[0] = in[0] * 0.1;", FIELDS)
    lines = str(raised.value).splitlines()
    assert re.match(r"<text>:8: Test: this is computed in double", lines[0])
    assert lines[1:] == ["    out[0] = in[0] * 0.1;", "             ^^^^^^^^^^^"]


MACHINE = "#include <tileimplconsts.h>\n#include <ipu_intrinsics>\nint f(unsigned k) { return k; }\n"
PRIVATE = {
    "n = CSR_W_FP_CTL__INDEX;": "'CSR_W_FP_CTL__INDEX' is a number of the machine that is not public",
    "n &= CSR_W_WSR__CTXTID_M1__MASK;": "'CSR_W_WSR__CTXTID_M1__MASK' is a number of the machine",
    "n = f(TMEM_ELEMSIZE);": "'TMEM_ELEMSIZE' is a number of the machine",
    "const unsigned *p = &TMEM_ELEMSIZE; n = *p;": "'TMEM_ELEMSIZE' is a number of the machine",
    "n = CSR_W_OTHER__INDEX;": "undeclared identifier 'CSR_W_OTHER__INDEX': CSR_W_OTHER__INDEX is a number of the machine",
    "constexpr int k = TMEM_ELEMSIZE; n = k;": "constant expression: TMEM_ELEMSIZE is a number of the machine",
    "#if TMEM_ELEMSIZE > 4\nn = 1;\n#endif": "not defined, evaluates to 0: TMEM_ELEMSIZE is a number of the machine",
    "n = __builtin_ipu_get(CSR_S_SCOUNT_L__INDEX);": "control registers have no form here",
}


@pytest.mark.parametrize("body", PRIVATE)
def test_numbers_of_the_machine_that_are_not_public_are_refused(body):
    with pytest.raises(CodeletError, match=PRIVATE[body]):
        codelet(f"n = 0;\n{body}", "int n;", MACHINE)


def test_the_number_of_workers_is_known_and_conditions_on_other_names_are_of_cpp():
    found = codelet("#if OTHER\nn = 1;\n#endif\n*n = CTXT_WORKERS;", "Output<int> n;", MACHINE)
    assert found.name == "Test"
