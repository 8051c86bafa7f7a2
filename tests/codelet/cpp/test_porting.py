"""`pypoplar port` writes Python that computes and costs the same; `pypoplar check` lists all that has no form."""

import linecache

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("clang")

from codelet_rig import module_from, run
from cpp_programs import codelets

from pypoplar import INT, Graph, Target
from pypoplar.cli import main
from pypoplar.codelet.cpp.porting import _Module
from pypoplar.codelet.registry import collect

HEAD = "#include <poplar/Vertex.hpp>\nusing namespace poplar;\n"
TEXT = """
static const float TAPS[3] = {0.25f, 0.5f, 0.25f};

template <typename T> inline T twice(T x) { return x + x; }

template <typename T>
class Smooth : public MultiVertex {
public:
  Input<Vector<T>> in;
  Output<Vector<T>> out;
  int offset;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < in.size(); i += 6) {
      float sum = 0;
      for (int k = 0; k < 3; ++k)
        if (i + k >= 1 && i + k - 1 < in.size())
          sum += TAPS[k] * in[i + k - 1];
      out[i] = twice(T(sum)) + offset / 2;
    }
    return true;
  }
};
template class Smooth<float>;
template class Smooth<half>;
"""
BAD = """
class Bad : public Vertex {
public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  bool compute() {
    double d = in[0];
    out[0] = d * 2;
    out[1] = in[0] * 0.1;
    int *p = new int[3];
    return true;
  }
};
"""


def _file(tmp_path, text):
    file = tmp_path / "codelets.cpp"
    file.write_text(HEAD + text)
    return str(file)


@pytest.mark.parametrize("number", [0, 1])
def test_what_is_ported_computes_and_costs_the_same(tmp_path, number):
    told = CliRunner().invoke(main, ["port", _file(tmp_path, TEXT)])
    assert told.exit_code == 0, told.output
    assert 'class Smooth_float(MultiVertex, name="Smooth<float>"):' in told.stdout
    assert "for i in range(worker, len(self.in_), 6):" in told.stdout
    names = module_from(told.stdout)
    original = codelets(TEXT)[number]
    type = (np.float32, np.float16)[number]
    ported = names["Smooth_" + ("float", "half")[number]]
    values = {"in": np.arange(11, dtype=type), "out": np.zeros(11, type), "offset": np.int32(-3)}
    ours, theirs = run(original, **values), run(ported, **values)
    assert ours["out"] == theirs["out"]
    assert ours["out"][1] == 2.0 - 1.0
    assert ours.slots == theirs.slots


def test_instances_that_differ_in_their_type_alone_are_one_generic_class(tmp_path):
    text = "template <class T> struct Copy : Vertex { Input<Vector<T>> x; Output<Vector<T>> y; int n;"
    text += " bool compute() { for (int i = 0; i < n; ++i) y[i] = x[i]; return true; } };\n"
    told = CliRunner().invoke(main, ["port", _file(tmp_path, text + "template struct Copy<float>; template struct Copy<int>;\n")])
    assert "T = TypeVar('T', FLOAT, INT)" in told.stdout.replace('"', "'")
    assert "class Copy(Vertex, Generic[T]):\n    x: Input[Vector[T]]\n    y: Output[Vector[T]]\n    n: INT\n" in told.stdout
    copy = module_from(told.stdout)["Copy"]

    x = np.arange(4, dtype=np.int32)
    (instance,) = collect(copy[INT])
    assert run(instance, x=x, y=np.zeros(4, np.int32), n=np.int32(3))["y"] == [0, 1, 2, 0]


def test_the_file_that_is_written_is_added_as_any_other(tmp_path):
    output = tmp_path / "codelets.py"
    told = CliRunner().invoke(main, ["port", _file(tmp_path, TEXT), "-o", str(output)])
    assert (told.exit_code, told.output) == (0, "")
    graph = Graph(Target.of_preset("bow"))
    graph.addCodelets(output)
    assert graph.hasCodelet("Smooth<half>")
    linecache.checkcache(str(output))


def test_what_has_no_form_is_told_by_both(tmp_path):
    file = _file(tmp_path, BAD + TEXT)
    checked = CliRunner().invoke(main, ["check", file])
    assert checked.exit_code == 1
    lines = [line for line in checked.stdout.splitlines() if line.startswith(file)]
    assert [line.split(":")[1] for line in lines[:4]] == ["9", "10", "11", "12"]
    assert lines[4:] == [f"{file}: runs: Smooth<float>", f"{file}: runs: Smooth<half>"]
    ported = CliRunner().invoke(main, ["port", file])
    assert ported.exit_code == 1
    assert "def Bad():\n    raise NotImplementedError(" in ported.stdout
    assert ported.stderr.count("Error: ") == 4


def test_a_template_without_instance_is_told_with_what_to_write(tmp_path):
    file = _file(tmp_path, TEXT.partition("template class")[0])
    told = CliRunner().invoke(main, ["check", file])
    assert told.exit_code == 0
    assert "Smooth is a template without an instance: write template class Smooth<float>;" in told.stdout


METHODS = """struct Loops : Vertex {
  InOut<Vector<float>> x; int n, m;
  void reads(int i) { x[i] += n; }
  void writes() { m -= 1; }
  bool compute() {
    for (int i = 0; i < n * 2; ++i) reads(i);
    for (int i = 0; i < m; ++i) writes();
    return true;
  }
};
"""


def test_loops_count_where_the_methods_that_they_call_leave_their_end_alone():
    (loops,) = codelets(METHODS)
    module = _Module()
    module.add([loops])
    text = module.text(["loops.cpp"])
    assert "for i in range(self.n * 2):" in text
    assert "while i < self.m:" in text
    assert run(loops, x=np.zeros(6, np.float32), n=np.int32(3), m=np.int32(5))["x"] == [3.0] * 6
