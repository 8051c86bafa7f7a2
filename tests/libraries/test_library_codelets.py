"""The codelets of libraries are collected once for all graphs, and are what they would be if each graph collected them anew."""

import gc
import weakref
from types import FunctionType, ModuleType

import numpy as np
import pytest
from attrs import evolve

from pypoplar import FLOAT, CodeletError, Graph, InOut, IPUModel, UnknownVertexType, Vector, Vertex, poplin, popnn, popops, poprand
from pypoplar.codelet.ir.walk import walk
from pypoplar.codelet.operations.device_operation import slots
from pypoplar.codelet.operations.table import OPERATIONS, register, remove
from pypoplar.codelet.registry import Template, collect
from pypoplar.poputil.codelet_modules import codelet_module
from pypoplar.types import INT

LIBRARIES = (popops, poplin, popnn, poprand)
FILES = [file for library in LIBRARIES for file in library.codelets.FILES]
MOST, SIZE = 1, 3  # of device code below
DEVICE = IPUModel("tiny").createDevice()


def graph_with(*libraries: ModuleType) -> Graph:
    graph = Graph(DEVICE)
    for library in libraries:
        library.addCodelets(graph)
    return graph


def codelet(graph: Graph, name: str):
    return graph._registry.find(name)[1]


def typed(name: str, library: ModuleType = popops):
    return codelet(graph_with(library), name).typed


def test_graphs_have_the_codelets_that_they_would_collect_themselves():
    graph, other = graph_with(*LIBRARIES), Graph(DEVICE)
    other.addCodelets([codelet_module(file) for file in FILES])
    assert graph._registry.names == other._registry.names
    assert graph._registry.codelets == other._registry.codelets
    for name in ("popops::Fill<half>", "poplin::ConvPartial1x1Out<half,float>"):
        if name in other._registry:
            assert codelet(graph, name) == codelet(other, name)


def test_a_librarys_codelets_are_collected_once(monkeypatch):
    first = graph_with(popops)
    kept = codelet(first, "popops::Fill<float>"), first._registry.codelets[0]
    monkeypatch.setattr("pypoplar.codelet.codelet.codelet_source", None)  # nothing is collected any more
    second = graph_with(popops)
    assert codelet(second, "popops::Fill<float>") is kept[0]
    assert second._registry.codelets[0] is kept[1]


def test_instances_are_told_apart_by_their_types():
    graph = graph_with(popops)
    names = ["popops::Fill<float>", "popops::Fill<half>", "popops::Fill<float>"]
    assert [codelet(graph, name).name for name in names] == names
    with pytest.raises(UnknownVertexType, match="no element type is called 'floaty'"):
        codelet(graph_with(popops), "popops::Fill<floaty>")


def test_a_constant_of_a_library_that_changes_is_seen_by_graphs_made_afterwards(monkeypatch):
    module = codelet_module("popnn_pooling.py")
    before = {one.name: one for one in graph_with(popnn)._registry.codelets}
    instances = [one.spelling.replace("<T>", "<float>") for one in collect(module) if isinstance(one, Template)]
    sources = {name: codelet(graph_with(popnn), name).source for name in instances}
    with monkeypatch.context() as patched:
        patched.setattr(module, "NOTHING", 7)
        changed = {name for name in instances if codelet(graph_with(popnn), name).source != sources[name]}
        assert changed
        own = {name for name in instances if "NOTHING" in str(sources[name])}
        assert changed == own
    assert {name: codelet(graph_with(popnn), name).source for name in instances} == sources
    assert {one.name: one for one in graph_with(popnn)._registry.codelets} == before


def compute(self, worker):
    if worker < int(MOST):
        self.out[worker] = self.in_


@pytest.fixture
def filled_up_to(monkeypatch):
    """The file whose `Fill` goes up to a constant, MOST, the last of its names."""
    module = codelet_module("popops_fill.py")
    monkeypatch.setattr(module, "MOST", 1, raising=False)
    monkeypatch.setattr(module.Fill, "compute", FunctionType(compute.__code__, vars(module), "compute"))
    return module


@pytest.mark.parametrize("value", [True, 1.0])
def test_a_constant_that_changes_only_its_type_is_seen(monkeypatch, filled_up_to, value):
    assert meanings("MOST") == {1: int}
    monkeypatch.setattr(filled_up_to, "MOST", value)
    assert meanings("MOST") == {1: type(value)}


def test_a_constant_that_has_another_name_is_seen(monkeypatch, filled_up_to):
    assert meanings("MOST") == {1: int}
    monkeypatch.delattr(filled_up_to, "MOST")
    monkeypatch.setattr(filled_up_to, "LEAST", 1, raising=False)
    with pytest.raises(CodeletError, match="name 'MOST' is not defined"):
        codelet(graph_with(popops), "popops::Fill<int>")


def meanings(constant: str):
    """The value, and its type, that the code of Fill gives to a constant."""
    (function,) = codelet(graph_with(popops), "popops::Fill<int>").source.functions
    return {function.names[constant].value: type(function.names[constant].value)}


def test_a_member_of_a_librarys_class_that_changes_is_seen_by_graphs_made_afterwards(monkeypatch):
    fill = codelet_module("popops_fill.py").Fill
    before = codelet(graph_with(popops), "popops::Fill<int>")
    with monkeypatch.context() as patched:
        patched.setattr(fill, "cycles", lambda self, vertex: 17)
        assert codelet(graph_with(popops), "popops::Fill<int>").estimator(None) == 17
    after = codelet(graph_with(popops), "popops::Fill<int>")
    assert after.estimator.func is before.estimator.func


def test_classes_that_come_and_go_are_seen_by_graphs_made_afterwards(monkeypatch):
    module = codelet_module("popops_fill.py")

    class Another(Vertex, name="popops::Another"):
        x: InOut[Vector[FLOAT]]

        def compute(self):
            self.x[0] = 1.0

    graph_with(popops)
    with monkeypatch.context() as patched:
        patched.setattr(Another, "__module__", module.__name__)
        patched.setattr(module, "Another", Another, raising=False)
        assert graph_with(popops).hasCodelet("popops::Another")
        patched.delattr(module, "Fill")
        assert not graph_with(popops).hasCodelet("popops::Fill<int>")
    graph = graph_with(popops)
    assert (graph.hasCodelet("popops::Another"), graph.hasCodelet("popops::Fill<int>")) == (False, True)


def test_an_operation_that_is_registered_meanwhile_is_in_code_translated_afterwards():
    """Codelets of libraries are translated anew when the table of operations changes, as a user's are."""
    row = evolve(
        OPERATIONS["add_f32"].row,
        name="plus_for_tests",
        types=("f32",),
        calls=("ipu.plus_for_tests",),
        lanes=("f32",),
        prices=(slots("f32", 7, "I"),),
    )
    before = typed("popops::Fill<float>")
    register(row)
    try:
        assert typed("popops::Fill<float>") is not before
    finally:
        remove(row)
    assert list(walk(typed("popops::Fill<float>").body)) == list(walk(before.body))


def test_a_users_codelet_of_a_librarys_name_is_refused_in_its_graph_alone():
    class Mine(Vertex, name="popops::Fill<float>"):
        x: InOut[Vector[FLOAT]]

        def compute(self):
            self.x[0] = 1.0

    for libraries in ((), (popops,)):
        graph = graph_with(*libraries)
        if libraries:
            with pytest.raises(CodeletError, match="two different codelets are called 'popops::Fill<float>'"):
                codelet(graph, "popops::Fill<float>")
                graph.addCodelets(Mine)
        else:
            graph.addCodelets(Mine)
            assert codelet(graph, "popops::Fill<float>").fields[0].name == "x"
    assert codelet(graph_with(popops), "popops::Fill<float>").fields[0].name == "in"


def test_a_users_class_is_read_anew_in_each_graph_and_kept_by_none():
    class Sized(Vertex):
        x: InOut[Vector[INT]]

        def compute(self):
            self.x[0] = SIZE

    Sized.compute = FunctionType(Sized.compute.__code__, dict(globals()), "compute")
    values = []
    for size in (3, 4):
        Sized.compute.__globals__["SIZE"] = size
        graph = graph_with(popops)
        graph.addCodelets(Sized)
        values.append(codelet(graph, "Sized").source.functions[0].names["SIZE"].value)
    assert values == [3, 4]
    gone = weakref.ref(Sized)
    del Sized, graph
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("file", FILES)
def test_what_library_codelets_name_cannot_change_in_itself(file):
    """A list that grows would not be seen: only which object a name means is compared."""
    module = codelet_module(file)
    spaces = [vars(module), *(vars(one) for one in vars(module).values() if isinstance(one, type) and issubclass(one, Vertex))]
    for space in spaces:
        named = {name: value for name, value in space.items() if not name.startswith("__")}
        assert not [name for name, value in named.items() if isinstance(value, list | dict | set | bytearray | np.ndarray)]
