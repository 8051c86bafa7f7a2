"""Copy: what may be copied to what."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypoplar.device import IPUModel
from pypoplar.errors import PoplarTypeError, TensorShapeError, TensorWriteError
from pypoplar.graph.graph import Graph
from pypoplar.graph.tensor import Tensor
from pypoplar.graph.views import concat
from pypoplar.program import Copy
from pypoplar.types import FLOAT, HALF, INT, UNSIGNED_INT


def new_graph():
    return Graph(IPUModel("tiny").createDevice())


@pytest.fixture
def graph():
    return new_graph()


@pytest.fixture
def x(graph):
    return graph.addVariable(FLOAT, [4, 6], "x")


@pytest.fixture
def y(graph):
    return graph.addVariable(FLOAT, [4, 6], "y")


def test_counts_must_agree_and_shapes_need_not(x, y):
    copy = Copy(x[0], y.slice([1, 0], [3, 3]), name="move")
    assert (copy.source, copy.destination, copy.offset, copy.name) == (x[0], y.slice([1, 0], [3, 3]), None, "move")
    assert Copy(x, y, "move").name == "move"
    assert Copy(x, y, True).offset is None
    with pytest.raises(TensorShapeError, match=r"'x' FLOAT \[6\] has 6, 'y' FLOAT \[2, 6\] has 12"):
        Copy(x[0], y[0:2])


def test_types_must_agree(graph, x):
    with pytest.raises(PoplarTypeError, match=r"'x' FLOAT \[4, 6\] to 'h' HALF \[4, 6\]; see popops.cast"):
        Copy(x, graph.addVariable(HALF, [4, 6], "h"))
    Copy(x.reinterpret(INT), graph.addVariable(INT, [4, 6]))


def test_constants_and_aliased_views_are_not_written(graph, x, y):
    constant = graph.addConstant(FLOAT, [6], 1.0, "c")
    Copy(constant, x[0])
    Copy(x[0].broadcast(4, 0), y.flatten())
    with pytest.raises(TensorWriteError, match=r"cannot copy to 'c' FLOAT \[6\]: it holds a constant"):
        Copy(x[0], constant)
    with pytest.raises(TensorWriteError, match="holds an element more than once"):
        Copy(x.flatten(), y[0].broadcast(4, 0))


@pytest.mark.parametrize(("source", "destination"), [
    (lambda t: t[0], lambda t: t[1]),
    (lambda t: t, lambda t: t),
    (lambda t: t[1], lambda t: t[1]),
    (lambda t: t[:, 0], lambda t: t[:, 1]),
    (lambda t: concat(t[0], t[1]), lambda t: concat(t[2], t[1])),
])  # fmt: skip
def test_source_and_destination_may_share_elements_at_equal_positions(x, source, destination):
    Copy(source(x), destination(x))


@pytest.mark.parametrize(("source", "destination", "region"), [
    (lambda t: t[0:2], lambda t: t[1:3], r"\[6:7\)"),
    (lambda t: t.flatten(), lambda t: t.flatten().reverse(0), r"\[0:1\)"),
    (lambda t: t[0:4, 0:4], lambda t: t[0:4, 0:4].transpose(), r"\[1:2\)"),
    (lambda t: concat(t[0], t[1]), lambda t: concat(t[1], t[2]), r"\[6:7\)"),
])  # fmt: skip
def test_an_element_at_two_positions_is_refused(x, source, destination, region):
    with pytest.raises(TensorWriteError, match=f"both hold {region} of variable 'x', at different positions"):
        Copy(source(x), destination(x))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_sharing_is_judged_element_by_element(source, data):
    destination = data.draw(st.lists(st.integers(0, 30), min_size=len(source), max_size=len(source), unique=True))
    x = new_graph().addVariable(FLOAT, [31], "x")
    views = [x._of_ids(np.array(one, np.int64)) for one in (source, destination)]
    shared = any(one == other and i != j for i, one in enumerate(source) for j, other in enumerate(destination))
    if shared:
        with pytest.raises(TensorWriteError):
            Copy(*views)
    else:
        Copy(*views)


def test_streams_have_a_direction_a_type_and_a_count(graph, x):
    inward, outward = graph.addHostToDeviceFIFO("in", FLOAT, 24), graph.addDeviceToHostFIFO("out", FLOAT, 24)
    Copy(inward, x)
    Copy(x, outward)
    with pytest.raises(PoplarTypeError, match=r"'out' to host, .* goes to host only"):
        Copy(outward, x)
    with pytest.raises(PoplarTypeError, match="goes to device only"):
        Copy(x, inward)
    with pytest.raises(TensorShapeError, match=r"transfers 24 elements, but 'x' FLOAT \[6\] has 6"):
        Copy(inward, x[0])
    with pytest.raises(PoplarTypeError, match="of type FLOAT, but 'i' INT"):
        Copy(inward, graph.addVariable(INT, [24], "i"))
    with pytest.raises(TensorWriteError):
        Copy(inward, graph.addConstant(FLOAT, [24], 0))
    with pytest.raises(PoplarTypeError, match="no offset"):
        Copy(inward, x, x)
    with pytest.raises(PoplarTypeError, match="Copy goes between"):
        Copy(inward, outward)


def test_remote_buffers_transfer_the_rows_that_the_offset_names(graph, x):
    buffer = graph.addRemoteBuffer("remote", FLOAT, 6, 100)
    rows = graph.addVariable(UNSIGNED_INT, [4], "rows")
    assert Copy(buffer, x, rows).offset == rows
    Copy(x, buffer, rows)
    Copy(x[0], buffer)
    Copy(buffer, x[0], rows[0])
    with pytest.raises(TensorShapeError, match="transfers 24 elements"):
        Copy(buffer, x[0], rows)
    with pytest.raises(TensorShapeError, match="transfers 6 elements"):
        Copy(buffer, x)
    with pytest.raises(PoplarTypeError, match="INT or UNSIGNED_INT, got 'x'"):
        Copy(buffer, x[0], x[0][0])
    with pytest.raises(PoplarTypeError, match="addConstant"):
        Copy(buffer, x[0], 3)


def test_things_that_are_no_operands_are_refused(graph, x, y):
    for source, destination in ((x, "y"), (3, y), (x, None), (x, Tensor()), (x, new_graph().addVariable(FLOAT, [4, 6]))):
        with pytest.raises(PoplarTypeError):
            Copy(source, destination)
    with pytest.raises(PoplarTypeError, match="no offset"):
        Copy(x, y, x[0])
