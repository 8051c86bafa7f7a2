"""What programs use: the variables that vertices of their compute sets and their tensors view."""

from hypothesis import given
from hypothesis import strategies as st

from pypoplar import FLOAT, Graph, Input, IPUModel, Vector, Vertex, concat
from pypoplar.compiler.control.program_walk import operation_tree
from pypoplar.compiler.control.usage import find_usage, used_variables
from pypoplar.program import Execute


class Reads(Vertex):
    x: Input[Vector[FLOAT]]

    def compute(self):
        pass


@given(
    edges=st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=5),
    executed=st.booleans(),
    backwards=st.booleans(),
)
def test_variables_of_the_edges_of_executed_compute_sets_are_used(edges, executed, backwards):
    graph = Graph(IPUModel("tiny").createDevice())
    graph.addCodelets(Reads)
    variables = [graph.addVariable(FLOAT, [4]) for _ in range(6)]
    sets = [graph.addComputeSet("used"), graph.addComputeSet("other")]
    for number, chosen in enumerate(edges):
        parts = [variables[one].reverse(0).slice(1, 4) if backwards else variables[one].subSample(2, 0) for one in chosen]
        graph.addVertex(sets[number % 2], "Reads", {"x": concat(parts) if parts else variables[0].slice(0, 0)})
    programs = [Execute(sets[0])] if executed else [Execute(sets[1]), Execute(sets[0])]
    usage = find_usage(operation_tree(programs, graph), [])
    wanted = {one for number, chosen in enumerate(edges) for one in chosen if not executed or number % 2 == 0}
    found = used_variables(graph.freeze(), usage)
    assert {number for number in range(len(found)) if found[number]} == wanted
