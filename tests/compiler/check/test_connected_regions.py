"""What edges touch is the set of their elements, however many are looked at at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, Graph, Input, IPUModel, Output, Vector, Vertex, concat
from pypoplar.compiler.check import connected_regions
from pypoplar.compiler.check.connected_regions import collect_regions

VIEWS = [
    lambda t: t.flatten(),
    lambda t: t.transpose().flatten(),
    lambda t: t.reverse(0).flatten(),
    lambda t: t.slice(1, 3, 1).flatten(),
    lambda t: concat([t[2], t[0]]),
    lambda t: t.transpose().slice(1, 4).flatten(),
    lambda t: t.broadcast(2, 1).flatten(),
    lambda t: t[0:0].flatten(),
]


class Reads(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = 1.0


@pytest.mark.parametrize(("at_once", "few"), [(1, 0), (3, 0), (3, 4), (1 << 22, 0), (1 << 22, 4)])
@examples(40)
@given(chosen=st.lists(st.sampled_from(VIEWS), min_size=1, max_size=6))
def test_strands_are_the_elements_of_edges_by_any_number_at_once(at_once, few, chosen):
    graph = Graph(IPUModel("tiny").createDevice())
    graph.addCodelets(Reads)
    cs = graph.addComputeSet("reads")
    for number, view in enumerate(chosen):
        x, y = graph.addVariable(FLOAT, [4, 6]), graph.addVariable(FLOAT, [3])
        graph.addVertex(cs, "Reads", {"x": view(x), "y": y.reverse(0) if number % 2 else y})
    frozen = graph.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connected_regions, "AT_ONCE", at_once)
        patch.setattr(connected_regions, "FEW_STRANDS", few)
        regions = collect_regions(frozen, [0])
    strands, edges = regions.strands, frozen.edges
    assert (np.diff(strands.owner) >= 0).all()
    for edge in range(len(edges.vertex)):
        own = np.flatnonzero(strands.owner == edge)
        found = {element for k in own for element in range(strands.begin[k], strands.begin[k] + strands.length[k])}
        runs = range(edges.first_run[edge], edges.first_run[edge + 1])
        wanted = {int(edges.run_start[k] + i * edges.run_step[k]) for k in runs for i in range(edges.run_count[k])}
        assert found == wanted
    assert regions.disjoint


@pytest.mark.parametrize("few", [0, 4])
def test_an_edge_that_ends_with_the_last_element_is_apart_from_one_that_begins_with_the_first(few):
    graph = Graph(IPUModel("tiny").createDevice())
    graph.addCodelets(Reads)
    y, x = graph.addVariable(FLOAT, [6]), graph.addVariable(FLOAT, [4, 6])
    graph.addVertex(graph.addComputeSet("reads"), "Reads", {"x": x.transpose().flatten(), "y": y})
    frozen = graph.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connected_regions, "FEW_STRANDS", few)
        strands = collect_regions(frozen, [0]).strands
    found = [
        set(range(begin, begin + length)) for begin, length in zip(strands.begin.tolist(), strands.length.tolist(), strict=True)
    ]
    assert [set().union(*(found[k] for k in np.flatnonzero(strands.owner == edge))) for edge in (0, 1)] == [
        set(range(6, 30)),
        set(range(6)),
    ]
