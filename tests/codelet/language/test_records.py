"""Records: their layout is C's and NumPy's, what makes none is refused, and type checkers understand them."""

import json

import numpy as np
import pytest
from codelet_rig import codelet_of, module_from
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, HALF, INT, UNSIGNED_CHAR, Array, InOut, Input, Output, PoplarTypeError, Record, Vector, Vertex, ipu
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.record_layout import RecordField, RecordLayout
from pypoplar.codelet.language.records import layout_of
from pypoplar.errors import ApplicationRuntimeError, CodeletError, FileLoadError, PoplarAttributeError
from pypoplar.types import SUPPORTED

COUNTS = st.none() | st.integers(1, 4)


def layouts(depth=2):
    """Layouts of records, some with records in them."""
    held = st.sampled_from(SUPPORTED)
    if depth:
        held |= layouts(depth - 1)
    members = st.lists(st.tuples(held, COUNTS), min_size=1, max_size=5)
    return members.map(
        lambda drawn: RecordLayout("Test", tuple(RecordField(f"f{at}", type, count) for at, (type, count) in enumerate(drawn)))
    )


@given(layouts())
def test_a_layout_is_numpys_of_aligned_structs(layout):
    dtype = layout.dtype
    assert (dtype.itemsize, dtype.alignment) == (layout.size, layout.alignment)
    assert {name: dtype.fields[name][1] for name in dtype.names} == layout.offsets


@given(layouts())
def test_a_layout_goes_through_json(layout):
    assert RecordLayout.from_json(json.loads(json.dumps(layout.to_json()))) == layout


class Point(Record):
    """Two numbers."""

    x: HALF
    y: FLOAT


class Ray(Record):
    kind: UNSIGNED_CHAR
    origin: Array[FLOAT, 3]
    ends: Array[Point, 2]
    in_: INT


class Trace(Vertex):
    rays: InOut[Vector[Ray]]
    given: Input[Vector[Point]]
    made: Output[Vector[Point]]
    bytes: Input[Vector[UNSIGNED_CHAR]]

    def compute(self):
        self.rays[0].in_ = len(ipu.view(self.bytes, Ray))


def test_a_class_has_the_layout_of_its_annotations():
    assert Ray.dtype.itemsize == 36
    assert layout_of(Ray).offsets == {"kind": 0, "origin": 4, "ends": 16, "in_": 32}
    assert layout_of(Ray).size == 36
    assert Ray.dtype["ends"].shape == (2,)
    assert Ray.dtype == np.dtype(
        [("kind", "u1"), ("origin", "f4", (3,)), ("ends", Point.dtype, (2,)), ("in_", "i4")],
        align=True,
    )
    assert [(field.type, field.record) for field in codelet_of(Trace).fields[:2]] == [
        (UNSIGNED_CHAR, layout_of(Ray)),
        (UNSIGNED_CHAR, layout_of(Point)),
    ]


def test_annotations_may_be_texts_and_name_what_an_enclosing_function_has():
    count = 5

    class Inner(Record):
        value: "FLOAT"
        many: "Array[INT, count]"

    class Outer(Record):
        inner: "Array['Inner', np.int64(2)]"

    assert Outer.dtype.itemsize == 48


def test_records_have_no_instances_and_are_seen_on_the_device_only():
    with pytest.raises(PoplarTypeError, match=r"Ray is a record of device memory and has no instances.*np.zeros\(8, Ray.dtype\)"):
        Ray()
    with pytest.raises(PoplarTypeError, match=r"Array takes types in square brackets"):
        Array(FLOAT, 3)
    with pytest.raises(PoplarAttributeError, match="Record is the base of records and none itself"):
        _ = Record.dtype
    assert not hasattr(Record, "dtype")  # what looks at classes asks for every attribute
    with pytest.raises(ApplicationRuntimeError, match=r"on the host write array.view\(Ray.dtype\)"):
        ipu.view(np.zeros(36, np.uint8), Ray)


PRELUDE = """
import numpy as np
from typing import ClassVar, Literal, TypeVar
from pypoplar import *
T = TypeVar("T")
class Point(Record):
    x: FLOAT
"""
COUNTED = "Test.x: an Array has one element or more, their number is an int;"
REFUSED = [  # body of the class, message, text of the line that is shown
    ("x: float", "Test.x: float is Python's; write FLOAT or HALF", "x: float"),
    ("x: DOUBLE", "Test.x: DOUBLE is not a type of the device; use FLOAT", "x: DOUBLE"),
    ("x: T", "Test.x: a record has no type parameters such as ~T: write one for each type", "x: T"),
    ("x: Vector[FLOAT]", "Test.x: the fields of a record have a size: write Array[FLOAT, 3], not Vector", "x: Vector[FLOAT]"),
    ("x: list[FLOAT]", "Test.x: the fields of a record have a size: write Array[FLOAT, 3], not list", "x: list[FLOAT]"),
    ("x: Input[FLOAT]", "Test.x: Input is for the fields of a vertex: write the type alone", "x: Input[FLOAT]"),
    ("x: Array[FLOAT]", None, "x: Array[FLOAT]"),
    ("x: Array", "Test.x: write Array[FLOAT, 3]: the type and how many; for type checkers Array[FLOAT, Literal[3]]", "x: Array"),
    ("x: Array[FLOAT, 0]", f"{COUNTED} got 0", "x: Array[FLOAT, 0]"),
    ("x: Array[FLOAT, -1]", f"{COUNTED} got -1", "x: Array[FLOAT, -1]"),
    ("x: Array[FLOAT, 2.5]", f"{COUNTED} got 2.5", "x: Array[FLOAT, 2.5]"),
    ("x: Array[FLOAT, n]", "Test.x: the annotation cannot be read: name 'n' is not defined", "x: 'Array[FLOAT, n]'"),
    (
        "x: Array[Array[FLOAT, 2], 2]",
        "Test.x: an Array of Arrays: make one of the product of their sizes, or an Array of a record",
        "x: Array[Array[FLOAT, 2], 2]",
    ),
    ("x: Array[int, 2]", "Test.x: int is Python's; write INT or UNSIGNED_INT", "x: Array[int, 2]"),
    ("x: str", "Test.x: a field of a record is of an element type such as FLOAT, an Array of one, or a record; got str", "x: str"),
    ("x: [FLOAT]", None, "x: [FLOAT]"),
    ("x: 'Test'", "Test.x: Test would hold itself, and have no end", "x: 'Test'"),
    ("x: Array[INT, 300_000]", "Test.x: record Test has 1,200,000 bytes; no tile has as much memory", "x: Array[INT, 300_000]"),
    ("x: INT = 3", "Test.x: a record has fields without values: its bytes are those of the tensor", "x: INT = 3"),
    ("x: INT\nSIZE = 3", "Test.SIZE: a record has annotated fields only: write SIZE: INT", "SIZE = 3"),
    ("x: INT\ndef f(self): pass", "Test.f: a record has no methods: write a function that takes the record", None),
    ("x: INT\n@property\ndef f(self): pass", "Test.f: a record has no methods: write a function that takes the record", None),
    ("pass", "Test: a record without fields: write hit: INT", None),
]


@pytest.mark.parametrize(("body", "message", "line"), REFUSED, ids=[body for body, _, _ in REFUSED])
def test_what_is_no_record_is_refused_at_its_line(body, message, line):
    text = line if line is not None and "'Array" in line else body
    lines = "".join(f"    {part}\n" for part in text.split("\n"))
    try:
        record = module_from(f"{PRELUDE}class Test(Record):\n{lines}")["Test"]
    except TypeError:  # Python itself asks for two arguments
        assert body == "x: Array[FLOAT]"
        return
    for look in (lambda: record.dtype, lambda: layout_of(record)):
        with pytest.raises(CodeletError) as caught:
            look()
        assert caught.value.lineno is not None
        if message is not None:
            assert caught.value.msg == message
        if line is not None:
            assert caught.value.text.strip() == line


ALONE = "Test: a record derives from Record alone, not from"
BASES = [
    (
        "class Test(Point):\n    y: FLOAT\n",
        f"{ALONE} Point; hold another record as a field",
    ),
    (
        "class Test(Record, Generic[T]):\n    y: T\n",
        f"{ALONE} Record, Generic; hold another record as a field",
    ),
]


@pytest.mark.parametrize(("text", "message"), BASES)
def test_a_record_derives_from_record_alone(text, message):
    with pytest.raises(CodeletError) as caught:
        _ = module_from(f"{PRELUDE}from typing import Generic\n{text}")["Test"].dtype
    assert caught.value.msg == message


def test_records_may_nest_sixteen_deep():
    text = "class R0(Record):\n    x: FLOAT\n" + "".join(f"class R{at}(Record):\n    x: R{at - 1}\n" for at in range(1, 17))
    names = module_from(PRELUDE + text)
    assert names["R15"].dtype.itemsize == 4
    with pytest.raises(CodeletError, match=r"R16\.x: record R16: more than 16 records in each other"):
        _ = names["R16"].dtype


IN_VECTORS = "Test.x: records stand in a Vector: write"
FIELDS = [
    ("x: Vector[Point]", "Test.x: records are the bytes of a tensor: write Input[Vector[Point]], Output[...] or InOut[...]"),
    ("x: Point", "Test.x: records are the bytes of a tensor: write Input[Vector[Point]], Output[...] or InOut[...]"),
    ("x: InOut[Point]", "Test.x: records stand in a Vector: write Input[Vector[Point]], connected to the bytes of one record"),
    (
        "x: Input[VectorList[Point]]",
        f"{IN_VECTORS} Input[VectorList[UNSIGNED_CHAR]] here, and ipu.view(self.rows[r], Point) in compute",
    ),
    ("x: Input[Array[FLOAT, 3]]", "Test.x: Array is for the fields of a Record; write Vector[FLOAT]"),
    ("x: Input[Vector[Bad]]", "Bad.y: float is Python's; write FLOAT or HALF"),
    ("x: Input[Vector[Point]] = 3", None),
]


@pytest.mark.parametrize(("field", "message"), FIELDS, ids=[field for field, _ in FIELDS])
def test_records_stand_in_vectors_on_edges(field, message):
    bad = "class Bad(Record):\n    y: float\n"
    text = f"{PRELUDE}{bad}class Test(Vertex):\n    {field}\n    def compute(self):\n        pass\n"
    with pytest.raises(CodeletError) as caught:
        codelet_of(module_from(text)["Test"])
    if message is not None:
        assert caught.value.msg == message
        assert caught.value.text.strip() == ("y: float" if "Bad" in field else field)


def test_a_codelet_with_records_goes_through_json():
    codelet = codelet_of(Trace)
    tree = json.loads(json.dumps(codelet.to_json()))
    again = Codelet.from_json(tree)
    assert again == codelet
    assert again.typed == codelet.typed


def _put(*path):
    *path, key, value = path

    def change(tree):
        for step in path:
            tree = tree[step]
        tree[key] = value

    return change


DAMAGES = [
    _put("records", 0, 1, []),
    _put("records", []),
    _put("records", 0, 1, 0, 1, "FLAOT"),
    _put("records", 0, 1, 0, 2, 0),
    _put("records", 0, 1, 0, 2, True),
    _put("records", 0, 1, 0, 2, "3"),
    _put("records", 0, 1, 0, 2, 1 << 40),
    _put("records", 0, 1, 0, 0, 5),
    _put("records", 0, 0, None),
    _put("records", 0, "Ray"),
    _put("fields", 0, 1, "state"),
    _put("fields", 0, 2, "list"),
    _put("fields", 0, 4, 3),
    _put("fields", 0, 3, ["Ray", [["x", "FLOAT", None], ["x", "FLOAT", None]]]),
]


@pytest.mark.parametrize("change", DAMAGES, ids=range(len(DAMAGES)))
def test_a_damaged_record_is_refused(change):
    tree = codelet_of(Trace).to_json()
    change(tree["source"])
    with pytest.raises(FileLoadError, match="damaged source of a codelet"):
        Codelet.from_json(tree)


def test_a_record_of_a_file_nests_no_deeper_than_one_of_a_class():
    nested = ["R", [["x", "FLOAT", None]]]
    for _ in range(400):
        nested = ["R", [["x", nested, None]]]
    tree = codelet_of(Trace).to_json()
    tree["source"]["records"][0] = nested
    with pytest.raises(FileLoadError):
        Codelet.from_json(tree)


USER = """
from typing import Literal

from pypoplar import (
    BOOL, CHAR, FLOAT, HALF, INT, UNSIGNED_CHAR, Array, InOut, Input, Output, Record, Vector, Vertex, ipu
)
import numpy as np


class Point(Record):
    x: HALF
    y: FLOAT


class Ray(Record):
    origin: Array[FLOAT, Literal[3]]
    ends: Array[Point, Literal[2]]
    centre: Point
    hit: INT
    far: BOOL


def lift(ray: Ray, by: float) -> float:
    ray.origin[1] += by
    return ray.centre.y


class Trace(Vertex):
    rays: InOut[Vector[Ray]]
    bytes: Input[Vector[UNSIGNED_CHAR]]
    out: Output[FLOAT]

    def compute(self) -> None:
        total = 0.0
        for i in range(len(self.rays)):
            self.rays[i].hit += 1
            self.rays[i].far = self.rays[i].origin[0] > 2.0
            self.rays[i].ends[1].y = total
            total += lift(self.rays[i], 2.0)
        for ray in self.rays[1:3]:
            for value in ray.origin:
                total += value
            for end in ray.ends:
                total += end.y
        part = ipu.view(self.bytes[0:48], Ray)
        for k in range(len(part)):
            total += part[k].origin[2] + part[k].hit
        self.out = total + len(part[0].origin)


array = np.zeros(4, Ray.dtype)
"""


def test_records_type_check(type_check):
    said, code = type_check(USER)
    assert code == 0, said
    assert [field.name for field in codelet_of(module_from(USER)["Trace"]).fields] == ["rays", "bytes", "out"]


def test_a_wrong_use_of_a_record_is_an_error_of_the_type_checker(type_check):
    wrong = "def wrong(rays: Vector[Ray]) -> None:\n    a: str = rays[0].hit\n    b: str = rays[0].origin[1]\n    rays[0].his = 3\n"
    said, code = type_check(USER + wrong)
    assert code == 1
    assert 'expression has type "int"' in said
    assert 'expression has type "float"' in said
    assert '"Ray" has no attribute "his"' in said
