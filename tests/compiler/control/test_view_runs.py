"""The runs of many views at once are those of each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import new_graph

from pypoplar.compiler.control.view_runs import ViewRuns
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
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
