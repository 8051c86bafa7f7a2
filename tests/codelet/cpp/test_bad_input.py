"""Files, flags and names that are wrong: each is an error with its place, and none is raw."""

# ruff: noqa: E501 - a line of C++ each

import io
import re

import numpy as np
import pytest

pytest.importorskip("clang")

from codelet_rig import run
from cpp_programs import codelet

from pypoplar import CodeletError, FileLoadError, Graph, Target
from pypoplar.errors import CodeletCompileError, UnknownVertexType

HEAD = "#include <poplar/Vertex.hpp>\nusing namespace poplar;\n"
SCALE = HEAD + "struct Scale : Vertex { int n; bool compute() { return true; } };\n"
TEMPLATE = HEAD + "namespace ns { template <class T, int N> struct Power : Vertex { T n; bool compute() { return true; } }; }\n"


@pytest.fixture
def graph():
    return Graph(Target.of_preset("bow"))


BAD = {  # of the text of a file, and its flags: the error and what it says
    "no semicolon": ("struct A : Vertex { int n; bool compute() { n = 1 return tru; } };", "", CodeletCompileError, r":3:50: expected ';'(.|\n)*:3:58: use of undeclared identifier 'tru'"),
    "a header that is not there": ('#include "nowhere.hpp"', "-Iinclude", CodeletCompileError, r"(?s):3:10: 'nowhere.hpp' file not found.*include \(no such directory\); give the directory by -Idir"),
    "no compute": ("struct A : Vertex { int n; };", "", CodeletError, r"A has no compute: write bool compute\(\)"),
    "a compute without a body": ("struct A : Vertex { int n; bool compute(); };", "", CodeletError, "no compute with a body"),
    "a function without a return": ("struct A : Vertex { int n; bool compute() { n = 1; } };", "", CodeletCompileError, ":3:52: non-void function does not return a value"),
    "a virtual compute": ("struct A : Vertex { int n; virtual bool compute() { return true; } };", "", CodeletError, "leave virtual out"),
    "a flag of no compiler": ("struct A : Vertex { int n; bool compute() { return true; } };", "-fwhat", CodeletCompileError, "compileFlags: unknown argument: '-fwhat'"),
    "a header of the heap": ("#include <vector>", "", CodeletCompileError, r"3:10: 'vector' file not found: the device has no vector: declare an array"),
    "a header of threads": ("#include <thread>", "", CodeletCompileError, "write a MultiVertex"),
    "nothing": ("", "", CodeletError, "has no codelets"),
    "vectors of vectors": ("struct A : Vertex { Input<Vector<Vector<float>>> x; bool compute() { return true; } };", "", CodeletError, "'x' is a vector of vectors"),
    "a plain field of vectors": ("struct A : Vertex { Vector<Vector<float>> x; bool compute() { return true; } };", "", CodeletError, "'x' is a vector of vectors"),
    "elements of double": ("struct A : Vertex { Input<Vector<double>> x; bool compute() { return true; } };", "", CodeletError, "elements of double"),
    "an input that is written": ("struct A : Vertex { Input<Vector<float>> x; bool compute() { x[0] = 1; return true; } };", "", CodeletCompileError, "returns a const value"),
    "an error of its own": ("#ifdef BAD\n#error stop\n#endif", "-DBAD", CodeletCompileError, r":4:2: .*stop"),
    "an assertion": ('static_assert(sizeof(long) == 8, "long");', "", CodeletCompileError, "static assertion failed"),
    "a file that includes itself": ('#include "loop.hpp"', "-I.", CodeletCompileError, "nested too deeply"),
    "a block without an end": ("struct A : Vertex { int n; bool compute() { return true; }", "", CodeletCompileError, r":4:1: expected '}'"),
    "a standard that is none": ("", "-std=c++71", CodeletCompileError, "unknown standard 'c\\+\\+71'; did you mean 'c\\+\\+17'"),
    "a standard that is too old": ("", "-std=c++98", CodeletCompileError, "unknown standard 'c\\+\\+98'"),
    "a definition without a name": ("", "-D=3", CodeletCompileError, "^compileFlags: macro name must be an identifier"),
    "a header of the flags that is not there": ("", "-include no.h", CodeletCompileError, "^compileFlags: 'no.h' file not found"),
    "directories that are not there": ('#include "no.hpp"', "-isystem here -Ithere -I .", CodeletCompileError, r"here \(no such directory\), there \(no such directory\), \.;"),
    "an expression that is too deep": ("struct A : Vertex { int n; bool compute() { n = " + "1 + n * (" * 250 + "1" + ")" * 250 + "; return true; } };", "", CodeletError, "nested too deeply"),
    "a sum that is too long": ("struct A : Vertex { int n; bool compute() { n = " + "n + " * 3000 + "1; return true; } };", "", CodeletError, "nested too deeply"),
    "half of a character": ("// \ud800", "", FileLoadError, r"not UTF-8: character \d+ is '\\ud800'"),
    "a flag that is none": ("", "--opt", CodeletCompileError, "unknown flag '--opt'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_an_error_with_its_place(graph, tmp_path, monkeypatch, name):
    text, flags, error, message = BAD[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.hpp").write_text('#include "loop.hpp"\n')
    with pytest.raises(error, match=message):
        graph.addCodelets(io.StringIO(f"#include <poplar/Vertex.hpp>\nusing namespace poplar;\n{text}\n"), compileFlags=flags)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("terms", [100, 150, 170, 200])
def test_a_long_sum_is_whole_or_refused(terms):
    """No part of a tree is lost where Python's stack ends."""
    try:
        made = codelet("n = " + "n + " * terms + "1;", "int n;")
    except CodeletError as problem:
        assert "nested too deeply" in str(problem)  # noqa: PT017 - or it runs
    else:
        assert run(made, n=np.int32(2))["n"] == [2 * terms + 1]


def test_a_vertex_without_compute_beside_others_is_named(graph, tmp_path):
    for _ in range(2):  # and what is kept knows it, too
        graph = Graph(Target.of_preset("bow"))
        graph.addCodelets(io.StringIO(SCALE + "struct Bare : Vertex { int n; };\n"))
        with pytest.raises(UnknownVertexType, match=r"'Bare': the class of that name in .* has no compute; write bool compute"):
            graph.addVertex(graph.addComputeSet("set"), "Bare")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ns::Power<>", "too few template arguments"),
        ("ns::Power<int,2,3>", "too many template arguments"),
        ("ns::Power<int>>", "is no instance of the template|no codelet"),
        ("ns::Power<int", "no codelet is called"),
        ("", "no codelet is called ''"),
    ],
)
def test_names_with_wrong_arguments_are_refused(graph, name, message):
    graph.addCodelets(io.StringIO(TEMPLATE))
    with pytest.raises(UnknownVertexType, match=message) as raised:
        graph.addVertex(graph.addComputeSet("set"), name)
    assert not re.search(r"compileFlags|pypoplar_probe", str(raised.value))
