"""How fields are declared, and which declarations are refused."""

import re
import sys
import textwrap
from typing import Generic, TypeVar

import numpy as np
import pytest
from codelet_rig import codelet_of, module_from

from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.fields import Input, MultiVertex, Output, SupervisorVertex, Vector, VectorList, Vertex
from pypoplar.device import IPUModel
from pypoplar.errors import CodeletError, UnknownField
from pypoplar.graph.graph import Graph
from pypoplar.types import BOOL, CHAR, FLOAT, HALF, INT, SUPPORTED, UNSIGNED_INT

T = TypeVar("T")

DECLARED = """
class Test(Vertex):
    a: Input[FLOAT]
    b: Output[Vector[HALF]]
    c: InOut[VectorList[INT]]
    d: UNSIGNED_INT
    e: Vector[BOOL]
    in_: Input[Vector[FLOAT]]
    SIZE: int = 4
    STEP: ClassVar[int] = 2

    def compute(self):
        pass
"""
EXPECTED = [
    ("a", "input", "scalar", "FLOAT"),
    ("b", "output", "vector", "HALF"),
    ("c", "inout", "list", "INT"),
    ("d", "state", "scalar", "UNSIGNED_INT"),
    ("e", "state", "vector", "BOOL"),
    ("in", "input", "vector", "FLOAT"),
]
NAMES = "InOut, Input, Output, Vector, VectorList, Vertex"
IMPORTS = (
    f"from typing import ClassVar\nfrom pypoplar.codelet.language.fields import {NAMES}\n"
    "from pypoplar.types import BOOL, DOUBLE, FLOAT, HALF, INT, LONG, QUARTER, UNSIGNED_INT\n"
)


def seen(cls):
    return [(one.name, one.access, one.form, one.type.__name__) for one in codelet_of(cls).fields]


def as_strings(text):
    made = []
    for line in text.splitlines():
        name, colon, rest = line.partition(": ")
        annotated = colon and not line.startswith("class") and "=" not in line and "def" not in line
        made.append(f'{name}: "{rest}"' if annotated else line)
    return "\n".join(made)


def nested(text):
    return "def make():\n" + textwrap.indent(IMPORTS + text, "    ") + "\n    return Test\n\nTest = make()\n"


def qualified(text):
    """The names of fields reached through their module."""
    return (
        "import pypoplar.codelet.language.fields as p\n"
        + IMPORTS
        + re.sub(r"\b(" + NAMES.replace(", ", "|") + r")\b", r"p.\1", text)
    )


FUTURE = "from __future__ import annotations\n"
WAYS = {
    "objects": IMPORTS + DECLARED,
    "strings": IMPORTS + as_strings(DECLARED),
    "future": FUTURE + IMPORTS + DECLARED,
    "in a function": nested(DECLARED),
    "in a function, strings": nested(as_strings(DECLARED)),
    "in a function, future": FUTURE + nested(DECLARED),
    "through a module": qualified(DECLARED),
    "through a module, future": FUTURE + qualified(DECLARED),
}


@pytest.mark.parametrize("text", WAYS.values(), ids=list(WAYS))
def test_annotations_work_as_objects_strings_and_under_future(text):
    assert seen(module_from(text)["Test"]) == EXPECTED


def test_every_supported_type_makes_a_field():
    for element in SUPPORTED:
        text = IMPORTS + f"from pypoplar.types import {element.__name__}\nclass Test(Vertex):\n    x: Input[{element.__name__}]\n"
        text += "    def compute(self):\n        pass\n"
        assert codelet_of(module_from(text)["Test"]).fields[0].type is element


def test_kinds():
    class One(Vertex):
        def compute(self):
            pass

    class Many(MultiVertex):
        def compute(self, worker):
            pass

    class Chief(SupervisorVertex):
        def compute(self):
            pass

    assert [codelet_of(one).kind for one in (One, Many, Chief)] == ["vertex", "multi", "supervisor"]


def test_fields_of_bases_come_first_and_can_be_declared_anew():
    class Base(Vertex):
        a: Input[FLOAT]
        b: Input[FLOAT]

    class Derived(Base):
        c: Input[FLOAT]
        a: Output[HALF]

        def compute(self):
            pass

    assert seen(Derived) == [
        ("b", "input", "scalar", "FLOAT"),
        ("c", "input", "scalar", "FLOAT"),
        ("a", "output", "scalar", "HALF"),
    ]


def test_type_variables_of_bases_are_bound_where_they_are_derived_from():
    class Base(Vertex, Generic[T]):
        a: Input[Vector[T]]

    class Floats(Base[FLOAT]):
        b: Input[INT]

        def compute(self):
            pass

    class Same(Base[T], Generic[T]):
        b: Output[T]

        def compute(self):
            self.b = self.a[0]

    assert seen(Floats) == [("a", "input", "vector", "FLOAT"), ("b", "input", "scalar", "INT")]
    instance = Codelet.of_class(Same, {T: CHAR})
    assert [one.type for one in instance.fields] == [CHAR, CHAR]


OUTSIDE = "Input, Output or InOut stands outside: Input[Vector[FLOAT]], Input[VectorList[FLOAT]]"
WRONG = "a field is of an element type such as FLOAT, of Vector or of VectorList; got"
REFUSED = [
    ("float", "float is Python's; write FLOAT or HALF"),
    ("Input[int]", "int is Python's; write INT or UNSIGNED_INT"),
    ("Vector[bool]", "bool is Python's; write BOOL"),
    ("DOUBLE", "DOUBLE is not a type of the device; use FLOAT"),
    ("Input[LONG]", "LONG is not a type of the device; use LONGLONG"),
    ("Input[QUARTER]", "QUARTER is not a type of the device yet"),
    ("VectorList[FLOAT]", "a VectorList is an edge: write Input[VectorList[...]], Output[...] or InOut[...]"),
    ("Input", "write Input[FLOAT] or Input[Vector[FLOAT]]"),
    ("Input[Vector]", "write Vector[FLOAT], or another element type in the brackets"),
    ("Input[Vector[Vector[FLOAT]]]", "a vector of vectors is VectorList[FLOAT]; fields have at most two dimensions"),
    ("Vector[Input[FLOAT]]", OUTSIDE),
    ("Input[Input[FLOAT]]", OUTSIDE),
    ("str", f"{WRONG} str"),
    ("3", f"{WRONG} 3"),
    ("Input[T]", "~T has no type here: make the class Generic[T]"),
    (
        "'Input(Vector(FLOAT))'",
        "the annotation cannot be read: Vector takes types in square brackets: write Vector[FLOAT], "
        "and Input[Vector[FLOAT]] for an edge",
    ),
    ("'Input[FLOATT]'", "the annotation cannot be read: name 'FLOATT' is not defined"),
]


@pytest.mark.parametrize(("declaration", "message"), REFUSED, ids=[one for one, _ in REFUSED])
def test_a_declaration_that_makes_no_field_is_refused_at_its_line(declaration, message):
    text = IMPORTS + f"from typing import TypeVar\nT = TypeVar('T')\nclass Test(Vertex):\n    good: FLOAT\n    x: {declaration}\n"
    cls = module_from(text + "    def compute(self):\n        pass\n")["Test"]
    with pytest.raises(CodeletError) as caught:
        codelet_of(cls)
    error = caught.value
    assert error.msg == f"Test.x: {message}"
    assert error.text[error.offset - 1 : error.end_offset - 1] == declaration


EDGE = "only plain fields have a value in the class; connect an edge to a tensor, or to a constant, graph.addConstant"
WHOLE = "INT goes from -2147483648 to 2147483647, in whole numbers"
HALVES = "HALF goes from -65504 to 65504"
NO_DEFAULTS = [
    ("Input[FLOAT] = 2.0", EDGE),
    ("InOut[Vector[INT]] = [1, 2]", EDGE),
    ("HALF = 70000", f"the field is HALF, which cannot hold 70000: {HALVES}"),
    ("INT = 3.5", f"the field is INT, which cannot hold 3.5: {WHOLE}"),
    ("INT = 2 ** 31", f"the field is INT, which cannot hold 2147483648: {WHOLE}"),
    ("FLOAT = 1e300", "the field is FLOAT, which cannot hold 1e+300: FLOAT goes from -3.4028235e+38 to 3.4028235e+38"),
    (
        "UNSIGNED_INT = -1",
        "the field is UNSIGNED_INT, which cannot hold -1: UNSIGNED_INT goes from 0 to 4294967295, in whole numbers",
    ),
    ("BOOL = 2", "the field is BOOL, which cannot hold 2: BOOL goes from 0 to 1, in whole numbers"),
    ("INT = None", "the default of an INT field is a number, got None"),
    ("FLOAT = 'a'", "the default of a FLOAT field is a number, got 'a'"),
    ("FLOAT = [1.0]", "the default of a FLOAT field is a number, got [1.0]"),
    ("Vector[HALF] = [1, 70000]", f"the vector is HALF, which cannot hold 70000 at index 1: {HALVES}"),
    ("Vector[HALF] = 3", "the default of a Vector[HALF] is a sequence of numbers, got 3"),
    ("Vector[INT] = 'abc'", "the default of a Vector[INT] is a sequence of numbers, got 'abc'"),
    ("Vector[INT] = [[1], [2]]", "the default of a Vector[INT] is a sequence of numbers, got [[1], [2]]"),
    ("Vector[INT] = {1, 2}", "got {1, 2} for the default of a Vector[INT]: a set has no order; write [1, 2]"),
]


@pytest.mark.parametrize(("declaration", "message"), NO_DEFAULTS, ids=[one for one, _ in NO_DEFAULTS])
def test_a_default_that_the_field_cannot_hold_is_refused_at_the_value(declaration, message):
    text = IMPORTS + f"class Test(Vertex):\n    x: {declaration}\n    def compute(self):\n        pass\n"
    with pytest.raises(CodeletError) as caught:
        codelet_of(module_from(text)["Test"])
    error = caught.value
    assert error.msg == f"Test.x: {message}"
    assert error.text[error.offset - 1 : error.end_offset - 1] == declaration.partition(" = ")[2]


def test_a_default_of_a_derived_class_is_refused_there():
    text = IMPORTS + "class Base(Vertex):\n    x: INT = 1\nclass Test(Base):\n    x = 1.5\n    def compute(self):\n        pass\n"
    with pytest.raises(CodeletError) as caught:
        codelet_of(module_from(text)["Test"])
    assert caught.value.msg == f"Test.x: the field is INT, which cannot hold 1.5: {WHOLE}"
    assert caught.value.text == "    x = 1.5"


def defaults_of(cls):
    return {field.name: field.default for field in codelet_of(cls).fields}


def test_a_class_gives_defaults_to_plain_fields():
    class Base(Vertex):
        a: FLOAT = 0.1
        b: INT = 1
        c: Vector[HALF] = (1, 0.1)
        d: CHAR = np.int64(7)
        in_: UNSIGNED_INT = 2**32 - 1
        flag: BOOL = True
        none: INT
        SIZE: int = 4

        def compute(self):
            self.b = self.SIZE

    class Derived(Base):
        b = 2
        none = 5
        a: FLOAT

    rounded = float(np.float32(0.1))
    known = {"a": rounded, "b": 1, "c": (1.0, float(np.float16(0.1))), "d": 7, "in": 2**32 - 1, "flag": True, "none": None}
    assert defaults_of(Base) == known
    assert defaults_of(Derived) == known | {"b": 2, "none": 5}
    assert "b" not in codelet_of(Base).source.attributes  # no constant


def test_a_default_is_judged_for_each_type_of_a_template():
    class Scale(Vertex, Generic[T]):
        factor: T = 70000

        def compute(self):
            pass

    assert Codelet.of_class(Scale, {T: FLOAT}).fields[0].default == 70000.0
    with pytest.raises(CodeletError, match="the field is HALF, which cannot hold 70000"):
        Codelet.of_class(Scale, {T: HALF})


def test_codelets_that_differ_in_a_default_are_different():
    def scale(value):
        class Scale(Vertex):
            factor: FLOAT = value

            def compute(self):
                pass

        return codelet_of(Scale)

    assert scale(0.0) == scale(0.0)
    assert scale(float("nan")) == scale(float("nan"))
    assert scale(0.0) != scale(-0.0)


def test_an_unknown_field_is_named_with_the_nearest():
    class Test(Vertex):
        weights: Input[FLOAT]
        bias: UNSIGNED_INT
        rows: Input[VectorList[FLOAT]]

        def compute(self):
            pass

    assert [field.name for field in codelet_of(Test).fields] == ["weights", "bias", "rows"]
    graph = Graph(IPUModel("tiny").createDevice().getTarget())
    graph.addCodelets(Test)
    vertex = graph.addVertex(graph.addComputeSet("test"), Test)
    with pytest.raises(UnknownField, match=r"codelet 'Test' has no field 'weihgts'; did you mean 'weights'\?"):
        vertex["weihgts"]
    with pytest.raises(UnknownField, match="codelet 'Test' has no field 'zzz'; there are 'weights', 'bias', 'rows'"):
        vertex["zzz"]


class Estimated(Vertex):
    x: Input[Vector[FLOAT]]
    OVERHEAD = 11

    def compute(self):
        pass

    def cycles(self, vertex):
        return self.OVERHEAD + 2 * vertex.fieldSize("x")


class Static(Estimated):
    @staticmethod
    def cycles(vertex):
        return 5


class Introspector:
    def fieldSize(self, name):
        return {"x": 10}[name]


def test_a_cycles_method_is_the_estimator():
    assert codelet_of(Estimated).estimator(Introspector()) == 31
    assert codelet_of(Static).estimator(Introspector()) == 5
    assert "cycles" not in codelet_of(Estimated).source.attributes


def test_a_codelet_without_cycles_has_no_estimator():
    class Plain(Vertex):
        def compute(self):
            pass

    assert codelet_of(Plain).estimator is None


USER = """
from typing import Annotated, Generic, TypeVar

from pypoplar.codelet.language.fields import Aligned, InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex
from pypoplar.types import BOOL, FLOAT, HALF, INT

T = TypeVar("T")


def clamp(x: float) -> float:
    return min(max(x, 0.0), 1.0)


class Gather(Vertex, Generic[T], name="user::Gather"):
    x: Input[Vector[FLOAT]]
    indices: Input[Vector[INT]]
    rows: InOut[VectorList[FLOAT]]
    other: Output[Vector[T]]
    out: Output[FLOAT]
    done: Output[BOOL]
    factor: FLOAT
    table: Vector[INT]

    def compute(self) -> bool:
        total = 0.0
        for i in range(len(self.indices)):
            total += clamp(self.x[self.indices[i]]) * self.factor + HALF(i)
        for row in self.rows:
            for value in row[1:]:
                total += value
            row[0] = total
        self.rows[0][self.table[1]] += 2.0
        self.out = total
        self.out += 1.0
        self.factor = 2.0
        self.done = total > 3.0 and len(self.rows) == 2
        self.other[0] = self.other[1]
        self.table[0] = 3
        self.table[1] = self.indices[self.table[0]]
        return self.out > 0


class Many(MultiVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        self.x[worker] *= 2.0


class Demanding(Vertex, Generic[T], name="user::Demanding", constraint="elem(*x) != elem(**rows)"):
    x: Input[Annotated[Vector[FLOAT], Aligned(8)]]
    rows: InOut[Annotated[VectorList[HALF], Aligned(4)]]
    other: Output[Annotated[Vector[T], Aligned(16)]]

    def compute(self) -> None:
        for i in range(len(self.rows)):
            row = self.rows[i]
            row[0] = self.x[i] + row[1]
        for value in self.x[1:3]:
            self.rows[0][0] += value
        self.other[0] = self.other[1]


class Demands(Demanding[FLOAT], constraint=["elem(*x) != elem(*other)", "elem(*other) != elem(**rows)"]):
    pass
"""


def test_codelets_type_check(type_check):
    said, code = type_check(USER)
    assert code == 0, said


def test_defaults_type_check_for_every_type(type_check):
    names = [element.__name__ for element in SUPPORTED]
    value = {"BOOL": "True", "FLOAT": "0.5", "HALF": "-2"}
    lines = [f"    f{at}: {name} = default({value.get(name, '3')})" for at, name in enumerate(names)]
    lines += [f"    v{at}: Vector[{name}] = default([{value.get(name, '3')}])" for at, name in enumerate(names)]
    lines += [
        "    array: Vector[FLOAT] = default(np.zeros(3))",
        "    plain: Vector[INT] = default((1, 2, 3))",
        "    def compute(self) -> None:",
    ]
    lines += [f"        self.f{at} = self.v{at}[0]" for at in range(len(names))]
    text = (
        f"import numpy as np\nfrom pypoplar import Vector, Vertex, default, {', '.join(names)}\nclass Test(Vertex):\n"
        + "\n".join(lines)
    )
    said, code = type_check(text + "\n")
    assert code == 0, said
    fields = codelet_of(module_from(text)["Test"]).fields
    assert all(field.default is not None for field in fields)


def test_a_wrong_use_of_a_field_is_an_error_of_the_type_checker(type_check):
    wrong = "class Wrong(Vertex):\n    x: Input[Vector[FLOAT]]\n    def compute(self) -> None:\n        a: str = self.x[0]\n"
    said, code = type_check(USER.split("T = ")[0] + wrong)
    assert code == 1
    assert 'expression has type "float"' in said


def test_the_module_of_the_class_need_not_be_importable():
    assert "codelet_test" not in sys.modules
