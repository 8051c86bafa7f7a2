"""Bad input: the right error, both Poplar's and Python's, that names what is wrong. The same engine works without the mistake."""

import re

import numpy as np
import pytest
from engine_builder import Bench, tiny

from pypoplar import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    AtomicStoreError,
    CodeletError,
    ControlProgramError,
    Engine,
    Graph,
    GraphConnectionError,
    GraphCycleError,
    InOut,
    Input,
    InvalidOption,
    InvalidTileMapping,
    Output,
    PoplarError,
    PoplarIndexError,
    PoplarTypeError,
    TensorIOStateError,
    TensorShapeError,
    TensorWriteError,
    TypeNotSupportedError,
    UnknownField,
    UnknownVertexType,
    Vector,
    VectorList,
    Vertex,
    concat,
)
from pypoplar.program import Copy, Execute, Repeat, Sequence, Switch

HERE = r"test_refusals\.py:\d+"


class Scale(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]
    factor: FLOAT

    def compute(self):
        for i in range(len(self.x)):
            self.y[i] = self.factor * self.x[i]


class Halves(Vertex):
    x: InOut[Vector[HALF]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1


class Rows(Vertex):
    rows: Input[VectorList[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        self.out = len(self.rows)


class Untranslatable(Vertex):
    out: Output[INT]

    def compute(self):
        self.out = [1, 2, 3].index(2)


class Raises(Vertex):
    out: Output[INT]

    def compute(self):
        raise ValueError("no")


class Case:
    """A graph with two mapped variables, a constant and a compute set; `scale` adds a vertex of `Scale`."""

    def __init__(self):
        self.graph = Graph(tiny())
        self.x, self.y, self.h = (
            self._variable(type, name, tile) for type, name, tile in ((FLOAT, "x", 0), (FLOAT, "y", 1), (HALF, "h", 2))
        )
        self.one = self.graph.addConstant(FLOAT, [8], 1.0, "one")
        self.graph.setTileMapping(self.one, 3)
        self.set = self.graph.addComputeSet("the set")

    def _variable(self, type, name, tile):
        tensor = self.graph.addVariable(type, [8], name)
        self.graph.setTileMapping(tensor, tile)
        return tensor

    def scale(self, x, y, tile=4, **more):
        vertex = self.graph.addVertex(self.set, Scale, {"x": x, "y": y, "factor": 2.0, **more})
        if tile is not None:
            self.graph.setTileMapping(vertex, tile)
        return vertex

    def halves(self, x, tile=4):
        self.graph.setTileMapping(self.graph.addVertex(self.set, Halves, {"x": x}), tile)

    def engine(self, program=None, mode="native", options=None):
        return Engine(self.graph, Execute(self.set) if program is None else program, options, mode=mode)


def _unmapped_element(case):
    hole = case.graph.addVariable(FLOAT, [4], "hole")
    case.graph.setTileMapping(hole[0:2], 0)
    case.scale(hole, case.y[0:4])
    case.engine()


def _unmapped_copy(case):
    case.engine(Copy(case.graph.addVariable(FLOAT, [8], "hole"), case.x))


def _unmapped_constant(case):
    case.engine(Copy(case.graph.addConstant(FLOAT, [8], 0, "nowhere"), case.x))


def _unconnected(case):
    vertex = case.graph.addVertex(case.set, Scale, {"x": case.x, "factor": 1.0})
    case.graph.setTileMapping(vertex, 5)
    case.engine()


def _connected_twice(case):
    case.graph.connect(case.scale(case.x, case.y)["x"], case.y)
    case.engine()


def _wrong_type(case):
    case.scale(case.h, case.y)
    case.engine()


def _own_overlap(case):
    case.scale(case.x[0:4], case.x[2:6])
    case.engine()


def _race(case):
    case.scale(case.x[0:4], case.y[0:4])
    case.scale(case.x[4:8], case.y[3:7])
    case.engine()


def _read_write_race(case):
    case.scale(case.x[0:4], case.y[0:4])
    case.scale(case.y[0:1], case.x[7:8], tile=9)
    case.engine()


def _shared_word(case):
    case.halves(case.h[0:3])
    case.halves(case.h[3:8])
    case.engine()


def _write_constant(case):
    case.scale(case.x, case.one)
    case.engine()


def _write_alias(case):
    case.scale(case.x[0:2], concat([case.y[0:1], case.y[0:1]]))
    case.engine()


def _other_graph(case):
    Copy(case.x, Case().x)
    case.engine(Copy(case.x, Case().x))


def _recursion(case):
    body = Sequence()
    case.graph.addFunction(body)
    Repeat(-1, body)


# The mistake, Poplar's error, Python's, and what the message says.
REFUSED = {
    "an unknown vertex type": (
        lambda case: case.graph.addVertex(case.set, "Scal"),
        *(UnknownVertexType, KeyError, "Scal"),
    ),
    "an unknown field": (lambda case: case.scale(case.x, case.y)["z"], UnknownField, KeyError, r"Scale.*'z'.*(x|y)"),
    "a field by a near name": (
        lambda case: case.graph.addVertex(case.set, Scale, {"factr": 1.0}),
        *(UnknownField, KeyError, "factor"),
    ),
    "a field without an edge": (
        _unconnected,
        GraphConnectionError,
        ValueError,
        rf"{HERE}: field Scale\.y is not connected.*tile 5.*'the set'",
    ),
    "a field with two edges": (_connected_twice, GraphConnectionError, ValueError, r"Scale\.x.*(twice|2)"),
    "an edge of another type": (_wrong_type, GraphConnectionError, ValueError, r"Scale\.x.*FLOAT.*HALF"),
    "an edge of another rank": (
        lambda case: case.scale(case.x.reshape([2, 4]), case.y),
        *(GraphConnectionError, ValueError, "'x'.*of Scale.*rank 1, got 'x' FLOAT"),
    ),
    "a list connected to a vector": (
        lambda case: case.graph.addVertex(case.set, Rows, {"rows": case.x}),
        *(GraphConnectionError, ValueError, "'rows'.*of Rows.*rank 2.*got 'x' FLOAT"),
    ),
    "two fields of a vertex that overlap": (_own_overlap, GraphConnectionError, ValueError, r"Scale\.(x|y).*\[2:4\).*'x'"),
    "a number for an edge": (lambda case: case.scale(3.0, case.y), PoplarError, (TypeError, ValueError), "x"),
    "a tensor for a plain field": (
        lambda case: case.scale(case.x, case.y, factor=case.x),
        PoplarError,
        (TypeError, ValueError),
        "factor",
    ),
    "a plain field of another type": (lambda case: case.scale(case.x, case.y, factor="2"), PoplarTypeError, TypeError, "'2'"),
    "a slice beyond the end": (lambda case: case.x.slice(4, 9), PoplarIndexError, IndexError, r"\b9\b.*\b8\b|\b8\b.*\b9\b"),
    "an index beyond the end": (lambda case: case.x[8], PoplarIndexError, IndexError, "8"),
    "a tile out of range": (lambda case: case.graph.setTileMapping(case.x, 16), InvalidTileMapping, ValueError, "16"),
    "a negative tile": (lambda case: case.graph.setTileMapping(case.x, -1), InvalidTileMapping, ValueError, "-1"),
    "a vertex tile out of range": (lambda case: case.scale(case.x, case.y, tile=99), InvalidTileMapping, ValueError, "99"),
    "elements without a tile": (_unmapped_element, InvalidTileMapping, ValueError, r"\[2:4\).*'hole'|'hole'.*\[2:4\)"),
    "a copied variable without a tile": (_unmapped_copy, InvalidTileMapping, ValueError, "'hole'"),
    "a constant without a tile": (_unmapped_constant, InvalidTileMapping, ValueError, "'nowhere'"),
    "a vertex without a tile": (
        lambda case: (case.scale(case.x, case.y, tile=None), case.engine()),
        *(InvalidTileMapping, ValueError, rf"{HERE}.*Scale"),
    ),
    "two writers of an element": (
        _race,
        GraphCycleError,
        ValueError,
        rf"{HERE}: Field Scale\.y writes to elements \[3:4\) of variable 'y'",
    ),
    "a reader of what another writes": (
        _read_write_race,
        GraphCycleError,
        ValueError,
        r"Field Scale\.(x|y).*\[(0:1|7:8)\) of variable '(x|y)'",
    ),
    "two writers of a word": (_shared_word, AtomicStoreError, ValueError, r"Halves\.x.*'h'.*word"),
    "a vertex that writes a constant": (_write_constant, (GraphConnectionError, TensorWriteError), ValueError, r"Scale\.y.*'one'"),
    "a vertex that writes an element twice": (_write_alias, (GraphConnectionError, TensorWriteError), ValueError, r"Scale\.y.*'y'"),
    "a copy to a constant": (lambda case: Copy(case.x, case.one), TensorWriteError, ValueError, "'one'"),
    "a copy to an element twice": (
        lambda case: Copy(case.x[0:2], case.y[0:1].broadcast(2, 0)),
        *(TensorWriteError, ValueError, "'y'"),
    ),
    "a copy of unequal counts": (lambda case: Copy(case.x, case.y[0:7]), TensorShapeError, ValueError, "8.*7"),
    "a copy of unequal types": (lambda case: Copy(case.x, case.h), PoplarTypeError, TypeError, "FLOAT.*HALF"),
    "a copy that overlaps": (
        lambda case: Copy(case.x[0:4], case.x[1:5]),
        TensorWriteError,
        ValueError,
        r"\[1:\d\) of variable 'x'",
    ),
    "a copy between graphs": (_other_graph, PoplarTypeError, TypeError, "two graphs"),
    "an initial value for a constant": (
        lambda case: case.graph.setInitialValue(case.one, 2),
        TensorWriteError,
        ValueError,
        "'one'",
    ),
    "too few initial values": (lambda case: case.graph.setInitialValue(case.x, [1, 2]), TensorShapeError, ValueError, "8.*2"),
    "a stream name twice": (
        lambda case: [case.graph.addHostToDeviceFIFO("in", FLOAT, 8) for _ in range(2)],
        *(TensorIOStateError, ValueError, "'in'"),
    ),
    "a type that the device has not": (
        lambda case: case.graph.addVariable(DOUBLE, [1]),
        *(TypeNotSupportedError, TypeError, "DOUBLE"),
    ),
    "a negative shape": (lambda case: case.graph.addVariable(FLOAT, [-1]), PoplarError, ValueError, "-1"),
    "a predicate of many elements": (
        lambda case: Execute(case.set, case.graph.addVariable(BOOL, [2], "many")),
        *(TensorShapeError, ValueError, "'many'"),
    ),
    "a negative count": (_recursion, ControlProgramError, ValueError, "-1"),
    "a count beyond all bounds": (lambda case: Repeat(2**63, Sequence()), ControlProgramError, ValueError, str(2**63)),
    "programs besides an executable": (
        lambda case: Engine(case.engine().executable, Sequence()),
        *(PoplarTypeError, TypeError, "has its programs already"),
    ),
    "a case twice": (
        lambda case: Switch(case.graph.addVariable(INT, [], "index"), [(1, Sequence()), (1, Sequence())]),
        *(ControlProgramError, ValueError, "1"),
    ),
    "something that is no program": (lambda case: case.engine(case.x), PoplarTypeError, TypeError, "expected a program"),
    "a compute set for a program": (lambda case: case.engine(Sequence([case.set])), PoplarTypeError, TypeError, "Execute"),
    "an unknown option": (
        lambda case: case.engine(options={"pypoplar.thread": 1}),
        *(InvalidOption, ValueError, "pypoplar.threads"),
    ),
    "an ill-formed option": (
        lambda case: case.engine(options={"pypoplar.races": "never"}),
        *(InvalidOption, ValueError, "pypoplar.races.*'regions' or 'elements'"),
    ),
    "an unknown mode": (
        lambda case: case.engine(mode="fast"),
        InvalidOption,
        ValueError,
        "'fast'.*'interpret' or 'cost'",
    ),
    "code that cannot be translated": (
        lambda case: case.graph.addCodelets(Untranslatable),
        CodeletError,
        SyntaxError,
        rf"{HERE}.*\n.*\n +\^",
    ),
    "a raise in device code": (lambda case: case.graph.addCodelets(Raises), CodeletError, SyntaxError, "raise"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_the_right_error(mistake):
    make, error, builtin, message = REFUSED[mistake]
    with pytest.raises(error) as caught:
        make(Case())
    assert isinstance(caught.value, PoplarError)
    assert isinstance(caught.value, builtin)
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)


def test_a_refused_vertex_is_not_added():
    case = Case()
    for fields in ({"z": case.x}, {"x": case.x.reshape([2, 4])}, {"factor": "2"}):
        with pytest.raises(PoplarError):
            case.graph.addVertex(case.set, Scale, fields)
    assert case.graph.numVertices() == 0
    case.scale(case.x, case.y)
    case.engine()


def test_one_message_counts_all_vertices_and_tiles_that_are_wrong():
    case = Case()
    for number in range(8):
        vertex = case.graph.addVertex(case.set, Scale, {"x": case.x, "factor": 1.0})
        case.graph.setTileMapping(vertex, number % 3 + 1)
    with pytest.raises(GraphConnectionError, match=r"the same holds for 7 more vertices \(8 in all, on tiles 1-3\)"):
        case.engine()


def test_what_no_program_uses_is_not_judged(mode):
    case = Case()
    case.graph.addVertex(case.set, Scale)  # unconnected, unmapped
    case.graph.addVariable(FLOAT, [4], "hole")
    other = case.graph.addComputeSet("used")
    case.graph.setTileMapping(case.graph.addVertex(other, Scale, {"x": case.x, "y": case.y, "factor": 1.0}), 0)
    engine = case.engine(Execute(other), mode)
    engine.load()
    engine.run()


def test_a_graph_can_be_mended_after_an_error(mode):
    case = Case()
    vertex = case.graph.addVertex(case.set, Scale, {"x": case.x, "factor": 3.0})
    case.graph.setInitialValue(case.x, 2)
    case.graph.createHostRead("y", case.y)
    with pytest.raises(InvalidTileMapping):
        case.graph.setTileMapping(vertex, 16)
    with pytest.raises(GraphConnectionError):
        case.engine(mode=mode)
    case.graph.connect(vertex["y"], case.y)
    with pytest.raises(InvalidTileMapping):
        case.engine(mode=mode)
    case.graph.setTileMapping(vertex, 15)
    engine = case.engine(mode=mode)
    engine.load()
    engine.run()
    np.testing.assert_array_equal(engine.readTensor("y"), np.full(8, 6, np.float32))


def test_an_executable_takes_no_other_judge_of_races():
    bench = Bench()
    x = bench.variable("x", [1])
    executable = bench.engine(Copy(x, x)).executable
    with pytest.raises(InvalidOption, match=r"pypoplar\.races is decided when the graph is compiled"):
        Engine(executable, {"pypoplar.races": "elements"})
