"""Copies go through their ends in the order of memory, whatever the order of their dimensions."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, Engine, Graph, IPUModel, TensorWriteError, concat
from pypoplar.graph import ordering
from pypoplar.graph.ordering import copied_in_order
from pypoplar.program import Copy


def ends(draw):
    """Two views of one shape of two variables: permuted, in blocks, reversed or cut."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    graph = Graph(IPUModel("tiny").createDevice())

    def view():
        blocks = draw(st.integers(0, len(shape) - 1))
        factors = [each for each in range(1, shape[blocks] + 1) if shape[blocks] % each == 0]
        factor = draw(st.sampled_from(factors))
        split = [*shape[:blocks], shape[blocks] // factor, factor, *shape[blocks + 1 :]]
        order = draw(st.permutations(range(len(split))))
        variable = graph.addVariable(FLOAT, [split[place] + draw(st.integers(0, 1)) for place in order], "x")
        for number, place in enumerate(order):
            variable = variable.slice(0, split[place], number)
        made = variable.dimShuffle([order.index(place) for place in range(len(order))]).flatten(blocks, blocks + 2)
        return made.reverse(draw(st.integers(0, len(shape) - 1))) if draw(st.booleans()) else made

    return view(), view()


@given(st.data())
@examples(100)
def test_the_same_elements_go_to_the_same_places(data):
    source, destination = ends(data.draw)
    ordered = copied_in_order(source, destination)
    before = {*zip(source._ids().ravel().tolist(), destination._ids().ravel().tolist(), strict=True)}
    after = {*zip(*(end._ids().ravel().tolist() for end in ordered), strict=True)}
    assert before == after


def test_the_order_of_dimensions_does_not_change_what_a_copy_moves():
    made = []
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        device = IPUModel("tiny").createDevice()
        graph = Graph(device)
        x, y = (graph.addVariable(FLOAT, [8, 6, 16], name) for name in ("x", "y"))
        for row in range(8):
            graph.setTileMapping(x[row], row)
            graph.setTileMapping(y[row], row // 2)
        engine = Engine(graph, Copy(x.dimShuffle(order), y.dimShuffle(order)))
        engine.load(device)
        engine.run()
        made.append((engine.executable.moves.bytes, engine.getReport().execution.totalCycles.total))
    for moves, cycles in made[1:]:
        np.testing.assert_array_equal(moves, made[0][0])
        assert cycles == made[0][1]


def test_elements_at_other_places_of_one_variable_are_found_beside_other_variables():
    graph = Graph(IPUModel("tiny").createDevice())
    x, y = graph.addVariable(FLOAT, [8], "x"), graph.addVariable(FLOAT, [8], "y")
    Copy(x.slice(0, 4), y.slice(4, 8))
    Copy(x, x)
    for destination in (x.slice(2, 6), x.slice(0, 4).reverse(0)):
        with pytest.raises(TensorWriteError, match="different positions"):
            Copy(x.slice(0, 4), destination)


def pieces_of(draw, graph, variables, length):
    """A view of several variables, whose elements are in any order; none occurs twice."""
    whole = concat([draw(st.sampled_from([each, each.reverse(0)])) for each in variables])
    ids = draw(st.permutations(range(length)))
    cuts = sorted({0, length, *draw(st.lists(st.integers(0, length), max_size=6))})
    if draw(st.booleans()):
        return concat([whole.slice(ids[place], ids[place] + 1) for place in range(length)])
    blocks = draw(st.permutations([whole.slice(*cut) for cut in pairwise(cuts)]))
    return concat(
        [
            block.slice(phase, block.numElements()).subSample(2, 0)
            for block in blocks
            for phase in range(min(2, block.numElements()))
        ]
    )


@given(st.data(), st.integers(1, 30))
@examples(60)
def test_many_elements_are_ordered_by_parts_as_few_are_at_once(data, at_once):
    graph = Graph(IPUModel("tiny").createDevice())
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    length = sum(sizes)
    reference, other = (
        pieces_of(data.draw, graph, [graph.addVariable(FLOAT, [size], name) for size in sizes], length) for name in "ab"
    )
    at_first, (with_it,) = graph.reorderToSimplify(reference, [other])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.graph.ordering.ORDERED_AT_ONCE", at_once)
        by_parts, (with_them,) = graph.reorderToSimplify(reference, [other])
    np.testing.assert_array_equal(by_parts._ids(), at_first._ids())
    np.testing.assert_array_equal(with_them._ids(), with_it._ids())


@pytest.mark.parametrize("at_once", [1 << 20, 3])
@given(pieces=st.lists(st.tuples(st.integers(0, 15), st.integers(1, 16), st.booleans()), min_size=2, max_size=6))
@examples(100)
def test_the_order_of_elements_that_occur_several_times_does_not_depend_on_how_a_view_is_kept(at_once, pieces):
    graph = Graph(IPUModel("tiny").createDevice())
    whole = concat([graph.addVariable(FLOAT, [8], name) for name in "ab"])
    parts = [whole.slice(begin, min(16, begin + length)) for begin, length, _ in pieces]
    view = concat([part.reverse(0) if back else part for part, (_, _, back) in zip(parts, pieces, strict=True)])
    number = graph.addVariable(FLOAT, view.shape(), "numbers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypoplar.graph.ordering.ORDERED_AT_ONCE", at_once)
        made, (places,) = graph.reorderToSimplify(view, [number])
        anew, (same,) = graph.reorderToSimplify(view._of_ids(view._ids()), [number])
    np.testing.assert_array_equal(anew._ids(), made._ids())
    np.testing.assert_array_equal(same._ids(), places._ids())
    np.testing.assert_array_equal(made._ids(), view._ids()[places._ids() - number._ids()[0]])


@given(st.data(), st.booleans(), st.booleans())
@examples(60)
def test_elements_found_by_a_table_of_memory_are_in_the_order_of_sorted_pieces(data, by_parts, twice):
    graph = Graph(IPUModel("tiny").createDevice())
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    length = sum(sizes)
    reference, other = (
        pieces_of(data.draw, graph, [graph.addVariable(FLOAT, [size], name) for size in sizes], length) for name in "ab"
    )
    if twice:
        reference, other = (concat(end, end.subSample(3, 0)) for end in (reference, other))
    made = []
    for fewest in (1, length * 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pypoplar.graph.ordering.FEWEST_IN_TABLE", fewest)
            if by_parts:
                patch.setattr("pypoplar.graph.ordering.ORDERED_AT_ONCE", 4)
            ordered, (with_it,) = graph.reorderToSimplify(reference, [other])
            made.append([end._ids().tolist() for end in (ordered, with_it)])
    assert made[0] == made[1]


def test_runs_of_elements_found_by_a_table_of_memory_are_those_of_sorted_pieces():
    graph = Graph(IPUModel("tiny").createDevice())
    weight, gradient = (graph.addVariable(FLOAT, [64, 48], name) for name in ("weight", "gradient"))
    blocks = concat([gradient[:, begin:end].flatten() for begin, end in ((0, 16), (16, 48))])
    seen = concat([blocks[: 64 * 16].reshape([64, 16]), blocks[64 * 16 :].reshape([64, 32])], 1)
    uneven = concat([weight.transpose()[:30], weight.transpose()[31:]]), concat([seen.transpose()[:30], seen.transpose()[31:]])
    made = []
    for fewest in (256, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("pypoplar.graph.ordering.FEWEST_IN_TABLE", fewest)
            ordered, (with_it,) = graph.reorderToSimplify(uneven[0], [uneven[1]])
            made.append([[column.tolist() for column in (end.runs().start, end.runs().count)] for end in (ordered, with_it)])
    assert made[0] == made[1]
    assert len(made[0][0][0]) == 65  # what lies between two elements that are left out, and before and behind them


@given(st.data(), st.integers(1, 30))
@examples(60)
def test_equal_parts_that_are_ordered_once_have_the_runs_that_each_has_by_itself(data, at_once):
    graph = Graph(IPUModel("tiny").createDevice())
    kinds = data.draw(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=2))
    layers = [data.draw(st.sampled_from(kinds)) for _ in range(data.draw(st.integers(2, 5)))]
    order = {str(kind): data.draw(st.permutations(range(sum(kind)))) for kind in kinds}
    cuts = data.draw(st.lists(st.integers(1, 4), min_size=30, max_size=30))  # the others' variables may end elsewhere
    ends = []
    for name in "ab":
        parts = []
        for number, sizes in enumerate(layers):
            own = sizes if name == "a" or cuts[number] < 4 else [1, sum(sizes) - 1] if sum(sizes) > 1 else sizes
            flat = concat([graph.addVariable(FLOAT, [size], f"{name}{number}") for size in own])
            places = order[str(sizes)] if name == "a" or cuts[-number] < 3 else range(sum(sizes))
            parts.append(concat([flat.slice(place, place + 1) for place in places]))
        ends.append(concat(parts))
    made = []
    for digest in (ordering._digest, lambda *part: os.urandom(32)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ordering, "ORDERED_AT_ONCE", at_once)
            patch.setattr(ordering, "_digest", digest)
            first, (second,) = graph.reorderToSimplify(ends[0], [ends[1]])
            made.append([column.tolist() for end in (first, second) for column in columns_of(end._run_list())])
    assert made[0] == made[1]


def columns_of(runs):
    return runs.start, runs.count, runs.step


def test_of_equal_layers_one_is_put_in_order(monkeypatch):
    graph = Graph(IPUModel("tiny").createDevice())
    weights = [graph.addVariable(FLOAT, [40, 30], f"weight{layer}").transpose().flatten() for layer in range(6)]
    ends = [concat(weights), concat([graph.addVariable(FLOAT, [40 * 30], f"gradient{layer}") for layer in range(6)])]
    ordered, calls = ordering._part_in_order, []
    monkeypatch.setattr(ordering, "ORDERED_AT_ONCE", 1000)
    monkeypatch.setattr(ordering, "_part_in_order", lambda *part: calls.append(part) or ordered(*part))
    first, (second,) = graph.reorderToSimplify(ends[0], [ends[1]])
    assert len(calls) == 1
    assert [len(first._run_list()), first.numElements()] == [6, 7200]
    where = np.argsort(ends[0]._ids())
    np.testing.assert_array_equal(second._ids(), ends[1]._ids()[where])


def test_of_equal_layers_whose_weights_are_one_variable_one_is_put_in_order(monkeypatch):
    graph = Graph(IPUModel("tiny").createDevice())
    whole = graph.addVariable(FLOAT, [6 * 1207], "weights and biases")
    layers = [whole.slice(begin, begin + 1207) for begin in range(0, 6 * 1207, 1207)]
    weights = [concat([layer.slice(0, 1200).reshape([30, 40]).transpose().flatten(), layer.slice(1200, 1207)]) for layer in layers]
    ends = [concat(weights), graph.addVariable(FLOAT, [6 * 1207], "gradients")]
    ordered, calls = ordering._part_in_order, []
    monkeypatch.setattr(ordering, "ORDERED_AT_ONCE", 1000)
    monkeypatch.setattr(ordering, "_part_in_order", lambda *part: calls.append(part) or ordered(*part))
    first, (second,) = graph.reorderToSimplify(*ends[:1], ends[1:])
    assert len(calls) == 2  # weights, and biases
    assert first._ids().tolist() == whole.flatten()._ids().tolist()
    np.testing.assert_array_equal(second._ids(), ends[1]._ids()[np.argsort(ends[0]._ids())])


def test_parts_that_differ_by_their_steps_alone_are_not_taken_for_each_other(monkeypatch):
    graph = Graph(IPUModel("tiny").createDevice())
    halves = [graph.addVariable(FLOAT, [8], f"a{number}") for number in range(2)]
    reference = concat([half.slice(begin, begin + 4) for half in halves for begin in (4, 0)])
    wide = [graph.addVariable(FLOAT, [24], f"b{number}") for number in range(2)]
    other = concat([wide[0].slice(0, 8).subSample(2, 0), wide[0].slice(20, 24), wide[1].slice(0, 4), wide[1].slice(20, 24)])
    monkeypatch.setattr(ordering, "ORDERED_AT_ONCE", 8)
    first, (second,) = graph.reorderToSimplify(reference, [other])
    where = np.argsort(reference._ids())
    np.testing.assert_array_equal(first._ids(), reference._ids()[where])
    np.testing.assert_array_equal(second._ids(), other._ids()[where])
