"""What all library calls have in common: the program that they extend."""

import pytest
from library_programs import new_graph, variable

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    Graph,
    InvalidTileMapping,
    PoplarError,
    PoplarTypeError,
    Tensor,
    UnknownVertexType,
    poplin,
    popnn,
    popops,
    poputil,
)
from pypoplar.popops import Operation, ReduceParams, SingleReduceOp, expr
from pypoplar.program import Execute, Repeat, Sequence

RELU = popnn.NonLinearityType.RELU


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("popops.add", lambda graph, t, prog: popops.add(graph, t, t, prog)),
        ("popops.mulInPlace", lambda graph, t, prog: popops.mulInPlace(graph, t, 2.0, prog)),
        ("popops.maxWithOutput", lambda graph, t, prog: popops.maxWithOutput(graph, t, t, t, prog)),
        ("popops.scaledAddTo", lambda graph, t, prog: popops.scaledAddTo(graph, t, t, 2.0, prog)),
        ("poplin.matMul", lambda graph, t, prog: poplin.matMul(graph, t, t, prog)),
        ("popnn.nonLinearity", lambda graph, t, prog: popnn.nonLinearity(graph, RELU, t, prog)),
        ("popnn.nonLinearityInPlace", lambda graph, t, prog: popnn.nonLinearityInPlace(graph, RELU, t, prog)),
        ("popnn.argMax", lambda graph, t, prog: popnn.argMax(graph, t, prog)),
        ("poputil.duplicate", lambda graph, t, prog: poputil.duplicate(graph, t, prog)),
    ],
)
def test_a_call_without_a_sequence_names_the_argument_and_changes_nothing(name, call):
    graph, _ = new_graph()
    t = variable(graph, FLOAT, [2, 2], "t")
    before = (graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names))
    for prog in (None, [], "debug name", Repeat(2, Sequence()), Execute(graph.addComputeSet("cs"))):
        with pytest.raises(PoplarTypeError, match=f"{name}: the argument prog is the Sequence that the call extends, got"):
            call(graph, t, prog)
    assert (graph.numComputeSets() - 1, graph.numVertices(), len(graph.freeze().variables.names)) == before


def size(graph, *programs):
    return graph.numComputeSets(), graph.numVertices(), len(graph.freeze().variables.names), *map(len, programs)


def tree():
    return expr.Clamp(expr._1 * 2.0, expr._1, expr._2)


CALLS = {  # what each call does with a tensor t in the place of one operand, and with an own one x or y
    "add": lambda g, t, x, y, p: popops.add(g, x, t, p),
    "expWithOutput": lambda g, t, x, y, p: popops.expWithOutput(g, x, t, p),
    "addInPlace": lambda g, t, x, y, p: popops.addInPlace(g, x, t, p),
    "mulWithOutput": lambda g, t, x, y, p: popops.mulWithOutput(g, 2.0, x, t, p),
    "clampWithOutput": lambda g, t, x, y, p: popops.clampWithOutput(g, x, 0.0, 1.0, t, p),
    "selectInPlace": lambda g, t, x, y, p: popops.selectInPlace(g, x, t, True, p),
    "map": lambda g, t, x, y, p: popops.map(g, tree(), [x, t], p),
    "mapInPlace": lambda g, t, x, y, p: popops.mapInPlace(g, tree(), [x, t], p, "", {"enableGenerateCodelet": False}),
    "mapWithOutput": lambda g, t, x, y, p: popops.mapWithOutput(g, tree(), [x, y], t, p),
    "cast": lambda g, t, x, y, p: popops.cast(g, t, INT, p),
    "castWithOutput": lambda g, t, x, y, p: popops.castWithOutput(g, t, x, p),
    "fill": lambda g, t, x, y, p: popops.fill(g, t, p, 1.0),
    "zero": lambda g, t, x, y, p: popops.zero(g, t, p),
    "hasNaN": lambda g, t, x, y, p: popops.hasNaN(g, t, p),
    "reduce": lambda g, t, x, y, p: popops.reduce(g, t, [0], Operation.ADD, p),
    "reduceMany": lambda g, t, x, y, p: popops.reduceMany(
        g, [SingleReduceOp(x, [0], Operation.ADD), SingleReduceOp(t, [0], Operation.MAX)], [], p
    ),
    "scaledAddTo": lambda g, t, x, y, p: popops.scaledAddTo(g, t, y, 2.0, p),
    "scaledSubtractFrom": lambda g, t, x, y, p: popops.scaledSubtractFrom(g, x, 0.5, t, 2.0, p),
    "varianceToInvStdDev": lambda g, t, x, y, p: popops.varianceToInvStdDev(g, t, 0.1, p, HALF),
    "invStdDevToVarianceWithOutput": lambda g, t, x, y, p: popops.invStdDevToVarianceWithOutput(g, x, 0.1, t, p),
    "checkAccuracyWhenCast": lambda g, t, x, y, p: popops.checkAccuracyWhenCast(g, t[:1], HALF, 0.1, p),
    "createOutputForElementWiseOp": lambda g, t, x, y, p: popops.createOutputForElementWiseOp(g, [x, t], FLOAT),
}


@pytest.mark.parametrize("name", CALLS)
def test_foreign_and_unmapped_operands_are_refused_by_name_before_anything_is_added(name):
    graph, _ = new_graph(4)
    other, _ = new_graph(4)
    x, y, prog = variable(graph, INT if name == "cast" else FLOAT, [6], "x"), variable(graph, FLOAT, [6], "y"), Sequence()
    if name == "castWithOutput":
        x = variable(graph, HALF, [6], "halves")
    foreign, loose = variable(other, FLOAT, [6], "foreign"), graph.addVariable(FLOAT, [6], "loose")
    graph.setTileMapping(loose[4:], 1)
    before = size(graph, prog)
    with pytest.raises(PoplarTypeError, match=rf"popops\.{name}: <Tensor 'foreign' .* belongs to another graph"):
        CALLS[name](graph, foreign, x, y, prog)
    missing = "1 of 1 elements" if name == "checkAccuracyWhenCast" else "4 of 6 elements"
    with pytest.raises(InvalidTileMapping, match=rf"popops\.{name}: {missing} of <Tensor 'loose' .* have no tile"):
        CALLS[name](graph, loose, x, y, prog)
    if name != "checkAccuracyWhenCast":
        with pytest.raises(PoplarError, match=rf"popops\.{name}.* Tensor\(\)"):
            CALLS[name](graph, Tensor(), x, y, prog)
    assert size(graph, prog) == before
    CALLS[name](graph, y, x, variable(graph, FLOAT, [6], "z"), prog)


@pytest.mark.parametrize(
    "name", ["add", "addInPlace", "mulWithOutput", "fill", "zero", "hasNaN", "reduce", "reduceMany", "scaledAddTo"]
)
def test_a_graph_without_the_codelets_is_told_to_add_them_and_stays_as_it_is(name):
    full, _ = new_graph(4)
    graph, prog = Graph(full.getTarget()), Sequence()
    x, y = (variable(graph, FLOAT, [6], name) for name in "xy")
    before = size(graph, prog)
    with pytest.raises(
        UnknownVertexType, match=rf"popops\.{name}: no codelet is called .*; call popops.addCodelets\(graph\) first"
    ):
        CALLS[name](graph, y, x, x, prog)
    assert size(graph, prog) == before


def test_compute_sets_and_scales_of_another_graph_are_refused_before_anything_is_added():
    graph, _ = new_graph(4)
    other, _ = new_graph(4)
    x, flags, prog = variable(graph, FLOAT, [6], "x"), variable(graph, BOOL, [6], "flags"), Sequence()
    cs, scale = other.addComputeSet("foreign"), variable(other, FLOAT, [1], "foreign", 0)
    before, there = size(graph, prog), size(other)
    for name, call in (
        ("cast", lambda: popops.cast(graph, x, HALF, cs)),
        ("cast", lambda: popops.cast(graph, x, flags, cs)),
        ("fill", lambda: popops.fill(graph, x, 0, cs, 1.0)),
        ("zero", lambda: popops.zero(graph, x, [[(0, 2)], [(2, 6)]], cs)),
        ("reduce", lambda: popops.reduce(graph, x, [0], Operation.ADD, [cs])),
        ("reduce", lambda: popops.reduce(graph, x, [0], ReduceParams(Operation.ADD, False, scale), prog)),
        ("scaledAddTo", lambda: popops.scaledAddTo(graph, x, scale, x, scale, prog)),
        ("reduceWithOutput", lambda: popops.reduceWithOutput(graph, x, scale, [0], Operation.ADD, prog)),
    ):
        with pytest.raises(PoplarTypeError, match=rf"popops\.{name}: .*foreign.* belongs to another graph"):
            call()
    assert (size(graph, prog), size(other)) == (before, there)


def test_an_argument_that_is_missing_is_said_to_be_missing():
    graph, _ = new_graph(4)
    with pytest.raises(PoplarTypeError, match=r"popops\.cast: missing a required argument: 'prog'; it takes"):
        popops.cast(graph, variable(graph, FLOAT, [6], "x"), HALF)
