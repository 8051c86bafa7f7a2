"""Where a codelet's source comes from, what its names mean, and its JSON form."""

import enum
import functools
import json
import linecache
import math
import subprocess
import sys

import numpy as np
import pytest
from codelet_rig import PRELUDE, codelet_of, lines, module_from, run, vertex

from pypoplar import ipu
from pypoplar.codelet.codelet import Codelet
from pypoplar.codelet.language.fields import InOut, Input, Output, Vector, Vertex
from pypoplar.codelet.language.source_text import function_listing
from pypoplar.errors import CodeletError, FileLoadError
from pypoplar.types import FLOAT, INT

SIZE = 3
RATE = 0.5
FLAG = True
PRICE = np.float32(0.1)
TABLE = [1, 2, 3]


class Colour(enum.IntEnum):
    RED = 7


class Settings:
    depth = 4


def square(x):
    return x * x


class InModule(Vertex):
    x: Input[Vector[FLOAT]]
    out: Output[FLOAT]
    HALF_SIZE: int = 5

    def compute(self):
        self.out = square(self.x[0]) * RATE + SIZE + Colour.RED + Settings.depth + self.HALF_SIZE + math.pi * 0


def test_a_class_in_a_module_takes_its_constants_helpers_and_modules():
    assert run(InModule, x=[4], out=0)["out"] == [8 + 3 + 7 + 4 + 5]


def test_constants_are_frozen_when_the_codelet_is_made():
    names = module_from(
        "from pypoplar.codelet.language.fields import *\nfrom pypoplar.types import INT\nK = 1\n\n"
        + ("class Test(Vertex):\n    n: INT\n\n    def compute(self):\n        self.n = K\n")
    )
    before = codelet_of(names["Test"])
    names["K"] = 2
    after = codelet_of(names["Test"])
    assert (run(before, n=0)["n"], run(after, n=0)["n"]) == ([1], [2])
    assert before != after


def test_a_codelet_of_another_graph_is_translated_again_only_if_something_in_it_means_something_else():
    names = module_from(
        "from pypoplar.codelet.language.fields import *\nfrom pypoplar.types import FLOAT\nK = 1\n\n"
        + ("class Test(Vertex):\n    x: FLOAT\n\n    def compute(self):\n        self.x = K\n")
    )
    typed = [codelet_of(names["Test"]).typed, codelet_of(names["Test"]).typed]
    assert typed[0] is typed[1]
    for names["K"] in (1.0, 0.0, -0.0):
        typed.append(codelet_of(names["Test"]).typed)
    assert len(dict.fromkeys(map(id, typed))) == 4
    assert str(run(codelet_of(names["Test"]), x=1)["x"][0]) == "-0.0"


def test_numpy_numbers_are_constants():
    prelude = "import numpy\nPRICE = numpy.float32(0.1)\n"
    assert run(vertex("self.f = self.f * PRICE", fields="f: FLOAT", prelude=prelude), f=1)["f"] == [np.float32(0.1)]


def make(k, operation):
    class Local(Vertex):
        n: InOut[INT]

        def compute(self):
            self.n = operation(self.n, k)

    return Local


def test_a_class_in_a_function_takes_its_closure():
    def plus(a, b):
        return a + b

    def times(a, b):
        return a * b

    assert run(make(3, plus), n=5)["n"] == [8]
    assert run(make(4, times), n=5)["n"] == [20]
    assert codelet_of(make(3, plus)) == codelet_of(make(3, plus))
    assert codelet_of(make(3, plus)) != codelet_of(make(4, plus))


def test_a_closure_variable_without_a_value_is_named():
    def define():
        class Local(Vertex):
            n: InOut[INT]

            def compute(self):
                self.n = later

        made = Local
        with pytest.raises(CodeletError, match="'later' has no value yet"):
            codelet_of(made)
        later = 1
        return made, later

    define()


class Base(Vertex):
    x: InOut[Vector[INT]]
    STEP = 1

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.change(self.x[i]) + self.extra

    def change(self, value):
        return value


class Derived(Base):
    extra: INT
    STEP = 5

    def change(self, value):
        return Base.change(self, value) * 10 + self.STEP


class Again(Derived):
    STEP = 7


def test_inheritance_finds_fields_methods_and_constants_of_the_most_derived_class():
    assert [one.name for one in codelet_of(Derived).fields] == ["x", "extra"]
    assert run(Derived, x=[1, 2], extra=100)["x"] == [115, 125]
    assert run(Again, x=[1, 2], extra=100)["x"] == [117, 127]


def test_a_file_is_read_where_it_stands(tmp_path):
    file = tmp_path / "codelets.py"
    file.write_text(
        "from pypoplar.codelet.language.fields import *\nfrom pypoplar.types import *\n\nFACTOR = 2\n\n\nclass Double(Vertex):\n"
        "    n: INT\n\n    def compute(self):\n        self.n = self.n * FACTOR\n"
    )
    from pypoplar.codelet.registry import collect

    (found,) = collect(file)
    assert (found.location.file, found.location.line) == (str(file), 7)
    assert found.typed.locations[0].line == 11
    assert run(found, n=4)["n"] == [8]


def test_text_in_linecache_is_enough():
    assert run(vertex("self.n = 3", fields="n: INT"), n=0)["n"] == [3]


def test_text_that_cannot_be_parsed_as_a_whole_is_read_by_its_block():
    text = "from pypoplar.codelet.language.fields import *\nfrom pypoplar.types import INT\nclass Cell(Vertex):\n    n: INT\n\n"
    text += "    def compute(self):\n        self.n = 4\n"
    names = module_from(text)
    file = names["Cell"].compute.__code__.co_filename
    magic = text + "\n%timeit pass\n"
    linecache.cache[file] = (len(magic), None, magic.splitlines(keepends=True), file)
    assert run(names["Cell"], n=0)["n"] == [4]


def test_without_source_the_error_says_what_to_do():
    names = {"__name__": "nowhere"}
    exec("from pypoplar.codelet.language.fields import *\nclass Lost(Vertex):\n    def compute(self):\n        pass\n", names)
    with pytest.raises(
        CodeletError, match=r"source of Lost\.compute is not available.*write the class in a \.py file or a notebook"
    ):
        codelet_of(names["Lost"])


def test_a_helper_without_source_is_refused_where_it_is_called():
    exec_names = {}
    exec("def helper(x):\n    return x\n", exec_names)

    class Uses(Vertex):
        n: INT

        def compute(self):
            self.n = helper(self.n)

    helper = exec_names["helper"]
    with pytest.raises(CodeletError, match=r"cannot use the function helper: the source of helper is not available") as caught:
        codelet_of(Uses)
    assert caught.value.text.strip() == "self.n = helper(self.n)"


def test_the_text_of_python_dash_c_is_not_taken_for_another(monkeypatch):
    text = "print('the program')\n"
    monkeypatch.setitem(linecache.cache, "<string>", (len(text), None, [text], "<string>"))
    names = {}
    exec("def helper(x):\n    return x\n", names)
    with pytest.raises(CodeletError, match=r"the source of helper is not available"):
        function_listing(names["helper"])


def test_a_file_that_has_changed_is_noticed(tmp_path):
    file = tmp_path / "changing.py"
    text = "from pypoplar.codelet.language.fields import *\n\nclass A(Vertex):\n    def compute(self):\n        pass\n"
    file.write_text(text)
    names = {"__name__": "changing"}
    exec(compile(text, str(file), "exec"), names)
    codelet_of(names["A"])
    file.write_text("\n\n\n" + text)
    with pytest.raises(CodeletError, match="the file has changed since it was imported"):
        codelet_of(names["A"])


def test_a_codelet_without_compute_is_refused():
    class Empty(Vertex):
        n: INT

    class Property(Vertex):
        compute = 3

    class Decorated(Vertex):
        @functools.wraps(square)
        def compute(self):
            pass

    with pytest.raises(CodeletError, match="Decorated has a compute that is decorated"):
        codelet_of(Decorated)
    with pytest.raises(CodeletError, match="Empty has no compute method"):
        codelet_of(Empty)
    with pytest.raises(CodeletError, match="Property has a compute that is decorated, or not a method"):
        codelet_of(Property)


def test_names_are_frozen_with_what_they_mean():
    source = codelet_of(InModule).source
    names = source.functions[0].names
    assert names["SIZE"].value == 3
    assert names["square"].sort == "helper"
    assert source.functions[names["square"].value].name == "square"
    assert names["Colour.RED"].value == 7
    assert source.attributes["HALF_SIZE"].value == 5


ALL = vertex(
    """
    self.f[0] = square(self.f[1], k=INF) if FLAG else math.exp(0.1) * SCALE
    self.f[0] = ipu.sigmoid(self.f[0]) + self.helper(2.5) + EXACT
    for i in range(BIG % 7):
        ipu.check(i < 9, NAME)
    """,
    fields="f: InOut[Vector[HALF]]\nin_: Input[FLOAT]\nK = 0.1\n\ndef helper(self, x):\n    return x * self.K\n",
    prelude="""
    FLAG = False
    SCALE = -0.0
    EXACT = 0.1
    INF = math.inf
    BIG = 10 ** 30
    NAME = "größe"

    def square(x, k=math.nan):
        return x * x + k
    """,
)


def test_json_gives_back_an_equal_codelet_with_an_equal_typed_form():
    codelet = codelet_of(ALL)
    text = json.dumps(codelet.to_json(), allow_nan=False)
    again = Codelet.from_json(json.loads(text))
    assert again == codelet
    assert again.typed == codelet.typed
    assert (again.location.file, again.location.line) == (codelet.location.file, codelet.location.line)
    assert hash(again) == hash(codelet)
    assert lines(again) == lines(codelet)


def test_a_loaded_codelet_needs_no_source_file():
    tree = codelet_of(ALL).to_json()
    for one in tree["source"]["functions"]:
        one["file"] = "/nowhere/at/all.py"
    ran = run(Codelet.from_json(tree), f=[0.0, 2.0], **{"in": 0})
    assert ran.fault is None


def test_a_codelet_from_standard_input_is_to_be_saved_to_a_file():
    text = (
        "from pypoplar import *\nclass Piped(Vertex):\n    n: InOut[INT]\n    def compute(self):\n        self.n = 1\n\n"
        "Graph(IPUModel('tiny').createDevice().getTarget()).addCodelets(Piped)\n"
    )
    ran = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, check=False)
    assert "the source of Piped.compute is not available (<stdin>, line 4); codelets are translated from their source" in ran.stderr
    assert "what comes from standard input cannot be read again; save it to a file and run that" in ran.stderr


ENUMS = """
import enum

class Kind(enum.IntEnum):
    FLUID = 2
    WALL = enum.auto()

class Flags(enum.IntFlag):
    A = 1
    B = 4

class Colour(enum.Enum):
    RED = 5
    NAME = "red"

def matches(kind, wanted=Kind.WALL):
    return kind == wanted

class Empty(enum.IntEnum):
    pass
"""
IN_CLASS = "kind: INT = 3\nn: Output[Vector[INT]]\nDEFAULT = Kind.WALL\nclass Mode(enum.IntEnum):\n    SLOW = 7\n    FAST = 8\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Kind.FLUID", 2),
        ("Kind.WALL.value * Kind.FLUID", 6),
        ("self.DEFAULT", 3),
        ("self.DEFAULT.value", 3),
        ("self.Mode.FAST", 8),
        ("self.Mode.SLOW.value", 7),
        ("Flags.A | Flags.B", 5),
        ("Colour.RED.value", 5),
        ("int(self.kind == Kind.WALL)", 1),
        ("int(matches(self.kind)) + 2 * int(matches(self.kind, Kind.FLUID))", 1),
        ("1 if self.kind == self.Mode.SLOW else 0", 0),
    ],
)
def test_members_of_an_enum_are_constants(text, expected):
    cls = vertex(f"self.n[0] = {text}", fields=IN_CLASS, prelude=ENUMS)
    assert run(cls, kind=3, n=[0])["n"] == [expected]


def test_a_name_of_a_member_is_a_text_for_prints():
    assert codelet_of(vertex("print(Kind.WALL.name, self.Mode.FAST.name)", fields=IN_CLASS, prelude=ENUMS)).typed.texts == (
        "WALL FAST\n",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Colour.RED", "Colour.RED: it is no number; make Colour an IntEnum, or write Colour.RED.value"),
        ("Kind", "the enum Kind: name one of its members, such as Kind.FLUID"),
        ("Kind(2)", "the enum Kind: name one of its members, such as Kind.FLUID"),
        ("self.Mode", "the enum Mode: name one of its members, such as Mode.SLOW"),
        ("Kind.WALL.real", "Kind.WALL.real: Kind.WALL is a Kind"),
        ("Empty", "class Empty"),
    ],
)
def test_what_of_an_enum_is_no_number_is_refused(text, message):
    with pytest.raises(CodeletError) as caught:
        codelet_of(vertex(f"self.n[0] = {text}", fields=IN_CLASS, prelude=ENUMS))
    assert caught.value.msg.removeprefix("Test: ") == f"device code cannot use {message}"


def test_a_member_that_an_enum_does_not_have_is_named_with_the_nearest():
    for text, message in (
        ("Kind.WALLS", r"class Kind has no 'WALLS'; did you mean 'WALL'\?"),
        ("self.Mode.FASTER", "class Mode has no 'FASTER'"),
    ):
        with pytest.raises(CodeletError, match=message):
            codelet_of(vertex(f"self.n[0] = {text}", fields=IN_CLASS, prelude=ENUMS))


DAMAGE = [
    lambda tree: tree.pop("source"),
    lambda tree: tree["source"].pop("functions"),
    lambda tree: tree["source"].update(functions=[]),
    lambda tree: tree["source"].update(kind="thread"),
    lambda tree: tree["source"]["fields"][0].__setitem__(3, "DOUBLE"),
    lambda tree: tree["source"]["fields"].append(tree["source"]["fields"][0]),
    lambda tree: tree["source"]["fields"][0].__setitem__(4, [1]),  # an edge has no default
    lambda tree: tree["source"]["fields"][0].pop(),
    lambda tree: tree["source"]["functions"][0].update(line=-1),
    lambda tree: tree["source"]["functions"][0].update(text=3),
    lambda tree: tree["source"]["functions"][0]["names"].update(square=["helper", 99]),
    lambda tree: tree["source"]["functions"][0]["names"].update(square=["helper", "x"]),
    lambda tree: tree["source"]["functions"][0]["names"].update(square=["import", "os"]),
    lambda tree: tree["source"]["functions"][0]["names"].update(FLAG=["constant", None]),
    lambda tree: tree["source"]["functions"][0]["names"].update(FLAG=["constant", {"float": "x"}]),
    lambda tree: tree["source"]["attributes"].update(K=["math", 3]),
    lambda tree: tree["source"]["attributes"].update(K=["type", "QUARTERS"]),
    lambda tree: tree.update(source=None),
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_json_is_refused(damage):
    tree = json.loads(json.dumps(codelet_of(ALL).to_json()))
    damage(tree)
    with pytest.raises(FileLoadError):
        Codelet.from_json(tree)


DEFAULTS = """
class Test(Vertex):
    a: FLOAT = math.nan
    b: HALF = -0.0
    c: UNSIGNED_LONGLONG = 2**64 - 1
    d: BOOL = True
    e: Vector[FLOAT] = (0.1, math.inf)
    f: INT

    def compute(self):
        pass
"""


def test_json_has_the_defaults_of_plain_fields():
    codelet = codelet_of(module_from(PRELUDE + DEFAULTS)["Test"])
    again = Codelet.from_json(json.loads(json.dumps(codelet.to_json(), allow_nan=False)))
    assert again == codelet
    assert [repr(field.default) for field in again.fields] == [repr(field.default) for field in codelet.fields]


@pytest.mark.parametrize("default", [{"float": "0x1p+600"}, "1", [1], {"float": "x"}, {"whole": 3}, {}])
def test_a_damaged_default_is_refused(default):
    tree = json.loads(json.dumps(codelet_of(module_from(PRELUDE + DEFAULTS)["Test"]).to_json()))
    tree["source"]["fields"][1][4] = default
    with pytest.raises(FileLoadError):
        Codelet.from_json(tree)


HOSTILE = [
    "def compute(self):\n    __import__('os').system('false')\n",
    "def compute(self):\n    eval('1')\n",
    "def compute(self, x=open('f')):\n    pass\n",
    "import os\n",
    "def compute(self):\n    pass\ndef other():\n    pass\n",
    "def compute(self)",
    "def compute(self):\n    break\n",
    "def compute(self):\n    self.f[0] = 10 ** 10 ** 10\n",
    "def compute(self):\n    self.f[0] = " + "(" * 150 + "1" + ")" * 150 + "\n\x00",
    "def compute(self):\n    self.f[0] = square(1)\n" * 2,
    "@print\ndef compute(self):\n    math.exp\n",
    "def compute(self):\n    ().__class__\n",
    "",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_foreign_text_is_translated_or_refused_but_never_executed(text):
    tree = codelet_of(ALL).to_json()
    tree["source"]["functions"][0]["text"] = text
    codelet = Codelet.from_json(tree)
    with pytest.raises(CodeletError):
        _ = codelet.typed


def test_an_ipu_function_does_on_the_host_what_it_says():
    assert ipu.sqrt(4.0) == 2.0
    assert ipu.rsqrt(4.0) == 0.5
    assert ipu.exp(0.0) == ipu.exp2(0.0) == ipu.sigmoid(0.0) * 2 == 1.0
    assert ipu.log(1.0) == ipu.log2(1.0) == ipu.tanh(0.0) == ipu.sigmoid(-1e9) == 0.0
    assert (ipu.popcount(-1), ipu.clz(1)) == (32, 31)
    assert 0 <= ipu.random_float() < 1
    assert 0 <= ipu.random_uint() < 2**32
    ipu.check(True)
    with pytest.raises(Exception, match="small"):
        ipu.check(False, "small")
    with pytest.raises(Exception, match="in a codelet"):
        ipu.cycle_count()


def test_debug_print_prints_on_the_host(capsys):
    ipu.debug_print("x", 3)
    assert capsys.readouterr().out == "x 3\n"


def test_a_codelet_has_no_instances():
    with pytest.raises(TypeError, match="InModule is a codelet"):
        InModule()


def test_nothing_is_left_in_sys_modules_by_a_file_that_fails(tmp_path):
    from pypoplar.codelet.registry import collect

    file = tmp_path / "broken.py"
    file.write_text("raise KeyError('mine')\n")
    with pytest.raises(KeyError, match="mine"):
        collect(file)
    assert not [name for name in sys.modules if name.startswith("broken")]


def test_constants_that_differ_in_sign_or_type_alone_make_different_codelets():
    made = [codelet_of(vertex("self.f = 1.0 * self.f + K", fields="f: FLOAT", prelude=f"K = {k}\n")).typed for k in ("0.0", "-0.0")]
    assert made[0].body != made[1].body
