"""Which fields a class demands to be apart, and which constraints are refused."""

import json
import re
from typing import Generic, TypeVar

import pytest
from codelet_rig import codelet_of, module_from

from pypoplar import FLOAT, CodeletError, FileLoadError, Graph, Input, IPUModel, Output, PoplarTypeError, Vector, VectorList, Vertex
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.source import CodeletSource

T = TypeVar("T")

TEXT = """
from pypoplar import FLOAT, INT, InOut, Input, Output, Vector, VectorList, Vertex

class Test(Vertex{}):
    x: InOut[Vector[FLOAT]]
    y: Input[Vector[FLOAT]]
    in_: Input[Vector[INT]]
    rows: Input[VectorList[FLOAT]]
    one: Output[FLOAT]
    factor: FLOAT
    taps: Vector[FLOAT]

    def compute(self):
        self.x[0] = self.y[0]
"""


def declared(keyword, before=""):
    return module_from(before + TEXT.format(keyword))["Test"]


def distinct(cls):
    codelet = codelet_of(cls)
    assert codelet.typed.distinct == codelet.source.distinct
    assert [tuple(codelet.fields[position].name for position in pair) for pair in codelet.distinct] == list(codelet.source.distinct)
    return codelet.source.distinct


@pytest.mark.parametrize(
    ("constraint", "pairs"),
    [
        ('"elem(*x) != elem(*y)"', [("x", "y")]),
        ('"elem(*y) != elem(*x)"', [("x", "y")]),
        ('" elem ( * x )!=elem( *y ) "', [("x", "y")]),
        ('"elem(*in) != elem(*y)"', [("y", "in")]),
        ('"elem(*in_) != elem(*y)"', [("y", "in")]),
        ('"elem(**rows) != elem(*x)"', [("x", "rows")]),
        ('"elem(*x) != elem(*y) && elem(*x) != elem(**rows)"', [("x", "y"), ("x", "rows")]),
        ('["elem(*x) != elem(**rows)", "elem(*x) != elem(*y)"]', [("x", "y"), ("x", "rows")]),
        ('("elem(*x) != elem(*y)", "elem(*y) != elem(*in) && elem(*x) != elem(*in)")', [("x", "y"), ("x", "in"), ("y", "in")]),
    ],
)
def test_constraints_are_read_however_they_are_written(constraint, pairs):
    assert distinct(declared(f", constraint={constraint}")) == tuple(pairs)
    assert distinct(declared(f", constraint={constraint}", "from __future__ import annotations\n")) == tuple(pairs)
    assert distinct(declared(f', name="mine::Test", constraint={constraint}')) == tuple(pairs)


def test_a_codelet_without_constraints_demands_nothing():
    assert distinct(declared("")) == ()


class Base(Vertex, constraint="elem(*x) != elem(*y)"):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        self.y[0] = self.x[0]


def test_a_derived_class_has_the_demands_of_its_bases_and_its_own():
    class Derived(Base, constraint="elem(*z) != elem(*x)"):
        z: Input[Vector[FLOAT]]

    class Further(Derived):
        y: Output[VectorList[FLOAT]]

    assert distinct(Derived) == (("x", "y"), ("x", "z"))
    with pytest.raises(CodeletError, match=r": Further: constraint '.*' of its base Base: 'y' is a VectorList, whose elements"):
        codelet_of(Further)


def test_a_derived_class_may_say_again_what_its_base_says():
    class Derived(Base, constraint="elem(*y) != elem(*x)"):
        pass

    assert distinct(Derived) == (("x", "y"),)


def test_a_base_may_name_the_fields_of_the_classes_derived_from_it():
    class Pattern(Vertex, constraint="elem(*x) != elem(*y)"):
        def compute(self):
            self.y[0] = self.x[0]

    class Whole(Pattern):
        x: Input[Vector[FLOAT]]
        y: Output[Vector[FLOAT]]

    assert distinct(Whole) == (("x", "y"),)


class Template(Vertex, Generic[T], constraint="elem(*x) != elem(*y)"):
    x: Input[Vector[T]]
    y: Output[Vector[T]]

    def compute(self):
        self.y[0] = self.x[0]


def test_instances_of_a_template_have_its_demands():
    assert distinct(Codelet.of_class(Template, {T: FLOAT})) == (("x", "y"),)


def test_a_codelet_file_may_have_constraints(tmp_path):
    file = tmp_path / "constraints.py"
    file.write_text(TEXT.format(', constraint="elem(*x) != elem(*y)"'))
    graph = Graph(IPUModel("tiny").createDevice())
    graph.addCodelets(str(file))
    assert graph.hasCodelet("Test")


WRITE = 'write "elem(*x) != elem(*y)", of two fields; join several by &&, or give a list'
REGIONS = "regions of a tile's memory are not modelled, so that no layout could meet it; leave it out"
KIND = "a constraint is a string, or a list of strings; got {}: " + WRITE
REFUSED = {
    "elem(*x) != elem(*z)": "there is no field 'z'; there are 'x', 'y', 'in', 'rows', 'one', 'factor', 'taps'",
    "elem(*x) != elem(*row)": "there is no field 'row'; did you mean 'rows'?",
    "elem(*x) != elem(*one)": "'one' is one element; constraints are about a Vector or a VectorList",
    "elem(*factor) != elem(*x)": "'factor' is a plain field, which is nobody else's memory; constraints are about edges",
    "elem(*taps) != elem(*x)": "'taps' is a plain field, which is nobody else's memory; constraints are about edges",
    "elem(*x) != elem(*x)": "field 'x' cannot be kept apart from itself",
    "elem(*in) != elem(*in_)": "field 'in' cannot be kept apart from itself",
    "elem(*x) != elem(*rows)": "'rows' is a VectorList, whose elements are written elem(**rows)",
    "elem(**x) != elem(*y)": "'x' is a Vector, whose elements are written elem(*x)",
    "elem(x) != elem(y)": "'x' is a Vector, whose elements are written elem(*x)",
    "elem(*x) == elem(*y)": "fields can be demanded to be apart, by !=, not ==",
    "elem(*x) <= elem(*y)": "fields can be demanded to be apart, by !=, not <=",
    "region(*x) != region(*y)": REGIONS,
    "region(*x) != elem(*y)": REGIONS,
    "elem(*x) != region(*y)": REGIONS,
    "elm(*x) != elem(*y)": f"nothing is called 'elm': {WRITE}",
    "elem(*x) != elem(*y) || elem(*x) != elem(**rows)": WRITE,
    "elem(*x) != elem(*y) != elem(*in)": WRITE,
    "elem(*x) != elem(*y) &&": WRITE,
    "elem(*x) != elem(*y), elem(*x) != elem(*in)": WRITE,
    "elem(*x) != elem(*y) and elem(*x) != elem(*in)": WRITE,
    "elem(*x)": WRITE,
    "x != y": WRITE,
    "elem(*self.x) != elem(*y)": WRITE,
    "elem(*x[0]) != elem(*y)": WRITE,
    "!(elem(*x) == elem(*y))": WRITE,
    "": WRITE,
}


@pytest.mark.parametrize("constraint", REFUSED)
def test_a_constraint_that_demands_nothing_is_refused_at_its_line(constraint):
    for written in (f'"{constraint}"', f'["elem(*y) != elem(*in)", "{constraint}"]'):
        with pytest.raises(CodeletError) as caught:
            codelet_of(declared(f", constraint={written}"))
        error = caught.value
        assert error.msg == f"Test: constraint {constraint!r}: {REFUSED[constraint]}"
        assert error.text[error.offset - 1 : error.end_offset - 1] == written


@pytest.mark.parametrize("value", ["3", "None", "True", "b'elem'", "{'elem(*x) != elem(*y)'}", "[3]", "[('x', 'y')]", "lambda: 0"])
def test_what_is_no_string_nor_a_list_of_strings_is_refused_at_its_line(value):
    with pytest.raises(CodeletError) as caught:
        codelet_of(declared(f", constraint={value}"))
    shown = re.sub(r"<function .*>", "...", caught.value.msg)
    assert shown == f"Test: {KIND.format('...' if 'lambda' in value else value)}"
    assert caught.value.text[caught.value.offset - 1 : caught.value.end_offset - 1] == value


@pytest.mark.parametrize("value", ["[]", "()"])
def test_a_constraint_that_says_nothing_is_refused_at_its_line(value):
    with pytest.raises(CodeletError) as caught:
        codelet_of(declared(f", constraint={value}"))
    assert caught.value.msg == f"Test: constraint {value} demands nothing: leave it out, or {WRITE}"
    assert caught.value.text[caught.value.offset - 1 : caught.value.end_offset - 1] == value


@pytest.mark.parametrize(
    "value",
    [
        '"elem(*x) != elem(*y) && elem(*x) != elem(*y)"',
        '"elem(*x) != elem(*y) && elem(*y) != elem(*x)"',
        '["elem(*x) != elem(*y)", "elem(*x) != elem(*y)"]',
    ],
)
def test_a_pair_that_is_kept_apart_twice_is_refused_at_its_line(value):
    with pytest.raises(CodeletError, match="'x' and 'y' are kept apart twice: leave one of the two out") as caught:
        codelet_of(declared(f", constraint={value}"))
    assert caught.value.text[caught.value.offset - 1 : caught.value.end_offset - 1] == value


@pytest.mark.parametrize("name", ["constraint", "constraints"])
@pytest.mark.parametrize(
    "value", ["'elem(*x) != elem(*y)'", "['elem(*x) != elem(*y)']", "('region(*x) != region(*y)',)", "'elem(x)'"]
)
def test_a_constraint_that_is_an_attribute_is_refused_with_the_keyword(name, value):
    cls = module_from(TEXT.format("").replace("    x: InOut", f"    {name} = {value}\n    x: InOut", 1))["Test"]
    with pytest.raises(CodeletError) as caught:
        codelet_of(cls)
    remedy = f"write class Test(Vertex, constraint={value})"
    assert caught.value.msg == f"Test.{name}: a constraint is a keyword of the class, not an attribute: {remedy}"
    assert caught.value.text[caught.value.offset - 1 : caught.value.end_offset - 1] == value


def test_an_attribute_of_that_name_may_be_something_else():
    text = TEXT.format("").replace("    x: InOut", "    constraint = 3\n    x: InOut", 1)
    assert distinct(module_from(text)["Test"]) == ()


@pytest.mark.parametrize("keyword", ["constraints", "Constraint", "constrain", "nmae"])
def test_a_misspelt_keyword_of_the_class_says_what_is_meant(keyword):
    meant = "name" if keyword == "nmae" else "constraint"
    with pytest.raises(PoplarTypeError, match=rf"class Test has the unknown keyword '{keyword}'; did you mean '{meant}'\?"):
        declared(f', {keyword}="elem(*x) != elem(*y)"')


def test_other_keywords_are_those_of_other_bases():
    class Mixin:
        def __init_subclass__(cls, *, size=0, **keywords):
            super().__init_subclass__(**keywords)
            cls.SIZE = size

    class Test(Base, Mixin, size=3):
        pass

    assert Test.SIZE == 3
    with pytest.raises(TypeError, match=r"unexpected keyword|no keyword"):

        class Other(Base, size=3):
            pass


def source():
    return codelet_of(declared(', constraint="elem(*x) != elem(*y) && elem(*x) != elem(**rows)"')).source


def test_json_keeps_the_demands():
    made = source()
    assert CodeletSource.from_json(json.loads(json.dumps(made.to_json()))) == made


@pytest.mark.parametrize(
    "value",
    [
        [["y", "x"]],
        [["x", "x"]],
        [["x", "z"]],
        [["x", "one"]],
        [["x", "factor"]],
        [["factor", "taps"]],
        [["x"]],
        [["x", "y", "in"]],
    ],
)
def test_damaged_demands_are_refused(value):
    tree = json.loads(json.dumps(source().to_json()))
    tree["distinct"] = value
    with pytest.raises(FileLoadError):
        CodeletSource.from_json(tree)


def test_codelets_that_differ_in_a_demand_are_different():
    def codelet(constraint):
        cls = type("Test", (Base,), {}, **constraint)
        return codelet_of(cls)

    assert codelet({}) == codelet({"constraint": "elem(*x) != elem(*y)"})
    free = type("Test", (Vertex,), {"__annotations__": Base.__annotations__, "compute": Base.compute})
    assert codelet_of(free) != codelet({})
