"""Codelets derived from other classes and from templates: fields and compute of their bases are theirs."""

# ruff: noqa: E501 - a class in a line
import io

import numpy as np
import pytest

pytest.importorskip("clang")

from codelet_rig import run
from cpp_programs import codelets

from pypoplar import CodeletError, Graph, Target
from pypoplar.errors import CodeletCompileError

FIELDS = "Input<Vector<T>> in; Output<Vector<T>> out; T k; T twice(T v) { return v * 2; }"
LOOP = "for (unsigned i = 0; i < in.size(); ++i) out[i] = twice(in[i]) * k; return true;"
BASE = f"template <class T> struct Base : Vertex {{ {FIELDS} bool compute() {{ {LOOP} }} }};\n"
BARE = f"template <class T> struct Base : Vertex {{ {FIELDS} }};\n"
OWN = "for (unsigned i = 0; i < this->in.size(); ++i) this->out[i] = this->twice(this->in[i]) * this->k; return true;"
DERIVED = {
    "a template of a template": BASE + "template <class T> struct C : Base<T> {};\ntemplate struct C<float>;",
    "a class of an instance": BASE + "struct C : Base<float> {};",
    "a class with a compute of its own": BARE + f"struct C : Base<float> {{ bool compute() {{ {LOOP} }} }};",
    "a template with a compute of its own": BARE
    + f"template <class T> struct C : Base<T> {{ bool compute() {{ {OWN} }} }};\ntemplate struct C<float>;",
    "names that are taken over": BARE
    + "template <class T> struct C : Base<T> { using Base<T>::in; using Base<T>::out; using Base<T>::k; using Base<T>::twice;"
    + f" bool compute() {{ {LOOP} }} }};\ntemplate struct C<float>;",
    "a compute that calls that of the base": BASE
    + "template <class T> struct C : Base<T> { bool compute() { return Base<T>::compute(); } };\ntemplate struct C<float>;",
    "a base of a base": BASE
    + "template <class T, int N> struct Middle : Base<T> {};\ntemplate <class T> struct C : Middle<T, 2> {};\ntemplate struct C<float>;",
    "a class of a base of a base": BASE + "template <class T> struct Middle : Base<T> {};\nstruct C : Middle<float> {};",
    "a specialised base": f"template <class> struct Base;\ntemplate <> struct Base<float> : Vertex {{ using T = float; {FIELDS} bool compute() {{ {LOOP} }} }};\nstruct C : Base<float> {{}};",
    "a base that has an instance": BASE + "template struct Base<float>;\nstruct C : Base<float> {};",
    "a compute behind the class": BARE.replace("};\n", "bool compute(); };\n")
    + f"template <class T> bool Base<T>::compute() {{ {LOOP} }}\nstruct C : Base<float> {{}};",
    "another name of the base": BASE + "using Named = Base<float>;\nclass C : public Named {};",
    "a base that knows the class": "template <class D> struct Base : Vertex { Input<Vector<float>> in; Output<Vector<float>> out; float k;"
    " bool compute() { for (unsigned i = 0; i < in.size(); ++i) out[i] = static_cast<D *>(this)->twice(in[i]) * k; return true; } };\n"
    "struct C : Base<C> { float twice(float v) { return v * 2; } };",
    "workers": BASE.replace(": Vertex", ": MultiVertex")
    .replace("compute()", "compute(unsigned worker)")
    .replace("i = 0; ", "i = worker; ")
    .replace("++i", "i += numWorkers()")
    + "struct C : Base<float> {};",
    "no template": BASE.replace("template <class T> struct Base : Vertex {", "struct Base : Vertex { using T = float;")
    + "struct C : Base {};",
}


@pytest.mark.parametrize("name", DERIVED)
def test_a_derived_class_has_the_fields_and_the_compute_of_its_bases(name):
    found = {one.name.removesuffix("<float>"): one for one in codelets(f"{DERIVED[name]}\n")}
    assert [field.name for field in found["C"].fields] == ["in", "out", "k"]
    ran = run(found["C"], **{"in": np.arange(4, dtype=np.float32), "out": np.zeros(4, np.float32), "k": np.float32(2)})
    assert ran["out"] == [0.0, 4.0, 8.0, 12.0]


def test_fields_of_bases_come_first_and_a_method_hides_that_of_the_base():
    text = BASE + "struct C : Base<float> { float more; float twice(float v) { return v * 3; } bool compute() { "
    (found,) = (one for one in codelets(f"{text}{LOOP.replace('* k', '* k + more')} }} }};\n") if one.name == "C")
    assert [field.name for field in found.fields] == ["in", "out", "k", "more"]
    ran = run(found, **{"in": np.ones(1, np.float32), "out": np.zeros(1, np.float32), "k": np.float32(2), "more": np.float32(1)})
    assert ran["out"] == [7.0]


def test_an_instance_of_a_derived_template_is_made_by_its_name():
    graph = Graph(Target.of_preset("bow"))
    text = "#include <poplar/Vertex.hpp>\nusing namespace poplar;\n" + BASE + "template <class T> struct C : Base<T> {};\n"
    graph.addCodelets(io.StringIO(text))
    graph.addVertex(graph.addComputeSet("set"), "C<half>")
    assert "C<half>" in graph.getVertexTypes()


REFUSED = {
    "template <class B> struct M : B { int n; bool compute() { return true; } };\ntemplate struct M<Vertex>;": r":3: M<Vertex>: which class 'B' is depends on arguments: derive from a class",
    "template <class B> struct M : B { int n; bool compute() { return true; } };\nstruct R : M<Vertex> {};": r":3: R: which class 'B' is",
    "template <class... B> struct M : B... { int n; bool compute() { return true; } };\ntemplate struct M<Vertex>;": r":3: M<Vertex>: which class 'B' is",
    "template <class T> struct B : Vertex { T n; bool compute() { return true; } };\nstruct R : B<int> { int n; };": r":4: R: field 'n' is that of a base",
    "template <class T> struct B : Vertex { T n; };\nstruct R : B<int> {};": "R has no compute: write bool compute",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_bases_without_a_form_are_refused_at_their_line(text):
    with pytest.raises(CodeletError, match=REFUSED[text]):
        codelets(f"{text}\n")


def test_an_error_in_a_base_that_only_an_instance_has_is_shown():
    with pytest.raises(CodeletCompileError, match="type 'int' cannot be used prior to '::'"):
        codelets(
            "template <class T> struct B : Vertex { T n; bool compute() { n = T::none; return true; } };\nstruct R : B<int> {};\n"
        )
