"""What all library calls have in common: the program that they extend."""

import pytest
from library_programs import new_graph, variable

from pypoplar import FLOAT, PoplarTypeError, poplin, popnn, popops, poputil
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
