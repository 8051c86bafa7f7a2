"""Where variables lie that live only at times."""

from itertools import pairwise

import numpy as np
import pytest
from engine_builder import tiny
from hypothesis import given
from hypothesis import strategies as st
from law_examples import examples

from pypoplar import FLOAT, Graph, GraphMemoryAllocationError, IPUModel, compileGraph
from pypoplar.compiler.liveness.liveness import Liveness
from pypoplar.compiler.memory.sharing import share
from pypoplar.program import Copy, Sequence


@st.composite
def parts(draw):
    """Lives of some variables, their ranges in any order, and the parts that tiles have of them."""
    variables = draw(st.integers(1, 8))
    first, begin, end = [0], [], []
    for _ in range(variables):
        bounds = sorted(draw(st.sets(st.integers(0, 24), min_size=2, max_size=14)))
        ranges = draw(st.permutations(list(zip(bounds[0::2], bounds[1::2], strict=False))))
        begin += [one for one, _ in ranges]
        end += [one for _, one in ranges]
        first.append(len(begin))
    arrays = (np.array(one, np.int64) for one in (first, begin, end))
    alignments = draw(st.sampled_from([(8,), (8, 16, 32)]))
    rows = []
    for tile in range(draw(st.integers(1, 5))):
        for variable in range(variables):
            if draw(st.booleans()):
                alignment = draw(st.sampled_from(alignments))
                rows.append((tile, variable, alignment * draw(st.integers(1, 5)), alignment))
    return Liveness(np.zeros(variables, bool), *arrays), np.array(rows, np.int64).reshape(-1, 4).T


def moments(liveness, variable):
    """The positions at which a variable lives."""
    ranges = slice(liveness.first[variable], liveness.first[variable + 1])
    return {at for begin, end in zip(liveness.begin[ranges], liveness.end[ranges], strict=True) for at in range(begin, end)}


@given(parts())
def test_parts_that_live_at_once_lie_apart_and_no_tile_needs_more_than_without_sharing(made):
    liveness, (tile, variable, size, alignment) = made
    offset = share(tile, variable, size, alignment, liveness)
    assert (offset % alignment == 0).all()
    lives = {one: moments(liveness, one) for one in set(variable.tolist())}
    for here in set(tile.tolist()):
        taken = [(int(offset[k]), int(offset[k] + size[k]), lives[int(variable[k])]) for k in np.flatnonzero(tile == here)]
        for number, (begin, end, life) in enumerate(taken):
            assert begin % 8 == 0
            assert not any(begin < other[1] and other[0] < end and life & other[2] for other in taken[:number])
        assert max(end for _, end, _ in taken) <= (size + alignment - 8)[tile == here].sum()


@given(parts(), st.permutations(range(5)))
def test_tiles_with_the_same_parts_have_the_same_layout(made, order):
    liveness, (tile, variable, size, alignment) = made
    if len(tile):
        rows = np.flatnonzero(tile == tile[0])
        copies = np.repeat(np.arange(3), len(rows))
        thrice = [np.tile(column[rows], 3) for column in (variable, size, alignment)]
        offset = share(copies, *thrice, liveness).reshape(3, -1)
        assert (offset == share(tile[rows], variable[rows], size[rows], alignment[rows], liveness)).all()


def chain(count, elements, tiles=1):
    """Each of some variables is made of the one before it."""
    graph = Graph(tiny().getTarget())
    made = []
    for number in range(count):
        made.append(graph.addVariable(FLOAT, [tiles, elements], f"x{number}"))
        for tile in range(tiles):
            graph.setTileMapping(made[-1][tile], tile)
    graph.setInitialValue(made[0], 0.0)
    graph.createHostRead("last", made[-1])
    return graph, Sequence([Copy(one, other) for one, other in pairwise(made)])


def test_a_chain_of_temporaries_takes_the_memory_of_two():
    executable = compileGraph(*chain(20, 100))
    assert executable.memory.variables[0] == 4 * 400  # the first, the last and two between
    assert executable.lives.always.tolist() == [True, *[False] * 18, True]
    assert executable.lives.live_bytes(len(executable.steps)).tolist() == [0, 400, *[800] * 17, 400]
    assert executable.lives.live_bytes(len(executable.steps), 1).sum() == 0


def test_nothing_is_shared_where_unwritten_memory_is_an_error():
    graph, program = chain(20, 100)
    assert compileGraph(graph, program, {"pypoplar.uninitialised": "error"}).memory.variables[0] == 20 * 400


def test_several_small_ones_lie_where_a_large_one_was():
    graph = Graph(tiny().getTarget())
    source, large = (graph.addVariable(FLOAT, [1000], name) for name in ("source", "large"))
    small = [graph.addVariable(FLOAT, [100], f"small{number}") for number in range(10)]
    for one in (source, large, *small):
        graph.setTileMapping(one, 2)
    graph.setInitialValue(source, 1.0)
    both = [Copy(source, large), Copy(large, source), *(Copy(source[:100], one) for one in small)]
    memory = compileGraph(graph, Sequence([*both, *(Copy(one, source[:100]) for one in small)])).memory
    assert memory.variables[2] == 8000
    assert memory.gaps[2] == 0


def test_a_program_that_fits_only_because_it_shares_memory_compiles():
    elements = tiny().getTarget().getBytesPerTile() // 4 // 5
    compileGraph(*chain(20, elements))
    with pytest.raises(GraphMemoryAllocationError, match=r"variable 'x0' .*; 16 variables more at other times"):
        compileGraph(*chain(20, elements * 4 // 3))


@examples(20)
@given(st.integers(1, 12), st.integers(1, 40), st.sampled_from([1, 5, 16]))
def test_the_parts_of_the_memory_add_up(count, elements, tiles):
    memory = compileGraph(*chain(count, elements, tiles)).memory
    assert (memory.always_live + memory.not_always_live == memory.total() - memory.gaps).all()
    names = ("variables", "constants", "exchange_buffers", "vertex_state", "edge_pointers", "code", "stack", "gaps")
    assert (sum(getattr(memory, name) for name in names) == memory.total()).all()
    assert (memory.gaps >= 0).all()


def test_temporaries_on_every_tile_share_memory():
    graph = Graph(IPUModel().createDevice())
    made = [graph.addVariable(FLOAT, [1472, 2], f"x{number}") for number in range(60)]
    for one in made:
        graph.setTileMapping(one, [[(2 * tile, 2 * tile + 2)] for tile in range(1472)])
    graph.setInitialValue(made[0], 1.0)
    program = Sequence([Copy(one, other) for one, other in pairwise(made)])
    assert (compileGraph(graph, program).memory.variables == 3 * 8).all()
