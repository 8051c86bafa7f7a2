"""Collecting codelets, their names, templates."""

import os
import types
from typing import Generic, TypeVar

import pytest
from codelet_rig import module_from, run

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.fields import InOut, Input, Output, Vector, Vertex
from pypoplar.codelet.registry import CodeletRegistry, Template, collect
from pypoplar.errors import CodeletError, FileLoadError, PoplarTypeError, TypeNotSupportedError, UnknownVertexType
from pypoplar.types import DOUBLE, FLOAT, HALF, INT, UNSIGNED_INT

T = TypeVar("T")
S = TypeVar("S", FLOAT, HALF)
R = TypeVar("R")


class Scale(Vertex, Generic[T]):
    x: InOut[Vector[T]]
    factor: T

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] *= self.factor * T(2)


class Cast(Vertex, Generic[S, R], name="popops::Cast"):
    source: Input[Vector[S]]
    target: Output[Vector[R]]

    def compute(self):
        for i in range(len(self.source)):
            self.target[i] = R(self.source[i])


class Increment(Vertex):
    x: InOut[INT]

    def compute(self):
        self.x += 1


class Other(Vertex, name="library::Other"):
    x: InOut[INT]

    def compute(self):
        self.x += 2


def operation(name, combine):
    class Binary(Vertex, Generic[T], name=f"popops::BinaryOp1D<{name}>"):
        a: InOut[Vector[T]]
        b: Input[Vector[T]]

        def compute(self):
            for i in range(len(self.a)):
                self.a[i] = combine(self.a[i], self.b[i])

    return Binary


def add(a, b):
    return a + b


def multiply(a, b):
    return a * b


@pytest.fixture
def registry():
    made = CodeletRegistry()
    for one in (Scale, Cast, Increment, Other, operation("add", add), operation("multiply", multiply)):
        made.add(collect(one))
    return made


def test_a_class_is_found_by_its_name_and_by_itself(registry):
    number, codelet = registry.find("Increment")
    assert (codelet.name, registry.find(Increment)) == ("Increment", (number, codelet))
    assert registry.codelets[number] is codelet
    assert registry.find("library::Other")[1].name == "library::Other"
    assert run(registry.find(Other)[1], x=1)["x"] == [3]


def test_a_class_that_was_not_added_is_added_when_it_is_looked_for():
    registry = CodeletRegistry()
    assert registry.find(Increment)[0] == 0
    assert registry.find(Scale[INT])[1].name == "Scale<int>"
    assert registry.find("Increment")[0] == 0
    assert [one.name for one in registry.codelets] == ["Increment", "Scale<int>"]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (Scale[FLOAT], "Scale<float>"),
        ("Scale<half>", "Scale<half>"),
        ("Scale<unsigned int>", "Scale<unsigned int>"),
        ("Scale< unsigned  int >", "Scale<unsigned int>"),
        (Cast[FLOAT, UNSIGNED_INT], "popops::Cast<float,unsigned int>"),
        ("popops::Cast<half,int>", "popops::Cast<half,int>"),
        ("popops::Cast<half, int>", "popops::Cast<half,int>"),
        ("popops::BinaryOp1D<add,float>", "popops::BinaryOp1D<add,float>"),
        ("popops::BinaryOp1D<multiply,int>", "popops::BinaryOp1D<multiply,int>"),
    ],
)
def test_instances_of_templates_are_made_on_demand(registry, wanted, name):
    assert wanted in registry if isinstance(wanted, str) else True
    before = len(registry.codelets)
    number, codelet = registry.find(wanted)
    assert (codelet.name, number, len(registry.codelets)) == (name, before, before + 1)
    assert registry.find(name) == (number, codelet)
    assert registry.find(wanted) == (number, codelet)


def test_instances_compute_in_their_types(registry):
    assert run(registry.find(Scale[HALF])[1], x=[0.5, 3], factor=1.5)["x"] == [1.5, 9]
    assert run(registry.find("popops::Cast<float,int>")[1], source=[2.7], target=[0])["target"] == [2]
    assert run(registry.find("popops::BinaryOp1D<add,int>")[1], a=[2], b=[5])["a"] == [7]
    assert run(registry.find("popops::BinaryOp1D<multiply,int>")[1], a=[2], b=[5])["a"] == [10]


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ("Incremen", UnknownVertexType, "no codelet is called 'Incremen'; did you mean 'Increment'?"),
        (
            "Qqq",
            UnknownVertexType,
            "no codelet is called 'Qqq'; added were Increment, library::Other, Scale<T>, ",
        ),
        ("Scale", UnknownVertexType, "no codelet is called 'Scale'; did you mean 'Scale<T>'?"),
        ("Scale", UnknownVertexType, "'Scale<T>'? It is a template: name its types, as in 'Scale<float>', 'Scale<half>'"),
        ("Scale<flaot>", UnknownVertexType, "'Scale<flaot>': no element type is called 'flaot'; did you mean 'float'?"),
        ("Scale<double>", UnknownVertexType, "'Scale<double>': no element type is called 'double'"),
        ("Scale<float,float>", UnknownVertexType, "no codelet is called 'Scale<float,float>'; did you mean 'Scale<T>'?"),
        ("popops::Cast<int,float>", CodeletError, "popops::Cast: S is one of FLOAT, HALF, got INT"),
        ("popops::BinaryOp1D<divide,float>", UnknownVertexType, "did you mean 'popops::BinaryOp1D<add,T>'?"),
        (Scale, CodeletError, 'Scale is a template: name its types, such as Scale[FLOAT] or "Scale<float>"'),
        (Cast, CodeletError, 'such as Cast[FLOAT, FLOAT] or "popops::Cast<float,float>"'),
        (Scale[DOUBLE], TypeNotSupportedError, "DOUBLE is not a type of the device; use FLOAT"),
        (Scale[float], PoplarTypeError, "expected an element type such as pypoplar.FLOAT, got <class 'float'>"),
        (Vertex, PoplarTypeError, "Vertex is the base of codelets; derive a class from it"),
        (3, PoplarTypeError, "expected the name or the class of a codelet, got 3"),
        (["Scale"], PoplarTypeError, "expected the name or the class of a codelet, got ['Scale']"),
        (types, PoplarTypeError, "expected the name or the class of a codelet, got <module 'types'"),
        (int, PoplarTypeError, "got <class 'int'>"),
    ],
)
def test_what_cannot_be_found_is_named_with_the_nearest(registry, wanted, error, message):
    with pytest.raises(error) as caught:
        registry.find(wanted)
    assert message in str(caught.value)


def test_an_empty_registry_says_so():
    with pytest.raises(UnknownVertexType, match="no codelet is called 'A'; none has been added"):
        CodeletRegistry().find("A")


def test_the_same_codelet_twice_is_one():
    registry = CodeletRegistry()
    for _ in range(2):
        registry.add(collect(Increment))
        registry.add(collect(Scale))
        registry.find(Scale[FLOAT])
    assert len(registry.codelets) == 2


FIRST = """
from pypoplar.codelet.language.fields import *
from pypoplar.types import *
class Same(Vertex):
    x: InOut[INT]
    def compute(self):
        self.x += 1
"""


def test_two_codelets_of_one_name_are_refused_with_both_places():
    one, other = module_from(FIRST)["Same"], module_from("\n\n" + FIRST.replace("+= 1", "+= 2"))["Same"]
    registry = CodeletRegistry()
    registry.add(collect(one))
    with pytest.raises(CodeletError) as caught:
        registry.add(collect(other))
    places = [f"{cls.compute.__code__.co_filename}:{line}" for cls, line in ((one, 4), (other, 6))]
    assert f"two different codelets are called 'Same': one at {places[0]}, one at {places[1]}" in caught.value.msg
    assert [found.name for found in registry.codelets] == ["Same"]


@pytest.mark.parametrize("cell", ["<ipython-input-{}-5a>", "/tmp/ipykernel_77/12{}.py", "<python-input-{}>"])
def test_a_class_defined_anew_in_a_notebook_asks_for_a_new_graph(cell):
    one, other = module_from(FIRST, cell.format(1))["Same"], module_from(FIRST.replace("+= 1", "+= 2"), cell.format(2))["Same"]
    registry = CodeletRegistry()
    registry.find(one)
    with pytest.raises(CodeletError) as caught:
        registry.find(other)
    assert caught.value.msg == (
        f"codelet 'Same' has been defined anew, at {cell.format(2)}:4; the graph keeps the one that it has, of {cell.format(1)}:4: "
        "make a new Graph, or rename one of the two"
    )
    CodeletRegistry().find(other)


def test_one_class_statement_with_other_constants_is_another_codelet():
    def make(k):
        class Adds(Vertex):
            x: InOut[INT]

            def compute(self):
                self.x += k

        return Adds

    registry = CodeletRegistry()
    registry.find(make(1))
    registry.find(make(1))
    with pytest.raises(CodeletError, match="with other constants, helper functions or text; rename one"):
        registry.find(make(2))


def test_a_template_and_a_codelet_of_an_instances_name_are_refused():
    class Clash(Vertex, name="Scale<float>"):
        x: InOut[INT]

        def compute(self):
            self.x += 1

    registry = CodeletRegistry()
    registry.add(collect(Scale))
    with pytest.raises(CodeletError, match="two different codelets are called 'Scale<float>'"):
        registry.add(collect(Clash))


def test_two_templates_of_one_name_are_refused():
    def make():
        class Scale(Vertex, Generic[T]):
            x: InOut[T]

            def compute(self):
                self.x += T(1)

        return Scale

    registry = CodeletRegistry()
    registry.add(collect(Scale))
    with pytest.raises(CodeletError, match="two different codelets are called 'Scale'"):
        registry.add(collect(make()))


def test_a_module_gives_its_own_codelets_but_not_its_bases():
    module = types.ModuleType("mine")
    names = module_from(
        FIRST + "class _Base(Vertex):\n    def compute(self):\n        self.missing()\nclass Fields(Vertex):\n    y: INT\n"
    )
    vars(module).update({key: value for key, value in names.items() if not key.startswith("__")})
    module.__name__ = names["Same"].__module__
    module.Foreign = Increment
    assert [one.name for one in collect(module)] == ["Same"]


def test_lists_give_the_codelets_of_all_that_is_in_them(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(FIRST)
    first, second = Increment, module_from(FIRST)["Same"]
    names = [one.name for one in collect([first, (second, [])])]
    assert names == ["Increment", "Same"]
    assert [one.name for one in collect([first, str(file)])] == names
    registry = CodeletRegistry()
    with pytest.raises(PoplarTypeError, match="expected a subclass of"):
        registry.add(collect([first, 3]))
    assert registry.names == ()


def test_a_module_without_codelets_is_refused():
    with pytest.raises(CodeletError, match="math has no codelets"):
        import math

        collect(math)


def test_a_path_gives_the_codelets_of_the_file(tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    template = "class G(Vertex, Generic[T]):\n    y: T\n    def compute(self):\n        pass\n"
    file.write_text(FIRST + "from typing import Generic, TypeVar\nT = TypeVar('T')\n" + template)
    found = collect(str(file))
    assert [type(one) for one in found] == [Codelet, Template]
    registry = CodeletRegistry()
    registry.add(found)
    registry.add(collect(file))  # again, as another module
    monkeypatch.chdir(tmp_path)
    registry.add(collect("mine.py"))
    assert registry.names == ("Same", "G<T>")
    assert registry.find("G<int>")[1].name == "G<int>"


@pytest.mark.parametrize(("name", "text"), [("missing.py", None), ("codelets.txt", "x = 1"), ("folder.py", "")])
def test_a_path_that_is_no_file_of_codelets_is_refused(tmp_path, name, text):
    file = tmp_path / name
    if text:
        file.write_text(text)
    elif text == "":
        file.mkdir()
    with pytest.raises(FileLoadError, match=name):
        collect(file)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_path_of_what_is_no_regular_file_is_refused(tmp_path, stopwatch, make):
    make(tmp_path / "mine.py")
    with pytest.raises(FileLoadError, match=r"no file of codelets at '.*mine\.py': Is a (named pipe|directory)"):
        collect(tmp_path / "mine.py")
