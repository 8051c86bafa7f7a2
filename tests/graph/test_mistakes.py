"""Habits of C++ and NumPy that make no program: each is refused at the user's line, with what to write instead."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar import (
    FLOAT,
    INT,
    Graph,
    InOut,
    Input,
    Interval,
    InvalidOption,
    IPUModel,
    PoplarAttributeError,
    PoplarError,
    PoplarIndexError,
    PoplarTypeError,
    Vector,
    VectorList,
    poputil,
)
from pypoplar.graph.numpy_habits import COMPARISONS, INSTEAD, OPERATORS, UNARY
from pypoplar.program import Copy, Sequence, Switch

VIEW = "a tensor is a view of device memory, without values here; "
BOOLEAN = VIEW + "compute a BOOL in a codelet, for If or RepeatWhileTrue"
CODELET = VIEW + "compute it in a codelet, and Execute its compute set"
CONSTANT = "; a constant stands for an array, graph.addConstant"
ARRAY = np.zeros((2, 4), np.float32)


def says(function):
    return f"{VIEW}say {function}(graph, a, b, prog), which extends a program"


class Case:
    def __init__(self):
        self.graph = Graph(IPUModel("tiny").createDevice())
        self.x, self.y = (self.graph.addVariable(FLOAT, [8], name) for name in "xy")
        self.index = self.graph.addVariable(INT, [], "index")
        self.program = Copy(self.x, self.y)


def _set_item(case):
    case.x[0] = 3.0


def _set_slice(case):
    case.x[0:2] = ARRAY


def _add_in_place(case):
    x = case.x
    x += 1


PAIRS = "; write [(0, a), (1, b)]"
LISTS = "are a list of pairs (begin, end), got {}; write [[(0, 4)], [(4, 8)]] for tiles 0 and 1, or {{tile: [(0, 4)]}}"
X, Y = "'x' FLOAT [8]", "'y' FLOAT [8]"

MISTAKES = {
    "a slice that begins after its end": (
        lambda case: case.x.slice(5, 2),
        *(PoplarIndexError, f"slice [5:2) of {X} begins after its end in dimension 0: the begin comes first, as in slice(2, 5)"),
    ),
    "a slice of Python's that begins after its end": (
        lambda case: case.x[5:2],
        *(PoplarIndexError, f"slice [5:2] of {X} begins after its end in dimension 0"),
    ),
    "a slice of several dimensions that begins after its end": (
        lambda case: case.x.reshape([2, 4]).slice([0, 3], [1, 2]),
        *(PoplarIndexError, "slice [3:2) of 'x' FLOAT [1, 4] begins after its end in dimension 1"),
    ),
    "a slice beyond the end": (
        lambda case: case.x.slice(2, 9),
        *(PoplarIndexError, f"slice [2:9) is out of range for dimension 0 of size 8 of {X}"),
    ),
    "programs for the cases of a Switch": (
        lambda case: Switch(case.index, [case.program]),
        *(PoplarTypeError, f"a case of Switch is a pair of a value and a program, got {{program!r}}{PAIRS}"),
    ),
    "a program for the cases of a Switch": (
        lambda case: Switch(case.index, case.program),
        *(PoplarTypeError, f"a case of Switch is a pair of a value and a program, got {{program!r}}{PAIRS}"),
    ),
    "a case of a Switch without its value": (
        lambda case: Switch(case.index, [(case.program,)]),
        *(PoplarTypeError, f"a case of Switch is a pair of a value and a program, got ({{program!r}},){PAIRS}"),
    ),
    "one interval for the intervals of a tile": (
        lambda case: case.graph.setTileMapping(case.x, [[0, 4]]),
        *(PoplarTypeError, "an interval of tile 0 is an Interval or a pair (begin, end), got 0; write (0, 4)"),
    ),
    "a tile for each element": (
        lambda case: case.graph.setTileMapping(case.x, [0, 1]),
        *(PoplarTypeError, f"the intervals of tile 0 in the mapping of {X} " + LISTS.format(0)),
    ),
    "a text for the intervals of a tile": (
        lambda case: case.graph.setTileMapping(case.x, {1: "all"}),
        *(PoplarTypeError, f"the intervals of tile 1 in the mapping of {X} " + LISTS.format("'all'")),
    ),
    "an interval of three numbers": (
        lambda case: case.graph.setTileMapping(case.x, [[(0, 4, 8)]]),
        *(PoplarTypeError, "an interval of tile 0 is an Interval or a pair (begin, end), got (0, 4, 8); write (0, 4)"),
    ),
    "an interval of floats": (
        lambda case: case.graph.setTileMapping(case.x, [[(0, 4.5)]]),
        *(PoplarTypeError, "an interval of tile 0 is an Interval or a pair (begin, end), got (0, 4.5); write (0, 4)"),
    ),
    "one interval for slices": (
        lambda case: case.x.slices(["ab"]),
        *(PoplarTypeError, "an interval of slices is an Interval or a pair (begin, end), got 'ab'; write (0, 4)"),
    ),
    "an interval that is none": (
        lambda case: case.graph.getSortedContiguousRegions(case.x, [0, 4]),
        *(PoplarTypeError, "an interval is an Interval or a pair (begin, end), got 0; write (0, 4)"),
    ),
    "a region that is none": (
        lambda case: poputil.splitRegions([4], 1, 2),
        *(PoplarTypeError, "splitRegions takes a list of intervals, got 4; write [(0, 4), (4, 8)]"),
    ),
    "fields of a model for arguments": (
        lambda case: IPUModel(tilesPerIPU=4),
        *(
            PoplarTypeError,
            "IPUModel takes a version and a timing alone, got tilesPerIPU=4; set fields afterwards: "
            "model = IPUModel(); model.tilesPerIPU = 4",
        ),
    ),
    "unknown fields of a model for arguments": (
        lambda case: IPUModel("tiny", tilesPerIpu=4),
        *(InvalidOption, "IPUModel has no field 'tilesPerIpu'; did you mean 'tilesPerIPU'?"),
    ),
    "a misspelt argument of a model": (
        lambda case: IPUModel("tiny", timings="model"),
        *(PoplarTypeError, "IPUModel has no argument 'timings'; did you mean 'timing'?"),
    ),
    "a sum": (lambda case: case.x + case.y, PoplarTypeError, f"{X} + {Y}: {says('popops.add')}"),
    "a sum with a number": (lambda case: 2.0 + case.x, PoplarTypeError, f"2.0 + {X}: {says('popops.add')}"),
    "a sum with an array": (
        lambda case: case.x + ARRAY,
        *(PoplarTypeError, f"{X} + an array of float32 [2, 4]: {says('popops.add')}{CONSTANT}"),
    ),
    "a sum of an array": (
        lambda case: ARRAY + case.x,
        *(PoplarTypeError, f"an array of float32 [2, 4] + {X}: {says('popops.add')}{CONSTANT}"),
    ),
    "a product of a NumPy number": (
        lambda case: np.float32(2) * case.x,
        *(PoplarTypeError, f" * {X}: {says('popops.mul')}"),
    ),
    "a sum in place": (_add_in_place, PoplarTypeError, f"{X} += 1: {says('popops.addInPlace')}"),
    "a product of matrices": (lambda case: case.x @ case.y, PoplarTypeError, f"{X} @ {Y}: {says('poplin.matMul')}"),
    "a power": (lambda case: case.x**2, PoplarTypeError, f"{X} ** 2: {CODELET}"),
    "a comparison": (lambda case: case.x[0] > 1, PoplarTypeError, f"'x' FLOAT [] > 1: {BOOLEAN}"),
    "a number that may be equal": (lambda case: case.x[0] == 3.0, PoplarTypeError, f"'x' FLOAT [] == 3.0: {BOOLEAN}"),
    "a number that may not be equal": (lambda case: case.x[0] != 3, PoplarTypeError, f"'x' FLOAT [] == 3: {BOOLEAN}"),
    "a number that may be within": (lambda case: 3.0 in [case.x], PoplarTypeError, f"{X} == 3.0: {BOOLEAN}"),
    "an array that may be equal": (lambda case: case.x == ARRAY, PoplarTypeError, f"{X} == an array of float32 [2, 4]: {BOOLEAN}"),
    "a comparison with an array": (
        lambda case: case.x > ARRAY,
        *(PoplarTypeError, f"{X} > an array of float32 [2, 4]: {BOOLEAN}"),
    ),
    "a negation": (lambda case: -case.x, PoplarTypeError, f"-{X}: {CODELET}"),
    "a number of a tensor": (lambda case: float(case.x[0]), PoplarTypeError, f"float('x' FLOAT []): {CODELET}"),
    "an assignment": (
        _set_item,
        *(
            PoplarTypeError,
            f"{X}[0] = 3.0: {VIEW}say graph.setInitialValue(view, values) before the Engine is built, engine.writeTensor(handle, "
            "values) from the host, or Copy(other, view) in a program",
        ),
    ),
    "an assignment to a slice": (_set_slice, PoplarTypeError, f"{X}[0:2] = an array of float32 [2, 4]: {VIEW}"),
    "the transpose of NumPy": (
        lambda case: case.x.T,
        *(PoplarAttributeError, f"tensor {X} has no 'T'; write transpose(), or dimShuffle([2, 1, 0]) of three dimensions"),
    ),
    "the size of NumPy": (lambda case: case.x.size, PoplarAttributeError, f"tensor {X} has no 'size'; write numElements()"),
    "the values of NumPy": (
        lambda case: case.x.numpy(),
        *(PoplarAttributeError, f"tensor {X} has no 'numpy'; write graph.createHostRead('name', tensor), and engine.readTensor("),
    ),
    "a member by a near name": (lambda case: case.x.numElement(), PoplarAttributeError, "did you mean 'numElements'?"),
    "a shape without its list": (
        lambda case: case.x.reshape(8, 8),
        *(PoplarTypeError, "reshape takes one list; write reshape([8, 8])"),
    ),
    "a permutation without its list": (
        lambda case: case.x.dimShuffle(1, 0),
        *(PoplarTypeError, "dimShuffle takes one list; write dimShuffle([1, 0])"),
    ),
    "a dimension without its list": (lambda case: case.x.squeeze(0), PoplarTypeError, "squeeze takes one list; write squeeze([0])"),
    "indices without their list": (lambda case: case.x.index(0, 1), PoplarTypeError, "index takes one list; write index([0, 1])"),
    "a new dimension without its list": (
        lambda case: case.x.expand(0),
        PoplarTypeError,
        "expand takes one list; write expand([0])",
    ),
    "round brackets of fields": (
        lambda case: Input(Vector(FLOAT)),
        *(PoplarTypeError, "Vector takes types in square brackets: write Vector[FLOAT], and Input[Vector[FLOAT]] for an edge"),
    ),
    "round brackets of an edge": (
        lambda case: InOut(VectorList[FLOAT]),
        *(PoplarTypeError, "InOut takes types in square brackets: write InOut[VectorList[FLOAT]]"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_at_its_line_with_what_to_write(mistake):
    case = Case()
    make, error, message = MISTAKES[mistake]
    with pytest.raises(error) as caught:
        make(case)
    assert isinstance(caught.value, PoplarError)
    assert message.replace("{program!r}", repr(case.program)) in str(caught.value)
    own = [entry for entry in caught.traceback if entry.path == Path(__file__)]
    assert own[-1].frame.code.raw is make.__code__


def test_a_tensor_has_no_mistaken_attributes():
    x = Case().x
    assert [name for name in INSTEAD if hasattr(x, name)] == []
    assert getattr(x, "dtype", None) is None
    assert not hasattr(x, "__array_interface__")
    with pytest.raises(TypeError, match="'method' object is not subscriptable"):
        x.shape[0]


@pytest.mark.parametrize("symbol", [*(row[0] for row in OPERATORS.values()), *COMPARISONS.values()])
@pytest.mark.parametrize("other", [1, 2.5, True, ARRAY, np.float64(3), np.arange(3), [1, 2], None, "tensor"])
def test_every_operator_is_refused_on_both_sides(symbol, other):
    x = Case().x
    for text in (f"x {symbol} other", f"other {symbol} x"):
        with pytest.raises(PoplarTypeError, match=re.escape(VIEW)):
            eval(text, {"x": x, "other": x if isinstance(other, str) else other})


@pytest.mark.parametrize("text", [text.format("x") for text in UNARY.values()])
def test_every_operator_of_one_tensor_is_refused(text):
    with pytest.raises(PoplarTypeError, match=re.escape(CODELET)):
        eval(text, {"x": Case().x})


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).map(sorted), max_size=3), st.booleans())
def test_pairs_and_intervals_map_alike(pairs, as_lists):
    mappings = []
    for kind in (Interval, lambda begin, end: [begin, end] if as_lists else (begin, end)):
        case = Case()
        case.graph.setTileMapping(case.x, {2: [kind(*pair) for pair in pairs]})
        mappings.append(case.graph.getTileMapping(case.x, False))
    assert mappings[0] == mappings[1]


def test_cases_of_a_switch_are_pairs_or_a_dict():
    case = Case()
    for cases in ([(0, case.program), [1, case.program]], {0: case.program, 1: case.program}, iter([(0, case.program)])):
        assert Switch(case.index, cases).cases[0] == (0, case.program)
    assert Switch(case.index).cases == []
    assert Sequence([]).programs == []
