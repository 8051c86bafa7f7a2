"""How operands of convolutions lie in memory: what a tile has is together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from library_programs import new_graph

from pypoplar import FLOAT, HALF, Graph, poplin
from pypoplar.poplin.convolution.layout.memory_order import MemoryOrder, in_order, pieces_in_order
from pypoplar.program import Sequence


@st.composite
def orders(draw: st.DrawFn) -> tuple[list[int], MemoryOrder]:
    """A shape, and an order with parts of some dimensions and phases of others; phases may leave a rest."""
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    dimensions = draw(st.permutations(range(len(shape))))
    cuts, phases = {}, {}
    for place, size in enumerate(shape):
        match draw(st.sampled_from(("whole", "cut", "phases"))):
            case "cut":
                inside = draw(st.sets(st.integers(1, size - 1))) if size > 1 else set()
                cuts[place] = (0, *sorted(inside), size)
            case "phases":
                phases[place] = draw(st.integers(2, 4))
    return shape, MemoryOrder(tuple(dimensions), cuts=cuts, phases=phases)


@given(orders())
def test_a_tensor_in_order_has_its_shape_and_each_piece_is_one_stretch_of_memory(case: tuple[list[int], MemoryOrder]) -> None:
    shape, order = case
    graph, _ = new_graph(4)
    made = in_order(graph, FLOAT, shape, order, "made")
    assert made.shape() == shape
    assert made.flatten().runs().count.sum() == np.prod(shape)
    pieces = pieces_in_order(made, order)
    assert sum(piece.numElements() for piece in pieces) == np.prod(shape)
    for piece in pieces:
        assert len(piece.getContiguousRegions()) == 1


@given(orders(), st.data())
def test_what_is_in_the_same_parts_and_phases_lies_together_in_the_order_of_the_dimensions(
    case: tuple[list[int], MemoryOrder], data: st.DataObject
) -> None:
    shape, order = case
    graph, _ = new_graph(4)
    box = in_order(graph, FLOAT, shape, order, "made")
    for place, size in enumerate(shape):
        if place in order.cuts:
            bounds = order.cuts[place]
            part = data.draw(st.integers(0, len(bounds) - 2))
            box = box.slice(bounds[part], bounds[part + 1], place)
        elif place in order.phases and size >= (step := order.phases[place]):
            phase = data.draw(st.integers(0, step - 1))
            box = box.slice(phase, size - size % step, place).subSample(step, place)
    assert len(box.dimShuffle(order.dimensions).getContiguousRegions()) <= 1 + sum(
        size < order.phases.get(place, 0) for place, size in enumerate(shape)
    )


def pieces_by_field(graph: Graph) -> dict[str, list[tuple[int, int]]]:
    """The elements of each edge of the vertices of the matrix unit, and in how many pieces of memory these are, by field."""
    frozen = graph.freeze()
    pieces: dict[str, list[tuple[int, int]]] = {}
    counts = np.add.reduceat(frozen.edges.run_count, frozen.edges.first_run[:-1])
    for edge, vertex in enumerate(frozen.edges.vertex.tolist()):
        codelet = frozen.codelets[frozen.vertices.codelet[vertex]]
        if codelet.name.startswith("poplin::ConvPartial"):
            begin, end = frozen.edges.first_run[edge : edge + 2].tolist()
            pieces.setdefault(codelet.fields[frozen.edges.field[edge]].name, []).append((int(counts[edge]), end - begin))
    return pieces


@pytest.mark.parametrize(("size", "kernel", "stride", "outputs"), [(16, 1, 1, 64), (16, 3, 1, 64), (17, 3, 2, 96), (14, 1, 2, 256)])
def test_every_vertex_has_its_weights_in_one_piece_of_memory(size: int, kernel: int, stride: int, outputs: int) -> None:
    graph, _ = new_graph(64)
    params = poplin.ConvParams(HALF, HALF, 2, [size] * 2, [kernel] * 2, 64, outputs, 1)
    params.outputTransform.stride = [stride] * 2
    input, weights = poplin.createInput(graph, params, "input"), poplin.createWeights(graph, params, "weights")
    poplin.convolution(graph, input, weights, params, False, Sequence(), "conv")
    assert {pieces for _, pieces in pieces_by_field(graph)["weights"]} == {1}


@pytest.mark.parametrize("kernel", [1, 3])
def test_gradients_of_a_strided_layers_weights_read_rows_of_the_input(kernel: int) -> None:
    graph, _ = new_graph(64)
    size, batch = 28, 2
    params = poplin.ConvParams(HALF, HALF, batch, [size] * 2, [kernel] * 2, 64, 64, 1)
    params.inputTransform.paddingLower = params.inputTransform.paddingUpper = [kernel // 2] * 2
    params.outputTransform.stride = [2, 2]
    input, deltas = poplin.createInput(graph, params, "input"), poplin.createConvOutput(graph, params, "deltas")
    poplin.calculateWeightDeltas(graph, deltas, input, params, Sequence(), "deltas", {"pass": "TRAINING_WU"})
    elements, pieces = np.array(pieces_by_field(graph)["in"]).sum(axis=0)
    assert elements >= size // 2 * batch * pieces * 0.8  # a row of the field, but for what padding cuts off
