"""How an alignment is demanded of the memory of a vector, and which demands are refused."""

import json
import re
import textwrap
from typing import Annotated, Generic, TypeVar

import pytest
from codelet_rig import codelet_of, module_from

from pypoplar import (
    FLOAT,
    HALF,
    LONGLONG,
    Aligned,
    CodeletError,
    FileLoadError,
    Graph,
    Input,
    IPUModel,
    Output,
    PoplarTypeError,
    Vector,
    Vertex,
)
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.source import CodeletSource
from pypoplar.types import SUPPORTED

T = TypeVar("T")

TYPES = ", ".join(type.__name__ for type in SUPPORTED)
IMPORTS = f"""
from typing import Annotated, TypeVar
from pypoplar import Aligned, Array, InOut, Input, Output, Record, Vector, VectorList, Vertex
from pypoplar import {TYPES}
"""
FUTURE = "from __future__ import annotations\n"
DECLARED = """
class Test(Vertex):
    a: Input[Annotated[Vector[FLOAT], Aligned(8)]]
    b: Output[Annotated[Vector[HALF], Aligned(32)]]
    c: InOut[Annotated[VectorList[INT], Aligned(16)]]
    d: Input[Annotated[Vector[CHAR], Aligned(4)]]
    e: Input[Vector[FLOAT]]
    in_: Input[Annotated[Vector[LONGLONG], Aligned(8)]]
    f: UNSIGNED_INT
    g: Output[FLOAT]

    def compute(self):
        self.g = self.a[0]
"""
EXPECTED = {"a": 8, "b": 32, "c": 16, "d": 4, "e": 0, "in": 8, "f": 0, "g": 0}


def as_strings(text):
    return re.sub(r"^(    \w+): (.*)$", r'\1: "\2"', text, flags=re.MULTILINE)


def nested(text):
    return "def make():\n" + textwrap.indent(text, "    ") + "\n    return Test\n\nTest = make()\n"


WAYS = {
    "objects": IMPORTS + DECLARED,
    "strings": IMPORTS + as_strings(DECLARED),
    "strings inside": IMPORTS + re.sub(r"((?:Vector|VectorList)\[\w+\])", r"'\1'", DECLARED),
    "future": FUTURE + IMPORTS + DECLARED,
    "in a function": nested(IMPORTS + DECLARED),
    "in a function, future": FUTURE + nested(IMPORTS + DECLARED),
    "through modules": "import typing\nimport pypoplar\n"
    + IMPORTS
    + DECLARED.replace("Annotated", "typing.Annotated").replace("Aligned(", "pypoplar.Aligned("),
    "an alignment with a name": IMPORTS + "N = 8\nEIGHT = Aligned(N)\n" + DECLARED.replace("Aligned(8)", "EIGHT"),
    "another name for the vector": IMPORTS
    + "Pairs = Annotated[Vector[FLOAT], Aligned(8)]\n"
    + DECLARED.replace("Annotated[Vector[FLOAT], Aligned(8)]", "Pairs"),
}


def aligned_of(codelet):
    return {field.name: field.aligned for field in codelet.fields}


@pytest.mark.parametrize("text", WAYS.values(), ids=list(WAYS))
def test_an_alignment_is_read_however_it_is_written(text):
    codelet = codelet_of(module_from(text)["Test"])
    assert aligned_of(codelet) == EXPECTED
    assert [field.alignment for field in codelet.typed.fields] == list(EXPECTED.values())


def test_a_codelet_file_may_demand_alignments(tmp_path):
    file = tmp_path / "demands.py"
    file.write_text(FUTURE + IMPORTS + DECLARED)
    graph = Graph(IPUModel("tiny").createDevice())
    graph.addCodelets(str(file))
    assert graph.hasCodelet("Test")


def test_a_derived_class_keeps_the_demands_and_may_make_others():
    class Base(Vertex):
        x: Input[Annotated[Vector[FLOAT], Aligned(8)]]
        y: Output[Annotated[Vector[FLOAT], Aligned(8)]]

        def compute(self):
            self.y[0] = self.x[0]

    class Derived(Base):
        y: Output[Annotated[Vector[FLOAT], Aligned(16)]]

    class Freed(Base):
        x: Input[Vector[FLOAT]]

    assert aligned_of(codelet_of(Derived)) == {"x": 8, "y": 16}
    assert aligned_of(codelet_of(Freed)) == {"y": 8, "x": 0}


class Template(Vertex, Generic[T]):
    x: Input[Annotated[Vector[T], Aligned(4)]]
    y: Output[T]

    def compute(self):
        self.y = self.x[0]


def test_a_template_is_judged_for_each_of_its_types():
    for type in (FLOAT, HALF):
        assert aligned_of(Codelet.of_class(Template, {T: type})) == {"x": 4, "y": 0}
    with pytest.raises(CodeletError, match=r"Template\.x: Aligned\(4\) is too little: an element of LONGLONG has 8 bytes"):
        Codelet.of_class(Template, {T: LONGLONG})


def test_records_are_aligned_by_their_vector():
    text = "class Ray(Record):\n    kind: CHAR\n    hit: LONGLONG\n"
    text += "class Test(Vertex):\n    x: InOut[Annotated[Vector[Ray], Aligned({})]]\n"
    text += "    def compute(self):\n        self.x[0].hit = 1\n"
    codelet = codelet_of(module_from(IMPORTS + text.format(16))["Test"])
    assert aligned_of(codelet) == {"x": 16}
    assert codelet.alignments == (16,)
    with pytest.raises(CodeletError, match=r"Aligned\(4\) is too little: a Ray lies at a multiple of 8 bytes"):
        codelet_of(module_from(IMPORTS + text.format(4))["Test"])


SPELLING = "write Input[Annotated[Vector[FLOAT], Aligned(8)]]"
NOT_FOUR = "an alignment is 4, 8, 16 or 32 bytes, got Aligned({})"
EDGES = f"Aligned is for edges, whose memory is a tensor's: {SPELLING}, Output[...] or InOut[...]"
ONE = f"Aligned is for a Vector or a VectorList; one element lies at a multiple of its size: {SPELLING}"
INSIDE = f"Aligned is said of the whole vector, not of its elements: {SPELLING}"
TAKES = "Annotated takes Aligned(n) of n bytes here"
REFUSED = [
    *((f"Input[Annotated[Vector[FLOAT], Aligned({value})]]", NOT_FOUR.format(value)) for value in (0, 1, 2, 3, 12, 64, -8, 8.0)),
    *(
        (f"Input[Annotated[Vector[FLOAT], Aligned({value})]]", NOT_FOUR.format(value))
        for value in ("'8'", "True", "None", "FLOAT", "[8]")
    ),
    ("Input[Annotated[Vector[LONGLONG], Aligned(4)]]", "Aligned(4) is too little: an element of LONGLONG has 8 bytes"),
    (
        "Output[Annotated[VectorList[UNSIGNED_LONGLONG], Aligned(4)]]",
        "Aligned(4) is too little: an element of UNSIGNED_LONGLONG has 8 bytes",
    ),
    (
        "Input[Annotated[Vector[FLOAT], Aligned(8), Aligned(16)]]",
        "Aligned(8) and Aligned(16) are two demands on one vector: write the larger one",
    ),
    (
        "Input[Annotated[Annotated[Vector[FLOAT], Aligned(8)], Aligned(8)]]",
        "Aligned(8) and Aligned(8) are two demands on one vector: write the larger one",
    ),
    ("Input[Annotated[Vector[FLOAT], 8]]", f"{TAKES}, got 8: {SPELLING}"),
    (
        "Input[Annotated[Vector[FLOAT], Aligned]]",
        f"{TAKES}, got Aligned without its bytes: {SPELLING}",
    ),
    (
        "Input[Annotated[Vector[FLOAT], Aligned(8), 'pairs']]",
        f"{TAKES}, got 'pairs': {SPELLING}",
    ),
    ("Input[Annotated[FLOAT, Aligned(8)]]", ONE),
    ("Output[Annotated[HALF, Aligned(4)]]", ONE),
    ("Annotated[FLOAT, Aligned(8)]", EDGES),
    ("Annotated[Vector[FLOAT], Aligned(8)]", EDGES),
    (
        "Annotated[VectorList[FLOAT], Aligned(8)]",
        "a VectorList is an edge: write Input[VectorList[...]], Output[...] or InOut[...]",
    ),
    ("Annotated[Input[Vector[FLOAT]], Aligned(8)]", f"Annotated stands inside: {SPELLING}"),
    ("Annotated[Input, Aligned(8)]", f"Annotated stands inside: {SPELLING}"),
    ("Input[Vector[Annotated[FLOAT, Aligned(8)]]]", INSIDE),
    ("Input[VectorList[Annotated[Vector[FLOAT], Aligned(8)]]]", INSIDE),
    ("Input[Annotated[Vector[float], Aligned(8)]]", "float is Python's; write FLOAT or HALF"),
    ("Input[Annotated[Vector, Aligned(8)]]", "write Vector[FLOAT], or another element type in the brackets"),
    ("Aligned(8)", "a field is of an element type such as FLOAT, of Vector or of VectorList; got Aligned(8)"),
    ("Input[Aligned(8)]", "a field is of an element type such as FLOAT, of Vector or of VectorList; got Aligned(8)"),
    ("'Input[Annotated[Vector[FLOAT], Alined(8)]]'", "the annotation cannot be read: name 'Alined' is not defined"),
    (
        "'Input[Annotated[Vector[FLOAT], Aligned[8]]]'",
        "the annotation cannot be read: Aligned takes bytes in parentheses: write Aligned(8)",
    ),
]


@pytest.mark.parametrize("given", ["", "8, 16", "byte=8", "8, bytes=8", "*()", "bytes=8, offset=0"])
def test_what_is_no_alignment_says_what_is_expected_and_what_it_got(given):
    shown = given.replace("*()", "")
    with pytest.raises(
        PoplarTypeError, match=re.escape(f"Aligned takes the bytes of one alignment, as in Aligned(8); got Aligned({shown})")
    ):
        eval(f"Aligned({given})")
    assert Aligned(bytes=8) == Aligned(8)


@pytest.mark.parametrize(("declaration", "message"), REFUSED, ids=[declaration for declaration, _ in REFUSED])
def test_a_demand_that_means_nothing_is_refused_at_its_line(declaration, message):
    text = IMPORTS + f"class Test(Vertex):\n    good: FLOAT\n    x: {declaration}\n    def compute(self):\n        pass\n"
    with pytest.raises(CodeletError) as caught:
        codelet_of(module_from(text)["Test"])
    error = caught.value
    assert error.msg == f"Test.x: {message}"
    assert error.text[error.offset - 1 : error.end_offset - 1] == declaration


def test_the_fields_of_a_record_are_not_aligned():
    text = "class Ray(Record):\n    hit: Annotated[INT, Aligned(8)]\nclass Test(Vertex):\n    x: Input[Vector[Ray]]\n"
    with pytest.raises(CodeletError) as caught:
        codelet_of(module_from(IMPORTS + text + "    def compute(self):\n        pass\n")["Test"])
    aligned = "align their vector: Input[Annotated[Vector[Ray], Aligned(8)]]"
    assert caught.value.msg == f"Ray.hit: the fields of a record lie as in C; {aligned}"
    assert caught.value.text == "    hit: Annotated[INT, Aligned(8)]"


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda: Aligned[8], "Aligned takes bytes in parentheses: write Aligned(8)"),
        (lambda: Input[Vector[FLOAT], Aligned(8)], "an alignment is written Input[Annotated[Vector[FLOAT], Aligned(8)]]"),
        (lambda: Vector[FLOAT, 8], "an alignment is written Input[Annotated[Vector[FLOAT], Aligned(8)]]"),
        (lambda: Output(Annotated[Vector[FLOAT], Aligned(8)]), "write Output[Annotated[Vector[FLOAT], Aligned(8)]]"),
    ],
)
def test_what_is_no_annotation_at_all_says_what_to_write(write, text):
    with pytest.raises(PoplarTypeError, match=re.escape(text)):
        write()


def source():
    return codelet_of(module_from(IMPORTS + DECLARED)["Test"]).source


def test_json_keeps_the_demands():
    made = source()
    read = CodeletSource.from_json(json.loads(json.dumps(made.to_json())))
    assert read == made
    assert {field.name: field.aligned for field in read.fields} == EXPECTED


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (0, 12, "a: an alignment is 4, 8, 16 or 32 bytes, got Aligned(12)"),
        (0, "8", "a: an alignment is 4, 8, 16 or 32 bytes, got Aligned('8')"),
        (0, False, "a: an alignment is 4, 8, 16 or 32 bytes, got Aligned(False)"),
        (0, None, "a: an alignment is"),
        (0, [8], "a: an alignment is"),
        (5, 4, "in: Aligned(4) is too little"),
        (6, 8, "f: Aligned is for edges"),
        (7, 8, "g: Aligned is for a Vector or a VectorList"),
    ],
)
def test_a_damaged_demand_is_refused(field, value, message):
    tree = json.loads(json.dumps(source().to_json()))
    tree["fields"][field][5] = value
    with pytest.raises(FileLoadError, match=re.escape(message)):
        CodeletSource.from_json(tree)


def test_codelets_that_differ_in_a_demand_are_different():
    def codelet(bytes):
        return codelet_of(module_from(IMPORTS + DECLARED.replace("Aligned(16)", f"Aligned({bytes})"))["Test"])

    assert codelet(16).source.fields == codelet(16).source.fields
    assert codelet(16).source.fields != codelet(8).source.fields
