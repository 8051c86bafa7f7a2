"""Broadcast operands of element operations, of which a vertex has each element once: against NumPy, and against whole operands."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run

from pypoplar import FLOAT, HALF, INT, popops, poputil
from pypoplar.popops.elements import map_call
from pypoplar.popops.expr import Add, Mul, Sub, _1, _2
from pypoplar.program import Sequence

TREES = {"difference": Sub(_1, _2), "product and sum": Add(Mul(_1, _2), _2)}


def in_order(graph, type, shape, order, name):
    """A variable whose dimensions lie in memory in another order than they are seen in."""
    made = graph.addVariable(type, [shape[dimension] for dimension in order], name)
    return made, made.dimShuffle([int(place) for place in np.argsort(order)])


def program_over(drawn, tiles=3):
    """The graph of a drawn call, its program, its operands by name and its result."""
    shape, order, narrow, tree, in_place, type, mapped = drawn
    graph, device = new_graph(tiles)
    made, wide = in_order(graph, type, shape, order, "wide")
    if isinstance(mapped, int):
        poputil.mapTensorLinearly(graph, made, mapped, mapped)
    else:  # stretches on tiles in any order, of any length
        flat, bounds = made.flatten(), sorted({0, made.numElements(), *(place % made.numElements() for place in mapped)})
        for number, (begin, end) in enumerate(pairwise(bounds)):
            graph.setTileMapping(flat.slice(begin, end), number * 7 % tiles)
    vector = graph.addVariable(type, [1 if cut else size for size, cut in zip(shape, narrow, strict=True)], "vector")
    poputil.mapTensorLinearly(graph, vector)
    program = Sequence()
    if in_place:
        popops.mapInPlace(graph, TREES[tree], [wide, vector], program)
        out = wide
    else:
        out = popops.map(graph, TREES[tree], [wide, vector], program)
    graph.createHostWrite("wide", wide)
    graph.createHostWrite("vector", vector)
    return graph, device, program, (wide, vector, out)


def repeats(engine):
    """Whether vertices of the program have operands whose elements they get once."""
    return any("repeated" in codelet.source.name for codelet in engine.executable.codelets)


@st.composite
def calls(draw):
    rank = draw(st.integers(2, 3))
    shape = [draw(st.integers(2, 4)) if rank == 3 and place == 0 else draw(st.integers(12, 70)) for place in range(rank)]
    order = draw(st.permutations(range(rank)))
    narrow = draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
    tree, in_place = draw(st.sampled_from(sorted(TREES))), draw(st.booleans())
    mapped = draw(st.integers(1, 9) | st.lists(st.integers(0, 20_000), min_size=2, max_size=6))
    return shape, list(order), narrow, tree, in_place, draw(st.sampled_from([FLOAT, HALF, INT])), mapped


@given(calls(), st.integers(0, 2**32 - 1))
@examples(40)
def test_a_broadcast_operand_in_any_order_of_memory_gives_numpys_values_in_both_engines(drawn, seed):
    shape, _, narrow, tree, _, type, _ = drawn
    random = np.random.default_rng(seed)
    wide = random.integers(-8, 8, shape).astype(type.dtype)  # whole numbers, so that there is one right result
    vector = random.integers(-8, 8, [1 if cut else size for size, cut in zip(shape, narrow, strict=True)]).astype(type.dtype)
    expected = wide - vector if tree == "difference" else wide * vector + vector
    for mode in MODES:
        graph, device, program, (_, _, out) = program_over(drawn)
        results, _ = run(graph, device, program, {"wide": wide, "vector": vector}, {"out": out}, mode)
        assert np.array_equal(results["out"], expected), mode


def softmax_like(graph, columns_together, rows=64, columns=4000):
    """Two maps of a matrix and its rows' maxima, the matrix in rows or in columns, and its values."""
    made, wide = in_order(graph, FLOAT, [rows, columns], [1, 0] if columns_together else [0, 1], "wide")
    poputil.mapTensorLinearly(graph, made)
    vector = graph.addVariable(FLOAT, [rows, 1], "vector")
    poputil.mapTensorLinearly(graph, vector)
    program = Sequence()
    out = popops.map(graph, Add(Sub(_1, _2), Mul(_1, _2)), [wide, vector], program)
    graph.createHostWrite("wide", wide)
    graph.createHostWrite("vector", vector)
    return program, out


def read_whole(monkeypatch):
    monkeypatch.setattr(map_call, "comes_again", lambda target, view, regions: False)


def run_softmax_like(columns_together, rows, columns, tiles):
    graph, device = new_graph(tiles)
    program, out = softmax_like(graph, columns_together, rows, columns)
    random = np.random.default_rng(0)
    values = {"wide": random.standard_normal((rows, columns), np.float32), "vector": random.standard_normal((rows, 1), np.float32)}
    results, engine = run(graph, device, program, values, {"out": out})
    return results["out"], engine


def test_a_row_s_number_over_a_matrix_takes_less_time_and_memory_than_one_for_each_element(monkeypatch):
    figures = []
    for whole in (False, True):
        if whole:
            read_whole(monkeypatch)
        out, engine = run_softmax_like(False, 64, 4000, 16)
        assert repeats(engine) != whole
        held = max(tile.memory.total.includingGaps for tile in engine.getReport().compilation.tiles)
        figures.append((out, engine.getReport().execution.totalCycles.total, held))
    (once, cycles, bytes_held), (whole, more_cycles, more_bytes) = figures
    assert once.tobytes() == whole.tobytes()
    assert 1.5 * cycles < more_cycles
    assert 1.4 * bytes_held < more_bytes


@pytest.mark.parametrize(("columns_together", "rows", "columns"), [(True, 64, 4000), (True, 64, 4), (False, 64, 2)])
def test_what_few_pieces_bring_is_read_as_it_is(columns_together, rows, columns):
    _, engine = run_softmax_like(columns_together, rows, columns, 16)
    assert not repeats(engine)


def test_each_row_costs_a_round_of_an_outer_loop_and_elements_cost_what_they_did(monkeypatch):
    rows, columns, costs = 8, 400, []
    for whole in (False, True):
        if whole:
            read_whole(monkeypatch)
        _, engine = run_softmax_like(False, rows, columns, 1)
        assert repeats(engine) != whole
        (compute,) = [step.cycles for step in engine.getReport().execution.steps if step.type == "OnTileExecute"]
        costs.append(compute)
    share = -(-rows * columns // 6)  # of the busiest of six workers, whose rows are cut at both ends
    assert costs[0] - costs[1] == 6 * 25 * (-(-share // columns) + 1)
