"""popops.rearrange: matrices transposed on tiles, and tensors put into other groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples
from library_programs import MODES, new_graph, run, variable

from pypoplar import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    SHORT,
    UNSIGNED_INT,
    UNSIGNED_SHORT,
    Graph,
    PoplarIndexError,
    PoplarTypeError,
    Target,
    popops,
    poputil,
)
from pypoplar.popops.rearrange.regroup_calls import grouped_by, ungrouped
from pypoplar.popops.rearrange.transpose_cycles import transpose_cycles
from pypoplar.popops.rearrange.transposed_blocks import best_blocks
from pypoplar.poputil.exceptions import PoplibsError
from pypoplar.poputil.structure.groupings import innermost_grouping
from pypoplar.program import Execute, Sequence

TYPES = (HALF, FLOAT, UNSIGNED_SHORT, UNSIGNED_INT, SHORT, INT)
TARGET = Target.createIPUTarget(1, 8, "bow")
rearrange = popops.rearrange


@examples(8)
@given(
    st.lists(st.integers(0, 4), max_size=2),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from(TYPES),
    st.sampled_from((1, 4, 7)),
)
def test_matrices_are_transposed_where_they_are(outer, rows, columns, type, tiles):
    values = np.random.default_rng(rows).integers(-99, 99, [*outer, rows, columns]).astype(type.dtype)
    reads = []
    for mode in MODES:
        graph, device = new_graph(tiles)
        t = variable(graph, type, values.shape, "t")
        cs = graph.addComputeSet("transpose")
        result = rearrange.partialTranspose(graph, t, cs, "t")
        read, engine = run(
            graph, device, Sequence([Execute(cs)]), {"t": values}, {"t": result}, mode, {"pypoplar.races": "elements"}
        )
        np.testing.assert_array_equal(read["t"], values.swapaxes(-1, -2))
        reads.append([step.cycles for step in engine.getReport().execution.steps])
    assert reads[0] == reads[1]


def test_matrices_are_transposed_one_by_one():
    graph, device = new_graph(4)
    t, out = variable(graph, HALF, [5, 4, 8], "t"), graph.addVariable(HALF, [5, 8, 4], "out")
    cs = graph.addComputeSet("transpose")
    mapping = [[(0, 2)], [], [(3, 5), (2, 3)]]
    rearrange.addTransposeVertices(graph, cs, HALF, 4, 8, mapping, lambda number: (t[number].flatten(), out[number].flatten()))
    assert [len(held) > 0 for held in graph.getTileMapping(out)] == [True, False, True, False]
    values = np.arange(160, dtype=np.float16).reshape(5, 4, 8)
    read, _ = run(graph, device, Sequence([Execute(cs)]), {"t": values}, {"out": out})
    np.testing.assert_array_equal(read["out"], values.swapaxes(1, 2))


def grouped_variable(graph, type, shape, dimension, group):
    """A variable whose elements lie in groups of a dimension, on several tiles."""
    order = [*range(len(shape)), len(shape)]
    split = [*shape[:dimension], shape[dimension] // group, *shape[dimension + 1 :], group]
    memory = graph.addVariable(type, split, "t")
    poputil.mapTensorLinearly(graph, memory, group, group)
    return memory.dimShuffle([*order[: dimension + 1], len(shape), *order[dimension + 1 : -1]]).reshape(shape)


@pytest.mark.parametrize("type", [HALF, FLOAT])
@pytest.mark.parametrize("mode", MODES)
def test_elements_in_groups_of_one_dimension_come_into_groups_of_another(type, mode):
    graph, device = new_graph(8)
    t = grouped_variable(graph, type, [16, 24], 0, 8)
    assert poputil.detectDimGroupings(graph, t)[0] == (0, 8)
    prog, copies = Sequence(), []
    cs = graph.addComputeSet("transpose")
    results = {
        "tensor": rearrange.regroupTensor(graph, t, copies, cs, (0, 8), (1, 4), "regroup"),
        "possible": rearrange.regroupIfPossible(graph, t, prog, (1, 12), "possible"),
        "size": rearrange.regroupIfBeneficial(graph, t, 8, prog),
    }
    ref = grouped_variable(graph, FLOAT, [16, 24], 1, 4)
    results["ref"] = rearrange.regroupIfBeneficial(graph, t, ref, prog)
    others = []
    more = graph.addComputeSet("more")
    results["lists"] = rearrange.regroupIfBeneficial(graph, t, ref, others, more)
    assert len(copies) == len(others) == 1
    for result in results.values():
        assert poputil.detectDimGroupings(graph, result)[0][0] == 1
    graph.createHostWrite("t", t)
    values = np.arange(384).reshape(16, 24).astype(type.dtype)
    everything = Sequence([*copies, Execute(cs), *others, Execute(more), prog])
    read, _ = run(graph, device, everything, {"t": values}, results, mode)
    for name in results:
        np.testing.assert_array_equal(read[name], values, err_msg=name)


def test_what_lies_well_or_cannot_be_transposed_stays_as_it_is():
    graph, _ = new_graph(8)
    prog = Sequence()
    t = grouped_variable(graph, HALF, [16, 24], 0, 8)
    odd = grouped_variable(graph, HALF, [9, 24], 0, 3)
    flags = grouped_variable(graph, BOOL, [16, 24], 0, 8)
    vector = variable(graph, HALF, [16], "vector")
    assert rearrange.regroupIfBeneficial(graph, t, t, prog) is t
    assert rearrange.regroupIfBeneficial(graph, t.transpose(), 8, prog) == t.transpose()
    assert rearrange.regroupIfBeneficial(graph, odd, 8, prog) is odd
    assert rearrange.regroupIfBeneficial(graph, flags, 8, prog) is flags
    assert rearrange.regroupIfBeneficial(graph, t, 3, prog) is t
    assert rearrange.regroupIfPossible(graph, t, prog, (0, 4)) is t
    assert rearrange.regroupIfPossible(graph, vector, prog, (0, 4)) is vector
    assert rearrange.regroupTensor(graph, vector, prog, graph.addComputeSet("cs"), (0, 4), (0, 2)) is vector
    assert len(prog) == 0


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=2, max_size=3), st.permutations([0, 1]))
def test_groups_of_two_dimensions_are_taken_apart_and_put_together(sizes, pair):
    graph = Graph(TARGET)
    t = graph.addVariable(FLOAT, [outer * inner for outer, inner in sizes], "t")
    first, second = ((dimension, sizes[dimension][1]) for dimension in pair)
    grouped = grouped_by(t, first, second)
    assert grouped.shape()[-2:] == [first[1], second[1]]
    assert ungrouped(grouped, second, first) == t


def test_the_whole_machine_regroups():
    graph, device = new_graph(1472)
    t = grouped_variable(graph, HALF, [512, 1024], 0, 16)
    prog = Sequence()
    result = rearrange.regroupIfBeneficial(graph, t, 16, prog)
    held = [sum(interval.size() for interval in intervals) for intervals in graph.getTileMapping(result)]
    assert max(held) <= 1.5 * 512 * 1024 / 1472
    graph.createHostWrite("t", t)
    values = np.random.default_rng(0).random((512, 1024)).astype(np.float16)
    read, _ = run(graph, device, prog, {"t": values}, {"result": result})
    np.testing.assert_array_equal(read["result"], values)


def test_groups_stay_on_their_ipus():
    target = Target.createIPUTarget(2, 4, "bow")
    graph = Graph(target)
    popops.addCodelets(graph)
    memory = graph.addVariable(HALF, [4, 16, 8], "t")
    for part in range(4):
        graph.setTileMapping(memory[part], 6 if part >= 2 else 0)
    t = memory.dimShuffle([0, 2, 1]).reshape([32, 16])
    result = rearrange.regroupIfBeneficial(graph, t, 8, Sequence())
    for half, ipu in ((result.slice(0, 16), 0), (result.slice(16, 32), 1)):
        assert {tile // 4 for tile, held in enumerate(graph.getTileMapping(half)) if held} == {ipu}


def test_fast_transposes_are_those_of_blocks_of_16_bits():
    assert [rearrange.getMinimumRegroupGrainSize(type) for type in (HALF, SHORT, FLOAT, BOOL)] == [4, 4, 2, 1]
    fast = rearrange.canUseFastTranspose
    assert fast(TARGET, HALF, 16, 16, 10)
    assert fast(TARGET, UNSIGNED_SHORT, 4, 4, 4097)
    assert not fast(TARGET, HALF, 4, 4, 4098)
    assert not fast(TARGET, FLOAT, 16, 16, 10)
    assert not fast(TARGET, HALF, 6, 16, 10)
    assert not fast(TARGET, HALF, 16, 4 * 172, 10)


def test_transposes_cost_what_poplibs_says():
    assert transpose_cycles(TARGET, 6, 4, 4, 2) == 1 + 17 + 12
    assert transpose_cycles(TARGET, 24, 4, 4, 2) == 1 + 17 + 20 + 2 * 4
    assert transpose_cycles(TARGET, 12, 16, 4, 2) == 1 + 27 + 2 * (15 + 20 + 4 * 2)
    assert transpose_cycles(TARGET, 6, 16, 16, 2) == 1 + 29 + 18 + 4 * (12 + 4 * 2)
    assert transpose_cycles(TARGET, 6, 8, 8, 4) == 1 + 29 + 18 + 4 * (12 + 3 * 2)
    assert transpose_cycles(TARGET, 2, 48, 16, 2) == 1 + 29 + 18 + 4 * (12 + 4 * 2)


def test_groups_that_do_not_fit_are_refused():
    graph, _ = new_graph(8)
    t, flags, prog = grouped_variable(graph, HALF, [16, 24], 0, 8), variable(graph, BOOL, [4, 4], "flags"), Sequence()
    cs = graph.addComputeSet("cs")
    before = len(graph.freeze().variables.names), graph.numComputeSets()
    refused = [
        (
            PoplibsError,
            lambda: rearrange.regroupTensor(graph, t, prog, cs, (0, 5), (1, 4)),
            "groups of 5 do not divide dimension 0 of",
        ),
        (PoplibsError, lambda: rearrange.regroupTensor(graph, t, prog, cs, (0, 8), (0, 4)), "takes groups of two dimensions"),
        (PoplibsError, lambda: rearrange.regroupTensor(graph, flags, prog, cs, (0, 2), (1, 2)), "16 and 32 bits, got .*'flags'"),
        (PoplarIndexError, lambda: rearrange.regroupIfPossible(graph, t, prog, (2, 5)), "the dimension of to is 2, and"),
        (PoplibsError, lambda: rearrange.regroupIfBeneficial(graph, t, 5, prog), "groups of 5 do not divide dimension 1"),
        (PoplibsError, lambda: rearrange.regroupIfBeneficial(graph, t, flags, prog), "in_ and ref have one shape"),
        (PoplibsError, lambda: rearrange.partialTranspose(graph, t[0], cs), "swaps the last two dimensions"),
        (PoplibsError, lambda: rearrange.partialTranspose(graph, flags, cs), "transposes elements of 16 and 32 bits"),
        (
            PoplibsError,
            lambda: rearrange.addTransposeVertices(graph, cs, HALF, 2, 2, [[(0, 1)]], lambda n: (t[0], t[0])),
            "tensors of 4 elements",
        ),
        (PoplarTypeError, lambda: rearrange.regroupIfPossible(graph, t, prog, 4), "to is a pair of a dimension and the size"),
        (PoplarTypeError, lambda: rearrange.addTransposeVertices(graph, cs, HALF, 2, 2, [], None), "getInOut is a function"),
    ]
    for error, call, message in refused:
        with pytest.raises(error, match=message):
            call()
    assert (len(graph.freeze().variables.names), graph.numComputeSets()) == before
    assert len(prog) == 0


@examples(40)
@given(
    st.lists(st.sampled_from((1, 2, 3, 4, 6, 8, 12)), min_size=2, max_size=4),
    st.sampled_from((HALF, FLOAT, INT)),
    st.sampled_from((1, 3, 8)),
    st.data(),
)
def test_tensors_are_brought_into_another_order_in_blocks(shape, type, tiles, data):
    order = data.draw(st.permutations(range(len(shape))))
    values = np.random.default_rng(tiles).integers(-99, 99, shape).astype(type.dtype)
    graph, device = new_graph(tiles)
    t = variable(graph, type, shape, "t")
    wanted = t.dimShuffle(order)
    dimension, _ = innermost_grouping(graph, wanted)
    blocks = best_blocks(graph, wanted)
    if blocks is None:
        last = [place for place in range(wanted.rank()) if wanted.dim(place) > 1][-1:]
        size = innermost_grouping(graph, wanted)[1]
        assert [dimension] == last or size == 1 or np.prod(wanted.shape()[dimension + 1 :]) == 1
        return
    prog = Sequence()
    made = blocks.transposed(prog, "t")
    assert innermost_grouping(graph, made.reshape(blocks.shape))[0] == 2
    read, _ = run(graph, device, prog, {"t": values}, {"made": made}, "native", {})
    np.testing.assert_array_equal(read["made"], values.transpose(order))


def test_what_a_virtual_graph_does_not_see_is_not_brought_into_another_order():
    graph, _ = new_graph(8)
    t = variable(graph, HALF, [16, 64], "t")
    assert best_blocks(graph, t.transpose()) is not None
    assert best_blocks(graph.createVirtualGraph(0, 4), t.transpose()) is None
    assert best_blocks(graph, t) is None
    assert best_blocks(graph, variable(graph, BOOL, [16, 64], "flags").transpose()) is None
    assert best_blocks(graph, graph.addVariable(HALF, [16, 64], "nowhere").transpose()) is None
