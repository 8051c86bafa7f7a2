"""The runs of many views at once are those of each."""

import numpy as np
from attrs import astuple
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import new_graph

from pypoplar import compileGraph
from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.program import Copy, Sequence
from pypoplar.types import FLOAT

KINDS = ["element", "vector", "reversed", "broadcast", "empty", "matrix", "transposed", "several", "scattered", "null"]


def view(x, kind):
    return {
        "element": x[1, 2],
        "vector": x[1],
        "reversed": x[1].reverse(0),
        "broadcast": x[1, 2].reshape([1]).broadcast(3, 0),
        "empty": x[1, 2:2],
        "matrix": x,
        "transposed": x.transpose(),
        "several": x[:, 1:3],
        "scattered": concat([x[2, 1:], x[0, :2], x[1, 3:4]]),
        "null": Tensor(),
    }[kind]


@given(st.lists(st.sampled_from(KINDS), max_size=12))
def test_runs_of_views_are_those_of_each_view(kinds):
    graph = new_graph()
    graph.addVariable(FLOAT, [7])
    views = [view(graph.addVariable(FLOAT, [3, 4]), kind) for kind in kinds]
    runs = ViewRuns.of(views)
    for number, own in enumerate(views):
        which = runs.view == number
        expected = own.runs()
        found = runs.start[which], runs.count[which], runs.step[which]
        assert [column.tolist() for column in found] == [
            column.tolist() for column in (expected.start, expected.count, expected.step)
        ]
        run = own.single_run()
        assert run is None or [[value] for value in run] == [column.tolist() for column in found]
    assert (np.diff(runs.view) >= 0).all()


@given(st.lists(st.sampled_from(KINDS), max_size=12))
def test_views_with_known_runs_are_joined_to_the_same_and_counted_by_view(kinds):
    graph = new_graph()
    graph.addVariable(FLOAT, [7])
    views = [view(graph.addVariable(FLOAT, [3, 4]), kind) for kind in kinds]
    runs = ViewRuns.of(views)
    assert (runs.views, runs.elements) == (len(views), sum(own.numElements() for own in views))
    assert runs.elements_of_each().tolist() == [own.numElements() for own in views]
    if views:
        joined = ViewRuns.joined([own.runs() for own in views])
        for one, other in zip(astuple(runs, recurse=False), astuple(joined, recurse=False), strict=True):
            assert np.array_equal(one, other)


def test_copies_of_single_elements_are_compiled_without_arrays_for_each(monkeypatch):
    asked = []
    runs = Tensor.runs
    monkeypatch.setattr(Tensor, "runs", lambda self: asked.append(self) or runs(self))
    graph = new_graph()
    x = graph.addVariable(FLOAT, [40], "x")
    graph.setTileMapping(x, 0)
    compileGraph(graph, [Sequence([Copy(x[number], x[20 + number]) for number in range(20)])])
    assert asked == []
