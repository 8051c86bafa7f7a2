"""Outputs that a codelet promises to write in full: how it is said, what is refused, and who finds a promise broken."""

import json
from typing import Generic, TypeVar

import numpy as np
import pytest
from codelet_rig import codelet_of, module_from

from pypoplar import (
    FLOAT,
    CodeletError,
    CodeletRuntimeError,
    Engine,
    FileLoadError,
    Graph,
    InOut,
    Input,
    IPUModel,
    MultiVertex,
    Output,
    PoplarTypeError,
    Vector,
    VectorList,
    Vertex,
)
from pypoplar.codelet.language.source import CodeletSource
from pypoplar.compiler.liveness.full_writes import ITSELF, NEVER, defined_fields
from pypoplar.program import Execute

T = TypeVar("T")
TEXT = """
from pypoplar import *

class Point(Record):
    x: FLOAT
    y: FLOAT

class Test(Vertex{}):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    one: Output[FLOAT]
    rows: Output[VectorList[FLOAT]]
    both: InOut[Vector[FLOAT]]
    points: Output[Vector[Point]]
    in_: Output[Vector[FLOAT]]
    factor: FLOAT

    def compute(self):
        self.y[0] = self.x[0]
"""


def promised(keyword):
    codelet = codelet_of(module_from(TEXT.format(keyword))["Test"])
    assert codelet.typed.writes_all == codelet.source.writes_all
    return codelet.source.writes_all


@pytest.mark.parametrize(
    ("keyword", "names"),
    [
        ("", ()),
        (', writes_all="y"', ("y",)),
        (', writes_all=("rows", "y")', ("y", "rows")),
        (', writes_all=["one", "in_"]', ("one", "in")),
        (', writes_all="in", name="mine::Test"', ("in",)),
    ],
)
def test_a_promise_names_one_output_or_several(keyword, names):
    assert promised(keyword) == names


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        (', writes_all="z"', "Test: writes_all: there is no field 'z'; there are 'x', 'y'"),
        (', writes_all="rowss"', "there is no field 'rowss'; did you mean 'rows'"),
        (', writes_all="x"', "writes_all: 'x' is an Input; only of an Output nothing is kept for the vertex"),
        (', writes_all=["y", "both"]', "writes_all: 'both' is an InOut; only of an Output"),
        (', writes_all="factor"', "writes_all: 'factor' is a plain field"),
        (', writes_all="points"', "'points' holds records, of which members are written one by one; it is for numbers"),
        (", writes_all=True", 'writes_all names Outputs: writes_all="out", or a list of names; got True'),
        (", writes_all=[]", r"or a list of names; got \[\]"),
        (", writes_all=()", r"or a list of names; got \(\)"),
        (', writes_all=["y", "y"]', "names 'y' twice"),
        (", writes_all=[3]", r"or a list of names; got \[3\]"),
    ],
)
def test_other_promises_are_refused_at_the_keyword(keyword, text):
    with pytest.raises(CodeletError, match=text) as refusal:
        promised(keyword)
    assert "class Test(Vertex, writes_all=" in str(refusal.value)


def test_a_promise_as_an_attribute_of_the_class_is_refused():
    wrong = type("Wrong", (Vertex,), {"__annotations__": Kept.__annotations__, "compute": Kept.compute, "writes_all": "out"})
    with pytest.raises(
        CodeletError, match=r"Wrong: writes_all is a keyword of the class, not an attribute: write class Wrong\(Vertex,"
    ):
        codelet_of(wrong)


def test_a_keyword_spelt_wrong_is_refused_with_the_nearest():
    with pytest.raises(PoplarTypeError, match="unknown keyword 'write_all'; did you mean 'writes_all'"):
        promised(', write_all="y"')


class Base(Vertex, Generic[T], writes_all="out"):
    x: Input[Vector[T]]
    out: Output[Vector[T]]

    def compute(self):
        for i in range(int(float(self.x[0]))):
            self.out[i] = self.x[1]


class Derived(Base[FLOAT], writes_all="other"):
    other: Output[VectorList[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.out[i] = self.x[1]
        for row in range(len(self.other)):
            for i in range(int(self.x[0]) + row):
                self.other[row][i] = 1.0


class Workers(MultiVertex, writes_all="out"):
    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self, worker):
        if worker < int(self.x[0]):
            self.out[worker] = self.x[1]


class Kept(Vertex, writes_all="out"):
    """It writes through another field, too, which nobody has promised."""

    x: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]
    both: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(int(self.x[0])):
            self.out[i] = self.x[1]
        self.both[0] = 1.0


def test_derived_classes_promise_what_their_bases_do():
    codelet = codelet_of(Derived)
    assert codelet.source.writes_all == ("out", "other")
    assert defined_fields([codelet], 6).tolist() == [NEVER, ITSELF, ITSELF]


def run(codelet, mode, given, **lengths):
    """Run one vertex whose `x` is ``[given, 7]``."""
    device = IPUModel("tiny").createDevice()
    graph = Graph(device)
    x = graph.addConstant(FLOAT, [2], [given, 7.0])
    fields = {name: graph.addVariable(FLOAT, shape, name) for name, shape in lengths.items()}
    for tensor in (x, *fields.values()):
        graph.setTileMapping(tensor, 0)
    for name, tensor in fields.items():
        graph.createHostRead(name, tensor)
    compute_set = graph.addComputeSet("promise")
    graph.setTileMapping(graph.addVertex(compute_set, codelet, {"x": x, **fields}), 0)
    engine = Engine(graph, Execute(compute_set), mode=mode)
    engine.load(device)
    engine.run()
    return [engine.readTensor(name) for name in fields]


BROKEN = [  # codelet, what x[0] has to be, fields, what is left out with one less
    (Base[FLOAT], 4, {"out": [4]}, "'out', by writes_all, but has left out element 3"),
    (Derived, 2, {"out": [2], "other": [1, 2]}, "'other', by writes_all, but has left out element 1 of row 0"),
    (Workers, 6, {"out": [6]}, "'out', by writes_all, but has left out element 5"),
    (Kept, 3, {"out": [3], "both": [2]}, "'out', by writes_all, but has left out element 2"),
]


@pytest.mark.parametrize(("codelet", "enough", "fields", "text"), BROKEN, ids=["vertex", "list", "workers", "beside another"])
def test_the_interpreter_holds_a_codelet_to_its_promise(codelet, enough, fields, text):
    for kept, other in zip(*(run(codelet, mode, enough, **fields) for mode in ("interpret", "native")), strict=True):
        np.testing.assert_array_equal(kept, other)
    with pytest.raises(CodeletRuntimeError, match=f"the codelet promises to write all of {text}"):
        run(codelet, "interpret", enough - 1, **fields)


def test_a_promise_is_saved_and_damage_to_it_is_refused():
    source = codelet_of(Derived).source
    tree = json.loads(json.dumps(source.to_json()))
    assert CodeletSource.from_json(tree) == source
    for wrong in (["x"], ["nothing"], "out", [3], None):
        with pytest.raises(FileLoadError):
            CodeletSource.from_json(tree | {"writes_all": wrong})
    del tree["writes_all"]
    with pytest.raises(FileLoadError):
        CodeletSource.from_json(tree)
