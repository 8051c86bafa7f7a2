"""`Graph.addCodelets` takes C++: files and texts, names, flags, templates, headers of the user's."""

# ruff: noqa: E501 - lines of C++ as they are
import io
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("clang")

from codelet_rig import run, vertex
from cpp_programs import codelet, codelets

from pypoplar import (
    FLOAT,
    INT,
    UNSIGNED_INT,
    CodeletCompileError,
    CodeletError,
    CodeletFileType,
    Engine,
    FileLoadError,
    Graph,
    IPUModel,
    MissingFeature,
    PoplarTypeError,
    Target,
    UnknownVertexType,
    program,
)
from pypoplar.cli import main
from pypoplar.codelet.cpp import door
from pypoplar.codelet.cpp.cpp_codelets import codelets_of
from pypoplar.codelet.cpp.door import cpp_codelets
from pypoplar.codelet.cpp_tree import clang_library
from pypoplar.codelet.cpp_tree.translation_unit import CppFile
from pypoplar.codelet.language.cpp_source import CppSource

SCALE = """\
#include <poplar/Vertex.hpp>
using namespace poplar;

class Scale : public Vertex {
public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  float factor;

  bool compute() {
    for (unsigned i = 0; i < in.size(); ++i)
      out[i] = in[i] * factor + 1.0f;
    return true;
  }
};
"""
TEMPLATE = """\
#include <poplar/Vertex.hpp>
namespace ns {
template <typename T, unsigned N>
class Power : public poplar::Vertex {
public:
  poplar::InOut<poplar::Vector<T>> x;
  bool compute() {
    for (auto &value : x) {
      T product = 1;
      for (unsigned k = 0; k < N; ++k)
        product *= value;
      value = product;
    }
    return true;
  }
};
template class Power<float, 2>;
template class Power<half, 3>;
}
"""


@pytest.fixture
def graph():
    return Graph(Target.of_preset("bow"))


def test_instances_have_the_qualified_names_of_enumerators():
    text = """
    namespace ops { enum class Operation { ADD, MAX }; enum Old { FIRST, LAST };
    template <class T, Operation op, Old old = LAST> struct Update : Vertex { InOut<T> x; bool compute() { if (op == Operation::MAX) *x = 9; return true; } };
    template <class T, Old old> struct Update<T, Operation::ADD, old> : Vertex { InOut<T> x; bool compute() { *x = 1; return true; } };
    template struct Update<float, Operation::MAX>; template struct Update<float, Operation::ADD>; }"""
    found = codelets(text)
    assert sorted(one.name for one in found) == [
        "ops::Update<float,ops::Operation::ADD>", "ops::Update<float,ops::Operation::MAX>",
    ]  # fmt: skip


def test_assembler_with_registers_of_the_machine_hinders_only_the_codelets_that_come_to_it():
    text = """
    static inline void fast() { asm volatile("f32add $a0, $a1, $a2" ::: "$a0:1", "$m3", "memory"); }
    struct Good : Vertex { InOut<float> x; bool compute() { *x = 1; return true; } };"""
    assert [one.name for one in codelets(text)] == ["Good"]
    with pytest.raises(CodeletError, match="inline assembler"):
        codelets(text + "\nstruct Bad : Vertex { InOut<float> x; bool compute() { fast(); return true; } };")


def test_quarter_is_refused_where_a_codelet_has_it_and_two_values_are_tied():
    text = """
    #include <poplar/QuarterFloat.hpp>
    #include <tuple>
    template <class T> struct Kind : Vertex { Input<Vector<T>> x; bool compute() { return true; } };
    static std::tuple<int, float> both(int n) { return std::make_tuple(n + 1, 2.5f); }
    struct Tied : Vertex { InOut<float> x; bool compute() { int n; float f; std::tie(n, f) = both(3); *x = n + f; return true; } };
    template struct Kind<half>;"""
    found = {one.name: one for one in codelets(text)}
    assert run(found["Tied"], x=np.float32(0))["x"] == [6.5]
    with pytest.raises(CodeletError, match="no quarter in codelets yet; use half"):
        codelets(text + "template struct Kind<quarter>;")


def test_a_codelet_in_cpp_is_its_twin_in_python():
    text = SCALE.partition("class")[1] + SCALE.partition("class")[2]
    (scale,) = codelets(text)
    twin = vertex(
        "for i in range(len(self.in_)):\n    self.out[i] = self.in_[i] * self.factor + 1.0",
        fields="in_: Input[Vector[FLOAT]]\nout: Output[Vector[FLOAT]]\nfactor: FLOAT",
    )
    values = {"in": np.arange(9, dtype=np.float32), "out": np.zeros(9, np.float32), "factor": np.float32(2.5)}
    ours, theirs = run(scale, **values), run(twin, **values)
    assert ours["out"] == theirs["out"] == [2.5 * i + 1.0 for i in range(9)]
    assert ours.slots == theirs.slots


def test_a_file_a_list_and_a_text_give_the_same_codelet(graph, tmp_path):
    file = tmp_path / "scale.cpp"
    file.write_text(SCALE)
    assert graph.addCodelets(str(file))
    graph.addCodelets([file], CodeletFileType.CppSource, "-O3 -DX=1")
    assert graph.getVertexTypes() == ["Scale"]
    other = Graph(Target.of_preset("bow"))
    other.addCodelets(io.StringIO(SCALE))
    assert other.getVertexTypes() == ["Scale"]


def test_instances_of_templates_have_the_names_of_poplar(graph):
    graph.addCodelets(io.StringIO(TEMPLATE))
    assert graph.getVertexTypes() == ["ns::Power<float,2>", "ns::Power<half,3>"]
    assert graph.hasCodelet("ns::Power< unsigned , 4 >")
    graph.addVertex(graph.addComputeSet("set"), "ns::Power< unsigned , 4 >")
    graph.addVertex(graph.addComputeSet("set"), "ns::Power<unsigned int,4>")
    assert graph.getVertexTypes()[2:] == ["ns::Power<unsigned int,4>"]


def test_both_engines_run_a_codelet_in_cpp_in_a_program(tmp_path):
    file = tmp_path / "power.cpp"
    file.write_text(TEMPLATE)
    x = np.arange(5, dtype=np.float32)
    graph = Graph(Target.of_preset("bow"))
    graph.addCodelets(file)
    (power, _) = codelets(TEMPLATE.removeprefix("#include <poplar/Vertex.hpp>\n"))
    assert run(power, x=x)["x"] == [0.0, 1.0, 4.0, 9.0, 16.0]


def test_a_header_of_the_users_is_found_beside_the_file_and_by_a_flag(graph, tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "half_of.hpp").write_text("inline float halfOf(float x) { return x * 0.5f; }\n")
    file = tmp_path / "scale.cpp"
    file.write_text('#include "half_of.hpp"\n' + SCALE.replace("in[i] * factor", "halfOf(in[i])"))
    with pytest.raises(CodeletCompileError, match=r"scale\.cpp:1:10: 'half_of\.hpp' file not found: .*-Idir"):
        graph.addCodelets(file)
    graph.addCodelets(file, compileFlags=f"-I{tmp_path / 'include'}")
    (tmp_path / "half_of.hpp").write_text("inline float halfOf(float x) { return x * 0.25f; }\n")
    other = Graph(Target.of_preset("bow"))
    other.addCodelets(file)
    assert graph.getVertexTypes() == other.getVertexTypes() == ["Scale"]


def test_definitions_of_the_target_and_of_flags_are_there():
    before = "#if !defined(__IPU__) || !defined(__POPC__) || __IPU_ARCH_VERSION__ != 21 || STEP != 3\n#error no\n#endif\n"
    (found,) = codelets(before + SCALE.replace("#include <poplar/Vertex.hpp>\nusing namespace poplar;\n", ""), "-DSTEP=3")
    assert found.name == "Scale"


def test_a_file_that_does_not_compile_shows_all_errors_with_carets(graph):
    wrong = SCALE.replace("in[i] * factor", "inn[i] * factor").replace("return true", "return tru")
    with pytest.raises(CodeletCompileError) as raised:
        graph.addCodelets(io.StringIO(wrong))
    text = str(raised.value)
    assert ":12:16: use of undeclared identifier 'inn'" in text
    assert ":13:12: use of undeclared identifier 'tru'" in text
    assert "    out[i] = inn[i] * factor + 1.0f;\n             ^" in text


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("-lm", "unknown flag '-lm'"),
        ("-I", "-I needs a value behind it"),
        ("-D 'X", "No closing quotation"),
        ("--std=c++17", "did you mean"),
    ],
)
def test_flags_that_mean_nothing_are_refused(graph, tmp_path, flags, message):
    with pytest.raises(CodeletCompileError, match=message):
        graph.addCodelets(tmp_path / "x.cpp", compileFlags=flags)


def test_what_is_no_text_in_cpp_is_refused(graph, tmp_path):
    with pytest.raises(FileLoadError, match=r"no file of codelets at '.*nothing\.cpp'"):
        graph.addCodelets(tmp_path / "nothing.cpp")
    (tmp_path / "latin.cpp").write_bytes(b"// \xe9\n")
    with pytest.raises(FileLoadError, match="is not UTF-8: byte 3 is 0xE9"):
        graph.addCodelets(tmp_path / "latin.cpp")
    with pytest.raises(MissingFeature, match="assembler"):
        graph.addCodelets("code.S")
    with pytest.raises(MissingFeature, match="compiled for an IPU"):
        graph.addCodelets("code.gp")
    with pytest.raises(CodeletError, match="has no codelets"):
        graph.addCodelets(io.StringIO("int f() { return 1; }"))
    with pytest.raises(PoplarTypeError, match="compileFlags is a text"):
        graph.addCodelets("x.cpp", compileFlags=3)  # type: ignore[arg-type]
    with pytest.raises(CodeletCompileError, match="there is none"):
        graph.addCodelets(__file__.replace("test_door", "test_laws"), compileFlags="-DX=1")


def test_a_name_that_is_none_has_the_nearest(graph):
    graph.addCodelets(io.StringIO(TEMPLATE))
    with pytest.raises(UnknownVertexType, match="did you mean 'ns::Power<float,2>'"):
        graph.addVertex(graph.addComputeSet("set"), "ns::Powers<float,2>")
    with pytest.raises(UnknownVertexType, match=r"is no instance of the template ns::Power: .*unknown type name 'flot'|undeclared"):
        graph.addVertex(graph.addComputeSet("set"), "ns::Power<flot,2>")


def test_a_header_that_changes_is_read_anew(graph, tmp_path):
    header, file = tmp_path / "n.hpp", tmp_path / "scale.cpp"
    file.write_text('#include "n.hpp"\n' + SCALE.replace("* factor + 1.0f", "* N"))
    results = []
    for n in (2, 3, 3):
        header.write_text(f"constexpr float N = {n};\n")
        (found,) = cpp_codelets(CppSource(file, "", "")).codelets
        values = {"in": np.ones(3, np.float32), "out": np.zeros(3, np.float32), "factor": np.float32(0)}
        results.append(run(found, **values)["out"])
    assert results == [[2.0] * 3, [3.0] * 3, [3.0] * 3]


def test_what_was_translated_once_is_kept(tmp_path, monkeypatch):
    file = tmp_path / "power.cpp"
    file.write_text(TEMPLATE.replace("namespace ns", "namespace kept"))
    first = cpp_codelets(CppSource(file, "", "-DX"))
    monkeypatch.setattr(door, "codelets_of", lambda file: pytest.fail("it is translated again"))
    again = cpp_codelets(CppSource(file, "", "-DX"))
    assert again == first
    assert again.instance("kept::Power<int,2>") is not None


def test_a_text_that_includes_itself_is_an_error(graph, tmp_path):
    file = tmp_path / "loop.cpp"
    file.write_text('#include "loop.cpp"\n' + SCALE)
    with pytest.raises(CodeletCompileError, match="nested too deeply"):
        graph.addCodelets(file)


def test_a_fault_names_the_line_in_cpp():
    found = codelet("out[n] = 1.0f;\n", "Output<Vector<float>> out; int n;")
    ran = run(found, out=np.zeros(3, np.float32), n=np.int32(5))
    assert ran.fault is not None
    assert ran.fault[1] == 8
    assert found.typed.locations[0].file == "<text>"


def test_fields_have_the_form_that_they_have_in_python():
    found = codelet(
        "",
        "Input<Vector<float, VectorLayout::ONE_PTR, 8>> a; InOut<VectorList<half, VectorListLayout::DELTANELEMENTS>> b;"
        "Vector<Input<Vector<int>>> c; Output<bool> d; Vector<unsigned char> e; short f; Input<unsigned long long> g;",
    )
    assert [(field.name, field.access, field.form, field.type.__name__, field.aligned) for field in found.fields] == [
        ("a", "input", "vector", "FLOAT", 8), ("b", "inout", "list", "HALF", 0), ("c", "input", "list", "INT", 0),
        ("d", "output", "scalar", "BOOL", 0), ("e", "state", "vector", "UNSIGNED_CHAR", 0), ("f", "state", "scalar", "SHORT", 0),
        ("g", "input", "scalar", "UNSIGNED_LONGLONG", 0),
    ]  # fmt: skip
    assert FLOAT.__name__ == "FLOAT"


def test_the_listing_of_a_file_in_cpp_shows_its_lines(tmp_path):
    file = tmp_path / "scale.cpp"
    file.write_text(SCALE)
    told = CliRunner().invoke(main, ["listing", str(file), "Scale"])
    assert told.exit_code == 0, told.output
    assert "12 out[i] = in[i] * factor + 1.0f;" in told.stdout


def test_without_libclang_the_message_says_how_it_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "clang", None)
    clang_library.clang.cache_clear()
    with pytest.raises(MissingFeature, match=r"need libclang: pip install -e '\.\[cpp\]'"):
        codelet("")
    monkeypatch.undo()
    clang_library.clang.cache_clear()


def test_importing_pypoplar_loads_nothing_of_it():
    code = "import sys, pypoplar; pypoplar.Graph; print([name for name in sys.modules if 'clang' in name or 'codelet.cpp' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_constraint_of_the_class_keeps_fields_apart():
    text = 'class [[poplar::constraint("elem(*x) != elem(*y)")]] A : public Vertex { public: Input<Vector<float>> x; {}Vector<float>> y;'
    (found,) = codelets(text.replace("{}", "Output<") + " bool compute() { return true; } };\n")
    assert found.distinct == ((0, 1),)
    with pytest.raises(CodeletError, match="there is no field 'z'"):
        codelets(text.replace("{}", "Output<").replace("*y", "*z") + " bool compute() { return true; } };\n")


@pytest.mark.parametrize(
    ("base", "head", "message"),
    [
        ("MultiVertex", "", r"bool compute\(unsigned worker\)"),
        ("Vertex", "unsigned worker", r"takes nothing: write bool compute\(\)"),
    ],
)
def test_a_compute_of_another_form_is_refused(base, head, message):
    with pytest.raises(CodeletError, match=message):
        codelet("", "int n;", base=base, head=head)


def test_a_template_that_nobody_has_instantiated_is_named_with_its_arguments(graph):
    graph.addCodelets(io.StringIO(TEMPLATE.replace("template class Power<float, 2>;\ntemplate class Power<half, 3>;\n", "")))
    with pytest.raises(UnknownVertexType, match=r"did you mean 'ns::Power<\.\.\.>'"):
        graph.addVertex(graph.addComputeSet("set"), "ns::Power")


def test_a_libclang_that_is_older_than_tried_is_told(monkeypatch):
    class Old:
        def __getattr__(self, name):
            raise AttributeError(name)

    clang_library.clang.cache_clear()
    monkeypatch.setattr(clang_library, "_functions", lambda cindex: Old())
    with pytest.raises(MissingFeature, match="18 or newer, and this one is older"):
        cpp_codelets(CppSource(None, SCALE + "// older", ""))
    clang_library.clang.cache_clear()


def test_a_copy_of_a_struct_with_a_reference_names_the_same():
    text = """
    struct Named { int &a; const float &b; Named(int &a, const float &b) : a(a), b(b) {} };
    struct Listed { int &a; int own; };
    struct Copies : Vertex { InOut<int> x; InOut<float> y;
      bool compute() {
        int n = 1; float f = 2; Named first(n, f); Named second = first; second.a += 4; *y = second.b + first.a;
        Listed third{n, 9}; Listed fourth = third; fourth.a += 10; fourth.own = 7; *x = n + third.own;
        return true; } };"""
    (made,) = codelets(text)
    ran = run(made, x=np.int32(0), y=np.float32(0))
    assert (ran["x"], ran["y"]) == ([24], [7.0])


UNDEFINED = """
#include <poplar/Vertex.hpp>
#include <cstdlib>
using namespace poplar;
struct Wraps : Vertex {
  InOut<Vector<int>> x; Input<int> one; InOut<unsigned> u;
  bool compute() {
    *u = *u * 3u - 1u;
    x[0] = x[0] + *one;
    x[1] = x[1] * x[1];
    x[2] = -x[2];
    unsigned short s = 65535; x[3] = s * s;
    x[4] = x[4] / -*one;
    for (int i = 0; i < 3; ++i) x[5] -= *one;
    return true;
  }
};
"""


def test_the_interpreter_says_where_a_signed_integer_overflows_and_both_engines_wrap():
    for mode in ("interpret", "native"):
        device = IPUModel().createDevice()
        graph = Graph(device)
        graph.addCodelets(io.StringIO(UNDEFINED))
        low, high = -(2**31), 2**31 - 1
        x = graph.addVariable(INT, [6], "x")
        graph.setInitialValue(x, np.array([high, 1 << 20, low, 0, low, low + 1], np.int32))
        one, u = graph.addVariable(INT, [], "one"), graph.addVariable(UNSIGNED_INT, [], "u")
        graph.setInitialValue(one, 1)
        graph.setInitialValue(u, 2**32 - 1)
        step = graph.addComputeSet("wraps")
        vertex = graph.addVertex(step, "Wraps", {"x": x, "one": one, "u": u})
        for part in (x, one, u, vertex):
            graph.setTileMapping(part, 0)
        graph.createHostRead("x", x)
        engine = Engine(graph, program.Execute(step), mode=mode)
        engine.load(device)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            engine.run(0)
        assert engine.readTensor("x").tolist() == [low, 0, low, 65535 * 65535 - 2**32, low, high - 1]
        assert not told or "2147483647 + 1 is beyond int, which C++ leaves undefined; here it gives -2147483648" in str(
            told[0].message
        )
        lines = [str(one.message).split(": ", 1)[0].rpartition(":")[2] for one in told]
        assert lines == (["9", "10", "11", "12", "13", "14"] if mode == "interpret" else [])


HEADERS = Path(door.__file__).with_name("headers")


def _headers():
    """Those of the vendor's own in the usual run, all in the whole one."""
    for name in sorted(str(path.relative_to(HEADERS)) for path in HEADERS.rglob("*") if path.is_file()):
        yield pytest.param(name, marks=[] if name.startswith("ipu_") else [pytest.mark.slow])


@pytest.mark.parametrize("header", list(_headers()))
def test_each_header_may_be_the_first_that_is_included(header):
    text = f"#include <{header}>\n#include <poplar/Vertex.hpp>\nstruct A : poplar::Vertex {{ int n; bool compute() {{ return true; }} }};"
    assert [found.name for found in codelets_of(CppFile("<text>", text, ())).codelets] == ["A"]


OPEN = re.findall(r"template <class V> (?:V|void) (__builtin_ipu_f\w+)\((.*)\);", (HEADERS / "ipu_intrinsics").read_text())


@pytest.mark.parametrize("form", ["inline {}", "static inline {}", 'extern "C" inline {}'])
def test_what_the_machine_has_no_name_for_a_codelet_may_define_itself(form):
    assert len(OPEN) == 7
    defined = []
    for name, parameters in OPEN:
        given = parameters.replace("V ", "half2 " if "f16v2" in name else "half4 " if "f16v4" in name else "float2 ")
        result, value = ("void", "") if name.endswith(("aop", "cmac")) else (given.split()[0], "return a; ")
        defined.append(form.format(f"{result} {name}({given}) {{ {value}}}"))
    before = "#include <poplar/Vertex.hpp>\n#include <ipu_intrinsics>\n" + "\n".join(defined)
    text = f"{before}\nstruct A : poplar::Vertex {{ int n; bool compute() {{ return true; }} }};"
    assert [found.name for found in codelets_of(CppFile("<text>", text, ())).codelets] == ["A"]


def test_an_edge_of_one_number_is_an_index_of_any_vector():
    fields = "Input<Vector<float, VectorLayout::ONE_PTR>> x; Input<unsigned> at; Output<float> y;"
    assert run(codelet("*y = x[at];", fields), x=np.float32([1, 2, 3]), at=np.uint32(2), y=np.float32(0))["y"] == [3.0]


COUNTED = """
namespace ns {
enum Operation : int { SUM = 0, MOST = 1 };
constexpr int TWICE = 2;
template <class T, int operation, int by> struct Counted : Vertex {
  InOut<T> x;
  bool compute() { *x = operation == MOST ? by * *x : *x; return true; }
};
template struct Counted<int, SUM, TWICE>;
template struct Counted<int, MOST, 3>;
}
"""


def test_numbers_by_the_names_of_a_namespace_are_arguments_of_templates():
    found = {one.name: one for one in codelets(COUNTED)}
    assert set(found) == {"ns::Counted<int,0,2>", "ns::Counted<int,1,3>"}
    assert run(found["ns::Counted<int,1,3>"], x=np.int32(5))["x"] == [15]


SHIFTED = """#include <poplar/Vertex.hpp>
struct Shifted : poplar::Vertex {
  poplar::InOut<poplar::Vector<int>> x; poplar::InOut<unsigned> u;
  bool compute() {
    x[0] = x[0] << 31;  // into the sign, which C++ defines
    x[1] = x[1] << 1;
    x[2] <<= 4;
    *u = *u << 31;
    return true;
  }
};
"""


def test_the_interpreter_says_where_a_shift_to_the_left_goes_beyond_its_type():
    device = IPUModel().createDevice()
    graph = Graph(device)
    graph.addCodelets(io.StringIO(SHIFTED))
    x, u = graph.addVariable(INT, [3], "x"), graph.addVariable(UNSIGNED_INT, [], "u")
    graph.setInitialValue(x, [1, -1, 2**30])
    graph.setInitialValue(u, 2**32 - 1)
    step = graph.addComputeSet("shifts")
    vertex = graph.addVertex(step, "Shifted", {"x": x, "u": u})
    for part in (x, u, vertex):
        graph.setTileMapping(part, 0)
    engine = Engine(graph, program.Execute(step), mode="interpret")
    engine.load(device)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        engine.run(0)
    shown = [str(one.message).split(" is beyond")[0].rpartition(":")[2].strip() for one in told]
    assert shown == ["-1 << 1", "1073741824 << 4"]


def test_a_shift_by_the_width_is_a_fault_at_its_line():
    ours = codelet("int n = *k;\nx[0] = x[1] << n;", "InOut<Vector<int>> x; Input<int> k;")
    ran = run(ours, x=np.int32([1, 2]), k=np.int32(32))
    assert ran.fault is not None
    assert ran.fault[2] == 32


def test_layouts_take_the_memory_that_poplar_gives_them():
    text = """
    template <VectorLayout L> struct One : Vertex { Input<Vector<float, L>> x; Output<float> y; bool compute() { *y = x[0]; return true; } };
    template struct One<VectorLayout::ONE_PTR>; template struct One<VectorLayout::SPAN>; template struct One<VectorLayout::SHORT_SPAN>;
    template struct One<VectorLayout::COMPACT_PTR>;
    template <class V> struct Rows : Vertex { V x; Output<float> y; bool compute() { *y = x[0][0]; return true; } };
    template struct Rows<Input<VectorList<float, VectorListLayout::DELTANELEMENTS>>>;
    template struct Rows<Vector<Input<Vector<float, VectorLayout::ONE_PTR>>, VectorLayout::ONE_PTR>>;
    template struct Rows<Vector<Input<Vector<float>>>>;"""
    sizes = {}
    for made in codelets(text):
        device = IPUModel().createDevice()
        graph = Graph(device)
        graph.addCodelets(io.StringIO("#include <poplar/Vertex.hpp>\nusing namespace poplar;\n" + text))
        x, y = graph.addVariable(FLOAT, [3, 4], "x"), graph.addVariable(FLOAT, [], "y")
        step = graph.addComputeSet("step")
        given = [x[row] for row in range(3)] if made.name.startswith("Rows") else x.flatten()
        one = graph.addVertex(step, made.name, {"x": given, "y": y})
        for part in (x, y, one):
            graph.setTileMapping(part, 0)
        engine = Engine(graph, program.Execute(step))
        sizes[made.name] = int(engine.executable.memory.edge_pointers.sum())
    vertex_and_y = 8
    assert sorted(sizes.values()) == sorted(vertex_and_y + size for size in (4, 8, 4, 4, 8 + 3 * 4, 4 + 3 * 4, 8 + 3 * 8))
